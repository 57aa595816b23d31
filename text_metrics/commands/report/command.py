"""The command line of text-metrics report as one typed object, parsed and checked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.command import make_parser
from text_metrics.commands.shared.settings import add_confidence, add_settings, check_names, parse_settings
from text_metrics.metrics._core.core_numbers import parse_level

GRUEN, NONE = "gruen", "none"
_SETTINGS = ("model", "long_texts", "batch_size", "device", "same")


@dataclass(frozen=True)
class ReportCommand:
    """What was asked for; each attribute is the option of its name. Raises a ValueError if one is invalid.

    `files` are by the name of their system. Without `id_key`, prompts are rows. `quality` is None with `quality_key`.
    """

    files: Mapping[str, Path]
    text_key: str
    id_key: str | None = None
    system_key: str | None = None
    people: Path | None = None
    quality: str | None = GRUEN
    quality_key: str | None = None
    out: Path = Path("report")
    cache_dir: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = 0.95
    texts: bool = True
    quiet: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without the files."""
        check_names(self.settings, _SETTINGS, "the report")
        parse_level(self.confidence, "--confidence")
        if self.system_key is not None and len(self.files) > 1:
            raise ValueError(f"--system-key is for one file. Got {len(self.files)} files.")
        if self.id_key is None and (self.system_key or self.people):
            raise ValueError("--system-key and --people require --id-key.")

    @property
    def encoder(self) -> dict[str, Any]:
        """The settings of the encoder, as metrics take them."""
        settings = {name: value for name, value in self.settings.items() if name != "same"}
        return {**settings, "cache_dir": str(self.cache_dir)}


def parse_command(words: Sequence[str] | None = None, description: str | None = None) -> ReportCommand:
    """Read the command line; exits with 2 where argparse cannot read it."""
    parser = make_parser(description)
    parser.add_argument(
        "files",
        nargs="+",
        type=_name_file,
        metavar="[NAME=]FILE",
        help="a system: .jsonl, .ndjson, .json or .csv, also with .gz or .zst, .parquet, or a folder of `datasets`",
    )
    parser.add_argument("--text-key", required=True, help="column of the text, or of the list of texts")
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", help="column of the prompt")
    pairing.add_argument("--by-line", action="store_true", help="equal rows of all files are of one prompt")
    parser.add_argument("--system-key", help="column of the system, in one file that holds all systems")
    parser.add_argument("--people", type=Path, metavar="FILE", help="texts of people, with the same columns")
    parser.add_argument("--quality", choices=(GRUEN, NONE), default=GRUEN, help="how texts are rated; gruen is slow")
    parser.add_argument("--quality-key", help="column of the quality of each text, instead of --quality")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report; `report` by default")
    parser.add_argument("--cache-dir", type=Path, help="folder in which embeddings are kept after the report")
    add_settings(parser, f"a setting of the encoder or of semantic_entropy: {', '.join(_SETTINGS)}")
    add_confidence(parser)
    parser.add_argument("--no-texts", action="store_true", help="show no text; values of --id-key are still shown")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = vars(parser.parse_args(words))
    del options["by_line"]
    names = [name for name, _ in options["files"]]
    if len(set(names)) < len(names):
        raise ValueError(f"each system needs a name of its own: pass NAME=path. Got {', '.join(names)}.")
    options["files"] = dict(options["files"])
    options["settings"] = parse_settings(options.pop("setting"))
    options["texts"] = not options.pop("no_texts")
    if options["quality_key"] is not None:
        options["quality"] = None
    return ReportCommand(**options)


def _name_file(word: str) -> tuple[str, Path]:
    """Name a file: NAME=path, or a path whose stem is the name."""
    name, _, path = word.partition("=")
    if name and path and not Path(word).exists():
        return name, Path(path)
    return Path(word).stem, Path(word)
