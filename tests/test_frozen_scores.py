"""A number that moves needs a new version, a line in CHANGELOG.md, and `python -m tests.test_frozen_scores`."""

import json
from pathlib import Path

import text_metrics
from tests.conftest import approx

FILE = Path(__file__).parent / "data" / "frozen_scores.json"
SETS = [
    ["Put the kettle on.", "Switch the kettle on.", "Ask a neighbour for tea.", "Open the window."],
    ["She missed the bus this morning.", "The bus left without her.", "Her alarm clock did not ring."],
]
TEXTS = ["The dog runs across the park. It chases a red ball.", "Kite the beach on children. Strong wind the is two."]
QUALITY = [[1.0, 0.5, 0.75, 1.0], [1.0, 0.25, 0.5]]
ANSWERS = {"predictions": [["a cup"] * 6 + ["a helicopter"] * 4], "references": [["a kettle"] * 7 + ["a cup"] * 3]}
# For each call the metric, the settings beside the texts, and the names of the results.
CALLS = {
    "vendi": ("vendi_embed", {"predictions": SETS, "q": [0.5, 1, "inf"]}, ("scores", "by_order")),
    "vendi with quality": ("vendi_embed", {"predictions": SETS, "quality": QUALITY}, ("quality_scores",)),
    "vendi of n-grams": ("vendi_embed", {"predictions": SETS, "kernel": "ngram"}, ("scores",)),
    "chamfer": ("chamfer_diversity", {"predictions": SETS}, ("scores",)),
    "meanings": ("semantic_entropy", {"predictions": SETS}, ("scores", "n_classes_scores")),
    "self-bleu": ("self_bleu", {"predictions": SETS, "max_order": 3}, ("scores", "self_bleu_1")),
    "probeval": ("probeval", ANSWERS, ("scores", "wrong_rate")),
    "gruen": ("gruen", {"predictions": TEXTS}, ("scores",)),
}


def scores():
    """Compute what is frozen: the version, and for each call its results and its signature."""
    results = {}
    for name, (metric, settings, names) in CALLS.items():
        result = text_metrics.load(metric).compute(**settings)
        results[name] = {key: result[key] for key in (*names, "signature")}
    return {"version": text_metrics.__version__, "results": results}


def test_scores_are_those_of_the_version():
    assert scores() == approx(json.loads(FILE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    FILE.write_text(json.dumps(scores(), indent=1) + "\n", encoding="utf-8")
