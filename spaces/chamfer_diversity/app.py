"""Demo of chamfer_diversity: the distance of each text to its nearest neighbour."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from _kit import inputs, panels, scoring, server, sets
from _kit.core import TIE
from _kit.page import Drawn, Picture, Result, Space, build

chamfer_diversity = scoring.load(__file__, "chamfer_diversity")

# The greatest distance of near duplicates.
NEAR = 0.05
# Smaller differences of scores are not named.
EQUAL = 0.02
# The lower bound of each interpretation, as a share of the score of unrelated sentences.
WORDS = (
    (0.85, "Even the nearest neighbours say different things."),
    (0.5, "The texts are well separated."),
    (0.25, "Most texts have a somewhat similar neighbour."),
    (0.0, "Most texts have a close neighbour."),
)


def compute(texts: Any, contexts: Any = None, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    given = inputs.check_sets(texts, sets.LIMITS, contexts)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no neighbour: a set needs at least two. Write one text a line.")
    return scoring.compute(
        chamfer_diversity, given, predictions=given, singletons="skip", contexts=contexts, is_drawn=is_drawn
    )


def score(rows: list[inputs.Row], prompt: str, markers: bool) -> Result:
    """Score all sets and draw one or two of them."""
    given = sets.group(rows, strip=markers)
    scored = compute(given.texts, sets.contexts_of(given, prompt), is_drawn=True)
    scores = scored.result["scores"]
    squares = given.blocks(scored.similarity)
    shown = sets.shown_of(scores)
    adds = scoring.contributions(chamfer_diversity, given.texts, squares, scores, singletons="skip")
    copies = [near_duplicates(square) for square in squares]
    found = [detail or {"distances": [None], "neighbours": [None]} for detail in scored.result["details"]]
    distances = [detail["distances"] for detail in found]
    neighbours = [detail["neighbours"] for detail in found]
    originals = [[firsts.get(j) for j in range(len(square))] for firsts, square in zip(copies, squares, strict=True)]
    columns = {"Distance": distances, "Nearest no.": neighbours, "Adds": adds, "Near duplicate of no.": originals}
    table = sets.details(given, columns)
    # People count from 1.
    for name in ("Nearest no.", "Near duplicate of no."):
        table[name] = table[name].astype("Int64") + 1

    def card_of(i: int, value: float) -> panels.Card:
        unrelated = scoring.yardstick(chamfer_diversity, len(given.texts[i]))
        headline = headline_of(value, unrelated or 1.0)
        many = panels.in_words(len(given.texts[i])).capitalize()
        beside = f"{many} unrelated sentences score {unrelated:.2f}." if unrelated else ""
        facts = facts_of(scored.result["details"][i])
        ends = ("0: duplicates", "1: unrelated")
        return panels.Card("", headline, value, "from the nearest", beside, value, unrelated, ends, facts=facts)

    pairs = [(f"{scored.result['mean_pairwise_distance']:.2f}", "All pairs", "on average")]
    near = scoring.near(chamfer_diversity)
    pictures = [
        sets.text_bars(given, shown, distances, "distance", "Of each text to its nearest neighbour."),
        *sets.figures(chamfer_diversity, given, shown, scored.similarity, near, prompt),
        duplicates_panel(given, shown, copies),
        sets.text_bars(given, shown, adds, "adds to the score", sets.ADDS),
    ]
    n_scored = sum(score is not None for score in scores)
    unit = f"from the nearest, on average over {n_scored} sets"
    mean = panels.Card("", "", scored.result["chamfer_diversity"], unit, facts=pairs)
    same = "The texts of both sets are equally far apart."
    said = sets.verdict(given, scores, EQUAL, "The texts are further apart", same)

    def remark(i: int, j: int, k: int) -> str:
        return f"they are only {panels.decimals(1 - squares[i][j, k])} apart."

    unseen = sets.unseen(given, [square >= near - TIE for square in squares], remark)
    notes = [*chain(*unseen.values()), sets.NO_QUALITY]
    sizes = "distances tend to be smaller in a larger set."
    return sets.result(given, scored, pictures, table, card_of, mean, said, sizes, notes)


def headline_of(value: float, unrelated: float) -> str:
    """Interpret a score, given the score of unrelated sentences."""
    if value < NEAR - TIE:
        return "Nearly every text has a near duplicate."
    return next(words for least, words in WORDS if value >= least * unrelated - TIE)


def near_duplicates(similarity: np.ndarray) -> dict[int, int]:
    """Map each near duplicate of a set to the first text that it is near to."""
    near = similarity >= 1 - NEAR - TIE
    copies: dict[int, int] = {}
    for i in range(len(near)):
        if i not in copies:
            copies |= {int(j): i for j in np.flatnonzero(near[i]) if j > i and j not in copies}
    return copies


def duplicates_panel(given: sets.Sets, shown: Sequence[int], copies: list[dict[int, int]]) -> Drawn:
    """Return the near duplicates of each set below the first of them, and a caption."""
    groups = []
    for series, i in enumerate(shown):
        texts = given.texts[i]
        for original in sorted(set(copies[i].values())):
            near = [texts[j] for j, first in copies[i].items() if first == original]
            groups.append((texts[original], [(given.name(i), near, series)]))
    if not groups:
        return Drawn(panels.render("ledger", [], f"None found: no two texts of a set are within {NEAR} of each other."))
    n_copies = sum(len(copies[i]) for i in shown)
    caption = f"{panels.count(n_copies, 'text')} within {NEAR} of the text above, which is the first of them."
    return Drawn(panels.render("groups", groups), caption)


def facts_of(detail: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the extremes of the distances in a set, and the mean of all pairs."""
    return [
        (f"{min(detail['distances']):.2f}", "Minimum", "to the nearest"),
        (f"{max(detail['distances']):.2f}", "Maximum", "to the nearest"),
        (f"{detail['mean_pairwise_distance']:.2f}", "All pairs", "on average"),
    ]


def api(texts: list[list[str]], contexts: list[str] | None = None) -> dict[str, Any]:
    """Compute the Chamfer diversity: the mean distance of each text of a set to its nearest neighbour.

    Args:
        texts: sets of English texts, each a list of strings. A set of one text has no score.
        contexts: for each set, what its texts were asked.

    Returns
    -------
        The result of the metric: "chamfer_diversity", the mean over sets; "mean_pairwise_distance"; "scores", one for
        each set, from 0 to 2; "details" with each text's neighbour; "warnings"; and the "signature" to report with the
        score.

    """
    return compute(texts, contexts).result


SPACE = Space(
    **sets.SHARED,
    metric=chamfer_diversity,
    title="How far is each text from its nearest neighbour?",
    lead="A set is diverse if no text has a near duplicate. Chamfer diversity is the mean distance of the texts, in "
    "meaning, to their nearest neighbours. English only.",
    score=score,
    pictures=(
        Picture("Distance to the nearest neighbour", is_wide=True),
        *sets.FIGURES,
        Picture("Near duplicates", is_html=True, is_wide=True),
        Picture("What each text adds", is_wide=True),
    ),
    api=api,
    settings={"prompt": sets.PROMPT_BOX, "markers": sets.MARKER_BOX},
)

demo = build(SPACE)

if __name__ == "__main__":
    scoring.yardstick(chamfer_diversity, 4)
    server.serve(demo, SPACE.limits.file_bytes)
