"""semantic_entropy: the classes of slow references, likelihoods as weights, entropies in nats, utility, and errors."""

import copy
import doctest
import math
import re
from collections import Counter

import numpy as np
import pytest
import torch

from tests.conftest import ROOT, encode
from tests.references import classes as reference
from tests.references.diversity import cosines

SETS = [["Paris", "It is Paris.", "Lyon", "Paris"], ["Rome", "Milan"], ["Oslo"]]
LABELS = [["p", "p", "l", "p"], ["r", "m"], ["o"]]
TOKENS = [[[-0.1], [-0.2, -0.4, -0.6], [-3.0, -1.0], [-0.1]], [[-0.5, -0.7], [-2.5]], [[-1.0]]]


def compute(load, **settings):
    return load("semantic_entropy").compute(**{"predictions": SETS, "classes": LABELS, **settings})


def plain_entropy(labels, log_probs):
    """Add up likelihoods by class, one sample at a time, and normalize: - sum p log p in nats."""
    likelihoods = {}
    for label, value in zip(labels, log_probs, strict=True):
        likelihoods[label] = likelihoods.get(label, 0.0) + math.exp(value)
    total = sum(likelihoods.values())
    return -sum(value / total * math.log(value / total) for value in likelihoods.values())


def means(sets):
    averaged = []
    for texts in sets:
        averaged.append([sum(tokens) / len(tokens) for tokens in texts])
    return averaged


NOTHING = [[0.0] * len(texts) for texts in SETS]
TOTALS = [[sum(tokens) for tokens in texts] for texts in TOKENS]
# So improbable that their likelihoods underflow.
SHIFTED = [[np.subtract(tokens, 5000).tolist() for tokens in texts] for texts in TOKENS]


@pytest.mark.parametrize(
    ("given", "log_probs", "weights"),
    [
        ({}, NOTHING, "uniform"),
        ({"log_probs": [[-7.0] * len(texts) for texts in SETS]}, NOTHING, "exp_log_probs(given)"),
        ({"log_probs": TOKENS}, means(TOKENS), "exp_log_probs(token_means)"),
        ({"log_probs": SHIFTED}, means(TOKENS), "exp_log_probs(token_means)"),
        ({"log_probs": means(TOKENS)}, means(TOKENS), "exp_log_probs(given)"),
        ({"log_probs": TOTALS}, TOTALS, "exp_log_probs(given)"),
    ],
)
def test_likelihoods_weigh_the_classes(load, given, log_probs, weights):
    result = compute(load, **given, confidence=0.9)
    expected = [plain_entropy(*pair) for pair in zip(LABELS, log_probs, strict=True)]
    assert result["scores"] == pytest.approx(expected)
    assert result["semantic_entropy"] == pytest.approx(np.mean(expected))
    low, high = result["confidence_interval"]
    assert 0 <= low < result["semantic_entropy"] < high <= math.log(7 / 3)
    assert f"|weights:{weights}|" in result["signature"]


@pytest.mark.discrete
@pytest.mark.parametrize("gap", [700, 800])
def test_an_improbable_text_takes_part(load, gap):
    """Whether its likelihood underflows or not."""
    given = {"predictions": ["a", "b", "c"], "classes": [0, 1, 2], "quality": [1.0, 0.5, 0.25], "details": True}
    result = compute(load, log_probs=[-1.0, -1.0 - gap, -1.0 - gap], **given)
    assert (result["n_classes"], result["details"][0]["classes"]) == (3, [0, 1, 2])
    assert result["utility"] == compute(load, **given)["utility"]
    assert result["semantic_entropy"] == pytest.approx(0, abs=1e-300)


def test_forms_of_log_probabilities(load):
    expected = compute(load, log_probs=TOKENS)
    for convert in (np.array, lambda tokens: torch.tensor(tokens, dtype=torch.float64)):
        converted = []
        for texts in TOKENS:
            converted.append([convert(tokens) for tokens in texts])
        assert compute(load, log_probs=converted) == expected
    flat = compute(load, predictions=["a", "b"], classes=[0, 1], log_probs=np.array([[-1.0, -1.0], [-2.0, -2.0]]))
    assert flat["semantic_entropy"] == pytest.approx(plain_entropy([0, 1], [-1.0, -2.0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"same": 2}, "same must be in"),
        ({"same": "rouge"}, "same must be a number, a callable"),
        ({"same": 0.5, "classes": [0, 1]}, "classes and same cannot"),
        ({"min_quality": 0.5}, "min_quality needs quality"),
        ({"min_quality": 2, "quality": [1, 1]}, "min_quality must be in"),
        ({"contexts": ["q"], "classes": [0, 1]}, "contexts and classes cannot"),
        ({"contexts": ["q"], "same": lambda left, right: [True] * len(left)}, "contexts and a callable same cannot"),
        ({"contexts": ["q"], "embeddings": [[1, 0], [0, 1]], "same": 0.5}, "embeddings cannot"),
        ({"contexts": ["q", "r"]}, "contexts must have an entry for each of 1 sets"),
        ({"contexts": [3]}, r"contexts\[0\] must be a string"),
        ({"contexts": ["q"], "model": "no/such-model"}, "model needs same"),
        ({"model": "no/such-model"}, "model needs same"),
        ({"embeddings": [[1, 0], [0, 1]]}, "embeddings needs same"),
        # What is wrong is found before a model is looked for.
        ({"same": "nli:no/such-model", "grouping": "all"}, "grouping must be one of"),
        ({"same": "pairs:no/such-model", "weights": [1, 1]}, "weights must sum to 1"),
        ({"same": lambda left, right: [1] * len(left)}, "same must return 1 booleans"),
        ({"classes": [0, 1], "log_probs": [-1.0, -2.0], "weights": [0.5, 0.5]}, "weights and log_probs cannot"),
        *(
            ({"classes": [0, 1], "estimator": "chao_shen", **given}, "estimator")
            for given in ({"weights": [0.5, 0.5]}, {"log_probs": [-1.0, -2.0]}, {"estimator": "grassberger"})
        ),
        *(
            ({"classes": [0, 1], "log_probs": log_probs}, f"log_probs {message}")
            for log_probs, message in (
                ([-1.0], "must have a log-probability for each"),
                ([-1.0, 0.5], r"\(text 1\) must be a finite log-probability, at most 0, .* Got 0.5"),
                ([-1.0, [-1.0]], r"\(text 1\) must be a finite log-probability, at most 0, as for the"),
                ([[-1.0], -1.0], r"\(text 1\) must be a list of finite log-probabilities"),
                ([[-1.0], []], r"\(text 1\) must be a list of finite log-probabilities"),
                ([[-1.0], [-math.inf]], r"\(text 1\) must be a list of finite log-probabilities"),
                ([[-1.0], [None]], r"\(text 1\) must be a list of finite log-probabilities"),
                (["x", -1.0], r"\(text 0\) must be a finite log-probability"),
            )
        ),
    ],
)
def test_settings_that_are_wrong(load, settings, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load("semantic_entropy").compute(predictions=["x", "y"], **settings)


@pytest.mark.parametrize("grouping", ["complete", "greedy"])
@pytest.mark.parametrize("sizes", [[1, 4, 7, 7], [40, 3], [300]])
def test_classes_are_those_of_plain_loops(load, rng, sizes, grouping):
    n = sum(sizes)
    vectors = rng.standard_normal((n, 6))
    texts = [f"{rng.integers(10**9)} {i}" for i in range(n)]
    ends = np.cumsum(sizes)
    sets = [texts[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    result = load("semantic_entropy").compute(
        predictions=sets, embeddings=vectors, same=0.6, grouping=grouping, details=True
    )
    for end, size, members, detail in zip(ends, sizes, sets, result["details"], strict=True):
        similarity = cosines(vectors[end - size : end])

        def same(i, j, similarity=similarity):
            return similarity[i, j] >= 0.6

        if grouping == "greedy":
            expected = reference.greedy_classes(size, same)
        else:
            expected = reference.complete_classes(size, same, members)
        assert detail["classes"] == expected
    counts = [len(set(detail["classes"])) for detail in result["details"]]
    assert result["n_classes_scores"] == counts
    entropies = [plain_entropy(detail["classes"], [0.0] * detail["size"]) for detail in result["details"]]
    assert result["scores"] == pytest.approx(entropies)


@pytest.mark.discrete
@pytest.mark.parametrize("grouping", ["complete", "greedy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cosine_at_the_threshold_reaches_it_however_it_is_rounded(load, rng, dtype, grouping):
    """The cosines are 0 and the square roots of 1/2 and 2/3, up to rounding."""
    rows = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    for same, members, n_classes in ((0.0, [0, 1, 2], 1), (0.5**0.5, [0, 3, 1], 2), ((2 / 3) ** 0.5, [3, 4], 1)):
        turned = [(rows[members] @ np.linalg.qr(rng.standard_normal((3, 3)))[0]).astype(dtype) for _ in range(50)]
        texts = [["abcde"[i] for i in members]] * 50
        result = load("semantic_entropy").compute(predictions=texts, embeddings=turned, same=same, grouping=grouping)
        assert result["n_classes_scores"] == [n_classes] * 50


@pytest.mark.discrete
@pytest.mark.parametrize("spread", [3, 12])
def test_equal_texts_with_embeddings_of_their_own_are_grouped_alike_in_each_form(load, rng, spread):
    """Texts that serve as labels only: neither the type of the rows, nor their norms, nor their order matter."""
    metric = load("semantic_entropy")
    sets = [["x", "y"][: 1 + i % 2] * (6 + i % 2) for i in range(60)]
    sizes = list(map(len, sets))
    # Small integers have many coordinates in common, and some rows occur twice.
    rows = rng.integers(-spread, spread, (sum(sizes), 5)).astype(np.float32)
    rows[:, 0] += 0.5

    def classes(rows):
        result = metric.compute(predictions=sets, embeddings=rows, same=0.29, details=True)
        return [detail["classes"] for detail in result["details"]]

    expected = classes(rows)
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    # There are sets in which the order matters.
    by_place = []
    for part in parts:
        is_same = cosines(part) >= 0.29
        counts = []
        for places in (range(len(part)), range(len(part))[::-1]):
            labels = reference.complete_classes(len(part), lambda i, j, is_same=is_same: is_same[i, j], places)
            counts.append(len(set(labels)))
        by_place.append(counts)
    assert any(forward != backward for forward, backward in by_place)
    norms = (1 + 1e-6 * rng.standard_normal((len(rows), 1))).astype(np.float32)
    for other in (rows.astype(np.float64), rows.astype(np.float64) / 3, rows * norms, torch.tensor(rows)):
        assert classes(other) == expected
    orders = [rng.permutation(size) for size in sizes]
    shuffled = []
    for members, order in zip(sets, orders, strict=True):
        shuffled.append([members[i] for i in order])
    again = metric.compute(
        predictions=shuffled, embeddings=[part[order] for part, order in zip(parts, orders, strict=True)], same=0.29
    )
    assert again["n_classes_scores"] == [len(set(labels)) for labels in expected]


def test_a_function_is_asked_once_about_each_pair(load):
    pairs = []

    def same(left, right):
        pairs.extend(zip(left, right, strict=True))
        return [a[0] == b[0] for a, b in zip(left, right, strict=True)]

    sets = [["cat", "cow", "dog", "cat"], ["dog", "cow", "cat"]]
    result = load("semantic_entropy").compute(predictions=sets, same=same)
    assert result["n_classes_scores"] == [2, 2]
    assert len(pairs) == len(set(pairs)) == 3
    assert "same:custom(" in result["signature"]


def test_a_text_of_weight_0_takes_no_part(load):
    result = compute(load, predictions=["a", "b"], classes=[0, 1], weights=[1, 0], details=True)
    assert (result["n_classes"], result["semantic_entropy"]) == (1, 0)
    assert result["details"][0]["classes"] == [0, None]


def test_utility_is_that_of_a_reader(load):
    result = compute(
        load, predictions=["a", "b", "c"], classes=[0, 0, 1], quality=[0.5, 1.0, 0.25], patience=0.8, confidence=0.9
    )
    assert result["utility"] == pytest.approx((0.5 + 0.64 * 0.25) / (1 + 0.8 + 0.64))
    assert result["utility_confidence_interval"] is None


def test_good_classes_are_those_with_a_good_text(load, rng):
    """Div_fixed of Shypula et al. (2025): the different valid answers over all answers."""
    sets = [rng.choice(list("abcde"), size).tolist() for size in (1, 4, 6, 6, 9)]
    quality = [rng.choice([0.1, 0.7, 0.9], len(labels)).tolist() for labels in sets]
    quality[0] = [0.1]
    given = {"predictions": sets, "classes": sets, "quality": quality, "confidence": 0.9}
    for least in (0, 0.5, 0.7, 0.8, 1):
        result = compute(load, min_quality=least, **given)
        expected = []
        for pair in zip(sets, quality, strict=True):
            expected.append(len({label for label, value in zip(*pair, strict=True) if value >= least}))
        assert result["n_good_classes_scores"] == expected
        assert result["n_good_classes"] == pytest.approx(np.mean(expected))
        assert f"|min_quality:{least:g}" in result["signature"].replace(".0|", "|")
        low, high = result["n_good_classes_confidence_interval"] or (0, 5.2)
        assert 0 <= low < high <= np.mean(list(map(len, sets)))
    # Ratings that were rounded to 32 bits reach the same threshold.
    rounded = [np.array(values, dtype=np.float32) for values in quality]
    assert (
        compute(load, **{**given, "quality": rounded}, min_quality=0.7)["n_good_classes_scores"]
        == compute(load, min_quality=0.7, **given)["n_good_classes_scores"]
    )
    plain = compute(load, **given)
    assert "n_good_classes" not in plain
    assert "min_quality" not in plain["signature"]
    nothing = compute(
        load,
        **{**given, "predictions": [["a", "b"]], "classes": [[0, 1]], "quality": [[0.2, 0.3]]},
        min_quality=0.5,
        weights=[[1, 0]],
    )
    assert nothing["n_good_classes"] == 0


def test_intervals_end_where_the_scores_do(load):
    classes = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3], [0, 0, 0, 0]]
    result = compute(load, predictions=[list("abcd")] * 4, classes=classes, confidence=0.95)
    low, high = result["n_classes_confidence_interval"]
    assert 1 <= low < 3.25 < high <= 4
    assert result["confidence_interval"][1] <= math.log(4)


WORDS = ["cab", "a cab", "dad", "bee", "a bee", "fade a face", "deaf", "bead", "ace", "fed"]


@pytest.mark.parametrize("kind", ["nli", "pairs"])
@pytest.mark.parametrize("context", [None, "deaf"])
def test_a_classifier_decides_which_texts_say_the_same(load, pair_models, kind, context):
    folder, model, tokenizer = pair_models["nli" if kind == "nli" else "two"]

    def second(left, right):
        prefix = "" if context is None else f"{context} "
        inputs = tokenizer(prefix + left, prefix + right, return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).logits[0]
        return bool(logits.argmax() == len(logits) - 1)

    def same(i, j):
        left, right = sorted((WORDS[i], WORDS[j]))
        return second(left, right) and (kind == "pairs" or second(right, left))

    contexts = {} if context is None else {"contexts": [context]}
    result = load("semantic_entropy").compute(predictions=WORDS, same=f"{kind}:{folder}", details=True, **contexts)
    expected = reference.complete_classes(len(WORDS), same, WORDS)
    assert 1 < len(set(expected)) < len(WORDS)
    assert result["details"][0]["classes"] == expected
    assert f"|same:{kind}:" in result["signature"]


@pytest.mark.discrete
def test_a_context_is_taken_out_of_the_texts_and_has_a_threshold_of_its_own(load):
    sets = [
        ["Put the kettle on.", "Switch the kettle on.", "Boil some water in a pan.", "Ask a neighbour for tea."],
        ["A walk by the sea.", "A long walk on the beach.", "Sleep."],
    ]
    contexts = ["How do I make hot water for tea?", "What did you do on Sunday?"]
    compute = load("semantic_entropy").compute
    given = {"embeddings": [encode(members) for members in sets]}
    plain = compute(predictions=sets)
    assert plain["scores"] == compute(predictions=sets, same=0.83, **given)["scores"]
    assert "contexts" not in plain["signature"]
    for row in (contexts, [None, contexts[1]]):
        rows = [context and encode([context])[0] for context in row]
        result = compute(predictions=sets, contexts=row, details=True)
        expected = compute(predictions=sets, context_embeddings=rows, same=0.74, details=True, **given)
        assert result["details"] == expected["details"]
        assert "|same:0.74|" in result["signature"]
        assert "|contexts:projected|" in result["signature"]
    # In company as alone.
    bare = compute(predictions=sets[1], contexts=contexts[1])
    assert bare["scores"] == result["scores"][1:]


@pytest.mark.discrete
@pytest.mark.parametrize("kind", ["nli", "pairs"])
@pytest.mark.parametrize(("bias", "n_classes"), [(5e-7, 2), (1e-3, 1)])
def test_logits_that_are_equal_up_to_rounding_choose_the_first_class(
    load, pair_models, tmp_path, kind, bias, n_classes
):
    _, model, tokenizer = pair_models["nli" if kind == "nli" else "two"]
    even = copy.deepcopy(model)
    even.classifier.weight.data.zero_()
    even.classifier.bias.data.zero_()
    even.classifier.bias.data[-1] = bias
    even.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    result = load("semantic_entropy").compute(predictions=WORDS[:2], same=f"{kind}:{tmp_path}")
    assert result["n_classes"] == n_classes


def test_a_model_without_the_class_is_named(load, tiny_model):
    with pytest.raises(ValueError, match="same"):
        load("semantic_entropy").compute(predictions=["a", "b"], same=f"nli:{tiny_model}")


def chao_shen(labels):
    """Estimate the entropy from the counts of classes, term by term."""
    counts = Counter(labels).values()
    n = len(labels)
    single = sum(count == 1 for count in counts)
    coverage = 1 - min(single, n - 1) / n
    shares = [coverage * count / n for count in counts]
    return sum(-share * math.log(share) / (1 - (1 - share) ** n) for share in shares)


def test_coverage_adjusted_entropy(load):
    sets = [["a"] * 3 + ["b"], ["a", "b", "c"], ["a"], ["a", "a"], ["a", "b"] * 30 + ["c"]]
    result = load("semantic_entropy").compute(predictions=sets, classes=sets, estimator="chao_shen", confidence=0.9)
    assert result["scores"] == pytest.approx([chao_shen(labels) for labels in sets], abs=1e-12)
    assert result["scores"][1] > math.log(3)
    assert "estimator:chao_shen" in result["signature"]
    assert result["confidence_interval"][1] > result["semantic_entropy"]
    plain = load("semantic_entropy").compute(predictions=sets, classes=sets, estimator="plugin", confidence=0.9)
    assert "estimator" not in plain["signature"]
    assert plain["n_classes_scores"] == result["n_classes_scores"]


def test_the_recipe_of_the_page_is_a_classifier_with_a_threshold(load, pair_models):
    """docs/semantic-entropy.md shows it for the classifiers of benchmarks."""
    page = (ROOT / "docs" / "semantic-entropy.md").read_text(encoding="utf-8")
    (recipe,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "class Classifier" in block]
    names = {}
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(recipe)), names)
    folder, model, tokenizer = pair_models["two"]
    sets = [["cab", "a cab fed dad", "A bad cab", "dad fed a bad bee", "a bee"], ["ace face", "bee deaf", "cab"]]
    metric = load("semantic_entropy")
    shares = []

    def classes_of(texts, threshold):
        def same(later, first):
            with torch.no_grad():
                logits = model(**tokenizer(texts[first], texts[later], return_tensors="pt")).logits[0].double()
            shares.append(float(torch.softmax(logits, -1)[1]))
            return shares[-1] > threshold

        return reference.greedy_classes(len(texts), same)

    for threshold in (0.5, 0.102, 0.9):
        given = {"predictions": sets, "grouping": "greedy", "details": True}
        result = metric.compute(**given, same=names["Classifier"](str(folder), threshold))
        assert [row["classes"] for row in result["details"]] == [classes_of(texts, threshold) for texts in sets]
        assert f"same:custom({folder} > {threshold})|grouping:greedy" in result["signature"]
        if threshold == 0.5:
            by_rule = metric.compute(**given, same=f"pairs:{folder}")
            assert by_rule["details"] == result["details"]
    assert min(shares) < 0.5 < max(shares)
