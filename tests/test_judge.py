"""The judge and the generation of candidate sets, against a real server with faults."""

import json
import re
from collections import Counter

import numpy as np
import pytest

from tests.chat_server import serve
from tests.commands import run_command
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands import candidate_sets
from text_metrics.commands.meta_eval.pairs import read_verdict

PAIRS = [
    {"src": "dog", "set1": ["a dog", "a cat", "a cow", "a hen"], "set2": ["a dog", "a dog", "a dog", "a cat"], "n": 1},
    {"src": "cup", "set1": ["a cup", "a cup", "a cup", "a cup"], "set2": ["a cup", "a mug", "a cup", "a mug"]},
    {"set1": ["x", "y", "z", "z"], "set2": ["x", "x", "y", "z"]},
]
DISTINCT = [(4, 2), (1, 2), (3, 3)]


def ratings(question):
    """Rate a set by its number of different texts, and the one that comes first one higher: a biased judge."""
    first, second = (len(set(part.strip().split("\n- "))) for part in re.split(r"Set [12]:\n- ", question)[1:])
    return json.dumps({"set1": min(first + 1, 5), "set2": second})


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command with a file as its input and `out.jsonl` as its output; returns the exit code and stderr."""

    def run_once(*words):
        code = run_command(monkeypatch, *words, "--out", tmp_path / "out.jsonl")
        return code, capsys.readouterr().err

    return run_once


@pytest.fixture
def pairs(tmp_path):
    return write_jsonl(tmp_path / "pairs.jsonl", PAIRS)


def check_judged(path):
    """Both orders are averaged, so that the bias for the first is gone."""
    judged = read_jsonl(path)
    assert [(pair["Diversity_Set1"], pair["Diversity_Set2"]) for pair in judged] == [
        (first + 0.5, second + 0.5) for first, second in DISTINCT
    ]
    assert [pair["llm_diversity"] for pair in judged] == [0, 1, 2]
    assert judged[0]["judge"] == {"model": "m", "temperature": 1.0, "ratings": 10}
    assert [{key: pair[key] for key in PAIRS[i]} for i, pair in enumerate(judged)] == PAIRS


def test_pairs_are_judged_and_the_answers_kept(run, pairs, tmp_path):
    out = tmp_path / "out.jsonl"
    with serve(lambda question, _: ratings(question)) as server:
        judge = ("judge-diversity", pairs, "--base-url", server.url)
        code, shown = run(*judge, "--model", "m")
        assert code == 0, shown
        check_judged(out)
        assert len(server.paid) == len(set(server.paid)) == 30
        body = server.requests[0][0]
        assert (body["model"], body["temperature"], body["messages"][0]["role"]) == ("m", 1.0, "system")
        assert "3 of 3 pairs are judged" in shown
        # Again: nothing is asked for. More ratings cost only what is more; another model, another temperature: anew.
        for words, new in (
            (["--model", "m"], 0),
            (["--model", "m", "--samples", "6"], 6),
            (["--model", "other", "--samples", "1"], 6),
            (["--model", "m", "--temperature", "0.5", "--samples", "1"], 6),
        ):
            before = len(server.requests)
            assert run(*judge, *words)[0] == 0
            assert len(server.requests) == before + new
    assert [read_verdict(pair, "") for pair in read_jsonl(out)] == [0, 1, None]


def test_pairs_whose_answers_cannot_be_read_are_reported_and_the_rest_kept(run, pairs, tmp_path):
    broken = ["Both are fine.", '{"set1": 7, "set2": 2}', '{"set1": "4", "set2": 2}', '{"set1": 4}']

    def reply(question, number):
        return broken[number % len(broken)] if "cup" in question else f"Sure!\n```json\n{ratings(question)}\n```"

    judge = ("judge-diversity", pairs, "--model", "m", "--samples", "2")
    with serve(reply) as server:
        code, shown = run(*judge, "--base-url", server.url, "--attempts", "3")
        assert code == 1
        assert shown.count(f"{pairs}, line 2: none of 3 answers can be parsed") == 4
        assert [pair.get("src") for pair in read_jsonl(tmp_path / "out.jsonl")] == ["dog", None]
        server.reply = lambda question, _: ratings(question)
        assert run(*judge, "--base-url", server.url, "--attempts", "4")[0] == 0
    assert len(read_jsonl(tmp_path / "out.jsonl")) == 3


# Candidate sets.

TEXTS = ["The dog runs.", "A cat sleeps in her bed.", "He paints boats, and they sell them!", "Rain fell all night."]
RICH = {
    "src": "things",
    "texts": TEXTS,
    "paraphrases": [["A dog is running.", "Running: the dog."], ["Her bed holds a cat."], [], []],
    "nonsensical": ["The sky ate Monday.", "A spoon sang blue.", "Two stones married rain.", "The moon filed taxes."],
}


@pytest.fixture(scope="module")
def tagger(shared_data):
    import nltk

    nltk.data.path.append(str(shared_data / "nltk_data"))
    return candidate_sets.load_tagger()


def test_paraphrases_are_composed_as_in_the_paper():
    paraphrases = [[f"{letter}{i}" for i in range(2)] for letter in "ABCD"]
    for seed in range(20):
        sets = candidate_sets.paraphrase_sets("ABCD", paraphrases, np.random.default_rng(seed))
        shapes = {
            label: sorted(Counter(text[0] for text in members).values(), reverse=True)
            for label, members in sets.items()
        }
        assert shapes == {"para_a": [2, 1, 1], "para_b": [2, 2], "para_c": [3, 1]}
        assert all(len(set(members)) == 4 for members in sets.values())
        # Where a text comes with paraphrases, it is there itself.
        for members in sets.values():
            assert {text[0] for text in members} == {text for text in members if len(text) == 1}


def test_words_are_permuted(rng):
    for text in TEXTS:
        words = text.split()
        moved = candidate_sets.permute(words, rng)
        assert moved != words
        assert sorted(moved) == sorted(words)
    assert candidate_sets.permute(["one"], rng) == ["one"]
    assert candidate_sets.permute(["a", "a", "a"], rng) == ["a", "a", "a"]


def test_nouns_and_pronouns_are_permuted_and_all_else_stays(rng, tagger):
    text = "He paints small boats, and she sells them in the harbour!"
    moved = candidate_sets.shuffle_nouns(text, rng, tagger)
    assert moved != text
    nouns = {"He", "boats", "she", "them", "harbour"}
    frame = re.sub("|".join(nouns), "_", text)
    assert re.sub("|".join(nouns), "_", moved) == frame == "_ paints small _, and _ sells _ in the _!"
    assert sorted(re.findall(r"\w+", moved)) == sorted(re.findall(r"\w+", text))


def test_sets_are_paired_within_their_quality(run, tmp_path, tagger):
    rich, out = write_jsonl(tmp_path / "rich.jsonl", [RICH] * 2), tmp_path / "out.jsonl"
    assert run("candidate-sets", "pairs", rich, "--seed", "3")[0] == 0
    made = read_jsonl(out)
    assert len(made) == 2 * (6 + 3)
    for pair in made:
        labels = {pair["set1_label"], pair["set2_label"]}
        assert len(labels) == 2
        assert labels <= set(candidate_sets.HIGH) or labels <= set(candidate_sets.LOW)
        assert len(pair["set1"]) == len(pair["set2"]) == 4
    first = out.read_bytes()
    assert run("candidate-sets", "pairs", rich, "--seed", "3")[0] == 0
    assert out.read_bytes() == first
    assert run("candidate-sets", "pairs", rich, "--seed", "4")[0] == 0
    assert out.read_bytes() != first
    # A line is drawn by its own number.
    assert run("candidate-sets", "pairs", write_jsonl(rich, [RICH]), "--seed", "3")[0] == 0
    assert first.startswith(out.read_bytes())


def test_paraphrases_and_nonsense_are_generated(run, tmp_path):
    def reply(question, number):
        if number % 3 == 0:
            return "I would rather not."
        if question.startswith("Write 2 paraphrases"):
            text = question.rsplit("\n", 1)[-1]
            return f'Here: ["{text} indeed", "Truly: {text}"]'
        assert "Use these words: things." in question
        return json.dumps([f"nonsense {i}" for i in range(4)])

    texts, out = write_jsonl(tmp_path / "texts.jsonl", [{"src": "things", "texts": TEXTS}]), tmp_path / "out.jsonl"
    with serve(reply) as server:
        words = ("candidate-sets", "generate", texts, "--model", "m", "--base-url", server.url, "--attempts", "9")
        code, shown = run(*words)
        assert code == 0, shown
        n_requests = len(server.requests)
        assert run(*words)[0] == 0
        assert len(server.requests) == n_requests
    (found,) = read_jsonl(out)
    assert found["paraphrases"] == [[f"{text} indeed", f"Truly: {text}"] for text in TEXTS]
    assert found["nonsensical"] == [f"nonsense {i}" for i in range(4)]
    assert run("candidate-sets", "pairs", out.rename(tmp_path / "rich.jsonl"), "--no-noun-shuffle")[0] == 0
    assert len(read_jsonl(out)) == 7


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", "must be a JSON list of 2 strings"),
        ('["a", 1]', "must be a JSON list of 2 strings"),
        ('["a", " "]', "must be a JSON list of 2 strings"),
        ('["a", "a "]', "must hold 2 different texts, and holds 1"),
        ('["a", "same"]', "must hold 2 different texts, and holds 1"),
    ],
)
def test_generated_lists_that_are_none_are_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        candidate_sets.parse_texts(answer, 2, unlike="same")
    assert candidate_sets.parse_texts('["a", "b", "c"]', 2) == ["a", "b"]
