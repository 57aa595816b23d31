"""A metric warns, once and with the count, of texts that its model does not know."""

import warnings

import pytest

from text_metrics.metrics._core.core_encoder import EncoderSettings, UnknownWordsWarning, encode

KNOWN = ["A dog barks.", "Der Hund läuft im Park.", "Con chó đi dạo trong công viên.", "E = mc²", "x", "", "A" * 90]
UNKNOWN = [
    "😀",
    "🎉🎉",
    "A" * 120,
    "我喜欢在公园里散步。",
    "مرحبا بالعالم",
    "Привет, как дела?",
    "שלום עולם",
    "개가 걷고 있다",
]


@pytest.mark.parametrize("text", KNOWN)
def test_known_words_are_no_reason_to_warn(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownWordsWarning)
        encode([text])


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown_words_are(text):
    with pytest.warns(UnknownWordsWarning, match="1 of 2"):
        encode([text, "A dog barks.", text])


def test_one_warning_for_all_texts_and_through_the_cache(tmp_path):
    for settings in (EncoderSettings(), EncoderSettings(cache_dir=tmp_path)):
        with pytest.warns(UnknownWordsWarning) as caught:
            encode([*UNKNOWN, *KNOWN], settings)
        assert len([one for one in caught if one.category is UnknownWordsWarning]) == 1
        assert f"{len(UNKNOWN)} of {len(UNKNOWN) + len(KNOWN)}" in str(caught[0].message)


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_the_metrics_pass_the_warning_on(load, name):
    with pytest.warns(UserWarning, match="2 of 3"):
        load(name).compute(predictions=[["😀", "🎉", "A dog barks."]])
