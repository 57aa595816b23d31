"""The declarations of settings: what the help, the card, the signature of `compute` and every caller make of them."""

import inspect
import re

import pytest

from scripts.tooling.fill import help_list, read_help
from text_metrics import METRICS
from text_metrics.metrics.self_bleu.self_bleu_settings import SelfBleuSettings


@pytest.mark.parametrize("name", METRICS)
def test_help_card_and_signature_are_the_declaration(load, name):
    metric = load(name)
    inputs = metric._feature_names()
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
