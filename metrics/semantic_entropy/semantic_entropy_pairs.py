"""Classify pairs of texts by a sequence-classification model: which of them say the same."""

from typing import Any

import numpy as np

from .core import EncoderSettings, Pairs, first_maximum, load_pair_model


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
    loaded = load_pair_model(name, "same", settings.device)
    entailment = loaded.position("entailment")
    ordered = list(dict.fromkeys(way for left, right in pairs for way in ((left, right), (right, left))))
    is_entailed = first_maximum(loaded.logits(ordered, settings)) == entailment
    entailed = dict(zip(ordered, is_entailed.tolist(), strict=True))
    same = np.array([entailed[left, right] and entailed[right, left] for left, right in pairs], dtype=bool)
    return same, {"same": f"nli:{loaded.identity}"}


def probably_same(pairs: Pairs, name: str, settings: EncoderSettings) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs to which a classifier with two classes gives the second a probability above one half.

    Parameters, returns, warns and raises as `mutual_entailment`; the order of the texts of a pair matters.
    """
    loaded = load_pair_model(name, "same", settings.device)
    if len(loaded.labels) != 2:
        raise ValueError(
            f"same: {name} must have two classes, the second for texts that say the same. It has "
            f"{len(loaded.labels)}: {', '.join(map(repr, loaded.labels))}."
        )
    ordered = list(dict.fromkeys(pairs))
    is_second = first_maximum(loaded.logits(ordered, settings)) == 1
    is_same = dict(zip(ordered, is_second.tolist(), strict=True))
    return np.array([is_same[pair] for pair in pairs], dtype=bool), {"same": f"pairs:{loaded.identity}"}
