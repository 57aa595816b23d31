"""Models that read two texts together, and the pairs of texts that they read."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .core_encoder import EncoderSettings
from .core_inputs import LIMITS, TextSets, batches_by_size, find_different, parse_contexts
from .core_models import TRANSFORMER, find_device, find_model, load_once, model_registry, quiet_loading, token_limit
from .core_settings import NLI, PAIRS
from .core_warnings import warn

Pairs = Sequence[tuple[str, str]]
# Pairs in a batch by default.
_PAIR_BATCH_SIZE = 32


class PairModel(NamedTuple):
    """A CrossEncoder in memory.

    model : maps pairs to logits
    labels : names of its c classes, in lower case
    kind : NLI or PAIRS
    identity : name of its exact weights in a signature
    parameter : the argument that names it, for errors
    """

    model: Any
    labels: list[str]
    kind: str
    identity: str
    parameter: str

    def logits(self, pairs: Pairs, settings: EncoderSettings) -> np.ndarray:
        """Classify e pairs, each different one once: (e, c); warns, with the count, of pairs that are too long."""
        import torch

        if not pairs:
            return np.empty((0, len(self.labels)))
        different, places = find_different(pairs)
        with model_registry().lock:
            ids = self.model.tokenizer(*map(list, zip(*different, strict=True)), truncation=False, verbose=False)
            logits = self.model.predict(
                different,
                batch_size=settings.batch_size or _PAIR_BATCH_SIZE,
                show_progress_bar=settings.progress,
                activation_fn=torch.nn.Identity(),
            )
        lengths = np.array(list(map(len, ids["input_ids"])))
        limit = self.model.tokenizer.model_max_length
        if (lengths > limit).any():
            warn(
                f"{np.count_nonzero(lengths > limit)} of {len(different)} pairs of texts are longer than the "
                f"{limit} tokens that the model of {self.parameter} reads: the rest is cut off (the longest has "
                f"{lengths.max()})."
            )
        return logits.reshape(len(different), len(self.labels))[places]

    def logits_both_ways(self, pairs: Pairs, settings: EncoderSettings) -> np.ndarray:
        """Classify e pairs in both orders: (e, 2, c)."""
        ways: list[tuple[str, str]] = []
        for a, b in pairs:
            ways += [(a, b), (b, a)]
        return self.logits(ways, settings).reshape(len(pairs), 2, len(self.labels))

    def position(self, label: str) -> int:
        """Return the index of a class; raises a ValueError if the model lacks it."""
        if label not in self.labels:
            names = ", ".join(map(repr, self.labels))
            raise ValueError(f"{self.parameter}: {self.identity} has no class named {label!r}: it has {names}.")
        return self.labels.index(label)


def load_pair_model(rule: str, parameter: str, device: str | None) -> PairModel:
    """Load the classifier that "nli:<model>" or "pairs:<model>" names in float32, once in a process.

    Raises a ValueError, which names the parameter, if it cannot be found or is not a trained classifier.
    """
    kind = NLI if rule.startswith(NLI) else PAIRS
    device = find_device(device)
    files = find_model(rule.removeprefix(kind), parameter, TRANSFORMER)

    def load() -> Any:
        import torch
        from sentence_transformers import CrossEncoder

        with quiet_loading(parameter, files.path, "a classifier of pairs"):
            model = CrossEncoder(
                str(files.path), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
            )
        if not any(name.endswith("ForSequenceClassification") for name in model.config.architectures or ()):
            raise ValueError(
                f"{parameter}: {files.path} has no trained weights for a classifier: they would be random."
            )
        # The first is read by version 5 of sentence-transformers, the second by version 6.
        model.tokenizer.model_max_length = model.max_seq_length = token_limit(model.model, model.tokenizer)
        return model

    model = load_once(("classifier of pairs", files.identity, device), load)
    labels = [str(label).lower() for _, label in sorted(model.config.id2label.items())]
    return PairModel(model, labels, kind, files.identity, parameter)


def with_contexts(sets: TextSets, contexts: Any) -> list[str]:
    """Put the context of its set, such as the question, before each text; see `parse_contexts`."""
    if contexts is None:
        return sets.texts
    prefixes = [f"{context} " if context else "" for context in parse_contexts(contexts, sets)]
    return [prefixes[owner] + text for owner, text in zip(sets.owners.tolist(), sets.texts, strict=True)]


def all_pairs(sizes: np.ndarray) -> np.ndarray:
    """List all pairs of items of one set: ndarray of shape (e, 2), the earlier first."""
    pairs = [np.empty((0, 2), dtype=np.int64)]
    for _, rows in batches_by_size(sizes, LIMITS.block_rows):
        i, j = np.triu_indices(rows.shape[1], 1)
        pairs.append(np.stack([rows[:, i].ravel(), rows[:, j].ravel()], axis=1))
    return np.concatenate(pairs)
