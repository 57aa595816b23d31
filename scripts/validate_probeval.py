"""How far to trust probeval: the experiment of its paper (arXiv 2406.04145, section 5).

For each question, sets of answers are drawn from a pool whose answers people have put into clusters, by five schemes.
Each set is scored twice: by people's clusters and labels, and by an automatic pipeline. The table gives Spearman's
correlation of the two over the sets of a question, averaged over questions, with a bootstrap interval over questions.
A correlation of 1 says that the pipeline ranks the sets as people's labels do.

    python scripts/validate_probeval.py                           Commonsense Frame Completion's dev set
    python scripts/validate_probeval.py --report VALIDATION.md --plot validation.png
    python scripts/validate_probeval.py --targets dev.jsonl --assessments dev.assessments.jsonl     ProtoQA's files

There are three tables. Most released answers equal a gold answer, and those are easy to match; so the others use
answers that equal none: those that the model gave (where there are enough of them), and gold answers, half of the
strings of each cluster being held out to serve as the model's.
"""

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics.probeval.core_encoder import EncoderSettings, encode  # noqa: E402
from metrics.probeval.core_vectors import load_vectors  # noqa: E402
from metrics.probeval.probeval_formats import (  # noqa: E402
    WRONG,
    Question,
    from_protoqa,
    labels_from_cfc,
    parse_rows,
    questions,
)
from metrics.probeval.probeval_matching import WordNetMatcher, cluster_maximum  # noqa: E402
from metrics.probeval.probeval_pipeline import (  # noqa: E402
    Settings,
    cluster,
    match,
    needs_embeddings,
    resolve,
    score,
)
from metrics.probeval.probeval_protoqa import protoqa_matches, ranked_scores  # noqa: E402
from metrics.probeval.probeval_vectors import Embeddings, average_word_vectors  # noqa: E402
from metrics.probeval.probeval_wordnet import load_wordnet  # noqa: E402

CLUSTERINGS = ("human", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("cosine", "wordnet", "gp", "cascade")
PROTOQA_RULES = ("max_answers_10", "max_incorrect_3")
GOLD_SAMPLE = 50  # gold answers that join the pool, so that it reaches each cluster
MIN_ANSWERS = 10  # in a pool
RESAMPLES = 2000


class Pool(NamedTuple):
    """A question, and the answers to draw from.

    question : its `answers` are the u different answers of the pool, and `counts` how often each is there
    columns : ndarray of shape (u,), the cluster of each answer by people; the last, c, is `wrong`
    """

    question: Question
    columns: np.ndarray

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the distribution of people's answers and of the pool over the clusters and `wrong`, add-one."""
        gold = np.append(self.question.gold_counts.sum(axis=0), 0.0) + 1
        own = np.bincount(self.columns, weights=self.question.counts, minlength=len(gold)) + 1
        return gold / gold.sum(), own / own.sum()


# Schemes: how a set's distribution over the clusters is chosen.


def centered(gold: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix the pool's distribution with people's and the uniform one, at least half of it the pool's."""
    weight = rng.uniform(0.5, 1)
    other = rng.uniform()
    return weight * own + (1 - weight) * (other * gold + (1 - other) / len(gold))


def diverse(gold: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix people's distribution with the uniform one."""
    weight = rng.uniform()
    return weight * gold + (1 - weight) / len(gold)


def missing_answer(gold: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Leave out some clusters, at least one, and keep at least two."""
    share = gold.copy()
    share[rng.choice(len(gold), rng.integers(1, max(len(gold) - 1, 2)), replace=False)] = 0.0
    return share / share.sum()


def wrong_ranking(gold: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Deal people's shares out to other clusters."""
    share = rng.permutation(gold)
    while np.ptp(gold) > 0 and (share == gold).all():
        share = rng.permutation(gold)
    return share


def wrong_score(gold: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move each share by up to half of its distance to the next: the ranking stays."""
    order = np.argsort(-gold, kind="stable")
    gaps = np.abs(np.diff(gold[order]))
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf)) / 2
    room = np.minimum(room, np.minimum(gold[order], 1 - gold[order]))
    share = gold.copy()
    share[order] += rng.uniform(-room, room)
    return share / share.sum()


SCHEMES: tuple[Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray], ...] = (
    centered,
    diverse,
    missing_answer,
    wrong_ranking,
    wrong_score,
)


def draw(pool: Pool, scheme: Callable, rng: np.random.Generator) -> np.ndarray:
    """Draw a set from the pool, without replacement, as large as it allows for the scheme's distribution.

    Returns
    -------
    ndarray of shape (u,), how often each answer is in the set
    """
    gold, own = pool.shares()
    share = scheme(gold, own, rng)
    # As in the original, each cluster has one answer more than it has, and whoever draws that gets none.
    sizes = np.bincount(pool.columns, weights=pool.question.counts, minlength=len(gold)).astype(int) + 1
    wanted = share * sizes.sum()
    ratio = min(float(np.min(np.divide(sizes, wanted, out=np.ones(len(gold)), where=wanted > sizes))), 1.0)
    numbers = np.rint(wanted * ratio).astype(int)
    if scheme in (wrong_ranking, wrong_score):
        numbers = _each_once(numbers)
        # Small sets are enlarged until they rank the clusters as the scheme does.
        while ratio + 0.1 <= 1 and not np.array_equal(_order(numbers), _order(share)):
            ratio += 0.1
            numbers = _each_once(np.rint(wanted * ratio).astype(int))
    drawn = np.zeros(len(pool.columns))
    for column, (size, number) in enumerate(zip(sizes, np.minimum(numbers, sizes), strict=True)):
        members = np.flatnonzero(pool.columns == column)
        tokens = np.repeat(members, pool.question.counts[members].astype(int))
        picked = rng.choice(size, number, replace=False)
        np.add.at(drawn, tokens[picked[picked < size - 1]], 1)
    return drawn


def _each_once(numbers: np.ndarray) -> np.ndarray:
    return numbers + bool((numbers == 0).any())


def _order(shares: np.ndarray) -> np.ndarray:
    return np.argsort(-shares, kind="stable")


# Pools.


def read(targets: Path, predictions: Path | None, assessments: Path | None) -> list[tuple[Question, dict[str, list]]]:
    """Read questions, and for each the labelled answers of models: text to [cluster, count]."""
    if assessments is not None:
        records = [json.loads(line) for line in assessments.read_text(encoding="utf-8").splitlines() if line.strip()]
        labelled = {
            record["question_id"]: {text: [str(label), 1] for text, label in record["assessments"].items()}
            for record in records
        }
    else:
        assert predictions is not None
        data = json.loads(predictions.read_text(encoding="utf-8"))["annotated_prediction_data"]
        labels = labels_from_cfc(data)
        labelled = {
            identity: {text: [labels[identity][text], entry["count"]] for text, entry in answers.items()}
            for identity, answers in data.items()
        }
    rows = from_protoqa(str(targets), {identity: list(answers) for identity, answers in labelled.items()})
    asked = questions(rows["predictions"], rows["references"])
    return [(question, labelled[question.name]) for question in asked]


def make_pool(question: Question, gold: list[dict], labelled: dict[str, list]) -> Pool | None:
    """Put a question and labelled answers together; None where there is too little to draw from."""
    clusters = sorted({answer["cluster"] for answer in gold})
    columns = {label: i for i, label in enumerate(clusters)}
    answers = [{"text": text, "count": count} for text, (_, count) in labelled.items()]
    reached = {label for label, _ in labelled.values() if label in columns}
    if len(clusters) < 2 or len(reached) < 2 or sum(count for _, count in labelled.values()) < MIN_ANSWERS:
        return None
    rows = parse_rows([{"id": question.name, "answers": answers}], [{"id": question.name, "answers": gold}])
    (asked,) = questions(*rows)
    own = [columns.get(labelled[text][0], len(clusters)) for text in asked.answers]
    return Pool(asked, np.array(own))


def gold_entries(question: Question) -> list[dict]:
    """Write the gold answers of a question out: an entry for each answer and cluster."""
    assert question.clusters is not None
    return [
        {"text": question.gold[i], "count": int(question.gold_counts[i, j]), "cluster": question.clusters[j]}
        for i, j in np.argwhere(question.gold_counts > 0).tolist()
    ]


def all_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Pool the model's answers with some of people's, as the paper does."""
    entries = gold_entries(question)
    pool = {text: list(entry) for text, entry in labelled.items()}
    total = sum(entry["count"] for entry in entries)
    for label in sorted({entry["cluster"] for entry in entries}):
        texts = [entry["text"] for entry in entries if entry["cluster"] == label for _ in range(entry["count"])]
        number = min(len(texts), int(np.ceil(len(texts) / total * GOLD_SAMPLE)))
        for text, count in Counter(rng.choice(texts, number, replace=False).tolist()).items():
            pool.setdefault(text, [label, 0])[1] += count
    return make_pool(question, entries, pool)


def unseen_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Pool the model's answers that equal no gold answer."""
    gold = {text.strip().lower() for text in question.gold}
    pool = {text: entry for text, entry in labelled.items() if text.strip().lower() not in gold}
    return make_pool(question, gold_entries(question), pool)


def held_out_answers(question: Question, labelled: dict[str, list], rng: np.random.Generator) -> Pool | None:
    """Take half of the strings of each cluster from the gold answers, and pool them with the model's wrong answers."""
    gold, pool = [], {text: entry for text, entry in labelled.items() if entry[0] == WRONG}
    entries = gold_entries(question)
    for label in sorted({entry["cluster"] for entry in entries}):
        own = [entry for entry in entries if entry["cluster"] == label]
        order = rng.permutation(len(own)).tolist()
        kept = {own[i]["text"] for i in order[: (len(own) + 1) // 2]}
        gold += [entry for entry in own if entry["text"] in kept]
        pool |= {entry["text"]: [label, entry["count"]] for entry in own if entry["text"] not in kept}
    texts = {entry["text"] for entry in gold}
    return make_pool(question, gold, {text: entry for text, entry in pool.items() if text not in texts})


VIEWS: dict[str, Callable[[Question, dict[str, list], np.random.Generator], Pool | None]] = {
    "all answers": all_answers,
    "the model's answers that equal no gold answer": unseen_answers,
    "held-out gold answers, none of which equals one that is left": held_out_answers,
}


# Scores.


def settings_for(clustering: str, matcher: str, parity: bool) -> Settings:
    """Give the default settings of a pipeline."""
    return resolve(Settings(clustering=clustering, matcher=matcher, parity=parity), [])


def correlations(
    pool: Pool, sets: list[np.ndarray], pipelines: dict[str, Settings], embeddings: Embeddings, wordnet: WordNetMatcher
) -> dict[str, np.ndarray]:
    """Correlate each pipeline's scores with people's, scheme by scheme.

    Parameters
    ----------
    sets : for each scheme an ndarray of shape (sets, u)

    Returns
    -------
    dict from a pipeline's name to an ndarray with a correlation for each scheme: 0 where its scores do not vary, NaN
    where people's do not
    """
    question = pool.question
    human = next(iter(pipelines.values()))._replace(clustering="human", matcher="human")
    labels = [[*(question.clusters or []), WRONG][column] for column in pool.columns]
    clusters = cluster(question, human, None)
    weights = match(question, clusters, human, None, None, labels)
    truth = [[score(row, weights, clusters, human).score for row in rows] for rows in sets]
    found = {}
    for name, settings in pipelines.items():
        clusters = cluster(question, settings, embeddings)
        weights = match(question, clusters, settings, embeddings, wordnet)
        found[name] = [[score(row, weights, clusters, settings).score for row in rows] for rows in sets]
    matches = protoqa_matches(question.answers, question.gold, wordnet)
    masses = question.gold_counts.sum(axis=0)
    for kind, matrix in matches.items():
        reached = cluster_maximum(matrix, question.gold_counts > 0)
        won = [[ranked_scores(reached[ranking(row)], masses) for row in rows] for rows in sets]
        for rule in PROTOQA_RULES:
            found[f"ProtoQA {kind}, {rule}"] = [[-one[rule] for one in rows] for rows in won]
    return {
        name: np.array([correlate(ours, theirs) for ours, theirs in zip(rows, truth, strict=True)])
        for name, rows in found.items()
    }


def ranking(row: np.ndarray) -> np.ndarray:
    """Rank the answers of a set by count."""
    order = np.argsort(-row, kind="stable")
    return order[row[order] > 0]


def correlate(ours: list[float], theirs: list[float]) -> float:
    """Give Spearman's correlation: 0 where ours does not vary, NaN where theirs does not."""
    if np.ptp(theirs) == 0:
        return float("nan")
    return 0.0 if np.ptp(ours) == 0 else float(spearmanr(ours, theirs).statistic)


def interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float, float]:
    """Average over questions, with a 95 % bootstrap interval."""
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    means = values[rng.integers(len(values), size=(RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def table(found: dict[str, np.ndarray], seed: int) -> list[str]:
    """Write correlations, (questions, schemes) for each pipeline, as Markdown."""
    names = [scheme.__name__.replace("_", " ") for scheme in SCHEMES]
    lines = [f"| pipeline | {' | '.join(names)} | mean |", "|---" * (len(names) + 2) + "|"]
    for name, values in found.items():
        columns = [*values.T, values.mean(axis=1)]
        cells = [interval(column, np.random.default_rng(seed)) for column in columns]
        lines.append(f"| {name} | " + " | ".join(f"{m:.3f} [{low:.3f}, {high:.3f}]" for m, low, high in cells) + " |")
    return lines


def plot(tables: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Draw the mean correlation of each pipeline, a panel for each table."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(tables), figsize=(6 * len(tables), 7), sharey=True, squeeze=False)
    for panel, (title, found) in zip(axes[0], tables.items(), strict=True):
        cells = [interval(values.mean(axis=1), np.random.default_rng(0)) for values in found.values()]
        middle = np.array([mean for mean, _, _ in cells])
        reach = np.array([[mean - low, high - mean] for mean, low, high in cells]).T
        panel.errorbar(middle, range(len(cells)), xerr=reach, fmt="o")
        panel.set_yticks(range(len(cells)), list(found))
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("mean Spearman correlation with people's scores")
        panel.grid(axis="x", alpha=0.3)
    axes[0][0].invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    """Run the command."""
    data = Path(os.environ.get("METRICS_TEST_DATA", "")) / "data" / "probeval"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=Path, default=data / "cfc_dev_targets.jsonl", help="gold answer clusters")
    parser.add_argument("--predictions", type=Path, default=data / "cfc_dev_annotated_predictions.json")
    parser.add_argument("--assessments", type=Path, help="ProtoQA's labelled answers, in place of --predictions")
    parser.add_argument("--clusterings", nargs="+", default=CLUSTERINGS, choices=CLUSTERINGS)
    parser.add_argument("--matchers", nargs="+", default=MATCHERS, choices=MATCHERS)
    parser.add_argument("--sets", type=int, default=50, help="sets drawn for each question and scheme")
    parser.add_argument("--questions", type=int, help="only the first so many")
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--vectors", help="word vectors, in place of --model")
    parser.add_argument("--parity", action="store_true", help="the original's matching and smoothing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="write the tables to a file too")
    parser.add_argument("--plot", type=Path, help="draw them (needs matplotlib)")
    arguments = parser.parse_args()

    asked = read(arguments.targets, arguments.predictions, arguments.assessments)[: arguments.questions]
    texts = sorted({text for question, labelled in asked for text in [*question.gold, *labelled]})
    if arguments.vectors:
        matrix, identity = average_word_vectors(texts, load_vectors(arguments.vectors))
    else:
        encoded = encode(texts, EncoderSettings(arguments.model))
        matrix, identity = encoded.embeddings, encoded.signed["model"]
    embeddings, wordnet = Embeddings(texts, matrix), WordNetMatcher(load_wordnet())
    pipelines = {
        f"{clustering} + {matcher}": settings
        for clustering in arguments.clusterings
        for matcher in arguments.matchers
        if needs_embeddings(settings := settings_for(clustering, matcher, arguments.parity)) or matcher == "wordnet"
    }

    lines = [
        f"{arguments.targets.name}, {arguments.sets} sets a scheme, seed {arguments.seed}, embeddings {identity}"
        f"{', parity' if arguments.parity else ''}. Mean over questions of Spearman's correlation, "
        "with 95 % bootstrap intervals over questions."
    ]
    tables: dict[str, dict[str, np.ndarray]] = {}
    for title, view in VIEWS.items():
        rng = np.random.default_rng(arguments.seed)
        rows: list[dict[str, np.ndarray]] = []
        shares = []
        for question, labelled in asked:
            pool = view(question, labelled, rng)
            if pool is None:
                continue
            sets = [np.array([draw(pool, scheme, rng) for _ in range(arguments.sets)]) for scheme in SCHEMES]
            rows.append(correlations(pool, sets, pipelines, embeddings, wordnet))
            equal = np.array([text in set(pool.question.gold) for text in pool.question.answers])
            shares.append(float(pool.question.counts[equal].sum() / pool.question.counts.sum()))
        lines += ["", f"### {title.capitalize()}: {len(rows)} of {len(asked)} questions"]
        if not rows:
            lines += ["", "No question has enough such answers."]
            continue
        tables[title] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        lines += ["", f"{100 * np.mean(shares):.0f} % of the answers in a pool equal a gold answer.", ""]
        lines += table(tables[title], arguments.seed)
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    if arguments.plot:
        plot(tables, arguments.plot)
    return 0


if __name__ == "__main__":
    with warnings.catch_warnings():
        # scikit-learn: fewer different points than centers, where answers have equal embeddings.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        raise SystemExit(main())
