"""gruen on plain correct English: the suite of results/gruen_plain.csv."""

import random

import pytest

from scripts.results.gruen_plain import SEED, corrupt, draw

SUITE = draw()


def test_the_suite_is_large_and_always_the_same():
    sentences = {sentence for own in SUITE.values() for sentence in own}
    assert len(sentences) >= 3000
    assert draw() == SUITE


@pytest.mark.parametrize("construction", SUITE)
def test_plain_sentences_are_above_their_corruptions(load, construction):
    chance, sentences = random.Random(SEED), SUITE[construction][:12]
    texts = sentences + [corrupt(sentence, chance) for sentence in sentences]
    scores = load("gruen").compute(predictions=texts, components=["grammaticality"])["scores"]
    assert sum(scores[:12]) > sum(scores[12:]) + 1.2
