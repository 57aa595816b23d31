"""How far to trust probeval: the experiment of its paper (arXiv 2406.04145, section 5).

For each question, sets of answers are drawn from a pool whose answers people have put into clusters, by five schemes.
Each set is scored twice: by people's clusters and labels, and by an automatic pipeline. The table gives Spearman's
correlation of the two over the sets of a question, averaged over questions, with a bootstrap interval over questions.
A correlation of 1 says that the pipeline ranks the sets as people's labels do.

    python -m scripts.reports.probeval                           Commonsense Frame Completion's dev set
    python -m scripts.reports.probeval --report VALIDATION.md --scatter scatter.png

There are four views. Most released answers equal a gold answer, and those are easy to match; so the others use
answers that equal none: those that the model gave (where there are enough of them), and gold answers, half of the
strings of each cluster being held out to serve as the model's. The development set has one wrong answer for each
question, the word "wrong", so the last view adds people's answers to other questions. The last table has the mean of
each view.
"""

import argparse
import itertools
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

from scripts.arguments import DATA
from scripts.reports.probeval.pools import SCHEMES, VIEWS, Pool, among_other_questions, draw, read
from text_metrics.commands.meta_eval.agreement import percentile_interval
from text_metrics.commands.shared.command import command, drawn, make_parser
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.commands.shared.pages import markdown_table, save_figure
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL
from text_metrics.metrics.probeval.probeval_formats import WRONG
from text_metrics.metrics.probeval.probeval_matching import WordNetMatcher, cluster_maximum
from text_metrics.metrics.probeval.probeval_pipeline import (
    Resources,
    cluster,
    match,
    score,
)
from text_metrics.metrics.probeval.probeval_protoqa import protoqa_matches, ranked_scores
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings, resolve
from text_metrics.metrics.probeval.probeval_soft import words
from text_metrics.metrics.probeval.probeval_vectors import Embeddings
from text_metrics.metrics.probeval.probeval_wordnet import load_wordnet

CLUSTERINGS = ("human", "soft", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("soft", "cosine", "wordnet", "gp")
PROTOQA_RULES = ("max_answers_10", "max_incorrect_3")
BASELINE = "hac + cosine"  # the others are compared with it, question by question
RESAMPLES = 2000
SEED = 0


def score_sets(
    pool: Pool, sets: list[np.ndarray], pipelines: dict[str, ProbevalSettings], resources: Resources
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Score sets of answers, for each scheme an ndarray of shape (sets, u).

    Returns the scores by people's clusters and labels, (schemes, sets), and by each pipeline; ProtoQA's with the sign
    changed.
    """
    question = pool.question
    labels = [[*(question.clusters or []), WRONG][column] for column in pool.columns]
    human = replace(next(iter(pipelines.values())), clustering="human", matcher="human", labels=labels)
    clusters = cluster(question, human, resources)
    weights = match(question, clusters, human, resources, labels)
    truth = [[score(row, weights, clusters, human).score for row in rows] for rows in sets]
    scores = {}
    for name, settings in pipelines.items():
        clusters = cluster(question, settings, resources)
        weights = match(question, clusters, settings, resources)
        scores[name] = [[score(row, weights, clusters, settings).score for row in rows] for rows in sets]
    assert resources.wordnet is not None
    matches = protoqa_matches(question.answers, question.gold, resources.wordnet)
    masses = question.gold_counts.sum(axis=0)
    for kind, matrix in matches.items():
        reached = cluster_maximum(matrix, question.gold_counts > 0)
        won = [[ranked_scores(reached[ranking(row)], masses) for row in rows] for rows in sets]
        for rule in PROTOQA_RULES:
            scores[f"ProtoQA {kind}, {rule}"] = [[-ranked[rule] for ranked in rows] for rows in won]
    return np.array(truth), {name: np.array(rows) for name, rows in scores.items()}


def correlations(
    scored: tuple[np.ndarray, dict[str, np.ndarray]], statistic: Callable[..., Any] = spearmanr
) -> dict[str, np.ndarray]:
    """Correlate each pipeline's scores of the sets of a question with people's: an ndarray of shape (schemes,)."""
    truth, scores = scored
    return {
        name: np.array([correlate(*pair, statistic) for pair in zip(rows, truth, strict=True)])
        for name, rows in scores.items()
    }


def ranking(row: np.ndarray) -> np.ndarray:
    """Rank the answers of a set by count."""
    order = np.argsort(-row, kind="stable")
    return order[row[order] > 0]


def correlate(ours: np.ndarray, theirs: np.ndarray, statistic: Callable[..., Any] = spearmanr) -> float:
    """Compute a correlation, by default Spearman's: 0 if ours does not vary, NaN if theirs does not."""
    if np.ptp(theirs) == 0:
        return float("nan")
    return 0.0 if np.ptp(ours) == 0 else float(statistic(ours, theirs).statistic)


def pool_questions(scored: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Pool the sets of all questions and schemes: a pipeline's name to its scores and people's, each of shape (n,)."""
    truth = np.concatenate([values.ravel() for values, _ in scored])
    return {name: (np.concatenate([scores[name].ravel() for _, scores in scored]), truth) for name in scored[0][1]}


def table(correlated: dict[str, np.ndarray]) -> list[str]:
    """Format correlations, (questions, schemes) for each pipeline, as Markdown."""
    compared = [BASELINE] if BASELINE in correlated else []
    rows = [["pipeline", *(scheme.__name__.replace("_", " ") for scheme in SCHEMES), "mean"]]
    rows[0] += [f"mean, less that of {name}" for name in compared]
    for name, values in correlated.items():
        differences = [(values - correlated[other]).mean(axis=1) for other in compared]
        columns = [*values.T, values.mean(axis=1), *differences]
        rows.append([name, *(mean_cell(column) for column in columns)])
    return markdown_table(rows)


def mean_cell(values: np.ndarray) -> str:
    """Format the mean over questions, with its 95 % bootstrap interval."""
    values = values[~np.isnan(values)]
    if not len(values):
        return "nan [nan, nan]"
    drawn = np.random.default_rng(SEED).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = percentile_interval(values[drawn].mean(axis=1))
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def other_table(scored: list[tuple[np.ndarray, dict[str, np.ndarray]]]) -> list[str]:
    """Format Pearson's correlation, over the sets of a question, and both correlations over all sets, as Markdown."""
    by_question = [correlations(pair, pearsonr) for pair in scored]
    rows = [["pipeline", "Pearson", "Spearman, pooled", "Pearson, pooled"]]
    for name, pair in pool_questions(scored).items():
        values = np.array([row[name] for row in by_question]).mean(axis=1)
        pooled = (f"{correlate(*pair, statistic):.3f}" for statistic in (spearmanr, pearsonr))
        rows.append([name, mean_cell(values), *pooled])
    return markdown_table(rows)


def plot_scatter(scored: list[tuple[np.ndarray, dict[str, np.ndarray]]], title: str, path: Path) -> None:
    """Plot the scores of each pipeline against people's, a point for each set."""
    from matplotlib.figure import Figure

    pooled = pool_questions(scored)
    width = 3
    height = -(-len(pooled) // width)
    figure = Figure(figsize=(3.2 * width, 2.6 * height), layout="constrained")
    axes = figure.subplots(height, width, sharex=True, squeeze=False)
    for panel, (name, (ours, theirs)) in zip(axes.flat, pooled.items(), strict=False):
        panel.scatter(theirs, ours, s=2, alpha=0.2, linewidths=0, rasterized=True)
        panel.set_title(f"{name}: Pearson {correlate(ours, theirs, pearsonr):.2f}", fontsize=8)
    for panel in axes.flat[len(pooled) :]:
        panel.axis("off")
    figure.suptitle(title, fontsize=9)
    figure.supxlabel("KL by people's clusters and labels, nats", fontsize=8)
    figure.supylabel("score of the pipeline; of ProtoQA's rules, the negative", fontsize=8)
    save_figure(figure, path, dpi=120)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    data = Path(os.environ.get(DATA, "")) / "data" / "probeval"
    parser = make_parser(__doc__)
    parser.add_argument("--targets", type=Path, default=data / "cfc_dev_targets.jsonl", help="gold answer clusters")
    parser.add_argument("--predictions", type=Path, default=data / "cfc_dev_annotated_predictions.json")
    parser.add_argument("--clusterings", nargs="+", default=CLUSTERINGS, choices=CLUSTERINGS)
    parser.add_argument("--matchers", nargs="+", default=MATCHERS, choices=MATCHERS)
    parser.add_argument("--sets", type=int, default=50, help="sets drawn for each question and scheme")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--report", type=Path, help="write the tables to a file too")
    parser.add_argument("--others", action="store_true", help="Pearson's correlation and pooled correlations too")
    parser.add_argument("--scatter", type=drawn, help="draw each pipeline's scores of all answers against people's")
    arguments = parser.parse_args()
    if arguments.sets < 1:
        parser.error(f"--sets must be at least 1. Got {arguments.sets}.")
    reads = [arguments.targets, arguments.predictions, *module_files(arguments.model)]
    check_outputs(reads, [arguments.report, arguments.scatter])
    return arguments


@command
def main() -> None:
    """Run the command."""
    arguments = parse_arguments()
    questions = read(arguments.targets, arguments.predictions)
    answers = {text for question, labelled in questions for text in [*question.gold, *labelled]}
    texts = sorted(answers | {words(text).content for text in answers})
    encoded = encode(texts, EncoderSettings(arguments.model))
    resources = Resources(Embeddings(texts, encoded.embeddings), WordNetMatcher(load_wordnet()))
    pipelines = {}
    for clustering, matcher in itertools.product(arguments.clusterings, arguments.matchers):
        if clustering == "soft" and matcher != "soft":
            continue
        settings = resolve(ProbevalSettings(clustering=clustering, matcher=matcher), [])
        if settings.needs_embeddings or matcher == "wordnet":
            pipelines[f"{clustering} + {matcher}"] = settings

    lines = [
        f"{arguments.targets.name}, {arguments.sets} sets a scheme, seed {SEED}, embeddings {encoded.signed['model']}. "
        "Mean over questions of Spearman's correlation, with 95 % bootstrap intervals over questions."
    ]
    views = VIEWS | {
        "held-out gold answers, with people's answers to other questions as wrong ones": partial(
            among_other_questions, [question for question, _ in questions]
        )
    }
    means: list[dict[str, str]] = []
    for title, view in views.items():
        rng = np.random.default_rng(SEED)
        scored = []
        shares = []
        for question, labelled in questions:
            pool = view(question, labelled, rng)
            if pool is None:
                continue
            sets = [np.array([draw(pool, scheme, rng) for _ in range(arguments.sets)]) for scheme in SCHEMES]
            scored.append(score_sets(pool, sets, pipelines, resources))
            equal = np.array([text in set(pool.question.gold) for text in pool.question.answers])
            shares.append(float(pool.question.counts[equal].sum() / pool.question.counts.sum()))
        lines += ["", f"### {title.capitalize()}: {len(scored)} of {len(questions)} questions"]
        if not scored:
            lines += ["", "No question has enough such answers."]
            means.append({})
            continue
        by_question = [correlations(scores) for scores in scored]
        pooled = {name: np.array([row[name] for row in by_question]) for name in by_question[0]}
        lines += ["", f"{100 * np.mean(shares):.0f} % of the answers in a pool equal a gold answer.", ""]
        lines += table(pooled)
        means.append({name: mean_cell(values.mean(axis=1)) for name, values in pooled.items()})
        if arguments.others:
            lines += ["", "Other correlations:", "", *other_table(scored)]
        if arguments.scatter and title == "all answers":
            plot_scatter(scored, title, arguments.scatter)
    header = ["pipeline", "released", "unseen", "held out", "held out, other questions"]
    names = dict.fromkeys(name for cells in means for name in cells)
    rows = [[name, *(cells.get(name, "-") for cells in means)] for name in names]
    lines += ["", "### Means", "", *markdown_table([header, *rows])]
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.report:
        write_text(arguments.report, text)


if __name__ == "__main__":
    with warnings.catch_warnings():
        # scikit-learn: fewer different points than centers, where answers have equal embeddings.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        raise SystemExit(main())
