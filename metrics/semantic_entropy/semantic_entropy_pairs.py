"""Classify pairs of texts by a sequence-classification model: which of them say the same."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core import (
    TRANSFORMER,
    EncoderSettings,
    find_device,
    find_model,
    first_maximum,
    load_once,
    model_registry,
    quiet_loading,
    token_limit,
)

Pairs = Sequence[tuple[str, str]]
# Pairs in a batch by default.
_BATCH_SIZE = 32


class Classifier(NamedTuple):
    """A CrossEncoder in memory.

    labels : names of its classes, in lower case
    limit : most tokens of a pair that it reads
    identity : name of its exact weights in a signature
    """

    model: Any
    labels: list[str]
    limit: int
    identity: str


def mutual_entailment(pairs: Pairs, name: str, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs of which each text entails the other, as semantic entropy does (Farquhar et al. 2024).

    Parameters
    ----------
    pairs : e pairs of texts; equal pairs are classified once
    name : id on the Hugging Face Hub, or folder, of a model with a class named "entailment"
    settings : of which batch_size, device and progress are used

    Returns
    -------
    same : ndarray of shape (e,), bool
    signed : the entries of a signature

    Warns
    -----
    UserWarning
        Once, with the count, if pairs are longer than the model reads.

    Raises
    ------
    ValueError
        If the model cannot be found, or is not a classifier with such a class.
    """
    loaded = _load(name, settings.device)
    if "entailment" not in loaded.labels:
        raise ValueError(f"same: {name} has no class named 'entailment': it has {', '.join(map(repr, loaded.labels))}.")
    ordered = list(dict.fromkeys(way for left, right in pairs for way in ((left, right), (right, left))))
    is_entailed = first_maximum(_logits(ordered, loaded, settings)) == loaded.labels.index("entailment")
    entailed = dict(zip(ordered, is_entailed.tolist(), strict=True))
    same = np.array([entailed[left, right] and entailed[right, left] for left, right in pairs], dtype=bool)
    return same, {"same": f"nli:{loaded.identity}"}


def probably_same(pairs: Pairs, name: str, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs to which a classifier with two classes gives the second a probability above one half.

    Parameters, returns, warns and raises as `mutual_entailment`; the order of the texts of a pair matters.
    """
    loaded = _load(name, settings.device)
    if len(loaded.labels) != 2:
        raise ValueError(
            f"same: {name} must have two classes, the second for texts that say the same. It has "
            f"{len(loaded.labels)}: {', '.join(map(repr, loaded.labels))}."
        )
    ordered = list(dict.fromkeys(pairs))
    is_second = first_maximum(_logits(ordered, loaded, settings)) == 1
    is_same = dict(zip(ordered, is_second.tolist(), strict=True))
    return np.array([is_same[pair] for pair in pairs], dtype=bool), {"same": f"pairs:{loaded.identity}"}


def _load(name: str, device: str | None) -> Classifier:
    """Load a classifier of pairs in float32, or return the one that this process has loaded."""
    device, files = find_device(device), find_model(name, "same", TRANSFORMER)

    def load() -> Classifier:
        from sentence_transformers import CrossEncoder

        with quiet_loading("same", files.path, "a classifier of pairs"):
            model = CrossEncoder(
                str(files.path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
            )
        if not any(name.endswith("ForSequenceClassification") for name in model.config.architectures or ()):
            raise ValueError(f"same: {files.path} has no trained weights for a classifier: they would be random.")
        limit = token_limit(model.model, model.tokenizer)
        # The first is read by version 5 of sentence-transformers, the second by version 6.
        model.tokenizer.model_max_length = model.max_seq_length = limit
        labels = [str(label).lower() for _, label in sorted(model.config.id2label.items())]
        return Classifier(model, labels, limit, files.identity)

    return load_once(("classifier of pairs", files.identity, device), load)


def _logits(pairs: list[tuple[str, str]], loaded: Classifier, settings: EncoderSettings) -> np.ndarray:
    """Classify pairs: (e, number of classes)."""
    if not pairs:
        return np.empty((0, len(loaded.labels)))
    model, limit = loaded.model, loaded.limit
    with model_registry().lock:
        ids = model.tokenizer(*map(list, zip(*pairs, strict=True)), truncation=False, verbose=False)["input_ids"]
        logits = model.predict(
            pairs,
            batch_size=settings.batch_size or _BATCH_SIZE,
            show_progress_bar=settings.progress,
            activation_fn=torch.nn.Identity(),
        )
    lengths = np.array(list(map(len, ids)))
    if (lengths > limit).any():
        warnings.warn(
            f"{np.count_nonzero(lengths > limit)} of {len(pairs)} pairs of texts are longer than the {limit} tokens "
            f"that the model of same reads: the rest is cut off (the longest has {lengths.max()}).",
            stacklevel=8,
        )
    return logits
