"""Common parts of the backbones: scores of sentences, windows of long sentences, and batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from tqdm.auto import tqdm

from .core import EncoderSettings, Windows, find_device, model_registry, split_windows, token_batches

if TYPE_CHECKING:
    import torch

# From the indices of a batch, (b,), and its tokens to its values, (b, ...).
Forward = Callable[[np.ndarray, Any], "torch.Tensor"]


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


class Backbone(ABC):
    """A model of grammaticality. `identity` has the exact weights, for the signature."""

    identity: dict[str, str]

    @abstractmethod
    def score_sentences(self, sentences: list[str]) -> SentenceScores:
        """Score n different sentences."""

    @abstractmethod
    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Combine both scores of n sentences: (n,), at least 0; higher is better."""

    def grade_text(self, scores: SentenceScores, rows: list[int]) -> float:
        """Grade a text by the mean scores of its sentences, which are these rows; 0 without sentences."""
        if not rows:
            return 0.0
        return float(self.grammaticality(scores.likelihood[rows].mean(), scores.acceptability[rows].mean()))


class Loaded(NamedTuple):
    """A model in memory, and the most tokens that it reads, special ones included."""

    model: Any
    tokenizer: Any
    limit: int

    def tokenize(self, parts: Sequence[tuple[str, ...]], cut: bool = False) -> Any:
        """Tokenize n texts or pairs of texts, whole or cut to the limit."""
        columns = map(list, zip(*parts, strict=True))
        with model_registry().lock:
            return self.tokenizer(*columns, truncation=cut, max_length=self.limit if cut else None, verbose=False)

    def pad(self, tokens: Any, batch: np.ndarray, device: str) -> Any:
        """Pad the tokens of the sequences of a batch, as the model takes them."""
        unpadded = {}
        for name, rows in tokens.items():
            unpadded[name] = [rows[i] for i in batch]
        return self.tokenizer.pad(unpadded, return_tensors="pt", verbose=False).to(device)

    def read_windows(self, sentences: list[str], change: Callable[[str], str] = str) -> tuple[Windows, Any]:
        """Tokenize n sentences, split between words where they are too long; returns the tokens of the windows, too.

        `change` is what the model reads in place of a window.
        """
        with model_registry().lock:
            room = self.limit - self.tokenizer.num_special_tokens_to_add(False)
            windows = split_windows(self.tokenizer, sentences, room)
        return windows, self.tokenize([(change(part),) for part in windows.parts])

    def run(self, tokens: Any, forward: Forward, settings: EncoderSettings, title: str) -> np.ndarray:
        """Run the model over the tokens of n sequences in padded batches, the longest first.

        `title` names the progress bar. Returns an ndarray of shape (n, ...), float64, in the order of the tokens.
        """
        import torch

        device = find_device(settings.device)
        lengths = count_tokens(tokens)
        values = []
        order = []
        bar = tqdm(total=len(lengths), desc=title, unit="sequence", disable=not settings.progress)
        with torch.inference_mode(), bar:
            for batch in token_batches(lengths, device, settings.batch_size):
                inputs = self.pad(tokens, batch, device)
                values.append(forward(batch, inputs).double().cpu().numpy())
                order.append(batch)
                bar.update(len(batch))
        return np.concatenate(values)[np.argsort(np.concatenate(order))]


def count_tokens(tokens: Any) -> np.ndarray:
    """Count the tokens of n sequences, special ones included: (n,)."""
    return np.array(list(map(len, tokens["input_ids"])))
