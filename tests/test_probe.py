"""text-metrics probe: cleaning, asking a real server, the report, and the questions about the method."""

import json
import sys
from argparse import Namespace
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
from text_metrics.commands.probe import report as probe_report
from text_metrics.commands.probe.cleaning import clean
from text_metrics.commands.probe.comparing import COMMONEST, UNIFORM, Scorer, draw, halve
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DATA = ROOT / "tests" / "data"
TARGETS, PREDICTIONS = DATA / "probeval_cfc_targets.jsonl", DATA / "probeval_cfc_predictions.json"
SETTINGS = ProbevalSettings()
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


# Cleaning.

# An answer, and raw outputs that give it.
CLEANED = [
    ("", "", "  \n ", "<|endoftext|>Paris", "A:  A:", "..."),
    ("disney", "disney<|endoftext|><|endoftext|><|endoftext|>", "disney<|endoftext|>Paris"),
    ("dog", "dog", "a dog</s>", "a dog<|im_end|>\n<|im_start|>user", "a dog<|eot_id|>", "dog\r\ncat", "1. the dog"),
    ("dog", "1) dog", "(12) dog", "b) dog", "- dog", "• dog", "A: dog", "Answer: the dog.", "the dog", "dog, ", "dog!"),
    ("dog", "**a dog**", "`dog`", "(a dog)", "(a) dog", '1. "The dog."<|endoftext|>'),
    ("hot dog", "\n\n a  hot\tdog \nmustard", "hot\xa0dog"),
    ("guard", '"guard"', "“guard”", '"guard', 'guard"'),
    ("morning after pill", "'morning after pill'"),
    ("passenger", "*passenger*"),
    ("copilot", "-copilot"),
    ("ant", "an ant"),
    ("Dog", "The Dog"),
    ("showtime", "showtime."),
    ("no idea", "no idea..."),
    ("8 p.m.", "8 p.m.", "8 p.m..", "8 p.m"),
    ("in the U.S.", "in the U.S."),
    ("answer with a 'word'", "A: \"an answer with a 'word'.\""),
]
UNCHANGED = ["'Tis to make hay", "dogs' and cats'", "'dogs' and 'cats'", "dog (or cat)", "-5 degrees", "2am"]
UNCHANGED += ["3.5 miles", "8:00 am", "10 dogs", "a", "theatre", "another dog", "really?"]


def test_cleaning():
    for answer, *raws in [*CLEANED, *([text, text] for text in UNCHANGED)]:
        assert [clean(raw) for raw in raws] == [answer] * len(raws)


@given(st.text() | st.text(alphabet="aThe.1)(-*'\"`: \n<|>ndoftxs/[]EOS", max_size=30))
def test_cleaning_again_changes_nothing(raw):
    once = clean(raw)
    assert clean(once) == once
    assert once == once.strip()
    assert "\n" not in once


# Asking a chat model.


def test_a_chat_model_is_asked_and_its_answers_are_kept(run, tmp_path):
    questions, out = write_jsonl(tmp_path / "questions.jsonl", QUESTIONS), tmp_path / "answers.jsonl"
    shot = {"sentence": "It rains.", "question": "Where?", "answer": "outside"}
    shots = write_jsonl(tmp_path / "shots.jsonl", [shot])
    with serve(lambda question, number: f'1. "The answer {number}."') as server:
        command = ("ask", questions, "--out", out, "--model", "m", "--base-url", server.url, "--shots", shots)
        code, _, shown = run(*command, "--samples", "4")
        assert code == 0, shown
        assert "3 of 3 questions have all their 4 answers" in shown
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


def test_released_targets_are_asked_and_bad_answers_are_named(run, tmp_path):
    out = tmp_path / "answers.jsonl"
    with serve(lambda question, number: "dog" if "boil" in question else "half \ud83d") as server:
        options = ("--model", "m", "--base-url", server.url, "--samples", 2, "--attempts", 2)
        code, _, shown = run("ask", TARGETS, "--out", out, *options)
        assert code == 1
        assert shown.count("question 'q2': none of 2 answers can be parsed") == 2
        assert "1 of 3 questions have all their 2 answers" in shown
    (line,) = read_jsonl(out)
    assert (line["id"], line["question"], line["answers"]) == ("q1", "what do you boil water in?", ["dog"] * 2)


# The report.

CLUSTERS = {"kettle": ("kettle", "tea kettle"), "pot": ("pot", "big pot"), "cup": ("cup",), "spoon": ("spoon", "ladle")}
SHARES = (0.5, 0.25, 0.15, 0.1)


def people(rng, n):
    """Draw answers of people: counts of texts."""
    texts = list(CLUSTERS.values())
    return Counter(str(rng.choice(texts[i])) for i in rng.choice(len(CLUSTERS), n, p=SHARES))


@pytest.fixture(scope="module")
def references():
    rng = np.random.default_rng(1)
    label = {text: name for name, texts in CLUSTERS.items() for text in texts}
    answers = [
        [{"text": text, "count": n, "cluster": label[text]} for text, n in people(rng, 60).items()] for _ in range(12)
    ]
    return [{"id": f"q{i}", "question": "?", "answers": given} for i, given in enumerate(answers)]


@pytest.fixture(scope="module")
def files():
    """A model like people, one that is always wrong, and one that repeats itself; with raw marks of models."""
    rng = np.random.default_rng(2)
    return {
        "good": {f"q{i}": {f"The {text}.": n for text, n in people(rng, 40).items()} for i in range(12)},
        "wrong": {f"q{i}": {"an elephant<|endoftext|>": 30} for i in range(12)},
        "stuck": {f"q{i}": {"kettle": 50} for i in range(11)} | {"q99": {"pot": 3}},
    }


@pytest.fixture(scope="module")
def report(references, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, answers in files.items():
        (folder / f"{name}.json").write_text(json.dumps(answers), encoding="utf-8")
    answers = [(name, folder / f"{name}.json") for name in files]
    arguments = Namespace(answers=answers, raw=False, rounds=5, seed=0, confidence=0.95)
    return probe_report.measure(arguments, references, SETTINGS)


def by_name(rows):
    return {row["name"]: row for row in rows}


def test_rows_are_what_the_metric_computes(report, references, files, load):
    rows, probeval = by_name(report["rows"]), load("probeval")
    for name, answers in files.items():
        cleaned = {key: {clean(text): n for text, n in own.items()} for key, own in answers.items()}
        options = {"unknown": "skip", "missing": "skip", "confidence": 0.95}
        expected = probeval.compute(predictions=cleaned, references=references, **options)
        for key in ("probeval", "scores", "coverage", "wrong_rate", "distribution_entropy", "n_answers"):
            assert rows[name][key] == pytest.approx(expected[key], abs=1e-6)
        assert rows[name]["interval"] == pytest.approx(expected["confidence_interval"], abs=1e-6)
        assert report["signature"].rpartition("|version")[0] in expected["signature"]
    assert rows["stuck"]["questions"] == [f"q{i}" for i in range(11)]
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_trivial_rules_are_rows(report, references, load):
    rows = by_name(report["rows"])
    assert [row["probeval"] for row in report["rows"]] == sorted(row["probeval"] for row in report["rows"])
    most = {row["id"]: {"kettle": sum(a["count"] for a in row["answers"])} for row in references}
    stuck = load("probeval").compute(predictions=most, references=references)
    assert rows[COMMONEST]["probeval"] == pytest.approx(stuck["probeval"], abs=1e-6)
    assert rows[COMMONEST]["coverage"] == pytest.approx(stuck["coverage"])
    assert rows[UNIFORM]["coverage"] == 1
    assert rows["good"]["probeval"] < rows[UNIFORM]["probeval"] < rows["wrong"]["probeval"]


def test_a_model_like_people_is_as_good_as_people(report):
    against, once = by_name(report["against_people"]), by_name(report["against_people_once"])
    assert against["good"]["p"] > 0.01
    assert abs(against["good"]["difference"]) < 0.1
    for name in ("wrong", "stuck", COMMONEST):
        assert against[name]["p"] < 0.01
        assert against[name]["interval"][0] > 0
    assert against["stuck"]["n"] == 11
    # Each answer once, the frequencies of people are gone too.
    assert once["good"]["people"] > against["good"]["people"]


def test_samples_are_drawn_without_replacement(rng):
    counts = np.array([5, 0, 3, 2])
    drawn = [draw(counts, 4, rng) for _ in range(20)]
    assert all(sample.sum() == 4 and (sample <= counts).all() for sample in drawn)
    assert all((draw(counts, size, rng) == counts).all() for size in (10, 99))


def test_halves_are_all_of_people(references, rng):
    question = Scorer(references, {}, SETTINGS).questions["q0"]
    for _ in range(10):
        half, rest = halve(question, rng)
        assert half.gold_counts.sum() == sum(rest.values()) == 30
        assert (half.gold_counts.sum(axis=0) > 0).all()
        together = Counter(rest) + Counter(dict(zip(half.gold, half.gold_counts.sum(axis=1).astype(int), strict=True)))
        assert together == dict(zip(question.gold, question.gold_counts.sum(axis=1), strict=True))


def test_the_report_is_written_and_names_what_it_leaves_out(run, tmp_path):
    rows = [{"id": "q1", "answers": ["a pot", " ", " "]}, {"id": "q2", "answers": [" "]}, {"q7": ["x"]}]
    given = write_jsonl(tmp_path / "b|x.jsonl", rows)
    command = ("report", TARGETS, f"a={PREDICTIONS}", given, "--rounds", 2, "--out", tmp_path / "r.json")
    code, shown, said = run(*command)
    assert code == 0, said
    assert "b|x: unknown: q7" in said
    assert "b|x: missing: q2, q3" in said
    assert "| b\\|x | 1 | 3 | " in shown
    first = (tmp_path / "r.json").read_bytes()
    found = by_name(json.loads(first)["rows"])
    assert set(found) == {"a", "b|x", UNIFORM, COMMONEST}
    # A blank answer beside others is wrong.
    assert found["b|x"]["wrong_rate"] == pytest.approx(2 / 3)
    assert run(*command)[0] == 0
    assert (tmp_path / "r.json").read_bytes() == first


REPORT = ("report", TARGETS, f"a={PREDICTIONS}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ask", [{"id": "a"}]), "line 1 must have a 'question'"),
        (("ask", [{"question": "Who?"}]), "line 1 must have an 'id'"),
        (("ask", [{"id": "a", "question": "Who?"}] * 2), "line 2: question 'a' appears twice"),
        (("ask", QUESTIONS, "--samples", 0), "--samples"),
        (("report", TARGETS, "a.jsonl"), "a.jsonl cannot be read"),
        (("report", PREDICTIONS, PREDICTIONS), "line 1 must have an 'id'"),
        (("report", TARGETS, TARGETS), "answer 'raw' has no 'count'"),
        (("report", TARGETS, [{"q7": ["x"]}]), "questions.jsonl: "),
        ((*REPORT, f"a={PREDICTIONS}"), "Got 'a'"),
        ((*REPORT, f"{UNIFORM}={PREDICTIONS}"), f"Got '{UNIFORM}'"),
        ((*REPORT, "--setting", "labels=3"), "--setting labels"),
        ((*REPORT, "--setting", "matcher=cosin"), "matcher must be one of"),
        ((*REPORT, "--setting", "matcher=human"), "matcher='human'"),
        ((*REPORT, "--rounds", 0), "--rounds"),
        ((*REPORT, "--confidence", 95), "confidence"),
        (("annotators", TARGETS, "--sizes", 0), "--sizes"),
    ],
)
def test_what_cannot_be_done_is_named(run, tmp_path, words, message):
    path, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    words = [write_jsonl(path, word) if isinstance(word, list) else word for word in words]
    server = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1") if words[0] == "ask" else ()
    code, shown, said = run(*words, *server, "--out", out)
    assert (code, shown) == (2, "")
    assert message in said
    assert not out.exists()


@pytest.mark.parametrize("answers", [[], [" \n", "\u3000"], {" ": 3}, ["<|endoftext|>Paris", '""']])
def test_a_file_of_blank_answers_is_named(run, tmp_path, answers):
    given = write_jsonl(tmp_path / "a.jsonl", [{"id": name, "answers": answers} for name in ("q1", "q2")])
    code, shown, said = run("report", TARGETS, f"b={PREDICTIONS}", given)
    assert code == 2
    assert "a: none of its 2 questions has an answer that is not blank" in said
    assert not shown
    assert run("report", TARGETS, given, "--raw", "--rounds", 1)[0] == (0 if '""' in answers else 2)


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
    p, q, m, alpha = 0.5, 0.7, 30, annotators.ALPHA
    critical = next(k for k in range(m + 1) if binom.sf(k, m, p) <= alpha)
    share = (alpha - binom.sf(critical, m, p)) / binom.pmf(critical, m, p)
    exact = binom.cdf(critical, m, q) - share * binom.pmf(critical, m, q)
    found = annotators.second_kind(np.array([1 - p, p]), np.array([1 - q, q]), m, rng, 40_000)
    assert found == pytest.approx(exact, abs=0.02)
    # What is equal cannot be told apart.
    same = np.array([0.2, 0.3, 0.5])
    assert annotators.second_kind(same, same, m, rng, 40_000) == pytest.approx(1 - alpha)


def test_annotators_are_reported(run, tmp_path, references):
    targets = write_jsonl(tmp_path / "targets.jsonl", references[:3])
    words = ("--sizes", 5, 20, 80, "--divergences", 0.2, 1, "--out", tmp_path / "a.json")
    code, shown, said = run("annotators", targets, *words)
    assert code == 0, said
    found = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert found["smoothed"] == sorted(found["smoothed"], reverse=True)
    # Less distance needs more people.
    assert found["needed"][0] > found["needed"][1] > 5
    assert found["errors"][0] == sorted(found["errors"][0], reverse=True)
    assert "| 0.2 nats |" in shown


# How sensitive?


def test_changes_are_what_they_are_called():
    shares = np.array([0.5, 0.3, 0.2, 0.0])
    changes = {title: apply for title, (apply, *_) in sensitivity.CHANGES.items()}
    for title, level, expected in [
        ("a cluster dropped", 1, [0, 0.6, 0.4, 0]),
        ("two ranks swapped", 2, [0.5, 0.2, 0.3, 0.0]),
        ("to wrong answers", 0.5, [0.25, 0.15, 0.1, 0.5]),
        ("to the uniform distribution", 1.0, [1 / 3, 1 / 3, 1 / 3, 0]),
        ("to the commonest cluster", 0.5, [0.75, 0.15, 0.1, 0]),
    ]:
        assert changes[title](shares, level).tolist() == pytest.approx(expected), title


def test_scores_respond(run, references, tmp_path):
    targets = write_jsonl(tmp_path / "targets.jsonl", references)
    code, shown, said = run("sensitivity", targets, "--out", tmp_path / "s.json")
    assert code == 0, said
    changes = {change["title"]: change for change in json.loads((tmp_path / "s.json").read_text())["changes"]}
    # The questions have four clusters: too few for five ranks.
    assert set(changes) == {"to wrong answers", "to the uniform distribution", "to the commonest cluster"}
    for change in changes.values():
        curve = change["curves"]["probeval"]
        assert curve[0] == pytest.approx(0, abs=1e-12)
        assert curve == sorted(curve)
        assert all(values[0] == 1 for name, values in change["curves"].items() if name != "probeval")
    wrong = changes["to wrong answers"]["curves"]
    assert wrong["top-1 accuracy"][-1] == wrong["ProtoQA dcg"][-1] == 0
    # ProtoQA's scores see ranks only: not the way to the uniform distribution.
    assert changes["to the uniform distribution"]["curves"]["ProtoQA max_answers_3"][5] == 1
    assert "### To wrong answers" in shown


def test_ranks_are_dropped_and_swapped():
    answers = [{"text": word, "count": 6 - i, "cluster": f"c{i}"} for i, word in enumerate("abcdef")]
    found = sensitivity.measure(Namespace(), [{"id": "q", "answers": answers}], SETTINGS)["changes"]
    dropped, swapped = (change["curves"] for change in found[:2])
    assert found[0]["levels"] == [1, 2, 3, 4, 5]
    assert dropped["probeval"] == sorted(dropped["probeval"], reverse=True)
    assert dropped["top-1 accuracy"] == [0, 1, 1, 1, 1]
    assert dropped["ProtoQA max_answers_1"][0] == pytest.approx(5 / 6)
    assert swapped["ProtoQA max_answers_all"] == [1] * 4
    assert swapped["ProtoQA dcg"][0] < 1


@pytest.mark.slow
def test_released_test_set(run, shared_data, tmp_path):
    folder = shared_data / "data" / "probeval" / "cfc_test"
    model = folder / "models" / "0715modelft_grad8lr5e-06sample200_temp1.0.jsonl"
    command = ("report", folder / "targets.jsonl", f"tuned={model}", f"others={folder / 'human_predictions.json'}")
    code, shown, said = run(*command, "--setting", "clustering=soft", "--rounds", 1, "--out", tmp_path / "r.json")
    assert code == 0, said
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert found["distinct"] == ["tuned"]
    assert "No answer of “tuned” to a question comes twice" in shown
    # Those of results/probe-models.csv: the released second sample of people is the first one.
    assert by_name(found["rows"])["others"]["probeval"] == pytest.approx(0.001, abs=0.0005)
    assert by_name(found["rows"])["tuned"]["probeval"] == pytest.approx(0.827, abs=0.0005)
