"""Write results/gruen.csv: how gruen agrees with CoLA, with people, and with corrupted and repeated texts.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.gruen

Matthews' correlation of acceptability with CoLA's labels; Spearman's correlation with ratings of the output of dialogue
systems, beside that of the rule "the shorter text is better"; the share of models' answers in NoveltyBench that lose
non-redundancy, as they are, and said twice in a form that might hide it; and the share of pairs in which a clean
sentence scores above its corrupted form, from gruen_pairs.jsonl.
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
from text_metrics.commands.shared.command import Parser, command

PAIRS = Path(__file__).with_name("gruen_pairs.jsonl")
ANSWERS, LEAST_CHARACTERS = 900, 150
FORMS = {
    "plain text": "{0} {0}",
    "quotation marks": '"{0} {0}"',
    "brackets": "({0} {0})",
    "HTML": "<p>{0}</p><p>{0}</p>",
}
# A measure, its number of texts or pairs, its value, and that of the rule "shorter is better".
Row = tuple[str, int, float, float | None]


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


def repeated(metric: Any, path: Path) -> list[Row]:
    """Return the shares of answers that lose non-redundancy, and of those said twice that score 0 for it."""
    sets = pandas.read_json(path, lines=True)["texts"]
    answers = list(dict.fromkeys(text for texts in sets for text in texts if len(text) > LEAST_CHARACTERS))[:ANSWERS]
    n = len(answers)
    scores = np.array(metric.compute(predictions=answers, components=["non_redundancy"])["scores"])
    rows: list[Row] = [("answers that lose non-redundancy", n, (scores < 1).mean(), None)]
    rows.append(("answers that score 0 for non-redundancy", n, (scores == 0).mean(), None))
    for name, form in FORMS.items():
        twice = [form.format(" ".join(text.split())) for text in answers]
        scores = np.array(metric.compute(predictions=twice, components=["non_redundancy"])["scores"])
        rows.append((f"the same twice, in {name}", n, (scores == 0).mean(), None))
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
        rows += repeated(metric, data / "equivalence" / "noveltybench_pairs.jsonl") + corrupted(metric)
    table = pandas.DataFrame(rows, columns=["measure", "texts or pairs", "value", "shorter is better"])
    table.to_csv(ROOT / "results" / "gruen.csv", index=False, float_format="%.3f")


if __name__ == "__main__":
    raise SystemExit(main())
