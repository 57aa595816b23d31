"""The paper's backbone: a masked language model, a classifier of acceptability, and ALBERT's sentence order.

Each is a transformer that the caller names, loaded with the Auto class that fits.
"""

import itertools
import os
import threading
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import PRECISIONS, find_device, find_transformer, model_registry
from .core_inputs import parse_choice
from .core_unpadded import prepare, unpad_body
from .gruen_backbone import SentenceScores, combine_windows, pad, progress_bar, token_batches, windows

LM_MODEL = "bert-base-cased"
COLA_MODEL = "textattack/bert-base-uncased-CoLA"
LIKELIHOODS = ("one-pass", "pseudo")

# What the original reads of a sentence: of the language model, and of the classifier, special tokens included.
_PARITY_LM_TOKENS = 512
_PARITY_COLA_TOKENS = 128
# The rescaling of the original, from a sum of likelihood and acceptability to [0, 1].
_SCALE, _SHIFT = 1 / 8, 0.5


class Frame(NamedTuple):
    """The special tokens before, between and after what a tokenizer reads, and the types of their tokens."""

    specials: tuple[list[int], ...]
    types: tuple[list[int], ...]

    def size(self) -> int:
        """Count the special tokens."""
        return sum(map(len, self.specials))

    def fill(self, *parts: Sequence[int]) -> list[int]:
        """Put token ids between the special ones."""
        ids = list(self.specials[0])
        for part, special in zip(parts, self.specials[1:], strict=True):
            ids += [*part, *special]
        return ids

    def fill_types(self, *parts: Sequence[int]) -> list[int]:
        """Give the token types of what `fill` gives."""
        types = list(self.types[0])
        for place, part in enumerate(parts):
            types += self.types[2 * place + 1] * len(part) + self.types[2 * place + 2]
        return types


class Loaded(NamedTuple):
    """A transformer in memory; the lock is for whoever uses it, since a tokenizer keeps its settings."""

    model: Any
    tokenizer: Any
    single: Frame
    pair: Frame
    precision: str
    lock: Any


class BertBackbone:
    """The backbone of the paper, over transformers that are named by Hub id or folder.

    Parameters
    ----------
    components : of "grammaticality" and "coherence", what is wanted: only its models are loaded
    likelihood : "one-pass": the loss of all tokens, seen unmasked, as the original takes it; "pseudo": the
        pseudo-log-likelihood, each token masked in turn
    parity : read as much of a sentence as the original does, and no more; else long ones are read in windows

    Raises
    ------
    TypeError, ValueError
        If a model cannot be found, or lacks the head that is needed.
    """

    def __init__(
        self,
        components: tuple[str, ...],
        *,
        lm_model: str | os.PathLike[str] | None = None,
        cola_model: str | os.PathLike[str] | None = None,
        sop_model: str | os.PathLike[str] | None = None,
        likelihood: str = "one-pass",
        parity: bool = False,
        precision: str | None = None,
        device: str | None = None,
    ) -> None:
        self.components = components
        self.identity: dict[str, str] = {}
        self._device = find_device(device)
        self._pseudo, self._parity = likelihood == "pseudo", parity
        if precision is not None:
            parse_choice(precision, "precision", PRECISIONS)

        def load(model: str | os.PathLike[str], parameter: str, auto: str, head: str) -> Loaded:
            loaded, self.identity[parameter] = _load(model, parameter, auto, head, precision, self._device, parity)
            self.identity["precision"] = loaded.precision
            return loaded

        if "grammaticality" in components:
            self._lm = load(lm_model or LM_MODEL, "lm_model", "AutoModelForMaskedLM", "a masked language model")
            self.identity["likelihood"] = likelihood
            cola = cola_model or COLA_MODEL
            self._cola = load(cola, "cola_model", "AutoModelForSequenceClassification", "a classifier")
            self._acceptable = _acceptable_label(self._cola.model.config, parity)
        if "coherence" in components:
            if sop_model is None:
                raise ValueError(
                    "components has 'coherence', and sop_model is None: name an ALBERT with its head for sentence "
                    "order. The Hub's albert-base-v2 has none; transformers' conversion of the original checkpoint has."
                )
            self._sop = load(sop_model, "sop_model", "AutoModelForPreTraining", "sentence-order prediction")
            if not hasattr(self._sop.model, "sop_classifier"):
                raise ValueError(
                    f"sop_model {self.identity['sop_model']} is a {type(self._sop.model).__name__}, which has no head "
                    "for sentence order. Pass an ALBERT."
                )

    def score_sentences(
        self, sentences: list[str], batch_size: int | None = None, progress: bool | None = None
    ) -> SentenceScores:
        """Score n different sentences: the models one after the other, each over all sentences."""
        loss = self._losses(sentences, batch_size, progress)
        acceptability = self._acceptability(sentences, batch_size, progress)
        with np.errstate(over="ignore"):
            likelihood = np.exp(-0.5 * np.exp(loss))
        return SentenceScores(likelihood, acceptability, loss)

    def grammaticality(self, likelihood: np.ndarray, acceptability: np.ndarray) -> np.ndarray:
        """Rescale as the paper's code does; it has no upper bound there, and parity keeps that."""
        scaled = np.maximum(0.0, (likelihood + acceptability) * _SCALE + _SHIFT)
        return scaled if self._parity else np.minimum(scaled, 1.0)

    def score_order(
        self, pairs: list[tuple[str, str]], batch_size: int | None = None, progress: bool | None = None
    ) -> np.ndarray:
        """Give the probability that each pair stands in its right order, of ALBERT's own head."""
        with self._sop.lock:
            tokenizer = self._sop.tokenizer
            limit = _limit(self._sop) - self._sop.pair.size()
            first = _tokenize(tokenizer, [pair[0] for pair in pairs])
            second = _tokenize(tokenizer, [pair[1] for pair in pairs])
            cut = 0
            sequences, types = [], []
            for left, right in zip(first, second, strict=True):
                if len(left) + len(right) > limit:
                    # What stands nearest to the seam says most about the order.
                    half = limit // 2
                    keep = min(len(left), max(half, limit - len(right)))
                    left, right = left[len(left) - keep :], right[: limit - keep]
                    cut += 1
                sequences.append(self._sop.pair.fill(left, right))
                types.append(self._sop.pair.fill_types(left, right))
            if cut:
                warnings.warn(
                    f"{cut} of {len(pairs)} pairs of sentences are longer than sop_model reads: of each, what is "
                    "nearest to the seam decides.",
                    stacklevel=4,
                )

            def forward(batch: np.ndarray) -> torch.Tensor:
                inputs = self._inputs(self._sop, [sequences[i] for i in batch])
                inputs["token_type_ids"] = self._tensor(pad([types[i] for i in batch], 0)[0])
                # Class 0 is the order as it stands, class 1 the other way round.
                return torch.softmax(self._sop.model(**inputs).sop_logits.double(), dim=-1)[:, 0]

            lengths = np.array(list(map(len, sequences)), dtype=np.int64)
            return self._run(self._sop, lengths, forward, "Order", batch_size, progress)

    def _losses(self, sentences: list[str], batch_size: int | None, progress: bool | None) -> np.ndarray:
        """Mean negative log-likelihood of each sentence's tokens, (n,)."""
        with self._lm.lock:
            pieces, weights, owners = self._windows(self._lm, sentences, _PARITY_LM_TOKENS)
            losses = self._pseudo_losses if self._pseudo else self._one_pass_losses
            values = losses(pieces, batch_size, progress)
        return combine_windows(values, weights, owners, len(sentences))

    def _one_pass_losses(self, pieces: list[list[int]], batch_size: int | None, progress: bool | None) -> np.ndarray:
        """Predict all tokens of each window, which the model sees; the special ones count, as in the original."""

        def forward(batch: np.ndarray) -> torch.Tensor:
            inputs = self._inputs(self._lm, [pieces[i] for i in batch])
            losses, mask = _token_losses(self._lm.model(**inputs).logits, inputs["input_ids"]), inputs["attention_mask"]
            return (losses * mask).sum(1) / mask.sum(1)

        lengths = np.array(list(map(len, pieces)), dtype=np.int64)
        return self._run(self._lm, lengths, forward, "Likelihood", batch_size, progress)

    def _pseudo_losses(self, pieces: list[list[int]], batch_size: int | None, progress: bool | None) -> np.ndarray:
        """Mask each token of each window in turn, but for the special ones."""
        tokenizer = self._lm.tokenizer
        if tokenizer.mask_token_id is None:
            raise ValueError(f"lm_model {self.identity['lm_model']} has no mask token: likelihood='pseudo' needs one.")
        special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        places = [[place for place, token in enumerate(piece) if token not in special] for piece in pieces]
        owners = np.repeat(np.arange(len(pieces)), list(map(len, places)))
        place_of = np.fromiter(itertools.chain.from_iterable(places), np.int64, len(owners))

        def forward(batch: np.ndarray) -> torch.Tensor:
            inputs = self._inputs(self._lm, [pieces[i] for i in owners[batch]])
            rows, at = torch.arange(len(batch)), torch.from_numpy(place_of[batch])
            expected = inputs["input_ids"][rows, at].clone()
            inputs["input_ids"][rows, at] = tokenizer.mask_token_id
            return _token_losses(self._lm.model(**inputs).logits[rows, at], expected)

        lengths = np.array([len(pieces[i]) for i in owners], dtype=np.int64)
        losses = self._run(self._lm, lengths, forward, "Likelihood", batch_size, progress)
        counts = np.bincount(owners, minlength=len(pieces))
        sums = np.bincount(owners, losses, len(pieces)) if len(owners) else np.zeros(len(pieces))
        # Where a tokenizer leaves nothing of a sentence, nothing of it is likely.
        return np.divide(sums, counts, out=np.full(len(pieces), np.inf), where=counts > 0)

    def _acceptability(self, sentences: list[str], batch_size: int | None, progress: bool | None) -> np.ndarray:
        """Give the classifier's logit of each sentence, (n,)."""
        with self._cola.lock:
            pieces, weights, owners = self._windows(self._cola, sentences, _PARITY_COLA_TOKENS)

            def forward(batch: np.ndarray) -> torch.Tensor:
                inputs = self._inputs(self._cola, [pieces[i] for i in batch])
                return self._cola.model(**inputs).logits[:, self._acceptable].double()

            lengths = np.array(list(map(len, pieces)), dtype=np.int64)
            values = self._run(self._cola, lengths, forward, "Acceptability", batch_size, progress)
        return combine_windows(values, weights, owners, len(sentences))

    def _windows(
        self, loaded: Loaded, sentences: list[str], parity_tokens: int
    ) -> tuple[list[list[int]], np.ndarray, np.ndarray]:
        """Tokenize sentences, long ones in windows; returns token ids, and of each window its weight and sentence."""
        tokenizer = loaded.tokenizer
        limit = _limit(loaded) - loaded.single.size()
        tokens = _tokenize(tokenizer, sentences)
        if self._parity:
            limit = min(limit, parity_tokens - loaded.single.size())
            cut = sum(len(sentence) > limit for sentence in tokens)
            if cut:
                warnings.warn(
                    f"{cut} of {len(sentences)} different sentences are longer than the {limit} tokens that the "
                    "original reads: with parity=True the rest of each is cut off.",
                    stacklevel=6,
                )
            tokens = [sentence[:limit] for sentence in tokens]
        pieces, weights, owners = [], [], []
        for owner, sentence in enumerate(tokens):
            for window in windows(sentence, limit, _continued(tokenizer, sentence) if len(sentence) > limit else None):
                pieces.append(loaded.single.fill(window))
                weights.append(len(window))
                owners.append(owner)
        return pieces, np.array(weights), np.array(owners, dtype=np.int64)

    def _inputs(self, loaded: Loaded, sequences: list[list[int]]) -> dict[str, torch.Tensor]:
        ids, mask = pad(sequences, loaded.tokenizer.pad_token_id or 0)
        return {"input_ids": self._tensor(ids), "attention_mask": self._tensor(mask)}

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device)

    def _run(
        self,
        loaded: Loaded,
        lengths: np.ndarray,
        forward: Any,
        title: str,
        batch_size: int | None,
        progress: bool | None,
    ) -> np.ndarray:
        """Run all sequences through a model, in batches of like length; returns (n,), float64, in their own order."""
        prepare(loaded.model, int(lengths.sum()))
        values = np.empty(len(lengths))
        with torch.inference_mode(), progress_bar(len(lengths), title, "sequence", progress) as bar:
            for batch in token_batches(lengths, self._device, batch_size):
                values[batch] = forward(batch).double().cpu().numpy()
                bar.update(len(batch))
        return values


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
    """Learn from an example what special tokens a tokenizer puts around one text or two."""
    encoded = tokenizer(*["a"] * parts, return_special_tokens_mask=True, return_token_type_ids=True)
    runs = [
        (special, [row[1:] for row in group])
        for special, group in itertools.groupby(
            zip(encoded["special_tokens_mask"], encoded["input_ids"], encoded["token_type_ids"], strict=True),
            key=lambda row: bool(row[0]),
        )
    ]
    # A tokenizer may put nothing before the first text, or after the last.
    if not runs[0][0]:
        runs.insert(0, (True, []))
    if not runs[-1][0]:
        runs.append((True, []))
    types = [[kind for _, kind in run] if special else [run[0][1]] for special, run in runs]
    return Frame(tuple([token for token, _ in run] for special, run in runs if special), tuple(types))


def _continued(tokenizer: Any, ids: list[int]) -> list[bool]:
    """Say which tokens continue a word, as far as their names tell."""
    names = tokenizer.convert_ids_to_tokens(ids)
    if any(name.startswith("##") for name in names):
        return [name.startswith("##") for name in names]
    if any(name.startswith(("\u2581", "\u0120")) for name in names):
        return [not name.startswith(("\u2581", "\u0120")) for name in names]
    return [False] * len(ids)


def _limit(loaded: Loaded) -> int:
    """Count the tokens that a model reads, special ones included."""
    positions = getattr(loaded.model.config, "max_position_embeddings", None) or loaded.tokenizer.model_max_length
    base = getattr(loaded.model, loaded.model.base_model_prefix, loaded.model)
    embeddings = getattr(getattr(base, "embeddings", None), "position_embeddings", None)
    padding = getattr(embeddings, "padding_idx", None)
    # RoBERTa counts positions from behind its padding.
    if padding is not None:
        positions -= padding + 1
    return int(min(positions, loaded.tokenizer.model_max_length))


def _acceptable_label(config: Any, parity: bool) -> int:
    """Find the class that means acceptable: by its name if it has one, else 1, as in CoLA."""
    if config.num_labels < 2:
        raise ValueError(f"cola_model must have two classes, unacceptable and acceptable. Got {config.num_labels}.")
    names = {str(name).lower(): int(place) for place, name in config.id2label.items()}
    return 1 if parity else names.get("acceptable", 1)


def _load(
    model: str | os.PathLike[str], parameter: str, auto: str, head: str, precision: str | None, device: str, exact: bool
) -> tuple[Loaded, str]:
    """Load a transformer, or take the one that this process has loaded; returns it and the identity of its weights."""
    registry = model_registry()
    with registry.lock:
        files = find_transformer(model, parameter)
        key = ("gruen", auto, files.identity, device, precision, exact)
        if key not in registry.models:
            registry.models[key] = _read(files.path, parameter, auto, head, precision, device, exact)
        return registry.models[key], files.identity


def _read(path: Any, parameter: str, auto: str, head: str, precision: str | None, device: str, exact: bool) -> Loaded:
    import transformers
    from transformers.utils import logging

    # What the unpadded body rounds, it rounds from the weights as they are stored.
    rounds = precision == "int8" or (precision == "bfloat16" and device == "cpu")
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    # What it reports of missing weights becomes an error below.
    logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)
        model, report = getattr(transformers, auto).from_pretrained(
            path,
            local_files_only=True,
            dtype="auto" if precision is None else torch.float32 if rounds else getattr(torch, precision),
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError) as error:
        raise ValueError(f"{parameter}: {path} could not be loaded as {head}: {error}") from error
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
    missing = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if missing:
        raise ValueError(
            f"{parameter}: {path} holds no trained weights for {head}: {missing[0]} and {len(missing) - 1} more are "
            "missing, and would be random. Pass a model that was saved with this head."
        )
    is_free = precision is None and not exact
    stored = precision or str(model.dtype).removeprefix("torch.")
    if device == "cpu" and stored == "bfloat16":
        model = model.float()
    is_unpadded = device == "cpu" and unpad_body(model, None if is_free and stored == "float32" else stored)
    if stored == "int8" and not is_unpadded:
        raise ValueError(
            f"{parameter}: precision='int8' is for a BERT on the CPU. Got a {type(model).__name__} on {device!r}: use "
            "'bfloat16'."
        )
    # Of an unpadded model, the heads.
    model = model.eval().to(device, torch.float32 if stored == "int8" else getattr(torch, stored))
    return Loaded(model, tokenizer, _frame(tokenizer, 1), _frame(tokenizer, 2), stored, threading.Lock())
