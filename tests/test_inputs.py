"""Bad input to every metric: a TypeError or ValueError that names the parameter and the item."""

import json
import math
import re

import datasets
import evaluate
import numpy as np
import pandas
import pytest
import torch

from tests.conftest import METRICS, approx, metrics_of
from text_metrics.metrics._core.core_vectors import load_vectors

EMBEDDED = ("vendi_embed", "chamfer_diversity")
GOOD = ["a b", "c d"]
PEOPLE = [["a kettle"] * 3 + ["a pot"] * 2 + ["a cup"]]
ANSWERS = [["kettle", "pot", "helicopter"]]
# A number beyond all floats, and one of more digits than Python prints.
HUGE = 10**400
LONG = 10**5000

# Forms of predictions, and what the error names.
PREDICTIONS = [
    (None, ""),
    ([], ""),
    ([[]], "[0]"),
    ([["a", "b"], []], "[1]"),
    ("a bare string", ""),
    (b"bytes", ""),
    (3, ""),
    ({"a": 1}, ""),
    ({"a", "b"}, ""),
    ([1, 2], "[0]"),
    ([None], "[0]"),
    (["a", None], "[1]"),
    (["a", ["b"]], "[1]"),
    ([["a", "b"], "c"], "[1]"),
    ([["a", "b"], ["c", 4.5]], "[1][1]"),
    ([["a", "b"], None], "[1]"),
    (["a", "half \ud800"], "[1]"),
    ([["a", "b"], ["c", "\udfff"]], "[1][1]"),
    (np.array([1.0, 2.0]), "[0]"),
    ([{"text": "a"}], "[0]"),
    (pandas.DataFrame({"text": GOOD}), ""),
    (datasets.Dataset.from_dict({"text": GOOD}), ""),
]


@pytest.mark.parametrize("name", metrics_of("sets", "texts"))
def test_predictions(load, name):
    metric = load(name)
    for predictions, item in PREDICTIONS:
        # A metric of texts takes no sets of them.
        is_nested = isinstance(predictions, list) and isinstance(next(iter(predictions), None), list)
        item = "[0]" if is_nested and metric.items == "texts" else item
        for call in (metric.compute, metric.add_batch):
            with pytest.raises((TypeError, ValueError), match=re.escape(f"predictions{item} ")):
                call(predictions=predictions)
    with pytest.raises(TypeError, match="'texts'"):
        metric.compute(texts=GOOD)
    # Pieces are flat or nested, all of them. What was added stays after an error.
    metric.add_batch(predictions=GOOD)
    with pytest.raises((TypeError, ValueError), match=r"^predictions"):
        metric.add_batch(predictions=[["c", "d"]])
    assert metric.compute() == metric.compute(predictions=GOOD)


@pytest.mark.parametrize("name", metrics_of("sets"))
def test_other_sequences_are_lists_too(load, name):
    expected = load(name).compute(predictions=GOOD)
    column = datasets.Dataset.from_dict({"t": GOOD})["t"]
    for predictions in (tuple(GOOD), np.array(GOOD), pandas.Series(GOOD), column):
        assert load(name).compute(predictions=predictions) == expected
    assert load(name).compute(predictions=np.array([GOOD])) == expected


# Settings that are refused for two texts, and by which metrics.
SETTINGS = [
    (metrics_of("sets"), "set_size", [0, -2, 2.5, "2", True, 3, HUGE, LONG]),
    ((*metrics_of("sets"), "gruen", "probeval"), "confidence", [0, 1, 95, math.nan, True, "95%", HUGE, -LONG]),
    (metrics_of("sets"), "details", ["yes", 2]),
    (("chamfer_diversity", "self_bleu"), "singletons", ["drop", None]),
    (EMBEDDED, "quality", [[0.5], [0.5, 1.5], [-0.1, 0.5], [0.5, math.nan], [0.5, None], [0.5, "1"], [0.5, HUGE], 0.5]),
    (EMBEDDED, "quality", [[[0.5]], np.ma.masked_greater([0.5, 9], 5)]),
    (EMBEDDED, "embeddings", [[[1.0, 0.0]], [1.0, 2.0], np.empty((2, 0)), [[1.0, 0.0], [0.0, 0.0]], "text"]),
    (EMBEDDED, "embeddings", [[[1.0, math.nan], [0.0, 1.0]], [[1.0, 0.0], [0.0, math.inf]], [["a"], ["b"]]]),
    (EMBEDDED, "embeddings", [[[1.0, 2.0], [1.0]]]),
    (EMBEDDED, "embeddings", [np.ma.masked_greater([[1.0, 0.0], [9.0, 1.0]], 5)]),
    (EMBEDDED, "model", [3, "", "./nowhere", "a" * 5000]),
    (EMBEDDED, "device", ["abacus", "meta", "cuda:99", HUGE]),
    (EMBEDDED, "batch_size", [0, 1.5, HUGE]),
    (EMBEDDED, "cache_dir", [3, "", __file__, f"{__file__}/below"]),
    (("vendi_embed",), "weights", [[0.5, 0.4], [4, 5], [1.5, -0.5], [math.nan, 1.0], [[0.5], [0.5]]]),
    (("vendi_embed",), "q", [-1, math.nan, "one", None, True, 1j, HUGE, LONG, [], [1, -2]]),
    (("vendi_embed",), "kernel", ["rbf", np.eye(2)]),
    (("self_bleu",), "max_order", [0, 1.5, 101, HUGE]),
    (("self_bleu",), "aggregate", ["mean"]),
    (("self_bleu",), "smoothing", ["exp"]),
    (("self_bleu",), "tokenizer", ["moses", None, 3, ["13a"], np.array(["a", "b"])]),
    (("semantic_entropy",), "same", [HUGE]),
    (("semantic_entropy",), "patience", [2]),
    (("gruen",), "focus_threshold", [2, HUGE, -LONG]),
    (("probeval",), "threshold", [2, 1 + 0j, np.complex128(1), HUGE]),
    (("probeval",), "smoothing", [math.inf, 1e308, LONG]),
    (("probeval",), "seed", [-1, 2**40]),
    (("probeval",), "vectors", ["nowhere.vec", "a" * 5000, {"kettle": ["a"]}]),
]


@pytest.mark.parametrize(("names", "parameter", "values"), SETTINGS)
def test_settings(load, names, parameter, values):
    for name in names:
        texts = {"predictions": ANSWERS, "references": PEOPLE} if name == "probeval" else {"predictions": GOOD}
        for value in values:
            with pytest.raises((TypeError, ValueError), match=parameter) as caught:
                load(name).compute(**texts | {parameter: value})
            assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("parameter", ["quality", "weights", "embeddings"])
def test_the_item_is_named_in_its_set(load, parameter):
    bad = {
        "quality": [[0.5, 0.5], [0.5, 7]],
        "weights": [[0.5, 0.5], [1.5, -0.5]],
        "embeddings": [np.eye(2), [[0, 1], [0, math.nan]]],
    }
    with pytest.raises(ValueError, match=rf"{parameter} .*set 1, text 1"):
        load("vendi_embed").compute(predictions=[GOOD, GOOD], **{parameter: bad[parameter]})
    for short in ([[0.5, 0.5]], [[0.5, 0.5], [0.5]], [[0.5, 0.5], 0.5]):
        with pytest.raises((TypeError, ValueError), match=parameter):
            load("vendi_embed").compute(predictions=[GOOD, GOOD], **{parameter: short})
    with pytest.raises(ValueError, match=r"weights .*quality="):
        load("vendi_embed").compute(predictions=[GOOD, GOOD], weights=[[0.5, 0.5], [4, 5]])


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_is_given_for_texts_may_be_flat_or_nested(load, name, rng):
    rows = rng.normal(size=(4, 3))
    sets = [GOOD, GOOD]
    given = {"quality": [[0.1, 0.2], [0.3, 0.4]], "embeddings": [rows[:2], rows[2:]]}
    flat = {"quality": [0.1, 0.2, 0.3, 0.4], "embeddings": rows}
    if name == "vendi_embed":
        given["weights"] = [[0.25, 0.75], [0.5, 0.5]]
        flat["weights"] = [0.25, 0.75, 0.5, 0.5]
    expected = load(name).compute(predictions=sets, **given)
    assert load(name).compute(predictions=sets, **flat) == expected
    assert load(name).compute(predictions=GOOD * 2, set_size=2, **flat) == expected
    given["embeddings"] = rows.reshape(2, 2, 3)
    assert load(name).compute(predictions=sets, **given) == expected
    with pytest.raises(ValueError, match=r"embeddings\[1\] must have 2 rows"):
        load(name).compute(predictions=sets, embeddings=[rows[:2], rows[:1]])


FORMS = {
    "list": np.ndarray.tolist,
    "rows": list,
    "float16": np.float16,
    "float32": np.float32,
    "tensor": torch.tensor,
    "bfloat16": lambda values: torch.tensor(values).bfloat16(),
    "list of a tensor": lambda values: list(torch.tensor(values).bfloat16()),
    "with gradients": lambda values: torch.tensor(values, requires_grad=True),
    "without masked entries": np.ma.array,
    "Fortran": np.asfortranarray,
    "negative strides": lambda values: values[::-1].copy()[::-1],
}


FOUR = list("abcd")
PAIRS = [["a", "b"], ["c", "d"]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("names", "predictions", "argument", "values"),
    [
        (EMBEDDED, FOUR, "embeddings", [[1, 0], [0, 1], [1, 1], [1, 2]]),
        (EMBEDDED, PAIRS, "embeddings", [[[1, 0], [0, 1]], [[1, 1], [1, 2]]]),
        (EMBEDDED, FOUR, "similarity", np.eye(4) * 0.75 + 0.25),
        (EMBEDDED, PAIRS, "similarity", [[[1, 0.5], [0.5, 1]], [[1, 0.25], [0.25, 1]]]),
        (EMBEDDED, FOUR, "quality", [0.5, 0.25, 1, 0]),
        (EMBEDDED, PAIRS, "quality", [[0.5, 0.25], [1, 0]]),
        (EMBEDDED, PAIRS, "context_embeddings", [[1, 0, 1], [0.5, 1, 2]]),
        (["vendi_embed"], FOUR, "weights", [0.5, 0.25, 0.25, 0]),
        (["vendi_embed"], PAIRS, "weights", [[0.5, 0.5], [0.25, 0.75]]),
        (["vendi_embed"], FOUR[:1], "weights", [[1]]),
    ],
)
def test_numbers_come_in_any_form_of_an_array(load, tmp_path, names, predictions, argument, values, form):
    """Values that bfloat16 holds exactly."""
    values = np.array(values, dtype=np.float64)
    np.save(tmp_path / "values.npy", values)
    rows = np.random.default_rng(0).standard_normal((sum(map(len, predictions)), 3))
    call = {"predictions": predictions}
    if argument not in ("embeddings", "similarity"):
        call["embeddings"] = rows
    for name in names:
        expected = load(name).compute(**call | {argument: values})
        for given in (FORMS[form](values), np.load(tmp_path / "values.npy", mmap_mode="r")):
            assert load(name).compute(**call | {argument: given}) == expected


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("chamfer_diversity", {}),
        *(("self_bleu", {"max_order": 1, "aggregate": aggregate}) for aggregate in ("set", "corpus", "sentence")),
    ],
)
def test_sets_of_one_text(load, name, settings):
    compute = load(name).compute
    sets = [GOOD, ["alone"], ["a b", "a c"]]
    for predictions, item in ((["alone"], "predictions"), (sets, r"predictions \(set 1\)")):
        with pytest.raises(ValueError, match=f"{item} .*singletons='skip'"):
            compute(predictions=predictions)
    quality = {} if name == "self_bleu" else {"quality": [[0.9, 0.5], [0.0], [1.0, 0.2]]}
    given = settings | quality
    result = compute(predictions=sets, singletons="skip", details=True, **given)
    of_pairs = settings | {key: rows[::2] for key, rows in quality.items()}
    expected = compute(predictions=sets[::2], details=True, **of_pairs)
    assert result.pop("n_singletons") == 1
    assert "|set_size:1-2|" in result.pop("signature")
    for key, value in result.items():
        if key in ("details", "scores", "quality_scores"):
            alone = value.pop(1)
            assert alone is None or (key == "details" and alone[f"{name}_1"] is None)
        # What a single text has is tested in test_self_bleu.py.
        if not key.startswith(("distinct", "entropy")):
            assert value == approx(expected[key]), key
    result = compute(predictions=[["a"], ["b"]], singletons="skip", **settings)
    assert (result[name], result["scores"], result["n_singletons"]) == (None, [None, None], 2)


@pytest.mark.parametrize(("scale", "kind"), [(1e-40, "f4"), (1e-30, "f4"), (1e30, "f4"), (1e-99, "f8"), (1e99, "f8")])
def test_the_length_of_an_embedding_does_not_matter(load, scale, kind):
    vectors = (np.array([[1.0, 2.0], [2.0, -1.0]]) * [[scale], [1.0]]).astype(kind)
    assert load("vendi_embed").compute(predictions=GOOD, embeddings=vectors)["vendi_embed"] == pytest.approx(2.0)


def test_a_refused_setting_does_not_ask_the_network(load, monkeypatch):
    import socket

    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    for settings in ({"patience": 2}, {"contexts": [3]}, {"set_size": 3}, {"weights": [4, 5]}):
        for kind in ("nli:", "pairs:"):
            with pytest.raises((TypeError, ValueError), match=next(iter(settings))):
                load("semantic_entropy").compute(predictions=GOOD, same=f"{kind}no-one/no-such-model", **settings)
    for settings in ({"q": -1}, {"quality": [2, 2]}, {"kernel": "rbf"}):
        with pytest.raises((TypeError, ValueError), match=next(iter(settings))):
            load("vendi_embed").compute(predictions=GOOD, model="no-one/no-such-model", **settings)


def test_a_smoothing_near_the_smallest_float_gives_no_nan(load):
    settings = {"predictions": [["a kettle"] * 3], "references": PEOPLE, "clustering": "none"}
    for debias in (False, True):
        result = load("probeval").compute(**settings, smoothing=1e-310, debias=debias)
        assert 0 <= result["probeval"] < 800
        json.dumps(result, allow_nan=False)
        with pytest.raises(ValueError, match="smoothing"):
            load("probeval").compute(**settings, smoothing=5e-324, debias=debias)
    share = 1e-300 / 3
    expected = math.log(0.5) / 2 + (math.log(2 / 6) - math.log(share)) / 3 + (math.log(1 / 6) - math.log(share)) / 6
    assert load("probeval").compute(**settings, smoothing=1e-300)["probeval"] == pytest.approx(expected)


def test_counts_and_names_of_too_many_digits(load, tmp_path):
    for predictions, references in (
        ([["a"]], [[{"text": "a", "cluster": LONG}]]),
        ([{"id": LONG, "answers": ["a"]}], [["a"]]),
    ):
        with pytest.raises(ValueError, match="too many digits"):
            load("probeval").compute(predictions=predictions, references=references)
    path = tmp_path / "ranked.jsonl"
    path.write_text("9" * 5_000)
    with pytest.raises(ValueError, match=r"ranked\.jsonl"):
        load("probeval").from_protoqa([], str(path))
    metric = evaluate.load(str(METRICS / "probeval"))
    for count in (2**63, 2**53 + 1):
        with pytest.raises(ValueError, match="count"):
            metric.add(prediction=[{"text": "kettle", "count": count}], reference=PEOPLE[0])
    metric.add(prediction=[{"text": "kettle", "count": 2**53}], reference=PEOPLE[0])
    assert metric.compute()["n_answers"] == [2**53]


def test_word_vectors_may_be_tensors_with_gradients():
    vectors = load_vectors({"kettle": torch.ones(3, requires_grad=True)})
    assert vectors["Kettle"].tolist() == [1.0] * 3
    assert vectors["pot"] is None
