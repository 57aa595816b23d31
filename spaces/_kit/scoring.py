"""Runs of the metric that a demo shows, one at a time, with their warnings."""

import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import evaluate
import numpy as np

# The file of the metrics, which the build copies.
from .core_language import find_unread

# The encoder of the score, its figures and its contributions: a name, a folder, or an object with `encode`.
MODEL: Any = "all-MiniLM-L6-v2"
# The texts of larger sets are not left out one by one: it takes too long.
MOST_LEFT_OUT = 60
NOT_READ = "The model does not read some of these texts, so the score says little about them."
# Warnings are caught for all threads of a process.
_ONE_RUN = threading.Lock()


class Scored(NamedTuple):
    """The result of a metric with its "warnings", whether its model reads the texts, and their cosines by set."""

    result: dict[str, Any]
    is_read: bool
    similarities: Sequence[np.ndarray] = ()


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, where the build puts it."""
    return evaluate.load(str(Path(app).resolve().with_name(f"{name}.py")))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]


def compute(metric: Any, english: Sequence[Sequence[str]] = (), *, is_drawn: bool = False, **given: Any) -> Scored:
    """Run a metric, with `MODEL` unless another is given.

    english : lists of texts that its model reads in English only; the short ones of a list are judged together
    is_drawn : whether the cosines of the texts are returned, too, by the encoder of the run
    """
    if "model" in type(metric).settings.declared():
        given = {"model": MODEL, "progress": True, **given}
    with tempfile.TemporaryDirectory() as folder:
        if is_drawn:
            given["cache_dir"] = folder
        with _ONE_RUN, warnings.catch_warnings(record=True) as caught:
            # Always, not once in a process, so that each visitor is warned.
            warnings.simplefilter("always", UserWarning)
            result = metric.compute(**given)
        similarities = _similarities(metric, **given) if is_drawn else []
    ours = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    messages = [str(warning.message) for warning in ours]
    n_others = sum(len(find_unread(texts).other_language) for texts in english)
    if n_others:
        messages.append(
            f"{n_others:,} of {sum(map(len, english)):,} texts {'is' if n_others == 1 else 'are'} not in English. The "
            "model reads English only, so the score is no judgement of them."
        )
    # By its name, because each metric has its own copy of the class.
    is_read = not n_others and all(warning.category.__name__ != "UnknownWordsWarning" for warning in ours)
    return Scored({**result, "warnings": list(dict.fromkeys(messages))}, is_read, similarities)


def _similarities(metric: Any, predictions: Sequence[Sequence[str]], **given: Any) -> list[np.ndarray]:
    """Return the cosines of the texts of each set, of shape (k, k), by the encoder of a call of `compute`."""
    settings = type(metric).settings.read(given, metric.name)
    vectors, _ = part(metric, "core").encode([text for texts in predictions for text in texts], settings)
    vectors = vectors.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    parts = np.split(vectors, np.cumsum([len(texts) for texts in predictions])[:-1])
    return [np.clip(part @ part.T, -1.0, 1.0) for part in parts]


def contributions(
    metric: Any, sets: Sequence[Sequence[str]], similarity: Sequence[np.ndarray], scores: Sequence[Any], **settings: Any
) -> list[list[float | None]]:
    """Return the score of each set minus its score without each text.

    Parameters
    ----------
    metric : one that takes `similarity` in place of texts
    similarity : for each set of k texts, ndarray of shape (k, k)
    scores : of the m sets

    Returns
    -------
    list of m lists, a number for each text; None in sets of one text or of more than `MOST_LEFT_OUT`, and where no
    score remains
    """
    added: list[list[float | None]] = [[None] * len(texts) for texts in sets]
    places = [(i, j) for i, row in enumerate(added) if 1 < len(row) <= MOST_LEFT_OUT for j in range(len(row))]
    if places:
        kept = [(i, [k for k in range(len(sets[i])) if k != j]) for i, j in places]
        rests = metric.compute(
            predictions=[[sets[i][k] for k in rows] for i, rows in kept],
            similarity=[similarity[i][np.ix_(rows, rows)] for i, rows in kept],
            **settings,
        )
        for (i, j), rest in zip(places, rests["scores"], strict=True):
            if rest is not None:
                added[i][j] = scores[i] - rest
    return added
