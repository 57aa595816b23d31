"""probe.py: cleaning, asking a real server and a tiny real model, the report, and the questions about the method."""

import json
import re
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tests.chat_server import serve
from tests.conftest import ROOT
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands.probe import annotators, sensitivity
from text_metrics.commands.probe import main as probe
from text_metrics.commands.probe.cleaning import clean
from text_metrics.commands.probe.comparing import COMMONEST, PEOPLE, UNIFORM, Comparing
from text_metrics.commands.probe.report import make_report
from text_metrics.commands.probe.scoring import Scorer, draw, halve
from text_metrics.commands.shared.chat import Journal
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DATA = ROOT / "tests" / "data"
TARGETS, PREDICTIONS = DATA / "probeval_cfc_targets.jsonl", DATA / "probeval_cfc_predictions.json"
QUESTIONS = [
    {"id": "q1", "question": "What boils water?"},
    {"id": 2, "question": "Who does?", "sentence": "Someone boils water."},
    {"id": "q3", "question": "What boils water?"},
]


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command in this process; returns its exit code, stdout and stderr."""

    def run_once(*words):
        monkeypatch.setattr(sys, "argv", ["probe.py", *map(str, words)])
        code = probe.main()
        return code, *capsys.readouterr()

    return run_once


@pytest.fixture
def questions(tmp_path):
    return write_jsonl(tmp_path / "questions.jsonl", QUESTIONS)


# Cleaning.


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ("dog", "dog"),
        ("", ""),
        ("  \n ", ""),
        # End-of-text marks.
        ("disney<|endoftext|><|endoftext|><|endoftext|>", "disney"),
        ("disney<|endoftext|>Paris", "disney"),
        ("<|endoftext|>Paris", ""),
        ("a dog</s>", "dog"),
        ("a dog<|im_end|>\n<|im_start|>user", "dog"),
        ("a dog<|eot_id|>", "dog"),
        # The first line that is not blank; single spaces.
        ("\n\n a  hot\tdog \nmustard", "hot dog"),
        ("dog\r\ncat", "dog"),
        ("hot\xa0dog", "hot dog"),
        # Quotes and emphasis.
        ('"guard"', "guard"),
        ("“guard”", "guard"),
        ('"guard', "guard"),
        ('guard"', "guard"),
        ("'morning after pill'", "morning after pill"),
        ("'Tis to make hay", "'Tis to make hay"),
        ("dogs' and cats'", "dogs' and cats'"),
        ("'dogs' and 'cats'", "'dogs' and 'cats'"),
        ("**a dog**", "dog"),
        ("*passenger*", "passenger"),
        ("`dog`", "dog"),
        ("(a dog)", "dog"),
        ("(a) dog", "dog"),
        ("dog (or cat)", "dog (or cat)"),
        # Numbering, bullets, labels.
        ("1. the dog", "dog"),
        ("1) dog", "dog"),
        ("(12) dog", "dog"),
        ("b) dog", "dog"),
        ("- dog", "dog"),
        ("-copilot", "copilot"),
        ("-5 degrees", "-5 degrees"),
        ("• dog", "dog"),
        ("A: dog", "dog"),
        ("Answer: the dog.", "dog"),
        ("A:  A:", ""),
        ("3.5 miles", "3.5 miles"),
        ("8:00 am", "8:00 am"),
        ("2am", "2am"),
        ("10 dogs", "10 dogs"),
        # Articles.
        ("the dog", "dog"),
        ("The Dog", "Dog"),
        ("an ant", "ant"),
        ("a", "a"),
        ("theatre", "theatre"),
        ("another dog", "another dog"),
        # Stops.
        ("showtime.", "showtime"),
        ("no idea...", "no idea"),
        ("dog, ", "dog"),
        ("dog!", "dog"),
        ("really?", "really?"),
        ("8 p.m.", "8 p.m."),
        ("8 p.m..", "8 p.m."),
        ("8 p.m", "8 p.m."),
        ("in the U.S.", "in the U.S."),
        ("...", ""),
        # All at once.
        ('1. "The dog."<|endoftext|>', "dog"),
        ("A: \"an answer with a 'word'.\"", "answer with a 'word'"),
    ],
)
def test_cleaning(raw, answer):
    assert clean(raw) == answer


@given(st.text() | st.text(alphabet="aThe.1)(-*'\"`: \n<|>ndoftxs/[]EOS", max_size=30))
def test_cleaning_again_changes_nothing(raw):
    once = clean(raw)
    assert clean(once) == once
    assert once == once.strip()
    assert "\n" not in once


# Asking a chat model.


def test_a_chat_model_is_asked_and_its_answers_are_kept(run, questions, tmp_path):
    out = tmp_path / "answers.jsonl"
    shots = write_jsonl(
        tmp_path / "shots.jsonl", [{"sentence": "It rains.", "question": "Where?", "answer": "outside"}]
    )
    with serve(lambda question, number: f'1. "The answer {number}."') as server:
        command = ("ask", questions, out, "--model", "m", "--base-url", server.url, "--shots", shots)
        code, _, shown = run(*command, "--samples", "4")
        assert code == 0, shown
        assert "3 of 3 questions have all their 4 answers" in shown
        assert len(server.paid) == len(set(server.paid)) == 12
        lines = read_jsonl(out)
        assert [line["id"] for line in lines] == ["q1", "2", "q3"]
        assert lines[1]["question"] == "Someone boils water. Who does?"
        assert all(line["model"] == "m" and line["temperature"] == 1.0 for line in lines)
        # Equal questions are asked each for itself.
        raw = [answer for line in lines for answer in line["raw"]]
        assert sorted(raw) == sorted(f'1. "The answer {i}."' for i in range(12))
        assert [clean(answer) for answer in raw] == [answer for line in lines for answer in line["answers"]]
        messages = server.requests[0][0]["messages"]
        assert messages[0]["content"].endswith("\n\nIt rains. Where?")
        assert messages[1] == {"role": "assistant", "content": "outside"}
        assert messages[2]["content"] in ("What boils water?", "Someone boils water. Who does?")
        # More samples, or another question, cost only what is more.
        assert run(*command, "--samples", "5")[0] == 0
        assert len(server.requests) == 15
        write_jsonl(questions, [{"id": "q0", "question": "Why?"}, *QUESTIONS])
        assert run(*command, "--samples", "5")[0] == 0
        assert len(server.requests) == 20


def test_an_answer_with_half_a_surrogate_pair_is_kept_and_not_asked_for_again(run, questions, tmp_path):
    out, raw = tmp_path / "answers.jsonl", "The pot\ud83d, \u00fcber \U0001f600"
    with serve(lambda *_: raw) as server:
        for _ in range(2):
            code, _, shown = run("ask", questions, out, "--model", "m", "--samples", 2, "--base-url", server.url)
            assert code == 0
            assert len(server.paid) == 6
            assert "in 6 answers, unpaired surrogates are replaced by U+FFFD" in shown
    with Journal(tmp_path / "answers.jsonl.journal") as journal:
        assert [record["answer"] for own in journal.answers.values() for record in own] == [raw] * 6
    rows = read_jsonl(out)
    assert [row["raw"] for row in rows] == [["The pot\ufffd, \u00fcber \U0001f600"] * 2] * 3
    assert rows[0]["answers"] == ["pot\ufffd, \u00fcber \U0001f600"] * 2


def test_released_targets_are_asked_and_what_is_missing_is_counted(run, tmp_path):
    with serve(lambda question, number: "dog" if number < 4 else 401) as server:
        out = tmp_path / "answers.jsonl"
        command = ("ask", TARGETS, out, "--model", "m", "--base-url", server.url, "--samples", 2, "--workers", 1)
        code, _, shown = run(*command)
        assert code == 1
        assert "2 of 3 questions have all their 2 answers" in shown
    assert [(line["id"], line["answers"]) for line in read_jsonl(out)] == [("q1", ["dog"] * 2), ("q2", ["dog"] * 2)]
    assert read_jsonl(out)[0]["question"] == "what do you boil water in?"


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        ([{"id": "a"}], (), "line 1 must have a 'question'"),
        ([{"question": "Who?"}], (), "line 1 must have an 'id'"),
        ([{"id": "a", "question": "Who?"}] * 2, (), "line 2: question 'a' appears twice"),
        (QUESTIONS, ("--samples", 0), "--samples must be at least 1. Got 0"),
    ],
)
def test_what_cannot_be_asked_is_named(run, tmp_path, lines, options, message):
    path = write_jsonl(tmp_path / "questions.jsonl", lines)
    here = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    code, _, shown = run("ask", path, tmp_path / "out.jsonl", *here, *options)
    assert code == 2
    assert message in shown
    assert not (tmp_path / "out.jsonl").exists()


# The report.

CLUSTERS = {"kettle": ("kettle", "tea kettle"), "pot": ("pot", "big pot"), "cup": ("cup",), "spoon": ("spoon", "ladle")}
SHARES = (0.5, 0.25, 0.15, 0.1)


def people(rng, n):
    """Draw answers of people: counts of texts."""
    clusters = rng.choice(len(CLUSTERS), n, p=SHARES)
    texts = list(CLUSTERS.values())
    return Counter(str(rng.choice(texts[i])) for i in clusters)


@pytest.fixture(scope="module")
def references():
    rng = np.random.default_rng(1)
    label = {text: name for name, texts in CLUSTERS.items() for text in texts}
    found = []
    for i in range(12):
        answers = [{"text": text, "count": n, "cluster": label[text]} for text, n in people(rng, 60).items()]
        found.append({"id": f"q{i}", "question": "?", "slot": ("Arg0", "Time")[i % 2], "answers": answers})
    return found


@pytest.fixture(scope="module")
def files():
    """A model like people, one that is always wrong, and one that repeats itself; with raw marks of models."""
    rng = np.random.default_rng(2)
    return {
        "good": {f"q{i}": Counter({f"The {text}.": n for text, n in people(rng, 40).items()}) for i in range(12)},
        "wrong": {f"q{i}": Counter({"an elephant<|endoftext|>": 30}) for i in range(12)},
        "stuck": {f"q{i}": Counter({"kettle": 50}) for i in range(11)} | {"q99": Counter({"pot": 3})},
    }


PIPELINE = ProbevalSettings()


@pytest.fixture(scope="module")
def report(references, files):
    return make_report(references, files, None, PIPELINE, Comparing(rounds=5))


def test_rows_are_what_the_metric_computes(report, references, files, load):
    rows = {row["name"]: row for row in report["rows"]}
    probeval = load("probeval")
    for name, answers in files.items():
        cleaned = {key: {clean(text): n for text, n in own.items()} for key, own in answers.items()}
        expected = probeval.compute(
            predictions=cleaned, references=references, unknown="skip", missing="skip", confidence=0.95
        )
        row = rows[name]
        assert row["probeval"] == pytest.approx(expected["probeval"], abs=1e-6)
        assert row["interval"] == pytest.approx(expected["confidence_interval"], abs=1e-6)
        assert list(row["scores"].values()) == pytest.approx(expected["scores"], abs=1e-6)
        assert (row["coverage"], row["wrong_rate"]) == pytest.approx((expected["coverage"], expected["wrong_rate"]))
        entropies = expected["distribution_entropy"]
        assert (row["entropy"], row["gold_entropy"]) == pytest.approx((entropies["model"], entropies["gold"]))
        assert row["skipped"] == expected["skipped"]
        assert row["n_answers"] == [min(expected["n_answers"]), max(expected["n_answers"])]
        assert report["signature"].rpartition("|version")[0] in expected["signature"]
    assert rows["stuck"]["skipped"] == {"unknown": ["q99"], "missing": ["q11"]}
    slots = rows["good"]["by_slot"]
    assert [slots[slot]["n"] for slot in ("Arg0", "Time")] == [6, 6]
    assert np.mean([slots[slot]["probeval"] for slot in slots]) == pytest.approx(rows["good"]["probeval"])
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_trivial_rules_are_rows(report, references, load):
    rows = {row["name"]: row for row in report["rows"]}
    assert [row["probeval"] for row in report["rows"]] == sorted(row["probeval"] for row in report["rows"])
    stuck = load("probeval").compute(
        predictions={row["id"]: {"kettle": sum(a["count"] for a in row["answers"])} for row in references},
        references=references,
    )
    assert rows[COMMONEST]["probeval"] == pytest.approx(stuck["probeval"], abs=1e-6)
    assert rows[UNIFORM]["coverage"] == 1
    assert rows[COMMONEST]["coverage"] == pytest.approx(stuck["coverage"])
    assert rows["good"]["probeval"] < rows[UNIFORM]["probeval"] < rows["wrong"]["probeval"]


def test_a_model_like_people_is_as_good_as_people(report):
    against = {row["name"]: row for row in report["against_people"]}
    assert against["good"]["p"] > 0.01
    assert abs(against["good"]["difference"]) < 0.1
    for name in ("wrong", "stuck", COMMONEST):
        assert against[name]["p"] < 0.01
        assert against[name]["interval"][0] > 0
    assert against["stuck"]["n"] == 11
    # Each answer once, the frequencies of people are gone too.
    once = {row["name"]: row for row in report["against_people_once"]}
    assert once["good"]["people"] > against["good"]["people"]
    slots = against["good"]["by_slot"]
    assert np.mean([pair[0] for pair in slots.values()]) == pytest.approx(against["good"]["own"])


def test_pairs_of_models(report):
    found = {(row["a"], row["b"]): row for row in report["pairs"]}
    assert set(found) == {("good", "wrong"), ("good", "stuck"), ("wrong", "stuck")}
    pair = found["good", "wrong"]
    assert pair["difference"] == pytest.approx(pair["a_mean"] - pair["b_mean"])
    assert pair["difference"] < 0
    assert pair["interval"][1] < 0
    assert 0 < pair["p"] <= pair["p_adjusted"] < 0.01


def test_a_second_sample_that_is_the_first_is_found_out(references, files):
    same = {row["id"]: Counter({a["text"]: a["count"] for a in row["answers"]}) for row in references}
    same["q0"]["thanks"] = 1
    found = make_report(references, files, same, PIPELINE, Comparing(rounds=2))
    assert found["second_sample"]["same"]
    assert found["second_sample"]["overlap"] > 0.99 > found["second_sample"]["expected"]
    assert next(row for row in found["rows"] if row["name"] == PEOPLE)["probeval"] < 0.01
    assert all(PEOPLE not in (row["a"], row["b"]) for row in found["pairs"])
    without = make_report(references, files, None, PIPELINE, Comparing(rounds=2))
    assert found["against_people"] == without["against_people"]


def test_a_second_sample_of_people_serves_as_people(references, files):
    rng = np.random.default_rng(5)
    second = {row["id"]: people(rng, 40) for row in references}
    found = make_report(references, files, second, PIPELINE, Comparing(rounds=3))
    assert not found["second_sample"]["same"]
    row = next(row for row in found["rows"] if row["name"] == PEOPLE)
    against = next(row for row in found["against_people"] if row["name"] == "good")
    # Both gave 40 answers: nothing is drawn.
    assert against["people"] == pytest.approx(row["probeval"])
    assert ("stuck", PEOPLE) in {(row["a"], row["b"]) for row in found["pairs"]}


def test_samples_are_drawn_without_replacement(rng):
    counts = np.array([5, 0, 3, 2])
    for _ in range(20):
        drawn = draw(counts, 4, rng)
        assert drawn.sum() == 4
        assert (drawn <= counts).all()
    assert (draw(counts, 10, rng) == counts).all()
    assert (draw(counts, 99, rng) == counts).all()


def test_halves_are_all_of_people(references, rng):
    scorer = Scorer(references, {}, ProbevalSettings())
    question = scorer.questions["q0"]
    for _ in range(10):
        half, rest = halve(question, rng)
        assert half.gold_counts.sum() == 30
        assert sum(rest.values()) == 30
        assert (half.gold_counts.sum(axis=0) > 0).all()
        together = Counter(rest)
        for text, row in zip(half.gold, half.gold_counts, strict=True):
            together[text] += int(row.sum())
        assert together == dict(zip(question.gold, question.gold_counts.sum(axis=1), strict=True))


def test_the_report_is_written(run, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- probe report: start -->\nSTALE\n<!-- probe report: end -->\n", encoding="utf-8")
    names = {"json": "r.json", "html": "r.html", "markdown": "r.md", "plot": "r.svg", "write": "page.md"}
    options = [word for option, name in names.items() for word in (f"--{option}", tmp_path / name)]
    given = write_jsonl(tmp_path / "b|x.jsonl", [{"id": "q1", "answers": ["a pot", "pot"]}, {"q7": ["x"]}])
    code, shown, said = run("report", TARGETS, f"a=={PREDICTIONS}".replace("==", "="), given, *options, "--rounds", 2)
    assert code == 0, said
    assert "b|x: unknown: q7" in said
    assert "b|x: missing: q2" in said
    assert "| b\\|x | 1 | 2 | " in shown
    assert shown.strip() == (tmp_path / "r.md").read_text(encoding="utf-8").split("\n", 2)[2].strip()
    assert shown.strip() in page.read_text(encoding="utf-8")
    assert "STALE" not in page.read_text(encoding="utf-8")
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "data:image/svg+xml;base64," in html
    assert "<td>a</td>" in html
    assert (tmp_path / "r.svg").read_text(encoding="utf-8").startswith("<svg")
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in found["rows"]} == {"a", "b|x", UNIFORM, COMMONEST}
    first = (tmp_path / "r.json").read_bytes(), (tmp_path / "r.svg").read_bytes()
    assert run("report", TARGETS, f"a={PREDICTIONS}", given, *options, "--rounds", 2)[0] == 0
    assert ((tmp_path / "r.json").read_bytes(), (tmp_path / "r.svg").read_bytes()) == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((TARGETS, "a.jsonl"), "a.jsonl cannot be read"),
        ((TARGETS, f"a={PREDICTIONS}", f"a={PREDICTIONS}"), "each file of answers needs a name of its own. Got 'a'"),
        ((TARGETS, f"people={PREDICTIONS}"), "Got 'people'"),
        (
            (TARGETS, PREDICTIONS, "--setting", "labels=3"),
            "--setting labels: this command has no such setting",
        ),
        ((TARGETS, PREDICTIONS, "--setting", "matcher=cosin"), "matcher must be one of"),
        ((TARGETS, PREDICTIONS, "--setting", "matcher=human"), "matcher='human' needs people's labels"),
        ((TARGETS, PREDICTIONS, "--rounds", 0), "--rounds must be at least 1. Got 0"),
        ((TARGETS, PREDICTIONS, "--confidence", 95), "confidence must be between 0 and 1"),
        ((PREDICTIONS, PREDICTIONS), "line 1 must have 'id' and 'answers', or be a released record"),
        ((TARGETS, TARGETS), "answer 'raw' has no 'count'"),
    ],
)
def test_what_cannot_be_reported_is_named(run, words, message):
    code, _, shown = run("report", *words)
    assert code == 2
    assert message in shown


def test_a_file_without_a_known_question_is_named(run, tmp_path):
    given = write_jsonl(tmp_path / "a.jsonl", [{"q7": ["x"]}])
    assert "a: none of its questions is among the targets: ['q7']" in run("report", TARGETS, given)[2]


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("answers", [[], [""], [" \n", "\u3000"], {" ": 3}])
def test_a_file_of_blank_answers_is_named(run, tmp_path, answers, raw):
    given = write_jsonl(tmp_path / "a.jsonl", [{"id": name, "answers": answers} for name in ("q1", "q2")])
    for words in ([given], [PREDICTIONS, given], [f"a={PREDICTIONS}", "--people", given]):
        code, shown, said = run("report", TARGETS, *words, "--rounds", 2, *["--raw"] * raw)
        assert code == 2
        assert re.search("(a|people): none of its 2 questions has an answer that is not blank.", said)
        assert not shown


def test_a_file_of_no_question_is_named(run, tmp_path):
    (tmp_path / "a.json").write_text("{}")
    assert "a: none of its 0 questions has an answer" in run("report", TARGETS, tmp_path / "a.json")[2]


def test_answers_that_are_empty_after_cleaning_are_blank(run, tmp_path):
    given = write_jsonl(tmp_path / "a.jsonl", [{"id": "q1", "answers": ["<|endoftext|>Paris", '""']}])
    assert "not blank" in run("report", TARGETS, given)[2]
    assert run("report", TARGETS, given, "--raw", "--rounds", 2)[0] == 0


def test_blank_questions_are_left_out_and_other_blank_answers_are_wrong(run, tmp_path):
    rows = [{"id": "q1", "answers": ["pot", " ", " "]}, {"id": "q2", "answers": [" "]}]
    code, _, said = run(
        *("report", TARGETS, write_jsonl(tmp_path / "a.jsonl", rows), "--rounds", 2, "--json", tmp_path / "r.json")
    )
    assert code == 0
    assert "a: missing: q2" in said
    row = next(row for row in json.loads((tmp_path / "r.json").read_text())["rows"] if row["name"] == "a")
    assert (row["n_questions"], row["n_answers"]) == (1, [3, 3])
    assert row["wrong_rate"] == pytest.approx(2 / 3)


def test_files_without_a_question_in_common_are_named(run, tmp_path):
    first, second, people = (
        write_jsonl(tmp_path / f"{name}.jsonl", [{"id": question, "answers": ["pot", "pot", "kettle"]}])
        for name, question in (("one", "q1"), ("two", "q2"), ("second", "q2"))
    )
    code, _, said = run("report", TARGETS, first, second, "--rounds", 2)
    assert code == 0
    assert "one and two: no question in common" in said
    code, _, said = run("report", TARGETS, first, second, "--people", people, "--rounds", 2)
    assert code == 0
    assert "one: no question in common with the second sample of people" in said
    assert "two: no question" not in said.replace("one and two", "")


# How many people?


def test_a_tilted_distribution_is_as_far_away_as_it_should_be(rng):
    for _ in range(50):
        p = rng.dirichlet(np.ones(rng.integers(2, 9))) * 0.98 + 0.001
        p /= p.sum()
        wanted = float(rng.uniform(0.01, 1))
        q = annotators.tilt(p, rng.normal(size=len(p)), wanted)
        assert q.sum() == pytest.approx(1)
        assert kl_divergence(p, q) == pytest.approx(wanted, rel=1e-6)


def test_the_error_is_that_of_the_exact_test(rng):
    """Of two outcomes, the most powerful test counts one of them: its error is the binomial distribution's."""
    p, q, m, alpha = 0.5, 0.7, 30, 0.05
    critical = next(k for k in range(m + 1) if binom.sf(k, m, p) <= alpha)
    share = (alpha - binom.sf(critical, m, p)) / binom.pmf(critical, m, p)
    exact = binom.cdf(critical, m, q) - share * binom.pmf(critical, m, q)
    testing = annotators.Testing(alpha, draws=40_000)
    found = annotators.second_kind(np.array([1 - p, p]), np.array([1 - q, q]), m, testing, rng)
    assert found == pytest.approx(exact, abs=0.02)
    # What is equal cannot be told apart.
    same = np.array([0.2, 0.3, 0.5])
    assert annotators.second_kind(same, same, m, testing, rng) == pytest.approx(1 - alpha)


def test_more_people_are_needed_for_less_distance(rng):
    p = [np.array([0.5, 0.3, 0.2])]
    testing = annotators.Testing(draws=500, directions=3)
    needed = [annotators.needed(p, divergence, 0.1, testing, rng) for divergence in (0.05, 0.2, 0.8)]
    assert needed[0] > needed[1] > needed[2] > 5
    curve = [annotators.errors(p, 0.2, m, testing, rng) for m in (5, 20, 80)]
    assert curve[0] > curve[1] > curve[2]


def test_annotators_are_reported(run, tmp_path, references):
    targets = write_jsonl(tmp_path / "targets.jsonl", references[:3])
    page = tmp_path / "page.md"
    page.write_text("<!-- probe annotators: start -->\n<!-- probe annotators: end -->\n", encoding="utf-8")
    options = ("--json", tmp_path / "a.json", "--plot", tmp_path / "a.svg", "--write", page)
    words = ("--sizes", 5, 20, 80, "--divergences", 0.2, 1, "--draws", 20)
    code, shown, said = run("annotators", targets, *words, *options)
    assert code == 0, said
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    means = [one["mean"] for one in found["smoothed"]]
    assert means == sorted(means, reverse=True)
    assert all(one["low"] <= one["mean"] <= one["high"] for one in found["smoothed"])
    assert found["needed"][0] > found["needed"][1]
    assert shown.strip() in page.read_text(encoding="utf-8")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "--alpha must be between 0 and 1. Got 2.0" in run("annotators", targets, "--alpha", 2)[2]


# How sensitive?


def test_changes_are_what_they_are_called():
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    assert sensitivity.drop(shares, 0).tolist() == pytest.approx([0, 0.6, 0.4, 0])
    assert sensitivity.swap(shares, 1).tolist() == [0.5, 0.2, 0.3, 0.0]
    assert sensitivity.to_wrong(shares, 0.5).tolist() == pytest.approx([0.25, 0.15, 0.1, 0.5])
    assert sensitivity.to_uniform(shares, 1.0).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert sensitivity.to_first(shares, 0.5).tolist() == pytest.approx([0.75, 0.15, 0.1, 0])
    for change in sensitivity.CHANGES:
        for level in change.levels:
            size = max(change.clusters, 2)
            moved = change.apply(np.append(np.full(size, 1 / size), 0.0), level)
            assert moved.sum() == pytest.approx(1), change.title
            assert (moved >= 0).all()


def test_scores_respond(references):
    scorer = Scorer(references, {}, ProbevalSettings())
    found = sensitivity.measure(scorer)
    changes = {change["title"]: change for change in found["changes"]}
    # The questions have four clusters: too few for five ranks.
    assert set(changes) == {"to wrong answers", "to the uniform distribution", "to the commonest cluster"}
    for change in changes.values():
        curve = change["curves"]["probeval"]
        assert curve[0] == pytest.approx(0, abs=1e-12)
        assert curve == sorted(curve)
        assert all(values[0] == 1 for name, values in change["curves"].items() if name != "probeval")
    wrong = changes["to wrong answers"]["curves"]
    assert wrong["top-1 accuracy"][-1] == 0
    assert wrong["ProtoQA dcg"][-1] == 0
    # ProtoQA's scores see ranks only: not the way to the uniform distribution.
    assert changes["to the uniform distribution"]["curves"]["ProtoQA max_answers_3"][5] == 1


def test_sensitivity_is_reported(run, tmp_path):
    label = [f"c{i}" for i in range(6)]
    answers = [{"text": word, "count": 6 - i, "cluster": label[i]} for i, word in enumerate("abcdef")]
    targets = write_jsonl(tmp_path / "targets.jsonl", [{"id": "q", "answers": answers}])
    page = tmp_path / "page.md"
    page.write_text("<!-- probe sensitivity: start -->\n<!-- probe sensitivity: end -->\n", encoding="utf-8")
    options = ("--json", tmp_path / "s.json", "--plot", tmp_path / "s.svg", "--write", page)
    code, shown, said = run("sensitivity", targets, *options)
    assert code == 0, said
    assert "A cluster dropped, 1 questions:" in shown
    found = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    dropped = found["changes"][0]["curves"]
    assert dropped["probeval"] == sorted(dropped["probeval"], reverse=True)
    assert dropped["top-1 accuracy"] == [0, 1, 1, 1, 1]
    assert dropped["ProtoQA max_answers_1"][0] == pytest.approx(5 / 6)
    swapped = found["changes"][1]["curves"]
    assert swapped["ProtoQA max_answers_all"] == [1] * 4
    assert swapped["ProtoQA dcg"][0] < 1
    assert (tmp_path / "s.svg").read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.slow
def test_released_test_set(run, shared_data, tmp_path):
    folder = shared_data / "data" / "probeval" / "cfc_test"
    model = folder / "models" / "0715modelft_grad8lr5e-06sample200_temp1.0.jsonl"
    command = ("report", folder / "targets.jsonl", f"tuned={model}", "--people", folder / "human_predictions.json")
    code, shown, said = run(*command, "--rounds", 3, "--json", tmp_path / "r.json")
    assert code == 0, said
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["second_sample"]["same"]
    assert [row["distinct"] for row in found["rows"] if row["name"] == "tuned"] == [True]
    assert "no answer to a question comes twice" in shown
    assert "Location (16)" in shown
