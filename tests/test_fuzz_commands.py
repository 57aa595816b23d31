"""Damaged files for every command, drawn from a seed: each is read, or is named in one sentence.

`make attack` draws many times as many.
"""

import argparse
import json
import re
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzzing import bounded, cases, damage_bytes, damage_json, damage_lines
from text_metrics.commands import compare
from text_metrics.commands.meta_eval.pairs import Sets, read_pairs
from text_metrics.commands.probe import ask as probe_ask
from text_metrics.commands.probe import files as probe_files
from text_metrics.commands.rate_quality import read_lines
from text_metrics.commands.report.inputs import read_units
from text_metrics.commands.score import main as score
from text_metrics.commands.shared import sets
from text_metrics.commands.shared.chat import Journal
from text_metrics.metrics.probeval.probeval_released import from_released

# Cases of each reader, and of text-metrics score, in the test suite.
FILES, JOBS = 120, 40

PAIRS = [
    {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "src": ["x", "y"], "set1_label": "original"},
    {"set1": ["a", "b"], "set2": ["e", "f"], "Diversity_Set1": 4.5, "Diversity_Set2": 2, "llm_diversity": 1},
]
TARGETS = [
    {
        "metadata": {"id": f"q{i}"},
        "question": {"normalized": "name a pet"},
        "answers": {
            "raw": {"dog": 3, "cat": 2, "fish": 1},
            "clusters": {
                f"q{i}.0": {"count": 3, "answers": ["dog"]},
                f"q{i}.1": {"count": 3, "answers": ["cat", "fish"]},
            },
        },
    }
    for i in range(2)
]
ANSWERS = {
    f"q{i}": {"dog": {"cluster": f"q{i}.0", "count": 2}, "car": {"cluster": "wrong", "count": 1}} for i in range(2)
}
PEOPLE = [
    {"id": "q0", "question": "name a pet", "answers": ["dog", {"text": "cat", "count": 2, "cluster": "c"}]},
    {"id": "q1", "sentence": "Somebody has a pet.", "answers": {"dog": 3, "fish": 1}},
]
MODEL = [{"id": f"q{i}", "answers": ["a dog", {"text": "cat", "count": 2}]} for i in range(2)]
QUESTIONS = [{"id": "q0", "question": "Name a pet."}, {"id": 1, "question": "Who?", "sentence": "Somebody sings."}]
JOURNAL = [{"key": "k", "answer": "a", "tokens": [1, 2]}, {"key": "k", "answer": None, "tokens": [0, 0]}]


def whole(value):
    return lambda draw: json.dumps(damage_json(draw, value)).encode()


def whole_or_bytes(value):
    def damage(draw):
        return whole(value)(draw) if draw.random() < 0.6 else damage_bytes(draw, json.dumps(value, indent=1).encode())

    return damage


def lines(values):
    return lambda draw: damage_lines(draw, values)


def raw(data):
    return lambda draw: damage_bytes(draw, data)


def beside(path, name, content):
    file = path.with_name(name)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def read_model(path):
    references = [{"id": f"q{i}", "answers": ["dog"]} for i in range(2)]
    return probe_files.read_predictions(path, references)


def read_journal(path):
    return Journal(path).answers


PLAIN = {"rows": None, "delimiter": None, "encoding": "utf-8"}


def compare_with_itself(path):
    keys = {"text_key": "t", "id_key": "id", "system_key": None, "cluster_key": "c"}
    options = argparse.Namespace(files=[path, path], **keys, **PLAIN)
    return compare.read_pair(options, sets.Reader(sets.Keys("t", id="id", is_scattered=True), True))


READERS = {
    "meta_eval, pairs": ("pairs.jsonl", lines(PAIRS), lambda path: read_pairs([path], Sets())),
    "meta_eval, people": (
        *("people.jsonl", lines([{**PAIRS[0], "human_diversity": [0, 1]}] * 2)),
        lambda path: read_pairs([path], Sets()),
    ),
    "compare": (
        "a.jsonl",
        lines([{"id": 1, "t": ["a"]}, {"id": 2, "t": ["b"]}]),
        compare_with_itself,
    ),
    "rate_quality": ("texts.jsonl", lines(["a", {"text": "b"}]), read_lines),
    "rate_quality, journal": ("out.journal", lines(JOURNAL), read_journal),
    "probe, questions": ("questions.jsonl", lines(QUESTIONS), probe_ask.read_questions),
    "probe, targets": ("targets.jsonl", lines(TARGETS), probe_files.read_references),
    "probe, references": ("people.jsonl", lines(PEOPLE), probe_files.read_references),
    "probe, answers": ("model.jsonl", lines(MODEL), read_model),
    "probe, labelled answers": (
        *("labelled.json", whole_or_bytes({"annotated_prediction_data": ANSWERS})),
        read_model,
    ),
    "from_cfc": (
        *("targets.jsonl", lines(TARGETS)),
        lambda path: from_released(str(path), {"q0": ["dog", "cat"], "q1": ["dog"]}),
    ),
    "from_protoqa": (
        *("ranked.jsonl", lines([{"question_id": "q0", "ranked_answers": ["dog"]}, {"q1": ["cat"]}])),
        lambda path: from_released(TARGETS, str(path)),
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_named(tmp_path, name):
    file, damage, read = READERS[name]
    path = tmp_path / "data" / file
    path.parent.mkdir(parents=True)
    named = 0
    for i, draw in cases(name, FILES):
        path.write_bytes(damage(draw))
        error = None
        with bounded(f"{name}, case {i}"):
            try:
                read(path)
            except (ValueError, TypeError) as found:
                error = found
            except Exception as found:
                found.add_note(f"{name}, case {i}: {path.read_bytes()[:500]!r}")
                raise
        if error is not None:
            named += 1
            message = str(error)
            # from_cfc and from_protoqa are functions of a metric, which name a parameter.
            in_metric = name.startswith("from_") and re.search(r"predictions|references|targets", message)
            in_file = str(path.parent) in message and (isinstance(error, ValueError) or name.startswith("from_"))
            assert in_metric or in_file or "There is no pair left" in message, f"case {i}: {error!r}"
            assert "\n" not in message, f"case {i}: {message}"
            assert len(message) < 2_000, f"case {i}: {message}"
    sys.stdout.write(f"{name}: {i + 1} files, {named} of them named in an error\n")
    assert 0.1 * i < named < i


ROWS = [{"texts": ["a dog", "a cat", f"the sea {i}"], "n": i} for i in range(12)]


def score_file(draw, folder):
    """Write a file of one of the kinds that text-metrics score reads, damaged."""
    kind = draw.choice(("jsonl", "jsonl", "json", "csv", "parquet"))
    path = folder / f"data.{kind}"
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=5)
        path.write_bytes(damage_bytes(draw, path.read_bytes()))
    elif kind == "csv":
        end = draw.choice(("\n", "\r\n", "\r"))
        data = end.join(
            ["texts,n", *(f'"{json.dumps(row["texts"]).replace(chr(34), chr(34) * 2)}",{row["n"]}' for row in ROWS)]
        )
        path.write_bytes(damage_bytes(draw, data.encode()))
    elif kind == "json":
        path.write_bytes(whole_or_bytes(ROWS)(draw))
    else:
        path.write_bytes(damage_lines(draw, ROWS))
    return path


def test_score_ends_alike_whatever_the_batch_size(tmp_path, capsys):
    codes = []
    for i, draw in cases("score", JOBS):
        folder = tmp_path / str(i)
        folder.mkdir()
        data = score_file(draw, folder)
        ends = []
        for size in (2, 1000):
            out = folder / f"out{size}.jsonl"
            words = [
                data,
                "--metric",
                "self_bleu",
                "--text-key",
                "texts",
                "--out",
                out,
                "--batch-size",
                size,
                "--quiet",
            ]
            with bounded(f"case {i}"):
                code = score.main(list(map(str, words)))
            shown = capsys.readouterr().err
            if code == score.EXIT_USAGE:
                last = shown.strip("\n").split("\n")[-1]
                assert last.startswith(str(data)), f"case {i}: {shown}"
                ends.append((code, re.sub(r"after row \d+", "", last)))
                continue
            assert code in (0, score.EXIT_BAD_ROWS), f"case {i}: {shown}"
            rows = [json.loads(line) for line in out.read_text().split("\n")[:-1]]
            bad = folder / f"{out.name}.bad.jsonl"
            bad_rows = [json.loads(line) for line in bad.read_text().split("\n")[:-1]] if bad.exists() else []
            summary = json.loads((folder / f"{out.name}.summary.json").read_text())
            assert (code == score.EXIT_BAD_ROWS) == (len(bad_rows) > 0), f"case {i}: {shown}"
            assert (summary["n_scores"], summary["n_bad"]) == (len(rows), len(bad_rows)), f"case {i}: {shown}"
            scores = [row.pop("self_bleu") for row in rows]
            ends.append((code, scores, json.dumps(rows), bad_rows))
        assert ends[0] == ends[1], f"case {i}"
        codes.append(ends[0][0])
        shutil.rmtree(folder)
    sys.stdout.write(
        f"score: {len(codes)} files, by exit code { ({code: codes.count(code) for code in set(codes)}) }\n"
    )
    assert set(codes) == {0, score.EXIT_USAGE, score.EXIT_BAD_ROWS}


def test_report_reads_each_row_or_names_it(tmp_path):
    named = set_aside = 0
    for i, draw in cases("report", FILES):
        folder = tmp_path / str(i)
        folder.mkdir()
        data = score_file(draw, folder)
        units, error = [], ""
        with bounded(f"case {i}"):
            try:
                units = read_units(data, sets.Keys("texts", "n"))
            except ValueError as problem:
                error = str(problem)
        if units:
            bad = [row for unit in units for row in unit.bad]
            set_aside += bool(bad)
            assert any(unit.texts for unit in units), f"case {i}"
            assert all(row.number > 0 and row.error for row in bad), f"case {i}"
            assert not any(unit.texts and unit.bad for unit in units), f"case {i}"
        else:
            named += 1
            assert str(data) in error, f"case {i}: {error}"
            assert "\n" not in error, f"case {i}: {error}"
        shutil.rmtree(folder)
    sys.stdout.write(f"report: {i + 1} files, {named} of them named in an error, {set_aside} with rows set aside\n")
    assert named
    assert set_aside
