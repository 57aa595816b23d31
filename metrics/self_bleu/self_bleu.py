"""Self-BLEU, Distinct-n and Entropy-n: how much the texts of a set repeat each other's words."""

from collections.abc import Callable, Mapping
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_inputs import (
    find_scored_sets,
    mean_by_set,
    mean_over_sets,
    parse_choice,
    parse_count,
    parse_sets,
    select_sets,
    split_by_set,
    spread,
)
from .core_metric import TextMetric
from .core_ngrams import (
    SMOOTHINGS,
    BleuStatistics,
    bleu,
    bleu_statistics,
    default_smoothing,
    distinct,
    entropy,
    ngram_tables,
    number_tokens,
)
from .core_parts import SetParts as SetParts
from .core_results import SETS, confidence_interval, confidence_settings, format_sizes, parse_confidence, signature
from .core_trainer import TrainerMetric as TrainerMetric
from .self_bleu_parts import SelfBleuParts
from .self_bleu_tokenizers import tokenize

_DESCRIPTION = """\
How much do the texts of a set repeat each other's n-grams? Self-BLEU is the BLEU of each text with the other texts of
its set as references: 1 if they are the same, and long enough to hold the n-grams; near 0 if they share no words. With
it come Distinct-n, the share of n-grams that are distinct, and Entropy-n, the entropy of their distribution. All three
look at form alone: shuffled words count as diverse, and so do paraphrases. For meaning, use `vendi_embed` or
`chamfer_diversity`.
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

_KWARGS_DESCRIPTION = """
Args:
    predictions (`list[list[str]]` or `list[str]`): sets of texts; or texts that make one set or, with `set_size`,
        consecutive sets.
    max_order (`int`): the longest n-grams. Default 4.
    aggregate (`"set"`, `"corpus"` or `"sentence"`): pool the counts within each set and average over sets; pool them
        over all sets; or average the scores of single texts. Default `"set"`.
    smoothing (`"nlg-eval"`, `"method1"` or `"none"`): what stands for a precision of zero: the small constants of
        nlg-eval, 0.1 matches as in NLTK's method 1, or zero. Default `"method1"` for `"sentence"`, else `"nlg-eval"`.
    tokenizer (`str` or callable): `"whitespace"`; a tokenizer of sacreBLEU by name (`"13a"`, `"intl"`, `"char"`,
        `"zh"`, `"ja-mecab"`, ...); or a function from a text to its tokens. Default `"whitespace"`.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    singletons (`"error"` or `"skip"`): what to do about a set of one text, which has no others to repeat: refuse it, or
        leave it out of all means, with None among the scores.
    confidence (`float`): level of a confidence interval, such as 0.95: a seeded bootstrap over sets.
    details (`bool`): add, for each set, its score, Distinct and Entropy at each order; with `aggregate="sentence"`,
        the score of each text too.

Returns:
    self_bleu (`float`): self-BLEU of `max_order`, in [0, 1]; higher is less diverse.
    self_bleu_1, self_bleu_2, ... (`float`): self-BLEU of each order.
    distinct_1, distinct_2, ... (`float`): Distinct-n, in [0, 1]; higher is more diverse.
    entropy_1, entropy_2, ... (`float`): Entropy-n in nats, >= 0; higher is more diverse.
    scores (`list[float]`): the self-BLEU of each set.
    confidence_interval (`list[float]`): with `confidence`, `[low, high]` of the main score; None for fewer than two.
    n_singletons (`int`): with `singletons="skip"`, how many sets were left out.
    details (`list[dict]`): with `details=True`.
    signature (`str`): the settings that decide the score.

Raises:
    TypeError, ValueError: for input that cannot be scored; the message names the parameter and the item.

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


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class SelfBleu(TextMetric, evaluate.Metric):
    """Self-BLEU of sets of texts, with Distinct-n and Entropy-n."""

    _items = SETS
    _parts = SelfBleuParts

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": datasets.Sequence(datasets.Value("string"))}),
                datasets.Features({"predictions": datasets.Value("string")}),
            ],
            reference_urls=["https://arxiv.org/abs/1802.01886", "https://arxiv.org/abs/2506.00514"],
        )

    def _compute(
        self,
        *,
        predictions: Any,
        max_order: int = 4,
        aggregate: str = "set",
        smoothing: str | None = None,
        tokenizer: str | Callable[[str], Any] = "whitespace",
        set_size: int | None = None,
        singletons: str = "error",
        confidence: float | None = None,
        details: bool = False,
    ) -> dict[str, Any]:
        sets = parse_sets(predictions, set_size)
        max_order = parse_count(max_order, "max_order")
        parse_choice(aggregate, "aggregate", ("set", "corpus", "sentence"))
        if smoothing is None:
            smoothing = default_smoothing(aggregate)
        parse_choice(smoothing, "smoothing", SMOOTHINGS)
        level = parse_confidence(confidence)
        scored = find_scored_sets(sets, singletons, "self_bleu")
        kept, rows = select_sets(sets, scored)
        sizes = kept.sizes
        words, tokenizer_name = tokenize(kept.texts, tokenizer, lambda i: sets.where(int(rows[i])))

        tokens = number_tokens(words)
        tables = list(ngram_tables(tokens, sizes, max_order))
        statistics = bleu_statistics(tables, tokens.lengths, sizes)
        if aggregate == "sentence":
            by_text = bleu(statistics, smoothing)
            by_set = mean_by_set(by_text, sizes)
        else:
            of_sets = statistics.pooled(sizes)
            by_set = bleu(of_sets, smoothing)
        pooled = aggregate == "corpus" and len(sizes) > 0
        whole = bleu(statistics.pooled(sizes.sum(keepdims=True)), smoothing) if pooled else by_set

        columns = {f"self_bleu_{i}": row for i, row in enumerate(by_set, 1)}
        means = {f"self_bleu_{i}": mean_over_sets(row) for i, row in enumerate(whole, 1)}
        for name, measure in (("distinct", distinct), ("entropy", entropy)):
            for i, table in enumerate(tables, 1):
                columns[f"{name}_{i}"] = measure(table, sizes)
                means[f"{name}_{i}"] = mean_over_sets(measure(table, sizes, pooled=pooled))

        result: dict[str, Any] = {"self_bleu": means[f"self_bleu_{max_order}"], **means}
        result["scores"] = spread(by_set[-1].tolist(), scored)
        if level is not None:
            result["confidence_interval"] = (
                _corpus_interval(level, of_sets, smoothing) if pooled else confidence_interval(level, by_set[-1])
            )
        if singletons == "skip":
            result["n_singletons"] = int((~scored).sum())
        if details:
            by_column = (column.tolist() for column in columns.values())
            details_of_sets = [dict(zip(columns, row, strict=True)) for row in zip(*by_column, strict=True)]
            if aggregate == "sentence":
                for own, part in zip(details_of_sets, split_by_set(by_text[-1], sizes), strict=True):
                    own["text_scores"] = part.tolist()
            result["details"] = spread(details_of_sets, scored)
        result["signature"] = signature(
            "self_bleu",
            order=max_order,
            aggregate=aggregate,
            smoothing=smoothing,
            tokenizer=tokenizer_name,
            set_size=format_sizes(sets.sizes),
            **confidence_settings(level),
        )
        return result

    def _check_parts(self, settings: Mapping[str, Any]) -> None:
        if settings.get("aggregate") == "corpus":
            raise ValueError("aggregate='corpus' pools n-grams over all sets, so parts of them cannot be scored alone.")


def _corpus_interval(level: float, of_sets: BleuStatistics, smoothing: str) -> list[float] | None:
    """Interval of the score of all sets together, which is no mean: the statistics of the sets are drawn again."""
    order = len(of_sets.matches)

    def score(*sums: np.ndarray, axis: int) -> np.ndarray:
        pooled = np.stack([part.sum(axis=axis) for part in sums])
        return bleu(BleuStatistics(pooled[:order], pooled[order:-2], *pooled[-2:]), smoothing)[-1]

    rows = (*of_sets.matches, *of_sets.totals, of_sets.hypothesis_lengths, of_sets.reference_lengths)
    return confidence_interval(level, *rows, statistic=score)
