"""Choose a diverse subset of good texts in each group, for example from generated training data.

A row of the file holds a group of texts, as a list, which is reduced to the chosen texts, with all
lists of the row that have as many entries; or one text, and --id-key, --set-size or --one-set say
which rows make a group. Texts are chosen one at a time: always the one that most increases the mean
quality times the Vendi score of order 2 of the texts chosen so far; with --min-distance, among
those that are as far as this from all chosen ones. With --column classes=KEY, texts of one class
of a group are equal, and others have nothing in common; --column embeddings=KEY has vectors in place
of an encoder. An empty text is not chosen. The summary has the mean of that score over groups
(chosen_score), and for as many texts drawn at random (random_score). A bad row is skipped. After a
kill, the same command continues.
docs/choose.md says more, and how to choose in Python.

    text-metrics choose data.jsonl --text-key answer --id-key prompt --keep 4
    text-metrics choose data.parquet --text-key text --one-set --keep 1000 --column quality=reward
    text-metrics choose data.csv --text-key text --one-set --keep all --min-distance 0.1
    text-metrics choose classes.jsonl --text-key answers --keep 4 --column classes=classes
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from text_metrics import options as cli
from text_metrics.choosing.subset import ChoiceSettings, choose_answers
from text_metrics.console import Parser, command, input_checked
from text_metrics.core_api import SETS, Signature, parse_number, parse_sets
from text_metrics.files.columns import Column, columns_of, parse_cell, to_arguments
from text_metrics.files.rows import Source
from text_metrics.files.sets import Reader, Unit
from text_metrics.files.storage import to_json
from text_metrics.jobs.job import Job, Rows
from text_metrics.jobs.saved import SavedJob
from text_metrics.jobs.summary import merge_signatures

# Counts of texts in the result of a choice, which are added up.
_COUNTS = ("n_empty", "n_merged", "n_below")
# Entries of the signature that the summary has by their names, too.
_SHOWN = ("model", "embeddings", "classes", "contexts")


def parse_options(words: Sequence[str] | None) -> cli.Options:
    """Read the command line, as `parse` does."""
    parser = Parser(__doc__)
    cli.add_job(parser, "group", "chosen", clusters=False)
    parser.add_argument("--keep", type=_keep, required=True, metavar="K", help="texts to choose of each group, or all")
    help = "the least cosine distance of chosen texts, such as 0.1; which of two stays is the one chosen first"
    parser.add_argument("--min-distance", type=float, default=0.0, metavar="D", help=help)
    help = "choose no text of a lower quality, in [0, 1]; with --column quality=KEY"
    parser.add_argument("--min-quality", type=float, default=0.0, metavar="Q", help=help)
    cli.add_columns(parser, "quality, in [0, 1], embeddings or classes, of each text,")
    cli.add_settings(parser, "a setting of the encoder, such as model or cache_dir")
    parser.set_defaults(metric="choose", engine="local")
    options = cli.parse(parser, words)
    parse_number(options.min_distance, "--min-distance", 0, 2)
    parse_number(options.min_quality, "--min-quality", 0, 1)
    for name in ("keep", "min_distance", "min_quality", "set_size"):
        if name in options.settings:
            raise ValueError(f"--setting {name}: pass --{name.replace('_', '-')}.")
    return options


def _keep(text: str) -> int | str:
    return text if text == "all" else int(text)


def choose_texts(options: cli.Options, columns: Sequence[Column], units: list[Unit]) -> dict[str, Any]:
    """Choose texts of groups; returns the result of `choose`."""
    given = to_arguments(columns, [unit.given for unit in units], are_texts=False)
    settings = ChoiceSettings.read(_settings(options) | given, "choose")
    sets = parse_sets([list(unit.texts) for unit in units], settings.set_size, "texts")
    return choose_answers(sets, settings)


def _settings(options: cli.Options) -> dict[str, Any]:
    """Return the settings of the choice that are not given for texts."""
    return {
        "progress": not options.quiet,
        **options.settings,
        "keep": None if options.keep == "all" else options.keep,
        "min_quality": options.min_quality,
        "min_distance": options.min_distance,
    }


def finish(options: cli.Options, units: list[Unit], result: Any) -> tuple[dict[str, Any], Rows]:
    """Return the facts of the summary, and the rows of the chosen texts, in order, or rows with shorter lists."""
    places_of_units = [sorted(places) for places in result["chosen"]]
    facts: dict[str, Any] = {
        "n_groups": len(units),
        "n_chosen": sum(map(len, places_of_units)),
        **{name: result[name] for name in _COUNTS},
        "chosen": sum(result["scores"]),
        "random": sum(result["random_scores"]),
        "signature": result["signature"],
    }
    rows: Rows = []
    for unit, places in zip(units, places_of_units, strict=True):
        if options.keys.is_grouped:
            rows += [unit.rows[i].as_object() for i in places]
            continue
        row = unit.rows[0].as_object()
        has_cells = unit.rows[0].has_cells
        if options.text_key is not None and options.text_key not in row:
            raise ValueError(f"--text-key must be a column where rows hold lists. Got {options.text_key!r}.")
        rows.append({name: _shortened(value, len(unit.texts), places, has_cells) for name, value in row.items()})
    return facts, rows


def _shortened(value: Any, n_texts: int, places: Sequence[int], has_cells: bool) -> Any:
    """Keep the entries of a list that is parallel to the texts; in CSV, it is a string."""
    entries = parse_cell(value) if has_cells else value
    if not isinstance(entries, list) or len(entries) != n_texts:
        return value
    entries = [entries[i] for i in places]
    return to_json(entries) if isinstance(value, str) else entries


def summarize(pieces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the counts, average the scores over groups, and merge the signatures."""
    total = dict.fromkeys(("n_groups", "n_chosen", *_COUNTS), 0) | {"chosen": 0.0, "random": 0.0}
    signature = ""
    for facts in pieces:
        total = {name: value + facts[name] for name, value in total.items()}
        signature = merge_signatures(signature, facts["signature"])
    scores = {f"{name}_score": total.pop(name) / total["n_groups"] for name in ("chosen", "random")}
    entries = Signature.parse(signature).entries
    shown = {name: entries[name] for name in _SHOWN if name in entries}
    return total | scores | shown | {"signature": signature}


@command
def main(words: Sequence[str] | None = None) -> int:
    """Choose texts of the file; returns the exit code."""
    options = parse_options(words)
    source = Source(options.data, **cli.form_of(options))
    declared = SimpleNamespace(name="choose", settings=ChoiceSettings, items=SETS)
    columns = columns_of(declared, options.columns, options.quality_scale)
    given = {name: ["a column"] for name in options.columns}
    with input_checked():
        settings = ChoiceSettings.read(_settings(options) | given, "choose")
        if not options.columns.keys() & {"classes", "embeddings"}:
            settings.check_found()
    saved = SavedJob(options, "chosen")
    summary = saved.finished()
    if summary is None:
        reader = Reader(options.keys, True, columns, chooses=True, strip=options.strip)
        steps = partial(choose_texts, options, columns), partial(finish, options)
        summary = Job(saved, source, reader, *steps, options.batch_size, lambda _: source.schema).run(summarize)
    return saved.finish(summary)
