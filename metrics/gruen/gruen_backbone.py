"""What backbones share: the scores of sentences, windows of long ones, and batches."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm.auto import tqdm

from .core_encoder import EncoderSettings
from .core_models import find_device, model_registry
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


class Loaded(NamedTuple):
    """A model in memory, and the most tokens that it reads, special ones included."""

    model: Any
    tokenizer: Any
    limit: int

    def count_tokens(self, parts: Sequence[tuple[str, ...]]) -> np.ndarray:
        """Count the tokens of n texts or pairs of texts, special ones included: (n,)."""
        with model_registry().lock:
            return np.array(list(map(len, self.tokenizer(*_columns(parts), verbose=False)["input_ids"])))

    def read_windows(self, sentences: list[str]) -> Windows:
        """Split the sentences that are too long between words."""
        with model_registry().lock:
            return split_windows(self.tokenizer, sentences, self.limit - self.tokenizer.num_special_tokens_to_add())

    def run(
        self, parts: Sequence[tuple[str, ...]], forward: Forward, settings: EncoderSettings, title: str
    ) -> np.ndarray:
        """Run the model over n texts or pairs of texts, cut to its limit, the longest first, in padded batches.

        `title` is that of the progress bar. Returns an ndarray of shape (n, ...), float64, in the order of `parts`.
        """
        device, size = find_device(settings.device), settings.batch_size or _BATCH_SIZE
        order = np.argsort([-sum(map(len, part)) for part in parts], kind="stable")
        options = {"padding": True, "truncation": True, "max_length": self.limit, "return_tensors": "pt"}
        values = []
        bar = tqdm(total=len(parts), desc=title, unit="sequence", disable=not settings.progress)
        with torch.inference_mode(), bar:
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                with model_registry().lock:
                    inputs = self.tokenizer(*_columns([parts[i] for i in batch]), verbose=False, **options)
                values.append(forward(batch, inputs.to(device)).double().cpu().numpy())
                bar.update(len(batch))
        return np.concatenate(values)[np.argsort(order)]


def _columns(parts: Sequence[tuple[str, ...]]) -> list[list[str]]:
    return list(map(list, zip(*parts, strict=True)))
