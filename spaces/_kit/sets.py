"""Parts that the demos over sets of texts share: input, models, examples, names of sets, similarity."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import gradio as gr
import numpy as np

from . import examples, work
from .inputs import Limits, Role, Sets, check_choice, options, sets_from_rows, sets_from_text
from .metric import part
from .page import Box, Example, Space
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
# Sizes of sets that a preview lists.
_MOST_SIZES = 8

Model = Literal["all-MiniLM-L6-v2", "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"]
DEFAULT_MODEL: Model = "all-MiniLM-L6-v2"
MODELS: dict[str, str] = {
    DEFAULT_MODEL: "English: all-MiniLM-L6-v2",
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": "50 languages: paraphrase-multilingual-MiniLM",
}


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
        options(MODELS), value=DEFAULT_MODEL, label="Model", info="It measures how similar two texts are."
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


def set_name(texts: Sequence[Sequence[str]], i: int) -> str:
    """Return the name of a set, with the one from its file; "" if there is only one set."""
    given = names_of(texts)[i]
    return f"Set {i + 1}{f' ({shorten(given, 30)})' if given else ''}" if len(texts) > 1 else ""


def figure_name(texts: Sequence[Sequence[str]], i: int) -> str:
    """Return the name of a set in a figure, which is never empty."""
    return set_name(texts, i) or "These texts"


def rows_of(texts: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Return the indices of the texts of each set among all texts."""
    sizes = [len(members) for members in texts]
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


def names_of(texts: Sequence[Sequence[str]]) -> list[str]:
    """Return the names that a file gives its sets; "" for a set without a name."""
    return texts.names if isinstance(texts, Sets) else [""] * len(texts)


def preview(texts: Sequence[Sequence[str]]) -> str:
    """Say how many sets and texts there are."""
    sizes = [f"{len(members):,}" for members in texts]
    if len(sizes) == 1:
        return f"{count(len(texts[0]), 'text')}."
    shown = ", ".join(sizes[:_MOST_SIZES]) + (", …" if len(sizes) > _MOST_SIZES else "")
    return f"{len(sizes)} sets, of {shown} texts."


def count(n: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def to_rows(texts: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Return a row for each text, from which `inputs.sets_from_rows` makes the sets again."""
    return [
        {"text": text, "set": name or f"{i}"}
        for i, (name, members) in enumerate(zip(names_of(texts), texts, strict=True), 1)
        for text in members
    ]


def report(name: str, result: Mapping[str, Any], texts: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the content of the JSON download."""
    names = names_of(texts)
    return {"metric": name, **result, "predictions": texts, **({"names": names} if any(names) else {})}


def text_name(i: int, j: int, n_sets: int) -> str:
    """Return the label of a text in a figure: set and text, such as "2.14"."""
    return f"{i + 1}.{j + 1}" if n_sets > 1 else f"{j + 1}"


def choices(texts: Sequence[Sequence[str]]) -> list[str]:
    """Name the sets for a list, each with the beginning of its first text."""
    return [f"{set_name(texts, i)}: {shorten(members[0], 40)}" for i, members in enumerate(texts)]


def details(headers: Sequence[str], rows: Sequence[Sequence[Any]], texts: Sequence[Sequence[str]]) -> Table:
    """Return the table of details.

    Its first column, the number of the set, is omitted if there is one set. The name from the file follows it.
    """
    names = names_of(texts)
    head, named = (headers[:1] if len(texts) > 1 else ()), any(names)
    return Table(
        (*head, *(("Name",) if named else ()), *headers[1:]),
        [[*row[: len(head)], *([names[row[0] - 1]] if named else []), *row[1:]] for row in rows],
    )


def scores_table(texts: Sequence[Sequence[str]], columns: Mapping[str, Sequence[float | None]]) -> Table | None:
    """Return the table of the scores of each set, if there are more than two."""
    if len(texts) < 3:
        return None
    rows = [
        [i + 1, len(members), shorten(members[0], 60), *("" if row[i] is None else row[i] for row in columns.values())]
        for i, members in enumerate(texts)
    ]
    return details(("Set", "Texts", "First text", *columns), rows, texts)


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


def credit_bars(texts: Sequence[Sequence[str]], shown: Sequence[int], credits: Sequence[Sequence[float | None]]) -> Any:
    """Draw what each text adds to the score of its set, in the order of the texts; None if that is not known of any.

    `credits` has the contributions of the texts of each set that is shown.
    """
    n_sets = len(texts)
    bars = [
        (text_name(i, j, n_sets), value, place, texts[i][j])
        for place, (i, values) in enumerate(zip(shown, credits, strict=True))
        for j, value in enumerate(values)
        if value is not None
    ]
    names = [figure_name(texts, i) for i in shown]
    return plots.ranked_bars(bars, names, "adds to the score") if bars else None


def map_of_texts(
    texts: Sequence[Sequence[str]],
    shown: Sequence[int],
    similarity: np.ndarray,
    caption: str,
    arrows: Sequence[tuple[int, int]] = (),
) -> tuple[Any, str]:
    """Draw the first `MOST_IN_MAP` texts of one or two sets in a plane, with a caption.

    Parameters
    ----------
    similarity : ndarray of shape (n, n), of these n texts
    caption : with a place for `share`, the share of the variance that the map shows
    arrows : pairs of positions among the n texts
    """
    points, share = plots.plane(similarity)
    drawn = [(place, i, j) for place, i in enumerate(shown) for j in range(len(texts[i][:MOST_IN_MAP]))]
    plane = plots.text_map(
        points,
        [texts[i][j] for _, i, j in drawn],
        [text_name(i, j, len(texts)) for _, i, j in drawn],
        [place for place, _, _ in drawn],
        [figure_name(texts, i) for i in shown],
        arrows,
    )
    return plane, caption.format(share=share) + first_of(len(drawn), sum(len(texts[i]) for i in shown))


# The description of a demo over sets, but for what is specific to its metric.
describe_space = partial(
    Space,
    limits=LIMITS,
    boxes=(BOX,),
    roles=ROLES,
    from_boxes=sets_from_text,
    from_rows=sets_from_rows,
    to_rows=to_rows,
    preview=preview,
    examples=EXAMPLES,
    steps=STEPS,
)
