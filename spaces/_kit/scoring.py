"""Runs of the metric that a demo shows, one at a time, with their warnings."""

import functools
import os
import pprint
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

from . import reading
from .texts import Marks, clean

# The encoder of the score, its figures and its contributions: a name, a folder, or an object with `encode`.
MODEL: Any = "all-MiniLM-L6-v2"
# The texts of larger sets are not left out one by one: it takes too long.
MOST_LEFT_OUT = 60
NOT_READ = "The model does not read some of these texts, so the score says little about them."
# Sentences of ours that have nothing in common, for the yardstick.
UNRELATED = Path(__file__).with_name("unrelated.txt").read_text(encoding="utf-8").splitlines()
# Warnings are caught for all threads of a process.
_ONE_RUN = threading.Lock()


class Scored(NamedTuple):
    """A run of a metric.

    result : of `compute`, with its "warnings"
    is_read : whether the model reads the texts
    has_warnings : whether the metric warned
    code : Python code that computes the result
    similarity : cosines of all texts, set after set, of shape (n, n), if the run was asked for them
    """

    result: dict[str, Any]
    is_read: bool
    code: str
    similarity: np.ndarray
    has_warnings: bool = False


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, where the build puts it."""
    return evaluate.load(str(Path(app).resolve().with_name(f"{name}.py")))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]


def is_default() -> bool:
    """Whether the demo has the default encoder."""
    return isinstance(MODEL, str) and MODEL == "all-MiniLM-L6-v2"


def compute(metric: Any, english: Sequence[Sequence[str]] = (), *, is_drawn: bool = False, **given: Any) -> Scored:
    """Run a metric, with details, and with `MODEL` if it takes a model and no other is given.

    english : lists of texts that the default model reads in English only; the short ones of a list are judged together
    is_drawn : whether the cosines of the texts are returned, by the encoder of the run
    """
    name = metric.name
    texts: dict[str, Any] = {key: given.pop(key) for key in ("predictions", "references") if key in given}
    if "model" in type(metric).settings.declared():
        given = {"model": MODEL, **given}
    settings = type(metric).settings.read(given, name)
    with tempfile.TemporaryDirectory() as folder:
        extra: dict[str, Any] = {"progress": True} if "model" in given else {}
        if is_drawn:
            extra["cache_dir"] = folder
        with _ONE_RUN, warnings.catch_warnings(record=True) as caught:
            # Always, not once in a process, so that each visitor is warned.
            warnings.simplefilter("always", UserWarning)
            result = metric.compute(**texts, **given, **extra, details=True)
        similarity = _similarity(metric, texts["predictions"], {**given, **extra}) if is_drawn else np.empty((0, 0))
    ours = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    messages = [str(warning.message) for warning in ours]
    foreign: set[str] = set()
    if english and is_default():
        foreign = {text for of_list in english for text in reading.find_foreign(of_list)}
    if foreign:
        n_texts, seem = len({text for of_list in english for text in of_list}), "seems" if len(foreign) == 1 else "seem"
        messages.append(
            f"{len(foreign):,} of {n_texts:,} different texts {seem} not to be in English. The model reads English "
            "only, so the score is no judgement of them."
        )
    # By its name, because each metric has its own copy of the class.
    is_read = not foreign and all(warning.category.__name__ != "UnknownWordsWarning" for warning in ours)
    code = _code(name, {**texts, **settings.passed()})
    has_warnings = bool(messages)
    if note := _note_on_marks(texts["predictions"], given.get("contexts")):
        messages.append(note)
    return Scored({**result, "warnings": list(dict.fromkeys(messages))}, is_read, code, similarity, has_warnings)


def _note_on_marks(predictions: Sequence[Any], contexts: Sequence[str | None] | None) -> str:
    """Say how many texts hold reasoning, special tokens or their prompt, which are not the answer."""
    marks = Marks()
    for i, item in enumerate(predictions):
        answers = item["answers"] if isinstance(item, dict) else [item] if isinstance(item, str) else item
        strings = [answer["text"] if isinstance(answer, dict) else answer for answer in answers]
        marks += clean(strings, contexts=contexts[i] if contexts else None)[1]
    return marks.warning("text-metrics score --strip {}")


def _code(name: str, arguments: dict[str, Any]) -> str:
    """Return Python code that computes a result, with the metric of the Space or of a checkout."""
    lines = ["import evaluate", "", f"{name} = evaluate.load({os.environ.get('SPACE_ID', f'metrics/{name}')!r})"]
    if callable(getattr(arguments.get("model"), "encode", None)):
        lines.append("# Besides: model=, the encoder of this demo.")
        del arguments["model"]
    shown = {key: pprint.pformat(value, width=100, compact=True, sort_dicts=False) for key, value in arguments.items()}
    return "\n".join([*lines, f"{name}.compute(", *(f"    {key}={value}," for key, value in shown.items()), ")"])


def _similarity(metric: Any, sets: Sequence[Sequence[str]], given: dict[str, Any]) -> np.ndarray:
    """Return the cosines of all texts, by the encoder of a call of `compute`."""
    core, settings = part(metric, "core"), type(metric).settings.read(given, metric.name)
    vectors = core.embed_sets(core.parse_sets(sets), settings).rows.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(vectors @ vectors.T, -1.0, 1.0)


@functools.lru_cache(256)
def yardstick(metric: Any, n: int, **settings: Any) -> float | None:
    """Return the score of n sentences that have nothing in common; None if there are not as many."""
    if not 1 < n <= len(UNRELATED):
        return None
    return float(metric.compute(predictions=[UNRELATED[:n]], model=MODEL, **settings)[metric.name])


def contributions(
    metric: Any, sets: Sequence[Sequence[str]], similarity: Sequence[np.ndarray], scores: Sequence[Any], **settings: Any
) -> list[list[float | None]]:
    """Return the score of each set minus its score without each text, from cosines of shape (k, k) for each set.

    None in sets of one text or of more than `MOST_LEFT_OUT`, and where no score remains.
    """
    added: list[list[float | None]] = [[None] * len(texts) for texts in sets]
    places = [(i, j) for i, row in enumerate(added) if 1 < len(row) <= MOST_LEFT_OUT for j in range(len(row))]
    if places:
        rows = [(i, [k for k in range(len(sets[i])) if k != j]) for i, j in places]
        rests = metric.compute(
            predictions=[[sets[i][k] for k in of_set] for i, of_set in rows],
            similarity=[similarity[i][np.ix_(of_set, of_set)] for i, of_set in rows],
            **settings,
        )
        for (i, j), rest in zip(places, rests["scores"], strict=True):
            if rest is not None:
                added[i][j] = scores[i] - rest
    return added
