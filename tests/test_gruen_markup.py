"""gruen's reading of text as models write it: Markdown, line breaks, dialogue and emoji."""

import pytest

from tests.conftest import ROOT, own_data
from text_metrics.metrics.gruen import gruen_text

EXAMPLES = own_data("gruen_examples.json")


def sentences_of(text, markup="auto"):
    return gruen_text.split(text, markup).pieces


@pytest.mark.parametrize("markup", ["auto", "markdown"])
def test_markdown_becomes_sentences(markup):
    text = gruen_text.split((ROOT / "tests/data/gruen_markdown.md").read_text(encoding="utf-8"), markup)
    assert [[piece, piece not in text.sentences] for piece in text.pieces] == EXAMPLES["markdown"]
    assert text.n_code == 1


@pytest.mark.parametrize("text", EXAMPLES["shows_markdown"])
def test_markdown_shows_itself(text):
    assert gruen_text.read_blocks(text) == gruen_text.read_blocks(text, "markdown")
    assert gruen_text.read_blocks(text) != gruen_text.read_blocks(text, "plain")


@pytest.mark.parametrize("text", EXAMPLES["shows_none"])
def test_plain_text_is_not_taken_for_markdown(text):
    assert gruen_text.read_blocks(text) == gruen_text.read_blocks(text, "plain")
    assert sentences_of(text) == sentences_of(text, "plain")


def test_line_breaks_end_a_sentence_where_the_layout_says_so():
    wrapped = (
        "The council met on Tuesday evening to decide on the new bridge over\n"
        "the river, which all members want to see finished before the autumn.\n"
        "Berlin and Paris sent their best wishes, and the mayor of the town of\n"
        "Ulm came in person."
    )
    first, second = sentences_of(wrapped)
    assert f"{first} {second}" == wrapped.replace("\n", " ")
    assert first.endswith("autumn.")
    # A title, an address and a verse have lines of their own.
    assert sentences_of("My first day\nI got up early.") == ["My first day", "I got up early."]
    assert sentences_of("The sea is wide\nThe sea is deep") == ["The sea is wide", "The sea is deep"]
    assert sentences_of("Shopping list:\n• two eggs\n• some milk") == ["Shopping list:", "• two eggs", "• some milk"]
    assert sentences_of("Dear Ann,\n\nthank you for the book.") == ["Dear Ann,", "thank you for the book."]
    # A line that comes again is not wrapped, however long it is.
    line = "the members of the council want a new bridge over the river"
    assert sentences_of("\n".join([line] * 3)) == [line] * 3
    lines = [line, "and another one over the wide road to the town", line]
    assert sentences_of("\n".join(lines)) == lines


@pytest.mark.parametrize("line_break", ["<newline>", " <newline> ", "<NEWLINE/>", "<nl>", "<n>", "\\n", "<br>"])
def test_a_line_break_may_be_written_out(line_break):
    assert sentences_of(f"My first day{line_break}I got up early.") == ["My first day", "I got up early."]


def test_dialogue_survives():
    for turns in (['"Are you well?" he asked.', '"I am," she said.'], ["— Are you coming?", "— I am coming!"]):
        assert sentences_of("\n".join(turns)) == turns
    assert sentences_of("- Are you coming?\n- I am coming!") == ["Are you coming?", "I am coming!"]


def test_only_code_is_no_sentence(load):
    with pytest.warns(UserWarning, match="1 of 1 texts have no sentence"):
        result = load("gruen").compute(predictions=["```\nx = 1\ny = 2\n```\n\n~~~\nz\n~~~"], components=["focus"])
    assert result["n_code"] == [2]
    assert result["n_sentences"] == [0]


# Fragments.

PARAGRAPH = "The bread rises for an hour in a warm place. Then it goes into a hot oven for forty minutes."


@pytest.mark.parametrize(
    "fragment",
    ["# What you need", "- two eggs\n- some milk", "| oven | time |\n|---|---|\n| gas oven | one hour |", "Our recipe"],
    ids=["heading", "list", "table", "title"],
)
def test_fragments_are_counted_and_not_judged(load, fragment):
    texts = [PARAGRAPH, f"{fragment}\n\n{PARAGRAPH}", f"{PARAGRAPH}\n\n{fragment}"]
    result = load("gruen").compute(predictions=texts, details=True)
    assert result["scores"] == pytest.approx([result["scores"][0]] * 3, abs=1e-5)
    assert result["n_sentences"] == [2, 2, 2]
    assert result["n_fragments"][0] == 0
    assert result["n_fragments"][1] == result["n_fragments"][2] > 0
    for details, n in zip(result["details"], result["n_fragments"], strict=True):
        assert sum(sentence["grammaticality"] is None for sentence in details["sentences"]) == n


def test_fragments_that_are_most_of_a_text_are_judged(load):
    shuffled = "Oven the bread of\nHot a in it goes\nMinutes forty the for is"
    result = load("gruen").compute(predictions=[shuffled, f"All is well.\n{shuffled}"])
    assert result["n_fragments"] == [0, 0]
    assert max(result["scores"]) < 0.5
    # A repeated fragment is repetition.
    loop = "- bread with butter and honey\n" * 6
    result = load("gruen").compute(predictions=[f"{PARAGRAPH}\n\n{PARAGRAPH[::-1]}\n\n{loop}"], details=True)
    assert result["details"][0]["n_redundant_pairs"] == 15


@pytest.mark.parametrize("invisible", ["\ufeff", "\u200b", "\u00ad", "\u2060", "\u202a"])
def test_invisible_characters_hide_nothing(invisible):
    text = "# A heading\n\nThe text is here. It is long enough."
    assert gruen_text.split(invisible + text) == gruen_text.split(text)
    assert gruen_text.split(text.replace("text", f"te{invisible}xt")) == gruen_text.split(text)


@pytest.mark.parametrize("sentence", EXAMPLES["one sentence"])
def test_a_citation_or_an_aside_does_not_end_a_sentence(sentence):
    assert sentences_of(f"{sentence} It was good.") == [sentence, "It was good."]


# Dialogue.

TURNS = [
    "Have you seen my umbrella?",
    "I had porridge for breakfast.",
    "The shares of the bank fell by a third.",
    "Photosynthesis turns light into sugar.",
]


@pytest.mark.parametrize("speakers", [("Anna", "Ben"), ("User", "Assistant"), ("**Dr. Reed**", "**Me**"), ("A", "B")])
def test_turns_need_not_keep_to_one_subject(load, speakers):
    lines = [f"{speakers[i % 2]}: {turn}" for i, turn in enumerate(TURNS)]
    named = [f"{name}: {turn}" for name, turn in zip(("Fish", "Bread", "Money", "Light"), TURNS, strict=True)]
    texts = ["\n".join(lines), " ".join(TURNS), "\n".join(named)]
    result = load("gruen").compute(predictions=texts, details=True)
    assert [details["focus"] for details in result["details"]] == [0.0, -0.1, -0.1]
    # The names of speakers are no part of their sentences.
    first = result["details"][0]
    assert [sentence["text"] for sentence in first["sentences"]] == TURNS
    assert first["grammaticality"] == pytest.approx(result["details"][1]["grammaticality"], abs=1e-5)


LABELS = [(label, label) for label in ("The answer is simple", "Warning", "Breaking news")]
LABELS += [("Warning", "Note"), ("**Warning**", "**Tip**"), ("Here is the plan", "What comes next")]


@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_not_speakers(labels):
    text = gruen_text.split("\n".join(f"{labels[i % 2]}: {turn}" for i, turn in enumerate(TURNS)))
    assert not text.is_dialogue
    assert text.pieces[0] == f"{labels[0]}: {TURNS[0]}".replace("*", "")


def test_another_voice_may_have_a_long_name():
    names = ["Guy", "Woman, to everybody in the room", "Guy", "5-year-old boy"]
    text = "\n".join(f"{name}: {turn}" for name, turn in zip(names, TURNS, strict=True))
    assert gruen_text.split(text).is_dialogue
    assert not gruen_text.split("\n".join(f"Guy: {turn}" for turn in TURNS)).is_dialogue
