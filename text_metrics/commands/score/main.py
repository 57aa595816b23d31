"""Score a file of generated texts with one of the metrics: of any size, in little memory, and resumable after a kill.

    text-metrics score data.jsonl --metric vendi_embed --text-key generations
    text-metrics score data.csv --metric self_bleu --text-key answer --group-key prompt --out scores.parquet
    text-metrics score data.parquet --metric probeval --text-key answers --reference-key people
    text-metrics score data.jsonl --metric vendi_embed --text-key generations --setting rarefy=4
    text-metrics score data.jsonl --metric vendi_embed --text-key generations --column quality=reward
    text-metrics score data.jsonl --metric vendi_embed --text-key names --column similarity=tanimoto
    text-metrics score data.jsonl --metric vendi_embed --text-key text --one-set --engine ray --address auto
    text-metrics score data.jsonl --metric self_bleu --text-key generations --engine ray --out scores/

Reads JSON lines, a JSON array (.json), CSV, Parquet, or a folder that `datasets` saved or that holds Parquet files.
Text files may be compressed, as .gz or .zst. A row holds a set of texts, as a list, or one text; then a set consists of
the adjacent rows with the same --group-key, or of --set-size consecutive rows. All keys are read first: if a key occurs
again after rows of another key, the command stops before it scores anything. Keys are compared as strings: 1 and "1"
are the same key. gruen scores each text; --group-key and --set-size then only define the units of the interval.

Writes the rows with their scores, in order, as Parquet, JSON lines or CSV, by the extension of --out; the columns of
rows that make a set become lists. Other results with a value for each set or text, such as contributions, become
columns as well. In JSON lines and CSV, binary data is base64. If --out ends in a slash, or is the folder of an earlier
run, the output is a folder of Parquet files; in the order of their names, they hold the same rows. The folder appears
when all files are complete. A folder that this command did not write is never replaced.

--column ARGUMENT=COLUMN reads an argument of the metric that belongs to sets or texts from a column: weights, quality,
classes, contexts, embeddings, similarity, labels and others. For an argument of texts, a row of a set has a list, and a
row of one text a value; for similarities, a matrix and a row of it. For an argument of sets, each row has a value, the
same in all rows of a set. In CSV, lists are JSON. A row whose value is missing or invalid is set aside. confidence_by
labels rows, or sets of rows, that are not independent, for the intervals in the summary.

A summary goes to stdout and to <out>.summary.json: the numbers of the metric over the whole file, its signature, and
    n_scores, n_texts, n_bad    the numbers of scores, of texts scored, and of rows set aside
    n_incomplete, n_dropped     the numbers of sets that lack a row, and of rows dropped with them (--drop-incomplete)
    confidence                  the level of --confidence
    confidence_interval         [low, high] of the mean of the scores; null for fewer than two units, or if all scores
                                are equal; utility_confidence_interval and others likewise
    n_units                     the number of rows, sets of rows, or labels of confidence_by that the interval treats
                                as independent
    command                     the options that determine the numbers

With --one-set, all texts of the file are one set, or for probeval the answers to one question; statistics of its parts
are merged, however many texts there are. The only output is the summary, in --out, which ends in .json. It has no
interval, because there is one score.

With --engine ray, the actors of a Ray cluster do the work, one model each, on GPUs if there are any. If all machines
see the file, each actor reads pieces of JSON Lines, Parquet, or a folder of `datasets` itself; otherwise, and with
--group-key, one process of this machine reads for all. If all machines see the folder of --out, each actor writes the
rows that it has scored, and the files of a folder; otherwise, this machine does. Ray is an extra: pip install
"text-metrics[ray]".

Finished batches are saved in <out>.parts, two files each. After a kill, the same command continues from there, with
either engine. A row that cannot be scored is reported on stderr and set aside in <out>.bad.jsonl, with all rows of its
set: no set is scored without one of its rows, and none contains a row of the next set. So are the rows that --set-size
leaves over at the end. With --drop-incomplete, such sets are left out as well, but their other rows do not count as
bad. A row without a readable key between two sets may belong to either, so both are incomplete. With --one-set, only
the row itself is set aside.

Exit codes: 0 all rows are scored, or dropped; 3 some were set aside; 4 stopped at a bad row, by --strict; 5 a number of
the summary is beyond a limit of --fail-under or --fail-over, or is null; 2 the command, its settings or the file are
invalid, or no cluster answers; 130 interrupted; 1 an internal error.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from text_metrics.commands.jobs.batches import Engine, read_items
from text_metrics.commands.jobs.job_files import Files
from text_metrics.commands.jobs.options import Command, UsageError
from text_metrics.commands.jobs.progress import EXIT_BAD_ROWS, EXIT_STRICT, NothingGoodError, end, show, watch
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.score.by_row import ByRow
from text_metrics.commands.score.command import parse_command
from text_metrics.commands.score.one_set import OneSet
from text_metrics.commands.score.ray_engine import OnRay
from text_metrics.commands.score.scoring import Scorer
from text_metrics.commands.shared.command import EXIT_INTERRUPTED, EXIT_USAGE
from text_metrics.commands.shared.outputs import Folder
from text_metrics.metrics._core.core_results import QUESTIONS

__all__ = ["EXIT_BAD_ROWS", "EXIT_INTERRUPTED", "EXIT_LIMIT", "EXIT_STRICT", "EXIT_USAGE", "main", "run"]

EXIT_LIMIT = 5


def run(command: Command) -> int:
    """Score the file; returns the exit code."""
    source = Source(command.data, command.split)
    # Loading a metric takes seconds.
    source.check_columns(command.text_key, command.group_key, command.reference_key, *command.columns.values())
    scorer = Scorer(command.metric, command.settings, command.columns)
    name = scorer.metric.name
    if command.reference_key is None and scorer.items == QUESTIONS:
        raise UsageError(f"{name} compares with people's answers: pass --reference-key, the column that has them.")
    if command.reference_key is not None and scorer.items != QUESTIONS:
        raise UsageError(f"--reference-key: {name} takes no references: leave it out.")
    out = command.output(name)
    files = Files(out, out if command.one_set else None, command.decisive(name, command.score_key or name), command)
    task = OneSet(command, scorer, source) if command.one_set else ByRow(command, scorer, source)
    summary = files.finished(command.restart)
    if summary is not None:
        return _exit_code(command, summary, show(summary))
    if command.engine == "local":
        scorer.check_found()
    store, state = files.open(task.schema, command, source)
    on_ray = command.engine == "ray"
    place: AbstractContextManager[Engine] = nullcontext(Engine())
    if on_ray:
        place = OnRay(command.address, command.workers, command.quiet)
    with store, place as engine:
        alone = _reads_alone(command, source, engine)
        if alone and on_ray:
            print(f"One process reads {command.data} for all workers: {alone}.", file=sys.stderr)
        shared = engine.reads(store.lock_file.resolve())
        rows = store.rows._replace(folder=store.folder.resolve()) if shared else None
        if rows is None and isinstance(out, Folder):
            print(f"One process writes {out}/: not all machines of the cluster see its folder.", file=sys.stderr)
        job = task.job()._replace(start=state.position, in_pieces=not alone, rows=rows)
        batches = engine.map(partial(read_items, job), partial(task.open_work, job))
        try:
            state = task.collect(watch(command, source, batches, name, state), store, state)
        except NothingGoodError:
            # The next command may have other settings.
            store.remove()
            raise
        summary = task.finish(job, store, state, engine)
    return _exit_code(command, summary, files.finish(store, state, summary))


def _exit_code(command: Command, summary: Mapping[str, Any], code: int) -> int:
    """Return the exit code of a job that ended with a code: 5 if a number of its summary is beyond a limit, or null."""
    numbers = {name: value for name, value in summary.items() if value is None or isinstance(value, (int, float))}
    for option, limits in (("under", command.fail_under), ("over", command.fail_over)):
        for name, limit in limits.items():
            if name not in numbers:
                raise UsageError(
                    f"--fail-{option} {name}: the summary has no such number. It has {', '.join(numbers)}."
                )
            value = numbers[name]
            if value is None or (value < limit if option == "under" else value > limit):
                print(f"{name} is {'null' if value is None else value}: --fail-{option} {limit:g}.", file=sys.stderr)
                code = EXIT_LIMIT
    return code


def _reads_alone(command: Command, source: Source, engine: Engine) -> str:
    """Say why one process must read the file; empty if each can read pieces of it."""
    if command.group_key is not None:
        return "the rows of a key of --group-key are next to each other"
    if not source.is_divisible:
        return "only JSON Lines that are not compressed, Parquet and folders of `datasets` can be read in pieces"
    return "" if engine.reads(source.path.resolve()) else "not all machines of the cluster see this file"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return end("text-metrics score", lambda: run(parse_command(words, __doc__)))
