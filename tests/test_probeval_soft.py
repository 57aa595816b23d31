"""Soft clusters of probeval: words of answers, probabilities, memberships, and the metric with them."""

import numpy as np
import pytest

from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics.probeval.probeval_pipeline import reached
from text_metrics.metrics.probeval.probeval_soft import (
    WEIGHTS,
    matched_shares,
    memberships,
    pair_features,
    same_probability,
    soft_groups,
    words,
)
from text_metrics.metrics.probeval.probeval_vectors import Embeddings

PEOPLE = {
    "kettle": 40,
    "a kettle": 12,
    "electric kettle": 5,
    "pot": 20,
    "saucepan": 9,
    "cup": 5,
    "mug": 4,
    "campfire": 4,
}


def embed(*texts):
    everything = sorted({*texts, *(words(text).content for text in texts)})
    return Embeddings(everything, encode(everything, EncoderSettings())[0])


def counted(table):
    return [{"text": text, "count": count} for text, count in table.items()]


@pytest.mark.parametrize(
    ("text", "content", "head"),
    [
        ("kettle", "kettle", "kettl"),
        ("In the living room.", "living room", "room"),
        ("the end of the day", "end day", "end"),
        ("by using machine guns", "machine guns", "gun"),
        ("farmer’s market", "farmer market", "market"),
        ("D.C.", "dc", "dc"),
        ("for them", "for them", "them"),
        ("...", "...", "..."),
        ("8:00 p.m", "8 00 pm", "pm"),
    ],
)
def test_words_of_an_answer(text, content, head):
    actual = words(text)
    assert (actual.content, actual.head) == (content, head)
    assert actual.head in actual.stems


def test_spelling_variants_say_the_same_for_certain():
    gold = ["show time", "Showtime.", "before dawn", "after dawn"]
    probability = same_probability(gold, gold, embed(*gold))
    assert probability[0, 1] == probability[1, 0] == 1.0
    assert (np.diag(probability) == 1).all()
    assert probability[2, 3] < 1
    assert ((probability >= 0) & (probability <= 1)).all()


def test_features_are_what_their_names_say():
    gold = ["red wine", "the wines", "wine cellar", "tea"]
    embeddings = embed(*gold, "green tea")
    features = dict(zip(WEIGHTS, np.moveaxis(pair_features(["green tea"], gold, embeddings), -1, 0), strict=True))
    (entry,), reference = embeddings.look_up(["green tea"], gold)
    assert features["cosine"][0] == pytest.approx(reference @ entry)
    assert features["shared words"].tolist() == [[0, 0, 0, 0.5]]
    assert features["same head"].tolist() == [[0, 0, 0, 1]]
    center = reference.mean(axis=0)
    expected = (entry - center) @ (reference[3] - center)
    expected /= np.linalg.norm(entry - center) * np.linalg.norm(reference[3] - center)
    assert features["centred cosine"][0, 3] == pytest.approx(expected)
    cosines = np.sort(reference @ entry)[::-1]
    neighbours = np.sort(reference @ reference[3])[::-1]
    assert features["cosine above the neighbours'"][0, 3] == pytest.approx(
        2 * reference[3] @ entry - cosines[1:].mean() - neighbours[1:].mean()
    )
    wines = dict(zip(WEIGHTS, np.moveaxis(pair_features(gold, gold, embeddings), -1, 0), strict=True))
    assert wines["same head"][0, 1] == wines["head in the other"][1, 2] == 1


def test_memberships_are_shares_by_probability():
    probability = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]])
    groups = soft_groups(probability)
    assert groups[0] == groups[1] != groups[2]
    members = np.array([[True, False], [True, False], [False, True]])
    actual = memberships(probability, members, np.array([4.0, 1.0, 1.0]))
    # The square roots of the counts are the weights, (2 * 1 + 0.8) / 3 and 0.1, and that of an answer's own count.
    expected = np.array([2 * ((2 + 0.8) / 3) ** 2, 0.1**2])
    assert actual[0] == pytest.approx(expected / expected.sum())
    # An answer that equals none has no count of its own.
    (new,) = memberships(np.array([[0.8, 0.8, 0.4]]), members, np.array([4.0, 1.0, 1.0]))
    assert new == pytest.approx(np.array([0.8, 0.2]))
    assert actual.sum(axis=1) == pytest.approx(1)
    assert soft_groups(np.ones((1, 1))).tolist() == [0]
    assert memberships(np.zeros((1, 3)), members, np.ones(3)) == pytest.approx(np.array([[0.5, 0.5]]))


def test_answers_distributed_as_people_s_diverge_by_nothing(probeval):
    people = [counted(PEOPLE)]
    result = probeval.compute(predictions=people, references=people, clustering="soft", details=True)
    assert result["probeval"] == pytest.approx(0, abs=1e-12)
    assert (result["wrong_rate"], result["coverage"]) == (0, 1)
    assert "|clustering:soft|matcher:soft|threshold:0.475|" in result["signature"]
    (row,) = result["details"]
    assert sorted(answer["text"] for entry in row["clusters"] for answer in entry["answers"]) == sorted(PEOPLE)
    assert sum(entry["count"] for entry in row["clusters"]) == pytest.approx(sum(PEOPLE.values()))
    first = {answer["text"] for answer in row["clusters"][0]["answers"]}
    assert {"kettle", "a kettle", "electric kettle"} <= first
    kettle = next(answer for answer in row["assignments"] if answer["text"] == "kettle")
    assert max(kettle["clusters"], key=kettle["clusters"].get) == "c_1"
    assert 0 < min(kettle["clusters"].values()) < max(kettle["clusters"].values()) < 1


def test_an_answer_is_wrong_by_degrees_around_the_threshold():
    probability = np.array([[0.1, 0.35], [0.475, 0.2], [0.5375, 0.5375], [0.6, 0.0], [1.0, 0.3]])
    assert matched_shares(probability, 0.475)[:, 0] == pytest.approx([0, 0.5, 0.75, 1, 1])
    # The ends are in [0, 1].
    assert matched_shares(probability, 0.05)[:, 0] == pytest.approx([1, 1, 1, 1, 1])
    assert matched_shares(np.array([[0.0], [0.05], [0.1]]), 0.05)[:, 0] == pytest.approx([0, 0.5, 1])
    assert matched_shares(probability, 0.0)[:, 0].tolist() == [1, 1, 1, 1, 1]
    assert matched_shares(probability, 1.0)[:, 0].tolist() == [0, 0, 0, 0, 1]


def test_an_answer_that_is_mostly_wrong_covers_nothing():
    weights = np.array([[0.3, 0.1, 0.6], [0.3, 0.2, 0.5], [0.2, 0.2, 0.6], [0.5, 0.5, 0.0]])
    assert reached(weights).tolist() == [[False, False], [True, False], [False, False], [True, True]]
