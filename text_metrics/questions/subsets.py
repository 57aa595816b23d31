"""Score subsets of sets of texts."""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import text_metrics
from text_metrics.core_api import SETS, Signature, caller_name, parse_sets, scale_shares

# Texts of subsets that are passed to `compute` at a time, to bound the memory.
_TEXTS_AT_ONCE = 2**15
# Settings of the result of a call, which do not change the score of a set.
_OF_RESULT = ("set_size", "confidence", "confidence_by", "details", "progress")


class Subsets(NamedTuple):
    """Subsets of k texts each.

    owners : ndarray of shape (s,), the set of each
    rows : ndarray of shape (s, k), flat indices of the texts, in the order in which they are scored
    weights : ndarray of shape (s, k), if they differ from the weights of the texts
    """

    owners: np.ndarray
    rows: np.ndarray
    weights: np.ndarray | None = None

    def part(self, places: Any) -> "Subsets":
        """Select items by a slice or by indices."""
        weights = None if self.weights is None else self.weights[places]
        return Subsets(self.owners[places], self.rows[places], weights)


class SubsetScorer:
    """Score subsets of m sets of n texts by calls of `compute`, with the arguments of their texts.

    Parameters
    ----------
    metric : a loaded metric of sets, or its name
    predictions, settings : as for its `compute`

    Attributes
    ----------
    sets : the texts
    starts : ndarray of shape (m,), the flat index of the first text of each set
    given : by name, what is given for the texts, as `Declared.parse` reads it
    weights : ndarray of shape (n,), the given probabilities of the texts; None without them
    whole : dict, the result of `compute` for the whole sets
    """

    def __init__(self, metric: Any, predictions: Any, settings: Mapping[str, Any]) -> None:
        self.metric = text_metrics.load(metric) if isinstance(metric, str) else metric
        if self.metric.items != SETS:
            raise ValueError(f"metric must score sets of texts: {self.metric.name} scores {self.metric.items}.")
        self.settings = dict(settings)
        self.declared = self.metric.settings.declared()
        self.metric.settings.read(self.settings, self.metric.name)
        self._predictions = predictions
        self.sets = parse_sets(predictions, self.settings.get("set_size"))
        self.starts = self.sets.starts

    @property
    def singletons_skipped(self) -> dict[str, Any]:
        """The setting that gives a set of one text no score, if the metric has it."""
        return {"singletons": "skip"} if "singletons" in self.declared else {}

    @contextmanager
    def caching(self, **settings: Any) -> Iterator[None]:
        """Score the whole sets, and cache the embeddings and judged pairs, so that each text is encoded once.

        settings : override the settings of the constructor
        """
        self.settings |= settings
        with tempfile.TemporaryDirectory(prefix="text_metrics") as folder:
            if getattr(self.metric.settings.read(self.settings, self.metric.name), "is_given", False):
                encoder = self.settings["model"]
                cached = SimpleNamespace(encode=_cached(encoder.encode), signature_name=caller_name(encoder))
                self.settings["model"] = cached
            elif "cache_dir" in self.declared and self.settings.get("cache_dir") is None:
                self.settings["cache_dir"] = folder
            if callable(same := self.settings.get("same")):
                self.settings["same"] = _cached(same)
            # This also validates what is given.
            self.whole = self.metric.compute(predictions=self._predictions, **self.settings)
            self.given = {}
            self.weights = None
            for name, value in self.settings.items():
                declared = self.declared[name]
                if declared.is_given(value):
                    self.given[name] = declared.parse(value, self.sets, name)
                    if declared.are_shares:
                        self.weights = self.given[name]
            yield

    def signature(self, **entries: object) -> str:
        """Return the signature of the whole sets with further entries before the version."""
        return str(Signature.parse(self.whole["signature"]).merge(**entries))

    def fix(self, found: Mapping[str, list[Any]]) -> None:
        """Pass what was found for the n texts, by its setting, to subsets, and drop the settings that find it."""
        kept = [name for name, declared in self.declared.items() if declared.are_shares or name in _OF_RESULT]
        self.settings = {name: value for name, value in self.settings.items() if name in kept}
        self.given = {name: value for name, value in self.given.items() if name in kept}
        self.given |= found

    def results(self, subsets: Iterable[Subsets], **settings: Any) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Score subsets, some at a time: yields the set of each, and the result of `compute` for them.

        settings : override the settings of the constructor
        """
        varying = self.given.keys() | set(_OF_RESULT)
        common = {name: value for name, value in self.settings.items() if name not in varying}
        sliced = [name for name in self.given if name not in _OF_RESULT]
        for same_size in subsets:
            size = same_size.rows.shape[1]
            step = max(1, _TEXTS_AT_ONCE // size)
            for start in range(0, len(same_size.rows), step):
                part = same_size.part(slice(start, start + step))
                given = {name: self._slice(name, part) for name in sliced}
                predictions: list[Any] = [self.sets.texts[i] for i in part.rows.ravel().tolist()]
                if len(part.rows) > 1 and size > 1:
                    given["set_size"] = size  # many short lists take longer than their scores
                else:
                    predictions = [predictions[i : i + size] for i in range(0, len(predictions), size)]
                arguments = common | given | settings
                with warnings.catch_warnings():
                    # Warnings of the whole sets were shown.
                    warnings.simplefilter("ignore", UserWarning)
                    result = self.metric.compute(predictions=predictions, **arguments)
                yield part.owners, result

    def scores(self, subsets: Subsets, **settings: Any) -> np.ndarray:
        """Return the score of each subset; NaN for one that has none."""
        scores = [result["scores"] for _, result in self.results([subsets], **settings)]
        return np.array(list(chain.from_iterable(scores)), dtype=np.float64)

    def has_weight(self, rows: np.ndarray) -> np.ndarray:
        """Tell for each subset whether any of its texts has a weight: (s, k) to (s,)."""
        return np.ones(len(rows), dtype=bool) if self.weights is None else self.weights[rows].sum(axis=1) > 0

    def _slice(self, name: str, subsets: Subsets) -> Any:
        """Return the values of a setting for subsets, in the form that `compute` takes."""
        declared = self.declared[name]
        if declared.are_shares and subsets.weights is not None:
            return scale_shares(subsets.weights)
        places = subsets.rows - self.starts[subsets.owners, None]
        return declared.take(self.given[name], subsets.owners, subsets.rows, places)


def _cached(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of lists that calls another once for each item."""
    answers: dict[tuple[str, ...], Any] = {}

    @wraps(function)
    def call(*lists: Sequence[str]) -> Any:
        items = list(zip(*lists, strict=True))
        new = [item for item in dict.fromkeys(items) if item not in answers]
        if new:
            new_lists = map(list, zip(*new, strict=True))
            returned = function(*new_lists)
            answers.update(zip(new, returned, strict=False))
            if new == items or len(returned) != len(new):
                return returned  # unchanged: the metric validates it
        return [answers[item] for item in items]

    return call
