"""Write results/gruen.csv: how gruen agrees with CoLA, with people, and with corrupted and repeated texts.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.gruen

Matthews' correlation of acceptability with CoLA's labels; Spearman's correlation with ratings of the output of dialogue
systems, beside that of the rule "the shorter text is better"; the shares of texts that lose non-redundancy, beside
those by a trivial rule, from gruen_repetition.py; and the share of pairs in which a clean sentence scores above its
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
from scripts.results.gruen_repetition import Row, repeated
from text_metrics import load
from text_metrics.console import Parser, command

PAIRS = Path(__file__).with_name("gruen_pairs.jsonl")


def cola(metric: Any, path: Path) -> list[Row]:
    """Return the correlation of acceptability above one half with the labels."""
    table = pandas.read_csv(path, sep="\t", header=None, quoting=csv.QUOTE_NONE)
    details = metric.compute(predictions=table[3].tolist(), components=["grammaticality"], details=True)["details"]
    # A text that is split into sentences has the mean of these; one without sentences has 0.
    judged = [[piece["acceptability"] for piece in text["sentences"] if piece["grammaticality"]] for text in details]
    acceptability = [np.mean(values or [0.0]) for values in judged]
    return [("CoLA, MCC", len(table), matthews_corrcoef(table[1], np.array(acceptability) > 0.5), None)]


def corrupted(metric: Any) -> list[Row]:
    """Return the share of pairs in which the clean sentence scores above the corrupted one, by kind."""
    pairs = pandas.read_json(PAIRS, lines=True)
    for name in ("clean", "corrupted"):
        pairs[f"{name}_score"] = metric.compute(predictions=pairs[name].tolist(), components=["grammaticality"])[
            "scores"
        ]
    is_above = pairs["clean_score"] > pairs["corrupted_score"]
    by_kind = is_above.groupby(pairs["corruption"], sort=False)
    return [(f"pairs: {kind}", len(values), values.mean(), None) for kind, values in by_kind]


def people(metric: Any, folder: Path) -> list[Row]:
    """Return the correlations with ratings."""
    bagel = pandas.read_csv(folder / "bagel_human_ratings.csv")
    hotels = json.loads((folder / "sfhot_human_ratings.json").read_text(encoding="utf-8"))
    ratings = {
        "BAGEL": (bagel["sys_ref"].tolist(), {name: bagel[name] for name in ("naturalness", "quality")}),
        "SFHOTEL": (
            [item["system_output"] for item in hotels],
            {
                name: [float(item["scores"][key]) for item in hotels]
                for name, key in (("naturalness", "naturalness"), ("quality", "overall"))
            },
        ),
    }
    rows: list[Row] = []
    for source, (texts, given) in ratings.items():
        scores, shortness = metric.compute(predictions=texts)["scores"], [-len(text.split()) for text in texts]
        for name, rated in given.items():
            values = [float(spearmanr(ranked, rated).statistic) for ranked in (scores, shortness)]
            rows.append((f"{source}, {name}: Spearman", len(texts), values[0], values[1]))
    return rows


@command
def main() -> None:
    """Write the table."""
    data = data_folder(Parser(__doc__))
    folder = data / "gruen"
    metric = load("gruen")
    with warnings.catch_warnings():
        # Some outputs of the systems are not sentences.
        warnings.simplefilter("ignore")
        rows = cola(metric, folder / "cola_in_domain_dev.tsv") + people(metric, folder)
        rows += repeated(metric, data) + corrupted(metric)
    table = pandas.DataFrame(rows, columns=["measure", "texts or pairs", "value", "trivial rule"])
    table.to_csv(ROOT / "results" / "gruen.csv", index=False, float_format="%.3f")


if __name__ == "__main__":
    raise SystemExit(main())
