"""The settings of kernel="classes", and the classes of texts under them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .core_class_scores import Relation
from .core_classes import (
    GROUPINGS,
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
from .core_encoder import EncoderSettings
from .core_inputs import TextSets, check_characters, content_ranks
from .core_models import matrix_device
from .core_numbers import describe, parse_choice, parse_number, to_array
from .core_results import format_callable
from .core_similarity import Similarities, Source
from .vendi_embed_nli import mutual_entailment

# Chosen by scripts/training/calibrate_classes.py for the default model.
DEFAULT_SAME = 0.83
_NLI = "nli:"
# Pairs that a caller's function sees at a time.
_PAIRS_AT_ONCE = 10_000


@dataclass(frozen=True)
class ClassSettings:
    """How two texts are judged to say the same, and how texts are grouped.

    Parameters
    ----------
    classes : labels shaped like `predictions`; or None
    same : a cosine, a callable, "nli:<model>", or None for the default cosine
    grouping : "complete" or "greedy"; None for the default, "complete"
    contexts : with "nli:<model>", a text for each set, or None
    patience : p of the utility, or None for none
    """

    classes: Any = None
    same: Any = None
    grouping: str | None = None
    contexts: Any = None
    patience: float | None = None

    def check_default(self, embeddings: Any, similarity: Any, encoder: EncoderSettings) -> None:
        """Raise a ValueError if the default cosine is used with anything but the model that it is calibrated for."""
        if not self.by_cosine or self.same is not None:
            return
        given = {"embeddings": embeddings is None, "similarity": similarity is None, "model": encoder.is_default}
        for name, is_default in given.items():
            if not is_default:
                raise ValueError(
                    f"{name} with kernel='classes' needs same: its default, {DEFAULT_SAME}, is for cosines of the "
                    "default model."
                )

    def check(self, kernel: Any, quality: Any) -> None:
        """Raise an error that names the setting that is invalid, or has no effect."""
        for name in ("classes", "same", "grouping", "contexts", "patience"):
            if kernel != "classes" and getattr(self, name) is not None:
                raise ValueError(f"{name} has no effect without kernel='classes'. Got kernel={describe(kernel)}.")
        if kernel != "classes":
            return
        for name in ("same", "grouping"):
            if self.classes is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} has no effect where classes are given: leave one of them out.")
        if self.grouping is not None:
            parse_choice(self.grouping, "grouping", GROUPINGS)
        if isinstance(self.same, str):
            if not self.same.startswith(_NLI) or self.same == _NLI:
                raise ValueError(f"same must be a number, a callable or 'nli:<model>'. Got {describe(self.same)}.")
        elif self.same is not None and not callable(self.same):
            parse_number(self.same, "same", -1, 1)
        if self.contexts is not None and not self.by_entailment:
            raise ValueError("contexts has no effect without same='nli:<model>'.")
        if self.patience is not None:
            parse_number(self.patience, "patience", 0, 1)
            if quality is None:
                raise ValueError("patience needs quality: a number for each text, for the utility of a set.")

    @property
    def by_entailment(self) -> bool:
        """Whether a model of entailment compares the texts."""
        return isinstance(self.same, str)

    @property
    def by_cosine(self) -> bool:
        """Whether embeddings are compared."""
        return self.classes is None and not self.by_entailment and not callable(self.same)


def make_classes(
    sets: TextSets, rows: np.ndarray, settings: ClassSettings, source: Source
) -> tuple[Classes, Relation | None, dict[str, Any]]:
    """Group texts that say the same into classes.

    Parameters
    ----------
    rows : ndarray of shape (k,), the texts that take part, in order: the others are as if they were not there
    source : where the similarities of all texts come from, for a threshold

    Returns
    -------
    classes : of the texts that take part, in the sets that have any
    relation : how they were made; None where they were given
    signed : the entries of a signature
    """
    _check_source(settings, source)
    owners = np.repeat(np.arange(len(sets.sizes)), sets.sizes)[rows]
    counts = np.bincount(owners, minlength=len(sets.sizes))
    present = TextSets([sets.texts[i] for i in rows.tolist()], counts[counts > 0], sets.nested)
    if settings.classes is not None:
        labels = parse_classes(settings.classes, sets)
        return number_classes(labels.of_text[rows], present.sizes), None, {"classes": "given"}
    grouping = settings.grouping or "complete"
    signed: dict[str, Any]
    if settings.by_cosine:
        compared, encoded = source.compared(sets)
        compared = compared[rows] if len(rows) < len(compared) else compared
        if isinstance(compared, Similarities):
            # Texts that are equal need not be alike, so each is an item.
            ranks = compared.ranks(present.texts)
        else:
            ranks = content_ranks(present.texts, None if source.embeddings is None else compared)
        items = distinct_items(ranks, present.sizes, grouping)
        threshold = DEFAULT_SAME if settings.same is None else float(settings.same)
        pairs = similar_pairs(compared, items, threshold, device=matrix_device(source.encoder.device))
        signed = {"same": threshold, "grouping": grouping, **encoded}
    else:
        ranks = content_ranks(present.texts)
        items = distinct_items(ranks, present.sizes, grouping)
        texts = present.texts
        if settings.contexts is not None:
            contexts = parse_contexts(settings.contexts, sets)
            texts = [f"{contexts[owner]} {text}" for owner, text in zip(owners.tolist(), texts, strict=True)]
        asked, signed = _judge_pairs(items, ranks, texts, settings.same, source.encoder)
        pairs = selected_pairs(asked, len(items.first))
        signed = {**signed, "grouping": grouping, **({} if settings.contexts is None else {"contexts": "given"})}
    components = link(pairs)
    classes = group(items, components, present.sizes, grouping)
    return classes, Relation(items, components, grouping), signed


def _check_source(settings: ClassSettings, source: Source) -> None:
    """Raise a ValueError for embeddings, similarities or settings of an encoder that have no effect."""
    if settings.by_cosine:
        return
    who = "classes are given" if settings.classes is not None else "same says which texts are the same"
    encoder = source.encoder
    replace(encoder, precision=None if settings.by_entailment else encoder.precision).check_unused(who)
    for given, name in ((source.embeddings, "embeddings have"), (source.similarity, "similarity has")):
        if given is not None:
            raise ValueError(f"{name} no effect where {who}: leave one of the two out.")


def _judge_pairs(
    items: Items, ranks: np.ndarray, texts: list[str], same: Any, encoder: EncoderSettings
) -> tuple[np.ndarray, dict[str, Any]]:
    """Ask the caller's function, or a model of entailment, which items of a set are the same.

    Returns
    -------
    pairs : ndarray of shape (e, 2), items; equal texts are the same without asking
    signed : the entries of a signature
    """
    pairs = all_pairs(items.sizes)
    # Pairs are in order of content, so that the order of a set does not matter.
    apart = np.diff(ranks[items.first[pairs]])
    pairs = np.where(apart < 0, pairs[:, ::-1], pairs)
    equal, pairs = pairs[apart[:, 0] == 0], pairs[apart[:, 0] != 0]
    asked = [(texts[i], texts[j]) for i, j in items.first[pairs].tolist()]
    signed: dict[str, Any]
    if isinstance(same, str):
        found, signed = mutual_entailment(asked, same.removeprefix(_NLI), encoder)
    else:
        found, signed = _call(same, asked), {"same": format_callable(same)}
    return np.concatenate([equal, pairs[found]]), signed


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
