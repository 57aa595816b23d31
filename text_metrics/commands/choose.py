"""Choose a diverse subset of good texts in each group, for example from generated training data.

A row of the file holds a group of texts, as a list, which is reduced to the chosen texts, with all
lists of the row that have as many entries; or one text, and --id-key, --set-size or --one-set say
which rows make a group. Texts are chosen one at a time: always the one that most increases the mean
quality times the Vendi score of order 2 of the texts chosen so far; with --min-distance, among
those that are as far as this from all chosen ones. With --column classes=KEY, texts of one class
of a group are equal, and others have nothing in common. The summary has the mean of that score over
groups (chosen_score), and for as many texts drawn at random (random_score). A bad row is skipped.
After a kill, the same command continues. docs/choose.md says more; exit codes are those of
text-metrics score.

    text-metrics choose data.jsonl --text-key answer --id-key prompt --keep 4
    text-metrics choose data.parquet --text-key text --one-set --keep 1000 --column quality=reward
    text-metrics choose data.csv --text-key text --one-set --keep all --min-distance 0.1
    text-metrics choose classes.jsonl --text-key answers --keep 4 --column classes=classes
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from text_metrics import options as cli
from text_metrics.choosing.greedy import choose, subset_score
from text_metrics.console import Parser, command, input_checked
from text_metrics.core_api import (
    EmbeddedSetSettings,
    EncoderSettings,
    TextSets,
    content_ranks,
    embed_sets,
    number_labels,
    parse_number,
    unit_vectors,
)
from text_metrics.files.columns import Column, parse_cell
from text_metrics.files.rows import Source
from text_metrics.files.sets import Reader, Unit
from text_metrics.files.storage import to_json
from text_metrics.jobs.job import Job, Rows
from text_metrics.jobs.saved import SavedJob

_SEED = 0


def parse_options(words: Sequence[str] | None) -> cli.Options:
    """Read the command line, as `parse` does."""
    parser = Parser(__doc__)
    cli.add_job(parser, "group", "chosen", clusters=False)
    parser.add_argument("--keep", type=_keep, required=True, metavar="K", help="texts to choose of each group, or all")
    help = "the least cosine distance of chosen texts, such as 0.1; which of two stays is the one chosen first"
    parser.add_argument("--min-distance", type=float, default=0, metavar="D", help=help)
    cli.add_columns(parser, "quality, of each text, in [0, 1], or its class")
    cli.add_settings(parser, "a setting of the encoder, such as model or cache_dir")
    parser.set_defaults(metric="choose", engine="local")
    options = cli.parse(parser, words)
    parse_number(options.min_distance, "--min-distance", 0, 2)
    for argument in options.columns:
        if argument not in ("quality", "contexts", "classes"):
            raise ValueError(f"--column {argument}: a column may give quality or classes only.")
    if options.context_key and "classes" in options.columns:
        raise ValueError("--context-key and --column classes cannot be combined: no text is embedded.")
    return options


def _keep(text: str) -> int | str:
    return text if text == "all" else int(text)


def choose_texts(
    options: cli.Options, encoder: EncoderSettings, units: list[Unit]
) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Choose texts of groups; returns the facts of the summary, and the places of the chosen texts of each group."""
    texts = list(chain.from_iterable(unit.texts for unit in units))
    sizes = np.array([len(unit.texts) for unit in units])
    if "classes" in options.columns:
        embeddings = _vectors_of_classes(units)
        signed = {"classes": "given"}
    else:
        contexts = [unit.given["contexts"] for unit in units] if options.context_key else None
        settings = EmbeddedSetSettings(**encoder.passed(), contexts=contexts)
        embeddings, signed, _ = embed_sets(TextSets(texts, sizes, nested=True), settings)
    qualities = [np.array(unit.given.get("quality", [1.0] * len(unit.texts))) for unit in units]
    quality = np.concatenate(qualities)
    candidates = [_merge_equal(unit.texts, values) for unit, values in zip(units, qualities, strict=True)]
    starts = np.cumsum(sizes) - sizes
    n_candidates = np.array(list(map(len, candidates)))
    rows = np.concatenate([start + places for start, places in zip(starts, candidates, strict=True)])
    keep = n_candidates if options.keep == "all" else np.minimum(options.keep, n_candidates)
    ranks = content_ranks([texts[i] for i in rows])
    chosen = choose(embeddings[rows], quality[rows], n_candidates, keep, ranks, options.min_distance)
    chosen = [places[picked] for places, picked in zip(candidates, chosen, strict=True)]
    # As many texts of each group at random, for comparison.
    drawn = []
    for size, places in zip(sizes.tolist(), chosen, strict=True):
        rng = np.random.default_rng((_SEED, size, len(places)))
        drawn.append(rng.choice(size, len(places), replace=False))
    n_merged = int(sizes.sum() - n_candidates.sum())
    chosen_score = _total_score(embeddings, quality, starts, chosen)
    random_score = _total_score(embeddings, quality, starts, drawn)
    facts: dict[str, Any] = {
        "n_groups": len(units),
        "n_chosen": sum(map(len, chosen)),
        "n_merged": n_merged,
        "chosen": chosen_score,
        "random": random_score,
        "signed": signed,
    }
    return facts, [np.sort(places) for places in chosen]


def _vectors_of_classes(units: Sequence[Unit]) -> np.ndarray:
    """Make a vector of the class of each text, equal for texts of one class of a group and orthogonal for others."""
    labels = [number_labels(unit.given["classes"], lambda i: f"class {i}") for unit in units]
    codes = np.concatenate(labels)
    return np.eye(codes.max() + 1, dtype=np.float32)[codes]


def finish(options: cli.Options, units: list[Unit], chosen: Any) -> tuple[dict[str, Any], Rows]:
    """Return the facts of the summary, and the rows of the chosen texts, in order, or rows with shorter lists."""
    facts, places_of_units = chosen
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


def _shortened(value: Any, n_texts: int, places: np.ndarray, has_cells: bool) -> Any:
    """Keep the entries of a list that is parallel to the texts; in CSV, it is a string."""
    entries = parse_cell(value) if has_cells else value
    if not isinstance(entries, list) or len(entries) != n_texts:
        return value
    entries = [entries[i] for i in places]
    return to_json(entries) if isinstance(value, str) else entries


def _merge_equal(texts: Sequence[str], quality: np.ndarray) -> np.ndarray:
    """Return the places of different texts, in order: of equal ones, the first of the best quality."""
    # Of each text, the last one remains.
    best = {texts[i]: i for i in np.lexsort((-np.arange(len(texts)), quality))}
    return np.sort(np.fromiter(best.values(), np.int64))


def _total_score(
    embeddings: np.ndarray, quality: np.ndarray, starts: np.ndarray, subsets: Sequence[np.ndarray]
) -> float:
    total = 0.0
    for start, places in zip(starts, subsets, strict=True):
        vectors = unit_vectors(embeddings[start + places])
        total += subset_score(vectors, quality[start + places])
    return total


def summarize(pieces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the counts, average the scores over groups, and name the encoder."""
    total = {"n_groups": 0, "n_chosen": 0, "n_merged": 0, "chosen": 0.0, "random": 0.0}
    signed: dict[str, str] = {}
    for facts in pieces:
        total = {name: value + facts[name] for name, value in total.items()}
        if facts["signed"] != (signed or facts["signed"]):
            raise ValueError(f"the encoder has changed: from {signed} to {facts['signed']}.")
        signed = facts["signed"]
    scores = {f"{name}_score": total.pop(name) / total["n_groups"] for name in ("chosen", "random")}
    return total | scores | signed


@command
def main(words: Sequence[str] | None = None) -> int:
    """Choose texts of the file; returns the exit code."""
    options = parse_options(words)
    source = Source(options.data, **cli.form_of(options))
    columns = [Column("contexts", options.context_key, is_optional=True)] if options.context_key else []
    if quality := options.columns.get("quality"):
        columns.append(Column("quality", quality, True, (0, 1), options.quality_scale))
    if classes := options.columns.get("classes"):
        columns.append(Column("classes", classes, True))
    with input_checked():
        encoder = EncoderSettings.read({"progress": not options.quiet, **options.settings}, "choose")
        if not classes:
            encoder.check_found()
    saved = SavedJob(options, "chosen")
    summary = saved.finished()
    if summary is None:
        reader = Reader(options.keys, True, columns, chooses=True, strip=options.strip)
        steps = partial(choose_texts, options, encoder), partial(finish, options)
        summary = Job(saved, source, reader, *steps, options.batch_size, lambda _: source.schema).run(summarize)
    return saved.finish(summary)
