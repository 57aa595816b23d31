"""Agreement of metrics with a judge and with people: accuracies, intervals by the bootstrap, margins, kappa."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.meta_eval.pairs import NONSENSE, Pairs, People
from text_metrics.commands.shared.statistics import randomization_p

JUDGE = "the judge"
PERSON = "a person, with the other people"
# Scores this close to each other differ by rounding alone.
_TIE = 1e-9

FIRST_RULE = "rule: set 1"
NONSENSE_RULE = "rule: nonsense wins"

LEVEL = 0.95
_RESAMPLES = 1000
_SEED = 0


def percentile_interval(resampled: np.ndarray) -> list[float]:
    """Return the interval that holds `LEVEL` of resampled values, in equal tails."""
    return np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()


def divide(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide elementwise; NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)


class Draws:
    """Bootstrap resamples of groups of items: items of one group, which share texts, are drawn together.

    numbers : ndarray of shape (n,), the group of each item
    weights : ndarray of shape (resamples, groups), how often each group is drawn
    """

    def __init__(self, groups: np.ndarray) -> None:
        names, self.numbers = np.unique(groups, return_inverse=True)
        n = len(names)
        self.weights = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), _RESAMPLES).astype(float)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Add values up by group; ndarray of shape (groups,)."""
        return np.bincount(self.numbers, weights=values, minlength=self.weights.shape[1])

    def with_items(self) -> np.ndarray:
        """Return the weights of the items themselves, which are all drawn once, and those of each resample."""
        return np.vstack([np.ones(self.weights.shape[1]), self.weights])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of values in each resample; NaN where it has no value."""
        counts = self.weights @ self.sums(np.ones(len(values)))
        return divide(self.weights @ self.sums(values), counts)

    def interval(self, resampled: np.ndarray) -> list[float] | None:
        """Percentile interval; None for fewer than two groups, or no value."""
        known = resampled[np.isfinite(resampled)]
        if self.weights.shape[1] < 2 or not known.size:
            return None
        return percentile_interval(known)


class Row(NamedTuple):
    """A metric, or a trivial rule, in the tables.

    scores : ndarray of shape (number of sets,)
    sign : 1 if higher is more diverse, -1 if lower is
    signature : the settings that decide the scores
    group : "form", "content", "quality", "own", or "rule" for what is there to be beaten
    original : the scores with the quirks of the paper's code, where it has any
    """

    name: str
    scores: np.ndarray
    sign: int
    signature: str
    group: str = "own"
    original: np.ndarray | None = None


def compare(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Say which score is the higher: 0 for the first, 1 for the second, 0.5 for a tie; (n,)."""
    tied = np.abs(first - second) <= _TIE * np.maximum(np.abs(first), np.abs(second))
    return np.where(tied, 0.5, second > first)


def choices(row: Row, pairs: Any, parity: bool = False) -> np.ndarray:
    """Say which set of each pair a metric calls more diverse: 0, 1, or 0.5 for a tie; (n,)."""
    scores = row.sign * (row.original if parity and row.original is not None else row.scores)
    first, second = scores[pairs.first], scores[pairs.second]
    return (second > first).astype(float) if parity else compare(first, second)


def rule_choices(pairs: Pairs) -> dict[str, np.ndarray]:
    """Choose by what is no property of a set: its position, and the label that says how it was made."""
    chosen = {FIRST_RULE: np.zeros(len(pairs.first))}
    nonsense = pairs.labels == NONSENSE
    if nonsense.any():
        # A tie where both sets are nonsense, or neither.
        chosen[NONSENSE_RULE] = 0.5 + (nonsense[:, 1].astype(float) - nonsense[:, 0]) / 2
    return chosen


def cells(pairs: Pairs) -> dict[str, np.ndarray]:
    """Name the columns of the tables: each data set, and its parts of high and low quality; masks (n,)."""
    masks = {}
    for data in dict.fromkeys(pairs.data.tolist()):
        whole = pairs.data == data
        parts = [part for part in ("high", "low") if (whole & (pairs.parts == part)).any()]
        if len(parts) == 1 and (pairs.parts[whole] == parts[0]).all():
            masks[f"{data}, {parts[0]}"] = whole
            continue
        masks[f"{data}, all"] = whole
        masks |= {f"{data}, {part}": whole & (pairs.parts == part) for part in parts}
    return masks


def agreements(
    chosen: dict[str, np.ndarray], pairs: Pairs, where: np.ndarray, rules: tuple[str, ...] = ()
) -> dict[str, dict[str, Any]]:
    """Compare all metrics with the judge on some of the pairs.

    Parameters
    ----------
    chosen : for each metric an ndarray of shape (n,), from `choices`
    where : ndarray of shape (n,), bool
    rules : names of the trivial rules: none is the best metric, and each metric is compared with the best of them

    Returns
    -------
    for each metric: `accuracy` and its `interval`; `balanced`, the mean of the accuracies over the pairs of each
    verdict, and its interval, None where only one verdict occurs; `ties`; `p_against_best`, by paired approximate
    randomization, None for the best metric; `margin`, by how much it exceeds the best rule in balanced accuracy
    """
    draws = Draws(pairs.concepts[where])
    second = pairs.verdicts[where].astype(float)
    agreed = {name: 1 - np.abs(verdicts[where] - second) for name, verdicts in chosen.items()}
    sums = {name: draws.sums(hits) for name, hits in agreed.items()}
    balanced = {name: balanced_accuracy(hits, second, draws) for name, hits in agreed.items()}
    metrics = [name for name in chosen if name not in rules]
    best = max(metrics or list(chosen), key=lambda name: float(sums[name].sum()))
    known = [name for name in rules if np.isfinite(balanced[name][0])]
    rule = max(known, key=lambda name: balanced[name][0]) if known else None
    results: dict[str, dict[str, Any]] = {}
    for name, hits in agreed.items():
        point, resampled = balanced[name]
        margin = None
        if rule is not None and name not in rules:
            margin = {
                "rule": rule,
                "difference": float(point - balanced[rule][0]),
                "interval": draws.interval(resampled - balanced[rule][1]),
            }
        results[name] = {
            "accuracy": float(hits.mean()),
            "interval": draws.interval(draws.means(hits)),
            "balanced": float(point) if np.isfinite(point) else None,
            "balanced_interval": draws.interval(resampled),
            "ties": int((chosen[name][where] == 0.5).sum()),
            "p_against_best": None if name == best else randomization_p(sums[best] - sums[name]),
            "margin": margin,
        }
    return results


def balanced_accuracy(agreed: np.ndarray, verdicts: np.ndarray, draws: Draws) -> tuple[float, np.ndarray]:
    """Average the accuracies over the pairs of each verdict.

    Parameters
    ----------
    agreed : ndarray of shape (n,): 1 where a metric says what the judge says, 0.5 for a tie
    verdicts : ndarray of shape (n,): 0 for the first set, 1 for the second

    Returns
    -------
    the value, and that of each resample; NaN where only one verdict occurs
    """
    weights = draws.with_items()
    has_verdict = [(verdicts == verdict).astype(float) for verdict in (0, 1)]
    shares = [divide(weights @ draws.sums(agreed * pairs), weights @ draws.sums(pairs)) for pairs in has_verdict]
    means = np.mean(shares, axis=0)
    return float(means[0]), means[1:]


def kappas(chosen: dict[str, np.ndarray]) -> list[list[float | None]]:
    """Cohen's kappa of all pairs of annotators, a tie being a verdict of its own; None where chance explains all."""
    from sklearn.metrics import cohen_kappa_score

    names = list(chosen)
    table: list[list[float | None]] = [[1.0] * len(names) for _ in names]
    for i, j in itertools.combinations(range(len(names)), 2):
        first, second = ((2 * chosen[names[k]]).astype(int) for k in (i, j))
        alone = len(np.unique(np.concatenate([first, second]))) == 1
        table[i][j] = table[j][i] = None if alone else float(cohen_kappa_score(first, second))
    return table


def kappa_by_group(
    chosen: dict[str, np.ndarray], groups: dict[str, str], judge: np.ndarray, concepts: np.ndarray
) -> dict[str, dict[str, Any]]:
    """Mean kappa of form metrics with content metrics, of each group within itself, and of each with the judge.

    Metrics of other groups are left out, and a mean where chance explains all agreement of a pair, which has no kappa.
    `judge` and `concepts` are ndarrays of shape (n,): the verdicts, and what is drawn together.
    """
    names = [name for name in chosen if groups.get(name) in ("form", "content")]
    annotators = {JUDGE: judge.astype(float), **{name: chosen[name] for name in names}}
    # 0 and 2 for the sets, 1 for a tie.
    codes = np.array([(2 * verdicts).astype(int) for verdicts in annotators.values()])
    draws = Draws(concepts)
    kinds = {JUDGE: "judge"} | {name: groups[name] for name in names}
    totals: dict[str, list[np.ndarray]] = {}
    for (i, first), (j, second) in itertools.combinations(enumerate(annotators), 2):
        key = " with ".join(sorted((kinds[first], kinds[second]), key=("form", "content", "judge").index))
        totals.setdefault(key, []).append(_kappa_resampled(codes[i], codes[j], draws))
    results = {}
    for key in ("form with form", "content with content", "form with content", "form with judge", "content with judge"):
        if key in totals:
            mean = np.mean(totals[key], axis=0)  # the first is of the pairs themselves
            if np.isfinite(mean[0]):
                results[key] = {"kappa": float(mean[0]), "interval": draws.interval(mean[1:])}
    return results


def _kappa_resampled(first: np.ndarray, second: np.ndarray, draws: Draws) -> np.ndarray:
    """Kappa of the items themselves, and of each resample; (1 + resamples,)."""
    weights = draws.with_items()
    total = weights @ draws.sums(np.ones(len(first)))
    observed = weights @ draws.sums((first == second).astype(float)) / total
    expected = np.zeros(len(weights))
    for verdict in range(3):
        shares = [weights @ draws.sums((verdicts == verdict).astype(float)) / total for verdicts in (first, second)]
        expected += shares[0] * shares[1]
    return divide(observed - expected, 1 - expected)


def people_agreement(people: People, rows: list[Row]) -> list[dict[str, Any]]:
    """Compare the judge, each metric and each rule with people.

    A person is compared with the majority of the other people, where a tie counts half: the ceiling to expect of a
    metric. `majority` is the share of pairs on which a row chooses as most people do, `balanced` the mean of that share
    over the pairs of each verdict, and `person` the mean agreement with one person.
    """
    draws = Draws(people.concepts)
    votes = people.votes.astype(float)
    n_people = votes.shape[1]
    majority = np.sign(votes.mean(axis=1) - 0.5) / 2 + 0.5
    chosen = {JUDGE: people.judge, **{row.name: choices(row, people) for row in rows}}
    chosen[FIRST_RULE] = np.zeros(len(votes))
    share_of_others = (
        (votes.sum(axis=1, keepdims=True) - votes) / (n_people - 1) if n_people > 1 else np.full(votes.shape, 0.5)
    )
    of_others = np.sign(share_of_others - 0.5) / 2 + 0.5
    rows_of_people = [
        {
            "name": PERSON,
            "people": n_people,
            **_share("majority", 1 - np.abs(votes - of_others).mean(axis=1), draws),
            **{"balanced": None, "balanced_interval": None},
            **_share("person", _pairwise(votes), draws),
        }
    ]
    for name, verdicts in chosen.items():
        agreed = 1 - np.abs(verdicts - majority)
        balanced, resampled = balanced_accuracy(agreed, majority, draws)
        rows_of_people.append(
            {
                "name": name,
                **_share("majority", agreed, draws),
                "balanced": None if np.isnan(balanced) else balanced,
                "balanced_interval": draws.interval(resampled),
                **_share("person", 1 - np.abs(verdicts[:, None] - votes).mean(axis=1), draws),
            }
        )
    return rows_of_people


def _share(name: str, values: np.ndarray, draws: Draws) -> dict[str, Any]:
    return {name: float(values.mean()), f"{name}_interval": draws.interval(draws.means(values))}


def _pairwise(votes: np.ndarray) -> np.ndarray:
    """Mean agreement of two people on each pair; (n,)."""
    n_people = votes.shape[1]
    if n_people < 2:
        return np.full(len(votes), np.nan)
    ones = votes.sum(axis=1)
    zeros = n_people - ones
    return (ones * (ones - 1) + zeros * (zeros - 1)) / (n_people * (n_people - 1))
