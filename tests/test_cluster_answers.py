"""Clusters of answers by a chat model, against a real server."""

import itertools
import json
import re

import pandas as pd
import pytest

import text_metrics
from tests.chat_server import serve
from tests.commands import run_command
from tests.conftest import ROOT
from tests.files import read_jsonl, write_data, write_jsonl
from text_metrics.commands import cluster_answers
from text_metrics.console import EXIT_BAD_ROWS

TARGETS = ROOT / "tests" / "data" / "probeval_cfc_targets.jsonl"
PREDICTIONS = ROOT / "tests" / "data" / "probeval_cfc_predictions.json"


def reply_by_last_word(question, _number=0):
    """Put answers with the same last word into one cluster."""
    texts = re.findall(r"^\d+\. (.*)$", question, re.MULTILINE)
    return json.dumps({str(i): text.split()[-1].title() for i, text in enumerate(texts, 1)})


@pytest.fixture
def run(run):
    """Run the command; returns its exit code and what it wrote to stderr."""
    return lambda *words: run("cluster-answers", *words, "--model", "m")[::2]


def clusters_of(row):
    actual = {}
    for answer in row["answers"]:
        actual.setdefault(answer["cluster"], {})[answer["text"]] = answer["count"]
    return actual


def test_answers_are_clustered(run, load, tmp_path):
    out = tmp_path / "clustered.jsonl"
    with serve(reply_by_last_word) as server:
        for _ in range(2):
            code, shown = run(TARGETS, "--out", out, "--base-url", server.url)
            assert code == 0, shown
            # What was answered is not asked again.
            assert len(server.requests) == 3
    assert "3 of 3 questions are clustered" in shown
    first, second, third = read_jsonl(out)
    assert [first["id"], second["id"], third["id"]] == ["q1", "q2", "q3"]
    assert first["question"] == "what do you boil water in?"
    assert clusters_of(first) == {
        "kettle": {"a kettle": 2, "electric kettle": 1, "kettle": 9},
        "cup": {"cup": 2},
        "mug": {"mug": 1},
        "pot": {"pot": 3},
        "saucepan": {"saucepan": 2},
    }
    assert clusters_of(second)["owner"] == {"owner": 5, "the owner": 4}
    probeval = load("probeval")
    predictions = probeval.from_cfc(TARGETS, PREDICTIONS)["predictions"]
    result = probeval.compute(predictions=predictions, references=[first, second], clustering="human")
    assert result["n_clusters"] == 4


def test_questions_whose_answers_cannot_be_read_are_reported_and_the_rest_kept(run, tmp_path):
    out = tmp_path / "clustered.jsonl"
    arguments = (TARGETS, "--out", out, "--attempts", 2)
    # No file can hold an unpaired surrogate.
    bad = itertools.cycle(["I cannot.", json.dumps({str(i): "half \ud83d" for i in range(1, 8)})])
    with serve(lambda question, _: next(bad) if "boil" in question else reply_by_last_word(question)) as server:
        code, shown = run(*arguments, "--base-url", server.url)
        assert code == 1
        assert "question 'q1': none of 2 answers can be parsed" in shown
        assert "2 of 3 questions are clustered" in shown
        assert [row["id"] for row in read_jsonl(out)] == ["q2", "q3"]
        server.reply = reply_by_last_word
        assert run(*arguments, "--base-url", server.url)[0] == 0
        assert [row["id"] for row in read_jsonl(out)] == ["q1", "q2", "q3"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("none", "numbers 1 to 2"),
        ('{"1": "a"}', "numbers 1 to 2"),
        ('{"1": "a", "2": "b", "3": "c"}', "numbers 1 to 2"),
        ('{"1": "a", "2": " "}', "' '"),
        ('{"1": "Wrong", "2": "b"}', "'Wrong'"),
        ('{"1": 1, "2": "b"}', "1"),
    ],
)
def test_unreadable_clusters(answer, message):
    with pytest.raises(ValueError, match=message):
        cluster_answers.parse_names(2, answer)
    # Names that differ in case or spaces are one cluster.
    good = 'An example: {{"x": {"1": "a"}}. Here:\n```json\n{"1": "Red  wine", "2": "red wine"}\n```'
    assert cluster_answers.parse_names(2, good) == ["red wine", "red wine"]


# A model's texts, which `reply_by_first_word` sorts.

PLOTS = [
    {"prompt": "a", "stories": ["Dogs bark.", "Rain falls.", "Dogs run.", "Dogs bark."], "n": 1},
    {"n": 2, "prompt": "b", "stories": ["Rain\nfalls 1.", "Rain falls 2.", "Men sing.", ""]},
    {"n": 3, "prompt": "c", "stories": ["Rain falls."] * 4, "note": "kept"},
    {"n": 4, "prompt": "d", "stories": ["Men sing 1.", "Men sing 2.", "Men sing 3.", "Rain falls."]},
]
CLASSES = [
    ["dogs", "rain", "dogs", "dogs"],
    ["rain", "rain", "men", "(blank)"],
    ["(only)", "(only)", "(only)", "(only)"],
    ["men", "men", "men", "rain"],
]
STORIES = [row["stories"] for row in PLOTS]
# The same, a text a row.
ROWS = [{"prompt": row["prompt"], "story": text} for row in PLOTS for text in row["stories"]]
LABELS = [label for labels in CLASSES for label in labels]


def reply_by_first_word(question, _number=0):
    """Put texts with the same first word into one class."""
    return json.dumps(dict(re.findall(r"^Text (\d+):\n(\S*)", question, re.MULTILINE)))


def test_texts_get_classes_by_a_criterion(run, tmp_path):
    """Different texts of a set are asked about once; another criterion is another question."""
    data = write_jsonl(tmp_path / "data.jsonl", PLOTS)
    out = tmp_path / "classes.jsonl"
    longer = tmp_path / "criterion.txt"
    longer.write_text("the same weather\n", encoding="utf-8")
    words = (data, "--text-key", "stories", "--context-key", "prompt", "--out", out)
    with serve(reply_by_first_word) as server:
        for more, said, n in (
            ((), "same content", 3),
            ((), "same content", 3),
            (("--criterion", "same plot"), "same plot", 6),
            (("--criterion", longer), "the same weather", 9),
        ):
            code, shown = run(*words, *more, "--base-url", server.url)
            assert code == 0, shown
            assert len(server.requests) == n
            sent = [body["messages"][0]["content"] for body, _ in server.requests[-3:]]
            assert all(said in content for content in sent)
    assert "4 of 4 sets are clustered" in shown
    assert sum("prompt:\na\n" in content and content.count("Dogs bark.") == 1 for content in sent) == 1
    rows = read_jsonl(out)
    assert [row.pop("classes") for row in rows] == CLASSES
    assert all(row.pop("classes_signature").startswith("cluster_answers|service:m|host:127.") for row in rows)
    assert rows == PLOTS


def test_sets_without_an_answer_have_none(run, tmp_path):
    rows = list(ROWS)
    rows.insert(4, {"prompt": "e"})
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    out = tmp_path / "classes.jsonl"
    words = (data, "--text-key", "story", "--id-key", "prompt", "--out", out, "--attempts", 1)
    with serve(lambda question, _: "?" if "Dogs" in question else reply_by_first_word(question)) as server:
        code, shown = run(*words, "--base-url", server.url)
        assert (code, "line 5 has no 'story'" in shown) == (EXIT_BAD_ROWS, True)
        assert "the set of row 1: none of 1 answers can be parsed" in shown
        assert [row["classes"] for row in read_jsonl(out)] == [None] * 4 + LABELS[4:]
        server.reply = reply_by_first_word
        # Only what is missing is asked again.
        write_jsonl(data, ROWS)
        before = len(server.requests)
        assert run(*words, "--base-url", server.url)[0] == 0
        assert len(server.requests) == before + 1
    assert [row["classes"] for row in read_jsonl(out)] == LABELS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--criterion", " "), "--criterion must not be blank"),
        (("--criterion", "absent.txt"), "absent.txt does not exist"),
        (("--text-key", "story"), "is one text: a set is a list, or needs --id-key"),
        (("--text-key", "story", "--system-key", "n"), "--system-key requires --id-key"),
    ],
)
def test_what_cannot_be_partitioned_is_named(run, tmp_path, words, message):
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    code, shown = run(data, *words, "--out", tmp_path / "out.jsonl", "--base-url", "http://[::1]:9")
    assert (code, message in shown) == (2, True), shown


@pytest.fixture
def classified(monkeypatch, tmp_path):
    """Write a file of sets, or of texts, with their classes by the command; returns it, and its keys."""

    def classify(name, rows, *keys):
        data = write_data(tmp_path / f"data-{name}", rows)
        out = tmp_path / name
        with serve(reply_by_first_word) as server:
            words = (*keys, "--out", out, "--model", "m", "--base-url", server.url)
            assert run_command(monkeypatch, "cluster-answers", data, *words) == 0
        return out, keys

    return classify


FORMS = {
    "sets.jsonl": (PLOTS, "--text-key", "stories"),
    "texts.csv": (ROWS, "--text-key", "story", "--id-key", "prompt"),
}


@pytest.mark.parametrize("name", FORMS)
def test_classes_go_into_score_and_choose(load, classified, monkeypatch, tmp_path, name):
    data, keys = classified(name, *FORMS[name])
    given = (*keys, "--column", "classes=classes", "--quiet")
    words = (*given, "--metric", "semantic_entropy", "--out", tmp_path / "scores.jsonl")
    assert run_command(monkeypatch, "score", data, *words) == 0
    expected = load("semantic_entropy").compute(predictions=STORIES, classes=CLASSES)["scores"]
    assert [row["semantic_entropy"] for row in read_jsonl(tmp_path / "scores.jsonl")] == pytest.approx(expected)

    assert run_command(monkeypatch, "choose", data, *given, "--keep", 2, "--out", tmp_path / "chosen.jsonl") == 0
    chosen = {}
    for row in read_jsonl(tmp_path / "chosen.jsonl"):
        labels = row["classes"] if isinstance(row["classes"], list) else [row["classes"]]
        chosen.setdefault(row["prompt"], []).extend(labels)
    # One text of each of two classes, where there are two.
    assert [len(set(labels)) for labels in chosen.values()] == [2, 2, 1, 2]
    words = (*given, "--keep", "all", "--min-distance", 0.5, "--out", tmp_path / "all.jsonl")
    assert run_command(monkeypatch, "choose", data, *words) == 0
    summary = json.loads((tmp_path / "all.jsonl.summary.json").read_text(encoding="utf-8"))
    # The blank text is no candidate.
    assert (summary["n_chosen"], summary["n_empty"], summary["classes"]) == (2 + 2 + 1 + 2, 1, "given")
    words = (*given, "--keep", 2, "--context-key", "prompt", "--out", tmp_path / "no.jsonl")
    assert run_command(monkeypatch, "choose", data, *words) == 2


def test_classes_go_into_a_report(load, classified, monkeypatch, tmp_path):
    """Meanings are the classes; of sets of different sizes, those that are expected of the smaller ones."""
    whole, _ = classified("whole.jsonl", PLOTS, "--text-key", "stories")
    short, _ = classified("short.csv", [row for i, row in enumerate(ROWS) if i % 4 < 3], *FORMS["texts.csv"][1:])
    in_lists = [
        {"prompt": prompt, "stories": list(texts["story"]), "classes": list(texts["classes"])}
        for prompt, texts in pd.read_csv(short).groupby("prompt")
    ]
    write_jsonl(tmp_path / "short.jsonl", in_lists)
    keys = ("--text-key", "stories", "--id-key", "prompt", "--column", "classes=classes")
    words = (*keys, "--quality", "none", "--quiet", "--out", tmp_path / "report")
    assert run_command(monkeypatch, "report", whole, tmp_path / "short.jsonl", *words) == 0
    folder = tmp_path / "report"
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    meanings = next(metric for metric in report["metrics"] if metric["name"] == "n_classes")
    assert "|classes:given|" in meanings["signature"]
    expected = text_metrics.rarefied("semantic_entropy", STORIES, 3, classes=CLASSES)["n_classes_scores"]
    assert meanings["values"][0]["scores"] == pytest.approx(expected)
    assert meanings["values"][1]["scores"] == [2, 2, 1, 1]
    assert "the texts of a set that the data hold" in (folder / "index.html").read_text(encoding="utf-8")
    assert "Meanings are the classes" in (folder / "methods.tex").read_text(encoding="utf-8")


def test_a_report_in_python_takes_classes(load):
    made = text_metrics.report({"m": STORIES}, quality=None, classes={"m": CLASSES})
    (value,) = next(metric for metric in made.metrics if metric.name == "n_classes").values
    expected = load("semantic_entropy").compute(predictions=STORIES, classes=CLASSES)
    assert value.scores == pytest.approx(expected["n_classes_scores"])
    described = text_metrics.describe(STORIES, quality=None, classes=CLASSES).loc["n_classes"]
    assert described["score"] == pytest.approx(expected["n_classes"])
    for classes, more, message in (
        ({"n": CLASSES}, {}, "classes has values of"),
        ({"m": CLASSES[:2]}, {}, "classes"),
        (CLASSES, {}, "classes must be a dict"),
        ({"m": CLASSES}, {"same": 0.5}, "same and classes cannot be combined"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            text_metrics.report({"m": STORIES}, quality=None, classes=classes, **more)
