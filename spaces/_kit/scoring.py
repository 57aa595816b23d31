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
    """The result of a run.

    result : of the metric, with its "warnings"
    is_read : whether the model reads the texts
    code : Python code that computes the result
    similarity : cosines of all texts, set after set, of shape (n, n), if the run was asked for them
    """

    result: dict[str, Any]
    is_read: bool
    code: str
    similarity: np.ndarray


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, where the build puts it."""
    return evaluate.load(str(Path(app).resolve().with_name(f"{name}.py")))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]


def compute(metric: Any, english: Sequence[Sequence[str]] = (), *, is_drawn: bool = False, **given: Any) -> Scored:
    """Run a metric, with `MODEL` unless another is given.

    english : lists of texts that the default model reads in English only; the short ones of a list are judged together
    is_drawn : whether the cosines of the texts are returned, by the encoder of the run
    """
    code = _code(metric.name, **given)
    if "model" in type(metric).settings.declared():
        given = {"model": MODEL, "progress": True, **given}
    similarity = np.empty((0, 0))
    with tempfile.TemporaryDirectory() as folder:
        if is_drawn:
            given["cache_dir"] = folder
        with _ONE_RUN, warnings.catch_warnings(record=True) as caught:
            # Always, not once in a process, so that each visitor is warned.
            warnings.simplefilter("always", UserWarning)
            result = metric.compute(**given, details=True)
        if is_drawn:
            similarity = _similarity(metric, **given)
    ours = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    messages = [str(warning.message) for warning in ours]
    texts = {text for of_list in english for text in of_list}
    foreign = {text for of_list in english for text in reading.find_foreign(of_list)} if MODEL == _DEFAULT else set()
    if foreign:
        seem = "seems" if len(foreign) == 1 else "seem"
        messages.append(
            f"{len(foreign):,} of {len(texts):,} different texts {seem} not to be in English. The model reads English "
            "only, so the score is no judgement of them."
        )
    # By its name, because each metric has its own copy of the class.
    is_read = not foreign and all(warning.category.__name__ != "UnknownWordsWarning" for warning in ours)
    return Scored({**result, "warnings": list(dict.fromkeys(messages))}, is_read, code, similarity)


_DEFAULT = MODEL


def _code(name: str, **given: Any) -> str:
    """Return Python code that computes a result anywhere: with the metric of the Space, or of a checkout."""
    if not isinstance(MODEL, str):
        given["model"] = f"<the {type(MODEL).__name__} of this demo>"
    arguments = "".join(
        f"    {name}={pprint.pformat(value, width=100, compact=True, sort_dicts=False)},\n"
        for name, value in given.items()
    )
    source = os.environ.get("SPACE_ID", f"metrics/{name}")
    return f"import evaluate\n\n{name} = evaluate.load({source!r})\nresult = {name}.compute(\n{arguments})\n"
