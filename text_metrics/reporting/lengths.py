"""The words of texts, and texts cut to the same number of words."""

import re
from collections.abc import Iterable
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from text_metrics.reporting.inputs import Inputs

# Words are separated by spaces; in Chinese and Japanese, which have no spaces, each character is one.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
# A text is cut at the end of a sentence that keeps this share of the words. Higher: more texts end inside a sentence.
_LEAST_KEPT = 0.75


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(_WORDS.findall(text))


def word_counts(texts: Iterable[str]) -> np.ndarray:
    """Count the words of each text: (n,), float64."""
    return np.array([count_words(text) for text in texts], dtype=np.float64)


def cut_to_shortest(inputs: "Inputs") -> tuple["Inputs", list[int]]:
    """Cut all texts of each prompt, of all systems, to as many words as the shortest of them has.

    Returns the inputs with these texts, and the number of words by prompt. Texts without words do not count.
    """
    n_words = []
    for p in range(len(inputs.ids)):
        counts = word_counts(chain.from_iterable(sets[p] for sets in inputs.texts))
        n_words.append(int(min(counts[counts > 0], default=0)))
    texts = []
    for sets in inputs.texts:
        cut_sets = []
        for members, n in zip(sets, n_words, strict=True):
            cut_sets.append([cut(text, n) for text in members])
        texts.append(cut_sets)
    return inputs._replace(texts=texts), n_words


def cut(text: str, n_words: int) -> str:
    """Cut a text to at most this many words: at the end of a sentence if three quarters of them are before it."""
    import sentencex

    words = list(_WORDS.finditer(text))
    if len(words) <= n_words:
        return text
    sentences = list(sentencex.segment("en", text))
    ends = list(accumulate(count_words(sentence) for sentence in sentences))
    whole = [i for i, end in enumerate(ends, 1) if _LEAST_KEPT * n_words <= end <= n_words]
    if whole:
        return "".join(sentences[: whole[-1]]).rstrip()
    return text[: words[n_words - 1].end()] if n_words else ""
