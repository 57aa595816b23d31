"""Expected scores of subsets, against brute force over all subsets of small sets."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import SETS
from tests.references import classes as reference
from tests.references import diversity
from tests.test_contributions import LABELS, QUALITY, VECTORS, gaussian
from text_metrics.metrics._core import core_inputs, core_neighbours, core_rarefaction


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
def test_expected_chamfer(rng, k, weighted):
    sizes = np.array([5, 8, 5, 7])
    vectors = rng.standard_normal((sizes.sum(), 4))
    vectors[1] = vectors[0]
    factors = rng.random(sizes.sum()) if weighted else np.ones(sizes.sum())
    for block_rows in (6, 2048):
        found = core_inputs.mean_by_set(
            factors * core_neighbours.expected_nearest(vectors, sizes, k, block_rows=block_rows), sizes
        )
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


def test_all_subsets_are_taken_where_there_are_few():
    places, complete = core_rarefaction.subsets(6, 3)
    assert complete
    assert sorted(map(tuple, places.tolist())) == list(itertools.combinations(range(6), 3))
    places, complete = core_rarefaction.subsets(40, 7)
    assert not complete
    assert places.shape == (core_rarefaction.DRAWS, 7)
    assert all(len(set(row)) == 7 and min(row) >= 0 and max(row) < 40 for row in places.tolist())
    np.testing.assert_array_equal(places, core_rarefaction.subsets(40, 7)[0])


def test_expected_over_subsets(rng):
    sizes = np.array([2, 6, 3, 6, 1])
    vectors = rng.standard_normal((sizes.sum(), 3))
    ranks = rng.permutation(sizes.sum())

    def score(rows):
        return np.array([[diversity.vendi(vectors[row], q) for q in (0.5, 2)] for row in rows])

    found = core_rarefaction.expected_over_subsets(score, ranks, sizes, 3)
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
        found = core_rarefaction.expected_over_subsets(score, np.arange(n), np.array([n]), k)
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


def test_no_set_is_large_enough():
    found = core_rarefaction.expected_over_subsets(lambda rows: rows, np.arange(3), np.array([2, 1]), 3)
    assert np.isnan(found.means).all()


def test_rarefy_is_checked():
    sizes = np.array([2, 3, 1])
    assert core_rarefaction.parse_rarefy(None, sizes) is None
    with pytest.warns(UserWarning, match="2 of 3 sets have fewer than rarefy=3 texts"):
        assert core_rarefaction.parse_rarefy(3, sizes) == 3
    with pytest.raises(ValueError, match=r"rarefy must be at least 2: .* Got 1"):
        core_rarefaction.parse_rarefy(1, sizes, 2)
    with pytest.raises(TypeError, match="rarefy must be an integer"):
        core_rarefaction.parse_rarefy(2.5, sizes)


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
        ("vendi_embed", {"rarefy": 2, "contributions": True}, "contributions cannot be given with rarefy"),
        ("chamfer_diversity", {"rarefy": 2, "contributions": True}, "contributions cannot be given with rarefy"),
        ("vendi_embed", {"rarefy": 2, "weights": [0.5, 0.5]}, "weights cannot be given with rarefy"),
        (
            "vendi_embed",
            {"rarefy": 2, "kernel": "classes", "patience": 0.5, "quality": [1, 1]},
            "patience cannot be given with rarefy",
        ),
        ("self_bleu", {"rarefy": 2, "aggregate": "corpus"}, "rarefy has no effect with aggregate='corpus'"),
        ("chamfer_diversity", {"rarefy": 2, "singletons": "x"}, "singletons must be one of"),
    ],
)
def test_errors_name_the_setting(load, name, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load(name).compute(predictions=["x", "y"], **settings)
