"""Parts that the demos over sets of texts share: input, models, examples, names of sets, similarity."""

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
import numpy as np

from . import examples, work
from .inputs import Limits, Role, check_choice, options
from .metric import part
from .page import Box, Example
from .show import plots
from .show.downloads import Table
from .show.panels import shorten

LIMITS = Limits()
ROLES = (
    Role("text", "Text", True, ("text", "texts", "sentence", "prediction", "predictions", "output", "response")),
    Role("set", "Set", False, ("set", "group", "id", "prompt", "question", "concepts", "src")),
)
BOX = Box(
    "Your texts",
    "One text a line. A blank line starts a second set.",
    "A man walks his dog in the park.\nIn the park, a man is walking his dog.\n\nThe couple take a train to the sea.",
)
STEPS = (
    "Write or paste texts, one a line, or upload a file. Or click an example.",
    "Leave a blank line between two sets to compare them.",
    "Press Score.",
)
MULTILINGUAL = "For other languages, choose the model of 50 languages."
NO_QUALITY = "The score counts differences, not sense: shuffled words or nonsense can score higher than good texts."
# Figures of more texts are slow and illegible.
MOST_IN_MATRIX = 60
MOST_IN_MAP = 75

MODELS = {
    "all-MiniLM-L6-v2": "English: all-MiniLM-L6-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": "50 languages: paraphrase-multilingual-MiniLM",
}
DEFAULT_MODEL = next(iter(MODELS))


def _joined(*sets: Sequence[str]) -> str:
    return "\n\n".join("\n".join(texts) for texts in sets)


EXAMPLES = (
    Example("Four stories, or one told four ways?", (_joined(examples.DIFFERENT, examples.PARAPHRASES),)),
    Example("Stories or shuffled words?", (_joined(examples.DIFFERENT, examples.SHUFFLED),)),
    Example("Advice on waking up", (_joined(examples.WAYS_TO_WAKE_UP),)),
)


def model_setting() -> gr.Dropdown:
    """Make the list of the models that a demo offers."""
    return gr.Dropdown(
        options(MODELS),
        value=DEFAULT_MODEL,
        label="Model",
        info="It measures how similar two texts are.",
        render=False,
    )


def check_model(model: str) -> None:
    """Check that a model is one of those offered."""
    check_choice("model", model, MODELS)


def unjudged(what: str = "texts") -> str:
    """Say why a run can give no verdict, because the model does not read the texts; "" if it does."""
    if work.was_warned("UnknownWordsWarning"):
        return f"The model does not know the words of some {what}, so the score says little about them."
    if work.was_warned("OtherLanguageWarning"):
        return f"Some {what} are not in English, so the score says little about them."
    return ""


def set_name(i: int, n_sets: int) -> str:
    """Return the name of a set; "" if there is only one."""
    return f"Set {i + 1}" if n_sets > 1 else ""


def text_name(i: int, j: int, n_sets: int) -> str:
    """Return the label of a text in a figure: set and text, such as "2.14"."""
    return f"{i + 1}.{j + 1}" if n_sets > 1 else f"{j + 1}"


def choices(texts: Sequence[Sequence[str]]) -> list[str]:
    """Name the sets for a list, each with the beginning of its first text."""
    return [f"Set {i}: {shorten(members[0], 40)}" for i, members in enumerate(texts, 1)]


def details(headers: Sequence[str], rows: Sequence[Sequence[Any]], n_sets: int) -> Table:
    """Return the table of details; its first column, which names the set, is omitted if there is one set."""
    start = 0 if n_sets > 1 else 1
    return Table(headers[start:], [row[start:] for row in rows])


def scores_table(texts: Sequence[Sequence[str]], columns: Mapping[str, Sequence[float | None]]) -> Table | None:
    """Return the table of the scores of each set, if there are more than two."""
    if len(texts) < 3:
        return None
    rows = [
        [i + 1, len(members), shorten(members[0], 60), *("" if row[i] is None else row[i] for row in columns.values())]
        for i, members in enumerate(texts)
    ]
    return Table(("Set", "Texts", "First text", *columns), rows)


def first_of(shown: int, total: int, what: str = "texts") -> str:
    """Return a remark for a caption if not all items are shown."""
    return f" Only the first {shown:,} of {total:,} {what} are shown." if shown < total else ""


def two_of(chosen: Sequence[int | None], n_sets: int) -> list[int]:
    """Select the one or two sets to show: the selected ones, completed by the first."""
    selected = [i for i in chosen if i is not None and 0 <= i < n_sets]
    rest = [i for i in range(n_sets) if i not in selected]
    return [*dict.fromkeys(selected), *rest][: min(2, n_sets)]


def embed(metric: Any, texts: Sequence[str], model: str) -> np.ndarray:
    """Return the embeddings of texts at unit length: (n, d), float64."""
    encoder = part(metric, "core_encoder")
    settings = encoder.EncoderSettings(model=model)
    vectors = encoder.encode(list(texts), settings).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def similarity(metric: Any, texts: Sequence[str], model: str) -> np.ndarray:
    """Return the cosine similarity of all pairs of texts: (n, n), float64."""
    vectors = embed(metric, texts, model)
    return np.clip(vectors @ vectors.T, -1.0, 1.0)


def credit_bars(texts: Sequence[Sequence[str]], shown: Sequence[int], credits: Sequence[Sequence[float | None]]) -> Any:
    """Draw what each text adds to the score of its set, the most first; None if that is not known of any.

    Parameters
    ----------
    texts : all sets
    shown : the sets to draw
    credits : contribution of each text of each set that is shown
    """
    n_sets = len(texts)
    bars = [
        (text_name(i, j, n_sets), value, place, texts[i][j])
        for place, (i, values) in enumerate(zip(shown, credits, strict=True))
        for j, value in enumerate(values)
        if value is not None
    ]
    names = [set_name(i, n_sets) or "These texts" for i in shown]
    return plots.ranked_bars(sorted(bars, key=lambda bar: -bar[1]), names, "adds to the score") if bars else None
