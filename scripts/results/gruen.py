"""Write results/gruen.csv: how gruen agrees with CoLA, with people, and with corrupted sentences.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.gruen

Matthews' correlation of acceptability with CoLA's labels; Spearman's correlation with ratings of the output of dialogue
systems, beside the rule "the shorter text is better"; and the share of pairs in which a clean sentence scores above its
corrupted form, from gruen_pairs.jsonl.
"""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from scipy.stats import spearmanr
from sklearn.metrics import matthews_corrcoef

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.console import Parser, command

PAIRS = Path(__file__).with_name("gruen_pairs.jsonl")
# A measure, its number of texts or pairs, its value, and the value of a trivial rule.
Row = tuple[str, int, float, float | None]


def cola(metric: Any, path: Path) -> list[Row]:
    """Return the correlation of acceptability above one half with the labels."""
    table = pandas.read_csv(path, sep="\t", header=None, quoting=csv.QUOTE_NONE)
    details = metric.compute(predictions=table[3].tolist(), components=["grammaticality"], details=True)["details"]
    # A text that is split into sentences has the mean of these; one without sentences has 0.
    acceptability = []
    for text in details:
        values = [piece["acceptability"] for piece in text["sentences"] if piece["grammaticality"]]
        acceptability.append(np.mean(values or [0.0]))
    return [("CoLA, MCC", len(table), matthews_corrcoef(table[1], np.array(acceptability) > 0.5), None)]


def corrupted(metric: Any) -> list[Row]:
    """Return the share of pairs in which the clean sentence scores above the corrupted one, by kind."""
    pairs = pandas.read_json(PAIRS, lines=True)
    for name in ("clean", "corrupted"):
        result = metric.compute(predictions=pairs[name].tolist(), components=["grammaticality"])
        pairs[f"{name}_score"] = result["scores"]
    is_above = pairs["clean_score"] > pairs["corrupted_score"]
    by_kind = is_above.groupby(pairs["corruption"], sort=False)
    return [(f"pairs: {kind}", len(values), values.mean(), None) for kind, values in by_kind]


def people(metric: Any, folder: Path) -> list[Row]:
    """Return the correlations with ratings."""
    bagel = pandas.read_csv(folder / "bagel_human_ratings.csv").rename(columns={"sys_ref": "system_output"})
    hotels = pandas.json_normalize(json.loads((folder / "sfhot_human_ratings.json").read_text(encoding="utf-8")))
    hotels = hotels.rename(columns={"scores.naturalness": "naturalness", "scores.overall": "quality"})
    rows: list[Row] = []
    for source, rated in {"BAGEL": bagel, "SFHOTEL": hotels}.items():
        texts = rated["system_output"].tolist()
        scores = metric.compute(predictions=texts)["scores"]
        shortness = [-len(text.split()) for text in texts]
        for name in ("naturalness", "quality"):
            ratings = rated[name].astype(float)
            value = float(spearmanr(scores, ratings).statistic)
            by_length = float(spearmanr(shortness, ratings).statistic)
            rows.append((f"{source}, {name}: Spearman", len(texts), value, by_length))
    return rows


@command
def main() -> None:
    """Write the table."""
    folder = data_folder(Parser(__doc__)) / "gruen"
    metric = load("gruen")
    with warnings.catch_warnings():
        # Some outputs of the systems are not sentences.
        warnings.simplefilter("ignore")
        rows = cola(metric, folder / "cola_in_domain_dev.tsv") + people(metric, folder) + corrupted(metric)
    table = pandas.DataFrame(rows, columns=["measure", "texts or pairs", "value", "trivial rule"])
    table.to_csv(ROOT / "results" / "gruen.csv", index=False, float_format="%.3f")


if __name__ == "__main__":
    raise SystemExit(main())
