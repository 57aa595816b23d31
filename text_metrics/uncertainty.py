"""Does an uncertainty tell wrong answers from right ones: AUROC, beside rules that need no clusters of meanings."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu

# Values of resamples held at a time.
_ENTRIES = 2**20


def trivial_rules(
    answers: Sequence[Sequence[str]], log_probs: Sequence[Sequence[Any]] | None = None
) -> dict[str, list[float]]:
    """Return uncertainties of the answers to each of m questions that any proposed one should exceed.

    Parameters
    ----------
    answers : for each question, the sampled answers
    log_probs : shaped like `answers`: for each answer the log-probabilities of its tokens, or one number

    Returns
    -------
    dict from the name of a rule to m values, of which the higher are the less certain: the mean number of words, the
    number of different strings, and with `log_probs` the mean negative log-probability
    """
    rules = {
        "length": [float(np.mean([len(text.split()) for text in texts])) for texts in answers],
        "different strings": [float(len(set(texts))) for texts in answers],
    }
    if log_probs is not None:
        rules["mean log-probability"] = [-float(np.mean([np.mean(row) for row in rows])) for rows in log_probs]
    return rules


def detect_errors(
    rules: Mapping[str, Sequence[float]],
    is_correct: Sequence[bool],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Compute how well each rule tells questions with a wrong answer from those with a right one.

    Parameters
    ----------
    rules : from the name of a rule to its uncertainty of each of m questions; the first one is compared with the others
    is_correct : whether the answer to each question is right; both must occur
    level : of the intervals
    resamples : number of bootstrap resamples, of the wrong and of the right questions separately, the same for all
        rules
    seed : of the resamples

    Returns
    -------
    dict from the name of a rule to a dict with `auroc`, the probability that a wrong answer is the less certain one of
    a wrong and a right answer, where ties count half: 0.5 by chance, 1 at best; its percentile `interval`; and for all
    rules but the first `difference` and `difference_interval`, the AUROC of the first minus that of the rule

    Raises
    ------
    ValueError
        If a rule has not one finite number for each question, or all answers are right, or all wrong.
    """
    correct = np.asarray(is_correct)
    if correct.ndim != 1 or not np.isin(correct, (0, 1)).all():
        raise ValueError("is_correct must be a list of True and False, one for each question.")
    wrong, right = np.flatnonzero(correct == 0), np.flatnonzero(correct == 1)
    if not len(wrong) or not len(right):
        raise ValueError(f"is_correct must have right and wrong answers. Got {len(right)} right of {len(correct)}.")
    columns = np.stack([_read(values, name, len(correct)) for name, values in rules.items()])
    estimates = _auroc(columns[:, wrong], columns[:, right])
    rng = np.random.default_rng(seed)
    drawn = []
    for part in np.array_split(np.arange(resamples), math.ceil(resamples * columns.size / _ENTRIES)):
        rows = [rng.choice(group, (len(part), len(group))) for group in (wrong, right)]
        drawn.append(_auroc(*(columns[:, row] for row in rows)))
    aurocs = np.concatenate(drawn, axis=1)
    tails = [(1 - level) / 2, (1 + level) / 2]
    table: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(rules):
        table[name] = {"auroc": float(estimates[i]), "interval": np.quantile(aurocs[i], tails).tolist()}
        if i:
            table[name]["difference"] = float(estimates[0] - estimates[i])
            table[name]["difference_interval"] = np.quantile(aurocs[0] - aurocs[i], tails).tolist()
    return table


def _read(values: Sequence[float], name: str, n: int) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (n,) or not np.isfinite(numbers).all():
        raise ValueError(f"The rule {name!r} must have a finite number for each of the {n} questions. Got {values!r}.")
    return numbers


def _auroc(wrong: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of values (..., w) and (..., r): the Mann-Whitney statistic over the number of pairs."""
    statistic = mannwhitneyu(wrong, right, axis=-1, method="asymptotic").statistic
    return statistic / (wrong.shape[-1] * right.shape[-1])
