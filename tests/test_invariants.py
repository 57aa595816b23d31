"""What holds for every metric over sets of texts, or over texts, whatever it measures."""

import json
import math
import random

import numpy as np
import pytest

from tests.conftest import SET_METRICS, SETS

SETTINGS = [
    ("vendi_embed", {}),
    ("vendi_embed", {"q": 0.5}),
    ("vendi_embed", {"q": 0}),
    ("vendi_embed", {"q": 0.01}),
    ("vendi_embed", {"kernel": "ngram"}),
    ("vendi_embed", {"kernel": "ngram", "q": 0}),
    ("chamfer_diversity", {}),
    ("self_bleu", {"max_order": 2}),
    ("self_bleu", {"max_order": 2, "aggregate": "corpus"}),
    ("self_bleu", {"max_order": 2, "aggregate": "sentence"}),
    ("self_bleu", {"max_order": 1, "vocabulary_size": 99, "homogenization": True}),
]
TEXTS = [" ".join(members) for members in SETS]
TEXT_SETTINGS = [
    ("gruen", {}),
    *(("gruen", {"components": [component]}) for component in ("grammaticality", "non_redundancy", "focus")),
]
each_metric = pytest.mark.parametrize(("name", "settings"), SETTINGS)
each_text_metric = pytest.mark.parametrize(("name", "settings"), TEXT_SETTINGS)
metric_of_any_kind = pytest.mark.parametrize(("name", "settings"), [*SETTINGS, *TEXT_SETTINGS])


def items_of(name):
    """Give what a metric scores: several sets, or several texts."""
    return list(TEXTS) if name == "gruen" else [list(members) for members in SETS]


@each_metric
def test_the_order_of_texts_does_not_matter(load, name, settings):
    shuffled = [random.Random(i).sample(members, len(members)) for i, members in enumerate(SETS)]
    expected = load(name).compute(predictions=SETS, **settings)
    result = load(name).compute(predictions=shuffled, **settings)
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert result[name] == pytest.approx(expected[name], abs=1e-6)


@metric_of_any_kind
def test_an_item_scores_the_same_alone_in_any_order_and_twice(load, name, settings):
    compute, items = load(name).compute, items_of(name)
    expected = compute(predictions=items, **settings)
    is_mean = settings.get("aggregate") != "corpus"
    for order in (range(5)[::-1], [*range(5), *range(5)]):
        result = compute(predictions=[items[i] for i in order], **settings)
        assert result["scores"] == pytest.approx([expected["scores"][i] for i in order], abs=1e-5)
        if is_mean:
            assert result[name] == pytest.approx(expected[name], abs=1e-5)
    alone = [compute(predictions=[item], **settings)["scores"][0] for item in items]
    assert alone == pytest.approx(expected["scores"], abs=1e-5)


@metric_of_any_kind
def test_the_result_is_plain_and_input_is_left_as_it_was(load, name, settings):
    items = items_of(name)
    result = load(name).compute(predictions=items, details=True, **settings)
    assert items == items_of(name)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert type(result[name]) is float
    assert len(result["scores"]) == len(result["details"]) == len(items)
    assert result["signature"].startswith(f"{name}|")
    if settings.get("aggregate") != "corpus":
        assert result[name] == pytest.approx(np.mean(result["scores"]))


# Each set says a few things, in texts that the model reads alike, but encodes in batches of their own.
VARIANTS = [
    [
        f"{one} {i} dogs bark in the park.",
        f"{one.upper()} {i} dogs BARK in the park.",
        f"{one}  {i} Dogs bark in the park .",
    ]
    for i, one in enumerate(["some", "only", "about", "these", "all of the many different"] * 4)
]


def test_texts_that_are_read_alike_are_one_in_any_company_and_batch(load):
    metric, orders, tolerance = load("vendi_embed"), [0, 0.01, 1], 1e-6

    def score(sets, **settings):
        rows = metric.compute(predictions=sets, q=orders, details=True, **settings)["details"]
        return np.array([list(row["by_order"].values()) for row in rows])

    others = [[f"Text {i} is about {i % 7} things" + " and more" * (i % 5) for i in range(60)]]
    for batch_size in (None, 1, 7):
        np.testing.assert_allclose(score(VARIANTS + others, batch_size=batch_size)[:-1], 1.0, atol=tolerance)
    for members in VARIANTS[:5]:
        np.testing.assert_allclose(score([members]), 1.0, atol=tolerance)
    # In one set, too, which has more texts than different ones.
    together = score([[text for members in VARIANTS for text in members]])
    np.testing.assert_allclose(together, score([[members[0] for members in VARIANTS]]), rtol=tolerance)


@each_metric
def test_a_flat_list_with_set_size_equals_nested_sets(load, name, settings):
    flat = [text for members in SETS for text in members][:12]
    nested = [flat[i : i + 4] for i in range(0, 12, 4)]
    expected = load(name).compute(predictions=nested, **settings)
    assert load(name).compute(predictions=flat, set_size=4, **settings) == expected
    assert load(name).compute(predictions=nested, set_size=4, **settings) == expected
    assert load(name).compute(predictions=flat, **settings) == load(name).compute(predictions=[flat], **settings)


@each_metric
@pytest.mark.parametrize(
    "texts",
    [
        ["我喜欢猫。", "狗在公园里跑。", "下雨了。"],
        ["Kedi uyuyor.", "Köpek parkta koşuyor.", "Yağmur yağıyor."],
        ["🐈", "", "\x00"],
    ],
)
def test_any_language(load, name, settings, texts):
    same = load(name).compute(predictions=texts[:1] * 3, **settings)[name]
    different = load(name).compute(predictions=texts, **settings)[name]
    if name == "self_bleu":
        assert 0 <= different <= same <= 1
    else:
        assert different > same + 0.01
        assert math.isfinite(different)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_the_batch_does_not_change_the_score(load, name):
    expected = load(name).compute(predictions=SETS)
    for batch_size in (1, 3, 1000):
        result = load(name).compute(predictions=SETS, batch_size=batch_size, device="cpu", progress=False)
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
        assert result["signature"] == expected["signature"]


def numbers(result):
    return {key: value for key, value in result.items() if key not in ("signature", "details")}


VECTORS = np.random.default_rng(0).standard_normal((12, 6))
FLAT = ["a b c", "a b d", "d e f g", "a, b"] * 3
WEIGHTS = [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("name", "base", "change"),
    [
        ("vendi_embed", {}, {"q": 2}),
        ("vendi_embed", {}, {"q": 1.0000001}),
        ("vendi_embed", {"q": [1, 2]}, {"q": [1, 3]}),
        ("vendi_embed", {}, {"kernel": "ngram"}),
        ("vendi_embed", {}, {"embeddings": VECTORS}),
        ("vendi_embed", {}, {"model": "tiny_model"}),
        ("vendi_embed", {"model": "tiny_model"}, {"model": "other_tiny_model"}),
        ("vendi_embed", {"set_size": 4}, {"set_size": 6}),
        ("vendi_embed", {"set_size": 4}, {"set_size": 4, "weights": WEIGHTS * 3}),
        ("vendi_embed", {"set_size": 4}, {"set_size": 4, "confidence": 0.9}),
        *(
            (
                name,
                {"set_size": 2, "confidence": 0.5},
                {"set_size": 2, "confidence": 0.5, "confidence_by": list("aabbcc")},
            )
            for name in SET_METRICS
        ),
        ("chamfer_diversity", {"set_size": 4}, {"set_size": 4, "confidence": 0.9}),
        ("chamfer_diversity", {"set_size": 4}, {"set_size": 6}),
        ("chamfer_diversity", {"set_size": 4}, {"set_size": 4, "embeddings": VECTORS}),
        ("chamfer_diversity", {"set_size": 4}, {"set_size": 4, "model": "tiny_model"}),
        ("self_bleu", {"set_size": 4}, {"set_size": 6}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "confidence": 0.9}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "max_order": 3}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "smoothing": "method1"}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "tokenizer": "13a"}),
        ("self_bleu", {"set_size": 4, "vocabulary_size": 99}, {"set_size": 4, "vocabulary_size": 100}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "homogenization": True}),
        ("self_bleu", {"set_size": 4}, {"set_size": 4, "tokenizer": list}),
        ("self_bleu", {"set_size": 4, "aggregate": "corpus"}, {"set_size": 4, "aggregate": "sentence"}),
    ],
)
def test_a_setting_that_changes_the_number_is_signed(load, request, name, base, change):
    base, change = (
        {key: request.getfixturevalue(value) if key == "model" else value for key, value in settings.items()}
        for settings in (base, change)
    )
    first, second = (load(name).compute(predictions=FLAT, **settings) for settings in (base, change))
    assert numbers(first) != numbers(second)
    assert first["signature"] != second["signature"]


@pytest.mark.parametrize("name", SET_METRICS)
def test_a_setting_that_cannot_change_the_number_is_not_signed(load, name):
    first = load(name).compute(predictions=SETS)
    settings = [{"details": True}]
    if name != "self_bleu":
        settings += [
            {"batch_size": 2},
            {"device": "cpu"},
            {"progress": False},
            {"model": "sentence-transformers/all-MiniLM-L6-v2"},
            {"quality": [[1.0] * len(members) for members in SETS]},
        ]
    if name != "vendi_embed":
        settings.append({"singletons": "skip"})
    for setting in settings:
        assert load(name).compute(predictions=SETS, **setting)["signature"] == first["signature"]


# Metrics that score each text by itself.


@each_text_metric
def test_how_texts_are_run_does_not_change_the_score(load, name, settings):
    expected = load(name).compute(predictions=TEXTS, **settings)
    for change in ({"batch_size": 1}, {"batch_size": 100}, {"device": "cpu"}, {"progress": False}, {"details": True}):
        result = load(name).compute(predictions=TEXTS, **settings, **change)
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
        assert result["signature"] == expected["signature"]
