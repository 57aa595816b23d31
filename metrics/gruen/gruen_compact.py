"""The compact backbone: low-rank adapters and small heads over the weights of the default sentence encoder.

One forward pass gives the likelihood of a sentence, its acceptability, and the words that are likely wrong. The model
card says how it was trained.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from .core_encoder import EncoderSettings
from .core_models import DEFAULT_MODEL, FairLock, file_digest, find_device, find_model, load_once, quiet_loading
from .gruen_backbone import SentenceScores, combine_windows, pad, run_batches, windows

WEIGHTS_FILE = "gruen_compact.safetensors"
# Most tokens of a window, special tokens included, as in training.
_LIMIT = 128
ADAPTERS = "adapters."
# In the paper's formula the sum of likelihood and an acceptability logit has a range of 8, and likelihood one of 1.
_LIKELIHOOD_SHARE = 1 / 8


class Loaded(NamedTuple):
    """A compact model in memory, and the lock to hold while it tokenizes: its tokenizer is not thread-safe.

    calibration : (slope, intercept) of logistic curves that make probabilities of "likelihood", the mean loss of a
        token less that of its frequency, in nats, and of the logits "soundness" and "acceptability"; fitted on text
        held out from training
    """

    model: "CompactModel"
    tokenizer: Any
    calibration: dict[str, tuple[float, float]]
    lock: FairLock


class CompactModel(nn.Module):
    """A BERT with the heads of this backbone.

    The sentence heads read the embedding of the first token, and the mean and the maximum over all tokens.
    """

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
        # Fitted after all other parameters are trained.
        self.log_total = nn.Sequential(
            nn.utils.skip_init(nn.Linear, size, 2 * size), nn.GELU(), nn.utils.skip_init(nn.Linear, 2 * size, 1)
        )

    def hidden(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return contextual embeddings: (b, t) to (b, t, size)."""
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state

    @staticmethod
    def pool(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Concatenate first token, mean and maximum: (b, t, size) to (b, 3 * size)."""
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        maximum = hidden.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1)
        return torch.cat([hidden[:, 0], mean, maximum], dim=-1)

    def vocabulary_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return logits over the vocabulary, with tied word embeddings: (n, size) to (n, vocabulary)."""
        words = self.bert.embeddings.word_embeddings.weight
        return functional.linear(self.word_query(hidden), words, self.vocabulary_bias)

    def token_losses(self, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of tokens, (n,), from their contextual embeddings, (n, size): (n,).

        A head estimates the log-sum-exp over the vocabulary, which would cost as much as the encoder; the model card
        reports its error.
        """
        rows = self.word_query(hidden)
        expected_logits = (rows * self.bert.embeddings.word_embeddings.weight[expected]).sum(1) + self.vocabulary_bias[
            expected
        ]
        return (self.log_total(rows)[:, 0] - expected_logits).float()

    def word_query(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return vectors to compare with the word embeddings: (..., size) to (..., size)."""
        return self.norm(functional.gelu(self.transform(hidden)))


def _head(inputs: int, units: int) -> nn.Sequential:
    """Make a head with one logit as its output."""
    return nn.Sequential(nn.Linear(inputs, units), nn.GELU(), nn.Linear(units, 1))


class CompactBackbone:
    """The default backbone: it needs no network, and no weights but its own and those of the default encoder.

    Parameters
    ----------
    weights : the safetensors file of the metric, as by `check_weights`
    sha256 : its digest
    settings : precision ("float32" if None), device, batch size and progress

    Raises
    ------
    ValueError
        If the file has another digest, or the default encoder is not the published one, or cannot be found.

    Attributes
    ----------
    components : those that it can score
    identity : the exact weights and all settings that can change a score, for the signature
    """

    components = ("grammaticality",)

    def __init__(self, weights: Path, sha256: str, settings: EncoderSettings) -> None:
        self._settings, self._device = settings, find_device(settings.device)
        precision = settings.precision or "float32"
        key = ("gruen compact", sha256, self._device, precision)
        self._loaded = load_once(key, lambda: _read(weights, sha256, precision, self._device))
        self.identity = {"backbone": f"compact@{sha256[:8]}", "precision": precision}

    def score_sentences(self, sentences: list[str]) -> SentenceScores:
        """Score n different sentences in one pass; both scores are probabilities, in [0, 1]."""
        model, _, calibration, _ = self._loaded
        pieces, owners, offsets = self._windows(sentences)
        suspects: list[dict[tuple[int, int], str]] = [{} for _ in sentences]

        def forward(batch: np.ndarray) -> torch.Tensor:
            ids, mask = (torch.from_numpy(part).to(self._device) for part in pad([pieces[i] for i in batch], 0))
            hidden = model.hidden(ids, mask)
            faults = model.word_fault(hidden)[..., 0].cpu()
            for piece, row in zip(batch, faults, strict=True):
                sentence, sentence_suspects = sentences[owners[piece]], suspects[owners[piece]]
                for at in torch.nonzero(row[1 : len(pieces[piece]) - 1] > 0)[:, 0].tolist():
                    start, end = word_around(sentence, *offsets[piece][at])
                    sentence_suspects[start, end] = sentence[start:end]
            return sentence_values(model, ids, mask, hidden)

        values = run_batches(np.array(list(map(len, pieces))), forward, self._settings, "Sentences")
        tokens = np.array(list(map(len, pieces))) - 2
        loss, frequency, soundness, acceptability = (
            combine_windows(column, tokens, owners, len(sentences)) for column in values.T
        )
        likelihood = _logistic(loss + frequency, *calibration["likelihood"])
        acceptability = (
            _logistic(soundness, *calibration["soundness"]) + _logistic(acceptability, *calibration["acceptability"])
        ) / 2
        marked = [[words[span] for span in sorted(words)] for words in suspects]
        return SentenceScores(likelihood, acceptability, loss, marked)

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Average those of n sentences, (n,), in [0, 1], by the weights of the paper: one eighth for likelihood."""
        return _LIKELIHOOD_SHARE * likelihood + (1 - _LIKELIHOOD_SHARE) * acceptability

    def _windows(self, sentences: list[str]) -> tuple[list[list[int]], np.ndarray, list[list[tuple[int, int]]]]:
        """Tokenize sentences, long ones in windows; returns token ids, sentence and offsets of each window."""
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
        for owner, (ids, spans) in enumerate(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)):
            is_long = len(ids) > _LIMIT - 2
            continued = [name.startswith("##") for name in tokenizer.convert_ids_to_tokens(ids)] if is_long else None
            start = 0
            for window in windows(ids, _LIMIT - 2, continued):
                pieces.append([tokenizer.cls_token_id, *window, tokenizer.sep_token_id])
                owners.append(owner)
                offsets.append(spans[start : start + len(window)])
                start += len(window)
        return pieces, np.array(owners, dtype=np.int64), offsets


def sentence_values(
    model: CompactModel, ids: torch.Tensor, mask: torch.Tensor, hidden: torch.Tensor | None = None
) -> torch.Tensor:
    """Score the rows of a batch: (b, t) to (b, 4).

    The columns are the mean loss of the tokens between the special tokens, the mean logarithm of their frequencies, and
    the two logits. The sum of the first two is SLOR (Kann et al. 2018) with its sign changed: it does not penalize a
    sentence for a rare name. `hidden` are the contextual embeddings, if they are known.
    """
    if hidden is None:
        hidden = model.hidden(ids, mask)
    pooled = model.pool(hidden, mask)
    # All tokens but the first, the last and padding.
    inner = functional.pad(mask[:, 2:], (1, 1)).bool()
    losses = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
    if inner.any():
        losses[inner] = model.token_losses(hidden[inner], ids[inner]).double()
    count = inner.sum(1).clamp(min=1)
    frequency = (model.log_frequency[ids].double() * inner).sum(1) / count
    logits = [head(pooled)[:, 0].double() for head in (model.soundness, model.acceptability)]
    return torch.stack([losses.sum(1) / count, frequency, *logits], dim=1)


def word_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a span of a text to whole words."""
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _logistic(values: np.ndarray, slope: float, intercept: float) -> np.ndarray:
    from scipy.special import expit

    return expit(slope * values + intercept)


def _read(weights: Path, sha256: str, precision: str, device: str) -> Loaded:
    from safetensors import safe_open
    from transformers import AutoTokenizer, BertModel

    if file_digest(weights) != sha256:
        raise ValueError(f"{weights} does not have the SHA-256 {sha256}: get the metric again, weights and all.")
    base = find_model(DEFAULT_MODEL)
    # The checkpoint has a pooling layer, of which a warning says that it is not used.
    with quiet_loading("backbone", base.path, "the encoder of backbone='compact'"):
        bert = BertModel.from_pretrained(base.path, add_pooling_layer=False, local_files_only=True)
    model = CompactModel(bert)
    with safe_open(weights, framework="pt") as file:
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
        calibration = json.loads(file.metadata()["calibration"])
    merge_adapters(bert, {name: tensor for name, tensor in tensors.items() if name.startswith(ADAPTERS)})
    heads = {name: tensor for name, tensor in tensors.items() if not name.startswith(ADAPTERS)}
    # The file does not hold the weights of the encoder.
    model.load_state_dict(heads, strict=False)
    model.eval().to(device=device, dtype=getattr(torch, precision))
    tokenizer = AutoTokenizer.from_pretrained(base.path, local_files_only=True)
    return Loaded(model, tokenizer, calibration, FairLock())


def merge_adapters(bert: Any, adapters: dict[str, torch.Tensor]) -> None:
    """Add each adapter to its layer's weights: `up` (out, r) times `down` (r, in)."""
    with torch.no_grad():
        for name in sorted(adapters):
            if name.endswith(".down"):
                layer = bert.get_submodule(name.removeprefix(ADAPTERS).removesuffix(".down"))
                layer.weight += adapters[name.removesuffix("down") + "up"] @ adapters[name]
