"""vendi_embed with kernel="classes": who says what is the same, utility, and errors."""

import functools
import itertools

import numpy as np
import pytest

from tests.conftest import SETS, build_gruen_models, build_tiny_model
from tests.references import classes as reference
from tests.references import diversity
from text_metrics.metrics.vendi_embed import vendi_embed_classes

ANGLES = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 2.0}


def vectors(texts):
    return np.array([[np.cos(ANGLES[text]), np.sin(ANGLES[text])] for text in texts])


def compute(load, **settings):
    return load("vendi_embed").compute(kernel="classes", **settings)


def first_letter(left, right):
    return [a[0] == b[0] for a, b in zip(left, right, strict=True)]


def test_classes_of_people_are_counted(load):
    sets, classes = [["x", "y", "z"], ["x", "y"]], [["noun", "verb", "noun"], [3, 3]]
    result = compute(load, predictions=sets, classes=classes, q=[0, 1, 2], details=True)
    assert result["scores"] == [2.0, 1.0]
    assert result["by_order"]["0"] == 1.5
    assert result["details"][0]["by_order"]["1"] == pytest.approx(reference.vendi([0, 1, 0], 1))
    assert [row["classes"] for row in result["details"]] == [[0, 1, 0], [0, 0]]
    assert result["details"][0]["eigenvalues"] == pytest.approx([2 / 3, 1 / 3])
    assert "kernel:classes|classes:given|" in result["signature"]


def test_order_one_is_the_exponential_of_the_discrete_semantic_entropy(load):
    # Farquhar et al. 2024: - sum over classes of the share times its logarithm.
    result = compute(load, predictions=["p", "q", "r", "s"], classes=[1, 1, 2, 3])
    assert np.log(result["vendi_embed"]) == pytest.approx(-(0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25)))


def test_a_number_is_a_cosine(load):
    texts = ["a", "b", "c", "d"]
    for threshold, grouping, expected in (
        (np.cos(0.5), None, [0, 0, 1, 2]),  # b is near a and c, which are not near each other
        (np.cos(0.5), "greedy", [0, 0, 1, 2]),
        (np.cos(1.0), None, [0, 0, 0, 1]),
        (1, None, [0, 1, 2, 3]),
        (-1, None, [0, 0, 0, 0]),
    ):
        settings = {"embeddings": vectors(texts), "same": threshold, "grouping": grouping}
        (row,) = compute(load, predictions=texts, details=True, **settings)["details"]
        assert row["classes"] == expected
    (row,) = compute(
        load, predictions=list("bacd"), embeddings=vectors("bacd"), same=np.cos(0.5), grouping="greedy", details=True
    )["details"]
    assert row["classes"] == [0, 0, 0, 1]


def test_the_order_of_a_set_does_not_change_its_classes(load):
    for order in itertools.permutations("abcd"):
        result = compute(load, predictions=list(order), embeddings=vectors(order), same=np.cos(0.5), details=True)
        labels = dict(zip(order, result["details"][0]["classes"], strict=True))
        assert labels["a"] == labels["b"]
        assert len({labels["b"], labels["c"], labels["d"]}) == 3


def test_the_default_finds_paraphrases(load):
    sets = [
        ["A man walks his dog in the park.", "The couple take a train to the sea."],
        ["A man walks his dog in the park.", "In the park, a man is walking his dog."],
    ]
    assert compute(load, predictions=sets, q=0)["scores"] == [2.0, 1.0]
    same = vendi_embed_classes.DEFAULT_SAME
    default, named = (compute(load, predictions=SETS, **settings) for settings in ({}, {"same": same}))
    assert default == named
    assert f"kernel:classes|same:{same}|grouping:complete|model:" in default["signature"]


def test_a_callable_is_asked_about_each_pair_once(load):
    asked = []

    def same(left, right):
        asked.extend(zip(left, right, strict=True))
        return np.array(first_letter(left, right))

    sets = [["ax", "ay", "bx", "ax"], ["bx", "ay"], ["cz"]]
    result = compute(load, predictions=sets, same=same, q=0, details=True)
    assert result["scores"] == [2.0, 2.0, 1.0]
    assert [row["classes"] for row in result["details"]] == [[0, 0, 1, 0], [0, 1], [0]]
    assert sorted(asked) == [("ax", "ay"), ("ax", "bx"), ("ay", "bx")]
    assert "same:custom(" in result["signature"]


@pytest.mark.parametrize(
    "same",
    [lambda a, b: [1] * len(a), lambda a, b: True, lambda a, b: None, lambda a, b: [True], lambda a, b: ["x"] * len(a)],
)
def test_a_callable_must_return_booleans(load, same):
    with pytest.raises(ValueError, match="same must return 3 booleans, one for each pair"):
        compute(load, predictions=["x", "y", "z"], same=same)


@pytest.fixture(scope="module")
def nli_models(tmp_path_factory):
    """Two classifiers of pairs with random weights, the label of entailment in different places."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("nli")
    tokenizer = AutoTokenizer.from_pretrained(build_gruen_models(folder, seed=0)["cola_model"])
    names = []
    for seed, labels in ((3, ["contradiction", "neutral", "ENTAILMENT"]), (4, ["entailment", "not_entailment"])):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=40,
            initializer_range=0.5,
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
        )
        names.append(str(folder / f"nli{seed}"))
        BertForSequenceClassification(config).save_pretrained(names[-1])
        tokenizer.save_pretrained(names[-1])
    return names


WORDS = ["cab", "dad fed", "add", "bee", "a cab fed dad", "deaf", "face", "bad bee", "fade", "ace"]


@functools.cache
def read_model(name):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    return AutoTokenizer.from_pretrained(name), AutoModelForSequenceClassification.from_pretrained(name)


def plain_entailment(name, one, other):
    """Ask the model about one pair at a time, both ways."""
    import torch

    tokenizer, model = read_model(name)
    labels = {label.lower(): i for i, label in model.config.id2label.items()}
    with torch.no_grad():
        ways = [model(**tokenizer(*pair, return_tensors="pt")).logits for pair in ((one, other), (other, one))]
    return all(int(logits.argmax()) == labels["entailment"] for logits in ways)


@pytest.mark.parametrize("context", [None, "abba"])
def test_entailment_both_ways(load, nli_models, context):
    found = []
    for name in nli_models:
        settings = {} if context is None else {"contexts": [context, context]}
        result = compute(
            load, predictions=[WORDS, WORDS[:3]], same=f"nli:{name}", q=0, details=True, batch_size=3, **settings
        )
        prefix = "" if context is None else f"{context} "
        related = {
            frozenset(pair): plain_entailment(name, prefix + pair[0], prefix + pair[1])
            for pair in itertools.combinations(WORDS, 2)
        }
        found += related.values()
        for texts, row in zip((WORDS, WORDS[:3]), result["details"], strict=True):

            def same(i, j, texts=texts, related=related):
                return related[frozenset((texts[i], texts[j]))]

            assert row["classes"] == reference.complete_classes(len(texts), same, texts)
        assert "same:nli:local@" in result["signature"]
        assert ("contexts:given" in result["signature"]) == (context is not None)
    assert set(found) == {True, False}


def test_entailment_does_not_depend_on_batches(load, nli_models):
    results = [
        compute(load, predictions=WORDS, same=f"nli:{nli_models[0]}", batch_size=size) for size in (None, 1, 4, 100)
    ]
    assert all(result == results[0] for result in results)


def test_long_pairs_are_cut_with_a_warning(load, nli_models):
    with pytest.warns(UserWarning, match=r"2 of 2 pairs of texts are longer than the 40 tokens .*the longest has"):
        compute(load, predictions=["cab " * 30, "dad"], same=f"nli:{nli_models[0]}")


def test_a_model_without_entailment_is_an_error(load, tmp_path, gruen_models):
    with pytest.raises(ValueError, match=r"same: .* has no class named 'entailment': it has 'label_0', 'label_1'"):
        compute(load, predictions=WORDS, same=f"nli:{gruen_models['cola_model']}")
    with pytest.raises(ValueError, match=r"same: .* has no trained weights for a classifier"):
        compute(load, predictions=WORDS, same=f"nli:{gruen_models['lm_model']}")
    with pytest.raises(ValueError, match="same 'no/such' was found neither"):
        compute(load, predictions=WORDS, same="nli:no/such")
    with pytest.raises(ValueError, match="same must be a folder with a saved model"):
        compute(load, predictions=WORDS, same=f"nli:{tmp_path / 'none'}")


def test_utility(load):
    sets, quality = [["ax", "ay", "b"], ["c"], ["ax", "b", "c"]], [[0.9, 1.0, 0.5], [0.4], [0.1, 0.2, 0.3]]
    result = compute(load, predictions=sets, same=first_letter, quality=quality, patience=0.8, confidence=0.9)
    expected = [
        reference.utility(labels, values, 0.8)
        for labels, values in zip([[0, 0, 1], [0], [0, 1, 2]], quality, strict=True)
    ]
    assert result["utility_scores"] == pytest.approx(expected)
    assert result["utility"] == pytest.approx(np.mean(expected))
    low, high = result["utility_confidence_interval"]
    assert low <= result["utility"] <= high
    assert "|patience:0.8|" in result["signature"]


def test_texts_that_do_not_count_are_not_there(load):
    # Without b, which chains, a and c are two classes; b would come first in neither.
    sets, quality = [list("abc"), list("dd"), list("cab")], [[1.0, 0.0, 0.5], [0.0, 0.0], [1.0, 1.0, 0.0]]
    settings = {"same": np.cos(0.5), "embeddings": vectors("abcddcab"), "quality": quality, "min_quality": 0.5}
    result = compute(load, predictions=sets, q=[0, 1], patience=0.5, details=True, **settings)
    assert result["scores"] == [2.0, 0.0, 2.0]
    assert [row["classes"] for row in result["details"]] == [[0, None, 1], [None, None], [0, 1, None]]
    assert [row["eigenvalues"] for row in result["details"]] == [[0.5, 0.5], [], [0.5, 0.5]]
    kept = reference.utility([0, 1], [1.0, 0.5], 0.5), 0.0, reference.utility([0, 1], [1.0, 1.0], 0.5)
    assert result["utility_scores"] == pytest.approx(kept)
    # So is a text without probability.
    weights = [0.5, 0.0, 0.5]
    given = compute(load, predictions=list("abc"), same=0.8, embeddings=vectors("abc"), weights=weights, details=True)
    assert given["details"][0]["classes"] == [0, None, 1]
    assert given["vendi_embed"] == pytest.approx(2.0)


def test_weights(load):
    weights = [0.5, 0.3, 0.2]
    result = compute(load, predictions=["ax", "b", "ay"], same=first_letter, weights=weights, q=[0.5, 1, 2, "inf"])
    for name, score in result["by_order"].items():
        assert score == pytest.approx(reference.vendi([0, 1, 0], float(name), weights))


def test_quality_weighs_the_score(load):
    result = compute(load, predictions=["x", "y"], classes=[0, 1], quality=[0.5, 1.0])
    assert result["quality_vendi_embed"] == pytest.approx(1.5)


def test_a_large_set_equals_the_plain_loop(load, rng):
    texts = [f"text {i}" for i in range(400)]
    rows = rng.standard_normal((400, 4))
    cosines = diversity.cosines(rows)
    result = compute(load, predictions=texts, embeddings=rows, same=0.9, q=[0, 1], details=True)
    expected = reference.complete_classes(400, lambda i, j: cosines[i, j] >= 0.9, texts)
    assert result["details"][0]["classes"] == expected
    assert result["by_order"]["1"] == pytest.approx(reference.vendi(expected, 1))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "embedding", "same": 0.5}, "same has no effect without kernel='classes'"),
        ({"kernel": "ngram", "classes": [0, 0]}, "classes has no effect without kernel='classes'"),
        ({"kernel": "embedding", "grouping": "greedy"}, "grouping has no effect without kernel='classes'"),
        ({"kernel": "embedding", "contexts": ["x"]}, "contexts has no effect without kernel='classes'"),
        ({"kernel": "embedding", "patience": 0.8}, "patience has no effect without kernel='classes'"),
        ({"kernel": "class"}, "kernel must be 'embedding', 'ngram', 'classes' or a callable. Got str 'class'"),
        ({"same": 1.5}, r"same must be in \[-1, 1\]. Got 1.5"),
        ({"same": True}, "same must be a number"),
        ({"same": "nli:"}, "same must be a number, a callable, 'nli:<model>' or 'pairs:<model>'. Got str 'nli:'"),
        ({"same": "cosine"}, "same must be a number, a callable, 'nli:<model>' or 'pairs:<model>'. Got str 'cosine'"),
        ({"same": 0.5, "contexts": ["x"]}, "contexts has no effect without same='nli:<model>'"),
        ({"same": "pairs:"}, "same must be a number, a callable, 'nli:<model>' or 'pairs:<model>'. Got str 'pairs:'"),
        ({"same": "nli:x", "same_threshold": 0.5}, "same_threshold has no effect without same='pairs:<model>'. Got"),
        ({"same": 0.5, "same_rule": "noveltybench-2025"}, "same_rule has no effect without same='pairs:<model>'. Got"),
        ({"same": "pairs:x", "same_threshold": 1.5}, r"same_threshold must be in \[0, 1\]. Got 1.5"),
        ({"same": "pairs:x", "same_rule": "novelty"}, "same_rule must be one of 'noveltybench-2025', 'noveltybench-2"),
        (
            {"same": "pairs:x", "same_rule": "noveltybench-2026", "same_threshold": 0.1},
            "same_threshold cannot be combined with same_rule",
        ),
        (
            {"same": "pairs:x", "same_rule": "noveltybench-2026", "contexts": ["x"]},
            "contexts cannot be combined with same_rule",
        ),
        ({"kernel": "embedding", "same_threshold": 0.5}, "same_threshold has no effect without kernel='classes'"),
        ({"same": "nli:x", "contexts": "x"}, "contexts must be a list of strings, one for each of the 1 sets"),
        ({"same": "nli:x", "contexts": ["x", "y"]}, "contexts must be a list of strings, one for each of the 1 sets"),
        ({"same": "nli:x", "contexts": [3]}, r"contexts\[0\] must be a string. Got int 3"),
        ({"same": "nli:x", "embeddings": np.eye(2)}, "embeddings has no effect where same says"),
        ({"same": "nli:x", "model": "y"}, "model has no effect where same says"),
        ({"same": first_letter, "precision": "bfloat16"}, "precision has no effect where same says"),
        ({"classes": [0, 0], "same": 0.5}, "same has no effect where classes are given"),
        ({"classes": [0, 0], "grouping": "greedy"}, "grouping has no effect where classes are given"),
        ({"classes": [0, 0], "embeddings": np.eye(2)}, "embeddings has no effect where classes are given"),
        ({"classes": [0, 0], "cache_dir": "x"}, "cache_dir has no effect where classes are given"),
        ({"classes": [0]}, "classes must have one label for each of the 2 texts. Got 1"),
        ({"classes": 3}, "classes must be one label for each text, shaped like predictions"),
        ({"classes": [0, 0.5]}, r"classes \(text 1\) must be a string or an integer. Got float 0.5"),
        ({"classes": [0, None]}, r"classes \(text 1\) must be a string or an integer. Got None"),
        ({"grouping": "single"}, "grouping must be one of 'complete', 'greedy'. Got str 'single'"),
        ({"patience": 0.8}, "patience needs quality"),
        ({"patience": 1.2, "quality": [1, 1]}, r"patience must be in \[0, 1\]. Got 1.2"),
    ],
)
def test_errors_name_the_setting(load, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load("vendi_embed").compute(predictions=["x", "y"], **{"kernel": "classes", **settings})


def test_another_model_may_be_named(load, tmp_path):
    model = str(build_tiny_model(tmp_path / "tiny", seed=5))
    result = compute(load, predictions=SETS, model=model, same=0.9)
    assert "|model:local@" in result["signature"]


@pytest.mark.parametrize("name", ["embeddings", "similarity", "model", "encoder"])
def test_the_default_threshold_is_for_the_default_model(load, tiny_model, name):
    class Encoder:
        def encode(self, texts):
            return vectors(texts)

    given = {
        "embeddings": {"embeddings": vectors("abc")},
        "similarity": {"similarity": vectors("abc") @ vectors("abc").T},
        "model": {"model": str(tiny_model)},
        "encoder": {"model": Encoder()},
    }[name]
    message = f"{'model' if name == 'encoder' else name} with kernel='classes' needs same: its default, 0.83, is for"
    with pytest.raises(ValueError, match=message):
        compute(load, predictions=list("abc"), **given)
    assert "|same:0.83|" in compute(load, predictions=list("abc"), same=0.83, **given)["signature"]
    expected = compute(load, predictions=list("abc"))
    assert compute(load, predictions=list("abc"), model="sentence-transformers/all-MiniLM-L6-v2") == expected
