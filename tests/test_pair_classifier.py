"""vendi_embed with same="pairs:<model>": a classifier of pairs with two classes, and NoveltyBench's rule."""

import itertools

import numpy as np
import pytest

from tests.conftest import build_gruen_models
from tests.references import classes as reference
from tests.references import noveltybench

# Each letter is a token: the last two differ only beyond the 128th, and two before them are long.
LONG = "cab fed a bad dad " * 12
TEXTS = [
    "cab",
    "a cab fed dad",
    "A bad cab",
    "dad fed a bad bee",
    "dad fed bees a bad cab face",
    "ace face fade bead deaf bee",
    "bee deaf bead fade face ace",
    "add a dad bee cab fed deaf ace",
    LONG,
    LONG + "face",
]


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A classifier of pairs with random weights, whose probabilities are on both sides of 0.102: name and parts."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("pairs")
    tokenizer = AutoTokenizer.from_pretrained(build_gruen_models(folder, seed=0)["cola_model"])
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=280,
        initializer_range=0.5,
        num_labels=2,
    )
    model = BertForSequenceClassification(config).eval()
    logits = [np.subtract(*logit_pair(tokenizer, model, *pair)) for pair in itertools.permutations(TEXTS, 2)]
    with torch.no_grad():
        model.classifier.bias[0] += float(-np.median(logits)) + np.log(0.898 / 0.102)
    name = str(folder / "pairs")
    model.save_pretrained(name)
    tokenizer.save_pretrained(name)
    return name, tokenizer, model


def logit_pair(tokenizer, model, left, right):
    p = noveltybench.probability(tokenizer, model, left, right)
    return np.log([1 - p, p])


def compute(load, texts, **settings):
    return load("vendi_embed").compute(predictions=texts, kernel="classes", q=0, details=True, **settings)


@pytest.mark.parametrize(("rule", "short_texts"), [("noveltybench-2025", True), ("noveltybench-2026", False)])
@pytest.mark.filterwarnings("ignore:2 of 10 different texts")
def test_noveltybench_rule_equals_the_plain_loop(load, classifier, rule, short_texts):
    name, tokenizer, model = classifier
    answers = set()
    for order in (range(10), range(9, -1, -1), [3, 8, 1, 0, 5, 9, 2, 7, 6, 4]):
        texts = [TEXTS[i] for i in order]

        def same(i, j, texts=texts):
            # The first member of the class comes first.
            answer = noveltybench.same_by_rule(tokenizer, model, texts[j], texts[i], short_texts)
            answers.add((answer, len(texts[i]) > 20))
            return answer

        expected = reference.greedy_classes(10, same)
        result = compute(load, texts, same=f"pairs:{name}", same_rule=rule, grouping="greedy", batch_size=7)
        assert result["details"][0]["classes"] == expected
        assert result["vendi_embed"] == max(expected) + 1
        assert f"|same_rule:{rule}|" in result["signature"]
        assert "same_threshold" not in result["signature"]
    assert len(answers) == 4


@pytest.mark.filterwarnings("ignore:. of .* longer than the")
def test_the_rule_differs_from_the_default(load, classifier):
    name, *_ = classifier
    results = {}
    for settings in ({}, {"same_threshold": 0.102}, {"same_rule": "noveltybench-2025"}):
        result = compute(load, TEXTS, same=f"pairs:{name}", grouping="greedy", **settings)
        results[result["signature"]] = result["details"][0]["classes"]
    assert len(results) == 3
    assert len(set(map(tuple, results.values()))) == 3


def test_short_texts_are_compared_by_their_words(load, classifier):
    name, *_ = classifier
    pairs = [("Cab a", "b a"), ("cab cab cab", "cab"), ("a b c d e", "A B x"), ("a b", "c d"), (" ", ""), ("a", "")]
    found = []
    for pair in pairs:
        found.append(compute(load, list(pair), same=f"pairs:{name}", same_rule="noveltybench-2025")["vendi_embed"] == 1)
        assert found[-1] == noveltybench.short_overlap(*pair)
    # Half of the longer one's words, of which repeated ones count each time there.
    assert found == [True, False, False, False, True, False]


@pytest.mark.parametrize("grouping", ["complete", "greedy"])
@pytest.mark.parametrize("context", [None, "abba"])
def test_the_second_class_is_same_above_the_threshold(load, classifier, grouping, context):
    name, tokenizer, model = classifier
    texts = TEXTS[:8]
    prefix = "" if context is None else f"{context} "
    values = {
        (a, b): noveltybench.probability(tokenizer, model, prefix + a, prefix + b)
        for a, b in itertools.permutations(texts, 2)
    }
    threshold = float(np.median(list(values.values())))
    settings = {} if context is None else {"contexts": [context]}
    result = compute(load, texts, same=f"pairs:{name}", same_threshold=threshold, grouping=grouping, **settings)

    def same(i, j):
        if grouping == "complete":
            return values[tuple(sorted((texts[i], texts[j])))] > threshold
        return values[texts[j], texts[i]] > threshold

    plain = reference.greedy_classes(8, same) if grouping == "greedy" else reference.complete_classes(8, same, texts)
    assert result["details"][0]["classes"] == plain
    assert 1 < result["vendi_embed"] < 8
    assert f"same:pairs:local@{result['signature'].split('local@')[1].split('|')[0]}|" in result["signature"]
    assert f"|same_threshold:{threshold}|" in result["signature"]


def test_what_the_rule_does_not_read_is_a_warning(load, classifier):
    name, *_ = classifier
    message = r"2 of 3 different texts are longer than the 128 tokens that same_rule reads: .*the longest has"
    with pytest.warns(UserWarning, match=message) as caught:
        compute(load, [LONG, LONG + "face", "dad"], same=f"pairs:{name}", same_rule="noveltybench-2026")
    assert len(caught) == 1


def test_a_model_must_have_two_classes(load, classifier, tmp_path):
    from transformers import BertConfig, BertForSequenceClassification

    _, tokenizer, model = classifier
    names = {}
    for label, change in {
        "three": {"num_labels": 3},
        "short": {"num_labels": 2, "max_position_embeddings": 60},
    }.items():
        config = BertConfig(**{**model.config.to_diff_dict(), "id2label": None, "label2id": None, **change})
        names[label] = str(tmp_path / label)
        BertForSequenceClassification(config).save_pretrained(names[label])
        tokenizer.save_pretrained(names[label])
    with pytest.raises(ValueError, match=r"same: .*three must have two classes, the second .* It has 3: 'label_0', "):
        compute(load, TEXTS[:3], same=f"pairs:{names['three']}")
    message = "same_rule reads 128 tokens of each text, but the model of same at most 60 of a pair. Got a pair of"
    with pytest.raises(ValueError, match=message), pytest.warns(UserWarning, match="2 of 2 different texts"):
        compute(load, TEXTS[-2:], same=f"pairs:{names['short']}", same_rule="noveltybench-2026")


def test_a_roberta_reads_less_than_its_positions(load, classifier, tmp_path):
    from transformers import RobertaConfig, RobertaForSequenceClassification

    _, tokenizer, _ = classifier
    # As in RoBERTa, positions start after that of padding.
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
        pad_token_id=1,
        type_vocab_size=2,
    )
    name = str(tmp_path / "roberta")
    RobertaForSequenceClassification(config).save_pretrained(name)
    tokenizer.save_pretrained(name)
    with pytest.warns(UserWarning, match="1 of 1 pairs of texts are longer than the 38 tokens that the model of same"):
        result = compute(load, [LONG, LONG + "face"], same=f"pairs:{name}")
    assert result["vendi_embed"] in (1, 2)


def test_a_released_row_of_noveltybench(load):
    """The first row of evaluation/2026-08-19_novamine-ai-vs/nb-curated/scores.jsonl, at commit 3fb60cd."""
    partition, generation_scores = [0, 0, 1, 2, 3, 4, 5, 3, 6, 7], [10, 0, 4, 2, 9, 9, 8, 0, 6, 2]
    quality = [score / 10 for score in generation_scores]
    result = compute(load, list("abcdefghij"), classes=partition, quality=quality, patience=0.8)
    assert result["utility"] == pytest.approx(5.285919351835696 / 10, abs=1e-12)
    # Its field `distinct` is 7, and its field `partition_scores` has eight entries.
    assert result["vendi_embed"] == 8
