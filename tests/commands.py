"""The commands of users, and those of scripts/, as tests run them: in this process, by the names that run them."""

import json
import sys
from importlib import import_module

from tests.conftest import ROOT
from tests.files import read_data, read_jsonl
from text_metrics import __main__ as cli
from text_metrics.commands.choose import main as choose_main
from text_metrics.commands.score import main as score_main

# The commands of scripts/, by what follows `python -m scripts.`: the modules with a function `main`.
WORKSHOP = {}
for script in sorted((ROOT / "scripts").rglob("*.py")):
    if "\ndef main(" in script.read_text(encoding="utf-8"):
        module = ".".join(script.relative_to(ROOT).with_suffix("").parts)
        WORKSHOP[module.removeprefix("scripts.").removesuffix(".__main__")] = module


def run_command(monkeypatch, name, *words):
    """Run a command; returns its exit code."""
    try:
        if name in cli.COMMANDS:
            return cli.main([name, *map(str, words)])
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        return import_module(WORKSHOP[name]).main()
    except SystemExit as stop:  # of argparse
        return stop.code


def words_of(data, *more, key="texts", out="out.jsonl", size=20):
    """Return the words for `score` or `choose` of the texts of a file; the output is beside it."""
    words = [data, "--text-key", key, "--out", data.parent / out, "--batch-size", size, "--quiet", *more]
    return [str(word) for word in words]


def score(data, *more, metric="self_bleu", **named):
    """Score a file; returns the exit code."""
    return score_main(words_of(data, "--metric", metric, *more, **named))


def choose(data, *more, **named):
    """Choose from a file; returns the exit code."""
    return choose_main(words_of(data, *more, **named))


def results_of(data, out="out.jsonl"):
    """Return the rows that were written beside a file, those that were skipped, and the summary."""
    out = data.parent / out
    bad = out.with_name(f"{out.name}.bad.jsonl")
    summary = out if out.suffix == ".json" else out.with_name(f"{out.name}.summary.json")
    rows = [] if summary == out else read_data(out)
    return rows, read_jsonl(bad) if bad.exists() else [], json.loads(summary.read_text())
