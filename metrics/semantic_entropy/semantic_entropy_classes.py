"""The class of each text: given, or by cosines, by a user-supplied function, or by a classifier of pairs."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .core import (
    LIMITS,
    NLI,
    TIE,
    EncoderSettings,
    Pairs,
    TextSets,
    all_pairs,
    caller_name,
    describe,
    embed_sets,
    find_different,
    first_maximum,
    flatten,
    load_pair_model,
    matrix_device,
    number_labels,
    to_array,
    unit_rows,
    with_contexts,
)
from .semantic_entropy_grouping import Classes, Items, Same, different_texts, group, number_classes
from .semantic_entropy_settings import SemanticEntropySettings


def find_classes(
    sets: TextSets, present: np.ndarray, sizes: np.ndarray, settings: SemanticEntropySettings
) -> tuple[Classes, dict[str, Any]]:
    """Group the texts of each set into classes that say the same.

    `present`, (k,), are the indices of the eligible texts, in order; all other texts are ignored. `sizes`, (m,), says
    how many of them each set has, at least 1. Returns their classes, and the entries of a signature.
    """
    if settings.classes is not None:
        given = flatten(settings.classes, sets, "classes", "label")
        labels = number_labels(given, lambda i: f"classes ({sets.where(i)})")
        return number_classes(labels[present], sizes), {"classes": "given"}
    texts = [sets.texts[i] for i in present.tolist()]
    grouping = settings.grouping
    if settings.by_cosine:
        embeddings, encoded, _ = embed_sets(sets, settings)
        rows = None if settings.embeddings is None else embeddings[present]
        items = different_texts(texts, sizes, grouping, rows)
        same = _by_cosine(embeddings, present[items.first], settings)
        signed: dict[str, Any] = {"same": settings.threshold, "grouping": grouping, **encoded}
    else:
        items = different_texts(texts, sizes, grouping)
        inputs = with_contexts(sets, settings.contexts)
        same, rule = _by_pairs(items, [inputs[i] for i in present[items.first].tolist()], settings)
        signed = {"same": rule, "grouping": grouping, **settings.signed("contexts")}
    labels = group(items, same, grouping)
    return number_classes(labels[items.of_text], sizes), signed


def _by_cosine(embeddings: np.ndarray, row_of: np.ndarray, settings: SemanticEntropySettings) -> Same:
    """Compare items by the cosine of their embeddings; `row_of` has the row of each item."""
    device = matrix_device(settings.device)

    def same(items: np.ndarray) -> Callable[[slice], np.ndarray]:
        vectors = unit_rows(embeddings, row_of[items], device)
        return lambda places: (vectors[:, places] @ vectors.mT >= settings.threshold - TIE).cpu().numpy()

    return same


def _by_pairs(items: Items, texts: list[str], settings: SemanticEntropySettings) -> tuple[Same, str]:
    """Compare all pairs of different texts of a set, the earlier first; returns the rule for a signature, too."""
    places = all_pairs(items.sizes)
    pairs = [(texts[i], texts[j]) for i, j in places.tolist()]
    rule = settings.same
    if isinstance(rule, str):
        answers, signed = classify(pairs, rule, settings)
    else:
        answers = _ask(rule, pairs)
        signed = f"custom({caller_name(rule)})"
    n_items = len(items.first)
    # Numbers of the pairs that are the same, in ascending order.
    numbers = np.sort(places[answers] @ np.array([n_items, 1]))

    def same(rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        right = rows[:, None, :]

        def compare(places: slice) -> np.ndarray:
            left = rows[:, places, None]
            keys = np.minimum(left, right) * n_items + np.maximum(left, right)
            return (left == right) | _contains(numbers, keys)

        return compare

    return same, signed


def classify(pairs: Pairs, rule: str, settings: EncoderSettings) -> tuple[np.ndarray, str]:
    """Find the pairs of texts that say the same by a sequence-classification model: (e,), bool; and its name.

    By "nli:<model>", two texts that entail each other, as semantic entropy does (Farquhar et al. 2024); by
    "pairs:<model>", those to which a model with two classes gives the second a probability above one half, where the
    order of the texts matters. Raises a ValueError if the model cannot be found, or lacks these classes.
    """
    loaded = load_pair_model(rule, "same", settings.device)
    if loaded.kind == NLI:
        entailment = loaded.position("entailment")
        same = (first_maximum(loaded.logits_both_ways(pairs, settings)) == entailment).all(axis=1)
    elif len(loaded.labels) == 2:
        same = first_maximum(loaded.logits(pairs, settings)) == 1
    else:
        raise ValueError(
            f"same: {rule} must have two classes, the second for texts that say the same. It has "
            f"{len(loaded.labels)}: {', '.join(map(repr, loaded.labels))}."
        )
    return same, f"{loaded.kind}{loaded.identity}"


def _contains(ascending: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Tell whether each of some values is in an array in ascending order."""
    if not len(ascending):
        return np.zeros(values.shape, dtype=bool)
    places = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return ascending[places] == values


def _ask(same: Callable[[list[str], list[str]], Any], pairs: list[tuple[str, str]]) -> np.ndarray:
    """Call a user-supplied function, once for each different pair."""
    ordered, places = find_different(pairs)
    answers = [np.empty(0, dtype=bool)]
    for start in range(0, len(ordered), LIMITS.pairs_per_call):
        left, right = map(list, zip(*ordered[start : start + LIMITS.pairs_per_call], strict=True))
        answer = same(left, right)
        try:
            array = to_array(answer)
        except (TypeError, ValueError):
            array = np.empty(0, dtype=object)
        if array.shape != (len(left),) or array.dtype != np.bool_:
            raise ValueError(f"same must return {len(left)} booleans, one for each pair. Got {describe(answer)}.")
        answers.append(array)
    return np.concatenate(answers)[places]
