"""gruen at the length that models write: repetition and lost focus are found, and prose is left alone."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import own_data
from text_metrics.metrics.gruen.gruen_focus import bonds, ties
from text_metrics.metrics.gruen.gruen_redundancy import find_repeats, shared_passages

EXAMPLES = own_data("gruen_examples.json")
STORY = EXAMPLES["story"]
LECTURE = EXAMPLES["lecture"]


def flags(*sentences):
    return [raised for _, _, raised in find_repeats(sentences).pairs]


@pytest.fixture
def repetition(load):
    """Return a function that scores texts by their repetition alone."""
    return lambda texts: load("gruen").compute(predictions=texts, components=["non_redundancy"])["scores"]


# Redundancy.


def test_prose_loses_nothing(load):
    result = load("gruen").compute(predictions=[" ".join(STORY)], components=["non_redundancy", "focus"])
    assert (result["non_redundancy"], result["focus"]) == (0.0, 0.0)


def test_a_sentence_said_twice_raises_all_flags():
    repeats = find_repeats(STORY[:6] + STORY[3:4] + STORY[6:])
    assert repeats.pairs == [(3, 6, ["longest_substring", "substring_words", "edit_distance", "common_words"])]


@pytest.mark.parametrize(("first", "second"), EXAMPLES["near_repeats"])
def test_near_repeats_count(first, second):
    assert len(flags(first, second)) == 1
    assert len(flags(second, first)) == 1


@pytest.mark.parametrize(("first", "second"), EXAMPLES["no_repeats"])
def test_a_shared_name_or_phrase_does_not(first, second):
    assert flags(first, second) == []


@pytest.mark.parametrize(
    ("frame", "is_repeated"),
    [
        # Runs of five of six words, of weight 8, 9 and 10.
        ("Add of the large cups {}.", False),
        ("Add three large cups of {}.", False),
        ("Add three large paper cups {}.", True),
        ("Rain fell again and again, {}.", False),
    ],
)
def test_a_long_run_counts_from_a_weight_of_10(frame, is_repeated):
    (first,) = flags(frame.format("flour"), frame.format("sugar")) or ([],)
    assert ("longest_substring" in first) == is_repeated


def test_an_opening_clause_said_again_is_one_flag():
    clause = "The Golden Lion, an old hotel by the market square,"
    assert flags(f"{clause} was sold to a bank in March.", f"{clause} will open in June.") == [["edit_distance"]]
    # Not where the clause is a name.
    assert flags("The Golden Lion, as we heard, was sold.", "The Golden Lion, I am told, has shut.") == []


def test_a_loop_scores_0(repetition):
    assert repetition([" ".join(STORY[3:5] * 6), "I know. You know. " * 6]) == [0.0, 0.0]


def test_a_short_sentence_said_twice_is_no_loop():
    assert flags("Thank you.", *STORY[:3], "Thank you.") == []
    assert len(flags("Thank you.", STORY[0], "Thank you.", STORY[1], "Thank you.")) == 3


def test_what_repeats_is_shown(load):
    first = "In spring the road to the village is closed by snow."
    assert shared_passages(first, "The road to the village is open, in spring!") == ["the road to the village is"]
    assert shared_passages("Museums close on Mondays.", "On Monday, museums never close.") == ["Museums", "close"]
    texts = [f"{STORY[0]} {STORY[1]} {STORY[0]}"]
    result = load("gruen").compute(predictions=texts, components=["non_redundancy"], details=True)
    (pair,) = result["details"][0]["redundant_pairs"]
    assert pair["shared"] == [STORY[0].rstrip(".")]


def joined(form):
    """The first four sentences of the story twice, in a form that hides them."""
    marked = STORY[:4] * 2
    bare = [sentence.rstrip(".") for sentence in marked]
    text = " ".join(marked)
    return form.format(text=text, half=" ".join(STORY[:4])) if "{" in form else form.join(bare)


@pytest.mark.parametrize("form", EXAMPLES["forms that hide a loop"])
def test_a_loop_cannot_hide(load, form):
    settings = {"components": ["non_redundancy"], "details": True}
    result = load("gruen").compute(predictions=[joined(form)], **settings)
    assert result["gruen"] == 0.0
    assert result["details"][0]["n_redundant_pairs"] >= 4


@pytest.mark.parametrize("form", EXAMPLES["forms of what is said once"])
def test_what_is_said_once_is_no_loop_in_any_form(repetition, form):
    assert repetition([joined(form)]) == [1.0]


# Loops inside one sentence, where no mark divides the copies.

CLAUSES = [sentence.rstrip(".").replace(",", "") for sentence in STORY]
JOINTS = [" ", " and ", " or ", " and then ", " - ", " + ", " = ", " -> ", ", and ", "\n", "\n\n", "<newline>"]


@pytest.mark.parametrize("joint", JOINTS)
def test_a_clause_that_follows_itself_is_a_loop(repetition, joint):
    scores = repetition([joint.join([clause] * n) for clause in CLAUSES for n in (1, 2, 5)])
    assert scores[::3] == [1.0] * len(CLAUSES)
    assert max(scores[1::3]) < 1.0
    assert max(scores[2::3]) == 0.0


def test_a_loop_after_other_text_is_one(repetition):
    copies = " and ".join([CLAUSES[4]] * 5)
    lines = "\n".join(CLAUSES[4:6] * 4)
    other = " ".join(STORY[:2])
    assert repetition([f"{other} We asked and {copies}.", f"{other}\n\n{lines}"]) == [0.0, 0.0]


@pytest.mark.parametrize("n_words", [2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("is_cut", [False, True])
def test_words_at_the_end_of_a_text_that_follow_themselves_are_a_loop(repetition, n_words, is_cut):
    texts = []
    for clause in CLAUSES:
        copies = clause.split()[-n_words:] * 6
        texts.append(f"{STORY[0]} {clause} {' '.join(copies[: len(copies) - is_cut])}")
    assert max(repetition(texts)) == 0.0


# Of function words, and one word.
@pytest.mark.parametrize("loop", ["and so it is what it is", "what is it that", "very"])
def test_a_loop_needs_no_content_words(repetition, loop):
    assert repetition([f"{STORY[0]} They said {' '.join([loop] * 10)}"]) == [0.0]


@pytest.mark.parametrize("sentence", EXAMPLES["figures of speech"])
def test_a_figure_of_speech_is_no_loop(repetition, sentence):
    assert repetition([f"{STORY[0]} {sentence}"]) == [1.0]


LISTS = EXAMPLES["parallel items"]
LAYOUTS = EXAMPLES["layouts of items"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("items", LISTS)
def test_parallel_items_of_a_list_are_no_repetition(repetition, items, layout):
    # The same items again are, and so is prose in one frame.
    once, loop = (LAYOUTS[layout].format(*lines) for lines in (LISTS[items], LISTS[items][:2] * 2))
    scores = repetition([once, loop, " ".join(LISTS[items])])
    assert scores[:2] == [1.0, 0.0]
    assert scores[2] < 0.4


@pytest.mark.parametrize(
    "fillers",
    [["milk"] * 4, ["some milk", "more milk", "no milk", "the milk"], ["2 pints", "3 pints", "4 pints", "50 pints"]],
    ids=["equal", "function words", "numbers"],
)
def test_items_that_say_nothing_new_are_repetition(repetition, fillers):
    lines = [f"- Then add {filler} to the big bowl and stir well." for filler in fillers]
    assert repetition(["\n".join(lines)]) == [0.0]


SENTENCES = st.lists(st.sampled_from(["red", "fox", "the", "sees", "cat", "hen,"]), max_size=16).map(" ".join)


@settings(max_examples=200)
@given(SENTENCES, SENTENCES)
def test_the_order_of_two_sentences_does_not_matter(first, second):
    assert sorted(flags(first, second)) == sorted(flags(second, first))


@settings(max_examples=50)
@given(st.lists(SENTENCES.filter(bool), max_size=9))
def test_sentences_repeat_each_other_in_company_as_alone(sentences):
    pairs = {(i, j): flags for i, j, flags in find_repeats(sentences).pairs}
    for i, j in itertools.combinations(range(len(sentences)), 2):
        if sentences[i] != sentences[j]:
            alone = find_repeats([sentences[i], sentences[j]]).pairs
            assert pairs.get((i, j)) == (alone[0][2] if alone else None)


# Focus.

STRANGE = "Quarterly profits of the chemical company fell by a third."


@pytest.mark.parametrize("n", [6, 12])
def test_a_stranger_is_found_at_any_length(load, n):
    with_strange = STORY[:n]
    with_strange.insert(n // 2, STRANGE)
    texts = [" ".join(STORY[:n]), " ".join(with_strange)]
    result = load("gruen").compute(predictions=texts, components=["focus"], details=True)
    assert [details["focus"] for details in result["details"]] == [0.0, -0.1]
    places = [place["sentences"] for place in result["details"][1]["focus_breaks"]]
    assert [n // 2 - 1, n // 2] in places
    assert [n // 2, n // 2 + 1] in places


def test_two_sentences_on_two_subjects_lose_the_focus(load):
    texts = [f"{STORY[5]} {STRANGE}", " ".join(STORY[:2])]
    result = load("gruen").compute(predictions=texts, components=["focus"], details=True)
    assert [details["focus"] for details in result["details"]] == [-0.1, 0.0]


def test_the_second_half_of_another_text_is_found(load):
    texts = [" ".join(STORY[:6] + LECTURE), " ".join(LECTURE)]
    result = load("gruen").compute(predictions=texts, components=["focus"], details=True)
    assert [details["focus"] for details in result["details"]] == [-0.1, 0.0]
    assert [5, 6] in [place["sentences"] for place in result["details"][0]["focus_breaks"]]


@pytest.mark.parametrize("n", [2, 3, 4, 9, 30, 600])
def test_ties_and_bonds_are_what_they_say(n):
    vectors = np.random.default_rng(0).normal(size=(n, 8)) + 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    n_words = np.arange(1, n + 1)
    cosines = vectors @ vectors.T
    expected = []
    for i in range(n):
        neighbors = [j for j in (i - 1, i + 1) if 0 <= j < n]
        near = np.mean([cosines[i, j] for j in neighbors])
        best = np.sort(np.delete(cosines[i], i))[-3:].mean()
        offset = near - cosines[i - 1, i + 1] if len(neighbors) == 2 else 0
        bonus = math.log(20 / min(20, n_words[i]))
        expected.append((near + best) / 2 + 0.25 * offset + 0.05 * bonus)
    assert ties(vectors, n_words) == pytest.approx(np.array(expected))
    expected = []
    for k in range(2, n - 1):
        inner = [part[~np.eye(len(part), dtype=bool)].mean() for part in (cosines[:k, :k], cosines[k:, k:])]
        expected.append(cosines[:k, k:].mean() - 0.25 * np.mean(inner) - 0.045 * math.log(min(k, n - k)))
    assert bonds(vectors) == pytest.approx(np.array(expected))
