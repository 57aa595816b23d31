"""Odd calls of every metric, drawn from a seed: each ends in a valid result, or in an error that names a parameter.

The environment variable FUZZ_TIMES draws many times as many.
"""

import json
import re
import sys
import traceback
import warnings

import evaluate
import numpy as np
import pytest

from tests.conftest import METRICS
from tests.fuzzing import TEXTS, bounded, cases, odd_values

# Cases in the test suite; those of gruen run a network.
CASES = {
    "vendi_embed": 700,
    "chamfer_diversity": 500,
    "self_bleu": 700,
    "semantic_entropy": 500,
    "probeval": 500,
    "gruen": 60,
}


class Letters:
    """An encoder that counts letters."""

    def encode(self, texts):
        counts = [[1 + text.lower().count(letter) for letter in "aeinrst "] for text in texts]
        return np.array(counts, dtype=np.float32).reshape(len(texts), 8)


def shaped(make):
    """Make a value for each text, in the shape of the predictions."""

    def draw_values(draw, predictions):
        if not isinstance(predictions, list):
            return [make(draw)]
        return [[make(draw) for _ in own] if isinstance(own, list) else make(draw) for own in predictions]

    return draw_values


def n_texts(predictions):
    if not isinstance(predictions, list):
        return 1
    return sum(len(own) if isinstance(own, list) else 1 for own in predictions)


def weights(draw, predictions):
    rows = shaped(lambda draw: draw.random() + 0.01)(draw, predictions)
    if any(isinstance(row, list) for row in rows):
        return [[value / sum(row) for value in row] if isinstance(row, list) else row for row in rows]
    return [value / sum(rows) for value in rows]


def embeddings(draw, predictions):
    rng = np.random.default_rng(draw.randrange(9))
    rows = rng.normal(size=(n_texts(predictions), 4)) * draw.choice((1, 1e-150, 1e150, 1e-30))
    return rows.astype(draw.choice((np.float64, np.float32, np.float16))) if draw.random() < 0.3 else rows


def similarity(draw, predictions):
    nested = isinstance(predictions, list) and any(isinstance(own, list) for own in predictions)
    sets = predictions if nested else [predictions]
    level = draw.choice((0, 0.5, 1))
    sizes = [len(own) if isinstance(own, list) else 1 for own in sets]
    return [np.full((n, n), level) + (1 - level) * np.eye(n) for n in sizes]


def by(draw, predictions):
    """Draw a label for each item, which is one set or several, or one text."""
    n = len(predictions) if isinstance(predictions, list) else 1
    return [draw.choice(("a", "b", 3)) for _ in range(draw.choice((n, n, 1)))]


def choice(*values):
    return lambda draw, _: draw.choice(values)


MODEL = {
    "model": lambda draw, _: Letters(),
    "batch_size": choice(1, 2, 100),
    "device": choice("cpu"),
    "progress": choice(False),
    "long_texts": choice("windows", "cut"),
}
SETS = {
    "set_size": choice(1, 2, 3),
    "embeddings": embeddings,
    "similarity": similarity,
    "quality": shaped(lambda draw: draw.choice((0, 0.5, 1, draw.random()))),
    "confidence": choice(0.9, 0.5),
    "confidence_by": by,
    "details": choice(True, False),
}
GOOD = {
    "vendi_embed": {
        **MODEL,
        **SETS,
        "q": choice(0, 1, 2, "inf", 0.5, 1e300, [0, 1, "inf"], np.float32(1)),
        "kernel": choice("embedding", "ngram"),
        "weights": weights,
    },
    "chamfer_diversity": {**MODEL, **SETS, "singletons": choice("skip", "error")},
    "self_bleu": {
        "max_order": choice(1, 2, 4, 100),
        "aggregate": choice("set", "corpus", "sentence"),
        "smoothing": choice("epsilon", "method1", "none", "add-k"),
        "tokenizer": choice("whitespace", "13a", "nltk", "char", str.split),
        "set_size": choice(1, 2, 3),
        "singletons": choice("skip", "error"),
        "vocabulary_size": choice(2, 1000),
        "homogenization": choice(True, False),
        "confidence": choice(0.9),
        "confidence_by": by,
        "details": choice(True, False),
    },
    "semantic_entropy": {
        **MODEL,
        **{name: draw for name, draw in SETS.items() if name != "similarity"},
        "same": choice(0, 0.5, 1, lambda left, right: [a[:1] == b[:1] for a, b in zip(left, right, strict=True)]),
        "grouping": choice("complete", "greedy"),
        "patience": choice(0, 0.8, 1),
        "weights": weights,
        "log_probs": shaped(lambda draw: -draw.random()),
        "classes": shaped(lambda draw: draw.choice(("a", "b", 3))),
    },
    "probeval": {
        **MODEL,
        "clustering": choice("auto", "human", "soft", "hac", "xmeans", "gmeans", "none"),
        "matcher": choice("cosine", "gp", "soft"),
        "threshold": choice(0, 0.5, 1),
        "smoothing": choice(0, 1, 0.5, 1e-310, 1e300),
        "debias": choice(True, False),
        "rarefy": choice(1, 3),
        "rarefy_people": choice(1, 3),
        "parity": choice(True, False),
        "linkage": choice("average", "complete", "single", "weighted", "ward", "centroid", "median"),
        "distance": choice(0, 0.5, 0.95, 3),
        "seed": choice(0, 7, 2**32 - 1),
        "vectors": choice({"a": [1.0, 0.0], "yes": [0.0, 1.0]}, {"a": [1.0], "yes": [0.0, 1.0]}, {}),
        "confidence": choice(0.9),
        "confidence_by": by,
        "details": choice(True, False),
    },
    "gruen": {
        "components": choice(["grammaticality"], ["non_redundancy"], ["focus"], ["focus", "non_redundancy"]),
        "parity": choice(True, False),
        "markup": choice("plain", "markdown", "auto"),
        "focus_threshold": choice(0, 0.5),
        "model": lambda draw, _: Letters(),
        "confidence": choice(0.9),
        "confidence_by": by,
        "details": choice(True, False),
    },
}


def draw_texts(draw, most=4):
    return [draw.choice(TEXTS) for _ in range(draw.randint(1, most))]


def draw_predictions(draw, name):
    """Draw predictions: mostly of a form that the metric takes."""
    kind = draw.random()
    if kind < 0.06:
        return draw.choice(odd_values())
    flat = draw_texts(draw, 6)
    found = flat if kind < 0.4 or name == "gruen" else [draw_texts(draw) for _ in range(draw.randint(1, 3))]
    if kind > 0.96:
        found[draw.randrange(len(found))] = draw.choice(odd_values())
    return found


def draw_answers(draw, clustered):
    """Draw the answers to one question, in any of the forms of probeval."""
    texts = draw_texts(draw, 5)
    if draw.random() < 0.05:
        return draw.choice(odd_values())
    if draw.random() < 0.3:
        return {text: draw.choice((1, 2, 10**6, 2**53, 2**63)) for text in texts}
    if draw.random() < 0.5:
        return texts
    answers = [{"text": text, "count": draw.choice((1, 3, 10**6))} for text in texts]
    if clustered:
        for i, answer in enumerate(answers):
            answer["cluster"] = draw.choice(("c", "d", i))
    if draw.random() < 0.05:
        answers[0][draw.choice(("text", "count", "cluster", "x"))] = draw.choice(odd_values())
    return answers


def draw_case(draw, name):
    """Draw the input and the settings of a call."""
    if name == "probeval":
        n, clustered = draw.randint(1, 3), draw.random() < 0.5
        inputs = {
            "predictions": [draw_answers(draw, False) for _ in range(n)],
            "references": [draw_answers(draw, clustered) for _ in range(n)],
        }
    else:
        inputs = {"predictions": draw_predictions(draw, name)}
    settings = {}
    for parameter in draw.sample(sorted(GOOD[name]), draw.randint(0, 4)):
        is_good = draw.random() < 0.75
        settings[parameter] = (
            GOOD[name][parameter](draw, inputs["predictions"]) if is_good else draw.choice(odd_values())
        )
    if name == "semantic_entropy" and draw.random() < 0.8:
        settings.setdefault("same", 0.5)
        if settings.keys() & {"quality", "patience"}:
            settings |= {"patience": 0.5, "quality": SETS["quality"](draw, inputs["predictions"])}
    given = settings.keys() & {"embeddings", "similarity", "vectors", "classes", "long_texts"}
    if (
        name in ("vendi_embed", "chamfer_diversity", "semantic_entropy", "probeval")
        and not given
        and draw.random() < 0.95
    ):
        settings.setdefault("model", Letters())
    return inputs, settings


def check_result(name, result):
    json.dumps(result, allow_nan=False)
    low, high = {
        "probeval": (0, np.inf),
        "vendi_embed": (0, 7),
        "chamfer_diversity": (0, 2),
        "semantic_entropy": (0, 2),
    }.get(name, (0, 1))
    if "|debias:True|" in result["signature"]:
        low = -np.inf
    for score in [result[name], *result["scores"]]:
        assert score is None or low - 1e-6 <= score <= high + 1e-6
    assert result["signature"].startswith(f"{name}|")


def check_error(name, error, parameters):
    # LookupError and ImportError name what a setting needs that is not installed.
    assert isinstance(error, (TypeError, ValueError, LookupError, ImportError)), repr(error)
    message = str(error)
    assert re.search(rf"\b({'|'.join(parameters)})", message), f"names no parameter: {message}"
    assert len(message) < 2_000
    assert "\n" not in message
    # It is raised by a metric, and does not come from within a library.
    assert "evaluate_modules" in traceback.extract_tb(error.__traceback__)[-1].filename, message


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore")
def test_odd_calls(load, name):
    metric = load(name)
    stored = evaluate.load(str(METRICS / name), keep_in_memory=True)
    parameters = ["predictions", "references", *(name for name in metric.settings.declared() if name != "q")]
    parameters += ["q must", "q is", r"q\[\d+\]"]
    outcomes = {"results": 0, "errors": 0, "stored": 0}
    for i, draw in cases(name, CASES[name]):
        inputs, settings = draw_case(draw, name)
        shown = f"{name}, case {i}"
        with bounded(shown), warnings.catch_warnings():
            found = outcome_of(metric, inputs, settings)
            try:
                if isinstance(found, Exception):
                    check_error(name, found, parameters)
                else:
                    check_result(name, found)
                if draw.random() < 0.1:
                    outcomes["stored"] += 1
                    assert_same_when_stored(stored, inputs, settings, found)
            except AssertionError as error:
                error.add_note(f"{shown}: {found!r:.300}, settings {list(settings)}")
                raise
        outcomes["errors" if isinstance(found, Exception) else "results"] += 1
    sys.stdout.write(f"{name}: {outcomes}\n")
    # Neither all calls are refused, nor none.
    assert min(outcomes.values()) > 0.02 * CASES[name]


def outcome_of(metric, inputs, settings):
    try:
        return metric.compute(**inputs, **settings)
    except Exception as error:
        return error


def assert_same_when_stored(metric, inputs, settings, expected):
    """A call whose input is added first has the same outcome."""
    try:
        metric.add_batch(**inputs)
    except (TypeError, ValueError):
        assert isinstance(expected, Exception)
        return
    found = outcome_of(metric, {}, settings)
    # What is kept because the settings were refused is not for the next case.
    metric.writer = metric.buf_writer = metric.selected_feature_format = None
    if isinstance(expected, Exception):
        assert isinstance(found, (TypeError, ValueError)), f"stored: {found!r:.300}"
    else:
        assert found == expected
