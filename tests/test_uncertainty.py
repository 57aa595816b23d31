"""AUROC of uncertainties against a column of correctness, beside trivial rules."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from scripts.reports.uncertainty import Answered, read_answered, to_row
from text_metrics.uncertainty import detect_errors, trivial_rules

ANSWERS = [["Paris", "Paris", "It is Paris."], ["Rome", "Oslo", "Bern"], ["a b", "a b", "a b"]]


def test_trivial_rules_by_hand():
    log_probs = [[[-1.0], [-1.0, -3.0], [-3.0]], [[-2.0], [-4.0], [-6.0]], [[-1.0, -1.0]] * 3]
    rules = trivial_rules(ANSWERS, log_probs)
    assert rules["length"] == pytest.approx([5 / 3, 1, 2])
    assert rules["different strings"] == [2, 3, 1]
    assert rules["mean log-probability"] == pytest.approx([2, 4, 1])
    assert "mean log-probability" not in trivial_rules(ANSWERS)


def make_rules(rng, n, shift):
    is_correct = rng.random(n) < 0.6
    # One digit, so that there are ties.
    good = np.round(rng.standard_normal(n) + shift * ~is_correct, 1)
    return {"good": good, "noise": np.round(rng.standard_normal(n), 1)}, is_correct


def test_auroc_is_that_of_scikit_learn(rng):
    rules, is_correct = make_rules(rng, 120, 1.0)
    table = detect_errors(rules, is_correct.tolist())
    for name, values in rules.items():
        assert table[name]["auroc"] == pytest.approx(roc_auc_score(~is_correct, values))
        low, high = table[name]["interval"]
        assert low < table[name]["auroc"] < high
    assert table["noise"]["difference"] == pytest.approx(table["good"]["auroc"] - table["noise"]["auroc"])
    assert table["noise"]["difference_interval"][0] > 0
    assert "difference" not in table["good"]
    assert detect_errors(rules, is_correct) == table
    assert detect_errors(rules, is_correct, seed=1) != table
    wide = detect_errors(rules, is_correct, level=0.99)["good"]["interval"]
    assert wide[0] < table["good"]["interval"][0]


def test_intervals_contain_the_true_value(rng):
    # The AUROC of two normal distributions at a distance of 1 is 0.760, rounding aside.
    inside = []
    for _ in range(100):
        rules, is_correct = make_rules(rng, 80, 1.0)
        low, high = detect_errors({"good": rules["good"]}, is_correct, level=0.9, resamples=100)["good"]["interval"]
        inside.append(low <= 0.760 <= high)
    assert 0.81 <= np.mean(inside) <= 0.97


@pytest.mark.parametrize(
    ("rules", "is_correct", "message"),
    [
        ({"x": [1, 2]}, [True, True], "is_correct must have right and wrong answers. Got 2 right of 2"),
        ({"x": [1, 2]}, [1, 0.5], "is_correct must be a list of True and False"),
        ({"x": [1, None]}, [True, False], "The rule 'x' must have a finite number for each of the 2 questions"),
        ({"x": [1]}, [True, False], "The rule 'x' must have a finite number for each of the 2 questions"),
    ],
)
def test_errors_name_the_column(rules, is_correct, message):
    with pytest.raises(ValueError, match=message):
        detect_errors(rules, is_correct)


def test_the_report_judges_the_most_frequent_answer(tmp_path):
    target = {"question": {"normalized": "name a pet"}, "answers": {"raw": {"A Dog.": 2}, "clusters": {}}}
    target["answers"]["clusters"] = {"c": {"count": 2, "answers": ["A Dog."]}}
    targets, predictions = tmp_path / "targets.jsonl", tmp_path / "model.jsonl"
    names = ("right", "wrong", "tie", "empty", "absent")
    targets.write_text("".join(json.dumps({"metadata": {"id": name}, **target}) + "\n" for name in names))
    given = {
        "right": ["cat", "the dog", "Dog<|endoftext|>no"],
        "wrong": ["cat", "dog", "cat"],
        "tie": ["dog", "cat"],
        "empty": ["", "."],
    }
    predictions.write_text(json.dumps(given))
    answered = read_answered(targets, predictions)
    assert answered == ([["cat", "dog", "dog"], ["cat", "cat", "dog"], ["dog", "cat"]], [True, False, True], 1)


def test_a_row_of_the_report_has_the_rules_and_differences():
    """Certain where the answer is right; with four right answers there is no AUROC."""
    answers = [["a a", "a a"]] * 5 + [["a a", "b b"]] * 5
    metric = SimpleNamespace(compute=lambda **_: {"semantic_entropy_scores": [0.0] * 5 + [0.7] * 5})
    row = to_row("m", Answered(answers, [True] * 5 + [False] * 5, 5), metric)
    perfect, chance = "1.00 [1.00, 1.00]", "0.50 [0.50, 0.50]"
    assert row == ["m", "10", "5 (50%)", "50%", perfect, chance, perfect, chance, "0.00 [0.00, 0.00]"]
    assert to_row("m", Answered(answers, [True] * 4 + [False] * 6, 5), metric)[4:] == ["-"] * 5
