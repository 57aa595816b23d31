"""The files of a job: opened, resumed after a kill, and finished."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from text_metrics.commands.jobs.keys import check_adjacent
from text_metrics.commands.jobs.options import Command, UsageError, as_usage
from text_metrics.commands.jobs.progress import show
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.jobs.store import State, Store
from text_metrics.commands.jobs.tables import check_folder, write_bad
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.outputs import Folder, check_outputs
from text_metrics.commands.shared.settings import cache_of, paths_of


class Files:
    """The files of a job: its output, its summary, and the folder that keeps finished batches until the end.

    Parameters
    ----------
    out : the output, a file or a `Folder`
    summary : the summary; beside the output if None
    decisive : what decides the numbers, as JSON: a job continues only under an equal command
    command : what is read

    Raises a UsageError if one of them is read, or the output is a folder that no job made.
    """

    def __init__(self, out: Path, summary: Path | None, decisive: Mapping[str, Any], command: Command) -> None:
        self.out, self._decisive = out, decisive
        self._summary = summary or out.with_name(f"{out.name}.summary.json")
        self._bad = out.with_name(f"{out.name}.bad.jsonl")
        self._parts = out.with_name(f"{out.name}.parts")
        reads: list[str | Path] = [command.data, *paths_of({**command.settings, "metric": command.metric})]
        folders: list[Path] = [self._parts, Store.done(self._parts)]
        if isinstance(out, Folder):
            folders.append(out)
        writes = [*dict.fromkeys((out, self._summary)), self._bad, cache_of(command.settings)]
        with as_usage():
            check_outputs(reads, writes, folders)
        check_folder(out)

    def finished(self, restart: bool) -> dict[str, Any] | None:
        """Read the summary of a job that is done; None if there is work to do. To restart, discard what was done."""
        Store.sweep(self._parts)
        if restart:
            # Opened first, because another process may hold it.
            Store(self._parts, None).remove()
            self._summary.unlink(missing_ok=True)
        is_empty = isinstance(self.out, Folder) and self.out.exists() and not any(self.out.iterdir())
        if restart or is_empty or not self.out.exists() or self._parts.exists():
            return None
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            summary = json.loads(self._summary.read_text(encoding="utf-8"))
            if summary["command"] == self._decisive:
                return summary
        raise UsageError(f"{self.out} already exists, written by another command: pass --restart, or another --out.")

    def open(self, schema: pa.Schema | None, command: Command, source: Source) -> tuple[Store, State]:
        """Open what is kept of the job, and read how far it is; of a new job, check the order of the keys first.

        Raises a UsageError if another command or process works on it, or the rows of a key are not next to each other.
        """
        store = Store(self._parts, schema)
        state = store.last_state() or State(self._decisive)
        if state.command != self._decisive:
            store.__exit__()
            raise UsageError(f"{self._parts} belongs to another command or file: pass --restart, or another --out.")
        if command.group_key is not None and not store.parts:
            try:
                check_adjacent(source, command.group_key, command.quiet)
            except UsageError:
                store.remove()
                raise
        return store, state

    def finish(self, store: Store, state: State, summary: Mapping[str, Any]) -> int:
        """Write what was set aside and the summary, and remove what was kept; returns the exit code."""
        write_bad(store, state, self._bad)
        write_text(self._summary, json.dumps(summary, indent=2) + "\n")
        store.remove()
        return show(summary)
