"""The script that measures ratings of sense: a tiny real model, two generators of a few concepts."""

import json

import numpy as np
import pytest

from scripts.reports import sense
from tests.commands import run_command
from tests.conftest import TAUGHT
from tests.files import read_jsonl, write_jsonl
from text_metrics.commands.meta_eval.generated_sets import ORIGINAL, POORER
from text_metrics.commands.meta_eval.raters import Rater
from text_metrics.commands.rate_quality.asking import Question
from text_metrics.commands.rate_quality.likelihood import LanguageModel
from text_metrics.commands.shared.causal import load_causal

WORDS = TAUGHT.split()


@pytest.fixture
def data(tmp_path, monkeypatch, rng):
    """Originals that the tiny model was taught, and nonsense that it was not."""
    for generator in ("one", "two"):
        folder = tmp_path / "data" / "diversity_sets" / generator
        folder.mkdir(parents=True)
        for kind in (ORIGINAL, *POORER):
            start = "tac eht" if kind == "nonsensical" else TAUGHT
            sets = [{"src": str(i), "sentences": [f"{start} {i}", f"{start} {i}{i}"]} for i in range(3)]
            write_jsonl(folder / f"{kind}.jsonl", sets)
    texts = tmp_path / "data" / "text"
    texts.mkdir()
    captions = [" ".join(rng.permutation(WORDS)[: 2 + i % 5]) for i in range(120)]
    (texts / "coco_captions_20k.txt").write_text("\n".join(captions), encoding="utf-8")
    monkeypatch.setenv("METRICS_TEST_DATA", str(tmp_path))
    return tmp_path


def test_ratings_are_measured_once_and_reported(data, tiny_language_model, monkeypatch, capsys):
    monkeypatch.setattr(sense, "SENSE", Question("cat?", {"sat": 1.0, "mat": 0.0}))
    ratings = data / "ratings"
    words = ("--model", tiny_language_model, "--ratings", ratings)
    assert run_command(monkeypatch, "reports.sense", *words, "--concepts", "2") == 0
    printed = capsys.readouterr().out
    assert "concepts: 2 of one, 2 of two" in printed
    assert "| likelihood |" in printed
    assert "100.0 [100.0, 100.0]" in printed.split("| likelihood |")[1].splitlines()[0]
    for kind in ("nonsensical", "shuffled nouns", "shuffled words"):
        area = printed.split(f"original against {kind};")[1].split("| rule: shorter text |")[0]
        assert "| asked × GRUEN |" in area
        assert f"original above {kind}, %" in printed
    for kind in ("Para-1", "Para-2", "Para-3"):
        assert f"original above {kind}, %" in printed
    measured = read_jsonl(ratings / sense.MEASURED)
    assert len({record["text"] for record in measured}) == len(measured)
    rated = {record["text"]: record["quality"] for record in read_jsonl(ratings / "likelihood.jsonl")}
    # Both generators have the same texts here: of two concepts, two originals and two nonsensical texts.
    assert len(rated) == 8
    found = LanguageModel(load_causal(tiny_language_model)).score(list(rated))
    assert list(rated.values()) == pytest.approx(np.exp(found.total / found.tokens).tolist(), abs=1e-5)
    # Measurements of two models are not mixed. With one more concept, only its texts are measured.
    assert run_command(monkeypatch, "reports.sense", *words, "--concepts", "3", "--dtype", "bfloat16") == 2
    assert "|float32|" in capsys.readouterr().err.split("measurements by ")[1]
    assert run_command(monkeypatch, "reports.sense", *words, "--concepts", "3") == 0
    assert [json.dumps(record) for record in read_jsonl(ratings / sense.MEASURED)[:-4]] == [
        json.dumps(record) for record in measured
    ]


def test_a_product_multiplies_the_ratings_of_each_text():
    raters = [
        Rater("a", [np.array([0.5, 1.0]), np.array([0.2])], "x"),
        Rater("b", [np.array([0.5, 0.0]), np.ones(1)], "y"),
    ]
    name, ratings, signature = sense.product(*raters)
    assert (name, signature) == ("a × b", "x × y")
    assert [values.tolist() for values in ratings] == [[0.25, 0.0], [0.2]]


def test_a_file_that_holds_no_measurements_is_named(tmp_path):
    path = write_jsonl(tmp_path / sense.MEASURED, [{"text": "a"}])
    with pytest.raises(ValueError, match="line 1 is not a measurement of an earlier run"):
        sense.Store(path, "m", "float32")
