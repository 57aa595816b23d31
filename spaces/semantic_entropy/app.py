"""Demo of semantic_entropy: into how many meanings texts fall."""

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
    settings = {"details": True, "is_drawn": is_drawn}
    return scoring.compute(semantic_entropy, given, predictions=given, same=float(same), **settings)


def score(given: sets.Sets, chosen: Sequence[int | None], same: float) -> Result:
    """Score all sets and show the classes of one or two of them."""
    result, is_read, matrices = compute(given.texts, same, is_drawn=True)
    shown = sets.two_of(chosen, len(given.texts))
    classes = [detail["classes"] for detail in result["details"]]
    columns = {"Entropy, nats": result["scores"], "Meanings": result["n_classes_scores"]}
    return Result(
        answer=answer(given, result, is_read),
        pictures=[classes_panel(given, shown, classes, same), *sets.heat_maps(given, shown, matrices)],
        details=sets.details(given, {"Meaning": [[label + 1 for label in labels] for labels in classes]}),
        report={"metric": "semantic_entropy", **result, "predictions": given.texts},
        scores=sets.scores(given, columns),
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
        groups += [
            panels.Group(panels.count(len(texts), "text"), [(given.figure_name(i), texts, series)]) for texts in largest
        ]
    cut = sets.first_of(len(groups), total, "classes").replace("first", "largest")
    caption = f"All texts of a class have cosines of at least {same:g} with each other.{cut}"
    return Drawn(panels.groups(groups, MOST_CHIPS), caption)


def answer(given: sets.Sets, result: dict[str, Any], is_read: bool) -> str:
    """Return the answer: the entropies of one or two sets, or the mean of more."""
    scores, counts, sizes = result["scores"], result["n_classes_scores"], list(map(len, given.texts))
    if len(scores) > 2:
        unit, meaning = f"nats, on average over {len(scores)} sets", f"{result['n_classes']:.2f} meanings on average."
        cards = [panels.Card("", result["semantic_entropy"], unit, meaning)]
    else:
        cards = [
            panels.Card(
                given.names[i],
                value,
                "nats",
                f"{panels.count(n, 'text')}, {panels.count(int(k), 'meaning')}." if is_read else "",
                (k - 1) / (n - 1) if is_read and n > 1 else None,
                ("1 meaning", f"{n} meanings"),
                i,
            )
            for i, (value, k, n) in enumerate(zip(scores, counts, sizes, strict=True))
        ]
    verdict, notes = "", list(result["warnings"])
    if len(scores) == 2:
        more = 1 if scores[0] >= scores[1] else 2
        verdict = f"The texts of set {more} have more meanings, or more even ones."
        if abs(scores[0] - scores[1]) < 0.005:
            verdict = "Both sets are equally certain."
        if sizes[0] != sizes[1]:
            notes.append("The sets differ in size: a larger set can have more meanings.")
    return panels.answer(cards, verdict if is_read else scoring.NOT_READ, notes, result["signature"])


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
    name="semantic_entropy",
    title="How many meanings do these answers have?",
    lead="A model that is sure of its answer says the same each time, in other words. Semantic entropy is the entropy "
    "of the meanings: 0 if all say the same. English only.",
    limits=sets.LIMITS,
    boxes=(sets.BOX,),
    examples=(Example("Sure or unsure?", (f"{_SURE}\n\n{_UNSURE}",)), *sets.EXAMPLES),
    steps=sets.STEPS,
    rows=sets.rows_of,
    group=sets.group,
    score=score,
    pictures=(
        Picture("Texts that say the same", "html", is_wide=True),
        Picture("Similarity of the texts"),
        Picture("Similarity of the texts"),
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
