"""The settings of gruen: their checks, their defaults, and their entries in the signature."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from .core import EncoderSettings, describe, parse_choice, parse_flag, parse_number, setting
from .gruen_focus import FOCUS_THRESHOLD, WMS_THRESHOLD
from .gruen_redundancy import REPEATS_RULE
from .gruen_text import MARKUPS

COMPONENTS = ("grammaticality", "non_redundancy", "focus", "coherence")
# Settings that need the backbone of the paper.
_OF_BERT = ("parity", "lm_model", "cola_model", "sop_model")


def _components(value: Any, name: str) -> tuple[str, ...]:
    """Read the names of components, in a fixed order."""
    if isinstance(value, str) or not isinstance(value, (Sequence, set, frozenset)) or not value:
        raise TypeError(f"{name} must be a list of names, such as ['focus']. Got {describe(value)}.")
    names = [parse_choice(component, name, COMPONENTS) for component in value]
    return tuple(component for component in COMPONENTS if component in names)


@dataclass(frozen=True, kw_only=True)
class GruenSettings(EncoderSettings):
    """The settings of a call; the settings of the encoder apply to all models."""

    backbone: str | None = setting(
        None,
        parse_choice,
        choices=("compact", "bert"),
        help='`str`: model of grammaticality and coherence. `"compact"`: adapters of all-MiniLM-L6-v2 that come '
        'with this metric; it does not score coherence. `"bert"`: the models of the paper. Default: `"bert"` '
        'with `parity` or a model for it, else `"compact"`.',
    )
    components: Sequence[str] | None = setting(
        None,
        _components,
        help='`list[str]`: components to score, among `"grammaticality"`, `"non_redundancy"`, `"focus"` and '
        '`"coherence"`. Default: all that the backbone has.',
    )
    parity: bool = setting(
        False,
        parse_flag,
        help="`bool`: reproduce the released code, which has no coherence. Focus then requires `vectors`, and "
        "sentence splitting requires NLTK's Punkt.",
    )
    lm_model: str | os.PathLike[str] | None = setting(
        None, help='`str` or path: for `"bert"`: a masked language model. Default: `"bert-base-cased"`.'
    )
    cola_model: str | os.PathLike[str] | None = setting(
        None,
        help='`str` or path: for `"bert"`: a classifier of acceptability, by default '
        '`"textattack/bert-base-uncased-CoLA"`. Its class named "acceptable" is used, otherwise class 1.',
    )
    sop_model: str | os.PathLike[str] | None = setting(
        None,
        help='`str` or path: for `"bert"`: an ALBERT with its head for sentence-order prediction, which the models '
        "on the Hub lack; transformers converts Google's checkpoint. Without it, coherence is not scored.",
    )
    markup: str = setting(
        MARKUPS[0],
        parse_choice,
        choices=MARKUPS,
        help='`str`: layout of the texts. `"markdown"`: blocks are split into sentences separately; links and '
        "emphasis are replaced by their text; code blocks and images are left out; tags of HTML are line breaks. "
        '`"plain"`: no markup. `"auto"`: HTML, and Markdown if a text has a heading, a code block, a table, a quote, '
        "bold type, a link or a list of two items. `parity` reads none.",
    )
    focus_threshold: float | None = setting(
        None,
        parse_number,
        low=-1,
        high=1,
        help="`float`: minimum tie of a sentence to the others in a text of two sentences; the thresholds of "
        "longer texts are derived from it. Default: 0.108. With `vectors`: minimum similarity of adjacent "
        "sentences. Default: 0.05.",
    )
    vectors: Any = setting(
        None,
        help="`str`, path or mapping: word vectors, to judge focus by Word Mover's similarity of adjacent sentences, "
        "1 / (1 + distance), in place of cosines: the folder of a spaCy pipeline; a fastText or word2vec file "
        "(`.bin`, `.vec`, `.txt`, `.kv`); or a mapping from words to vectors.",
    )

    def check(self) -> None:
        """Raise a ValueError for settings that cannot be combined."""
        bert_settings = self.signed(*_OF_BERT)
        if bert_settings and self.backbone == "compact":
            raise ValueError(f"backbone must be 'bert' with {', '.join(bert_settings)}. Got 'compact'.")
        if "coherence" in self.scored and (self.parity or self.sop_model is None):
            raise ValueError("components has 'coherence', which needs sop_model, without parity.")
        if self.parity and self.vectors is None and "focus" in self.scored:
            raise ValueError("vectors is None: focus with parity=True needs word vectors.")

    @property
    def backbone_kind(self) -> str:
        """The backbone: by default the paper's, if a setting needs it."""
        return self.backbone or ("bert" if self.signed(*_OF_BERT) else "compact")

    @property
    def scored(self) -> tuple[str, ...]:
        """The components to score, in a fixed order."""
        if self.components is not None:
            return tuple(self.components)
        return COMPONENTS if self.sop_model is not None and not self.parity else COMPONENTS[:3]

    @property
    def focus_kind(self) -> str:
        """The vectors that focus is judged by: word vectors, as in the original, or embeddings."""
        return "wms" if self.parity or self.vectors is not None else "embedding"

    @property
    def threshold(self) -> float:
        """The least tie of a text of two sentences, or the least similarity of neighbors."""
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
        return entries | ({"repeats": REPEATS_RULE} if "non_redundancy" in self.scored else {})
