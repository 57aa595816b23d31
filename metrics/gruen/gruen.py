"""GRUEN: the linguistic quality of a text, without a reference."""

import warnings
from typing import Any

import datasets
import evaluate

from .core import TEXTS, ItemResult, ScoreSummary, TextMetric, find_unread, parse_confidence_by, parse_texts, signature
from .gruen_backbone import SentenceScores as SentenceScores
from .gruen_bert import BertBackbone
from .gruen_compact import WEIGHTS_FILE, CompactBackbone
from .gruen_components import Backbone, describe_text, score_components, total
from .gruen_focus import embedding_breaks as embedding_breaks
from .gruen_redundancy import find_redundancy as find_redundancy
from .gruen_settings import COMPONENTS, GruenSettings
from .gruen_text import Sentences, split
from .gruen_weights import bring_weights, check_weights

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

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[str]`): texts, each scored by itself. The default models are for English.
    backbone (`str`): model of grammaticality and coherence. `"compact"`: adapters of
        all-MiniLM-L6-v2 that come with this metric; it does not score coherence. `"bert"`: the
        models of the paper. Default: `"bert"` with `parity` or a model for it, else `"compact"`.
    components (`list[str]`): components to score, among `"grammaticality"`, `"non_redundancy"`,
        `"focus"` and `"coherence"`. Default: all that the backbone has.
    parity (`bool`, default `False`): reproduce the released code, which has no coherence. Focus
        then requires `vectors`, and sentence splitting requires NLTK's Punkt.
    lm_model (`str` or path, default `"bert-base-cased"`): for `"bert"`: a masked language model.
    cola_model (`str` or path, default `"textattack/bert-base-uncased-CoLA"`): for `"bert"`: a
        classifier of acceptability. Its class named "acceptable" is used, otherwise class 1.
    sop_model (`str` or path): for `"bert"`: an ALBERT with its head for sentence-order prediction,
        which the models on the Hub lack; transformers converts Google's checkpoint. Without it,
        coherence is not scored.
    markup (`str`, default `"auto"`): layout of the texts. `"markdown"`: blocks are split into
        sentences separately; links and emphasis are replaced by their text; code blocks, images and
        HTML are left out. `"plain"`: no markup. `"auto"`: Markdown if a text has a heading, a code
        block, a table, a quote, bold type, a link or a list of two items. `parity` reads none.
    focus_threshold (`float`): minimum tie of a sentence to the others in a text of two sentences;
        the thresholds of longer texts are derived from it. Default: 0.108. With `vectors`: minimum
        similarity of adjacent sentences. Default: 0.05.
    vectors (`str`, path or mapping): judge focus by Word Mover's similarity of adjacent sentences
        over word vectors, 1 / (1 + distance), in place of cosines of embeddings: the folder of a
        spaCy pipeline with word vectors; a fastText or word2vec file (`.bin`, `.vec`, `.txt`,
        `.kv`); or a mapping from words to vectors.
    model (`str`, path or encoder, default `"all-MiniLM-L6-v2"`): for focus by embeddings: a
        sentence-transformers model, as a name, a folder or an id of the Hugging Face Hub. Or an
        encoder: an object whose method `encode` takes a list of n strings and returns an array of
        shape (n, d).
    batch_size (`int`), device (`str`): of the models. They change scores by rounding only.
    cache_dir (`str` or path): folder in which the embeddings of sentences are cached. It
        changes no score.
    long_texts (`str`, default `"windows"`): how a sentence is embedded for focus that is longer
        than the model reads: `"windows"` averages its parts, `"cut"` cuts off the rest.
    confidence (`float`): level of a confidence interval, such as 0.95, of the mean over texts, by
        Hall's method.
    confidence_by (`list[str]` or `list[int]`): with `confidence`, a label for each text. Texts with
        equal labels, such as samples for one prompt, are not independent: the interval is over
        labels.
    details (`bool`, default `False`): also return the sentences of each text, and the reasons for
        each penalty.
    progress (`bool`): show a progress bar. Default: `False`.

Returns:
    gruen (`float`): mean over texts of the sum of the components, clipped to [0, 1]. Higher is
        better. If grammaticality is not scored, it counts as 1.
    grammaticality (`float`): mean over texts, in [0, 1]. Higher is better. With `parity` it has no
        upper bound.
    non_redundancy (`float`): mean over texts, at most 0: -0.1 for each flag of each pair of
        sentences. Higher is better.
    focus (`float`): mean over texts of -0.1 if a text loses focus and 0 otherwise. Higher is
        better.
    coherence (`float`): mean over texts, in [-0.1, 0]. Higher is better. What is not scored is
        None.
    scores (`list[float]`): score of each text.
    confidence_interval (`list[float]`): only with `confidence`. `[low, high]` of `gruen`. None for
        fewer than two texts, or labels of `confidence_by`, and if all score the same.
    n_sentences (`list[int]`): number of sentences scored in each text: those of two or more words.
    n_code (`list[int]`): number of code blocks left out of each text.
    details (`list[dict]`): only with `details=True`. For each text the components; `sentences`,
        each with `text`, `likelihood`, `acceptability`, `grammaticality` and, with the compact
        backbone, `suspects`: words that look wrong or are next to a missing word;
        `redundant_pairs`, each with two indices, `flags` and the passages that are `shared` (at
        most 10 000; `n_redundant_pairs` is the full count); `focus_breaks`, pairs of adjacent
        sentences with their `similarity`; and `order`, the `probability` that they are in the right
        order.
    signature (`str`): all settings that determine the score. Scores are comparable if their
        signatures are equal, and an encoder or mapping of word vectors, of which it has only the
        name, is the same.

Raises:
    TypeError, ValueError: for invalid input. The message names the parameter, the item and what was
        got.

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

    items = TEXTS
    bounds = (0.0, 1.0)
    settings = GruenSettings
    item_results = (ItemResult("n_sentences", is_count=True), ItemResult("n_code", is_count=True))

    def _info(self) -> evaluate.MetricInfo:
        urls, stored = ["https://arxiv.org/abs/2010.02498"], {"predictions": datasets.Value("string")}
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls, stored)

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        return {"predictions": _parse_flat(predictions)}

    def _download_and_prepare(self, dl_manager: Any) -> None:
        # Without them the other backbone and the other components still work: the error comes at use.
        bring_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256)

    def _compute(self, *, predictions: Any, **given: Any) -> dict[str, Any]:
        settings = GruenSettings.read(given, "gruen")
        texts = _parse_flat(predictions)
        units = parse_confidence_by(settings.confidence_by, len(texts), "text")
        sentences = split(texts, settings.parity, settings.markup)
        _warn_of_odd_texts(texts, sentences, settings.parity)

        components, signed = score_components(sentences, self._load_backbone(settings), settings)
        scores = total(components, sentences, settings.parity)

        result = ScoreSummary(units, settings.confidence, self.bounds).of("gruen", scores)
        result |= {name: float(components[name].points.mean()) if name in components else None for name in COMPONENTS}
        result |= {"n_sentences": sentences.sizes, "n_code": sentences.n_code}
        if settings.details:
            result["details"] = [describe_text(i, components, sentences) for i in range(len(texts))]
        intervals = settings.signed_interval()
        result["signature"] = signature("gruen", **signed, **intervals)
        return result

    def _load_backbone(self, settings: GruenSettings) -> Backbone | None:
        """Load the models that the components need; None if they need none."""
        if not {"grammaticality", "coherence"}.intersection(settings.scored):
            return None
        if settings.backbone_kind == "bert":
            return BertBackbone(settings)
        weights = check_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256)
        return CompactBackbone(weights, WEIGHTS_SHA256, settings)


def _parse_flat(predictions: Any) -> list[str]:
    try:
        return parse_texts(predictions)
    except TypeError as error:
        if isinstance(predictions, list) and any(isinstance(members, list) for members in predictions):
            raise TypeError(f"{error} gruen scores each text by itself: flatten the sets.") from None
        raise


def _warn_of_odd_texts(texts: list[str], sentences: Sentences, parity: bool) -> None:
    """Warn once, with the counts, of texts without sentences, and of those that are not English prose."""
    n, empty, unread = len(texts), sentences.sizes.count(0), find_unread(texts)
    if empty:
        score = "what the original gives a text without sentences" if parity else "0"
        warnings.warn(f"{empty} of {n} texts have no sentence of two words or more: they score {score}.", stacklevel=4)
    counts = {"in another language": len(unread.other_language), "source code": len(unread.code)}
    if found := " and ".join(f"{count} {what}" for what, count in counts.items() if count):
        message = f"Of {n} texts, {found}: the default models read English prose, and these scores mean little."
        warnings.warn(message, stacklevel=4)
