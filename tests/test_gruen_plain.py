"""The scripts of gruen: the suite of results/gruen_plain.csv, plain correct English, and a rule of gruen.csv."""

import random

import pytest

from scripts.results.gruen_plain import SEED, corrupt, draw
from scripts.results.gruen_repetition import trivial

SUITE = draw()


def test_the_suite_is_large_and_always_the_same():
    assert len({sentence for own in SUITE.values() for sentence in own}) >= 3000
    assert draw() == SUITE


@pytest.mark.parametrize("construction", SUITE)
def test_plain_sentences_are_above_their_corruptions(load, construction):
    chance, sentences = random.Random(SEED), SUITE[construction][:12]
    texts = sentences + [corrupt(sentence, chance) for sentence in sentences]
    scores = load("gruen").compute(predictions=texts, components=["grammaticality"])["scores"]
    assert sum(scores[:12]) > sum(scores[12:]) + 1.2


@pytest.mark.parametrize(
    ("frame", "names", "plain"),
    [
        ("The letter from {0} came on Monday, and {0} was late.", ["Reading"], ["Oslo"]),
        ("The letter from {0} came on Monday, and {0} was late.", ["Mark"], ["Tom"]),
        ("She was with Tom, {}, {} and {} in {}.", ["Mark", "Will", "Grace", "Nice"], ["Ann", "Sam", "Kim", "Oslo"]),
        ("{} was in {} on Monday.", ["Will", "Nice"], ["Tom", "Oslo"]),
        ("{} likes the letter, which was late.", ["Will"], ["Tom"]),
    ],
)
def test_names_that_are_words_are_names(load, frame, names, plain):
    texts = [frame.format(*words) for words in (names, plain, map(str.lower, names))]
    result = load("gruen").compute(predictions=[*texts, texts[0].replace("was", "were was")], details=True)
    assert result["scores"][0] == pytest.approx(result["scores"][1]) != result["scores"][2]
    marked = {word for text in result["details"] for sentence in text["sentences"] for word in sentence["suspects"]}
    assert set() < marked <= {*" ".join(texts).split(), "were"}


def test_the_trivial_rule_of_redundancy_counts_pairs_that_share_half_of_their_words():
    assert trivial("The cat sat here. A dog ran away.") == 1
    assert trivial("The cat sat here. The cat sat there.") == pytest.approx(0.6)
    assert trivial("The cat sat here. The cat sat there. The cat sat down.") == 0
