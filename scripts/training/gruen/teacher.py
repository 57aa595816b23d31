"""A larger encoder that is fine-tuned on CoLA, and then teaches the compact backbone of `gruen`.

All of it but the embeddings is fine-tuned on the Corpus of Linguistic Acceptability. Its logits for many more sentences
than CoLA has are what the backbone learns from. See `scripts/training/train_gruen_compact.py`.
"""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

EPOCHS = 4
BATCH = 32
RATE = 3e-5
HEAD_RATE = 5e-4
DROPOUT = 0.1
MAX_TOKENS = 64


class Teacher(nn.Module):
    """An encoder and a head that judges a sentence: one logit, above 0 if it is more likely acceptable than not.

    Parameters
    ----------
    encoder : a Hub id or a local path that transformers' Auto classes load
    """

    def __init__(self, encoder: str | Path, seed: int) -> None:
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        torch.manual_seed(seed)
        self.tokenizer = AutoTokenizer.from_pretrained(encoder)
        self.encoder = AutoModel.from_pretrained(encoder, dtype=torch.float32)
        self.encoder.get_input_embeddings().requires_grad_(False)
        width = self.encoder.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(DROPOUT), nn.Linear(2 * width, width), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(width, 1)
        )

    def forward(self, sentences: Sequence[str]) -> torch.Tensor:
        """Judge sentences: n texts to (n,) logits."""
        encoded = self.tokenizer(
            list(sentences), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        )
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.encoder(
                input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]
            ).last_hidden_state.float()
        mask = encoded["attention_mask"][..., None]
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return self.head(torch.cat([mean, hidden[:, 0]], 1))[:, 0]

    def fit(self, rows: Sequence[tuple[str, float]], seed: int) -> None:
        """Fine-tune on sentences and labels, 1 if acceptable."""
        shuffler = random.Random(seed)
        steps = EPOCHS * (len(rows) // BATCH)
        body = [parameter for parameter in self.encoder.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(
            [{"params": body, "lr": RATE}, {"params": list(self.head.parameters()), "lr": HEAD_RATE}],
            weight_decay=0.01,
            fused=True,
        )
        warm = max(1, steps // 16)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        self.train()
        start = time.monotonic()
        smoothed = 0.7
        step = 0
        while step < steps:
            for batch in batches_of_similar_length(rows, shuffler):
                labels = torch.tensor([float(label) for _, label in batch])
                loss = functional.binary_cross_entropy_with_logits(self([sentence for sentence, _ in batch]), labels)
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                step += 1
                smoothed = 0.98 * smoothed + 0.02 * loss.item()
                if step % 50 == 0:
                    print(f"step {step} of {steps}, {time.monotonic() - start:.0f} s: {smoothed:.3f}", flush=True)

    @torch.inference_mode()
    def judge(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the logits of sentences: (n,)."""
        self.eval()
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        logits = np.empty(len(sentences), dtype=np.float32)
        for start in range(0, len(order), 2 * BATCH):
            part = order[start : start + 2 * BATCH]
            logits[part] = self([sentences[i] for i in part]).numpy()
        return logits


def batches_of_similar_length(
    rows: Sequence[tuple[str, float]], shuffler: random.Random, size: int = BATCH
) -> list[list[tuple[str, float]]]:
    """Make full batches of sentences of similar length, in random order."""
    order = shuffler.sample(range(len(rows)), len(rows))
    wide = 16 * size
    order = [
        i
        for start in range(0, len(order), wide)
        for i in sorted(order[start : start + wide], key=lambda i: len(rows[i][0]))
    ]
    batches = [[rows[i] for i in order[start : start + size]] for start in range(0, len(order) - size + 1, size)]
    shuffler.shuffle(batches)
    return batches
