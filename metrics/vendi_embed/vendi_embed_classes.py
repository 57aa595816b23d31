"""The classes of texts for kernel="classes"."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .core_class_scores import Relation
from .core_classes import (
    Classes,
    Items,
    all_pairs,
    distinct_items,
    group,
    link,
    number_classes,
    parse_classes,
    selected_pairs,
    similar_pairs,
)
from .core_encoder import embed_sets
from .core_inputs import TextSets, check_characters, content_ranks
from .core_models import matrix_device
from .core_numbers import describe, to_array
from .core_results import format_callable
from .core_similarity import Similarities
from .vendi_embed_pairs import mutual_entailment, probably_same
from .vendi_embed_settings import DEFAULT_SAME, NLI, PAIRS, VendiSettings

# Pairs that a caller's function sees at a time.
_PAIRS_AT_ONCE = 10_000


def make_classes(
    sets: TextSets, rows: np.ndarray, similarities: Similarities | None, settings: VendiSettings
) -> tuple[Classes, Relation | None, dict[str, Any]]:
    """Group texts that say the same into classes.

    Parameters
    ----------
    rows : ndarray of shape (k,), the texts that take part, in order: the others are as if they were not there
    similarities : of all texts, if the caller gave them

    Returns
    -------
    classes : of the texts that take part, in the sets that have any
    relation : how they were made; None where they were given
    signed : the entries of a signature
    """
    owners = np.repeat(np.arange(len(sets.sizes)), sets.sizes)[rows]
    counts = np.bincount(owners, minlength=len(sets.sizes))
    present = TextSets([sets.texts[i] for i in rows.tolist()], counts[counts > 0], sets.nested)
    if settings.classes is not None:
        labels = parse_classes(settings.classes, sets)
        return number_classes(labels.of_text[rows], present.sizes), None, {"classes": "given"}
    grouping = settings.grouping or "complete"
    signed: dict[str, Any]
    if settings.by_cosine:
        compared: np.ndarray | Similarities
        if similarities is None:
            compared, encoded = embed_sets(sets, settings.embeddings, settings)
        else:
            compared, encoded = similarities, similarities.signed()
        compared = compared[rows] if len(rows) < len(compared) else compared
        if isinstance(compared, Similarities):
            # Texts that are equal need not be alike, so each is an item.
            ranks = compared.ranks(present.texts)
        else:
            ranks = content_ranks(present.texts, None if settings.embeddings is None else compared)
        items = distinct_items(ranks, present.sizes, grouping)
        threshold = DEFAULT_SAME if settings.same is None else settings.same
        pairs = similar_pairs(compared, items, threshold, device=matrix_device(settings.device))
        signed = {"same": threshold, "grouping": grouping, **encoded}
    else:
        ranks = content_ranks(present.texts)
        items = distinct_items(ranks, present.sizes, grouping)
        texts = present.texts
        if settings.contexts is not None:
            contexts = parse_contexts(settings.contexts, sets)
            texts = [f"{contexts[owner]} {text}" for owner, text in zip(owners.tolist(), texts, strict=True)]
        same_pairs, signed = _judge_pairs(items, ranks, texts, settings)
        pairs = selected_pairs(same_pairs, len(items.first))
        signed = {**signed, "grouping": grouping, **({} if settings.contexts is None else {"contexts": "given"})}
    components = link(pairs)
    classes = group(items, components, present.sizes, grouping)
    return classes, Relation(items, components, grouping), signed


def _judge_pairs(
    items: Items, ranks: np.ndarray, texts: list[str], settings: VendiSettings
) -> tuple[np.ndarray, dict[str, Any]]:
    """Ask the caller's function, or a classifier of pairs, which items of a set are the same.

    Returns pairs of items, ndarray of shape (e, 2), and the entries of a signature. Equal texts are paired without
    asking.
    """
    pairs = all_pairs(items.sizes)
    apart = np.diff(ranks[items.first[pairs]])
    if settings.grouping != "greedy":
        # Pairs are in order of content, so that the order of a set does not matter.
        pairs = np.where(apart < 0, pairs[:, ::-1], pairs)
    equal, pairs = pairs[apart[:, 0] == 0], pairs[apart[:, 0] != 0]
    text_pairs = [(texts[i], texts[j]) for i, j in items.first[pairs].tolist()]
    same = settings.same
    signed: dict[str, Any]
    if not isinstance(same, str):
        is_same, signed = _call(same, text_pairs), {"same": format_callable(same)}
    elif same.startswith(NLI):
        is_same, signed = mutual_entailment(text_pairs, same.removeprefix(NLI), settings)
    else:
        is_same, signed = probably_same(text_pairs, same.removeprefix(PAIRS), settings.pair_rule, settings)
        signed |= settings.signed("same_rule") or {"same_threshold": settings.pair_rule.threshold}
    return np.concatenate([equal, pairs[is_same]]), signed


def parse_contexts(contexts: Any, sets: TextSets) -> list[str]:
    """Read a text for each set, such as the question that its texts answer."""
    if isinstance(contexts, str) or not isinstance(contexts, Sequence) or len(contexts) != len(sets.sizes):
        raise ValueError(
            f"contexts must be a list of strings, one for each of the {len(sets.sizes)} sets. Got {describe(contexts)}."
        )
    for i, context in enumerate(contexts):
        if not isinstance(context, str):
            raise TypeError(f"contexts[{i}] must be a string. Got {describe(context)}.")
    check_characters(list(contexts), lambda i: f"contexts[{i}]")
    return list(contexts)


def _call(same: Callable[[list[str], list[str]], Any], pairs: list[tuple[str, str]]) -> np.ndarray:
    """Ask a caller's function about each different pair once."""
    unique = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    ordered = list(unique)
    answers = [np.empty(0, dtype=bool)]
    for start in range(0, len(ordered), _PAIRS_AT_ONCE):
        left, right = map(list, zip(*ordered[start : start + _PAIRS_AT_ONCE], strict=True))
        answer = same(left, right)
        try:
            array = to_array(answer)
        except (TypeError, ValueError):
            array = np.empty(0, dtype=object)
        if array.shape != (len(left),) or array.dtype != np.bool_:
            raise ValueError(f"same must return {len(left)} booleans, one for each pair. Got {describe(answer)}.")
        answers.append(array)
    return np.concatenate(answers)[[unique[pair] for pair in pairs]]
