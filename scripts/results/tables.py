"""The tables of a meta-evaluation, as data frames whose cells are text."""

import pandas as pd

from text_metrics.meta_eval.agreement import FIRST_RULE, JUDGE, PERSON
from text_metrics.reporting.formats import NONE, number

# Labels of sets as tables show them, in order.
LABELS = {
    "original": "original",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
    "nonsensical": "nonsensical",
    "shuffle_nouns": "shuffled nouns",
    "shuffle": "shuffled words",
}
# The rows of the short tables.
_SHORT = ["self-BLEU-3", "Chamfer", "VS-Embed-0.5", "GRUEN × VS-Embed-0.5"]
# Rated by `gruen`, whose compact backbone was trained on shuffled words and shuffled nouns, among other corruptions.
MARK = "†"
Results = dict[str, pd.DataFrame]


def tables(results: Results) -> Results:
    """Make the tables of all results, by name."""
    made = _people(results["people"]) | _agreement(results["agreement"])
    made |= _kappa(results["kappa_means"], results["kappa"])
    return made | {"distributions": _distributions(results["distributions"]), "signatures": results["signatures"]}


def shown(name: str) -> str:
    """Mark the name of a row that depends on ratings by `gruen`."""
    return f"{name} {MARK}" if "GRUEN" in name else name


def percents(frame: pd.DataFrame, key: str, ends: bool = True, signed: bool = False, mark: str = "") -> list[str]:
    """Format shares in percent, with intervals if there are any, and the column `mark`."""
    texts = []
    for row in frame.to_dict("records"):
        value, low, high = (number(100 * row[name], 1, signed) for name in (key, f"{key}_low", f"{key}_high"))
        interval = f" [{low}, {high}]" if ends and not pd.isna(row[f"{key}_low"]) else ""
        texts.append(NONE if pd.isna(row[key]) else f"{value}{row.get(mark, '')}{interval}")
    return texts


def wide(frame: pd.DataFrame, index: str, columns: str, texts: list[str], corner: str) -> pd.DataFrame:
    """Lay out texts by the values of two columns, in the order in which these come first."""
    table = frame.assign(text=texts).pivot(index=index, columns=columns, values="text").fillna("")
    table = table.loc[frame[index].unique(), frame[columns].unique()]
    return table.rename(index=shown, columns=shown).rename_axis(corner).reset_index().rename_axis(None, axis=1)


def _people(people: pd.DataFrame) -> Results:
    keys = {"majority": "with the majority vote", "balanced": "balanced agreement", "person": "with one person"}
    short = people[people["metric"].isin([PERSON, JUDGE, *_SHORT, FIRST_RULE])]
    made = {}
    for table, rows in (("people", short), ("people-all", people)):
        columns = {head: percents(rows, key, ends=table != "people") for key, head in keys.items()}
        made[table] = pd.DataFrame({"agreement, %": list(map(shown, rows["metric"])), **columns})
    return made


def _agreement(agreement: pd.DataFrame) -> Results:
    worse = agreement["p_against_best"] < 0.05
    head = agreement["cell"] + " (" + agreement["n"].astype(str) + ")"
    frame = agreement.assign(mark=worse.map({True: "*", False: ""}), head=head)
    every, clear = (frame[frame["pairs"] == kind] for kind in ("all", "clear"))

    cells = list(every["cell"].unique())
    whole = [name for name in cells if name.replace(", all", ", high") in cells and name.endswith(", all")]
    narrow = [name for name in cells if name not in whole and not name.endswith(", low")]
    metrics = [name for name in (*_SHORT, FIRST_RULE, "rule: shorter set") if name in set(every["metric"])]
    rows = every[every["cell"].isin(narrow)].set_index("metric").loc[metrics].reset_index()
    rows["head"] = rows["head"].str.removeprefix("commongen_")
    made = {"agreement": wide(rows, "metric", "head", percents(rows, "balanced", ends=False), "balanced accuracy, %")}

    for kind, of_kind in (("all", every), ("clear", clear)):
        columns = {"%": list(map(shown, of_kind["metric"].unique()))}
        for name, rows in of_kind.groupby("head", sort=False):
            columns[f"{name}, accuracy"] = percents(rows, "accuracy", mark="mark")
            columns[f"{name}, balanced"] = percents(rows, "balanced")
        made[f"agreement-{kind}"] = pd.DataFrame(columns)

    above = clear["cell"] + ": above " + clear["rule"].str.removeprefix("rule: ")
    rows = clear.assign(head=above)[clear["margin"].notna()]
    return made | {"margins": wide(rows, "metric", "head", percents(rows, "margin", signed=True), "points")}


def _kappa(means: pd.DataFrame, kappa: pd.DataFrame) -> Results:
    parts = means.assign(part=means["part"] + " (" + means["n"].astype(str) + ")")
    frames = []
    for part, frame in kappa.groupby("part", sort=False):
        texts = ["" if pd.isna(value) else number(value, 2) for value in frame["kappa"]]
        frames.append(wide(frame, "first", "second", texts, ""))
        frames[-1].insert(1, "part", part)
    short = wide(parts, "groups", "part", percents(means, "kappa"), "mean kappa × 100")
    return {"kappa": short, "kappa-all": pd.concat(frames)}


def _distributions(distributions: pd.DataFrame) -> pd.DataFrame:
    """Lay out the median and the middle half of the scores of the sets that bear each label."""
    texts = [f"{box['median']:.3g} [{box['q1']:.3g}, {box['q3']:.3g}]" for _, box in distributions.iterrows()]
    return wide(distributions, "metric", "label", texts, "metric")[["metric", *LABELS]].rename(columns=LABELS)
