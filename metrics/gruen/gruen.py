"""GRUEN: the linguistic quality of a text, without a reference."""

import itertools
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_cache import TextCache, parse_cache_dir, through_cache
from .core_confidence import confidence_interval, confidence_settings, parse_confidence
from .core_encoder import DEFAULT_MODEL, encode, refuse_encoder_settings
from .core_inputs import describe, mean_by_set, parse_choice, parse_count, parse_number, parse_texts
from .core_integer_kernels import compiled as compiled
from .core_integer_tiles import instructions as instructions
from .core_integers import embed_tokens as embed_tokens
from .core_metric import TextMetric
from .core_signature import signature
from .core_trainer import TEXTS
from .core_unpadded import unpadded_encoder as unpadded_encoder
from .core_vectors import load_vectors
from .gruen_backbone import Backbone, OrderBackbone, SentenceScores, SuspectBackbone
from .gruen_bert import LIKELIHOODS, BertBackbone
from .gruen_compact import WEIGHTS_FILE, CompactBackbone
from .gruen_focus import (
    COSINE_THRESHOLD,
    DIGRESSION_THRESHOLD,
    WMS_THRESHOLD,
    FocusBreak,
    WordMover,
    embedding_breaks,
    refuse_vectors,
)
from .gruen_redundancy import Redundancy, find_redundancy
from .gruen_text import is_mostly_other_script, split_texts, splitter_identity
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
    focus (`str`): `"embedding"` (default): cosines of sentence embeddings; `"wms"`: Word Mover's similarity.
    focus_threshold (`float`): the least similarity of adjacent sentences. Default 0.07 for cosines, 0.05 for `"wms"`.
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

COMPONENTS = ("grammaticality", "non_redundancy", "focus", "coherence")
BACKBONES = ("compact", "bert")
FOCUSES = ("embedding", "wms")
# What the original has.
_PARITY_COMPONENTS = COMPONENTS[:3]
_PENALTY = 0.1
# Redundant pairs that are listed of a text: they grow with the square of its sentences.
_LISTED_PAIRS = 10_000

# The weights of the compact backbone: they and this module belong together.
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
        # Where they cannot be had, the other backbone and the other components still work: an error comes at use.
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
        focus: str | None = None,
        focus_threshold: float | None = None,
        vectors: Any = None,
        model: Any = DEFAULT_MODEL,
        precision: str | None = None,
        batch_size: int | None = None,
        device: str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        confidence: float | None = None,
        details: bool = False,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        texts = parse_texts(predictions)
        level = parse_confidence(confidence)
        parse_choice(backbone, "backbone", BACKBONES)
        wanted = _parse_components(components, parity)
        if components is None and backbone == "bert" and sop_model is None:
            wanted = tuple(name for name in wanted if name != "coherence")
        focus = _parse_focus(focus, parity, "focus" in wanted)
        bert_settings = {
            "likelihood": likelihood,
            "lm_model": lm_model,
            "cola_model": cola_model,
            "sop_model": sop_model,
        }
        folder = parse_cache_dir(cache_dir)
        _refuse_idle_settings(backbone, wanted, parity, bert_settings, focus, focus_threshold, vectors, model, folder)
        if batch_size is not None:
            batch_size = parse_count(batch_size, "batch_size")
        judge = self._load_backbone(backbone, wanted, components is not None, parity, bert_settings, precision, device)
        if judge is not None and "coherence" not in judge.components:
            wanted = tuple(name for name in wanted if name != "coherence")
        mover = WordMover(vectors, load_vectors) if focus == "wms" else None
        threshold = _parse_threshold(focus, focus_threshold)

        sentences = split_texts(texts, parity)
        sizes = np.array(list(map(len, sentences)))
        _warn_of_odd_texts(texts, sizes, parity)
        unique = list(dict.fromkeys(sentence for own in sentences for sentence in own))
        place_of = {sentence: i for i, sentence in enumerate(unique)}
        flat = np.array([place_of[sentence] for own in sentences for sentence in own], dtype=np.int64)
        rows = np.split(flat, np.cumsum(sizes)[:-1])
        signed: dict[str, object] = {
            "components": "+".join(wanted),
            "parity": parity,
            "splitter": splitter_identity(parity),
        }

        points: dict[str, np.ndarray] = {}
        columns: dict[str, list] = {}
        if judge is not None:
            signed |= {"backbone": backbone, **judge.identity}
        if judge is not None and "grammaticality" in wanted:
            points["grammaticality"], columns["sentences"] = _grammaticality(
                judge,
                unique,
                flat,
                sizes,
                sentences,
                parity,
                precision,
                batch_size,
                progress,
                None if parity else folder,
            )
            if details and isinstance(judge, SuspectBackbone):
                suspects = judge.find_suspects(unique, batch_size)
                for described, own in zip(columns["sentences"], rows, strict=True):
                    for sentence, i in zip(described, own, strict=True):
                        sentence["suspects"] = suspects[i]
        if "non_redundancy" in wanted:
            found = _redundancies(sentences, parity)
            points["non_redundancy"] = np.array([0.0 - _PENALTY * one.n_flags() for one in found])
            columns["redundant_pairs"] = found
        if focus == "embedding":
            breaks, encoder = _embedding_breaks(
                unique, rows, threshold, model, precision, batch_size, device, progress, folder
            )
            signed |= {"focus": focus, "threshold": threshold, "digression": DIGRESSION_THRESHOLD, **encoder}
        elif mover is not None:
            breaks = [mover.breaks(own, threshold, parity) for own in sentences]
            signed |= {"focus": focus, "threshold": threshold, "vectors": mover.identity}
        if focus is not None:
            points["focus"] = np.array([-_PENALTY if one else 0.0 for one in breaks])
            columns["focus_breaks"] = breaks
        if isinstance(judge, OrderBackbone) and "coherence" in wanted:
            points["coherence"], columns["order"] = _coherence(judge, unique, rows, batch_size, progress)

        # Without grammaticality the others have something to be taken off from.
        scores = sum(points.values(), start=np.zeros(len(texts)) if "grammaticality" in points else np.ones(len(texts)))
        scores = np.clip(scores, 0.0, 1.0)
        if not parity:
            scores[sizes == 0] = 0.0
        result: dict[str, Any] = {"gruen": float(scores.mean())}
        result |= {name: float(points[name].mean()) if name in points else None for name in COMPONENTS}
        result |= {"scores": scores.tolist(), "n_sentences": sizes.tolist()}
        if level is not None:
            result["confidence_interval"] = confidence_interval(level, scores)
        if details:
            result["details"] = [_describe(i, sentences[i], points, columns) for i in range(len(texts))]
        result["signature"] = signature("gruen", **signed, **confidence_settings(level))
        return result

    def _load_backbone(
        self,
        backbone: str,
        wanted: tuple[str, ...],
        is_chosen: bool,
        parity: bool,
        bert_settings: dict[str, Any],
        precision: str | None,
        device: str | None,
    ) -> Backbone | None:
        """Load the models that the components need; none where they need none."""
        needed = tuple(name for name in wanted if name in ("grammaticality", "coherence"))
        if not needed:
            return None
        if backbone == "bert":
            given = {name: value for name, value in bert_settings.items() if value is not None}
            return BertBackbone(needed, parity=parity, precision=precision, device=device, **given)
        weights = check_weights(__file__, type(self).__module__, WEIGHTS_FILE, WEIGHTS_SHA256)
        judge = CompactBackbone(weights, WEIGHTS_SHA256, precision=precision, device=device)
        missing = [name for name in needed if name not in judge.components]
        if is_chosen and missing:
            raise ValueError(
                f"components has {missing[0]!r}, which backbone='compact' does not give: it has "
                f"{', '.join(map(repr, judge.components))}. Leave it out, or pass backbone='bert'."
            )
        return judge


def _parse_components(components: Any, parity: bool) -> tuple[str, ...]:
    """Read what is to be scored, in its fixed order."""
    known = _PARITY_COMPONENTS if parity else COMPONENTS
    if components is None:
        return known
    if isinstance(components, str) or not isinstance(components, (Sequence, set, frozenset)) or not len(components):
        raise TypeError(f"components must be a list of names, such as ['focus']. Got {describe(components)}.")
    for name in components:
        if parity and name == "coherence":
            raise ValueError("components has 'coherence', which the original does not have: leave it out, or parity.")
        parse_choice(name, "components", known)
    return tuple(name for name in known if name in components)


def _parse_focus(focus: Any, parity: bool, is_wanted: bool) -> str | None:
    """Choose the kind of focus; None where it is not scored."""
    if focus is not None:
        parse_choice(focus, "focus", FOCUSES)
        if not is_wanted:
            raise ValueError(f"focus has no effect where components leaves it out. Got {focus!r}.")
        if parity and focus != "wms":
            raise ValueError(f"focus must be 'wms' with parity=True, as in the original. Got {focus!r}.")
    if not is_wanted:
        return None
    return focus or ("wms" if parity else "embedding")


def _parse_threshold(focus: str | None, threshold: Any) -> float:
    if focus == "wms":
        return WMS_THRESHOLD if threshold is None else parse_number(threshold, "focus_threshold", 0, 1)
    return COSINE_THRESHOLD if threshold is None else parse_number(threshold, "focus_threshold", -1, 1)


def _refuse_idle_settings(
    backbone: str,
    wanted: tuple[str, ...],
    parity: bool,
    bert_settings: dict[str, Any],
    focus: str | None,
    focus_threshold: Any,
    vectors: Any,
    model: Any,
    folder: Path | None,
) -> None:
    """Make sure that nothing was asked of what does not run."""
    if parity and backbone != "bert" and "grammaticality" in wanted:
        raise ValueError(
            f"backbone must be 'bert' with parity=True: the original has no other. Got {backbone!r}. Or leave "
            "'grammaticality' out of components."
        )
    part_of = {"sop_model": "coherence"}
    for name, value in bert_settings.items():
        part = part_of.get(name, "grammaticality")
        if value is not None and backbone != "bert":
            raise ValueError(f"{name} has no effect with backbone={backbone!r}: pass backbone='bert'.")
        if value is not None and part not in wanted:
            raise ValueError(f"{name} has no effect where components leaves out {part!r}. Got {describe(value)}.")
    if bert_settings["likelihood"] is not None:
        parse_choice(bert_settings["likelihood"], "likelihood", LIKELIHOODS)
        if parity and bert_settings["likelihood"] != "one-pass":
            raise ValueError("likelihood must be 'one-pass' with parity=True, as in the original.")
    if focus is None and focus_threshold is not None:
        raise ValueError("focus_threshold has no effect where components leaves out 'focus'.")
    refuse_vectors(vectors, focus)
    if focus != "embedding":
        refuse_encoder_settings(model, None, None, "no focus='embedding' is scored")
        if parity or "grammaticality" not in wanted:
            reason = "neither focus='embedding' nor, without parity, grammaticality is scored"
            refuse_encoder_settings(model, None, folder, reason)


def _warn_of_odd_texts(texts: list[str], sizes: np.ndarray, parity: bool) -> None:
    """Say once how many texts have nothing to score, and how many are in another script."""
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


def _grammaticality(
    judge: Backbone,
    unique: list[str],
    flat: np.ndarray,
    sizes: np.ndarray,
    sentences: list[list[str]],
    parity: bool,
    precision: str | None,
    batch_size: int | None,
    progress: bool | None,
    folder: Path | None,
) -> tuple[np.ndarray, list[list[dict[str, Any]]]]:
    """Grammaticality of each text, and what its sentences have to do with it."""
    points = np.zeros(len(sizes))
    if not unique:
        likelihoods = acceptabilities = np.empty(0)
    else:
        scored = _score_sentences(judge, unique, precision, batch_size, progress, folder)
        likelihoods, acceptabilities = scored.likelihood[flat], scored.acceptability[flat]
        full = sizes > 0
        likelihood = mean_by_set(likelihoods, sizes[full])
        if parity:
            # The original averages over sentences before it takes the exponential.
            likelihood = np.exp(-0.5 * mean_by_set(np.exp(scored.loss[flat]), sizes[full]))
        points[full] = judge.grammaticality(likelihood, mean_by_set(acceptabilities, sizes[full]))
    if parity:
        # Without sentences its loss is 0, which makes a likelihood of 1.
        points[sizes == 0] = judge.grammaticality(np.ones(1), np.zeros(1))[0]
    grades = judge.grammaticality(likelihoods, acceptabilities)
    values = iter(zip(likelihoods.tolist(), acceptabilities.tolist(), grades.tolist(), strict=True))
    described = []
    for own in sentences:
        described.append(
            [
                {"text": text, "likelihood": likelihood, "acceptability": acceptability, "grammaticality": grade}
                for text, (likelihood, acceptability, grade) in zip(own, values, strict=False)
            ]
        )
    return points, described


def _score_sentences(
    judge: Backbone,
    unique: list[str],
    precision: str | None,
    batch_size: int | None,
    progress: bool | None,
    folder: Path | None,
) -> SentenceScores:
    """Score different sentences; those that are kept in a folder are not read again."""
    if folder is None:
        return judge.score_sentences(unique, batch_size, progress)

    def score_part(part: list[str]) -> tuple[np.ndarray, np.ndarray]:
        return np.stack(judge.score_sentences(part, batch_size, progress), axis=1), np.zeros(len(part), dtype=np.int64)

    identity = "|".join(f"{name}:{value}" for name, value in judge.identity.items())
    with TextCache(folder, f"gruen|{identity}", np.float64) as cache:
        # What is only as good as a precision is kept apart from that.
        values, _ = through_cache(cache, unique, "" if precision else "as good", score_part, lambda found: None)
    return SentenceScores(*values.T)


def _redundancies(sentences: list[list[str]], parity: bool) -> list[Redundancy]:
    found = []
    for i, own in enumerate(sentences):
        try:
            found.append(find_redundancy(own, autojunk=parity))
        except ValueError as error:
            raise ValueError(f"predictions[{i}] {error}: leave 'non_redundancy' out of components.") from None
    return found


def _embedding_breaks(
    unique: list[str],
    rows: list[np.ndarray],
    threshold: float,
    model: Any,
    precision: str | None,
    batch_size: int | None,
    device: str | None,
    progress: bool | None,
    folder: Path | None,
) -> tuple[list[list[FocusBreak]], dict[str, object]]:
    """Where each text loses focus, and what of the encoder belongs in a signature."""
    needed = sorted({int(i) for own in rows if len(own) > 1 for i in own})
    encoded = encode(
        # An encoder is named by what it did: one text, where no other needs it.
        [unique[i] for i in needed] or ["-"],
        model,
        precision=precision,
        batch_size=batch_size,
        device=device,
        cache_dir=folder,
        progress=progress,
    )
    row_of = np.zeros(max(1, len(unique)), dtype=np.int64)
    row_of[needed] = np.arange(len(needed))
    breaks = [embedding_breaks(encoded.embeddings[row_of[own]], threshold) if len(own) > 1 else [] for own in rows]
    return breaks, {"model": encoded.identity, "focus_precision": encoded.precision}


def _coherence(
    judge: OrderBackbone, unique: list[str], rows: list[np.ndarray], batch_size: int | None, progress: bool | None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Coherence of each text, and the probability that each adjacent pair stands in its right order."""
    pairs = [(int(a), int(b)) for own in rows for a, b in itertools.pairwise(own)]
    different = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    orders = np.empty(0)
    if different:
        texts = [(unique[a], unique[b]) for a, b in different]
        orders = judge.score_order(texts, batch_size, progress)[[different[pair] for pair in pairs]]
    sizes = np.maximum(np.array(list(map(len, rows))) - 1, 0)
    own_orders = np.split(orders, np.cumsum(sizes)[:-1])
    # An order that is as likely as not costs nothing, one that is surely wrong the whole penalty.
    points = [0.0 - _PENALTY * float(np.maximum(0.0, 1 - 2 * own).mean()) if len(own) else 0.0 for own in own_orders]
    return np.array(points), own_orders


def _describe(i: int, sentences: list[str], points: dict[str, np.ndarray], columns: dict[str, list]) -> dict[str, Any]:
    """Put together why a text scored what it did."""
    described: dict[str, Any] = {name: float(points[name][i]) if name in points else None for name in COMPONENTS}
    unscored = [dict.fromkeys(("likelihood", "acceptability", "grammaticality")) | {"text": text} for text in sentences]
    described["sentences"] = columns["sentences"][i] if "sentences" in columns else unscored
    redundancy = columns["redundant_pairs"][i] if "redundant_pairs" in columns else None
    described["redundant_pairs"] = [
        {"sentences": [first, second], "flags": flags}
        for first, second, flags in (redundancy.pairs(_LISTED_PAIRS) if redundancy else [])
    ]
    described["n_redundant_pairs"] = redundancy.n_pairs() if redundancy else 0
    described["focus_breaks"] = [
        {"sentences": [one.place, one.place + 1], "similarity": one.similarity}
        for one in columns.get("focus_breaks", {i: []})[i]
    ]
    described["order"] = [
        {"sentences": [place, place + 1], "probability": float(probability)}
        for place, probability in enumerate(columns["order"][i] if "order" in columns else [])
    ]
    return described
