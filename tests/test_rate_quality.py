"""Ratings by a chat service, and by a tiny real causal language model."""

import json
import math
from pathlib import Path

import pytest

from tests import tiny_causal
from tests.chat_server import serve
from tests.commands import run_command
from tests.files import read_data, read_jsonl, write_data, write_jsonl
from text_metrics.commands.rate_quality import read_answer
from text_metrics.console import EXIT_BAD_ROWS

TAUGHT = "the cat sat on the mat"
SHUFFLED = "mat the on sat cat the"


@pytest.fixture
def run(run):
    """Run the command on some lines; returns its exit code, what it wrote, and stderr."""

    def run_once(lines, *options):
        texts = write_jsonl(Path("texts.jsonl"), lines)
        rated = Path("rated.jsonl")
        code, _, shown = run("rate-quality", texts, "--out", rated, *options)
        return code, read_jsonl(rated) if rated.exists() else [], shown

    return run_once


def test_bad_input_is_named(run, tmp_path):
    chat = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert "line 1 'text' must be a text or a list of texts. Got 7" in run([7], *chat)[2]
    code, _, shown = run([{"text": "a", "quality": 1}], *chat)
    assert (code, "line 1 has a column 'quality' already" in shown) == (2, True)
    assert "--out must be a file that ends in .jsonl" in run(["a"], *chat, "--out", tmp_path / "rated.txt")[2]
    code, _, shown = run(["a"], "--likelihood", "--model", tmp_path / "nowhere")
    assert (code, "--model" in shown) == (2, True)


def test_likelihood_is_that_of_transformers(run, tmp_path):
    """Each alone, without padding; a text that is too long for the model is rated by its beginning, and counted."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path / "model"
    tiny_causal.build(folder, steps=40)
    sentence = tiny_causal.SENTENCES[0]
    shuffled = " ".join(sorted(sentence.split()))
    texts = [sentence, shuffled, "dog", "no word of it is known to the model", sentence, "", "the sea " * 100]
    code, written, shown = run([{"text": sentence}, *texts[1:]], "--likelihood", "--model", folder)
    assert code == 0, shown
    assert "1 texts are longer than 127 tokens" in shown
    assert [line["text"] for line in written] == texts
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    for line in written:
        ids = tokenizer(line["text"])["input_ids"][:127]
        with torch.inference_mode():
            shares = torch.log_softmax(model(torch.tensor([[tokenizer.eos_token_id, *ids]])).logits[0], -1)
        expected = sum(float(shares[place, token]) for place, token in enumerate(ids))
        assert line["log_probability"] == pytest.approx(expected, abs=1e-3)
        assert line["quality"] == (pytest.approx(math.exp(expected / len(ids)), abs=1e-5) if ids else 0)
    assert 1 > written[0]["quality"] > written[1]["quality"] > 0
    assert written[0]["signature"].startswith("rate_quality|model:local@")


def ask(run, server, lines, *options):
    return run(lines, "--model", "m", "--base-url", server.url, *options)


def test_a_service_rates_by_the_probabilities_of_its_answers(run):
    """An empty text is not asked about, and an equal one once."""
    shares = {TAUGHT: {" Yes": 0.7, "yes": 0.2, "No": 0.05}, SHUFFLED: {"No": 0.6, "Yes": 0.3, "Maybe": 0.1}}

    def reply(question, number):
        body = server.requests[number][0]
        assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
        top = shares[question.rpartition("\n")[2]]
        return max(top, key=top.__getitem__), {token: math.log(share) for token, share in top.items()}

    with serve(reply) as server:
        code, written, shown = ask(run, server, [TAUGHT, "", SHUFFLED, TAUGHT])
        assert code == 0, shown
        assert len(server.requests) == 2
    assert [line["quality"] for line in written] == pytest.approx([0.9 / 0.95, 0, 0.3 / 0.9, 0.9 / 0.95])
    asked = "temperature:1.0|ask:d5ebbd04|"
    assert written[0]["signature"].startswith(f"rate_quality|service:m|host:127.0.0.1:{server.server_port}|{asked}")
    assert "the answer itself" not in shown


def test_without_log_probabilities_the_answer_is_the_rating(run):
    """Said once, however many texts there are; whether the service leaves them out, rejects the request, or is odd."""
    answers = {"good": "Yes.", "bad": "**no**, because", "odd": "yes"}

    def reply(question, number):
        text = question.rpartition("\n")[2]
        if text == "bad" and "logprobs" in server.requests[number][0]:
            return 400
        return (answers[text], {"Maybe": -0.1} if text == "odd" else {}) if text != "good" else answers[text]

    with serve(reply) as server:
        code, written, shown = ask(run, server, list(answers))
        assert code == 0, shown
        assert len(server.requests) == 4
        assert len(server.paid) == len(set(server.paid)) == 3
    assert [line["quality"] for line in written] == [1, 0, 1]
    assert shown.count("3 of 3 ratings are the answer itself, 1 or 0") == 1


def test_other_answers_and_errors_of_a_service_are_reported_and_the_rest_kept(run):
    likely = {"Yes": math.log(0.4), "No": math.log(0.2), " yes": math.log(0.2)}
    replies = {"good": ("Yes", likely), "vague": "That depends.", "refused": 400}
    lines = ["good", "vague", "refused", "good"]
    with serve(lambda question, _: replies[question.rpartition("\n")[2]]) as server:
        code, written, shown = ask(run, server, lines, "--attempts", "2")
        assert code == 1
        assert "the text 'vague': none of 2 answers can be parsed" in shown
        assert "the text 'refused': " in shown
        assert "1 of 3 different texts are rated" in shown
        assert [(line["text"], line["quality"]) for line in written] == [
            ("good", pytest.approx(0.75)),
            ("vague", None),
            ("refused", None),
            ("good", pytest.approx(0.75)),
        ]
        # One request for the good text, two for the vague one, and one with and one without log-probabilities.
        assert len(server.requests) == 5
        # What was answered is not asked again.
        server.reply = lambda *_: ("No", {"No": -0.01})
        code, written, shown = ask(run, server, lines, "--attempts", "3")
        assert code == 0, shown
        assert len(server.requests) == 7
    assert [line["quality"] for line in written] == pytest.approx([0.75, 0, 0, 0.75])


# How good each text is, by the service.
GOOD = {"A dog barks.": 1, "It rains all night.": 1, "Dog a night.": 0, "He sells apples.": 1, "Apples sell it.": 0}
DOG, RAIN, NO_DOG, APPLES, NO_APPLES = GOOD


def rate(question, _number=0):
    """Answer by `GOOD`; nothing that can be read about other texts."""
    return {1: "Yes", 0: "No"}.get(GOOD.get(question.rpartition("\n")[2]), "Who knows?")


SETS = [
    {"n": 7, "prompt": "a", "answers": [DOG, NO_DOG, DOG], "note": None},
    {"prompt": "b", "answers": [APPLES, "vague", RAIN], "note": "kept", "n": 8},
]


def test_rows_keep_their_columns_and_order(run):
    with serve(rate) as server:
        code, written, shown = ask(run, server, SETS, "--text-key", "answers", "--attempts", 1)
    assert (code, "4 of 5 different texts are rated" in shown) == (1, True)
    for row, before in zip(written, SETS, strict=True):
        assert {name: row[name] for name in before} == before
    assert [list(row) for row in written] == [[*row, "quality", "signature"] for row in SETS]
    assert [row["quality"] for row in written] == [[1, 0, 1], [1, None, 1]]


@pytest.mark.parametrize("name", ["data.json", "data.csv", "data.parquet"])
def test_files_are_those_of_score(monkeypatch, tmp_path, name):
    """By their keys: nested ones, and rows inside of an object."""
    rows = [{"id": i, "answer": text} for i, text in enumerate(GOOD)]
    data = tmp_path / name
    words = ("--text-key", "answer")
    if name == "data.json":
        data.write_text(json.dumps({"rows": [{"id": row["id"], "of": {"answer": row["answer"]}} for row in rows]}))
        words = ("--rows", "rows", "--text-key", "of.answer")
    else:
        write_data(data, rows)
    out = tmp_path / f"rated{'.jsonl' if name == 'data.json' else data.suffix}"
    with serve(rate) as server:
        words = (*words, "--id-key", "id", "--out", out, "--model", "m", "--base-url", server.url)
        assert run_command(monkeypatch, "rate-quality", data, *words) == 0
    written = read_data(out)
    assert [(row["id"], row["quality"]) for row in written] == list(enumerate(GOOD.values()))


def test_a_bad_row_is_skipped_with_the_others_of_its_prompt(run, tmp_path):
    """As by score: it is named, and written to a file of bad rows."""
    rows = [{"id": "a", "text": DOG}, {"id": "a"}, {"id": "b", "text": RAIN}, {"id": "a", "text": APPLES}]
    bad = tmp_path / "rated.jsonl.bad.jsonl"
    for more, left, skipped in (((), [DOG, RAIN, APPLES], [2]), (("--id-key", "id"), [RAIN], [1, 2, 4])):
        with serve(rate) as server:
            code, written, shown = ask(run, server, rows, *more)
            assert len(server.requests) == len(left)
        assert (code, "line 2 has no 'text'" in shown) == (EXIT_BAD_ROWS, True)
        assert [(row["text"], row["quality"]) for row in written] == [(text, 1) for text in left]
        assert [row["row"] for row in read_jsonl(bad)] == skipped
    bad.write_text('{"id": "mine"}\n', encoding="utf-8")
    assert (run(rows, "--model", "m", "--base-url", "http://[::1]:9")[0], len(read_jsonl(bad))) == (2, 1)


FORMS = {
    "sets.jsonl": SETS,
    "texts.csv": [{"prompt": row["prompt"], "answers": text} for row in SETS for text in row["answers"]],
}


@pytest.mark.parametrize("name", FORMS)
def test_ratings_go_straight_into_a_report(monkeypatch, tmp_path, name, capsys):
    """A text without a rating, and its set, are skipped there."""
    twice = FORMS[name][0] | {"prompt": "c"}
    data = write_data(tmp_path / name, [*FORMS[name], twice, twice])
    rated = tmp_path / f"rated{data.suffix}"
    out = tmp_path / "report"
    keys = ("--text-key", "answers", "--id-key", "prompt")
    with serve(rate) as server:
        words = (*keys, "--out", rated, "--model", "m", "--base-url", server.url, "--attempts", 1)
        assert run_command(monkeypatch, "rate-quality", data, *words) == 1
    words = (*keys, "--quality-key", "quality", "--setting", "same=none", "--out", out, "--quiet")
    assert run_command(monkeypatch, "report", rated, *words) == EXIT_BAD_ROWS
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    quality = next(metric for metric in report["metrics"] if metric["name"] == "quality")
    assert report["prompts"] == ["a", "c"]
    assert quality["values"][0]["scores"] == pytest.approx([2 / 3, 2 / 3 if name == "sets.jsonl" else 1])


@pytest.mark.parametrize(
    ("answer", "top", "quality", "by_probability"),
    [
        ("Yes", {" Yes": -0.02, "No": -5.5}, 0.996, True),
        ("yes", {"yes": -0.02, "No": -5.5}, 0.996, True),
        ("Yes", {"Yes": math.log(0.4), " Yes": math.log(0.3), "No": math.log(0.3)}, 0.7, True),
        ("Yes", {"ĠYes": -0.02, "▁No": -5.5}, 0.996, True),
        ("**Yes**", {"**Yes": -0.02, "**No": -5.5}, 0.996, True),
        ("Yes", {"Yes": -0.5, "No": -math.inf}, 1.0, True),
        # The first token is markup, so that what matches holds little.
        ("**Yes**", {"**": -0.1, "No": -3.0, "Yes": -4.5}, 1.0, False),
        # The answer contradicts the probabilities.
        ("Yes.", {"No": -0.3, "Yes": -2.0}, 1.0, False),
        ("No", {"Yes": math.nan}, 0.0, False),
        ("No", {"Yes": -math.inf}, 0.0, False),
        ("no", None, 0.0, False),
    ],
)
def test_spellings_of_an_answer_count_together(answer, top, quality, by_probability):
    assert read_answer(answer, top) == (pytest.approx(quality, abs=1e-3), by_probability)


@pytest.mark.parametrize("answer", ["Perhaps", "", "Yesterday"])
def test_other_answers_are_no_ratings(answer):
    with pytest.raises(ValueError, match="must begin with Yes or No"):
        read_answer(answer, {"Maybe": -0.1})
