"""What holds for every metric, whatever it measures."""

import inspect
import json
import math
import multiprocessing
import random
import re
import time
import warnings
from functools import partial

import datasets
import evaluate
import numpy as np
import pytest

import text_metrics
from scripts.tooling.fill import help_list, read_help
from tests.conftest import METRICS, QUESTIONS, SETS, TEXTS, approx, inputs_of, items_of, limits_of, metrics_of
from text_metrics.__main__ import main
from text_metrics.metrics.self_bleu.self_bleu_settings import SelfBleuSettings

# Settings under which the properties hold, too, besides the defaults.
SETTINGS = [
    ("vendi_embed", {"q": [0, 0.01, 0.5]}),
    ("vendi_embed", {"kernel": "ngram", "q": [0, 1]}),
    ("semantic_entropy", {"same": 0.5}),
    ("semantic_entropy", {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}),
    ("self_bleu", {"max_order": 2, "repetition": True}),
    ("self_bleu", {"max_order": 2, "aggregate": "corpus"}),
    ("self_bleu", {"max_order": 2, "aggregate": "sentence"}),
    ("self_bleu", {"max_order": 1, "vocabulary_size": 99, "homogenization": True}),
    ("probeval", {"clustering": "hac"}),
    ("probeval", {"clustering": "xmeans"}),
    ("probeval", {"clustering": "none", "matcher": "gp"}),
]


def cases(*kinds):
    """Parametrize over the metrics of some kinds, each with its defaults and the settings above."""
    names = metrics_of(*kinds)
    of_names = [(name, {}) for name in names]
    of_names += [case for case in SETTINGS if case[0] in names]
    return pytest.mark.parametrize(("name", "settings"), of_names)


def score(metric, items, **settings):
    return metric.compute(**inputs_of(metric, items), **settings)


def is_pooled(settings):
    return settings.get("aggregate") == "corpus"


@cases("sets", "questions")
def test_the_order_of_texts_does_not_matter(load, name, settings):
    metric = load(name)
    items = items_of(metric)
    shuffled = []
    for i, item in enumerate(items):
        if isinstance(item, tuple):
            shuffled.append(tuple(random.Random(i).sample(part, len(part)) for part in item))
        else:
            shuffled.append(random.Random(i).sample(item, len(item)))
    expected = score(metric, items, **settings)
    result = score(metric, shuffled, **settings)
    for key in ("scores", name, "by_order"):
        assert result.get(key) == approx(expected.get(key)), key


@cases()
def test_an_item_scores_the_same_alone_in_any_order_and_twice(load, name, settings):
    metric = load(name)
    items = items_of(metric)
    expected = score(metric, items, details=True, **settings)
    for order in ([4, 3, 2, 1, 0] * 2, [2], [4]):
        result = score(metric, [items[i] for i in order], details=True, **settings)
        assert result["scores"] == pytest.approx([expected["scores"][i] for i in order], abs=1e-5)
        for i, place in enumerate(order):
            # The default id of a question is its place.
            details = expected["details"][place] | ({"id": str(i)} if metric.items == "questions" else {})
            assert result["details"][i] == approx(details, 1e-5)
        if len(order) > 1 and not is_pooled(settings):
            assert result[name] == pytest.approx(expected[name], abs=1e-5)


@cases()
def test_the_result_is_plain_and_input_is_left_as_it_was(load, name, settings):
    metric = load(name)
    items = items_of(metric)
    result = score(metric, items, details=True, **settings)
    assert items == items_of(metric)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert type(result[name]) is float
    assert len(result["scores"]) == len(result["details"]) == len(items)
    assert result["signature"].startswith(f"{name}|")
    if not is_pooled(settings):
        assert result[name] == pytest.approx(np.mean(result["scores"]))


@cases()
def test_how_items_are_run_changes_neither_score_nor_signature(load, name, settings, tmp_path):
    metric = load(name)
    items = items_of(metric)
    declared = metric.settings.declared()
    expected = score(metric, items, **settings)
    # Into the cache, and out of it.
    runs = [{"batch_size": 1, "device": "cpu", "cache_dir": tmp_path}, {"batch_size": 3, "cache_dir": tmp_path}]
    runs.append({"batch_size": 1000, "details": True})
    for run in runs:
        given = {setting: value for setting, value in run.items() if setting in declared}
        result = score(metric, items, **settings, **given)
        assert {key: result[key] for key in expected} == approx(expected, 1e-5), given


@pytest.mark.discrete
@cases("sets")
def test_what_is_computed_at_a_time_changes_nothing(load, name, settings, tmp_path, monkeypatch):
    metric = load(name)
    # One set that is large beside the limits, and many small ones.
    sets = [[f"{i % 10} dogs bark" + " and run" * (i % 7) for i in range(15)], *SETS]
    expected = score(metric, sets, details=True, **settings)
    cache = {"cache_dir": tmp_path} if "cache_dir" in metric.settings.declared() else {}
    limits = limits_of(metric)
    for tiny in (1, 3):
        for field in vars(limits):
            monkeypatch.setattr(limits, field, tiny)
        assert score(metric, sets, details=True, **settings, **cache) == approx(expected)


@cases()
def test_what_is_added_piece_by_piece_is_scored_as_one(name, settings):
    metric = evaluate.load(str(METRICS / name))
    items = items_of(metric)[:4]
    expected = score(metric, items, **settings)
    metric.add(**{key.rstrip("s"): values[0] for key, values in inputs_of(metric, items[:1]).items()})
    metric.add_batch(**inputs_of(metric, items[1:3]))
    assert score(metric, items[3:], **settings) == expected
    # And the metric starts anew. A call that fails by a setting, or by its value, leaves what was added.
    metric.add_batch(**inputs_of(metric, items[:2]))
    for setting in ("no_such_setting", "confidence"):
        with pytest.raises((TypeError, ValueError), match=setting):
            metric.compute(**{setting: 2})
    assert metric.compute(**settings) == score(metric, items[:2], **settings)


# The ways `evaluate` brings input, besides `add` and `add_batch`.

FLAT_TEXTS = [text for members in SETS for text in members][:12]


def score_second_half(paths, settings):
    """What the second process does."""
    for path in paths:
        metric = evaluate.load(path, process_id=1, **settings)
        assert metric.compute(**inputs_of(metric, items_of(metric)[3:])) is None


def test_two_processes_score_as_one(tmp_path):
    settings = {"num_process": 2, "experiment_id": "two", "cache_dir": str(tmp_path)}
    paths = [str(METRICS / name) for name in metrics_of()]
    other = multiprocessing.get_context("fork").Process(target=score_second_half, args=(paths, settings), daemon=True)
    other.start()
    for path in paths:
        metric = evaluate.load(path, process_id=0, **settings)
        # The first process asks for the other's lock file once: so it waits for it here.
        deadline = time.monotonic() + 60
        while not list(tmp_path.rglob(f"{metric.name}/**/*-2-1.arrow.lock")) and time.monotonic() < deadline:
            time.sleep(0.1)
        items = items_of(metric)
        result = metric.compute(**inputs_of(metric, items[:3]))
        expected = evaluate.load(path).compute(**inputs_of(metric, items))
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    other.join(120)
    assert other.exitcode == 0


def test_combine(load):
    names = metrics_of("sets")
    together = evaluate.combine([str(METRICS / name) for name in names])
    result = together.compute(predictions=FLAT_TEXTS, set_size=4)
    for name in names:
        alone = load(name).compute(predictions=FLAT_TEXTS, set_size=4)
        assert result[name] == alone[name]
        assert result[f"{name}_scores"] == alone["scores"]
        assert result[f"{name}_signature"] == alone["signature"]
    for text in FLAT_TEXTS[:6]:
        together.add(text)
    together.add_batch(FLAT_TEXTS[6:])
    assert together.compute(set_size=4) == result
    # References, of which these metrics have no use, do no harm.
    assert together.compute(predictions=FLAT_TEXTS, references=FLAT_TEXTS, set_size=4) == result
    together.add_batch(FLAT_TEXTS[:6], FLAT_TEXTS[:6])
    for text in FLAT_TEXTS[6:]:
        together.add(text, text)
    assert together.compute(set_size=4) == result


# Each set says a few things, in texts that the model reads alike, but encodes in batches of their own.
VARIANTS = [
    [
        f"{word} {i} dogs bark in the park.",
        f"{word.upper()} {i} dogs BARK in the park.",
        f"{word}  {i} Dogs bark in the park .",
    ]
    for i, word in enumerate(["some", "only", "about", "these", "all of the many different"] * 2)
]


def test_texts_that_are_read_alike_are_one_in_any_company_and_batch(load):
    metric = load("vendi_embed")
    orders = [0, 0.01, 1]
    tolerance = 1e-6

    def score(sets, **settings):
        rows = metric.compute(predictions=sets, q=orders, details=True, **settings)["details"]
        return np.array([list(row["by_order"].values()) for row in rows])

    company = [[f"Text {i} is about {i % 7} things" + " and more" * (i % 5) for i in range(40)]]
    for batch_size in (None, 7):
        np.testing.assert_allclose(score(VARIANTS + company, batch_size=batch_size)[:-1], 1.0, atol=tolerance)
    for members in VARIANTS[3:5]:
        np.testing.assert_allclose(score([members]), 1.0, atol=tolerance)
    # In one set, too, which has more texts than different ones.
    together = score([[text for members in VARIANTS for text in members]])
    np.testing.assert_allclose(together, score([[members[0] for members in VARIANTS]]), rtol=tolerance)


@cases("sets")
def test_a_flat_list_with_set_size_equals_nested_sets(load, name, settings):
    flat = [text for members in SETS for text in members][:12]
    nested = [flat[i : i + 4] for i in range(0, 12, 4)]
    expected = load(name).compute(predictions=nested, **settings)
    assert load(name).compute(predictions=flat, set_size=4, **settings) == expected
    assert load(name).compute(predictions=nested, set_size=4, **settings) == expected
    assert load(name).compute(predictions=flat, **settings) == load(name).compute(predictions=[flat], **settings)


@pytest.mark.parametrize("name", metrics_of("sets"))
@pytest.mark.parametrize(
    "texts",
    [
        ["我喜欢猫。", "狗在公园里跑。", "下雨了。"],
        ["Kedi uyuyor.", "Köpek parkta koşuyor.", "Yağmur yağıyor."],
        ["🐈", "", "\x00"],
    ],
)
def test_any_language(load, name, texts):
    metric = load(name)
    same = metric.compute(predictions=texts[:1] * 3)[name]
    different = metric.compute(predictions=texts)[name]
    low, high = metric.bounds
    if name in metric.decreasing:
        # Of texts that are as short as these, n-grams may say as little as of equal ones.
        assert low <= different <= same <= high
    else:
        assert different > same + 0.01
        assert math.isfinite(different)


# Sets of four texts.
FLAT = [
    "b c d e f", "a b c a b", "e f g h", "The dog barks.",
    "a b c d e", "a b c d e", "They closed the park.", "The park is closed.",
    *SETS[0],
]  # fmt: skip
MARKDOWN = "# Dogs bark\n\nThey **run** in the park.\n\n- They sleep.\n- They eat."
RANDOM = np.random.default_rng(0)
WORDS = {"dog": [1.0, 0.0], "park": [0.9, 0.1], "kettle": [0.0, 1.0], "pot": [0.1, 0.9], "a": [0.5, 0.5]}


def share_a_word(left, right):
    return [not set(a.split()).isdisjoint(b.split()) for a, b in zip(left, right, strict=True)]


# Values of settings that do not follow from their declarations.
EXAMPLES = {
    "q": [0, 2, 1.0000001, "inf", [1, 2]],
    "same": [0.3, share_a_word],
    "tokenizer": ["13a", list],
    "components": [["focus"], ["grammaticality", "focus"]],
    "vectors": [WORDS],
    "weights": [[0.1, 0.2, 0.3, 0.4] * 3],
    "classes": [list("aabb" * 3)],
    "labels": [[["wrong"] * len(answers) for answers, _ in QUESTIONS]],
    "similarity": [[np.eye(4)] * 3],
    "contexts": [["Say a letter.", None, "What does the dog do?"]],
    "context_embeddings": [np.ones((3, 8))],
    "confidence_by": [list("aab"), list("aabbc")],
    "vocabulary_size": [99],
}
# What a setting changes something with; that of one metric is named "<metric>.<setting>".
COMPANY = {
    "patience": {"quality": list(np.linspace(0, 1, 12))},
    "min_quality": {"quality": list(np.linspace(0, 1, 12))},
    "grouping": {"same": share_a_word},
    "distance": {"clustering": "hac"},
    "linkage": {"clustering": "hac"},
    "seed": {"clustering": "xmeans"},
    "context_embeddings": {"embeddings": RANDOM.random((12, 8))},
    "semantic_entropy.embeddings": {"same": 0.5},
    "semantic_entropy.context_embeddings": {"same": 0.5},
    "semantic_entropy.model": {"same": 0.5},
    "gruen.parity": {"vectors": WORDS},
    "labels": {
        "references": [
            [{"text": text, "count": 1, "cluster": text} for text in dict.fromkeys(people)] for _, people in QUESTIONS
        ],
        "clustering": "human",
    },
}
# Of the texts that a model embeds, one must be longer than it reads.
COMPANY |= {f"{name}.long_texts": {"predictions": [*FLAT[:-1], "A dog. " * 99]} for name in metrics_of("sets")}
# What a value of a setting is passed with: alone, it is refused.
TOGETHER = {
    "labels": {"matcher": "human"},
}
# By their names, they decide how a call runs and not what it computes.
OF_RUN = ("batch_size", "device", "cache_dir", "progress", "details")
# Signed, but nothing here is subject to them: clusters that are hard to find, and sentences that tiny language models
# find likely.
OF_OTHER_ITEMS = ("seed", "long_texts", "lm_model")
# What is refused by default, and scored with "skip": the items of a call, and how the result counts those left out.
SKIPPED = {
    "singletons": ({"predictions": [["a b c d", "a b c e"], ["a b c d"]]}, {"n_singletons": 1}),
    "unknown": (
        {
            "predictions": [{"id": id, "answers": ["a pot"]} for id in ("q1", "q2")],
            "references": [{"id": "q1", "answers": ["a pot"]}],
        },
        {"skipped": {"unknown": ["q2"], "missing": []}},
    ),
    "missing": (
        {
            "predictions": [{"id": "q1", "answers": ["a pot"]}],
            "references": [{"id": id, "answers": ["a pot"]} for id in ("q1", "q2")],
        },
        {"skipped": {"unknown": [], "missing": ["q2"]}},
    ),
}


def values_of(setting, declared, metric):
    """Give values of a setting that differ from its default."""
    if setting in EXAMPLES:
        return EXAMPLES[setting]
    bounds = declared.check.keywords
    if "choices" in bounds:
        return [choice for choice in bounds["choices"] if choice != declared.default]
    if isinstance(declared.default, bool):
        return [not declared.default]
    if declared.given == "text" and declared.numbers is not None:
        low, high = declared.numbers
        shape = (12, 8) if math.isinf(high) else (12,)
        return [np.clip(-RANDOM.random(shape) if math.isinf(low) else RANDOM.random(shape), low, high)]
    if declared.check.func.__name__ == "parse_count":
        return [3, 6] if declared.default is None else [declared.default + 1]
    if declared.check.func.__name__ in ("parse_number", "parse_level"):
        return [0.25] if declared.default is None else [declared.default / 2]
    raise AssertionError(f"EXAMPLES lacks values of {setting} of {metric.name}.")


def pytest_generate_tests(metafunc):
    if "setting" in metafunc.fixturenames:
        pairs = [(name, key) for name in metrics_of() for key in text_metrics.load(name).settings.declared()]
        metafunc.parametrize(("name", "setting"), pairs, ids=["-".join(pair) for pair in pairs])


@pytest.fixture
def call(load, name, setting, request):
    """Return the metric, the arguments of a call, and what else to pass: values of the setting, with their company."""
    metric = load(name)
    declared = metric.settings.declared()
    kinds = {"sets": {"predictions": FLAT, "set_size": 4}, "texts": {"predictions": [MARKDOWN, *TEXTS[:4]]}}
    arguments = kinds.get(metric.items) or inputs_of(metric, items_of(metric))
    arguments = arguments | {"confidence": 0.5} | COMPANY.get(setting, {}) | COMPANY.get(f"{name}.{setting}", {})
    if setting in ("backbone", "lm_model", "cola_model", "sop_model"):
        models, alternatives = map(request.getfixturevalue, ("gruen_models", "other_gruen_models"))
        if setting == "backbone":
            return metric, arguments, [models]
        return metric, arguments | models, [{setting: alternatives[setting]}]
    if setting == "model":
        return metric, arguments, [{setting: request.getfixturevalue("tiny_model")}]
    if setting in ("device", "cache_dir"):
        return metric, arguments, [{setting: "cpu" if setting == "device" else request.getfixturevalue("tmp_path")}]
    values = values_of(setting, declared[setting], metric)
    return metric, arguments, [{setting: value, **TOGETHER.get(setting, {})} for value in values]


# Results by metric and arguments, which are the same for most settings.
EXPECTED: dict[str, dict] = {}


def has_scores(value):
    """Tell whether a result has a number that is not a count."""
    if isinstance(value, dict):
        return any(map(has_scores, value.values()))
    if isinstance(value, list):
        return any(map(has_scores, value))
    return isinstance(value, float)


def changed_results(result, expected):
    """Name the results with other numbers than expected, and those with scores that were not expected at all."""
    names = [name for name in result if name not in ("signature", "details")]
    shared = [name for name in names if name in expected and result[name] != approx(expected[name])]
    return shared + [name for name in names if name not in expected and has_scores(result[name])]


def test_what_changes_a_number_is_signed(call, setting):
    metric, arguments, tries = call
    key = f"{metric.name} {arguments}"
    expected = EXPECTED[key] = EXPECTED.get(key) or metric.compute(**arguments)
    has_changed, is_signed = False, False
    for given in tries:
        try:
            result = metric.compute(**(arguments | given))
        except (ValueError, TypeError):
            # Two settings that exclude each other. It proves nothing.
            continue
        except LookupError as error:
            if type(error) is not LookupError:
                raise
            pytest.skip(f"data that are not installed: {error}")
        changed = changed_results(result, expected)
        signed = result["signature"] != expected["signature"]
        # The name of a result that a setting adds may say what it was computed with: `quality_scores`.
        unsigned = [] if signed else [name for name in changed if not name.startswith(setting)]
        assert not unsigned, given
        assert setting not in OF_RUN or not (changed or signed), given
        assert not setting.endswith("model") or signed, given
        has_changed = has_changed or bool(changed)
        is_signed = is_signed or signed
    if setting in OF_OTHER_ITEMS:
        assert is_signed
    elif setting not in (*OF_RUN, *SKIPPED):
        assert has_changed, f"no value of {setting} that was tried changes a number: EXAMPLES or COMPANY lack one."


def test_what_is_refused_is_skipped_on_demand(load):
    for name in metrics_of():
        metric = load(name)
        for setting in metric.settings.declared().keys() & SKIPPED.keys():
            inputs, counts = SKIPPED[setting]
            with pytest.raises(ValueError, match=setting):
                metric.compute(**inputs)
            result = metric.compute(**inputs, **{setting: "skip"})
            assert result[name] is not None
            assert counts.items() <= result.items()


def test_an_invalid_value_is_named(call, setting):
    metric, arguments, _ = call
    for value in (object(), [object()]):
        with pytest.raises((TypeError, ValueError), match=setting):
            metric.compute(**(arguments | {setting: value}))


# Warnings.

UNREAD = ["我喜欢猫。", "狗在公园里跑。", "下雨了。", "她在唱歌。"]
# What a metric of the kind warns of, beside the texts.
WARNED = {
    "sets": {"predictions": UNREAD, "set_size": 2},
    "texts": {"predictions": UNREAD},
    "questions": {"predictions": [UNREAD[:2]], "references": [UNREAD[2:]], "vectors": WORDS},
}
# Settings with which sets of unspaced texts are warned of by other functions.
OTHER_WARNINGS = [("vendi_embed", {"kernel": "ngram"}), ("self_bleu", {"max_order": 4})]


def warned_files(*calls):
    """Make calls; returns the files that their warnings point to, of which each call must raise one."""
    files = []
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        ours = [warning for warning in caught if issubclass(warning.category, UserWarning)]
        assert ours, "no warning"
        files += [warning.filename for warning in ours]
    return files


def test_a_warning_of_a_metric_points_to_the_line_of_its_caller(load):
    for name in metrics_of():
        inputs, stored = WARNED[load(name).items], evaluate.load(str(METRICS / name))
        settings = {key: inputs[key] for key in inputs.keys() & {"vectors", "set_size"}}
        stored.add_batch(**{key: inputs[key] for key in inputs.keys() - settings.keys()})
        calls = [partial(metric.compute, **inputs) for metric in (load(name), text_metrics.load(name))]
        calls.append(partial(stored.compute, **settings))
        calls += [partial(load(name).compute, **inputs, **more) for of, more in OTHER_WARNINGS if of == name]
        assert set(warned_files(*calls)) == {__file__}, name


def test_a_warning_of_a_further_question_points_to_the_line_of_its_caller(tmp_path):
    sets, groups = [UNREAD], [list("aabb")]
    rows = datasets.Dataset.from_dict({"texts": sets})
    scorer = text_metrics.Scorer("vendi_embed", "texts")
    data = tmp_path / "texts.jsonl"
    data.write_text(json.dumps({"texts": UNREAD}) + "\n", encoding="utf-8")
    score_words = ["score", str(data), "--metric", "vendi_embed", "--text-key", "texts", "--out", f"{data}.out.jsonl"]
    calls = (
        lambda: text_metrics.contributions("vendi_embed", sets),
        lambda: text_metrics.contributions("chamfer_diversity", sets),
        lambda: text_metrics.rarefied("self_bleu", sets, 2),
        lambda: text_metrics.between_groups("vendi_embed", sets, groups),
        lambda: text_metrics.for_rewards("vendi_embed", 4)(completions=UNREAD),
        lambda: scorer({"texts": sets}),
        lambda: rows.map(scorer, batched=True, load_from_cache_file=False),
        lambda: text_metrics.describe([UNREAD, UNREAD[::-1]]),
        lambda: main(score_words),
    )
    assert set(warned_files(*calls)) == {__file__}


@pytest.mark.parametrize("caller", ["transformers.trainer", "trl.trainer.grpo_trainer", "accelerate.utils.memory"])
def test_a_warning_in_training_points_to_the_line_that_starts_it(caller):
    trainer = {"__name__": caller}
    exec("def train(function, *given, **named):\n    return function(*given, **named)", trainer)
    reward = text_metrics.for_rewards("vendi_embed", 4)
    assert set(warned_files(lambda: trainer["train"](reward, completions=UNREAD))) == {__file__}


# What follows from the declarations.


@pytest.mark.parametrize("name", metrics_of())
def test_help_card_and_signature_are_the_declaration(load, name):
    metric = load(name)
    inputs = list(inputs_of(metric, items_of(metric)))
    expected = [*inputs, *metric.settings.declared()]
    text = help_list(read_help(name), "Args")
    heads = [line.partition("): ")[0] for line in text.splitlines() if line.startswith("- ")]
    names = [argument for head in heads for argument in re.findall(r"(?:^- |\), )`(\w+)`", head)]
    assert sorted(set(names) - ({"references"} - set(inputs))) == sorted(expected)
    parameters = inspect.signature(metric.compute).parameters
    assert list(parameters) == expected
    for setting, declared in metric.settings.declared().items():
        assert parameters[setting].default == declared.default
        # In its canonical form.
        assert declared.default is None or declared.check(declared.default, setting) == declared.default
    assert metric.settings().passed() == {}


@pytest.mark.parametrize("name", metrics_of())
@pytest.mark.parametrize("method", ["compute", "add", "add_batch"])
def test_help_lists_an_argument_a_line(load, name, method):
    metric = load(name)
    parameters = inspect.signature(getattr(metric, method)).parameters
    expected = [argument for argument, each in parameters.items() if each.kind is not each.VAR_KEYWORD]
    sections = re.split(r"\n *Args:\n", inspect.getdoc(getattr(metric, method)))[1:]
    # The others end with the help of `compute`, which has the settings of the metric.
    assert len(sections) == (1 if method == "compute" else 2)
    names = re.findall(r"^ {4}(\w+)", sections[0].partition("\n\n")[0], flags=re.MULTILINE)
    assert names == expected


@pytest.mark.parametrize(
    ("name", "misspelled", "close"),
    [("vendi_embed", "setsize", "set_size"), ("self_bleu", "max_n_order", "max_order"), ("gruen", "colour", None)],
)
def test_a_misspelled_argument(load, name, misspelled, close):
    hint = f": did you mean {close!r}\\?" if close else r"\."
    message = rf"^{name} has no argument '{misspelled}'{hint}"
    with pytest.raises(TypeError, match=message):
        load(name).compute(predictions=["a", "b"], **{misspelled: 1})


def test_an_equal_value_is_the_default():
    # Strings that were read from a file are equal to a default without being the same object.
    settings = SelfBleuSettings(aggregate="".join(["s", "et"]), singletons="".join(["err", "or"]))
    assert settings.passed() == {}
    assert SelfBleuSettings(repetition=1).passed() == {"repetition": True}
