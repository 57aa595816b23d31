"""Small files of the shapes of other tools, of our own words, by the options that docs/files.md gives for them."""

import json
import re
import shlex

import pytest

from tests.conftest import ROOT, own_data
from tests.files import read_jsonl
from text_metrics.commands.choose import main as choose
from text_metrics.commands.score import main as score

SHAPES = ROOT / "tests/data/shapes"
# The sets of each file.
SETS = own_data("shapes_sets.json")


def documented():
    """The rows of the first table of docs/files.md: the file, and the words of its options."""
    text = (ROOT / "docs/files.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\| \[`([^`]+)`\]\([^)]*\) \| `(.*)` \|$", text, re.M)
    return {name: shlex.split(options.replace("\\|", "|")) for name, options in rows}


def test_every_shape_is_documented():
    assert set(documented()) == {path.name for path in SHAPES.iterdir()}


@pytest.mark.parametrize("name", sorted(path.name for path in SHAPES.iterdir()))
def test_the_options_of_a_shape_read_its_sets(load, tmp_path, name):
    options = documented()[name]
    out = tmp_path / "out.jsonl"
    metric = options[options.index("--metric") + 1] if "--metric" in options else "self_bleu"
    words = [str(SHAPES / name), "--metric", metric, "--out", str(out), "--quiet", *options]
    assert score(words) == 0
    summary = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    sets = SETS[name]
    assert (summary["n_scores"], summary["n_texts"]) == (len(sets), sum(map(len, sets)))
    scores = [row[metric] for row in read_jsonl(out)]
    if metric == "self_bleu":
        expected = load("self_bleu").compute(predictions=sets)["scores"]
        assert sorted(scores) == pytest.approx(sorted(expected))
    elif name == "noveltybench_scores.jsonl":
        rows = read_jsonl(SHAPES / name)
        assert [row["n_classes_scores"] for row in read_jsonl(out)] == [len(row["partition_scores"]) for row in rows]
        assert [10 * row["utility_scores"] for row in read_jsonl(out)] == pytest.approx(
            [row["utility"] for row in rows]
        )
    else:
        # Every answer differs from the others.
        assert scores == pytest.approx(
            load(metric).compute(predictions=sets, weights=[[0.5, 0.25, 0.25], [0.5, 0.5]])["scores"]
        )


@pytest.mark.parametrize(("name", "n"), [("texts.txt", 2), ("alpaca_eval.json", 4)])
def test_shapes_are_chosen_from(tmp_path, name, n):
    out = tmp_path / "out.jsonl"
    assert choose([str(SHAPES / name), *documented()[name], "--keep", "1", "--out", str(out), "--quiet"]) == 0
    assert len(read_jsonl(out)) == n
