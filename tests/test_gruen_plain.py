"""gruen on plain correct English: the suite of results/gruen_plain.csv, and what its weights were trained on."""

import random

import pytest

from scripts.results.gruen_plain import FRAMES, PER_CONSTRUCTION, SEED, corrupt, draw
from scripts.training.corruptions import Corruptor
from scripts.training.gruen_compact import FRAMES as TRAINED

SUITE = draw(FRAMES, PER_CONSTRUCTION, SEED)


def test_the_suite_is_large_and_not_trained_on():
    sentences = {sentence for own in SUITE.values() for sentence in own}
    assert len(sentences) >= 3000
    assert draw(FRAMES, PER_CONSTRUCTION, SEED) == SUITE
    trained = draw(TRAINED, 400, 0)
    assert sentences.isdisjoint(sentence for own in trained.values() for sentence in own)


TAGGED = [
    [("The", "at"), ("dog", "nn"), ("sees", "vbz"), ("the", "at"), ("cats", "nns"), (".", ".")],
    [("Dogs", "nns"), ("see", "vb"), ("a", "at"), ("cat", "nn"), ("sleeping", "vbg"), (".", ".")],
    [("They", "ppss"), ("sleep", "vb"), ("well", "rb"), (".", ".")],
]


def test_a_corruption_is_marked_where_it_is():
    sentence = "The dog sees the cat that sleeps in a house ."
    corruptor, words = Corruptor(TAGGED * 20, seed=1), sentence.split()
    kinds = set()
    for _ in range(300):
        corrupted, is_fault = corruptor.corrupt(words)
        assert corrupted != words
        assert len(is_fault) == len(corrupted)
        assert any(is_fault)
        # What is not marked is in the sentence, too.
        assert all(word in words for word, fault in zip(corrupted, is_fault, strict=True) if not fault)
        kinds.add(" ".join(corrupted))
    assert "The dog see the cat that sleeps in a house ." in kinds
    assert "The dog sees the cat that sleeps in ." in kinds
    assert len(kinds) > 100


@pytest.mark.parametrize("construction", SUITE)
def test_plain_sentences_are_above_their_corruptions(load, construction):
    chance, sentences = random.Random(SEED), SUITE[construction][:12]
    texts = sentences + [corrupt(sentence, chance) for sentence in sentences]
    scores = load("gruen").compute(predictions=texts, components=["grammaticality"])["scores"]
    assert sum(scores[:12]) > sum(scores[12:]) + 1.2
