"""Write results/probeval-polls.csv: how far probeval is from the divergence by hand on the closed options of polls.

    python -m scripts.results.polls

For each scale, people's and a model's shares of the options are drawn, for 1000 answers of each side. The table has the
share of questions whose score differs by more than 0.01 from KL(people ‖ model) over the options, with the smoothing,
the mean difference, and Spearman's correlation of the two.
"""

import numpy as np
import pandas
from scipy.stats import spearmanr

from scripts import ROOT
from text_metrics import load
from text_metrics.commands.shared.command import command
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence, smooth

SCALES = (
    ("Yes", "No"),
    ("Acceptable", "Unacceptable"),
    ("Strongly agree", "Agree", "Neither agree nor disagree", "Disagree", "Strongly disagree"),
    ("Very satisfied", "Somewhat satisfied", "Somewhat dissatisfied", "Very dissatisfied"),
    ("Very likely", "Somewhat likely", "Not too likely", "Not at all likely"),
    ("Always", "Often", "Sometimes", "Rarely", "Never"),
    ("Excellent", "Good", "Only fair", "Poor", "Don't know"),
    ("Increased", "Stayed about the same", "Decreased"),
)
PIPELINES = {
    "exact": {"matcher": "exact"},
    "default": {},
    "none, cosine": {"clustering": "none"},
    "hac, cosine": {"clustering": "hac"},
}
DRAWS = 15
ANSWERS = 1000


@command
def main() -> None:
    """Write the table."""
    rng, metric = np.random.default_rng(0), load("probeval")
    sides: dict[str, list[dict[str, int]]] = {"references": [], "predictions": []}
    by_hand = []
    for scale in (scale for scale in SCALES for _ in range(DRAWS)):
        counts = [rng.multinomial(ANSWERS, rng.dirichlet(np.ones(len(scale)))) for _ in sides]
        for rows, drawn in zip(sides.values(), counts, strict=True):
            rows.append(dict(zip(scale, drawn.tolist(), strict=True)))
        # An option that nobody chose is wrong.
        chosen, wrong = counts[0] > 0, [0, counts[1][counts[0] == 0].sum()]
        p, q = (smooth(np.append(side[chosen], w).astype(float), 1.0) for side, w in zip(counts, wrong, strict=True))
        by_hand.append(float(kl_divergence(p, q)))
    table = {}
    for name, settings in PIPELINES.items():
        scores = metric.compute(**sides, **settings)["scores"]
        differences = np.abs(np.subtract(scores, by_hand))
        rank = spearmanr(scores, by_hand).statistic
        table[name] = [f"{(differences > 0.01).sum()} of {len(scores)}", f"{differences.mean():.3f}", f"{rank:.3f}"]
    columns = ["off by more than 0.01", "mean difference", "Spearman's correlation"]
    frame = pandas.DataFrame.from_dict(table, orient="index", columns=columns)
    frame.to_csv(ROOT / "results" / "probeval-polls.csv", index_label="clusters, matcher")


if __name__ == "__main__":
    raise SystemExit(main())
