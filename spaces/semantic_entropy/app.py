"""Demo of semantic_entropy: into how many meanings texts fall."""

import math
from collections.abc import Sequence
from typing import Any

import gradio as gr
from _kit import inputs, panels, scoring, sets
from _kit.page import Drawn, Example, Picture, Result, Space, build, launch

semantic_entropy = scoring.load(__file__, "semantic_entropy")

SAME = scoring.part(semantic_entropy, "semantic_entropy_settings").DEFAULT_SAME
LEAST_SAME, MOST_SAME = 0.5, 1.0
# Classes of a set, and texts of a class, that are listed.
MOST_CLASSES, MOST_CHIPS = 12, 6
# Smaller differences of scores are not named.
EQUAL = 0.005
_SURE = """She was late because she missed the bus.
She missed the bus, so she was late.
Because she missed her bus she came late.
She came late: she had missed the bus."""
_UNSURE = """She was late because she missed the bus.
Her alarm did not ring in the morning.
A fallen tree blocked the road.
Her child was ill at home."""


def compute(texts: Any, same: Any, is_drawn: bool = False) -> scoring.Scored:
    """Check the input and compute the metric."""
    inputs.check_number("same", same, LEAST_SAME, MOST_SAME)
    given = inputs.check_sets(texts, sets.LIMITS)
    return scoring.compute(semantic_entropy, given, predictions=given, same=float(same), is_drawn=is_drawn)


def score(rows: list[inputs.Row], chosen: Sequence[Any], same: float) -> Result:
    """Score all sets and show the classes of one or two of them."""
    given = sets.group(rows)
    scored = compute(given.texts, same, is_drawn=True)
    scores, counts = scored.result["scores"], scored.result["n_classes_scores"]
    shown = sets.two_of(chosen, len(given.texts))
    classes = [detail["classes"] for detail in scored.result["details"]]
    unseen = sets.unseen(given, scored.similarity)
    notes = [note for of_set in unseen.values() for note in of_set]
    if len(scores) == 2 and len(given.texts[0]) != len(given.texts[1]):
        notes.append("The sets differ in size: a larger set can have more meanings.")
    return Result(
        scored,
        {"predictions": given.texts},
        pictures=[
            classes_panel(given, shown, classes, same),
            *sets.figures(given, shown, scored.similarity, float(same)),
        ],
        details=sets.details(given, {"Meaning": [[label + 1 for label in labels] for labels in classes]}),
        cards=cards(given, scored, set(unseen)),
        ranking=sets.ranking(given, scores, [panels.count(int(k), "meaning") for k in counts]),
        verdict=sets.verdict(
            given, scored, scores, EQUAL, "More meanings, or more even ones,", "Both sets are equally certain."
        ),
        notes=notes,
        choices=given.choices(),
        chosen=shown,
    )


def classes_panel(given: sets.Sets, shown: Sequence[int], classes: list[list[int]], same: float) -> Drawn:
    """Return the texts of each set, class by class, the largest first, and a caption."""
    groups, total = [], 0
    for series, i in enumerate(shown):
        members: dict[int, list[str]] = {}
        for text, label in zip(given.texts[i], classes[i], strict=True):
            members.setdefault(label, []).append(text)
        total += len(members)
        largest = sorted(members.values(), key=len, reverse=True)[: MOST_CLASSES // len(shown)]
        groups += [(panels.count(len(texts), "text"), [(given.figure_name(i), texts, series)]) for texts in largest]
    cut = sets.first_of(len(groups), total, "classes").replace("first", "largest")
    caption = f"All texts of a class have cosines of at least {same:g} with each other.{cut}"
    return Drawn(panels.render("groups", groups, MOST_CHIPS), caption)


def cards(given: sets.Sets, scored: scoring.Scored, unsure: set[int]) -> list[panels.Card]:
    """Return the entropies of one or two sets, or the mean of more."""
    result = scored.result
    if len(result["scores"]) > 2:
        unit = f"nats and {result['n_classes']:.2f} meanings, on average over {len(result['scores'])} sets"
        return [panels.Card("", "", result["semantic_entropy"], unit)]
    found = []
    for i, (value, k) in enumerate(zip(result["scores"], map(int, result["n_classes_scores"]), strict=True)):
        n = len(given.texts[i])
        headline = (
            f"{panels.count(n, 'text')}, {panels.count(k, 'meaning')}{' as the model sees it' if i in unsure else ''}."
        )
        found.append(
            panels.Card(
                given.name(i),
                headline if scored.is_read else "",
                value,
                "nats of entropy",
                f"0 if all say the same, {math.log(n):.2f} if no two of {panels.in_words(n)} do." if n > 1 else "",
                value / math.log(n) if scored.is_read and n > 1 else None,
                ends=("sure: one meaning", "unsure: all different"),
                series=i,
            )
        )
    return found


def api(texts: list[list[str]], same: float = SAME) -> dict[str, Any]:
    """Compute semantic entropy: the entropy of the meanings into which the texts of each set fall, in nats.

    Args:
        texts: sets of English texts, each a list of strings, such as a model's answers to a question.
        same: the least cosine of texts that say the same, from 0.5 to 1.

    Returns
    -------
        The result of the metric: "semantic_entropy", the mean over sets; "scores" and "n_classes_scores", one for each
        set; "details" with the class of each text; "warnings"; and the "signature" to report with the score.

    """
    return compute(texts, same).result


SPACE = Space(
    metric=semantic_entropy,
    title="How many meanings do these answers have?",
    lead="A model that is sure of its answer says the same each time, in other words. Semantic entropy is the entropy "
    "of the meanings: 0 if all say the same. English only.",
    limits=sets.LIMITS,
    boxes=sets.BOXES,
    examples=(Example("Sure or unsure?", ("Sure", _SURE, "Unsure", _UNSURE)), *sets.EXAMPLES),
    steps=sets.STEPS,
    rows=sets.rows_of,
    score=score,
    pictures=(
        Picture("Texts that say the same", "html", is_wide=True),
        *sets.FIGURES,
    ),
    api=api,
    sample=sets.SAMPLE,
    settings={
        "same": gr.Slider(
            LEAST_SAME,
            MOST_SAME,
            SAME,
            step=0.01,
            label="Say the same from this cosine",
            info="The default is calibrated on pairs that people labelled.",
        )
    },
    choosers=("Look at", "and compare with"),
)

demo = build(SPACE)

if __name__ == "__main__":
    semantic_entropy.compute(predictions=["warm", "up"])
    launch(SPACE, demo)
