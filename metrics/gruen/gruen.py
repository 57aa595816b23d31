"""GRUEN: the linguistic quality of a text, without a reference."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_cache import TextCache as TextCache
from .core_encoder import EncoderSettings, encode
from .core_inputs import parse_texts
from .core_metric import TextMetric
from .core_models import DEFAULT_MODEL
from .core_results import TEXTS, confidence_interval, confidence_settings, parse_confidence, signature
from .core_trainer import TrainerMetric as TrainerMetric
from .core_vectors import load_vectors
from .gruen_backbone import Backbone, OrderBackbone
from .gruen_bert import BertBackbone, BertSettings
from .gruen_compact import WEIGHTS_FILE, CompactBackbone
from .gruen_components import (
    Component,
    coherence,
    describe_text,
    focus_by_embedding,
    focus_by_word_mover,
    grammaticality,
    non_redundancy,
    total,
)
from .gruen_focus import WordMover
from .gruen_markup import read_blocks as read_blocks
from .gruen_redundancy import find_redundancy as find_redundancy
from .gruen_repeats import find_repeats as find_repeats
from .gruen_sentences import score_sentences, split
from .gruen_settings import COMPONENTS, Settings
from .gruen_text import is_mostly_other_script
from .gruen_weights import bring_weights, check_weights

_DESCRIPTION = """\
How well is a text written? GRUEN judges its grammaticality, takes off for sentences that repeat each other, for leaving
the subject and for sentences in the wrong order, and gives a score in [0, 1]; higher is better. It needs no reference.
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

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[str]`): the texts, each scored by itself.
    backbone (`str`): `"compact"` (default): the weights that come with this module, over all-MiniLM-L6-v2; it needs no
        network. `"bert"`: the paper's, `lm_model`, `cola_model` and `sop_model`.
    components (`list[str]`): of `"grammaticality"`, `"non_redundancy"`, `"focus"` and `"coherence"`, what to score. All
        that the backbone has by default.
    parity (`bool`): the original, quirks and all. It has no coherence; its grammaticality needs `backbone="bert"`, its
        focus word `vectors`, and its sentences NLTK's Punkt.
    likelihood (`str`): of `"bert"`: `"one-pass"` (default), the loss of all tokens at once, or `"pseudo"`, each token
        masked in turn.
    lm_model (`str` or path): of `"bert"`: a masked language model. Default `"bert-base-cased"`.
    cola_model (`str` or path): of `"bert"`: a classifier of acceptability. Default
        `"textattack/bert-base-uncased-CoLA"`.
    sop_model (`str` or path): of `"bert"`: an ALBERT with its head for sentence order, which no model of the Hub is
        known to have. Without it, coherence is not scored.
    markup (`str`): `"markdown"`: headings, list items, table cells, quotes and paragraphs are sentences of their own,
        and code blocks are left out; `"plain"`; or `"auto"` (default): Markdown where the text shows it.
    focus (`str`): `"embedding"` (default): cosines of sentence embeddings; `"wms"`: Word Mover's similarity.
    focus_threshold (`float`): for cosines, how much a sentence must have to do with the others: the threshold of a
        text of two sentences, lower for longer ones; default 0.108. For `"wms"`, the least similarity of adjacent
        sentences; default 0.05.
    vectors (`str`, path or mapping): of `"wms"`: the folder of a spaCy pipeline, or a fastText or word2vec file.
    model (`str` or path): of `"embedding"`: a sentence-transformers model. Default `"all-MiniLM-L6-v2"`.
    precision (`str`): `"float32"`, `"bfloat16"`, `"float16"` or, on the CPU, `"int8"` for all models. Default
        as stored, or what is as good (cosines above 0.999999) and faster.
    batch_size (`int`), device (`str`): of the models; they do not change the score.
    cache_dir (`str` or path): a folder that keeps embeddings and the scores of sentences, so that a sentence is judged
        once, in whichever run; with `parity`, embeddings alone. Not the `cache_dir` of `evaluate.load`, which is where
        the module's code goes.
    confidence (`float`): level of a confidence interval, such as 0.95: a seeded bootstrap over texts.
    details (`bool`): add, for each text, its sentences with their scores, and what took points off.
    progress (`bool`): show bars; by default where logging is at INFO.

Returns:
    gruen (`float`): mean over texts of the sum of the components, cut to [0, 1]; higher is better. Where grammaticality
        is left out, 1 stands for it.
    grammaticality (`float`): mean over texts, in [0, 1]; higher is better.
    non_redundancy (`float`): mean over texts, <= 0: -0.1 for each flag that a pair of sentences raises.
    focus (`float`): mean over texts of -0.1 where adjacent sentences lose the focus, else 0.
    coherence (`float`): mean over texts, in [-0.1, 0]: lower the surer the backbone is that sentences stand in the
        wrong order. A component that is not scored is None.
    scores (`list[float]`): that of each text.
    confidence_interval (`list[float]`): with `confidence`, `[low, high]` of the main score; None for fewer than two.
    n_sentences (`list[int]`): how many sentences of each text were scored: those of two words or more.
    details (`list[dict]`): with `details=True`.
    n_code (`list[int]`): how many code blocks were left out of each text.
    signature (`str`): the settings that decide the score.

Raises:
    TypeError, ValueError: for input that cannot be scored; the message names the parameter and the item.

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

# The digest of the weights that this version of the module belongs to.
WEIGHTS_SHA256 = "df58f368d75a42f8c57d4a39b74b8e956184c0aab6a41c66ee0af4a6ae49fb58"


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Gruen(TextMetric, evaluate.Metric):
    """Linguistic quality of texts: grammaticality, non-redundancy, focus and coherence."""

    _items = TEXTS

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features({"predictions": datasets.Value("string")}),
            reference_urls=["https://arxiv.org/abs/2010.02498"],
        )

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        return {"predictions": parse_texts(predictions)}

    def _download_and_prepare(self, dl_manager: Any) -> None:
        # Without them the other backbone and the other components still work: the error comes at use.
        bring_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256)

    def _compute(
        self,
        *,
        predictions: Any,
        backbone: str = "compact",
        components: Sequence[str] | None = None,
        parity: bool = False,
        likelihood: str | None = None,
        lm_model: str | os.PathLike[str] | None = None,
        cola_model: str | os.PathLike[str] | None = None,
        sop_model: str | os.PathLike[str] | None = None,
        markup: str | None = None,
        focus: str | None = None,
        focus_threshold: float | None = None,
        vectors: Any = None,
        model: Any = DEFAULT_MODEL,
        precision: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: Any = None,
        confidence: float | None = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        texts = parse_texts(predictions)
        level = parse_confidence(confidence)
        run = EncoderSettings(DEFAULT_MODEL, precision, batch_size, device, cache_dir, progress)
        bert = BertSettings(likelihood, lm_model, cola_model, sop_model)
        settings = Settings(backbone, components, parity, bert, focus, focus_threshold, vectors, model, run, markup)
        judge = self._load_backbone(settings)
        mover = WordMover(vectors, load_vectors) if settings.focus_kind == "wms" else None
        sentences = split(texts, parity, settings.reading)
        _warn_of_odd_texts(texts, sentences.sizes, parity)

        found: dict[str, Component] = {}
        signed = settings.signed()
        if judge is not None:
            signed |= {"backbone": backbone, **judge.identity}
        if judge is not None and "grammaticality" in settings.scored:
            scored = score_sentences(judge, sentences.unique, None if parity else run.cache_dir, details)
            found["grammaticality"] = grammaticality(judge, scored, sentences, parity)
        if "non_redundancy" in settings.scored:
            found["non_redundancy"] = non_redundancy(sentences, parity)
        if settings.focus_kind is not None:
            signed |= settings.signed_focus()
        if settings.focus_kind == "embedding":
            rows = sentences.with_neighbors()
            # The encoder names itself in the signature, also where no text has two sentences.
            encoded = encode([sentences.unique[i] for i in rows] or ["-"], settings.encoder)
            found["focus"] = focus_by_embedding(sentences, rows, encoded.embeddings, settings.threshold)
            names = {"precision": "focus_precision"}
            signed |= {names.get(name, name): value for name, value in encoded.signed.items()}
        elif mover is not None:
            found["focus"] = focus_by_word_mover(sentences, mover, settings.threshold, parity)
            signed["vectors"] = mover.identity
        if isinstance(judge, OrderBackbone) and "coherence" in settings.scored:
            found["coherence"] = coherence(judge, sentences)

        scores = total(found, sentences, parity)
        result: dict[str, Any] = {"gruen": float(scores.mean())}
        result |= {name: float(found[name].points.mean()) if name in found else None for name in COMPONENTS}
        result |= {"scores": scores.tolist(), "n_sentences": sentences.sizes.tolist(), "n_code": sentences.n_code}
        if level is not None:
            result["confidence_interval"] = confidence_interval(level, scores)
        if details:
            result["details"] = [describe_text(i, found, sentences) for i in range(len(texts))]
        result["signature"] = signature("gruen", **signed, **confidence_settings(level))
        return result

    def _load_backbone(self, settings: Settings) -> Backbone | None:
        """Load the models that the components need; None if they need none."""
        if not settings.judged:
            return None
        if settings.backbone == "bert":
            return BertBackbone(settings.judged, settings.bert, settings.run, settings.parity)
        weights = check_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256)
        return CompactBackbone(weights, WEIGHTS_SHA256, settings.run)


def _warn_of_odd_texts(texts: list[str], sizes: np.ndarray, parity: bool) -> None:
    """Warn once each, with the count, of texts without sentences and of texts in another script."""
    empty = int((sizes == 0).sum())
    if empty:
        score = "what the original gives a text without sentences" if parity else "0"
        warnings.warn(
            f"{empty} of {len(texts)} texts have no sentence of two words or more: they score {score}.", stacklevel=4
        )
    other = sum(map(is_mostly_other_script, texts))
    if other:
        warnings.warn(
            f"{other} of {len(texts)} texts are mostly in another script than Latin. The default models are trained on "
            "English: these scores mean little.",
            stacklevel=4,
        )
