"""CASES: what the benchmark measures, against which peer, and at which sizes.

To add a case, write a function in inputs.py that makes an input of size n, one for each side in implementations.py, and
an entry here.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from scripts.reports.benchmark import implementations, inputs


class Size(NamedTuple):
    """One row of the table.

    n : the size of the input
    ratio : the least that the peer's time divided by ours must be
    megabytes : the most memory that ours may take
    alone : whether to leave the peer out
    long : whether to leave the row out with --quick
    """

    n: int
    ratio: float | None = None
    megabytes: float | None = None
    alone: bool = False
    long: bool = False


class Peer(NamedTuple):
    """What ours is measured against: its name, the package that it needs, and how it scores an input."""

    name: str
    package: str
    score: Callable[[Any], Any]


class Values(NamedTuple):
    """Numbers that agree to a tolerance, absolute and relative."""

    tolerance: float

    def __str__(self) -> str:
        return f"the same numbers to {self.tolerance:g}" if self.tolerance else "the same numbers"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Return the largest difference, as text, and whether it is within bounds."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        close = np.allclose(ours, peer, rtol=self.tolerance, atol=self.tolerance)
        return f"{np.abs(ours - peer).max():.1g}", bool(close)


class Cosines(NamedTuple):
    """Embeddings with cosines near 1: the difference from 1 is at most `largest`, and in the mean at most `mean`."""

    largest: float = math.inf
    mean: float = math.inf

    def __str__(self) -> str:
        named = {"every one": self.largest, "their mean": self.mean}
        limits = [f"{name} within {limit:g}" for name, limit in named.items() if limit < math.inf]
        return f"cosines to the peer's embeddings of 1, {', '.join(limits)}"

    def compare(self, ours: np.ndarray, peer: np.ndarray) -> tuple[str, bool]:
        """Return the largest difference, as text, and whether it is within bounds."""
        if ours.shape != peer.shape:
            return f"shapes {ours.shape} and {peer.shape}", False
        ours, peer = (side.astype(np.float64) for side in (ours, peer))
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(peer, axis=1)
        apart = np.maximum(1 - (ours * peer).sum(axis=1) / lengths, 0)
        distances = f"cosines {apart.max():.1g} from 1, {apart.mean():.1g} in the mean"
        return distances, bool(apart.max() <= self.largest and apart.mean() <= self.mean)


class Case(NamedTuple):
    """What is measured.

    title : what is scored, with n for the size
    inputs : makes an input of size n
    ours : scores an input; the peer returns the same numbers
    agreement : how these are compared
    warm_up : the size of the input of the warm-up; None for the input itself
    """

    title: str
    inputs: Callable[[int], Any]
    ours: Callable[[Any], Any]
    peer: Peer
    sizes: tuple[Size, ...]
    agreement: Values | Cosines
    warm_up: int | None = 500


_VENDI = partial(implementations.scores_of_metric, name="vendi_embed")
_CLASSES = partial(_VENDI, kernel="classes", same=implementations.SAME, q=0)
_CHAMFER = partial(implementations.scores_of_metric, name="chamfer_diversity")
_PROBEVAL = partial(implementations.scores_of_metric, name="probeval")
_SENTENCE_TRANSFORMER = Peer(
    "SentenceTransformer.encode", "sentence_transformers", implementations.sentence_transformer_encode
)
_one_by_one = partial(Peer, "`compute` without each text, in a loop", "numpy")
CASES = {
    "self_bleu_core": Case(
        "Self-BLEU-3 of each of n tokenized captions in one set: core only",
        inputs.tokenized_captions,
        implementations.self_bleu_core,
        Peer("fast-bleu SelfBLEU", "fast_bleu", implementations.fast_bleu),
        (Size(2_000), Size(20_000, ratio=25), Size(200_000, alone=True)),
        Values(1e-6),
    ),
    "self_bleu": Case(
        "Self-BLEU-3 of one set of n captions: the whole `compute`",
        inputs.captions,
        implementations.self_bleu_compute,
        Peer("fast-bleu SelfBLEU", "fast_bleu", implementations.fast_bleu_mean),
        (Size(2_000), Size(20_000, ratio=10), Size(200_000, alone=True)),
        Values(1e-6),
    ),
    "vendi_sets": Case(
        "Vendi scores of n sets of 4 × 384, float32: the whole `compute`",
        inputs.sets_of_four,
        _VENDI,
        Peer("vendi-score score_X in a loop", "vendi_score", implementations.vendi_loop),
        (Size(2_000), Size(20_000, ratio=6)),
        Values(1e-4),
    ),
    "vendi_float64": Case(
        "Vendi score of one set of n × 384, float64: the whole `compute`",
        partial(inputs.one_set, dtype=np.float64),
        _VENDI,
        Peer("vendi-score score_dual", "vendi_score", implementations.vendi_dual),
        (Size(2_000), Size(20_000, ratio=1)),
        Values(1e-8),
    ),
    "vendi_float32": Case(
        "Vendi score of one set of n × 384, float32: multiplied in float64, by the peer in float32",
        inputs.one_set,
        _VENDI,
        Peer("vendi-score score_dual", "vendi_score", implementations.vendi_dual),
        (Size(2_000), Size(20_000), Size(1_000_000, megabytes=500, alone=True, long=True)),
        Values(1e-4),
    ),
    "classes_sets": Case(
        "Number of classes of n sets of 4 × 384: the whole `compute`",
        inputs.restated_sets,
        _CLASSES,
        Peer("plain loop", "numpy", implementations.classes_loop),
        (Size(2_000), Size(20_000, ratio=1)),
        Values(0),
    ),
    "classes_set": Case(
        "Number of classes of one set of n × 384: the whole `compute`",
        inputs.restated_set,
        _CLASSES,
        Peer("plain loop", "numpy", implementations.classes_loop),
        (Size(1_000), Size(5_000, ratio=1, megabytes=500)),
        Values(0),
    ),
    "contributions_sets": Case(
        "Contribution of each text to the Vendi score, n sets of 4 × 384: the whole `compute`",
        inputs.restated_sets,
        implementations.contributions_compute,
        _one_by_one(implementations.contributions_loop),
        (Size(2_000), Size(20_000, ratio=5, megabytes=500)),
        Values(1e-9),
    ),
    "contributions_set": Case(
        "Contribution of each text to the Vendi score, one set of n × 384: the whole `compute`",
        inputs.restated_set,
        implementations.contributions_compute,
        _one_by_one(implementations.contributions_loop),
        (Size(200), Size(500, ratio=4), Size(5_000, megabytes=500, alone=True, long=True)),
        Values(1e-9),
    ),
    "contributions_chamfer": Case(
        "Contribution of each text to the Chamfer diversity, n sets of 4 × 384: the whole `compute`",
        inputs.restated_sets,
        partial(implementations.contributions_compute, name="chamfer_diversity"),
        _one_by_one(partial(implementations.contributions_loop, name="chamfer_diversity")),
        (Size(2_000), Size(20_000, ratio=5, megabytes=500)),
        Values(1e-9),
    ),
    "chamfer": Case(
        "Chamfer diversity of one set of n × 384, float32: the whole `compute`",
        inputs.one_set,
        _CHAMFER,
        Peer("full matrix, scikit-learn", "sklearn", implementations.chamfer_paper),
        (Size(5_000), Size(20_000, ratio=3), Size(200_000, megabytes=1_500, alone=True, long=True)),
        Values(1e-5),
    ),
    "chamfer_lean": Case(
        "Chamfer diversity of one set of n × 384, against the fewest passes over a full matrix",
        inputs.one_set,
        _CHAMFER,
        Peer("full matrix, numpy", "numpy", implementations.chamfer_full_matrix),
        (Size(5_000), Size(20_000)),
        Values(1e-5),
    ),
    "encode": Case(
        "Embeddings of n different captions",
        inputs.different_captions,
        implementations.encode,
        _SENTENCE_TRANSFORMER,
        (
            Size(4, ratio=0.95),
            Size(40, ratio=0.95),
            Size(400, ratio=0.95),
            Size(1_000, ratio=1),
            Size(4_000, ratio=1.2),
        ),
        Cosines(largest=1e-6),
        warm_up=32,
    ),
    "encode_bfloat16": Case(
        'Embeddings of n different captions, `precision="bfloat16"`',
        inputs.different_captions,
        partial(implementations.encode, precision="bfloat16"),
        _SENTENCE_TRANSFORMER,
        (Size(1_000), Size(4_000)),
        Cosines(mean=0.02),
        warm_up=32,
    ),
    "encode_repeated": Case(
        "Embeddings of n captions, each there 4 times",
        inputs.repeated_captions,
        implementations.encode,
        _SENTENCE_TRANSFORMER,
        (Size(4_000, ratio=1), Size(16_000, ratio=1, long=True)),
        Cosines(largest=1e-4),
        warm_up=32,
    ),
    "encode_cached": Case(
        "Embeddings of n different captions, a second time, with `cache_dir`",
        inputs.different_captions,
        implementations.encode_cached,
        _SENTENCE_TRANSFORMER,
        (Size(1_000, ratio=1), Size(4_000, ratio=1)),
        Cosines(largest=1e-4),
        warm_up=None,
    ),
    "probeval": Case(
        "ProbEval of n questions with 100 answers, word vectors given: the whole `compute`",
        inputs.asked_questions,
        _PROBEVAL,
        Peer("-", "numpy", _PROBEVAL),
        (Size(100, alone=True), Size(1_000, alone=True)),
        Values(0),
        warm_up=2,
    ),
    "probeval_wordnet": Case(
        "WordNet scores of all pairs of some 37 × 37 answers of n questions",
        inputs.asked_questions,
        implementations.wordnet_scores,
        Peer("each pair of partitions", "nltk", implementations.wordnet_pairs),
        (Size(3), Size(12, ratio=50), Size(1_000, alone=True)),
        Values(1e-9),
        warm_up=1,
    ),
    "probeval_gp": Case(
        "Gaussian-process matching of n answers to n gold ones in 8 clusters",
        inputs.matched_answers,
        implementations.gp_one_factor,
        Peer("scikit-learn, one a cluster", "sklearn", implementations.gp_each_cluster),
        (Size(50), Size(200, ratio=5)),
        Values(1e-6),
        warm_up=10,
    ),
    "gruen": Case(
        'Grammaticality of n texts of five sentences, `backbone="compact"`: the whole `compute`',
        inputs.five_sentences,
        implementations.gruen_compute,
        Peer("one sentence at a time", "torch", implementations.gruen_one_by_one),
        (Size(50), Size(200, ratio=8)),
        # Ours estimates the sum over the vocabulary.
        Values(5e-3),
        warm_up=4,
    ),
    "gruen_redundancy": Case(
        "Redundancy of one text of n captions: all pairs",
        inputs.different_captions,
        implementations.redundancy_compute,
        Peer("difflib, all pairs", "difflib", implementations.redundancy_pairs),
        (Size(50), Size(200, ratio=20), Size(2_000, alone=True), Size(10_000, alone=True, long=True)),
        Values(0),
        warm_up=20,
    ),
    "gruen_repeats": Case(
        "Redundancy of n texts of 20 captions, by the default rule",
        inputs.twenty_sentences,
        implementations.repeats_by_default,
        Peer("the paper's measures", "rapidfuzz", implementations.repeats_by_paper),
        (Size(100), Size(1_000, ratio=1)),
        # The rules differ, so the sides return the number of texts only.
        Values(0),
        warm_up=20,
    ),
    "score_file": Case(
        "Self-BLEU of a file of n captions, four a set: the whole `text-metrics score`",
        inputs.file_of_sets,
        implementations.score_file,
        Peer("pandas, one compute a set", "pandas", implementations.score_each_set),
        (Size(4_000, ratio=1), Size(20_000), Size(200_000, alone=True, long=True)),
        Values(1e-9),
        warm_up=40,
    ),
    "read_jsonl": Case(
        "Rows of n captions in JSON Lines",
        partial(inputs.file_of_captions, ending=".jsonl"),
        implementations.read_file,
        Peer("`json.loads` of each line", "json", implementations.read_json_lines),
        (Size(20_000), Size(200_000, ratio=1)),
        Values(0),
    ),
    "read_jsonl_units": Case(
        "The same in batches of units, as `text-metrics score` reads them",
        partial(inputs.file_of_captions, ending=".jsonl"),
        implementations.read_units,
        Peer("`json.loads` of each line", "json", implementations.read_json_lines),
        (Size(20_000), Size(200_000)),
        Values(0),
    ),
    "read_csv": Case(
        "Rows of n captions in CSV",
        partial(inputs.file_of_captions, ending=".csv"),
        implementations.read_file,
        Peer("`csv.DictReader`", "csv", implementations.read_csv),
        (Size(20_000), Size(200_000)),
        Values(0),
    ),
    "read_parquet": Case(
        "Rows of n captions in Parquet",
        partial(inputs.file_of_captions, ending=".parquet"),
        implementations.read_file,
        Peer("pyarrow, `to_pylist` of each batch", "pyarrow", implementations.read_parquet),
        (Size(20_000), Size(200_000)),
        Values(0),
    ),
    "read_parquet_units": Case(
        "The same in batches of units, as `text-metrics score` reads them",
        partial(inputs.file_of_captions, ending=".parquet"),
        implementations.read_units,
        Peer("pyarrow, `to_pylist` of each batch", "pyarrow", implementations.read_parquet),
        (Size(20_000), Size(200_000)),
        Values(0),
    ),
}
