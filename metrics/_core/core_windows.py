"""Windows of long texts, and batches of sequences."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import starts_of

# Tokens in a batch: enough to keep a processor busy, few enough to stay in its cache.
_TOKEN_BUDGETS = {"cpu": 768, "cuda": 32_768, "mps": 8192}
# Where a sentence or a line ends, and where a word does. Each pattern takes linear time, also on a run of marks.
_SENTENCE_ENDS = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？][」』”’]*|\S(?=[^\S\n]*\n)""")
_WORD_ENDS = re.compile(r"\S(?=\s)")


class Windows(NamedTuple):
    """Windows of n texts: a text that fits is one window.

    parts : list of p strings, text after text
    lengths : ndarray of shape (p,), tokens of each part without special ones
    counts : ndarray of shape (n,), the number of parts of each text
    """

    parts: list[str]
    lengths: np.ndarray
    counts: np.ndarray

    def average(self, rows: np.ndarray) -> np.ndarray:
        """Average the rows (p, d) of the parts of each text, weighted by tokens: (n, d)."""
        starts = starts_of(self.counts)
        tokens = np.maximum(self.lengths, 1)
        shares = tokens / np.repeat(np.add.reduceat(tokens, starts), self.counts)
        return np.add.reduceat(rows * shares[:, None].astype(rows.dtype), starts, axis=0)


def split_windows(tokenizer: Any, texts: list[str], room: float) -> Windows:
    """Split texts of more than `room` tokens, without special ones, at ends of sentences.

    A window holds as many sentences as fit. A sentence that does not fit is split between words, a word between tokens.
    """
    windows: list[tuple[str, int]] = []
    counts = []
    for text, length in zip(texts, _count_tokens(tokenizer, texts), strict=True):
        windows_of_text = [(text, length)] if length <= room else _split(tokenizer, text, int(room))
        windows += windows_of_text
        counts.append(len(windows_of_text))
    parts, lengths = zip(*windows, strict=True)
    return Windows(list(parts), np.array(lengths), np.array(counts))


def _count_tokens(tokenizer: Any, texts: list[str]) -> list[int]:
    """Count the tokens of each text without special ones; its characters, if no such tokenizer is known."""
    if _is_of_tokenizers(tokenizer):
        return list(map(len, tokenizer.encode_batch_fast(texts, add_special_tokens=False)))
    if not callable(tokenizer):
        return list(map(len, texts))
    off = {"add_special_tokens": False, "verbose": False}
    inputs = getattr(tokenizer, "model_input_names", ())
    for name in ("attention_mask", "token_type_ids"):
        if name in inputs:
            off[f"return_{name}"] = False
    return list(map(len, tokenizer(texts, **off)["input_ids"]))


def _token_places(tokenizer: Any, text: str) -> np.ndarray:
    """Find where the tokens of a text start and stop, without special ones: (t, 2)."""
    if _is_of_tokenizers(tokenizer):
        return np.array(tokenizer.encode(text, add_special_tokens=False).offsets)
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
    return np.array(encoded["offset_mapping"])


def _is_of_tokenizers(tokenizer: Any) -> bool:
    """Tell a Tokenizer of the library `tokenizers`, without truncation, from one of transformers."""
    return hasattr(tokenizer, "encode_batch_fast")


def _split(tokenizer: Any, text: str, room: int) -> list[tuple[str, int]]:
    """Split one text into windows of at most `room` tokens; returns each with its number of tokens."""
    starts, stops = _token_places(tokenizer, text).T
    stops = np.maximum.accumulate(stops)
    breaks = []
    for pattern in (_SENTENCE_ENDS, _WORD_ENDS):
        ends = [match.end() for match in pattern.finditer(text)]
        breaks.append(np.searchsorted(stops, [*ends, len(text)], side="right"))
    # The first word of a window may have more tokens alone than after a space, so a window may have to be shorter.
    for budget in range(room, 0, -1):
        parts = []
        low = 0
        while low < len(stops):
            high = _window_end(low, low + budget, breaks)
            parts.append(text[starts[low] : stops[high - 1]])
            low = high
        lengths = _count_tokens(tokenizer, parts)
        if max(lengths) <= room:
            break
    return list(zip(parts, lengths, strict=True))


def _window_end(low: int, high: int, breaks: list[np.ndarray]) -> int:
    """Return the last break after token `low` and up to `high`, of the first kind that has one, or else `high`."""
    for ends in breaks:
        inside = ends[(low < ends) & (ends <= high)]
        if len(inside):
            return int(inside[-1])
    return high


def token_batches(
    lengths: np.ndarray, device: str, batch_size: int | None = None, n_budgets: int = 1
) -> Iterator[np.ndarray]:
    """Yield the indices of sequences of these lengths, (n,), all >= 1, in batches of a size or of a token budget.

    `n_budgets` is how many budgets of the device a batch may have, for a model that is faster than transformers are.
    """
    budget = n_budgets * _TOKEN_BUDGETS[device.split(":")[0]]
    # The longest first, so that a lack of memory shows at once.
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = batch_size or max(1, int(budget // lengths[order[start]]))
        yield order[start : start + size]
        start += size
