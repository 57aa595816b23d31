"""The settings of probeval."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from .core import TEXT, EncoderSettings, parse_choice, parse_count, parse_flag, parse_number, setting
from .probeval_clusters import LINKAGES
from .probeval_formats import UNPAIRED
from .probeval_sampling import DRAWS

CLUSTERINGS = ("auto", "human", "soft", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("cosine", "exact", "wordnet", "gp", "human", "soft", "auto")
# The lowest score of a match: for soft the probability at which half of an answer matches; for cosine chosen for
# MiniLM; for gp the original's.
THRESHOLDS = {"soft": 0.475, "cosine": 0.55, "wordnet": 0.5, "gp": 0.2}
# Matchers by which an answer either belongs to a cluster or does not: they have no threshold.
CERTAIN = ("exact", "human")
_LARGEST_SEED = 2**32 - 1  # of numpy's RandomState, which scikit-learn uses
_LARGEST_SMOOTHING = 1e300  # times the number of clusters, more is infinite in float64


@dataclass(frozen=True, kw_only=True)
class ProbevalSettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    clustering: str = setting(
        "auto",
        parse_choice,
        choices=CLUSTERINGS,
        help='`str`: `"human"`: people\'s clusters. `"soft"`: answers belong to clusters by degrees, by the '
        'probability that people put them together. `"hac"`: agglomerative clustering of embeddings. '
        '`"xmeans"`, `"gmeans"`: k-means that chooses k, at most 20. `"none"`: a cluster for each distinct '
        'answer. `"auto"`: `"human"` if every reference answer has a cluster, otherwise `"soft"`, or `"none"` '
        'if `matcher` is `"exact"`, or `"hac"` if `parity`, `linkage`, `distance` or another `matcher` than '
        '`"soft"` is passed.',
    )
    matcher: str = setting(
        "auto",
        parse_choice,
        choices=MATCHERS,
        help='`str`: how the model\'s answers are matched to clusters. `"exact"`: if they are equal but for case, '
        "spaces, and the forms of quotes, dashes and Unicode, for the closed options of a poll. "
        '`"soft"`: divided among soft clusters, as people\'s are. '
        '`"cosine"`: the largest cosine with an answer of the cluster. `"wordnet"`: the share of parts of two '
        'phrases that are equal or share a synset. `"gp"`: Gaussian-process regression from embeddings. '
        '`"human"`: given by `labels`. `"auto"`: `"soft"` for soft clusters, otherwise `"cosine"`. Ties are '
        "split evenly. Answers never match if they are opposites, or if their numbers, signs, symbols, units of time, "
        "vowel signs or tone marks differ.",
    )
    threshold: float | None = setting(
        None,
        parse_number,
        low=0,
        high=1,
        help="`float` in [0, 1]: minimum score of a match. Default: 0.55 for cosine, 0.5 for WordNet, and more "
        "than 0.2 for gp. For soft, 0.475: the probability at which half of an answer is `wrong`. Other models need "
        "other thresholds.",
    )
    smoothing: float = setting(
        1.0,
        parse_number,
        low=0,
        high=_LARGEST_SMOOTHING,
        help="`float`: added to the count of each cluster, and of `wrong`, in both distributions. For a soft "
        "cluster, it is multiplied by the share of its answers that the cluster keeps.",
    )
    debias: bool = setting(
        False,
        parse_flag,
        help="`bool`: subtract the bias of finite samples from each score, estimated by the jackknife. A small "
        "divergence may fall below 0. To compare different numbers of answers, use `rarefy`.",
    )
    rarefy: int | None = setting(
        None,
        parse_count,
        help="`int`: score this many of the model's answers to each question: the mean over 1000 seeded draws "
        "without replacement. A question with fewer answers is an error.",
    )
    rarefy_people: int | None = setting(
        None, parse_count, help="`int`: the same for people's answers. All answers are clustered."
    )
    parity: bool = setting(
        False,
        parse_flag,
        help="`bool`: reproduce the released code. With automatic clusters, people's distribution is not smoothed, "
        "and repeated answers have weight in the linkage. With WordNet, answers are cut to 50 characters, and "
        "every score above 0 is a match. Opposites, and different numbers, may match.",
    )
    linkage: str = setting(
        "average",
        parse_choice,
        choices=LINKAGES,
        help='`str`: for `"hac"`: a method of `scipy.cluster.hierarchy.linkage`.',
    )
    distance: float = setting(
        0.95, parse_number, low=0, help='`float`: for `"hac"`: the Euclidean distance at which the tree is cut.'
    )
    seed: int = setting(0, parse_count, low=0, high=_LARGEST_SEED, help='`int`: for `"xmeans"` and `"gmeans"`.')
    labels: Any = setting(
        None,
        given=TEXT,
        help='`dict` or `list`: for `matcher="human"`: the cluster of each answer of the model, or `"wrong"`. A '
        'dict from question ids, or positions `"0"`, `"1"`, ..., to dicts from answers to clusters; or a list '
        "of lists in the order of the answers.",
    )
    unknown: str = setting(
        "error",
        parse_choice,
        choices=UNPAIRED,
        help='`str`: a prediction without a reference is an error. With `"skip"`, `compute` leaves it out and '
        "names it in `skipped`.",
    )
    missing: str = setting(
        "error", parse_choice, choices=UNPAIRED, help="`str`: the same for a reference without a prediction."
    )
    vectors: Any = setting(
        None,
        help="`str`, path or mapping: word vectors in place of `model`, averaged over the words of an answer: a "
        "fastText or word2vec file (requires gensim), or a mapping. An answer without a known word matches "
        "only itself.",
    )

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined with any answers."""
        if self.clustering == "soft" and self.matcher not in ("auto", "soft"):
            raise ValueError(f"matcher must be 'soft' with clustering='soft'. Got {self.matcher!r}.")
        if self.matcher == "human" and self.clustering not in ("auto", "human"):
            raise ValueError(f"clustering must be 'human' with matcher='human'. Got {self.clustering!r}.")
        if (self.labels is not None) != (self.matcher == "human"):
            raise ValueError(f"labels go with matcher='human' only. Got matcher={self.matcher!r}.")
        if self.debias and self.smoothing == 0:
            raise ValueError("smoothing must be above 0 with debias, for finite scores.")
        self.check_exclusive("debias", "rarefy")
        self.check_exclusive("debias", "rarefy_people")

    @property
    def needs_embeddings(self) -> bool:
        """True if embeddings are compared."""
        return self.clustering in ("soft", "hac", "xmeans", "gmeans") or self.matcher in ("soft", "cosine", "gp")

    def signed_pipeline(self) -> dict[str, object]:
        """Return the signature entries of all settings of a question's score, without the encoder."""
        signed: dict[str, object] = {"clustering": self.clustering}
        if self.clustering == "hac":
            signed |= {"linkage": self.linkage, "distance": self.distance}
        if self.clustering in ("xmeans", "gmeans"):
            signed["seed"] = self.seed
        signed["matcher"] = self.matcher
        if self.matcher not in CERTAIN:
            signed["threshold"] = self.threshold
        signed |= {"smoothing": self.smoothing, "debias": self.debias}
        if drawn := self.signed("rarefy", "rarefy_people"):
            signed |= {**drawn, "draws": DRAWS}
        if self.clustering != "human" or self.matcher not in CERTAIN:
            signed["parity"] = self.parity
        return signed


def resolve(settings: ProbevalSettings, unclustered: str | None = None) -> ProbevalSettings:
    """Replace "auto" and the default threshold by what applies.

    `unclustered` names a question whose answers people have not clustered. Raises a ValueError if there is one, and
    people's clusters are required.
    """
    clustering = settings.clustering
    matcher = settings.matcher
    threshold = settings.threshold
    if clustering == "auto":
        asks_for_hac = settings.parity or matcher not in ("auto", "soft") or settings.signed("linkage", "distance")
        if unclustered is None:
            clustering = "human"
        elif matcher == "exact":
            clustering = "none"
        else:
            clustering = "hac" if asks_for_hac else "soft"
    if matcher == "auto":
        matcher = "soft" if clustering == "soft" else "cosine"
    if unclustered is not None and "human" in (clustering, matcher):
        raise ValueError(f"clustering='human' needs a cluster for each answer: question {unclustered!r} lacks one.")
    if matcher in CERTAIN:
        threshold = 1.0
    elif threshold is None:
        # In the original, every WordNet score above 0 is a match.
        threshold = 0.0 if settings.parity and matcher == "wordnet" else THRESHOLDS[matcher]
    return dataclasses.replace(settings, clustering=clustering, matcher=matcher, threshold=threshold)
