"""Demo of vendi_embed: the effective number of different texts in a set."""

from itertools import chain
from typing import Any

import gradio as gr
import numpy as np
from _kit import inputs, panels, scoring, server, sets
from _kit.core import TIE
from _kit.page import Picture, Result, Space, build

vendi_embed = scoring.load(__file__, "vendi_embed")

LEAST_ORDER, MOST_ORDER = 0.1, 5.0
ORDER = "A small order gives more weight to rare meanings. 1 is Shannon entropy."
# Smaller differences of scores are not named.
EQUAL = 0.05


def compute(texts: Any, q: Any, contexts: Any = None, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("q", q, LEAST_ORDER, MOST_ORDER)
    given = inputs.check_sets(texts, sets.LIMITS, contexts)
    return scoring.compute(vendi_embed, given, predictions=given, q=float(q), contexts=contexts, is_drawn=is_drawn)


def score(rows: list[inputs.Row], prompt: str, markers: bool, q: float) -> Result:
    """Score all sets and draw one or two of them."""
    given = sets.group(rows, strip=markers)
    scored = compute(given.texts, q, sets.contexts_of(given, prompt), is_drawn=True)
    scores = scored.result["scores"]
    shown = sets.shown_of(scores)
    near = scoring.near(vendi_embed)
    squares = given.blocks(scored.similarity)
    adds = scoring.contributions(vendi_embed, given.texts, squares, scores, q=float(q))

    def remark(i: int, j: int, k: int) -> str:
        pair = [j, k]
        matrix = squares[i][np.ix_(pair, pair)]
        score = vendi_embed.compute(predictions=[["a", "b"]], similarity=[matrix], q=float(q))["vendi_embed"]
        return f"the two count as {score:.2f} different texts of 2."

    unseen = sets.unseen(given, [square >= near - TIE for square in squares], remark)

    def card_of(i: int, value: float) -> panels.Card:
        n = len(given.texts[i])
        unrelated = scoring.yardstick(vendi_embed, n, q=float(q))
        headline = headline_of(value, n, unrelated or n)
        if unseen[i]:
            headline = f"{headline.rstrip('.')}, as the model sees it."
        ends = ("1: all the same", f"{n}: all different")
        meter = (value - 1) / (n - 1) if n > 1 else None
        if unrelated is None:
            return panels.Card("", headline, value, f"of {n}", "", meter, ends=ends)
        beside = f"{panels.in_words(n).capitalize()} unrelated sentences score {unrelated:.2f}."
        return panels.Card("", headline, value, f"of {n}", beside, meter, (unrelated - 1) / (n - 1), ends)

    pictures = sets.figures(vendi_embed, given, shown, scored.similarity, near, prompt)
    pictures.append(sets.text_bars(given, shown, adds, "adds to the score", sets.ADDS))
    mean = panels.Card("", "", scored.result["vendi_embed"], f"on average over {len(scores)} sets")
    more = sets.verdict(given, scores, EQUAL, "More different things", "As many different things in both sets.")
    notes = [*chain(*unseen.values()), sets.NO_QUALITY]
    sizes = "a larger set can reach a larger score."
    table = sets.details(given, {"Adds": adds})
    return sets.result(given, scored, pictures, table, card_of, mean, more, sizes, notes)


def headline_of(value: float, n: int, unrelated: float) -> str:
    """Interpret a score of n texts, given the score of unrelated sentences."""
    texts = panels.in_words(n)
    if n == 1:
        return "A single text: there is nothing to compare."
    if value < 1.15:
        return f"{'Both' if n == 2 else f'All {texts}'} texts say nearly the same."
    if value > unrelated - 0.15:
        return f"Each of the {texts} texts says something of its own."
    return f"{texts.capitalize()} texts that say about {value:.1f} different things."


def api(texts: list[list[str]], q: float = 1.0, contexts: list[str] | None = None) -> dict[str, Any]:
    """Compute the Vendi score: the effective number of different texts in each set.

    Args:
        texts: sets of English texts, each a list of strings.
        q: order of the entropy, from 0.1 to 5; a small order gives more weight to rare meanings.
        contexts: for each set, what its texts were asked.

    Returns
    -------
        The result of the metric: "vendi_embed", the mean over sets; "scores", one for each set, from 1 to its size;
        "details" with the eigenvalues; "warnings"; and the "signature" to report with the score.

    """
    return compute(texts, q, contexts).result


ORDER_SLIDER = gr.Slider(LEAST_ORDER, MOST_ORDER, 1, step=0.1, label="Order q", info=ORDER)
SPACE = Space(
    **sets.SHARED,
    metric=vendi_embed,
    title="How many different things do these texts say?",
    lead="Four sentences can say four things, or one thing four times. The Vendi score counts meanings, not words. "
    "English only.",
    score=score,
    pictures=(*sets.FIGURES, Picture("What each text adds", is_wide=True)),
    api=api,
    settings={"prompt": sets.PROMPT_BOX, "markers": sets.MARKER_BOX, "q": ORDER_SLIDER},
)

demo = build(SPACE)

if __name__ == "__main__":
    scoring.yardstick(vendi_embed, 4, q=1.0)
    server.serve(demo, SPACE.limits.file_bytes)
