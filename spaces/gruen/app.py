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
EXPLAINED = {
    "grammaticality": "0 to 1: are the sentences likely and acceptable?",
    "non_redundancy": "0 or less: −0.1 for each sign of repetition that is found.",
    "focus": "0 or −0.1: does each sentence continue the subject?",
}
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
# Labels of sentences, and the score below which each holds; the strongest mark is the last.
_LABELS = ("high score", "doubtful", "low score")
_BELOW = (0.65, 0.4)
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
            "Breakfast at the hotel is served in the garden until ten. At the hotel, breakfast is served in the garden "
            "until ten.",
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
    scored = scoring.compute(gruen, predictions=given)
    most = max(MOST_LISTED, MOST_PAIRS // len(given))
    for detail in scored.result["details"]:
        # Their number, which the result states, may be the square of the number of sentences.
        detail["redundant_pairs"] = detail["redundant_pairs"][:most]
    return scored._replace(is_read=not scored.result["warnings"])


def score(rows: list[inputs.Row], chosen: Sequence[Any]) -> Result:
    """Score all texts and show the sentences of one."""
    texts = [row.text for row in rows]
    scored = compute(texts)
    result = scored.result
    shown = sets.two_of(chosen, len(texts))[0]
    detail = result["details"][shown]
    table = [
        (i, j, sentence["text"], *(sentence[name] for name in ("grammaticality", "likelihood", "acceptability")))
        for i, of_text in enumerate(result["details"], 1)
        for j, sentence in enumerate(of_text["sentences"], 1)
    ]
    names = [f"Text {i}: {panels.shorten(text, 60)}" for i, text in enumerate(texts, 1)]
    ranked = [
        panels.Ranked(0, name, "", value, 0.0, components_of(of_text))
        for name, value, of_text in zip(names, result["scores"], result["details"], strict=True)
    ]
    return Result(
        scored,
        {"predictions": texts},
        pictures=[marked(detail), deductions(detail)],
        details=pd.DataFrame(table, columns=["Text", "No.", "Sentence", "Score", "Likelihood", "Acceptability"]),
        cards=[card(result, len(texts), scored.is_read)],
        ranking=sets.rank(ranked) if len(texts) > 2 else [],
        verdict="" if scored.is_read else NO_VERDICT,
        facts=[(signed(result[name]), label, EXPLAINED[name]) for name, label in COMPONENTS.items()],
        choices=names,
        chosen=[shown],
    )


def components_of(detail: dict[str, Any]) -> str:
    """Write the components of a text in a line."""
    return ", ".join(f"{label} {signed(detail[name])}" for name, label in COMPONENTS.items())


def marked(detail: dict[str, Any]) -> Drawn | None:
    """Return the sentences, marked by score; None if there are none."""
    sentences = detail["sentences"][:MOST_SENTENCES]
    pieces = [(each["text"], level_of(each["grammaticality"])) for each in sentences]
    suspects = [word for sentence in sentences for word in sentence["suspects"] or []]
    caption = "A stronger mark is a lower score. The details below have the numbers."
    if suspects:
        caption += f" Suspect words: {panels.shorten(', '.join(suspects), 100)}."
    cut = sets.first_of(len(sentences), len(detail["sentences"]), "sentences")
    return Drawn(panels.render("marked", [pieces], _LABELS, 1), caption + cut) if pieces else None


def level_of(grade: float | None) -> int:
    """Return the strength of the mark of a sentence; 0 for a fragment, which has no grade."""
    return 0 if grade is None else 1 + sum(grade < below for below in _BELOW)


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
    return Drawn(
        panels.render("ledger", items, "None found."), "Of repetition and of lost focus, as far as they are found."
    )


def card(result: dict[str, Any], n: int, is_read: bool) -> panels.Card:
    """Return the card of the score."""
    unit = "of 1" if n == 1 else f"of 1, mean of {n} texts"
    headline, meter = (meaning_of(result), result["gruen"]) if is_read else ("", None)
    ends = ("0: no sentence is likely English", "1: fluent, nothing repeated, one subject")
    return panels.Card("", headline, result["gruen"], unit, meter=meter, ends=ends)


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
    metric=gruen,
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
        "Look at the sentences with the strongest marks.",
    ),
    rows=lambda box: [inputs.Row("\n".join(lines)) for lines in inputs.blocks_of(box)],
    score=score,
    pictures=(
        Picture("Sentence by sentence", "html", True),
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
