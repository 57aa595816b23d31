"""Read the texts of a call as a flat list and the size of each set, and the numbers of each text.

Every error names the parameter, the set and the text, and the value it got.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .core_numbers import INTEGERS, NUMBERS, ROUNDED_SUM, describe, parse_matrix, parse_number, to_array


@dataclass
class Limits:
    """Batch sizes: they bound the memory, and change no number.

    block_rows : rows held in float64, 6 MB at 384 dimensions; a block of a matrix has at most its square of numbers
    pairs_per_call : pairs that a user-supplied function sees together
    cached_texts : texts that are computed and stored together: a kill loses at most these
    """

    block_rows: int = 2048
    pairs_per_call: int = 10_000
    cached_texts: int = 10_000


LIMITS = Limits()
# Squares of more, or less than its inverse, lose digits in float64.
_LARGEST_NORM = 1e200


class TextSets(NamedTuple):
    """A flat list of texts, set after set.

    texts : list of n strings
    sizes : ndarray of shape (m,), the number of texts in each set, all >= 1
    nested : whether predictions is a list of lists
    """

    texts: list[str]
    sizes: np.ndarray
    nested: bool

    @property
    def starts(self) -> np.ndarray:
        """The flat index of the first text of each set: (m,)."""
        return starts_of(self.sizes)

    @property
    def owners(self) -> np.ndarray:
        """The set of each text: (n,)."""
        return owners_of(self.sizes)

    def where(self, index: int) -> str:
        """Name the text at a flat index for an error."""
        set_index, text_index = locate(index, self.sizes)
        return f"set {set_index}, text {text_index}" if self.nested or len(self.sizes) > 1 else f"text {index}"


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Return the flat index of the first text of each set: (m,)."""
    return np.cumsum(sizes) - sizes


def owners_of(sizes: np.ndarray) -> np.ndarray:
    """Return the set of each text: (n,)."""
    return np.repeat(np.arange(len(sizes)), sizes)


def find_different(items: Sequence[Any]) -> tuple[list[Any], np.ndarray]:
    """List the different items of n, in order of first appearance, and the place of each item among them: (n,)."""
    places = {item: i for i, item in enumerate(dict.fromkeys(items))}
    return list(places), np.fromiter(map(places.__getitem__, items), np.int64, len(items))


def locate(index: int, sizes: np.ndarray) -> tuple[int, int]:
    """Convert the flat index of a text to the index of its set and its index within the set."""
    ends = np.cumsum(sizes)
    set_index = int(np.searchsorted(ends, index, side="right"))
    return set_index, int(index - (ends[set_index] - sizes[set_index]))


def parse_sets(predictions: Any, set_size: int | None = None, name: str = "predictions") -> TextSets:
    """Read `predictions`, which errors call by a name, as sets of texts.

    Nested lists are sets, whose sizes are checked against `set_size`; a flat list is one set or, with `set_size`,
    consecutive sets. Raises a TypeError if `predictions` or a set is not a list, or a text is not a string; and a
    ValueError if there is no text, a set is empty, or `set_size` does not divide the number of texts.
    """
    items = as_list(predictions, name, "a list of texts or a list of lists of texts")
    if not items:
        raise ValueError(f"{name} is empty: there is no text to score.")
    if isinstance(items[0], str):
        check_characters(items, lambda i: f"{name}[{i}]")
        size = set_size or len(items)
        if len(items) % size:
            raise ValueError(f"set_size must divide the number of texts, {len(items)}. Got {size}.")
        return TextSets(items, np.full(len(items) // size, size, dtype=np.int64), nested=False)
    expected = "a list of texts, if any is, or a text"
    members = [item if type(item) is list else as_list(item, f"{name}[{i}]", expected) for i, item in enumerate(items)]
    sizes = np.fromiter(map(len, members), np.int64, len(members))
    if not sizes.all():
        raise ValueError(f"{name}[{sizes.argmin()}] is an empty set.")
    if set_size is not None and (sizes != set_size).any():
        i = int(np.argmax(sizes != set_size))
        raise ValueError(f"set_size is {set_size}, but {name}[{i}] holds {sizes[i]} texts.")
    sets = TextSets(list(itertools.chain.from_iterable(members)), sizes, nested=True)
    check_characters(sets.texts, lambda i: "{}[{}][{}]".format(name, *locate(i, sizes)))
    return sets


def as_list(value: Any, name: str, expected: str) -> list:
    """Convert an ordered sequence to a list; strings, mappings, sets and numbers raise a TypeError."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be {expected}. Got {describe(value)}.")
    return value if isinstance(value, list) else list(value)


def check_characters(texts: list[str], name: Callable[[int], str]) -> None:
    """Raise a TypeError for an item that is not a string, and a ValueError for an unpaired surrogate.

    A text with one, as in broken JSON, cannot be encoded.
    """
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name(i)} must be a string. Got {describe(text)}.")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                problem = f"an unpaired surrogate at character {error.start}"
                raise ValueError(f"{name(i)} holds {problem}. Got {describe(text)}.") from None


def parse_values(values: Any, sets: TextSets, name: str, high: float = 1.0) -> np.ndarray:
    """Read one number per text, nested like the predictions or as one flat list.

    Returns an ndarray of shape (n,), float64, all in [0, high]. Raises a TypeError if an item is not a number, and a
    ValueError if the shape is another, or a number is out of range.
    """
    flat = flatten(values, sets, name, "number", are_lists=False)
    # The entries of a list of a tensor are tensors.
    flat = [value.item() if hasattr(value, "detach") and value.ndim == 0 else value for value in flat]
    for i, value in enumerate(flat):
        if isinstance(value, bool) or not isinstance(value, NUMBERS) or not 0 <= value <= high:
            parse_number(value, f"{name} ({sets.where(i)})", 0, high)
    return np.asarray(flat, dtype=np.float64)


def flatten(values: Any, sets: TextSets, name: str, noun: str, *, are_lists: bool = True) -> list:
    """Read one value per text, nested like the predictions or as one flat list: a flat list.

    `are_lists` says whether a value may itself be a list, such as the log-probabilities of tokens. Raises a TypeError
    if it is not a list, and a ValueError if its shape fits neither. Errors call a value by the noun.
    """
    rows = as_list(values, name, f"one {noun} for each text, flat or nested like predictions")
    nested = bool(rows) and all(_is_list(row) for row in rows)
    is_flat = are_lists and len(rows) == len(sets.texts) and (len(rows) > len(sets.sizes) or not sets.nested)
    if not nested or is_flat:
        if len(rows) != len(sets.texts):
            raise ValueError(f"{name} must have a {noun} for each of {len(sets.texts)} texts. Got {len(rows)}.")
        return rows
    if len(rows) != len(sets.sizes):
        raise ValueError(f"{name} must have a list for each of {len(sets.sizes)} sets. Got {len(rows)}.")
    flat: list = []
    for i, (row, size) in enumerate(zip(rows, sets.sizes.tolist(), strict=True)):
        members = as_list(row, f"{name}[{i}]", f"one {noun} for each text of its set")
        if len(members) != size:
            raise ValueError(f"{name}[{i}] must have {size} {noun}s. Got {len(members)}.")
        flat += members
    return flat


def _is_list(value: Any) -> bool:
    return getattr(value, "ndim", 0) > 0 or (isinstance(value, Sequence) and not isinstance(value, (str, bytes)))


def parse_probabilities(values: Any, sets: TextSets, name: str) -> np.ndarray:
    """Read the probability of each text within its set: (n,), float64, scaled to sum to 1 exactly."""
    numbers = parse_values(values, sets, name, high=_LARGEST_NORM)
    sums = sum_by_set(numbers, sets.sizes)
    bad = np.flatnonzero(np.abs(sums - 1.0) > ROUNDED_SUM)
    if bad.size:
        i = int(bad[0])
        raise ValueError(
            f"{name} must sum to 1 over a set. Those of set {i} sum to {sums[i]:.6g}. "
            "Pass ratings of the texts as quality=."
        )
    return numbers / np.repeat(sums, sets.sizes)


def parse_embeddings(embeddings: Any, sets: TextSets, name: str = "embeddings") -> np.ndarray:
    """Read an (n, d) array with a row for each text, or a list of (k, d) arrays for the sets.

    Returns an ndarray of shape (n, d), float32 or float64: no copy where it is that already. Raises a TypeError if it
    is not an array of numbers, and a ValueError if its shape is wrong, or a row is not finite, or zero, so that its
    cosine is undefined, or float64 cannot hold its square.
    """
    matrix = parse_matrix(_concatenated(embeddings, sets, name), len(sets.texts), name)
    for start in range(0, len(matrix), LIMITS.block_rows):
        block = matrix[start : start + LIMITS.block_rows]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
            is_odd = ~((squares > 1 / _LARGEST_NORM) & (squares < _LARGEST_NORM))
        for i in (start + np.flatnonzero(is_odd)).tolist():
            # In float32, squares of small or large numbers are 0 or infinite.
            if not 1 / _LARGEST_NORM < float(np.square(matrix[i], dtype=np.float64).sum()) < _LARGEST_NORM:
                problem = f"must be finite, and not zero. Got {describe(matrix[i])}"
                raise ValueError(f"{name} row {i} ({sets.where(i)}) {problem}.")
    return matrix


def _concatenated(embeddings: Any, sets: TextSets, name: str) -> Any:
    """Concatenate embeddings that are nested like the predictions; others stay as they are."""
    is_list = isinstance(embeddings, (list, tuple)) and len(embeddings) == len(sets.sizes)
    if not is_list and getattr(embeddings, "ndim", 0) != 3:
        return embeddings
    try:
        parts = [to_array(part) for part in embeddings]
    except (TypeError, ValueError):
        return embeddings
    if any(part.ndim != 2 for part in parts):
        return embeddings
    for i, (part, size) in enumerate(zip(parts, sets.sizes.tolist(), strict=False)):
        if len(part) != size:
            raise ValueError(f"{name}[{i}] must have {size} rows, one for each text. Got {len(part)}.")
    return np.concatenate(parts) if len({part.shape[1] for part in parts}) == 1 else embeddings


def parse_contexts(contexts: Any, sets: TextSets, name: str = "contexts") -> list[str]:
    """Read the context of each set: m strings, "" for a set without one, also for None and a blank string.

    One flat set may have a bare string. Raises a TypeError or ValueError that names the set if a context is not a
    string or None, or there is not one for each set.
    """
    if isinstance(contexts, str) and not sets.nested and len(sets.sizes) == 1:
        contexts = [contexts]
    values = as_list(contexts, name, "a list with a string, or None, for each set")
    if len(values) != len(sets.sizes):
        raise ValueError(f"{name} must have an entry for each of {len(sets.sizes)} sets. Got {len(values)}.")
    texts = ["" if value is None else value for value in values]
    check_characters(texts, lambda i: f"{name}[{i}]")
    return [text if text.strip() else "" for text in texts]


def list_vectors(values: Any, sets: TextSets, name: str = "") -> Any:
    """Return the vectors of sets, in a list or an array; one flat set may have a bare vector."""
    rows = list(values) if isinstance(values, (list, tuple)) else values
    is_vector = isinstance(rows[0], NUMBERS) if isinstance(rows, list) and rows else getattr(rows, "ndim", None) == 1
    return [rows] if is_vector and len(sets.sizes) == 1 and not sets.nested else rows


def parse_context_rows(values: Any, sets: TextSets, d: int) -> np.ndarray:
    """Read the embedding of the context of each set: (m, d), float64, zero for a set without one, which is None.

    One flat set may have a bare vector. Raises as `parse_embeddings`.
    """
    name = "context_embeddings"
    n_sets = len(sets.sizes)
    rows = list_vectors(values, sets)
    is_missing = np.zeros(n_sets, dtype=bool)
    if isinstance(rows, list) and len(rows) == n_sets:
        is_missing = np.array([row is None for row in rows])
        rows = [np.ones(d) if row is None else row for row in rows]
    contexts_as_sets = TextSets([""] * n_sets, np.ones(n_sets, dtype=np.int64), nested=True)
    matrix = parse_embeddings(rows, contexts_as_sets, name).astype(np.float64)
    if matrix.shape[1] != d:
        raise ValueError(f"{name} must have {d} columns, as embeddings. Got {matrix.shape[1]}.")
    matrix[is_missing] = 0.0
    return matrix


def find_scored_sets(sets: TextSets, singletons: str) -> np.ndarray:
    """Find the sets of two texts or more, whose texts can be compared: (m,), bool.

    Raises a ValueError if a set has one text and `singletons` is "error" and not "skip".
    """
    scored = sets.sizes > 1
    if singletons == "error" and not scored.all():
        raise ValueError(
            f"predictions (set {int(scored.argmin())}) has one text, which is compared with none. "
            "Pass singletons='skip' to leave such sets out of the mean."
        )
    return scored


def batches_by_size(sizes: np.ndarray, max_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Group sets of equal size, to compute them in one array operation; yields batches.

    members : ndarray of shape (b,), indices of sets
    rows : ndarray of shape (b, k), flat indices of their texts; b * k <= max_rows, or b = 1
    """
    starts = starts_of(sizes)
    for size in np.unique(sizes).tolist():
        same = np.flatnonzero(sizes == size)
        step = max(1, max_rows // size)
        for i in range(0, len(same), step):
            members = same[i : i + step]
            yield members, starts[members, None] + np.arange(size)


def mean_by_set(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Average the values of each set's texts: (n,) to (m,)."""
    return sum_by_set(values, sizes) / sizes


def sum_by_set(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Sum the values of each set's texts, along the last axis: (..., n) to (..., m)."""
    return np.add.reduceat(values, starts_of(sizes), axis=-1)


def lists_by_set(values: np.ndarray, sizes: np.ndarray, has_value: np.ndarray | None = None) -> list[list]:
    """List the values of the texts of each set: (n,), or (k,) of the k texts that `has_value`; None for the others."""
    if has_value is not None:
        with_gaps = np.full(sizes.sum(), None, dtype=object)
        with_gaps[has_value] = values
        values = with_gaps
    return split_list(values.tolist(), sizes)


def split_list(values: list, sizes: np.ndarray) -> list[list]:
    """Split the values of n texts into one list a set."""
    ends = np.cumsum(sizes).tolist()
    return [values[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]


def number_labels(labels: list, where: Callable[[int], str]) -> np.ndarray:
    """Map labels, strings or integers, to integers from 0, equal for equal ones: (n,), int64.

    Raises a TypeError for another label; `where` names its place.
    """
    for i, label in enumerate(labels):
        if isinstance(label, bool) or not isinstance(label, (str, *INTEGERS)):
            raise TypeError(f"{where(i)} must be a string or an integer. Got {describe(label)}.")
    return find_different(labels)[1]


def content_ranks(texts: list[str]) -> np.ndarray:
    """Rank texts by their content, for an order that does not depend on theirs: (n,), int64, equal for equal texts."""
    ranks = {text: i for i, text in enumerate(sorted(set(texts)))}
    return np.fromiter(map(ranks.__getitem__, texts), np.int64, len(texts))
