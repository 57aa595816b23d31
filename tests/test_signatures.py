"""Signatures: parsed and compared, and the names in them of what users pass."""

import pytest

from tests.test_encoder import Counting
from text_metrics.metrics._core.core_results import Signature, caller_name


def test_a_signature_is_parsed_merged_and_compared():
    text = "vendi_embed|q:0,1|model:local@ab:c|set_size:4|version:1"
    signed = Signature.parse(text)
    assert str(signed) == text
    assert signed.metric == "vendi_embed"
    assert signed.entries == {"q": "0,1", "model": "local@ab:c", "set_size": "4", "version": "1"}
    merged = signed.merge(set_size=5, reward="sum")
    assert str(merged) == "vendi_embed|q:0,1|model:local@ab:c|set_size:5|reward:sum|version:1"
    assert str(signed) == text
    assert merged.without("reward", "version").merge(set_size=4) == signed.without("version")
    assert signed.difference(merged) == {"set_size": ("4", "5"), "reward": (None, "sum")}
    other = Signature("gruen", {"q": "0,1"})
    assert other.difference(signed.without("model", "set_size", "version")) == {"metric": ("gruen", "vendi_embed")}
    assert signed.difference(Signature.parse(text)) == {}


class Named(Counting):
    """An encoder with a name."""

    signature_name = "vowels, int8"


def test_an_encoder_says_its_name(load):
    calls = {
        "vendi_embed": {"predictions": ["a dog", "the house"]},
        "chamfer_diversity": {"predictions": ["a dog", "the house"]},
        "probeval": {"predictions": [["pot", "a kettle"]], "references": [["a pot", "kettle", "spoon"]]},
        "gruen": {"predictions": ["A dog barks. The house is old."], "components": ["focus"]},
    }
    for name, call in calls.items():
        assert "|model:given(vowels, int8)|" in load(name).compute(**call, model=Named())["signature"]
        assert "|model:given(Counting)|" in load(name).compute(**call, model=Counting())["signature"]
    encoder = Counting()
    encoder.signature_name = "vowels"
    assert "|model:given(vowels)|" in load("vendi_embed").compute(predictions=["a", "b"], model=encoder)["signature"]


def test_functions_say_their_names(load):
    def tokenizer(text):
        return text.split()

    assert caller_name(tokenizer).endswith("<locals>.tokenizer")
    tokenizer.signature_name = "blanks"
    result = load("self_bleu").compute(predictions=["a b", "c d e"], max_order=1, tokenizer=tokenizer)
    assert "|tokenizer:custom(blanks)|" in result["signature"]


@pytest.mark.parametrize("name", ["a|b", 3])
def test_a_name_that_would_break_a_signature(load, name):
    encoder = Counting()
    encoder.signature_name = name
    with pytest.raises(ValueError, match="signature_name must be a string"):
        load("vendi_embed").compute(predictions=["a", "b"], model=encoder)
