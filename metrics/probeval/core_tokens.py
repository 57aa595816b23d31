"""Tokens of texts: batches by their numbers, texts whose words a model does not know, and windows of long texts."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import LIMITS

# Tokens in a batch, padding included: enough to keep a processor busy, few enough to stay in its cache.
_TOKEN_BUDGETS = {"cpu": 1024, "cuda": 32_768, "mps": 8192}
# The largest part of a budget that may be padding.
_PADDING = 1 / 8
# Letters of scripts that are spelled, other than Latin: not Chinese characters, kana or Korean syllables.
_SPELLED = re.compile(r"[^\0-\u024f\u1e00-\u1eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
# Where a sentence or a line ends, and where a word does. Each pattern takes linear time, also on a run of marks.
_SENTENCE_ENDS = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？][」』”’]*|\S(?=[^\S\n]*\n)""")
_WORD_ENDS = re.compile(r"\S(?=\s)")


def token_batches(lengths: np.ndarray, device: str, batch_size: int | None = None) -> Iterator[np.ndarray]:
    """Batch sequences of similar length, the longest first, so that a lack of memory shows at once.

    Parameters
    ----------
    lengths : ndarray of shape (n,), tokens of each sequence
    device : decides the token budget of a batch
    batch_size : sequences in a batch, whatever their tokens; if None, as many as fit the budget with little padding

    Yields
    ------
    ndarray of shape (b,), indices of sequences
    """
    order = np.argsort(-lengths, kind="stable")
    budget = _TOKEN_BUDGETS[device.split(":")[0]]
    start = 0
    while start < len(order):
        n = batch_size
        if n is None:
            longest = max(1, int(lengths[order[start]]))
            padding = np.cumsum(longest - lengths[order[start : start + max(1, budget // longest)]])
            n = max(1, int(np.searchsorted(padding, budget * _PADDING, side="right")))
        yield order[start : start + n]
        start += n


def count_tokens(tokenizer: Any, texts: list[str]) -> tuple[np.ndarray, int]:
    """Return the number of tokens of each text, and how many texts the model does not know.

    Without a tokenizer, characters are counted.
    """
    if tokenizer is None:
        return np.fromiter(map(len, texts), np.int64, len(texts)), 0
    lengths: list[int] = []
    unread = 0
    n_special = tokenizer.num_special_tokens_to_add()
    for start in range(0, len(texts), LIMITS.tokenized_texts):
        part = texts[start : start + LIMITS.tokenized_texts]
        ids = tokenizer(part, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
        lengths += map(len, ids)
        unread += sum(_is_unread(tokenizer, n_special, *pair) for pair in zip(part, ids, strict=True))
    return np.array(lengths, dtype=np.int64), unread


def _is_unread(tokenizer: Any, n_special: int, text: str, ids: list[int]) -> bool:
    """Return whether a quarter of the tokens is unknown, or half of them are single letters of another script.

    Chinese characters are words, so they count only if they are unknown.
    """
    n_words = max(1, len(ids) - n_special)
    if 4 * ids.count(tokenizer.unk_token_id) >= n_words:
        return True
    if text.isascii():
        return False
    pieces = (token.removeprefix("##").strip("▁") for token in tokenizer.convert_ids_to_tokens(ids))
    letters = sum(len(piece) == 1 and piece.isalpha() and _SPELLED.match(piece) is not None for piece in pieces)
    return 2 * letters >= n_words


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

    A window holds as many sentences as fit. A sentence that does not fit is split between words, and a word that does
    not fit between tokens. Raises a ValueError if the tokenizer does not tell where in a text its tokens are.
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
