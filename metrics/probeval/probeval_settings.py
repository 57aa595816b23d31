"""The settings of probeval."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .core import TEXT, EncoderSettings, parse_choice, parse_count, parse_flag, parse_number, setting
from .probeval_clusters import LINKAGES
from .probeval_formats import UNPAIRED, Question
from .probeval_sampling import DRAWS

CLUSTERINGS = ("auto", "human", "soft", "hac", "xmeans", "gmeans", "none")
MATCHERS = ("cosine", "wordnet", "gp", "human", "soft", "auto")
# The lowest score of a match: for soft a probability, at which half of an answer matches; for
# cosine chosen for MiniLM; for gp the original's.
THRESHOLDS = {"soft": 0.475, "cosine": 0.55, "wordnet": 0.5, "gp": 0.2}
_LARGEST_SEED = 2**32 - 1  # of numpy's RandomState, which scikit-learn uses
_LARGEST_SMOOTHING = 1e300  # times the number of clusters, more is infinite in float64


@dataclass(frozen=True, kw_only=True)
class ProbevalSettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    clustering: str = setting("auto", parse_choice, choices=CLUSTERINGS)
    matcher: str = setting("auto", parse_choice, choices=MATCHERS)
    threshold: float | None = setting(None, parse_number, low=0, high=1)
    smoothing: float = setting(1.0, parse_number, low=0, high=_LARGEST_SMOOTHING)
    debias: bool = setting(False, parse_flag)
    rarefy: int | None = setting(None, parse_count)
    rarefy_people: int | None = setting(None, parse_count)
    parity: bool = setting(False, parse_flag)
    linkage: str = setting("average", parse_choice, choices=LINKAGES)
    distance: float = setting(0.95, parse_number, low=0)
    seed: int = setting(0, parse_count, low=0, high=_LARGEST_SEED)
    labels: Any = setting(None, given=TEXT)
    unknown: str = setting("error", parse_choice, choices=UNPAIRED)
    missing: str = setting("error", parse_choice, choices=UNPAIRED)
    vectors: Any = setting(None)

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined, whatever the answers are."""
        if self.clustering == "soft" and self.matcher not in ("auto", "soft"):
            raise ValueError(f"matcher must be 'soft' with clustering='soft'. Got {self.matcher!r}.")
        if self.matcher == "human" and self.clustering not in ("auto", "human"):
            raise ValueError(f"clustering must be 'human' with matcher='human'. Got {self.clustering!r}.")
        if (self.labels is not None) != (self.matcher == "human"):
            raise ValueError(f"labels go with matcher='human' only. Got matcher={self.matcher!r}.")
        if self.debias and self.smoothing == 0:
            raise ValueError("smoothing must be above 0 with debias, for finite scores.")
        self.pass_one("debias", "rarefy")
        self.pass_one("debias", "rarefy_people")

    @property
    def needs_embeddings(self) -> bool:
        """Whether embeddings are compared."""
        return self.clustering in ("soft", "hac", "xmeans", "gmeans") or self.matcher in ("soft", "cosine", "gp")

    def signed_pipeline(self) -> dict[str, object]:
        """Return the entries of a signature for all that decides the score of a question, but for the encoder."""
        signed: dict[str, object] = {"clustering": self.clustering}
        if self.clustering == "hac":
            signed |= {"linkage": self.linkage, "distance": self.distance}
        if self.clustering in ("xmeans", "gmeans"):
            signed["seed"] = self.seed
        signed["matcher"] = self.matcher
        if self.matcher != "human":
            signed["threshold"] = self.threshold
        signed |= {"smoothing": self.smoothing, "debias": self.debias}
        if drawn := self.signed("rarefy", "rarefy_people"):
            signed |= {**drawn, "draws": DRAWS}
        if self.clustering != "human" or self.matcher == "wordnet":
            signed["parity"] = self.parity
        return signed


def resolve(settings: ProbevalSettings, questions: Sequence[Question]) -> ProbevalSettings:
    """Replace "auto" and the default threshold by what these questions get.

    Raises a ValueError if people's clusters are asked for, and a question lacks them.
    """
    clustering, matcher, threshold = settings.clustering, settings.matcher, settings.threshold
    unclustered = next((question.name for question in questions if question.clusters is None), None)
    if clustering == "auto":
        asks_for_hac = settings.parity or matcher not in ("auto", "soft") or settings.signed("linkage", "distance")
        clustering = "human" if unclustered is None else "hac" if asks_for_hac else "soft"
    if matcher == "auto":
        matcher = "soft" if clustering == "soft" else "cosine"
    if unclustered is not None and "human" in (clustering, matcher):
        raise ValueError(f"clustering='human' needs a cluster for each answer: question {unclustered!r} lacks one.")
    if threshold is None:
        # In the original, every WordNet score above 0 is a match.
        threshold = 0.0 if settings.parity and matcher == "wordnet" else THRESHOLDS.get(matcher, 0.0)
    return dataclasses.replace(settings, clustering=clustering, matcher=matcher, threshold=threshold)
