"""Bad input to every metric: a TypeError or ValueError that names the parameter, the item, and what it got."""

import math

import numpy as np
import pytest

from tests.conftest import SET_METRICS

EMBEDDED = ("vendi_embed", "chamfer_diversity")
AGGREGATES = ("set", "corpus", "sentence")
GOOD = ["a b", "c d"]


@pytest.mark.parametrize("name", SET_METRICS)
@pytest.mark.parametrize(
    ("predictions", "error", "message"),
    [
        (None, ValueError, "predictions is None and nothing was added before"),
        ([], ValueError, "predictions is empty"),
        ([[]], ValueError, r"predictions\[0\] is an empty set"),
        ([["a", "b"], []], ValueError, r"predictions\[1\] is an empty set"),
        ("a bare string", TypeError, "predictions must be a list of texts .* Got a bare string, str 'a bare string'"),
        (b"bytes", TypeError, "Got a bare string, bytes b'bytes'"),
        (3, TypeError, "predictions must be a list of texts or a list of lists of texts. Got int 3"),
        ({"a": 1}, TypeError, r"predictions must be a list .* Got dict \{'a': 1\}"),
        ({"a", "b"}, TypeError, "predictions must be a list .* Got set"),
        ([1, 2], TypeError, r"predictions\[0\] must be a text or a list of texts\. Got int 1"),
        ([None], TypeError, r"predictions\[0\] must be a text or a list of texts\. Got None"),
        (["a", None], TypeError, r"predictions\[1\] must be a string, like the first item\. Got None"),
        (["a", ["b"]], TypeError, r"predictions\[1\] must be a string, like the first item\. Got list \['b'\]"),
        ([["a", "b"], "c"], TypeError, r"predictions\[1\] must be a list of texts, like the first item\. Got str 'c'"),
        ([["a", "b"], ["c", 4.5]], TypeError, r"predictions\[1\]\[1\] must be a string\. Got float 4\.5"),
        ([["a", "b"], ["c", ["d"]]], TypeError, r"predictions\[1\]\[1\] must be a string\. Got list \['d'\]"),
        ([["a", "b"], None], TypeError, r"predictions\[1\] must be a text or a list of texts\. Got None"),
        (["a", "half \ud800"], ValueError, r"predictions\[1\] holds an unpaired surrogate at character 5\. Got str"),
        ([["a", "b"], ["c", "\udfff"]], ValueError, r"predictions\[1\]\[1\] holds an unpaired surrogate"),
        (np.array([1.0, 2.0]), TypeError, r"predictions\[0\] must be .* Got float 1\.0"),
    ],
)
def test_predictions(load, name, predictions, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=predictions)


@pytest.mark.parametrize("name", SET_METRICS)
@pytest.mark.parametrize(
    ("set_size", "error", "message"),
    [
        (0, ValueError, r"set_size must be at least 1\. Got 0"),
        (-2, ValueError, r"set_size must be at least 1\. Got -2"),
        (2.5, TypeError, r"set_size must be an integer\. Got float 2\.5"),
        ("2", TypeError, r"set_size must be an integer\. Got str '2'"),
        (True, TypeError, r"set_size must be an integer\. Got bool True"),
        (3, ValueError, r"set_size must divide the number of predictions\. Got set_size=3 for 4 texts"),
    ],
)
def test_set_size(load, name, set_size, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=["a", "b", "c", "d"], set_size=set_size)


@pytest.mark.parametrize("name", SET_METRICS)
def test_set_size_checks_nested_sets(load, name):
    sets = [["a", "b"], ["c", "d", "e"]]
    with pytest.raises(ValueError, match=r"set_size is 2, but predictions\[1\] holds 3 texts"):
        load(name).compute(predictions=sets, set_size=2)


@pytest.mark.parametrize("name", SET_METRICS)
def test_unknown_setting(load, name):
    with pytest.raises(TypeError, match="has no argument 'sett_size'"):
        load(name).compute(predictions=GOOD, sett_size=2)


@pytest.mark.parametrize("name", ["chamfer_diversity", "self_bleu"])
def test_singletons(load, name):
    with pytest.raises(ValueError, match=rf"predictions holds one text, and {name} is undefined .*singletons='skip'"):
        load(name).compute(predictions=["alone"])
    with pytest.raises(ValueError, match=r"predictions \(set 1\) holds one text, .* \(1 of 2 sets\)"):
        load(name).compute(predictions=[["a", "b"], ["alone"]])
    with pytest.raises(ValueError, match=r"singletons must be one of 'error', 'skip'\. Got str 'drop'"):
        load(name).compute(predictions=GOOD, singletons="drop")


@pytest.mark.parametrize(
    ("name", "settings"), [("chamfer_diversity", {}), *(("self_bleu", {"aggregate": a}) for a in AGGREGATES)]
)
def test_singletons_alone_have_no_score(load, name, settings):
    result = load(name).compute(predictions=[["a"], ["b"]], singletons="skip", details=True, **settings)
    assert result[name] is None
    assert result["scores"] == [None, None]
    assert result["n_singletons"] == 2


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize(
    ("quality", "error", "message"),
    [
        ([0.5], ValueError, r"quality must have one number for each of the 2 texts\. Got 1"),
        ([0.5, 1.5], ValueError, r"quality \(text 1\) must be in \[0, 1\]\. Got float 1\.5"),
        ([-0.1, 0.5], ValueError, r"quality \(text 0\) must be in \[0, 1\]\. Got float -0\.1"),
        ([0.5, math.nan], ValueError, r"quality \(text 1\) must be in \[0, 1\]\. Got float nan"),
        ([0.5, None], TypeError, r"quality \(text 1\) must be a number\. Got None"),
        ([0.5, "1"], TypeError, r"quality \(text 1\) must be a number\. Got str '1'"),
        ([0.5, 10**400], ValueError, r"quality \(text 1\) must be in \[0, 1\]\. Got int 1000"),
        (0.5, TypeError, r"quality must be one number for each text, .* Got float 0\.5"),
        ([[0.5]], ValueError, r"quality\[0\] must have 2 numbers"),
    ],
)
def test_quality(load, name, quality, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=GOOD, quality=quality)


@pytest.mark.parametrize(
    ("quality", "error", "message"),
    [
        ([0.5] * 2, ValueError, r"quality must have one number for each of the 4 texts\. Got 2"),
        ([[0.5, 0.5]], ValueError, r"quality must have one list for each of the 2 sets\. Got 1"),
        ([[0.5, 0.5], [0.5]], ValueError, r"quality\[1\] must have 2 numbers, one for each text of set 1\. Got 1"),
        ([[0.5, 0.5], [0.5, 7]], ValueError, r"quality \(set 1, text 1\) must be in \[0, 1\]\. Got int 7"),
        ([[0.5, 0.5], 0.5], ValueError, r"quality must have one number for each of the 4 texts\. Got 2"),
    ],
)
def test_quality_of_nested_predictions(load, quality, error, message):
    with pytest.raises(error, match=message):
        load("vendi_embed").compute(predictions=[GOOD, GOOD], quality=quality)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.4]], ValueError, r"weights must sum to 1 .* Those of set 1 sum to 0\.9"),
        ([[0.5, 0.5], [4, 5]], ValueError, r"weights must sum to 1 .* Those of set 1 sum to 9\. .* quality="),
        ([[0.5, 0.5], [1.5, -0.5]], ValueError, r"weights \(set 1, text 1\) must be .* Got float -0\.5"),
        ([[0.5, 0.5], [math.nan, 1.0]], ValueError, r"weights \(set 1, text 0\) must be .* Got float nan"),
        ([[0.5, 0.5]], ValueError, r"weights must have one list for each of the 2 sets\. Got 1"),
    ],
)
def test_weights(load, weights, error, message):
    with pytest.raises(error, match=message):
        load("vendi_embed").compute(predictions=[GOOD, GOOD], weights=weights)


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize(
    ("embeddings", "error", "message"),
    [
        ([[1.0, 0.0]], ValueError, r"embeddings must have shape \(n, d\), .* 2 texts\. Got shape \(1, 2\)"),
        ([1.0, 2.0], ValueError, r"embeddings must have shape \(n, d\), .* Got shape \(2,\)"),
        (np.empty((2, 0)), ValueError, r"embeddings must have shape \(n, d\), .* Got shape \(2, 0\)"),
        ([[1.0, 0.0], [0.0, 0.0]], ValueError, r"embeddings row 1 \(text 1\) is a zero vector"),
        ([[1.0, math.nan], [0.0, 1.0]], ValueError, r"embeddings row 0 \(text 0\) holds NaN or infinity"),
        ([[1.0, 0.0], [0.0, math.inf]], ValueError, r"embeddings row 1 \(text 1\) holds NaN or infinity"),
        ([["a", "b"], ["c", "d"]], TypeError, r"embeddings must be an \(n, d\) array of numbers\. Got list"),
        ([[1.0, 2.0], [1.0]], TypeError, r"embeddings must be an \(n, d\) array of numbers\. Got list"),
        ("text", TypeError, r"embeddings must be an \(n, d\) array of numbers\. Got str 'text'"),
    ],
)
def test_embeddings(load, name, embeddings, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=GOOD, embeddings=embeddings)


@pytest.mark.parametrize(
    ("scale", "kind"),
    [(1e-40, "f4"), (1e-30, "f4"), (1e30, "f4"), (1e-250, "f8"), (1e-162, "f8"), (1e154, "f8"), (1e250, "f8")],
)
def test_length_of_an_embedding_does_not_matter(load, scale, kind):
    vectors = (np.array([[1.0, 2.0], [2.0, -1.0]]) * [[scale], [1.0]]).astype(kind)
    result = load("vendi_embed").compute(predictions=GOOD, embeddings=vectors)
    assert result["vendi_embed"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("q", "error", "message"),
    [
        (-1, ValueError, r"q must be in \[0, inf\]\. Got -1"),
        (math.nan, ValueError, r"q must be in \[0, inf\]\. Got nan"),
        ("one", TypeError, r"q must be a number in \[0, inf\], or 'inf'\. Got str 'one'"),
        (None, TypeError, r"q must be a number in \[0, inf\], or 'inf'\. Got None"),
        (True, TypeError, r"q must be a number in \[0, inf\], or 'inf'\. Got bool True"),
        (1j, TypeError, r"q must be a number in \[0, inf\], or 'inf'\. Got complex 1j"),
        (10**400, ValueError, "q is too large: pass 'inf' for the limit"),
        ([], ValueError, "q is an empty list"),
        ([1, -2], ValueError, r"q\[1\] must be in \[0, inf\]\. Got -2"),
    ],
)
def test_orders(load, q, error, message):
    with pytest.raises(error, match=message):
        load("vendi_embed").compute(predictions=GOOD, q=q)


@pytest.mark.parametrize(
    ("name", "settings", "error", "message"),
    [
        ("vendi_embed", {"kernel": "rbf"}, ValueError, r"kernel must be one of 'embedding', 'ngram'\. Got str 'rbf'"),
        ("vendi_embed", {"kernel": np.eye(2)}, ValueError, r"kernel must be one of .*\. Got ndarray"),
        ("vendi_embed", {"kernel": "ngram", "embeddings": np.eye(2)}, ValueError, "embeddings and kernel='ngram'"),
        ("vendi_embed", {"kernel": "ngram", "similarity": np.eye(2)}, ValueError, "similarity and kernel='ngram'"),
        ("vendi_embed", {"batch_size": 0}, ValueError, r"batch_size must be at least 1\. Got 0"),
        ("vendi_embed", {"device": "abacus"}, ValueError, r"device must be a torch device: .* Got str 'abacus'"),
        ("vendi_embed", {"device": "meta"}, ValueError, r"device must be a torch device: .* Got str 'meta'"),
        ("vendi_embed", {"device": "cuda:99"}, ValueError, r"device 'cuda:99' is not available on this machine"),
        ("vendi_embed", {"kernel": "ngram", "device": "abacus"}, ValueError, "device must be a torch device"),
        ("vendi_embed", {"model": 3}, TypeError, r"model must be the name of a model .* \.encode\. Got int 3"),
        ("vendi_embed", {"model": ""}, TypeError, r"model must be the name of a model .* Got str ''"),
        ("vendi_embed", {"model": "./nowhere"}, ValueError, r"model must be a folder .* Got './nowhere'"),
        ("self_bleu", {"max_order": 0}, ValueError, r"max_order must be at least 1\. Got 0"),
        ("self_bleu", {"max_order": 1.5}, TypeError, r"max_order must be an integer\. Got float 1\.5"),
        ("self_bleu", {"aggregate": "mean"}, ValueError, r"aggregate must be one of 'set', 'corpus', 'sentence'\. Got"),
        ("self_bleu", {"smoothing": "exp"}, ValueError, r"smoothing must be one of .* Got str 'exp'"),
        ("self_bleu", {"tokenizer": "moses"}, ValueError, r"tokenizer must be one of 'whitespace', .* Got str 'moses'"),
        ("self_bleu", {"tokenizer": None}, ValueError, r"tokenizer must be one of 'whitespace', .* Got None"),
    ],
)
def test_settings(load, name, settings, error, message):
    with pytest.raises(error, match=message):
        load(name).compute(predictions=GOOD, **settings)


@pytest.mark.parametrize("name", SET_METRICS)
def test_other_sequences_are_lists_too(load, name):
    import pandas as pd
    from datasets import Dataset

    expected = load(name).compute(predictions=GOOD)
    for predictions in (tuple(GOOD), np.array(GOOD), pd.Series(GOOD), Dataset.from_dict({"t": GOOD})["t"]):
        assert load(name).compute(predictions=predictions) == expected
    assert load(name).compute(predictions=np.array([GOOD])) == expected
