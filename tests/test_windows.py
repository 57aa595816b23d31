"""long_texts=: windows of texts that are longer than the encoder reads."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SETS, encode
from text_metrics.metrics._core import core_models
from text_metrics.metrics._core.core_windows import split_windows

TEXTS = [text for members in SETS for text in members]
# 90 sentences: about 800 tokens of the default model, and 3 000 of the tiny one, which reads 64.
LONG = " ".join(f"The {word} walks in the park with a dog." for word in ["man", "woman", "child"] * 30)


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(core_models.find_model("all-MiniLM-L6-v2").path)


def split(tokenizer, text, limit):
    return split_windows(tokenizer, [text], limit - tokenizer.num_special_tokens_to_add())


def plain_windows(text, n_tokens, limit):
    """Pack whole sentences, one after the other, as long as they fit."""
    windows = []
    sentences = [f"{part}." for part in text.split(". ")]
    sentences[-1] = sentences[-1].removesuffix(".")
    for sentence in sentences:
        if windows and n_tokens(f"{windows[-1]} {sentence}") <= limit:
            windows[-1] += f" {sentence}"
        else:
            windows.append(sentence)
    return windows


def test_a_long_text_is_the_mean_of_its_windows(tokenizer):
    def n_tokens(text):
        return len(tokenizer(text)["input_ids"])

    windows = plain_windows(LONG, n_tokens, 256)
    assert len(windows) == 4
    parts = encode(windows, device="cpu", long_texts="cut")
    expected = np.average(parts, axis=0, weights=[n_tokens(window) - 2 for window in windows])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded = encode([*TEXTS, LONG], device="cpu", long_texts="windows")
    np.testing.assert_allclose(encoded[-1], expected, atol=1e-6)
    again = encode([LONG, *TEXTS], device="cpu", batch_size=1)
    np.testing.assert_allclose(np.roll(again, -1, axis=0), encoded, atol=1e-6)


def test_no_digit_changes_for_texts_that_fit(load):
    for name in ("vendi_embed", "chamfer_diversity"):
        cut, windows = (load(name).compute(predictions=SETS, long_texts=way) for way in ("cut", "windows"))
        assert cut["scores"] == windows["scores"]
        assert windows["signature"].replace("|long_texts:windows", "") == cut["signature"]
    cut, windows = (encode(TEXTS, device="cpu", long_texts=way) for way in ("cut", "windows"))
    np.testing.assert_array_equal(cut, windows)
    beside = encode([LONG, *TEXTS], device="cpu", long_texts="windows")[1:]
    np.testing.assert_allclose(beside, cut, atol=1e-6)


WORDS = st.sampled_from(["a", "dog", "Unbelievable", "e.g.", "end.", "what?!", 'said."', "no…", "犬。", "x" * 30, "\n"])


@given(st.lists(st.tuples(WORDS, st.sampled_from([" ", "", "  ", "\n"])), min_size=1), st.integers(5, 12))
def test_windows_hold_the_whole_text_and_fit(tokenizer, words, limit):
    text = "".join(word + space for word, space in words)
    windows = split(tokenizer, text, limit)
    assert (windows.lengths <= limit - 2).all() or len(windows.parts) == 1
    assert windows.lengths.tolist() == [len(tokenizer(part)["input_ids"]) - 2 for part in windows.parts]
    assert windows.counts.tolist() == [len(windows.parts)]
    assert "".join("".join(windows.parts).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three four five. Six seven.", ["One two. Three four five.", "Six seven."]),
        ('He said "stop." Then he left us all.', ['He said "stop."', "Then he left us all."]),
        ("A list\n- of three\n- of four more", ["A list\n- of three", "- of four more"]),
        ("one two three four five six seven eight", ["one two three four five six seven", "eight"]),
        ("我喜欢猫。狗在公园里跑。", ["我喜欢猫。", "狗在公园里跑。"]),
    ],
)
def test_where_windows_end(tokenizer, text, expected):
    assert split(tokenizer, text, 9).parts == expected


def test_a_tokenizer_of_few_settings():
    """As that of mistral-common."""
    few = split_windows(lambda texts, add_special_tokens, verbose: {"input_ids": list(map(list, texts))}, ["ab"], 9)
    assert few.lengths.tolist() == [2]


def test_a_tokenizer_that_reads_a_word_after_a_space_otherwise():
    """In byte-level BPE, a word at the beginning of a window may have more tokens than within a text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {token: i for i, token in enumerate(["a", "b", "Ġ", "Ġa", "Ġab"])}
    bpe = Tokenizer(models.BPE(vocabulary, [("Ġ", "a"), ("Ġa", "b")]))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.post_processor = processors.ByteLevel(trim_offsets=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe)
    assert [len(tokenizer(text)["input_ids"]) for text in ("ab", " ab")] == [2, 1]
    text = "ab " * 40
    for limit in range(4, 12):
        windows = split(tokenizer, text, limit)
        assert windows.lengths.max() <= limit
        assert "".join("".join(windows.parts).split()) == "".join(text.split())
