"""The compact backbone: low-rank adapters and small heads over the weights of the default sentence encoder.

One forward pass gives the likelihood of a sentence, its acceptability, and the words that are likely wrong.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import safe_open

from .core import (
    DEFAULT_MODEL,
    EncoderSettings,
    find_device,
    find_model,
    hidden_states,
    load_minilm,
    load_once,
    model_registry,
    owners_of,
    pad_tokens,
)
from .gruen_backbone import Backbone, Loaded, SentenceScores

if TYPE_CHECKING:
    import torch

WEIGHTS_FILE = "gruen_compact.safetensors"
# Most tokens of a window, special tokens included, as in training.
_LIMIT = 128
ADAPTERS = "adapters."
# In the paper's formula the sum of likelihood and an acceptability logit has a range of 8, and likelihood one of 1.
_LIKELIHOOD_SHARE = 1 / 8
# Names that are other words in lower case, which is what the encoder reads, and those that stand for them.
_PEOPLE = "Art Chase Chuck Dawn Don Drew Eve Faith Frank Grace Grant Guy Hope Joy Mark Pat Rich Rob Rose Skip Sue Will"
_PLACES = "Bath Bury Deal Lens Male Mobile Nice Orange Reading Sandwich Split Tours Wells"
_PLAIN: dict[str, tuple[str, ...]] = dict.fromkeys(_PEOPLE.split(), ("Tom", "Ann", "Sam", "Kim", "Ben", "Jim"))
_PLAIN |= dict.fromkeys(_PLACES.split(), ("Oslo", "Rome", "Lima", "Bonn"))
_INSIDE = r"(?<=[a-z0-9,;] )|^(?=(?:Nice|Will) (?:is|was|has)\b|Will \w{2,}[^aious]s\b[^?]*$)"
_NAMES = re.compile(rf"(?:{_INSIDE})(?:{'|'.join(_PLAIN)})\b(?!-|['’]t)")


class CompactModel(NamedTuple):
    """The network of the default encoder, with adapters, and the heads of this backbone.

    The sentence heads read the embedding of the first token, and the mean and the maximum over all tokens. Shapes: b
    sequences of t tokens, size d of a hidden state, n tokens of all sequences.

    network : the network of a MiniLM
    heads : nn.ModuleDict of `build_heads`
    calibration : (slope, intercept) of the logistic curves that make probabilities of "likelihood", the mean loss of a
        token less that of its frequency, in nats, and of the logits "soundness" and "acceptability"; fitted on text
        held out from training
    """

    network: Any
    heads: Any
    calibration: dict[str, tuple[float, float]]

    def sentence_values(self, ids: "torch.Tensor", mask: "torch.Tensor", hidden: "torch.Tensor") -> "torch.Tensor":
        """Score the sequences of a batch, by their contextual embeddings: (b, 4).

        The columns are the mean loss of the tokens between the special tokens, the mean logarithm of their frequencies,
        and the two logits. The sum of the first two is SLOR (Kann et al. 2018) with its sign changed: it does not
        penalize a sentence for a rare name.
        """
        import torch

        inner = inner_tokens(mask)
        losses = torch.zeros(ids.shape, dtype=torch.float64, device=ids.device)
        if inner.any():
            losses[inner] = self._token_losses(hidden[inner], ids[inner]).double()
        count = inner.sum(1).clamp(min=1)
        frequency = (self.heads.log_frequency[ids].double() * inner).sum(1) / count
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        maximum = hidden.masked_fill(mask.unsqueeze(-1) == 0, -torch.inf).amax(1)
        pooled = torch.cat([hidden[:, 0], mean, maximum], dim=-1)
        logits = [self.heads[name](pooled)[:, 0].double() for name in ("soundness", "acceptability")]
        return torch.stack([losses.sum(1) / count, frequency, *logits], dim=1)

    def _token_losses(self, hidden: "torch.Tensor", expected: "torch.Tensor") -> "torch.Tensor":
        """Return the cross-entropy of tokens, (n,), from their contextual embeddings, (n, d): (n,).

        A head estimates the log-sum-exp over the vocabulary, which would cost as much as the encoder; the model card
        reports its error.
        """
        from torch.nn import functional

        rows = self.heads["norm"](functional.gelu(self.heads["transform"](hidden)))
        embeddings = self.network["words"].weight[expected]
        logits = (rows * embeddings).sum(1) + self.heads.vocabulary_bias[expected]
        return (self.heads["log_total"](rows)[:, 0] - logits).float()


def inner_tokens(mask: "torch.Tensor") -> "torch.Tensor":
    """Tell which tokens of padded sequences are neither the first, nor the last, nor padding: (b, t), bool."""
    from torch.nn import functional

    return functional.pad(mask[:, 2:], (1, 1)).bool()


def build_heads(weights: dict[str, Any]) -> Any:
    """Build the heads, an nn.ModuleDict, around their weights without copying them."""
    import torch
    from torch import nn

    n_words = len(weights["log_frequency"])
    size = len(weights["norm.weight"])

    def layers(n_in: int, n_inner: int) -> nn.Sequential:
        return nn.Sequential(nn.Linear(n_in, n_inner), nn.GELU(), nn.Linear(n_inner, 1))

    # Nothing is allocated nor initialized: all weights are assigned.
    with torch.device("meta"):
        parts = {
            "soundness": layers(3 * size, size),
            "acceptability": layers(3 * size, size),
            "word_fault": nn.Linear(size, 1),
            "transform": nn.Linear(size, size),
            "norm": nn.LayerNorm(size),
            # Fitted after all other parameters are trained.
            "log_total": layers(size, 2 * size),
        }
        heads = nn.ModuleDict(parts)
        heads.register_parameter("vocabulary_bias", nn.Parameter(torch.empty(n_words)))
        heads.register_buffer("log_frequency", torch.empty(n_words))
    heads.load_state_dict(weights, assign=True)
    return heads.eval()


class CompactBackbone(Backbone):
    """The default backbone: it needs no network, and no weights but its own and the default encoder's.

    `weights` is the safetensors file of the metric, checked by `bring_weights`, and `sha256` its digest. `identity` has
    the exact weights, for the signature. Raises a ValueError if the default encoder cannot be found.
    """

    def __init__(self, weights: Path, sha256: str, settings: EncoderSettings) -> None:
        self._settings = settings
        device = find_device(settings.device)
        key = ("gruen compact", sha256, device)
        self._loaded = load_once(key, lambda: read_model(weights, device))
        self.identity = {"backbone": f"compact@{sha256[:8]}"}

    def score_sentences(self, sentences: list[str]) -> SentenceScores:
        """Score n different sentences in one pass; both scores are probabilities, in [0, 1]."""
        model = self._loaded.model
        windows, tokens = self._loaded.read_windows(sentences, _rename)
        spans: list[list[tuple[int, int]]] = [[] for _ in windows.parts]

        def forward(batch: np.ndarray, inputs: Any) -> "torch.Tensor":
            ids, mask = inputs
            hidden = hidden_states(model.network, ids, mask)
            is_fault = (model.heads["word_fault"](hidden)[..., 0] > 0) & inner_tokens(mask)
            for row, place in is_fault.nonzero().tolist():
                spans[batch[row]].append(tokens["encodings"][batch[row]].token_to_chars(place))
            return model.sentence_values(ids, mask, hidden)

        values = windows.average(self._loaded.run(tokens, forward, self._settings, "Sentences"))
        suspects = map(_words_around, windows.parts, spans)
        loss, frequency, soundness, acceptability = values.T
        marked: list[list[str]] = [[] for _ in sentences]
        for sentence, words in zip(owners_of(windows.counts), suspects, strict=True):
            marked[sentence] += words
        return SentenceScores(
            self._calibrate("likelihood", loss + frequency),
            (self._calibrate("soundness", soundness) + self._calibrate("acceptability", acceptability)) / 2,
            loss,
            marked,
        )

    def _calibrate(self, name: str, values: np.ndarray) -> np.ndarray:
        import torch

        slope, intercept = self._loaded.model.calibration[name]
        return torch.from_numpy(slope * values + intercept).sigmoid().numpy()

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Average both scores of n sentences, (n,), in [0, 1], with the paper's weights: one eighth for likelihood."""
        return _LIKELIHOOD_SHARE * likelihood + (1 - _LIKELIHOOD_SHARE) * acceptability


def _rename(text: str) -> str:
    """Replace names that are common words by other names, except in a title; the length does not change."""
    words = text.split()
    names = _NAMES.findall(text)
    is_sentence = text.rstrip().endswith((".", "!", "?"))
    if 2 * (sum(word[0].isupper() for word in words) - is_sentence * len(names)) > len(words):
        return text
    read_as = dict[str, str]()
    for name in names:
        free = [plain for plain in _PLAIN[name] if plain not in text and plain not in read_as.values()]
        read_as.setdefault(name, (free or _PLAIN[name])[0])
    return _NAMES.sub(lambda name: read_as[name[0]].ljust(len(name[0])), text)


def _words_around(text: str, spans: list[tuple[int, int]]) -> list[str]:
    """Return the different words of a text that contain the spans, in order."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    around = []
    for low, high in words:
        if any(low < end and start < high for start, end in spans):
            around.append(text[low:high])
    return around


class CompactLoaded(Loaded):
    """The compact model in memory, with a Tokenizer of the library `tokenizers`."""

    def tokenize(self, parts: Sequence[tuple[str, ...]], cut: bool = False) -> dict[str, Any]:
        """Tokenize n texts, whole; their `encodings` know the places of the tokens."""
        texts = [text for (text,) in parts]
        with model_registry().lock:
            encodings = self.tokenizer.encode_batch(texts)
        return {"input_ids": [encoding.ids for encoding in encodings], "encodings": encodings}

    def pad(self, tokens: dict[str, Any], batch: np.ndarray, device: str) -> Any:
        """Pad the tokens of the sequences of a batch: ids and mask."""
        return pad_tokens([tokens["input_ids"][i] for i in batch], device)


def read_model(weights: Path, device: str) -> CompactLoaded:
    """Read the model, with its adapters added to the weights of the encoder."""
    with safe_open(weights, framework="pt", device=device) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        calibration = json.loads(file.metadata()["calibration"])
    adapters = {name.removeprefix(ADAPTERS): tensors.pop(name) for name in list(tensors) if name.startswith(ADAPTERS)}
    # The file does not hold the weights of the encoder.
    encoder = load_minilm(find_model(DEFAULT_MODEL), device).with_adapters(adapters)
    heads = build_heads({name: tensor.float() for name, tensor in tensors.items()})
    model = CompactModel(encoder.network, heads, calibration)
    return CompactLoaded(model, encoder.tokenizer, _LIMIT)
