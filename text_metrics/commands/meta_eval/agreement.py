"""Agreement of metrics with a judge and with people: accuracies, intervals by the bootstrap, margins, kappa."""

import itertools
from typing import Any

import numpy as np
import pandas as pd

from text_metrics.commands.meta_eval.pairs import ORIGINAL, POORER
from text_metrics.commands.meta_eval.scores import Scores
from text_metrics.commands.shared.statistics import randomization_p

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


class Bootstrap:
    """Resamples of groups of items: items of one group, which share texts, are drawn together.

    Parameters
    ----------
    groups : ndarray of shape (n,), the group of each item
    """

    def __init__(self, groups: Any) -> None:
        names, self._numbers = np.unique(groups, return_inverse=True)
        n = self._n = len(names)
        drawn = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), _RESAMPLES)
        # The first are the items themselves.
        self._weights = np.vstack([np.ones(n), drawn])

    def group_sums(self, values: np.ndarray) -> np.ndarray:
        """Add values of shape (n, k) up by group; ndarray of shape (groups, k)."""
        sums = np.zeros((self._n, values.shape[1]))
        np.add.at(sums, self._numbers, values)
        return sums

    def means(self, values: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        """Average values of shape (n, k) over the items, and over each resample; NaN where it has none.

        `where`, ndarray of shape (n,), bool, are the items that count. Returns an ndarray of shape (1 + resamples, k).
        """
        counted = np.ones((len(values), 1)) if where is None else where[:, None].astype(float)
        whole = self._weights @ self.group_sums(counted)
        part = self._weights @ self.group_sums(values * counted)
        return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)

    def balanced(self, hits: np.ndarray, verdicts: np.ndarray) -> np.ndarray:
        """Average the means over the items of each verdict, 0 and 1, as `means` does; NaN where only one occurs."""
        return (self.means(hits, verdicts == 0) + self.means(hits, verdicts == 1)) / 2

    def summary(self, name: str, resampled: np.ndarray, names: Any) -> pd.DataFrame:
        """Return values with their percentile intervals, `name`, `name_low` and `name_high`, a row for each of k names.

        `resampled` is an ndarray of shape (1 + resamples, k), the values themselves first.
        """
        ends = pd.DataFrame(resampled[1:]).quantile([(1 - LEVEL) / 2, (1 + LEVEL) / 2]).to_numpy()
        if self._n < 2:
            ends = np.full_like(ends, np.nan)
        return pd.DataFrame({name: resampled[0], f"{name}_low": ends[0], f"{name}_high": ends[1]}, index=names)


def second_is_higher(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Say which score is the higher: 0 for the first, 1 for the second, 0.5 for a tie; of the shape of both."""
    tied = np.abs(first - second) <= _TIE * np.maximum(np.abs(first), np.abs(second))
    return np.where(tied, 0.5, second > first)


def choices(scores: Scores, pairs: pd.DataFrame, parity: bool = False) -> pd.DataFrame:
    """Say which set of each pair each metric calls more diverse: 0, 1, or 0.5 for a tie; with parity, ties are 0."""
    values = (scores.originals if parity else scores.values) * scores.metrics["sign"]
    first, second = (values.to_numpy()[pairs[side]] for side in ("first", "second"))
    chosen = (second > first).astype(float) if parity else second_is_higher(first, second)
    return pd.DataFrame(chosen, columns=values.columns)


def rule_choices(pairs: pd.DataFrame) -> dict[str, Any]:
    """Choose by what is no property of a set: its position, and the label that says how it was made."""
    nonsense = [(pairs[label] == "nonsensical").astype(float) for label in ("label1", "label2")]
    # A tie where both sets are nonsense, or neither.
    by_label = {NONSENSE_RULE: 0.5 + (nonsense[1] - nonsense[0]) / 2} if (nonsense[0] + nonsense[1]).any() else {}
    return {FIRST_RULE: 0.0, **by_label}


def cells(pairs: pd.DataFrame) -> dict[str, np.ndarray]:
    """Name the columns of the tables: each data set, and its parts of high and low quality; masks (n,)."""
    masks = {}
    for data in pairs["data"].unique():
        whole = (pairs["data"] == data).to_numpy()
        parts = {part: whole & (pairs["part"] == part).to_numpy() for part in ("high", "low")}
        parts = {part: where for part, where in parts.items() if where.any()}
        if not any((where == whole).all() for where in parts.values()):
            masks[f"{data}, all"] = whole
        masks |= {f"{data}, {part}": where for part, where in parts.items()}
    return masks


def judge_agreement(scores: Scores, pairs: pd.DataFrame, parity: bool) -> pd.DataFrame:
    """Compare all metrics and rules with the judge, in each cell, on all pairs and on those that are clear.

    Returns a row for each metric, cell, and `pairs`, "all" or "clear", with `n`, the number of pairs, and

    - accuracy, with the ends of its interval, accuracy_low and accuracy_high, and likewise
    - balanced, the mean of the accuracies over the pairs of each verdict; NaN where only one verdict occurs
    - margin, by how much `balanced` exceeds that of the best `rule`
    - parity, the accuracy if ties go to set 1
    - p_against_best, by paired approximate randomization; NaN for the best metric
    """
    chosen = choices(scores, pairs, parity).assign(**rule_choices(pairs))
    by_parity = choices(scores, pairs, parity=True).assign(**rule_choices(pairs))
    groups = {name: scores.metrics["group"].get(name, "rule") for name in chosen}
    rules = [name for name in chosen if groups[name] == "rule"]
    frames = []
    for cell, where in cells(pairs).items():
        for kind, mask in (("all", where), ("clear", where & pairs["clear"].to_numpy())):
            if mask.any():
                frame = _agreement(chosen[mask], pairs[mask], rules)
                hits = 1 - (by_parity[mask].sub(pairs.loc[mask, "verdict"], axis=0)).abs()
                frames.append(frame.assign(cell=cell, pairs=kind, n=int(mask.sum()), parity=hits.mean()))
    frame = pd.concat(frames).rename_axis("metric").reset_index()
    return frame.assign(group=frame["metric"].map(groups))


def _agreement(chosen: pd.DataFrame, pairs: pd.DataFrame, rules: list[str]) -> pd.DataFrame:
    """Compare all metrics with the judge on some pairs; none of the rules is the best metric."""
    bootstrap = Bootstrap(pairs["concept"])
    verdicts = pairs["verdict"].to_numpy()
    hits = 1 - np.abs(chosen.to_numpy() - verdicts[:, None])
    balanced = bootstrap.balanced(hits, verdicts)
    frame = bootstrap.summary("accuracy", bootstrap.means(hits), chosen.columns)
    frame = frame.join(bootstrap.summary("balanced", balanced, chosen.columns))
    sums = pd.DataFrame(bootstrap.group_sums(hits), columns=chosen.columns)
    best = sums.drop(columns=rules).sum().idxmax() if len(rules) < chosen.shape[1] else sums.sum().idxmax()
    others = [name for name in chosen if name != best]
    frame["p_against_best"] = pd.Series(
        {name: randomization_p((sums[best] - sums[name]).to_numpy()) for name in others}
    )
    known = frame.loc[rules, "balanced"].dropna()
    if known.empty:
        return frame
    rule = known.idxmax()
    margin = balanced - balanced[:, [chosen.columns.get_loc(rule)]]
    margins = bootstrap.summary("margin", margin, chosen.columns).drop(index=rules)
    return frame.assign(rule=rule).join(margins)


def kappas(chosen: pd.DataFrame, bootstrap: Bootstrap) -> np.ndarray:
    """Cohen's kappa of all pairs of annotators, a tie being a verdict of its own; NaN where chance explains all.

    Returns an ndarray of shape (1 + resamples, k, k), that of the items themselves first.
    """
    verdicts = chosen.to_numpy()
    shares = [bootstrap.means((verdicts == verdict).astype(float)) for verdict in (0, 0.5, 1)]
    expected = sum(share[:, :, None] * share[:, None, :] for share in shares)
    observed = np.stack(
        [bootstrap.means((verdicts == verdicts[:, [i]]).astype(float)) for i in range(verdicts.shape[1])], axis=1
    )
    return np.divide(observed - expected, 1 - expected, out=np.full_like(observed, np.nan), where=expected < 1)


def kappa_by_quality(scores: Scores, pairs: pd.DataFrame, parity: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cohen's kappa of the judge and all metrics, over all pairs, and over those of each quality.

    Returns
    -------
    matrices : `part`, `first`, `second` and `kappa`
    means : `part`, `n`, `groups` and the mean `kappa` with its interval: of form metrics with content metrics, of each
        group within itself, and of each with the judge
    """
    shown = [name for name in scores.values if not name.startswith("rule:")]
    annotators = choices(scores, pairs, parity)[shown]
    annotators.insert(0, JUDGE, pairs["verdict"].astype(float))
    groups = [scores.metrics["group"].get(name, "judge") for name in annotators]
    matrices, means = [], []
    for part in ("pooled", "high", "low"):
        where = (pairs["part"] == part).to_numpy() | (part == "pooled")
        if not where.any():
            continue
        bootstrap = Bootstrap(pairs.loc[where, "concept"])
        resampled = kappas(annotators[where], bootstrap)
        by_groups: dict[str, list[np.ndarray]] = {name: [] for name in _KAPPAS}
        for i, j in itertools.combinations(range(len(groups)), 2):
            for name in {f"{groups[i]} with {groups[j]}", f"{groups[j]} with {groups[i]}"} & by_groups.keys():
                by_groups[name].append(resampled[:, i, j])
        known = {name: np.mean(columns, axis=0) for name, columns in by_groups.items() if columns}
        if known:
            frame = bootstrap.summary("kappa", np.column_stack(list(known.values())), list(known)).dropna(
                subset="kappa"
            )
            means.append(frame.assign(part=part, n=int(where.sum())).rename_axis("groups").reset_index())
        np.fill_diagonal(resampled[0], 1.0)
        table = pd.DataFrame(resampled[0], index=annotators.columns, columns=annotators.columns)
        table = table.rename_axis("first").reset_index().melt("first", var_name="second", value_name="kappa")
        matrices.append(table.assign(part=part))
    return pd.concat(matrices, ignore_index=True), pd.concat(means, ignore_index=True) if means else pd.DataFrame()


def people_agreement(scores: Scores, people: pd.DataFrame) -> pd.DataFrame:
    """Compare the judge, each metric and the rule of position with people.

    A person is compared with the majority of the other people, where a tie counts half: the ceiling to expect of a
    metric. `majority` is the share of pairs on which a row chooses as most people do, `balanced` the mean of that share
    over the pairs of each verdict, and `person` the mean agreement with one person; each with its interval.
    """
    bootstrap = Bootstrap(people["concept"])
    votes = np.array(people["votes"].tolist(), dtype=float)
    n_people = votes.shape[1]
    chosen = choices(scores, people).assign(**{FIRST_RULE: 0.0})
    chosen.insert(0, JUDGE, people["verdict"])
    majority = _majority(votes.mean(axis=1))
    ones = votes.sum(axis=1)
    agreeing_people = ones * (ones - 1) + (n_people - ones) * (n_people - ones - 1)
    with np.errstate(invalid="ignore"):  # 0 / 0 where there is one person only
        others = (ones[:, None] - votes) / (n_people - 1)
        person_with_one = agreeing_people / (n_people * (n_people - 1))
    person_with_others = 1 - np.abs(votes - _majority(others)).mean(axis=1)
    hits = 1 - np.abs(chosen.to_numpy() - majority[:, None])
    with_one = 1 - np.abs(chosen.to_numpy()[:, :, None] - votes[:, None, :]).mean(axis=2)
    names = [PERSON, *chosen]
    balanced = bootstrap.balanced(hits, majority)
    summaries = (
        bootstrap.summary("majority", bootstrap.means(np.column_stack([person_with_others, hits])), names),
        bootstrap.summary("balanced", balanced, chosen.columns),
        bootstrap.summary("person", bootstrap.means(np.column_stack([person_with_one, with_one])), names),
    )
    return pd.concat(summaries, axis=1).rename_axis("metric").reset_index()


def _majority(shares: np.ndarray) -> np.ndarray:
    return np.sign(shares - 0.5) / 2 + 0.5


def originals_above(scores: Scores, kinds: pd.DataFrame) -> pd.DataFrame:
    """Say how often each metric ranks the original above each poorer kind of the same concept, ties counting half."""
    values = (scores.values * scores.metrics["sign"]).to_numpy()
    frames = []
    for kind in [name for name in POORER if (kinds["kind"] == name).any()]:
        for generator, rows in kinds.groupby("generator", sort=False):
            numbers = rows.pivot(index="concept", columns="kind", values="set").get([ORIGINAL, kind])
            if numbers is not None:
                bootstrap = Bootstrap(numbers.index)
                wins = 1 - second_is_higher(*(values[numbers[name]] for name in (ORIGINAL, kind)))
                frame = bootstrap.summary("share", bootstrap.means(wins), scores.values.columns)
                frames.append(frame.assign(generator=generator, kind=kind).rename_axis("metric").reset_index())
    return pd.concat(frames, ignore_index=True)


def distributions(scores: Scores, labels: dict[str, list[int]]) -> pd.DataFrame:
    """Describe the scores of the sets that bear each label: n, mean, std, min, q1, median, q3 and max."""
    frames = []
    values = scores.values[[name for name in scores.values if not name.startswith("rule:")]]
    for label, members in labels.items():
        summary = (
            values.iloc[members].describe().T.set_axis(["n", "mean", "std", "min", "q1", "median", "q3", "max"], axis=1)
        )
        frames.append(summary.assign(label=label).rename_axis("metric").reset_index())
    return pd.concat(frames, ignore_index=True)
