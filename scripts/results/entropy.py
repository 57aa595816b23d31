"""Write results/entropy.csv: how far the semantic entropy of few answers is from that of all, by estimator.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.entropy

For each question of the development set of Commonsense Frame Completion, people's answers are drawn without
replacement, with the clusters that people put them into; the entropy of all of its answers counts as the true one. The
bias is the mean difference over the draws of a question, averaged over questions, with a 95 % interval over questions;
the error is the root of the mean squared difference.
"""

import numpy as np
import pandas
from scipy.stats import t

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.commands.probe.files import read_references
from text_metrics.commands.shared.command import command, make_parser

SIZES, DRAWS = (5, 10, 20), 200
ESTIMATORS = ("plugin", "chao_shen")


@command
def main() -> None:
    """Write the table."""
    path = data_folder(make_parser(__doc__)) / "probeval" / "cfc_dev_targets.jsonl"
    metric, generator = load("semantic_entropy"), np.random.default_rng(0)
    answers = []
    for question in read_references(path):
        clusters = [str(answer["cluster"]) for answer in question["answers"]]
        counts = [answer["count"] for answer in question["answers"]]
        answers.append(np.repeat(clusters, counts))
    answers = [labels for labels in answers if len(labels) >= max(SIZES)]
    whole = [labels.tolist() for labels in answers]
    true = np.array(metric.compute(predictions=whole, classes=whole)["scores"])
    rows = []
    for size in SIZES:
        drawn = [generator.choice(labels, size, replace=False).tolist() for labels in answers for _ in range(DRAWS)]
        for estimator in ESTIMATORS:
            scores = metric.compute(predictions=drawn, classes=drawn, estimator=estimator)["scores"]
            errors = np.reshape(scores, (len(answers), DRAWS)) - true[:, None]
            bias, half = errors.mean(), t.ppf(0.975, len(answers) - 1) * errors.mean(axis=1).std(ddof=1)
            half /= np.sqrt(len(answers))
            root = np.sqrt(np.square(errors).mean())
            interval = f"[{bias - half:+.2f}, {bias + half:+.2f}]"
            rows.append((size, estimator, f"{bias:+.2f} {interval}", f"{root:.2f}"))
    names = ["answers", "estimator", "bias in nats", "error in nats"]
    pandas.DataFrame(rows, columns=names).to_csv(ROOT / "results" / "entropy.csv", index=False)
    print(f"{len(answers)} questions with {min(map(len, answers))} to {max(map(len, answers))} answers, ", end="")
    print(f"entropy {true.mean():.2f} nats on average")


if __name__ == "__main__":
    raise SystemExit(main())
