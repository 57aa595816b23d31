"""self_bleu: parity with nlg-eval, NLTK and fast-bleu, and what the settings do."""

import json
import warnings

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from tests import programs
from tests.conftest import ROOT, SETS, approx
from tests.references import diversity as reference
from text_metrics.metrics._core import core_ngrams
from text_metrics.metrics.self_bleu import self_bleu_ngrams

WORDS = st.lists(st.sampled_from("abcd"), max_size=6)
GROUPS = st.lists(st.lists(WORDS, min_size=2, max_size=4), min_size=1, max_size=4)


def statistics(groups, max_order):
    tokens = core_ngrams.number_tokens([text for group in groups for text in group])
    sizes = np.array([len(group) for group in groups])
    tables = list(core_ngrams.ngram_tables(tokens, sizes, max_order))
    return tables, self_bleu_ngrams.bleu_statistics(tables, tokens.lengths, sizes), sizes


def test_equals_the_original_scorers(load, original_scores):
    result = load("self_bleu").compute(predictions=[row["texts"] for row in original_scores], details=True)
    for detail, expected in zip(result["details"], original_scores, strict=True):
        for name in detail.keys() & expected.keys():
            assert detail[name] == pytest.approx(expected[name], abs=1e-6), name
    assert {f"self_bleu_{n}" for n in range(1, 5)} <= detail.keys() & expected.keys()


@given(GROUPS)
def test_equals_the_plain_definition(groups):
    tables, bleu_statistics, sizes = statistics(groups, max_order=3)
    by_set = self_bleu_ngrams.bleu(bleu_statistics.pooled(sizes), "nlg-eval")
    for i, group in enumerate(groups):
        np.testing.assert_allclose(by_set[:, i], reference.nlg_eval_self_bleu([group], 3), atol=1e-9)
        for n, table in enumerate(tables, 1):
            assert self_bleu_ngrams.distinct(table, sizes)[i] == pytest.approx(reference.distinct(group, n))
            assert self_bleu_ngrams.entropy(table, sizes)[i] == pytest.approx(reference.entropy(group, n))
    corpus = self_bleu_ngrams.bleu(bleu_statistics.pooled(np.array([sizes.sum()])), "nlg-eval")
    np.testing.assert_allclose(corpus[:, 0], reference.nlg_eval_self_bleu(groups, 3), atol=1e-9)
    everything = [text for group in groups for text in group]
    for n, table in enumerate(tables, 1):
        merged = table._replace(set_groups=table.corpus_groups)
        whole = np.array([sizes.sum()])
        assert self_bleu_ngrams.distinct(merged, whole)[0] == pytest.approx(reference.distinct(everything, n))
        assert self_bleu_ngrams.entropy(merged, whole)[0] == pytest.approx(reference.entropy(everything, n))


def test_ngrams_too_many_for_one_integer_equal_the_plain_definition():
    # 256 words have as many 8-grams as there are 64-bit integers: 9-grams that differ in the first word could be taken
    # for one.
    words = [str(i) for i in range(256)]
    groups = [[words, ["200", *words[1:60]]], [words[:40], ["7", *words[1:40]]]]
    tables, bleu_statistics, sizes = statistics(groups, 9)
    by_set = self_bleu_ngrams.bleu(bleu_statistics.pooled(sizes), "nlg-eval")
    for i, group in enumerate(groups):
        np.testing.assert_allclose(by_set[:, i], reference.nlg_eval_self_bleu([group], 9), atol=1e-9)
        assert self_bleu_ngrams.distinct(tables[-1], sizes)[i] == pytest.approx(reference.distinct(group, 9))


@pytest.mark.parametrize("max_order", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "texts",
    [
        [*SETS[0], "A dog barks at the park.", "dog", "the couple", "nothing shared whatsoever", ""],
        # Its brevity penalties fast-bleu leaves out.
        ["c c", "c c c c", "c c c c c c c c"],
    ],
)
def test_sentence_mode_equals_nltk(load, texts, max_order):
    tokens = [text.split() for text in texts]
    expected = [
        sentence_bleu(
            tokens[:i] + tokens[i + 1 :],
            tokens[i],
            weights=(1 / max_order,) * max_order,
            smoothing_function=SmoothingFunction().method1,
        )
        for i in range(len(tokens))
    ]
    result = load("self_bleu").compute(predictions=texts, aggregate="sentence", max_order=max_order, details=True)
    assert result["details"][0]["text_scores"] == pytest.approx(expected, abs=1e-12)
    assert result["self_bleu"] == pytest.approx(np.mean(expected))


def split_all(texts):
    return [text.split() for text in texts]


def test_corpus_mode_pools_the_sets(load):
    result = load("self_bleu").compute(predictions=SETS, aggregate="corpus")
    groups = list(map(split_all, SETS))
    assert result["self_bleu"] == pytest.approx(reference.nlg_eval_self_bleu(groups, 4)[-1])
    assert result["scores"] == load("self_bleu").compute(predictions=SETS)["scores"]
    everything = [text for group in groups for text in group]
    assert result["distinct_2"] == pytest.approx(reference.distinct(everything, 2))
    assert result["entropy_2"] == pytest.approx(reference.entropy(everything, 2))


@pytest.mark.parametrize("aggregate", ["set", "sentence", "corpus"])
def test_a_single_text_has_what_compares_no_texts(load, aggregate):
    settings = {"repetition": True, "homogenization": True, "vocabulary_size": 50}
    settings |= {"max_order": 2, "details": True, "aggregate": aggregate}
    alone = ["a b a b c"]
    pair = ["a b c", "d b c"]
    result = load("self_bleu").compute(predictions=[alone, pair], singletons="skip", **settings)
    expected = load("self_bleu").compute(predictions=pair, **settings)
    compared = ["self_bleu", "self_bleu_1", "self_bleu_2", "self_repetition_1", "self_repetition_2", "rouge_l"]
    assert [result[name] for name in compared] == approx([expected[name] for name in compared])
    assert [result["details"][0][name] for name in compared[1:]] == [None] * 5
    if aggregate == "sentence":
        assert result["details"][0]["text_scores"] == [None]
    assert result["details"][1] == approx(expected["details"][0])
    nothing = load("self_bleu").compute(predictions=[alone], singletons="skip", **settings)
    assert [nothing[name] for name in compared] == [None] * 6

    words = alone[0].split()
    row = result["details"][0]
    assert row["distinct_1"] == pytest.approx(3 / 5)
    assert row["entropy_2"] == pytest.approx(reference.entropy([words], 2))
    assert row["ead"] == pytest.approx(3 / (50 * (1 - (49 / 50) ** 5)))
    assert row["compression_ratio"] == pytest.approx(reference.compression_ratio(alone))
    for name, plain in (("distinct_2", reference.distinct), ("entropy_2", reference.entropy)):
        groups = [split_all(alone), split_all(pair)]
        of_sets = np.mean([plain(group, 2) for group in groups])
        assert result[name] == pytest.approx(plain(groups[0] + groups[1], 2) if aggregate == "corpus" else of_sets)


def test_only_bleu_is_that_of_each_text_in_sentence_mode(load):
    sets = [["a a b", "a a b"], ["a b c d", "d c b a", "a b d c"]]
    settings = {"repetition": True, "vocabulary_size": 50, "max_order": 2, "smoothing": "method1"}
    by_set = load("self_bleu").compute(predictions=sets, **settings)
    by_text = load("self_bleu").compute(predictions=sets, aggregate="sentence", **settings)
    assert by_text["self_bleu"] != by_set["self_bleu"]
    pooled = [name for name in by_set if name.startswith(("distinct", "entropy", "ead", "compression", "self_rep"))]
    assert len(pooled) == 8
    assert [by_text[name] for name in pooled] == [by_set[name] for name in pooled]
    # Equal texts are not diverse, though neither says a word pair twice.
    assert by_text["distinct_2"] < 1


@pytest.mark.parametrize("aggregate", ["set", "corpus", "sentence"])
def test_texts_without_tokens_score_zero(load, aggregate):
    settings = {"aggregate": aggregate, "repetition": True, "vocabulary_size": 9, "homogenization": True}
    result = load("self_bleu").compute(predictions=["", "   "], **settings)
    names = ("self_bleu", "distinct_1", "entropy_1", "self_repetition_1", "ead", "rouge_l")
    assert [result[name] for name in names] == [0.0] * 6
    assert 0 < result["compression_ratio"] < 1


def test_smoothing_decides_what_a_missing_match_counts(load):
    texts = ["a b c", "a c b"]
    by_name = {
        name: load("self_bleu").compute(predictions=texts, max_order=2, smoothing=name)["self_bleu"]
        for name in ("none", "nlg-eval", "method1")
    }
    assert by_name["none"] == 0.0
    assert 0 < by_name["nlg-eval"] < 1e-6
    # All three words match, and of four bigrams none: 0.1 stands for it.
    assert by_name["method1"] == pytest.approx(np.sqrt(1.0 * 0.1 / 4))


@pytest.mark.parametrize(
    ("tokenizer", "texts"),
    [
        ("zh", ["我喜欢猫。", "我喜欢狗。"]),
        ("13a", ["Kedi uyuyor, köpek koşuyor.", "Köpek uyuyor."]),
        ("char", ["Kedi uyuyor, köpek koşuyor.", "Köpek uyuyor."]),
        ("intl", ["It's here.", "It's gone!"]),
    ],
)
def test_tokenizers_of_sacrebleu(load, tokenizer, texts):
    split = sacrebleu.BLEU(tokenize=tokenizer).tokenizer
    result = load("self_bleu").compute(predictions=texts, tokenizer=tokenizer, max_order=2)
    expected = reference.nlg_eval_self_bleu([[split(text).split() for text in texts]], 2)
    assert result["self_bleu"] == pytest.approx(expected[-1])


CHINESE = ["我喜欢猫。", "狗在公园里跑。", "天气很好，他走了。"]
JAPANESE = ["猫が好きです。", "天気がいい。"]
THAI = ["ฉันชอบแมว", "อากาศดีมาก"]


@pytest.mark.parametrize(
    ("metric", "texts", "settings", "counts"),
    [
        # Words of which no set has an n-gram: equal and different ones score alike.
        ("self_bleu", ["yes"] * 4, {}, ["1 of 1 sets"]),
        ("self_bleu", ["yes", "no", "aye", "nay"], {"max_order": 2}, ["1 of 1 sets"]),
        ("self_bleu", ["yes", "a b c d", ""], {"aggregate": "sentence"}, ["1 of 1 sets"]),
        ("self_bleu", [["a b", "a c"], ["a b c", "a b d"], ["", ""]], {"max_order": 3}, ["2 of 3 sets"]),
        ("self_bleu", [["a b c", "a b"], ["a"]], {"max_order": 2, "singletons": "skip"}, []),
        ("self_bleu", ["yes"] * 4, {"max_order": 1}, []),
        # Sentences that are taken for words.
        ("self_bleu", CHINESE, {"max_order": 1}, ["3 of 3 texts"]),
        ("self_bleu", [*CHINESE, "a dog"], {"max_order": 1, "tokenizer": "13a"}, ["3 of 4 texts"]),
        ("self_bleu", JAPANESE, {"max_order": 1, "tokenizer": "intl"}, ["2 of 2 texts"]),
        ("self_bleu", THAI, {"max_order": 1}, ["2 of 2 texts"]),
        ("self_bleu", CHINESE, {"tokenizer": "zh"}, []),
        ("self_bleu", CHINESE, {"tokenizer": list}, []),
        ("self_bleu", ["나는 고양이를 좋아한다", "Собака бежит в парке", "a dog 狗 in the park"], {"max_order": 3}, []),
        ("vendi_embed", [*CHINESE, "a dog"], {"kernel": "ngram"}, ["3 of 4 texts"]),
        ("vendi_embed", ["a dog", "a cat"], {"kernel": "ngram"}, []),
    ],
)
def test_scores_that_mean_nothing_are_told_once(load, metric, texts, settings, counts):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        load(metric).compute(predictions=texts, **settings)
    assert len(told) == len(counts)
    assert all(str(warning.message).startswith(count) for warning, count in zip(told, counts, strict=True))
    assert all(warning.filename == __file__ for warning in told)


def test_tokenizer_may_be_a_function(load):
    result = load("self_bleu").compute(predictions=["a-b-c", "a-b-d"], tokenizer=lambda text: text.split("-"))
    assert result["self_bleu_1"] == pytest.approx(2 / 3)
    with pytest.raises(TypeError, match=r"tokenizer must return a list of strings\. Got 'a' for text 0"):
        load("self_bleu").compute(predictions=["a", "b"], tokenizer=str)
    with pytest.raises(TypeError, match="Got None for set 1, text 1"):
        load("self_bleu").compute(
            predictions=[["x"], ["c", "d"]], singletons="skip", tokenizer=lambda text: None if text == "d" else [text]
        )


def test_the_core_runs_without_torch():
    program = """
import importlib.machinery, json, sys
find = importlib.machinery.PathFinder.find_spec
hidden = ("torch", "transformers", "sentence_transformers")
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, *rest: None if name.split(".")[0] in hidden else find(name, *rest)
)
import evaluate
metric = evaluate.load("metrics/self_bleu")
print(json.dumps(metric.compute(predictions=["a b c", "a b d"], max_order=2)))
assert not set(hidden) & set(sys.modules)
"""
    done = programs.run(program, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["self_bleu_1"] == pytest.approx(2 / 3)
