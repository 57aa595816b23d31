"""The component "sense": whether what a sentence says could happen and makes sense.

Low-rank adapters over the compact backbone, and a head, have learnt the answers of an instruct model to this question.
The model card says how.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from .core_encoder import EncoderSettings
from .core_models import FairLock, find_device, model_registry
from .gruen_backbone import combine_windows, pad, run_batches
from .gruen_compact import CompactModel, heads, load_encoder, logistic, merge_adapters, read_weights, read_windows

SENSE_FILE = "gruen_sense.safetensors"
_UNITS = 64
_DROPOUT = 0.1


class Weights(NamedTuple):
    """A weights file of the metric, and its expected SHA-256."""

    path: Path
    sha256: str


class SenseModel(nn.Module):
    """A BERT, and a head that reads the embedding of the first token, and the mean and the maximum over all tokens."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert
        size = 3 * bert.config.hidden_size
        # Dropout acts in training only.
        self.head = nn.Sequential(
            nn.Dropout(_DROPOUT), nn.Linear(size, _UNITS), nn.GELU(), nn.Dropout(_DROPOUT), nn.Linear(_UNITS, 1)
        )

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits of the rows of a batch: (b, t) to (b,)."""
        return self.judge(self.bert(input_ids=ids, attention_mask=mask).last_hidden_state, mask)

    def judge(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits of rows from their contextual embeddings: (b, t, size) to (b,)."""
        return self.head(CompactModel.pool(hidden, mask))[:, 0]


class SenseRater:
    """Rates whether sentences make sense.

    Parameters
    ----------
    backbone, sense : the weights of the compact backbone, and of the adapters and the head over it
    settings : precision ("float32" if None), device, batch size and progress

    Raises
    ------
    ValueError
        If a file or the default encoder is not the published one, or cannot be found.
    """

    def __init__(self, backbone: Weights, sense: Weights, settings: EncoderSettings) -> None:
        self._settings, self._device = settings, find_device(settings.device)
        precision = settings.precision or "float32"
        self._model, self._tokenizer, self._curve, self._lock = _load(backbone, sense, precision, self._device)
        self.identity = {"sense": f"{backbone.sha256[:8]}+{sense.sha256[:8]}", "sense_precision": precision}

    def rate(self, sentences: list[str]) -> np.ndarray:
        """Rate n different sentences by the probability that the instruct model says yes: (n,), in [0, 1]."""
        pieces, owners, _ = read_windows(self._tokenizer, self._lock, sentences)
        lengths = np.array(list(map(len, pieces)))

        def forward(batch: np.ndarray) -> torch.Tensor:
            return self._model(
                *(torch.from_numpy(part).to(self._device) for part in pad([pieces[i] for i in batch], 0))
            )

        logits = run_batches(lengths, forward, self._settings, "Sense")
        return logistic(combine_windows(logits, lengths - 2, owners, len(sentences)), *self._curve)


class _Loaded(NamedTuple):
    model: SenseModel
    tokenizer: Any
    curve: tuple[float, float]
    lock: FairLock


def _load(backbone: Weights, sense: Weights, precision: str, device: str) -> _Loaded:
    """Load the model, or take the one that this process has loaded."""
    registry = model_registry()
    key = ("gruen sense", backbone.sha256, sense.sha256, device, precision)
    with registry.lock:
        if key not in registry.models:
            registry.models[key] = _read(backbone, sense, precision, device)
        return registry.models[key]


def _read(backbone: Weights, sense: Weights, precision: str, device: str) -> _Loaded:
    adapters, _ = read_weights(*backbone)
    tensors, metadata = read_weights(*sense)
    bert, tokenizer = load_encoder()
    merge_adapters(bert, adapters)
    merge_adapters(bert, tensors)
    model = SenseModel(bert)
    model.load_state_dict(heads(tensors), strict=False)
    model.eval().to(device=device, dtype=getattr(torch, precision))
    return _Loaded(model, tokenizer, tuple(json.loads(metadata["curve"])), FairLock())
