"""Similarities of the texts of each set that replace embeddings: given matrices, or a model of pairs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .core_encoder import EmbeddedSetSettings, EncoderSettings, in_type_of
from .core_inputs import TextSets, as_list
from .core_intervals import UNBOUNDED
from .core_models import TRANSFORMER, find_device, find_model
from .core_numbers import ROUNDED_ENTRY, describe, parse_matrix, to_array
from .core_pairs import PairModel, Pairs, all_pairs, load_pair_model, with_contexts
from .core_settings import NLI, PAIR, is_pair_model, setting

if TYPE_CHECKING:
    import torch


def _parse_source(value: Any, name: str) -> Any:
    if isinstance(value, str) and not is_pair_model(value):
        raise ValueError(f"{name} must be matrices, 'nli:<model>' or 'pairs:<model>'. Got {describe(value)}.")
    return value


def _read_matrices(values: Any, sets: TextSets, name: str) -> list[Any]:
    return [in_type_of(matrix, to_array(matrix)) for matrix in split_matrices(values, sets).values()]


@dataclass(frozen=True, kw_only=True)
class SourceSettings(EmbeddedSetSettings):
    """Settings of the comparison of texts: by embeddings, a model of pairs, or given similarities."""

    similarity: Any = setting(
        None,
        _parse_source,
        given=PAIR,
        numbers=UNBOUNDED,
        reader=_read_matrices,
        help="`list` of (k, k) matrices, or `str`: in place of an encoder, a symmetric matrix with unit diagonal (to "
        "within 1e-4) for each set, or one if `predictions` is one flat set; or a model that compares two texts. "
        '`"pairs:<model>"`: the score of a cross-encoder for duplicates or semantic similarity, in [0, 1]. '
        '`"nli:<model>"`: P(entailment) - P(contradiction) by a sequence-classification model, at least 0. The '
        "model, a folder or an id of the Hugging Face Hub, reads each pair in both orders, and the mean is taken.",
    )

    def check(self) -> None:
        """Raise a ValueError if two sources of similarities are given, or contexts for given ones."""
        super().check()
        self.check_exclusive("embeddings", "similarity")
        if not self.by_pair_model:
            self.check_exclusive("contexts", "similarity")

    @property
    def by_pair_model(self) -> bool:
        """True if a model that reads pairs compares the texts."""
        return isinstance(self.similarity, str)

    def check_found(self) -> None:
        """Raise an error if the device or the model that compares texts cannot be found; nothing is loaded."""
        if not self.by_pair_model:
            super().check_found()
            return
        find_device(self.device)
        find_model(self.similarity.partition(":")[2], "similarity", TRANSFORMER)


def find_similarities(sets: TextSets, settings: SourceSettings) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Read given similarities by `parse_similarity`, or compute them by the model that `similarity` names.

    Equal texts have similarity 1. The model reads each other pair in both orders, once a call, and the mean is taken.
    "pairs:<model>" is a cross-encoder with one score in [0, 1], or with two classes, the second one for texts
    that say the same; of "nli:<model>", P(entailment) - P(contradiction) is taken, at least 0. Contexts are put before
    both texts of a pair.

    Returns m ndarrays of shape (k, k), float64, symmetric, with a diagonal of 1, in [0, 1] by a model; and the entries
    of a signature. Raises a ValueError if the model cannot be found, has other classes, or scores outside [0, 1].
    """
    if not settings.by_pair_model:
        return parse_similarity(settings.similarity, sets), {"similarity": "given"}
    texts = with_contexts(sets, settings.contexts)
    places = all_pairs(sets.sizes)
    pairs = [(texts[i], texts[j]) for i, j in places.tolist()]
    differ = np.array([a != b for a, b in pairs], dtype=bool)
    loaded = load_pair_model(settings.similarity, "similarity", settings.device)
    score = _entailment if loaded.kind == NLI else _probability
    values = np.ones(len(pairs))
    values[differ] = score(loaded, [(a, b) for a, b in pairs if a != b], settings).mean(1).clamp(min=0)
    matrices = [np.eye(size) for size in sets.sizes.tolist()]
    owners = sets.owners[places[:, 0]]
    within = places - sets.starts[owners, None]
    for set_index, (i, j), value in zip(owners.tolist(), within.tolist(), values, strict=True):
        matrices[set_index][i, j] = matrices[set_index][j, i] = value
    return matrices, {"similarity": f"{loaded.kind}{loaded.identity}", **settings.signed("contexts")}


def _entailment(loaded: PairModel, pairs: Pairs, settings: EncoderSettings) -> "torch.Tensor":
    """Return P(entailment) - P(contradiction) of e pairs in both orders: (e, 2), in [-1, 1]."""
    import torch

    entailment = loaded.position("entailment")
    contradiction = loaded.position("contradiction")
    shares = torch.from_numpy(loaded.logits_both_ways(pairs, settings)).double().softmax(-1)
    return shares[..., entailment] - shares[..., contradiction]


def _probability(loaded: PairModel, pairs: Pairs, settings: EncoderSettings) -> "torch.Tensor":
    """Return the scores of e pairs in both orders, or of two classes the probability of the second: (e, 2)."""
    import torch

    if len(loaded.labels) > 2:
        raise ValueError(
            f"{loaded.parameter}: {loaded.identity} must have one score, or two classes, the second for texts that say "
            f"the same. It has {', '.join(map(repr, loaded.labels))}."
        )
    logits = torch.from_numpy(loaded.logits_both_ways(pairs, settings)).double()
    scores = logits.softmax(-1)[..., 1] if len(loaded.labels) == 2 else loaded.model.activation_fn(logits)[..., 0]
    if outside := scores[(scores < 0) | (scores > 1)].tolist():
        raise ValueError(f"{loaded.parameter}: {loaded.identity} must score pairs in [0, 1]. Got {outside[0]}.")
    return scores


def parse_similarity(values: Any, sets: TextSets) -> list[np.ndarray]:
    """Read a matrix for each set; one matrix where the predictions are one flat set.

    Returns m ndarrays of shape (k, k), float64, with equal halves and a diagonal of 1. Raises a TypeError if it is not
    a list, or a matrix is not of numbers; and a ValueError that names the set and the entry if a matrix is not of shape
    (k, k) for the k texts of its set, finite, in [-1, 1], and symmetric, with unit diagonal, to within 1e-4.
    """
    matrices = split_matrices(values, sets)
    return [_parse_kernel(*pair, size) for pair, size in zip(matrices.items(), sets.sizes.tolist(), strict=True)]


def split_matrices(values: Any, sets: TextSets) -> dict[str, Any]:
    """Return the matrix of each set as it is given, by its name in an error."""
    if not sets.nested and len(sets.sizes) == 1:
        return {"similarity": values}
    # As lists, the matrices of an array would lose their type.
    is_array = getattr(values, "ndim", 0) == 3
    matrices = list(values) if is_array else as_list(values, "similarity", "a list of matrices, one for each set")
    if len(matrices) != len(sets.sizes):
        raise ValueError(f"similarity must have a matrix for each of the {len(sets.sizes)} sets. Got {len(matrices)}.")
    return {f"similarity[{i}]": matrix for i, matrix in enumerate(matrices)}


def _parse_kernel(name: str, values: Any, size: int) -> np.ndarray:
    matrix = parse_matrix(values, size, name).astype(np.float64)
    if matrix.shape != (size, size):
        raise ValueError(f"{name} must have shape ({size}, {size}). Got shape {matrix.shape}.")
    off_unit = np.diag(np.abs(matrix.diagonal() - 1) > ROUNDED_ENTRY)
    rules = (
        (~np.isfinite(matrix), "be finite"),
        (off_unit, f"be 1, the similarity of a text with itself, to within {ROUNDED_ENTRY:g}"),
        (np.abs(matrix) > 1 + ROUNDED_ENTRY, "be in [-1, 1]"),
        (
            np.abs(matrix - matrix.T) > ROUNDED_ENTRY,
            f"equal its mirror image, to within {ROUNDED_ENTRY:g}: the matrix must be symmetric",
        ),
    )
    for bad, must in rules:
        if bad.any():
            i, j = np.argwhere(bad)[0].tolist()
            raise ValueError(f"{name}[{i}][{j}] must {must}. Got {matrix[i, j]:.6g}.")
    even = (matrix + matrix.T) / 2
    np.fill_diagonal(even, 1.0)
    return even
