"""Runs of the metric that a demo shows, one at a time, with their warnings."""

import functools
import os
import pprint
import sys
import tempfile
import threading
import warnings
from collections.abc import Sequence
from itertools import chain
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
# Advice of a warning to a program, and the same for a visitor.
_ADVICE = {
    " Pass a smaller max_order.": " Choose a smaller “Longest phrase”.",
    "1 of 1 sets have": "The set has",
    "1 of 1 texts have": "The text has",
    "1 of 1 texts are": "The text is",
    "1 of 1 texts hold": "The text holds",
    "1 of 1 texts begin with their": "The text begins with its",
    "1 in another language, of 1 texts": "The text is in another language",
    "1 source code, of 1 texts": "The text is source code",
    "their self_bleu is": "the score is",
    "tokenizer='whitespace' takes": "a split at spaces takes",
    "tokenizer='13a' takes": "the tokenizer 13a takes",
    "tokenizer='intl' takes": "the international tokenizer takes",
    " Pass tokenizer='zh' for Chinese, 'ja-mecab' for Japanese, or 'char'.": " Split them at characters.",
    " If they are options of a poll, pass matcher='exact' and clustering='none'.": "",
}
# Warnings are caught for all threads of a process.
_ONE_RUN = threading.Lock()


class Scored(NamedTuple):
    """A run of a metric.

    result : of `compute`, with its "warnings"
    is_read : whether the model reads the texts
    has_warnings : whether the metric warned
    code : Python code that computes the result
    similarity : cosines of all texts, set after set, of shape (n, n); empty unless the run was asked for them
    """

    result: dict[str, Any]
    is_read: bool
    has_warnings: bool
    code: str
    similarity: np.ndarray


def load(app: str, name: str) -> Any:
    """Load the metric from the folder of the app, where the build puts it."""
    return evaluate.load(str(Path(app).resolve().with_name(f"{name}.py")))


def part(metric: Any, name: str) -> ModuleType:
    """Return one of the modules of a loaded metric, the copy that the metric itself runs."""
    package = type(metric).__module__.rpartition(".")[0]
    return sys.modules[f"{package}.{name}"]


def is_default() -> bool:
    """Tell whether the demo has the default encoder."""
    return isinstance(MODEL, str) and MODEL == "all-MiniLM-L6-v2"


def compute(metric: Any, english: Sequence[Sequence[str]] = (), *, is_drawn: bool = False, **given: Any) -> Scored:
    """Run a metric, with details, and with `MODEL` if it takes a model and no other is given.

    english : lists of texts that the default model reads in English only
    is_drawn : whether the cosines of the texts are returned, by the encoder of the run
    """
    name = metric.name
    texts: dict[str, Any] = {key: given.pop(key) for key in ("predictions", "references") if key in given}
    if "model" in type(metric).settings.declared():
        given = {"model": MODEL, **given}
    settings = type(metric).settings.read(given, name)
    similarity = np.empty((0, 0))
    with tempfile.TemporaryDirectory() as folder:
        # The figures find the embeddings of the run in its cache.
        run = given | {"cache_dir": folder} if is_drawn else given
        with _ONE_RUN, warnings.catch_warnings(record=True) as caught:
            # Always, not once in a process, so that each visitor is warned.
            warnings.simplefilter("always", UserWarning)
            result = metric.compute(details=True, **(texts | run))
        if is_drawn:
            similarity = _similarity(metric, texts["predictions"], run)
    ours = [warning for warning in caught if issubclass(warning.category, UserWarning)]
    messages = [for_visitors(str(warning.message)) for warning in ours]
    # The short texts of a list are judged together.
    foreign = set(chain.from_iterable(map(reading.find_foreign, english))) if is_default() else set()
    if foreign:
        messages.append(_foreign_note(len(foreign), len(set(chain.from_iterable(english)))))
    # By its name, because each metric has its own copy of the class.
    is_known = all(warning.category.__name__ != "UnknownWordsWarning" for warning in ours)
    has_warnings = bool(messages)
    if note := _note_on_marks(texts["predictions"], given.get("contexts")):
        messages.append(note)
    result["warnings"] = list(dict.fromkeys(messages))
    code = _code(name, texts | settings.passed())
    return Scored(result, is_known and not foreign, has_warnings, code, similarity)


def _note_on_marks(predictions: Sequence[Any], contexts: Sequence[str | None] | None) -> str:
    """Say how many texts hold reasoning, special tokens or their prompt, which are not the answer."""
    marks = Marks()
    for i, item in enumerate(predictions):
        if isinstance(item, dict):
            strings = [answer["text"] for answer in item["answers"]]
        else:
            strings = [item] if isinstance(item, str) else item
        marks += clean(strings, contexts=contexts[i] if contexts else None)[1]
    return for_visitors(marks.warning("text-metrics score --strip {}"))


def for_visitors(message: str) -> str:
    """Rephrase a warning of a metric for visitors, without advice for programs."""
    for words, instead in _ADVICE.items():
        message = message.replace(words, instead)
    return message


def _foreign_note(n_foreign: int, n_texts: int) -> str:
    reason = "The model reads English only, so the score does not judge them."
    if n_texts == 1:
        return f"The text seems not to be in English. {reason.replace('them', 'it')}"
    seem = "seems" if n_foreign == 1 else "seem"
    return f"{n_foreign:,} of {n_texts:,} different texts {seem} not to be in English. {reason}"


def _code(name: str, arguments: dict[str, Any]) -> str:
    """Return Python code that computes a result, with the metric of the Space or of a checkout."""
    lines = ["import evaluate", "", f"{name} = evaluate.load({os.environ.get('SPACE_ID', f'metrics/{name}')!r})"]
    if callable(getattr(arguments.get("model"), "encode", None)):
        lines.append("# Besides: model=, the encoder of this demo.")
        del arguments["model"]
    lines.append(f"{name}.compute(")
    for key, value in arguments.items():
        shown = pprint.pformat(value, width=100, compact=True, sort_dicts=False)
        lines.append(f"    {key}={shown},")
    lines.append(")")
    return "\n".join(lines)


def _similarity(metric: Any, sets: Sequence[Sequence[str]], given: dict[str, Any]) -> np.ndarray:
    """Return the cosines of all texts, by the encoder of a call of `compute`."""
    core = part(metric, "core")
    names = core.EmbeddedSetSettings.declared()
    known = {name: value for name, value in given.items() if name in names}
    settings = core.EmbeddedSetSettings.read(known, metric.name)
    vectors = core.embed_sets(core.parse_sets(sets), settings).rows.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(vectors @ vectors.T, -1.0, 1.0)


@functools.lru_cache(256)
def yardstick(metric: Any, n: int, **settings: Any) -> float | None:
    """Return the score of n unrelated sentences; None beyond their number."""
    if not 1 < n <= len(UNRELATED):
        return None
    return float(metric.compute(predictions=[UNRELATED[:n]], model=MODEL, **settings)[metric.name])


@functools.cache
def unrelated_cosine(metric: Any) -> float:
    """Return the mean cosine of unrelated sentences, by the encoder of the demo."""
    similarity = _similarity(metric, [UNRELATED], {"model": MODEL})
    return float(similarity[np.triu_indices(len(UNRELATED), 1)].mean())


def near(metric: Any) -> float:
    """Return the least cosine of similar texts: two thirds of the way from unrelated texts to equal ones.

    It is 0.69 for the default encoder.
    """
    unrelated = unrelated_cosine(metric)
    return unrelated + 2 / 3 * (1 - unrelated)


def contributions(
    metric: Any, sets: Sequence[Sequence[str]], similarity: Sequence[np.ndarray], scores: Sequence[Any], **settings: Any
) -> list[list[float | None]]:
    """Return the score of each set minus its score without each text, from cosines of shape (k, k) for each set.

    None in sets of one text or of more than `MOST_LEFT_OUT`, and where no score remains.
    """
    added: list[list[float | None]] = [[None] * len(texts) for texts in sets]
    places = [(i, j) for i, row in enumerate(added) if 1 < len(row) <= MOST_LEFT_OUT for j in range(len(row))]
    if not places:
        return added
    texts = []
    matrices = []
    for i, j in places:
        texts.append([*sets[i][:j], *sets[i][j + 1 :]])
        matrices.append(np.delete(np.delete(similarity[i], j, 0), j, 1))
    rests = metric.compute(predictions=texts, similarity=matrices, **settings)
    for (i, j), score in zip(places, rests["scores"], strict=True):
        if score is not None:
            added[i][j] = scores[i] - score
    return added
