"""One question from its answers to its score: clusters, then matches, then distributions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .core_encoder import embed_part
from .core_numbers import show
from .core_vectors import load_vectors
from .probeval_clusters import compare_clusterings, gmeans, hac, xmeans
from .probeval_formats import WRONG, Question
from .probeval_matching import WordNetMatcher, assign, cluster_maximum, cosine_scores, gp_scores
from .probeval_sampling import MOST_DRAWN, Side, content_seed, divergences, drawn_down, entropy, mean
from .probeval_settings import ProbevalSettings
from .probeval_soft import matched_shares, memberships, same_probability, soft_groups, words
from .probeval_vectors import Embeddings, average_word_vectors
from .probeval_wordnet import load_wordnet


class Resources(NamedTuple):
    """Embeddings and WordNet, by which answers are compared; None if the pipeline does not need them."""

    embeddings: Embeddings | None = None
    wordnet: WordNetMatcher | None = None


class Clusters(NamedTuple):
    """Gold answers in clusters.

    labels : list of c str
    counts : ndarray of shape (g, c), people's count of each answer, by its cluster
    groups : ndarray of shape (g, c), bool, for soft clusters: the groups of answers from which they were made
    """

    labels: list[str]
    counts: np.ndarray
    groups: np.ndarray | None = None

    @property
    def members(self) -> np.ndarray:
        """Which answer is in which cluster: ndarray of shape (g, c), bool."""
        return self.counts > 0 if self.groups is None else self.groups

    @property
    def kept_shares(self) -> np.ndarray:
        """The mean share of an answer that its cluster keeps: ndarray of shape (c,), 1 except for soft clusters."""
        if self.groups is None:
            return np.ones(len(self.labels))
        times = self.counts.sum(axis=1, keepdims=True)
        weights = self.groups * np.sqrt(times)
        return (weights * self.counts / times).sum(axis=0) / weights.sum(axis=0)


class Scored(NamedTuple):
    """The score of one question, with its distributions.

    gold, model : ndarray of shape (c + 1,), the two distributions, `wrong` last; means over samples with `rarefy`
    """

    score: float
    coverage: float
    wrong_rate: float | None
    gold: np.ndarray
    model: np.ndarray
    gold_entropy: float
    model_entropy: float


def load_resources(answers: Iterable[str], settings: ProbevalSettings) -> tuple[Resources, dict[str, str]]:
    """Load what the pipeline compares answers with; returns the entries of a signature, too.

    Parameters
    ----------
    answers : of people and of the model, to all questions
    settings : resolved

    Raises
    ------
    TypeError, ValueError, ImportError
        As `embed_part` and `load_vectors` do, or if WordNet is missing.
    """
    embeddings, wordnet = None, None
    signed: dict[str, str] = {}
    if settings.needs_embeddings:
        said = {text for text in answers if text.strip()}
        texts = sorted(said | {words(text).content for text in said} if settings.matcher == "soft" else said)
        if settings.vectors is not None:
            matrix, signed["vectors"] = average_word_vectors(texts, load_vectors(settings.vectors))
        else:
            matrix, signed = embed_part(texts, settings)
        embeddings = Embeddings(texts, matrix)
    if settings.matcher == "wordnet":
        loaded = load_wordnet()
        signed["wordnet"] = loaded.version
        wordnet = WordNetMatcher(loaded)
    return Resources(embeddings, wordnet), signed


def cluster(question: Question, settings: ProbevalSettings, resources: Resources) -> Clusters:
    """Cluster the gold answers of a question; found clusters are named c_1, c_2, ... in order of decreasing mass."""
    if settings.clustering == "human":
        assert question.clusters is not None
        return Clusters(question.clusters, question.gold_counts)
    counts = question.gold_counts.sum(axis=1)
    if settings.clustering == "none":
        numbers = np.arange(len(counts))
    else:
        embeddings = resources.embeddings
        assert embeddings is not None
        (vectors,) = embeddings.look_up(question.gold)
        if settings.clustering == "soft":
            probability = same_probability(question.gold, question.gold, embeddings)
            numbers = soft_groups(probability)
        elif settings.clustering == "hac":
            # In the original, an answer counts in the linkage as often as it was given.
            numbers = hac(vectors, settings.linkage, settings.distance, counts if settings.parity else None)
        else:
            numbers = (xmeans if settings.clustering == "xmeans" else gmeans)(vectors, settings.seed)
    table = np.zeros((len(counts), int(numbers.max()) + 1))
    table[np.arange(len(counts)), numbers] = counts
    first = np.array([np.flatnonzero(column)[0] for column in table.T])
    table = table[:, np.lexsort((first, -table.sum(axis=0)))]
    groups = None
    if settings.clustering == "soft":
        groups = table > 0
        table = counts[:, None] * memberships(probability, groups, counts)
    return Clusters([f"c_{i}" for i in range(1, table.shape[1] + 1)], table, groups)


def match(
    question: Question,
    clusters: Clusters,
    settings: ProbevalSettings,
    resources: Resources,
    labels: list[str] | None = None,
) -> np.ndarray:
    """Match the answers of a question to its clusters; a blank answer matches nothing, except by people's `labels`.

    Returns an ndarray of shape (u, c + 1), rows summing to 1, `wrong` last.
    """
    weights = np.zeros((len(question.answers), len(clusters.labels) + 1))
    if settings.matcher == "human":
        assert labels is not None
        columns = [*clusters.labels, WRONG]
        weights[np.arange(len(labels)), [columns.index(label) for label in labels]] = 1.0
        return weights
    weights[:, -1] = 1.0
    said = np.array([bool(text.strip()) for text in question.answers], dtype=bool)
    if not said.any():
        return weights
    answers = [text for text in question.answers if text.strip()]
    embeddings, wordnet = resources.embeddings, resources.wordnet
    gold, members, threshold = question.gold, clusters.members, settings.threshold
    assert threshold is not None
    if settings.matcher == "wordnet":
        assert wordnet is not None
        scores = (wordnet.parity_scores if settings.parity else wordnet.scores)(answers, gold)
        weights[said] = assign(cluster_maximum(scores, members), threshold, strict=threshold == 0)
        return weights
    assert embeddings is not None
    if settings.matcher == "soft":
        probability = same_probability(answers, gold, embeddings)
        matched = matched_shares(probability, threshold)
        shares = memberships(probability, members, clusters.counts.sum(axis=1))
        weights[said] = np.hstack([shares * matched, 1 - matched])
        return weights
    vectors, gold_vectors = embeddings.look_up(answers, gold)
    if settings.matcher == "cosine":
        weights[said] = assign(cluster_maximum(cosine_scores(vectors, gold_vectors), members), threshold)
    else:
        weights[said] = assign(gp_scores(vectors, gold_vectors, clusters.counts), threshold, strict=True)
    return weights


def score(
    counts: np.ndarray,
    weights: np.ndarray,
    clusters: Clusters,
    settings: ProbevalSettings,
    seeds: tuple[int, int] = (0, 1),
) -> Scored:
    """Compare the two distributions over the clusters and `wrong`; with `rarefy`, all values are means over samples.

    Parameters
    ----------
    counts : ndarray of shape (u,), the model's count of each answer
    weights : ndarray of shape (u, c + 1), from `match`
    seeds : of the samples of people's answers and of the model's, with `rarefy_people` and `rarefy`
    """
    gold, model = gold_side(clusters, settings), model_side(counts, weights, clusters, settings)
    reach = reached(weights)
    blocks = []
    for gold_times, model_times in drawn_down(gold, model, (settings.rarefy_people, settings.rarefy), seeds):
        hit = (model_times > 0).astype(np.float64) @ reach > 0
        masses = (gold_times @ gold.weights)[:, :-1]
        blocks.append(
            (
                divergences(gold, model, gold_times, model_times, debias=settings.debias),
                (masses * hit).sum(axis=1) / masses.sum(axis=1),
                gold.distributions(gold_times),
                model.distributions(model_times),
            )
        )
    scores, coverage, p, q = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
    answered = float(model.times.sum())
    return Scored(
        score=float(scores.mean()),
        coverage=float(coverage.mean()),
        wrong_rate=float(model.times @ model.weights[:, -1]) / answered if answered else None,
        gold=p.mean(axis=0),
        model=q.mean(axis=0),
        gold_entropy=float(entropy(p).mean()),
        model_entropy=float(entropy(q).mean()),
    )


def gold_side(clusters: Clusters, settings: ProbevalSettings) -> Side:
    """Return people's answers by kind: by answer in soft clusters, by cluster in others."""
    if settings.clustering == "soft":
        times = clusters.counts.sum(axis=1)
        shares = clusters.counts / times[:, None]
    else:
        times = clusters.counts.sum(axis=0)
        shares = np.eye(len(times))
    smoothing = _smoothing(clusters, settings)
    # In the original, people's distribution over automatic clusters is not smoothed.
    is_raw = settings.parity and settings.clustering != "human"
    return Side(times, np.hstack([shares, np.zeros((len(shares), 1))]), 0.0 * smoothing if is_raw else smoothing)


def model_side(counts: np.ndarray, weights: np.ndarray, clusters: Clusters, settings: ProbevalSettings) -> Side:
    """Return the model's answers, each different one a kind."""
    return Side(counts, weights, _smoothing(clusters, settings))


def _smoothing(clusters: Clusters, settings: ProbevalSettings) -> np.ndarray:
    return settings.smoothing * np.append(clusters.kept_shares, 1.0)


def reached(weights: np.ndarray) -> np.ndarray:
    """Return the clusters that an answer reaches: that to which it belongs the most, or several if they tie.

    An answer that is `wrong` by more than half reaches none. Maps weights (u, c + 1), from `match`, to (u, c), bool.
    """
    shares, wrong = weights[:, :-1], weights[:, -1:]
    return (wrong <= 0.5 + 1e-9) & (shares > 0) & (shares >= shares.max(axis=1, keepdims=True) - 1e-9)


def summarize(scored: list[Scored], sizes: list[int]) -> dict[str, Any]:
    """Average the scores of questions with these numbers of answers, and name the results."""
    scores = [question.score for question in scored]
    return {
        "probeval": mean(scores),
        "scores": scores,
        "wrong_rate": mean([question.wrong_rate for question in scored if question.wrong_rate is not None]),
        "coverage": mean([question.coverage for question in scored]),
        "n_clusters": mean([len(question.gold) - 1 for question in scored]),
        "distribution_entropy": {
            "gold": mean([question.gold_entropy for question in scored]),
            "model": mean([question.model_entropy for question in scored]),
        },
        "n_answers": sizes,
        "n_empty": sizes.count(0),
    }


def check_sizes(questions: list[Question], settings: ProbevalSettings) -> None:
    """Raise a ValueError that names the question if it has too few answers to draw from, or too many."""
    for name, size in (("rarefy", settings.rarefy), ("rarefy_people", settings.rarefy_people)):
        if size is None:
            continue
        for question in questions:
            total = int((question.counts if name == "rarefy" else question.gold_counts).sum())
            if total < size:
                whose = "of the model" if name == "rarefy" else "of people"
                raise ValueError(f"{name} is {size}, but question {show(question.name)} has {total} answers {whose}.")
            if total > MOST_DRAWN:
                raise ValueError(
                    f"{name} draws from at most {MOST_DRAWN:,} answers. Question {show(question.name)} has {total:,}."
                )


def seeds_of(question: Question) -> tuple[int, int]:
    """Return the seeds of the samples of people's answers and of the model's."""
    return (
        content_seed("people", question.gold, question.gold_counts.sum(axis=1)),
        content_seed("model", question.answers, question.counts),
    )


class ScoredQuestion(NamedTuple):
    """A question with its clusters, the weights of its answers in them, and its score."""

    question: Question
    clusters: Clusters
    weights: np.ndarray
    scored: Scored


def score_questions(
    questions: list[Question], labels: list[Any] | None, settings: ProbevalSettings, resources: Resources
) -> list[ScoredQuestion]:
    """Cluster, match and score each question.

    Parameters
    ----------
    labels : for matcher="human", people's label of each answer to each question; else None

    Raises
    ------
    ValueError
        If a divergence is infinite.
    """
    scored_questions = []
    for question, question_labels in zip(questions, labels or [None] * len(questions), strict=True):
        clusters = cluster(question, settings, resources)
        weights = match(question, clusters, settings, resources, question_labels)
        scored = score(question.counts, weights, clusters, settings, seeds_of(question))
        if not np.isfinite(scored.score):
            raise ValueError(
                f"smoothing is {settings.smoothing:g}, and the model gives no answer in some cluster of question "
                f"{question.name!r}: the divergence is infinite. Pass a larger smoothing."
            )
        scored_questions.append(ScoredQuestion(question, clusters, weights, scored))
    return scored_questions


def clustering_quality(scored: list[ScoredQuestion]) -> dict[str, float | None]:
    """Compare clusters with people's: the means over questions of the measures of `compare_clusterings`."""
    compared = [
        compare_clusterings(clusters.counts.argmax(axis=1), question.gold_counts.argmax(axis=1))
        for question, clusters, *_ in scored
    ]
    return {name: mean([row[name] for row in compared]) for name in compared[0]}


def describe_question(
    question: Question, clusters: Clusters, weights: np.ndarray, scored: Scored, settings: ProbevalSettings
) -> dict[str, Any]:
    """Describe a question as plain data: its clusters, both distributions, and the clusters of each answer."""
    labels = [*clusters.labels, WRONG]
    # Soft clusters list each answer once, in its group, with its whole count.
    totals = np.rint(clusters.counts.sum(axis=1, keepdims=True))
    listed = clusters.counts if clusters.groups is None else clusters.groups * totals
    # Elsewhere, an answer that people put into two clusters has a row for each.
    gold = [(question.gold[i], listed[i, j], i, j) for i, j in np.argwhere(listed > 0).tolist()]
    degrees = clusters.counts / totals
    sides = {
        "gold": gold_side(clusters, settings),
        "model": model_side(question.counts, weights, clusters, settings),
    }
    return {
        "id": question.name,
        "score": scored.score,
        "n_answers": int(question.counts.sum()),
        "coverage": scored.coverage,
        "wrong_rate": scored.wrong_rate,
        "clusters": [
            {
                "cluster": label,
                "count": float(mass),
                "answers": [
                    {"text": question.gold[i], "count": int(column[i])}
                    for i in sorted(np.flatnonzero(column).tolist(), key=lambda i: (-column[i], question.gold[i]))
                ],
            }
            for label, column, mass in zip(clusters.labels, listed.T, clusters.counts.sum(axis=0), strict=True)
        ],
        "gold_distribution": dict(zip(labels, scored.gold.tolist(), strict=True)),
        "model_distribution": dict(zip(labels, scored.model.tolist(), strict=True)),
        "smoothing": {who: dict(zip(labels, side.smoothing.tolist(), strict=True)) for who, side in sides.items()},
        "gold_assignments": [
            _assignment(text, count, labels, {j: 1.0} if clusters.groups is None else dict(enumerate(degrees[i])))
            for text, count, i, j in gold
        ],
        "assignments": [
            _assignment(text, count, labels, dict(enumerate(row)))
            for text, count, row in zip(question.answers, question.counts, weights, strict=True)
        ],
    }


def _assignment(text: str, count: float, labels: list[str], weights: Mapping[int, float]) -> dict[str, Any]:
    clusters = {labels[j]: float(weight) for j, weight in weights.items() if weight}
    return {"text": text, "count": int(count), "clusters": clusters}
