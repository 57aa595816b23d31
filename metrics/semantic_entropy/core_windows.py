"""Windows of texts that are longer than a model reads."""

import re
from typing import Any, NamedTuple

import numpy as np

# Where a sentence or a line ends, and where a word does. Each pattern takes linear time, also on a run of marks.
_SENTENCE_ENDS = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？][」』”’]*|\S(?=[^\S\n]*\n)""")
_WORD_ENDS = re.compile(r"\S(?=\s)")


class Windows(NamedTuple):
    """The parts in which a model reads texts: a text that fits is one part.

    parts : list of p strings, text after text
    lengths : ndarray of shape (p,), tokens of each part, special ones included
    n_special : how many of these are special
    counts : ndarray of shape (n,), the number of parts of each text
    """

    parts: list[str]
    lengths: np.ndarray
    n_special: int
    counts: np.ndarray

    def average(self, embeddings: np.ndarray) -> np.ndarray:
        """Average the embeddings (p, d) of the parts of each text, weighted by tokens: (n, d)."""
        starts = np.cumsum(self.counts) - self.counts
        tokens = np.maximum(self.lengths - self.n_special, 1)
        shares = tokens / np.repeat(np.add.reduceat(tokens, starts), self.counts)
        return np.add.reduceat(embeddings * shares[:, None].astype(embeddings.dtype), starts, axis=0)


def split_windows(tokenizer: Any, texts: list[str], lengths: np.ndarray, limit: int) -> Windows:
    """Split the texts of more tokens (n,) than the limit, special ones included, at ends of sentences.

    A window holds as many sentences as fit. A sentence that does not fit is split
    between words, and a word that does not fit between tokens. Raises a ValueError
    if the tokenizer does not tell where in a text its tokens are.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"long_texts='windows' needs a tokenizer that tells where its tokens are, and {type(tokenizer).__name__} "
            "does not: pass long_texts='cut'."
        )
    windows = [
        ([text], [length]) if length <= limit else _split(tokenizer, text, limit)
        for text, length in zip(texts, lengths.tolist(), strict=True)
    ]
    parts = [part for window, _ in windows for part in window]
    part_lengths = [length for _, of_window in windows for length in of_window]
    counts = np.array([len(window[0]) for window in windows])
    return Windows(parts, np.array(part_lengths), tokenizer.num_special_tokens_to_add(), counts)


def _split(tokenizer: Any, text: str, limit: int) -> tuple[list[str], list[int]]:
    """Split one text into windows, and count their tokens, special ones included."""
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
    starts, stops = np.array(encoded["offset_mapping"]).T
    stops = np.maximum.accumulate(stops)
    breaks = [
        np.unique(np.searchsorted(stops, [match.end() for match in pattern.finditer(text)], side="right"))
        for pattern in (_SENTENCE_ENDS, _WORD_ENDS)
    ]
    # The first word of a window may have more tokens alone than after a space, so a window may have to be shorter.
    for budget in range(limit - tokenizer.num_special_tokens_to_add(), 0, -1):
        parts, low = [], 0
        while low < len(stops):
            high = _window_end(low, budget, len(stops), breaks)
            parts.append(text[starts[low] : stops[high - 1]])
            low = high
        lengths = list(map(len, tokenizer(parts, truncation=False, verbose=False)["input_ids"]))
        if max(lengths) <= limit:
            break
    return parts, lengths


def _window_end(low: int, budget: int, n: int, breaks: list[np.ndarray]) -> int:
    """Return the last break, of the first kind that has one, in the budget from token `low` of n, or its end."""
    high = min(low + budget, n)
    if high < n:
        for ends in breaks:
            place = int(np.searchsorted(ends, high, side="right")) - 1
            if place >= 0 and ends[place] > low:
                return int(ends[place])
    return high
