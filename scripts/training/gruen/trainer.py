"""Training of the compact backbone of `gruen`: its stages, the losses of a step, and the batches of each task."""

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from scripts.training.gruen.corpus import Corpus
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model
from text_metrics.metrics._core.core_tokens import token_batches
from text_metrics.metrics.gruen.gruen_backbone import pad
from text_metrics.metrics.gruen.gruen_compact import CompactModel, sentence_values

RANK = 32
SCALE = 2.0
MAX_TOKENS = 64
DROPOUT = 0.1
LAYERS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class Stage(NamedTuple):
    """Settings of one stage.

    pairs, masked, cola, judged : sentences of each task in a step
    adapter_rate, head_rate : initial learning rates, which fall linearly
    renamed : the share of sentences whose names are replaced
    """

    steps: int
    pairs: int
    masked: int
    cola: int
    adapter_rate: float
    head_rate: float
    judged: int = 0
    cola_weight: float = 1.0
    other_weight: float = 1.0
    renamed: float = 0.0
    dropout: bool = False


class Adapter(nn.Module):
    """A frozen linear layer with a trained low-rank addition."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Run the layer: (..., in) to (..., out)."""
        added = functional.linear(functional.linear(inputs, self.down), self.up)
        return functional.linear(inputs, self.layer.weight, self.layer.bias) + SCALE * added


def add_adapters(bert: Any, rank: int) -> dict[str, Adapter]:
    """Freeze a BERT, and put an adapter around each linear layer; returns them by the names of the layers."""
    bert.requires_grad_(False)
    adapters = {}
    for number in range(bert.config.num_hidden_layers):
        for layer in LAYERS:
            name = f"encoder.layer.{number}.{layer}"
            adapters[name] = Adapter(bert.get_submodule(name), rank)
            bert.set_submodule(name, adapters[name])
    return adapters


class Trainer:
    """A compact model in training."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        from transformers import AutoTokenizer, BertModel

        torch.manual_seed(seed)
        self.corpus = corpus
        path = find_model(DEFAULT_MODEL).path
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        # At these lengths, eager attention is the fastest in bfloat16.
        bert: Any = BertModel.from_pretrained(path, attn_implementation="eager", add_pooling_layer=False)
        self.adapters = add_adapters(bert, RANK)
        self.model = CompactModel(bert)
        self.judged: list[tuple[str, float]] = []

    def train(self, stage: Stage, seed: int, made: float) -> None:
        """Run one stage; `made` is the share of names made of common words."""
        self.random = random.Random(seed)
        self.corruptor, self.renamer = self.corpus.corruptor(seed), self.corpus.renamer(seed, made)
        adapters = [parameter for adapter in self.adapters.values() for parameter in (adapter.down, adapter.up)]
        heads = [parameter for name, parameter in self.model.named_parameters() if not name.startswith("bert.")]
        optimizer = torch.optim.AdamW(
            [{"params": adapters, "lr": stage.adapter_rate}, {"params": heads, "lr": stage.head_rate}],
            weight_decay=0.01,
            betas=(0.9, 0.98),
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / 100, max(0.02, 1 - step / stage.steps))
        )
        self.model.bert.train(stage.dropout)
        streams = (
            self.batches(self.corpus.sentences, stage.pairs),
            self.batches(self.corpus.masked, stage.masked),
            self.batches(self.corpus.cola, stage.cola),
            self.batches(self.judged, stage.judged),
        )
        smoothed: dict[str, float] = {}
        start = time.monotonic()
        for step in range(1, stage.steps + 1):
            losses = self.losses(stage, *map(next, streams))
            torch.stack(list(losses.values())).sum().backward()
            nn.utils.clip_grad_norm_(adapters + heads, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            for name, loss in losses.items():
                smoothed[name] = 0.98 * smoothed.get(name, 0.0) + 0.02 * loss.item()
            if step % 50 == 0:
                shown = " ".join(f"{name} {loss:.3f}" for name, loss in smoothed.items())
                print(f"step {step}, {time.monotonic() - start:.0f} s: {shown}", flush=True)

    def losses(
        self, stage: Stage, pairs: list[Any], masked: list[Any], cola: list[Any], judged: list[Any]
    ) -> dict[str, torch.Tensor]:
        """Compute the weighted losses of one step."""
        model = self.model
        with torch.autocast("cpu", torch.bfloat16):
            ids, mask, wrong, inner = self.pair_batch(stage, pairs)
            hidden = model.hidden(ids, mask).float()
            inputs, masked_mask, expected, chosen = self.masked_batch(masked)
            predicted = model.vocabulary_logits(model.hidden(inputs, masked_mask)[chosen])
            cola_ids, cola_mask = self.tensors(self.encode([sentence for sentence, _ in cola + judged]))
            cola_hidden = model.hidden(cola_ids, cola_mask)
        half = len(ids) // 2
        pooled = model.pool(hidden, mask)
        sound = self.logits(model.soundness, pooled)
        clean = torch.cat([torch.ones(half), torch.zeros(half)])
        faults = model.word_fault(hidden)[..., 0]
        fault_losses = functional.binary_cross_entropy_with_logits(
            faults, wrong, reduction="none", pos_weight=torch.tensor(2.0)
        )
        cola_logits = self.logits(model.acceptability, model.pool(cola_hidden.float(), cola_mask))
        labels = torch.tensor([float(label) for _, label in cola + judged])
        cross_entropy = functional.binary_cross_entropy_with_logits
        auxiliary = {
            "sound": cross_entropy(sound, clean),
            "rank": 0.5 * functional.softplus(sound[half:] - sound[:half]).mean(),
            "words": (fault_losses * inner).sum() / inner.sum(),
            # A small batch may have no masked token.
            "masked": 0.3 * functional.cross_entropy(predicted.float(), expected[chosen]).nan_to_num(),
            # A corrupted sentence is unacceptable, though unlike those in CoLA.
            "corrupted": 0.15 * cross_entropy(self.logits(model.acceptability, pooled), clean),
        }
        losses = {name: stage.other_weight * loss for name, loss in auxiliary.items()}
        n = len(cola)
        losses["cola"] = stage.cola_weight * cross_entropy(cola_logits[:n], labels[:n])
        if judged:
            losses["taught"] = cross_entropy(cola_logits[n:], labels[n:].sigmoid())
        return losses

    @staticmethod
    def logits(head: nn.Module, pooled: torch.Tensor) -> torch.Tensor:
        """Run a head with dropout before each layer: (b, k) to (b,)."""
        first, activation, last = head.children()
        hidden = activation(first(functional.dropout(pooled, DROPOUT)))
        return last(functional.dropout(hidden, DROPOUT))[:, 0]

    def batches(self, items: list[Any], size: int) -> Iterator[list[Any]]:
        """Yield batches without end, each of items of similar length."""
        while not size:
            yield []
        while True:
            order = list(range(len(items)))
            self.random.shuffle(order)
            for start in range(0, len(order) - size * 40 + 1, size * 40):
                part = sorted(order[start : start + size * 40], key=lambda i: characters(items[i]))
                groups = [part[i : i + size] for i in range(0, len(part), size)]
                self.random.shuffle(groups)
                for group in groups:
                    yield [items[i] for i in group]

    def pair_batch(self, stage: Stage, sentences: list[list[str]]) -> tuple[torch.Tensor, ...]:
        """Make token ids and mask of sentences and their corrupted forms; which tokens are wrong; which are words."""
        good: list[list[str]] = []
        bad: list[list[str]] = []
        wrong: list[list[bool]] = []
        for words in sentences:
            if stage.renamed and self.random.random() < stage.renamed:
                words = self.renamer.rename(words)
            corrupted = self.corruptor.corrupt(words)
            if corrupted is None or not corrupted.words:
                continue
            # The final mark alone must not give the answer away.
            chance = self.random.random()
            good.append(without_stop(words, chance))
            bad.append(corrupted.words if corrupted.how == "truncated" else without_stop(corrupted.words, chance))
            wrong.append(corrupted.wrong)
        encoded = self.tokenizer(good + bad, is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        ids, mask = self.tensors(encoded["input_ids"])
        faults, inner = torch.zeros(ids.shape), torch.zeros(ids.shape)
        for row in range(len(ids)):
            for place, word in enumerate(encoded.word_ids(row)):
                if word is not None:
                    inner[row, place] = 1
                    if row >= len(good):
                        faults[row, place] = float(wrong[row - len(good)][word])
        return ids, mask, faults, inner

    def masked_batch(self, sentences: list[list[str]]) -> tuple[torch.Tensor, ...]:
        """Make token ids with some masked or replaced; the mask; the true ids; and which tokens were chosen.

        More tokens are replaced than in BERT's training, because the likelihood is computed in one pass over unmasked
        words.
        """
        encoded = self.tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        ids, mask = self.tensors(encoded["input_ids"])
        special = (ids == self.tokenizer.cls_token_id) | (ids == self.tokenizer.sep_token_id) | (mask == 0)
        chosen = (torch.rand(ids.shape) < 0.2) & ~special
        chance = torch.rand(ids.shape)
        inputs = ids.clone()
        inputs[chosen & (chance < 0.6)] = self.tokenizer.mask_token_id
        # Drawn from the batch, and so in proportion to their frequency.
        random_ids = ids[~special][torch.randint(int((~special).sum()), ids.shape)]
        replaced = chosen & (chance >= 0.6) & (chance < 0.85)
        inputs[replaced] = random_ids[replaced]
        return inputs, mask, ids, chosen

    @staticmethod
    def tensors(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Pad token ids: ids and mask, both (b, longest)."""
        ids, mask = pad(sequences, 0)
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Tokenize sentences, with special tokens."""
        return self.tokenizer(sentences, truncation=True, max_length=MAX_TOKENS)["input_ids"]

    def in_batches(self, sentences: list[str]) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
        """Yield batches of sentences of similar length: their indices, their token ids and their mask."""
        encoded = self.encode(sentences)
        for batch in token_batches(np.array(list(map(len, encoded))), "cpu"):
            yield batch, *self.tensors([encoded[i] for i in batch])

    @torch.inference_mode()
    def predict(self, sentences: list[str]) -> np.ndarray:
        """Return the values of `sentence_values` for all sentences: (n, 4)."""
        self.model.eval()
        values = np.empty((len(sentences), 4))
        for batch, ids, mask in self.in_batches(sentences):
            values[batch] = sentence_values(self.model, ids, mask).numpy()
        return values


def characters(item: Any) -> int:
    """Count the characters of a sentence, given as words or as text with a label."""
    return len(item[0]) if isinstance(item, tuple) else len(" ".join(item))


def without_stop(words: list[str], chance: float) -> list[str]:
    """Drop the final mark where chance is below 1/4."""
    return words[:-1] if chance < 0.25 and words[-1] in ".!?" else words
