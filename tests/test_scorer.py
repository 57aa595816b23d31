"""`Scorer` in `datasets`, and by hand; tests/test_ray.py has it in Ray Data."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.conftest import SETS, TEXTS, metrics_of
from text_metrics import Scorer


def test_columns_of_settings(load):
    """In a batch as Ray Data makes it: of arrays of objects."""
    columns = {"texts": SETS, "q": [[0.5] * len(members) for members in SETS]}
    batch = {}
    for name, rows in columns.items():
        batch[name] = np.array([np.array(row, dtype=object) for row in rows] + [None], dtype=object)[:-1]
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
    scored = scorer(batch)
    again = pickle.loads(pickle.dumps(scorer))(batch)
    assert list(scored) == ["texts", "id", "self_bleu"]
    assert np.isnan(scored["self_bleu"][-1])
    np.testing.assert_array_equal(scored["self_bleu"], again["self_bleu"])


def as_objects(values):
    """Make an array of objects, as of a column of lists."""
    return np.array([*values, None], dtype=object)[:-1]


# Rows without texts, and how their values of arguments are.
NOTHING = [None, [], float("nan"), np.array([], dtype=object)]


@pytest.mark.parametrize("metric", metrics_of("sets", "texts"))
def test_rows_without_texts_have_no_score(load, metric):
    """They end no job, and no other row has another score for them."""
    rows = TEXTS if metric == "gruen" else SETS
    nothing = [None, float("nan")] if metric == "gruen" else NOTHING
    values = [nothing[0], *rows]
    values += nothing[1:]
    batch = {"texts": as_objects(values), "id": list(range(len(values)))}
    scored = Scorer(metric, "texts")(batch)
    expected = load(metric).compute(predictions=rows)["scores"]
    assert list(scored[metric][1 : len(rows) + 1]) == pytest.approx(expected, abs=1e-6)
    is_nothing = [True] + [False] * len(rows) + [True] * (len(nothing) - 1)
    assert np.isnan(scored[metric]).tolist() == is_nothing
    assert scored["id"] == batch["id"]
    # A batch of nothing else has the same columns.
    empty = Scorer(metric, "texts")({"texts": nothing})
    assert list(empty) == [name for name in scored if name != "id"]
    assert np.isnan(empty[metric]).all()


def test_arguments_of_rows_without_texts_are_not_needed(load):
    quality = [[0.5] * len(members) for members in SETS]
    batch = {"texts": [None, *SETS], "q": [None, *quality], "prompt": [None, "Go.", *[None] * 4]}
    scored = Scorer("vendi_embed", "texts", quality="q", contexts="prompt")(batch)
    expected = load("vendi_embed").compute(predictions=SETS, quality=quality, contexts=batch["prompt"][1:])
    assert list(scored["vendi_embed_quality"][1:]) == pytest.approx(expected["quality_scores"], abs=1e-6)
    assert np.isnan(scored["vendi_embed_quality"][0])


def test_a_set_of_one_text_has_no_score():
    batch = {"texts": [["a b c d"], ["a b c d", "a b c d"]]}
    for metric in ("self_bleu", "chamfer_diversity"):
        assert np.isnan(Scorer(metric, "texts")(batch)[metric]).tolist() == [True, False]
        with pytest.raises(ValueError, match=r"has one text.*predictions are texts"):
            Scorer(metric, "texts", singletons="error")(batch)


@pytest.mark.parametrize("metric", metrics_of("sets", "texts"))
@pytest.mark.parametrize("batch", [{}, {"texts": [], "id": []}, pa.table({"texts": pa.array([], pa.string())})])
def test_an_empty_batch_is_an_empty_result(metric, batch):
    scored = Scorer(metric, "texts")(batch)
    rows = Scorer(metric, "texts")({"texts": [TEXTS[0] if metric == "gruen" else SETS[0]]})
    added = [name for name in rows if name != "texts"]
    assert type(scored) is type(batch)
    names = list(scored) if isinstance(batch, dict) else scored.column_names
    given = list(batch) if isinstance(batch, dict) else batch.column_names
    assert names == given + added
    assert all(len(scored[name]) == 0 for name in added)


class Frame:
    """A table that pyarrow can read, and that can be made of one of its tables, as the DataFrames of polars."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)

    def to_pydict(self):
        return self.table.to_pydict()


ROWS = pa.table({"texts": [*SETS, None, []], "prompt": ["Go.", None, "Rain.", "Count.", "", None, "x"]})
TABLES = {
    "table": ROWS,
    "chunks": pa.concat_tables([ROWS[:2], ROWS[2:]]),
    "record batch": ROWS.combine_chunks().to_batches()[0],
    "pandas": ROWS.to_pandas(),
    "pandas, of pyarrow": ROWS.to_pandas(types_mapper=pd.ArrowDtype),
    "another library": Frame(ROWS),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_of_the_same_type(load, name):
    scored = Scorer("self_bleu", "texts")(TABLES[name])
    assert type(scored) is type(TABLES[name])
    columns = scored.to_dict("list") if isinstance(scored, pd.DataFrame) else scored.to_pydict()
    assert list(columns) == ["texts", "prompt", "self_bleu"]
    expected = load("self_bleu").compute(predictions=SETS)["scores"]
    assert columns["self_bleu"] == pytest.approx([*expected, np.nan, np.nan], nan_ok=True)
    if name == "table":
        scored = Scorer("vendi_embed", "texts", contexts="prompt")(ROWS)["vendi_embed"].to_pylist()
        expected = load("vendi_embed").compute(predictions=SETS, contexts=ROWS["prompt"].to_pylist()[:5])["scores"]
        assert scored[:5] == pytest.approx(expected, abs=1e-6)


def test_keys_are_those_of_the_commands():
    """Expressions, as for the batches of a service, and columns whose names could be some."""
    choices = []
    for members in SETS:
        choices.append({"choices": [{"message": {"content": text}} for text in members]})
    expected = Scorer("self_bleu", "texts")({"texts": SETS})["self_bleu"]
    for batch in (
        {"response": [{"body": row} for row in choices]},
        {"response": as_objects([{"body": {"choices": np.array(row["choices"])}} for row in choices])},
        pa.table({"response": [{"body": row} for row in choices], "id": [*range(5)]}),
    ):
        scored = Scorer("self_bleu", "response.body.choices[].message.content")(batch)["self_bleu"]
        assert list(np.asarray(scored)) == pytest.approx(list(expected))
    either = {"a": [*SETS[:2], None, None, None], "b": [None, None, *SETS[2:]]}
    assert list(Scorer("self_bleu", "a || b")(either)["self_bleu"]) == pytest.approx(list(expected))
    named = {"a || b": SETS}
    assert list(Scorer("self_bleu", "a || b")(named)["self_bleu"]) == pytest.approx(list(expected))


@pytest.mark.parametrize(
    ("columns", "settings", "message"),
    [
        ({}, {}, r"the batch has no 'texts': it has id"),
        ({"texts": SETS}, {"contexts": "prompt"}, r"the batch has no 'prompt'"),
        ({"answers": SETS}, {"text_key": "response.texts"}, r"the batch has no 'response.texts'"),
        ({"texts": [["a"], ["b", None]]}, {}, r"texts \(row 1, text 1\) must be a text. Got None"),
        ({"texts": [None, ["b", "c"]], "q": [None, [1, 2]]}, {"quality": "q"}, r"row 1.*'q' of text 1.*quality. Got 2"),
        ({"texts": [None, ["b", "c"]], "q": [None, None]}, {"quality": "q"}, r"row 1.*has no 'q'.*quality"),
        ({"texts": [["b", "c"]], "w": [[0.5, 0.1]]}, {"weights": "w"}, r"weights must sum to 1.*weights w"),
    ],
)
def test_errors_name_the_column(columns, settings, message):
    scorer = Scorer("vendi_embed", **{"text_key": "texts", "kernel": "ngram", **settings})
    with pytest.raises((TypeError, ValueError), match=message):
        scorer({"id": [1] * len(next(iter(columns.values()), [1])), **columns})


@pytest.mark.parametrize("batch", [None, 3, [{"texts": ["a", "b"]}]])
def test_what_is_no_batch_is_named(batch):
    with pytest.raises(TypeError, match="a batch must be"):
        Scorer("self_bleu", "texts")(batch)


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
    with pytest.raises(ValueError, match="probeval"):
        Scorer("probeval", "answers")
    with pytest.raises(TypeError, match="'order'"):
        Scorer("vendi_embed", "texts", order=1)
