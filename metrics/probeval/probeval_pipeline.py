"""One question from its answers to its score: clusters, then matches, then distributions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .core_encoder import EncoderSettings, embed_sets
from .core_inputs import TextSets
from .core_numbers import parse_choice, parse_count, parse_number, show
from .core_vectors import load_vectors
from .probeval_clusters import LINKAGES, compare_clusterings, gmeans, hac, xmeans
from .probeval_formats import WRONG, Question
from .probeval_matching import WordNetMatcher, assign, cascade, cluster_maximum, cosine_scores, gp_scores
from .probeval_sampling import DRAWS, MOST_DRAWN, Side, content_seed, divergences, drawn_down
from .probeval_scores import entropy, mean
from .probeval_soft import memberships, same_probability, soft_groups, words
from .probeval_vectors import Embeddings, average_word_vectors
from .probeval_wordnet import load_wordnet

CLUSTERINGS = ("auto", "human", "soft", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("cosine", "wordnet", "gp", "cascade", "human", "soft", "auto")
# The lowest score of a match: for soft a probability, for cosine chosen for MiniLM, for gp the original's.
THRESHOLDS = {"soft": 0.5, "cosine": 0.55, "wordnet": 0.5, "gp": 0.2, "cascade": 0.55}
CASCADE_WORDNET = 0.5
_PARITY_WORDNET = 0.0
_LARGEST_SEED = 2**32 - 1  # of numpy's RandomState, which scikit-learn uses
# Larger numbers, times the number of clusters, are infinite in float64.
_LARGEST_SMOOTHING = 1e300


class Settings(NamedTuple):
    """The settings that decide a score; once resolved, nothing is "auto" and `threshold` is a number."""

    clustering: str = "auto"
    matcher: str = "auto"
    threshold: float | None = None
    linkage: str = "average"
    distance: float = 0.95
    seed: int = 0
    smoothing: float = 1.0
    debias: bool = False
    parity: bool = False
    rarefy: int | None = None
    rarefy_people: int | None = None

    def signed(self) -> dict[str, object]:
        """Return the settings that can change the score, for its signature."""
        signed: dict[str, object] = {"clustering": self.clustering}
        if self.clustering == "hac":
            signed |= {"linkage": self.linkage, "distance": self.distance}
        if self.clustering in ("xmeans", "gmeans"):
            signed["seed"] = self.seed
        signed["matcher"] = self.matcher
        if self.matcher != "human":
            signed["threshold"] = self.threshold
        signed |= {"smoothing": self.smoothing, "debias": self.debias}
        drawn = {"rarefy": self.rarefy, "rarefy_people": self.rarefy_people}
        if any(drawn.values()):
            signed |= {**{name: size for name, size in drawn.items() if size}, "draws": DRAWS}
        if self.clustering != "human" or self.matcher == "wordnet":
            signed["parity"] = self.parity
        return signed


class Resources(NamedTuple):
    """What answers are compared by; None where the pipeline does not need it."""

    embeddings: Embeddings | None = None
    wordnet: WordNetMatcher | None = None


class Clusters(NamedTuple):
    """Gold answers in clusters.

    labels : list of c str
    counts : ndarray of shape (g, c), how often people gave each answer, by its cluster
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
    def kept(self) -> np.ndarray:
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


def resolve(settings: Settings, asked: list[Question]) -> Settings:
    """Check the settings, and replace those left open by their defaults.

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid, or does not go with another one or with the questions.
    """
    clustering = parse_choice(settings.clustering, "clustering", CLUSTERINGS)
    matcher = parse_choice(settings.matcher, "matcher", MATCHERS)
    unclustered = [question.name for question in asked if question.clusters is None]
    if clustering == "auto":
        clustering = "human" if not unclustered else "hac" if _asks_for_hac(settings) else "soft"
    if matcher == "auto":
        matcher = "soft" if clustering == "soft" else "cosine"
    if clustering == "soft" and matcher != "soft":
        raise ValueError(f"clustering='soft' goes with matcher='soft': both divide an answer. Got {matcher!r}.")
    if unclustered and "human" in (clustering, matcher):
        raise ValueError(
            f"clustering and matcher can be 'human' only if every gold answer has a cluster. Question "
            f"{unclustered[0]!r} has answers without one."
        )
    if matcher == "human" and clustering != "human":
        raise ValueError(f"matcher='human' goes with clustering='human': its labels are people's. Got {clustering!r}.")
    smoothing = parse_number(settings.smoothing, "smoothing", 0)
    if smoothing > _LARGEST_SMOOTHING:
        raise ValueError(f"smoothing must be at most {_LARGEST_SMOOTHING:g}. Got {settings.smoothing}.")
    if settings.debias and smoothing == 0:
        raise ValueError("debias needs smoothing > 0: without it, leaving out an answer can make a score infinite.")
    if settings.debias and (settings.rarefy is not None or settings.rarefy_people is not None):
        raise ValueError("debias cannot be combined with rarefy or rarefy_people, which compare at equal numbers.")
    threshold = settings.threshold
    if threshold is None:
        is_original = settings.parity and matcher == "wordnet"
        threshold = _PARITY_WORDNET if is_original else THRESHOLDS.get(matcher, 0.0)
    return Settings(
        clustering=clustering,
        matcher=matcher,
        threshold=parse_number(threshold, "threshold", 0, 1),
        linkage=parse_choice(settings.linkage, "linkage", LINKAGES),
        distance=parse_number(settings.distance, "distance", 0),
        seed=parse_count(settings.seed, "seed", low=0, high=_LARGEST_SEED),
        smoothing=smoothing,
        debias=settings.debias,
        parity=settings.parity,
        rarefy=_parse_size(settings.rarefy, "rarefy"),
        rarefy_people=_parse_size(settings.rarefy_people, "rarefy_people"),
    )


def _parse_size(size: Any, name: str) -> int | None:
    return None if size is None else parse_count(size, name)


def _asks_for_hac(settings: Settings) -> bool:
    """Whether a setting goes with hard clusters, or is one of hac."""
    tuned = (settings.linkage, settings.distance) != (Settings().linkage, Settings().distance)
    return settings.parity or settings.matcher not in ("auto", "soft") or tuned


def needs_embeddings(settings: Settings) -> bool:
    """Whether the pipeline compares embeddings."""
    return settings.clustering in ("soft", "hac", "xmeans", "gmeans") or settings.matcher in (
        "soft",
        "cosine",
        "gp",
        "cascade",
    )


def texts_to_embed(texts: Iterable[str], settings: Settings) -> list[str]:
    """List the different texts that the pipeline embeds to compare these answers."""
    said = {text for text in texts if text.strip()}
    return sorted(said | {words(text).content for text in said} if settings.matcher == "soft" else said)


def load_resources(
    answers: Iterable[str], settings: Settings, encoder: EncoderSettings, vectors: Any = None
) -> tuple[Resources, dict[str, str]]:
    """Load what the pipeline compares answers by; returns the entries of a signature, too.

    Parameters
    ----------
    answers : of people and of the model, to all questions
    vectors : word vectors in place of the encoder, or None

    Raises
    ------
    TypeError, ValueError, ImportError
        As `embed_sets` and `load_vectors` do, or if WordNet is missing.
    """
    embeddings, wordnet = None, None
    signed: dict[str, str] = {}
    if needs_embeddings(settings):
        texts = texts_to_embed(answers, settings)
        if vectors is not None:
            matrix, signed["vectors"] = average_word_vectors(texts, load_vectors(vectors))
        else:
            matrix, signed = embed_sets(TextSets(texts, np.array([len(texts)]), nested=False), None, encoder)
        embeddings = Embeddings(texts, matrix)
    if settings.matcher in ("wordnet", "cascade"):
        loaded = load_wordnet()
        wordnet, signed["wordnet"] = WordNetMatcher(loaded), loaded.version
    return Resources(embeddings, wordnet), signed


def cluster(question: Question, settings: Settings, resources: Resources) -> Clusters:
    """Cluster the gold answers of a question; found clusters are named c_1, c_2, ... in order of decreasing mass."""
    if settings.clustering == "human":
        assert question.clusters is not None
        return Clusters(question.clusters, question.gold_counts)
    counts = question.gold_counts.sum(axis=1)
    if settings.clustering == "none":
        found = np.arange(len(counts))
    else:
        embeddings = resources.embeddings
        assert embeddings is not None
        (vectors,) = embeddings.look_up(question.gold)
        if settings.clustering == "soft":
            probability = same_probability(question.gold, question.gold, embeddings)
            found = soft_groups(probability)
        elif settings.clustering == "hac":
            # In the original, an answer counts in the linkage as often as it was given.
            found = hac(vectors, settings.linkage, settings.distance, counts if settings.parity else None)
        else:
            found = (xmeans if settings.clustering == "xmeans" else gmeans)(vectors, settings.seed)
    table = np.zeros((len(counts), int(found.max()) + 1))
    table[np.arange(len(counts)), found] = counts
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
    settings: Settings,
    resources: Resources,
    labels: list[str] | None = None,
) -> np.ndarray:
    """Match the answers of a question to its clusters; a blank answer matches nothing, except by people's `labels`.

    Returns
    -------
    ndarray of shape (u, c + 1), rows summing to 1, `wrong` last
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
    embeddings, wordnet = resources
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
        matched = probability.max(axis=1, keepdims=True) >= threshold
        shares = memberships(probability, members, clusters.counts.sum(axis=1))
        weights[said] = np.hstack([shares * matched, ~matched])
        return weights
    vectors, gold_vectors = embeddings.look_up(answers, gold)
    if settings.matcher == "cosine":
        found = assign(cluster_maximum(cosine_scores(vectors, gold_vectors), members), threshold)
    elif settings.matcher == "gp":
        found = assign(gp_scores(vectors, gold_vectors, clusters.counts), threshold, strict=True)
    else:
        assert wordnet is not None
        found = cascade(
            answers, gold, members, wordnet, cosine_scores(vectors, gold_vectors), CASCADE_WORDNET, threshold
        )
    weights[said] = found
    return weights


def score(
    counts: np.ndarray,
    weights: np.ndarray,
    clusters: Clusters,
    settings: Settings,
    seeds: tuple[int, int] = (0, 1),
) -> Scored:
    """Compare the two distributions over the clusters and `wrong`.

    Parameters
    ----------
    counts : ndarray of shape (u,), how often the model gave each answer
    weights : ndarray of shape (u, c + 1), from `match`
    seeds : of the samples of people's answers and of the model's, with `rarefy_people` and `rarefy`
    """
    gold, model = gold_side(clusters, settings), model_side(counts, weights, clusters, settings)
    return score_sides(gold, model, reached(weights), settings, seeds)


def gold_side(clusters: Clusters, settings: Settings) -> Side:
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


def model_side(counts: np.ndarray, weights: np.ndarray, clusters: Clusters, settings: Settings) -> Side:
    """Return the model's answers, each different one a kind."""
    return Side(counts, weights, _smoothing(clusters, settings))


def _smoothing(clusters: Clusters, settings: Settings) -> np.ndarray:
    return settings.smoothing * np.append(clusters.kept, 1.0)


def reached(weights: np.ndarray) -> np.ndarray:
    """Return the clusters that an answer reaches: that to which it belongs the most, or several if they tie.

    Parameters
    ----------
    weights : ndarray of shape (u, c + 1), from `match`

    Returns
    -------
    ndarray of shape (u, c), bool
    """
    shares = weights[:, :-1]
    return (shares > 0) & (shares >= shares.max(axis=1, keepdims=True) - 1e-9)


def score_sides(
    gold: Side, model: Side, reach: np.ndarray, settings: Settings, seeds: tuple[int, int] = (0, 1)
) -> Scored:
    """Compare the answers of people and of the model; with `rarefy`, all values are means over samples.

    Parameters
    ----------
    reach : ndarray of shape (k, c), bool, the clusters that each kind of the model's answers reaches
    """
    blocks = [
        _score_samples(gold, model, reach, *times, settings)
        for times in drawn_down(gold, model, (settings.rarefy_people, settings.rarefy), seeds)
    ]
    scores, coverage, p, q = (np.concatenate(own) for own in zip(*blocks, strict=True))
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


def _score_samples(
    gold: Side, model: Side, reach: np.ndarray, gold_times: np.ndarray, model_times: np.ndarray, settings: Settings
) -> tuple[np.ndarray, ...]:
    """Return the scores, coverages and both distributions of samples: arrays with a row for each."""
    hit = (model_times > 0).astype(np.float64) @ reach > 0
    masses = (gold_times @ gold.weights)[:, :-1]
    return (
        divergences(gold, model, gold_times, model_times, debias=settings.debias),
        (masses * hit).sum(axis=1) / masses.sum(axis=1),
        gold.distributions(gold_times),
        model.distributions(model_times),
    )


def summarize(scored: list[Scored], sizes: list[int]) -> dict[str, Any]:
    """Average the scores of questions with these numbers of answers, and name the results."""
    scores = [one.score for one in scored]
    return {
        "probeval": mean(scores),
        "scores": scores,
        "wrong_rate": mean([one.wrong_rate for one in scored if one.wrong_rate is not None]),
        "coverage": mean([one.coverage for one in scored]),
        "n_clusters": mean([len(one.gold) - 1 for one in scored]),
        "semantic_entropy": {
            "gold": mean([one.gold_entropy for one in scored]),
            "model": mean([one.model_entropy for one in scored]),
        },
        "n_answers": sizes,
        "n_empty": sizes.count(0),
    }


def check_sizes(asked: list[Question], settings: Settings) -> None:
    """Raise a ValueError that names the question if it has too few answers to draw from, or too many."""
    for name, size in (("rarefy", settings.rarefy), ("rarefy_people", settings.rarefy_people)):
        if size is None:
            continue
        for question in asked:
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
    asked: list[Question], labels: list[Any] | None, settings: Settings, resources: Resources
) -> list[ScoredQuestion]:
    """Cluster, match and score each question.

    Parameters
    ----------
    labels : for each question what people assigned its answers to, for matcher="human"; else None

    Raises
    ------
    ValueError
        If a divergence is infinite.
    """
    found = []
    for question, own in zip(asked, labels or [None] * len(asked), strict=True):
        clusters = cluster(question, settings, resources)
        weights = match(question, clusters, settings, resources, own)
        scored = score(question.counts, weights, clusters, settings, seeds_of(question))
        if not np.isfinite(scored.score):
            raise ValueError(
                f"smoothing is {settings.smoothing}, and the model gives no answer in some cluster of question "
                f"{question.name!r}: the divergence is infinite. Pass a larger smoothing."
            )
        found.append(ScoredQuestion(question, clusters, weights, scored))
    return found


def clustering_quality(scored: list[ScoredQuestion]) -> dict[str, float]:
    """Compare clusters with people's: the means over questions of the measures of `compare_clusterings`."""
    compared = [
        compare_clusterings(one.clusters.counts.argmax(axis=1), one.question.gold_counts.argmax(axis=1))
        for one in scored
    ]
    return {name: mean([row[name] for row in compared]) for name in compared[0]}


def describe_question(
    question: Question, clusters: Clusters, weights: np.ndarray, scored: Scored, settings: Settings
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
