"""The sets of texts of a question, and the scores of any subsets of them."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import text_metrics
from text_metrics.metrics._core.core_inputs import TextSets, flatten, gather, parse_embeddings, parse_sets
from text_metrics.metrics._core.core_results import SETS
from text_metrics.metrics._core.core_settings import PAIR, SET, TEXT

# Texts of subsets that are passed to `compute` at a time, to bound the memory.
_TEXTS_AT_ONCE = 2**15
# What concerns the result of a call, and not the score of a set.
_OF_RESULT = ("set_size", "confidence", "confidence_by", "details", "progress")
# Given for texts, a probability that is shared out among them.
WEIGHTS = "weights"


class Subset(NamedTuple):
    """Some texts of a set: their indices in it, in the order in which they are scored.

    weights : one for each, if they are others than those of the texts
    """

    of_set: int
    members: np.ndarray
    weights: np.ndarray | None = None


class Asked:
    """The m sets of texts of a question, and what is given for them.

    Parameters
    ----------
    metric : a loaded metric of sets, or its name
    predictions, settings : as for its `compute`

    Attributes
    ----------
    texts : list of m lists of str
    plain : dict, the result of `compute` for the whole sets

    Raises
    ------
    TypeError, ValueError
        For a metric that does not score sets, and for whatever `compute` refuses.
    """

    def __init__(self, metric: Any, predictions: Any, settings: Mapping[str, Any]) -> None:
        self.metric = text_metrics.load(metric) if isinstance(metric, str) else metric
        if self.metric.items != SETS:
            raise ValueError(f"metric must score sets of texts: {self.metric.name} scores {self.metric.items}.")
        self.settings = dict(settings)
        self.declared = self.metric.settings.declared()
        self.metric.settings.read(self.settings, self.metric.name)
        sets = parse_sets(predictions, self.settings.get("set_size"))
        self._predictions = predictions
        self.texts = _by_set(sets.texts, sets)
        self.given = {
            name: _read_given(name, self.settings[name], self.declared[name].given, sets)
            for name in self.settings
            if self.settings[name] is not None and self.declared[name].given in (SET, TEXT, PAIR)
        }

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (m,)."""
        return np.array([len(texts) for texts in self.texts])

    @property
    def skipping(self) -> dict[str, Any]:
        """The setting that gives sets of one text no score, in place of an error; empty for a metric without it."""
        return {"singletons": "skip"} if "singletons" in self.declared else {}

    @contextmanager
    def remembering(self, **settings: Any) -> Iterator[None]:
        """Score the whole sets as `plain`, and remember the embeddings, so that each text is encoded once.

        settings : replace those of the caller
        """
        self.settings |= settings
        with tempfile.TemporaryDirectory(prefix="text_metrics") as folder:
            encoder: Any = self.settings.get("model")
            if callable(getattr(encoder, "encode", None)):
                name = getattr(encoder, "signature_name", type(encoder).__name__)
                self.settings["model"] = SimpleNamespace(encode=_remembering(encoder.encode), signature_name=name)
            elif "cache_dir" in self.declared:
                self.settings.setdefault("cache_dir", folder)
            if callable(same := self.settings.get("same")):
                self.settings["same"] = _remembering(same)
            self.plain = self.metric.compute(predictions=self._predictions, **self.settings)
            yield

    def signature(self, entries: str) -> str:
        """Return the signature of `plain` with further entries before the version."""
        head, _, version = self.plain["signature"].rpartition("|version:")
        return f"{head}|{entries}|version:{version}"

    def fix_classes(self) -> None:
        """Give the classes of the whole sets to their subsets, in place of what finds classes."""
        kept = {name: self.settings[name] for name in (WEIGHTS, *_OF_RESULT) if name in self.settings}
        self.settings = kept | {"classes": None}
        self.given = {name: self.given[name] for name in (WEIGHTS, "confidence_by") if name in self.given}
        self.given["classes"] = [row["classes"] for row in self.plain["details"]]

    def results(self, subsets: Iterable[Subset], **settings: Any) -> Iterator[tuple[list[Subset], dict[str, Any]]]:
        """Score subsets of sets, some at a time: yields subsets, and the result of `compute` for them.

        settings : replace those of the caller
        """
        common = {name: value for name, value in self.settings.items() if name not in {*_OF_RESULT, *self.given}}
        for chunk in gather(subsets, lambda subset: len(subset.members), _TEXTS_AT_ONCE):
            given = {name: self._slice(name, chunk) for name in self.given if name not in _OF_RESULT}
            predictions = [[self.texts[part.of_set][i] for i in part.members.tolist()] for part in chunk]
            yield chunk, self.metric.compute(predictions=predictions, **(common | given | settings))

    def scores(self, subsets: Iterable[Subset], **settings: Any) -> np.ndarray:
        """Return the score of each subset; NaN for one that has none."""
        found = [result["scores"] for _, result in self.results(subsets, **settings)]
        return np.array([score for scores in found for score in scores], dtype=np.float64)

    def has_weight(self, of_set: int, members: np.ndarray) -> bool:
        """Whether any of these texts has a weight, without which they have no score."""
        return WEIGHTS not in self.given or bool(np.asarray(self.given[WEIGHTS][of_set])[members].sum() > 0)

    def _slice(self, name: str, subsets: list[Subset]) -> Any:
        """Return what is given for the texts of subsets."""
        values, kind = self.given[name], self.declared[name].given
        if kind == SET:
            return [values[part.of_set] for part in subsets]
        if kind == PAIR:
            return [values[part.of_set][np.ix_(part.members, part.members)] for part in subsets]
        if name == "embeddings":
            starts = np.cumsum(self.sizes) - self.sizes
            return values[np.concatenate([starts[part.of_set] + part.members for part in subsets])]
        if name == WEIGHTS:
            rows = [values[s.of_set][s.members] if s.weights is None else s.weights for s in subsets]
            return [(row / row.sum()).tolist() for row in rows]
        return [[values[part.of_set][i] for i in part.members.tolist()] for part in subsets]


def _read_given(name: str, values: Any, kind: str, sets: TextSets) -> Any:
    """Return what is given for the texts of each set: a list of m; of embeddings, the array of all."""
    if kind == SET:
        return list(values)
    if kind == PAIR:
        return [np.asarray(matrix) for matrix in (values if len(sets.sizes) > 1 or sets.nested else [values])]
    if name == "embeddings":
        return parse_embeddings(values, sets)
    rows = _by_set(flatten(values, sets, name, "value"), sets)
    return [np.asarray(row, dtype=np.float64) for row in rows] if name == WEIGHTS else rows


def _by_set(values: Any, sets: TextSets) -> list:
    ends = np.cumsum(sets.sizes).tolist()
    return [values[end - size : end] for end, size in zip(ends, sets.sizes.tolist(), strict=True)]


def _remembering(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of lists that asks another once about each item, or each pair of items of two lists."""
    answers: dict[tuple[str, ...], Any] = {}

    @wraps(ask)
    def asked_once(*lists: Sequence[str]) -> Any:
        items = list(zip(*lists, strict=True))
        new = [item for item in dict.fromkeys(items) if item not in answers]
        if new:
            found = ask(*map(list, zip(*new, strict=True)))
            if new == items or len(found) != len(new):
                answers.update(zip(new, found, strict=False))
                return found  # as it is, for the metric to read or to refuse
            answers.update(zip(new, found, strict=True))
        return [answers[item] for item in items]

    return asked_once
