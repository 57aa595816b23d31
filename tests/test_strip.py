"""One answer in many guises: each door counts what is not the answer, and scores the answer with `strip`."""

import json
import warnings
from typing import NamedTuple

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import EvalPrediction, PreTrainedTokenizerFast, TrainerState, TrainingArguments

import text_metrics
from tests.chat_server import serve
from tests.commands import results_of, run_command
from tests.files import read_data, read_jsonl, write_jsonl
from tests.trainer_run import build_causal
from text_metrics.metrics._core.core_results import Signature

PROMPT = "Name the capital of France."
OTHER = "Name the largest city in France."
THOUGHTS = ["A river runs through it.", "Is it Lyon ?", "My cat sleeps all day.", "Stocks fell by nine percent."]


class Example(NamedTuple):
    """Four texts with one answer.

    kind : what they hold besides it
    n : how many of them hold it
    mark : that a message shows
    """

    kind: str
    texts: list[str]
    n: int
    mark: str


EXAMPLES = [
    Example("reasoning", [f"<think> {thought} </think> Paris is." for thought in THOUGHTS], 4, "<think>"),
    Example("prompt", ["Paris is.", f"{PROMPT} Paris is."] * 2, 2, "begin with their prompt"),
]


class Shown(NamedTuple):
    """What a door gives for two prompts with the same four texts.

    value : the Vendi score, which is 1 if the texts are equal, or the number of different texts
    said : what was warned, or written as caveats
    signature, counts : of the result, with the counts of stripped texts, if the door has some
    """

    value: float
    said: str
    signature: str
    counts: dict | None


def rows_of(example):
    return [{"id": i, "prompt": PROMPT, "texts": example.texts} for i in range(2)]


class Doors:
    """Each method scores an example, with or without `strip`."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def run(self, name, example, kinds, *words):
        data = write_jsonl(self.folder / "data.jsonl", rows_of(example))
        words = [name, data, *words, "--text-key", "texts"]
        if kinds:
            words += ["--strip", kinds]
        if example.kind == "prompt":
            words += ["--context-key", "prompt"]
        assert run_command(self.monkeypatch, *words) == 0
        return self.capsys.readouterr().err

    def score(self, example, kinds):
        words = ["--metric", "vendi_embed", "--out", self.folder / "out.jsonl", "--restart"]
        said = self.run("score", example, kinds, *words)
        summary = results_of(self.folder / "data.jsonl")[2]
        return Shown(summary["vendi_embed"], said, summary["signature"], summary.get("stripped"))

    def choose(self, example, kinds):
        said = self.run("choose", example, kinds, "--keep", "all", "--out", self.folder / "out.jsonl", "--restart")
        rows, _, summary = results_of(self.folder / "data.jsonl")
        # The rows hold whole texts.
        assert {text for row in rows for text in row["texts"]} <= set(example.texts)
        return Shown(summary["n_chosen"] / 2, said, summary["signature"], summary.get("stripped"))

    def compare(self, example, kinds):
        out = self.folder / "out.json"
        data = self.folder / "data.jsonl"
        said = self.run("compare", example, kinds, data, "--metric", "vendi_embed", "--id-key", "id", "--out", out)
        result = json.loads(out.read_text())
        assert result["a"] == result["b"]
        counts = result.get("stripped", [None])[0]
        # The warning counts the texts of both.
        said = said.replace(f"{4 * example.n} of 16", f"{2 * example.n} of 8")
        return Shown(result["a"]["mean"], said, result["signatures"][0], counts)

    def report(self, example, kinds):
        out = self.folder / "report"
        words = ["--id-key", "id", "--out", out, "--quality", "none", "--setting", "same=none", "--quiet"]
        said = self.run("report", example, kinds, *words)
        report = json.loads((out / "report.json").read_text())
        page = (out / "index.html").read_text()
        caveats = [caveat["sentence"] for caveat in report["caveats"] if example.mark in caveat["sentence"]]
        # On stderr, in report.json and on the page, with the name of the system.
        if caveats:
            assert all(f"{2 * example.n} of 8 texts of data" in text for text in (said, caveats[0], page))
        metric = report["metrics"][0]
        return Shown(metric["values"][0]["mean"], said, metric["signature"], report["stripped"].get("data"))

    def report_in_python(self, example, kinds):
        contexts = [PROMPT] * 2 if example.kind == "prompt" else None
        sets = [example.texts] * 2
        report = text_metrics.report({"data": sets}, quality=None, contexts=contexts, strip=kinds, same="none")
        if example.kind == "reasoning":
            frame = text_metrics.describe(sets, quality=None, strip=kinds, same="none")
            assert frame.loc["vendi_embed", "score"] == report.metrics[0].values[0].mean
        said = " ".join(caveat.sentence for caveat in report.caveats)
        return Shown(report.metrics[0].values[0].mean, said, report.metrics[0].signature, report.stripped.get("data"))

    def for_rewards(self, example, kinds):
        logged = []
        reward = text_metrics.for_rewards("vendi_embed", strip=kinds)
        completions = [[{"role": "assistant", "content": text}] for text in example.texts * 2]
        prompts = [[{"role": "user", "content": PROMPT}]] * 8
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                log = {"log_metric": lambda name, value: logged.append(value)}
                reward(prompts=prompts, completions=completions, **log)
        assert len(caught) == (0 if kinds else 1)
        return Shown(logged[0], " ".join(str(each.message) for each in caught), reward.signature, None)

    def distinct_share(self, example, kinds):
        reward = text_metrics.for_rewards("semantic_entropy", 4, reward="distinct_share", strip=kinds)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = reward(prompts=[PROMPT] * 8, completions=example.texts * 2)
        said = " ".join(str(each.message) for each in caught)
        # 0 for equal texts.
        return Shown(1 + sum(values) + (not kinds), said, reward.signature, None)

    def for_trainer(self, example, kinds):
        tokenizer = tokenizer_of(example)
        contexts = {"contexts": "labels"} if example.kind == "prompt" else {}
        metric = text_metrics.for_trainer("vendi_embed", tokenizer, set_size=4, strip=kinds, **contexts)
        ids = tokenizer(example.texts * 2, padding=True, return_tensors="np")["input_ids"]
        labels = tokenizer([PROMPT] * 8, return_tensors="np")["input_ids"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = metric(EvalPrediction(predictions=ids, label_ids=labels))
        return Shown(result["vendi_embed"], " ".join(str(each.message) for each in caught), metric.signature, None)

    def sample_callback(self, example, kinds):
        tokenizer = tokenizer_of(example)
        model = build_causal(tokenizer)
        sampled = tokenizer(example.texts, padding=True, return_tensors="pt")["input_ids"]

        def generate(input_ids, **settings):
            n = len(input_ids)
            return torch.cat([input_ids.repeat_interleave(4, dim=0), sampled.repeat(n, 1)], dim=1)

        model.generate = generate
        path = self.folder / "samples.jsonl"
        callback = text_metrics.SampleCallback("vendi_embed", [PROMPT, OTHER], 4, path=path, strip=kinds)
        arguments = TrainingArguments(output_dir=str(self.folder), use_cpu=True, report_to=[])
        state = TrainerState(is_world_process_zero=True)
        metrics = {"eval_runtime": 1.0}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            callback.on_evaluate(arguments, state, None, metrics, model=model, processing_class=tokenizer)
        # The file has whole texts.
        assert [row["texts"] for row in read_jsonl(path)] == [example.texts] * 2
        said = " ".join(str(each.message) for each in caught)
        return Shown(metrics["eval_samples_vendi_embed"], said, callback.signatures["vendi_embed"], None)


DOORS = [name for name in vars(Doors) if not name.startswith("_") and name != "run"]


def tokenizer_of(example):
    """Make a tokenizer of the words of the texts, to which their marks are words, too."""
    words = dict.fromkeys(" ".join([*example.texts, PROMPT, OTHER]).split())
    vocabulary = {word: i for i, word in enumerate(["<fill>", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<fill>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<fill>", unk_token="<fill>", clean_up_tokenization_spaces=False
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
@pytest.mark.parametrize("door", DOORS)
def test_one_answer_is_one_answer_through_each_door(tmp_path, monkeypatch, capsys, door, example):
    through = getattr(Doors(tmp_path, monkeypatch, capsys), door)
    if (door, example.kind) == ("sample_callback", "prompt"):
        # Only the texts of one of the prompts repeat it.
        example = example._replace(n=1)
    plain = through(example, None)
    assert plain.value > 1.02
    assert f"{2 * example.n} of 8" in plain.said
    assert example.mark in plain.said
    advice = plain.said.replace('"', "'")
    assert f"strip {example.kind} " in advice or f"strip='{example.kind}'" in advice
    assert "strip" not in Signature.parse(plain.signature).entries
    assert not plain.counts
    if (door, example.kind) == ("sample_callback", "prompt"):
        return
    stripped = through(example, example.kind)
    assert stripped.value == pytest.approx(1, abs=1e-5)
    assert example.mark not in stripped.said
    assert Signature.parse(stripped.signature).entries["strip"] == example.kind
    assert stripped.counts in (None, {example.kind: 2 * example.n, "empty": 0})


def test_an_answer_that_is_empty_stays_an_item(tmp_path, monkeypatch, capsys):
    texts = ["<think> cut", "Paris", "Paris", "Lyon"]
    data = write_jsonl(tmp_path / "data.jsonl", [{"texts": texts}])
    words = ["--metric", "self_bleu", "--text-key", "texts", "--strip", "reasoning", "--out", tmp_path / "out.jsonl"]
    assert run_command(monkeypatch, "score", data, *words) == 0
    summary = results_of(data)[2]
    assert summary["n_texts"] == 4
    assert summary["stripped"] == {"reasoning": 1, "empty": 1}
    assert "1 of 4 texts are empty" in capsys.readouterr().err
    expected = text_metrics.load("self_bleu").compute(predictions=[["", *texts[1:]]])
    assert summary["self_bleu"] == expected["self_bleu"]


def test_of_most_texts_reasoning_names_no_system_first():
    """The model with one answer would be first by its thoughts."""
    answers = ["Paris.", "In Lyon, of course.", "The old town of Nice.", "A village."]
    systems = {"one": [EXAMPLES[0].texts] * 8, "many": [answers[:2] * 2] * 8}
    report = text_metrics.report(systems, quality=None, same="none")
    assert report.metrics[0].best is None
    assert not report.metrics[0].values[0].is_reliable
    assert report.metrics[0].values[1].is_reliable
    stripped = text_metrics.report(systems, quality=None, same="none", strip="reasoning")
    assert stripped.metrics[0].order == [1, 0]
    assert stripped.metrics[0].is_reliable


def test_people_are_stripped_like_systems():
    sets = [EXAMPLES[0].texts] * 2
    report = text_metrics.report({"a": sets}, quality=None, same="none", people=sets, strip="reasoning")
    assert report.stripped == {name: {"reasoning": 8, "empty": 0} for name in ("a", "people")}
    assert "strip:reasoning" in report.people.rows[0].signature
    caveats = text_metrics.report({"a": sets}, quality=None, same="none", people=sets).caveats
    assert any("texts of people" in caveat.sentence for caveat in caveats)


@pytest.mark.parametrize("name", ["self_bleu", "gruen"])
def test_prompts_are_stripped_for_a_metric_without_contexts(tmp_path, monkeypatch, name):
    data = write_jsonl(tmp_path / "data.jsonl", rows_of(EXAMPLES[1]))
    words = ["--metric", name, "--text-key", "texts", "--out", tmp_path / "out.jsonl"]
    words += ["--context-key", "prompt", "--strip", "prompt"]
    assert run_command(monkeypatch, "score", data, *words) == 0
    assert results_of(data)[2]["stripped"]["prompt"] == 4


def test_what_cannot_be_stripped_is_an_error(tmp_path, monkeypatch, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", rows_of(EXAMPLES[1]))
    score = ["score", data, "--metric", "self_bleu", "--text-key", "texts"]
    assert run_command(monkeypatch, *score, "--strip", "prompt") == 2
    assert "--context-key" in capsys.readouterr().err
    assert run_command(monkeypatch, *score, "--strip", "thoughts") == 2
    assert "thoughts" in capsys.readouterr().err
    with pytest.raises(ValueError, match="contexts"):
        text_metrics.report({"a": [["b", "c"]]}, strip="prompt")
    with pytest.raises(ValueError, match="prompt"):
        text_metrics.for_rewards("vendi_embed", 4, strip="prompt", kernel="ngram")(completions=["a b"] * 4)
    with pytest.raises(ValueError, match="contexts"):
        text_metrics.for_trainer("vendi_embed", tokenizer_of(EXAMPLES[0]), strip="prompt")
    with pytest.raises(ValueError, match="thoughts"):
        text_metrics.for_rewards("vendi_embed", 4, strip="thoughts")


# What chat models answer, and what they are asked about.

THINKING = '<think>\nYes or no? {"1": "no", "2": "no"}\n</think>\n\n'


def ask(monkeypatch, capsys, url, name, *words):
    code = run_command(monkeypatch, *name.split(), *words, "--model", "m", "--base-url", url)
    return code, capsys.readouterr().err


def test_answers_of_a_chat_model_follow_its_reasoning(tmp_path, monkeypatch, capsys):
    replies = [f"{THINKING}1. Kettle.", "no tag\n</think>\nA kettle", "<think>\ncut", "Kettle"]
    questions = write_jsonl(tmp_path / "questions.jsonl", [{"id": "q", "question": "What boils water?"}])
    out = tmp_path / "answers.jsonl"
    with serve(lambda question, number: replies[number % 4]) as server:
        code, said = ask(monkeypatch, capsys, server.url, "probe ask", questions, "--out", out, "--samples", 4)
    assert code == 0
    (row,) = read_jsonl(out)
    assert sorted(row["answers"]) == ["", "Kettle", "Kettle", "kettle"]
    assert sorted(row["raw"]) == sorted(replies)
    assert "3 of 4 answers" in said
    assert "1 of 4 answers are empty" in said


def test_a_judge_may_think(tmp_path, monkeypatch, capsys):
    texts = write_jsonl(tmp_path / "texts.jsonl", ["Rain falls.", "<think>x</think>Rain falls."])
    out = tmp_path / "out.jsonl"
    with serve(lambda question, number: f"{THINKING}Yes") as server:
        code, said = ask(monkeypatch, capsys, server.url, "rate-quality", texts, "--out", out)
        assert code == 0
        assert [row["quality"] for row in read_jsonl(out)] == [1.0, 1.0]
        assert "1 of 2 texts hold reasoning" in said
        paid = len(server.paid)
        code, said = ask(monkeypatch, capsys, server.url, "rate-quality", texts, "--out", out, "--strip", "reasoning")
        assert code == 0
        # What is asked is the answer, which was asked before; what is written is the text.
        assert len(server.paid) == paid
    assert [row["text"] for row in read_jsonl(out)] == ["Rain falls.", "<think>x</think>Rain falls."]
    assert all("|strip:reasoning" in row["signature"] for row in read_jsonl(out))
    assert "hold reasoning" not in said


def test_clusters_are_those_behind_the_reasoning(tmp_path, monkeypatch, capsys):
    answers = [{"text": "kettle", "count": 2}, {"text": "pot<|eot_id|>", "count": 1}]
    people = write_jsonl(tmp_path / "people.jsonl", [{"id": "q", "question": "What boils water?", "answers": answers}])
    out = tmp_path / "out.jsonl"
    reply = '{"1": "kettles", "2": "pots"}'
    with serve(lambda question, number: f"{THINKING}{reply}") as server:
        code, said = ask(monkeypatch, capsys, server.url, "cluster-answers", people, "--out", out)
        assert code == 0
        assert "1 of 2 answers hold special tokens (<|eot_id|>)" in said
        code, said = ask(monkeypatch, capsys, server.url, "cluster-answers", people, "--out", out, "--strip", "special")
    assert "special tokens" not in said
    (row,) = read_jsonl(out)
    clusters = {answer["text"]: answer["cluster"] for answer in row["answers"]}
    assert clusters == {"kettle": "kettles", "pot": "pots"}


def test_a_probe_report_strips_both_sides(tmp_path, monkeypatch, capsys):
    def of(*texts):
        return {"id": "q", "question": "What boils water, and where?", "answers": list(texts)}

    people = write_jsonl(tmp_path / "people.jsonl", [of("kettle", "kettle", "pot", "<think>x</think>pot")])
    model = [of("<think>a</think>kettle", "<think>b</think>kettle", "pot [SEP]", "What boils water, and where? pot")]
    answers = write_jsonl(tmp_path / "answers.jsonl", model)
    words = ["probe", "report", people, answers, "--setting", "matcher=exact", "--out", tmp_path / "out.json"]
    assert run_command(monkeypatch, *words) == 0
    said = capsys.readouterr().err
    assert "2 of 4 different answers of answers hold reasoning" in said
    assert "1 of 4 answers of people hold reasoning" in said
    assert "hold special tokens ([SEP])" in said
    assert "begin with their prompt" in said
    assert run_command(monkeypatch, *words, "--strip", "reasoning,special,prompt") == 0
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["stripped"] == {"reasoning": 2, "special": 1, "prompt": 1, "empty": 0}
    assert "|strip:reasoning+special+prompt|" in row["signature"]
    assert row["wrong_rate"] == 0
    assert row["probeval"] == pytest.approx(0, abs=1e-6)


def test_judged_pairs_are_stripped(tmp_path, monkeypatch, capsys):
    guised = [f"<think>{thought}</think>Tea." for thought in THOUGHTS[:2]]
    plain = ["Tea.", "Green tea."]
    pair = {"set1": guised, "set2": plain, "llm_diversity": 1, "src": "a drink"}
    pairs = write_jsonl(tmp_path / "x_low.jsonl", [pair, {**pair, "set2": ["Milk.", "Tea, please."], "src": "b"}])
    words = ["meta-eval", pairs, "--no-gruen", "--out", tmp_path / "out"]
    assert run_command(monkeypatch, *words) == 0
    assert "4 of 8 texts hold reasoning" in capsys.readouterr().err
    assert run_command(monkeypatch, *words, "--strip", "reasoning") == 0
    assert "hold reasoning" not in capsys.readouterr().err
    signatures = read_data(tmp_path / "out" / "signatures.csv")
    assert all(row["signature"].endswith("|strip:reasoning") for row in signatures)
    assert run_command(monkeypatch, *words, "--strip", "prompt") == 2
    assert "--context-key" in capsys.readouterr().err
