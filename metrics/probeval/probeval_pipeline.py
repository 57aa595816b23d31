"""One question from its answers to its score: clusters, then matches, then distributions."""

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from .core import ROUNDED_SUM, TIE, describe, encode, load_vectors, tied_ranks, warn
from .probeval_clusters import gmeans, hac, xmeans
from .probeval_formats import WRONG, Question, plain_count
from .probeval_matching import assign, cluster_maximum, exact_scores, gp_scores, wordnet_scores
from .probeval_opposites import opposite_pairs
from .probeval_sampling import MOST_DRAWN, Side, content_seed, drawn_down, entropy, jackknife_bias, kl_divergence, mean
from .probeval_settings import CERTAIN, ProbevalSettings
from .probeval_soft import matched_shares, memberships, same_probability, soft_groups
from .probeval_vectors import Embeddings, average_word_vectors
from .probeval_wordnet import load_wordnet
from .probeval_words import distinct_pairs, equal_pairs, fold, normalize, words

# Different answers of people below which a question may have closed options.
_FEW = 10
_EQUAL = 2.0  # above any similarity


class Resources(NamedTuple):
    """Embeddings and WordNet, by which answers are compared; None if the pipeline does not need them."""

    embeddings: Any = None
    wordnet: Any = None


class Clusters(NamedTuple):
    """Gold answers in clusters.

    labels : list of c str
    members : ndarray of shape (g, c), bool, the answers in each cluster; of a soft one, its group
    counts : ndarray of shape (g, c), people's count of each answer, by its clusters
    """

    labels: list[str]
    members: np.ndarray
    counts: np.ndarray


def load_resources(answers: Iterable[str], settings: ProbevalSettings) -> tuple[Resources, dict[str, str]]:
    """Load the models by which resolved settings compare these answers; returns the entries of a signature, too.

    Raises a TypeError, ValueError or ImportError if the model, the vectors or WordNet cannot be loaded.
    """
    embeddings, wordnet = None, None
    signed: dict[str, str] = {}
    if settings.needs_embeddings:
        said = set(filter(normalize, set(answers)))
        texts = sorted(said | {words(text).content for text in said} if settings.matcher == "soft" else said)
        if settings.vectors is not None:
            matrix, signed["vectors"] = average_word_vectors(texts, load_vectors(settings.vectors))
        else:
            matrix, signed, _ = encode(texts, settings)
        embeddings = Embeddings(texts, matrix)
    if settings.matcher == "wordnet":
        wordnet = load_wordnet()
        signed["wordnet"] = wordnet.version
    return Resources(embeddings, wordnet), signed


def cluster(question: Question, settings: ProbevalSettings, resources: Resources) -> Clusters:
    """Cluster the gold answers of a question; clusters are named c_1, c_2, ... in order of size, except people's."""
    if settings.clustering == "human":
        assert question.clusters is not None
        return Clusters(question.clusters, question.gold_counts > 0, question.gold_counts)
    people = question.people
    probability = None
    if settings.clustering == "soft":
        probability = pair_scores(question.gold, question.gold, settings, resources)
        numbers = soft_groups(probability)
    elif settings.clustering == "none":
        texts = question.gold if settings.parity else [fold(text) for text in question.gold]
        numbers = np.unique(np.array(texts, dtype=object), return_inverse=True)[1]
    else:
        (vectors,) = resources.embeddings.look_up(question.gold)
        if settings.clustering == "hac":
            # In the original, an answer counts in the linkage as often as it was given.
            numbers = hac(vectors, settings.linkage, settings.distance, people if settings.parity else None)
        else:
            numbers = (xmeans if settings.clustering == "xmeans" else gmeans)(vectors, people, settings.seed)
    members = numbers[:, None] == np.arange(numbers.max() + 1)
    members = members[:, np.lexsort((members.argmax(axis=0), tied_ranks(-(people @ members))))]
    labels = [f"c_{i}" for i in range(1, members.shape[1] + 1)]
    shares = members if probability is None else memberships(probability, members, people)
    return Clusters(labels, members, people[:, None] * shares)


def match(
    question: Question,
    clusters: Clusters,
    settings: ProbevalSettings,
    resources: Resources,
    labels: list[str] | None = None,
) -> np.ndarray:
    """Match the answers of a question to its clusters; a blank answer is `wrong`, except by people's `labels`.

    Returns an ndarray of shape (u, c + 1), rows summing to 1, `wrong` last.
    """
    columns = [*clusters.labels, WRONG]
    if labels is not None:
        return np.eye(len(columns))[[columns.index(label) for label in labels]]
    weights = np.tile(np.eye(len(columns))[-1], (len(question.answers), 1))
    said = [bool(normalize(text)) for text in question.answers]
    if any(said):
        answers = list(compress(question.answers, said))
        weights[said] = _match_said(answers, question, clusters, settings, resources)
    return weights


def _match_said(
    answers: list[str], question: Question, clusters: Clusters, settings: ProbevalSettings, resources: Resources
) -> np.ndarray:
    gold = question.gold
    threshold = settings.threshold
    assert threshold is not None
    if settings.matcher == "gp":
        vectors, gold_vectors = resources.embeddings.look_up(answers, gold)
        scores = gp_scores(vectors, gold_vectors, clusters.counts)
        if not settings.parity:
            # It compares no pairs: what an answer never matches, unless it equals another, keeps it out of a cluster.
            signs = never_pairs(answers, gold) - exact_scores(answers, gold) * len(gold)
            scores[signs @ clusters.members > 0] = 0.0
        return assign(scores, threshold, strict=True)
    scores = pair_scores(answers, gold, settings, resources)
    if settings.matcher == "soft":
        matched = matched_shares(scores, threshold)
        shares = memberships(scores, clusters.members, question.people)
        return np.hstack([shares * matched, 1 - matched])
    is_strict = settings.matcher == "wordnet" and threshold == 0
    return assign(cluster_maximum(scores, clusters.members), threshold, strict=is_strict)


def pair_scores(
    texts: list[str], gold: list[str], settings: ProbevalSettings, resources: Resources, keep_opposites: bool = False
) -> np.ndarray:
    """Score each of n texts against each of g gold answers by the matcher: (n, g).

    Answers that never match score least, except under parity, or with `keep_opposites`.
    """
    if settings.matcher == "exact":
        return exact_scores(texts, gold)
    if settings.matcher == "soft":
        scores = same_probability(texts, gold, resources.embeddings)
    elif settings.matcher == "wordnet":
        scores = wordnet_scores(texts, gold, resources.wordnet, settings.parity)
    else:
        vectors, gold_vectors = resources.embeddings.look_up(texts, gold)
        scores = np.clip(vectors @ gold_vectors.T, -1.0, 1.0)
    if settings.parity or keep_opposites:
        return scores
    if settings.matcher != "soft":
        # An equal answer comes before those that are equal to the matcher.
        scores[equal_pairs(texts, gold)] = 1.0
        scores[exact_scores(texts, gold) == 1] = _EQUAL
    scores[never_pairs(texts, gold)] = -1.0 if settings.matcher == "cosine" else 0.0
    return scores


def never_pairs(texts: list[str], gold: list[str]) -> np.ndarray:
    """Find which of n texts and g gold texts never match at any similarity: bool array of shape (n, g).

    They are opposites, or differ in what tells answers apart for certain, and are not equal.
    """
    return (opposite_pairs(texts, gold) | distinct_pairs(texts, gold)) & ~equal_pairs(texts, gold)


def both_sides(
    question: Question, clusters: Clusters, weights: np.ndarray, settings: ProbevalSettings
) -> tuple[Side, Side]:
    """Return people's answers and the model's, whose `weights` are from `match`.

    People's kinds are clusters, or different answers if clusters are soft; the model's, different answers.
    """
    if settings.clustering == "soft":
        times = question.people
        kinds = clusters.counts / times[:, None]
        # A cluster is smoothed by the share of its members that it retains.
        roots = clusters.members * np.sqrt(times)[:, None]
        retained = (roots * kinds).sum(axis=0) / roots.sum(axis=0)
    else:
        times = clusters.counts.sum(axis=0)
        kinds = np.eye(len(times))
        retained = np.ones(len(times))
    smoothing = settings.smoothing * np.append(retained, 1.0)
    # In the original, people's distribution over automatic clusters is not smoothed.
    is_raw = settings.parity and settings.clustering != "human"
    gold = Side(times, np.pad(kinds, ((0, 0), (0, 1))), np.zeros_like(smoothing) if is_raw else smoothing)
    return gold, Side(question.counts, weights, smoothing)


def reached(weights: np.ndarray) -> np.ndarray:
    """Return the cluster to which each answer belongs the most, or several if they tie: (u, c + 1) to (u, c), bool.

    An answer that is `wrong` by more than half reaches none.
    """
    shares = weights[:, :-1]
    wrong = weights[:, -1:]
    return (wrong <= 0.5 + TIE) & (shares > 0) & (shares >= shares.max(axis=1, keepdims=True) - TIE)


def warn_of_closed_options(questions: Sequence[Question], settings: ProbevalSettings, resources: Resources) -> None:
    """Warn, once, of two opposites among few answers of people that the matcher would take for the same."""
    for question in questions if settings.matcher not in CERTAIN else ():
        gold = question.gold
        if len(gold) < _FEW and (opposite := opposite_pairs(gold, gold)).any():
            joined = pair_scores(gold, gold, settings, resources, keep_opposites=True) >= settings.threshold
            for i, j in np.argwhere(opposite & joined)[:1].tolist():
                warn(
                    f"question {describe(question.name)}: people's answers {describe(gold[i])} and "
                    f"{describe(gold[j])} are opposites, but similar to the matcher. If they are options of a poll, "
                    "pass matcher='exact' and clustering='none'."
                )
                return


def check_counts(question: Question, settings: ProbevalSettings) -> None:
    """Raise a ValueError that names the question if its answers cannot be smoothed, drawn or jackknifed."""
    sides = (("predictions", "rarefy", question.counts), ("references", "rarefy_people", question.people))
    for side, option, counts in sides:
        size = getattr(settings, option)
        n = counts.sum()
        name = describe(question.name)
        if size is not None and not size <= n <= MOST_DRAWN:
            raise ValueError(f"{option} takes {size:,} of at most {MOST_DRAWN:,}. Question {name} has {int(n):,}.")
        if not (counts % 1).any() and side not in question.shares:
            continue
        if settings.smoothing and n <= 1 + ROUNDED_SUM:
            raise ValueError(
                f"{side}, question {name}: the counts are shares, which smoothing cannot be added to. Pass the number "
                "of answers as 'total', or smoothing=0."
            )
        repeats = settings.parity and settings.clustering == "hac"
        if size is not None or settings.debias or repeats:
            if size is None:
                option = "debias" if settings.debias else "parity"
            raise ValueError(f"{option} needs counts that are integers. Question {name} has others.")


def score_question(
    question: Question, labels: list[str] | None, settings: ProbevalSettings, resources: Resources
) -> dict[str, Any]:
    """Cluster, match and score a question; returns its results, and with settings.details its details.

    `labels` are people's, for matcher="human". Raises a ValueError that names the question if its divergence is
    infinite.
    """
    clusters = cluster(question, settings, resources)
    weights = match(question, clusters, settings, resources, labels)
    gold, model = both_sides(question, clusters, weights, settings)
    gold_times = drawn_down(gold, settings.rarefy_people, content_seed("people", question.gold, question.people))
    model_times = drawn_down(model, settings.rarefy, content_seed("model", question.answers, question.counts))
    p = gold.distributions(gold_times)
    q = model.distributions(model_times)
    score = float(kl_divergence(p, q).mean()) - (jackknife_bias(gold, model) if settings.debias else 0.0)
    if not np.isfinite(score):
        raise ValueError(
            f"smoothing is {settings.smoothing:g}, and the model misses a cluster of question "
            f"{question.name!r}: the divergence is infinite. Pass a larger smoothing."
        )
    hit = (model_times > 0) @ reached(weights).astype(np.float64) > 0
    masses = (gold_times @ gold.weights)[:, :-1]
    coverages = (masses * hit).sum(axis=1) / masses.sum(axis=1)
    n_answers = plain_count(round(float(question.counts.sum()), 6))
    n_wrong = float(question.counts @ weights[:, -1])
    entropies = {"gold": float(entropy(p).mean()), "model": float(entropy(q).mean())}
    result = {
        "id": question.name,
        "score": score,
        "n_answers": n_answers,
        "coverage": float(coverages.mean()),
        "wrong_rate": n_wrong / n_answers if n_answers else None,
        "n_clusters": len(clusters.labels),
        "distribution_entropy": entropies,
    }
    if settings.details:

        def named(row: np.ndarray) -> dict[str, float]:
            return dict(zip([*clusters.labels, WRONG], row.tolist(), strict=True))

        result |= {
            "gold_distribution": named(p.mean(axis=0)),
            "model_distribution": named(q.mean(axis=0)),
            "smoothing": {"gold": named(gold.smoothing), "model": named(model.smoothing)},
            **describe_answers(question, clusters, weights, settings),
        }
    return result


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Average the results of questions."""
    scores = [row["score"] for row in rows]
    wrong_rates = [row["wrong_rate"] for row in rows if row["n_answers"]]
    coverages = [row["coverage"] for row in rows]
    n_clusters = [row["n_clusters"] for row in rows]
    gold_entropies = [row["distribution_entropy"]["gold"] for row in rows]
    model_entropies = [row["distribution_entropy"]["model"] for row in rows]
    n_answers = [row["n_answers"] for row in rows]
    return {
        "probeval": mean(scores),
        "scores": scores,
        "wrong_rate": mean(wrong_rates),
        "coverage": mean(coverages),
        "n_clusters": mean(n_clusters),
        "distribution_entropy": {"gold": mean(gold_entropies), "model": mean(model_entropies)},
        "n_answers": n_answers,
        "n_empty": n_answers.count(0),
    }


def describe_answers(
    question: Question, clusters: Clusters, weights: np.ndarray, settings: ProbevalSettings
) -> dict[str, list[dict[str, Any]]]:
    """Describe the clusters of a question and of each answer as plain data."""
    people = question.people
    # An automatic cluster lists its members with their whole counts.
    listed = clusters.counts if settings.clustering == "human" else clusters.members * people[:, None]
    described = []
    masses = clusters.counts.sum(axis=0).tolist()
    for label, mass, column in zip(clusters.labels, masses, listed.T, strict=True):
        order = np.argsort(-column, kind="stable")[: np.count_nonzero(column)]
        answers = [{"text": question.gold[i], "count": plain_count(column[i])} for i in order]
        described.append({"cluster": label, "count": mass, "answers": answers})
    shares = clusters.counts / people[:, None]
    return {
        "clusters": described,
        "gold_assignments": _assignments(question.gold, people, shares, clusters.labels),
        "assignments": _assignments(question.answers, question.counts, weights, [*clusters.labels, WRONG]),
    }


def _assignments(texts: list[str], counts: np.ndarray, weights: np.ndarray, labels: list[str]) -> list[dict[str, Any]]:
    assignments = []
    for text, count, row in zip(texts, counts.tolist(), weights.tolist(), strict=True):
        shares = {label: share for label, share in zip(labels, row, strict=True) if share}
        assignments.append({"text": text, "count": plain_count(count), "clusters": shares})
    return assignments
