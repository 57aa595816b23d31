"""Choose a diverse subset of good texts in each group, for example from generated training data.

    text-metrics choose data.jsonl --text-key answer --group-key prompt --keep 4
    text-metrics choose data.jsonl --text-key answers --keep 4 --out chosen.jsonl
    text-metrics choose data.parquet --text-key text --one-set --share 0.1 --column quality=reward \
        --min-quality 0.3

Reads and writes the files of `text-metrics score`. If a row holds a group of texts as a list, the list is reduced to
the chosen texts. If a row holds one text, a group consists of the adjacent rows with the same --group-key, of
--set-size consecutive rows, or with --one-set of all rows; the rows of the chosen texts are written unchanged, in
order.

Texts are chosen one at a time: always the one that most increases the mean quality times the Vendi score of order 2 of
the texts chosen so far in its group. No guarantee is known for this rule: docs/choosing.md has its distance from the
best subset. All texts of a group with fewer than --keep are chosen.

A summary goes to stdout and to <out>.summary.json: the numbers of groups, texts and chosen texts, the number of groups
that lack a row (n_incomplete), and the mean over groups of that score for the chosen texts (chosen_score) and for the
same number of texts drawn at random (random_score).

Finished batches of groups are saved in <out>.parts, two files each. After a kill, the same command continues from
there.
A row that cannot be read, or has no quality, is named on stderr, and set aside in <out>.bad.jsonl. Its group is chosen
from without it, and is counted in n_incomplete, as is a last group of --set-size that is too small; --drop-incomplete
leaves such groups out, and counts their other rows in n_dropped. Exit codes are those of `text-metrics score`; 3 also
if groups lack a row, without --drop-incomplete.
"""

from collections.abc import Sequence
from dataclasses import replace

from text_metrics.commands.choose.chooser import Chooser, add_up, read_groups, summary_of
from text_metrics.commands.choose.command import ChooseCommand, parse_command
from text_metrics.commands.jobs.job_files import Files
from text_metrics.commands.jobs.progress import NothingGoodError, end, show, watch
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.tables import write_rows


def run(command: ChooseCommand) -> int:
    """Choose texts of the file; returns the exit code."""
    reading = command.reading
    source = Source(reading.data, reading.split)
    source.check_columns(reading.text_key, reading.group_key, *reading.columns.values())
    chooser = Chooser(command)
    decisive = command.decisive()
    files = Files(reading.output("chosen"), None, decisive, reading)
    summary = files.finished(reading.restart)
    if summary is not None:
        return show(summary)
    store, state = files.open(source.schema, reading, source)
    batches = map(chooser.work, read_groups(command, state.position))
    try:
        for batch in watch(reading, source, batches, "choose", state):
            rows = [row for chosen in batch.scores for row in chosen]
            state = state.after(batch, add_up(state.merged, batch.result))
            if rows:
                state = replace(state, n_rows=len(rows), types=store.rows.save(batch.end, rows))
            store.append(state)
    except NothingGoodError:
        store.remove()
        raise
    assert state.merged is not None
    write_rows(store, files.out)
    return files.finish(store, state, {**summary_of(state), "command": decisive})


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    return end("text-metrics choose", lambda: run(parse_command(words, __doc__)))
