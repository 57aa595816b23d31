"""The settings of gruen: their checks, their defaults, and their entries in the signature."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .core_cache import cache_folder
from .core_encoder import EncoderSettings
from .core_models import DEFAULT_MODEL, PRECISIONS
from .core_numbers import describe, parse_choice, parse_number
from .core_results import confidence_level
from .core_settings import TEXT, Settings, choice, count, flag, number, setting
from .gruen_bert import LIKELIHOODS, BertSettings
from .gruen_compact import CompactBackbone
from .gruen_focus import FOCUS_RULE, FOCUS_THRESHOLD, WMS_THRESHOLD, refuse_vectors
from .gruen_markup import MARKUPS, markup_identity
from .gruen_repeats import REPEAT_RULE
from .gruen_text import splitter_identity

COMPONENTS = ("grammaticality", "non_redundancy", "focus", "coherence", "sense")
BACKBONES = ("compact", "bert")
FOCUSES = ("embedding", "wms")
# The components of the original's code and paper, and those that need a backbone.
_PARITY_COMPONENTS, _PAPER_COMPONENTS = COMPONENTS[:3], COMPONENTS[:4]
_BACKBONE_COMPONENTS = ("grammaticality", "coherence")


def _components(value: Any, name: str) -> tuple[str, ...]:
    """Read the names of components, in a fixed order."""
    if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)) or not len(value):
        raise TypeError(f"{name} must be a list of names, such as ['focus']. Got {describe(value)}.")
    names = [parse_choice(component, name, COMPONENTS) for component in value]
    return tuple(component for component in COMPONENTS if component in names)


@dataclass(frozen=True, kw_only=True)
class GruenSettings(Settings):
    """The settings of a call, as the help explains them."""

    backbone: str = setting("compact", choice(*BACKBONES))
    components: Sequence[str] | None = setting(None, _components)
    parity: bool = setting(False, flag)
    likelihood: str | None = setting(None, choice(*LIKELIHOODS))
    lm_model: str | os.PathLike[str] | None = setting(None)
    cola_model: str | os.PathLike[str] | None = setting(None)
    sop_model: str | os.PathLike[str] | None = setting(None)
    markup: str | None = setting(None, choice(*MARKUPS))
    focus: str | None = setting(None, choice(*FOCUSES))
    focus_threshold: float | None = setting(None, number(-1, 1))
    vectors: Any = setting(None)
    model: Any = setting(DEFAULT_MODEL)
    precision: str | None = setting(None, choice(*PRECISIONS))
    batch_size: int | None = setting(None, count())
    device: str | None = setting(None)
    cache_dir: Any = setting(None, cache_folder)
    confidence: float | None = setting(None, confidence_level, of_mean=True)
    confidence_by: Any = setting(None, given=TEXT, needs="confidence")
    details: bool = setting(False, flag, finer=True)
    progress: bool | None = setting(None, flag)

    def check(self) -> None:
        """Raise an error for settings that do not go together."""
        if self.markup is not None and self.parity:
            raise ValueError(f"markup has no effect with parity=True: leave it out. Got {self.markup!r}.")
        added = [name for name in self.components or () if name not in _PARITY_COMPONENTS]
        if self.parity and added:
            raise ValueError(f"components has {added[0]!r}, which the original does not have: leave it out, or parity.")
        self._check_focus()
        self._check_backbone()
        self._check_models()

    def check_found(self) -> None:
        """Raise an error for a device, or a model of focus="embedding", that cannot be found; nothing is loaded."""
        self.encoder.check_found()

    @cached_property
    def bert(self) -> BertSettings:
        """The settings that only backbone="bert" has."""
        return BertSettings(self.likelihood, self.lm_model, self.cola_model, self.sop_model)

    @cached_property
    def run(self) -> EncoderSettings:
        """How models run: precision, batch size, device, cache folder and progress; its model is the default one."""
        return EncoderSettings(
            DEFAULT_MODEL, self.precision, self.batch_size, self.device, self.cache_dir, self.progress
        )

    @cached_property
    def scored(self) -> tuple[str, ...]:
        """The components to score, in a fixed order."""
        if self.components is not None:
            return tuple(self.components)
        has_order = self.backbone == "bert" and self.bert.sop_model is not None and not self.parity
        return _PAPER_COMPONENTS if has_order else _PARITY_COMPONENTS

    @property
    def judged(self) -> tuple[str, ...]:
        """The components to score that need a backbone."""
        return tuple(name for name in _BACKBONE_COMPONENTS if name in self.scored)

    @property
    def has_sentence_model(self) -> bool:
        """Whether a model scores sentences: a backbone, or that of sense."""
        return bool(self.judged) or "sense" in self.scored

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

    @property
    def reading(self) -> str:
        """How the markup of texts is read."""
        return self.markup or MARKUPS[0]

    @property
    def encoder(self) -> EncoderSettings:
        """The settings of the encoder that focus="embedding" uses.

        `precision` and `cache_dir` are then those of the backbone alone if the encoder is the caller's.
        """
        if self._is_given and self.has_sentence_model:
            return dataclasses.replace(self.run, model=self.model, precision=None, cache_dir=None)
        # A sentence that is longer than the encoder reads is cut, as when the thresholds were calibrated.
        return dataclasses.replace(self.run, model=self.model, long_texts=None if self._is_given else "cut")

    def signed_components(self) -> dict[str, object]:
        """Return the signature's entries on what is scored and how texts are split."""
        splitter = splitter_identity(self.parity)
        entries: dict[str, object] = {"components": "+".join(self.scored), "parity": self.parity, "splitter": splitter}
        if not self.parity:
            entries["markup"] = markup_identity(self.reading)
            if "non_redundancy" in self.scored:
                entries["repeats"] = REPEAT_RULE.identity
        return entries

    def signed_focus(self) -> dict[str, object]:
        """Return the signature's entries on how focus is judged; the model or vectors follow them."""
        entries: dict[str, object] = {"focus": self.focus_kind, "threshold": self.threshold}
        return entries | ({"focus_rule": FOCUS_RULE.identity} if self.focus_kind == "embedding" else {})

    @property
    def _is_given(self) -> bool:
        return EncoderSettings(self.model).is_given

    def _check_focus(self) -> None:
        if self.focus is not None:
            if "focus" not in self.scored:
                raise ValueError(f"focus has no effect where components leaves it out. Got {self.focus!r}.")
            if self.parity and self.focus != "wms":
                raise ValueError(f"focus must be 'wms' with parity=True, as in the original. Got {self.focus!r}.")

    def _check_backbone(self) -> None:
        if self.parity and self.backbone != "bert" and "grammaticality" in self.scored:
            raise ValueError(
                f"backbone must be 'bert' with parity=True: the original has no other. Got {self.backbone!r}. Or leave "
                "'grammaticality' out of components."
            )
        for name, value in self.bert._asdict().items():
            part = "coherence" if name == "sop_model" else "grammaticality"
            if value is not None and self.backbone != "bert":
                raise ValueError(f"{name} has no effect with backbone={self.backbone!r}: pass backbone='bert'.")
            if value is not None and part not in self.scored:
                raise ValueError(f"{name} has no effect where components leaves out {part!r}. Got {describe(value)}.")
        if self.likelihood == "pseudo" and self.parity:
            raise ValueError("likelihood must be 'one-pass' with parity=True, as in the original.")
        missing = [name for name in self.judged if name not in CompactBackbone.components]
        if self.backbone == "compact" and missing:
            raise ValueError(
                f"components has {missing[0]!r}, which backbone='compact' does not give: it has "
                f"{', '.join(map(repr, CompactBackbone.components))}. Leave it out, or pass backbone='bert'."
            )

    def _check_models(self) -> None:
        """Check the settings of focus and of all models, and raise an error for one that has no effect."""
        if self.focus_threshold is not None:
            if self.focus_kind is None:
                raise ValueError("focus_threshold has no effect where components leaves out 'focus'.")
            if self.focus_kind == "wms":
                parse_number(self.focus_threshold, "focus_threshold", 0, 1)
        refuse_vectors(self.vectors, self.focus_kind)
        if self.focus_kind == "embedding":
            # An encoder of the caller's has neither precision nor cache_dir: without a backbone this raises an error.
            self.encoder.check()
            return
        EncoderSettings(self.model).check_unused("no focus='embedding' is scored")
        if self.parity or not {"grammaticality", "sense"} & {*self.scored}:
            reason = "neither focus='embedding' nor, without parity, grammaticality or sense is scored"
            self.run.check_unused(reason, but=("precision",))
        if not self.has_sentence_model:
            self.run.check_unused("no model runs", but=("cache_dir",))
