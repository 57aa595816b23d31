"""Entailment between texts, both ways, by a sequence-classification model that the caller names."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings, progress_bar
from .core_models import FairLock, find_device, find_transformer, load_head, model_registry
from .core_tokens import token_batches

# A tokenizer without a limit reports a number far above any real one.
_NO_LIMIT = 10**6


class LoadedNli(NamedTuple):
    """A classifier of pairs in memory, and the lock to hold while it runs: its tokenizer is not thread-safe.

    entailment : the class that stands for entailment
    limit : how many tokens of a pair it reads; None if unknown
    """

    model: Any
    tokenizer: Any
    entailment: int
    limit: int | None
    precision: str
    lock: FairLock


def mutual_entailment(
    pairs: Sequence[tuple[str, str]], name: str, settings: EncoderSettings
) -> tuple[np.ndarray, dict[str, str]]:
    """Find the pairs of which each text entails the other, as semantic entropy compares answers (Kuhn et al. 2023).

    Parameters
    ----------
    pairs : e pairs of texts; equal pairs are classified once
    name : id on the Hugging Face Hub, or folder, of a model with a class named "entailment"
    settings : of which precision, batch_size, device and progress are used

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
    loaded, identity = load_nli(name, settings)
    ordered = list(dict.fromkeys(way for left, right in pairs for way in ((left, right), (right, left))))
    entailed = dict(zip(ordered, _entails(ordered, loaded, settings), strict=True))
    same = np.array([entailed[left, right] and entailed[right, left] for left, right in pairs], dtype=bool)
    return same, {"same": f"nli:{identity}", "precision": loaded.precision}


def load_nli(name: str, settings: EncoderSettings) -> tuple[LoadedNli, str]:
    """Load a classifier, or return the one that this process has loaded, with the identity of its weights."""
    device, registry = find_device(settings.device), model_registry()
    with registry.lock:
        files = find_transformer(name, "same")
        key = ("nli", files.identity, device, settings.precision)
        if key not in registry.models:
            registry.models[key] = _read(files.path, settings.precision, device)
        return registry.models[key], files.identity


def _read(path: Any, precision: str | None, device: str) -> LoadedNli:
    model, tokenizer = load_head(path, "same", "AutoModelForSequenceClassification", "a classifier of pairs", precision)
    labels = {str(label).lower(): number for number, label in model.config.id2label.items()}
    if "entailment" not in labels:
        raise ValueError(f"same: {path} has no class named 'entailment': it has {', '.join(map(repr, labels))}.")
    limit = tokenizer.model_max_length
    if limit > _NO_LIMIT:
        limit = getattr(model.config, "max_position_embeddings", None)
    stored = str(model.dtype).removeprefix("torch.")
    return LoadedNli(model.eval().to(device), tokenizer, int(labels["entailment"]), limit, stored, FairLock())


def _entails(pairs: list[tuple[str, str]], loaded: LoadedNli, settings: EncoderSettings) -> list[bool]:
    """Return whether entailment is the most likely class of each pair, in batches of similar length."""
    if not pairs:
        return []
    with loaded.lock:
        encoded, lengths = _tokenize(pairs, loaded)
    if loaded.limit is not None and (cut := lengths > loaded.limit).any():
        warnings.warn(
            f"{cut.sum()} of {len(pairs)} pairs of texts are longer than the {loaded.limit} tokens that the model of "
            f"same reads: the rest is cut off (the longest has {lengths.max()}).",
            stacklevel=7,
        )
    entailed = np.zeros(len(pairs), dtype=bool)
    device = str(loaded.model.device)
    read = lengths if loaded.limit is None else np.minimum(lengths, loaded.limit)
    with progress_bar(len(pairs), "Comparing", "pair", settings.progress) as bar:
        for batch in token_batches(read, device, settings.batch_size):
            # The lock is released between batches, so that a short call need not wait for the end of a long one.
            with loaded.lock, torch.inference_mode():
                columns = {name: [values[i] for i in batch] for name, values in encoded.items()}
                inputs = loaded.tokenizer.pad(columns, return_tensors="pt").to(device)
                entailed[batch] = (loaded.model(**inputs).logits.argmax(dim=-1) == loaded.entailment).cpu().numpy()
            bar.update(len(batch))
    return entailed.tolist()


def _tokenize(pairs: list[tuple[str, str]], loaded: LoadedNli) -> tuple[Any, np.ndarray]:
    """Tokenize pairs, cut to what the model reads; returns the number of tokens of each before, too."""
    left, right = map(list, zip(*pairs, strict=True))
    encoded = loaded.tokenizer(left, right, truncation=False, padding=False, verbose=False)
    lengths = np.fromiter(map(len, encoded["input_ids"]), np.int64, len(pairs))
    if loaded.limit is not None and lengths.max() > loaded.limit:
        encoded = loaded.tokenizer(left, right, truncation=True, max_length=loaded.limit, padding=False, verbose=False)
    return encoded, lengths
