"""Which pairs of texts say the same, by a sequence-classification model that the caller names."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .core_encoder import EncoderSettings, progress_bar, token_batches
from .core_models import LoadedHead, load_head

Pairs = Sequence[tuple[str, str]]


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
    loaded, labels = _load(name, settings)
    if "entailment" not in labels:
        raise ValueError(f"same: {name} has no class named 'entailment': it has {', '.join(map(repr, labels))}.")
    ordered = list(dict.fromkeys(way for left, right in pairs for way in ((left, right), (right, left))))
    is_entailed = _logits(ordered, loaded, settings).argmax(axis=-1) == labels.index("entailment")
    entailed = dict(zip(ordered, is_entailed.tolist(), strict=True))
    same = np.array([entailed[left, right] and entailed[right, left] for left, right in pairs], dtype=bool)
    return same, {"same": f"nli:{loaded.identity}"}


def probably_same(pairs: Pairs, name: str, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs to which a classifier with two classes gives the second a probability above one half.

    Parameters, returns, warns and raises as `mutual_entailment`; the order of the texts of a pair matters.
    """
    loaded, labels = _load(name, settings)
    if len(labels) != 2:
        raise ValueError(
            f"same: {name} must have two classes, the second for texts that say the same. It has "
            f"{len(labels)}: {', '.join(map(repr, labels))}."
        )
    ordered = list(dict.fromkeys(pairs))
    logits = _logits(ordered, loaded, settings)
    is_same = dict(zip(ordered, (logits[:, 1] > logits[:, 0]).tolist(), strict=True))
    return np.array([is_same[pair] for pair in pairs], dtype=bool), {"same": f"pairs:{loaded.identity}"}


def _load(name: str, settings: EncoderSettings) -> tuple[LoadedHead, list[str]]:
    """Load a classifier of pairs; returns the names of its classes, too."""
    kind = "a classifier of pairs"
    loaded = load_head(name, "same", "AutoModelForSequenceClassification", kind, settings.device)
    return loaded, [str(label).lower() for _, label in sorted(loaded.model.config.id2label.items())]


def _logits(pairs: list[tuple[str, str]], loaded: LoadedHead, settings: EncoderSettings) -> np.ndarray:
    """Classify pairs, in batches of similar length: (e, number of classes), float64."""
    logits = np.empty((len(pairs), loaded.model.config.num_labels))
    if not pairs:
        return logits
    limit, (left, right) = loaded.limit(), map(list, zip(*pairs, strict=True))
    with loaded.lock:
        encoded = loaded.tokenizer(left, right, truncation=True, max_length=limit, padding=False, verbose=False)
        whole = loaded.tokenizer(left, right, truncation=False, padding=False, verbose=False)["input_ids"]
    n_cut = sum(len(ids) > limit for ids in whole)
    if n_cut:
        warnings.warn(
            f"{n_cut} of {len(pairs)} pairs of texts are longer than the {limit} tokens that the model of same reads: "
            f"the rest is cut off (the longest has {max(map(len, whole))}).",
            stacklevel=8,
        )
    lengths = np.fromiter(map(len, encoded["input_ids"]), np.int64, len(pairs))
    device = str(loaded.model.device)
    with progress_bar(len(pairs), "Comparing", "pair", settings.progress) as bar:
        for batch in token_batches(lengths, device, settings.batch_size):
            # The lock is released between batches, so that a short call need not wait for the end of a long one.
            with loaded.lock, torch.inference_mode():
                columns = {name: [values[i] for i in batch] for name, values in encoded.items()}
                inputs = loaded.tokenizer.pad(columns, return_tensors="pt").to(device)
                logits[batch] = loaded.model(**inputs).logits.double().cpu().numpy()
            bar.update(len(batch))
    return logits
