"""How often texts lose points: as people wrote them, and with a fault inserted."""

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from scripts.training.gruen_calibration.corpora import SEED, SIZES, Part
from scripts.training.gruen_calibration.faults import AS_WRITTEN, DIGRESSIONS, REPETITIONS, Fault
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics.gruen.gruen_focus import focus_margin
from text_metrics.metrics.gruen.gruen_repeats import REPEAT_RULE, RepeatRule, find_repeats

# Texts of a size below which a corpus gives no rate.
LEAST_TEXTS = 20
HUMAN = AS_WRITTEN.name


class Row(NamedTuple):
    """The values of texts with one fault or none, by size and corpus; a text with a value below 0 loses points."""

    name: str
    values: dict[int, dict[str, np.ndarray]]

    def rate(self, size: int, threshold: float = 0.0) -> float | None:
        """Return the share of texts below a threshold, with equal weights of the corpora; None without texts."""
        shares = [float((values < threshold).mean()) for values in self.values.get(size, {}).values()]
        return float(np.mean(shares)) if shares else None

    def quantile(self, size: int, share: float) -> float:
        """Return the threshold below which a share of the texts of a size lies."""
        by_corpus = self.values[size].values()
        weights = np.concatenate([np.full(len(values), 1 / len(values)) for values in by_corpus])
        values = np.concatenate(list(by_corpus))
        order = np.argsort(values)
        return float(values[order][np.searchsorted(np.cumsum(weights[order]) / len(by_corpus), share)])


class Embeddings:
    """Unit embeddings of the sentences of all texts."""

    def __init__(self, parts: list[Part], settings: EncoderSettings) -> None:
        every = (text for part in parts for texts in part.texts.values() for text in texts)
        sentences = list(dict.fromkeys(sentence for text in every for sentence in text.sentences))
        self._row = {sentence: i for i, sentence in enumerate(sentences)}
        self._matrix = encode(sentences, settings).embeddings

    def of(self, sentences: list[str]) -> np.ndarray:
        """Return the rows of known sentences: (n, d)."""
        return self._matrix[[self._row[sentence] for sentence in sentences]]


def redundancy_rows(parts: list[Part], rule: RepeatRule = REPEAT_RULE, sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """Judge the redundancy of texts as they are and with each repetition inserted: minus the number of flags."""

    def judge(sentences: list[str]) -> float:
        return -0.1 * find_repeats(sentences, rule).n_flags()

    return [_row(fault.name, parts, judge, fault, sizes) for fault in (AS_WRITTEN, *REPETITIONS)]


def focus_rows(parts: list[Part], embeddings: Embeddings) -> list[Row]:
    """Judge the focus of texts as they are and with sentences of other documents, of all corpora or of their own."""

    def judge(sentences: list[str]) -> float:
        n_words = np.array([len(sentence.split()) for sentence in sentences])
        return focus_margin(embeddings.of(sentences), n_words)

    rows = [_row(HUMAN, parts, judge, AS_WRITTEN, SIZES)]
    for fault in DIGRESSIONS:
        rows.append(_row(fault.name, parts, judge, fault, SIZES))
        rows.append(_row(f"{fault.name}, of the same corpus", parts, judge, fault, SIZES, own_corpus=True))
    return rows


def _row(
    name: str,
    parts: list[Part],
    judge: Callable[[list[str]], float],
    fault: Fault,
    sizes: tuple[int, ...],
    own_corpus: bool = False,
) -> Row:
    values: dict[int, dict[str, np.ndarray]] = {}
    for size in sizes:
        if size < fault.least:
            continue
        everywhere = [text for part in parts for text in part.texts[size]]
        for part in parts:
            texts = part.texts[size]
            if len(texts) < LEAST_TEXTS:
                continue
            draw = random.Random(SEED)
            sources = texts if own_corpus else everywhere
            corrupted = [fault.insert(text, sources, draw) for text in texts]
            judged = [judge(sentences) for sentences in corrupted if sentences is not None]
            values.setdefault(size, {})[part.corpus] = np.array(judged)
    return Row(name, values)
