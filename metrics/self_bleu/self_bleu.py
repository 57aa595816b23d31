"""Self-BLEU, Distinct-n and Entropy-n: how much the texts of a set repeat each other's words."""

from typing import Any

import evaluate
import numpy as np

from .core import (
    ScoreSummary,
    SetMetric,
    TextSets,
    describe_results,
    describe_settings,
    find_scored_sets,
    lists_by_set,
    rows_of,
)
from .self_bleu_ngrams import bleu as bleu
from .self_bleu_repetition import COMPRESSION, rouge_identity
from .self_bleu_scores import estimate_pooled, score_sets
from .self_bleu_settings import SelfBleuSettings
from .self_bleu_tokenizers import tokenize

_DESCRIPTION = """\
How much do the texts of a set repeat each other's n-grams? Self-BLEU is the
BLEU of each text with the other texts of its set as references. It is 1 if all
texts are the same and long enough to contain the n-grams, and near 0 if they
share no words. The metric also returns Distinct-n, the share of distinct
n-grams, and Entropy-n, the entropy of their distribution. All three compare
form only: paraphrases and shuffled words count as diverse. To compare meaning,
use `vendi_embed` or `chamfer_diversity`.
"""

_CITATION = """\
@inproceedings{zhu2018texygen,
  title = {Texygen: A Benchmarking Platform for Text Generation Models},
  author = {Zhu, Yaoming and Lu, Sidi and Zheng, Lei and Guo, Jiaxian and Zhang, Weinan and Wang, Jun and Yu, Yong},
  booktitle = {The 41st International ACM SIGIR Conference on Research and Development in Information Retrieval},
  year = {2018},
  url = {https://arxiv.org/abs/1802.01886}
}
"""

_KWARGS_DESCRIPTION = (
    describe_settings(
        SelfBleuSettings,
        "set",
        confidence='With `aggregate="corpus"`, by the jackknife.',
    )
    + """
Returns:
    self_bleu (`float`): self-BLEU of order `max_order`, in [0, 1]. Higher is
        less diverse. Like the values below, it is a mean over sets, or pooled
        over all sets if `aggregate` is `"corpus"`. None if no set has two texts.
    self_bleu_1, self_bleu_2, ... (`float`): self-BLEU of each order up to
        `max_order`, in [0, 1]. Higher is less diverse.
    distinct_1, distinct_2, ... (`float`): Distinct-n, in [0, 1]. Higher is more
        diverse. Like entropy, `ead` and compression, it needs no other text:
        sets of one text have it.
    entropy_1, entropy_2, ... (`float`): Entropy-n in nats, at least 0. Higher
        is more diverse.
    ead (`float`): only with `vocabulary_size` V. N / (V (1 - ((V - 1) / V)^C))
        for N distinct tokens of C, the expectation-adjusted distinct score of
        Liu et al. 2022, at least 0. It is 1 if tokens repeat as often as those
        drawn at random from the vocabulary. Higher is more diverse.
    rouge_l (`float`): only with `homogenization=True`. Mean F1 of ROUGE-L of
        the pairs of texts of a set, in [0, 1]. Higher is less diverse.
    compression_ratio (`float`): only with `repetition=True`. Size of the texts
        of a set, joined by spaces, over their size compressed by gzip, above 0.
        Higher is less diverse. It depends on the order of the texts.
    self_repetition_1, self_repetition_2, ... (`float`): only with
        `repetition=True`. Mean over texts of log(1 + N), where N sums, over the
        different n-grams of the text, the number of other texts of its set that
        contain the n-gram; at least 0. Higher is less diverse.
    scores (`list[float]`): self-BLEU of order `max_order` of each set. None for
        a set of one text.
    n_singletons (`int`): only with `singletons="skip"`. Number of sets of one
        text.
    details (`list[dict]`): only with `details=True`. For each set the values
        above and, with `aggregate="sentence"`, `text_scores`. What compares
        texts is None for a set of one text.
"""
    + describe_results("set", {"": "self_bleu"})
    + """
Examples:

    >>> import evaluate
    >>> self_bleu = evaluate.load("metrics/self_bleu")
    >>> result = self_bleu.compute(predictions=[
    ...     ["the dog runs in the park", "the dog runs in the garden"],
    ...     ["the dog runs in the park", "a cat sleeps on my bed"],
    ... ], max_order=2)
    >>> [round(score, 2) for score in result["scores"]]
    [0.82, 0.0]
    >>> round(result["distinct_2"], 2)
    0.8
"""
)


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SelfBleu(SetMetric, evaluate.Metric):
    """Self-BLEU of sets of texts, with Distinct-n and Entropy-n."""

    bounds = (0.0, 1.0)
    decreasing = ("self_bleu", "rouge_l", "compression_ratio", "self_repetition")
    settings = SelfBleuSettings

    def _info(self) -> evaluate.MetricInfo:
        urls = ["https://arxiv.org/abs/1802.01886", "https://arxiv.org/abs/2506.00514"]
        return self._describe(_DESCRIPTION, _CITATION, _KWARGS_DESCRIPTION, urls)

    def _score(
        self, sets: TextSets, settings: SelfBleuSettings, summary: ScoreSummary
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        compared = find_scored_sets(sets, settings.singletons)
        words, tokenizer = tokenize(sets.texts, settings.tokenizer, sets.where)
        numbers = score_sets(sets, words, compared, settings)

        name = f"self_bleu_{settings.max_order}"
        result: dict[str, Any] = {"self_bleu": numbers.means[name], **numbers.means}
        result = summary.of("self_bleu", numbers.columns[name]) | result
        if numbers.statistics is not None and summary.level is not None:
            units = summary.units[compared]
            estimate = estimate_pooled(numbers.means[name], numbers.statistics, units, settings.smoothed_by)
            result["confidence_interval"] = estimate.interval(summary.level, self.bounds)
        if settings.singletons == "skip":
            result["n_singletons"] = int((sets.sizes == 1).sum())
        if settings.details:
            columns = {name: _none_for_nan(column) for name, column in numbers.columns.items()}
            if numbers.text_scores is not None:
                has_score = np.repeat(compared, sets.sizes)
                columns["text_scores"] = lists_by_set(numbers.text_scores, sets.sizes, has_score)
            result["details"] = rows_of(columns)
        signed = {"order": settings.max_order, "aggregate": settings.aggregate, "smoothing": settings.smoothed_by}
        signed |= {"tokenizer": tokenizer, **settings.signed("vocabulary_size")}
        if settings.repetition:
            signed["compression"] = COMPRESSION
        if settings.homogenization:
            signed["homogenization"] = rouge_identity()
        return result, signed


def _none_for_nan(column: np.ndarray) -> list[Any]:
    return [None if np.isnan(value) else value for value in column.tolist()]
