"""From the kept statistics of the parts of one set to its score, piece by piece and on any engine.

The maths is the metric's: its `parts` says what the arrays are and how they merge. What is here decides which pieces
are in memory at a time.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from text_metrics.commands.jobs.batches import Engine
from text_metrics.commands.shared.files import named_writing, write_text
from text_metrics.metrics._core.core_models import matrix_device
from text_metrics.metrics._core.core_statistics import Arrays
from text_metrics.metrics.self_bleu.self_bleu_parts import CountSums, merge_counts, merge_lengths, sum_counts

# Rows of n-gram tables, 24 bytes each, that are held before they are written, and merged at a time at the end.
_TABLE_ROWS = 2**22
# Texts in a block of the similarity matrix that one process works on.
_BLOCK_TEXTS = 2**16


class StoredArrays(Mapping[str, np.ndarray]):
    """Arrays in files that share a stem; each is memory-mapped when it is asked for."""

    def __init__(self, stem: Path, names: Sequence[str]) -> None:
        self._stem, self._names = stem, names

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise KeyError(name)
        return np.load(self._stem.with_name(f"{self._stem.name}.{name}.npy"), mmap_mode="r")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Place(NamedTuple):
    """Where a second pass runs: its engine, a folder for its own progress, and whether to show a bar."""

    engine: Engine
    folder: Path
    quiet: bool


class MergedPass:
    """A set whose merged arrays are small: they are scored at once."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def is_full(self, pending: Sequence[Arrays]) -> bool:
        """Say whether the parts in memory are to be merged and written now."""
        return True

    def score(self, parts: Sequence[Arrays], n: int, place: Place) -> dict[str, Any]:
        """Score the set of n texts from all that was kept of it."""
        return self.parts.score(parts[-1], n)


class TablePass(MergedPass):
    """Tables sorted by key: merged range by range of keys, each of a size that memory holds."""

    def is_full(self, pending: Sequence[Arrays]) -> bool:
        """Wait until the tables have enough rows."""
        return sum(len(part[name]) for part in pending for name in self.parts.tables) >= _TABLE_ROWS

    def score(self, parts: Sequence[Arrays], n: int, place: Place) -> dict[str, Any]:
        """Add up the sums over all ranges, for each table."""
        sums_by_range: dict[str, list[CountSums]] = {name: [] for name in self.parts.tables}
        # All tables in one pass, because a cluster starts workers for each pass.
        for name, sums in place.engine.map(partial(_ranges_of_keys, parts, self.parts.tables), _open_sums):
            sums_by_range[name].append(sums)
        totals = [CountSums(*map(sum, zip(*sums, strict=True))) for sums in sums_by_range.values()]
        return self.parts.score(totals, merge_lengths([part["lengths"] for part in parts]))


def _ranges_of_keys(parts: Sequence[Arrays], names: Sequence[str]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Cut the tables of all parts at the same keys; these are hashes, so that equal ranges hold equally many rows."""
    for name in names:
        n_ranges = max(1, -(-sum(len(part[name]) for part in parts) // _TABLE_ROWS))
        edges = [(i << 64) // n_ranges for i in range(1, n_ranges)]
        rows = [[0, *np.searchsorted(part[name]["key"], np.array(edges, np.uint64)), len(part[name])] for part in parts]
        for i in range(n_ranges):
            yield name, [np.array(part[name][cuts[i] : cuts[i + 1]]) for part, cuts in zip(parts, rows, strict=True)]


def _open_sums() -> Callable[[tuple[str, list[np.ndarray]]], list[tuple[str, CountSums]]]:
    return lambda ranges: [(ranges[0], sum_counts(merge_counts(ranges[1])))]


class BlockPass(MergedPass):
    """Embeddings whose nearest neighbours are found over all pairs of blocks.

    The largest similarity so far of each text is kept in a file. A pair of blocks that is compared again, after a kill,
    changes nothing there.
    """

    def score(self, parts: Sequence[Arrays], n: int, place: Place) -> dict[str, Any]:
        """Compare all pairs of blocks that were not compared before."""
        total = np.sum([part["sum"] for part in parts], axis=0)
        blocks = _Blocks(parts)
        pairs = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
        file, progress = place.folder / "nearest.npy", place.folder / "nearest.json"
        n_done = json.loads(progress.read_text()) if file.exists() and progress.exists() else 0
        if n_done:
            best = np.lib.format.open_memmap(file, "r+")
        else:
            best = np.lib.format.open_memmap(file, "w+", np.float64, (n,))
            # On a full disk, a write to a part of a mapped file that has no space yet would kill the process.
            with named_writing(file), file.open("r+b") as opened:
                opened.seek(best.offset)
                for start in range(0, n, _BLOCK_TEXTS):
                    opened.write(np.full(min(_BLOCK_TEXTS, n - start), -np.inf).tobytes())
        work = partial(_open_pairs, place.engine.share(blocks), total / n, self.parts.settings.device)
        compared = place.engine.map(partial(iter, pairs[n_done:]), work)
        bar = tqdm(
            compared, total=len(pairs), initial=n_done, disable=place.quiet, desc="nearest neighbours", unit="pair"
        )
        for n_now, (i, j, left, right) in enumerate(bar, n_done + 1):
            for k, similarity in ((i, left), (j, right)):
                view = best[blocks.starts[k] : blocks.starts[k + 1]]
                np.maximum(view, similarity, out=view)
            best.flush()
            write_text(progress, json.dumps(n_now))
        nearest = (best[start : start + _BLOCK_TEXTS] for start in range(0, n, _BLOCK_TEXTS))
        return self.parts.score(nearest, total, n)


class _Blocks(Sequence[np.ndarray]):
    """The concatenated embeddings of consecutive parts, read when they are asked for."""

    def __init__(self, parts: Sequence[Arrays]) -> None:
        self._groups: list[list[Arrays]] = []
        self.starts = [0]
        for part in parts:
            if not self._groups or self.starts[-1] - self.starts[-2] >= _BLOCK_TEXTS:
                self._groups.append([])
                self.starts.append(self.starts[-1])
            self._groups[-1].append(part)
            self.starts[-1] += len(part["embeddings"])

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: Any) -> Any:
        return np.concatenate([part["embeddings"] for part in self._groups[index]])


def _open_pairs(
    blocks: Sequence[np.ndarray], center: np.ndarray, device: str | None
) -> Callable[[tuple[int, int]], list[tuple[int, int, np.ndarray, np.ndarray]]]:
    from text_metrics.metrics._core.core_distances import nearest_between

    where = matrix_device(device)

    def work(pair: tuple[int, int]) -> list[tuple[int, int, np.ndarray, np.ndarray]]:
        i, j = pair
        return [(i, j, *nearest_between(blocks[i], None if i == j else blocks[j], center, device=where))]

    return work


PASSES: dict[str, type[MergedPass]] = {
    "vendi_embed": MergedPass,
    "self_bleu": TablePass,
    "chamfer_diversity": BlockPass,
    "probeval": MergedPass,
}
