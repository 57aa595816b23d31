"""The paper's backbone: a masked language model, an acceptability classifier, and ALBERT's sentence-order head.

Each is a transformer that the caller names, loaded with its Auto class.
"""

import itertools
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings
from .core_models import LoadedHead, find_device, load_head
from .gruen_backbone import SentenceScores, combine_windows, pad, run_batches, windows

LM_MODEL = "bert-base-cased"
COLA_MODEL = "textattack/bert-base-uncased-CoLA"
LIKELIHOODS = ("one-pass", "pseudo")

# Most tokens of a sentence that the original reads with each model, special tokens included.
_PARITY_LM_TOKENS = 512
_PARITY_COLA_TOKENS = 128
# The original's linear map from the sum of likelihood and acceptability to [0, 1].
_SCALE, _SHIFT = 1 / 8, 0.5
# The Auto class of each model, and its head as an error names it.
_HEADS = {
    "lm_model": ("AutoModelForMaskedLM", "a masked language model"),
    "cola_model": ("AutoModelForSequenceClassification", "a classifier"),
    "sop_model": ("AutoModelForPreTraining", "sentence-order prediction"),
}


class BertSettings(NamedTuple):
    """The caller's choice of models and likelihood; None is the default.

    likelihood : "one-pass": the loss of all tokens, none masked, as in the original; "pseudo": the
        pseudo-log-likelihood, each token masked in turn
    """

    likelihood: str | None = None
    lm_model: str | os.PathLike[str] | None = None
    cola_model: str | os.PathLike[str] | None = None
    sop_model: str | os.PathLike[str] | None = None


class Frame(NamedTuple):
    """The special tokens of a tokenizer before, between and after its texts, and all token types."""

    specials: tuple[list[int], ...]
    types: tuple[list[int], ...]

    def size(self) -> int:
        """Count the special tokens."""
        return sum(map(len, self.specials))

    def fill(self, *parts: Sequence[int]) -> list[int]:
        """Insert the token ids of each text between the special tokens."""
        ids = list(self.specials[0])
        for part, special in zip(parts, self.specials[1:], strict=True):
            ids += [*part, *special]
        return ids

    def fill_types(self, *parts: Sequence[int]) -> list[int]:
        """Return the token types of the sequence that `fill` returns."""
        types = list(self.types[0])
        for i, part in enumerate(parts):
            types += self.types[2 * i + 1] * len(part) + self.types[2 * i + 2]
        return types


class BertBackbone:
    """The backbone of the paper, over transformers named by Hub id or folder.

    Parameters
    ----------
    components : those of "grammaticality" and "coherence" to score; only their models are loaded
    bert : the models, and the kind of likelihood
    settings : precision, device, batch size and progress
    parity : read only as many tokens of a sentence as the original does; otherwise read long sentences in windows

    Raises
    ------
    TypeError, ValueError
        If a model cannot be found or lacks the head it needs.

    Attributes
    ----------
    identity : the exact weights and all settings that can change a score, for the signature
    """

    def __init__(
        self,
        components: tuple[str, ...],
        bert: BertSettings,
        settings: EncoderSettings,
        parity: bool = False,
    ) -> None:
        self.identity: dict[str, str] = {}
        likelihood = bert.likelihood or "one-pass"
        self._settings, self._device = settings, find_device(settings.device)
        self._pseudo, self._parity = likelihood == "pseudo", parity
        if "grammaticality" in components:
            self._lm = self._load("lm_model", bert.lm_model or LM_MODEL)
            self.identity["likelihood"] = likelihood
            self._cola = self._load("cola_model", bert.cola_model or COLA_MODEL)
            self._acceptable = _acceptable_label(self._cola.model.config, parity)
        if "coherence" in components:
            if bert.sop_model is None:
                raise ValueError(
                    "components has 'coherence', and sop_model is None: name an ALBERT with its head for sentence "
                    "order. The Hub's albert-base-v2 has none; transformers' conversion of the original checkpoint has."
                )
            self._sop = self._load("sop_model", bert.sop_model)
            if not hasattr(self._sop.model, "sop_classifier"):
                raise ValueError(
                    f"sop_model {self.identity['sop_model']} is a {type(self._sop.model).__name__}, which has no head "
                    "for sentence order. Pass an ALBERT."
                )

    def score_sentences(self, sentences: list[str]) -> SentenceScores:
        """Score n different sentences, once with each of the two models."""
        loss = self._losses(sentences)
        acceptability = self._acceptability(sentences)
        with np.errstate(over="ignore"):
            likelihood = np.exp(-0.5 * np.exp(loss))
        return SentenceScores(likelihood, acceptability, loss)

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Rescale those of n sentences as the paper's code does: (n,), at least 0; without parity, at most 1."""
        scaled = np.maximum(0.0, (likelihood + acceptability) * _SCALE + _SHIFT)
        return scaled if self._parity else np.minimum(scaled, 1.0)

    def score_order(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        """Return the probability, by ALBERT's own head, that each pair is in its right order: (n,), in [0, 1]."""
        with self._sop.lock:
            tokenizer = self._sop.tokenizer
            frame = _frame(tokenizer, 2)
            limit = self._sop.limit() - frame.size()
            first = _tokenize(tokenizer, [pair[0] for pair in pairs])
            second = _tokenize(tokenizer, [pair[1] for pair in pairs])
            cut = 0
            sequences, types = [], []
            for left, right in zip(first, second, strict=True):
                if len(left) + len(right) > limit:
                    # The tokens nearest to the boundary say most about the order.
                    half = limit // 2
                    keep = min(len(left), max(half, limit - len(right)))
                    left, right = left[len(left) - keep :], right[: limit - keep]
                    cut += 1
                sequences.append(frame.fill(left, right))
                types.append(frame.fill_types(left, right))
            if cut:
                warnings.warn(
                    f"{cut} of {len(pairs)} pairs of sentences are longer than sop_model reads, {limit} tokens: only "
                    "the tokens nearest to the boundary of each pair are read.",
                    stacklevel=5,
                )

            def forward(batch: np.ndarray) -> torch.Tensor:
                inputs = self._inputs(self._sop, [sequences[i] for i in batch])
                inputs["token_type_ids"] = self._tensor(pad([types[i] for i in batch], 0)[0])
                # Class 0 is the given order, class 1 the reverse.
                return torch.softmax(self._sop.model(**inputs).sop_logits.double(), dim=-1)[:, 0]

            return run_batches(_lengths(sequences), forward, self._settings, "Order")

    def _load(self, parameter: str, model: str | os.PathLike[str]) -> LoadedHead:
        """Load a model, and note what decides its scores."""
        loaded = load_head(model, parameter, *_HEADS[parameter], self._settings.precision, self._device)
        self.identity |= {parameter: loaded.identity, "precision": loaded.precision}
        return loaded

    def _losses(self, sentences: list[str]) -> np.ndarray:
        """Return the mean negative log-likelihood of each sentence's tokens: (n,)."""
        with self._lm.lock:
            pieces, weights, owners = self._windows(self._lm, sentences, _PARITY_LM_TOKENS)
            values = self._pseudo_losses(pieces) if self._pseudo else self._one_pass_losses(pieces)
        return combine_windows(values, weights, owners, len(sentences))

    def _one_pass_losses(self, pieces: list[list[int]]) -> np.ndarray:
        """Predict all tokens of each window, none masked; special tokens count, as in the original."""

        def forward(batch: np.ndarray) -> torch.Tensor:
            inputs = self._inputs(self._lm, [pieces[i] for i in batch])
            losses, mask = _token_losses(self._lm.model(**inputs).logits, inputs["input_ids"]), inputs["attention_mask"]
            return (losses * mask).sum(1) / mask.sum(1)

        return run_batches(_lengths(pieces), forward, self._settings, "Likelihood")

    def _pseudo_losses(self, pieces: list[list[int]]) -> np.ndarray:
        """Predict each token of each window from the others, except special tokens."""
        tokenizer = self._lm.tokenizer
        if tokenizer.mask_token_id is None:
            raise ValueError(f"lm_model {self.identity['lm_model']} has no mask token: likelihood='pseudo' needs one.")
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        positions = [[at for at, token in enumerate(piece) if token not in special] for piece in pieces]
        owners = np.repeat(np.arange(len(pieces)), list(map(len, positions)))
        position_of = np.fromiter(itertools.chain.from_iterable(positions), np.int64, len(owners))

        def forward(batch: np.ndarray) -> torch.Tensor:
            inputs = self._inputs(self._lm, [pieces[i] for i in owners[batch]])
            rows, at = torch.arange(len(batch)), torch.from_numpy(position_of[batch])
            expected = inputs["input_ids"][rows, at].clone()
            inputs["input_ids"][rows, at] = tokenizer.mask_token_id
            return _token_losses(self._lm.model(**inputs).logits[rows, at], expected)

        losses = run_batches(_lengths(pieces)[owners], forward, self._settings, "Likelihood")
        counts = np.bincount(owners, minlength=len(pieces))
        sums = np.bincount(owners, losses, len(pieces)) if len(owners) else np.zeros(len(pieces))
        # A sentence of which the tokenizer keeps nothing has likelihood 0.
        return np.divide(sums, counts, out=np.full(len(pieces), np.inf), where=counts > 0)

    def _acceptability(self, sentences: list[str]) -> np.ndarray:
        """Return the classifier's logit of each sentence: (n,)."""
        with self._cola.lock:
            pieces, weights, owners = self._windows(self._cola, sentences, _PARITY_COLA_TOKENS)

            def forward(batch: np.ndarray) -> torch.Tensor:
                inputs = self._inputs(self._cola, [pieces[i] for i in batch])
                return self._cola.model(**inputs).logits[:, self._acceptable].double()

            values = run_batches(_lengths(pieces), forward, self._settings, "Acceptability")
        return combine_windows(values, weights, owners, len(sentences))

    def _windows(
        self, loaded: LoadedHead, sentences: list[str], parity_tokens: int
    ) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
        """Tokenize sentences, long ones in windows; returns the token ids, weight and sentence of each window."""
        tokenizer = loaded.tokenizer
        frame = _frame(tokenizer, 1)
        limit = loaded.limit() - frame.size()
        tokens = _tokenize(tokenizer, sentences)
        if self._parity:
            limit = min(limit, parity_tokens - frame.size())
            cut = sum(len(sentence) > limit for sentence in tokens)
            if cut:
                warnings.warn(
                    f"{cut} of {len(sentences)} different sentences are longer than the {limit} tokens that the "
                    "original reads: with parity=True the rest of each is cut off.",
                    stacklevel=7,
                )
            tokens = [sentence[:limit] for sentence in tokens]
        pieces, weights, owners = [], [], []
        for owner, sentence in enumerate(tokens):
            for window in windows(sentence, limit, _continued(tokenizer, sentence) if len(sentence) > limit else None):
                pieces.append(frame.fill(window))
                weights.append(len(window))
                owners.append(owner)
        return pieces, np.array(weights), np.array(owners, dtype=np.int64)

    def _inputs(self, loaded: LoadedHead, sequences: list[list[int]]) -> dict[str, torch.Tensor]:
        ids, mask = pad(sequences, loaded.tokenizer.pad_token_id or 0)
        return {"input_ids": self._tensor(ids), "attention_mask": self._tensor(mask)}

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)


def _lengths(sequences: list[list[int]]) -> np.ndarray:
    return np.array(list(map(len, sequences)), dtype=np.int64)


def _token_losses(logits: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Negative log-likelihoods of the expected tokens: (..., v) and (...) to (...)."""
    logits = logits.float()
    return torch.logsumexp(logits, dim=-1) - logits.gather(-1, expected.unsqueeze(-1)).squeeze(-1)


def _tokenize(tokenizer: Any, sentences: list[str]) -> list[list[int]]:
    encoded = tokenizer(
        sentences, add_special_tokens=False, truncation=False, padding=False, return_attention_mask=False, verbose=False
    )
    return encoded["input_ids"]


def _frame(tokenizer: Any, parts: int) -> Frame:
    """Find the special tokens that a tokenizer adds to one text or two, from an example."""
    encoded = tokenizer(*["a"] * parts, return_special_tokens_mask=True, return_token_type_ids=True)
    runs = [
        (special, [row[1:] for row in group])
        for special, group in itertools.groupby(
            zip(encoded["special_tokens_mask"], encoded["input_ids"], encoded["token_type_ids"], strict=True),
            key=lambda row: bool(row[0]),
        )
    ]
    # Some tokenizers add none before the first text, or none after the last.
    if not runs[0][0]:
        runs.insert(0, (True, []))
    if not runs[-1][0]:
        runs.append((True, []))
    types = [[kind for _, kind in run] if special else [run[0][1]] for special, run in runs]
    return Frame(tuple([token for token, _ in run] for special, run in runs if special), tuple(types))


def _continued(tokenizer: Any, ids: list[int]) -> list[bool]:
    """Return for each token whether it continues a word, where the vocabulary marks that."""
    names = tokenizer.convert_ids_to_tokens(ids)
    if any(name.startswith("##") for name in names):
        return [name.startswith("##") for name in names]
    if any(name.startswith(("\u2581", "\u0120")) for name in names):
        return [not name.startswith(("\u2581", "\u0120")) for name in names]
    return [False] * len(ids)


def _acceptable_label(config: Any, parity: bool) -> int:
    """Find the class of acceptable sentences: by its name if it has one, otherwise 1, as in CoLA."""
    if config.num_labels < 2:
        raise ValueError(f"cola_model must have two classes, unacceptable and acceptable. Got {config.num_labels}.")
    names = {str(name).lower(): int(place) for place, name in config.id2label.items()}
    return 1 if parity else names.get("acceptable", 1)
