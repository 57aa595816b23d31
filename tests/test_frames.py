"""Questions about what sentences leave open."""

import csv
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import own_data
from text_metrics.__main__ import main

FOLDER = Path(__file__).parent / "data" / "frames"
# What each sentence of the file leaves open, by the variable of its predicate, and some of the questions.
EXPECTED = own_data("frames/expected.json")


def ask(graphs, out, *options):
    """Run the command; returns its exit code and the rows that it wrote."""
    words = ["probe", "frames", str(graphs), "--rolesets", str(FOLDER / "rolesets"), "--out", str(out), *options]
    code = main(words)
    return code, [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


@pytest.fixture
def rows(tmp_path):
    code, rows = ask(FOLDER / "sentences.amr", tmp_path / "questions.jsonl")
    assert code == 0
    return rows


def test_open_slots_of_twelve_sentences(rows):
    actual = {name: {} for name in EXPECTED["open"]}
    for row in sorted(rows, key=lambda row: row["slot"]):
        name, variable, slot = row["id"].split(".")
        assert slot == row["slot"]
        actual[name].setdefault(variable, []).append(slot)
    assert actual == EXPECTED["open"]


def test_questions_in_words(rows):
    requested = {row["id"]: row for row in rows}
    questions = EXPECTED["questions"]
    assert {name: requested[name]["question"] for name in questions} == questions
    assert requested["goat.e.time"]["sentence"] == "A goat eats hay in a stable."
    assert requested["word.l.time"]["frame"] == "look-up-05"


def test_malformed_graphs_are_named_and_skipped(tmp_path, capsys, rows):
    bad = ["(e / eat-01 :ARG0 (g / goat)", "(e / eat-01) )", "(e / eat-01 :ARG0 (g))", "", "(e / eat-01)\n(g / goat)"]
    blocks = [f"# ::id bad{i}\n# ::snt A goat eats.\n{graph}" for i, graph in enumerate(bad)]
    graphs = tmp_path / "graphs.amr"
    good = (FOLDER / "sentences.amr").read_text()
    graphs.write_text("\n\n".join([*blocks, "# ::id mute\n(e / eat-01)", good]))
    code, again = ask(graphs, tmp_path / "again.jsonl")
    # Without a sentence or its mark, a block may be anything: it is skipped, too.
    lines = [line for line in capsys.readouterr().err.splitlines() if ", line " in line]
    names = [line.split(": ")[0].rsplit(", ", 1)[1] for line in lines]
    assert code == 3
    assert names == ["bad0", "bad1", "bad2", "bad3", "bad4", "mute"]
    assert "line 1," in lines[0]
    assert "line 5," in lines[1]
    assert again == rows


def test_draws_do_not_depend_on_company(tmp_path, rows):
    graphs = tmp_path / "graphs.amr"
    blocks = (FOLDER / "sentences.amr").read_text().split("\n\n")
    graphs.write_text("\n\n".join(reversed(blocks)))
    draws = []
    for path, seed in ((FOLDER / "sentences.amr", 1), (graphs, 1), (graphs, 2)):
        _, drawn = ask(path, tmp_path / "drawn.jsonl", "--per-context", "2", "--seed", str(seed))
        assert all(row in rows for row in drawn)
        draws.append(sorted(row["id"] for row in drawn))
    assert draws[0] == draws[1] != draws[2]
    assert len(draws[0]) == 2 * len([slots for slots in EXPECTED["open"].values() if slots])


def test_a_sheet_for_people_with_some_kinds(tmp_path, rows):
    sheet = tmp_path / "sheet.csv"
    options = ("--people", str(sheet), "--keep", "time", "--keep", "ARG0")
    assert ask(FOLDER / "sentences.amr", tmp_path / "kept.jsonl", *options)[1] == [
        row for row in rows if row["slot"] in ("time", "ARG0")
    ]
    with sheet.open(newline="") as file:
        table = [(row["id"], row["question"], row["answer"]) for row in csv.DictReader(file)]
    assert table == [(row["id"], row["question"], "") for row in rows if row["slot"] in ("time", "ARG0")]


def test_contexts_of_commongen_are_parsed(tmp_path, monkeypatch):
    """The parser is a stub of amrlib's interface: no model of it can be had here."""
    graphs = ["(e / eat-01 :ARG0 (g / goat))", None]
    model = SimpleNamespace(parse_sents=lambda sentences, add_metadata: graphs[: len(sentences)])
    monkeypatch.setitem(sys.modules, "amrlib", SimpleNamespace(load_stog_model=lambda model_dir: model))
    contexts = tmp_path / "commongen.jsonl"
    out = tmp_path / "questions.jsonl"
    scene = ["A goat eats in a field.", "Goats are in the field."]
    contexts.write_text(json.dumps({"concept_set": "goat#eat#field", "scene": scene}) + "\n")
    code, rows = ask(contexts, out, "--parse", "model")
    assert code == 3
    assert {row["sentence"] for row in rows} == {"A goat eats in a field."}
    parsed = tmp_path / "questions.jsonl.amr"
    assert rows == ask(parsed, tmp_path / "again.jsonl")[1]
    assert ask(contexts, out, "--parse", "model") == (3, rows)
    # A user's own graphs are not replaced.
    parsed.write_text("# ::id own\n", encoding="utf-8")
    assert ask(contexts, out, "--parse", "model")[0] == 2
    assert parsed.read_text(encoding="utf-8") == "# ::id own\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [("--per-context", ("--per-context", "0")), ("rolesets", ("--rolesets", str(FOLDER.parent / "none")))],
)
def test_bad_options(tmp_path, capsys, name, words):
    code, rows = ask(FOLDER / "sentences.amr", tmp_path / "questions.jsonl", *words)
    assert (code, rows) == (2, [])
    assert name in capsys.readouterr().err
