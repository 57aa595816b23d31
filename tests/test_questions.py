"""Contributions, expected scores of k texts and diversity between groups, against plain loops over `compute`."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch

import text_metrics
from tests.conftest import approx

SETS = [
    ["a b c", "a b d", "x y z", "a b c"],
    ["d e f g", "a b", "m n o p", "d e f h", "q"],
    ["y x y x", "y x", "z"],
]
SIZES = [len(members) for members in SETS]
N = sum(SIZES)
RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((N, 3)) + 0.6
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)


def by_set(values):
    ends = np.cumsum(SIZES)
    return [values[end - size : end] for end, size in zip(ends, SIZES, strict=True)]


WEIGHTS = [RNG.dirichlet(np.ones(size)).tolist() for size in SIZES]
QUALITY = [row.tolist() for row in by_set(RNG.random(N))]
COSINES = [rows @ rows.T for rows in by_set(UNIT)]
LABELS = [[1, 1, 2, 3], ["u", "v", "u", "w", "w"], [0, 0, 0]]
OF_CONTEXTS = {"embeddings": VECTORS, "context_embeddings": [VECTORS[0] + 1, None, VECTORS[1]]}
LOG_PROBS = [[-1.0, -2.0, -0.5, -3.0], [-1.0] * 5, [-0.1, -0.2, -4.0]]


def same_letter(left, right):
    return [a[0] == b[0] for a, b in zip(left, right, strict=True)]


CASES = {
    "vendi": ("vendi_embed", {"embeddings": VECTORS, "q": [1, 2]}),
    "vendi weights": ("vendi_embed", {"embeddings": VECTORS, "weights": WEIGHTS, "quality": QUALITY}),
    "vendi words": ("vendi_embed", {"kernel": "ngram"}),
    "vendi pairs": ("vendi_embed", {"embeddings": VECTORS, "pairs": True, "q": [1, 2]}),
    "vendi matrices": ("vendi_embed", {"similarity": COSINES, "q": 0.5}),
    "vendi encoder": ("vendi_embed", {}),
    "vendi contexts": ("vendi_embed", {"contexts": ["a b", None, "x y"], "q": [1, 2]}),
    "vendi vectors of contexts": ("vendi_embed", {**OF_CONTEXTS, "q": 0.5}),
    "chamfer contexts": ("chamfer_diversity", {"contexts": ["a b", "d", ""]}),
    "chamfer": ("chamfer_diversity", {"embeddings": by_set(VECTORS), "quality": QUALITY}),
    "chamfer matrices": ("chamfer_diversity", {"similarity": COSINES}),
    "entropy": ("semantic_entropy", {"same": same_letter}),
    "entropy classes": ("semantic_entropy", {"classes": LABELS, "quality": QUALITY, "min_quality": 0.5}),
    "entropy cosines": ("semantic_entropy", {"embeddings": VECTORS, "same": 0.7, "grouping": "greedy"}),
    "entropy likelihoods": ("semantic_entropy", {"same": same_letter, "log_probs": LOG_PROBS}),
    "self-BLEU": ("self_bleu", {"max_order": 2, "smoothing": "method1"}),
    "words of self-BLEU": ("self_bleu", {"max_order": 2, "repetition": True, "homogenization": True}),
    "tokens of self-BLEU": ("self_bleu", {"max_order": 1, "vocabulary_size": 50, "singletons": "skip"}),
}
each_case = pytest.mark.parametrize("case", CASES)


def score(load, case, i, members):
    """Score some texts of a set by themselves; None where they have no score."""
    name, settings = CASES[case]
    given = dict(settings)
    members = list(members)
    for key in ("quality", "classes", "log_probs"):
        if key in given:
            given[key] = [[given[key][i][j] for j in members]]
    for key in ("contexts", "context_embeddings"):
        if key in given:
            given[key] = [given[key][i]]
    if "weights" in given:
        row = np.array(given["weights"][i])[members]
        given["weights"] = [(row / row.sum()).tolist()]
    if "embeddings" in given:
        given["embeddings"] = by_set(VECTORS)[i][members]
    if "similarity" in given:
        given["similarity"] = [COSINES[i][np.ix_(members, members)]]
    if len(members) < (2 if name in ("chamfer_diversity", "self_bleu") else 1):
        return None
    return load(name).compute(predictions=[[SETS[i][j] for j in members]], **given)


@each_case
def test_contributions_are_those_of_a_loop(load, case):
    name, settings = CASES[case]
    actual = text_metrics.contributions(name, SETS, **settings)
    for i, size in enumerate(SIZES):
        whole = score(load, case, i, range(size))["scores"][0]
        for j in range(size):
            rest = score(load, case, i, [k for k in range(size) if k != j])
            assert actual[i][j] == pytest.approx(whole - rest["scores"][0], abs=1e-6)


def nearly_equal(n_different, copies, d, error):
    """Make rows whose copies differ by errors of a length, as those of an encoder in few bits do."""
    generator = np.random.default_rng(2)
    rows = np.repeat(generator.standard_normal((n_different, d)), copies, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    errors = generator.standard_normal(rows.shape)
    return rows + error * errors / np.linalg.norm(errors, axis=1, keepdims=True)


def word_counts(n, vocabulary):
    """Count words that few texts share; each text has one of its own."""
    shared = np.random.default_rng(3).poisson(0.2, (n, vocabulary))
    return np.hstack([shared, np.eye(n)])


COUNTS = word_counts(14, 20)
# Texts that the others do not span, and those that they nearly span.
ROWS = {
    "one-hot": np.eye(9),
    "one-hot, more dimensions": np.eye(30)[:12],
    "one-hot, more texts than dimensions": np.eye(5)[[0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 4]],
    "counts": COUNTS,
    "TF-IDF": COUNTS * np.log(14 / np.count_nonzero(COUNTS, axis=0).clip(1)),
    "copies of one": np.ones((10, 4)),
    "as many texts as dimensions": np.random.default_rng(4).standard_normal((12, 12)),
    "one text more than dimensions": np.random.default_rng(4).standard_normal((13, 12)),
    "errors of float32": nearly_equal(6, 3, 24, 1e-6),
    "errors of float16": nearly_equal(6, 3, 24, 1e-3),
    "errors of bfloat16": nearly_equal(6, 3, 24, 1e-2),
    "errors of more texts than dimensions": nearly_equal(5, 4, 7, 1e-2),
    "small eigenvalues": np.random.default_rng(5).standard_normal((40, 24)) * 2.0 ** -np.arange(24),
}


def scores_without(load, vectors, q, **context):
    """Score some rows, and those without each of them."""
    n = len(vectors)
    members = [list(range(n))]
    for i in range(n):
        members.append([j for j in range(n) if j != i])
    texts = [list(map(str, rows)) for rows in members]
    given = {name: [value] * (1 + n) for name, value in context.items()}
    embeddings = torch.cat([vectors[rows] for rows in members])
    return load("vendi_embed").compute(predictions=texts, embeddings=embeddings, q=q, **given)["scores"]


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rows", ROWS)
def test_contributions_are_scores_minus_scores_without(load, rows, kind):
    """Of texts that are exactly orthogonal, and of each type, whose noise is cut after a text has left."""
    vectors = torch.from_numpy(ROWS[rows]).to(getattr(torch, kind))
    texts = [str(i) for i in range(len(vectors))]
    for q in (1, 2):
        whole, *without = scores_without(load, vectors, q)
        (actual,) = text_metrics.contributions("vendi_embed", [texts], embeddings=vectors, q=q)
        assert actual == pytest.approx([whole - score for score in without], abs=1e-9)
        if rows.startswith("one-hot") and len(vectors) <= vectors.shape[1]:
            assert actual == pytest.approx([1.0] * len(texts))


@pytest.mark.parametrize(
    ("d", "block_rows", "kind"),
    [(3, 16, "float64"), (16, 16, "bfloat16"), (16, 2048, "float32"), (400, 2048, "float16"), (400, 2048, "float64")],
)
def test_contributions_in_company_are_those_of_a_loop(load, set_block_rows, d, kind, block_rows):
    """Of sets of one text, of copies, near copies, more texts than dimensions and fewer; a context equals a text."""
    set_block_rows(block_rows)
    generator = np.random.default_rng(11)
    sizes = [1, 2, 2, 5, 17, 40, 10, 17, 1]
    rows = generator.standard_normal((sum(sizes), d))
    rows[1], rows[7] = -2 * rows[2], rows[6] + 0.01 * rows[5]
    rows[[12, 16, 30, 31, 32]] = rows[[10, 10, 40, 40, 41]]
    rows[67:77] = nearly_equal(2, 5, d, 1e-6)
    # Two sets of one size, with other numbers of copies.
    rows[78:84] = rows[77]
    vectors = torch.from_numpy(rows).to(getattr(torch, kind))
    sets = []
    for number, size in enumerate(sizes):
        sets.append([f"{number} {j}" for j in range(size)])
    contexts = [vectors[-1 - i] + vectors[i] for i in range(len(sizes))]
    contexts[5] = vectors[35]
    for given in ({}, {"context_embeddings": contexts}):
        for q in (1, [2, 0.5]):
            result = text_metrics.contributions(load("vendi_embed"), sets, embeddings=vectors, q=q, **given)
            for i, part in enumerate(vectors.split(sizes)):
                if sizes[i] == 1:
                    assert result[i] == [None]
                    continue
                whole, *left = scores_without(load, part, q, **{name: values[i] for name, values in given.items()})
                assert result[i] == pytest.approx([whole - score for score in left], abs=1e-9)
    # The text that equals its context is orthogonal to all others.
    assert d < 400 or text_metrics.contributions("vendi_embed", sets, embeddings=vectors, **given)[5][8] > 0.9


@each_case
def test_expected_scores_are_those_of_a_loop(load, case):
    name, settings = CASES[case]
    result = text_metrics.rarefied(load(name), SETS, 3, confidence=0.9, **settings)
    plain = load(name).compute(predictions=SETS, confidence=0.9, **settings)
    assert result.keys() - plain.keys() == {"n_too_small"}
    subsets = []
    for i, size in enumerate(SIZES):
        subsets.append([score(load, case, i, members) for members in combinations(range(size), 3)])
    for key, value in plain.items():
        if key == "signature":
            head, _, version = value.rpartition("|version:")
            assert result[key] == f"{head}|rarefy:3|draws:200|seed:0|version:{version}"
        elif key.endswith("confidence_interval"):
            assert result[key] is None or result[key][0] <= result[key][1]
        elif key.startswith("n_") and isinstance(value, int):
            assert result[key] == value
        else:
            assert numbers(result[key]) == pytest.approx(average(subsets, key), abs=1e-6), key


def numbers(value):
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def average(subsets, key):
    """Average a result over all subsets of three texts of each set: for each set, or over sets.

    Of pairs, the squared similarities are averaged, and they are 1 over these.
    """
    power = -1 if key.startswith("pairs") else 1
    of_sets = []
    for results in subsets:
        rows = [numbers(result[key]) for result in results]
        of_sets.append(np.mean(np.power(rows, power), axis=0))
    averages = np.concatenate(of_sets) if key.endswith("scores") else np.mean(of_sets, axis=0)
    return averages**power


def test_the_diversity_of_pairs_does_not_follow_from_the_number_of_texts(load):
    """It is unbiased: all subsets of any size have the squared similarity of the whole set, also where that is 0."""
    sets = [*SETS[:2], ["a b c d", "e f g h", "i j k l", "m n o p"], ["f"]]
    plain = load("vendi_embed").compute(predictions=sets, kernel="ngram", pairs=True, confidence=0.9)
    assert plain["pairs_scores"][2:] == [None, None]
    for k in (2, 3, 4):
        result = text_metrics.rarefied("vendi_embed", sets, k, kernel="ngram", pairs=True, confidence=0.9)
        for name in ("pairs", "pairs_scores", "pairs_confidence_interval"):
            assert result[name] == approx(plain[name]), name
    alone = text_metrics.rarefied("vendi_embed", sets, 1, kernel="ngram", pairs=True)
    assert (alone["pairs"], alone["pairs_scores"]) == (None, [None] * 4)


def test_a_setting_that_pools_sets(load):
    """It is found by what it is, not by the scores: those of sets that have nothing in common average to 0, too."""
    sets = [["a b", "c d"], ["e f g", "h i j", "k l m"]]
    with pytest.raises(ValueError, match="aggregate"):
        text_metrics.rarefied("self_bleu", sets, 2, aggregate="corpus", smoothing="none", max_order=1)
    one = text_metrics.rarefied("self_bleu", SETS[0], 3, aggregate="corpus", max_order=2)
    assert one["scores"] == text_metrics.rarefied("self_bleu", SETS[0], 3, max_order=2)["scores"]


def test_sets_that_are_too_small_have_no_score(load):
    sets = [["a b"], ["a b", "c d"], ["a b", "c", "d e"]]
    for name in ("vendi_embed", "chamfer_diversity", "self_bleu"):
        result = text_metrics.rarefied(name, sets, 3, details=True)
        assert result["scores"][:2] == result["details"][:2] == [None, None]
        assert result["n_too_small"] == 2
        assert result[name] == result["scores"][2]
        assert text_metrics.rarefied(name, sets[:2], 3)[name] is None
    assert text_metrics.contributions("vendi_embed", sets)[0] == [None]
    assert text_metrics.contributions("chamfer_diversity", sets, singletons="skip")[:2] == [[None], [None, None]]
    with pytest.raises(ValueError, match="one text"):
        text_metrics.contributions("chamfer_diversity", sets)


def test_random_subsets_are_near_the_expectation_and_follow_from_the_seed():
    texts = [f"{a} {b} {c}" for a in "abc" for b in "de" for c in "fg"]
    exact = text_metrics.rarefied("vendi_embed", texts, 4, draws=1000, kernel="ngram")["vendi_embed"]
    draws = [
        text_metrics.rarefied("vendi_embed", texts, 4, draws=60, seed=seed, kernel="ngram")["vendi_embed"]
        for seed in range(8)
    ]
    assert np.mean(draws) == pytest.approx(exact, abs=4 * np.std(draws) / math.sqrt(8))
    assert len(set(draws)) == 8
    shuffled = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]
    again = text_metrics.rarefied("vendi_embed", [texts[:4], shuffled], 4, draws=60, seed=3, kernel="ngram")
    assert again["scores"][1] == pytest.approx(draws[3], abs=1e-12)


def test_each_text_is_encoded_once_and_each_pair_asked_once():
    seen = []
    judged = []

    class Encoder:
        def encode(self, texts):
            seen.extend(texts)
            return np.array([[len(text), text.count("a"), 1.0] for text in texts])

    def same(left, right):
        judged.extend(zip(left, right, strict=True))
        return same_letter(left, right)

    # 36,000 texts, more than are scored by one call of `compute`.
    texts = [f"{letter} a{letter * i}" for letter in "abcdefgh" for i in range(5)]
    result = text_metrics.rarefied("vendi_embed", texts, 30, draws=1200, model=Encoder())
    assert sorted(seen) == sorted(texts)
    assert "model:given(Encoder)|" in result["signature"]
    result = text_metrics.contributions("semantic_entropy", SETS, same=same)
    assert len(set(judged)) == len(judged)
    assert result == text_metrics.contributions("semantic_entropy", SETS, same=same_letter)


def test_a_text_with_all_the_weight_has_no_contribution():
    given = {"predictions": ["a", "b"], "weights": [1.0, 0.0], "kernel": "ngram"}
    assert text_metrics.contributions("vendi_embed", **given) == [[None, pytest.approx(0)]]


# Groups.

GROUPS = [["x", "x", "y", "y"], [1, 2, 2, 1, 3], [5, 5, 5]]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["uniform", "weights"])
@pytest.mark.parametrize("case", ["vendi matrices", "entropy"])
def test_the_parts_of_diversity_are_those_of_a_loop(load, case, weights):
    kernels = COSINES
    if case == "entropy":
        kernels = [np.array([same_letter([a] * len(row), row) for a in row], dtype=float) for row in SETS]
    name, settings = CASES[case]
    given = {key: value for key, value in settings.items() if key != "q"} | ({"weights": weights} if weights else {})
    result = text_metrics.between_groups(name, SETS, GROUPS, permutations=400, confidence=0.9, **given)
    shares = weights or [[1 / size] * size for size in SIZES]
    chi = []
    chances = []
    for i, (kernel, labels, row) in enumerate(zip(kernels, GROUPS, np.array(shares, object), strict=True)):
        row = np.array(row, dtype=float)
        chi.append(holevo(kernel, labels, row))
        generator = np.random.default_rng(1)
        orders = [generator.permutation(len(labels)) for _ in range(1500)]
        chances.append([holevo(kernel[np.ix_(order, order)], labels, row) for order in orders])
        pooled = entropy(kernel, row)
        assert result["pooled_scores"][i] == pytest.approx(math.exp(pooled), abs=1e-6)
        assert result["within_scores"][i] == pytest.approx(math.exp(pooled - chi[i]), abs=1e-6)
        assert result["between_scores"][i] == pytest.approx(math.exp(chi[i]), abs=1e-6)
        error = np.std(chances[i]) * math.sqrt(1 / 400 + 1 / 1500)
        assert math.log(result["between_expected_scores"][i]) == pytest.approx(
            np.mean(chances[i]), abs=4 * error + 1e-9
        )
    z = (sum(chi) - np.mean(chances, axis=1).sum()) / math.sqrt(np.var(chances, axis=1).sum())
    assert result["p_value"] == pytest.approx(math.erfc(z / math.sqrt(2)) / 2, abs=0.12)
    p = np.mean(np.sum(chances, axis=0) >= sum(chi) - 1e-6)
    assert result["permutation_p"] == pytest.approx(p, abs=0.12)
    assert result["signature"].endswith(f"|groups:given|permutations:400|seed:0|version:{text_metrics.__version__}")


def entropy(kernel, shares):
    values = np.linalg.eigvalsh(np.sqrt(np.outer(shares, shares)) * kernel)
    return -sum(value * math.log(value) for value in values if value > 1e-12)


def holevo(kernel, labels, shares):
    total = entropy(kernel, shares)
    for label in set(labels):
        rows = [i for i in range(len(labels)) if labels[i] == label]
        share = shares[rows].sum()
        total -= share * entropy(kernel[np.ix_(rows, rows)], shares[rows] / share)
    return total


@pytest.mark.parametrize("vectors", [False, True])
def test_groups_with_contexts(load, vectors):
    """The parts of the diversity are those of the texts without what they share with their context."""
    given = {"embeddings": VECTORS, "context_embeddings": VECTORS[:3]} if vectors else {"contexts": ["a b", "d", "y x"]}
    result = text_metrics.between_groups("vendi_embed", SETS, GROUPS, permutations=2, **given)
    plain = load("vendi_embed").compute(predictions=SETS, **given)
    assert result["pooled_scores"] == pytest.approx(plain["scores"], abs=1e-6)
    parts = {"contexts": ["a b"] * 2}
    if vectors:
        parts = {"embeddings": VECTORS[:4], "context_embeddings": [VECTORS[0]] * 2}
    of_groups = load("vendi_embed").compute(predictions=[SETS[0][:2], SETS[0][2:]], **parts)
    assert result["within_scores"][0] == pytest.approx(np.exp(np.log(of_groups["scores"]).mean()), abs=1e-6)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_a_model_of_pairs(load, nli_model, name):
    given = {"similarity": f"pairs:{nli_model}", "contexts": ["a b"]}
    texts = ["a b c", "a b d", "x y z", "z z"]
    (result,) = text_metrics.contributions(name, [texts], **given)
    whole = load(name).compute(predictions=[texts], **given)[name]
    rests = [load(name).compute(predictions=[texts[:i] + texts[i + 1 :]], **given)[name] for i in range(4)]
    assert result == pytest.approx([whole - rest for rest in rests], abs=1e-9)
    reward = text_metrics.for_rewards(name, 4, similarity=given["similarity"], contexts="prompts")
    expected = result
    if name == "chamfer_diversity":
        # The distance to the nearest other text.
        expected = load(name).compute(predictions=[texts], details=True, **given)["details"][0]["distances"]
    assert reward(prompts=["a b"] * 4, completions=texts) == pytest.approx(expected, abs=1e-9)
    scorer = text_metrics.Scorer(name, "texts", similarity=given["similarity"], contexts="asked")
    assert list(scorer({"texts": [texts], "asked": ["a b"]})[name]) == pytest.approx([whole], abs=1e-6)
    assert text_metrics.rarefied(name, [texts], 4, **given)[name] == pytest.approx(whole, abs=1e-9)


def test_the_change_of_similarities_is_the_largest_of_all_subsets(load, pair_models):
    texts = ["q w e r", "t", "y u i o p a s", "d f", "g h j k l z x c"]
    given = {"similarity": f"pairs:{pair_models['score'][0]}"}
    parts = [list(part) for part in combinations(texts, 4)]
    changes = [load("vendi_embed").compute(predictions=[part], **given)["similarity_change"] for part in parts]
    assert max(changes) > np.mean(changes) + 0.01
    result = text_metrics.rarefied("vendi_embed", [texts], 4, **given)
    assert result["similarity_change"] == pytest.approx(max(changes), abs=1e-6)
    assert text_metrics.rarefied("vendi_embed", [texts], 6, **given)["similarity_change"] is None


def test_a_bare_context_of_one_set(load):
    texts = SETS[1]
    for name, bare, plain in (("contexts", "a b", {}), ("context_embeddings", VECTORS[6], {"embeddings": VECTORS[:5]})):
        given = plain | {name: bare}
        nested = plain | {name: [bare]}
        first = text_metrics.contributions("vendi_embed", texts, **given)[0]
        second = text_metrics.contributions("vendi_embed", texts, **nested)[0]
        without = text_metrics.contributions("vendi_embed", texts, **plain)[0]
        assert first == second
        assert first != pytest.approx(without, abs=1e-3)
        whole = load("vendi_embed").compute(predictions=texts, **given)["vendi_embed"]
        rarefied = text_metrics.rarefied("vendi_embed", texts, 5, **given)
        assert rarefied["vendi_embed"] == pytest.approx(whole)


def test_groups_that_have_nothing_in_common_and_that_are_equal():
    texts = [["t"] * 12] * 25
    groups = [[0] * 6 + [1] * 6] * 25
    apart = np.tile(np.repeat(np.eye(2), 6, axis=0), (25, 1))
    result = text_metrics.between_groups("vendi_embed", texts, groups, embeddings=apart)
    assert (result["between"], result["within"], result["share"]) == pytest.approx((2, 1, 1))
    # Fewer permutations are no floor.
    assert result["p_value"] < 1e-20
    assert "permutation_p" not in result
    alike = np.tile(np.random.default_rng(0).standard_normal((6, 4)), (50, 1))
    result = text_metrics.between_groups("vendi_embed", texts, groups, embeddings=alike)
    assert result["between"] == pytest.approx(1)
    assert result["share"] < 0
    assert result["p_value"] > 0.9


def test_what_no_permutation_can_change():
    result = text_metrics.between_groups("vendi_embed", list("abcd"), [0, 0, 1, 1], embeddings=np.eye(4))
    assert (result["between"], result["between_expected"]) == pytest.approx((2, 2))
    assert (result["share"], result["p_value"], result["permutation_p"]) == (None, 1, 1)


def test_order_and_texts_without_weight_do_not_matter():
    texts = SETS[1]
    groups = GROUPS[1]
    weights = [0.3, 0.0, 0.3, 0.2, 0.2]
    first = text_metrics.between_groups("vendi_embed", texts, groups, kernel="ngram", weights=weights)
    order = [3, 0, 4, 2]
    present = []
    for values in (texts, groups, weights):
        present.append([values[i] for i in order])
    second = text_metrics.between_groups("vendi_embed", *present[:2], kernel="ngram", weights=present[2])
    assert second.pop("signature") != first.pop("signature")
    assert second.keys() == first.keys()
    for name, value in second.items():
        assert value == pytest.approx(first[name]), name


def test_the_level_and_the_share_hold_under_uneven_weights():
    # Permuted labels present with their texts gave .17 and .23, and a share above 0.
    generator = np.random.default_rng(3)
    n_sets, size, trials = 15, 6, 80
    texts = [[f"{i}" for i in range(size)]] * n_sets
    groups = [[0, 0, 0, 1, 1, 1]] * n_sets
    p_values = []
    shares = []
    for seed in range(trials):
        weights = generator.lognormal(0, 1.5, (n_sets, size))
        weights /= weights.sum(axis=1, keepdims=True)
        vectors = generator.standard_normal((n_sets * size, 3))
        result = text_metrics.between_groups(
            "vendi_embed", texts, groups, permutations=20, seed=seed, embeddings=vectors, weights=weights.tolist()
        )
        p_values.append(result["p_value"])
        shares.append(result["share"])
    assert np.mean(np.array(p_values) <= 0.05) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / trials)
    assert 0.4 < np.mean(p_values) < 0.6
    assert abs(np.mean(shares)) < 4 * np.std(shares) / math.sqrt(trials)


@pytest.mark.parametrize(
    ("question", "arguments", "settings", "error", "message"),
    [
        ("contributions", ("gruen", ["a"]), {}, ValueError, "metric must score sets"),
        ("contributions", ("vendi", SETS), {}, ValueError, "no metric 'vendi'"),
        ("contributions", ("vendi_embed", SETS), {"order": 1}, TypeError, "no argument 'order'"),
        ("rarefied", ("vendi_embed", SETS, 0), {}, ValueError, "k must be"),
        ("rarefied", ("vendi_embed", SETS, 2), {"seed": -1}, ValueError, "seed"),
        ("rarefied", ("self_bleu", SETS, 2), {"aggregate": "corpus"}, ValueError, "pools the sets"),
        ("between_groups", ("self_bleu", SETS, GROUPS), {}, ValueError, "metric must be semantic_entropy or vendi"),
        ("between_groups", ("vendi_embed", SETS, GROUPS), {"q": 2}, ValueError, "q must be"),
        ("between_groups", ("vendi_embed", SETS, GROUPS[:2]), {}, ValueError, "groups must have"),
        ("between_groups", ("vendi_embed", ["a", "b"], [1, None]), {}, TypeError, r"groups \(text 1\)"),
        ("between_groups", ("vendi_embed", ["a", "b"], [1, 1]), {}, ValueError, "two different labels"),
        ("between_groups", ("vendi_embed", SETS, GROUPS), {"quality": QUALITY}, ValueError, "quality"),
    ],
)
def test_what_cannot_be_asked_is_named(question, arguments, settings, error, message):
    with pytest.raises(error, match=message):
        getattr(text_metrics, question)(*arguments, **settings)
