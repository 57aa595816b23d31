"""Pieces of a file: consecutive rows that a process can read without the rows before."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from text_metrics.commands.shared import files
from text_metrics.commands.shared.remote import Remote

_BYTES = 2**20


class Piece(NamedTuple):
    """Consecutive rows of a file.

    first : index of the first row
    begin, end : where it is in the file, in bytes or rows; `end` is None for the whole file
    """

    first: int
    begin: int
    end: int | None


WHOLE = Piece(0, 0, None)


def cut_lines(path: Path, n_rows: int) -> Iterator[tuple[Piece, int]]:
    """Yield pieces of `n_rows` JSON lines that are not blank, each with the index of the row after it."""
    n_lines = n_good = first = begin = at = 0
    with files.open_file(path) as file:
        while data := file.read(_BYTES) + file.readline(files.LONGEST_LINE):
            array = np.frombuffer(data, np.uint8)
            ends = np.flatnonzero(array == ord("\n")) + 1
            if not len(ends) or ends[-1] < len(data):
                ends = np.append(ends, len(data))
            starts = np.concatenate([[0], ends[:-1]])
            is_good = np.ones(len(ends), bool)
            for i in np.flatnonzero(array[starts] != ord("{")).tolist():
                is_good[i] = not files.parse_line(n_lines + i + 1, data[starts[i] : ends[i]]).is_blank
            counts = n_good + np.cumsum(is_good)
            for i in np.flatnonzero((counts % n_rows == 0) & is_good).tolist():
                yield Piece(first, begin, at + int(ends[i])), n_lines + i + 1
                first, begin = n_lines + i + 1, at + int(ends[i])
            n_lines, n_good, at = n_lines + len(ends), int(counts[-1]), at + len(data)
    if at > begin:
        yield Piece(first, begin, at), n_lines


def read_lines(path: Path, piece: Piece) -> Iterator[bytes]:
    """Yield the lines of a piece with their ends; raises as `split_lines` does."""
    if piece.end is None:
        with files.open_file(path) as file:
            yield from files.split_lines(file, path)
        return
    if isinstance(path, Remote):
        data = path.read_range(piece.begin, piece.end)
    else:
        with files.open_file(path) as file:
            file.seek(piece.begin)
            data = file.read(piece.end - piece.begin)
    yield from files.check_lengths(io.BytesIO(data), path, piece.first)


def cut_table(ends: Sequence[int], least: int, multiple: int) -> Iterator[tuple[Piece, int]]:
    """Yield pieces of a table, each with the index of the row after it.

    Each ends near the first of the places `ends`, ascending, after which it has `least` rows; the last place is the
    number of rows. The number of rows of a piece, but for the last one, is a multiple of `multiple`.
    """
    first = 0
    for end in ends:
        end = min(-(-end // multiple) * multiple, ends[-1])
        if end - first >= least or first < end == ends[-1]:
            yield Piece(first, first, end), end
            first = end
