"""The components of gruen: what sentences add up to for each text, and the details that explain it."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .core_encoder import encode
from .core_inputs import mean_by_set
from .core_vectors import load_vectors
from .gruen_backbone import SentenceScores
from .gruen_bert import BertBackbone
from .gruen_focus import FocusBreak, WordMover, embedding_breaks
from .gruen_redundancy import find_redundancy
from .gruen_repeats import find_repeats, shared_passages
from .gruen_sentences import Backbone, Sentences, score_sentences
from .gruen_settings import COMPONENTS, GruenSettings

_PENALTY = 0.1
# Redundant pairs listed for one text; their number grows with the square of its sentences.
_LISTED_PAIRS = 10_000


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
    """Score the components that the settings ask for; returns the entries of a signature, too.

    Parameters
    ----------
    judge : the backbone; None if no component needs one
    """
    parity, components, signed = settings.parity, {}, settings.signed_components()
    mover = WordMover(settings.vectors, load_vectors) if settings.focus_kind == "wms" else None
    if judge is not None:
        signed |= {"backbone": settings.backbone, **judge.identity}
    if judge is not None and "grammaticality" in settings.scored:
        scores = score_sentences(judge, sentences.unique, None if parity else settings.run.cache_dir, settings.details)
        components["grammaticality"] = grammaticality(judge, scores, sentences, parity)
    if "non_redundancy" in settings.scored:
        components["non_redundancy"] = non_redundancy(sentences, parity)
    if settings.focus_kind is not None:
        signed |= settings.signed_focus()
    if settings.focus_kind == "embedding":
        rows = sentences.with_neighbors()
        # The encoder names itself in the signature, also where no text has two sentences.
        encoded = encode([sentences.unique[i] for i in rows] or ["-"], settings.encoder)
        components["focus"] = focus_by_embedding(sentences, rows, encoded.embeddings, settings.threshold)
        names = {"precision": "focus_precision"}
        signed |= {names.get(name, name): value for name, value in encoded.signed.items()}
    elif mover is not None:
        components["focus"] = _focus(
            [mover.breaks(members, settings.threshold, parity) for members in sentences.by_text]
        )
        signed["vectors"] = mover.identity
    if isinstance(judge, BertBackbone) and "coherence" in settings.scored:
        components["coherence"] = coherence(judge, sentences)
    return components, signed


def grammaticality(judge: Backbone, scores: SentenceScores, sentences: Sentences, parity: bool) -> Component:
    """Average the scores of sentences over each text; points are in [0, 1], higher is better."""
    sizes, flat = sentences.sizes, sentences.flat
    points, full = np.zeros(len(sizes)), sizes > 0
    if len(flat):
        likelihood = mean_by_set(scores.likelihood[flat], sizes[full])
        if parity:
            # The original averages over sentences before it takes the exponential.
            likelihood = np.exp(-0.5 * mean_by_set(np.exp(scores.loss[flat]), sizes[full]))
        points[full] = judge.grammaticality(likelihood, mean_by_set(scores.acceptability[flat], sizes[full]))
    if parity:
        # The original's loss without sentences is 0, a likelihood of 1.
        points[~full] = judge.grammaticality(np.ones(1), np.zeros(1))[0]
    grades = judge.grammaticality(scores.likelihood, scores.acceptability)

    def details(text: int) -> dict[str, Any]:
        described = []
        for i in sentences.rows[text].tolist():
            values = {"likelihood": scores.likelihood[i], "acceptability": scores.acceptability[i]}
            values |= {"grammaticality": grades[i]}
            described.append({"text": sentences.unique[i]} | {name: float(value) for name, value in values.items()})
            if scores.suspects is not None:
                described[-1]["suspects"] = scores.suspects[i]
        return {"sentences": described}

    return Component(points, details)


def non_redundancy(sentences: Sentences, parity: bool) -> Component:
    """Take 0.1 off for each flag that a pair of sentences raises; `parity` compares all words, as the original does.

    Raises a ValueError if a text has too many sentences.
    """
    redundancies = []
    for i, members in enumerate(sentences.by_text):
        try:
            redundancies.append(find_redundancy(members, autojunk=True) if parity else find_repeats(members))
        except ValueError as error:
            raise ValueError(f"predictions[{i}] {error}: leave 'non_redundancy' out of components.") from None

    def details(text: int) -> dict[str, Any]:
        members = sentences.by_text[text]
        pairs = [
            {"sentences": [first, second], "flags": flags, "shared": shared_passages(members[first], members[second])}
            for first, second, flags in redundancies[text].pairs(_LISTED_PAIRS)
        ]
        return {"redundant_pairs": pairs, "n_redundant_pairs": redundancies[text].n_pairs()}

    return Component(np.array([0.0 - _PENALTY * redundancy.n_flags() for redundancy in redundancies]), details)


def focus_by_embedding(sentences: Sentences, rows: np.ndarray, embeddings: np.ndarray, threshold: float) -> Component:
    """Take 0.1 off each text that loses the focus, by the cosines of its sentences' embeddings.

    Parameters
    ----------
    rows : ndarray of shape (k,), int64: indices of the embedded sentences, as `Sentences.with_neighbors` returns them
    embeddings : ndarray of shape (k, d)
    """
    place = np.zeros(max(1, len(sentences.unique)), dtype=np.int64)
    place[rows] = np.arange(len(rows))
    n_words = np.array([len(sentence.split()) for sentence in sentences.unique], dtype=np.int64)
    return _focus(
        [
            embedding_breaks(embeddings[place[members]], n_words[members], threshold) if len(members) > 1 else []
            for members in sentences.rows
        ]
    )


def _focus(breaks: list[list[FocusBreak]]) -> Component:
    """Take 0.1 off each text with a break, by the breaks of each."""

    def details(text: int) -> dict[str, Any]:
        return {
            "focus_breaks": [
                {"sentences": [place, place + 1], "similarity": similarity} for place, similarity in breaks[text]
            ]
        }

    return Component(np.array([-_PENALTY if text_breaks else 0.0 for text_breaks in breaks]), details)


def coherence(judge: BertBackbone, sentences: Sentences) -> Component:
    """Take off up to 0.1, the more probable it is that adjacent sentences are in the wrong order.

    An order as probable as its reverse costs nothing, and one that is certainly wrong costs the whole 0.1.
    """
    pairs = [(int(a), int(b)) for rows in sentences.rows for a, b in itertools.pairwise(rows)]
    different = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    probabilities = np.empty(0)
    if different:
        texts = [(sentences.unique[a], sentences.unique[b]) for a, b in different]
        probabilities = judge.score_order(texts)[[different[pair] for pair in pairs]]
    by_text = np.split(probabilities, np.cumsum(np.maximum(sentences.sizes - 1, 0))[:-1])
    points = [0.0 - _PENALTY * float(np.maximum(0.0, 1 - 2 * row).mean()) if len(row) else 0.0 for row in by_text]

    def details(text: int) -> dict[str, Any]:
        probabilities = enumerate(by_text[text].tolist())
        return {"order": [{"sentences": [i, i + 1], "probability": value} for i, value in probabilities]}

    return Component(np.array(points), details)


def total(components: dict[str, Component], sentences: Sentences, parity: bool) -> np.ndarray:
    """Add up the components of each text, clipped to [0, 1]: (m,). Without grammaticality, penalties come off 1."""
    start = np.zeros(len(sentences.sizes)) if "grammaticality" in components else np.ones(len(sentences.sizes))
    scores = np.clip(sum((component.points for component in components.values()), start=start), 0.0, 1.0)
    if not parity:
        scores[sentences.sizes == 0] = 0.0
    return scores


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
