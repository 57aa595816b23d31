"""Models that read two texts together: loading, and what they say of pairs of texts."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from .core_encoder import EncoderSettings
from .core_inputs import LIMITS, TextSets, batches_by_size, parse_contexts
from .core_models import TRANSFORMER, find_device, find_model, load_once, model_registry, quiet_loading, token_limit

Pairs = Sequence[tuple[str, str]]
# What a setting that names such a model begins with.
NLI, PAIRS = "nli:", "pairs:"
# Pairs in a batch by default.
_PAIR_BATCH_SIZE = 32


class PairModel(NamedTuple):
    """A CrossEncoder in memory.

    model : maps pairs to logits
    labels : names of its classes, in lower case
    limit : most tokens of a pair that it reads
    identity : name of its exact weights in a signature
    parameter : the argument that names it, for errors
    """

    model: Any
    labels: list[str]
    limit: int
    identity: str
    parameter: str

    def logits(self, pairs: Pairs, settings: EncoderSettings) -> np.ndarray:
        """Classify e pairs: (e, number of classes); warns once, with the count, of pairs that are too long."""
        if not pairs:
            return np.empty((0, len(self.labels)))
        with model_registry().lock:
            ids = self.model.tokenizer(*map(list, zip(*pairs, strict=True)), truncation=False, verbose=False)
            logits = self.model.predict(
                list(pairs),
                batch_size=settings.batch_size or _PAIR_BATCH_SIZE,
                show_progress_bar=settings.progress,
                activation_fn=torch.nn.Identity(),
            )
        lengths = np.array(list(map(len, ids["input_ids"])))
        if (lengths > self.limit).any():
            warnings.warn(
                f"{np.count_nonzero(lengths > self.limit)} of {len(pairs)} pairs of texts are longer than the "
                f"{self.limit} tokens that the model of {self.parameter} reads: the rest is cut off (the longest has "
                f"{lengths.max()}).",
                stacklevel=8,
            )
        return logits.reshape(len(pairs), len(self.labels))

    def position(self, label: str) -> int:
        """Return the index of a class, or raise a ValueError if the model has none of this name."""
        if label not in self.labels:
            names = ", ".join(map(repr, self.labels))
            raise ValueError(f"{self.parameter}: {self.identity} has no class named {label!r}: it has {names}.")
        return self.labels.index(label)


def is_pair_model(value: Any) -> bool:
    """Tell whether a value names a model of pairs: "nli:<model>" or "pairs:<model>"."""
    return isinstance(value, str) and value.startswith((NLI, PAIRS)) and value not in (NLI, PAIRS)


def load_pair_model(name: str, parameter: str, device: str | None) -> PairModel:
    """Load a classifier of pairs in float32, or return the one that this process has loaded.

    Raises a ValueError, which names the parameter, if it cannot be found or is not a trained classifier.
    """
    device, files = find_device(device), find_model(name, parameter, TRANSFORMER)

    def load() -> tuple[Any, list[str], int]:
        from sentence_transformers import CrossEncoder

        with quiet_loading(parameter, files.path, "a classifier of pairs"):
            model = CrossEncoder(
                str(files.path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
            )
        if not any(name.endswith("ForSequenceClassification") for name in model.config.architectures or ()):
            raise ValueError(
                f"{parameter}: {files.path} has no trained weights for a classifier: they would be random."
            )
        limit = token_limit(model.model, model.tokenizer)
        # The first is read by version 5 of sentence-transformers, the second by version 6.
        model.tokenizer.model_max_length = model.max_seq_length = limit
        labels = [str(label).lower() for _, label in sorted(model.config.id2label.items())]
        return model, labels, limit

    model, labels, limit = load_once(("classifier of pairs", files.identity, device), load)
    return PairModel(model, labels, limit, files.identity, parameter)


def with_contexts(sets: TextSets, contexts: Any) -> list[str]:
    """Put the context of its set, such as the question, before each text; see `parse_contexts`."""
    if contexts is None:
        return sets.texts
    owners = np.repeat(np.arange(len(sets.sizes)), sets.sizes).tolist()
    prefixes = [f"{context} " if context else "" for context in parse_contexts(contexts, sets)]
    return [prefixes[owner] + text for owner, text in zip(owners, sets.texts, strict=True)]


def all_pairs(sizes: np.ndarray) -> np.ndarray:
    """List all pairs of items of one set: ndarray of shape (e, 2), the earlier first."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for _, rows in batches_by_size(sizes, LIMITS.block_rows):
        i, j = np.triu_indices(rows.shape[1], 1)
        pairs.append(np.stack([rows[:, i].ravel(), rows[:, j].ravel()], axis=1))
    return np.concatenate(pairs)


def model_similarities(
    sets: TextSets, rule: str, contexts: Any, settings: EncoderSettings
) -> tuple[list[np.ndarray], dict[str, str]]:
    """Ask a model for the similarity of the texts of each set.

    Equal texts have similarity 1. The model reads each other pair in both orders, once a call, and the mean is taken.

    The rule is "pairs:<model>", a cross-encoder with one score in [0, 1], or with two classes of which the second is
    for texts that say the same; or "nli:<model>", of which P(entailment) - P(contradiction) is taken, at least 0.
    `contexts`, what each set answers, are put before both texts of a pair.

    Returns m ndarrays of shape (k, k), float64, symmetric, in [0, 1], with a diagonal of 1; and the entries of a
    signature. Raises a ValueError if the model cannot be found, has other classes, or gives a score outside [0, 1].
    """
    texts = with_contexts(sets, contexts)
    places = all_pairs(sets.sizes)
    pairs = [(texts[i], texts[j]) for i, j in places.tolist()]
    ordered = list(dict.fromkeys(way for a, b in pairs if a != b for way in ((a, b), (b, a))))
    kind = NLI if rule.startswith(NLI) else PAIRS
    loaded = load_pair_model(rule.removeprefix(kind), "similarity", settings.device)
    scores = _entailment(loaded, ordered, settings) if kind == NLI else _probability(loaded, ordered, settings)
    by_pair = dict(zip(ordered, scores.tolist(), strict=True))
    values = [1.0 if a == b else max((by_pair[a, b] + by_pair[b, a]) / 2, 0.0) for a, b in pairs]
    starts = np.repeat(np.cumsum(sets.sizes) - sets.sizes, sets.sizes)
    matrices = [np.eye(size) for size in sets.sizes.tolist()]
    owner = np.repeat(np.arange(len(sets.sizes)), sets.sizes)[places[:, 0]]
    for set_index, (i, j), value in zip(owner.tolist(), (places - starts[places]).tolist(), values, strict=True):
        matrices[set_index][i, j] = matrices[set_index][j, i] = value
    return matrices, {"similarity": f"{kind}{loaded.identity}", **({} if contexts is None else {"contexts": "given"})}


def _entailment(loaded: PairModel, pairs: Pairs, settings: EncoderSettings) -> np.ndarray:
    """Return P(entailment) - P(contradiction) of pairs: (e,), in [-1, 1]."""
    positions = loaded.position("entailment"), loaded.position("contradiction")
    shares = torch.from_numpy(loaded.logits(pairs, settings)).double().softmax(-1).numpy()
    return shares[:, positions[0]] - shares[:, positions[1]]


def _probability(loaded: PairModel, pairs: Pairs, settings: EncoderSettings) -> np.ndarray:
    """Return the score of pairs by a model with one, or the probability of the second of two classes: (e,)."""
    if len(loaded.labels) > 2:
        names = ", ".join(map(repr, loaded.labels))
        raise ValueError(
            f"{loaded.parameter}: {loaded.identity} must have one score, or two classes, the second for texts that say "
            f"the same. It has {names}."
        )
    logits = torch.from_numpy(loaded.logits(pairs, settings)).double()
    scores = logits.softmax(-1)[:, 1] if len(loaded.labels) == 2 else loaded.model.activation_fn(logits)[:, 0]
    outside = scores[(scores < 0) | (scores > 1)].tolist()
    if outside:
        raise ValueError(f"{loaded.parameter}: {loaded.identity} must score pairs in [0, 1]. Got {outside[0]}.")
    return scores.numpy()
