"""gruen: the penalties of a text, their details, and degenerate input."""

import itertools
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import approx, own_data
from tests.references import gruen as reference
from text_metrics.metrics._core.core_language import find_unread
from text_metrics.metrics.gruen import gruen_focus, gruen_redundancy, gruen_released, gruen_text

EXAMPLES = own_data("gruen_examples.json")

GOOD = "The doctor told me the news. She was kind, and she took her time."
TEXTS = [
    GOOD,
    "The baker opened her shop at six. The baker opened her shop at six this morning. Nobody came before eight.",
    "My bicycle has a flat tyre. Photosynthesis turns light into sugar. The bicycle needs a new tyre.",
    "Rain fell all night long.",
]
WITHOUT_MODELS = {"components": ["non_redundancy"]}


# Sentences.


@pytest.fixture(params=["examples", "goldens"])
def original(request):
    """Return a function that gives what the original computed, of our own words and of others."""
    if request.param == "examples":
        return EXAMPLES.get
    folder = request.getfixturevalue("shared_data") / "goldens"
    return lambda name: json.loads((folder / f"gruen_{name}_goldens.json").read_text(encoding="utf-8"))


def test_normalization_is_that_of_the_original(original):
    for row in original("preprocess"):
        line = gruen_released.normalize(row["text"])
        assert [line] * gruen_text.is_of_two_words(line) == row["normalized"]


@settings(max_examples=150)
@given(st.text(alphabet="a12. \n\tx,5", max_size=40), st.text(alphabet="1.", max_size=20))
def test_decimals_within_decimals_equal_the_reference(first, second):
    text = f"{first} and {second}"
    assert gruen_released.normalize(text) == reference.normalize(text)


@pytest.mark.parametrize("example", EXAMPLES["read"], ids=lambda example: example["text"][:20])
def test_words_are_read_as_they_are(example):
    assert gruen_text.split(example["text"]).pieces == example["sentences"]


@settings(max_examples=100)
@given(st.text(alphabet="aBI. !?…'", max_size=30))
def test_splitting_changes_nothing_but_space(text):
    assert "".join("".join(gruen_text.split_block(text)).split()) == "".join(text.split())


# Redundancy.


def test_redundancy_is_that_of_the_original(original):
    for row in original("redundancy"):
        assert 0.0 - 0.1 * gruen_released.find_redundancy(row["sentences"]).n_flags == row["non_redundancy"]


SENTENCES = st.lists(
    st.one_of(
        st.lists(st.sampled_from(["a", "b", "the", "cat", "sat on", "it, "]), max_size=9).map(" ".join),
        st.text(alphabet="ab c\n", max_size=30),
        st.tuples(st.text(alphabet="abcdef ", max_size=8), st.integers(1, 40)).map(lambda drawn: drawn[0] * drawn[1]),
    ),
    max_size=7,
)


@settings(max_examples=300)
@given(SENTENCES)
@example(["a b c d e f g h i j " * 12, "b c d e f g h i j k " * 12])
@example(["", "a", " "])
def test_redundancy_equals_the_reference(sentences):
    redundancy = gruen_released.find_redundancy(sentences)
    expected = reference.redundant_pairs(sentences)
    assert redundancy.pairs == expected
    assert redundancy.n_pairs == len(expected)
    assert redundancy.n_flags == sum(len(flags) for _, _, flags in expected)


# Focus.


def at(*degrees):
    return np.array([[math.cos(math.radians(angle)), math.sin(math.radians(angle))] for angle in degrees])


@pytest.mark.discrete
@pytest.mark.parametrize("rotation", range(0, 360, 40))
def test_a_tie_that_equals_the_threshold_keeps_the_focus_in_any_rotation(rotation):
    # The cosine of 60 degrees is the threshold; of the bonds of four equal parts the first is broken.
    turned = at(rotation, rotation + 60).astype(np.float32)
    assert gruen_focus.embedding_breaks(turned, np.full(2, 20), 0.5) == []
    turned = at(*(rotation + angle for angle in (0, 0, 90, 90, 180, 180, 270, 270))).astype(np.float32)
    expected = gruen_focus.embedding_breaks(at(0, 0, 90, 90, 180, 180, 270, 270), np.full(8, 1), -0.9)
    assert [x.place for x in gruen_focus.embedding_breaks(turned, np.full(8, 1), -0.9)] == [x.place for x in expected]


@pytest.mark.parametrize(
    ("vectors", "threshold", "places"),
    [
        (at(0, 60), 0.108, []),
        (at(0, 60), 0.6, [0]),
        (at(0, 10, 97), 0.108, [1]),
        # A middle that is off twins.
        (at(0, 70, 0), 0.2, [0, 1]),
        # No sentence is a stranger to its half, and both halves are to each other.
        (at(0, 10, 0, 10, 80, 90, 80, 90), 0.108, [3]),
        (np.zeros((2, 3)), 0.108, [0]),
        (at(0), 0.108, []),
        (np.empty((0, 2)), 0.108, []),
    ],
)
def test_places_where_focus_is_lost(vectors, threshold, places):
    breaks = gruen_focus.embedding_breaks(vectors, np.full(len(vectors), 20), threshold)
    assert [x.place for x in breaks] == places
    assert [x.similarity for x in breaks] == pytest.approx([vectors[i] @ vectors[i + 1] for i in places])


def test_a_short_sentence_has_its_bonus_in_the_company_of_long_ones(load):
    vectors = {True: [1.0, 0.0], False: [0.05, 1.0]}
    encoder = SimpleNamespace(encode=lambda texts: np.array([vectors["sea" in text] for text in texts]))
    texts = [f"The sea is {'very ' * 20} wide. The sea is {'very ' * 20} deep.", "The sea sleeps. We go home."]
    result = load("gruen").compute(predictions=texts, components=["focus"], model=encoder)
    assert result["scores"] == [1.0, 1.0]
    # Without it, the two lose the focus.
    texts[1] = f"The sea sleeps {'so ' * 20} deep. We go {'so ' * 20} home."
    assert load("gruen").compute(predictions=texts, components=["focus"], model=encoder)["scores"] == [1.0, 0.9]


WORDS = {
    "cat": [0.0, 1.0],
    "kitten": [0.0, 1.2],
    "sleeps": [1.0, 0.0],
    "rests": [1.1, 0.0],
    "shares": [30.0, 0.0],
    "fell": [0.0, 30.0],
}


def test_word_movers_similarity(load):
    text = "The cat sleeps. The kitten rests, rests. The shares fell."
    settings = {"components": ["focus"], "vectors": WORDS, "details": True}
    result = load("gruen").compute(predictions=[text], focus_threshold=1.0, **settings)
    sides = [["cat", "sleeps"], ["kitten", "rests", "rests"], ["shares", "fell"]]
    distances = [reference.word_movers_distance(a, b, WORDS) for a, b in itertools.pairwise(sides)]
    breaks = result["details"][0]["focus_breaks"]
    assert [x["sentences"] for x in breaks] == [[0, 1], [1, 2]]
    assert [x["similarity"] for x in breaks] == pytest.approx([1 / (1 + way) for way in distances])
    result = load("gruen").compute(predictions=[text], **settings)
    assert [x["sentences"] for x in result["details"][0]["focus_breaks"]] == [[1, 2]]


def test_the_original_takes_a_distance_for_a_similarity():
    mover = gruen_released.ReleasedWordMover(WORDS)
    (focus_break,) = mover.breaks(["The cat sleeps.", "The kitten rests."], 0.05)
    distance = reference.word_movers_distance(["cat", "sleeps"], ["kitten", "rests"], WORDS)
    assert focus_break.similarity == pytest.approx(1 / (1 + math.exp(7 - distance)))
    assert mover.breaks(["The cat sleeps.", "The shares fell."], 0.05) == []
    # The second sentence has no known word.
    assert mover.breaks(["The cat sleeps.", "Of the and."], 1.0) == []


@pytest.fixture
def vectors(tmp_path):
    """The same vectors in a folder of spaCy; tests/test_probeval.py reads the other formats."""
    pipeline = pytest.importorskip("spacy").blank("en")
    for word, vector in WORDS.items():
        pipeline.vocab.set_vector(word, np.array(vector, dtype=np.float32))
    pipeline.add_pipe("sentencizer")
    pipeline.to_disk(tmp_path / "words_md")
    return tmp_path / "words_md"


def test_word_vectors_of_spacy(load, vectors):
    texts = ["The cat sleeps. The kitten rests. The shares fell."]
    settings = {"components": ["focus"], "details": True, "focus_threshold": 0.9}
    expected = load("gruen").compute(predictions=texts, vectors=WORDS, **settings)
    result = load("gruen").compute(predictions=texts, vectors=str(vectors), **settings)
    assert result["details"] == approx(expected["details"])
    assert f"vectors:{vectors.name}@" in result["signature"]
    assert "model:" not in result["signature"]


# The whole.


def test_a_reader_sees_why(load):
    result = load("gruen").compute(predictions=TEXTS, details=True)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    for text, score, details in zip(TEXTS, result["scores"], result["details"], strict=True):
        assert " ".join(sentence["text"] for sentence in details["sentences"]) == text
        assert all(0 <= sentence["likelihood"] <= 1 for sentence in details["sentences"])
        points = [details[name] for name in ("grammaticality", "non_redundancy", "focus", "coherence")]
        assert score == pytest.approx(min(1, max(0, sum(point or 0.0 for point in points))))
    pair = result["details"][1]["redundant_pairs"][0]
    assert pair["sentences"] == [0, 1]
    assert set(pair["flags"]) <= set(gruen_redundancy.FLAGS)
    assert pair["flags"]
    assert [x["sentences"] for x in result["details"][2]["focus_breaks"]]
    for name in ("grammaticality", "non_redundancy", "focus"):
        assert result[name] == pytest.approx(np.mean([details[name] for details in result["details"]]))
    assert result["gruen"] == pytest.approx(np.mean(result["scores"]))


def test_components_are_scored_by_themselves(load):
    whole = load("gruen").compute(predictions=TEXTS)
    for name in ("grammaticality", "non_redundancy", "focus"):
        result = load("gruen").compute(predictions=TEXTS, components=[name], details=True)
        assert result[name] == pytest.approx(whole[name], abs=1e-6)
        omitted = {"grammaticality", "non_redundancy", "focus", "coherence"} - {name}
        assert all(result[other] is None and result["details"][0][other] is None for other in omitted)
        assert f"components:{name}|" in result["signature"]
    # Without grammaticality, penalties come off 1.
    assert load("gruen").compute(predictions=TEXTS[:2], **WITHOUT_MODELS)["scores"] == pytest.approx([1.0, 0.6])
    mixed = load("gruen").compute(predictions=TEXTS, components={"focus", "non_redundancy"})
    assert "components:non_redundancy+focus|" in mixed["signature"]


# Degenerate input.


def test_the_encoder_is_signed_where_nothing_is_embedded(load):
    """A sentence alone is compared with none."""
    calls = []
    encoder = SimpleNamespace(encode=calls.append, signature_name="mine")
    for model, name in ((encoder, "given(mine)"), ("all-MiniLM-L6-v2", "")):
        result = load("gruen").compute(predictions=["The dog runs home."], components=["focus"], model=model)
        assert f"|model:{name}" in result["signature"]
        assert result["focus"] == 0
    assert calls == []


def test_a_text_without_sentences_scores_0(load):
    odd = ["", "  \n ", "Yes.", "...", "🐈", "\x00\x01"]
    with pytest.warns(UserWarning, match="6 of 7 texts") as caught:
        result = load("gruen").compute(predictions=[*odd, GOOD], details=True)
    assert len(caught) == 1
    assert result["scores"][:6] == [0.0] * 6
    assert result["scores"][6] > 0.3
    assert result["n_sentences"] == [0] * 6 + [2]
    assert result["n_fragments"] == [0] * 7
    assert result["details"][0] == {
        "grammaticality": 0.0,
        "non_redundancy": 0.0,
        "focus": 0.0,
        "coherence": result["details"][6]["coherence"],
        "sentences": [],
        "redundant_pairs": [],
        "n_redundant_pairs": 0,
        "focus_breaks": [],
        "order": [],
    }


CODE = "def double(x):\n    y = 2 * x\n    return y\n\nprint(double(3))"


# Short texts are judged together, and by themselves say nothing.
@pytest.mark.parametrize(("texts", "other_language", "code"), EXAMPLES["languages and code"])
def test_texts_that_are_not_english_prose_are_found(texts, other_language, code):
    assert find_unread(texts) == (other_language, code)


def test_texts_that_are_not_english_prose_are_a_warning(load):
    texts = ["Der Arzt hat mir die Nachricht gesagt. Ich ging nach Hause.", CODE, GOOD]
    with pytest.warns(UserWarning, match="1 in another language and 1 source code") as caught:
        load("gruen").compute(predictions=texts, components=["non_redundancy"])
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"backbone": "tiny"}, ValueError, "backbone .*'tiny'"),
        ({"components": "focus"}, TypeError, "components .*'focus'"),
        ({"components": []}, TypeError, "components"),
        ({"components": ["style"]}, ValueError, "components .*'style'"),
        ({"components": ["coherence"]}, ValueError, "components has 'coherence'"),
        ({"lm_model": "x"}, ValueError, "lm_model"),
        ({"focus_threshold": "low"}, TypeError, "focus_threshold .*'low'"),
        ({"markup": "html"}, ValueError, "markup .*'html'"),
        ({"parity": True}, ValueError, "vectors is None"),
        ({"parity": True, "backbone": "compact"}, ValueError, "backbone must be 'bert'"),
        ({"parity": True, "components": ["coherence"]}, ValueError, "components"),
    ],
)
def test_wrong_settings_are_refused(load, arguments, error, message):
    with pytest.raises(error, match=message):
        load("gruen").compute(predictions=[GOOD], **arguments)


def test_ten_texts_stand_as_a_reader_ranks_them(load):
    from scipy.stats import spearmanr

    scores = load("gruen").compute(predictions=EXAMPLES["ranked"])["scores"]
    assert spearmanr(scores, range(10))[0] < -0.75
    assert np.mean(scores[:3]) > max(scores[7:]) + 0.25
    assert min(scores[1:3]) > 0.75
    assert max(scores[8:]) < 0.25


def test_the_words_that_are_wrong_are_pointed_at(load):
    result = load("gruen").compute(predictions=["The doctor told me the. The doctor told me the news."], details=True)
    wrong, right = result["details"][0]["sentences"]
    assert wrong["suspects"] == ["the."]
    assert right["suspects"] == []
