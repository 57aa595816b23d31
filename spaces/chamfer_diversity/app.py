"""Demo of chamfer_diversity: the distance of each text to its nearest neighbour."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from _kit import inputs, panels, scoring, sets
from _kit.page import Drawn, Picture, Result, Space, build, launch

chamfer_diversity = scoring.load(__file__, "chamfer_diversity")

# The greatest distance of near duplicates.
NEAR = 0.05
# Groups of near duplicates, and texts of a group, that are listed.
MOST_GROUPS, MOST_CHIPS = 12, 5
# The lower bound of each interpretation.
WORDS = (
    (0.7, "The texts are far apart: even the nearest neighbours say different things."),
    (0.4, "The texts are well separated."),
    (0.2, "Most texts have a somewhat similar neighbour."),
    (NEAR, "Most texts have a close neighbour."),
    (0.0, "Nearly every text has a near duplicate."),
)


def compute(texts: Any, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no neighbour: a set needs at least two. Write one text a line.")
    settings = {"details": True, "is_drawn": is_drawn}
    return scoring.compute(chamfer_diversity, given, predictions=given, singletons="skip", **settings)


def score(given: sets.Sets, chosen: Sequence[int | None]) -> Result:
    """Score all sets and draw one or two of them."""
    result, is_read, matrices = compute(given.texts, is_drawn=True)
    shown = [i for i in sets.two_of(chosen, len(given.texts)) if result["details"][i] is not None]
    adds = scoring.contributions(chamfer_diversity, given.texts, matrices, result["scores"], singletons="skip")
    copies = [near_duplicates(matrix) for matrix in matrices]
    details = [detail or {"distances": [None], "neighbours": [None]} for detail in result["details"]]
    distances: list[Any] = [detail["distances"] for detail in details]
    columns = {
        "Distance": distances,
        "Nearest no.": [[j if j is None else j + 1 for j in detail["neighbours"]] for detail in details],
        "Adds": adds,
        "Near duplicate of no.": [
            [found[j] + 1 if j in found else None for j in range(len(texts))]
            for found, texts in zip(copies, given.texts, strict=True)
        ],
    }
    return Result(
        answer=answer(given, result, is_read),
        pictures=[
            sets.text_bars(given, shown, distances, "distance", "Of each text to its nearest neighbour."),
            sets.text_bars(given, shown, adds, "adds to the score", sets.ADDS),
            duplicates_panel(given, shown, copies),
            *sets.heat_maps(given, shown, matrices),
        ],
        details=sets.details(given, columns),
        report={"metric": "chamfer_diversity", **result, "predictions": given.texts},
        scores=sets.scores(given, {"Chamfer diversity": result["scores"]}),
        choices=given.choices(),
        chosen=shown,
    )


def near_duplicates(similarity: np.ndarray) -> dict[int, int]:
    """Return the texts of a set to remove, each with the first text that remains and to which it is near."""
    near = similarity > 1 - NEAR
    copies: dict[int, int] = {}
    for i in range(len(near)):
        if i not in copies:
            copies |= {int(j): i for j in np.flatnonzero(near[i]) if j > i and j not in copies}
    return copies


def duplicates_panel(given: sets.Sets, shown: Sequence[int], copies: list[dict[int, int]]) -> Drawn:
    """Return the near duplicates of each set below the text that remains, and a caption."""
    groups = [
        panels.Group(
            given.texts[i][original],
            [(given.figure_name(i), [given.texts[i][j] for j, of in copies[i].items() if of == original], series)],
        )
        for series, i in enumerate(shown)
        for original in sorted(set(copies[i].values()))
    ]
    if not groups:
        return Drawn(panels.ledger([], f"None: no two texts of a set are closer than {NEAR}."))
    n_copies = sum(len(copies[i]) for i in shown)
    caption = f"{panels.count(n_copies, 'text')} closer than {NEAR} to the text above, which is the first of them."
    cut = sets.first_of(min(len(groups), MOST_GROUPS), len(groups), "groups")
    return Drawn(panels.groups(groups[:MOST_GROUPS], MOST_CHIPS), caption + cut)


def answer(given: sets.Sets, result: dict[str, Any], is_read: bool) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more."""
    scored = [(i, value) for i, value in enumerate(result["scores"]) if value is not None]
    n_sets, notes = len(given.texts), list(result["warnings"])
    if len(scored) < n_sets:
        notes.append(f"{n_sets - len(scored)} of {n_sets} sets contain a single text: not scored.")
    if len(scored) > 2:
        facts = [(f"{result['mean_pairwise_distance']:.2f}", "All pairs", "on average")]
        cards = [card("", result["chamfer_diversity"], f"on average over {len(scored)} sets", facts, is_read)]
    else:
        cards = [
            card(given.names[i], value, "apart", facts_of(result["details"][i]), is_read, series)
            for series, (i, value) in enumerate(scored)
        ]
    verdict = ""
    if n_sets == len(scored) == 2:
        more = 1 if scored[0][1] >= scored[1][1] else 2
        verdict = f"Set {more}: its texts are further apart."
        if abs(scored[0][1] - scored[1][1]) < 0.02:
            verdict = "The texts of both sets are equally far apart."
        notes.append(sets.NO_QUALITY)
        if len(given.texts[0]) != len(given.texts[1]):
            notes.append("The sets differ in size: distances tend to be smaller in a larger set.")
    return panels.answer(cards, verdict if is_read else scoring.NOT_READ, notes, result["signature"])


def card(
    name: str, value: float, unit: str, facts: list[tuple[str, str, str]], is_read: bool, series: int = 0
) -> panels.Card:
    """Return the card of a score, with its interpretation if the model reads the texts."""
    meaning = next(words for least, words in WORDS if value >= least) if is_read else ""
    ends = ("0: duplicates", "1: unrelated")
    return panels.Card(name, value, unit, meaning, value if is_read else None, ends, series, facts)


def facts_of(detail: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the extremes of the distances in a set, and the mean of all pairs."""
    return [
        (f"{min(detail['distances']):.2f}", "Minimum", "to the nearest"),
        (f"{max(detail['distances']):.2f}", "Maximum", "to the nearest"),
        (f"{detail['mean_pairwise_distance']:.2f}", "All pairs", "on average"),
    ]


def api(texts: list[list[str]]) -> dict[str, Any]:
    """Compute the Chamfer diversity: the mean distance of each text of a set to its nearest neighbour.

    Args:
        texts: sets of English texts, each a list of strings. A set of one text has no score.

    Returns
    -------
        The result of the metric: "chamfer_diversity", the mean over sets; "mean_pairwise_distance"; "scores", one for
        each set, from 0 to 2; "details" with each text's neighbour; "warnings"; and the "signature" to report with the
        score.

    """
    return compute(texts).result


SPACE = Space(
    name="chamfer_diversity",
    title="How far is each text from its nearest neighbour?",
    lead="A set is diverse if no text has a near duplicate. Chamfer diversity is the mean distance of the texts, in "
    "meaning, to their nearest neighbours. English only.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    examples=sets.EXAMPLES,
    steps=sets.STEPS,
    rows=sets.rows_of,
    group=sets.group,
    score=score,
    pictures=(
        Picture("Distance to the nearest neighbour"),
        Picture("What each text adds"),
        Picture("Near duplicates", "html", is_wide=True),
        Picture("Similarity of the texts"),
        Picture("Similarity of the texts"),
    ),
    api=api,
    sample=sets.SAMPLE,
    settings={},
    choosers=("Look at", "and compare with"),
)

demo = build(SPACE)

if __name__ == "__main__":
    chamfer_diversity.compute(predictions=["warm", "up"])
    launch(SPACE, demo)
