"""Answers of polls, opposites, and decisions of probeval that must not hang on rounding."""

import warnings
from collections import Counter

import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.metrics import adjusted_rand_score

from tests.conftest import own_data
from tests.references import probeval as reference
from tests.test_probeval import PROTOQA_PREDICTIONS
from text_metrics.metrics.probeval.probeval_clusters import gmeans, hac, xmeans
from text_metrics.metrics.probeval.probeval_matching import assign, gp_scores
from text_metrics.metrics.probeval.probeval_opposites import opposite_pairs
from text_metrics.metrics.probeval.probeval_pipeline import reached
from text_metrics.metrics.probeval.probeval_soft import matched_shares, soft_groups

LIKERT = ("Strongly agree", "Agree", "Neither agree nor disagree", "Disagree", "Strongly disagree")
# People's answers and a model's.
POLLS = [
    ({"Acceptable": 41, "Unacceptable": 959}, {"Acceptable": 820, "Unacceptable": 180}),
    ({"Yes": 100}, {"No": 100}),
    (dict(zip(LIKERT, (60, 25, 10, 3, 2), strict=True)), dict(zip(LIKERT, (2, 3, 10, 25, 60), strict=True))),
    (
        {"More often": 7, "Less often": 13, "never": 5},
        {" MORE  OFTEN": 2, "less often\n": 9, "Never": 1, "Don't know": 3},
    ),
    ({"Yes": 3, "YES": 4, "no ": 5}, {"yes": 2, "No": 6}),
    ({"Yes": 80.5, "No": 19.5, "Unsure": 0}, {"Yes": 60.25, "No": 30.5, "Unsure": 9.25}),
]


def by_hand(people, model, smoothing=1):
    """KL over the options that people chose and `wrong`, each with the smoothing."""
    gold = Counter()
    answers = Counter()
    for counts, side in ((gold, people), (answers, model)):
        for text, count in side.items():
            counts[" ".join(text.casefold().split())] += count
    options = [option for option, count in gold.items() if count]
    answers["wrong"] = sum(count for option, count in answers.items() if option not in options)
    return reference.kl(gold, answers, [*options, "wrong"], smoothing)


@pytest.mark.parametrize(("people", "model"), POLLS)
def test_options_of_a_poll_are_counted_as_by_hand(probeval, people, model):
    for clustering in ({}, {"clustering": "none"}):
        result = probeval.compute(predictions=[model], references=[people], matcher="exact", **clustering)
        assert result["probeval"] == pytest.approx(by_hand(people, model), abs=1e-9)
        assert "|clustering:none|matcher:exact|smoothing:" in result["signature"]
    assert result["n_answers"] == [sum(model.values())]
    shares = []
    for side in (people, model):
        shares.append({text: count / sum(side.values()) for text, count in side.items()})
    # The smoothing of shares has the weight that their totals give it.
    totals = [
        {"answers": share, "total": sum(side.values())} for share, side in zip(shares, (people, model), strict=True)
    ]
    scaled = probeval.compute(predictions=[totals[1]], references=[totals[0]], matcher="exact")
    assert scaled["probeval"] == pytest.approx(result["probeval"], abs=1e-6)
    if set(people) >= set(model):
        result = probeval.compute(predictions=[shares[1]], references=[shares[0]], matcher="exact", smoothing=0)
        assert result["probeval"] == pytest.approx(by_hand(people, model, smoothing=0), abs=1e-9)


@pytest.mark.parametrize(
    "option", [{"rarefy": 5}, {"rarefy_people": 5}, {"debias": True}, {"clustering": "hac", "parity": True}]
)
def test_answers_are_drawn_from_integers_only(probeval, option):
    people, model = POLLS[-1]
    with pytest.raises(ValueError, match=r"integers\. Question '0'"):
        probeval.compute(predictions=[model], references=[people], **option)


# Opposites.

ANSWERS = own_data("probeval_answers.json")
OPPOSITES = ANSWERS["opposite"]
CASES = [(pair, True) for pair in OPPOSITES]
CASES += [(pair, False) for pair in ANSWERS["not opposite"]]


@pytest.mark.parametrize(("pair", "expected"), CASES)
def test_opposites_are_found(pair, expected):
    assert opposite_pairs(pair, pair).tolist() == [[False, expected], [expected, False]]


PIPELINES = [{}, {"clustering": "none"}, {"clustering": "hac"}, {"clustering": "xmeans"}, {"matcher": "gp"}]
PIPELINES += [{"matcher": "wordnet"}, {"clustering": "none", "matcher": "soft"}, {"clustering": "human"}]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_an_opposite_that_nobody_said_is_wrong(probeval, pipeline):
    predictions = []
    references = []
    for first, second in OPPOSITES[:10:3]:
        for said, other in ((first, second), (second, first)):
            predictions.append([said] * 100)
            references.append([{"text": other, "count": 100, "cluster": "1"}])
    result = probeval.compute(predictions=predictions, references=references, **pipeline)
    assert result["wrong_rate"] == 1
    expected = reference.kl(["1"] * 100, ["w"] * 100, ["1", "w"])
    assert result["scores"] == pytest.approx([expected] * len(predictions))


def test_parity_matches_opposites_as_the_original_does(probeval):
    inputs = {"predictions": [["No"] * 9], "references": [["Yes"] * 9], "clustering": "none", "matcher": "cosine"}
    assert probeval.compute(**inputs, parity=True)["wrong_rate"] == 0


def test_equal_opposites_stay_in_the_cluster_in_which_people_put_them(probeval):
    people = [[{"text": text, "count": 9, "cluster": "1"} for text in ("Yes", "No")]]
    for matcher in ("cosine", "gp", "soft", "exact"):
        assert probeval.compute(predictions=[["No", "yes"]], references=people, matcher=matcher)["wrong_rate"] == 0


@pytest.mark.parametrize("settings", [{}, {"clustering": "hac"}, {"clustering": "none"}], ids=str)
def test_closed_options_are_warned_of_once(probeval, settings):
    poll = {"Acceptable": 4, "Unacceptable": 6}
    with pytest.warns(UserWarning, match="'Acceptable' and 'Unacceptable' are opposites.*matcher='exact'") as caught:
        probeval.compute(predictions=[poll] * 3, references=[{"tea": 3}, poll, dict.fromkeys(LIKERT, 2)], **settings)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("people", "settings"),
    [
        ({"a kettle": 4, "a pot": 2, "an electric kettle": 3}, {}),
        ({"Acceptable": 4, "Unacceptable": 6}, {"matcher": "exact"}),
        ({"Acceptable": 4, "Unacceptable": 6, **dict.fromkeys("bcdefghi", 1)}, {}),
        ({"a boy": 4, "brown sugar": 6}, {}),
    ],
)
def test_open_answers_are_not_warned_of(probeval, people, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probeval.compute(predictions=[people], references=[people], **settings)


def test_answers_in_no_cluster_are_named_or_kept(probeval):
    """Of what is in no cluster, "appel" was cleaned to "apple": the clusters hold 90 of 99 answers."""
    clusters = {"1": {"count": 60, "answers": ["apple"]}, "2": {"count": 30, "answers": ["pear"]}}
    raw = {"apple": 58, "appel": 2, "pear": 30, "car": 9}
    target = {"metadata": {"id": "r1q1"}, "question": {}, "answers": {"raw": raw, "clusters": clusters}}
    with pytest.warns(UserWarning, match="1 different .*'car', given 9 times"):
        read = probeval.from_protoqa([target], {"r1q1": ["car"]})
    assert probeval.compute(**read)["wrong_rate"] == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = probeval.from_protoqa([target], {"r1q1": ["car"]}, unclustered="own")
        target["answers"]["raw"].pop("car")
        probeval.from_protoqa([target], PROTOQA_PREDICTIONS)
    result = probeval.compute(**read)
    assert (result["wrong_rate"], result["coverage"]) == (0, pytest.approx(9 / 97))


# Ties.


@pytest.mark.parametrize("clustering", ["human", "none", "hac"])
@pytest.mark.parametrize("matcher", ["cosine", "soft"])
def test_an_answer_of_people_matches_at_any_threshold(probeval, clustering, matcher):
    texts = ("kettle", "Something odd, isn't it?", "an electric kettle", "日本語", "x" * 300, "!")
    people = [[{"text": text, "cluster": "1"}, {"text": "pot", "cluster": "2"}] for text in texts]
    given = {"predictions": [[text] for text in texts], "references": people}
    assert probeval.compute(**given, clustering=clustering, matcher=matcher, threshold=1.0)["wrong_rate"] == 0


@pytest.mark.discrete
@pytest.mark.parametrize("noise", [1e-12, 1e-8, 2e-7])
def test_no_decision_hangs_on_rounding(rng, noise):
    """Exact ties, and those that the rounding of another batch or machine would make."""
    shake = lambda values: values + noise * rng.uniform(-1, 1, np.shape(values))  # noqa: E731
    tied = np.array([[0.7, 0.7, 0.1], [0.55, 0.2, 0.1], [0.2, 0.3, 0.1]])
    apart = np.array([[0.5, 0.5, 0.0], [0.4, 0.1, 0.5], [0.1, 0.1, 0.8]])
    probability = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.5], [0.2, 0.5, 1.0]])
    corners = np.eye(4)[:3]
    twice = np.repeat(np.eye(6)[:3], 2, axis=0)
    for _ in range(20):
        for strict in (False, True):
            np.testing.assert_array_equal(assign(shake(tied), 0.55, strict=strict), assign(tied, 0.55, strict=strict))
        np.testing.assert_array_equal(reached(shake(apart)), reached(apart))
        assert matched_shares(shake(np.ones((1, 2))), 1.0).tolist() == [[1.0]]
        # Orthogonal rows are all sqrt(2) apart, in any rotation.
        turn = ortho_group.rvs(4, random_state=rng)
        assert hac(shake(corners @ turn), "average", float(np.sqrt(2))).tolist() == [0, 0, 0]
        assert len(set(hac(shake(corners @ turn), "complete", 1.0))) == 3
        six = ortho_group.rvs(6, random_state=rng)
        for method in (xmeans, gmeans):
            actual = [method(rows, np.full(6, 9.0), 0) for rows in (twice, shake(twice @ six))]
            assert adjusted_rand_score(*actual) == 1
        # An answer as near to two clusters is divided among both.
        middle = (corners[0] + corners[1]) / np.sqrt(2)
        scores = gp_scores(shake(middle[None] @ turn), shake(corners @ turn), np.eye(3))
        assert assign(scores, 0.2, strict=True)[0].tolist() == [0.5, 0.5, 0.0, 0.0]
        halves = [soft_groups(table) for table in (probability, shake(probability))]
        assert halves[0].tolist() == halves[1].tolist()
