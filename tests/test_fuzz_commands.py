"""Damaged files for every command, drawn from a seed: each is read, or is named in one sentence.

`make attack` draws many times as many.
"""

import json
import re
import shutil
import sys
from argparse import ArgumentParser
from collections import Counter

import pytest

from tests.commands import results_of, score
from tests.conftest import ROOT
from tests.files import read_jsonl, write_data
from tests.fuzzing import bounded, cases, damage_bytes, damage_json, damage_lines
from text_metrics.console import EXIT_BAD_ROWS, EXIT_USAGE
from text_metrics.jobs import kept
from text_metrics.jobs.chat import Journal
from text_metrics.meta_eval.pairs import Sets, read_pairs
from text_metrics.options import Options, add_chat, add_rows
from text_metrics.probe import ask as probe_ask
from text_metrics.probe import files as probe_files

# Cases of each reader, and of text-metrics score, in the test suite.
FILES, JOBS = 60, 30

PAIRS = [
    {"set1": ["a", "b"], "set2": ["c", "d"], "llm_diversity": 0, "src": ["x", "y"], "set1_label": "original"},
    {"set1": ["a", "b"], "set2": ["e", "f"], "Diversity_Set1": 4.5, "Diversity_Set2": 2, "llm_diversity": 1},
]
TARGETS = read_jsonl(ROOT / "tests/data/probeval_cfc_targets.jsonl")[:2]
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


def read_model(path):
    references = [{"id": f"q{i}", "answers": ["dog"]} for i in range(2)]
    return probe_files.read_predictions(path, references)


def read_texts(path):
    parser = ArgumentParser()
    add_chat(parser, "texts", "a file")
    add_rows(parser)
    rows = kept.read(parser.parse_args([str(path), "--out", "out.jsonl", "--model", "m"], Options()), ["quality"])
    if rows.bad:
        raise ValueError(f"{path}, line {rows.bad[0].number} {rows.bad[0].error}.")


def read_journal(path):
    return Journal(path).answers


READERS = {
    "meta_eval, pairs": ("pairs.jsonl", lines(PAIRS), lambda path: read_pairs([path], Sets())),
    "meta_eval, people": (
        *("people.jsonl", lines([{**PAIRS[0], "human_diversity": [0, 1]}] * 2)),
        lambda path: read_pairs([path], Sets()),
    ),
    "rate_quality": ("texts.jsonl", lines(["a", {"text": "b"}]), read_texts),
    "rate_quality, journal": ("out.journal", lines(JOURNAL), read_journal),
    "probe, questions": ("questions.jsonl", lines(QUESTIONS), probe_ask.read_questions),
    "probe, targets": ("targets.jsonl", lines(TARGETS), probe_files.read_references),
    "probe, references": ("people.jsonl", lines(PEOPLE), probe_files.read_references),
    "probe, answers": ("model.jsonl", lines(MODEL), read_model),
    "probe, labelled answers": (*("labelled.json", whole_or_bytes({"annotated_prediction_data": ANSWERS})), read_model),
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
            except (ValueError, TypeError) as refused:
                error = refused
            except Exception as other:
                other.add_note(f"{name}, case {i}: {path.read_bytes()[:500]!r}")
                raise
        if error is not None:
            named += 1
            message = str(error)
            assert str(path.parent) in message or "There is no pair left" in message, f"case {i}: {error!r}"
            assert "\n" not in message, f"case {i}: {message}"
            assert len(message) < 2_000, f"case {i}: {message}"
    sys.stdout.write(f"{name}: {i + 1} files, {named} of them named in an error\n")
    assert 0.1 * i < named < i


ROWS = [{"texts": ["a dog", "a cat", f"the sea {i}"], "n": i} for i in range(12)]


def score_file(draw, folder):
    """Write a file of one of the kinds that text-metrics score reads, damaged."""
    kind = draw.choice(("jsonl", "jsonl", "json", "csv", "parquet"))
    path = write_data(folder / f"data.{kind}", ROWS)
    data = path.read_bytes()
    if kind == "csv":
        data = data.replace(b"\r\n", draw.choice((b"\n", b"\r\n", b"\r")))
    damage = {"json": whole_or_bytes(ROWS), "jsonl": lines(ROWS)}.get(kind, raw(data))
    path.write_bytes(damage(draw))
    return path


def test_score_ends_alike_whatever_the_batch_size(tmp_path, capsys):
    codes = []
    for i, draw in cases("score", JOBS):
        folder = tmp_path / str(i)
        folder.mkdir()
        data = score_file(draw, folder)
        ends = []
        for size in (2, 1000):
            with bounded(f"case {i}"):
                code = score(data, out=f"out{size}.jsonl", size=size)
            shown = capsys.readouterr().err
            if code == EXIT_USAGE:
                last = shown.strip("\n").split("\n")[-1]
                assert last.startswith(str(data)), f"case {i}: {shown}"
                ends.append((code, re.sub(r"after row \d+", "", last)))
                continue
            assert code in (0, EXIT_BAD_ROWS), f"case {i}: {shown}"
            rows, bad, summary = results_of(data, f"out{size}.jsonl")
            assert (code == EXIT_BAD_ROWS) == (len(bad) > 0), f"case {i}: {shown}"
            assert (summary["n_scores"], summary["n_bad"]) == (len(rows), len(bad)), f"case {i}: {shown}"
            ends.append((code, rows, bad))
        assert ends[0] == ends[1], f"case {i}"
        codes.append(ends[0][0])
        shutil.rmtree(folder)
    sys.stdout.write(f"score: {len(codes)} files, by exit code {Counter(codes)}\n")
    assert set(codes) == {0, EXIT_USAGE, EXIT_BAD_ROWS}
