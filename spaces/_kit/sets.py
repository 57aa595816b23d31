"""Parts that the demos over sets of texts share: input, models, examples, names of sets, similarity."""

from collections.abc import Sequence
from typing import Any

import gradio as gr
import numpy as np

from . import examples
from .inputs import InputError, Limits, Role
from .metric import part
from .page import Box, Example

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
# Figures of more texts are slow and illegible.
MOST_IN_MATRIX = 60
MOST_IN_MAP = 150

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
        [(label, name) for name, label in MODELS.items()],
        value=DEFAULT_MODEL,
        label="Model",
        info="It measures how similar two texts are.",
        render=False,
    )


def check_model(model: str) -> str:
    """Check that a model is one of those offered."""
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}. Got {str(model)[:80]!r}.")
    return model


def set_name(i: int, n_sets: int) -> str:
    """Return the name of a set: a letter if there are two, a number if there are more."""
    return "" if n_sets == 1 else f"Set {set_tag(i, n_sets)}"


def set_tag(i: int, n_sets: int) -> str:
    """Return the short name of a set."""
    return "AB"[i] if n_sets == 2 else str(i + 1)


def details(headers: Sequence[str], rows: Sequence[Sequence[Any]], n_sets: int) -> dict[str, Any]:
    """Return the table of details; its first column, which names the set, is omitted if there is one set."""
    start = 0 if n_sets > 1 else 1
    return {"headers": headers[start:], "rows": [row[start:] for row in rows]}


def two_of(chosen: Sequence[int | None], n_sets: int) -> list[int]:
    """Select the one or two sets to show: those asked for, completed by the first."""
    asked = [i for i in chosen if i is not None and 0 <= i < n_sets]
    rest = [i for i in range(n_sets) if i not in asked]
    return [*dict.fromkeys(asked), *rest][: min(2, n_sets)]


def similarity(metric: Any, texts: Sequence[str], model: str) -> np.ndarray:
    """Return the cosine similarity of all pairs of texts: (n, n), float64."""
    encoder = part(metric, "core_encoder")
    settings = encoder.EncoderSettings(model=model)
    vectors = encoder.encode(list(texts), settings).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(vectors @ vectors.T, -1.0, 1.0)
