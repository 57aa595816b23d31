"""One question from its answers to its score: clusters, then matches, then distributions."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .core_encoder import embed_part
from .core_numbers import describe
from .core_vectors import load_vectors
from .probeval_clusters import gmeans, hac, xmeans
from .probeval_formats import WRONG, Question
from .probeval_matching import WordNetMatcher, assign, cluster_maximum, gp_scores
from .probeval_sampling import MOST_DRAWN, Side, content_seed, divergences, drawn_down, entropy, mean
from .probeval_settings import ProbevalSettings
from .probeval_soft import matched_shares, memberships, same_probability, soft_groups, words
from .probeval_vectors import Embeddings, average_word_vectors
from .probeval_wordnet import load_wordnet


class Resources(NamedTuple):
    """Embeddings and WordNet, by which answers are compared; None if the pipeline does not need them."""

    embeddings: Any = None
    wordnet: Any = None


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


class ScoredQuestion(NamedTuple):
    """A question, its clusters, the weights of its answers in them, and its score; with `rarefy`, means over samples.

    gold, model : ndarray of shape (c + 1,), the two distributions, `wrong` last
    """

    question: Question
    clusters: Clusters
    weights: np.ndarray
    score: float
    coverage: float
    wrong_rate: float | None
    gold: np.ndarray
    model: np.ndarray
    gold_entropy: float
    model_entropy: float


def load_resources(answers: Iterable[str], settings: ProbevalSettings) -> tuple[Resources, dict[str, str]]:
    """Load what resolved settings compare these answers with; returns the entries of a signature, too.

    Raises a TypeError, ValueError or ImportError if the model, the vectors or WordNet cannot be loaded.
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
        wordnet = WordNetMatcher(load_wordnet())
        signed["wordnet"] = wordnet.version
    return Resources(embeddings, wordnet), signed


def cluster(question: Question, settings: ProbevalSettings, resources: Resources) -> Clusters:
    """Cluster the gold answers of a question; found clusters are named c_1, c_2, ... in order of decreasing mass."""
    if settings.clustering == "human":
        assert question.clusters is not None
        return Clusters(question.clusters, question.gold_counts)
    counts, is_soft = question.gold_counts.sum(axis=1), settings.clustering == "soft"
    if is_soft:
        probability = same_probability(question.gold, question.gold, resources.embeddings)
        numbers = soft_groups(probability)
    elif settings.clustering == "none":
        numbers = np.arange(len(counts))
    else:
        (vectors,) = resources.embeddings.look_up(question.gold)
        if settings.clustering == "hac":
            # In the original, an answer counts in the linkage as often as it was given.
            numbers = hac(vectors, settings.linkage, settings.distance, counts if settings.parity else None)
        else:
            numbers = (xmeans if settings.clustering == "xmeans" else gmeans)(vectors, settings.seed)
    table = np.zeros((len(counts), int(numbers.max()) + 1))
    table[np.arange(len(counts)), numbers] = counts
    first = (table > 0).argmax(axis=0)
    table = table[:, np.lexsort((first, -table.sum(axis=0)))]
    labels = [f"c_{i}" for i in range(1, table.shape[1] + 1)]
    if not is_soft:
        return Clusters(labels, table)
    return Clusters(labels, counts[:, None] * memberships(probability, table > 0, counts), table > 0)


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
    if labels is not None:
        columns = [*clusters.labels, WRONG]
        weights[np.arange(len(labels)), [columns.index(label) for label in labels]] = 1.0
        return weights
    weights[:, -1] = 1.0
    said = [bool(text.strip()) for text in question.answers]
    if any(said):
        answers = [text for text in question.answers if text.strip()]
        weights[said] = _match_said(answers, question.gold, clusters, settings, resources)
    return weights


def _match_said(
    answers: list[str], gold: list[str], clusters: Clusters, settings: ProbevalSettings, resources: Resources
) -> np.ndarray:
    members, threshold = clusters.members, settings.threshold
    assert threshold is not None
    if settings.matcher == "wordnet":
        scores = resources.wordnet.scores(answers, gold, settings.parity)
        return assign(cluster_maximum(scores, members), threshold, strict=threshold == 0)
    if settings.matcher == "soft":
        probability = same_probability(answers, gold, resources.embeddings)
        matched = matched_shares(probability, threshold)
        shares = memberships(probability, members, clusters.counts.sum(axis=1))
        return np.hstack([shares * matched, 1 - matched])
    vectors, gold_vectors = resources.embeddings.look_up(answers, gold)
    if settings.matcher == "gp":
        return assign(gp_scores(vectors, gold_vectors, clusters.counts), threshold, strict=True)
    return assign(cluster_maximum(np.clip(vectors @ gold_vectors.T, -1.0, 1.0), members), threshold)


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


def score_question(
    question: Question, labels: list[str] | None, settings: ProbevalSettings, resources: Resources
) -> ScoredQuestion:
    """Cluster, match and score a question.

    `labels` are people's of each answer, for matcher="human". Raises a ValueError that names the question if it has too
    few answers to draw from, or too many, or if its divergence is infinite.
    """
    people = question.gold_counts.sum(axis=1)
    for name, size, counts in (
        ("rarefy", settings.rarefy, question.counts),
        ("rarefy_people", settings.rarefy_people, people),
    ):
        if size is not None and not size <= counts.sum() <= MOST_DRAWN:
            raise ValueError(
                f"{name} is {size}, and draws from at most {MOST_DRAWN:,} answers. Question "
                f"{describe(question.name)} has {int(counts.sum()):,}."
            )
    clusters = cluster(question, settings, resources)
    weights = match(question, clusters, settings, resources, labels)
    gold, model = gold_side(clusters, settings), model_side(question.counts, weights, clusters, settings)
    gold_times = drawn_down(gold, settings.rarefy_people, content_seed("people", question.gold, people))
    model_times = drawn_down(model, settings.rarefy, content_seed("model", question.answers, question.counts))
    scores = divergences(gold, model, gold_times, model_times, debias=settings.debias)
    if not np.isfinite(scores).all():
        raise ValueError(
            f"smoothing is {settings.smoothing:g}, and the model gives no answer in some cluster of question "
            f"{question.name!r}: the divergence is infinite. Pass a larger smoothing."
        )
    hit = (model_times > 0) @ reached(weights).astype(np.float64) > 0
    masses = (gold_times @ gold.weights)[:, :-1]
    p, q = gold.distributions(gold_times), model.distributions(model_times)
    n_answers = float(question.counts.sum())
    return ScoredQuestion(
        question,
        clusters,
        weights,
        score=float(scores.mean()),
        coverage=float(((masses * hit).sum(axis=1) / masses.sum(axis=1)).mean()),
        wrong_rate=float(question.counts @ weights[:, -1]) / n_answers if n_answers else None,
        gold=p.mean(axis=0),
        model=q.mean(axis=0),
        gold_entropy=float(entropy(p).mean()),
        model_entropy=float(entropy(q).mean()),
    )


def summarize(scored: list[ScoredQuestion]) -> dict[str, Any]:
    """Average the scores of questions, and name the results."""
    sizes = [int(one.question.counts.sum()) for one in scored]
    return {
        "probeval": mean([one.score for one in scored]),
        "scores": [one.score for one in scored],
        "wrong_rate": mean([one.wrong_rate for one in scored if one.wrong_rate is not None]),
        "coverage": mean([one.coverage for one in scored]),
        "n_clusters": mean([len(one.gold) - 1 for one in scored]),
        "distribution_entropy": {
            "gold": mean([one.gold_entropy for one in scored]),
            "model": mean([one.model_entropy for one in scored]),
        },
        "n_answers": sizes,
        "n_empty": sizes.count(0),
    }


def describe_question(one: ScoredQuestion, settings: ProbevalSettings) -> dict[str, Any]:
    """Describe a question as plain data: its clusters, both distributions, and the clusters of each answer."""
    question, clusters, weights = one.question, one.clusters, one.weights
    labels = [*clusters.labels, WRONG]
    times = np.rint(clusters.counts.sum(axis=1, keepdims=True))
    is_soft = clusters.groups is not None
    # Soft clusters list each answer once, in its group, with its whole count.
    listed = clusters.members * times if is_soft else clusters.counts
    # Elsewhere, an answer that people put into two clusters has a row for each.
    shares = clusters.counts / times if is_soft else None

    def named(row: np.ndarray) -> dict[str, float]:
        return dict(zip(labels, row.tolist(), strict=False))

    def assignment(text: str, count: float, row: np.ndarray) -> dict[str, Any]:
        return {"text": text, "count": int(count), "clusters": {k: v for k, v in named(row).items() if v}}

    described = []
    for j, mass in enumerate(clusters.counts.sum(axis=0).tolist()):
        column = listed[:, j]
        members = sorted(np.flatnonzero(column).tolist(), key=lambda i: (-column[i], question.gold[i]))
        answers = [{"text": question.gold[i], "count": int(column[i])} for i in members]
        described.append({"cluster": labels[j], "count": mass, "answers": answers})
    return {
        "id": question.name,
        "score": one.score,
        "n_answers": int(question.counts.sum()),
        "coverage": one.coverage,
        "wrong_rate": one.wrong_rate,
        "clusters": described,
        "gold_distribution": named(one.gold),
        "model_distribution": named(one.model),
        "smoothing": {
            "gold": named(gold_side(clusters, settings).smoothing),
            "model": named(model_side(question.counts, weights, clusters, settings).smoothing),
        },
        "gold_assignments": [
            assignment(question.gold[i], listed[i, j], np.eye(len(labels))[j] if shares is None else shares[i])
            for i, j in np.argwhere(listed > 0).tolist()
        ],
        "assignments": [assignment(*row) for row in zip(question.answers, question.counts, weights, strict=True)],
    }
