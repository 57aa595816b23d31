"""What backbones share: the scores of sentences, windows of long ones, padding, batches."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings, progress_bar
from .core_models import find_device
from .core_tokens import token_batches


class SentenceScores(NamedTuple):
    """Scores of n sentences.

    likelihood : ndarray of shape (n,), in [0, 1]; higher is likelier
    acceptability : ndarray of shape (n,), on the backbone's own scale; higher is more acceptable
    loss : ndarray of shape (n,), mean negative log-likelihood of a token in nats; lower is likelier
    suspects : for each sentence the words that are more likely wrong than right; None if the backbone marks no words
    """

    likelihood: np.ndarray
    acceptability: np.ndarray
    loss: np.ndarray
    suspects: list[list[str]] | None = None


def run_batches(
    lengths: np.ndarray, forward: Callable[[np.ndarray], torch.Tensor], settings: EncoderSettings, title: str
) -> np.ndarray:
    """Run a model over sequences, in batches of nearly equal lengths.

    Parameters
    ----------
    lengths : ndarray of shape (n,), tokens of each sequence
    forward : maps the indices of a batch, (b,), to its values, (b, ...)
    title : of the progress bar

    Returns
    -------
    ndarray of shape (n, ...), float64, in the order of `lengths`
    """
    values = np.empty(len(lengths))
    with torch.inference_mode(), progress_bar(len(lengths), title, "sequence", settings.progress) as bar:
        for batch in token_batches(lengths, find_device(settings.device), settings.batch_size):
            batch_values = forward(batch).double().cpu().numpy()
            if values.shape[1:] != batch_values.shape[1:]:
                values = np.empty((len(lengths), *batch_values.shape[1:]))
            values[batch] = batch_values
            bar.update(len(batch))
    return values


def windows(ids: Sequence[int], limit: int, is_continued: Sequence[bool] | None = None) -> list[Sequence[int]]:
    """Split the tokens of a long sentence into the fewest windows that the limit allows, of nearly equal length.

    Parameters
    ----------
    limit : most tokens of a window
    is_continued : for each token whether it continues a word; windows then start at a word where possible

    Returns
    -------
    list of at least one window; concatenated they are `ids`
    """
    n = len(ids)
    pieces, start = [], 0
    while n - start > limit:
        remaining = -(-(n - start) // limit)
        end = start + -(-(n - start) // remaining)
        cut = end
        # Natural language has no word longer than a quarter of a window.
        while is_continued is not None and cut > end - limit // 4 and cut > start + 1 and is_continued[cut]:
            cut -= 1
        if is_continued is not None and is_continued[cut]:
            cut = end
        pieces.append(ids[start:cut])
        start = cut
    return [*pieces, ids[start:]]


def combine_windows(values: np.ndarray, weights: np.ndarray, owners: np.ndarray, n: int) -> np.ndarray:
    """Average the values (w,) of windows over their sentences, the `owners`, weighted by tokens: (n,)."""
    weights = np.maximum(weights, 1).astype(np.float64)
    return np.bincount(owners, values * weights, n) / np.bincount(owners, weights, n)


def pad(sequences: Sequence[Sequence[int]], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Pad sequences to the longest; returns the ids and the attention mask, both (n, longest), int64."""
    width = max(map(len, sequences))
    ids = np.full((len(sequences), width), padding, dtype=np.int64)
    mask = np.zeros((len(sequences), width), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = 1
    return ids, mask
