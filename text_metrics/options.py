"""The options that commands share, each declared once."""

import argparse
import codecs
import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics import METRICS, load, texts
from text_metrics.core_api import parse_level
from text_metrics.files.columns import OPTIONS, parse_cell
from text_metrics.files.reading import current
from text_metrics.files.sets import Keys
from text_metrics.files.storage import parse_path


class Options(argparse.Namespace):
    """The options of a command by name; `columns` are keys by argument, and `settings` values by name."""

    @property
    def keys(self) -> Keys:
        """The keys that join rows to sets."""
        return Keys(self.text_key, self.id_key, self.system_key, self.set_size, self.one_set)


def add_keys(parser: argparse.ArgumentParser, clusters: bool = True, contexts: bool = True) -> None:
    """Add the options of columns and of file formats; keys of clusters and contexts are optional."""
    help = "the text, or the list of texts: a column, or a JMESPath expression; by default the row itself"
    parser.add_argument("--text-key", metavar="KEY", help=help)
    parser.add_argument("--system-key", metavar="KEY", help="which system a row is from; with --id-key")
    if contexts:
        parser.add_argument("--context-key", metavar="KEY", help="the prompt's text: what its texts answer")
    add_strip(parser)
    if clusters:
        parser.add_argument("--cluster-key", metavar="KEY", help="sets with one value here are not independent")
    parser.add_argument("--rows", metavar="KEY", help="where the rows are, in files that hold one JSON object")
    parser.add_argument("--delimiter", type=_delimiter, help="of CSV, such as ';'")
    parser.add_argument("--encoding", type=_encoding, default="utf-8", help="of text, such as cp1252")


def add_strip(parser: argparse.ArgumentParser) -> None:
    """Add --strip."""
    help = "remove what is not the answer: reasoning (<think>…), special tokens, the prompt that a text begins with"
    parser.add_argument("--strip", type=_kinds, default=[], metavar=",".join(texts.KINDS), help=help)


def check_strip(kinds: Sequence[str], has_contexts: bool) -> None:
    """Raise a ValueError if prompts are to be stripped that are not known."""
    if texts.PROMPT in kinds and not has_contexts:
        raise ValueError(
            "--strip prompt requires the prompts of the texts: pass --context-key, in a command that has it."
        )


def warn_of_marks(marks: texts.Marks, kinds: Sequence[str] = texts.KINDS, what: str = "texts") -> None:
    """Print how many texts hold more than the answer, and how many are empty without it."""
    for line in (marks.warning(kinds=kinds, what=what), marks.emptied(what)):
        if line:
            print(line, file=sys.stderr)


def _kinds(text: str) -> list[str]:
    try:
        return texts.parse_kinds(text, "it")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def form_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how files are read, as arguments of `Source`."""
    return {name: getattr(options, name) for name in ("rows", "delimiter", "encoding")}


def _delimiter(text: str) -> str:
    text = text.replace("\\t", "\t")
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character. Got {text!r}.")
    return text


def _encoding(text: str) -> str:
    try:
        # It also rejects codecs that are not text encodings, such as hex.
        io.TextIOWrapper(io.BytesIO(), text).read()
        return codecs.lookup(text).name
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not an encoding of text.") from None


def add_job(parser: argparse.ArgumentParser, group: str, result: str, clusters: bool = True) -> None:
    """Add the options of a job on rows, which make a `group`; `result` is the end of the default name of the output."""
    help = (
        ".jsonl, .ndjson, .json, .csv, .tsv or .txt, also .gz or .zst, .parquet, or a folder of `datasets`, of Parquet "
        "or of JSON files; a path, a pattern of paths, or a URL of fsspec"
    )
    parser.add_argument("data", type=parse_path, help=help)
    add_keys(parser, clusters)
    groups = parser.add_mutually_exclusive_group()
    groups.add_argument("--id-key", metavar="KEY", help=f"which prompt a row belongs to: its rows make a {group}")
    groups.add_argument("--set-size", type=int, help=f"this many consecutive rows make a {group}")
    groups.add_argument("--one-set", action="store_true", help=f"all rows of the file make one {group}")
    help = f".parquet, .jsonl or .csv; by default <data>.{result} in the format of the data"
    parser.add_argument("--out", type=Path, help=help)
    parser.add_argument("--batch-size", type=int, default=4096, help="texts processed at a time")
    parser.add_argument("--restart", action="store_true", help="discard saved results, and start again")
    help = "show no text of a row that is skipped, neither in <out>.bad.jsonl nor on stderr"
    parser.add_argument("--no-texts", action="store_true", help=help)
    add_quiet(parser)


class _Quiet(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        namespace.quiet = current().is_quiet = True


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet."""
    help = "show no progress, and not which files were read and written: only results, warnings and errors"
    parser.add_argument("--quiet", action=_Quiet, nargs=0, default=False, help=help)


def add_rows(parser: argparse.ArgumentParser, contexts: bool = False) -> None:
    """Add the options of columns and of file formats, for rows that get further columns."""
    add_keys(parser, clusters=False, contexts=contexts)
    help = "which prompt a row belongs to; a bad row is skipped with the other rows of its prompt"
    parser.add_argument("--id-key", metavar="KEY", help=help)


def add_chat(parser: argparse.ArgumentParser, reads: str, help: str) -> None:
    """Add what a command asks a chat model about, its output, and the settings of an endpoint."""
    parser.add_argument("reads", metavar=reads, type=Path, help=help)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the result")
    parser.add_argument("--model", required=True, help="name of the chat model")
    parser.add_argument("--base-url", help="of the endpoint; OpenAI's by default, or $OPENAI_BASE_URL")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=8, help="number of concurrent requests")
    parser.add_argument("--attempts", type=int, default=4, help="requests for an answer that can be parsed")
    parser.add_argument("--retries", type=int, default=6, help="after a rate limit, a server error, a lost connection")


def chat_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `add_chat`, as arguments of `Chat`."""
    names = ("reads", "out", "model", "base_url", "temperature", "workers", "attempts", "retries")
    return {name: getattr(options, name) for name in names}


def add_columns(parser: argparse.ArgumentParser, arguments: str = "an argument of sets or texts") -> None:
    """Add --column, which is repeatable, and --quality-scale."""
    help = f"take {arguments} from a column: a row of a set has a list, a row of one text a value"
    parser.add_argument("--column", action="append", default=[], metavar="ARGUMENT=KEY", help=help)
    help = "divide quality by this, such as 10 or 100"
    parser.add_argument("--quality-scale", type=float, default=1, metavar="N", help=help)


def add_one_system(parser: argparse.ArgumentParser) -> None:
    """Add --one-system, without which rows that seem to be of several systems are an error."""
    help = "each file holds one system, whatever its columns"
    parser.add_argument("--one-system", action="store_true", help=help)


def add_settings(parser: argparse.ArgumentParser, help: str = "a setting of the metric; `help` lists them") -> None:
    """Add --setting, which is repeatable."""
    parser.add_argument("--setting", "--set", action="append", default=[], metavar="NAME=VALUE", help=help)


def add_limits(parser: argparse.ArgumentParser, numbers: str) -> None:
    """Add --fail-under and --fail-over, which may be given many times; `numbers` says what they limit."""
    for option, direction in (("--fail-under", "below"), ("--fail-over", "above")):
        help = f"end with exit code 5 if this number is {direction} the value: {numbers}"
        parser.add_argument(option, action="append", default=[], type=_limit, metavar="NAME=VALUE", help=help)


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        limit = float(value)
    except ValueError:
        limit = math.inf
    # No number is beyond an infinite limit; every number is beyond NaN.
    if not name or math.isinf(limit):
        raise argparse.ArgumentTypeError(f"must be NAME=NUMBER. Got {text!r}.")
    return name, limit


def add_confidence(parser: argparse.ArgumentParser, help: str = "level of the intervals") -> None:
    """Add --confidence."""
    parser.add_argument("--confidence", type=float, default=0.95, help=help)


def parse(parser: argparse.ArgumentParser, words: Sequence[str] | None = None) -> Options:
    """Read a command line with columns and settings.

    Exits with 2 where argparse cannot read it, and raises a ValueError for invalid values.
    """
    options = parser.parse_args(words, Options())
    values = vars(options)
    options.columns = columns = parse_pairs(values.pop("column"), "--column")
    for argument, option in OPTIONS.items():
        if argument in columns:
            raise ValueError(f"--column {argument} is now {option} {columns[argument]}.")
        if key := values.get(option[2:].replace("-", "_")):
            columns[argument] = key
    if not options.quality_scale > 0:
        raise ValueError(f"--quality-scale must be positive. Got {options.quality_scale}.")
    options.settings = parse_settings(values.pop("setting"), options.metric)
    check_strip(options.strip, options.context_key is not None)
    if options.system_key is not None and options.id_key is None:
        raise ValueError("--system-key requires --id-key.")
    if "confidence" in values:
        parse_level(options.confidence, "--confidence")
    for name in ("batch_size", "set_size", "workers", "keep", "last"):
        value = values.get(name)
        if isinstance(value, int) and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Got {value}.")
    return options


def parse_settings(pairs: Sequence[str], metric: str = "") -> dict[str, Any]:
    """Read the NAME=VALUE pairs of --setting, where a value is JSON, or else a string.

    `help` in place of a pair prints the help of the metric, with all its settings, and exits.
    """
    if "help" in pairs and metric in METRICS:
        print(load(metric).inputs_description)
        raise SystemExit(0)
    return {name: parse_cell(value) for name, value in parse_pairs(pairs, "--setting").items()}


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Read the NAME=VALUE pairs of a repeatable option; the last value of a name counts."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{option} must be NAME=VALUE. Got {pair!r}.")
        values[name] = value
    return values
