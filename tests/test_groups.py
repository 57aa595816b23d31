"""Diversity within and between groups of texts: exact values, bounds, the permutation test, and invariance."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SETS, encode
from tests.largest_tensor import LargestTensor
from tests.references import groups as reference
from text_metrics.metrics._core.core_rarefaction import content_keys
from text_metrics.metrics.vendi_embed import vendi_embed_groups
from text_metrics.metrics.vendi_embed.core_classes import number_classes
from text_metrics.metrics.vendi_embed.vendi_embed_groups import Grouped, partition
from text_metrics.metrics.vendi_embed.vendi_embed_kernels import ClassKernel, EmbeddingKernel

NAMES = [["a b", "c d", "a c e", "b", "d e", "f g"], ["a b c", "b c", "c d e", "e"], ["a", "b", "c a", "d", "e f"]]
LABELS = [["x", "x", "x", "y", "y", "y"], ["y", "x", "y", "x"], [1, 2, 3, 3, 1]]
WEIGHTS = [[0.1, 0.2, 0.3, 0.1, 0.1, 0.2], [0.4, 0.1, 0.2, 0.3], [0.2, 0.2, 0.2, 0.3, 0.1]]
SIZES = [len(members) for members in NAMES]
VECTORS = np.random.default_rng(3).standard_normal((15, 4)) + 0.7
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
GROUPS = {"predictions": NAMES, "groups": LABELS}


def by_set(rows):
    return np.split(rows, np.cumsum(SIZES)[:-1])


def cosines():
    return [rows @ rows.T for rows in by_set(UNIT)]


def gaussian(rows):
    # The width depends on the set, so that a subset has other similarities than within its set.
    squares = ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)
    return np.exp(-squares / squares.mean())


CLASSES = [[1, 1, 2, 1, 3, 3], ["a", "b", "a", "b"], [0, 1, 2, 3, 0]]
KERNELS = {
    "embedding": ({"embeddings": VECTORS}, cosines),
    "similarity": ({"similarity": cosines()}, cosines),
    "function": ({"embeddings": VECTORS, "kernel": gaussian}, lambda: [gaussian(rows) for rows in by_set(VECTORS)]),
    "classes": (
        {"kernel": "classes", "classes": CLASSES},
        lambda: [np.equal.outer(np.array(c, dtype=str), np.array(c, dtype=str)).astype(float) for c in CLASSES],
    ),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_weighting = pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["uniform", "weights"])


def weighted(weights):
    return {} if weights is None else {"weights": weights}


@each_kernel
@each_weighting
def test_the_reference(load, kernel, weights):
    given_settings, kernels = KERNELS[kernel]
    result = load("vendi_embed").compute(**GROUPS, **given_settings, **weighted(weights), permutations=3000)
    weights = weights or [[1 / n] * n for n in SIZES]
    expected = [reference.holevo(*row) for row in zip(kernels(), LABELS, weights, strict=True)]
    entropies, chi, limits = np.array(expected).T
    assert result["pooled_scores"] == pytest.approx(np.exp(entropies), abs=1e-6)
    assert result["within_scores"] == pytest.approx(np.exp(entropies - chi), abs=1e-6)
    assert result["between_scores"] == pytest.approx(np.exp(chi), abs=1e-6)
    assert result["pooled_scores"] == pytest.approx(result["scores"], abs=1e-12)
    for name in ("within", "pooled", "between", "between_expected"):
        assert result[name] == pytest.approx(np.mean(result[f"{name}_scores"]))

    # Chance, from all permutations; those of different sets are independent.
    every = [reference.all_permutations(*row) for row in zip(kernels(), LABELS, weights, strict=True)]
    errors = [values.std() / math.sqrt(3000) for values in every]
    chances = [values.mean() for values in every]
    for found, chance, error in zip(result["between_expected_scores"], chances, errors, strict=True):
        assert math.log(found) == pytest.approx(chance, abs=4 * error + 1e-9)
    sums = (every[0][:, None, None] + every[1][:, None] + every[2]).ravel()
    p = np.mean(sums >= chi.sum() - 1e-6)
    assert result["between_p"] == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / 3000) + 1 / 3000)
    shares = (chi.mean() - np.mean(chances)) / (limits.mean() - np.mean(chances))
    assert result["between_share"] == pytest.approx(shares, abs=0.05)


def test_ngrams_and_confidence(load):
    result = load("vendi_embed").compute(**GROUPS, kernel="ngram", confidence=0.9)
    plain = load("vendi_embed").compute(predictions=NAMES, kernel="ngram", confidence=0.9)
    assert result["pooled_confidence_interval"] == pytest.approx(plain["confidence_interval"])
    for name in ("within", "between"):
        low, high = result[f"{name}_confidence_interval"]
        assert 1 <= low < result[name] < high
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert "|groups:given|permutations:200|draw_seed:content|" in result["signature"]
    again = load("vendi_embed").compute(**GROUPS, kernel="ngram", confidence=0.9, contributions=True, details=True)
    assert {name: again[name] for name in result} == result


cosine_sets = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=3)


@settings(max_examples=50)
@given(cosine_sets, st.integers(0, 2**32), st.booleans(), st.integers(1, 5))
def test_bounds(labels, seed, is_weighted, dimension):
    rng = np.random.default_rng(seed)
    sizes = np.array([len(members) for members in labels])
    flat, n = np.concatenate(labels), int(sizes.sum())
    # Some texts are equal.
    vectors = rng.standard_normal((n, dimension))[rng.integers(n, size=n)]
    weights = None
    if is_weighted:
        weights = np.concatenate([rng.dirichlet(np.full(size, 0.3)) for size in sizes])
    result = partition(
        EmbeddingKernel(sizes, "cpu", vectors, 1e-4), Grouped(flat, np.arange(n, dtype=np.uint64), weights), 7
    )
    assert (result.chi >= 0).all()
    assert (result.chi <= result.limits).all()
    assert (result.expected <= result.limits + 1e-12).all()
    assert (result.within >= 1 - 1e-9).all()
    assert (result.within <= result.pooled + 1e-12).all()
    counts = np.array([len(set(members)) for members in labels])
    assert (result.between <= counts + 1e-9).all()
    assert (result.between[counts == 1] == 1).all()
    assert 1 / 8 <= result.p_value <= 1
    assert result.share is None or result.share <= 1 + 1e-9
    # The definition needs no clipping to stay within the bounds.
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    bounds = np.cumsum(sizes)[:-1]
    shares = np.repeat(1 / sizes, sizes) if weights is None else weights
    for i, (rows, of_set) in enumerate(zip(np.split(unit, bounds), np.split(shares, bounds), strict=True)):
        present = of_set > 0
        _, chi, limit = reference.holevo(
            rows[present] @ rows[present].T, np.array(labels[i])[present].tolist(), of_set[present]
        )
        assert -1e-9 <= chi <= limit + 1e-9
        assert result.chi[i] == pytest.approx(chi, abs=1e-6)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_groups_that_have_nothing_in_common(load, n_groups):
    vectors = np.repeat(np.eye(n_groups), 4, axis=0)
    labels = np.repeat(np.arange(n_groups), 4)
    result = load("vendi_embed").compute(predictions=list("t" * len(labels)), embeddings=vectors, groups=labels)
    assert result["between"] == pytest.approx(n_groups)
    assert result["within"] == pytest.approx(1)
    assert result["between_share"] == pytest.approx(1)
    assert result["between_p"] < 0.05


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_groups_that_are_equal(load, rng, n_groups):
    vectors, labels = np.tile(rng.standard_normal((4, 6)), (n_groups, 1)), np.repeat(np.arange(n_groups), 4)
    result = load("vendi_embed").compute(predictions=list("t" * len(labels)), embeddings=vectors, groups=labels)
    assert result["between"] == pytest.approx(1, abs=1e-9)
    assert result["within"] == pytest.approx(result["pooled"])
    assert result["between_share"] < 0
    assert result["between_p"] == 1


def test_what_no_permutation_can_change(load):
    settings = {"predictions": list("abcd"), "embeddings": np.eye(4), "groups": [0, 0, 1, 1]}
    result = load("vendi_embed").compute(**settings)
    assert (result["between"], result["between_expected"]) == pytest.approx((2, 2))
    assert (result["between_share"], result["between_p"]) == (None, 1)
    # A set with one group only is neither.
    result = load("vendi_embed").compute(
        predictions=[list("abcd"), list("ef")], embeddings=np.eye(6), groups=[[0, 0, 1, 1], [5, 5]]
    )
    assert result["between_scores"] == pytest.approx([2, 1])
    assert result["between_expected_scores"] == pytest.approx([2, 1])


def p_values(make, n_permutations, n):
    return np.array([partition(*make(i), n_permutations).p_value for i in range(n)])


def check_uniform(values, n_permutations):
    """Values are multiples of 1 / (n_permutations + 1), each equally probable."""
    counts = np.bincount(np.round(values * (n_permutations + 1)).astype(int), minlength=n_permutations + 2)[1:]
    expected = len(values) / (n_permutations + 1)
    statistic = ((counts - expected) ** 2 / expected).sum()
    # Mean plus four standard deviations of a chi-squared variable.
    assert statistic < n_permutations + 4 * math.sqrt(2 * n_permutations)


def test_p_values_of_exchangeable_texts_are_uniform():
    rng = np.random.default_rng(0)

    def make(shift):
        sizes = np.array([6, 9, 6])
        labels = np.concatenate([np.arange(size) % 3 for size in sizes])
        vectors = rng.standard_normal((21, 3)) + shift * np.eye(3)[labels]
        return EmbeddingKernel(sizes, "cpu", vectors, 1e-4), Grouped(labels, content_keys([str(v) for v in vectors]))

    values = p_values(lambda i: make(0), 9, 300)
    check_uniform(values, 9)
    assert p_values(lambda i: make(4), 19, 5).tolist() == [0.05] * 5


def test_p_values_with_weights_by_group_are_uniform():
    # Groups of two and of six texts, with equal shares.
    rng = np.random.default_rng(1)
    sizes, labels = np.array([8, 8]), np.array([0, 0, 1, 1, 1, 1, 1, 1] * 2)
    weights = np.where(labels == 0, 1 / 4, 1 / 12)

    def make(i):
        vectors = rng.standard_normal((16, 3))
        contents = content_keys([str(v) for v in vectors])
        return EmbeddingKernel(sizes, "cpu", vectors, 1e-4), Grouped(labels, contents, weights)

    check_uniform(p_values(make, 9, 200), 9)


def test_equal_sets_are_permuted_independently():
    # With the same draws for all sets, p-values would gather near a half.
    rng = np.random.default_rng(2)
    n_sets = 30
    sizes, classes = np.full(n_sets, 6), np.tile([0, 0, 1, 1, 2, 3], n_sets)
    kernel = ClassKernel(sizes, np.arange(6 * n_sets), number_classes(classes, sizes), None)
    contents = content_keys(list("aabbcd") * n_sets)

    def make(i):
        return kernel, Grouped(np.concatenate([rng.permutation([0, 0, 0, 1, 1, 1]) for _ in sizes]), contents)

    values = p_values(make, 19, 120)
    assert abs(values.mean() - 0.525) < 4 * 0.29 / math.sqrt(120)
    assert np.mean(values <= 0.2) > 0.08


def test_rounding_does_not_break_ties(rng):
    # Of the ten partitions into two groups of three, the labels give the one whose groups differ most.
    for _ in range(10):
        vectors = rng.standard_normal((2, 1, 5)) + 0.1 * rng.standard_normal((2, 3, 5))
        kernel = EmbeddingKernel(np.array([6]), "cpu", vectors.reshape(6, 5), 1e-4)
        result = partition(kernel, Grouped(np.repeat([0, 1], 3), np.arange(6, dtype=np.uint64)), 600)
        assert result.p_value == pytest.approx(1 / 10, abs=4 * math.sqrt(0.09 / 600))


ORDERS = [[3, 0, 5, 1, 4, 2], [2, 3, 0, 1], [4, 2, 0, 3, 1]]
RENAMED = {"x": 7, "y": "other", 1: "c", 2: "b", 3: "a"}


def shuffled(values):
    return [[row[i] for i in order] for row, order in zip(values, ORDERS, strict=True)][::-1]


def shuffled_settings(kernel):
    flat = np.concatenate([np.array(o) + start for o, start in zip(ORDERS, (0, 6, 10), strict=True)][::-1])
    if kernel == "classes":
        return {"kernel": "classes", "classes": shuffled(CLASSES)}
    if kernel == "similarity":
        return {"similarity": [m[np.ix_(o, o)] for m, o in zip(cosines(), ORDERS, strict=True)][::-1]}
    return {**KERNELS[kernel][0], "embeddings": VECTORS[flat]}


@each_kernel
@each_weighting
@pytest.mark.parametrize("names", [NAMES, [["t"] * n for n in SIZES]], ids=["texts", "equal names"])
def test_order_and_names_do_not_matter(load, kernel, weights, names):
    settings = KERNELS[kernel][0] | weighted(weights)
    first = load("vendi_embed").compute(predictions=names, groups=LABELS, **settings)
    labels = [[RENAMED[label] for label in row] for row in shuffled(LABELS)]
    settings = shuffled_settings(kernel) | ({} if weights is None else {"weights": shuffled(weights)})
    second = load("vendi_embed").compute(predictions=shuffled(names), groups=labels, **settings)
    for name, value in first.items():
        if name.endswith("scores"):
            assert second[name] == pytest.approx(value[::-1], abs=1e-9), name
        elif name != "signature":
            assert second[name] == pytest.approx(value, abs=1e-9), name


def test_a_set_has_the_same_expectation_alone_and_in_any_batch(load):
    labels = [[i % 2 for i in range(len(members))] for members in SETS]
    together = load("vendi_embed").compute(predictions=[*SETS, SETS[0]], groups=[*labels, labels[0]])
    batched = load("vendi_embed").compute(predictions=[*SETS, SETS[0]], groups=[*labels, labels[0]], batch_size=1)
    for name in ("within_scores", "between_scores", "between_expected_scores"):
        assert together[name][0] == pytest.approx(together[name][-1], abs=1e-9)
        assert batched[name] == pytest.approx(together[name], abs=1e-6)
        for i, members in enumerate(SETS):
            alone = load("vendi_embed").compute(predictions=members, groups=labels[i])
            assert alone[name] == pytest.approx([together[name][i]], abs=1e-6)
    assert batched["between_p"] == together["between_p"]


def test_uniform_weights_are_no_weights(load):
    settings = GROUPS | KERNELS["embedding"][0]
    plain = load("vendi_embed").compute(**settings)
    uniform = load("vendi_embed").compute(**settings, weights=[[1 / n] * n for n in SIZES])
    for name in ("within", "pooled", "between", "between_expected", "between_p", "between_share"):
        assert uniform[name] == pytest.approx(plain[name], abs=1e-9)


def test_a_text_without_weight_takes_no_part(load):
    settings = {"embeddings": VECTORS[:4], "predictions": list("abcd")}
    result = load("vendi_embed").compute(**settings, weights=[0.5, 0, 0.25, 0.25], groups=[0, 1, 2, 2])
    rest = {"embeddings": VECTORS[[0, 2, 3]], "predictions": list("acd")}
    expected = load("vendi_embed").compute(**rest, weights=[0.5, 0.25, 0.25], groups=[0, 2, 2])
    for name in ("within", "pooled", "between", "between_expected", "between_p", "between_share"):
        assert result[name] == pytest.approx(expected[name], abs=1e-9)


@each_weighting
def test_pairs_and_batches_of_any_size(load, monkeypatch, rng, weights):
    # A set is larger than the dimension, so that its kernel is not kept.
    sizes = np.array([30, 6, 12])
    vectors, labels = rng.standard_normal((48, 5)) + 1, np.arange(48) % 3
    contents = content_keys([str(i) for i in range(48)])
    weights = None if weights is None else rng.random(48)
    kernel, grouped = EmbeddingKernel(sizes, "cpu", vectors, 1e-4), Grouped(labels, contents, weights)
    rows = np.flatnonzero(labels != 1)
    whole, pair = partition(kernel, grouped, 20), partition(kernel, grouped, 20, rows)
    of_rows = None if weights is None else weights[rows]
    small = EmbeddingKernel(sizes * 2 // 3, "cpu", vectors[rows], 1e-4)
    alone = partition(small, Grouped(labels[rows], contents[rows], of_rows), 20)
    wide = EmbeddingKernel(sizes, "cpu", np.pad(vectors, ((0, 0), (0, 40))), 1e-4)
    monkeypatch.setattr(vendi_embed_groups, "_TEXTS_HELD", 50)
    monkeypatch.setattr(vendi_embed_groups, "_TEXTS_SCORED", 16)
    for first, second in [
        (pair, alone),
        (whole, partition(kernel, grouped, 20)),
        (whole, partition(wide, grouped, 20)),
    ]:
        for a, b in zip(first, second, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_memory_is_bounded(rng):
    n_sets = 60
    kernel = EmbeddingKernel(np.full(n_sets, 12), "cpu", rng.standard_normal((12 * n_sets, 16)), 1e-4)
    grouped = Grouped(np.arange(12 * n_sets) % 3, np.arange(12 * n_sets, dtype=np.uint64))
    with LargestTensor() as largest:
        partition(kernel, grouped, 200)
    # 36 000 subsets of four texts, of which 8 192 texts at a time are scored.
    assert largest.entries <= 2**13 * 4
    assert largest.decompositions < 36_000 / 1_000


BASE = {"predictions": list("abcd"), "embeddings": np.eye(4), "groups": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 2}, "q must be 1 with groups: only at order 1 .* Got 2"),
        ({"q": [1, 2]}, r"q must be 1 with groups.* Got \[1, 2\]"),
        ({"rarefy": 2}, "groups cannot be combined with rarefy"),
        ({"quality": [1, 1, 1, 1]}, "quality cannot be combined with groups"),
        ({"groups": [0, 0, 0, 0]}, "groups must have two different labels in at least one set"),
        ({"groups": [0, 0, 1]}, "groups must have one label for each of the 4 texts. Got 3"),
        ({"groups": [0, 0, 1, None]}, r"groups \(text 3\) must be a string or an integer. Got None"),
        ({"groups": [0, 0, 1, 0.5]}, r"groups \(text 3\) must be a string or an integer"),
        ({"groups": "ab"}, "groups must be one label for each text"),
        ({"permutations": 0}, "permutations must be at least 1. Got 0"),
        ({"groups": None, "permutations": 10}, "permutations needs groups"),
    ],
)
def test_invalid(load, change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load("vendi_embed").compute(**{**BASE, **change})


@pytest.mark.slow
def test_three_models_are_hardly_more_than_one(load, shared_data):
    # 75 of the 1 497 concepts of the released sets, four sentences of each model.
    systems = {}
    for name in ("gpt", "llama3", "qwen2"):
        with (shared_data / f"data/diversity_sets/{name}/original.jsonl").open(encoding="utf-8") as lines:
            systems[name] = [json.loads(line)["sentences"] for line in lines][::20]
    texts = np.array(list(systems.values()))
    vectors = encode(texts.ravel().tolist())[0].reshape(*texts.shape, -1)
    labels = np.repeat(list(systems), 4)

    def compute(shift):
        rows = [(np.arange(texts.shape[1]) + i * shift) % texts.shape[1] for i in range(3)]
        members = np.concatenate([texts[i, row] for i, row in enumerate(rows)], axis=1)
        embeddings = np.concatenate([vectors[i, row] for i, row in enumerate(rows)], axis=1)
        return load("vendi_embed").compute(
            predictions=members, embeddings=embeddings.reshape(members.size, -1), groups=[labels] * len(members)
        )

    same, different = compute(0), compute(25)
    assert (same["within"], same["pooled"]) == pytest.approx((2.16, 3.51), abs=0.15)
    assert (same["between"], same["between_expected"]) == pytest.approx((1.61, 1.57), abs=0.04)
    assert same["between_share"] == pytest.approx(0.04, abs=0.03)
    assert same["between_p"] < 0.05
    # On different concepts, three are almost three.
    assert different["between"] == pytest.approx(2.86, abs=0.05)
    assert different["between_share"] > 0.8
