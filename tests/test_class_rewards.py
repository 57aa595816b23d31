"""Rewards by the sizes of classes, and their form for verl."""

import inspect

import numpy as np
import pytest

import text_metrics
from text_metrics.integrations.verl import for_verl

TEXTS = ["ax", "ay", "b", "az", "c", "d", "c", "c"]
# (n - size) / (n - 1) and 1 / size, of a a b a and c d c c.
DISTINCT = [1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3]
INVERSE = [1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3]
BY_LETTER = {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}


def rate(completions, **columns):
    return [None if text == "d" else 0.5 for text in completions]


def make(load, reward, set_size=4, quality=None, **settings):
    return text_metrics.for_rewards(load("semantic_entropy"), set_size, reward, quality, **(BY_LETTER | settings))


def test_rewards_by_hand(load):
    for size, texts, distinct, inverse in (
        (4, TEXTS, DISTINCT, INVERSE),
        (2, ["ax", "ay", "ax", "b"], [0, 0, 1, 1], [0.5, 0.5, 1, 1]),
        (5, list("aaaab"), [0.25] * 4 + [1], [0.25] * 4 + [1]),
        (5, list("aabbc"), [0.75] * 4 + [1], [0.5] * 4 + [1]),
    ):
        assert make(load, "distinct_share", size)(completions=texts) == pytest.approx(distinct)
        assert make(load, "inverse_class_size", size)(completions=texts) == pytest.approx(inverse)


@pytest.mark.parametrize("measure", ["distinct_share", "inverse_class_size"])
def test_times_quality(load, measure):
    plain = make(load, measure)(completions=TEXTS)
    reward = make(load, measure, quality=rate)
    expected = [None if text == "d" else value / 2 for text, value in zip(TEXTS, plain, strict=True)]
    assert reward(completions=TEXTS, prompts=["p"] * 4 + ["q"] * 4) == expected
    assert reward.__name__ == f"semantic_entropy_{measure}_times_quality"
    logged = []
    reward(completions=TEXTS, log_metric=lambda name, value: logged.append((name, value)))
    assert [name for name, _ in logged] == ["semantic_entropy", "semantic_entropy"]


def call_as_verl(compute_score, solution_strs, uids, **reward_kwargs):
    """Call with the keywords of verl's BatchRewardManager, and arrays of objects as it holds them."""
    n = len(solution_strs)
    extra = np.array([{"uid": uid, "index": i} for i, uid in enumerate(uids)], dtype=object)
    return compute_score(
        data_sources=np.array(["stories"] * n, dtype=object),
        solution_strs=solution_strs,
        ground_truths=[None] * n,
        extra_infos=extra,
        **reward_kwargs,
    )


def test_verl_batches_are_grouped_by_uid(load):
    compute_score = for_verl(make(load, "distinct_share"))
    names = list(inspect.signature(compute_score).parameters)
    assert names[:4] == ["data_sources", "solution_strs", "ground_truths", "extra_infos"]
    uids = ["p"] * 4 + ["q"] * 4
    for order in (range(8), [0, 4, 1, 5, 2, 6, 3, 7], [7, 2, 0, 5, 6, 1, 3, 4]):
        scores = call_as_verl(compute_score, [TEXTS[i] for i in order], [uids[i] for i in order])
        assert scores == pytest.approx([DISTINCT[i] for i in order])
        assert all(type(score) is float for score in scores)


def test_verl_passes_what_a_quality_reads(load):
    seen = {}

    def verify(completions, **columns):
        seen.update(columns, completions=completions)
        return [1.0] * len(completions)

    compute_score = for_verl(make(load, "distinct_share", 2, verify))
    assert call_as_verl(compute_score, ["a", "b", "a", "c"], ["p", "q", "p", "q"], scale=3) == [0, 1, 0, 1]
    assert seen["completions"] == ["a", "a", "b", "c"]
    assert seen["prompts"] == ["p", "p", "q", "q"]
    assert [extra["index"] for extra in seen["extra_info"]] == [0, 2, 1, 3]
    assert seen["ground_truth"] == [None] * 4
    assert seen["data_source"] == ["stories"] * 4
    assert seen["scale"] == 3


def test_verl_batches_that_cannot_be_scored(load):
    compute_score = for_verl(make(load, "distinct_share", 2))
    with pytest.raises(ValueError, match="set_size=2"):
        call_as_verl(compute_score, list("abcd"), ["p"] * 4)
    with pytest.raises(ValueError, match=r"extra_infos\[0\]"):
        call_as_verl(for_verl(make(load, "distinct_share", 2), key="group"), list("ab"), ["p"] * 2)
    with pytest.raises(ValueError, match=r"solution_strs\[1\]"):
        call_as_verl(for_verl(make(load, "distinct_share", 2, rate)), list("ad"), ["p"] * 2)
