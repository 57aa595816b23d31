"""What backbones share: the scores of sentences, windows of long ones, and batches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings, progress_bar
from .core_models import find_device
from .core_windows import Windows, split_windows

# From the indices of a batch, (b,), and its tokens to its values, (b, ...).
Forward = Callable[[np.ndarray, Any], torch.Tensor]
_BATCH_SIZE = 64  # sequences


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


def read_windows(loaded: Any, sentences: list[str], limit: int) -> Windows:
    """Split the sentences of more tokens than `limit`, special ones included, between words."""
    with loaded.lock:
        lengths = np.array(list(map(len, loaded.tokenizer(sentences, verbose=False)["input_ids"])))
        return split_windows(loaded.tokenizer, sentences, lengths, limit)


def run_batches(
    loaded: Any,
    parts: Sequence[tuple[str, ...]],
    limit: int,
    forward: Forward,
    settings: EncoderSettings,
    title: str,
) -> np.ndarray:
    """Run a model over texts or pairs of texts, the longest first, in padded batches.

    Parameters
    ----------
    loaded : has the tokenizer, and the lock to hold while it runs
    parts : n tuples of one text or two
    limit : most tokens of a sequence, special ones included; the rest is cut off
    forward : runs the model on a batch
    title : of the progress bar

    Returns
    -------
    ndarray of shape (n, ...), float64, in the order of `parts`
    """
    device, size = find_device(settings.device), settings.batch_size or _BATCH_SIZE
    order = np.argsort([-sum(map(len, part)) for part in parts], kind="stable")
    values = []
    with torch.inference_mode(), progress_bar(len(parts), title, "sequence", settings.progress) as bar:
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            columns = map(list, zip(*[parts[i] for i in batch], strict=True))
            with loaded.lock:
                inputs = loaded.tokenizer(
                    *columns, padding=True, truncation=True, max_length=limit, return_tensors="pt", verbose=False
                )
            values.append(forward(batch, inputs.to(device)).double().cpu().numpy())
            bar.update(len(batch))
    return np.concatenate(values)[np.argsort(order)]
