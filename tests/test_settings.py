"""The declarations of settings: what the help, the card, the signature of `compute` and every caller make of them."""

import inspect
import re

import pytest

from scripts.tooling import cards
from text_metrics import METRICS
from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.score.scoring import _OPTIONS, Scorer
from text_metrics.metrics._core.core_settings import CALL
from text_metrics.metrics.self_bleu.self_bleu_settings import SelfBleuSettings


class Tokenizer:
    def batch_decode(self, rows, **kwargs):
        return [" ".join(map(str, row)) for row in rows]


def pytest_generate_tests(metafunc):
    if "setting" in metafunc.fixturenames:
        from text_metrics import load

        pairs = [(name, setting) for name in METRICS for setting in load(name).settings.declared()]
        metafunc.parametrize(("name", "setting"), pairs, ids=[f"{name}-{setting}" for name, setting in pairs])


def changed(settings, name):
    """Settings that are not checked, all with their defaults but one."""
    made = object.__new__(settings)
    for other in settings.declared():
        object.__setattr__(made, other, settings.default(other))
    object.__setattr__(made, name, object())
    return made


def is_of_items(settings, name):
    declared = settings.declared()[name]
    return declared.given != CALL or (declared.needs is not None and is_of_items(settings, declared.needs))


def own_parameters(method):
    return inspect.signature(method).parameters


@pytest.mark.parametrize("name", METRICS)
def test_help_card_and_signature_are_the_declaration(load, name):
    metric = load(name)
    inputs = metric._feature_names()
    expected = [*inputs, *metric.settings.declared()]
    text = cards.read_help(cards.METRICS / name / f"{name}.py")
    heads = [entry.partition("): ")[0].split("), ") for entry in cards.entries(text, "Args")]
    names = [part.partition(" (")[0] for head in heads for part in head]
    assert [argument for argument in names if argument != "references" or argument in inputs] == expected
    card = (cards.METRICS / name / "README.md").read_text(encoding="utf-8")
    section = re.search(r"<!-- help: Args -->\n(.*?)<!-- /help -->", card, flags=re.DOTALL)[1]
    listed = [line.partition("): ")[0] for line in section.splitlines()]
    assert [argument for line in listed for argument in re.findall(r"(?:^- |\), )`(\w+)`", line)] == names
    parameters = inspect.signature(metric.compute).parameters
    assert list(parameters) == expected
    for setting in metric.settings.declared():
        assert parameters[setting].default == metric.settings.default(setting)


def test_a_default_is_declared_in_its_canonical_form(load, name, setting):
    settings = load(name).settings
    default = settings.default(setting)
    assert default is None or settings.declared()[setting].check(default, setting) == default
    assert settings().passed() == {}


def test_what_a_setting_needs_is_declared(load, name, setting):
    needed = load(name).settings.declared()[setting].needs
    assert needed is None or load(name).settings.default(needed) is None


def test_for_trainer(load, name, setting):
    metric, settings = load(name), load(name).settings
    if setting in own_parameters(metric.for_trainer):
        return
    arguments = {setting: settings.default(setting)}
    if setting == "tokenizer":
        metric.for_trainer(Tokenizer(), **arguments)
    elif is_of_items(settings, setting) or settings.declared()[setting].finer:
        with pytest.raises(ValueError, match=rf"^{setting} cannot be given to for_trainer: .*\.$"):
            metric.for_trainer(Tokenizer(), **arguments)
    else:
        metric.for_trainer(Tokenizer(), **arguments)


def test_for_rewards(load, name, setting):
    metric, settings = load(name), load(name).settings
    given = {} if metric.items == "texts" else {"set_size": 2}
    if metric.items != "texts" and "contributions" not in settings.declared():
        with pytest.raises(ValueError, match=f"^{name} gives no rewards"):
            metric.for_rewards(**given)
        return
    if setting in own_parameters(metric.for_rewards):
        return
    declared = settings.declared()[setting]
    arguments = given | {setting: settings.default(setting)}
    if is_of_items(settings, setting) or declared.finer or declared.of_mean:
        with pytest.raises(ValueError, match=rf"^{setting} cannot be given to for_rewards: .*\.$"):
            metric.for_rewards(**arguments)
    else:
        metric.for_rewards(**arguments)


def test_parts_and_batches(load, name, setting):
    settings = load(name).settings
    made = changed(settings, setting)
    declared = settings.declared()[setting]
    if declared.merges_parts(getattr(made, setting)):
        made.check_parts()
    else:
        with pytest.raises(ValueError, match=rf"^{setting} cannot be combined with scoring one set in parts\. Got "):
            made.check_parts()
    if declared.merges_batches(getattr(made, setting)):
        made.check_batches()
    else:
        with pytest.raises(ValueError, match=rf"^{setting}=.* cannot be scored in batches: "):
            made.check_batches()


def test_items_and_finer_results_have_no_parts(load, name, setting):
    declared = load(name).settings.declared()[setting]
    if declared.given != CALL or declared.finer:
        assert not declared.merges_parts(object())


def test_the_score_command(load, name, setting):
    metric, settings = load(name), load(name).settings
    scorer = Scorer(name, {setting: settings.default(setting)})
    if setting in _OPTIONS:
        with pytest.raises(UsageError, match=f"--setting {setting}: pass --"):
            scorer.check_names()
    elif is_of_items(settings, setting):
        with pytest.raises(UsageError, match=rf"^--setting {setting} cannot be given to a command: .* pass --column "):
            scorer.check_names()
    elif settings.declared()[setting].finer and not any(setting in result.needs for result in metric.item_results):
        with pytest.raises(UsageError, match=rf"^--setting {setting} cannot be given to a command: its results have "):
            scorer.check_names()
    else:
        scorer.check_names()


def test_every_argument_that_is_given_for_items_is_a_column(load, name, setting):
    declared = load(name).settings.declared()[setting]
    if declared.given == CALL:
        with pytest.raises(UsageError, match=f"^--column {setting}: it is given once for a call: pass --setting"):
            Scorer(name, {}, {setting: "c"})
        return
    (column,) = Scorer(name, {}, {setting: "c"}).columns
    assert (column.argument, column.name) == (setting, "c")
    if declared.needs not in _OPTIONS:
        assert column.per_text == (declared.given in ("text", "pair of texts", "answer"))


@pytest.mark.parametrize(
    ("name", "misspelled", "close"),
    [("vendi_embed", "setsize", "set_size"), ("self_bleu", "max_n_order", "max_order"), ("gruen", "colour", None)],
)
def test_a_misspelled_argument(load, name, misspelled, close):
    hint = f": did you mean {close!r}\\?" if close else r"\."
    message = rf"^{name} has no argument '{misspelled}'{hint} It has {next(iter(load(name).settings.declared()))}, "
    with pytest.raises(TypeError, match=message):
        load(name).compute(predictions=["a", "b"], **{misspelled: 1})


def test_an_equal_value_is_the_default():
    # Strings that were read from a file are equal to a default without being the same object.
    settings = SelfBleuSettings(aggregate="".join(["s", "et"]), singletons="".join(["err", "or"]))
    assert settings.passed() == {}
    settings.check_parts()
    assert SelfBleuSettings(repetition=1).passed() == {"repetition": True}
