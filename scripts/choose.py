"""Choose a diverse subset of good texts, group by group: for data that a model wrote, before it is trained on.

    python scripts/choose.py data.jsonl --text-key answer --group-key prompt --keep 4
    python scripts/choose.py data.jsonl --text-key answers --keep 4 --out chosen.jsonl
    python scripts/choose.py data.parquet --text-key text --one-set --share 0.1 --quality-key reward --min-quality 0.3

Reads and writes the files of score.py. A row holds a group of texts, as a list, which is reduced to the chosen ones; or
a row holds one text, and a group is made by consecutive rows with the same --group-key, by --set-size consecutive rows,
or with --one-set by all rows. The rows of the chosen texts are then written unchanged, in order.

Texts are chosen one at a time, each time the one that most raises the mean quality times the Vendi score of order
2 of what is chosen in its group. No guarantee is known for this rule: docs/choosing.md has its distance from the best
subset. A group with fewer texts than --keep is kept whole.

A summary goes to stdout and to <out>.summary.json: how many groups, texts and chosen texts there are, and the mean over
groups of that score for the chosen texts (chosen_score) and for as many drawn at random (random_score).

Finished batches of groups are kept in <out>.parts, one file each. After a kill, the same command continues from there.
A row that cannot be read is named on stderr, and set aside in <out>.bad.jsonl. Exit codes are those of score.py.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# So that it runs from any directory.
sys.path.insert(0, str(ROOT))

from scripts._choose.command import ChooseCommand, parse_command  # noqa: E402
from scripts._choose.work import Chooser, add_up, read_groups, summary_of  # noqa: E402
from scripts._score.command import UsageError  # noqa: E402
from scripts._score.output import write_bad, write_rows  # noqa: E402
from scripts._score.progress import BadRowError, NothingGoodError, watch  # noqa: E402
from scripts._score.rows import Source  # noqa: E402
from scripts._score.store import State, Store, written_whole  # noqa: E402

EXIT_USAGE, EXIT_BAD_ROWS, EXIT_STRICT, EXIT_INTERRUPTED = 2, 3, 4, 130


def run(command: ChooseCommand) -> int:
    """Choose texts of the file; returns the exit code."""
    reading = command.reading
    source = Source(reading.data, reading.split)
    command.check_columns(source)
    chooser = Chooser(command)
    out = reading.output("chosen")
    parts, summary_file = (out.with_name(f"{out.name}.{ending}") for ending in ("parts", "summary.json"))
    decisive = command.decisive()

    Store.sweep(parts)
    if reading.restart:
        # Opened first, for another process may hold it.
        Store(parts, None).remove()
        summary_file.unlink(missing_ok=True)
    elif out.exists() and not parts.exists():
        summary = _read_summary(summary_file)
        if summary is None or summary["command"] != decisive:
            raise UsageError(f"{out} is there already, from another command: pass --restart, or another --out.")
        return _end(summary)

    store = Store(parts, source.schema)
    state = store.last_state() or State(decisive)
    if state.command != decisive:
        raise UsageError(f"{parts} was begun with another command or file: pass --restart, or another --out.")
    found = map(chooser.work, read_groups(command, state.position))
    try:
        for batch in watch(reading, source, found, "choose", state):
            rows = [row for chosen in batch.scores for row in chosen]
            state = state.after(batch, add_up(state.merged, batch.result))
            store.append(rows, state)
    except NothingGoodError:
        store.remove()
        raise
    assert state.merged is not None
    write_rows(store, out)
    write_bad(store, state, out.with_name(f"{out.name}.bad.jsonl"))
    summary = {**summary_of(state.merged), "n_bad": state.n_bad, "command": decisive}
    with written_whole(summary_file) as temporary:
        temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    store.remove()
    return _end(summary)


def _read_summary(path: Path) -> dict[str, Any] | None:
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return summary if isinstance(summary, dict) and "command" in summary else None


def _end(summary: dict[str, Any]) -> int:
    print(json.dumps(summary, indent=2))
    return EXIT_BAD_ROWS if summary["n_bad"] else 0


def main(words: Sequence[str] | None = None) -> int:
    """Run the command."""
    try:
        return run(parse_command(words, __doc__))
    except BadRowError:
        print("Stopped there. What was done before is kept.", file=sys.stderr)
        return EXIT_STRICT
    except (UsageError, OSError) as error:
        print(f"choose.py: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("Interrupted. The same command continues from here.", file=sys.stderr)
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    raise SystemExit(main())
