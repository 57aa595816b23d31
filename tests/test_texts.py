"""What is not the answer: found, counted and stripped, in a text and through each door."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import own_data
from tests.fuzzing import bounded
from text_metrics import texts
from text_metrics.texts import KINDS, PROMPT, REASONING, SPECIAL, strip

ANSWER = "Paris is the capital."
FORMS = own_data("marked_texts.json")
REASONING_FORMS = FORMS["reasoning"]
SPECIAL_FORMS = FORMS["special"]
BOTH_FORMS = FORMS["both"]


@pytest.mark.parametrize("form", REASONING_FORMS)
def test_reasoning_is_found_and_stripped(form):
    text = form.format(ANSWER)
    assert list(texts.find(text)) == [REASONING]
    assert strip(text, [REASONING]) == ANSWER
    assert strip(text, [SPECIAL, PROMPT]) == text


@pytest.mark.parametrize("form", SPECIAL_FORMS)
def test_special_tokens_are_found_and_stripped(form):
    text = form.format(ANSWER)
    assert list(texts.find(text)) == [SPECIAL]
    assert strip(text, [SPECIAL]) == ANSWER
    assert strip(text, [REASONING, PROMPT]) == text


@pytest.mark.parametrize("form", BOTH_FORMS)
def test_marks_of_both_kinds_are_stripped_together(form):
    text = form.format(ANSWER)
    assert set(texts.find(text)) == {REASONING, SPECIAL}
    assert strip(text) == ANSWER
    assert "Rivers" not in strip(text, [REASONING])
    # The words of the other kind stay.
    assert ("Rivers" in strip(text, [SPECIAL])) == ("Rivers" in text)


@pytest.mark.parametrize("text", FORMS["cut"])
def test_reasoning_that_does_not_end_is_an_empty_answer(text):
    assert REASONING in texts.find(text)
    assert strip(text) == ""


@pytest.mark.parametrize("text", FORMS["without"])
def test_a_text_without_marks_is_unchanged(text):
    assert texts.find(text, "Where is it?") == {}
    assert strip(text, KINDS, "Where is it?") == text


def test_strikethrough_inside_of_sequence_tokens_stays():
    assert strip("<s>It cost <s>10</s> 8.</s>") == "It cost <s>10</s> 8."
    # An unmatched tag is a token.
    assert strip("It cost <s>10</s> 8.</s>") == "It cost <s>10</s> 8."
    assert strip("One.</s>Two.</s>") == "One. Two."


def test_turns_of_users_alone_are_the_texts():
    assert strip("<|user|>\nI need a hotel.<|end|>") == "I need a hotel."


@pytest.mark.parametrize(
    ("text", "context", "rest"),
    [
        ("Name a fruit. Apple", "Name a fruit.", "Apple"),
        ("Name  a\nfruit.\nApple", "Name a fruit.", "Apple"),
        ("<s> Name a fruit. Apple", "Name a fruit.", "Apple"),
        ("A drink? Tea.", "A drink?", "Tea."),
        ("Name a fruit.", "Name a fruit.", ""),
        ("水果的名字是什么？苹果", "水果的名字是什么？", "苹果"),
        # Other words, and prompts so short that an answer may begin with them.
        ("Apple. Name a fruit.", "Name a fruit.", None),
        ("The red carpet", "The red car", None),
        ("Hello, how are you?", "Hello", None),
        ("Apple", "", None),
        ("Apple", None, None),
    ],
)
def test_the_prompt_is_stripped_where_a_text_begins_with_it(text, context, rest):
    assert (PROMPT in texts.find(text, context)) == (rest is not None)
    assert strip(text, [PROMPT], context) == (text if rest is None else rest)
    assert strip(text, [REASONING], context) == text


def test_reasoning_after_an_echoed_prompt_that_stays_is_found():
    text = "Name a fruit. <think>\nIt is red.\n</think> Apple"
    assert list(texts.find(text, "Name a fruit.")) == [REASONING, PROMPT]
    assert strip(text, [REASONING], "Name a fruit.") == "Name a fruit. Apple"
    # One that does not end begins a line only after the prompt.
    assert strip("Name a fruit. <think> It", [REASONING], "Name a fruit.") == "Name a fruit."


_PLAIN = st.text("abc é水.\n", min_size=1, max_size=20).map(str.strip).filter(bool)
_PIECES = [
    *("<think>", "</think>", "[THINK]", "[SEP]", "<s>", "</s>", "<|eot_id|>", "<answer>", "</answer>"),
    *("<|im_start|>user\n", "<|im_start|>assistant\n", "<|channel|>analysis<|message|>", "<|end|>"),
    *("`", "```\n", "\n", " ", "<", "think>", '"', "Name a fruit.", "word"),
]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join), st.sets(st.sampled_from(KINDS)))
def test_stripping_again_changes_nothing(text, kinds):
    once = strip(text, kinds, "Name a fruit.")
    assert strip(once, kinds, "Name a fruit.") == once
    assert not texts.find(once, "Name a fruit.").keys() & kinds
    assert len(once) <= len(text)


@settings(deadline=None, max_examples=100)
@given(_PLAIN, st.sampled_from(REASONING_FORMS + SPECIAL_FORMS + BOTH_FORMS), st.sampled_from(SPECIAL_FORMS))
def test_an_answer_is_never_eaten(answer, form, around):
    assert strip(form.format(answer)) == answer
    if form not in SPECIAL_FORMS:
        assert strip(around.format(form.format(answer))) == answer


@settings(deadline=None, max_examples=100)
@given(st.text(st.characters(exclude_characters="<[◁", exclude_categories=("Cs",)), max_size=40))
def test_text_without_brackets_is_unchanged(text):
    if not text.lstrip().startswith(("analysis", "Here")):
        assert strip(text) == text


def test_counts_add_up():
    prompt = "Name a fruit."
    given = ["<think>x</think>Apple", "Apple</s>", "<think>cut", "Name a fruit. Pear</s>", "", "Plum"]
    answers, marks = texts.clean(given, [REASONING, PROMPT], prompt)
    assert answers == ["Apple", "Apple</s>", "", "Pear</s>", "", "Plum"]
    assert marks.removed == {REASONING: 2, PROMPT: 1}
    assert marks.left == {SPECIAL: 2}
    assert marks.counts([REASONING]) == {REASONING: 2, "empty": 1}
    halves = [texts.clean(half, [REASONING, PROMPT], prompt)[1] for half in (given[:3], given[3:])]
    assert halves[0] + halves[1] == marks
    said = marks.warning()
    assert "2 of 6" in said
    assert "</s>" in said
    assert "--strip special " in said
    assert texts.clean(["Plum"])[1].warning() == ""


def test_contexts_may_differ_between_texts():
    answers, marks = texts.clean(["Name a fruit. Fig"] * 2, [PROMPT], ["Name a fruit.", None])
    assert answers == ["Fig", "Name a fruit. Fig"]
    assert marks.removed == {PROMPT: 1}


@pytest.mark.parametrize("value", ["reason", "reasoning,", ["special", "x"], [1]])
def test_other_kinds_are_errors(value):
    with pytest.raises(ValueError, match="reasoning, special, prompt"):
        texts.parse_kinds(value)
    with pytest.raises(TypeError):
        texts.parse_kinds(1)


def test_kinds_are_in_one_order():
    assert texts.parse_kinds("prompt, reasoning") == texts.parse_kinds({PROMPT, REASONING}) == [REASONING, PROMPT]
    assert texts.parse_kinds(None) == []


def test_time_is_linear():
    pieces = ["a <think>", "<think>a</think>", "<s></s>", "<|im_start|>user\n", "`", "<s ", "</s>"]
    for piece in pieces:
        with bounded(piece):
            strip(piece * 20_000)
