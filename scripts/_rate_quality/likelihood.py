"""Log-probabilities of texts by a causal language model."""

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from metrics._core.core_encoder import progress_bar
from metrics._core.core_models import ModelFiles, find_device, find_transformer
from metrics._core.core_tokens import token_batches


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

    Parameters
    ----------
    model : a folder, a GGUF file, a folder with one GGUF file, or an id on the Hugging Face Hub
    start : the token before each text; the model's token for the beginning of a text, or else for its end, if None

    Raises
    ------
    ValueError
        If the model cannot be found, or has no such token.
    """

    def __init__(self, model: str | os.PathLike[str], start: str | None = None) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        files, gguf = _find(model)
        options: dict[str, Any] = {"gguf_file": gguf} if gguf else {"local_files_only": True}
        self.identity = files.identity
        self.device = find_device(None)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(files.path, **options)
        loaded = AutoModelForCausalLM.from_pretrained(files.path, dtype=torch.float32, **options)
        self._model = cast(Any, loaded).to(self.device).eval()
        self.start = start or self._tokenizer.bos_token or self._tokenizer.eos_token
        vocabulary = self._tokenizer.get_vocab()
        if self.start not in vocabulary:
            raise ValueError(f"--start must be a token of the model. Got {self.start!r}.")
        self._start: int = vocabulary[self.start]

    def score(self, texts: list[str], progress: bool | None = None) -> Likelihood:
        """Compute the log-probability of each text after the start token."""
        limit = getattr(self._model.config, "max_position_embeddings", 1024) - 1
        encoded = self._tokenizer(texts, truncation=True, max_length=limit, add_special_tokens=False)["input_ids"]
        lengths = np.array([len(own) for own in encoded], dtype=np.int64)
        total = np.zeros(len(texts))
        with progress_bar(len(texts), "Rating", "text", progress) as bar:
            for batch in token_batches(np.maximum(lengths, 1), self.device):
                total[batch] = self._score_batch([encoded[i] for i in batch])
                bar.update(len(batch))
        return Likelihood(total, lengths, self.identity)

    def _score_batch(self, encoded: list[list[int]]) -> np.ndarray:
        width = max(1, *(len(own) for own in encoded))
        ids = torch.full((len(encoded), width + 1), self._start)
        # The loss leaves these labels out. Padding is at the end, which a causal model does not look at.
        labels = torch.full((len(encoded), width), -100)
        for row, own in enumerate(encoded):
            ids[row, 1 : 1 + len(own)] = torch.tensor(own, dtype=torch.long)
            labels[row, : len(own)] = torch.tensor(own, dtype=torch.long)
        with torch.inference_mode():
            logits = self._model(ids.to(self.device)).logits[:, :-1].float()
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), labels.to(self.device), ignore_index=-100, reduction="none"
            )
        return -losses.sum(dim=1).double().cpu().numpy()


def _find(model: str | os.PathLike[str]) -> tuple[ModelFiles, str | None]:
    """Find a model's files, and the name of its GGUF file if it is one."""
    path = Path(model).expanduser()
    found = (
        [path] if path.suffix == ".gguf" and path.is_file() else sorted(path.glob("*.gguf")) if path.is_dir() else []
    )
    if not found or (path / "config.json").is_file():
        return find_transformer(model, "--model"), None
    if len(found) > 1:
        raise ValueError(f"--model must name one GGUF file. {path} has {', '.join(file.name for file in found)}.")
    with found[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ModelFiles(found[0].parent, f"{found[0].stem}@{digest[:8]}"), found[0].name
