"""The compact backbone: low-rank adapters and small heads over the weights of the default sentence encoder.

One pass over a sentence gives its likelihood and its acceptability. The model card says how it was trained.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .core_encoder import DEFAULT_MODEL, PRECISIONS, find_device, find_model, model_registry
from .core_inputs import parse_choice
from .core_unpadded import prepare, unpad_body
from .gruen_backbone import SentenceScores, combine_windows, pad, progress_bar, token_batches, windows

WEIGHTS_FILE = "gruen_compact.safetensors"
# Tokens in a window, special ones included: the training read no longer ones.
_LIMIT = 128
ADAPTERS = "adapters."
# In the paper's formula, likelihood and a logit of acceptability together range over 8, and likelihood over 1.
_LIKELIHOOD_SHARE = 1 / 8


class Calibration(NamedTuple):
    """Constants that turn what the heads give into probabilities; fitted on text kept apart from training.

    likelihood : (slope, intercept) of a logistic curve of a token's mean loss over that of its frequency, in nats
    soundness, acceptability : (slope, intercept) of a logistic curve of each head's logit
    """

    likelihood: tuple[float, float]
    soundness: tuple[float, float]
    acceptability: tuple[float, float]


class Loaded(NamedTuple):
    """A compact model in memory; the lock is for whoever uses it, since a tokenizer keeps its settings."""

    model: "CompactModel"
    tokenizer: Any
    calibration: Calibration
    lock: Any


class CompactModel(nn.Module):
    """A BERT with the heads of this backbone; the heads read the first token, the mean and the greatest of each."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        size, vocabulary = bert.config.hidden_size, bert.config.vocab_size
        self.bert = bert
        self.soundness = _head(3 * size, size)
        self.acceptability = _head(3 * size, size)
        self.word_fault = nn.Linear(size, 1)
        self.transform = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.vocabulary_bias = nn.Parameter(torch.zeros(vocabulary))
        self.log_frequency: torch.Tensor
        self.register_buffer("log_frequency", torch.zeros(vocabulary))
        # Fitted when all else is trained.
        self.log_total = nn.Sequential(
            nn.utils.skip_init(nn.Linear, size, 2 * size), nn.GELU(), nn.utils.skip_init(nn.Linear, 2 * size, 1)
        )

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Contextual embeddings: (b, t) to (b, t, size)."""
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    @staticmethod
    def pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """First, mean and greatest over the tokens: (b, t, size) to (b, 3 * size)."""
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        greatest = hidden.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1)
        return torch.cat([hidden[:, 0], mean, greatest], dim=-1)

    def vocabulary_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Predict tokens, by the encoder's own word embeddings: (n, size) to (n, vocabulary)."""
        words = self.bert.embeddings.word_embeddings.weight
        return functional.linear(self.word_query(hidden), words, self.vocabulary_bias)

    def token_losses(self, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of the tokens (n,) by their contextual embeddings (n, size): (n,).

        A head gives the logarithm of the sum over the vocabulary, which would cost as much as the encoder; the model
        card says how near it comes.
        """
        rows = self.word_query(hidden)
        own = (rows * self.bert.embeddings.word_embeddings.weight[expected]).sum(1) + self.vocabulary_bias[expected]
        return (self.log_total(rows)[:, 0] - own).float()

    def word_query(self, hidden: torch.Tensor) -> torch.Tensor:
        """Give what is compared with the word embeddings: (..., size) to (..., size)."""
        return self.norm(functional.gelu(self.transform(hidden)))


def _head(inputs: int, units: int) -> nn.Sequential:
    """Make a head that gives one logit."""
    return nn.Sequential(nn.Linear(inputs, units), nn.GELU(), nn.Linear(units, 1))


class CompactBackbone:
    """The embedded default: no network, no other weights than those of the metric and of the default encoder.

    Parameters
    ----------
    weights : the safetensors file of the metric
    sha256 : what its digest must be
    precision : "float32" (or what is as good, if None), "bfloat16", "float16" or, on the CPU, "int8"; heads are float32
        where the CPU rounds to whole numbers

    Raises
    ------
    ValueError
        If the file or the default encoder is not the published one, or cannot be found.
    """

    components = ("grammaticality",)

    def __init__(self, weights: Path, sha256: str, *, precision: str | None = None, device: str | None = None) -> None:
        if precision is not None:
            parse_choice(precision, "precision", PRECISIONS)
        self._device = find_device(device)
        self._loaded = _load(weights, sha256, precision, self._device)
        self.identity = {"backbone": f"compact@{sha256[:8]}", "precision": precision or "float32"}

    def score_sentences(
        self, sentences: list[str], batch_size: int | None = None, progress: bool | None = None
    ) -> SentenceScores:
        """Score n different sentences; both scores are probabilities, in [0, 1]."""
        model, _, calibration, _ = self._loaded
        pieces, owners, _ = self._windows(sentences)
        values = np.empty((len(pieces), 4))
        for batch, ids, mask in self._batches(pieces, batch_size, progress):
            values[batch] = sentence_values(model, ids, mask).cpu().numpy()
        tokens = np.array(list(map(len, pieces))) - 2
        loss, frequency, soundness, acceptability = (
            combine_windows(column, tokens, owners, len(sentences)) for column in values.T
        )
        likelihood = _logistic(loss + frequency, *calibration.likelihood)
        acceptability = (
            _logistic(soundness, *calibration.soundness) + _logistic(acceptability, *calibration.acceptability)
        ) / 2
        return SentenceScores(likelihood, acceptability, loss)

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Weigh them as the paper's formula does: likelihood has an eighth of the range of the sum."""
        return _LIKELIHOOD_SHARE * likelihood + (1 - _LIKELIHOOD_SHARE) * acceptability

    def find_suspects(self, sentences: list[str], batch_size: int | None = None) -> list[list[str]]:
        """Find the words of each sentence that are more likely wrong than not, or stand beside what is missing."""
        pieces, owners, offsets = self._windows(sentences)
        found: list[dict[tuple[int, int], str]] = [{} for _ in sentences]
        for batch, ids, mask in self._batches(pieces, batch_size, False):
            faults = self._loaded.model.word_fault(self._loaded.model.hidden(ids, mask))[..., 0].cpu().numpy()
            for row, piece in enumerate(batch):
                sentence = sentences[owners[piece]]
                for place in np.flatnonzero(faults[row, 1 : len(pieces[piece]) - 1] > 0):
                    start, end = word_around(sentence, *offsets[piece][place])
                    found[owners[piece]][start, end] = sentence[start:end]
        return [[words[place] for place in sorted(words)] for words in found]

    def _windows(self, sentences: list[str]) -> tuple[list[list[int]], np.ndarray, list[list[tuple[int, int]]]]:
        """Tokenize sentences, long ones in windows; returns token ids, and of each window sentence and places."""
        tokenizer, lock = self._loaded.tokenizer, self._loaded.lock
        with lock:
            encoded = tokenizer(
                sentences,
                add_special_tokens=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                return_offsets_mapping=True,
                verbose=False,
            )
        pieces, owners, offsets = [], [], []
        for owner, (ids, places) in enumerate(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)):
            is_long = len(ids) > _LIMIT - 2
            continued = [name.startswith("##") for name in tokenizer.convert_ids_to_tokens(ids)] if is_long else None
            start = 0
            for window in windows(ids, _LIMIT - 2, continued):
                pieces.append([tokenizer.cls_token_id, *window, tokenizer.sep_token_id])
                owners.append(owner)
                offsets.append(places[start : start + len(window)])
                start += len(window)
        return pieces, np.array(owners, dtype=np.int64), offsets

    def _batches(
        self, pieces: list[list[int]], batch_size: int | None, progress: bool | None
    ) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
        """Yield batches of windows of like length: which they are, their token ids and their mask."""
        lengths = np.array(list(map(len, pieces)), dtype=np.int64)
        prepare(self._loaded.model, int(lengths.sum()))
        with torch.inference_mode(), progress_bar(len(pieces), "Sentences", "sentence", progress) as bar:
            for batch in token_batches(lengths, self._device, batch_size):
                ids, mask = (torch.from_numpy(part).to(self._device) for part in pad([pieces[i] for i in batch], 0))
                yield batch, ids, mask
                bar.update(len(batch))


def sentence_values(model: CompactModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Score the rows of a batch: (b, t) to (b, 4).

    The mean loss of the tokens between the special ones; the mean logarithm of their frequencies (their sum is SLOR of
    Kann et al. 2018 with the sign turned: a rare name is not held against a sentence); and the two logits.
    """
    hidden = model.hidden(ids, mask)
    pooled = model.pool(hidden, mask)
    # Neither the first token, nor the last, nor padding.
    inner = functional.pad(mask[:, 2:], (1, 1)).bool()
    losses = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
    if inner.any():
        losses[inner] = model.token_losses(hidden[inner], ids[inner]).double()
    count = inner.sum(1).clamp(min=1)
    frequency = (model.log_frequency[ids].double() * inner).sum(1) / count
    logits = [head(pooled)[:, 0].double() for head in (model.soundness, model.acceptability)]
    return torch.stack([losses.sum(1) / count, frequency, *logits], dim=1)


def word_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a place in a text to the whole word that it is of."""
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _logistic(values: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    from scipy.special import expit

    return expit(slope * values + intercept)


def _load(weights: Path, sha256: str, precision: str | None, device: str) -> Loaded:
    """Load the model, or take the one that this process has loaded."""
    registry = model_registry()
    key = ("gruen compact", sha256, device, precision)
    with registry.lock:
        if key not in registry.models:
            registry.models[key] = _read(weights, sha256, precision, device)
        return registry.models[key]


def _read(weights: Path, sha256: str, precision: str | None, device: str) -> Loaded:
    from safetensors import safe_open
    from transformers import AutoTokenizer, BertModel
    from transformers.utils import logging

    if not weights.is_file():
        raise ValueError(
            f"{weights.name}, the weights of backbone='compact', is not beside the metric: expected {weights}. "
            "Load the metric again from the folder or the Space that holds it."
        )
    content = weights.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise ValueError(
            f"{weights} is not the file that this version of the metric was published with (SHA-256 {digest}, "
            f"expected {sha256}). Get the metric again, weights and all."
        )
    base = find_model(DEFAULT_MODEL)
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    # The file has a pooling layer, which is not used here.
    logging.set_verbosity_error()
    try:
        bert = BertModel.from_pretrained(base.path, add_pooling_layer=False, local_files_only=True)
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
    model = CompactModel(bert)
    with safe_open(weights, framework="pt") as file:
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        calibration = Calibration(
            **{name: tuple(pair) for name, pair in json.loads(file.metadata()["calibration"]).items()}
        )
    merge_adapters(bert, {name: tensor for name, tensor in tensors.items() if name.startswith(ADAPTERS)})
    heads = {name: tensor for name, tensor in tensors.items() if not name.startswith(ADAPTERS)}
    # The encoder's own weights are not in the file.
    model.load_state_dict(heads, strict=False)
    is_unpadded = device == "cpu" and unpad_body(model, precision)
    if precision == "int8" and not is_unpadded:
        raise ValueError(f"precision='int8' runs on the CPU. Got device={device!r}: use 'bfloat16' there.")
    heads_precision = "float32" if precision in (None, "int8") else precision
    model.eval().to(device=device, dtype=getattr(torch, heads_precision))
    tokenizer = AutoTokenizer.from_pretrained(base.path, local_files_only=True)
    return Loaded(model, tokenizer, calibration, threading.Lock())


def merge_adapters(bert: Any, adapters: dict[str, torch.Tensor]) -> None:
    """Add each adapter to its layer's weights: `up` (out, r) times `down` (r, in)."""
    with torch.no_grad():
        for name in sorted(adapters):
            if name.endswith(".down"):
                layer = bert.get_submodule(name.removeprefix(ADAPTERS).removesuffix(".down"))
                layer.weight += adapters[name.removesuffix("down") + "up"] @ adapters[name]
