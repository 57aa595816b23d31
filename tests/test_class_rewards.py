"""Rewards by the sizes of classes."""

import pytest

import text_metrics

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
