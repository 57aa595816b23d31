"""Score a file of generated texts with one of the metrics: of any size, in little memory, and resumable after a kill.

A row of the file holds a set of texts, as a list, or one text; then --id-key, --set-size or
--one-set say which rows make a set. The rows are written with their scores, in order, and a summary
goes to stdout and to <out>.summary.json. A row that cannot be scored is skipped with all rows of
its set, named on stderr, and written to <out>.bad.jsonl. After a kill, the same command continues.
docs/files.md describes the files, and --engine ray.

For a job of every night, --history appends its summary to a file, and --against compares its score
with the last summaries there; --fail-under and --fail-over make a limit of any number. docs/watch.md
says more; text-metrics --help lists the exit codes.

    text-metrics score data.jsonl --metric vendi_embed --text-key generations
    text-metrics score data.csv --metric self_bleu --text-key answer --id-key prompt --out scores.parquet
    text-metrics score data.parquet --metric probeval --text-key answers --reference-key people
    text-metrics score data.jsonl --metric vendi_embed --text-key generations --setting q=2 --column quality=reward
    text-metrics score data.jsonl --metric vendi_embed --text-key text --one-set --engine ray --address auto
    text-metrics score data.jsonl --metric vendi_embed --text-key generations --history nights.jsonl \
        --against nights.jsonl --fail-under difference=-0.05
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from text_metrics import options as cli
from text_metrics.console import EXIT_LIMIT, Parser, command, input_checked
from text_metrics.core_api import TEXTS
from text_metrics.files.rows import Source
from text_metrics.files.sets import Keys, Reader
from text_metrics.files.systems import SystemGuard
from text_metrics.gate import append, compare_with_history, drift_values, ends, history_of, missed_limits
from text_metrics.jobs.job import Job
from text_metrics.jobs.saved import SavedJob
from text_metrics.jobs.scoring import RowScorer, check_numbers, finish, finish_sums, output_schema, sum_up
from text_metrics.jobs.summary import intervals, summarize, summarize_sums

# One d x d sum is saved per 16 batches, because it is large.
_SUMMED = 16


def parse_options(words: Sequence[str] | None) -> cli.Options:
    """Read the command line, as `parse` does."""
    parser = Parser(__doc__)
    cli.add_job(parser, "set", "<metric>")
    parser.add_argument("--metric", required=True, help="name of a metric, or a path that evaluate.load takes")
    parser.add_argument("--reference-key", metavar="KEY", help="people's answers, for probeval; one for each set")
    cli.add_one_system(parser)
    cli.add_columns(parser)
    cli.add_settings(parser)
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="this process, or a Ray cluster")
    parser.add_argument("--address", help="host:port or auto: a Ray cluster with this machine; else one is started")
    parser.add_argument("--workers", type=int, help="actors on Ray; by default one a GPU, or else a core")
    cli.add_limits(parser, "any of the summary, an end of its interval (low, high) or, with --against, a difference")
    parser.add_argument("--history", type=Path, metavar="FILE", help="append the summary to this file of JSON lines")
    help = "compare the score with those of this history, or of one summary"
    parser.add_argument("--against", type=Path, metavar="FILE", help=help)
    help = "how many of the last summaries of a history --against reads"
    parser.add_argument("--last", type=int, default=14, metavar="N", help=help)
    cli.add_confidence(parser, help="level of the intervals in the summary")
    options = cli.parse(parser, words)
    if options.history and options.against and options.history.resolve() == options.against.resolve():
        options.against = options.history
    return options


@command
def main(words: Sequence[str] | None = None) -> int:
    """Score the file; returns the exit code."""
    options = parse_options(words)
    source = Source(options.data, **cli.form_of(options))
    name = Path(options.metric).stem
    saved = SavedJob(options, name, (".json",)) if options.one_set else SavedJob(options, name)
    scorer = RowScorer(options)
    if options.one_set and scorer.items == TEXTS:
        raise ValueError(f"--one-set: {name} scores each text, not sets.")
    # Before hours of scoring.
    history = history_of(options, scorer.metric.name)
    summary = saved.finished()
    if summary is None:
        if options.engine == "local":
            with input_checked():
                scorer.settings.check_found()
        if options.one_set and scorer.has_sums:
            reader = Reader(Keys(options.text_key), reads_sets=False, strip=options.strip)
            n_texts = _SUMMED * options.batch_size
            job = Job(saved, source, reader, partial(sum_up, scorer), partial(finish_sums, scorer), n_texts)
            summary = job.run(partial(summarize_sums, scorer=scorer))
        else:
            reader = Reader(options.keys, scorer.items != TEXTS, scorer.columns, strip=options.strip)
            if options.id_key is not None and options.system_key is None and not options.one_system:
                reader.guard = SystemGuard([options.text_key, options.id_key, *options.columns.values()])
            schema = partial(output_schema, scorer, source.schema)
            job = Job(saved, source, reader, scorer.score, partial(finish, scorer), options.batch_size, schema)
            summary = job.run(partial(summarize, scorer=scorer))
    summary, values = _with_intervals(summary, scorer)
    if options.against is not None:
        compared = compare_with_history(summary, scorer.metric.name, history, options)
        summary["against"] = {"file": str(options.against), **compared}
        values |= drift_values(compared, options)
    code = saved.finish(summary)
    if missed := missed_limits(options, values):
        code = EXIT_LIMIT
    if options.history is not None:
        append(options.history, summary, missed)
    return code


def _with_intervals(summary: dict[str, Any], scorer: RowScorer) -> tuple[dict[str, Any], dict[str, float | None]]:
    """Add the intervals to a summary, whose level decides no score; returns it, and its numbers by name for limits."""
    options = scorer.options
    summary.pop("against", None)
    values = {name: value for name, value in summary.items() if value is None or isinstance(value, (int, float))}
    check_numbers(scorer, values)
    if options.one_set:
        return summary, values
    found = intervals(summary, scorer, options.confidence)
    values["confidence"] = options.confidence
    for name in scorer.bounds:
        prefix = name.removesuffix("scores")
        n_units, mean, *_ = summary["estimates"][name] or (0, None)
        values |= ends(mean, found[f"{prefix}confidence_interval"], n_units, prefix)
    return summary | found, values
