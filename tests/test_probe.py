"""text-metrics probe: cleaning, asking a real server, the report, and reports on people's own answers."""

import csv
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_server import serve
from tests.conftest import ROOT, own_data
from tests.files import pipe_of, read_jsonl, write_jsonl
from text_metrics.__main__ import main
from text_metrics.probe.cleaning import clean
from text_metrics.probe.report import against_people, draw, halve
from text_metrics.probe.sensitivity import changes

DATA = ROOT / "tests" / "data"
TARGETS = DATA / "probeval_cfc_targets.jsonl"
PREDICTIONS = DATA / "probeval_cfc_predictions.json"
QUESTIONS = [
    {"id": "q1", "question": "What boils water?"},
    {"id": 2, "question": "Who does?", "sentence": "Someone boils water."},
    {"id": "q3", "question": "What boils water?"},
]


@pytest.fixture
def result_of(run, tmp_path):
    """Run a report, which succeeds; returns the JSON that it writes, what it prints, and its notices."""

    def result(*words):
        code, shown, said = run("probe", *words, "--out", tmp_path / "result.json")
        assert code == 0, said
        return json.loads((tmp_path / "result.json").read_text(encoding="utf-8")), shown, said

    return result


# Cleaning.


def test_cleaning():
    examples = own_data("cleaned_answers.json")
    # An answer, and raw outputs that give it.
    for answer, *raws in examples["cleaned"]:
        assert [clean(raw) for raw in raws] == [answer] * len(raws)
    for answer in examples["unchanged"]:
        assert clean(answer) == answer


@given(st.text() | st.text(alphabet="aThe.1)(-*'\"`: \n<|>ndoftxs/[]EOS", max_size=30))
def test_cleaning_again_changes_nothing(raw):
    once = clean(raw)
    assert clean(once) == once
    assert once == once.strip()
    assert "\n" not in once


# Asking a chat model.


def test_a_chat_model_is_asked_and_its_answers_are_kept(run, tmp_path):
    questions = write_jsonl(tmp_path / "questions.jsonl", QUESTIONS)
    out = tmp_path / "answers.jsonl"
    with serve(lambda question, number: f'1. "The answer {number}."') as server:
        command = ("ask", questions, "--out", out, "--model", "m", "--base-url", server.url)
        code, _, shown = run("probe", *command, "--samples", "4")
        assert code == 0, shown
        assert "3 of 3 questions" in shown
        lines = read_jsonl(out)
        assert [line["id"] for line in lines] == ["q1", "2", "q3"]
        assert lines[1]["question"] == "Someone boils water. Who does?"
        assert all(line["model"] == "m" and line["temperature"] == 1.0 for line in lines)
        # Equal questions are asked each for itself.
        raw = [answer for line in lines for answer in line["raw"]]
        assert sorted(raw) == sorted(f'1. "The answer {i}."' for i in range(12))
        assert [clean(answer) for answer in raw] == [answer for line in lines for answer in line["answers"]]
        (message,) = server.requests[0][0]["messages"]
        assert message["content"].endswith(("\n\nWhat boils water?", "\n\nSomeone boils water. Who does?"))
        # More samples, or another question, cost only what is more.
        assert run("probe", *command, "--samples", "5")[0] == 0
        assert len(server.requests) == 15
        write_jsonl(questions, [{"id": "q0", "question": "Why?"}, *QUESTIONS])
        assert run("probe", *command, "--samples", "5")[0] == 0
        assert len(server.requests) == 20


def test_released_targets_are_asked_and_bad_answers_are_named(run, tmp_path):
    out = tmp_path / "answers.jsonl"
    with serve(lambda question, number: "dog" if "boil" in question else "half \ud83d") as server:
        options = ("--model", "m", "--base-url", server.url, "--samples", 2, "--attempts", 2)
        code, _, shown = run("probe", "ask", TARGETS, "--out", out, *options)
        assert code == 1
        assert shown.count("question 'q2': none of 2 answers can be parsed") == 2
        assert "1 of 3 questions" in shown
    (line,) = read_jsonl(out)
    assert (line["id"], line["question"], line["answers"]) == ("q1", "what do you boil water in?", ["dog"] * 2)


# The report.

CLUSTERS = {"kettle": ("kettle", "tea kettle"), "pot": ("pot", "big pot"), "cup": ("cup",), "spoon": ("spoon", "ladle")}
SHARES = (0.5, 0.25, 0.15, 0.1)


def people(rng, n):
    """Draw answers of people: counts of texts."""
    texts = list(CLUSTERS.values())
    return Counter(str(rng.choice(texts[i])) for i in rng.choice(len(CLUSTERS), n, p=SHARES))


def labelled(answers):
    """Return answers with the clusters of people."""
    label = {text: name for name, texts in CLUSTERS.items() for text in texts}
    return [{"text": text, "count": n, "cluster": label[text]} for text, n in answers.items()]


@pytest.fixture(scope="module")
def references():
    rng = np.random.default_rng(1)
    return [{"id": f"q{i}", "question": "?", "answers": labelled(people(rng, 60))} for i in range(12)]


@pytest.fixture(scope="module")
def files():
    """A model like people, one that is always wrong, and one that repeats itself; with raw marks of models."""
    rng = np.random.default_rng(2)
    good = {}
    for i in range(12):
        good[f"q{i}"] = {f"The {text}.": n for text, n in people(rng, 40).items()}
    return {
        "good": good,
        "wrong": {f"q{i}": {"an elephant<|endoftext|>": 30} for i in range(12)},
        "stuck": {f"q{i}": {"kettle": 50} for i in range(11)} | {"q99": {"pot": 3}},
    }


@pytest.fixture(scope="module")
def report(references, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    words = ["report", write_jsonl(folder / "targets.jsonl", references), "--rounds", 5, "--out", folder / "r.json"]
    for name, answers in files.items():
        (folder / f"{name}.jsonl").write_text(json.dumps(answers, indent=1), encoding="utf-8")
    words += [folder / f"{name}.jsonl" for name in files]
    assert main(["probe", *map(str, words)]) == 0
    return json.loads((folder / "r.json").read_text(encoding="utf-8"))


def by_name(report):
    return {row["name"]: row for row in report["rows"]}


def test_rows_are_what_the_metric_computes(report, references, files, load):
    rows = by_name(report)
    probeval = load("probeval")
    assert [row["name"] for row in report["rows"]] == ["good", "stuck", "wrong"]
    for name, answers in files.items():
        cleaned = {}
        for key, entry in answers.items():
            cleaned[key] = {clean(text): n for text, n in entry.items()}
        options = {"unknown": "skip", "missing": "skip", "confidence": 0.95}
        expected = probeval.compute(predictions=cleaned, references=references, **options)
        del expected["skipped"]
        assert {key: rows[name][key] for key in expected} == expected
    assert rows["stuck"]["questions"] == [f"q{i}" for i in range(11)]


def test_other_people_are_as_close_as_people(load, rng):
    answers = [people(rng, 40) for _ in range(40)]
    references = [{"answers": labelled(people(rng, 60))} for _ in answers]
    actual = against_people(load("probeval").compute, answers, references, rounds=4, level=0.95)
    assert actual["p"] > 0.01
    assert abs(actual["difference"]) < 0.02


def test_models_unlike_people_are_farther(report):
    against = {name: row["against_people"] for name, row in by_name(report).items()}
    for name in ("wrong", "stuck"):
        assert against[name]["p"] <= against[name]["p_holm"] < 0.01
        assert against[name]["interval"][0] > 0
    # All models meet the same halves of people.
    assert against["good"]["people"] == pytest.approx(against["wrong"]["people"], abs=0.05)


def test_samples_are_drawn_without_replacement(rng):
    counts = Counter({"a": 5, "c": 3, "d": 2})
    for _ in range(20):
        sample = Counter(draw(counts, 4, rng))
        assert sample.total() == 4
        assert sample <= counts
    assert all(draw(counts, size, rng) == counts for size in (10, 99))


def test_halves_are_all_of_people(references, rng):
    whole = Counter({answer["text"]: answer["count"] for answer in references[0]["answers"]})
    for _ in range(10):
        half, rest = halve(references[0], rng)
        gold = Counter({answer["text"]: answer["count"] for answer in half["answers"]})
        assert gold.total() == rest.total() == 30
        assert gold + rest == whole


def test_answers_from_a_pipe_are_those_of_a_file(result_of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_jsonl(tmp_path / "a", [{"id": "q1", "answers": ["a pot"]}, {"id": "q2", "answers": ["owner"]}])
    with pipe_of(path.read_bytes() + b"\n" * 2**17, "fifo") as pipe:
        results = [result_of("report", TARGETS, f"a={source}", "--rounds", 2)[0] for source in (path, pipe)]
    assert by_name(results[0]) == by_name(results[1])


def test_the_report_is_written_and_names_what_it_leaves_out(result_of, tmp_path):
    rows = [{"id": "q1", "answers": ["a pot", " ", " "]}, {"id": "q2", "answers": [" "]}, {"q7": ["x"]}]
    given = write_jsonl(tmp_path / "b|x.jsonl", rows)
    command = ("report", TARGETS, f"a={PREDICTIONS}", given, "--rounds", 2)
    first, shown, said = result_of(*command)
    assert "b|x: unknown: q7\nb|x: missing: q2, q3\n" in said
    assert "| b\\|x | 1 | 3–3 | " in shown
    actual = by_name(first)
    assert set(actual) == {"a", "b|x"}
    # A blank answer beside others is wrong.
    assert actual["b|x"]["wrong_rate"] == pytest.approx(2 / 3)
    assert result_of(*command)[0] == first


def test_each_answer_is_encoded_once(result_of, tmp_path, encoded_texts, references, files):
    targets = write_jsonl(tmp_path / "targets.jsonl", references[:3])
    words = [write_jsonl(tmp_path / f"{name}.json", [answers]) for name, answers in files.items()]
    result_of("report", targets, *words, "--rounds", 3, "--setting", "clustering=soft")
    assert {"elephant", "kettle"} <= set(encoded_texts)
    assert len(encoded_texts) == len(set(encoded_texts))


def test_polls_are_reported(run, result_of, tmp_path):
    """Shares of a total, and weighted counts: they are rounded only to draw samples."""
    shares = {"Agree": 0.2, "Neither": 0.333, "Disagree": 0.467}
    people = write_jsonl(tmp_path / "people.jsonl", [{"id": "q1", "answers": shares, "total": 1500}])
    model = write_jsonl(tmp_path / "m.jsonl", [{"id": "q1", "answers": {"agree": 80.5, "Unsure": 19.5}}])
    words = ("report", people, model, "--setting", "matcher=exact", "--rounds", 2)
    (row,) = result_of(*words)[0]["rows"]
    assert (row["n_answers"], row["wrong_rate"], row["coverage"]) == ([100], 0.195, pytest.approx(0.2))
    p = np.array([301, 500.5, 701.5, 1]) / 1504
    q = np.array([81.5, 1, 1, 20.5]) / 104
    assert row["probeval"] == pytest.approx(float((p * np.log(p / q)).sum()))
    write_jsonl(people, [{"id": "q1", "answers": shares}])
    code, _, said = run("probe", *words)
    assert code == 2
    assert "'total'" in said


@pytest.fixture
def row_of(result_of, tmp_path):
    """Report on one question, from people's answers and a model's record; returns the model's row."""

    def report_row(answers, record, *words):
        people = write_jsonl(tmp_path / "people.jsonl", [{"id": "q1", "answers": answers}])
        model = write_jsonl(tmp_path / "m.jsonl", [{"id": "q1", **record}])
        (row,) = result_of("report", people, model, "--rounds", 1, *words)[0]["rows"]
        return row

    return report_row


ASYMMETRIC = {"A great deal": 10, "A fair amount": 20, "12. December": 30, "13. December": 5, "- 5": 5, "5": 9}
ASYMMETRIC |= {"(no answer)": 7, "B) Disagree": 8, "...": 3, "The Who": 4, "Who": 2}


@pytest.mark.parametrize("setting", [("--setting", "matcher=exact"), ()], ids=str)
def test_both_sides_are_cleaned_by_one_rule(row_of, setting):
    for answers in (ASYMMETRIC, *({text: n} for text, n in ASYMMETRIC.items())):
        row = row_of(answers, {"answers": answers}, *setting)
        assert (row["probeval"], row["wrong_rate"]) == (pytest.approx(0, abs=1e-9), pytest.approx(0, abs=1e-9))
    # Numbers that people gave are not cleaned.
    assert row_of({"12. December": 90}, {"answers": {"13. December": 90}}, *setting)["wrong_rate"] == 1


def test_exact_reads_what_a_model_said(row_of):
    asked = {"answers": ["great deal", "None"], "raw": ["A great deal", "None."]}
    row = row_of({"A great deal": 9, "None": 1}, asked, "--setting", "matcher=exact")
    assert (row["wrong_rate"], row["coverage"]) == (0, 1)


REPORT = ("report", TARGETS, f"a={PREDICTIONS}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ask", [{"id": "a"}]), "line 1 must have a 'question'"),
        (("ask", [{"question": "Who?"}]), "line 1 must have an 'id'"),
        (("ask", [{"id": "a", "question": "Who?"}] * 2), "line 2: question 'a' appears twice"),
        (("ask", QUESTIONS, "--samples", 0), "--samples"),
        (("report", TARGETS, "a.jsonl"), "a.jsonl does not exist"),
        (("report", PREDICTIONS, PREDICTIONS), "line 1 must have an 'id'"),
        (("report", TARGETS, TARGETS), "answer 'raw' has no 'count'"),
        (("report", TARGETS, [{"q7": ["x"]}]), "questions.jsonl: "),
        ((*REPORT, f"a={PREDICTIONS}"), "Got a, a"),
        ((*REPORT, "--setting", "nothing=3"), "nothing"),
        ((*REPORT, "--setting", "matcher=cosin"), "matcher must be one of"),
        ((*REPORT, "--setting", "matcher=human"), "matcher='human'"),
        ((*REPORT, "--rounds", 0), "--rounds"),
        ((*REPORT, "--confidence", 95), "confidence"),
        (("annotators", TARGETS, "--sizes", 0), "--sizes"),
        (("sensitivity", PREDICTIONS), "line 1 must have an 'id'"),
    ],
)
def test_what_cannot_be_done_is_named(run, tmp_path, words, message):
    path = tmp_path / "questions.jsonl"
    out = tmp_path / "out.jsonl"
    words = [write_jsonl(path, word) if isinstance(word, list) else word for word in words]
    server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1") if words[0] == "ask" else ()
    code, shown, said = run("probe", *words, *server, "--out", out)
    assert (code, shown) == (2, "")
    assert message in said
    assert not out.exists()


@pytest.mark.parametrize("answers", [[], [" \n", "\u3000"], {" ": 3}, ["<|endoftext|>Paris", '""']])
def test_a_file_of_blank_answers_is_named(run, tmp_path, answers):
    given = write_jsonl(tmp_path / "a.jsonl", [{"id": name, "answers": answers} for name in ("q1", "q2")])
    code, shown, said = run("probe", "report", TARGETS, f"b={PREDICTIONS}", given)
    assert code == 2
    assert "a: none of its 2 questions has an answer that is not blank" in said
    assert not shown


# How many people?


def test_more_people_are_closer_to_all(run, result_of, tmp_path, references):
    targets = write_jsonl(tmp_path / "targets.jsonl", references[:3])
    words = ("annotators", targets, "--sizes", 5, 20, 80, "--setting", "details=true")
    result, shown, _ = result_of(*words)
    assert "| 80 |" in shown
    scores = result["scores"]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0
    code, _, said = run("probe", *words, "--setting", "debias=true")
    assert (code, "debias" in said) == (2, True)


# How sensitive are scores?


def test_changes_are_distributions():
    shares = np.array([0.4, 0.3, 0.1, 0.1, 0.1, 0.0])
    changed = changes(shares)
    for steps in changed.values():
        assert steps.sum(axis=1) == pytest.approx(1)
        assert steps.min() >= 0
    assert changed["a cluster dropped"][1].tolist() == pytest.approx([0.4 / 0.7, 0, *[0.1 / 0.7] * 3, 0])
    assert changed["a rank swapped with the next"][1].tolist() == [0.4, 0.1, 0.3, 0.1, 0.1, 0]
    moved = [steps for name, steps in changed.items() if "share" in name]
    assert [steps[0].tolist() for steps in moved] == [shares.tolist()] * 3
    assert [steps[-1].tolist() for steps in moved] == [[0] * 5 + [1], [0.2] * 5 + [0], [1] + [0] * 5]
    # Ranks change where there are clusters enough.
    assert len(changes(np.array([0.6, 0.4, 0]))) == 3


@pytest.mark.slow
def test_sensitivity_on_released_targets(result_of, shared_data):
    """Its table in results/ has every second share. People match their own answers by any matcher."""
    targets = shared_data / "data" / "probeval" / "cfc_dev_targets.jsonl"
    result, shown, _ = result_of("sensitivity", targets, "--setting", "matcher=exact")
    assert "| top-1 accuracy | 1.000 |" in shown
    with (ROOT / "results" / "probe-sensitivity.csv").open(encoding="utf-8", newline="") as file:
        expected = [float(row["value"]) for row in csv.DictReader(file)]
    actual = {change["change"]: change["scores"] for change in result["changes"]}
    order = ["a cluster dropped", "a rank swapped with the next", *(name for name in actual if "share" in name)]
    values = []
    for name in order:
        # One score after another.
        for curve in actual[name].values():
            values += curve[::2] if "share" in name else curve
    assert values == pytest.approx(expected, abs=5e-4)


@pytest.mark.slow
def test_released_test_set(result_of, shared_data, tmp_path):
    folder = shared_data / "data" / "probeval" / "cfc_test"
    model = folder / "models" / "0715modelft_grad8lr5e-06sample200_temp1.0.jsonl"
    # All 46 questions, without the encoder, of which they would take half a minute.
    targets = folder / "targets.jsonl"
    settings = ("--setting", "matcher=exact", "--setting", "clustering=none", "--rounds", 1)
    (row,) = result_of("report", targets, f"tuned={model}", *settings)[0]["rows"]
    assert len(row["questions"]) == 46
    assert row["probeval"] == pytest.approx(1.3418, abs=0.0005)
    targets = write_jsonl(tmp_path / "targets.jsonl", read_jsonl(targets)[:8])
    command = ("report", targets, f"tuned={model}", "--setting", "clustering=soft", "--rounds", 1)
    (row,) = result_of(*command)[0]["rows"]
    # Of 0.10, on 8 of 46 questions. On all, it is 0.8277, as in results/probe-models.csv (0.827, where only the model's
    # answers are cleaned).
    assert row["probeval"] == pytest.approx(0.7387, abs=0.0005)
