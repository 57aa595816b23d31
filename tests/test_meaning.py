"""Do the metrics look at meaning? The agreement with a judge of the released pairs is in test_meta_eval.py."""

import pytest

from text_metrics.commands import demo


def test_embeddings_see_through_shuffled_words_and_form_does_not(load):
    words = demo.DIFFERENT[0].split()
    rotations = [" ".join(words[i:] + words[:i]) for i in (0, 3, 6, 9)]
    form, meaning = load("self_bleu"), load("vendi_embed")
    assert form.compute(predictions=rotations, max_order=1)["self_bleu"] == pytest.approx(1.0)
    assert meaning.compute(predictions=rotations)["vendi_embed"] < 1.5
    assert meaning.compute(predictions=demo.DIFFERENT)["vendi_embed"] > 2
