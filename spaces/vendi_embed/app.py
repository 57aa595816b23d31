"""Demo of vendi_embed: the effective number of different texts in a set."""

from collections.abc import Sequence
from typing import Any

import gradio as gr
from _kit import inputs, panels, scoring, sets
from _kit.page import Picture, Result, Space, build, launch

vendi_embed = scoring.load(__file__, "vendi_embed")

LEAST_ORDER, MOST_ORDER = 0.1, 5.0
# Smaller differences of scores are not named.
_EQUAL = 0.05


def compute(texts: Any, q: Any, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("q", q, LEAST_ORDER, MOST_ORDER)
    given = inputs.check_sets(texts, sets.LIMITS)
    settings = {"details": True, "is_drawn": is_drawn}
    return scoring.compute(vendi_embed, given, predictions=given, q=float(q), **settings)


def score(given: sets.Sets, chosen: Sequence[int | None], q: float) -> Result:
    """Score all sets and draw one or two of them."""
    result, is_read, matrices = compute(given.texts, q, is_drawn=True)
    shown = sets.two_of(chosen, len(given.texts))
    adds = scoring.contributions(vendi_embed, given.texts, matrices, result["scores"], q=float(q))
    return Result(
        answer=answer(given, result, is_read),
        pictures=[
            *sets.heat_maps(given, shown, matrices),
            sets.text_bars(given, shown, adds, "adds to the score", sets.ADDS),
        ],
        details=sets.details(given, {"Adds": adds}),
        report={"metric": "vendi_embed", **result, "predictions": given.texts},
        scores=sets.scores(given, {"Vendi score": result["scores"]}),
        choices=given.choices(),
        chosen=shown,
    )


def answer(given: sets.Sets, result: dict[str, Any], is_read: bool) -> str:
    """Return the answer: the scores of one or two sets, or the mean of more."""
    scores, sizes = result["scores"], list(map(len, given.texts))
    if len(scores) > 2:
        unit = f"on average over {len(scores)} sets"
        meaning = f"The scores of the sets range from {min(scores):.2f} to {max(scores):.2f}."
        cards = [panels.Card("", result["vendi_embed"], unit, meaning)]
    else:
        cards = [
            panels.Card(
                given.names[i],
                value,
                f"of {n}",
                meaning_of(value, n) if is_read else "",
                (value - 1) / (n - 1) if is_read and n > 1 else None,
                ("1: all the same", f"{n}: all different"),
                i,
            )
            for i, (value, n) in enumerate(zip(scores, sizes, strict=True))
        ]
    verdict, notes = "", list(result["warnings"])
    if len(scores) == 2:
        more, less = (1, 2) if scores[0] >= scores[1] else (2, 1)
        verdict = f"The texts of set {more} differ more from each other than those of set {less}."
        if abs(scores[0] - scores[1]) < _EQUAL:
            verdict = "Both sets are equally diverse."
        notes.append(sets.NO_QUALITY)
        if sizes[0] != sizes[1]:
            notes.append("The sets differ in size: a larger set can reach a larger score.")
    return panels.answer(cards, verdict if is_read else scoring.NOT_READ, notes, result["signature"])


def meaning_of(value: float, n: int) -> str:
    """Return the interpretation of a score."""
    if n == 1:
        return "A single text: there is nothing to compare."
    if value < 1.15:
        return f"{'Both' if n == 2 else f'All {panels.in_words(n)}'} say nearly the same."
    if value > n - 0.15:
        return f"Each of the {panels.in_words(n)} says something of its own."
    return f"As diverse as {value:.2f} texts that have no meaning in common."


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
    name="vendi_embed",
    title="How many different things do these texts say?",
    lead="Four sentences can say four things, or one thing four times. The Vendi score counts meanings, not words. "
    "English only.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    examples=sets.EXAMPLES,
    steps=sets.STEPS,
    rows=sets.rows_of,
    group=sets.group,
    score=score,
    pictures=(
        Picture("Similarity of the texts"),
        Picture("Similarity of the texts"),
        Picture("What each text adds", is_wide=True),
    ),
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
    vendi_embed.compute(predictions=["warm", "up"])
    launch(SPACE, demo)
