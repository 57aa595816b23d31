"""Scores of one set that is a whole file, from statistics of its parts that merge: never the file in memory.

For each metric a Statistic says what is kept of a batch of texts, how two such parts become one, and how the score
follows from all of them. The same code serves one process and a cluster.
"""

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from metrics._core.core_encoder import encode, matrix_device
from metrics._core.core_inputs import TextSets, parse_embeddings
from metrics._core.core_ngrams import (
    BleuStatistics,
    CountSums,
    bleu,
    closest_length_sum,
    entropy_from_sums,
    merge_counts,
    ngram_counts,
    sum_counts,
)
from metrics._core.core_signature import format_order
from metrics._core.core_spectra import (
    gram_sums,
    mean_pairwise_from_sum,
    nearest_between,
    parse_orders,
    unit_sum,
    vendi_from_sums,
)
from scripts._files import write_text
from scripts._score.reading import Job, Unit, UsageError
from scripts._score.work import Batch, Engine, Scorer, score_batch

Arrays = Mapping[str, np.ndarray]

# N-grams held before they are written as one table, and merged at a time in the end: 24 bytes each.
_TABLE_ROWS = 2**22
# Texts of a block of the matrix of similarities that one process works on.
_BLOCK_TEXTS = 2**16


class StoredArrays(Mapping[str, np.ndarray]):
    """Arrays in files beside each other, which are read where they are looked at."""

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


class Statistic:
    """What one metric needs of the texts of a set: arrays for each batch, that merge.

    Attributes
    ----------
    replaces : whether what is merged so far is small, and kept in place of its parts
    least : texts that a set must have
    """

    replaces = True
    least = 1

    def __init__(self, scorer: Scorer, reference: Any = None) -> None:
        self.scorer, self.settings, self.reference = scorer, scorer.settings, reference
        self._signature: str | None = None

    @staticmethod
    def refusal(settings: Mapping[str, Any]) -> str | None:
        """Name a setting with which parts do not merge, and say why."""
        for name in ("embeddings", "weights", "quality", "min_quality", "singletons"):
            if name in settings:
                return f"{name} is not for one set in a file"
        return None

    def check(self) -> None:
        """Refuse settings with which parts do not merge."""
        self.scorer.check_names()
        reason = self.refusal(self.settings)
        if reason:
            raise UsageError(f"--one-set: {reason}.")

    def score(self, units: Sequence[Unit]) -> tuple[list[Any], dict[str, Any]]:
        """Make a part of texts; they have no scores of their own."""
        texts = [text for unit in units for text in unit.texts]
        result = {"arrays": self.part(texts), "n_texts": len(texts), "signature": self.signature()}
        return [None] * len(units), result

    def signature(self) -> str:
        """Give the signature of a small set with the same settings, once in a process; it checks them, too."""
        if self._signature is None:
            self._signature = self.scorer.metric.compute(predictions=[["a", "b"]], **self.settings)["signature"]
        return self._signature

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Make arrays of a batch of texts."""
        raise NotImplementedError

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Make the arrays of several batches."""
        raise NotImplementedError

    def is_full(self, parts: Sequence[Arrays]) -> bool:
        """Say whether parts are to be merged and written now."""
        return True

    def result(self, parts: Sequence[Arrays], n: int, engine: Engine, folder: Path, quiet: bool) -> dict[str, Any]:
        """Score the set of n texts: the numbers that the metric gives for it."""
        raise NotImplementedError

    def embed(self, texts: list[str]) -> np.ndarray:
        """Embed texts as the metric does: (n, d), rows finite and non-zero."""
        known = inspect.signature(encode).parameters
        encoded = encode(texts, **{name: value for name, value in self.settings.items() if name in known})
        one_set = TextSets(texts, np.array([len(texts)]), nested=False)
        return parse_embeddings(encoded.embeddings, one_set, f"the embeddings by model {encoded.identity}:")

    @property
    def device(self) -> str:
        """Where matrices are worked on, in the process that asks."""
        return matrix_device(self.settings.get("device"))


class GramSums(Statistic):
    """Vendi score: the sum of the outer products of unit vectors, d by d."""

    @staticmethod
    def refusal(settings: Mapping[str, Any]) -> str | None:
        """Refuse other kernels: only that of the embeddings is a sum over texts."""
        if settings.get("kernel", "embedding") != "embedding":
            return f"kernel={settings['kernel']!r} compares all texts with all, and does not merge; 'embedding' does"
        return Statistic.refusal(settings)

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Sum over a batch."""
        return {"sums": gram_sums(self.embed(texts), device=self.device)}

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Add up."""
        return {"sums": np.sum([part["sums"] for part in parts], axis=0)}

    def result(self, parts: Sequence[Arrays], n: int, engine: Engine, folder: Path, quiet: bool) -> dict[str, Any]:
        """Take the eigenvalues of the sum."""
        q = self.settings.get("q", 1.0)
        orders = parse_orders(q)
        scores = vendi_from_sums(parts[-1]["sums"], n, orders).tolist()
        by_order = dict(zip(map(format_order, orders), scores, strict=True))
        return {"vendi_embed": scores[0], **({"by_order": by_order} if isinstance(q, list) else {})}


class NgramTables(Statistic):
    """Self-BLEU, Distinct-n and Entropy-n: how often each n-gram is there, in all texts and in one."""

    replaces = False
    least = 2

    @staticmethod
    def refusal(settings: Mapping[str, Any]) -> str | None:
        """Refuse a mean over texts: it needs each text's own matches."""
        if settings.get("aggregate", "set") == "sentence":
            return (
                "aggregate='sentence' needs the matches of each text, which merged tables do not have; 'set' does not"
            )
        return Statistic.refusal(settings)

    @property
    def max_order(self) -> int:
        """The longest n-grams."""
        return self.settings.get("max_order", 4)

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Count a batch."""
        # Settings are checked before they are used.
        self.signature()
        from metrics.self_bleu.self_bleu_tokenizers import WHITESPACE, tokenize

        words, _ = tokenize(texts, self.settings.get("tokenizer", WHITESPACE), lambda i: f"text {i}")
        tables = ngram_counts(words, self.max_order)
        lengths = np.unique(list(map(len, words)), return_counts=True)
        return {"lengths": np.stack(lengths), **{f"counts_{i}": table for i, table in enumerate(tables, 1)}}

    def is_full(self, parts: Sequence[Arrays]) -> bool:
        """Write tables of some size."""
        return sum(len(array) for part in parts for name, array in part.items() if name != "lengths") >= _TABLE_ROWS

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Merge tables."""
        tables = {
            f"counts_{i}": merge_counts([part[f"counts_{i}"] for part in parts]) for i in range(1, self.max_order + 1)
        }
        return {"lengths": _merge_lengths([part["lengths"] for part in parts]), **tables}

    def result(self, parts: Sequence[Arrays], n: int, engine: Engine, folder: Path, quiet: bool) -> dict[str, Any]:
        """Merge range by range of keys, each of a size that memory holds, and add up what the ranges give."""
        sums = []
        for i in range(1, self.max_order + 1):
            found = list(engine.map(partial(_ranges_of_keys, parts, f"counts_{i}"), _open_sums))
            sums.append(CountSums(*map(sum, zip(*found, strict=True))))
        lengths = _merge_lengths([part["lengths"] for part in parts])
        statistics = BleuStatistics(
            np.array([[own.matches] for own in sums], dtype=np.float64),
            np.array([[own.total] for own in sums]),
            np.array([int(lengths[0] @ lengths[1])]),
            np.array([closest_length_sum(*lengths)]),
        )
        scores = bleu(statistics, self.settings.get("smoothing") or "nlg-eval")[:, 0].tolist()
        return {
            "self_bleu": scores[-1],
            **{f"self_bleu_{i}": score for i, score in enumerate(scores, 1)},
            **{f"distinct_{i}": own.distinct / max(own.total, 1) for i, own in enumerate(sums, 1)},
            **{f"entropy_{i}": entropy_from_sums(own) for i, own in enumerate(sums, 1)},
        }


def _merge_lengths(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Add up how many texts have each length: (2, k), the lengths and the numbers."""
    both = np.concatenate(parts, axis=1)
    lengths, places = np.unique(both[0], return_inverse=True)
    times = np.zeros(len(lengths), dtype=np.int64)
    np.add.at(times, places, both[1])
    return np.stack([lengths, times])


def _ranges_of_keys(parts: Sequence[Arrays], name: str) -> Iterator[list[np.ndarray]]:
    """Cut the tables of all parts alike, by ranges of keys: hashes, so that the ranges are of one size."""
    n_ranges = max(1, -(-sum(len(part[name]) for part in parts) // _TABLE_ROWS))
    edges = [(i << 64) // n_ranges for i in range(1, n_ranges)]
    places = [[0, *np.searchsorted(part[name]["key"], np.array(edges, np.uint64)), len(part[name])] for part in parts]
    for i in range(n_ranges):
        yield [np.array(part[name][own[i] : own[i + 1]]) for part, own in zip(parts, places, strict=True)]


def _open_sums() -> Callable[[list[np.ndarray]], CountSums]:
    return lambda tables: sum_counts(merge_counts(tables))


class NearestBlocks(Statistic):
    """Chamfer diversity: the embeddings, whose nearest neighbours are found block by block."""

    replaces = False
    least = 2

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Keep the embeddings of a batch."""
        embeddings = self.embed(texts)
        return {"embeddings": embeddings, "sum": unit_sum(embeddings, device=self.device)}

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Put batches together."""
        return {
            "embeddings": np.concatenate([part["embeddings"] for part in parts]),
            "sum": np.sum([part["sum"] for part in parts], axis=0),
        }

    def result(self, parts: Sequence[Arrays], n: int, engine: Engine, folder: Path, quiet: bool) -> dict[str, Any]:
        """Find the nearest text of each over all pairs of blocks.

        The largest similarity so far of each text is kept in a file: a pair of blocks that is worked on again, after a
        kill, changes nothing there.
        """
        total = np.sum([part["sum"] for part in parts], axis=0)
        blocks = _Blocks(parts)
        pairs = [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]
        file, progress = folder / "nearest.npy", folder / "nearest.json"
        n_done = json.loads(progress.read_text()) if file.exists() and progress.exists() else 0
        if n_done:
            best = np.lib.format.open_memmap(file, "r+")
        else:
            best = np.lib.format.open_memmap(file, "w+", np.float64, (n,))
            best[:] = -np.inf
        work = partial(_open_pairs, engine.share(blocks), total / n, self.settings.get("device"))
        found = engine.map(partial(iter, pairs[n_done:]), work)
        bar = tqdm(found, total=len(pairs), initial=n_done, disable=quiet, desc="nearest neighbours", unit="pair")
        for n_now, (i, j, left, right) in enumerate(bar, n_done + 1):
            for k, similarity in ((i, left), (j, right)):
                own = best[blocks.starts[k] : blocks.starts[k + 1]]
                np.maximum(own, similarity, out=own)
            best.flush()
            write_text(progress, json.dumps(n_now))
        starts = range(0, n, _BLOCK_TEXTS)
        distances = sum(float(np.clip(1 - best[start : start + _BLOCK_TEXTS], 0.0, 2.0).sum()) for start in starts)
        return {"chamfer_diversity": distances / n, "mean_pairwise_distance": mean_pairwise_from_sum(total, n)}


class _Blocks(Sequence[np.ndarray]):
    """The embeddings of several batches together, read where they are asked for."""

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
) -> Callable[[tuple[int, int]], tuple[int, int, np.ndarray, np.ndarray]]:
    where = matrix_device(device)

    def work(pair: tuple[int, int]) -> tuple[int, int, np.ndarray, np.ndarray]:
        i, j = pair
        return i, j, *nearest_between(blocks[i], None if i == j else blocks[j], center, device=where)

    return work


class ClusterCounts(Statistic):
    """ProbEval of one question: how many answers went to each cluster, or to several in which parts.

    An answer stands for all that went where it did: the metric itself scores those that stand for others.
    """

    @staticmethod
    def refusal(settings: Mapping[str, Any]) -> str | None:
        """Refuse the original's way to look answers up among all by their first characters."""
        if settings.get("parity") and settings.get("matcher") == "wordnet":
            return "parity=True with matcher='wordnet' matches answers by one another, and does not merge"
        return Statistic.refusal(settings)

    def signature(self) -> str:
        """Leave it to the result."""
        return ""

    def part(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Match a batch of answers."""
        details = self._compute(texts, details=True)["details"][0]
        rows = [(json.dumps(own["clusters"]), json.dumps(own["text"]), own["count"]) for own in details["assignments"]]
        return _count_clusters(rows)

    def merge(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """Add up."""
        return _count_clusters(
            [row for part in parts for row in zip(*(part[name].tolist() for name in _COLUMNS), strict=True)]
        )

    def result(self, parts: Sequence[Arrays], n: int, engine: Engine, folder: Path, quiet: bool) -> dict[str, Any]:
        """Score the answers that stand for all."""
        columns = zip(parts[-1]["texts"].tolist(), parts[-1]["counts"].tolist(), strict=True)
        return self._compute([{"text": json.loads(text), "count": count} for text, count in columns])

    def _compute(self, answers: list[Any], **more: Any) -> dict[str, Any]:
        metric = self.scorer.metric
        return metric.compute(predictions=[answers], references=[self.reference], **self.settings, **more)


_COLUMNS = ("clusters", "texts", "counts")


def _count_clusters(rows: Sequence[tuple[str, str, int]]) -> dict[str, np.ndarray]:
    first: dict[str, str] = {}
    times: dict[str, int] = {}
    for clusters, text, count in rows:
        first.setdefault(clusters, text)
        times[clusters] = times.get(clusters, 0) + count
    columns = (list(first), list(first.values()), list(times.values()))
    return {name: np.array(column) for name, column in zip(_COLUMNS, columns, strict=True)}


STATISTICS: dict[str, type[Statistic]] = {
    "vendi_embed": GramSums,
    "self_bleu": NgramTables,
    "chamfer_diversity": NearestBlocks,
    "probeval": ClusterCounts,
}


def open_statistic(job: Job) -> Callable[[tuple[list[Unit], int]], Batch]:
    """Load the metric, once in a process: returns what makes a part of a batch."""
    scorer = Scorer(job.arguments.metric, job.settings)
    statistic = STATISTICS[scorer.metric.name](scorer, job.reference)
    try:
        statistic.signature()
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None

    def work(item: tuple[list[Unit], int]) -> Batch:
        units, done = item
        batch = score_batch(statistic, units)
        # The rows need not be sent back.
        return batch._replace(units=[], scores=[], done=done)

    return work
