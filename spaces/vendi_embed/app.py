"""Demo of vendi_embed: the effective number of different texts in a set."""

import math
import sys
from pathlib import Path
from typing import Any, Literal

# The kit is in the parent folder in the checkout, and in the folder of this file in a Space.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import gradio as gr
import numpy as np
import torch
from _kit import inputs, metric, sets
from _kit.page import Picture, Result, Space, build, launch
from _kit.show import panels, plots

vendi_embed = metric.load(__file__, "vendi_embed")

ORDERS = {
    "0.1": "0.1: rare meanings count fully",
    "0.5": "0.5",
    "1": "1: the usual",
    "2": "2",
    "inf": "∞: only the largest",
}
CURVE = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]
KERNELS = {"embedding": "Meaning (a model's embeddings)", "ngram": "Words (n-grams)"}


def score_sets(texts: Any, q: str, kernel: str, model: str) -> dict[str, Any]:
    """Check the input and compute the metric."""
    sets.check_model(model)
    for name, value, known in (("q", q, ORDERS), ("kernel", kernel, KERNELS)):
        if value not in known:
            raise inputs.InputError(f"{name} must be one of {', '.join(known)}. Got {str(value)[:80]!r}.")
    given = inputs.check_sets(texts, sets.LIMITS)
    settings = {"model": model} if kernel == "embedding" else {"kernel": kernel}
    return vendi_embed.compute(
        predictions=given, q="inf" if q == "inf" else float(q), details=True, progress=True, **settings
    )


def score(texts: Any, chosen: Any, settings: dict[str, Any]) -> Result:
    """Score all sets and draw one or two of them."""
    result = score_sets(texts, **settings)
    n_sets = len(texts)
    shown = sets.two_of(chosen, n_sets)
    names = [sets.set_name(i, n_sets) or "These texts" for i in shown]
    matrices = [similarity(texts[i][: sets.MOST_IN_MATRIX], settings) for i in shown]

    tags = [sets.set_tag(i, n_sets) if n_sets > 1 else "" for i in shown]
    maps: list[tuple[Any, str] | None] = []
    for place, (i, matrix) in enumerate(zip(shown, matrices, strict=True)):
        name = sets.set_name(i, n_sets)
        caption = f"{name}. {alike(matrix, len(texts[i]))}" if name else alike(matrix, len(texts[i]))
        maps.append((plots.heat_map(matrix, texts[i][: sets.MOST_IN_MATRIX], place), caption))
    maps += [None] * (2 - len(maps))

    spectra = {name: result["details"][i]["eigenvalues"] for name, i in zip(names, shown, strict=True)}
    longest = min(max(len(texts[i]) for i in shown), 12)
    padded = {name: [*values, *[0.0] * longest][:longest] for name, values in spectra.items()}
    spectrum = plots.bars(
        padded, [str(i + 1) for i in range(longest)], "share", "%{y:.1%}<extra>%{fullData.name}</extra>"
    )
    curve = plots.curves(
        {
            name: (CURVE, by_order(values, len(texts[i])))
            for (name, values), i in zip(spectra.items(), shown, strict=True)
        },
        "order q",
        "Vendi score",
        "order %{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
    )
    together = [texts[i][: sets.MOST_IN_MAP // 2] for i in shown]
    flat = [text for members in together for text in members]
    points, share = plots.plane(similarity(flat, settings))
    plane = plots.text_map(
        points,
        flat,
        [f"{tag}{j + 1}" for tag, members in zip(tags, together, strict=True) for j in range(len(members))],
        [place for place, members in enumerate(together) for _ in members],
        names,
    )
    return Result(
        answer=answer(texts, result),
        pictures=[
            *maps,
            (
                spectrum,
                "Each bar is one direction of meaning and its share of the set. Equal bars: a diverse set.",
            ),
            (curve, "A larger order gives more weight to common meanings, and less to rare ones."),
            (plane, f"Similar texts are close. The map shows {share:.0%} of the variance; hover for the text."),
        ],
        **sets.details(
            ("Set", "No.", "Text", "Most like no.", "Similarity"),
            [row for i in shown for row in nearest_rows(sets.set_tag(i, n_sets), texts[i], settings)],
            n_sets,
        ),
        report={"metric": "vendi_embed", **result, "predictions": texts},
        choices=[f"Set {i + 1}: {panels.shorten(members[0], 40)}" for i, members in enumerate(texts)],
        chosen=shown,
    )


def similarity(texts: list[str], settings: dict[str, Any]) -> np.ndarray:
    """Return the similarity matrix whose eigenvalues determine the score."""
    if settings["kernel"] == "embedding":
        return sets.similarity(vendi_embed, texts, settings["model"])
    core = metric.part(vendi_embed, "vendi_embed")
    ((_, kernels),) = core.word_kernels(core.parse_sets([texts]))
    return kernels[0]


def by_order(eigenvalues: list[float], n: int) -> list[float]:
    """Return the score at each order of the curve."""
    core = metric.part(vendi_embed, "core_spectra")
    values = torch.tensor(eigenvalues, dtype=torch.float64)
    return [float(core.vendi_from_eigenvalues(values, n, q)) for q in CURVE]


def alike(matrix: np.ndarray, n: int) -> str:
    """Describe the most similar pair of texts."""
    if len(matrix) < 2:
        return "A single text."
    apart = matrix - 2 * np.eye(len(matrix))
    i, j = sorted(np.unravel_index(apart.argmax(), apart.shape))
    cut = f" The first {len(matrix)} of {n} texts are shown." if n > len(matrix) else ""
    return f"Texts {i + 1} and {j + 1} are the most similar ({matrix[i, j]:.2f}).{cut}"


def nearest_rows(tag: str, texts: list[str], settings: dict[str, Any]) -> list[list[Any]]:
    """Return each text with the most similar other text."""
    matrix = similarity(texts, settings) if len(texts) > 1 else np.zeros((1, 1))
    np.fill_diagonal(matrix, -np.inf)
    nearest = matrix.argmax(axis=1)
    return [
        [tag, j + 1, text, int(nearest[j]) + 1 if len(texts) > 1 else "", round(float(matrix[j, nearest[j]]), 4)]
        if len(texts) > 1
        else [tag, 1, text, "", ""]
        for j, text in enumerate(texts)
    ]


def meaning(value: float, n: int) -> str:
    """Return the interpretation of a score."""
    if n == 1:
        return "A single text says one thing."
    if value < 1.15:
        return f"All {panels.in_words(n)} say nearly the same thing."
    if value > n - 0.15:
        return f"Each of the {panels.in_words(n)} says something of its own."
    low = math.floor(value)
    if value - low > 0.35 and value - low < 0.65:
        return f"These say between {panels.in_words(low)} and {panels.in_words(low + 1)} different things."
    count = round(value)
    return f"These say about {panels.in_words(count)} different thing{'s' if count > 1 else ''}."


def answer(texts: list[list[str]], result: dict[str, Any]) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more."""
    scores, sizes = result["scores"], [len(members) for members in texts]
    if len(scores) > 2:
        card = panels.Card(
            "",
            result["vendi_embed"],
            f"{result['vendi_embed']:.2f}",
            f"on average over {len(scores)} sets",
            f"The scores of the sets range from {min(scores):.1f} to {max(scores):.1f}.",
        )
        return panels.answer([card], signature=result["signature"])
    cards = [
        panels.Card(
            sets.set_name(i, len(scores)),
            value,
            f"{value:.2f}",
            f"of {n}",
            meaning(value, n),
            (value - 1) / (n - 1) if n > 1 else 1.0,
            ("1: all the same", f"{n}: all different"),
            i,
        )
        for i, (value, n) in enumerate(zip(scores, sizes, strict=True))
    ]
    verdict, notes = "", []
    if len(scores) == 2:
        more, less = ("A", "B") if scores[0] >= scores[1] else ("B", "A")
        gap = abs(scores[0] - scores[1])
        verdict = "Both sets are equally diverse." if gap < 0.05 else f"Set {more} says more than set {less}."
        if sizes[0] != sizes[1]:
            notes.append("The sets differ in size: a larger set can reach a larger score.")
    return panels.answer(cards, verdict, notes, result["signature"])


def api(
    texts: list[list[str]],
    q: Literal["0.1", "0.5", "1", "2", "inf"] = "1",
    kernel: Literal["embedding", "ngram"] = "embedding",
    model: Literal[
        "all-MiniLM-L6-v2", "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
    ] = "all-MiniLM-L6-v2",
) -> dict[str, Any]:
    """Compute the Vendi score: the effective number of different texts in each set.

    Args:
        texts: sets of texts, each a list of strings.
        q: order of the entropy; a small order gives more weight to rare meanings.
        kernel: compare meanings (embedding) or words (ngram).
        model: the model that measures similarity.

    Returns
    -------
        The result of the metric: "vendi_embed", the mean over sets; "scores", one for each set, from 1 to its size;
        "details" with the eigenvalues; and the "signature" to report with the score.

    """
    return score_sets(texts, q, kernel, model)


SPACE = Space(
    name="vendi_embed",
    title="How many different things do these texts say?",
    lead="Four sentences can say four things, or one thing four times. The Vendi score counts meanings, not words.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    roles=sets.ROLES,
    from_boxes=inputs.sets_from_text,
    from_rows=inputs.sets_from_rows,
    examples=sets.EXAMPLES,
    settings={
        "q": gr.Radio(
            [(label, value) for value, label in ORDERS.items()],
            value="1",
            label="Order q",
            info="A small order gives more weight to rare meanings.",
            render=False,
        ),
    },
    more_settings={
        "kernel": gr.Radio(
            [(label, value) for value, label in KERNELS.items()], value="embedding", label="Compare by", render=False
        ),
        "model": sets.model_setting(),
    },
    choosers=("Look at", "and compare with"),
    pictures=(
        Picture("Similarity of the texts"),
        Picture("Similarity of the texts"),
        Picture("Parts of the score"),
        Picture("Score by order"),
        Picture("Map of the texts"),
    ),
    score=score,
    api=api,
    steps=sets.STEPS,
)

demo = build(SPACE)

if __name__ == "__main__":
    vendi_embed.compute(predictions=["warm", "up"])
    launch(demo, SPACE)
