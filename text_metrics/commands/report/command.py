"""The command line of text-metrics report as one typed object, parsed and checked once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from text_metrics.commands.shared.columns import add_columns, parse_columns
from text_metrics.commands.shared.command import make_parser
from text_metrics.commands.shared.settings import add_confidence, add_settings, check_names, parse_settings

GRUEN, NONE = "gruen", "none"
_SETTINGS = ("model", "long_texts", "batch_size", "device", "same")


class NamedFile(NamedTuple):
    """A file of a system: NAME=path, or a path whose stem is the name."""

    name: str
    path: Path


@dataclass(frozen=True)
class ReportCommand:
    """What was asked for; each attribute is the option of its name. Raises a ValueError if one is invalid.

    Without `id_key`, prompts are rows. `quality` is None with `quality_key`, which is `--column quality`.
    """

    files: tuple[NamedFile, ...]
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
        names = [file.name for file in self.files]
        by_line = self.id_key is None
        twice = next((name for name in names if names.count(name) > 1), None)
        same = self.settings.get("same", 0.0)
        is_cosine = isinstance(same, (int, float)) and not isinstance(same, bool) and -1 <= same <= 1
        problems = {
            f"--confidence must be between 0 and 1. Got {self.confidence:g}.": not 0 < self.confidence < 1,
            f"two systems have the name {twice!r}: pass NAME=path for one of them.": twice is not None,
            f"--system-key is for one file. Got {len(names)} files.": self.system_key is not None and len(names) > 1,
            "--system-key requires --id-key.": self.system_key is not None and by_line,
            "--people requires --id-key.": self.people is not None and by_line,
            f"--setting same must be a number in [-1, 1], a cosine. Got {same!r}.": not is_cosine,
        }
        for message, is_wrong in problems.items():
            if is_wrong:
                raise ValueError(message)

    @property
    def embeddings(self) -> Path:
        """The folder in which embeddings are kept: the caller's, or one that is removed at the end."""
        return self.cache_dir or self.out / "embeddings.tmp"

    @property
    def columns(self) -> tuple[str | None, ...]:
        """The columns of the text, the prompt, the system and the quality; None where there is none."""
        return self.text_key, self.id_key, self.system_key, self.quality_key

    @property
    def encoder(self) -> dict[str, Any]:
        """The settings of the encoder, as metrics take them."""
        settings = {name: value for name, value in self.settings.items() if name != "same"}
        return {**settings, "cache_dir": str(self.embeddings)}

    def decisive(self) -> dict[str, Any]:
        """Return what decides the numbers, as JSON."""
        names = ("text_key", "id_key", "system_key", "quality", "quality_key", "texts")
        return {
            "files": {file.name: str(file.path) for file in self.files},
            "people": None if self.people is None else str(self.people),
            "settings": {name: value for name, value in self.settings.items() if name not in ("batch_size", "device")},
            **{name: getattr(self, name) for name in names},
        }


def parse_command(words: Sequence[str] | None = None, description: str | None = None) -> ReportCommand:
    """Read the command line; exits with 2 where argparse cannot read it."""
    parser = make_parser(description)
    parser.add_argument(
        "files",
        nargs="+",
        metavar="[NAME=]FILE",
        help="a system: .jsonl, .ndjson, .json or .csv, also with .gz or .zst, .parquet, or a folder of `datasets`",
    )
    parser.add_argument("--text-key", required=True, help="column of the text, or of the list of texts")
    pairing = parser.add_mutually_exclusive_group(required=True)
    pairing.add_argument("--id-key", help="column of the prompt")
    pairing.add_argument("--by-line", action="store_true", help="equal rows of all files are of one prompt")
    parser.add_argument("--system-key", help="column of the system, in one file that holds all systems")
    parser.add_argument("--people", type=Path, metavar="FILE", help="texts of people, with the same columns")
    parser.add_argument("--quality", choices=(GRUEN, NONE), help="how texts are rated; gruen by default, which is slow")
    add_columns(parser, "quality, of each text, instead of --quality,")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report; `report` by default")
    parser.add_argument("--cache-dir", type=Path, help="folder in which embeddings are kept after the report")
    add_settings(parser, f"a setting of the encoder or of semantic_entropy: {', '.join(_SETTINGS)}")
    add_confidence(parser)
    parser.add_argument("--no-texts", action="store_true", help="show no text; values of --id-key are still shown")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    options = vars(parser.parse_args(words))
    settings, columns = parse_settings(options.pop("setting")), parse_columns(options.pop("column"))
    for argument in columns.keys() - {"quality"}:
        raise ValueError(f"--column {argument}: the report takes a column for quality only.")
    if columns and options["quality"] is not None:
        raise ValueError("--quality and --column quality exclude each other.")
    if not columns:
        options["quality"] = options["quality"] or GRUEN
    files = tuple(map(_name_file, options.pop("files")))
    texts = not options.pop("no_texts")
    del options["by_line"]
    return ReportCommand(files=files, settings=settings, texts=texts, quality_key=columns.get("quality"), **options)


def _name_file(word: str) -> NamedFile:
    name, equals, path = word.partition("=")
    if equals and name and path and not Path(word).exists():
        return NamedFile(name, Path(path))
    return NamedFile(Path(word).stem, Path(word))
