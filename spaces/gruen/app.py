"""Demo of gruen: the linguistic quality of a text, sentence by sentence."""

import re
from typing import Any

import pandas as pd
from _kit import inputs, panels, scoring, server, sets
from _kit.page import Drawn, Picture, Result, Space, build, text_box

gruen = scoring.load(__file__, "gruen")

LIMITS = inputs.Limits(texts=50, characters=3_500)
COMPONENTS = {"grammaticality": "Grammar", "non_redundancy": "Repetition", "focus": "Focus"}
EXPLAINED = {
    "grammaticality": "0 to 1: are the sentences likely and acceptable?",
    "non_redundancy": "0 or less: −0.1 for each sign of repetition that is found.",
    "focus": "0 or −0.1: does each sentence continue the subject?",
}
DEDUCTIONS = {"non_redundancy": "repeats itself", "focus": "changes its subject"}
NO_VERDICT = "GRUEN is for sentences of English prose, so the score does not judge this text."
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
# Upper bound on the pairs of all texts together in a result.
MOST_PAIRS = 2_000
BOX = text_box(
    "Your text",
    "The council met on Tuesday. Most members were in favour of the bridge.",
    10,
    "Paragraphs are one text. A line --- starts a second text.",
)


def rows_of(box: str) -> list[inputs.Row]:
    """Divide the box into texts at lines of three or more dashes; the paragraphs between them are one text."""
    parts = re.split(r"^-{3,}$", "\n".join(inputs.lines_of(box)), flags=re.MULTILINE)
    return [inputs.Row(part.strip()) for part in parts if part.strip()]


def compute(texts: Any) -> scoring.Scored:
    """Check the input and compute the metric; any warning of the metric means that it does not read a text."""
    given = inputs.check_texts(texts, LIMITS)
    scored = scoring.compute(gruen, predictions=given)
    for detail in scored.result["details"]:
        # Their number, which the result states, may be the square of the number of sentences.
        detail["redundant_pairs"] = detail["redundant_pairs"][: MOST_PAIRS // len(given)]
    return scored._replace(is_read=not scored.has_warnings)


def score(rows: list[inputs.Row]) -> Result:
    """Score all texts and show their sentences."""
    texts = [row.text for row in rows]
    scored = compute(texts)
    result = scored.result
    ranked = []
    for i, (text, value, detail) in enumerate(zip(texts, result["scores"], result["details"], strict=True), 1):
        parts = [f"{label} {panels.decimals(detail[name])}" for name, label in COMPONENTS.items()]
        ranked.append(panels.Ranked(f"Text {i}: {panels.shorten(text, 60)}", ", ".join(parts), value))
    return Result(
        scored,
        {"predictions": texts},
        pictures=[marked(result["details"]), deductions(result["details"])],
        details=sentence_table(result["details"]),
        cards=[card(result, len(texts), scored.is_read)],
        ranking=sets.rank(ranked) if len(texts) > 2 else [],
        verdict="" if scored.is_read else NO_VERDICT,
    )


def sentence_table(details: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the table of all sentences with their scores."""
    rows = []
    for i, detail in enumerate(details, 1):
        for j, sentence in enumerate(detail["sentences"], 1):
            scores = (sentence["grammaticality"], sentence["likelihood"], sentence["acceptability"])
            rows.append((i, j, sentence["text"], *scores))
    return pd.DataFrame(rows, columns=["Text", "No.", "Sentence", "Score", "Likelihood", "Acceptability"])


def marked(details: list[dict[str, Any]]) -> Drawn | None:
    """Return the sentences of all texts, marked by score; None if there are none."""
    shown = []
    suspects: list[str] = []
    for detail in details:
        pieces = []
        for sentence in detail["sentences"]:
            grade = sentence["grammaticality"]
            # A fragment has no grade.
            level = 0 if grade is None else 1 + sum(grade < below for below in _BELOW)
            pieces.append((sentence["text"], level))
            suspects += sentence["suspects"] or []
        if pieces:
            shown.append(pieces)
    caption = "A stronger mark is a lower score. The details below have the numbers."
    if suspects:
        words = ", ".join(word.strip(".,;:!?") for word in suspects)
        caption += f" Suspect words: {panels.shorten(words, 100)}."
    return Drawn(panels.render("marked", shown, _LABELS, 1), caption) if shown else None


def deductions(details: list[dict[str, Any]]) -> Drawn:
    """List the deductions for repetition and lost focus."""
    items = []
    for number, detail in enumerate(details, 1):
        where = f"Text {number}: " if len(details) > 1 else ""
        for pair in detail["redundant_pairs"]:
            i, j = pair["sentences"]
            why = ", ".join(flag.replace("_", " ") for flag in pair["flags"])
            shared = panels.shorten(" … ".join(pair["shared"]), 120)
            text = f"{where}sentences {i + 1} and {j + 1} repeat each other: {why}."
            items.append((f"−{0.1 * len(pair['flags']):.1f}", f"{text} Both say “{shared}”." if shared else text))
        for place, gap in enumerate(detail["focus_breaks"]):
            i, j = gap["sentences"]
            alike = panels.decimals(gap["similarity"])
            text = f"{where}from sentence {i + 1} to {j + 1} the subject changes ({alike} similar)."
            items.append((f"−{-detail['focus']:.1f}" if place == 0 else "", text))
    items = [(points, text[0].upper() + text[1:]) for points, text in items]
    n_listed = sum(len(detail["redundant_pairs"]) for detail in details)
    n_pairs = sum(detail["n_redundant_pairs"] for detail in details)
    caption = f"Of repetition and of lost focus, as far as they are found.{sets.first_of(n_listed, n_pairs, 'pairs')}"
    return Drawn(panels.render("ledger", items, "None found."), caption)


def card(result: dict[str, Any], n: int, is_read: bool) -> panels.Card:
    """Return the card of the score."""
    unit = "of 1" if n == 1 else f"of 1, mean of {n} texts"
    headline, meter = (meaning_of(result), result["gruen"]) if is_read else ("", None)
    ends = ("0: poorly written", "1: fluent, nothing repeated, one subject")
    facts = [(panels.decimals(result[name]), label, EXPLAINED[name]) for name, label in COMPONENTS.items()]
    return panels.Card("", headline, result["gruen"], unit, meter=meter, ends=ends, facts=facts)


def meaning_of(result: dict[str, Any]) -> str:
    """Interpret a score: the grammar and the deductions."""
    grammar = result["grammaticality"]
    lowered = " and ".join(words for name, words in DEDUCTIONS.items() if result[name] <= -0.05)
    fluent = next(words for least, words in WORDS if grammar >= least)
    if not lowered:
        return fluent
    return f"{fluent.rstrip('.')}, {'but' if grammar >= _FLUENT else 'and'} the text {lowered}."


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
    boxes=(BOX,),
    rows=rows_of,
    score=score,
    pictures=(
        Picture("Sentence by sentence", is_html=True, is_wide=True),
        Picture("Deductions", is_html=True, is_wide=True),
    ),
    api=api,
)

demo = build(SPACE)

if __name__ == "__main__":
    compute(["It warms up. Then it runs."])
    server.serve(demo, SPACE.limits.file_bytes)
