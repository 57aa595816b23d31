"""Which pairs of texts are the same, by a sequence-classification model that the caller names."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings, progress_bar
from .core_models import LoadedHead, load_head
from .core_tokens import token_batches


class PairRule(NamedTuple):
    """When a classifier with two classes, different and same, makes two texts the same.

    threshold : the probability of the second class must exceed it
    tokens : how many tokens of each text are read; if None, as many of the pair as the model reads
    words : two texts of at most this many words are the same if they share at least half as many different words as
        the longer has words, without asking the model; None for no such rule
    """

    threshold: float = 0.5
    tokens: int | None = None
    words: int | None = None


# The classifier's threshold of NoveltyBench (arXiv 2504.05228), and the inputs of src/partition.py in its repository,
# whose later version compares short texts by the classifier, too.
PAIR_RULES = {"noveltybench-2025": PairRule(0.102, 128, 5), "noveltybench-2026": PairRule(0.102, 128)}


def mutual_entailment(
    pairs: Sequence[tuple[str, str]], name: str, settings: EncoderSettings
) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs of which each text entails the other, as semantic entropy does (Farquhar et al. 2024).

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
    loaded, labels = _load(name, settings)
    if "entailment" not in labels:
        raise ValueError(f"same: {name} has no class named 'entailment': it has {_show(labels)}.")
    ordered = list(dict.fromkeys(way for left, right in pairs for way in ((left, right), (right, left))))
    is_entailed = _logits(ordered, loaded, settings).argmax(axis=-1) == labels.index("entailment")
    entailed = dict(zip(ordered, is_entailed.tolist(), strict=True))
    same = np.array([entailed[left, right] and entailed[right, left] for left, right in pairs], dtype=bool)
    return same, {"same": f"nli:{loaded.identity}", "precision": loaded.precision}


def probably_same(
    pairs: Sequence[tuple[str, str]], name: str, rule: PairRule, settings: EncoderSettings
) -> tuple[np.ndarray, dict[str, Any]]:
    """Find the pairs that a classifier with two classes, different and same, holds for the same under a rule.

    Parameters, returns, warns and raises as `mutual_entailment`; the order of the texts of a pair matters.
    """
    loaded, labels = _load(name, settings)
    if len(labels) != 2:
        raise ValueError(
            f"same: {name} must have two classes, the second for texts that are the same. It has "
            f"{len(labels)}: {_show(labels)}."
        )
    ordered = list(dict.fromkeys(pairs))
    is_same: dict[tuple[str, str], bool] = {}
    if rule.words is not None:
        overlaps = ((pair, _overlap(*pair, rule.words)) for pair in ordered)
        is_same = {pair: overlap for pair, overlap in overlaps if overlap is not None}
    unknown = [pair for pair in ordered if pair not in is_same]
    logits = _logits(unknown, loaded, settings, rule.tokens)
    probabilities = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    is_same |= zip(unknown, (probabilities > rule.threshold).tolist(), strict=True)
    same = np.array([is_same[pair] for pair in pairs], dtype=bool)
    return same, {"same": f"pairs:{loaded.identity}", "precision": loaded.precision}


def _overlap(left: str, right: str, max_words: int) -> bool | None:
    """Return whether two short texts share half of the longer one's words; None if one of them is not short."""
    first, second = left.lower().split(), right.lower().split()
    longer = max(len(first), len(second))
    return None if longer > max_words else 2 * len(set(first) & set(second)) >= longer


def _show(labels: list[str]) -> str:
    return ", ".join(map(repr, labels))


def _load(name: str, settings: EncoderSettings) -> tuple[LoadedHead, list[str]]:
    """Load a classifier of pairs; returns the names of its classes, too."""
    kind = "a classifier of pairs"
    loaded = load_head(name, "same", "AutoModelForSequenceClassification", kind, settings.precision, settings.device)
    return loaded, [str(label).lower() for _, label in sorted(loaded.model.config.id2label.items())]


def _logits(
    pairs: list[tuple[str, str]], loaded: LoadedHead, settings: EncoderSettings, n_tokens: int | None = None
) -> np.ndarray:
    """Classify pairs, in batches of similar length: (e, number of classes), float64.

    n_tokens : how many tokens of each text are read; if None, as many of the pair as the model reads
    """
    logits = np.empty((len(pairs), loaded.model.config.num_labels))
    if not pairs:
        return logits
    with loaded.lock:
        encoded, lengths = _tokenize(pairs, loaded) if n_tokens is None else _tokenize_each(pairs, loaded, n_tokens)
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


def _tokenize(pairs: list[tuple[str, str]], loaded: LoadedHead) -> tuple[Any, np.ndarray]:
    """Tokenize pairs, cut to what the model reads; returns the number of tokens of each, too."""
    limit, (left, right) = loaded.limit(), map(list, zip(*pairs, strict=True))
    encoded = loaded.tokenizer(left, right, truncation=False, padding=False, verbose=False)
    lengths = np.fromiter(map(len, encoded["input_ids"]), np.int64, len(pairs))
    if lengths.max() <= limit:
        return encoded, lengths
    warnings.warn(
        f"{(lengths > limit).sum()} of {len(pairs)} pairs of texts are longer than the {limit} tokens "
        f"that the model of same reads: the rest is cut off (the longest has {lengths.max()}).",
        stacklevel=8,
    )
    encoded = loaded.tokenizer(left, right, truncation=True, max_length=limit, padding=False, verbose=False)
    return encoded, np.minimum(lengths, limit)


def _tokenize_each(
    pairs: list[tuple[str, str]], loaded: LoadedHead, n_tokens: int
) -> tuple[dict[str, list[list[int]]], np.ndarray]:
    """Tokenize pairs as [CLS] left [SEP] right [SEP], of at most `n_tokens` of each text."""
    tokenizer, limit = loaded.tokenizer, loaded.limit()
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    if start is None or end is None:
        raise ValueError("same_rule needs a model whose tokenizer has the special tokens [CLS] and [SEP].")
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    ids = tokenizer(texts, add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
    lengths = np.fromiter(map(len, ids), np.int64, len(texts))
    if (cut := lengths > n_tokens).any():
        warnings.warn(
            f"{cut.sum()} of {len(texts)} different texts are longer than the {n_tokens} tokens that same_rule reads: "
            f"the rest of each is cut off (the longest has {lengths.max()}).",
            stacklevel=8,
        )
    read = dict(zip(texts, [row[:n_tokens] for row in ids], strict=True))
    rows = [[start, *read[left], end, *read[right], end] for left, right in pairs]
    longest = max(map(len, rows))
    if longest > limit:
        raise ValueError(
            f"same_rule reads {n_tokens} tokens of each text, but the model of same at most {limit} of a pair. "
            f"Got a pair of {longest}."
        )
    encoded = {"input_ids": rows}
    if "token_type_ids" in tokenizer.model_input_names:
        firsts = [row.index(end) + 1 for row in rows]
        encoded["token_type_ids"] = [
            [0] * first + [1] * (len(row) - first) for row, first in zip(rows, firsts, strict=True)
        ]
    return encoded, np.fromiter(map(len, rows), np.int64, len(rows))
