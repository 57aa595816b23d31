"""Ratings by a causal language model: a tiny real one, taught one sentence."""

import json
import math
import sys

import numpy as np
import pytest

from tests.chat_server import serve
from tests.conftest import TAUGHT
from text_metrics.commands.rate_quality import main as rate_quality
from text_metrics.commands.rate_quality.asking import SENSE, AskedModel, Question, read_answer
from text_metrics.commands.rate_quality.likelihood import LanguageModel, Likelihood, Reference, per_token
from text_metrics.commands.shared.causal import load_causal


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command on some lines; returns its exit code, what it wrote, and stderr."""

    def run_once(lines, *arguments):
        texts, rated = tmp_path / "texts.jsonl", tmp_path / "rated.jsonl"
        texts.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["rate_quality.py", str(texts), str(rated), *map(str, arguments)])
        code = rate_quality.main()
        written = [json.loads(line) for line in rated.read_text(encoding="utf-8").splitlines()] if not code else []
        return code, written, capsys.readouterr().err

    return run_once


def test_log_probabilities_are_those_of_transformers(tiny_language_model):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    texts = [TAUGHT, "mat", "a much longer text about cats and mats", "", "the mat sat on the cat"]
    scorer = LanguageModel(load_causal(tiny_language_model))
    found = scorer.score(texts)
    tokenizer = AutoTokenizer.from_pretrained(tiny_language_model)
    model = AutoModelForCausalLM.from_pretrained(tiny_language_model).eval()
    for i, text in enumerate(texts):
        own = tokenizer(text)["input_ids"]
        ids = torch.tensor([[tokenizer.bos_token_id, *own]])
        with torch.inference_mode():
            shares = torch.log_softmax(model(ids).logits[0], -1)
        expected = sum(float(shares[place, token]) for place, token in enumerate(own))
        assert found.total[i] == pytest.approx(expected, abs=1e-3)
        assert found.tokens[i] == len(own)
    # Company does not change a score.
    assert scorer.score(texts[:1]).total[0] == pytest.approx(found.total[0], abs=1e-4)


def test_ratings_are_written_and_prefer_what_the_model_knows(run, tiny_language_model):
    lines = [TAUGHT, {"text": "mat the on sat cat the", "n": 1}, TAUGHT, ""]
    code, written, shown = run(lines, "--model", tiny_language_model)
    assert code == 0, shown
    assert [line["text"] for line in written] == [TAUGHT, "mat the on sat cat the", TAUGHT, ""]
    known, shuffled, again, empty = (line["quality"] for line in written)
    assert 1 >= known == again > shuffled > empty == 0
    assert written[0]["signature"].startswith("rate_quality|model:local@")
    assert "|start:<|endoftext|>|reference:none|version:" in written[0]["signature"]


def test_a_reference_rates_by_rank(run, tiny_language_model, tmp_path, rng):
    words = TAUGHT.split()
    good = [" ".join(words[: rng.integers(2, 7)]) for _ in range(30)]
    path = tmp_path / "good.jsonl"
    path.write_text("\n".join(map(json.dumps, good)), encoding="utf-8")
    code, written, shown = run([TAUGHT, "tac eht"], "--model", tiny_language_model, "--reference", path)
    assert code == 0, shown
    assert 1 >= written[0]["quality"] > 0.2 > written[1]["quality"] == 0
    assert "|reference:none|" not in written[0]["signature"]


def test_the_reference_corrects_for_length(rng):
    """Log-probabilities that fall with length in the same way are rated alike; each token is as good."""
    tokens = rng.integers(5, 40, 2000)
    found = Likelihood(-3.0 * tokens - 6 + rng.normal(size=2000) * np.sqrt(tokens), tokens, "m")
    reference = Reference(found)
    ratings = reference.rate(found)
    assert abs(np.corrcoef(ratings, tokens)[0, 1]) < 0.05
    assert abs(np.corrcoef(per_token(found), tokens)[0, 1]) > 0.3
    assert ratings.mean() == pytest.approx(0.5, abs=0.01)
    assert reference.rate(Likelihood(np.array([0.0, -500]), np.array([10, 10]), "m")).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"at least 20 texts, of different lengths\. Got 3 of 1"):
        Reference(Likelihood(np.zeros(3), np.ones(3, int), "m"))


def test_what_cannot_be_rated_is_named(run, tiny_language_model, tmp_path):
    assert "line 1 must be a string, or an object with 'text'. Got 7" in run([7], "--model", tiny_language_model)[2]
    assert (
        "--start must be a token of the model. Got '<x>'"
        in run(["a"], "--model", tiny_language_model, "--start", "<x>")[2]
    )
    code, _, shown = run(["a"], "--model", tmp_path / "nowhere")
    assert (code, "--model must be a folder with a saved model" in shown) == (2, True)
    for name in ("one.gguf", "two.gguf"):
        (tmp_path / name).write_bytes(b"")
    assert "must name one GGUF file" in run(["a"], "--model", tmp_path)[2]


ASKED = [TAUGHT, "mat", "a much longer text about cats", "", "the mat sat on the cat<|endoftext|>"]
# Short, because the tiny model has 256 positions.
QUESTION = Question("cat?", {"sat": 1.0, "mat": 0.5, "on": 0.0}, (("the mat", "sat"),))


@pytest.mark.parametrize("template", [None, "{% for m in messages %}[{{ m.content }}]{% endfor %}:"])
def test_answers_are_those_of_the_whole_prompt(tiny_language_model, template):
    """With the prefix computed once, in batches, as without."""
    import torch

    model = AskedModel(load_causal(tiny_language_model), QUESTION)
    model._tokenizer.chat_template = template
    model.ask(QUESTION)
    ratings = model.rate(ASKED)
    tokenizer, network = model._tokenizer, model._model
    space = "" if template else " "
    first = [tokenizer(space + answer)["input_ids"][0] for answer in QUESTION.values]
    for text, rating in zip(ASKED, ratings, strict=True):
        if template:
            parts = ["[cat?\n\nText:\nthe mat][sat][Text:\n", text, "]:"]
        else:
            parts = ["cat?\n\nText:\nthe mat\nAnswer: sat\n\nText:\n", text, "\nAnswer:"]
        # No end of the text by a special token.
        ids = [token for part in parts for token in tokenizer(part, split_special_tokens=True)["input_ids"]]
        with torch.inference_mode():
            shares = torch.softmax(network(torch.tensor([ids])).logits[0, -1, first].double(), 0).numpy()
        assert rating == pytest.approx(float(shares @ [1, 0.5, 0]) if text else 0, abs=1e-5)
    assert model.rate(ASKED[:1])[0] == pytest.approx(ratings[0], abs=1e-5)


def test_answers_must_begin_with_different_tokens(tiny_language_model):
    with pytest.raises(ValueError, match="must begin with different tokens"):
        AskedModel(load_causal(tiny_language_model), Question("cat?", {"mat": 1.0, "mat mat": 0.0}))


def test_asked_ratings_are_written(run, tiny_language_model, monkeypatch):
    monkeypatch.setattr(rate_quality, "SENSE", QUESTION)
    code, written, shown = run([TAUGHT, "", TAUGHT], "--model", tiny_language_model, "--ask")
    assert code == 0, shown
    assert 1 >= written[0]["quality"] == written[2]["quality"] > written[1]["quality"] == 0
    assert f"|ask:{QUESTION.digest()}|version:" in written[0]["signature"]
    assert QUESTION.digest() != SENSE.digest()
    assert "--ask cannot be combined" in run(["a"], "--model", tiny_language_model, "--ask", "--start", "a")[2]


@pytest.mark.parametrize("extra", [(), ("--ask",)])
def test_bfloat16_is_signed_and_near(run, tiny_language_model, monkeypatch, extra):
    monkeypatch.setattr(rate_quality, "SENSE", QUESTION)
    words = ([TAUGHT, "mat"], "--model", tiny_language_model, *extra)
    exact, near = run(*words)[1], run(*words, "--dtype", "bfloat16")[1]
    assert [line["quality"] for line in near] == pytest.approx([line["quality"] for line in exact], abs=0.03)
    assert near[0]["quality"] != exact[0]["quality"]
    name, model, *rest = exact[0]["signature"].split("|")
    assert near[0]["signature"].split("|") == [name, model, "dtype:bfloat16", *rest]


def ask_service(run, server, lines, *extra):
    return run(lines, "--ask", "--model", "m", "--base-url", server.url, *extra)


def test_a_service_rates_as_a_local_model_with_its_probabilities(run, tiny_language_model, monkeypatch):
    """The server answers by the tiny model's own probabilities of all tokens; an empty text is not asked about."""
    import torch

    local = AskedModel(load_causal(tiny_language_model), QUESTION)
    local._tokenizer.chat_template = "{% for m in messages %}[{{ m.content }}]{% endfor %}:"
    local.ask(QUESTION)
    tokenizer = local._tokenizer

    def reply(question, number):
        body = server.requests[number][0]
        assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
        prompt = tokenizer.apply_chat_template(body["messages"], return_tensors="pt", return_dict=False)
        with torch.inference_mode():
            values = local._model(prompt).logits[0, -1].double()
            values = torch.log_softmax(values[[tokenizer(name)["input_ids"][0] for name in QUESTION.values]], 0)
        top = dict(zip(firsts, values.tolist(), strict=True))
        return max(top, key=top.__getitem__), top

    lines = [TAUGHT, "", "mat", "a longer text about cats", TAUGHT]
    # The first token of each answer is the whole answer.
    firsts = [tokenizer.decode(tokenizer(name)["input_ids"][:1]) for name in QUESTION.values]
    question = Question(QUESTION.wording, dict(zip(firsts, QUESTION.values.values(), strict=True)), QUESTION.examples)
    monkeypatch.setattr(rate_quality, "SENSE", question)
    with serve(reply) as server:
        code, written, shown = ask_service(run, server, lines)
        assert code == 0, shown
        assert len(server.requests) == 3
    assert [line["quality"] for line in written] == pytest.approx(local.rate(lines).tolist(), abs=1e-6)
    assert written[1]["quality"] == 0
    assert len({line["quality"] for line in written}) == 4
    assert written[0]["signature"].startswith("rate_quality|service:m|temperature:1.0|ask:")
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
        code, written, shown = ask_service(run, server, list(answers))
        assert code == 0, shown
        assert len(server.requests) == 4
        assert len(server.paid) == len(set(server.paid)) == 3
    assert [line["quality"] for line in written] == [1, 0, 1]
    assert shown.count("3 of 3 ratings are the answer itself, 1 or 0") == 1


def test_other_answers_and_errors_of_a_service_are_reported_and_the_rest_kept(run, tmp_path):
    likely = {"Yes": math.log(0.4), "No": math.log(0.2), " yes": math.log(0.2)}
    replies = {"good": ("Yes", likely), "vague": "That depends.", "refused": 400}

    def reply(question, number):
        return replies[question.rpartition("\n")[2]]

    lines = ["good", "vague", "refused", "good"]
    with serve(reply) as server:
        code, _, shown = ask_service(run, server, lines, "--attempts", "2")
        assert code == 1
        assert "the text 'vague': none of 2 answers can be parsed: it must begin with Yes or No. Got 'That" in shown
        assert "the text 'refused': the endpoint rejected the request" in shown
        assert "1 of 3 different texts are rated" in shown
        rated = [json.loads(line) for line in (tmp_path / "rated.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [(line["text"], line["quality"]) for line in rated] == [("good", pytest.approx(0.75))] * 2
        # One request for the good text, two for the vague one, and one with and one without log-probabilities.
        assert len(server.requests) == 5
        # What was answered is not asked again; an endpoint that cannot be used stops the run, and the next goes on.
        server.reply = lambda *_: 401
        code, _, shown = ask_service(run, server, lines, "--workers", "1", "--attempts", "3")
        assert code == 1
        assert "does not answer" in shown
        assert "run the same command to continue" in shown
        asked = len(server.requests)
        server.reply = lambda *_: ("No", {"No": -0.01})
        code, written, shown = ask_service(run, server, lines, "--attempts", "3")
        assert code == 0, shown
        assert len(server.requests) == asked + 2
        assert "2 answers are new" in shown
    assert [line["quality"] for line in written] == pytest.approx([0.75, 0, 0, 0.75])


@pytest.mark.parametrize(
    ("answer", "top", "expected"),
    [
        ("Yes", {" Yes": -0.02, "No": -5.5}, (0.996, True)),
        ("yes", {"yes": -0.02, "No": -5.5}, (0.996, True)),
        ("Yes", {"Yes": math.log(0.4), " Yes": math.log(0.3), "No": math.log(0.3)}, (0.7, True)),
        ("Yes", {"ĠYes": -0.02, "▁No": -5.5}, (0.996, True)),
        ("**Yes**", {"**Yes": -0.02, "**No": -5.5}, (0.996, True)),
        # The first token is markup, so that what matches holds little.
        ("**Yes**", {"**": -0.1, "No": -3.0, "Yes": -4.5}, (1.0, False)),
        ("Yes.", {"No": -0.3, "Yes": -2.0}, (1.0, False)),
    ],
)
def test_spellings_of_an_answer_count_together(answer, top, expected):
    rated = read_answer(SENSE, answer, top)
    assert (rated.quality, rated.by_probability) == (pytest.approx(expected[0], abs=1e-3), expected[1])


def test_log_probabilities_that_are_no_numbers_are_left_out():
    assert read_answer(SENSE, "No", {"Yes": math.nan}) == (0, False)
    assert read_answer(SENSE, "No", {"Yes": -math.inf}) == (0, False)
    assert read_answer(SENSE, "Yes", {"Yes": -0.5, "No": -math.inf}) == (1, True)


def test_a_service_is_only_asked(run):
    assert "--base-url needs --ask" in run(["a"], "--model", "m", "--base-url", "http://127.0.0.1:9/v1")[2]
    words = ("--ask", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--dtype", "bfloat16")
    assert "--dtype cannot be combined with --base-url" in run(["a"], *words)[2]
