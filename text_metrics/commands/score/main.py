"""Score a file of generated texts with one of the metrics: of any size, in little memory, and resumable after a kill.

A row of the file holds a set of texts, as a list, or one text; then --id-key, --set-size or
--one-set say which rows make a set. The rows are written with their scores, in order, and a summary
goes to stdout and to <out>.summary.json. A row that cannot be scored is skipped with all rows of
its set, named on stderr, and written to <out>.bad.jsonl. After a kill, the same command continues.
docs/files.md describes the files, and --engine ray.

Exit codes: 0 all rows are scored; 3 some were skipped; 5 a number of the summary is beyond a
limit, or null; 2 the command, its settings or the file are invalid; 130 interrupted.

    text-metrics score data.jsonl --metric vendi_embed --text-key generations
    text-metrics score data.csv --metric self_bleu --text-key answer --id-key prompt --out scores.parquet
    text-metrics score data.parquet --metric probeval --text-key answers --reference-key people
    text-metrics score data.jsonl --metric vendi_embed --text-key generations --setting q=2 --column quality=reward
    text-metrics score data.jsonl --metric vendi_embed --text-key text --one-set --engine ray --address auto
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from text_metrics.commands.jobs.job import Job, run_job, show
from text_metrics.commands.jobs.options import Command, add_arguments, parse
from text_metrics.commands.jobs.saved import SavedJob
from text_metrics.commands.score.scoring import RowScorer, score_units, sum_units
from text_metrics.commands.score.summary import intervals, summarize, summarize_sums
from text_metrics.commands.shared.columns import add_columns
from text_metrics.commands.shared.command import EXIT_LIMIT, Parser, command
from text_metrics.commands.shared.rows import Source, form_of
from text_metrics.commands.shared.sets import Keys, Reader
from text_metrics.commands.shared.settings import add_confidence, add_settings, settings_checked
from text_metrics.metrics._core.core_numbers import parse_level
from text_metrics.metrics._core.core_results import TEXTS

# One d x d sum is saved per 16 batches, because it is large.
_SUMMED = 16
# Units read to find one that can be scored.
_SAMPLED = 1000


def parse_command(words: Sequence[str] | None = None) -> Command:
    """Read the command line, as `parse` does."""
    parser = Parser(__doc__)
    add_arguments(parser, "set", "<metric>")
    parser.add_argument("--metric", required=True, help="name of a metric, or a path that evaluate.load takes")
    parser.add_argument("--reference-key", metavar="KEY", help="people's answers, for probeval; one for each set")
    add_columns(parser)
    add_settings(parser)
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="this process, or a Ray cluster")
    parser.add_argument(
        "--address", help="host:port or auto: a Ray cluster with this machine in it; else one is started"
    )
    parser.add_argument("--workers", type=int, help="actors on Ray; by default one a GPU, or else a core")
    for option, direction in (("--fail-under", "below"), ("--fail-over", "above")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            type=_limit,
            metavar="NAME=VALUE",
            help=f"end with exit code 5 if this number of the summary is {direction} the value",
        )
    add_confidence(parser, help="level of the intervals in the summary")
    command = parse(parser, words)
    parse_level(command.confidence, "--confidence")
    return command


def _limit(text: str) -> tuple[str, float]:
    """Read NAME=VALUE, as a type of argparse."""
    name, _, value = text.partition("=")
    return name, float(value)


def run(command: Command) -> int:
    """Score the file; returns the exit code."""
    source = Source(command.data, **form_of(command))
    name = Path(command.metric).stem
    out = command.output(name, (".json",)) if command.one_set else command.output(name)
    saved = SavedJob(out, command)
    scorer = RowScorer(command)
    if command.one_set and scorer.items == TEXTS:
        raise ValueError(f"--one-set: {name} scores each text, not sets.")
    summary = saved.finished()
    if summary is None:
        reader = Reader(command.keys, scorer.items != TEXTS, scorer.columns)
        if command.fail_under or command.fail_over:
            _check_limits(scorer, reader, source)
        if command.engine == "local":
            with settings_checked():
                scorer.settings.check_found()
        step, summarized, n_texts = partial(score_units, scorer), summarize, command.batch_size
        if scorer.is_summed:
            reader, n_texts = Reader(Keys(command.text_key), reads_sets=False), _SUMMED * n_texts
            step, summarized = partial(sum_units, scorer), summarize_sums
        job = Job(command, source, reader, step, n_texts, _schema(source, command.keys))
        summary = run_job(job, saved, partial(summarized, scorer=scorer))
    if not command.one_set:
        # The level decides no score.
        summary |= intervals(summary, scorer, command.confidence)
    saved.finish(summary)
    return _exit_code(command, summary, show(summary, saved))


def _schema(source: Source, keys: Keys) -> pa.Schema | None:
    """Return the types of the columns of a table as they are written: the values of rows of a set are lists."""
    if source.schema is None or not keys.is_grouped:
        return source.schema
    fields = [each if each.name in keys.names else each.with_type(pa.list_(each.type)) for each in source.schema]
    return pa.schema(fields)


def _check_limits(scorer: RowScorer, reader: Reader, source: Source) -> None:
    """Score one unit, and raise a ValueError for a limit of a number that the summary will not have."""
    counts = ["n_scores", "n_texts", "n_bad", "n_incomplete"]
    if reader.keys.is_one_set:
        # Two rows stand for the set of all rows.
        reader = replace(reader, keys=reader.keys._replace(is_one_set=False, size=2))
    else:
        counts += ["n_units", "confidence"]
    for unit in islice(reader.units(source), _SAMPLED):
        for facts, _ in score_units(scorer, [unit]) if unit.rows else ():
            _check_names(scorer.command, [*facts["numbers"], *counts])
            return


def _check_names(command: Command, names: Collection[str]) -> None:
    for name, _ in [*command.fail_under, *command.fail_over]:
        if name not in names:
            raise ValueError(f"--fail-under or --fail-over {name}: the summary has {', '.join(names)}.")


def _exit_code(command: Command, summary: Mapping[str, Any], code: int) -> int:
    """Return the exit code of a job that ended with a code: 5 if a number of its summary is beyond a limit, or null.

    Raises a ValueError for a limit of a number that the summary does not have.
    """
    _check_names(command, [name for name, value in summary.items() if value is None or isinstance(value, (int, float))])
    for option, sign in (("under", 1), ("over", -1)):
        for name, limit in getattr(command, f"fail_{option}"):
            value = summary[name]
            if value is None or sign * value < sign * limit:
                print(f"{name} is {json.dumps(value)}: --fail-{option} {limit:g}.", file=sys.stderr)
                code = EXIT_LIMIT
    return code


@command
def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return run(parse_command(words))
