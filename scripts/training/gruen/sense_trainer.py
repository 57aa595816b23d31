"""Training of the component `sense` of `gruen`: adapters over the compact backbone, and a head, learn ratings."""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from scripts.training.gruen.finishing import save_weights
from scripts.training.gruen.teacher import batches_of_similar_length
from scripts.training.gruen.trainer import MAX_TOKENS, add_adapters
from text_metrics.metrics._core.core_tokens import token_batches
from text_metrics.metrics.gruen.gruen_backbone import pad
from text_metrics.metrics.gruen.gruen_compact import load_encoder, merge_adapters, read_weights
from text_metrics.metrics.gruen.gruen_sense import SenseModel, Weights

RANK = 10
EPOCHS = 5
BATCH = 64
RATE = 5e-4
_WARM_STEPS = 60
# A rating of 0 or 1 has no logit.
_CLIP = 0.01


class Rated(NamedTuple):
    """A sentence with its rating, in [0, 1]."""

    text: str
    rating: float


class SenseTrainer:
    """A model of sense in training: adapters and a head over the compact backbone."""

    def __init__(self, backbone: Weights, seed: int) -> None:
        torch.manual_seed(seed)
        self._random = random.Random(seed)
        bert, self._tokenizer = load_encoder()
        merge_adapters(bert, read_weights(*backbone)[0])
        self._adapters = add_adapters(bert, RANK)
        self.model = SenseModel(bert)
        self._curve = 1.0, 0.0

    def train(self, rated: list[Rated]) -> None:
        """Learn the logits of the ratings, standardized, by their squared error."""
        logits = torch.logit(torch.tensor([each.rating for each in rated]).clamp(_CLIP, 1 - _CLIP))
        slope, intercept = self._curve = float(logits.std()), float(logits.mean())
        rows = [(text, (logit - intercept) / slope) for (text, _), logit in zip(rated, logits.tolist(), strict=True)]
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01, betas=(0.9, 0.98))
        steps = EPOCHS * (len(rows) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / _WARM_STEPS, max(0.02, 1 - step / steps))
        )
        self.model.train()
        start, step, smoothed = time.monotonic(), 0, 1.0
        for _ in range(EPOCHS):
            for batch in batches_of_similar_length(rows, self._random, BATCH):
                texts, expected = zip(*batch, strict=True)
                loss = functional.mse_loss(self._logits(self._encode(texts)), torch.tensor(expected))
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                step += 1
                smoothed = 0.98 * smoothed + 0.02 * loss.item()
                if step % 100 == 0:
                    print(f"step {step} of {steps}, {time.monotonic() - start:.0f} s: {smoothed:.3f}", flush=True)

    @torch.inference_mode()
    def rate(self, texts: list[str]) -> np.ndarray:
        """Rate n sentences: logits on the scale of training, (n,)."""
        self.model.eval()
        encoded, logits = self._encode(texts), np.empty(len(texts))
        for batch in token_batches(np.array(list(map(len, encoded))), "cpu"):
            logits[batch] = self._logits([encoded[i] for i in batch]).double().numpy()
        return logits

    def save(self, path: Path) -> str:
        """Write the adapters, the head and the curve from logits to ratings; returns the SHA-256 of the file."""
        return save_weights(self.model, self._adapters, path, {"curve": json.dumps(self._curve)})

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self._tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]

    def _logits(self, encoded: list[list[int]]) -> torch.Tensor:
        ids, mask = map(torch.from_numpy, pad(encoded, 0))
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.model.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        return self.model.judge(hidden.float(), mask)
