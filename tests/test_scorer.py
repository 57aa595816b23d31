"""`Scorer` in `datasets`, and by hand; tests/test_ray.py has it in Ray Data."""

import pickle

import numpy as np
import pytest

from tests.conftest import SETS
from text_metrics import Scorer


def test_columns_of_settings(load):
    """In a batch as Ray Data makes it: of arrays of objects."""
    columns = {"texts": SETS, "q": [[0.5] * len(members) for members in SETS]}
    batch = {
        name: np.array([np.array(row, dtype=object) for row in rows] + [None], dtype=object)[:-1]
        for name, rows in columns.items()
    }
    scored = Scorer("vendi_embed", "texts", quality="q", kernel="ngram")(batch)
    expected = load("vendi_embed").compute(predictions=SETS, kernel="ngram")["scores"]
    assert list(scored["vendi_embed"]) == pytest.approx(expected, abs=1e-9)
    assert list(scored["vendi_embed_quality"]) == pytest.approx([score / 2 for score in expected])


@pytest.mark.parametrize("metric", ["vendi_embed", "chamfer_diversity"])
def test_contexts_are_a_column(load, metric):
    prompts = ["Where is the dog?", None, "What do they do?", "Count.", ""]
    batch = {"texts": np.array([np.array(row, dtype=object) for row in SETS], dtype=object), "prompt": prompts}
    scored = Scorer(metric, "texts", contexts="prompt")(batch)[metric]
    assert list(scored) == pytest.approx(load(metric).compute(predictions=SETS, contexts=prompts)["scores"], abs=1e-6)
    assert list(scored) != pytest.approx(load(metric).compute(predictions=SETS)["scores"], abs=1e-3)


def test_datasets_map(load):
    from datasets import Dataset

    texts = [text for members in SETS for text in members]
    scored = Dataset.from_dict({"text": texts}).map(Scorer("gruen", "text"), batched=True, batch_size=5)
    assert scored["gruen"][:] == pytest.approx(load("gruen").compute(predictions=texts)["scores"], abs=1e-6)
    sets = Dataset.from_dict({"texts": SETS})
    scored = sets.map(Scorer("semantic_entropy", "texts", same=0.8), batched=True)
    expected = load("semantic_entropy").compute(predictions=SETS, same=0.8)
    assert scored["semantic_entropy_n_classes"][:] == expected["n_classes_scores"]


def test_a_pickled_copy_scores_the_same():
    scorer = Scorer("self_bleu", "texts", max_order=2, singletons="skip")
    batch = {"texts": np.array([np.array(members) for members in [*SETS, ["one"]]], dtype=object), "id": [1] * 6}
    scored, again = scorer(batch), pickle.loads(pickle.dumps(scorer))(batch)
    assert list(scored) == ["texts", "id", "self_bleu"]
    assert np.isnan(scored["self_bleu"][-1])
    np.testing.assert_array_equal(scored["self_bleu"], again["self_bleu"])


@pytest.mark.parametrize(
    ("metric", "batch", "message"),
    [
        ("vendi_embed", {"texts": ["a b", "c d"]}, r"texts \(row 0\) must be a list of texts. Got 'a b'"),
        ("vendi_embed", {"texts": np.array([["a", "b"], "c d"], dtype=object)}, r"texts \(row 1\)"),
        ("gruen", {"texts": ["A cat sleeps.", ["A dog."]]}, r"texts \(row 1\) must be a text"),
        ("self_bleu", {"texts": [["a", "b"]], "self_bleu": [0.5]}, "column 'self_bleu' already"),
        ("semantic_entropy", {"texts": [["a", "b"]], "semantic_entropy_n_classes": [1]}, "column 'semantic_entropy_n"),
    ],
)
def test_rows_that_cannot_be_scored_are_named(metric, batch, message):
    scorer = Scorer(metric, "texts", **({"same": 0.8} if metric == "semantic_entropy" else {}))
    with pytest.raises((TypeError, ValueError), match=message):
        scorer(batch)


def test_what_cannot_be_is_named():
    with pytest.raises(ValueError, match="probeval compares"):
        Scorer("probeval", "answers")
    with pytest.raises(TypeError, match="'order'"):
        Scorer("vendi_embed", "texts", order=1)
    with pytest.raises(ValueError, match="weights"):
        Scorer("vendi_embed", "texts", weights="shares", kernel="ngram")(
            {"texts": [["a", "b"]], "shares": [[0.5, 0.1]]}
        )
