"""Expected scores of subsets, against brute force over all subsets of small sets."""

import itertools
import math
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SETS
from tests.fuzzing import TIMES
from tests.references import classes as reference
from tests.references import diversity
from tests.test_contributions import LABELS, QUALITY, VECTORS, gaussian
from text_metrics.metrics._core import core_inputs, core_leave_one_out, core_rarefaction, core_results
from text_metrics.metrics.vendi_embed import vendi_embed_rarefied


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.data())
def test_expected_number_of_classes(labels, data):
    k = data.draw(st.integers(1, len(labels)))
    holders = np.unique(labels, return_counts=True)[1]
    owners = np.zeros(len(holders), dtype=np.int64)
    (found,) = core_rarefaction.expected_distinct(holders, owners, np.array([len(labels)]), k)
    expected = reference.expected(lambda places: len({labels[i] for i in places}), len(labels), k)
    assert found == pytest.approx(expected, rel=1e-12)


def test_expected_number_of_classes_of_several_sets():
    holders, owners, sizes = np.array([2, 1, 3, 4]), np.array([0, 0, 1, 1]), np.array([3, 7])
    found = core_rarefaction.expected_distinct(holders, owners, sizes, 2)
    assert found == pytest.approx([1 + 2 / 3, 1 + 12 / 21])


@pytest.mark.parametrize("n", [2, 3, 6, 30])
def test_chances_of_the_nearest(n):
    for k in range(2, n + 1):
        found = core_rarefaction.nearest_chances(n, k)
        expected = [math.comb(n - 2 - r, k - 2) / math.comb(n - 1, k - 1) for r in range(n - 1)]
        assert found == pytest.approx(expected, abs=1e-15)
        assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_expected_chamfer(rng, set_block_rows, k, weighted):
    sizes = np.array([5, 8, 5, 7])
    vectors = rng.standard_normal((sizes.sum(), 4))
    vectors[1] = vectors[0]
    factors = rng.random(sizes.sum()) if weighted else np.ones(sizes.sum())
    for block_rows in (6, 2048):
        set_block_rows(block_rows)
        found = core_inputs.mean_by_set(factors * core_leave_one_out.expected_nearest(vectors, sizes, k), sizes)
        for start, size, score in zip(np.cumsum(sizes) - sizes, sizes, found, strict=True):

            def chamfer(places, start=start):
                rows = start + np.array(places)
                return reference.chamfer(vectors[rows], factors[rows])

            assert score == pytest.approx(reference.expected(chamfer, size, k), rel=1e-12)


def test_mean_pairwise_distance_needs_no_rarefaction(rng):
    vectors = rng.standard_normal((7, 3))

    def pairwise(places):
        return np.mean([1 - diversity.cosines(vectors[list(pair)])[0, 1] for pair in itertools.combinations(places, 2)])

    for k in (2, 4, 7):
        assert reference.expected(pairwise, 7, k) == pytest.approx(pairwise(range(7)))


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_all_different_subsets_are_taken_where_there_are_few(multiplicities, data):
    groups = np.repeat(np.arange(len(multiplicities)), multiplicities)
    k = data.draw(st.integers(1, len(groups)))
    expected = Counter(tuple(groups[list(places)].tolist()) for places in itertools.combinations(range(len(groups)), k))
    found = core_rarefaction.different_subsets(tuple(multiplicities), k)
    if len(expected) > core_rarefaction.DRAWS:
        assert found is None
        return
    taken, chances = found
    positions = core_rarefaction.subset_positions(taken, np.array(multiplicities))
    assert all(len(set(row)) == k for row in positions.tolist())
    chance_of = dict(zip(map(tuple, groups[positions].tolist()), chances.tolist(), strict=True))
    assert chance_of == pytest.approx({own: n / expected.total() for own, n in expected.items()}, rel=1e-12)


def test_many_equal_texts_have_few_different_subsets():
    taken, chances = core_rarefaction.different_subsets((1000, 1, 1), 500)
    assert sorted(taken.tolist()) == [[498, 1, 1], [499, 0, 1], [499, 1, 0], [500, 0, 0]]
    assert core_rarefaction.subset_positions(taken, np.array([1000, 1, 1])).shape == (4, 500)
    # None, one and both of the two others: by the hypergeometric distribution.
    ways = [math.comb(1000, 500), math.comb(1000, 499), math.comb(1000, 499), math.comb(1000, 498)]
    assert sorted(chances) == pytest.approx(sorted(own / math.comb(1002, 500) for own in ways), rel=1e-10)
    assert core_rarefaction.different_subsets((1,) * 10**6, 10**6 - 1) is None
    assert core_rarefaction.different_subsets((1,) * 10**4, 10**4)[0].shape == (1, 10**4)


def drawn(seed, n, k):
    return np.concatenate(list(core_rarefaction.draw_subsets(seed, n, k)))


def test_draws_are_the_same_on_any_machine(monkeypatch):
    """Numbers of this code on x86-64 with numpy 2.4: a draw that moves changes scores under one signature."""
    keys = core_rarefaction.content_keys(["a", "", "é"])
    assert keys.tolist() == [3405396810240292928, 13020603013274838756, 3394012004367669963]
    vectors = np.array([[1.0, -0.0], [1.0, 0.0], [0.5, 2.0]])
    own = core_rarefaction.content_keys(["a"] * 3, vectors)
    assert own[0] == own[1] != own[2]
    assert core_rarefaction.content_keys(["a"] * 3, vectors.astype(np.float32)).tolist() == own.tolist()
    places = drawn(b"seed", 40, 7)
    assert places.shape == (core_rarefaction.DRAWS, 7)
    assert places[0].tolist() == [0, 3, 11, 13, 34, 36, 38]
    assert all(sorted(set(row)) == row and len(row) == 7 and max(row) < 40 for row in places.tolist())
    monkeypatch.setattr(core_rarefaction, "_NUMBERS_AT_ONCE", 100)
    np.testing.assert_array_equal(places, drawn(b"seed", 40, 7))
    assert (drawn(b"other", 40, 7) != places).any()
    # Each text is in as many draws as any other, but for chance.
    counts = np.bincount(drawn(b"seed", 8, 4).ravel())
    assert np.abs(counts - 100).max() < 4 * math.sqrt(50)


def test_expected_over_subsets(rng):
    sizes = np.array([2, 6, 3, 6, 1])
    vectors = rng.standard_normal((sizes.sum(), 3))
    contents = rng.permutation(sizes.sum())

    def score(rows):
        return np.array([[diversity.vendi(vectors[row], q) for q in (0.5, 2)] for row in rows])

    found = core_rarefaction.expected_over_subsets(score, contents, sizes, 3)
    assert np.isnan(found.means[[0, 4]]).all()
    assert np.isnan(found.errors[[0, 4]]).all()
    for start, size, means, errors in zip(np.cumsum(sizes) - sizes, sizes, *found, strict=True):
        if size >= 3:
            expected = reference.expected(lambda places: score([start + np.array(places)])[0], size, 3)  # noqa: B023
            assert means == pytest.approx(expected, rel=1e-12)
            assert errors.tolist() == [0, 0]


def test_a_sample_is_within_its_standard_error(rng):
    n, k = 12, 5
    values = rng.standard_normal(n)

    def score(rows):
        return values[rows].max(axis=1, keepdims=True)

    deviations = []
    for seed in range(30):
        values = np.random.default_rng(seed).standard_normal(n)
        found = core_rarefaction.expected_over_subsets(score, n * seed + np.arange(n), np.array([n]), k)
        expected = reference.expected(lambda places: values[places].max(), n, k)  # noqa: B023
        assert found.errors[0, 0] > 0
        deviations.append((found.means[0, 0] - expected) / found.errors[0, 0])
    assert 0.5 < np.std(deviations) < 1.6
    assert np.abs(deviations).max() < 4


def test_a_sample_depends_on_neither_order_nor_company(rng, monkeypatch):
    values = rng.standard_normal(40)

    def score(rows):
        return values[rows].max(axis=1, keepdims=True)

    alone = core_rarefaction.expected_over_subsets(score, np.arange(20), np.array([20]), 6)
    together = core_rarefaction.expected_over_subsets(score, np.arange(40), np.array([20, 3, 17]), 6)
    assert together.means[0] == alone.means[0]
    monkeypatch.setattr(core_rarefaction, "_TEXTS_AT_ONCE", 1)
    assert (
        core_rarefaction.expected_over_subsets(score, np.arange(40), np.array([20, 20]), 6).means[0] == alone.means[0]
    )
    order = rng.permutation(20)
    values = values[:20][order]
    shuffled = core_rarefaction.expected_over_subsets(score, order, np.array([20]), 6)
    assert shuffled.means[0] == pytest.approx(alone.means[0], rel=1e-12)


def test_draws_are_scored_in_blocks(rng):
    """k = 5 000: the 200 subsets of a set are a million rows."""
    n, k = 6000, 5000
    values = rng.standard_normal(n)
    n_texts = []

    def score(rows):
        n_texts.append(rows.size)
        return values[rows].max(axis=1, keepdims=True)

    found = core_rarefaction.expected_over_subsets(score, np.arange(n), np.array([n]), k)
    assert max(n_texts) <= core_rarefaction._TEXTS_AT_ONCE
    assert sum(n_texts) == core_rarefaction.DRAWS * k
    # The largest value is drawn in 5/6 of the subsets.
    top = np.sort(values)[::-1]
    expected = sum(top[i] * 5 / 6 ** (i + 1) for i in range(20))
    assert found.means[0, 0] == pytest.approx(expected, abs=4 * found.errors[0, 0])


@pytest.mark.parametrize(("n_different", "numbers"), [(20_000, 3 * core_rarefaction._NUMBERS_AT_ONCE), (8, 0)])
def test_memory_of_subsets_does_not_grow_with_their_number(n_different, numbers):
    """Neither of the 200 that are drawn, nor of the 128 different ones of a set with seven texts that are not equal."""
    n, k = 20_000, 16_000
    n_rows = []

    def score(rows):
        n_rows.append(len(rows))
        return rows[:, :1].astype(float)

    tracemalloc.start()
    core_rarefaction.expected_over_subsets(score, np.minimum(np.arange(n), n_different - 1), np.array([n]), k)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == [1] * (200 if numbers else 128)
    # Random numbers and their order, the positions of some subsets, and the set itself.
    assert peak < 8 * (numbers + core_rarefaction._LISTS_KEPT * k + 20 * n)


class_sets = st.lists(st.tuples(st.integers(0, 3), st.floats(0, 1)), min_size=1, max_size=8)


@settings(deadline=None, max_examples=60)
@given(st.lists(class_sets, min_size=1, max_size=3), st.data())
def test_expected_scores_of_classes_are_exact(sets, data):
    sizes = np.array([len(own) for own in sets])
    k = data.draw(st.integers(1, int(sizes.min())))
    labels, qualities = (np.concatenate([[text[i] for text in own] for own in sets]) for i in (0, 1))
    groups = vendi_embed_rarefied.group_texts(labels, sizes, qualities)
    orders = [1.0, 0.0, 0.5, 2.0, math.inf]
    scores, products = vendi_embed_rarefied.expected_of_classes(groups, k, orders)
    for start, size, own_scores, product in zip(np.cumsum(sizes) - sizes, sizes, scores, products, strict=True):

        def columns(places, start=start):
            rows = start + np.array(places)
            shares = np.unique(labels[rows], return_counts=True)[1] / k
            found = [diversity.vendi_of_eigenvalues(shares, q) for q in orders]
            return [*found, qualities[rows].mean() * found[0]]

        expected = reference.expected(columns, int(size), k)
        assert [*own_scores, product] == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_ways_to_fall_into_classes():
    """The numbers of partitions: OEIS A000041."""
    for k, n in ((1, 1), (4, 5), (10, 42), (vendi_embed_rarefied.LARGEST_EXACT, 627)):
        known = vendi_embed_rarefied.partitions(k)
        assert known.parts.shape == (n, k)
        assert (known.parts.sum(axis=1) == k).all()
        assert len(np.unique(known.parts, axis=0)) == n


@pytest.mark.parametrize("k", [20, 21])
def test_classes_of_large_sets(load, rng, k):
    """By a formula up to 20 texts, and by draws beyond: both are near each other, and signed."""
    texts = [f"{i}" for i in range(3000)]
    classes = rng.integers(0, 200, 3000).tolist()
    result = load("vendi_embed").compute(
        predictions=texts, kernel="classes", classes=classes, rarefy=k, q=[1, 0], details=True
    )
    errors = result["details"][0]["standard_errors"]
    # The chance that two texts of k are of one class is near 1/200.
    assert result["by_order"]["0"] == pytest.approx(200 * (1 - (1 - 1 / 200) ** k), rel=0.01)
    assert result["by_order"]["1"] == pytest.approx(result["by_order"]["0"], rel=0.05)
    assert (errors["1"] > 0) == ("|draws:200|draw_seed:content|" in result["signature"]) == (k == 21)
    order = rng.permutation(3000)
    again = load("vendi_embed").compute(
        predictions=[texts[i] for i in order], kernel="classes", classes=[classes[i] for i in order], rarefy=k
    )
    assert again["scores"] == pytest.approx(result["scores"], abs=1e-9)


def test_no_set_is_large_enough():
    found = core_rarefaction.expected_over_subsets(lambda rows: rows, np.arange(3), np.array([2, 1]), 3)
    assert np.isnan(found.means).all()


def test_rarefy_is_checked():
    with pytest.warns(UserWarning, match="2 of 3 sets have fewer than rarefy=3 texts"):
        assert core_rarefaction.large_enough(3, np.array([2, 3, 1])).tolist() == [False, True, False]
    with pytest.raises(ValueError, match=r"rarefy must be at least 2: .* Got 1"):
        core_rarefaction.subset_size(2)(1, "rarefy")
    with pytest.raises(TypeError, match="rarefy must be an integer"):
        core_rarefaction.subset_size()(2.5, "rarefy")


def brute_force(metric, settings, k, keys):
    """Score all subsets of k texts of each set that count; None for a set with fewer."""
    found = []
    for i, members in enumerate(SETS):
        start = sum(map(len, SETS[:i]))
        quality = settings.get("quality", QUALITY)[i]
        counted = [j for j in range(len(members)) if quality[j] >= settings.get("min_quality", 0)]
        rows = []
        for places in itertools.combinations(counted, k):
            own = dict(settings)
            if "embeddings" in settings:
                own["embeddings"] = settings["embeddings"][[start + j for j in places]]
            for name in ("classes", "quality"):
                if name in settings:
                    own[name] = [[settings[name][i][j] for j in places]]
            result = metric.compute(predictions=[[members[j] for j in places]], **own)
            rows.append([result[key] for key in keys])
        found.append(np.mean(rows, axis=0) if rows else None)
    return found


@pytest.mark.filterwarnings("ignore:.*fewer than rarefy")
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("name", "settings", "keys"),
    [
        ("vendi_embed", {"embeddings": VECTORS, "q": 0.5}, ["vendi_embed"]),
        ("vendi_embed", {"embeddings": VECTORS, "quality": QUALITY}, ["vendi_embed", "quality_vendi_embed"]),
        (
            "vendi_embed",
            {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.2},
            ["vendi_embed", "quality_vendi_embed"],
        ),
        ("vendi_embed", {"embeddings": VECTORS, "kernel": gaussian}, ["vendi_embed"]),
        ("vendi_embed", {"kernel": "ngram", "q": 2}, ["vendi_embed"]),
        ("vendi_embed", {"kernel": "classes", "classes": LABELS}, ["vendi_embed"]),
        ("vendi_embed", {"kernel": "classes", "classes": LABELS, "q": 0}, ["vendi_embed"]),
        (
            "vendi_embed",
            {"kernel": "classes", "classes": LABELS, "q": 0, "quality": QUALITY},
            ["vendi_embed", "quality_vendi_embed"],
        ),
        (
            "chamfer_diversity",
            {"embeddings": VECTORS, "quality": QUALITY},
            ["chamfer_diversity", "quality_chamfer_diversity", "mean_pairwise_distance"],
        ),
        (
            "chamfer_diversity",
            {"embeddings": VECTORS, "quality": QUALITY, "min_quality": 0.2},
            ["chamfer_diversity", "quality_chamfer_diversity"],
        ),
        ("self_bleu", {"max_order": 2}, ["self_bleu_1", "self_bleu_2", "entropy_1", "entropy_2"]),
        ("self_bleu", {"max_order": 2, "aggregate": "sentence"}, ["self_bleu_1", "self_bleu_2"]),
    ],
)
def test_rarefied_scores_equal_brute_force(load, name, settings, keys, k):
    metric = load(name)
    result = metric.compute(predictions=SETS, rarefy=k, **settings)
    expected = brute_force(metric, settings, k, keys)
    missing = [row is None for row in expected]
    assert [score is None for score in result["scores"]] == missing
    assert result["n_too_small"] == sum(missing)
    means = np.mean([row for row in expected if row is not None], axis=0)
    assert [result[key] for key in keys] == pytest.approx(means, abs=1e-9)
    assert f"|rarefy:{k}|" in result["signature"]


def test_classes_are_those_of_the_whole_set(load):
    # B is the same as A and C: together with A it is in A's class, also where only B and C are drawn.
    vectors = np.array([[1.0, 0.0], [np.cos(0.5), np.sin(0.5)], [np.cos(1.0), np.sin(1.0)]])
    settings = {"predictions": list("ABC"), "embeddings": vectors, "kernel": "classes", "same": 0.8, "q": [0, 1]}
    result = load("vendi_embed").compute(rarefy=2, details=True, **settings)
    assert result["vendi_embed"] == pytest.approx((1 + 2 + 2) / 3)
    assert result["details"][0]["standard_errors"] == {"0": 0.0, "1": 0.0}
    assert result["details"][0]["classes"] == [0, 0, 1]


def test_distinct_is_a_ratio_of_expected_counts(load):
    sets = [["a b c", "a b", "c c d e", "a e f"], ["a", "b b"]]
    result = load("self_bleu").compute(predictions=sets, max_order=2, rarefy=2, details=True)
    for order in (1, 2):
        expected = []
        for members in sets:

            def counts(places, members=members, order=order):
                pooled = diversity.pooled_ngrams([members[i].split() for i in places], order)
                return [len(pooled), sum(pooled.values())]

            distinct, total = reference.expected(counts, len(members), 2)
            expected.append(distinct / total if total else 0.0)
        assert [row[f"distinct_{order}"] for row in result["details"]] == pytest.approx(expected)
        assert result[f"distinct_{order}"] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity", "self_bleu"])
def test_a_whole_set_is_its_own_only_subset(load, name):
    settings = {"max_order": 2} if name == "self_bleu" else {"embeddings": VECTORS[:4]}
    plain = load(name).compute(predictions=SETS[:1], **settings)
    result = load(name).compute(predictions=SETS[:1], rarefy=4, **settings)
    for key, value in plain.items():
        if key != "signature":
            assert result[key] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ["vendi_embed", "self_bleu"])
def test_a_sampled_score_has_a_standard_error(load, name, rng):
    words = "abcdefgh"
    texts = [" ".join(rng.choice(list(words), 5)) for _ in range(20)]
    settings = {"kernel": "ngram"} if name == "vendi_embed" else {"max_order": 2}
    result = load(name).compute(predictions=texts, rarefy=5, details=True, **settings)
    (own,) = result["details"]
    assert all(0 < error < 0.2 for error in own["standard_errors"].values())
    shuffled = load(name).compute(predictions=rng.permutation(texts).tolist(), rarefy=5, **settings)
    assert shuffled["scores"] == pytest.approx(result["scores"], abs=1e-9)
    together = load(name).compute(predictions=[texts, texts[:7]], rarefy=5, **settings)
    assert together["scores"][0] == pytest.approx(result["scores"][0], abs=1e-9)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity", "self_bleu"])
def test_small_sets_have_no_score(load, name):
    settings = {} if name == "self_bleu" else {"embeddings": VECTORS}
    with pytest.warns(UserWarning, match="3 of 5 sets have fewer than rarefy=4 texts: they have no score"):
        result = load(name).compute(predictions=SETS, rarefy=4, details=True, confidence=0.9, **settings)
    assert [score is None for score in result["scores"]] == [False, True, True, False, True]
    assert [row is None for row in result["details"]] == [False, True, True, False, True]
    assert result["n_too_small"] == 3
    assert result[name] == pytest.approx(np.mean([score for score in result["scores"] if score is not None]))
    with pytest.warns(UserWarning, match="1 of 1 sets"):
        result = load(name).compute(predictions=["one"], rarefy=2, confidence=0.9, details=True)
    assert result[name] is None
    assert result["scores"] == result["details"] == [None]
    assert result["confidence_interval"] is None


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("vendi_embed", {"rarefy": 0}, "rarefy must be at least 1. Got 0"),
        ("chamfer_diversity", {"rarefy": 1}, "rarefy must be at least 2: .* Got 1"),
        ("self_bleu", {"rarefy": 1}, "rarefy must be at least 2: .* Got 1"),
        ("self_bleu", {"rarefy": "2"}, "rarefy must be an integer. Got str '2'"),
        ("vendi_embed", {"rarefy": 2, "contributions": True}, "contributions cannot be combined with rarefy"),
        ("chamfer_diversity", {"rarefy": 2, "contributions": True}, "contributions cannot be combined with rarefy"),
        ("vendi_embed", {"rarefy": 2, "weights": [0.5, 0.5]}, "weights cannot be combined with rarefy"),
        (
            "vendi_embed",
            {"rarefy": 2, "kernel": "classes", "patience": 0.5, "quality": [1, 1]},
            "patience cannot be combined with rarefy",
        ),
        ("self_bleu", {"rarefy": 2, "aggregate": "corpus"}, "rarefy has no effect with aggregate='corpus'"),
        ("chamfer_diversity", {"rarefy": 2, "singletons": "x"}, "singletons must be one of"),
    ],
)
def test_errors_name_the_setting(load, name, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load(name).compute(predictions=["x", "y"], **settings)


# The order of a set, and what it is drawn from.

N = 12
MANY = {
    "embeddings": np.random.default_rng(1).standard_normal((N, 5))[[0, 0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]],
    "texts": ["a b c d", "a b c d", "a b", "c d e", "e f g", "e f g", "g h a", "b c d e", "a", "c d", "h a b", "f g"],
    "quality": [0.9, 0.1, 0.5, 0.3, 0.2, 0.8, 0.7, 0.6, 1.0, 0.4, 0.0, 0.5],
    "classes": [1, 1, 2, 1, 3, 3, 4, 2, 5, 5, 6, 7],
    "weights": (np.arange(1, N + 1) / 78).tolist(),
}
BLOCKS = np.kron(np.eye(4), np.ones((3, 3)))
RING = np.eye(N) + 0.4 * (np.roll(np.eye(N), 1, axis=0) + np.roll(np.eye(N), -1, axis=0))
NAMES = ["x"] * N


def reordered(value, order):
    """Bring what belongs to the texts of a set into another order: lists, rows, or both sides of a matrix."""
    if isinstance(value, list):
        return [value[i] for i in order]
    return value[order][:, order] if value.shape == (N, N) else value[order]


@pytest.mark.parametrize("rarefy", [None, 2, 4, 11])
@pytest.mark.parametrize(
    ("name", "settings", "given"),
    [
        ("vendi_embed", {}, ["embeddings"]),
        ("vendi_embed", {"q": [0.5, "inf"]}, ["embeddings", "quality"]),
        ("vendi_embed", {}, ["embeddings", "weights"]),
        ("vendi_embed", {"min_quality": 0.2}, ["embeddings", "quality"]),
        ("vendi_embed", {"kernel": gaussian}, ["embeddings", "quality"]),
        ("vendi_embed", {"kernel": "ngram"}, ["quality"]),
        ("vendi_embed", {"kernel": "ngram", "predictions": NAMES}, ["quality"]),
        ("vendi_embed", {"kernel": "classes"}, ["classes", "quality"]),
        ("vendi_embed", {"kernel": "classes", "same": 0.3}, ["embeddings", "quality"]),
        ("vendi_embed", {"similarity": BLOCKS}, ["quality"]),
        ("vendi_embed", {"similarity": RING, "predictions": NAMES}, ["quality"]),
        ("vendi_embed", {"similarity": BLOCKS, "predictions": NAMES}, []),
        ("vendi_embed", {"similarity": RING, "predictions": NAMES, "kernel": "classes", "same": 0.4, "q": 0}, []),
        ("chamfer_diversity", {}, ["embeddings", "quality"]),
        ("chamfer_diversity", {"min_quality": 0.2}, ["embeddings", "quality"]),
        ("chamfer_diversity", {"similarity": RING, "predictions": NAMES}, ["quality"]),
        ("self_bleu", {"max_order": 2}, []),
        ("self_bleu", {"max_order": 2, "aggregate": "sentence"}, []),
        # The compression ratio of a whole set depends on its order, by definition.
        ("self_bleu", {"max_order": 2, "repetition": True}, []),
    ],
)
def test_the_order_of_a_set_with_all_that_belongs_to_it_does_not_matter(load, rng, name, settings, given, rarefy):
    if rarefy is not None and "weights" in given:
        pytest.skip("weights cannot be combined with rarefy")
    if rarefy is None and "repetition" in settings:
        pytest.skip("the compression ratio of a whole set depends on its order")
    own = {"predictions": MANY["texts"], **settings, **{key: MANY[key] for key in given}}
    own |= {} if rarefy is None else {"rarefy": rarefy}
    expected = numbers(load(name).compute(**own))
    for _ in range(4):
        order = rng.permutation(N).tolist()
        moved = {
            key: reordered(value, order) if key in ("predictions", "similarity", *given) else value
            for key, value in own.items()
        }
        found = numbers(load(name).compute(**moved))
        assert found.keys() == expected.keys()
        for key, value in found.items():
            assert value == pytest.approx(expected[key], abs=1e-9), key


def numbers(result):
    return {key: value for key, value in result.items() if key != "signature"}


@pytest.mark.parametrize("rarefy", [2, 4, 11])
@pytest.mark.parametrize("settings", [{}, {"kernel": "classes", "classes": MANY["classes"]}])
def test_quality_does_not_change_the_rarefied_score(load, rarefy, settings):
    own = {"predictions": MANY["texts"], "rarefy": rarefy, **settings}
    own |= {} if settings else {"embeddings": MANY["embeddings"]}
    plain = load("vendi_embed").compute(**own)
    found = load("vendi_embed").compute(quality=MANY["quality"], **own)
    assert found["scores"] == pytest.approx(plain["scores"], abs=1e-12)
    half = load("vendi_embed").compute(quality=[0.5] * N, **own)
    assert half["quality_scores"] == pytest.approx([score / 2 for score in plain["scores"]], abs=1e-12)


@pytest.mark.parametrize("name", ["vendi_embed", "self_bleu"])
def test_equal_sets_score_the_same_and_others_are_drawn_anew(load, name):
    texts = [f"w{i % 5} w{i % 2} w{i % 3} w{i}" for i in range(12)]
    renamed = [text.replace("w", "v") for text in texts]
    settings = {"kernel": "ngram"} if name == "vendi_embed" else {"max_order": 2}
    sets = [texts, renamed, texts[::-1]]
    whole = load(name).compute(predictions=sets, **settings)["scores"]
    assert whole[0] == pytest.approx(whole[1], abs=1e-12)
    scores = load(name).compute(predictions=sets, rarefy=4, **settings)["scores"]
    assert scores[0] == pytest.approx(scores[2], abs=1e-12)
    assert abs(scores[0] - scores[1]) > 1e-6
    one = load(name).compute(predictions=[renamed], rarefy=4, **settings)["scores"]
    assert one == pytest.approx(scores[1:2], abs=1e-12)


def test_the_batch_does_not_change_the_draw(load):
    texts = [f"{word} {i}" for i, word in enumerate(["The dog barks.", "A cat sleeps.", "Rain fell."] * 4)]
    results = [load("vendi_embed").compute(predictions=texts, rarefy=4, batch_size=size) for size in (1, 5, 100)]
    for result in results[1:]:
        assert result["scores"] == pytest.approx(results[0]["scores"], abs=1e-5)


# Simulations: `make attack` makes them larger.

SIMULATED = 400 * TIMES
# Ten equal texts of twelve, or of sixteen, and structures of which all sets are alike but for the names.
PATTERNS = {12: "aaaaaabbcdef", 16: "aaaaaaaabbccdefg"}


def simulated_sets(n, rng, alike):
    """Make sets of different words: alike in structure, or of random texts."""
    for i in range(SIMULATED):
        if alike:
            yield [f"{c}{i} {chr(ord(c) + 1)}{i} {'xyz'[j % 3]}{i} {j}" for j, c in enumerate(PATTERNS[n])]
        else:
            level = rng.integers(2, 9)
            yield [" ".join(f"{w}" for w in rng.integers(0, level, 4)) + f" {i} {j}" for j in range(n)]


def measures(load, sets, k):
    """Yield for each metric that draws: its sampled scores and standard errors, and those of all subsets."""
    n = len(sets[0])
    subsets = list(itertools.combinations(range(n), k))
    for name, own in (("vendi_embed", {"kernel": "ngram", "q": 2}), ("self_bleu", {"max_order": 2})):
        found = load(name).compute(predictions=sets, rarefy=k, details=True, **own)
        key = "2" if name == "vendi_embed" else "self_bleu_2"
        errors = np.array([row["standard_errors"][key] for row in found["details"]])
        yield name, own, np.array(found["scores"]), errors, subsets


@pytest.mark.parametrize("n", sorted(PATTERNS))
def test_simulated_sets_that_are_alike_have_no_common_error(load, rng, n):
    """The case in which one sample for all sets reversed a comparison of sets of 12 with sets of 16."""
    sets = list(simulated_sets(n, rng, alike=True))
    for name, own, scores, errors, subsets in measures(load, sets, 4):
        truth = load(name).compute(predictions=[[sets[0][i] for i in places] for places in subsets], **own)[name]
        assert errors.min() > 0
        assert_unbiased(scores - truth, errors)
        # Means of 20 sets, with their intervals: all the spread is that of the draws.
        assert_coverage(scores, truth)


def test_simulated_sets_that_differ_are_covered(load, rng):
    sets = list(simulated_sets(12, rng, alike=False))
    for name, own, scores, errors, subsets in measures(load, sets, 4):
        few = sets[:100]
        everything = [[members[i] for i in places] for members in few for places in subsets]
        exact = np.array(load(name).compute(predictions=everything, **own)["scores"]).reshape(len(few), -1).mean(axis=1)
        assert_unbiased(scores[: len(few)] - exact, errors[: len(few)])
        assert_coverage(scores, scores.mean())


def assert_unbiased(deviations, errors):
    """Hold the mean of the errors of drawing near 0, and their spread near what each standard error says."""
    assert abs(deviations.mean()) < 4 * math.sqrt((errors**2).mean() / len(errors))
    assert 0.8 < np.std(deviations / errors) < 1.2


def assert_coverage(scores, truth, level=0.9, n=20):
    """Hold the share of intervals of the means of n sets that contain the truth, whose own bias at n = 20 is .03."""
    samples = scores.reshape(-1, n)
    intervals = [core_results.mean_estimate(sample).interval(level) for sample in samples]
    covered = np.mean([low <= truth <= high for low, high in intervals])
    assert abs(covered - level) < 0.03 + 3 * math.sqrt(level * (1 - level) / len(samples))
