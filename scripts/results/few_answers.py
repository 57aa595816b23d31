"""Write results/entropy.csv and results/pairs.csv: scores of few answers beside those of many.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.few_answers

For each question of the development set of Commonsense Frame Completion, some of people's answers are drawn without
replacement. The first table has the semantic entropy of their clusters, by estimator, beside that of all answers, which
counts as the true one: the bias is the mean difference over the draws of a question, averaged over questions, with a
95 % interval over questions; the error is the root of the mean squared difference. The second has Vendi scores and the
diversity of pairs of growing subsets of one draw, with 95 % intervals over questions.
"""

from pathlib import Path

import numpy as np
import pandas

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.commands.probe.files import read_references
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.metrics._core.core_results import mean_estimate

SIZES, DRAWS = (5, 10, 20), 200
ESTIMATORS = ("plugin", "chao_shen")
SUBSETS = (2, 4, 8, 16, 32)


def read_answers(path: Path, key: str) -> list[np.ndarray]:
    """Read the texts or the clusters of all answers to each question."""
    answers = []
    for question in read_references(path):
        values = [str(answer[key]) for answer in question["answers"]]
        answers.append(np.repeat(values, [answer["count"] for answer in question["answers"]]))
    return answers


def entropies(path: Path) -> pandas.DataFrame:
    """Compare estimates of the semantic entropy with that of all answers."""
    metric, generator = load("semantic_entropy"), np.random.default_rng(0)
    answers = read_answers(path, "cluster")
    whole = [labels.tolist() for labels in answers]
    true = np.array(metric.compute(predictions=whole, classes=whole)["scores"])
    rows = []
    for size in SIZES:
        drawn = [generator.choice(labels, size, replace=False).tolist() for labels in answers for _ in range(DRAWS)]
        for estimator in ESTIMATORS:
            scores = metric.compute(predictions=drawn, classes=drawn, estimator=estimator)["scores"]
            errors = np.reshape(scores, (len(answers), DRAWS)) - true[:, None]
            bias = mean_estimate(errors.mean(axis=1))
            root = np.sqrt(np.square(errors).mean())
            rows.append((size, estimator, f"{bias.value:+.2f} {show(bias.interval(0.95), '+.2f')}", f"{root:.2f}"))
    return pandas.DataFrame(rows, columns=["answers", "estimator", "bias in nats", "error in nats"])


def pairs(path: Path) -> pandas.DataFrame:
    """Score growing subsets of the same answers."""
    generator = np.random.default_rng(0)
    answers = [generator.permutation(texts).tolist() for texts in read_answers(path, "text")]
    rows = []
    for size in SUBSETS:
        sets = [texts[:size] for texts in answers]
        result = load("vendi_embed").compute(predictions=sets, pairs=True, confidence=0.95)
        vendi = f"{result['vendi_embed']:.2f} {show(result['confidence_interval'], '.2f')}"
        rows.append((size, vendi, f"{result['pairs']:.2f} {show(result['pairs_confidence_interval'], '.2f')}"))
    return pandas.DataFrame(rows, columns=["answers", "Vendi score", "pairs"])


def show(interval: list[float] | None, form: str) -> str:
    """Write an interval."""
    return "" if interval is None else f"[{interval[0]:{form}}, {interval[1]:{form}}]"


@command
def main() -> None:
    """Write the tables."""
    path = data_folder(make_parser(__doc__)) / "probeval" / "cfc_dev_targets.jsonl"
    for name, table in (("entropy", entropies(path)), ("pairs", pairs(path))):
        table.to_csv(ROOT / "results" / f"{name}.csv", index=False)


if __name__ == "__main__":
    raise SystemExit(main())
