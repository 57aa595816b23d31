"""Demo of vendi_embed: the effective number of different texts in a set."""

from typing import Any, Literal

import gradio as gr
import likeness
import numpy as np
import torch
from _kit import inputs, language, metric, sets
from _kit.contributions import contributions
from _kit.page import Picture, Result, build, launch
from _kit.show import panels, plots
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

vendi_embed = metric.load(__file__, "vendi_embed")
# The least cosine, by the default model, of texts that say the same.
SAME = 0.83

ORDERS = {
    "0.1": "0.1: rare meanings count fully",
    "0.5": "0.5",
    "1": "1: Shannon entropy, the default",
    "2": "2",
    "inf": "∞: only the largest",
}
CURVE = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0]
_ROUNDING = 1e-9
# Smaller differences of scores are not named.
_EQUAL = 0.05
# Groups of a set, and texts of a group, that are listed.
MOST_GROUPS, MOST_CHIPS = 12, 5
KERNELS = {"embedding": "Meaning (a model's embeddings)", "ngram": "Words (n-grams)"}


def score(texts: Any, chosen: Any, settings: dict[str, Any]) -> Result:
    """Score all sets and draw one or two of them."""
    result = api(texts, **settings)
    n_sets = len(texts)
    shown = sets.two_of(chosen, n_sets)
    names = [sets.figure_name(texts, i) for i in shown]
    flat = [text for members in texts for text in members]
    vectors = sets.embed(vendi_embed, flat, settings["model"]) if settings["kernel"] == "embedding" else None
    whole = word_similarity(flat) if vectors is None else np.clip(vectors @ vectors.T, -1.0, 1.0)
    places = sets.rows_of(texts)
    matrices = [whole[np.ix_(place, place)] for place in places]

    spectra = {name: result["details"][i]["eigenvalues"] for name, i in zip(names, shown, strict=True)}
    # The threshold of the classes is for cosines of the default model.
    has_threshold = settings["model"] == sets.DEFAULT_MODEL
    classes = [find_groups(matrix) for matrix in matrices] if vectors is not None and has_threshold else []
    order = "inf" if settings["q"] == "inf" else float(settings["q"])
    credits = contributions(vendi_embed, texts, matrices, result["scores"], q=order)
    bars = sets.credit_bars(texts, shown, [credits[i] for i in shown])
    drawn = np.concatenate([places[i][: sets.MOST_IN_MAP] for i in shown])
    return Result(
        answer=answer(texts, result, settings["kernel"]),
        pictures=[
            *similarity_maps(texts, shown, matrices),
            same_groups(
                [texts[i] for i in shown], names, [classes[i] for i in shown], [result["scores"][i] for i in shown]
            )
            if classes
            else None,
            (bars, "The score of the set less the score without the text. Below 0: the score is higher without it.")
            if bars
            else None,
            (
                plots.curves(
                    {name: (CURVE, by_order(values)) for name, values in spectra.items()},
                    "order q",
                    "Vendi score",
                    "order %{x}: %{y:.3f}<extra>%{fullData.name}</extra>",
                ),
                "A larger order gives more weight to common meanings, and less to rare ones.",
            ),
            sets.map_of_texts(
                texts,
                shown,
                whole[np.ix_(drawn, drawn)],
                "Similar texts are close. The map shows {share:.0%} of the variance; hover for the text.",
            ),
            likeness.draw(texts, whole, places),
            likeness.repeats(texts, classes, MOST_CHIPS) if n_sets > 2 else None,
        ],
        details=sets.details(
            ("Set", "No.", "Text", "Most similar no.", "Similarity", "Group", "Adds"),
            [
                [*row, classes[i][j] + 1 if classes else "", "" if adds is None else round(adds, 4)]
                for i, matrix in enumerate(matrices)
                for j, (row, adds) in enumerate(zip(nearest_rows(i + 1, texts[i], matrix), credits[i], strict=True))
            ],
            texts,
        ),
        scores=sets.scores_table(texts, {"Vendi score": result["scores"]}),
        report=sets.report("vendi_embed", result, texts),
        choices=sets.choices(texts),
        chosen=shown,
    )


def similarity_maps(
    texts: list[list[str]], shown: list[int], matrices: list[np.ndarray]
) -> list[tuple[Any, str] | None]:
    """Draw the similarities within one or two sets, with captions; None for a single text or a missing set."""
    maps: list[tuple[Any, str] | None] = []
    for place, i in enumerate(shown):
        matrix = matrices[i]
        if len(matrix) < 2:
            maps.append(None)
            continue
        n_drawn = min(len(matrix), sets.MOST_IN_MATRIX)
        name = sets.set_name(texts, i)
        caption = (f"{name}. " if name else "") + alike(matrix) + sets.first_of(n_drawn, len(matrix))
        maps.append((plots.heat_map(matrix[:n_drawn, :n_drawn], texts[i][:n_drawn], place), caption))
    return maps + [None] * (2 - len(maps))


def find_groups(matrix: np.ndarray) -> list[int]:
    """Return the group of each text: all pairs of a group have at least the similarity SAME.

    Complete linkage begins with the closest pair.
    """
    if len(matrix) < 2:
        return [0] * len(matrix)
    distances = squareform(np.maximum(1.0 - matrix, 0.0), checks=False)
    # Rounding keeps equal texts together.
    labels = fcluster(linkage(distances, "complete"), 1.0 - SAME + _ROUNDING, "distance").tolist()
    return [list(dict.fromkeys(labels)).index(label) for label in labels]


def same_groups(
    members: list[list[str]], names: list[str], classes: list[list[int]], scores: list[float]
) -> tuple[str, str]:
    """Return the texts of each set, group by group, the largest first, and a caption."""
    blocks, most = [], MOST_GROUPS // len(members)
    judged = "that the model does not tell apart" if sets.unjudged() else "that say the same"
    for place, (texts, name, labels) in enumerate(zip(members, names, classes, strict=True)):
        groups = [
            [text for text, label in zip(texts, labels, strict=True) if label == i] for i in range(max(labels) + 1)
        ]
        for group in sorted(groups, key=len, reverse=True)[:most]:
            title = "1 text" if len(group) == 1 else f"{len(group)} texts {judged}"
            blocks.append((title, [(name, [(text, None) for text in group], place)]))
    counts = [max(labels) + 1 for labels in classes]
    left_out = sets.first_of(len(blocks), sum(counts), "groups").replace("first", "largest")
    related = " ".join(map(reconciled, names, counts, scores))
    caption = f"Texts of one group have cosines of at least {SAME} with each other. {related}{left_out}"
    return panels.groups(blocks, MOST_CHIPS), caption


def reconciled(name: str, n_groups: int, value: float) -> str:
    """Say why the number of groups of a set differs from its score."""
    groups = f"{name}: {n_groups:,} group{'s' if n_groups > 1 else ''}, score {value:.2f}"
    if value < n_groups - _EQUAL:
        return f"{groups}, which is less because the groups are partly alike."
    if value > n_groups + _EQUAL:
        return f"{groups}, which is more because the texts of a group differ a little."
    return f"{groups}."


def word_similarity(texts: list[str]) -> np.ndarray:
    """Return the similarity matrix of the n-grams, whose eigenvalues determine the score."""
    sets_of_one = metric.part(vendi_embed, "core_inputs").parse_sets([texts])
    kernels, _ = metric.part(vendi_embed, "vendi_embed").word_kernels(sets_of_one)
    ((_, matrices),) = kernels
    return matrices[0]


def by_order(eigenvalues: list[float]) -> list[float]:
    """Return the score at each order of the curve."""
    core = metric.part(vendi_embed, "core_spectra")
    values = torch.tensor(eigenvalues, dtype=torch.float64)
    return [round(float(core.vendi_from_eigenvalues(values, 0, q)), 6) for q in CURVE]


def alike(matrix: np.ndarray) -> str:
    """Describe the most similar pair of two or more texts."""
    apart = matrix - 3 * np.eye(len(matrix))
    i, j = sorted(np.unravel_index(apart.argmax(), apart.shape))
    return f"Texts {i + 1} and {j + 1} are the most similar ({matrix[i, j]:.2f})."


def nearest_rows(number: int, texts: list[str], matrix: np.ndarray) -> list[list[Any]]:
    """Return each text of a set with the most similar other text."""
    if len(texts) == 1:
        return [[number, 1, texts[0], "", ""]]
    nearest = (matrix - 3 * np.eye(len(texts))).argmax(axis=1)
    return [
        [number, j + 1, text, int(nearest[j]) + 1, round(float(matrix[j, nearest[j]]), 4)]
        for j, text in enumerate(texts)
    ]


def meaning(value: float, n: int, kernel: str) -> str:
    """Return the interpretation of a score."""
    if n == 1:
        return "A single text: there is nothing to compare."
    if value < 1.15:
        all_of = "Both" if n == 2 else f"All {panels.in_words(n)}"
        return f"{all_of} say nearly the same." if kernel == "embedding" else f"{all_of} use nearly the same words."
    if value > n - 0.15:
        of_its_own = "says something" if kernel == "embedding" else "has words"
        return f"Each of the {panels.in_words(n)} {of_its_own} of its own."
    return f"As diverse as {value:.2f} texts that have no {'meaning' if kernel == 'embedding' else 'words'} in common."


def answer(texts: list[list[str]], result: dict[str, Any], kernel: str) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more."""
    scores, sizes = result["scores"], [len(members) for members in texts]
    if len(scores) > 2:
        card = panels.Card(
            "",
            result["vendi_embed"],
            f"on average over {len(scores)} sets",
            f"The scores of the sets range from {min(scores):.2f} to {max(scores):.2f}.",
        )
        return panels.answer([card], sets.unjudged(), signature=result["signature"])
    cards = [
        panels.Card(
            sets.set_name(texts, i),
            value,
            f"of {n}",
            "" if sets.unjudged() else meaning(value, n, kernel),
            None if sets.unjudged() or n < 2 else (value - 1) / (n - 1),
            ("1: all the same", f"{n}: all different"),
            i,
        )
        for i, (value, n) in enumerate(zip(scores, sizes, strict=True))
    ]
    verdict, notes = "", []
    if len(scores) == 2:
        more, less = (1, 2) if scores[0] >= scores[1] else (2, 1)
        gap = abs(scores[0] - scores[1])
        verdict = (
            "Both sets are equally diverse."
            if gap < _EQUAL
            else f"The texts of set {more} differ more from each other than those of set {less}."
        )
        notes.append(sets.NO_QUALITY)
        if sizes[0] != sizes[1]:
            notes.append("The sets differ in size: a larger set can reach a larger score.")
    return panels.answer(cards, sets.unjudged() or verdict, notes, result["signature"])


def api(
    texts: list[list[str]],
    q: Literal["0.1", "0.5", "1", "2", "inf"] = "1",
    kernel: Literal["embedding", "ngram"] = "embedding",
    model: sets.Model = sets.DEFAULT_MODEL,
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
    sets.check_model(model)
    inputs.check_choice("q", q, ORDERS)
    inputs.check_choice("kernel", kernel, KERNELS)
    given = inputs.check_sets(texts, sets.LIMITS)
    if kernel == "embedding" and model == sets.DEFAULT_MODEL:
        language.check_english(given, advice=sets.MULTILINGUAL)
    settings = {"model": model} if kernel == "embedding" else {"kernel": kernel}
    return vendi_embed.compute(
        predictions=given, q="inf" if q == "inf" else float(q), details=True, progress=True, **settings
    )


SPACE = sets.describe_space(
    name="vendi_embed",
    title="How many different things do these texts say?",
    lead="Four sentences can say four things, or one thing four times. The Vendi score counts meanings, not words. "
    "English only, unless you choose the model of 50 languages.",
    settings={
        "q": gr.Radio(
            inputs.options(ORDERS),
            value="1",
            label="Order q",
            info="A small order gives more weight to rare meanings.",
        ),
    },
    more_settings={
        "kernel": gr.Radio(inputs.options(KERNELS), value="embedding", label="Compare by"),
        "model": sets.model_setting(),
    },
    choosers=("Look at", "and compare with"),
    pictures=(
        Picture("Similarity of the texts"),
        Picture("Similarity of the texts"),
        Picture("Texts that say the same", is_figure=False, is_wide=True),
        Picture("What each text adds"),
        Picture("Score by order"),
        Picture("Map of the texts"),
        Picture("How alike the sets are"),
        Picture("Largest repeats of each set", is_figure=False, is_wide=True),
    ),
    score=score,
    api=api,
)

demo = build(SPACE)

if __name__ == "__main__":
    vendi_embed.compute(predictions=["warm", "up"])
    launch(demo, SPACE)
