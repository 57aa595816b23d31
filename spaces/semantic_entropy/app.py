"""Demo of semantic_entropy: into how many meanings texts fall."""

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import gradio as gr
import numpy as np
from _kit import inputs, panels, scoring, server, sets
from _kit.page import Drawn, Picture, Result, Space, build

semantic_entropy = scoring.load(__file__, "semantic_entropy")

_SETTINGS = scoring.part(semantic_entropy, "semantic_entropy_settings")
SAME = _SETTINGS.DEFAULT_SAME
SAME_IN_CONTEXT = _SETTINGS.DEFAULT_SAME_IN_CONTEXT
LEAST_SAME, MOST_SAME = 0.5, 1.0
INFO = (
    f"{SAME} is calibrated on pairs that people labelled; with a question, it stands for {SAME_IN_CONTEXT}."
    if scoring.is_default()
    else f"It depends on the encoder: unrelated texts have {scoring.unrelated_cosine(semantic_entropy):.2f} on average."
)
# Without a calibrated threshold, the slider begins at the threshold of the map.
FIRST_SAME = SAME if scoring.is_default() else min(round(scoring.near(semantic_entropy), 2), MOST_SAME)
# Smaller differences of scores are not named.
EQUAL = 0.005


def compute(texts: Any, same: Any, contexts: Any = None, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric; the default of `same` is not passed on."""
    inputs.check_number("same", same, LEAST_SAME, MOST_SAME)
    given = inputs.check_sets(texts, sets.LIMITS, contexts)
    # Other models have no default.
    least = None if same == SAME and scoring.is_default() else float(same)
    return scoring.compute(semantic_entropy, given, predictions=given, same=least, contexts=contexts, is_drawn=is_drawn)


def score(rows: list[inputs.Row], prompt: str, markers: bool, same: float) -> Result:
    """Score all sets and show the classes of one or two of them."""
    given = sets.group(rows, strip=markers)
    contexts = sets.contexts_of(given, prompt)
    scored = compute(given.texts, same, contexts, is_drawn=True)
    scores = scored.result["scores"]
    counts = [int(n_classes) for n_classes in scored.result["n_classes_scores"]]
    if contexts and same == SAME and scoring.is_default():
        same = SAME_IN_CONTEXT
    shown = sets.shown_of(scores)
    classes = [detail["classes"] for detail in scored.result["details"]]
    alike = [np.equal.outer(labels, labels) for labels in classes]
    unseen = sets.unseen(given, alike, lambda i, j, k: "the model counts them as one meaning.")

    def card_of(i: int, value: float) -> panels.Card:
        n = len(given.texts[i])
        headline = f"The model finds {panels.count(counts[i], 'meaning')} in {panels.count(n, 'text')}."
        ends = ("sure: one meaning", "unsure: all different")
        if n == 1:
            return panels.Card("", headline, value, "nats of entropy")
        beside = f"0 if all say the same, {math.log(n):.2f} if no two of {panels.in_words(n)} do."
        return panels.Card("", headline, value, "nats of entropy", beside, value / math.log(n), ends=ends)

    pictures: list[Drawn | None] = [classes_panel(given, shown, classes, same)]
    pictures += sets.figures(semantic_entropy, given, shown, scored.similarity, float(same), prompt)
    table = sets.details(given, {"Meaning": classes})
    # People count from 1.
    table["Meaning"] += 1
    unit = f"nats and {scored.result['n_classes']:.2f} meanings, on average over {len(scores)} sets"
    mean = panels.Card("", "", scored.result["semantic_entropy"], unit)
    equal = "Both sets are equally certain."
    said = sets.verdict(given, scores, EQUAL, "More meanings, or more even ones,", equal)
    sizes = "a larger set can have more meanings."
    notes = [*chain(*unseen.values()), *sets.contained_notes(given, alike)]
    facts = [panels.count(k, "meaning") for k in counts]
    return sets.result(given, scored, pictures, table, card_of, mean, said, sizes, notes, facts)


def classes_panel(given: sets.Sets, shown: Sequence[int], classes: list[list[int]], same: float) -> Drawn:
    """Return the texts of each set, class by class, the largest first, and a caption."""
    groups = []
    for series, i in enumerate(shown):
        members: dict[int, list[str]] = {}
        for text, label in zip(given.texts[i], classes[i], strict=True):
            members.setdefault(label, []).append(text)
        for texts in sorted(members.values(), key=len, reverse=True):
            groups.append((panels.count(len(texts), "text"), [(given.name(i), texts, series)]))
    caption = f"All texts of a class have cosines of at least {same:g} with each other."
    return Drawn(panels.render("groups", groups), caption)


def api(texts: list[list[str]], same: float = FIRST_SAME, contexts: list[str] | None = None) -> dict[str, Any]:
    """Compute semantic entropy: the entropy of the meanings into which the texts of each set fall, in nats.

    Args:
        texts: sets of English texts, each a list of strings, such as a model's answers to a question.
        same: the least cosine of texts that say the same, from 0.5 to 1. The default is the slider's; with the
            default encoder it is calibrated, and stands for a smaller one with contexts.
        contexts: for each set, the question that its texts answer.

    Returns
    -------
        The result of the metric: "semantic_entropy", the mean over sets; "scores" and "n_classes_scores", one for each
        set; "details" with the class of each text; "warnings"; and the "signature" to report with the score.

    """
    return compute(texts, same, contexts).result


SAME_SLIDER = gr.Slider(LEAST_SAME, MOST_SAME, FIRST_SAME, step=0.01, label="Say the same from this cosine", info=INFO)
SPACE = Space(
    **sets.SHARED,
    metric=semantic_entropy,
    title="How many meanings do these answers have?",
    lead="A model that is sure of its answer says the same each time, in other words. Semantic entropy is the entropy "
    "of the meanings: 0 if all say the same. English only.",
    score=score,
    pictures=(Picture("Texts that say the same", is_html=True, is_wide=True), *sets.FIGURES),
    api=api,
    settings={"prompt": sets.PROMPT_BOX, "markers": sets.MARKER_BOX, "same": SAME_SLIDER},
)

demo = build(SPACE)

if __name__ == "__main__":
    compute([["warm", "up"]], FIRST_SAME)
    server.serve(demo, SPACE.limits.file_bytes)
