"""The components of gruen: what sentences add up to for each text, and the details that explain it."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .core import encode
from .gruen_backbone import SentenceScores
from .gruen_bert import BertBackbone
from .gruen_compact import CompactBackbone
from .gruen_focus import FOCUS_IDENTITY, WordMover, embedding_breaks
from .gruen_redundancy import find_redundancy, find_repeats, shared_passages
from .gruen_settings import COMPONENTS, GruenSettings
from .gruen_text import Sentences

Backbone = BertBackbone | CompactBackbone

_PENALTY = 0.1


class Component(NamedTuple):
    """One component of m texts.

    points : ndarray of shape (m,): the grammaticality of each text, or its penalty, <= 0
    details : maps the index of a text to its entries in the details
    """

    points: np.ndarray
    details: Callable[[int], dict[str, Any]]


def score_components(
    sentences: Sentences, judge: Backbone | None, settings: GruenSettings
) -> tuple[dict[str, Component], dict[str, object]]:
    """Score the components that the settings ask for; returns the entries of a signature, too."""
    components: dict[str, Component] = {}
    signed = settings.signed_components()
    if judge is not None:
        signed |= {"backbone": settings.backbone_kind, **judge.identity}
        if "grammaticality" in settings.scored:
            components["grammaticality"] = grammaticality(judge, sentences, settings.parity)
    if "non_redundancy" in settings.scored:
        components["non_redundancy"] = non_redundancy(sentences, settings.parity)
    if "focus" in settings.scored:
        components["focus"], signed_focus = focus(sentences, settings)
        signed |= signed_focus
    if isinstance(judge, BertBackbone) and "coherence" in settings.scored:
        components["coherence"] = coherence(judge, sentences)
    return components, signed


def grammaticality(judge: Backbone, sentences: Sentences, parity: bool) -> Component:
    """Average the scores of sentences over each text; points are in [0, 1], higher is better."""
    empty, unique = np.empty(0), sentences.unique
    scores = judge.score_sentences(unique) if unique else SentenceScores(empty, empty, empty, [])
    row_of = {sentence: row for row, sentence in enumerate(unique)}

    def points(members: list[str]) -> float:
        rows = [row_of[sentence] for sentence in members]
        if not rows:
            # The original's loss without sentences is 0, a likelihood of 1.
            return float(judge.grammaticality(np.ones(1), np.zeros(1))[0]) if parity else 0.0
        likelihood = scores.likelihood[rows].mean()
        if parity:
            # The original averages over sentences before it takes the exponential.
            likelihood = np.exp(-0.5 * np.exp(scores.loss[rows]).mean())
        return float(judge.grammaticality(likelihood, scores.acceptability[rows].mean()))

    grades = judge.grammaticality(scores.likelihood, scores.acceptability)
    columns = {"likelihood": scores.likelihood, "acceptability": scores.acceptability, "grammaticality": grades}

    def details(text: int) -> dict[str, Any]:
        described = []
        for sentence in sentences.by_text[text]:
            row = row_of[sentence]
            suspects = {} if scores.suspects is None else {"suspects": scores.suspects[row]}
            described.append({"text": sentence} | {name: float(of[row]) for name, of in columns.items()} | suspects)
        return {"sentences": described}

    return Component(np.array([points(members) for members in sentences.by_text]), details)


def non_redundancy(sentences: Sentences, parity: bool) -> Component:
    """Take 0.1 off for each flag that a pair of sentences raises; `parity` compares all words, as the original does."""
    found = [(find_redundancy if parity else find_repeats)(members) for members in sentences.by_text]

    def details(text: int) -> dict[str, Any]:
        members = sentences.by_text[text]
        pairs = [
            {"sentences": [i, j], "flags": flags, "shared": shared_passages(members[i], members[j])}
            for i, j, flags in found[text].pairs
        ]
        return {"redundant_pairs": pairs, "n_redundant_pairs": found[text].n_pairs}

    return Component(np.array([0.0 - _PENALTY * one.n_flags for one in found]), details)


def focus(sentences: Sentences, settings: GruenSettings) -> tuple[Component, dict[str, object]]:
    """Take 0.1 off each text that loses the focus; returns the entries of a signature, too."""
    signed: dict[str, object] = {"focus": settings.focus_kind, "threshold": settings.threshold}
    if settings.focus_kind == "wms":
        mover = WordMover(settings.vectors, settings.parity)
        breaks = [mover.breaks(members, settings.threshold) for members in sentences.by_text]
        signed["vectors"] = mover.identity
    else:
        signed["focus_rule"] = FOCUS_IDENTITY
        # A sentence that has no other to be compared with is not embedded.
        texts = [members if len(members) > 1 else [] for members in sentences.by_text]
        embedded = list(dict.fromkeys(one for members in texts for one in members))
        # The encoder names itself in the signature, also where no text has two sentences.
        embeddings, named = encode(embedded or ["-"], settings)
        signed |= named
        row_of = {sentence: row for row, sentence in enumerate(embedded)}
        breaks = [
            embedding_breaks(
                embeddings[[row_of[sentence] for sentence in members]],
                np.array([len(sentence.split()) for sentence in members]),
                settings.threshold,
            )
            for members in texts
        ]

    def details(text: int) -> dict[str, Any]:
        pairs = [{"sentences": [place, place + 1], "similarity": value} for place, value in breaks[text]]
        return {"focus_breaks": pairs}

    return Component(np.array([-_PENALTY if of_text else 0.0 for of_text in breaks]), details), signed


def coherence(judge: BertBackbone, sentences: Sentences) -> Component:
    """Take off up to 0.1, the more probable it is that adjacent sentences are in the wrong order.

    An order as probable as its reverse costs nothing, and one that is certainly wrong costs the whole 0.1.
    """
    by_text = [list(itertools.pairwise(members)) for members in sentences.by_text]
    different = list(dict.fromkeys(pair for pairs in by_text for pair in pairs))
    probabilities = judge.score_order(different).tolist() if different else []
    probability = dict(zip(different, probabilities, strict=True))
    doubts = [[max(0.0, 1 - 2 * probability[pair]) for pair in pairs] for pairs in by_text]

    def details(text: int) -> dict[str, Any]:
        pairs = enumerate(by_text[text])
        return {"order": [{"sentences": [i, i + 1], "probability": probability[pair]} for i, pair in pairs]}

    return Component(np.array([0.0 - _PENALTY * float(np.mean(own)) if own else 0.0 for own in doubts]), details)


def total(components: dict[str, Component], sentences: Sentences, parity: bool) -> np.ndarray:
    """Add up the components of each text, clipped to [0, 1]: (m,). Without grammaticality, penalties come off 1."""
    start = np.full(len(sentences.by_text), 0.0 if "grammaticality" in components else 1.0)
    scores = np.clip(sum((component.points for component in components.values()), start=start), 0.0, 1.0)
    return scores if parity else np.where(sentences.sizes, scores, 0.0)


def describe_text(text: int, components: dict[str, Component], sentences: Sentences) -> dict[str, Any]:
    """Return the details of one text; what was not scored is None or empty."""
    described: dict[str, Any] = {
        name: float(components[name].points[text]) if name in components else None for name in COMPONENTS
    }
    unscored = dict.fromkeys(("likelihood", "acceptability", "grammaticality"))
    described["sentences"] = [{"text": sentence} | unscored for sentence in sentences.by_text[text]]
    described |= {"redundant_pairs": [], "n_redundant_pairs": 0, "focus_breaks": [], "order": []}
    for component in components.values():
        described |= component.details(text)
    return described
