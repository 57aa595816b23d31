"""The settings of probeval."""

from dataclasses import dataclass
from typing import Any

from .core_encoder import EncoderSettings
from .core_results import confidence_level
from .core_settings import ANSWER, QUESTION, choice, flag, never, setting
from .core_vectors import load_vectors
from .probeval_pipeline import Settings, resolve


@dataclass(frozen=True, kw_only=True)
class ProbevalSettings(EncoderSettings):
    """The settings of a call, as the help explains them."""

    clustering: str = setting("auto")
    matcher: str = setting("auto")
    threshold: float | None = setting(None)
    smoothing: float = setting(1.0)
    debias: bool = setting(False, flag)
    rarefy: int | None = setting(None, merges_parts=never)
    rarefy_people: int | None = setting(None, merges_parts=never)
    parity: bool = setting(False, flag)
    linkage: str = setting("average")
    distance: float = setting(0.95)
    seed: int = setting(0)
    labels: Any = setting(None, given=ANSWER)
    unknown: str = setting("error", choice("error", "skip"))
    missing: str = setting("error", choice("error", "skip"))
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=QUESTION, needs="confidence")
    vectors: Any = setting(None)
    details: bool = setting(False, flag, finer=True)

    def check(self) -> None:
        """Raise an error for settings that are invalid or do not go together, whatever the answers are."""
        super().check()
        resolve(self.pipeline, [])
        if (self.labels is not None) != (self.matcher == "human"):
            raise ValueError(f"labels go with matcher='human', and only with it. Got matcher={self.matcher!r}.")

    def check_found(self) -> None:
        """Raise an error for a model, a device or word vectors that cannot be found."""
        super().check_found()
        if self.vectors is not None:
            load_vectors(self.vectors)

    @property
    def pipeline(self) -> Settings:
        """The settings that decide the score of a question."""
        return Settings(**{name: getattr(self, name) for name in Settings._fields})
