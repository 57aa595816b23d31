"""Agreement of metrics with a judge and with people.

The choices of a metric are 0 for the first set of a pair, 1 for the second, 0.5 for a tie.
"""

import itertools

import numpy as np
import pandas as pd

from text_metrics.meta_eval.scores import Scores
from text_metrics.statistics import holm, randomization_p

JUDGE = "the judge"
PERSON = "a person, with the other people"
FIRST_RULE = "rule: set 1"
NONSENSE_RULE = "rule: nonsense wins"
LEVEL = 0.95
# Scores this close to each other differ by rounding alone.
_TIE = 1e-9
_RESAMPLES = 1000
_SEED = 0
_KAPPAS = ("form with form", "content with content", "form with content", "form with judge", "content with judge")


def evaluate(scores: Scores, pairs: pd.DataFrame, people: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return all results that the judged pairs allow, by name."""
    results = {}
    if len(pairs):
        results["agreement"] = judge_agreement(scores, pairs)
        results["kappa"], results["kappa_means"] = kappa_by_quality(scores, pairs)
        results["distributions"] = distributions(scores, pairs)
    if len(people):
        results["people"] = people_agreement(scores, people)
    return {**results, "signatures": scores.metrics["signature"].rename_axis("metric").reset_index()}


class Bootstrap:
    """Resamples of n items, in which items of one group, a Series, are drawn together."""

    def __init__(self, groups: pd.Series) -> None:
        self._groups = groups
        n = groups.nunique()
        self._n = n
        drawn = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), _RESAMPLES)
        # The first row are the items themselves.
        self._weights = np.vstack([np.ones(n), drawn])

    def means(self, values: pd.DataFrame) -> pd.DataFrame:
        """Average values of shape (n, k) over the items, and over each resample, leaving out NaN.

        Returns a frame of shape (1 + resamples, k), NaN where nothing is left.
        """
        by_group = values.groupby(self._groups)
        sums = self._weights @ by_group.sum().to_numpy()
        return pd.DataFrame(sums, columns=values.columns) / (self._weights @ by_group.count().to_numpy())

    def balanced(self, hits: pd.DataFrame, verdicts: pd.Series) -> pd.DataFrame:
        """Average the means over the items of verdict 0 and 1; NaN where only one occurs."""
        first, second = (self.means(hits.where(verdicts == verdict, axis=0)) for verdict in (0, 1))
        return (first + second) / 2

    def summary(self, name: str, resampled: pd.DataFrame) -> pd.DataFrame:
        """Return means as `name`, with their intervals, `name_low` and `name_high`; k rows."""
        ends = resampled[1:].quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low, high = ends.to_numpy() if self._n > 1 else (np.nan, np.nan)
        return pd.DataFrame({name: resampled.loc[0], f"{name}_low": low, f"{name}_high": high})


def choices(scores: Scores, pairs: pd.DataFrame, tie: float = _TIE) -> pd.DataFrame:
    """Return the choices of each metric; a relative difference up to `tie` is a tie."""
    values = (scores.values * scores.metrics["sign"]).to_numpy()
    first = values[pairs["first"]]
    second = values[pairs["second"]]
    tied = np.abs(first - second) <= tie * np.maximum(np.abs(first), np.abs(second))
    return pd.DataFrame(np.where(tied, 0.5, second > first), index=pairs.index, columns=scores.values.columns)


def rule_choices(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the choices of baselines that read no text: the position of a set, and the label of how it was made."""
    chosen = pd.DataFrame({FIRST_RULE: 0.0}, index=pairs.index)
    first, second = (pairs[label] == "nonsensical" for label in ("label1", "label2"))
    if (first | second).any():
        # A tie where both sets are nonsense, or neither.
        chosen[NONSENSE_RULE] = 0.5 + (second.astype(float) - first.astype(float)) / 2
    return chosen


def cells(pairs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the pairs of each data set, and of its parts of high and low quality, by name."""
    by_cell = {}
    for data, rows in pairs.groupby("data", sort=False):
        parts = {part: rows[rows["part"] == part] for part in ("high", "low")}
        if len(rows) not in map(len, parts.values()):
            by_cell[f"{data}, all"] = rows
        by_cell |= {f"{data}, {part}": part_rows for part, part_rows in parts.items() if len(part_rows)}
    return by_cell


def judge_agreement(scores: Scores, pairs: pd.DataFrame) -> pd.DataFrame:
    """Compare all metrics and rules with the judge, in each cell, on all pairs and on those that are clear.

    Returns a row for each metric, cell, and `pairs`, "all" or "clear", with `n`, the number of pairs, and

    - accuracy, with the ends of its interval, accuracy_low and accuracy_high, and likewise
    - balanced, the mean of the accuracies over the pairs of each verdict; NaN where only one verdict occurs
    - margin, `balanced` minus its value for the best `rule`
    - parity, the accuracy if ties go to set 1, as in the paper
    - p_against_best, by paired randomization, with Holm's correction for the cell; NaN for the best metric and rules
    """
    rules = rule_choices(pairs)
    chosen = choices(scores, pairs).join(rules)
    by_parity = choices(scores, pairs, tie=0).replace(0.5, 0).join(rules)
    groups = scores.metrics["group"].reindex(chosen.columns, fill_value="rule")
    frames = []
    for cell, rows in cells(pairs).items():
        for kind, subset in (("all", rows), ("clear", rows[rows["clear"]])):
            if len(subset):
                frame = _agreement(chosen.loc[subset.index], subset, groups.index[groups == "rule"])
                parity = _hits(by_parity.loc[subset.index], subset["verdict"]).mean()
                frames.append(frame.assign(cell=cell, pairs=kind, n=len(subset), parity=parity, group=groups))
    return pd.concat(frames).rename_axis("metric").reset_index()


def _hits(chosen: pd.DataFrame, verdicts: pd.Series) -> pd.DataFrame:
    return 1 - chosen.sub(verdicts, axis=0).abs()


def _agreement(chosen: pd.DataFrame, pairs: pd.DataFrame, rules: pd.Index) -> pd.DataFrame:
    """Compare metrics with the judge on some pairs; rules cannot be the best metric."""
    bootstrap = Bootstrap(pairs["concept"])
    hits = _hits(chosen, pairs["verdict"])
    balanced = bootstrap.balanced(hits, pairs["verdict"])
    frame = bootstrap.summary("accuracy", bootstrap.means(hits)).join(bootstrap.summary("balanced", balanced))
    sums = hits.drop(columns=rules).groupby(pairs["concept"]).sum()
    best = sums.sum().idxmax()
    behind = sums.drop(columns=best).rsub(sums[best], axis=0)
    tests = [randomization_p(behind[name].to_numpy()) for name in behind]
    rule = frame.loc[rules, "balanced"].fillna(0).idxmax()
    margin = balanced.drop(columns=rules).sub(balanced[rule], axis=0)
    frame = frame.assign(p_against_best=pd.Series(holm(tests), index=behind.columns, dtype=float), rule=rule)
    return frame.join(bootstrap.summary("margin", margin))


def kappas(chosen: pd.DataFrame, bootstrap: Bootstrap) -> pd.DataFrame:
    """Cohen's kappa of all pairs of annotators, a tie being a verdict of its own; NaN where chance explains all.

    Returns a frame of shape (1 + resamples, k (k - 1) / 2), the row of the items themselves first.
    """
    first, second = zip(*itertools.combinations(chosen, 2), strict=True)
    same = chosen[list(first)].to_numpy() == chosen[list(second)].to_numpy()
    names = pd.MultiIndex.from_arrays([first, second], names=["first", "second"])
    observed = bootstrap.means(pd.DataFrame(same.astype(float), index=chosen.index, columns=names))
    shares = [bootstrap.means((chosen == verdict).astype(float)) for verdict in (0, 0.5, 1)]
    expected = sum(share[list(first)].to_numpy() * share[list(second)].to_numpy() for share in shares)
    return ((observed - expected) / (1 - expected)).where(expected < 1)


def kappa_by_quality(scores: Scores, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cohen's kappa of the judge and all metrics, over all pairs, and over the pairs of each quality.

    Returns `part`, `first`, `second` and `kappa` of all pairs of annotators;
    and the mean `kappa` between `groups` of them, with its interval, `part` and `n`.
    """
    names = annotators(scores)
    chosen = choices(scores, pairs)[names].assign(**{JUDGE: pairs["verdict"].astype(float)})
    groups = {**scores.metrics["group"], JUDGE: "judge"}
    matrices = []
    means = []
    for part in ("pooled", "high", "low"):
        rows = pairs if part == "pooled" else pairs[pairs["part"] == part]
        if rows.empty:
            continue
        bootstrap = Bootstrap(rows["concept"])
        resampled = kappas(chosen.loc[rows.index], bootstrap)
        both = [f"{groups[first]} with {groups[second]}" for first, second in resampled]
        mean = resampled.T.groupby(both).mean(skipna=False).T
        summary = bootstrap.summary("kappa", mean[[name for name in _KAPPAS if name in mean]]).dropna(subset="kappa")
        means.append(summary.assign(part=part, n=len(rows)).rename_axis("groups").reset_index())
        upper = resampled.loc[0].rename("kappa").reset_index()
        lower = upper.rename(columns={"first": "second", "second": "first"})
        diagonal = pd.DataFrame({"first": [JUDGE, *names], "second": [JUDGE, *names], "kappa": 1.0})
        matrices.append(pd.concat([diagonal, upper, lower]).assign(part=part))
    return pd.concat(matrices, ignore_index=True), pd.concat(means, ignore_index=True)


def annotators(scores: Scores) -> list[str]:
    """List the metrics that are not rules by name."""
    return [name for name in scores.values if not name.startswith("rule:")]


def people_agreement(scores: Scores, people: pd.DataFrame) -> pd.DataFrame:
    """Compare the judge, each metric and the rule of position with people.

    A person is compared with the majority of the other people, where a tie counts half: the ceiling for a metric.
    Returns `majority`, the agreement with the majority vote, `balanced`, its mean over the pairs of each verdict, and
    `person`, the mean agreement with one person.
    """
    bootstrap = Bootstrap(people["concept"])
    votes = pd.DataFrame(people["votes"].tolist(), index=people.index)
    chosen = choices(scores, people).assign(**{FIRST_RULE: 0.0})
    chosen.insert(0, JUDGE, people["verdict"])
    # NaN where there is one person only.
    votes_of_others = votes.rsub(votes.sum(axis=1), axis=0) / (votes.shape[1] - 1 or np.nan)
    share = votes.mean(axis=1)
    majority = _majority(share)
    hits = _hits(chosen, majority)
    person_hits = 1 - (votes - _majority(votes_of_others)).abs()
    # The mean over people of how a choice agrees with each of them: it is linear in the choice.
    with_one = chosen.mul(share, axis=0) + (1 - chosen).mul(1 - share, axis=0)
    person_with_one = votes * votes_of_others + (1 - votes) * (1 - votes_of_others)
    resampled = {
        "majority": bootstrap.means(hits.assign(**{PERSON: person_hits.mean(axis=1, skipna=False)})),
        "balanced": bootstrap.balanced(hits, majority),
        "person": bootstrap.means(with_one.assign(**{PERSON: person_with_one.mean(axis=1, skipna=False)})),
    }
    frame = pd.concat([bootstrap.summary(key, means) for key, means in resampled.items()], axis=1)
    return frame.loc[[PERSON, *chosen]].rename_axis("metric").reset_index()


def _majority(shares: pd.DataFrame | pd.Series) -> pd.DataFrame | pd.Series:
    return np.sign(shares - 0.5) / 2 + 0.5


def distributions(scores: Scores, pairs: pd.DataFrame) -> pd.DataFrame:
    """Describe the scores of the distinct sets that bear each label."""
    sets = pd.lreshape(pairs, {"set": ["first", "second"], "label": ["label1", "label2"]})
    sets = sets.loc[sets["label"] != "", ["set", "label"]].drop_duplicates()
    values = scores.values.loc[sets["set"], annotators(scores)].set_axis(sets["label"])
    frame = values.groupby(level=0, sort=False).describe().stack(level=0, future_stack=True)
    frame.columns = ["n", "mean", "std", "min", "q1", "median", "q3", "max"]
    return frame.rename_axis(["label", "metric"]).reset_index()
