"""Log-probabilities of texts by a causal language model, and ratings in [0, 1] from them, corrected for length."""

from typing import NamedTuple

import numpy as np

from text_metrics.commands.shared.causal import CausalModel
from text_metrics.metrics._core.core_encoder import progress_bar
from text_metrics.metrics._core.core_tokens import token_batches


class Likelihood(NamedTuple):
    """Log-probabilities of n texts.

    total : ndarray of shape (n,), natural logarithms; 0 for a text without tokens
    tokens : ndarray of shape (n,), int
    identity : the exact weights
    """

    total: np.ndarray
    tokens: np.ndarray
    identity: str


class LanguageModel:
    """A causal language model.

    `start` is the token before each text; by default the model's for the beginning of a text, or else for its end.
    """

    def __init__(self, model: CausalModel, start: str | None = None) -> None:
        self.identity, self.device, self._tokenizer, self._model = model
        self.start = start or self._tokenizer.bos_token or self._tokenizer.eos_token
        vocabulary = self._tokenizer.get_vocab()
        if self.start not in vocabulary:
            raise ValueError(f"--start must be a token of the model. Got {self.start!r}.")
        self._start: int = vocabulary[self.start]

    def score(self, texts: list[str], progress: bool | None = None) -> Likelihood:
        """Compute the log-probability of each text after the start token."""
        limit = getattr(self._model.config, "max_position_embeddings", 1024) - 1
        encoded = self._tokenizer(texts, truncation=True, max_length=limit, add_special_tokens=False)["input_ids"]
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        total = np.zeros(len(texts))
        with progress_bar(len(texts), "Rating", "text", progress) as bar:
            for batch in token_batches(np.maximum(lengths, 1), self.device):
                total[batch] = self._score_batch([encoded[i] for i in batch])
                bar.update(len(batch))
        return Likelihood(total, lengths, self.identity)

    def _score_batch(self, encoded: list[list[int]]) -> np.ndarray:
        import torch

        tokens = [torch.tensor(ids, dtype=torch.long) for ids in encoded]
        # The loss leaves these labels out. Padding is at the end, which a causal model does not look at.
        labels = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-100)
        ids = torch.nn.functional.pad(labels.masked_fill(labels < 0, self._start), (1, 0), value=self._start)
        with torch.inference_mode():
            logits = self._model(ids.to(self.device)).logits[:, :-1].float()
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), labels.to(self.device), ignore_index=-100, reduction="none"
            )
        return -losses.sum(dim=1).double().cpu().numpy()


class Reference:
    """What good texts of some kind look like to a language model.

    A text of n tokens has a log-probability of about intercept + slope · n, with a deviation that grows as √n. The
    rating of a text is the share of reference texts that deviate further downwards.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        if len(likelihood.total) < 20 or len(np.unique(likelihood.tokens)) < 2:
            raise ValueError(
                f"the reference must hold at least 20 texts, of different lengths. Got {len(likelihood.total)} of "
                f"{len(np.unique(likelihood.tokens))} different lengths in tokens."
            )
        # Weighted least squares, by the deviation's variance.
        self.slope, self.intercept = np.polyfit(
            likelihood.tokens, likelihood.total, 1, w=1 / np.sqrt(np.maximum(likelihood.tokens, 1))
        )
        self._deviations = np.sort(self._deviation(likelihood))

    def rate(self, likelihood: Likelihood) -> np.ndarray:
        """Rate texts; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
        below = np.searchsorted(self._deviations, self._deviation(likelihood), "left")
        ratings = below / len(self._deviations)
        return np.where(likelihood.tokens > 0, ratings, 0.0)

    def _deviation(self, likelihood: Likelihood) -> np.ndarray:
        expected = self.intercept + self.slope * likelihood.tokens
        return (likelihood.total - expected) / np.sqrt(np.maximum(likelihood.tokens, 1))


def per_token(likelihood: Likelihood) -> np.ndarray:
    """Geometric mean of the tokens' probabilities; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
    return np.where(likelihood.tokens > 0, np.exp(likelihood.total / np.maximum(likelihood.tokens, 1)), 0.0)
