"""similarity="pairs:<model>" and "nli:<model>": tiny local models, whose judgements mean nothing."""

import math

import numpy as np
import pytest
import torch

from tests.conftest import PAIR_CLASSES
from text_metrics.metrics.vendi_embed.vendi_embed_definite import nearest_correlation

EMBEDDED = ["vendi_embed", "chamfer_diversity"]
SETS = [
    ["cab", "a cab fed dad", "A bad cab", "dad fed a bad bee", "cab"],
    ["ace face fade bead", "bee deaf bead fade face", "cab"],
    ["dad", "a cab fed dad"],
]
PROMPTS = ["deaf dad", None, "a bee"]


def rule(pair_models, kind):
    return f"{'nli' if kind == 'nli' else 'pairs'}:{pair_models[kind][0]}"


def similarity(pair_models, kind, left, right, context):
    """Ask the model of one pair, without padding."""
    if left == right:
        return 1.0
    _, model, tokenizer = pair_models[kind]
    prefix = f"{context} " if context else ""
    scores = []
    for pair in ((left, right), (right, left)):
        with torch.no_grad():
            logits = model(**tokenizer(*(prefix + text for text in pair), return_tensors="pt")).logits[0].double()
        shares = torch.softmax(logits, -1)
        score = {"score": torch.sigmoid(logits[0]), "two": shares[-1], "nli": shares[-1] - shares[0]}[kind]
        scores.append(float(score))
    return max(sum(scores) / 2, 0.0)


def matrices(pair_models, kind, contexts):
    kernels = []
    for members, context in zip(SETS, contexts, strict=True):
        values = [similarity(pair_models, kind, a, b, context) for a in members for b in members]
        kernels.append(np.reshape(values, (len(members), len(members))))
    return kernels


@pytest.mark.parametrize("kind", PAIR_CLASSES)
@pytest.mark.parametrize("contexts", [None, PROMPTS])
def test_the_model_is_asked_in_both_orders(load, pair_models, kind, contexts):
    kernels = matrices(pair_models, kind, contexts or [None] * 3)
    spread = np.concatenate([kernel[np.triu_indices(len(kernel), 1)] for kernel in kernels])
    assert spread.max() - spread.min() > 0.05
    settings = {"similarity": rule(pair_models, kind), **({} if contexts is None else {"contexts": contexts})}
    result = load("chamfer_diversity").compute(predictions=SETS, details=True, **settings)
    expected = load("chamfer_diversity").compute(predictions=SETS, similarity=kernels, details=True)
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    assert [d["neighbours"] for d in result["details"]] == [d["neighbours"] for d in expected["details"]]
    name = "nli" if kind == "nli" else "pairs"
    signed = f"similarity:{name}:local@", "|contexts:given|"
    assert [part in result["signature"] for part in signed] == [True, contexts is not None]
    for batch_size in (1, 2):
        again = load("chamfer_diversity").compute(predictions=SETS, batch_size=batch_size, **settings)
        assert again["scores"] == pytest.approx(result["scores"], abs=1e-6)
    alone = []
    for i, members in enumerate(SETS):
        of_set = {name: value if name == "similarity" else value[i : i + 1] for name, value in settings.items()}
        alone.append(load("chamfer_diversity").compute(predictions=members, **of_set)["chamfer_diversity"])
    assert alone == pytest.approx(result["scores"], abs=1e-6)


@pytest.mark.parametrize("kind", PAIR_CLASSES)
def test_vendi_takes_the_nearest_kernel_and_says_how_far_it_is(load, pair_models, kind):
    kernels = matrices(pair_models, kind, [None] * 3)
    nearest = [nearest_correlation(kernel) for kernel in kernels]
    change = max(np.abs(new - old).max() for new, old in zip(nearest, kernels, strict=True))
    result = load("vendi_embed").compute(predictions=SETS, similarity=rule(pair_models, kind), q=[0.5, 1, 2])
    expected = load("vendi_embed").compute(predictions=SETS, similarity=nearest, q=[0.5, 1, 2])
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-4)
    assert result["by_order"] == pytest.approx(expected["by_order"], abs=1e-4)
    assert result["similarity_change"] == pytest.approx(change, abs=1e-5)
    assert "similarity_change" not in expected
    same = load("vendi_embed").compute(predictions=["cab", "cab"], similarity=rule(pair_models, kind), q=0)
    assert same["vendi_embed"] == 1


def test_the_nearest_correlation_matrix_is_highams():
    """Higham (2002), section 4: the nearest to a matrix that is not definite, to the digits printed there."""
    matrix = np.array([[1.0, 1, 0], [1, 1, 1], [0, 1, 1]])
    nearest = nearest_correlation(matrix)
    np.testing.assert_allclose(nearest[np.triu_indices(3, 1)], [0.7607, 0.1573, 0.7607], atol=5e-5)
    assert np.linalg.norm(nearest - matrix) == pytest.approx(0.5278, abs=5e-5)


def test_no_other_correlation_matrix_is_nearer(rng):
    for n in (2, 5, 20):
        noise = rng.uniform(-1, 1, (n, n))
        matrix = (noise + noise.T) / 2
        np.fill_diagonal(matrix, 1.0)
        nearest = nearest_correlation(matrix)
        assert np.linalg.eigvalsh(nearest)[0] > -1e-6
        np.testing.assert_allclose(nearest.diagonal(), 1)
        distance = np.linalg.norm(nearest - matrix)
        for scale in (1e-3, 0.1, 1) * 30:
            # A step towards any other one is longer: the set of correlation matrices is convex.
            rows = rng.standard_normal((n, n))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            assert np.linalg.norm(nearest + scale * (rows @ rows.T - nearest) - matrix) > distance - 1e-6
        np.testing.assert_array_equal(nearest_correlation(np.eye(n)), np.eye(n))


def test_pairs_longer_than_the_model_are_cut_with_one_warning(load, pair_models):
    with pytest.warns(UserWarning, match="4 of 6 pairs of texts are longer") as caught:
        load("chamfer_diversity").compute(
            predictions=["cab", "dad", "a bad bee " * 200], similarity=rule(pair_models, "two")
        )
    assert sum("pairs of texts" in str(warning.message) for warning in caught) == 1


@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("given", ["nli:", "pairs:", "a model", "nli:/no/such/folder", math.pi, None])
def test_errors_name_the_argument(load, pair_models, name, given, recwarn):
    if given is None:
        given = f"nli:{pair_models['two'][0]}"
    with pytest.raises((TypeError, ValueError), match="similarity"):
        load(name).compute(predictions=SETS, similarity=given)
    with pytest.raises(ValueError, match=r"similarity.*two classes"):
        load(name).compute(predictions=["cab", "a bad bee " * 200], similarity=f"pairs:{pair_models['nli'][0]}")
    assert not recwarn, "It read the pairs first, and warned of their length."
