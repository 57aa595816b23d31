"""What an answer of probeval is: what is equal, what never matches, and scores of identical distributions."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import own_data
from tests.fuzzing import TIMES
from tests.test_fuzz_metrics import Letters
from text_metrics.metrics.probeval.probeval_matching import exact_scores
from text_metrics.metrics.probeval.probeval_opposites import opposite_pairs
from text_metrics.metrics.probeval.probeval_words import distinct_pairs, equal_pairs, fold, normalize, words

ANSWERS = own_data("probeval_answers.json")


def pairs_of(groups):
    return [(group[i], group[j]) for group in groups for i in range(len(group)) for j in range(i)]


@pytest.mark.parametrize("pair", pairs_of(ANSWERS["distinct"]), ids=str)
def test_answers_that_differ_in_what_counts_are_told_apart(pair):
    assert (distinct_pairs(pair, pair) | opposite_pairs(pair, pair)).tolist() == [[False, True], [True, False]]
    assert not equal_pairs(pair[:1], pair[1:]).any()


def questions_of(groups):
    """Make a question of each pair of a group: the model gave the first, people the second."""
    pairs = pairs_of(groups)
    return {
        "predictions": {f"{first} / {second}": {first: 50} for first, second in pairs},
        "references": {f"{first} / {second}": {second: 50} for first, second in pairs},
        "details": True,
    }


def ids_by_wrong_rate(result):
    by_rate = {}
    for row in result["details"]:
        by_rate.setdefault(row["wrong_rate"], []).append(row["id"])
    return by_rate


@pytest.mark.parametrize("pipeline", [{}, {"clustering": "none"}, {"clustering": "hac"}, {"matcher": "exact"}], ids=str)
def test_answers_that_differ_in_what_counts_never_match(probeval, pipeline):
    result = probeval.compute(**questions_of(ANSWERS["distinct"]), model=Same(), **pipeline)
    assert ids_by_wrong_rate(result).keys() == {1}, ids_by_wrong_rate(result)


class Same:
    """Takes all texts for the same."""

    def encode(self, texts):
        return np.ones((len(texts), 3), dtype=np.float32)


@pytest.mark.parametrize("pipeline", [{}, {"clustering": "none"}, {"clustering": "hac"}], ids=str)
def test_answers_that_say_the_same_match(probeval, pipeline):
    for pair in pairs_of(ANSWERS["equal"]):
        assert equal_pairs(pair, pair).all(), pair
    result = probeval.compute(**questions_of(ANSWERS["equal"]), model=Letters(), **pipeline)
    assert ids_by_wrong_rate(result).keys() == {0}, ids_by_wrong_rate(result)
    assert result["scores"] == pytest.approx([0] * len(result["scores"]), abs=1e-12)


@pytest.mark.parametrize("pair", ANSWERS["undecided"], ids=str)
def test_other_answers_are_left_to_the_matcher(pair):
    assert not (distinct_pairs(pair, pair) | opposite_pairs(pair, pair)).any()
    assert not equal_pairs(pair[:1], pair[1:]).any()


@pytest.mark.parametrize(
    ("pair", "most"),
    [
        (("noodle", "poodle"), 0.0),
        (("grandmother", "grandfather"), 0.0),
        (("singer", "finger"), 0.0),
        (("baker", "banker"), 0.5),
        (("desert", "dessert"), 0.5),
        (("county", "country"), 0.5),
    ],
    ids=str,
)
def test_closeness_of_spelling_declares_nothing_equal(probeval, pair, most):
    result = probeval.compute(predictions=[[pair[0]] * 99], references=[[pair[1]] * 99])
    assert 1 - result["wrong_rate"] <= most + 1e-9


@pytest.mark.parametrize("pair", [("color", "colour"), ("noodle", "noodles"), ("theater", "theatre")], ids=str)
def test_spelling_variants_match(probeval, pair):
    assert probeval.compute(predictions=[[pair[0]] * 99], references=[[pair[1]] * 99])["wrong_rate"] < 0.01


@pytest.mark.parametrize("pair", ANSWERS["two forms"], ids=ascii)
def test_options_in_two_forms_are_one(probeval, pair):
    result = probeval.compute(predictions=[[pair[0]] * 9], references=[list(pair) * 9], matcher="exact")
    assert (result["probeval"], result["n_clusters"]) == (pytest.approx(0, abs=0.1), 1)
    assert result["wrong_rate"] == 0


OPTIONS = ["A great deal", "great deal", "12. December", "December", "- 5", "5", "(no answer)", "no answer"]
OPTIONS += ["yes", "yes."]


def test_exact_keeps_apart_all_else(probeval):
    assert (exact_scores(OPTIONS, OPTIONS) == np.eye(len(OPTIONS))).all()


def test_shares_of_all_and_nothing_are_no_counts(probeval):
    people = {"Disagree": 50, "Agree": 50}
    for answers in ({"Disagree": 1.0, "Agree": 0.0}, [("Agree", 0.0), ("Disagree", 1.0)]):
        for sides in ((answers, people), (people, answers)):
            with pytest.raises(ValueError, match=r"shares.*'total'"):
                probeval.compute(predictions=[sides[0]], references=[sides[1]], matcher="exact")
    inputs = {"references": [people], "matcher": "exact"}
    scaled = probeval.compute(predictions=[{"answers": {"Disagree": 1.0, "Agree": 0.0}, "total": 80}], **inputs)
    assert scaled["scores"] == probeval.compute(predictions=[{"Disagree": 80}], **inputs)["scores"]
    # An integer counts answers.
    assert probeval.compute(predictions=[{"Disagree": 1, "Agree": 0}], **inputs)["n_answers"] == [1]
    probeval.add_batch(predictions=[{"Disagree": 1.0, "Agree": 0.0}], references=[people])
    with pytest.raises(ValueError, match="shares"):
        probeval.compute(matcher="exact")


# Properties over any text.

FIXED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
pieces = st.sampled_from(
    [*" -+<>/.,:#%&$'’–½²", "5", "10", "two", "a", "A+", "pm", "kettle", "ก้า", "é", "e\u0301", "\u200b"]
)
answer = st.text(max_size=12) | st.lists(pieces, min_size=1, max_size=5).map("".join)
said = answer.filter(normalize).filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text))


@settings(max_examples=40 * TIMES, **FIXED)
@given(texts=st.dictionaries(said, st.integers(1, 30), min_size=1, max_size=6))
@example(texts={"A+": 3, "A": 2, "8am": 4, "8pm": 1, "8 a.m.": 2})
def test_identical_distributions_have_no_divergence(probeval, texts):
    for settings_ in ({}, {"matcher": "exact"}):
        # An answer may be "answers", which names a field.
        side = [{"answers": texts}]
        result = probeval.compute(predictions=side, references=side, model=Letters(), **settings_)
        assert result["probeval"] == pytest.approx(0, abs=1e-9)
        assert (result["wrong_rate"], result["coverage"]) == (pytest.approx(0, abs=1e-9), pytest.approx(1))


@settings(max_examples=100 * TIMES, **FIXED)
@given(texts=st.lists(said, min_size=1, max_size=6))
def test_both_sides_are_read_by_one_rule(texts):
    for pairs in (distinct_pairs, opposite_pairs, equal_pairs, exact_scores):
        table = pairs(texts, texts)
        assert (table == table.T).all()
    assert equal_pairs(texts, texts).diagonal().all()
    assert not distinct_pairs(texts, texts).diagonal().any()


@settings(max_examples=100 * TIMES, **FIXED)
@given(text=st.text())
def test_reading_again_changes_nothing(text):
    assert normalize(normalize(text)) == normalize(text)
    assert fold(fold(text)) == fold(text)
    if normalize(text):
        assert words(text).squeezed == words(fold(text)).squeezed


@settings(max_examples=100 * TIMES, **FIXED)
@given(first=st.integers(0, 10**9), second=st.integers(0, 10**9), template=st.sampled_from(["{}", "{} dogs", "at {}!"]))
def test_different_digits_never_match(first, second, template):
    pair = [template.format(number) for number in (first, second)]
    assert distinct_pairs(pair[:1], pair[1:]).item() == (first != second)
    assert equal_pairs(pair[:1], pair[1:]).item() == (first == second)
