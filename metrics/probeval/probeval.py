"""ProbEval: how far a model's distribution of answers to a commonsense question is from people's."""

import math
from collections.abc import Mapping
from typing import Any

import datasets
import evaluate
import numpy as np

from .core import (
    QUESTIONS,
    UNBOUNDED,
    ItemResult,
    Settings,
    TextMetric,
    describe_results,
    describe_settings,
    format_sizes,
    mean_estimate,
    parse_confidence_by,
    signature,
)
from .probeval_antonyms import PAIRS as PAIRS
from .probeval_clusters import hac as hac
from .probeval_formats import count_answers, pair_rows, parse_labels, read_questions, warn_of_unused_clusters
from .probeval_matching import cluster_maximum
from .probeval_numbers import read_numbers as read_numbers
from .probeval_opposites import opposite_pairs as opposite_pairs
from .probeval_pipeline import check_counts, load_resources, score_question, summarize, warn_of_closed_options
from .probeval_protoqa import protoqa_matches, ranked_scores
from .probeval_released import from_released, labels_from_cfc
from .probeval_sampling import mean
from .probeval_settings import ProbevalSettings, resolve
from .probeval_soft import same_probability as same_probability
from .probeval_vectors import Embeddings as Embeddings
from .probeval_wordnet import load_wordnet
from .probeval_words import normalize as normalize

_DESCRIPTION = """\
How far is the distribution of a model's answers to a commonsense question from that of people's answers?
People's answers are clustered, by people or automatically. Each answer of the model is matched to a cluster,
or to none (`wrong`). The score is the Kullback-Leibler divergence KL(people || model) over the clusters and
`wrong`. It is 0 if the distributions are equal, and grows as the model gives people's answers less often.
"""

_CITATION = """\
@inproceedings{cheng2024every,
  title = {Every Answer Matters: Evaluating Commonsense with Probabilistic Measures},
  author = {Cheng, Qi and Boratko, Michael and Yelugam, Pranay Kumar and O'Gorman, Tim and Singh, Nalini and
            McCallum, Andrew and Li, Xiang Lorraine},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  year = {2024},
  eprint = {2406.04145},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2406.04145}
}
"""

_KWARGS_DESCRIPTION = (
    describe_settings(
        ProbevalSettings,
        "question",
        "predictions (`list`): the model's answers to each question: a list of strings, in which repeated answers "
        'count; a list of `{"text", "count"}` or of pairs `(text, count)`; a dict from answers to counts; or '
        '`{"id", "answers"}` with one of these. All predictions can be a dict from question ids to answers. A flat '
        'list of strings or pairs is one question. Counts may be shares of a `"total"`, the number of answers, beside '
        '`"answers"`; percentages without one are counts of 100 answers.',
        'references (`list`): people\'s answers to each question, in the same forms. An answer may have a `"cluster"`, '
        'a string or an integer; an item may have a `"question"`, its `"sentence"` and its `"slot"`. References are '
        "matched to predictions by id, or by position without ids.",
    )
    + """
Returns:
    probeval (`float`): mean over questions of KL(people || model) in nats, at
        least 0, except with `debias`. Lower is closer to people.
    scores (`list[float]`): divergence of each question.
    wrong_rate (`float`): mean over answered questions of the share of the
        model's answers that match no cluster, in [0, 1]. Lower is better. None
        if no question is answered.
    coverage (`float`): mean over questions of the share of people's answers
        whose cluster the model hits, in [0, 1]. Higher is better.
    n_clusters (`float`): mean number of clusters, without `wrong`.
    distribution_entropy (`dict`): mean entropy in nats of the smoothed
        distributions, `"gold"` and `"model"`.
    n_answers (`list[int]`): number of the model's answers to each question; a
        float if counts are fractions.
    n_empty (`int`): number of questions without an answer of the model.
    skipped (`dict`): only with `unknown="skip"` or `missing="skip"`. The ids
        left out, `"unknown"` and `"missing"`.
    details (`list[dict]`): only with `details=True`. For each question `id`,
        its results, `gold_distribution`, `model_distribution`, `smoothing` of
        each cluster, `clusters`, and the clusters of each answer of people,
        `gold_assignments`, and of the model, `assignments`.
"""
    + describe_results("question", {"": "probeval"})
    + """
Examples:

    >>> import evaluate
    >>> probeval = evaluate.load("metrics/probeval")
    >>> people = [["a kettle"] * 12 + ["a pot"] * 5 + ["a cup"] * 3]
    >>> close = probeval.compute(predictions=[["kettle"] * 10 + ["pot"] * 6 + ["cup"] * 4], references=people)
    >>> far = probeval.compute(predictions=[["cup"] * 12 + ["a helicopter"] * 8], references=people)
    >>> round(close["probeval"], 2), round(far["probeval"], 2)
    (0.02, 1.48)
    >>> far["wrong_rate"], round(far["coverage"], 2)
    (0.4, 0.15)
"""
)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Probeval(TextMetric, evaluate.Metric):
    """KL divergence of a model's distribution of answers from people's, over clusters of answers."""

    from_cfc = from_protoqa = staticmethod(from_released)
    labels_from_cfc = staticmethod(labels_from_cfc)

    items = QUESTIONS
    bounds = (0.0, math.inf)
    decreasing = ("probeval", "wrong_rate")
    settings = ProbevalSettings
    item_results = (ItemResult("n_answers", is_count=True),)

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        count = datasets.Value("float64")
        stored = {
            "predictions": {"id": text, "answers": [{"text": text, "count": count}]},
            "references": {
                **dict.fromkeys(("id", "question", "sentence", "slot"), text),
                "answers": [{"text": text, "count": count, "cluster": text}],
            },
        }
        urls = ["https://arxiv.org/abs/2406.04145"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls, stored)

    def _canonical(self, predictions: Any, references: Any) -> dict[str, Any]:
        given, gold, _ = pair_rows(predictions, references)
        return {"predictions": given, "references": gold}

    def bounds_under(self, settings: Settings) -> tuple[float, float]:
        """Return the range of the score, which may be below 0 with `debias` only."""
        return UNBOUNDED if "debias" in settings.passed() else self.bounds

    def _compute(self, *, predictions: Any, references: Any, **given: Any) -> dict[str, Any]:
        settings = ProbevalSettings.read(given, "probeval")
        answers, gold, skipped = pair_rows(predictions, references, settings.unknown, settings.missing)
        questions = read_questions(answers, gold)
        units = parse_confidence_by(settings.confidence_by, len(questions), "question")
        pipeline = resolve(settings, next((row.name for row in questions if row.clusters is None), None))
        for question in questions:
            check_counts(question, pipeline)
        if settings.clustering == "auto":
            warn_of_unused_clusters(gold, pipeline.clustering)
        texts: list[str] = []
        for question in questions:
            texts += question.gold
            texts += question.answers
        resources, signed = load_resources(texts, pipeline)
        warn_of_closed_options(questions, pipeline, resources)
        labels: list[Any] = [None] * len(questions)
        if settings.labels is not None:
            labels = parse_labels(settings.labels, answers, questions)
        scored = [score_question(*pair, pipeline, resources) for pair in zip(questions, labels, strict=True)]

        result = summarize(scored)
        if "skip" in (settings.unknown, settings.missing):
            result["skipped"] = skipped
        if settings.confidence is not None:
            estimate = mean_estimate(np.array(result["scores"]), units)
            result["confidence_interval"] = estimate.interval(settings.confidence, self.bounds_under(settings))
        if settings.details:
            result["details"] = scored
        # Samples rarefied to one size can be compared, from any numbers of answers.
        sizes = {} if settings.rarefy else {"n_answers": format_sizes(np.rint(result["n_answers"]))}
        intervals = settings.signed_interval()
        result["signature"] = signature("probeval", **pipeline.signed_pipeline(), **signed, **sizes, **intervals)
        return result

    def n_items(self, result: Mapping[str, Any], name: str) -> int:
        """Count the questions over which a mean was taken: for `wrong_rate`, those with an answer."""
        answered = sum(n_answers > 0 for n_answers in result["n_answers"])
        return answered if name == "wrong_rate" else len(result["scores"])

    def protoqa_scores(self, *, predictions: Any, references: Any) -> dict[str, Any]:
        """Score ranked answers by the rules of ProtoQA (Boratko et al., 2020).

        Inputs and errors are those of `compute`. Answers are ranked by count, and answers of equal count in the
        order given. If an answer of a question has no cluster, each answer is its own.

        Returns a dict with `exact` and `wordnet`, for equal texts and for WordNet scores above 0.5: in each,
        the mean over questions of max_answers_1, _3, _5, _10, _all, max_incorrect_1, _3, _5, set_intersection
        and dcg, in [0, 1], higher is better; `scores`, the same for each question; and `signature`.
        """
        given, gold, _ = pair_rows(predictions, references)
        wordnet = load_wordnet()
        rows: list[dict[str, dict[str, float]]] = []
        for question, row in zip(read_questions(given, gold), given, strict=True):
            counts = question.gold_counts if question.clusters else np.diag(question.people)
            ranked = [text for text, _ in count_answers(row["answers"]).most_common()]
            matches = protoqa_matches(ranked, question.gold, wordnet)
            won = {name: cluster_maximum(scores, counts > 0) for name, scores in matches.items()}
            rows.append({name: ranked_scores(hits, counts.sum(axis=0)) for name, hits in won.items()})
        result: dict[str, Any] = {}
        for name, rules in rows[0].items():
            means = {}
            for rule in rules:
                means[rule] = mean([row[name][rule] for row in rows])
            result[name] = means
        return {**result, "scores": rows, "signature": signature("protoqa_scores", wordnet=wordnet.version)}
