"""Write results/probeval.csv: how well probeval's pipelines rank sets of answers as people's labels do.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.probeval

The experiment of the paper (arXiv 2406.04145, section 5) on the development set of Commonsense Frame Completion. For
each question, sets of answers are drawn from a pool whose answers people have put into clusters, by five schemes. Each
set is scored by people's clusters and labels, and by a pipeline. The table has Spearman's correlation of the two over
the sets of a question, averaged over questions, with a 95 % bootstrap interval over questions.

Most released answers equal a gold answer, and those are easy to match. For the next two columns, half of the gold
strings of each cluster are held out to serve as the model's, with the one wrong answer that the set has, "wrong", or
with people's answers to other questions. results/probeval-schemes.csv has the released answers by scheme, and
results/probeval-clusters.csv the agreement of automatic clusters with people's. results/probeval-polls.csv compares
scores of the closed options of polls, with shares that are drawn for each scale, with the divergence of the options.
"""

import itertools
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas
from scipy.stats import spearmanr
from sklearn.metrics import adjusted_rand_score

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.commands.shared.command import Parser, command
from text_metrics.metrics.probeval import probeval_pipeline as pipeline
from text_metrics.metrics.probeval.probeval_formats import WRONG, Question, pair_rows, read_questions
from text_metrics.metrics.probeval.probeval_matching import cluster_maximum
from text_metrics.metrics.probeval.probeval_protoqa import protoqa_matches, ranked_scores
from text_metrics.metrics.probeval.probeval_released import from_released, labels_from_cfc
from text_metrics.metrics.probeval.probeval_sampling import kl_divergence, smooth
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings, resolve
from text_metrics.metrics.probeval.probeval_wordnet import load_wordnet

CLUSTERINGS = ("human", "soft", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("soft", "cosine", "wordnet", "gp")
PROTOQA_RULES = ("max_answers_10", "max_incorrect_3")
POLLS = {
    "exact": {"matcher": "exact"},
    "default": {},
    "none, cosine": {"clustering": "none"},
    "hac, cosine": {"clustering": "hac"},
}
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
N_POLLS = 15  # for each scale, with 1000 answers of each side
N_SETS = 50  # for each question and scheme
GOLD_SAMPLE = 50  # gold answers that join the pool, so that it reaches each cluster
MIN_ANSWERS = 10  # in a pool
RESAMPLES = 2000
SEED = 0

Shares = np.ndarray
# The cluster and the count of each answer of a pool.
Labelled = dict[str, tuple[str, int]]


class Pool(NamedTuple):
    """A question, and the answers to draw from.

    question : its `answers` are the u different answers of the pool, and `counts` their counts
    columns : ndarray of shape (u,), the cluster of each answer by people; the last, c, is `wrong`
    """

    question: Question
    columns: np.ndarray

    def shares(self) -> tuple[Shares, Shares]:
        """Return the add-one-smoothed distributions of the gold answers and of the pool over clusters and `wrong`."""
        gold = np.append(self.question.gold_counts.sum(axis=0), 0.0) + 1
        answers = np.bincount(self.columns, weights=self.question.counts, minlength=len(gold)) + 1
        return gold / gold.sum(), answers / answers.sum()


def make_pool(name: str, gold: list[dict], labelled: Labelled) -> Pool | None:
    """Make a pool of gold answers and labelled ones; None if there are too few to draw from."""
    clusters = sorted({answer["cluster"] for answer in gold})
    reached = {label for label, _ in labelled.values()}.intersection(clusters)
    if len(clusters) < 2 or len(reached) < 2 or sum(count for _, count in labelled.values()) < MIN_ANSWERS:
        return None
    answers = [{"text": text, "count": count} for text, (_, count) in labelled.items()]
    rows = pair_rows([{"id": name, "answers": answers}], [{"id": name, "answers": gold}])[:2]
    (pooled,) = read_questions(*rows)
    columns = [*clusters, WRONG]
    return Pool(pooled, np.array([columns.index(labelled[text][0]) for text in pooled.answers]))


def gold_entries(question: Question) -> list[dict]:
    """List the gold answers of a question: an entry for each answer and cluster."""
    assert question.clusters is not None
    return [
        {"text": question.gold[i], "count": int(question.gold_counts[i, j]), "cluster": question.clusters[j]}
        for i, j in np.argwhere(question.gold_counts > 0).tolist()
    ]


def released_pool(question: Question, labelled: Labelled, rng: np.random.Generator) -> Pool | None:
    """Pool the model's answers with a sample of the gold answers, as the paper does."""
    entries = gold_entries(question)
    pool = dict(labelled)
    total = sum(entry["count"] for entry in entries)
    for label in sorted({entry["cluster"] for entry in entries}):
        texts = [entry["text"] for entry in entries if entry["cluster"] == label for _ in range(entry["count"])]
        number = min(len(texts), int(np.ceil(len(texts) / total * GOLD_SAMPLE)))
        for text, count in Counter(rng.choice(texts, number, replace=False).tolist()).items():
            assigned, so_far = pool.get(text, (label, 0))
            pool[text] = assigned, so_far + count
    return make_pool(question.name, entries, pool)


def held_out_pool(question: Question, labelled: Labelled, rng: np.random.Generator) -> Pool | None:
    """Hold out half of the gold strings of each cluster, and pool them with the wrong ones of the labelled answers."""
    gold, pool = [], {text: entry for text, entry in labelled.items() if entry[0] == WRONG}
    entries = gold_entries(question)
    for label in sorted({entry["cluster"] for entry in entries}):
        members = [entry for entry in entries if entry["cluster"] == label]
        order = rng.permutation(len(members)).tolist()
        retained = {members[i]["text"] for i in order[: (len(members) + 1) // 2]}
        gold += [entry for entry in members if entry["text"] in retained]
        pool |= {entry["text"]: (label, entry["count"]) for entry in members if entry["text"] not in retained}
    texts = {entry["text"] for entry in gold}
    return make_pool(question.name, gold, {text: entry for text, entry in pool.items() if text not in texts})


def answers_to_others(question: Question, questions: list[Question], rng: np.random.Generator) -> Labelled:
    """Draw people's answers to other questions, half as many as there are to this one."""
    gold = {text.strip().lower() for text in question.gold}
    tokens = [
        text
        for other in questions
        if other.name != question.name
        for text, count in zip(other.gold, other.gold_counts.sum(axis=1).astype(int).tolist(), strict=True)
        if text.strip().lower() not in gold
        for _ in range(count)
    ]
    number = min(int(question.gold_counts.sum() // 2), len(tokens))
    return {text: (WRONG, count) for text, count in Counter(rng.choice(tokens, number, replace=False).tolist()).items()}


# The schemes: distributions of a set over clusters and `wrong`, from those of the gold answers and of the pool.


def centered(gold: Shares, answers: Shares, rng: np.random.Generator) -> Shares:
    """Mix the pool's distribution with people's and the uniform one, at least half of it the pool's."""
    weight, other = rng.uniform(0.5, 1), rng.uniform()
    return weight * answers + (1 - weight) * (other * gold + (1 - other) / len(gold))


def diverse(gold: Shares, answers: Shares, rng: np.random.Generator) -> Shares:
    """Mix people's distribution with the uniform one."""
    weight = rng.uniform()
    return weight * gold + (1 - weight) / len(gold)


def missing_answer(gold: Shares, answers: Shares, rng: np.random.Generator) -> Shares:
    """Leave out some clusters, at least one, and keep at least two."""
    share = gold.copy()
    share[rng.choice(len(gold), rng.integers(1, max(len(gold) - 1, 2)), replace=False)] = 0.0
    return share / share.sum()


def wrong_ranking(gold: Shares, answers: Shares, rng: np.random.Generator) -> Shares:
    """Permute people's shares over the clusters."""
    share = rng.permutation(gold)
    while np.ptp(gold) > 0 and (share == gold).all():
        share = rng.permutation(gold)
    return share


def wrong_score(gold: Shares, answers: Shares, rng: np.random.Generator) -> Shares:
    """Move each share by up to half of its distance to the next, which keeps the ranking."""
    order = np.argsort(-gold, kind="stable")
    gaps = np.abs(np.diff(gold[order]))
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf)) / 2
    room = np.minimum(room, np.minimum(gold[order], 1 - gold[order]))
    share = gold.copy()
    share[order] += rng.uniform(-room, room)
    return share / share.sum()


SCHEMES: tuple[Callable[..., Shares], ...] = (centered, diverse, missing_answer, wrong_ranking, wrong_score)


def draw(pool: Pool, scheme: Callable[..., Shares], rng: np.random.Generator) -> np.ndarray:
    """Draw a set without replacement, as large as the scheme's distribution allows: the counts of answers, (u,)."""
    share = scheme(*pool.shares(), rng)
    # As in the original, each cluster counts one answer more than it has; drawing that one gives no answer.
    sizes = np.bincount(pool.columns, weights=pool.question.counts, minlength=len(share)).astype(int) + 1
    wanted = share * sizes.sum()
    ratio = min(float(np.min(np.divide(sizes, wanted, out=np.ones(len(share)), where=wanted > sizes))), 1.0)
    numbers = np.rint(wanted * ratio).astype(int)
    if scheme in (wrong_ranking, wrong_score):
        ranks = np.argsort(-share, kind="stable")
        numbers += (numbers == 0).any()
        # Small sets grow until they rank the clusters as the scheme does.
        while ratio + 0.1 <= 1 and not np.array_equal(np.argsort(-numbers, kind="stable"), ranks):
            ratio += 0.1
            numbers = np.rint(wanted * ratio).astype(int)
            numbers += (numbers == 0).any()
    drawn = np.zeros(len(pool.columns))
    for column, (size, number) in enumerate(zip(sizes, np.minimum(numbers, sizes), strict=True)):
        members = np.flatnonzero(pool.columns == column)
        tokens = np.repeat(members, pool.question.counts[members].astype(int))
        picked = rng.choice(size, number, replace=False)
        np.add.at(drawn, tokens[picked[picked < size - 1]], 1)
    return drawn


def make_pipelines() -> dict[str, ProbevalSettings]:
    """Name the pipelines: all clusterings with all matchers that go together."""
    pipelines = {}
    for clustering, matcher in itertools.product(CLUSTERINGS, MATCHERS):
        if clustering != "soft" or matcher == "soft":
            settings = resolve(ProbevalSettings(clustering=clustering, matcher=matcher))
            pipelines[f"{clustering}, {matcher}"] = settings
    return pipelines


def correlations(
    pool: Pool, pipelines: dict[str, ProbevalSettings], resources: pipeline.Resources, rng: np.random.Generator
) -> dict[str, list[float]]:
    """Correlate the scores of each pipeline with those by people's labels, over the sets of each scheme."""
    question = pool.question
    sets = np.array([[draw(pool, scheme, rng) for _ in range(N_SETS)] for scheme in SCHEMES])
    labels = [[*(question.clusters or []), WRONG][column] for column in pool.columns]
    by_people = replace(pipelines["human, cosine"], matcher="human", labels=labels)

    def scores(settings: ProbevalSettings, labels: list[str] | None = None) -> np.ndarray:
        clusters = pipeline.cluster(question, settings, resources)
        weights = pipeline.match(question, clusters, settings, resources, labels)
        gold, model = pipeline.both_sides(question, clusters, weights, settings)
        people = gold.distributions(gold.times[None])
        return np.array([kl_divergence(people, model.distributions(rows)) for rows in sets])

    scored = {name: scores(settings) for name, settings in pipelines.items()}
    masses = question.gold_counts.sum(axis=0)
    for kind, matches in protoqa_matches(question.answers, question.gold, resources.wordnet).items():
        reached = cluster_maximum(matches, question.gold_counts > 0)
        # The answers of a set are ranked by count; those that it lacks come last.
        ranked = ((reached[np.argsort(-row, kind="stable")[: np.count_nonzero(row)]] for row in rows) for rows in sets)
        won = [[ranked_scores(matched, masses) for matched in rows] for rows in ranked]
        for rule in PROTOQA_RULES:
            scored[f"ProtoQA {kind}, {rule}"] = -np.array([[ranked[rule] for ranked in rows] for rows in won])
    truth = scores(by_people, labels)
    return {name: [correlate(*pair) for pair in zip(rows, truth, strict=True)] for name, rows in scored.items()}


def agreement(question: Question, settings: ProbevalSettings, resources: pipeline.Resources) -> float:
    """Compare automatic clusters of a question's answers with people's: the adjusted Rand index."""
    counts = pipeline.cluster(question, settings, resources).counts
    return float(adjusted_rand_score(question.gold_counts.argmax(axis=1), counts.argmax(axis=1)))


def correlate(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Compute Spearman's correlation: 0 if ours does not vary, NaN if theirs does not."""
    if np.ptp(ours) == 0 < np.ptp(theirs):
        return 0.0
    return float(spearmanr(ours, theirs).statistic) if np.ptp(theirs) else float("nan")


def compare_polls() -> pandas.DataFrame:
    """Score drawn polls, and compare with KL(people ‖ model) over the options, with the smoothing."""
    rng = np.random.default_rng(SEED)
    sides: dict[str, list[dict[str, int]]] = {"references": [], "predictions": []}
    by_hand, table = [], {}
    for scale in (scale for scale in SCALES for _ in range(N_POLLS)):
        counts = np.array([rng.multinomial(1000, rng.dirichlet(np.ones(len(scale)))) for _ in sides])
        for rows, drawn in zip(sides.values(), counts, strict=True):
            rows.append(dict(zip(scale, drawn.tolist(), strict=True)))
        # An option that nobody chose is wrong.
        chosen = counts[0] > 0
        p, q = smooth(np.column_stack([counts[:, chosen], counts[:, ~chosen].sum(axis=1)]), 1.0)
        by_hand.append(float(kl_divergence(p, q)))
    for name, settings in POLLS.items():
        scores = load("probeval").compute(**sides, **settings)["scores"]
        differences = np.abs(np.subtract(scores, by_hand))
        rank = spearmanr(scores, by_hand).statistic
        table[name] = [f"{(differences > 0.01).sum()} of {len(scores)}", f"{differences.mean():.3f}", f"{rank:.3f}"]
    columns = ["off by more than 0.01", "mean difference", "Spearman's correlation"]
    return pandas.DataFrame.from_dict(table, orient="index", columns=columns)


def mean_cell(values: np.ndarray) -> str:
    """Format the mean over questions, with its 95 % bootstrap interval."""
    values = values[~np.isnan(values)]
    drawn = np.random.default_rng(SEED).integers(len(values), size=(RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975]).tolist()
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


@command
def main() -> None:
    """Write the tables."""
    folder = data_folder(Parser(__doc__)) / "probeval"
    targets, predictions = folder / "cfc_dev_targets.jsonl", folder / "cfc_dev_annotated_predictions.json"
    rows = from_released(targets, predictions)
    questions = read_questions(*pair_rows(rows["predictions"], rows["references"])[:2])
    labels = labels_from_cfc(predictions)
    given: dict[str, Labelled] = {
        q.name: {text: (labels[q.name][text], int(n)) for text, n in zip(q.answers, q.counts, strict=True)}
        for q in questions
    }
    pipelines = make_pipelines()
    answers = (text for q in questions for text in [*q.gold, *q.answers])
    resources, _ = pipeline.load_resources(answers, pipelines["soft, soft"])
    resources = resources._replace(wordnet=load_wordnet())
    views: dict[str, Callable[[Question, np.random.Generator], Pool | None]] = {
        "released answers": lambda q, rng: released_pool(q, given[q.name], rng),
        "held-out answers": lambda q, rng: held_out_pool(q, given[q.name], rng),
        "held-out, others' answers": lambda q, rng: held_out_pool(q, answers_to_others(q, questions, rng), rng),
    }
    table, schemes = {}, pandas.DataFrame()
    for view, make in views.items():
        rng = np.random.default_rng(SEED)
        # A pool and its sets are drawn before the next pool.
        pools = (make(question, rng) for question in questions)
        per_pool = [correlations(pool, pipelines, resources, rng) for pool in pools if pool is not None]
        arrays: dict[str, Any] = {name: np.array([row[name] for row in per_pool]) for name in per_pool[0]}
        table[view] = {name: mean_cell(values.mean(axis=1)) for name, values in arrays.items()}
        if view == "released answers":
            cells = {name: map("{:.3f}".format, np.nanmean(values, axis=0)) for name, values in arrays.items()}
            schemes = pandas.DataFrame(cells, index=[scheme.__name__.replace("_", " ") for scheme in SCHEMES]).T
    indices = {}
    for name in (name for name in CLUSTERINGS if name not in ("human", "none")):
        settings = pipelines["soft, soft" if name == "soft" else f"{name}, cosine"]
        indices[name] = mean_cell(np.array([agreement(question, settings, resources) for question in questions]))
    clusters = pandas.DataFrame({"adjusted Rand index": indices})
    frames = {"probeval": pandas.DataFrame(table), "probeval-schemes": schemes}
    frames |= {"probeval-clusters": clusters, "probeval-polls": compare_polls()}
    for name, frame in frames.items():
        frame.to_csv(ROOT / "results" / f"{name}.csv", index_label="clusters, matcher")


if __name__ == "__main__":
    with warnings.catch_warnings():
        # scikit-learn: fewer different points than centers, where answers have equal embeddings.
        warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
        raise SystemExit(main())
