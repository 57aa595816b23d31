"""The last steps of training the compact backbone of `gruen`: the normalizer head, the calibration, and the file."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as to_bytes
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional

from scripts.training.gruen.trainer import SCALE, Adapter, Trainer
from text_metrics.commands.shared.files import written_whole
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS

# For the head that predicts the logarithm of the softmax denominator.
TOTAL_SENTENCES = 36_000
TOTAL_EPOCHS = 12


def fit_log_total(trainer: Trainer, seed: int) -> None:
    """Fit the head that predicts the logarithm of the softmax denominator; prints its error on held-out sentences."""
    torch.manual_seed(seed)
    corruptor = trainer.corpus.corruptor(seed)
    chance = random.Random(seed)

    def mixed(sentences: list[list[str]]) -> list[str]:
        corrupted = [chance.random() < 0.5 and corruptor.corrupt(words) for words in sentences]
        return [" ".join(s.words if s else words) for s, words in zip(corrupted, sentences, strict=True)]

    rows, logs, _ = log_totals(trainer, mixed(chance.sample(trainer.corpus.masked, TOTAL_SENTENCES)))
    head: Any = trainer.model.log_total.train()
    for layer in (head[0], head[2]):
        layer.reset_parameters()
    head[2].bias.data.fill_(float(logs.mean()))
    optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3, weight_decay=0.0)
    steps = TOTAL_EPOCHS * (len(rows) // 512)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(TOTAL_EPOCHS):
        for part in torch.randperm(len(rows)).split(512)[: len(rows) // 512]:
            loss = functional.mse_loss(head(rows[part])[:, 0], logs[part])
            loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    rows, logs, owners = log_totals(trainer, mixed(trainer.corpus.held_out))
    with torch.inference_mode():
        errors = (head(rows)[:, 0] - logs).numpy()
    means = np.bincount(owners, errors) / np.bincount(owners)
    token, sentence = (np.sqrt((each**2).mean()) for each in (errors, means))
    print(
        f"log softmax denominator: RMS error {token:.3f} nats a token, {sentence:.3f} nats for the mean of a sentence"
    )


@torch.inference_mode()
def log_totals(trainer: Trainer, sentences: list[str]) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Return for each token of the sentences its query (n, size), its log denominator (n,), and its sentence (n,)."""
    trainer.model.eval()
    rows, logs, owners = [], [], []
    words, bias = trainer.model.bert.embeddings.word_embeddings.weight, trainer.model.vocabulary_bias
    for batch, ids, mask in trainer.in_batches(sentences):
        inner = functional.pad(mask[:, 2:], (1, 1)).bool()
        rows.append(trainer.model.word_query(trainer.model.hidden(ids, mask)[inner]))
        logs.append(functional.linear(rows[-1], words, bias).logsumexp(1))
        owners.append(np.repeat(batch, inner.sum(1).numpy()))
    return torch.cat(rows), torch.cat(logs), np.concatenate(owners)


def count_tokens(trainer: Trainer) -> None:
    """Estimate the frequency of each token; a token that never occurs counts as half an occurrence."""
    counts = np.full(len(trainer.model.log_frequency), 0.5)
    encoded = trainer.tokenizer([" ".join(words) for words in trainer.corpus.masked], add_special_tokens=False)
    counts += np.bincount(np.concatenate(encoded["input_ids"]), minlength=len(counts))
    trainer.model.log_frequency.copy_(torch.from_numpy(np.log(counts / counts.sum())))


def calibrate(trainer: Trainer, seed: int) -> dict[str, tuple[float, float]]:
    """Fit a logistic curve to each output, on held-out sentences; returns slopes and intercepts."""
    corruptor = trainer.corpus.corruptor(seed)
    pairs = [
        (words, corrupted.words)
        for words in trainer.corpus.held_out
        if (corrupted := corruptor.corrupt(words)) is not None
    ]
    values = trainer.predict([" ".join(words) for side in zip(*pairs, strict=True) for words in side])
    labels = [1] * len(pairs) + [0] * len(pairs)
    cola = trainer.predict([sentence for sentence, _ in trainer.corpus.cola_held_out])
    return {
        "likelihood": logistic(values[:, 0] + values[:, 1], labels),
        "soundness": logistic(values[:, 2], labels),
        "acceptability": logistic(cola[:, 3], [label for _, label in trainer.corpus.cola_held_out]),
    }


def save(trainer: Trainer, path: Path, calibration: dict[str, tuple[float, float]]) -> str:
    """Write adapters and heads in half precision; returns the SHA-256 of the file."""
    return save_weights(trainer.model, trainer.adapters, path, {"calibration": json.dumps(calibration)})


def save_weights(model: nn.Module, adapters: dict[str, Adapter], path: Path, metadata: dict[str, str]) -> str:
    """Write adapters, and what of a model is not its encoder, in half precision; returns the SHA-256 of the file."""
    tensors = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("bert.")}
    for name, adapter in adapters.items():
        tensors[f"{ADAPTERS}{name}.down"] = adapter.down.detach()
        tensors[f"{ADAPTERS}{name}.up"] = SCALE * adapter.up.detach()
    halves = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
    data = to_bytes(halves, metadata=metadata)
    with written_whole(path) as temporary:
        temporary.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def logistic(values: np.ndarray, labels: list[int]) -> tuple[float, float]:
    """Fit a logistic curve: slope and intercept."""
    fitted = LogisticRegression(C=1e6).fit(values[:, None], labels)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])
