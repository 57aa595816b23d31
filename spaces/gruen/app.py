"""Demo of gruen: the linguistic quality of a text, sentence by sentence."""

import re
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import gradio as gr
from _kit import inputs, metric, sets, work
from _kit.core_language import find_unread
from _kit.page import Box, Example, Picture, Result, Space, build, launch
from _kit.show import panels, plots
from _kit.show.downloads import Table

gruen = metric.load(__file__, "gruen")

LIMITS = inputs.Limits(sets=1, texts=100, text_characters=8_000, characters=60_000)
ROLES = (inputs.Role("text", "Text", True, ("text", "texts", "summary", "output", "prediction", "response")),)
COMPONENTS = {"grammaticality": "Grammar", "non_redundancy": "Repetition", "focus": "Focus"}
DEDUCTIONS = {"non_redundancy": "repeats itself", "focus": "changes its subject"}
FOREIGN = "The model reads English only, so this is not a judgement of the text."
NO_SENTENCE = "GRUEN is for sentences, so this is not a judgement of the text."
# Above it, repetition and lost focus contrast with the grammar.
_FLUENT = 0.4
THRESHOLD = metric.part(gruen, "gruen_focus").FOCUS_THRESHOLD
# The lower bound of each interpretation.
WORDS = (
    (0.75, "The model finds the sentences fluent."),
    (0.6, "The model finds the sentences mostly fluent."),
    (0.4, "The model has doubts about the sentences."),
    (0.2, "The model finds the sentences hardly fluent."),
    (0.0, "The model does not find the sentences fluent."),
)
# Without a mark at its end, a line of fewer words is taken for a title or an item of a list.
_SENTENCE_WORDS = 6
_END = re.compile(r"""[.!?…]["'”’)\]]*$""")
# What code and tables consist of, and sentences seldom: several, and one in fewer words than this, make a text code.
_CODE = re.compile(r"\w\.?\w*\(|[{}<>|=\\^_]|;$", re.MULTILINE)
_CODE_WORDS = 7
SENTENCE_SCORES = ("grammaticality", "likelihood", "acceptability")
# Upper bounds on what is drawn.
MOST_SENTENCES = 60
_MOST_LISTED = 10
# Of all texts together, in a result.
_MOST_PAIRS = 2_000
# Characters of a repeated passage that are shown.
_SHARED_LENGTH = 120
FLAGS = {
    "longest_substring": "a long passage in common",
    "substring_words": "a passage of many words in common",
    "edit_distance": "a small edit distance",
    "common_words": "most words in common",
}
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


class NoSentenceWarning(UserWarning):
    """Texts contain no full sentence."""


def texts_from_box(box: str) -> list[str]:
    """Parse texts with a blank line between them; consecutive lines are one text."""
    return ["\n".join(lines) for lines in inputs.sets_from_text(box)]


def texts_from_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the rows; a cell may contain a list of texts."""
    cells = (row["text"] for row in rows)
    return [text for cell in cells for text in (cell if isinstance(cell, list) else [cell]) if text.strip()]


def check_sentences(texts: list[str], details: list[dict[str, Any]]) -> None:
    """Warn of texts without a full sentence, such as a title, a list, code or a URL."""
    n_without = sum(
        is_code(text) or not any(map(is_sentence, (sentence["text"] for sentence in detail["sentences"])))
        for text, detail in zip(texts, details, strict=True)
    )
    if n_without:
        warnings.warn(
            f"{n_without:,} of {len(details):,} texts have no full sentence. GRUEN "
            "says nothing about titles, lists, code and links.",
            NoSentenceWarning,
            stacklevel=2,
        )


def is_sentence(text: str) -> bool:
    """Return whether a text has a mark at its end, or many words that are not a list of words with commas."""
    n_words = len(text.split())
    return bool(_END.search(text)) or (n_words >= _SENTENCE_WORDS and text.count(",") < n_words / 2)


def is_code(text: str) -> bool:
    """Return whether a text looks like code or a table."""
    n_marks = len(_CODE.findall(text))
    return n_marks > 1 and n_marks * _CODE_WORDS > len(text.split())


def score(texts: Any, chosen: Sequence[int | None], settings: dict[str, Any]) -> Result:
    """Score all texts and show the sentences of one."""
    result = api(texts, **settings)
    shown = sets.two_of(chosen, len(texts))[0]
    detail = result["details"][shown]
    n_sentences = len(sentences_of(detail))
    parts = [(label, detail[name]) for name, label in COMPONENTS.items() if detail.get(name) is not None]
    return Result(
        answer=answer(texts, result),
        pictures=[
            (
                marked(detail),
                "A stronger colour marks a lower score. Point at one to see why."
                + sets.first_of(min(n_sentences, MOST_SENTENCES), n_sentences, "sentences"),
            )
            if n_sentences
            else None,
            (
                plots.steps(
                    parts,
                    result["scores"][shown],
                    "points",
                    start=0 if "grammaticality" in settings["components"] else 1,
                ),
                "Grammar adds points; repetition and lost focus subtract some.",
            ),
            (taken_off(detail), "Deductions for repetition and lost focus."),
        ],
        details=Table(
            ("Text", "No.", "Sentence", "Score", "Likelihood", "Acceptability"),
            [
                [i + 1, j + 1, sentence["text"], *(round(sentence[name], 4) for name in SENTENCE_SCORES)]
                for i, sentences in enumerate(map(sentences_of, result["details"]))
                for j, sentence in enumerate(sentences)
            ],
        ),
        scores=scores_table(texts, result),
        report={"metric": "gruen", **result, "predictions": texts},
        choices=[f"Text {i + 1}: {panels.shorten(text, 50)}" for i, text in enumerate(texts)],
        chosen=[shown],
    )


def sentences_of(detail: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sentences with their scores; none if grammar is not scored."""
    return [sentence for sentence in detail["sentences"] if sentence["grammaticality"] is not None]


def marked(detail: dict[str, Any]) -> str:
    """Return the sentences, coloured by score, with links between those that repeat each other."""
    twins: dict[int, list[int]] = {}
    for pair in detail.get("redundant_pairs") or []:
        for i, j in (pair["sentences"], pair["sentences"][::-1]):
            twins.setdefault(i, []).append(j)
    lost = {gap["sentences"][1]: gap["similarity"] for gap in detail.get("focus_breaks") or []}
    pieces = []
    for i, sentence in enumerate(sentences_of(detail)[:MOST_SENTENCES]):
        tip = (
            f"Sentence {i + 1}: {sentence['grammaticality']:.2f}\n"
            f"{sentence['likelihood']:.2f} likelihood of its words in context\n"
            f"{sentence['acceptability']:.2f} acceptability"
        )
        if sentence.get("suspects"):
            tip += f"\nsuspect words: {panels.shorten(', '.join(sentence['suspects']), 60)}"
        if i in twins:
            tip += f"\nrepeats sentence {panels.shorten(', '.join(str(j + 1) for j in twins[i]), 60)}"
        if i in lost:
            tip += f"\nchanges the subject (similarity {lost[i]:.2f})"
        pieces.append(
            panels.sentence(i, sentence["text"], tip, 1 - sentence["grammaticality"], twins.get(i, ())[:3], i in lost)
        )
    return panels.passage(pieces, [("high score", 0.05), ("doubtful", 0.5), ("low score", 0.95)])


def taken_off(detail: dict[str, Any]) -> str:
    """List the deductions."""
    items = []
    pairs = detail.get("redundant_pairs") or []
    for pair in pairs[:_MOST_LISTED]:
        i, j = pair["sentences"]
        why = ", ".join(FLAGS.get(flag, flag.replace("_", " ")) for flag in pair["flags"])
        shared = panels.shorten(" … ".join(pair.get("shared", [])), _SHARED_LENGTH)
        words = f" Both say “{shared}”." if shared else ""
        items.append(
            (f"−{0.1 * len(pair['flags']):.1f}", f"Sentences {i + 1} and {j + 1} repeat each other: {why}.{words}")
        )
    n_more = detail.get("n_redundant_pairs", 0) - len(pairs[:_MOST_LISTED])
    if n_more:
        items.append(("", f"and {n_more:,} more pair{'s' if n_more > 1 else ''}."))
    breaks = detail.get("focus_breaks") or []
    for place, gap in enumerate(breaks[:_MOST_LISTED]):
        i, j = gap["sentences"]
        points = f"−{-detail['focus']:.1f}" if place == 0 else ""
        items.append(
            (points, f"From sentence {i + 1} to {j + 1} the subject changes ({gap['similarity']:.2f} similar).")
        )
    return panels.ledger(items, "None: no sentence repeats another, and each continues the subject of the one before.")


def meaning(result: dict[str, Any]) -> str:
    """Return the interpretation of a score: the grammar, and what was deducted."""
    grammar = result["grammaticality"]
    lowered = " and ".join(words for name, words in DEDUCTIONS.items() if (result[name] or 0.0) <= -0.05)
    if grammar is None:
        return f"The text {lowered}." if lowered else "No deductions."
    fluent = next(words for least, words in WORDS if grammar >= least)
    if not lowered:
        return fluent
    return f"{fluent.rstrip('.')}, {'but' if grammar >= _FLUENT else 'and'} the text {lowered}."


def deduction(name: str, value: float) -> tuple[str, str]:
    """Return the value and the explanation of a component that is not grammar."""
    if name == "non_redundancy":
        if value < -1:
            return "< −1", f"{-value / 0.1:,.0f} signs of repetition, −0.1 each; the score stops at 0."
        return minus(f"{value:.2f}"), "0 or less: −0.1 for each sign of repetition."
    return minus(f"{value:.2f}"), "0 or −0.1: does each sentence continue the subject?"


def minus(number: str) -> str:
    """Write a number with a minus sign in place of a hyphen; without one if it is zero."""
    return number.lstrip("-") if not float(number) else number.replace("-", "−")


def scores_table(texts: list[str], result: dict[str, Any]) -> Table | None:
    """Return the table of the scores of each text, if there are more than two."""
    if len(texts) < 3:
        return None
    rows = [
        [i + 1, panels.shorten(text, 60), result["scores"][i], *(detail.get(name, "") for name in COMPONENTS)]
        for i, (text, detail) in enumerate(zip(texts, result["details"], strict=True))
    ]
    return Table(("Text", "Begins with", "GRUEN", *COMPONENTS.values()), rows)


def answer(texts: list[str], result: dict[str, Any]) -> str:
    """Return the answer: the score and its components."""
    value, n = result["gruen"], len(texts)
    unit = "of 1" if n == 1 else f"of 1, mean of {n} texts"
    why_not = unjudged(texts)
    words, meter = ("", None) if why_not else (meaning(result), value)
    card = panels.Card("", value, unit, words, meter, ("0: lowest", "1: highest"))
    facts = []
    for name, label in COMPONENTS.items():
        score = result[name]
        if score is None:
            facts.append(("–", label, "Not selected."))
        elif name == "grammaticality":
            facts.append((f"{score:.2f}", label, "0 to 1: are the sentences likely and acceptable?"))
        else:
            shown_value, text = deduction(name, score)
            facts.append((shown_value, label, text))
    return panels.answer([card], why_not, (), result["signature"], panels.tiles(facts))


def unjudged(texts: list[str]) -> str:
    """Say why no verdict is possible; "" if it is."""
    if find_unread(texts).other_language:
        return FOREIGN
    # Emoji and numbers, for example, have no letters.
    if any(not any(map(str.isalpha, text)) for text in texts):
        return NO_SENTENCE
    return NO_SENTENCE if work.was_warned(NoSentenceWarning.__name__) else ""


def api(
    texts: list[str],
    components: list[Literal["grammaticality", "non_redundancy", "focus"]] | None = None,
    focus_threshold: float = THRESHOLD,
    model: sets.Model = sets.DEFAULT_MODEL,
) -> dict[str, Any]:
    """Compute GRUEN: the linguistic quality of each text, without a reference.

    Args:
        texts: the texts, of one or more sentences each.
        components: the components to score; all three by default.
        focus_threshold: the focus is lost at a sentence less similar to the others than this, from -1 to 1.
        model: the model that measures similarity.

    Returns
    -------
        The result of the metric: "gruen", the mean over texts, from 0 to 1; the components; "scores", one for each
        text; "details" with the sentences, the first redundant pairs and the number of all; and the "signature" to
        report with the score.

    """
    names: Any = list(COMPONENTS) if components is None else components
    sets.check_model(model)
    if names == []:
        known = ", ".join(f"{label} ({name})" for name, label in COMPONENTS.items())
        raise inputs.InputError(f"No part of the score is selected. Select at least one of {known}.")
    if not isinstance(names, list) or any(name not in list(COMPONENTS) for name in names):
        raise inputs.InputError(f"components must be a list of some of {', '.join(COMPONENTS)}.")
    if not isinstance(texts, list) or not texts:
        raise inputs.InputError("There is no text yet. Write one, or click an example.")
    (given,) = inputs.check_sets([texts], LIMITS)
    inputs.check_number("focus_threshold", focus_threshold, -1, 1)
    settings = {"focus_threshold": focus_threshold, "model": model} if "focus" in names else {}
    result = gruen.compute(predictions=given, components=names, details=True, progress=True, **settings)
    check_sentences(given, result["details"])
    most = max(_MOST_LISTED, _MOST_PAIRS // len(given))
    for detail in result["details"]:
        if detail.get("redundant_pairs"):
            # Their number, which the result states, may be the square of the number of sentences.
            detail["redundant_pairs"] = detail["redundant_pairs"][:most]
    return result


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
    roles=ROLES,
    from_boxes=texts_from_box,
    from_rows=texts_from_rows,
    to_rows=lambda texts: [{"text": text} for text in texts],
    preview=lambda texts: f"{sets.count(len(texts), 'text')}.",
    examples=_EXAMPLES,
    settings={
        "components": gr.CheckboxGroup(inputs.options(COMPONENTS), value=list(COMPONENTS), label="Score"),
    },
    more_settings={
        "focus_threshold": gr.Slider(
            -0.2,
            0.6,
            THRESHOLD,
            step=0.01,
            label="Focus is lost below",
            info="The minimum similarity of a sentence to the others.",
        ),
        "model": sets.model_setting(),
    },
    choosers=("Look at",),
    pictures=(
        Picture("Sentence by sentence", is_figure=False, is_wide=True),
        Picture("Parts of the score"),
        Picture("Deductions", is_figure=False),
    ),
    score=score,
    api=api,
    steps=(
        "Write or paste a text. Leave a blank line between two texts. Or click an example.",
        "Press Score.",
        "Point at a sentence to see what is wrong with it.",
    ),
)

demo = build(SPACE)

if __name__ == "__main__":
    gruen.compute(predictions=["It warms up. Then it runs."])
    launch(demo, SPACE)
