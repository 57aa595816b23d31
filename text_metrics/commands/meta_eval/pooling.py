"""A bare transformer as a sentence encoder, by the pooling that its authors used: SimCSE's is the pooler's output."""

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from text_metrics.metrics._core.core_models import find_device, find_transformer
from text_metrics.metrics._core.core_tokens import token_batches

if TYPE_CHECKING:
    import torch

POOLINGS = ("mean", "cls", "pooler")


class PooledTransformer:
    """Embed texts by a transformer alone.

    Parameters
    ----------
    model : a folder, or an id on the Hugging Face Hub
    pooling : "mean" over a text's tokens, "cls" for the first token, or "pooler" for the model's own pooled output
    precision : torch dtype; as the model is stored if None
    """

    def __init__(self, model: str | os.PathLike[str], pooling: str, precision: str | None = None) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}. Got {pooling!r}.")
        files = find_transformer(model, "model")
        self.pooling = pooling
        self.device = find_device(None)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(files.path, local_files_only=True)
        self._model: Any = AutoModel.from_pretrained(
            files.path, local_files_only=True, dtype="auto" if precision is None else getattr(torch, precision)
        )
        if pooling == "pooler" and getattr(self._model, "pooler", None) is None:
            raise ValueError(f"pooling 'pooler' needs a model with a pooler. {files.identity} has none.")
        self._model.to(self.device).eval()
        stored = str(self._model.dtype).removeprefix("torch.")
        self.signed = {"model": files.identity, "pooling": pooling, "precision": stored}

    def encode(self, texts: list[str]) -> np.ndarray:
        """Embed n texts; ndarray of shape (n, d), float32."""
        import torch

        # A RoBERTa's positions start after its padding index, so that it reads fewer tokens than it has positions.
        limit = min(self._tokenizer.model_max_length, self._model.config.max_position_embeddings - 2)
        ids = self._tokenizer(texts, truncation=True, max_length=limit)["input_ids"]
        embeddings = np.empty((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for batch in token_batches(np.array([len(tokens) for tokens in ids]), self.device):
            padded = self._tokenizer.pad({"input_ids": [ids[i] for i in batch]}, return_tensors="pt").to(self.device)
            with torch.inference_mode():
                output = self._model(**padded)
            embeddings[batch] = self._pool(output, padded["attention_mask"]).float().cpu().numpy()
        return embeddings

    def _pool(self, output: Any, mask: "torch.Tensor") -> "torch.Tensor":
        if self.pooling == "pooler":
            return output.pooler_output
        if self.pooling == "cls":
            return output.last_hidden_state[:, 0]
        weights = mask.unsqueeze(-1).to(output.last_hidden_state.dtype)
        return (output.last_hidden_state * weights).sum(dim=1) / weights.sum(dim=1)
