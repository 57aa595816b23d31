"""Demo of gruen: the linguistic quality of a text, sentence by sentence."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from _kit import inputs, panels, scoring, sets
from _kit.page import Box, Drawn, Example, Picture, Result, Space, build, launch

gruen = scoring.load(__file__, "gruen")

LIMITS = inputs.Limits(texts=50, characters=3_500)
COMPONENTS = {"grammaticality": "Grammar", "non_redundancy": "Repetition", "focus": "Focus"}
DEDUCTIONS = {"non_redundancy": "repeats itself", "focus": "changes its subject"}
NO_VERDICT = "GRUEN is for sentences of English prose, so this is no judgement of the text."
# Above it, repetition and lost focus contrast with the grammar.
_FLUENT = 0.4
# The lower bound of each interpretation.
WORDS = (
    (0.75, "The model finds the sentences fluent."),
    (0.6, "The model finds the sentences mostly fluent."),
    (0.4, "The model has doubts about the sentences."),
    (0.2, "The model finds the sentences hardly fluent."),
    (0.0, "The model does not find the sentences fluent."),
)
# The lower bound of the score of a sentence with each label, and its colour.
_LABELS = ((0.65, "high score", "#fdeee7"), (0.4, "doubtful", "#f7c9b5"), (0.0, "low score", "#ef9c77"))
# Upper bounds on what is drawn, and on the pairs of all texts together in a result.
MOST_SENTENCES, MOST_LISTED, MOST_PAIRS = 60, 10, 2_000
# Characters of a repeated passage that are shown.
_SHARED_LENGTH = 120
_EXAMPLES = (
    Example(
        "A good report",
        (
            "The council met on Tuesday to decide on the new bridge. Most members of the council were in favour of the "
            "bridge. They want work on it to begin in spring, before the river rises under the old bridge. A smaller "
            "group asked for another estimate of the costs of the work.",
        ),
    ),
    Example(
        "It repeats itself",
        (
            "The hotel is near the station and has free parking. The hotel has free parking and is near the station. "
            "Breakfast is served until ten. Breakfast at the hotel is served until ten.",
        ),
    ),
    Example(
        "Grammar gone wrong",
        (
            "The council met Tuesday on decide the bridge new. Most member was in favour of them it. "
            "Want they work the to begin in spring, before the river rises.",
        ),
    ),
    Example(
        "It loses the thread",
        (
            "The restaurant serves Italian food by the river. Its pasta is made fresh every morning. "
            "Quarterly profits of the shipping company fell by a third. The penguin lays one egg a year.",
        ),
    ),
)


def compute(texts: Any) -> scoring.Scored:
    """Check the input and compute the metric; any warning of it means that it does not read a text."""
    given = inputs.check_texts(texts, LIMITS)
    result = scoring.compute(gruen, predictions=given, details=True, progress=True).result
    most = max(MOST_LISTED, MOST_PAIRS // len(given))
    for detail in result["details"]:
        # Their number, which the result states, may be the square of the number of sentences.
        detail["redundant_pairs"] = detail["redundant_pairs"][:most]
    return scoring.Scored(result, not result["warnings"])


def score(texts: list[str], chosen: Sequence[int | None]) -> Result:
    """Score all texts and show the sentences of one."""
    result, is_read = compute(texts)
    shown = sets.two_of(chosen, len(texts))[0]
    detail = result["details"][shown]
    rows = [
        (i, j, sentence["text"], *(sentence[name] for name in ("grammaticality", "likelihood", "acceptability")))
        for i, of_text in enumerate(result["details"], 1)
        for j, sentence in enumerate(of_text["sentences"], 1)
    ]
    scores = {name: [of_text[part] for of_text in result["details"]] for part, name in COMPONENTS.items()}
    begins = [panels.shorten(text, 60) for text in texts]
    return Result(
        answer=answer(texts, result, is_read),
        pictures=[marked(detail), deductions(detail)],
        details=pd.DataFrame(rows, columns=["Text", "No.", "Sentence", "Score", "Likelihood", "Acceptability"]),
        report={"metric": "gruen", **result, "predictions": texts},
        scores=pd.DataFrame({"Begins with": begins, "GRUEN": result["scores"], **scores}) if len(texts) > 2 else None,
        choices=[f"Text {i}: {panels.shorten(text, 50)}" for i, text in enumerate(texts, 1)],
        chosen=[shown],
    )


def marked(detail: dict[str, Any]) -> Drawn | None:
    """Return the sentences, labelled by score; None if there are none."""
    sentences = detail["sentences"][:MOST_SENTENCES]
    pieces = []
    for sentence in sentences:
        grade = sentence["grammaticality"]
        # A fragment has no grade.
        label = None if grade is None else next(label for least, label, _ in _LABELS if grade >= least)
        pieces += [(sentence["text"], label), (" ", None)]
    suspects = [word for sentence in sentences for word in sentence["suspects"] or []]
    caption = "A stronger colour marks a lower score. The details below have the numbers."
    if suspects:
        caption += f" Suspect words: {panels.shorten(', '.join(suspects), 100)}."
    cut = sets.first_of(len(sentences), len(detail["sentences"]), "sentences")
    return Drawn(pieces, caption + cut) if pieces else None


def deductions(detail: dict[str, Any]) -> Drawn:
    """List the deductions for repetition and lost focus."""
    items = []
    pairs = detail["redundant_pairs"][:MOST_LISTED]
    for pair in pairs:
        i, j = pair["sentences"]
        why = ", ".join(flag.replace("_", " ") for flag in pair["flags"])
        shared = panels.shorten(" … ".join(pair["shared"]), _SHARED_LENGTH)
        words = f" Both say “{shared}”." if shared else ""
        items.append(
            (f"−{0.1 * len(pair['flags']):.1f}", f"Sentences {i + 1} and {j + 1} repeat each other: {why}.{words}")
        )
    n_more = detail["n_redundant_pairs"] - len(pairs)
    if n_more:
        items.append(("", f"and {panels.count(n_more, 'more pair')}."))
    for place, gap in enumerate(detail["focus_breaks"][:MOST_LISTED]):
        i, j = gap["sentences"]
        text = f"From sentence {i + 1} to {j + 1} the subject changes ({gap['similarity']:.2f} similar)."
        items.append((f"−{-detail['focus']:.1f}" if place == 0 else "", text))
    return Drawn(panels.ledger(items, "None: no sentence repeats another, and each continues the subject before."))


def answer(texts: list[str], result: dict[str, Any], is_read: bool) -> str:
    """Return the answer: the score and its components."""
    value, n = result["gruen"], len(texts)
    unit = "of 1" if n == 1 else f"of 1, mean of {n} texts"
    meaning, meter = (meaning_of(result), value) if is_read else ("", None)
    explained = {
        "grammaticality": "0 to 1: are the sentences likely and acceptable?",
        "non_redundancy": "0 or less: −0.1 for each sign of repetition.",
        "focus": "0 or −0.1: does each sentence continue the subject?",
    }
    facts = [(signed(result[name]), label, explained[name]) for name, label in COMPONENTS.items()]
    card = panels.Card("", value, unit, meaning, meter, ("0: lowest", "1: highest"))
    verdict = "" if is_read else NO_VERDICT
    return panels.answer([card], verdict, result["warnings"], result["signature"], panels.tiles(facts))


def meaning_of(result: dict[str, Any]) -> str:
    """Return the interpretation of a score: the grammar, and what was deducted."""
    grammar = result["grammaticality"]
    lowered = " and ".join(words for name, words in DEDUCTIONS.items() if result[name] <= -0.05)
    fluent = next(words for least, words in WORDS if grammar >= least)
    if not lowered:
        return fluent
    return f"{fluent.rstrip('.')}, {'but' if grammar >= _FLUENT else 'and'} the text {lowered}."


def signed(number: float) -> str:
    """Write a number with a minus sign in place of a hyphen; without one if it is zero."""
    text = f"{number:.2f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "−")


def api(texts: list[str]) -> dict[str, Any]:
    """Compute GRUEN: the linguistic quality of each text, without a reference.

    Args:
        texts: the texts, of one or more English sentences each.

    Returns
    -------
        The result of the metric: "gruen", the mean over texts, from 0 to 1; the components; "scores", one for each
        text; "details" with the sentences, the first redundant pairs and the number of all; "warnings"; and the
        "signature" to report with the score.

    """
    return compute(texts).result


SPACE = Space(
    name="gruen",
    title="How well is this text written?",
    lead="GRUEN scores grammar, repetition and focus, sentence by sentence, without a reference text. It reads English "
    "only, and does not notice every error.",
    limits=LIMITS,
    boxes=(
        Box(
            "Your text",
            "A blank line starts a second text.",
            "The council met on Tuesday. Most members were in favour of the bridge.",
            10,
        ),
    ),
    examples=_EXAMPLES,
    steps=(
        "Write or paste a text. Leave a blank line between two texts. Or click an example.",
        "Press Score.",
        "Look at the sentences with the strongest colours.",
    ),
    rows=lambda box: [inputs.Row("\n".join(lines)) for lines in inputs.blocks_of(box)],
    group=lambda rows: [row.text for row in rows],
    score=score,
    pictures=(
        Picture("Sentence by sentence", "marked", True, {label: colour for _, label, colour in _LABELS}),
        Picture("Deductions", "html", True),
    ),
    api=api,
    sample=Path(__file__).with_name("sample.csv"),
    settings={},
    choosers=("Look at",),
)

demo = build(SPACE)

if __name__ == "__main__":
    gruen.compute(predictions=["It warms up. Then it runs."])
    launch(SPACE, demo)
