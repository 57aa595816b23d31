"""GRUEN: the linguistic quality of a text, without a reference."""

import contextlib
from pathlib import Path
from typing import Any

import datasets
import evaluate

from .core import (
    TEXTS,
    ItemResult,
    ScoreSummary,
    TextMetric,
    as_list,
    bring_weights,
    describe,
    describe_results,
    describe_settings,
    find_unread,
    parse_confidence_by,
    parse_sets,
    signature,
    warn,
)
from .gruen_backbone import Backbone
from .gruen_bert import BertBackbone
from .gruen_compact import WEIGHTS_FILE, CompactBackbone
from .gruen_components import describe_text, score_components, total
from .gruen_focus import embedding_breaks as embedding_breaks
from .gruen_redundancy import find_repeats as find_repeats
from .gruen_released import ReleasedBackbone
from .gruen_released import split as split_as_released
from .gruen_settings import COMPONENTS, GruenSettings
from .gruen_text import Text, split

_DESCRIPTION = """\
How well is a text written? GRUEN scores the grammaticality of its sentences, and subtracts penalties for sentences that
repeat each other, for loss of focus and for sentences in the wrong order. The score is in [0, 1]; higher is better. It
needs no reference texts.
"""

_CITATION = """\
@inproceedings{zhu2020gruen,
  title = {{GRUEN} for Evaluating Linguistic Quality of Generated Text},
  author = {Zhu, Wanzheng and Bhat, Suma},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2020},
  year = {2020},
  eprint = {2010.02498},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2010.02498}
}
"""

_KWARGS_DESCRIPTION = (
    describe_settings(
        GruenSettings,
        "text",
        "predictions (`list[str]`): texts, each scored by itself. The default models are for English.",
        model="It judges focus.",
        long_texts="Of focus.",
    )
    + """
Returns:
    gruen (`float`): mean over texts of the sum of the components, clipped to [0, 1]. Higher is
        better. If grammaticality is not scored, it counts as 1.
    grammaticality (`float`): mean over texts, in [0, 1]. Higher is better. With `parity` it has no
        upper bound.
    non_redundancy (`float`): mean over texts, at most 0: -0.1 for each flag of each pair of
        sentences. Higher is better.
    focus (`float`): mean over texts of -0.1 if a text loses focus and 0 otherwise. A dialogue loses
        none. Higher is better.
    coherence (`float`): mean over texts, in [-0.1, 0]. Higher is better. What is not scored is
        None.
    scores (`list[float]`): score of each text.
    n_sentences (`list[int]`): number of sentences scored in each text: those of two or more words.
    n_fragments (`list[int]`): number of headings, list items, table cells and other lines of at most
        eight words without a mark at their end. They count for repetition only, unless they are
        most of the words of a text.
    n_code (`list[int]`): number of code blocks left out of each text.
    details (`list[dict]`): only with `details=True`. For each text the components; `sentences`,
        fragments included, each with `text`, `likelihood`, `acceptability`, `grammaticality` (None
        for a fragment) and, with the compact backbone, `suspects`: words that look wrong or are
        next to a missing word;
        `redundant_pairs`, each with two indices, `flags` and the passages that are `shared` (at
        most 10 000; `n_redundant_pairs` is the full count); `focus_breaks`, pairs of adjacent
        sentences with their `similarity`; and `order`, the `probability` that they are in the right
        order.
"""
    + describe_results("text", {"": "gruen"})
    + """
Examples:

    >>> import evaluate
    >>> gruen = evaluate.load("metrics/gruen")
    >>> result = gruen.compute(predictions=[
    ...     "The doctor told me the news. I went home.",
    ...     "The doctor told me the. I home went.",
    ... ])
    >>> result["scores"][0] > result["scores"][1] + 0.2
    True
    >>> result["n_sentences"]
    [2, 2]
"""
)

# The digest of the weights that this version of the module belongs to.
WEIGHTS_SHA256 = "1c0ce4639fb0add27b6876df9f171997bb519781dac741a2a184eac87f0537a9"


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Gruen(TextMetric, evaluate.Metric):
    """Linguistic quality of texts: grammaticality, non-redundancy, focus and coherence."""

    items = TEXTS
    bounds = (0.0, 1.0)
    settings = GruenSettings
    item_results = tuple(ItemResult(name, is_count=True) for name in ("n_sentences", "n_fragments", "n_code"))

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://arxiv.org/abs/2010.02498"]
        stored = {"predictions": datasets.Value("string")}
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls, stored)

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        return {"predictions": _parse_texts(predictions)}

    def _download_and_prepare(self, dl_manager: Any) -> None:
        super()._download_and_prepare(dl_manager)
        # Without them the other backbone and the other components still work: the error comes at use.
        with contextlib.suppress(ValueError):
            self._weights()

    def _weights(self) -> Path:
        use = "backbone='compact'"
        instead = "backbone='bert'"
        return bring_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256, use, instead)

    def _compute(self, *, predictions: Any, **given: Any) -> dict[str, Any]:
        settings = GruenSettings.read(given, "gruen")
        predictions = _parse_texts(predictions)
        units = parse_confidence_by(settings.confidence_by, len(predictions), "text")
        texts = [split_as_released(text) if settings.parity else split(text, settings.markup) for text in predictions]
        _warn_of_odd_texts(predictions, texts, settings.parity)

        components, signed = score_components(texts, self._load_backbone(settings), settings)
        scores = total(components, texts, settings.parity)

        result = ScoreSummary(units, settings.confidence, self.bounds).of("gruen", scores)
        result |= {name: float(components[name].points.mean()) if name in components else None for name in COMPONENTS}
        result["n_sentences"] = [len(text.places) for text in texts]
        result["n_fragments"] = [len(text.pieces) - len(text.places) for text in texts]
        result["n_code"] = [text.n_code for text in texts]
        if settings.details:
            result["details"] = [describe_text(i, components, texts) for i in range(len(texts))]
        intervals = settings.signed_interval()
        result["signature"] = signature("gruen", **signed, **intervals)
        return result

    def _load_backbone(self, settings: GruenSettings) -> Backbone | None:
        """Load the models that the components need; None if they need none."""
        if not {"grammaticality", "coherence"}.intersection(settings.scored):
            return None
        if settings.backbone_kind == "bert":
            return (ReleasedBackbone if settings.parity else BertBackbone)(settings)
        return CompactBackbone(self._weights(), WEIGHTS_SHA256, settings)


def _parse_texts(predictions: Any) -> list[str]:
    texts = as_list(predictions, "predictions", "a list of texts")
    if texts and not isinstance(texts[0], str):
        got = f"Got {describe(texts[0])}. gruen scores each text by itself: flatten sets."
        raise TypeError(f"predictions[0] must be a string. {got}")
    return parse_sets(texts).texts


def _warn_of_odd_texts(predictions: list[str], texts: list[Text], parity: bool) -> None:
    """Warn once, with the counts, of texts without sentences, and of those that are not English prose."""
    n = len(texts)
    n_empty = sum(not text.pieces for text in texts)
    if n_empty:
        score = "what the original gives a text without sentences" if parity else "0"
        message = f"{n_empty} of {n} texts have no sentence of two words or more: the score is {score}."
        warn(message)
    unread = find_unread(predictions)
    counts = {"in another language": len(unread.other_language), "source code": len(unread.code)}
    odd = [f"{count} {what}" for what, count in counts.items() if count]
    if odd:
        kinds = " and ".join(odd)
        message = f"{kinds}, of {n} texts: the default models read English prose, so such scores mean little."
        warn(message)
