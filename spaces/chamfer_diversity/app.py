"""Demo of chamfer_diversity: the distance of each text to its nearest neighbour."""

from typing import Any

import numpy as np
from _kit import inputs, language, metric, sets
from _kit.contributions import contributions
from _kit.page import Picture, Result, build, launch
from _kit.show import panels, plots

chamfer_diversity = metric.load(__file__, "chamfer_diversity")

MOST_BARS = 40
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


def score(texts: Any, chosen: Any, settings: dict[str, Any]) -> Result:
    """Score all sets and draw one or two of them."""
    result = api(texts, **settings)
    n_sets = len(texts)
    shown = [i for i in sets.two_of(chosen, n_sets) if result["details"][i] is not None]
    names = [sets.figure_name(texts, i) for i in shown]

    rows, bars = [], {}
    flat = [text for members in texts for text in members]
    vectors = sets.embed(chamfer_diversity, flat, settings["model"])
    places = sets.rows_of(texts)
    copies = [near_duplicates(vectors[place]) for place in places]
    matrices = [np.clip(vectors[place] @ vectors[place].T, -1.0, 1.0) for place in places]
    credits = contributions(chamfer_diversity, texts, matrices, result["scores"], singletons="skip")
    for i, detail in enumerate(result["details"]):
        if detail is None:
            rows.append([i + 1, 1, texts[i][0], "", "", "", "", ""])
            continue
        for j, (distance, near) in enumerate(zip(detail["distances"], detail["neighbours"], strict=True)):
            adds, copy = credits[i][j], copies[i].get(j)
            known, original = "" if adds is None else round(adds, 4), "" if copy is None else copy + 1
            rows.append([i + 1, j + 1, texts[i][j], round(distance, 4), near + 1, texts[i][near], known, original])
            if i in shown:
                name = names[shown.index(i)]
                bars[sets.text_name(i, j, n_sets)] = (distance, name, f"{texts[i][j]} → {texts[i][near]}")

    drawn_vectors = vectors[np.concatenate([places[i][: sets.MOST_IN_MAP] for i in shown])]
    arrows: list[tuple[int, int]] = []
    start = 0
    for i in shown:
        neighbours = result["details"][i]["neighbours"][: sets.MOST_IN_MAP]
        arrows += [(start + j, start + near) for j, near in enumerate(neighbours) if near < len(neighbours)]
        start += len(neighbours)
    ordered = sorted(bars.items(), key=lambda bar: bar[1][0])[:MOST_BARS]
    distances = plots.ranked_bars(
        [(name, value, names.index(group), text) for name, (value, group, text) in ordered], names, "distance"
    )
    closest = min((row for row in rows if row[0] - 1 in shown), key=lambda row: row[3])
    pair = [sets.text_name(closest[0] - 1, closest[k] - 1, n_sets) for k in (1, 4)]
    drawn = [i for i in shown if len(texts[i]) <= MOST_BARS]
    credit_bars = sets.credit_bars(texts, drawn, [credits[i] for i in drawn])
    in_bars = f" The {MOST_BARS} smallest of {len(bars):,} are shown." if len(bars) > MOST_BARS else ""
    return Result(
        answer=answer(texts, result),
        pictures=[
            sets.map_of_texts(
                texts,
                shown,
                np.clip(drawn_vectors @ drawn_vectors.T, -1.0, 1.0),
                "Each arrow points to the nearest neighbour. The map shows {share:.0%} of the variance.",
                arrows,
            ),
            (
                distances,
                f"The closest pair: {pair[0]} and {pair[1]}, {closest[3]:.2f} apart. Hover for the texts.{in_bars}",
            ),
            (credit_bars, "The score of the set less the score without the text. Below 0: others are near it.")
            if credit_bars
            else None,
            duplicates_panel([texts[i] for i in shown], names, [copies[i] for i in shown]),
        ],
        details=sets.details(
            ("Set", "No.", "Text", "Distance", "Nearest no.", "Nearest text", "Adds", "Near duplicate of no."),
            rows,
            texts,
        ),
        scores=sets.scores_table(texts, {"Chamfer diversity": result["scores"]}),
        report=sets.report("chamfer_diversity", result, texts),
        choices=sets.choices(texts),
        chosen=shown,
    )


def near_duplicates(vectors: np.ndarray) -> dict[int, int]:
    """Return the texts of a set to remove, each with the first text that remains and to which it is near."""
    near = vectors @ vectors.T > 1 - NEAR
    copies: dict[int, int] = {}
    for i in range(len(near)):
        if i not in copies:
            copies |= {int(j): i for j in np.flatnonzero(near[i]) if j > i and j not in copies}
    return copies


def duplicates_panel(members: list[list[str]], names: list[str], copies: list[dict[int, int]]) -> tuple[str, str]:
    """Return the near duplicates of each set below the text that remains, and a caption."""
    blocks, n_copies = [], sum(map(len, copies))
    for place, (texts, name, of_set) in enumerate(zip(members, names, copies, strict=True)):
        for original in sorted(set(of_set.values())):
            removed: list[tuple[str, float | None]] = [(texts[j], None) for j, i in of_set.items() if i == original]
            blocks.append((texts[original], [(name, removed, place)]))
    if not blocks:
        return panels.ledger([], f"None: no two texts of a set are closer than {NEAR}."), ""
    caption = f"{sets.count(n_copies, 'text')} to remove, each closer than {NEAR} to the text above it, which remains."
    left_out = sets.first_of(min(len(blocks), MOST_GROUPS), len(blocks), "groups")
    return panels.groups(blocks[:MOST_GROUPS], MOST_CHIPS), f"{caption}{left_out} The details list all."


def meaning(value: float) -> str:
    """Return the interpretation of a score."""
    return "" if sets.unjudged() else next(words for least, words in WORDS if value >= least)


def answer(texts: list[list[str]], result: dict[str, Any]) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more."""
    scored = [(i, value) for i, value in enumerate(result["scores"]) if value is not None]
    mean, n_sets = result["chamfer_diversity"], len(texts)
    ends, is_judged = ("0: duplicates", "1: unrelated"), not sets.unjudged()
    notes = []
    if len(scored) < n_sets:
        notes.append(f"{n_sets - len(scored)} of {n_sets} sets contain a single text: not scored.")
    if len(scored) > 2:
        pairs = [(f"{result['mean_pairwise_distance']:.2f}", "All pairs", "on average")]
        unit = f"on average over {len(scored)} sets"
        cards = [panels.Card("", mean, unit, meaning(mean), mean if is_judged else None, ends, facts=pairs)]
    else:
        cards = [
            panels.Card(
                sets.set_name(texts, i),
                value,
                "apart",
                meaning(value),
                value if is_judged else None,
                ends,
                place,
                facts_of(result["details"][i]),
            )
            for place, (i, value) in enumerate(scored)
        ]
    verdict = ""
    if n_sets == len(scored) == 2:
        more = 1 if scored[0][1] >= scored[1][1] else 2
        close = abs(scored[0][1] - scored[1][1]) < 0.02
        verdict = (
            "The texts of both sets are equally far apart." if close else f"Set {more}: its texts are further apart."
        )
        notes.append(sets.NO_QUALITY)
        if len(texts[0]) != len(texts[1]):
            notes.append("The sets differ in size: distances tend to be smaller in a larger set.")
    return panels.answer(cards, sets.unjudged() or verdict, notes, result["signature"])


def facts_of(detail: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the extremes of the distances in a set, and the mean of all pairs."""
    return [
        (f"{min(detail['distances']):.2f}", "Minimum", "to the nearest"),
        (f"{max(detail['distances']):.2f}", "Maximum", "to the nearest"),
        (f"{detail['mean_pairwise_distance']:.2f}", "All pairs", "on average"),
    ]


def api(
    texts: list[list[str]],
    model: sets.Model = sets.DEFAULT_MODEL,
) -> dict[str, Any]:
    """Compute the Chamfer diversity: the mean distance of each text of a set to its nearest neighbour.

    Args:
        texts: sets of texts, each a list of strings. A set of one text has no score.
        model: the model that measures similarity.

    Returns
    -------
        The result of the metric: "chamfer_diversity", the mean over sets; "mean_pairwise_distance"; "scores", one for
        each set, from 0 to 2; "details" with each text's neighbour; and the "signature" to report with the score.

    """
    sets.check_model(model)
    given = inputs.check_sets(texts, sets.LIMITS)
    if all(len(members) < 2 for members in given):
        raise inputs.InputError("A single text has no neighbour: a set needs at least two. Write one text a line.")
    if model == sets.DEFAULT_MODEL:
        language.check_english(given, advice=sets.MULTILINGUAL)
    return chamfer_diversity.compute(predictions=given, model=model, singletons="skip", details=True, progress=True)


SPACE = sets.describe_space(
    name="chamfer_diversity",
    title="How far is each text from its nearest neighbour?",
    lead="A set is diverse if no text has a near duplicate. Chamfer diversity is the mean distance of the texts, in "
    "meaning, to their nearest neighbours. English only, unless you choose the model of 50 languages.",
    settings={"model": sets.model_setting()},
    more_settings={},
    choosers=("Look at", "and compare with"),
    pictures=(
        Picture("Nearest neighbours"),
        Picture("Distance to the nearest neighbour"),
        Picture("What each text adds"),
        Picture("Near duplicates", is_figure=False, is_wide=True),
    ),
    score=score,
    api=api,
)

demo = build(SPACE)

if __name__ == "__main__":
    chamfer_diversity.compute(predictions=["warm", "up"])
    launch(demo, SPACE)
