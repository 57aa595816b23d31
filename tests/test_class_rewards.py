"""Rewards by the sizes of classes."""

import pytest

import text_metrics

TEXTS = ["ax", "ay", "b", "az", "c", "d", "c", "c"]
# (n - size) / (n - 1), of a a b a and c d c c.
DISTINCT = [1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3]
BY_LETTER = {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}


def rate(completions, **columns):
    return [None if text == "d" else 0.5 for text in completions]


def make(load, set_size=4, quality=None, **settings):
    metric = load("semantic_entropy")
    return text_metrics.for_rewards(metric, set_size, "distinct_share", quality, **(BY_LETTER | settings))


def test_rewards_by_hand(load):
    for size, texts, distinct in (
        (4, TEXTS, DISTINCT),
        (2, ["ax", "ay", "ax", "b"], [0, 0, 1, 1]),
        (5, list("aaaab"), [0.25] * 4 + [1]),
        (5, list("aabbc"), [0.75] * 4 + [1]),
    ):
        assert make(load, size)(completions=texts) == pytest.approx(distinct)


def test_times_quality(load):
    plain = make(load)(completions=TEXTS)
    reward = make(load, quality=rate)
    expected = [None if text == "d" else value / 2 for text, value in zip(TEXTS, plain, strict=True)]
    assert reward(completions=TEXTS, prompts=["p"] * 4 + ["q"] * 4) == expected
    assert reward.__name__ == "semantic_entropy_distinct_share_times_quality"
    logged = []
    reward(completions=TEXTS, log_metric=lambda name, value: logged.append((name, value)))
    assert [name for name, _ in logged] == ["semantic_entropy", "semantic_entropy"]
