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
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from text_metrics import options as cli
from text_metrics.console import EXIT_LIMIT, Parser, command, input_checked
from text_metrics.core_api import TEXTS
from text_metrics.files.rows import Source
from text_metrics.files.sets import Keys, Reader
from text_metrics.files.systems import SystemGuard
from text_metrics.jobs.job import Job
from text_metrics.jobs.saved import SavedJob
from text_metrics.jobs.scoring import RowScorer, check_limits, finish, finish_sums, output_schema, sum_up
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
    for option, direction in (("--fail-under", "below"), ("--fail-over", "above")):
        help = f"end with exit code 5 if this number of the summary is {direction} the value"
        parser.add_argument(option, action="append", default=[], type=_limit, metavar="NAME=VALUE", help=help)
    cli.add_confidence(parser, help="level of the intervals in the summary")
    return cli.parse(parser, words)


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, float(value)


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
    if not options.one_set:
        # The level decides no score.
        summary |= intervals(summary, scorer, options.confidence)
    code = saved.finish(summary)
    check_limits(options, [name for name, value in summary.items() if value is None or isinstance(value, (int, float))])
    for option, sign in (("under", 1), ("over", -1)):
        for name, limit in getattr(options, f"fail_{option}"):
            value = summary[name]
            if value is None or not sign * value >= sign * limit:
                print(f"{name} is {json.dumps(value)}: --fail-{option} {limit:g}.", file=sys.stderr)
                code = EXIT_LIMIT
    return code
