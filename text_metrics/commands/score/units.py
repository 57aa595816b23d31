"""Rows joined to units, each scored as one, and units to batches.

Nothing here imports torch, so that the process that reads for a cluster starts fast.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from text_metrics.commands.score.command import Command
from text_metrics.commands.score.rows import SHOWN, Row, Source
from text_metrics.commands.shared.files import to_plain
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import describe
from text_metrics.metrics._core.core_results import TEXTS


class Unit(NamedTuple):
    """What is scored as one: a set, or a row of texts.

    is_single : whether it is a row that holds a text, not a list of texts
    number : of the first row, from 1
    bad : bad rows that were read before the unit was complete
    end : how many rows of the file were read up to here
    """

    rows: list[dict[str, Any]]
    texts: list[str]
    reference: Any
    is_single: bool
    number: int
    bad: list[Row]
    end: int


class Reader:
    """Joins rows to units, by the keys of the command."""

    def __init__(self, command: Command, items: str) -> None:
        self.text_key, self.reference_key = command.text_key, command.reference_key
        self.group_key, self.set_size = command.group_key, command.set_size
        self.grouped = self.group_key is not None or self.set_size is not None
        self.items = items

    def units(self, rows: Iterator[Row], start: int) -> Iterator[Unit]:
        """Join rows to units, in order; each row that was read belongs to the next unit, as good or as bad."""
        good: list[Row] = []
        texts: list[str] = []
        bad: list[Row] = []
        end = start
        for row in rows:
            problem = row.error
            if row.values is not None:
                problem, own = self._texts(row.values)
            if problem:
                bad.append(self._set_aside(row, problem))
            if row.values is None or problem:
                end += 1
                if not good:
                    yield self._unit(good, texts, bad, end)
                    bad = []
                continue
            if good and not self._belongs(good, row):
                yield self._unit(good, texts, bad, end)
                good, texts, bad = [], [], []
            good.append(row)
            texts += own
            end += 1
            if not self.grouped or len(good) == self.set_size:
                yield self._unit(good, texts, bad, end)
                good, texts, bad = [], [], []
        if self.set_size is not None and good:
            problem = f"is left over: no {self.set_size} rows to the end of the file"
            bad += [self._set_aside(row, problem) for row in good]
            good, texts = [], []
        if good or bad:
            yield self._unit(good, texts, bad, end)

    @staticmethod
    def _set_aside(row: Row, problem: str) -> Row:
        raw = row.raw if row.values is None else json.dumps(row.values, default=to_plain)[:SHOWN]
        return row._replace(error=problem, raw=raw)

    def _belongs(self, good: list[Row], row: Row) -> bool:
        if self.group_key is None:
            return True
        ours, theirs = good[0].values, row.values
        assert ours is not None
        assert theirs is not None
        return bool(ours[self.group_key] == theirs[self.group_key])

    def _unit(self, good: list[Row], texts: list[str], bad: list[Row], end: int) -> Unit:
        rows = [row.values for row in good if row.values is not None]
        reference = rows[0].get(self.reference_key) if rows and self.reference_key else None
        if isinstance(reference, str):
            # In CSV, a list is JSON; a bare text is one answer.
            with suppress(ValueError):
                reference = json.loads(reference)
            reference = [reference] if isinstance(reference, str) else reference
        is_single = bool(rows) and not self.grouped and isinstance(rows[0][self.text_key], str)
        return Unit(rows, texts, reference, is_single, good[0].number if good else 0, bad, end)

    def _texts(self, values: dict[str, Any]) -> tuple[str, list[str]]:
        """Read the texts of a row; returns what is wrong with it, or an empty string, and the texts."""
        for key in (self.text_key, self.group_key, self.reference_key):
            if key is not None and values.get(key) is None:
                return f"has no {key!r}", []
        value = values[self.text_key]
        if isinstance(value, str):
            texts = [value]
            if not self.grouped and self.items != TEXTS:
                try:
                    texts = json.loads(value)
                except ValueError:
                    texts = []
                if not isinstance(texts, list):
                    texts = []
                if not texts:
                    return f"{self.text_key!r} is one text: a set is a list, or needs --group-key or --set-size", []
        elif isinstance(value, list):
            texts = value
        else:
            return f"{self.text_key!r} must be a text or a list of texts. Got {describe(value)}", []
        if not texts:
            return f"{self.text_key!r} is an empty list", []
        for text in texts:
            if not isinstance(text, str):
                return f"{self.text_key!r} must hold texts. Got {describe(text)}", []
        try:
            check_characters(texts, lambda i: f"text {i} of {self.text_key!r}")
        except ValueError as error:
            return str(error), []
        return "", texts


def batches(units: Iterator[Unit], n_texts: int) -> Iterator[list[Unit]]:
    """Batch units; a batch is complete once it holds `n_texts` texts."""
    batch: list[Unit] = []
    size = 0
    for unit in units:
        batch.append(unit)
        # A unit of bad rows counts too, because these are kept in memory.
        size += max(1, len(unit.texts))
        if size >= n_texts:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Job(NamedTuple):
    """What a process needs to take part in a job, as plain data that can be sent.

    items : what a row holds: SETS, TEXTS or QUESTIONS
    reference : with --one-set, people's answers
    """

    command: Command
    items: str
    reference: Any = None


def read_batches(job: Job, start: int) -> Iterator[tuple[list[Unit], int]]:
    """Read the file from row `start`: batches of units, each with how far the file was read."""
    source = Source(job.command.data, job.command.split)
    reader = Reader(job.command, job.items)
    for units in batches(reader.units(source.rows(start), start), job.command.batch_size):
        yield units, source.done
