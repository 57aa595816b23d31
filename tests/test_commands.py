"""Files that are broken, empty, wrong or huge: every command ends in one sentence that names them, and exit code 2."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from scripts.reports.gruen import read_ratings
from scripts.training.gruen.corpus import read_cola
from tests.commands import WORKSHOP, run_command
from tests.conftest import SETS
from text_metrics import __main__ as cli
from text_metrics.commands.shared import files as _files

OWN_TOOLS = ("tooling.build_space", "tooling.cards", "tooling.push_space", "tooling.screenshots", "tooling.vendor")
PAIR = {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "src": "x"}
PEOPLE = {**PAIR, "human_diversity": [0, 1, 1]}
TARGET = {
    "metadata": {"id": "q1"},
    "question": {"normalized": "name a pet"},
    "answers": {"raw": {"dog": 3, "cat": 2}, "clusters": {"q1.0": {"count": 3, "answers": ["dog"]}}},
}
LABELLED = {"annotated_prediction_data": {"q1": {"dog": {"cluster": "q1.0", "count": 1}}}}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in this process, in an empty folder; returns its exit code and stderr."""
    monkeypatch.chdir(tmp_path)

    def run_once(name, *words):
        code = run_command(monkeypatch, name, *words)
        return code, capsys.readouterr().err

    return run_once


def lines(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def compare(path):
    Path("good.jsonl").write_text(lines(*SETS))
    return "compare", path, "good.jsonl", "--metric", "self_bleu"


def compare_references(path):
    Path("a.jsonl").write_text(lines(["a"]))
    return "compare", "a.jsonl", "a.jsonl", "--metric", "probeval", "--references", path


def meta_eval_quality(path):
    Path("pairs.jsonl").write_text(lines(PAIR))
    return "meta-eval", "pairs.jsonl", "--no-gruen", "--quality", path


def meta_eval_kinds(path):
    folder = Path("sets/one")
    folder.mkdir(parents=True)
    path.rename(folder / "original.jsonl")
    return "meta-eval", "--sets", "sets"


def validate_targets(path):
    Path("labelled.json").write_text(json.dumps(LABELLED))
    return "reports.probeval", "--targets", path, "--predictions", "labelled.json"


def validate_predictions(path):
    Path("targets.jsonl").write_text(lines(TARGET))
    return "reports.probeval", "--targets", "targets.jsonl", "--predictions", path


def choose(path):
    return "choose", path, "--text-key", "text", "--one-set", "--keep", "2", "--quiet"


def score(path):
    return "score", path, "--metric", "self_bleu", "--text-key", "texts", "--quiet"


COMMANDS = {
    "score": score,
    "choose": choose,
    "report": lambda path: ("report", path, "--text-key", "texts", "--quiet"),
    "compare": compare,
    "compare, references": compare_references,
    "meta-eval": lambda path: ("meta-eval", path),
    "meta-eval, quality": meta_eval_quality,
    "meta-eval, kinds": meta_eval_kinds,
    "judge-diversity": lambda path: (
        "judge-diversity",
        path,
        "out.jsonl",
        "--model",
        "m",
        "--base-url",
        "http://[::1]:9",
    ),
    "candidate-sets, pairs": lambda path: ("candidate-sets", "pairs", path, "out.jsonl", "--no-noun-shuffle"),
    "candidate-sets, generate": lambda path: (
        *("candidate-sets", "generate", path, "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
    "rate-quality": lambda path: ("rate-quality", path, "out.jsonl", "--model", "./nowhere"),
    "rate-quality, reference": lambda path: (
        *("rate-quality", Path("texts.jsonl").write_text('"a"\n') and "texts.jsonl", "out.jsonl"),
        *("--model", "./nowhere", "--reference", path),
    ),
    "reports.probeval, targets": validate_targets,
    "reports.probeval, predictions": validate_predictions,
    "probe, questions": lambda path: (
        *("probe", "ask", path, "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
    "probe, targets": lambda path: ("probe", "sensitivity", path),
    "cluster-answers": lambda path: (
        *("cluster-answers", path, "out.jsonl", "--model", "m", "--base-url", "http://[::1]:9"),
    ),
    "training.calibrate_clusters": lambda path: ("training.calibrate_clusters", "--targets", path, "--folds", "0"),
    "reports.benchmark": lambda path: ("reports.benchmark", "--from-json", path, "--out", "page"),
}
# A line of three, and what is wrong with the second.
BROKEN = {
    "cut": b'{"set1": ["a", "b"\n',
    "not UTF-8": b'{"set1": ["\xff"]}\n',
    "half a surrogate": b'{"text": "\\ud800"}\n',
    "deep": b"[" * 200_000 + b"\n",
    "a number of many digits": b"1" * 5_000 + b"\n",
}


def assert_one_sentence(code, shown, name):
    assert code == 2, shown
    # argparse prints the usage above its message.
    message = shown.strip().splitlines()
    assert name in message[-1], shown
    assert "Traceback" not in shown
    assert len(message) == 1 or message[0].startswith(("usage:", f"{name}, row ")), shown


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_line_is_named(run, command, fault):
    path = Path("data.json" if "predictions" in command or command == "reports.benchmark" else "data.jsonl")
    path.write_bytes(BROKEN[fault] * 2)
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, "original.jsonl" if "kinds" in command else path.name)
    if command not in ("score", "choose", "report"):
        assert "line 1" in shown or path.suffix == ".json"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_file_is_named(run, command):
    path = Path("data.jsonl")
    path.write_bytes(b"")
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, "original.jsonl" if "kinds" in command else path.name)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "meta-eval, kinds"])
def test_a_file_that_is_missing_or_a_folder_is_named(run, command):
    words = COMMANDS[command](Path("nowhere.jsonl"))
    assert_one_sentence(*run(*words), "nowhere.jsonl")
    Path("nowhere.jsonl").mkdir()
    assert_one_sentence(*run(*words), "nowhere.jsonl")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("score", "choose", "meta-eval, kinds")])
def test_a_file_that_is_huge_is_named(run, command, monkeypatch):
    monkeypatch.setattr(_files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(_files, "LARGEST_FILE", 1000)
    path = Path("data.jsonl")
    path.write_bytes(b'["' + b"a" * 2_000 + b'"]\n')
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, path.name)
    assert "1,000 bytes" in shown


WRONG = {
    "compare": [[7, 8], [{"a": 1}]],
    "meta-eval": [
        [7],
        [{**PAIR, "set2": ["c"]}],
        [{**PAIR, "set1": None}],
        [{**PAIR, "llm_diversity": [0]}],
        [{"set1": ["a"], "set2": ["b"], "Diversity_Set1": 10**400, "Diversity_Set2": 1}],
        [{"set1": ["a"], "set2": ["b"], "Diversity_Set1": "1", "Diversity_Set2": 1}],
        [{**PEOPLE, "human_diversity": 1}],
        [PEOPLE, {**PEOPLE, "human_diversity": [1]}],
    ],
    "meta-eval, quality": [[{"text": "a"}], [{"text": 1, "quality": 1}], [{"text": "a", "quality": 10**400}]],
    "meta-eval, kinds": [[{"src": "x"}], [{"sentences": "a"}]],
    "judge-diversity": [[7], [{"set1": ["a"]}], [{"set1": ["a"], "set2": "b"}]],
    "candidate-sets, pairs": [
        [{"texts": ["a"]}],
        [{"texts": {"a": 1}}],
        [{"texts": ["a"] * 4, "paraphrases": [1] * 4}],
    ],
    "candidate-sets, generate": [[[]], [{"texts": None}]],
    "rate-quality": [[7], [{"text": 7}]],
    "rate-quality, reference": [[None]],
    "reports.probeval, targets": [
        [7],
        [{"metadata": 1}],
        [{**TARGET, "answers": {"raw": {}, "clusters": []}}],
        [{**TARGET, "answers": {"raw": {}, "clusters": {"c": {"count": "many", "answers": ["dog"]}}}}],
        [{**TARGET, "answers": {"raw": {"dog": -1}, "clusters": {"c": {"count": 1, "answers": ["dog"]}}}}],
        [{**TARGET, "answers": {"raw": {"dog": 10**9}, "clusters": {"c": {"count": 1, "answers": ["dog"]}}}}],
        [{**TARGET, "answers": {"raw": {}, "clusters": {"": {"count": 1, "answers": ["dog"]}}}}],
        [TARGET, TARGET],
        [{**TARGET, "metadata": {"id": "other"}}],
    ],
    "reports.probeval, predictions": [
        [[]],
        [{"annotated_prediction_data": []}],
        [{"annotated_prediction_data": {"q1": ["dog"]}}],
        [{"annotated_prediction_data": {"q1": {"dog": {"cluster": "c"}}}}],
        [{"annotated_prediction_data": {"q1": {"dog": {"cluster": "c", "count": "1"}}}}],
        [{"annotated_prediction_data": {"q1": {"dog": {"cluster": "c", "count": 10**12}}}}],
    ],
    "reports.benchmark": [[[]], [{"cases": 1}], [{"cases": [{}]}]],
    "score": [[7], [{"texts": 1}]],
    "choose": [[7], [{"text": 1}]],
}


@pytest.mark.parametrize(("command", "i"), [(name, i) for name, files in WRONG.items() for i in range(len(files))])
def test_values_of_another_kind_are_named(run, command, i):
    path = Path("data.jsonl")
    path.write_text(lines(*WRONG[command][i]))
    code, shown = run(*COMMANDS[command](path))
    assert_one_sentence(code, shown, "original.jsonl" if "kinds" in command else path.name)


# Commands that read a folder of released data.


def ratings_of(path):
    return read_ratings(path.parent)


def archive(name, data, damage=False):
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as opened:
        opened.writestr(name, data)
    return written.getvalue()[:-30] if damage else written.getvalue()


TRAIN = ("training.train_gruen_compact", "--text", "data/text", "--cola", "data/gruen")
FOLDERS = [
    (TRAIN, "text/brown.zip", b"", "is a damaged or encrypted archive"),
    (TRAIN, "text/brown.zip", archive("brown/ca01", "The/at dog/nn", damage=True), "is a damaged or encrypted archive"),
    (TRAIN, "text/brown.zip", archive("other", "x"), "has no file whose name matches"),
    (TRAIN, "text/brown.zip", archive("brown/ca01", "The/at dog"), "brown/ca01, line 1 has a word without a tag"),
    (TRAIN, "text/brown.zip", archive("brown/ca01", "The/at dog/nn"), "abc.zip cannot be read: No such file"),
    (("reports.choice",), "diversity_sets/gpt/original.jsonl", b"{}\n", "line 1 has no 'sentences'"),
    (
        ("reports.choice",),
        "diversity_sets/gpt/original.jsonl",
        b'{"sentences": ["a"]}\n',
        "para_a.jsonl cannot be read",
    ),
    (("training.calibrate_classes",), "probeval/cfc_dev_targets.jsonl", b"{}\n", "line 1 has no 'metadata'"),
    (
        ("training.calibrate_classes",),
        "probeval/cfc_dev_targets.jsonl",
        b'{"metadata": {"id": "a"}}\n',
        "has no 'answers'",
    ),
    (("reports.uncertainty",), "probeval/cfc_test/targets.jsonl", b"{}\n", "is not a record of answer clusters"),
    (("reports.gruen_reading",), "text/abc.zip", b"", "is a damaged or encrypted archive"),
    (("reports.languages",), "text/coco_captions_20k.txt", b"a\n\xff\n", "line 2 is not valid UTF-8"),
    (("reports.long_texts",), "text/state_union.zip", b"", "is a damaged or encrypted archive"),
    (("training.calibrate_gruen",), "text/brown.zip", b"no archive", "is a damaged or encrypted archive"),
    (("reports.encoders", "agreement"), "text/coco_captions_20k.txt", b"", "is empty"),
    (("reports.sense", "--model", "m", "--ratings", "rated"), "text/coco_captions_20k.txt", b"", "is empty"),
    (("reports.encoders", "time"), "text/coco_captions_20k.txt", b"a\n\xff\n", "line 2 is not valid UTF-8"),
]


@pytest.mark.parametrize(("words", "file", "content", "message"), FOLDERS)
def test_a_damaged_file_of_a_folder_is_named(run, monkeypatch, words, file, content, message):
    monkeypatch.setenv("METRICS_TEST_DATA", ".")
    path = Path("data") / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    code, shown = run(*words)
    assert_one_sentence(code, shown, message)


@pytest.mark.parametrize(
    ("read", "file", "content", "message"),
    [
        (read_cola, "cola.tsv", b"a\t1\t\tGood.\nb\t2\t\tBad.\n", "cola.tsv, line 2 must be source, 0 or 1"),
        (read_cola, "cola.tsv", b"a\t1\n", "cola.tsv, line 1 must be source"),
        (ratings_of, "bagel_human_ratings.csv", b"sys_ref,quality\na,1\n", "has no column 'naturalness'"),
        (ratings_of, "bagel_human_ratings.csv", b"sys_ref,naturalness,quality\na,1\n", "line 2 must have 3 fields"),
        (ratings_of, "bagel_human_ratings.csv", b"sys_ref,naturalness,quality\na,1,x\n", "line 2: a rating must be"),
        (ratings_of, "bagel_human_ratings.csv", b'sys_ref,naturalness,quality\n"a', "is not valid CSV"),
        (ratings_of, "sfhot_human_ratings.json", b"{}", "sfhot_human_ratings.json must be a list. Got {}"),
        (ratings_of, "sfhot_human_ratings.json", b'[{"system_output": "a"}]', "item 0 has no 'scores'"),
        (ratings_of, "sfhot_human_ratings.json", b"[1,\n2,", "sfhot_human_ratings.json, line 2 is not valid JSON"),
    ],
)
def test_damaged_ratings_are_named(tmp_path, monkeypatch, read, file, content, message):
    (tmp_path / "bagel_human_ratings.csv").write_bytes(b"sys_ref,naturalness,quality\na,1,2\n")
    (tmp_path / "sfhot_human_ratings.json").write_bytes(b"[]")
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path / file)


def test_a_card_without_markers_is_named(run, monkeypatch):
    monkeypatch.setenv("METRICS_TEST_DATA", ".")
    Path("card.md").write_text("nothing")
    assert_one_sentence(
        *run("training.calibrate_gruen", "--card", "card.md"),
        "card.md must hold <!-- scripts/training/calibrate_gruen.py -->",
    )
    assert_one_sentence(*run("tooling.fill_evidence", "--root", "."), "EVIDENCE.md cannot be read")
    assert_one_sentence(*run("meta-eval", "--sets", "nowhere"), "nowhere cannot be used: No such file or directory")


def test_every_command_that_reads_files_of_the_user_is_here():
    """A new command is added to the tables above, or to these, which read only files of the repository."""
    own = {
        "demo",
        *(f"reports.{name}" for name in ("toy_policy", "intervals", "evidence", "systems", "scale")),
        *OWN_TOOLS,
    }
    own.add("training.choose_question")
    tested = {name.split(",")[0] for name in COMMANDS} | {words[0] for words, *_ in FOLDERS}
    tested |= {"tooling.fill_evidence", "reports.gruen"}
    assert {*cli.COMMANDS, *WORKSHOP} - own == tested
