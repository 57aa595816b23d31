"""What the demos over sets of texts share: their input, their models, their examples, and similarity."""

from collections.abc import Sequence
from typing import Any

import gradio as gr
import numpy as np

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
    "One text a line. A blank line begins another set, to compare.",
    "A man walks his dog in the park.\nIn the park, a man is walking his dog.\n\nThe couple take a train to the sea.",
)
STEPS = (
    "Write or paste texts, one a line, or upload a file. Or click an example.",
    "Leave a blank line between two sets to compare them.",
    "Press Score.",
)
# Pictures of more texts than these would be slow, and nobody could read them.
MOST_IN_MATRIX = 60
MOST_IN_MAP = 150

_MODELS = {
    "all-MiniLM-L6-v2": "English: all-MiniLM-L6-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": "50 languages: paraphrase-multilingual-MiniLM",
}
DEFAULT_MODEL = next(iter(_MODELS))

# The first two are the example of arXiv 2506.00514: the concepts walk, dog, take, park and couple.
DIFFERENT = (
    "The couple walk in the park and take photos of a dog.",
    "The couple walk in the park when a thief runs up to take their dog.",
    "The couple take a taxi to the park because their old dog cannot walk.",
    "The couple take a vote to keep every dog off the walk in the park.",
)
PARAPHRASES = (
    "The couple take their dog for a walk in the park.",
    "A couple is taking the dog to walk at a park.",
    "At the park, two partners walk a dog they have taken along.",
    "Their dog was taken on a park walk by this couple.",
)
SHUFFLED = (
    "park take the couple walk in dog the of photos a and.",
    "thief the dog in walk couple park when a their take up to runs.",
    "walk taxi dog the cannot couple to old park take their a because.",
    "dog vote every the in walk keep take off a couple park to the.",
)
WAYS_TO_WAKE_UP = (
    "Set two alarms and put the second one across the room.",
    "Go to bed an hour earlier than you think you need to.",
    "Ask a friend to call you at six and not to take no for an answer.",
    "Leave the curtains open so that the sun falls on your face.",
    "Use an alarm that is out of reach, so that you must stand up.",
    "Have coffee ready on a timer: the smell gets you out of bed.",
)


def _joined(*sets: Sequence[str]) -> str:
    return "\n\n".join("\n".join(texts) for texts in sets)


EXAMPLES = (
    Example("Four stories, or one told four ways?", (_joined(DIFFERENT, PARAPHRASES),)),
    Example("Stories or shuffled words?", (_joined(DIFFERENT, SHUFFLED),)),
    Example("Advice on waking up", (_joined(WAYS_TO_WAKE_UP),)),
)


def model_setting() -> gr.Dropdown:
    """Offer the models that a visitor may choose from; there are no others."""
    return gr.Dropdown(
        [(label, name) for name, label in _MODELS.items()],
        value=DEFAULT_MODEL,
        label="Model",
        info="It decides which texts are alike.",
        render=False,
    )


def check_model(model: str) -> str:
    """Refuse a model that is not on the list."""
    if model not in _MODELS:
        raise InputError(f"model must be one of {', '.join(_MODELS)}. Got {str(model)[:80]!r}.")
    return model


def set_name(i: int, n_sets: int) -> str:
    """Name a set: by a letter where there are two, by its number where there are more."""
    return "" if n_sets == 1 else f"Set {set_tag(i, n_sets)}"


def set_tag(i: int, n_sets: int) -> str:
    """Name a set in as few letters as can be."""
    return "AB"[i] if n_sets == 2 else str(i + 1)


def details(headers: Sequence[str], rows: Sequence[Sequence[Any]], n_sets: int) -> dict[str, Any]:
    """Lay out the details of texts; where there is one set, the first column, which names it, is left out."""
    start = 0 if n_sets > 1 else 1
    return {"headers": headers[start:], "rows": [row[start:] for row in rows]}


def two_of(chosen: Sequence[int | None], n_sets: int) -> list[int]:
    """Choose the one or two sets that are looked at: those asked for, or the first."""
    asked = [i for i in chosen if i is not None and 0 <= i < n_sets]
    rest = [i for i in range(n_sets) if i not in asked]
    return [*dict.fromkeys(asked), *rest][: min(2, n_sets)]


def similarity(metric: Any, texts: Sequence[str], model: str) -> np.ndarray:
    """Cosine of the embeddings of each text and each other: (n, n), float64."""
    vectors = part(metric, "core_encoder").encode(list(texts), model).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.clip(vectors @ vectors.T, -1.0, 1.0)
