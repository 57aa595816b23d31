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

from tests.conftest import METRICS, metrics_of
from tests.fuzzing import TEXTS, bounded, cases, odd_values

# Cases in the test suite; those of gruen run a network.
CASES = dict.fromkeys(metrics_of(), 350) | {"gruen": 40}


class Letters:
    """An encoder that counts letters."""

    def encode(self, texts):
        counts = []
        for text in texts:
            counts.append([1 + text.lower().count(letter) for letter in "aeinrst "])
        return np.array(counts, dtype=np.float32).reshape(len(texts), 8)


def shaped(make):
    """Make a value for each text, in the shape of the predictions."""

    def draw_values(draw, predictions):
        if not isinstance(predictions, list):
            return [make(draw)]
        values = []
        for item in predictions:
            values.append([make(draw) for _ in item] if isinstance(item, list) else make(draw))
        return values

    return draw_values


def sizes_of(predictions):
    """Return the number of texts of each set: a flat list is one."""
    if not isinstance(predictions, list):
        return [1]
    if not any(isinstance(item, list) for item in predictions):
        return [len(predictions)]
    return [len(item) if isinstance(item, list) else 1 for item in predictions]


def weights(draw, predictions):
    rows = shaped(lambda draw: draw.random() + 0.01)(draw, predictions)
    if not any(isinstance(row, list) for row in rows):
        return [value / sum(rows) for value in rows]
    shares = []
    for row in rows:
        shares.append([value / sum(row) for value in row] if isinstance(row, list) else row)
    return shares


def embeddings(draw, predictions):
    rng = np.random.default_rng(draw.randrange(9))
    rows = rng.normal(size=(sum(sizes_of(predictions)), 4)) * draw.choice((1, 1e-150, 1e150, 1e-30))
    return rows.astype(draw.choice((np.float64, np.float32, np.float16))) if draw.random() < 0.3 else rows


def similarity(draw, predictions):
    level = draw.choice((0, 0.5, 1))
    return [np.full((n, n), level) + (1 - level) * np.eye(n) for n in sizes_of(predictions)]


def of_items(*values):
    """Draw a value for each item, which is one set or several, or one text."""

    def draw_values(draw, predictions):
        n = len(predictions) if isinstance(predictions, list) else 1
        return [draw.choice(values) for _ in range(draw.choice((n, n, 1)))]

    return draw_values


def choice(*values):
    return lambda draw, _: draw.choice(values)


# Values of settings that do not follow from their declarations.
GOOD = {
    "set_size": choice(1, 2, 3),
    "q": choice(0, 1, 2, "inf", 0.5, 1e300, [0, 1, "inf"], np.float32(1)),
    "same": choice(0, 0.5, 1, lambda left, right: [a[:1] == b[:1] for a, b in zip(left, right, strict=True)]),
    "tokenizer": choice("whitespace", "13a", "nltk", "char", str.split),
    "components": choice(["grammaticality"], ["non_redundancy"], ["focus"], ["focus", "non_redundancy"]),
    "vectors": choice({"a": [1.0, 0.0], "yes": [0.0, 1.0]}, {"a": [1.0], "yes": [0.0, 1.0]}, {}),
    "weights": weights,
    "embeddings": embeddings,
    "similarity": similarity,
    "quality": shaped(lambda draw: draw.choice((0, 0.5, 1, draw.random()))),
    "log_probs": shaped(lambda draw: -draw.random()),
    "classes": shaped(lambda draw: draw.choice(("a", "b", 3))),
    "contexts": of_items("Say yes.", "", None),
    "context_embeddings": of_items([1.0, 0.0, 0.0, 0.5], None),
    "confidence_by": of_items("a", "b", 3),
    "labels": choice({}, [["wrong"]], {"0": {"a": "wrong"}}),
    "model": lambda draw, _: Letters(),
    "device": choice("cpu"),
    "cache_dir": choice(None),
    **dict.fromkeys(("lm_model", "cola_model", "sop_model"), choice("./nowhere")),
}


def draw_setting(draw, name, declared, predictions):
    """Draw a value of a setting: mostly of those that its declaration allows."""
    if draw.random() > 0.75:
        return draw.choice(odd_values())
    if name in GOOD:
        return GOOD[name](draw, predictions)
    bounds = declared.check.keywords
    if "choices" in bounds:
        return draw.choice(bounds["choices"])
    if isinstance(declared.default, bool):
        return draw.choice((True, False))
    if declared.check.func.__name__ == "parse_count":
        return draw.choice((1, 2, 3, bounds.get("low", 1), bounds.get("high", 1000)))
    return draw.choice((0.5, 0.9, bounds.get("low", 0.01), bounds.get("high", 0.99)))


def draw_texts(draw, most=4):
    return [draw.choice(TEXTS) for _ in range(draw.randint(1, most))]


def draw_predictions(draw, name):
    """Draw predictions: mostly of a form that the metric takes."""
    kind = draw.random()
    if kind < 0.06:
        return draw.choice(odd_values())
    flat = draw_texts(draw, 6)
    items = flat if kind < 0.4 or name == "gruen" else [draw_texts(draw) for _ in range(draw.randint(1, 3))]
    if kind > 0.96:
        items[draw.randrange(len(items))] = draw.choice(odd_values())
    return items


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


def draw_case(draw, name, declared):
    """Draw the input and the settings of a call."""
    if name == "probeval":
        n = draw.randint(1, 3)
        clustered = draw.random() < 0.5
        inputs = {
            "predictions": [draw_answers(draw, False) for _ in range(n)],
            "references": [draw_answers(draw, clustered) for _ in range(n)],
        }
    else:
        inputs = {"predictions": draw_predictions(draw, name)}
    settings = {
        setting: draw_setting(draw, setting, declared[setting], inputs["predictions"])
        for setting in draw.sample(sorted(declared), draw.randint(0, 4))
    }
    if name == "semantic_entropy" and draw.random() < 0.8:
        settings.setdefault("same", 0.5)
        if settings.keys() & {"quality", "patience"}:
            settings |= {"patience": 0.5, "quality": GOOD["quality"](draw, inputs["predictions"])}
    given = settings.keys() & {"embeddings", "similarity", "vectors", "classes", "long_texts"}
    if name not in ("self_bleu", "gruen") and not given and draw.random() < 0.95:
        settings.setdefault("model", Letters())
    return inputs, settings


def check_result(metric, settings, result):
    json.dumps(result, allow_nan=False)
    low, high = metric.bounds_under(metric.settings.read(settings, metric.name))
    # Of sets of at most seven texts.
    high = high(7) if callable(high) else high
    for score in [result[metric.name], *result["scores"]]:
        assert score is None or low - 1e-6 <= score <= high + 1e-6
    assert result["signature"].startswith(f"{metric.name}|")


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
    declared = metric.settings.declared()
    parameters = ["predictions", "references", *(setting for setting in declared if setting != "q")]
    parameters += ["q must", "q is", r"q\[\d+\]"]
    outcomes = {"results": 0, "errors": 0, "stored": 0}
    for i, draw in cases(name, CASES[name]):
        inputs, settings = draw_case(draw, name, declared)
        shown = f"{name}, case {i}"
        with bounded(shown), warnings.catch_warnings():
            outcome = outcome_of(metric, inputs, settings)
            try:
                if isinstance(outcome, Exception):
                    check_error(name, outcome, parameters)
                else:
                    check_result(metric, settings, outcome)
                if draw.random() < 0.1:
                    outcomes["stored"] += 1
                    assert_same_when_stored(stored, inputs, settings, outcome)
            except AssertionError as error:
                error.add_note(f"{shown}: {outcome!r:.300}, settings {list(settings)}")
                raise
        outcomes["errors" if isinstance(outcome, Exception) else "results"] += 1
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
    outcome = outcome_of(metric, {}, settings)
    # What stays because the settings were refused is not for the next case.
    metric.writer = metric.buf_writer = metric.selected_feature_format = None
    if isinstance(expected, Exception):
        assert isinstance(outcome, (TypeError, ValueError)), f"stored: {outcome!r:.300}"
    else:
        assert outcome == expected
