"""Train the adapters of `model="content"`: writes the weights, whose `sha256sum` belongs into core_content.py.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.content content.safetensors

People wrote sets of five texts that answer a context: one thing in five ways, or five things (McDiv, Tevet and Berant
2021). Low-rank adapters of the last layers of the default encoder learn to tell them apart by the cosines within a set,
with and without the components along the context; cosines of other texts must stay what they are. Each run leaves out
a part of the contexts, and is judged on it; the weights are the mean of the runs.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from safetensors.torch import save_file
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as entropy
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from scripts.arguments import data_folder
from text_metrics.commands.shared.command import Parser, command
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model

BLOCK_TOKENS = 2048
KINDS = ("original", "para_a", "para_b", "para_c", "nonsensical")
GENERATORS = ("gpt", "llama3", "qwen2")


class Sets(NamedTuple):
    """Sets of k texts by the rows of these, (n, k), and of their contexts, (n,), and whether they say one thing."""

    texts: np.ndarray
    contexts: np.ndarray
    same: Tensor

    def take(self, places: np.ndarray) -> "Sets":
        """Return some of the sets."""
        return Sets(*(part[places] for part in self))


class Student:
    """The default encoder, whose last layers have adapters; what the layers below them make of texts is kept."""

    def __init__(self, texts: Sequence[str], recipe: dict[str, Any]) -> None:
        from transformers import AutoTokenizer, BertModel

        path = find_model(DEFAULT_MODEL).path
        bert: Any = BertModel.from_pretrained(path, add_pooling_layer=False).eval().requires_grad_(False)
        tokenizer = AutoTokenizer.from_pretrained(path)
        tokens = tokenizer(list(texts), truncation=True, max_length=recipe["limit"])["input_ids"]
        first = recipe["first_layer"]
        self.lengths = np.array(list(map(len, tokens)))
        self.layers = bert.encoder.layer[first:]
        self.adapted: dict[str, Any] = {}
        self.hidden: list[Tensor] = [torch.empty(0)] * len(tokens)
        with torch.no_grad():
            for rows in self._blocks(np.arange(len(tokens))):
                ids = pad_sequence([torch.tensor(tokens[i]) for i in rows], batch_first=True)
                hidden = read(bert.encoder.layer[:first], bert.embeddings(ids), self._mask(rows))
                for i, vectors in zip(rows, hidden, strict=True):
                    self.hidden[i] = vectors[: self.lengths[i]].half().clone()
        self.original = self.embed_all()
        for name, layer in bert.named_modules():
            if isinstance(layer, nn.Linear) and any(layer is part for part in self.layers.modules()):
                self.adapted[name] = layer
                layer.register_forward_hook(adapt)

    def reset(self, rank: int, seed: int) -> list[nn.Parameter]:
        """Begin with adapters that change nothing; returns their parameters."""
        torch.manual_seed(seed)
        for layer in self.adapted.values():
            layer.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
            layer.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        return [part for layer in self.adapted.values() for part in (layer.down, layer.up)]

    def changes(self) -> dict[str, Tensor]:
        """Return what the adapters add to each weight, by name."""
        return {name: (layer.up @ layer.down).detach() for name, layer in self.adapted.items()}

    def put(self, changes: dict[str, Tensor], rank: int) -> None:
        """Take the adapters of a rank that are nearest to changes of weights."""
        for name, change in changes.items():
            left, values, right = torch.linalg.svd(change, full_matrices=False)
            self.adapted[name].up = nn.Parameter(left[:, :rank] * values[:rank].sqrt())
            self.adapted[name].down = nn.Parameter(values[:rank, None].sqrt() * right[:rank])

    def embed_all(self) -> Tensor:
        """Embed all texts, without gradients: (n, d)."""
        with torch.no_grad():
            parts = np.array_split(np.arange(len(self.hidden)), len(self.hidden) // 512 + 1)
            return torch.cat([self.embed(rows) for rows in parts])

    def embed(self, rows: np.ndarray) -> Tensor:
        """Embed texts: unit vectors, (n, d)."""
        blocks = list(self._blocks(rows))
        embedded = []
        for places in blocks:
            block = rows[places]
            mask = self._mask(block)
            hidden = pad_sequence([self.hidden[i] for i in block], batch_first=True).float()
            sums = (read(self.layers, hidden, mask) * mask[..., None]).sum(1)
            embedded.append(normalize(sums, dim=-1))
        return torch.cat(embedded)[np.argsort(np.concatenate(blocks))]

    def _blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Cut the places of rows, in order of length, into blocks of at most so many tokens, padding included."""
        order = np.argsort(self.lengths[rows], kind="stable")
        start = 0
        while start < len(order):
            padded = self.lengths[rows[order[start:]]] * np.arange(1, len(order) - start + 1)
            stop = start + max(1, int(np.searchsorted(padded, BLOCK_TOKENS, side="right")))
            yield order[start:stop]
            start = stop

    def _mask(self, rows: np.ndarray) -> Tensor:
        """Mark the tokens of texts that are not padding: (b, t)."""
        lengths = torch.tensor(self.lengths[rows])
        return torch.arange(int(lengths.max())) < lengths[:, None]


def read(layers: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the output of layers for the input (b, t, d) with a mask (b, t)."""
    for layer in layers:
        hidden = layer(hidden, mask[:, None, None])
    return hidden


def adapt(layer: Any, given: tuple[Tensor], output: Tensor) -> Tensor:
    """Add what the adapter makes of the input of a layer to its output."""
    return output + given[0] @ layer.down.T @ layer.up.T


def take_out(texts: Tensor, contexts: Tensor) -> Tensor:
    """Take the components along contexts, (n, d), out of unit embeddings of texts, (n, k, d)."""
    along = (texts @ contexts[..., None]) * contexts[:, None]
    return normalize(texts - along, dim=-1)


def vendi(embeddings: Tensor) -> np.ndarray:
    """Return the Vendi scores of sets of unit embeddings, (n, k, d): (n,)."""
    similarities = embeddings.double() @ embeddings.double().mT / embeddings.shape[1]
    shares = torch.linalg.eigvalsh(similarities).clamp(min=1e-12)
    return torch.exp(-(shares * shares.log()).sum(-1)).numpy()


def inner(embeddings: Tensor) -> Tensor:
    """Return the cosines of the pairs of each set, (n, k, d): (n, k (k - 1) / 2)."""
    first, second = torch.triu_indices(embeddings.shape[1], embeddings.shape[1], 1)
    return (embeddings @ embeddings.mT)[:, first, second]


def fit(student: Student, sets: Sets, others: Sets, recipe: dict[str, Any], seed: int) -> None:
    """Train new adapters on sets of people, beside sets whose cosines must stay."""
    adapters = student.reset(recipe["rank"], seed)
    curves = nn.Parameter(torch.tensor([[10.0, -4.0], [10.0, -4.0]]))
    groups = [{"params": adapters, "lr": recipe["rate"]}, {"params": [curves], "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, weight_decay=recipe["decay"])
    steps = recipe["epochs"] * (len(sets.same) // recipe["sets"])
    warmup = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / warmup, (steps - i) / (steps - warmup))
    )
    chance = np.random.default_rng(seed)
    order = np.concatenate([chance.permutation(len(sets.same)) for _ in range(recipe["epochs"])])
    k, n_kept = sets.texts.shape[1], others.texts.shape[1]
    for step in range(steps):
        drawn = sets.take(order[step * recipe["sets"] : (step + 1) * recipe["sets"]])
        kept = others.take(chance.choice(len(others.texts), recipe["others"], replace=False))
        rows = np.concatenate([drawn.texts.ravel(), drawn.contexts, kept.texts.ravel()])
        now, before = student.embed(rows), student.original[rows]
        n = drawn.texts.size
        texts = now[:n].unflatten(0, (-1, k))
        contexts = now[n : n + len(drawn.contexts)]
        losses = []
        for sides, (slope, offset) in zip((texts, take_out(texts, contexts)), curves, strict=True):
            logits = slope * inner(sides) + offset
            losses.append(entropy(logits, drawn.same[:, None].expand_as(logits)))
        now_kept, before_kept = (part[-kept.texts.size :].unflatten(0, (-1, n_kept)) for part in (now, before))
        drift = (now @ now.T - before @ before.T).square().mean()
        drift_kept = (inner(now_kept) - inner(before_kept)).square().mean()
        loss = losses[0].lerp(losses[1], recipe["contexts"])
        loss = loss + recipe["penalty"] * drift + recipe["penalty_kept"] * drift_kept
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(adapters, 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(step, steps, *(f"{v.item():.4f}" for v in (*losses, drift, drift_kept)), flush=True)


def judge(student: Student, sets: Sets, others: Sets, form: np.ndarray) -> dict[str, float]:
    """Judge the adapters on sets of people, and by how far cosines of others are from what they were.

    `form` has the share of distinct words of each set; the AUC "form" compares sets with equal shares only.
    """
    with torch.no_grad():
        texts = student.embed(sets.texts.ravel()).unflatten(0, sets.texts.shape)
        contexts = student.embed(sets.contexts)
        now, before = student.embed(others.texts.ravel()), student.original[others.texts.ravel()]
    now, before = (part.unflatten(0, others.texts.shape) for part in (now, before))
    different = 1 - sets.same.numpy()
    result = {}
    for name, sides in {"plain": texts, "contexts": take_out(texts, contexts)}.items():
        scores = vendi(sides)
        result[name] = roc_auc_score(different, scores)
        result[f"{name}, form"] = matched_auc(different, scores, form)
    result["drift"] = (inner(now) - inner(before)).square().mean().sqrt().item()
    result["rank"] = spearmanr(vendi(now), vendi(before))[0]
    return result


def matched_auc(positive: np.ndarray, scores: np.ndarray, form: np.ndarray) -> float:
    """Return the AUC over pairs whose `form` differs by at most 0.02."""
    high, low = scores[positive == 1], scores[positive == 0]
    near = np.abs(form[positive == 1][:, None] - form[positive == 0]) <= 0.02
    return float((high[:, None] > low)[near].mean())


def fit_map(texts: Tensor, contexts: Tensor, same: Tensor, recipe: dict[str, Any]) -> Tensor:
    """Fit a linear map (d, d) of unit embeddings of sets, (n, k, d), and of their contexts, (n, d), by the same loss."""
    torch.manual_seed(recipe["seed"])
    identity = torch.eye(texts.shape[-1])
    weight = nn.Parameter(identity.clone())
    curves = nn.Parameter(torch.tensor([[10.0, -4.0], [10.0, -4.0]]))
    optimizer = torch.optim.Adam([weight, curves], lr=recipe["rate"])
    for _ in range(recipe["epochs"]):
        for index in torch.randperm(len(same)).split(recipe["sets"]):
            mapped = normalize(texts[index] @ weight.T, dim=-1)
            without = take_out(mapped, normalize(contexts[index] @ weight.T, dim=-1))
            loss = content_loss(mapped, without, same[index], curves, recipe["contexts"])
            loss = loss + recipe["penalty"] * (weight - identity).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return weight.detach()


def content_loss(texts: Tensor, without: Tensor, same: Tensor, curves: Tensor, share: float) -> Tensor:
    """Return the logistic loss of the cosines of sets, (n, k, d), as they are and without contexts: weights 1 - s and s."""
    losses = []
    for embeddings, (slope, offset) in zip((texts, without), curves, strict=True):
        logits = slope * inner(embeddings) + offset
        losses.append(entropy(logits, same[:, None].expand_as(logits)))
    return losses[0].lerp(losses[1], share)
