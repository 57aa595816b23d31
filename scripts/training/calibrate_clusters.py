"""Fit the probability that two answers say the same, for the soft clusters of probeval.

    python -m scripts.training.calibrate_clusters              Commonsense Frame Completion's dev set
    python -m scripts.training.calibrate_clusters --matcher soft_wordnet

Prints the regression for metrics/probeval/probeval_soft.py: a logistic regression on the pairs of gold answers of a
question, with one weight in total for each question, and log counts for the answers. Also the ranking of pairs (area
under the ROC curve, mean over questions) by weights that were fitted to other questions, and whether the clusters look
like people's: how many pairs of answers with the same content words, such as "a maid" and "maids", are in one cluster.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics.probeval.probeval_formats import Question, read_questions
from text_metrics.metrics.probeval.probeval_lin import LinSimilarity, load_lin
from text_metrics.metrics.probeval.probeval_released import from_released, parse_target
from text_metrics.metrics.probeval.probeval_soft import FEATURES, REGRESSIONS, Regression, pair_features, words
from text_metrics.metrics.probeval.probeval_vectors import Embeddings
from text_metrics.metrics.probeval.probeval_wordnet import load_wordnet

STRENGTH = 0.1  # inverse of the regularization


class Pairs(NamedTuple):
    """The pairs of gold answers of a question: features, (n, 11 or 12), whether people put them together, weights."""

    features: np.ndarray
    together: np.ndarray
    weights: np.ndarray


def read(path: Path) -> list[Question]:
    """Read questions whose gold answers people put into clusters."""
    records = list(read_objects(path))
    targets = [parse_target(record, where) for where, record in records]
    rows = from_released([record for _, record in records], {target["id"]: [] for target in targets})
    return read_questions(rows["predictions"], rows["references"])


def embed(questions: list[Question], model: str) -> Embeddings:
    """Embed the gold answers and their content words."""
    gold = {text for question in questions for text in question.gold}
    texts = sorted(gold | {words(text).content for text in gold})
    return Embeddings(texts, encode(texts, EncoderSettings(model)).embeddings)


def pairs_of(question: Question, embeddings: Embeddings, lin: LinSimilarity | None = None) -> Pairs:
    """Compare all pairs of gold answers of a question, with `lin` also by WordNet."""
    upper = np.triu_indices(len(question.gold), 1)
    members = (question.gold_counts > 0).astype(float)
    counts = np.log1p(question.gold_counts.sum(axis=1))
    weights = np.outer(counts, counts)[upper]
    features = pair_features(question.gold, question.gold, embeddings, lin)
    return Pairs(features[upper], (members @ members.T > 0)[upper], weights / weights.sum())


def fit(pairs: list[Pairs]) -> Regression:
    """Fit the regression, with weights for unscaled features."""
    features, together, weights = (np.concatenate(column) for column in zip(*pairs, strict=True))
    scaler = StandardScaler()
    model = make_pipeline(scaler, LogisticRegression(C=STRENGTH, max_iter=1000))
    model.fit(features, together, logisticregression__sample_weight=weights * len(weights) / weights.sum())
    slopes = model[-1].coef_[0] / scaler.scale_
    return Regression(tuple(slopes.tolist()), float(model[-1].intercept_[0] - slopes @ scaler.mean_))


def cross_fit(pairs: list[Pairs], folds: int) -> list[Regression]:
    """Fit a regression for each of the questions, by those of the other folds."""
    fitted = [fit([part for i, part in enumerate(pairs) if i % folds != fold]) for fold in range(folds)]
    return [fitted[i % folds] for i in range(len(pairs))]


def variants_together(pairs: list[Pairs]) -> str:
    """Say how many pairs of answers with the same content words are in one cluster, beside all pairs."""
    together = np.concatenate([part.together for part in pairs])
    same = np.concatenate([part.features[:, FEATURES.index("shared words")] for part in pairs]) == 1
    share = f"{together[same].mean():.1%} of {same.sum()}" if same.any() else "there are none"
    return f"Pairs with the same content words that are in one cluster: {share}; of all pairs: {together.mean():.1%}."


@command
def main() -> None:
    """Run the command."""
    data = Path(os.environ.get("METRICS_TEST_DATA", "")) / "data" / "probeval"
    parser = make_parser(__doc__)
    parser.add_argument("--targets", type=Path, default=data / "cfc_dev_targets.jsonl", help="gold answer clusters")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--matcher", choices=REGRESSIONS, default="soft", help="which regression of the metric")
    parser.add_argument("--folds", type=int, default=7, help="of the cross-validation; 0 for none")
    arguments = parser.parse_args()
    questions = [question for question in read(arguments.targets) if len(question.gold) > 1]
    embeddings = embed(questions, arguments.model)
    lin = load_lin(load_wordnet()) if REGRESSIONS[arguments.matcher].needs_wordnet else None
    pairs = [pairs_of(question, embeddings, lin) for question in questions]
    regression = fit(pairs)
    print(f"Regression(({', '.join(f'{weight:.3f}' for weight in regression.weights)}), {regression.intercept:.3f})")
    print(variants_together(pairs))
    if arguments.folds:
        areas = [
            roc_auc_score(part.together, part.features @ np.array(fitted.weights), sample_weight=part.weights)
            for part, fitted in zip(pairs, cross_fit(pairs, arguments.folds), strict=True)
            if 0 < part.together.sum() < len(part.together)
        ]
        print(f"Area under the ROC curve, {arguments.folds} folds: {np.mean(areas):.3f} over {len(areas)} questions.")


if __name__ == "__main__":
    raise SystemExit(main())
