"""Score the components of each text, and the details that explain them."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .core import encode
from .gruen_backbone import Backbone, SentenceScores
from .gruen_bert import BertBackbone
from .gruen_focus import FOCUS_RULE, WordMover, embedding_breaks
from .gruen_redundancy import find_repeats, shared_passages
from .gruen_released import ReleasedWordMover, find_redundancy
from .gruen_settings import COMPONENTS, GruenSettings
from .gruen_text import Text

_PENALTY = 0.1
# A sentence, or a pair of sentences.
_Item = TypeVar("_Item", str, tuple[str, str])


class Component(NamedTuple):
    """One component of m texts.

    points : ndarray of shape (m,): the grammaticality of each text, or its penalty, <= 0
    details : maps the index of a text to its entries in the details
    """

    points: np.ndarray
    details: Callable[[int], dict[str, Any]]


def score_components(
    texts: list[Text], judge: Backbone | None, settings: GruenSettings
) -> tuple[dict[str, Component], dict[str, object]]:
    """Score the components of the settings; returns the entries of a signature, too."""
    components: dict[str, Component] = {}
    signed = settings.signed_components()
    if judge is not None:
        signed |= {"backbone": settings.backbone_kind, **judge.identity}
        if "grammaticality" in settings.scored:
            components["grammaticality"] = grammaticality(judge, texts)
    if "non_redundancy" in settings.scored:
        components["non_redundancy"] = non_redundancy(texts, settings.parity)
    if "focus" in settings.scored:
        components["focus"], signed_focus = focus(texts, settings)
        signed |= signed_focus
    if isinstance(judge, BertBackbone) and "coherence" in settings.scored:
        components["coherence"] = coherence(judge, texts)
    return components, signed


def grammaticality(judge: Backbone, texts: list[Text]) -> Component:
    """Average the scores of sentences over each text; points are in [0, 1], higher is better."""
    empty = np.empty(0)
    unique, rows_of = _different([text.sentences for text in texts])
    scores = judge.score_sentences(unique) if unique else SentenceScores(empty, empty, empty, [])
    grades = judge.grammaticality(scores.likelihood, scores.acceptability)
    columns = {"likelihood": scores.likelihood, "acceptability": scores.acceptability, "grammaticality": grades}

    def details(i: int) -> dict[str, Any]:
        described = _describe_pieces(texts[i])
        if scores.suspects is not None:
            described = [piece | {"suspects": []} for piece in described]
        for place, row in zip(texts[i].places, rows_of[i], strict=True):
            described[place] |= {name: float(values[row]) for name, values in columns.items()}
            if scores.suspects is not None:
                described[place]["suspects"] = scores.suspects[row]
        return {"sentences": described}

    return Component(np.array([judge.grade_text(scores, rows) for rows in rows_of]), details)


def non_redundancy(texts: list[Text], parity: bool) -> Component:
    """Subtract 0.1 for each flag that a pair of pieces raises."""
    repeats = [find_redundancy(text.pieces) if parity else find_repeats(text.pieces, text.lines) for text in texts]

    def details(i: int) -> dict[str, Any]:
        pieces = texts[i].pieces
        pairs = []
        for j, k, flags in repeats[i].pairs:
            pairs.append({"sentences": [j, k], "flags": flags, "shared": shared_passages(pieces[j], pieces[k])})
        return {"redundant_pairs": pairs, "n_redundant_pairs": repeats[i].n_pairs}

    return Component(np.array([0.0 - _PENALTY * redundancy.n_flags for redundancy in repeats]), details)


def focus(texts: list[Text], settings: GruenSettings) -> tuple[Component, dict[str, object]]:
    """Subtract 0.1 from each text that loses focus; returns the entries of a signature, too.

    The turns of a dialogue need not keep to one subject: it loses nothing.
    """
    signed: dict[str, object] = {"focus": settings.focus_kind, "threshold": settings.threshold}
    if settings.focus_kind == "wms":
        mover = (ReleasedWordMover if settings.parity else WordMover)(settings.vectors)
        signed["vectors"] = mover.identity
        breaks = [[] if text.is_dialogue else mover.breaks(text.sentences, settings.threshold) for text in texts]
    else:
        signed["focus_rule"] = FOCUS_RULE
        # A sentence without others to be compared with is not embedded.
        compared = [text.sentences if len(text.places) > 1 and not text.is_dialogue else [] for text in texts]
        embedded, rows_of = _different(compared)
        if embedded:
            embeddings, named, _ = encode(embedded, settings)
        else:
            embeddings = np.empty((0, 1))
            named = settings.signed_encoder()
        signed |= named
        n_words = np.array([len(sentence.split()) for sentence in embedded])
        breaks = [embedding_breaks(embeddings[rows], n_words[rows], settings.threshold) for rows in rows_of]

    def details(i: int) -> dict[str, Any]:
        places = texts[i].places
        pairs = [{"sentences": places[k : k + 2], "similarity": value} for k, value in breaks[i]]
        return {"focus_breaks": pairs}

    return Component(np.array([-_PENALTY if text_breaks else 0.0 for text_breaks in breaks]), details), signed


def coherence(judge: BertBackbone, texts: list[Text]) -> Component:
    """Subtract up to 0.1, the more probable it is that adjacent sentences are in the wrong order.

    An order as probable as its reverse costs nothing, and one that is certainly wrong costs the whole 0.1.
    """
    different, rows_of = _different([list(itertools.pairwise(text.sentences)) for text in texts])
    probabilities = judge.score_order(different) if different else np.empty(0)
    doubts = np.maximum(0.0, 1 - 2 * probabilities)
    means = [doubts[rows].mean() if rows else 0.0 for rows in rows_of]

    def details(i: int) -> dict[str, Any]:
        pairs = itertools.pairwise(texts[i].places)
        likely = probabilities[rows_of[i]].tolist()
        order = []
        for pair, probability in zip(pairs, likely, strict=True):
            order.append({"sentences": [*pair], "probability": probability})
        return {"order": order}

    return Component(np.array([0.0 - _PENALTY * mean for mean in means]), details)


def total(components: dict[str, Component], texts: list[Text], parity: bool) -> np.ndarray:
    """Add up the components of each text, clipped to [0, 1]: (m,). Without grammaticality, it counts as 1."""
    start = np.full(len(texts), 0.0 if "grammaticality" in components else 1.0)
    scores = np.clip(sum((component.points for component in components.values()), start=start), 0.0, 1.0)
    return scores if parity else np.where([bool(text.pieces) for text in texts], scores, 0.0)


def describe_text(i: int, components: dict[str, Component], texts: list[Text]) -> dict[str, Any]:
    """Return the details of one text; None or empty for components that were not scored."""
    described: dict[str, Any] = {
        name: float(components[name].points[i]) if name in components else None for name in COMPONENTS
    }
    described |= {"sentences": _describe_pieces(texts[i]), "redundant_pairs": [], "n_redundant_pairs": 0}
    described |= {"focus_breaks": [], "order": []}
    for component in components.values():
        described |= component.details(i)
    return described


def _describe_pieces(text: Text) -> list[dict[str, Any]]:
    unscored = dict.fromkeys(("likelihood", "acceptability", "grammaticality"))
    return [{"text": piece} | unscored for piece in text.pieces]


def _different(texts: list[list[_Item]]) -> tuple[list[_Item], list[list[int]]]:
    """List the different items of all texts, and for each text the places of its items among them."""
    row_of: dict[_Item, int] = {}
    rows_of = []
    for items in texts:
        rows_of.append([row_of.setdefault(item, len(row_of)) for item in items])
    return list(row_of), rows_of
