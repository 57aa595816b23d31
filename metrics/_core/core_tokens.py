"""The tokens of texts: counts, batches of a token budget, windows of long texts, and warnings of what is not read."""

import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

# Tokens in a batch, padding included: enough to keep a processor busy, few enough to stay in its cache.
_TOKEN_BUDGETS = {"cpu": 1024, "cuda": 32_768, "mps": 8192}
# The largest part of a budget that may be padding.
_PADDING = 1 / 8
_TOKENIZED_AT_ONCE = 10_000
# Letters of scripts that are spelled, other than Latin: not Chinese characters, kana or Korean syllables.
_SPELLED = re.compile(r"[^\0-\u024f\u1e00-\u1eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
# Where a sentence or a line ends. Each pattern takes linear time, also on a run of marks.
_ENDS = re.compile(r"""[.!?…]["'”’)\]]*(?=\s)|[。！？][」』”’]*|\S(?=[^\S\n]*\n)""")
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
        if batch_size is not None:
            n = batch_size
        else:
            longest = max(1, int(lengths[order[start]]))
            candidates = lengths[order[start : start + max(1, budget // longest)]]
            padding = np.cumsum(longest - candidates)
            n = max(1, int(np.searchsorted(padding, budget * _PADDING, side="right")))
        yield order[start : start + n]
        start += n


def count_tokens(tokenizer: Any, texts: list[str]) -> tuple[np.ndarray, int]:
    """Return the number of tokens of each text, and how many texts the model does not know.

    Without a tokenizer, characters are counted.
    """
    if tokenizer is None:
        return np.fromiter(map(len, texts), np.int64, len(texts)), 0
    counts, unread = np.empty(len(texts), dtype=np.int64), 0
    n_special = tokenizer.num_special_tokens_to_add()
    for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
        part = texts[start : start + _TOKENIZED_AT_ONCE]
        encoded = tokenizer(part, truncation=False, padding=False, return_attention_mask=False, verbose=False)
        counts[start : start + len(part)] = list(map(len, encoded["input_ids"]))
        pairs = zip(part, encoded["input_ids"], strict=True)
        unread += sum(_is_unread(tokenizer, n_special, text, ids) for text, ids in pairs)
    return counts, unread


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


class UnknownWordsWarning(UserWarning):
    """Texts consist of words that the model does not know."""


def warn_of_unread(unread: int, n_texts: int) -> None:
    """Warn if texts consist of words that the model does not know."""
    if unread:
        warnings.warn(
            f"{unread} of {n_texts} different texts consist of words that the model does not know, such as emoji or "
            "another script: their embeddings are unreliable.",
            UnknownWordsWarning,
            stacklevel=4,
        )


def warn_of_cut(cut: np.ndarray, limit: int | str | None) -> None:
    """Warn if texts are longer than the model reads, by the tokens (n,) of each such text, 0 for the others."""
    if cut.any():
        warnings.warn(
            f"{np.count_nonzero(cut)} of {len(cut)} different texts are longer than the {limit} tokens that the model "
            f"reads: the rest of each is cut off (the longest has {cut.max()}).",
            stacklevel=4,
        )


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
        """Average the embeddings (p, d) of the parts of each text, weighted by tokens: (n, d).

        The embedding of a text that fits is unchanged.
        """
        starts = np.cumsum(self.counts) - self.counts
        tokens = np.maximum(self.lengths - self.n_special, 1)
        shares = tokens / np.repeat(np.add.reduceat(tokens, starts), self.counts)
        return np.add.reduceat(embeddings * shares[:, None].astype(embeddings.dtype), starts, axis=0)


def split_windows(tokenizer: Any, texts: list[str], lengths: np.ndarray, limit: int) -> Windows:
    """Split the texts that are longer than a model reads at ends of sentences.

    A window holds as many sentences as fit. A sentence that does not fit is split between words, and a word that does
    not fit between tokens.

    Parameters
    ----------
    lengths : ndarray of shape (n,), tokens of each text, special ones included
    limit : how many of these the model reads

    Raises
    ------
    ValueError
        If the tokenizer does not tell where in a text its tokens are.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError(
            f"long_texts='windows' needs a tokenizer that tells where its tokens are, and {type(tokenizer).__name__} "
            "does not: pass long_texts='cut'."
        )
    parts: list[str] = []
    part_lengths: list[int] = []
    counts = np.ones(len(texts), dtype=np.int64)
    for i, (text, length) in enumerate(zip(texts, lengths.tolist(), strict=True)):
        windows, tokens = ([text], [length]) if length <= limit else _split(tokenizer, text, limit)
        parts += windows
        part_lengths += tokens
        counts[i] = len(windows)
    return Windows(parts, np.array(part_lengths), tokenizer.num_special_tokens_to_add(), counts)


def _split(tokenizer: Any, text: str, limit: int) -> tuple[list[str], list[int]]:
    """Split one text into windows, and count their tokens, special ones included."""
    encoded = tokenizer(text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False)
    starts, stops = np.array(encoded["offset_mapping"]).T
    stops = np.maximum.accumulate(stops)
    breaks = [
        np.unique(np.searchsorted(stops, [match.end() for match in pattern.finditer(text)], side="right"))
        for pattern in (_ENDS, _WORD_ENDS)
    ]
    # The first word of a window may have more tokens alone than after a space, so a window may have to be shorter.
    for budget in range(limit - tokenizer.num_special_tokens_to_add(), 0, -1):
        parts = [text[starts[low] : stops[high - 1]] for low, high in _spans(len(stops), breaks, budget)]
        tokens = tokenizer(parts, truncation=False, padding=False, verbose=False)
        lengths = list(map(len, tokens["input_ids"]))
        if max(lengths) <= limit:
            break
    return parts, lengths


def _spans(n: int, breaks: list[np.ndarray], budget: int) -> Iterator[tuple[int, int]]:
    """Cut n tokens into spans of at most `budget`, each at the last break of the first kind that has one within it.

    Parameters
    ----------
    breaks : for each kind, an ascending ndarray of the numbers of tokens before a break
    """
    low = 0
    while low < n:
        high = min(low + budget, n)
        if high < n:
            for ends in breaks:
                place = int(np.searchsorted(ends, high, side="right")) - 1
                if place >= 0 and ends[place] > low:
                    high = int(ends[place])
                    break
        yield low, high
        low = high
