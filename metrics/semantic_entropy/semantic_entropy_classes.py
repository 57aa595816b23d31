"""The class of each text: given, or by cosines, by a user-supplied function, or by a classifier of pairs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .core import (
    LIMITS,
    NLI,
    PAIRS,
    TIE,
    TextSets,
    all_pairs,
    caller_name,
    describe,
    embed_sets,
    flatten,
    matrix_device,
    to_array,
    unit_rows,
    with_contexts,
)
from .semantic_entropy_grouping import Items, Same, different_texts, group, number_classes
from .semantic_entropy_pairs import mutual_entailment, probably_same
from .semantic_entropy_settings import SemanticEntropySettings


def find_classes(
    sets: TextSets, present: np.ndarray, sizes: np.ndarray, settings: SemanticEntropySettings
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Group the texts of each set into classes that say the same.

    Parameters
    ----------
    present : ndarray of shape (k,), the eligible texts, in order; all other texts are ignored
    sizes : ndarray of shape (m,), how many of them each set has, at least 1

    Returns
    -------
    classes : ndarray of shape (k,), numbered in each set from 0, in order of first appearance
    counts : ndarray of shape (m,), the number of classes of each set
    signed : the entries of a signature
    """
    if settings.classes is not None:
        labels = _parse_classes(settings.classes, sets)[present]
        return *number_classes(labels, sizes), {"classes": "given"}
    texts = [sets.texts[i] for i in present.tolist()]
    grouping = settings.grouping
    same: Same
    if settings.by_cosine:
        embeddings, encoded, _ = embed_sets(sets, settings)
        rows = None if settings.embeddings is None else embeddings[present]
        items = different_texts(texts, sizes, grouping, rows)
        threshold = settings.threshold
        same = _SameByCosine(embeddings, present[items.first], threshold, matrix_device(settings.device))
        signed = {"same": threshold, "grouping": grouping, **encoded}
    else:
        items = different_texts(texts, sizes, grouping)
        inputs = with_contexts(sets, settings.contexts)
        same, signed = _by_pairs(items, [inputs[i] for i in present[items.first].tolist()], settings)
        signed |= {"grouping": grouping, **({} if settings.contexts is None else {"contexts": "given"})}
    labels = group(items, same, grouping)
    return *number_classes(labels[items.of_text], sizes), signed


class _SameByCosine:
    """Compare items by the cosine of their embeddings.

    A large set is compared block by block: the unit vectors of the last items are kept.
    """

    def __init__(self, embeddings: np.ndarray, row_of: np.ndarray, threshold: float, device: str) -> None:
        self.embeddings, self.row_of, self.threshold, self.device = embeddings, row_of, threshold, device
        self.items: np.ndarray | None = None
        self.vectors: Any = None

    def __call__(self, items: np.ndarray, places: slice) -> np.ndarray:
        if self.items is not items:
            self.items, self.vectors = items, unit_rows(self.embeddings, self.row_of[items], self.device)
        return (self.vectors[:, places] @ self.vectors.mT >= self.threshold - TIE).cpu().numpy()


def _by_pairs(items: Items, texts: list[str], settings: SemanticEntropySettings) -> tuple[Same, dict[str, Any]]:
    """Compare all pairs of different texts of a set, the earlier first, by a function or a classifier."""
    pairs = all_pairs(items.sizes)
    text_pairs = [(texts[i], texts[j]) for i, j in pairs.tolist()]
    rule = settings.same
    signed: dict[str, Any]
    if not isinstance(rule, str):
        answers, signed = _ask(rule, text_pairs), {"same": f"custom({caller_name(rule)})"}
    elif rule.startswith(NLI):
        answers, signed = mutual_entailment(text_pairs, rule.removeprefix(NLI), settings)
    else:
        answers, signed = probably_same(text_pairs, rule.removeprefix(PAIRS), settings)
    n_items = len(items.first)
    # Numbers of the pairs that are the same, in ascending order.
    numbers = np.sort(pairs[answers] @ np.array([n_items, 1]))

    def same(rows: np.ndarray, places: slice) -> np.ndarray:
        left, right = rows[:, places, None], rows[:, None, :]
        keys = np.minimum(left, right) * n_items + np.maximum(left, right)
        return (left == right) | _contains(numbers, keys)

    return same, signed


def _contains(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Whether each of some values is in an array in ascending order."""
    if not len(ascending):
        return np.zeros(values.shape, dtype=bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return ascending[places] == values


def _ask(same: Callable[[list[str], list[str]], Any], pairs: list[tuple[str, str]]) -> np.ndarray:
    """Call a user-supplied function, once for each different pair."""
    unique = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    ordered = list(unique)
    answers = [np.empty(0, dtype=bool)]
    for start in range(0, len(ordered), LIMITS.asked_pairs):
        left, right = map(list, zip(*ordered[start : start + LIMITS.asked_pairs], strict=True))
        answer = same(left, right)
        try:
            array = to_array(answer)
        except (TypeError, ValueError):
            array = np.empty(0, dtype=object)
        if array.shape != (len(left),) or array.dtype != np.bool_:
            raise ValueError(f"same must return {len(left)} booleans, one for each pair. Got {describe(answer)}.")
        answers.append(array)
    return np.concatenate(answers)[[unique[pair] for pair in pairs]]


def _parse_classes(labels: Any, sets: TextSets) -> np.ndarray:
    """Read a label for each text, shaped like the predictions: equal integers for equal labels."""
    flat = flatten(labels, sets, "classes", "label")
    for i, label in enumerate(flat):
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, (str, int, np.integer)):
            raise TypeError(f"classes ({sets.where(i)}) must be a string or an integer. Got {describe(label)}.")
    numbers = {label: i for i, label in enumerate(dict.fromkeys(flat))}
    return np.array([numbers[label] for label in flat], dtype=np.int64)
