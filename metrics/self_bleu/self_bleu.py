"""Self-BLEU, Distinct-n and Entropy-n: how much the texts of a set repeat each other's words."""

from collections.abc import Callable, Mapping
from typing import Any

import datasets
import evaluate
import numpy as np

from .core_forks import one_thread_in_fork as one_thread_in_fork
from .core_inputs import (
    content_ranks,
    find_scored_sets,
    lists_by_set,
    mean_by_set,
    parse_sets,
    select_sets,
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
from .core_numbers import parse_choice, parse_count
from .core_parts import SetParts as SetParts
from .core_rarefaction import check_rarefy, parse_rarefy, rarefaction_settings
from .core_results import (
    SETS,
    confidence_interval,
    confidence_settings,
    format_sizes,
    mean_over_sets,
    parse_confidence,
    rows_of,
    signature,
    spread,
)
from .core_rewards import RewardFunction as RewardFunction
from .core_trainer import TrainerMetric as TrainerMetric
from .self_bleu_parts import SelfBleuParts
from .self_bleu_rarefied import SetMeasure, rarefied_columns
from .self_bleu_repetition import COMPRESSION, compression_ratio, compression_ratios, self_repetition
from .self_bleu_tokenizers import tokenize

# Each order is a pass over all tokens, and three numbers of the result.
_LONGEST = 100

_DESCRIPTION = """\
How much do the texts of a set repeat each other's n-grams? Self-BLEU is the BLEU of each text with the other texts of
its set as references. It is 1 if all texts are the same and long enough to contain the n-grams, and near 0 if they
share no words. The metric also returns Distinct-n, the share of distinct n-grams, and Entropy-n, the entropy of their
distribution. All three compare form only: paraphrases and shuffled words count as diverse. To compare meaning, use
`vendi_embed` or `chamfer_diversity`.
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
    predictions (`list[list[str]]` or `list[str]`): sets of texts. A flat list is one set or, with `set_size`,
        consecutive sets. Lists, tuples and numpy arrays are accepted.
    max_order (`int`, default 4): length of the longest n-grams, at most 100.
    aggregate (`"set"`, `"corpus"` or `"sentence"`, default `"set"`): how the n-gram counts of the texts are combined.
        The references of a text are always the other texts of its own set. `"set"` pools the counts within each set,
        scores each set and averages over sets. `"corpus"` pools the counts over all sets and computes one score,
        likewise for Distinct-n and Entropy-n; `scores` are still per set, so their mean is not `self_bleu`.
        `"sentence"` scores each text, and averages over the texts of a set, then over sets.
    smoothing (`"nlg-eval"`, `"method1"` or `"none"`): treatment of a precision of zero. `"nlg-eval"` uses its
        constants: 1e-15 is added to the matches and to the length of the text, 1e-9 to the totals and to the length
        of the reference. `"method1"` is NLTK's method 1: a match count of 0 becomes 0.1, and a text without a single
        matching word scores 0. `"none"` leaves zero, and the score is 0. Default: `"method1"` if `aggregate` is
        `"sentence"`, otherwise `"nlg-eval"`.
    tokenizer (`str` or callable, default `"whitespace"`): `"whitespace"`; the name of a sacreBLEU tokenizer (`"13a"`,
        `"intl"`, `"char"`, `"zh"`, `"ja-mecab"`, ...); or a function from a text to its list of tokens.
    set_size (`int`): number of texts in each set of a flat list, such as `num_return_sequences`.
    singletons (`"error"` or `"skip"`, default `"error"`): a set of one text has no references. Either raise an error,
        or leave the set out of all means and return None as its score.
    repetition (`bool`, default `False`): also return the compression ratio and the self-repetition, as in
        arXiv 2403.00553.
    rarefy (`int`, at least 2): return expected scores of this many texts, drawn from each set without replacement, so
        that sets of different sizes can be compared. Distinct-n is the expected number of distinct n-grams, which is
        exact, over the expected number of n-grams. All other scores are means over all subsets if there are at
        most 200, and over 200 seeded draws if there are more. A smaller set has no score. Cannot be combined with
        `aggregate="corpus"`.
    confidence (`float`): level of a confidence interval, such as 0.95, from a bootstrap over sets: 1000 resamples
        with a fixed seed. With `aggregate="corpus"`, the counts of each resample are pooled.
    details (`bool`, default `False`): also return all values of each set, and with `aggregate="sentence"` the score
        of each text.

Returns:
    self_bleu (`float`): self-BLEU of order `max_order`, in [0, 1]. Higher is less diverse. Like the values below, it
        is a mean over sets, or pooled over all sets if `aggregate` is `"corpus"`. None if all sets are left out.
    self_bleu_1, self_bleu_2, ... (`float`): self-BLEU of each order up to `max_order`, in [0, 1]. Higher is less
        diverse.
    distinct_1, distinct_2, ... (`float`): Distinct-n, in [0, 1]. Higher is more diverse.
    entropy_1, entropy_2, ... (`float`): Entropy-n in nats, at least 0. Higher is more diverse.
    compression_ratio (`float`): only with `repetition=True`. Size of the texts of a set, joined by spaces, over their
        size compressed by gzip, above 0. Higher is less diverse.
    self_repetition_1, self_repetition_2, ... (`float`): only with `repetition=True`. Mean over texts of log(1 + N),
        where N sums, over the different n-grams of the text, the number of other texts of its set that contain the
        n-gram; at least 0. Higher is less diverse.
    scores (`list[float]`): self-BLEU of order `max_order` of each set. None for a set that is left out, or smaller
        than `rarefy`.
    confidence_interval (`list[float]`): only with `confidence`. `[low, high]` of `self_bleu`. None for fewer than two
        sets.
    n_singletons (`int`): only with `singletons="skip"`. Number of sets of one text.
    n_too_small (`int`): only with `rarefy`. Number of sets with fewer texts, which have no score.
    details (`list[dict]`): only with `details=True`. For each set the values above and, with `aggregate="sentence"`,
        `text_scores`; with `rarefy`, `standard_errors` instead. None for a set that is left out.
    signature (`str`): all settings that determine the score. Scores are comparable if their signatures are equal.

Raises:
    TypeError, ValueError: for invalid input. The message names the parameter, the item and what was got.

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
    _decreasing = ("self_bleu", "compression_ratio", "self_repetition")
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
        repetition: bool = False,
        rarefy: int | None = None,
        confidence: float | None = None,
        details: bool = False,
    ) -> dict[str, Any]:
        max_order = parse_count(max_order, "max_order", high=_LONGEST)
        parse_choice(aggregate, "aggregate", ("set", "corpus", "sentence"))
        if smoothing is None:
            smoothing = default_smoothing(aggregate)
        parse_choice(smoothing, "smoothing", SMOOTHINGS)
        level = parse_confidence(confidence)
        check_rarefy(rarefy)
        if rarefy is not None and aggregate == "corpus":
            raise ValueError(
                "rarefy has no effect with aggregate='corpus', which pools all sets: leave one of them out."
            )
        parse_choice(singletons, "singletons", ("error", "skip"))
        sets = parse_sets(predictions, set_size)
        k = parse_rarefy(rarefy, sets.sizes, least=2)
        scored = find_scored_sets(sets, singletons, "self_bleu") if k is None else sets.sizes >= k
        kept, rows = select_sets(sets, scored)
        sizes = kept.sizes
        words, tokenizer_name = tokenize(kept.texts, tokenizer, lambda i: sets.where(int(rows[i])))

        tokens = number_tokens(words)
        pooled = aggregate == "corpus" and len(sizes) > 0
        if k is None:
            tables = list(ngram_tables(tokens, sizes, max_order))
            statistics = bleu_statistics(tables, tokens.lengths, sizes)
            if aggregate == "sentence":
                by_text = bleu(statistics, smoothing)
                by_set = mean_by_set(by_text, sizes)
            else:
                of_sets = statistics.pooled(sizes)
                by_set = bleu(of_sets, smoothing)
            whole = bleu(statistics.pooled(sizes.sum(keepdims=True)), smoothing) if pooled else by_set

            columns = {f"self_bleu_{i}": row for i, row in enumerate(by_set, 1)}
            means = {f"self_bleu_{i}": mean_over_sets(row) for i, row in enumerate(whole, 1)}
            measures = {"distinct": distinct, "entropy": entropy}
            if repetition:
                measures["self_repetition"] = self_repetition
            for name, measure in measures.items():
                for i, table in enumerate(tables, 1):
                    columns[f"{name}_{i}"] = measure(table, sizes)
                    means[f"{name}_{i}"] = mean_over_sets(measure(table, sizes, pooled=pooled))
            if repetition:
                ratios = columns["compression_ratio"] = compression_ratios(kept.texts, sizes)
                means["compression_ratio"] = compression_ratio(kept.texts) if pooled else mean_over_sets(ratios)
        else:
            measure_set = SetMeasure(max_order, aggregate, smoothing, kept.texts if repetition else None)
            columns, errors = rarefied_columns(tokens, content_ranks(kept.texts), sizes, k, measure_set)
            means = {name: mean_over_sets(column) for name, column in columns.items()}

        result: dict[str, Any] = {"self_bleu": means[f"self_bleu_{max_order}"], **means}
        scores = columns[f"self_bleu_{max_order}"]
        result["scores"] = spread(scores.tolist(), scored)
        if level is not None:
            result["confidence_interval"] = (
                _corpus_interval(level, of_sets, smoothing) if pooled else confidence_interval(level, scores)
            )
        if singletons == "skip":
            result["n_singletons"] = int((sets.sizes == 1).sum())
        if k is not None:
            result["n_too_small"] = int((~scored).sum())
        if details:
            found: dict[str, list] = {name: column.tolist() for name, column in columns.items()}
            if k is not None:
                found["standard_errors"] = rows_of({name: column.tolist() for name, column in errors.items()})
            elif aggregate == "sentence":
                found["text_scores"] = lists_by_set(by_text[-1], sizes)
            result["details"] = spread(rows_of(found), scored)
        result["signature"] = signature(
            "self_bleu",
            order=max_order,
            aggregate=aggregate,
            smoothing=smoothing,
            tokenizer=tokenizer_name,
            **({"compression": COMPRESSION} if repetition else {}),
            set_size=format_sizes(sets.sizes),
            **rarefaction_settings(k),
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
