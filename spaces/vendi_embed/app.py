"""Demo of vendi_embed: the effective number of different texts in a set."""

from collections.abc import Sequence
from typing import Any

import gradio as gr
from _kit import inputs, panels, scoring, sets
from _kit.page import Picture, Result, Space, build, launch

vendi_embed = scoring.load(__file__, "vendi_embed")

LEAST_ORDER, MOST_ORDER = 0.1, 5.0
# Smaller differences of scores are not named.
EQUAL = 0.05


def compute(texts: Any, q: Any, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("q", q, LEAST_ORDER, MOST_ORDER)
    given = inputs.check_sets(texts, sets.LIMITS)
    return scoring.compute(vendi_embed, given, predictions=given, q=float(q), is_drawn=is_drawn)


def score(rows: list[inputs.Row], chosen: Sequence[Any], q: float) -> Result:
    """Score all sets and draw one or two of them."""
    given = sets.group(rows)
    scored = compute(given.texts, q, is_drawn=True)
    scores, similarity = scored.result["scores"], scored.similarity
    shown, squares = sets.two_of(chosen, len(given.texts)), scoring.blocks(similarity, given.texts)
    adds = scoring.contributions(vendi_embed, given.texts, squares, scores, q=float(q))
    unseen = sets.unseen(given, similarity)
    notes = [note for of_set in unseen.values() for note in of_set]
    if len(scores) == 2:
        notes.append(sets.NO_QUALITY)
        if len(given.texts[0]) != len(given.texts[1]):
            notes.append("The sets differ in size: a larger set can reach a larger score.")
    return Result(
        scored,
        {"predictions": given.texts},
        pictures=[
            *sets.figures(given, shown, similarity, sets.NEAR),
            sets.text_bars(given, shown, adds, "adds to the score", sets.ADDS),
        ],
        details=sets.details(given, {"Adds": adds}),
        cards=cards(given, scored, float(q), set(unseen)),
        ranking=sets.ranking(given, scores),
        verdict=sets.verdict(
            given, scored, scores, EQUAL, "More different things", "As many different things in both sets."
        ),
        notes=notes,
        choices=given.choices(),
        chosen=shown,
    )


def cards(given: sets.Sets, scored: scoring.Scored, q: float, unsure: set[int]) -> list[panels.Card]:
    """Return the scores of one or two sets, or the mean of more."""
    scores = scored.result["scores"]
    if len(scores) > 2:
        return [panels.Card("", "", scored.result["vendi_embed"], f"on average over {len(scores)} sets")]
    found = []
    for i, value in enumerate(scores):
        n = len(given.texts[i])
        unrelated = scoring.yardstick(vendi_embed, n, q=q)
        headline = headline_of(value, n, unrelated or n)
        if i in unsure:
            headline = f"{headline.rstrip('.')}, as the model sees it."
        found.append(
            panels.Card(
                given.name(i),
                headline if scored.is_read else "",
                value,
                f"of {n}",
                f"{panels.in_words(n).capitalize()} unrelated sentences score {unrelated:.2f}." if unrelated else "",
                (value - 1) / (n - 1) if scored.is_read and n > 1 else None,
                (unrelated - 1) / (n - 1) if unrelated else None,
                ("1: all the same", f"{n}: all different"),
                i,
            )
        )
    return found


def headline_of(value: float, n: int, unrelated: float) -> str:
    """Return the interpretation of a score beside that of unrelated sentences."""
    texts = panels.in_words(n)
    if n == 1:
        return "A single text: there is nothing to compare."
    if value < 1.15:
        return f"{'Both' if n == 2 else f'All {texts}'} texts say nearly the same."
    if value > unrelated - 0.15:
        return f"Each of the {texts} texts says something of its own."
    return f"{texts.capitalize()} texts that say about {value:.1f} different things."


def api(texts: list[list[str]], q: float = 1.0) -> dict[str, Any]:
    """Compute the Vendi score: the effective number of different texts in each set.

    Args:
        texts: sets of English texts, each a list of strings.
        q: order of the entropy, from 0.1 to 5; a small order gives more weight to rare meanings.

    Returns
    -------
        The result of the metric: "vendi_embed", the mean over sets; "scores", one for each set, from 1 to its size;
        "details" with the eigenvalues; "warnings"; and the "signature" to report with the score.

    """
    return compute(texts, q).result


SPACE = Space(
    metric=vendi_embed,
    title="How many different things do these texts say?",
    lead="Four sentences can say four things, or one thing four times. The Vendi score counts meanings, not words. "
    "English only.",
    limits=sets.LIMITS,
    boxes=sets.BOXES,
    examples=sets.EXAMPLES,
    steps=sets.STEPS,
    rows=sets.rows_of,
    score=score,
    pictures=(*sets.FIGURES, Picture("What each text adds", is_wide=True)),
    api=api,
    sample=sets.SAMPLE,
    settings={
        "q": gr.Slider(
            LEAST_ORDER,
            MOST_ORDER,
            1,
            step=0.1,
            label="Order q",
            info="A small order gives more weight to rare meanings. 1 is Shannon entropy.",
        )
    },
    choosers=("Look at", "and compare with"),
)

demo = build(SPACE)

if __name__ == "__main__":
    scoring.yardstick(vendi_embed, 4, q=1.0)
    launch(SPACE, demo)
