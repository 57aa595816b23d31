"""What a signature says of what the caller gives, and names of encoders and functions."""

import numpy as np
import pytest

from tests.test_encoder import Counting
from text_metrics.metrics._core.core_results import caller_name

TEXTS = ["a dog", "the house", "a bird"]


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
@pytest.mark.parametrize("given", [{"embeddings": np.eye(3)}, {"similarity": np.eye(3)}])
def test_what_is_given_for_texts_is_signed_as_given(load, name, given):
    (kind,) = given
    result = load(name).compute(predictions=TEXTS, **given)
    assert f"|{kind}:given|" in result["signature"]
    assert "|model:" not in result["signature"]


class Named(Counting):
    """An encoder with a name."""

    signature_name = "vowels, int8"


def test_an_encoder_says_its_name(load):
    texts = ["a dog", "the house", "a bird"]
    calls = {
        "vendi_embed": {"predictions": texts},
        "chamfer_diversity": {"predictions": texts},
        "probeval": {"predictions": [["pot", "a kettle"]], "references": [["a pot", "kettle", "spoon"]]},
        "gruen": {"predictions": ["A dog barks. The house is old."], "components": ["focus"]},
    }
    for name, call in calls.items():
        assert "|model:given(vowels, int8)|" in load(name).compute(**call, model=Named())["signature"]
        assert "|model:given(Counting)|" in load(name).compute(**call, model=Counting())["signature"]
    encoder = Counting()
    encoder.signature_name = "vowels"
    assert "|model:given(vowels)|" in load("vendi_embed").compute(predictions=texts, model=encoder)["signature"]


def test_functions_say_their_names(load):
    def tokenizer(text):
        return text.split()

    assert caller_name(tokenizer).endswith("<locals>.tokenizer")
    tokenizer.signature_name = "blanks"
    texts = ["a b", "c d e"]
    result = load("self_bleu").compute(predictions=texts, max_order=1, tokenizer=tokenizer)
    assert "|tokenizer:custom(blanks)|" in result["signature"]


@pytest.mark.parametrize("name", ["a|b", 3])
def test_a_name_that_would_break_a_signature(load, name):
    encoder = Counting()
    encoder.signature_name = name
    with pytest.raises(ValueError, match="signature_name must be a string"):
        load("vendi_embed").compute(predictions=["a", "b"], model=encoder)
