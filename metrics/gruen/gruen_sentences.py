"""The sentences of all texts: each different one is scored once, however often it occurs."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .core_cache import TextCache, through_cache
from .gruen_backbone import SentenceScores
from .gruen_bert import BertBackbone
from .gruen_compact import CompactBackbone
from .gruen_text import read_texts

Backbone = BertBackbone | CompactBackbone


class Sentences(NamedTuple):
    """The sentences of m texts.

    by_text : list of m lists of str
    unique : list of the n different sentences, in order of occurrence
    rows : list of m ndarrays of int64: the index in `unique` of each sentence of a text
    sizes : ndarray of shape (m,), the number of sentences of each text
    n_code : list of m ints, the number of code blocks left out of each text
    """

    by_text: list[list[str]]
    unique: list[str]
    rows: list[np.ndarray]
    sizes: np.ndarray
    n_code: list[int]

    @property
    def flat(self) -> np.ndarray:
        """The rows of all texts, concatenated."""
        return np.concatenate(self.rows)

    def with_neighbors(self) -> np.ndarray:
        """Return the indices in `unique` of the sentences of all texts with two sentences or more, sorted."""
        return np.unique([i for text_rows in self.rows if len(text_rows) > 1 for i in text_rows]).astype(np.int64)


def split(texts: list[str], parity: bool, markup: str) -> Sentences:
    """Split texts into sentences of two words or more; with `parity` as the original does."""
    read = read_texts(texts, parity, markup)
    by_text = [text.sentences for text in read]
    unique = list(dict.fromkeys(sentence for text_sentences in by_text for sentence in text_sentences))
    row_of = {sentence: i for i, sentence in enumerate(unique)}
    rows = [np.array([row_of[sentence] for sentence in text_sentences], dtype=np.int64) for text_sentences in by_text]
    return Sentences(by_text, unique, rows, np.array(list(map(len, by_text))), [text.n_code for text in read])


def score_sentences(
    judge: Backbone, sentences: list[str], cache_dir: Path | None, needs_suspects: bool
) -> SentenceScores:
    """Score n different sentences, each at most once.

    Parameters
    ----------
    cache_dir : folder that keeps scores between runs; only sentences that it lacks are scored
    needs_suspects : also return the suspects of sentences in the cache, which does not hold them: those are scored
    """
    if not sentences:
        return SentenceScores(np.empty(0), np.empty(0), np.empty(0), [])
    if cache_dir is None:
        return judge.score_sentences(sentences)
    suspects: dict[str, list[str]] = {}

    def score_part(part: list[str]) -> tuple[np.ndarray, np.ndarray]:
        scores = judge.score_sentences(part)
        suspects.update(zip(part, scores.suspects or (), strict=False))
        return np.stack(scores[:3], axis=1), np.zeros(len(part), dtype=np.int64)

    identity = "|".join(f"{name}:{value}" for name, value in judge.identity.items())
    with TextCache(cache_dir, f"gruen|{identity}", np.float64) as cache:
        values, _ = through_cache(cache, sentences, "", score_part, lambda _: None)
    scores = SentenceScores(*values.T)
    if not (needs_suspects and isinstance(judge, CompactBackbone)):
        return scores
    cached = [sentence for sentence in sentences if sentence not in suspects]
    if cached:
        suspects.update(zip(cached, judge.score_sentences(cached).suspects or (), strict=True))
    return scores._replace(suspects=[suspects[sentence] for sentence in sentences])
