"""The settings of gruen: their checks, their defaults, and their entries in the signature."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from .core_encoder import EncoderSettings
from .core_numbers import describe, parse_choice
from .core_results import confidence_level
from .core_settings import TEXT, choice, flag, number, setting
from .gruen_focus import FOCUS_THRESHOLD, WMS_THRESHOLD
from .gruen_redundancy import REPEATS_IDENTITY
from .gruen_text import MARKUPS

COMPONENTS = ("grammaticality", "non_redundancy", "focus", "coherence")
# The components of the original's code.
_PARITY_COMPONENTS = COMPONENTS[:3]


def _components(value: Any, name: str) -> tuple[str, ...]:
    """Read the names of components, in a fixed order."""
    if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)) or not len(value):
        raise TypeError(f"{name} must be a list of names, such as ['focus']. Got {describe(value)}.")
    names = [parse_choice(component, name, COMPONENTS) for component in value]
    return tuple(component for component in COMPONENTS if component in names)


@dataclass(frozen=True, kw_only=True)
class GruenSettings(EncoderSettings):
    """The settings of a call, as the help explains them; those of the encoder are of all models."""

    backbone: str = setting("compact", choice("compact", "bert"))
    components: Sequence[str] | None = setting(None, _components)
    parity: bool = setting(False, flag)
    lm_model: str | os.PathLike[str] | None = setting(None)
    cola_model: str | os.PathLike[str] | None = setting(None)
    sop_model: str | os.PathLike[str] | None = setting(None)
    markup: str = setting(MARKUPS[0], choice(*MARKUPS))
    focus: str | None = setting(None, choice("embedding", "wms"))
    focus_threshold: float | None = setting(None, number(-1, 1))
    vectors: Any = setting(None)
    confidence: float | None = setting(None, confidence_level)
    confidence_by: Any = setting(None, given=TEXT)
    details: bool = setting(False, flag)

    def check(self) -> None:
        """Raise an error for settings that do not go together."""
        if self.parity and "coherence" in self.scored:
            raise ValueError("components has 'coherence', which the original does not have: leave it out, or parity.")
        if self.parity and self.focus == "embedding":
            raise ValueError("focus must be 'wms' with parity=True, as in the original. Got 'embedding'.")
        if self.parity and "grammaticality" in self.scored and self.backbone != "bert":
            raise ValueError(
                f"backbone must be 'bert' with parity=True: the original has no other. Got {self.backbone!r}. Or leave "
                "'grammaticality' out of components."
            )
        if self.backbone != "bert":
            for name in self.signed("lm_model", "cola_model", "sop_model"):
                raise ValueError(f"{name} has no effect with backbone={self.backbone!r}: pass backbone='bert'.")
            if "coherence" in self.scored:
                raise ValueError(
                    "components has 'coherence', which backbone='compact' does not score: leave it out, or pass "
                    "backbone='bert' and sop_model."
                )
        if self.focus_kind == "wms" and self.vectors is None:
            raise ValueError(
                "vectors is None, and focus='wms' needs word vectors: the folder of a spaCy pipeline, a fastText or "
                "word2vec file, or a mapping. With parity=True, leave 'focus' out of components to score without."
            )

    @property
    def scored(self) -> tuple[str, ...]:
        """The components to score, in a fixed order."""
        if self.components is not None:
            return tuple(self.components)
        has_order = self.backbone == "bert" and self.sop_model is not None and not self.parity
        return COMPONENTS if has_order else _PARITY_COMPONENTS

    @property
    def focus_kind(self) -> str | None:
        """The kind of focus to score; None if it is not scored."""
        if "focus" not in self.scored:
            return None
        return self.focus or ("wms" if self.parity else "embedding")

    @property
    def threshold(self) -> float:
        """What focus is judged by: the least tie of a text of two sentences, or the least similarity of neighbors."""
        if self.focus_threshold is not None:
            return self.focus_threshold
        return WMS_THRESHOLD if self.focus_kind == "wms" else FOCUS_THRESHOLD

    def signed_components(self) -> dict[str, object]:
        """Return the signature's entries on what is scored and how texts are split."""
        entries: dict[str, object] = {"components": "+".join(self.scored), "parity": self.parity}
        if self.parity:
            return entries | {"splitter": "punkt"}
        entries["splitter"] = f"sentencex-{version('sentencex')}"
        parser = "" if self.markup == "plain" else f"-markdown-it-{version('markdown-it-py')}"
        entries["markup"] = f"{self.markup}{parser}"
        return entries | ({"repeats": REPEATS_IDENTITY} if "non_redundancy" in self.scored else {})
