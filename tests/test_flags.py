"""Flags, of all metrics: True and False may be numpy's, or 1 and 0, wherever a setting can be given."""

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from tests.conftest import SET_METRICS
from tests.files import write_jsonl
from text_metrics.commands.score import main as score

TEXTS = ["A dog barks at the cat. It runs away.", "Rain fell all night. The roof leaked.", "He paints boats."]
CALLS = {
    **{name: {"predictions": TEXTS} for name in SET_METRICS},
    "gruen": {"predictions": TEXTS, "components": ["non_redundancy"]},
    "probeval": {
        "predictions": [["a dog", "a cat", "a dog"]],
        "references": [{"a dog": 2, "a bird": 1}],
    },
}
YES, NO = (True, 1, np.True_, np.int64(1)), (False, 0, np.False_, np.uint8(0))


def flags_of(metric):
    settings = inspect.signature(metric.compute).parameters.values()
    return [own.name for own in settings if isinstance(own.default, bool) or own.name == "progress"]


def outcome(function, **settings):
    try:
        return function(**settings)
    except (ValueError, LookupError) as error:  # such as parity without its data
        return str(error)


@pytest.mark.parametrize("name", CALLS)
def test_every_flag_is_read_in_the_same_way(load, name):
    metric = load(name)
    flags = flags_of(metric)
    assert "details" in flags
    for flag in flags:
        for values in (YES, NO):
            results = [outcome(metric.compute, **CALLS[name], **{flag: value}) for value in values]
            assert all(result == results[0] for result in results[1:]), flag
        for value in (2, -1, 1.0, "True", [], "", np.nan, np.array([True, False]), *[None] * (flag != "progress")):
            with pytest.raises(TypeError, match=f"^{flag} must be True or False. Got "):
                metric.compute(**CALLS[name], **{flag: value})


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
@pytest.mark.parametrize("value", NO)
def test_a_flag_that_is_not_set_can_be_given_with_any_setting(load, name, value):
    expected = load(name).compute(predictions=TEXTS, rarefy=2)
    assert load(name).compute(predictions=TEXTS, rarefy=2, contributions=value) == expected
    for other in YES:
        with pytest.raises(ValueError, match="contributions cannot be combined with rarefy"):
            load(name).compute(predictions=TEXTS, rarefy=2, contributions=other)


class Numerals:
    """Decodes a token id as itself."""

    pad_token_id = 0

    def batch_decode(self, rows, skip_special_tokens=False):
        return [" ".join(map(str, row)) for row in rows]


@pytest.mark.parametrize("value", YES)
def test_flags_given_before_training(load, value):
    ids = np.array([[1, 2, 3], [1, 2, 4], [5, 2, 3]])
    evaluation = SimpleNamespace(predictions=ids, label_ids=None, inputs=None)
    metric = load("self_bleu").for_trainer(Numerals(), repetition=value)
    expected = load("self_bleu").for_trainer(Numerals(), repetition=True)
    assert metric(evaluation) == expected(evaluation)
    assert metric.signature == expected.signature
    metric(evaluation, compute_result=np.False_)
    assert metric(evaluation, compute_result=value).keys() == metric(evaluation).keys()
    rewards = [load("gruen").for_rewards(progress=flag, parity=False)(completions=TEXTS) for flag in (value, True)]
    assert rewards[0] == rewards[1]


def test_flags_that_are_none_are_refused_before_training(load):
    with pytest.raises(TypeError, match=r"^repetition must be True or False. Got str 'yes'"):
        load("self_bleu").for_trainer(Numerals(), repetition="yes")
    with pytest.raises(TypeError, match=r"^parity must be True or False. Got int 2"):
        load("gruen").for_rewards(parity=2)
    metric = load("self_bleu").for_trainer(Numerals())
    with pytest.raises(TypeError, match=r"^compute_result must be True or False. Got str 'no'"):
        metric(SimpleNamespace(predictions=np.ones((2, 3), int), label_ids=None, inputs=None), compute_result="no")


@pytest.mark.parametrize(("value", "code"), [("0", 0), ("false", 0), ("1", 2), ("true", 2), ("2", 2)])
def test_a_flag_of_one_set_in_parts(tmp_path, capsys, value, code):
    data = write_jsonl(tmp_path / "data.jsonl", [{"text": text} for text in TEXTS])
    words = ["--metric", "self_bleu", "--text-key", "text", "--one-set", "--quiet", "--out", tmp_path / "out.json"]
    assert score.main([str(word) for word in [data, *words, "--setting", f"repetition={value}"]]) == code
    assert ("repetition" in capsys.readouterr().err) == (code != 0)
