"""gruen's reading of text as models write it: Markdown, line breaks, dialogue and emoji."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from text_metrics.metrics.gruen import gruen_text

ANSWER = """\
# How to bake bread

Baking bread takes **time**, but it is [not difficult](https://example.org/bread "bread").
Everyone can do it!

## What you need

- 500 g of flour
- some *fresh* yeast
- a pinch of salt

1. Mix the flour with `water`.
2. Let the dough rest for an hour
   in a warm place.

```python
print("This is not prose. It is code.")
```

> Bread is life, my mother used to say.

| Oven | Time to bake |
|------|--------------|
| a gas oven | forty minutes |

![a loaf](loaf.png)

Enjoy your meal! 🎉 Send us a photo.
"""
SENTENCES = [
    "How to bake bread",
    "Baking bread takes time, but it is not difficult.",
    "Everyone can do it!",
    "What you need",
    "500 g of flour",
    "some fresh yeast",
    "a pinch of salt",
    "Mix the flour with water.",
    "Let the dough rest for an hour in a warm place.",
    "Bread is life, my mother used to say.",
    "Time to bake",
    "a gas oven",
    "forty minutes",
    "Enjoy your meal!",
    "🎉 Send us a photo.",
]


def sentences_of(text, markup="auto"):
    return gruen_text.split([text], parity=False, markup=markup).by_text[0]


@pytest.mark.parametrize("markup", ["auto", "markdown"])
def test_markdown_becomes_sentences(markup):
    found = gruen_text.split([ANSWER], parity=False, markup=markup)
    assert found.by_text == [SENTENCES]
    assert found.n_code == [1]


@pytest.mark.parametrize(
    "text",
    [
        "# A heading\n\nA text.",
        "One thing.\n\n```\ncode here\n```",
        "We need\n\n* some flour\n* some salt",
        "We need\n\n1. some flour\n2. some salt",
        "This is **very** good.",
        "See [the page](https://example.org) for more.",
        "> A quote of two.\n\nAn answer to it.",
        "| a | b |\n|---|---|\n| c d | e f |",
        "The heading\n===========\n\nThe text.",
    ],
)
def test_markdown_shows_itself(text):
    assert gruen_text.read_blocks(text) == gruen_text.read_blocks(text, "markdown")
    assert gruen_text.read_blocks(text) != gruen_text.read_blocks(text, "plain")


@pytest.mark.parametrize(
    "text",
    [
        "1986. What a summer that was.",
        "- Are you coming?",
        "He *really* said 2 * 3 * 4 is 24.",
        "#blessed and #happy today",
        "    An indented line of a letter.",
        "It cost < 5 dollars and > 3.",
        "snake_case_name is a name_of_mine here",
    ],
)
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
    assert sentences_of(wrapped) == [
        "The council met on Tuesday evening to decide on the new bridge over the river, which all members want to see "
        "finished before the autumn.",
        "Berlin and Paris sent their best wishes, and the mayor of the town of Ulm came in person.",
    ]
    # A title, an address and a verse have lines of their own.
    assert sentences_of("My first day\nI got up early.") == ["My first day", "I got up early."]
    assert sentences_of("The sea is wide\nThe sea is deep") == ["The sea is wide", "The sea is deep"]
    assert sentences_of("Shopping list:\n• two eggs\n• some milk") == ["Shopping list:", "• two eggs", "• some milk"]
    assert sentences_of("Dear Ann,\n\nthank you for the book.") == ["Dear Ann,", "thank you for the book."]


def test_dialogue_survives():
    assert sentences_of('"Are you well?" he asked.\n"I am," she said.') == [
        '"Are you well?" he asked.',
        '"I am," she said.',
    ]
    assert sentences_of("— Are you coming?\n— I am coming!") == ["— Are you coming?", "— I am coming!"]
    assert sentences_of("- Are you coming?\n- I am coming!") == ["Are you coming?", "I am coming!"]


def test_only_code_is_no_sentence(load):
    with pytest.warns(UserWarning, match="1 of 1 texts have no sentence"):
        result = load("gruen").compute(predictions=["```\nx = 1\ny = 2\n```\n\n~~~\nz\n~~~"], components=["focus"])
    assert result["n_code"] == [2]
    assert result["n_sentences"] == [0]


def test_markup_is_a_setting(load):
    settings = {"predictions": [ANSWER], "components": ["non_redundancy"], "details": True}
    results = {markup: load("gruen").compute(**settings, markup=markup) for markup in gruen_text.MARKUPS}
    assert load("gruen").compute(**settings) == results["auto"]
    assert [one["text"] for one in results["auto"]["details"][0]["sentences"]] == SENTENCES
    for markup, n_code in (("auto", [1]), ("markdown", [1]), ("plain", [0])):
        assert f"|markup:{markup}" in results[markup]["signature"]
        assert results[markup]["n_code"] == n_code


@given(st.text(alphabet="\n\r\t 1.)=a", max_size=12))
def test_what_may_be_markdown_is_found_within_lines(text):
    across_lines = re.compile(r"[#*_`~>|\[+-]|^\s*\d+[.)]|^=+\s*$", re.MULTILINE)
    assert bool(gruen_text._MARKS.search(text)) == bool(across_lines.search(text))
