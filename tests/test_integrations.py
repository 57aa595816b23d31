"""The adapters of text_metrics/integrations, run by the harnesses' own commands with a tiny model on our files."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from tests import tiny_causal
from tests.conftest import ROOT, SETS
from text_metrics.integrations.lm_eval import scores

ADAPTERS = ROOT / "text_metrics" / "integrations"
K = 8


def needs(package):
    missing = importlib.util.find_spec(package) is None
    return pytest.mark.skipif(missing, reason=f"{package} is not installed: `make test-integrations` runs this test")


def run(command, *words):
    """Run a command of this Python's environment, or a script of tests/, from the root of the repository."""
    script = [sys.executable, command] if command.endswith(".py") else [Path(sys.executable).with_name(command)]
    done = subprocess.run(
        [*script, *map(str, words)], cwd=ROOT, env=os.environ | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def causal_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causal")
    tiny_causal.build(folder)
    return folder


def people():
    return [row["answers"] for row in tiny_causal.read("questions.jsonl")]


def check_scores(load, reported, sets, answers):
    """Compare what a harness reported with the metrics' own scores of the texts that it logged."""
    assert [len(texts) for texts in sets] == [K] * len(tiny_causal.read("prompts.jsonl"))
    assert [len(texts) for texts in answers] == [K] * len(people())
    assert all(len(set(texts)) > 1 for texts in sets), "the samples of a prompt are copies"
    flat = [text for texts in sets for text in texts]
    prompts = [row["prompt"] for row in tiny_causal.read("prompts.jsonl")]
    vendi_embed = load("vendi_embed")
    probeval = load("probeval").compute(predictions=answers, references=people())
    expected = {
        "vendi_embed": vendi_embed.compute(predictions=sets)["vendi_embed"],
        "vendi_embed_contexts": vendi_embed.compute(predictions=sets, contexts=prompts)["vendi_embed"],
        "gruen": load("gruen").compute(predictions=flat)["gruen"],
        "probeval": probeval["probeval"],
    }
    assert reported == pytest.approx(expected, abs=1e-6)


def test_functions_of_the_lm_eval_tasks(load):
    padded = [f" {text}\n" for text in SETS[0]]
    expected = {"vendi_embed": SETS[0], "vendi_embed_contexts": (SETS[0], "Say something."), "gruen": SETS[0]}
    assert scores.texts({"prompt": "Say something."}, [padded]) == expected
    contexts = ["Say something.", None, "Sing!", "", "Why?"]
    with_prompts = load("vendi_embed").compute(predictions=SETS, contexts=contexts)["vendi_embed"]
    assert scores.vendi_embed_contexts(list(zip(SETS, contexts, strict=True))) == with_prompts
    without = scores.vendi_embed_contexts([(texts, None) for texts in SETS])
    assert without == pytest.approx(scores.vendi_embed(SETS), abs=1e-6)
    assert scores.vendi_embed(SETS) == load("vendi_embed").compute(predictions=SETS)["vendi_embed"]
    assert scores.gruen(SETS[:2]) == load("gruen").compute(predictions=SETS[0] + SETS[1])["gruen"]
    given = [[" a kettle"] * 3 + ["a spoon"], ["the owner", "\n"], ["under the mat"]]
    rows = tiny_causal.read("questions.jsonl")
    pairs = [scores.answers(row, [texts])["probeval"] for row, texts in zip(rows, given, strict=True)]
    stripped = []
    for texts in given:
        stripped.append([text.strip() for text in texts])
    expected = load("probeval").compute(predictions=stripped, references=people())["probeval"]
    assert scores.probeval(pairs) == expected


def lm_eval_texts(folder, task):
    """Return the logged samples of each prompt."""
    (path,) = folder.rglob(f"samples_{task}_*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: row["doc_id"])
    return [list(map(str.strip, row["filtered_resps"][0])) for row in rows]


@needs("lm_eval")
@pytest.mark.slow
def test_lm_eval(causal_model, tmp_path, load):
    printed = run(
        *("lm_eval", "--model", "hf", "--model_args", f"pretrained={causal_model}", "--device", "cpu"),
        *("--include_path", ADAPTERS / "lm_eval", "--tasks", "text_metrics", "--batch_size", "32"),
        *("--output_path", tmp_path, "--log_samples"),
    )
    (path,) = tmp_path.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    reported = {
        "vendi_embed": results["text_metrics_diversity"]["vendi_embed,samples"],
        "vendi_embed_contexts": results["text_metrics_diversity"]["vendi_embed_contexts,samples"],
        "gruen": results["text_metrics_diversity"]["gruen,samples"],
        "probeval": results["text_metrics_probeval"]["probeval,samples"],
    }
    sets = lm_eval_texts(tmp_path, "text_metrics_diversity")
    check_scores(load, reported, sets, lm_eval_texts(tmp_path, "text_metrics_probeval"))
    assert "signature: vendi_embed|" in printed


def inspect_logs(folder):
    """Return the results and the logged answers: `{task: {metric: value}}`, `{task: answers by sample}`."""
    reported = {}
    answers = {}
    for path in folder.glob("*.json"):
        log = json.loads(path.read_text(encoding="utf-8"))
        assert log["status"] == "success", log.get("error")
        task = log["eval"]["task"]
        scores = log["results"]["scores"]
        reported[task] = {name: metric["value"] for score in scores for name, metric in score["metrics"].items()}
        by_sample = {}
        for sample in sorted(log["samples"], key=lambda sample: (sample["id"], sample["epoch"])):
            by_sample.setdefault(sample["id"], []).append(sample["scores"]["answer"]["value"])
        answers[task] = list(by_sample.values())
    return reported, answers


@needs("inspect_ai")
@pytest.mark.slow
def test_inspect(causal_model, tmp_path, load):
    printed = run(
        *("inspect", "eval", "text_metrics/integrations/inspect/tasks.py", "--model", "hf/tiny"),
        *("-M", f"model_path={causal_model}", "--max-tokens", "32", "--display", "plain", "--log-level", "info"),
        *("--log-dir", tmp_path, "--log-format", "json"),
    )
    reported, answers = inspect_logs(tmp_path)
    diversity = "text_metrics_diversity"
    probeval = "text_metrics_probeval"
    check_scores(load, reported[diversity] | reported[probeval], answers[diversity], answers[probeval])
    assert "signature:" in printed
    assert "empty sample set" not in printed


@needs("lighteval")
@pytest.mark.slow
def test_lighteval(tmp_path, causal_model, load):
    run(
        "tests/lighteval_offline.py",
        "accelerate",
        f"model_name={causal_model},batch_size=32,generation_parameters={{temperature:1.0}}",
        "text_metrics_diversity|0,text_metrics_probeval|0",
        "--custom-tasks",
        ADAPTERS / "lighteval_tasks.py",
        "--output-dir",
        tmp_path,
        "--save-details",
    )
    (results,) = tmp_path.rglob("results_*.json")
    reported = json.loads(results.read_text())["results"]["all"]
    answers = {}
    for details in tmp_path.rglob("details_*.parquet"):
        task = "probeval" if "probeval" in details.name else "diversity"
        rows = pandas.read_parquet(details)
        prompts = [doc["query"] for doc in rows["doc"]]
        texts = []
        for response in rows["model_response"]:
            texts.append([text.strip() for text in response["text"]])
        answers[task] = dict(zip(prompts, texts, strict=True))
    questions = [row["question"] for row in tiny_causal.read("questions.jsonl")]
    sets = [answers["diversity"][row["prompt"]] for row in tiny_causal.read("prompts.jsonl")]
    check_scores(load, reported, sets, [answers["probeval"][question] for question in questions])
