"""The tables of an evaluation, as data frames whose cells are text."""

from typing import Any

import pandas as pd

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE, PERSON
from text_metrics.commands.meta_eval.pairs import POORER
from text_metrics.commands.shared.formats import NONE, number

# Labels of sets as tables show them, in order.
LABELS = {"original": "original", "para_a": "Para-1", "para_b": "Para-2", "para_c": "Para-3"} | POORER
LABELS |= {"noun_shuffle": "shuffled nouns", "random_shuffle": "shuffled words"}
# The rows and kinds of the short tables.
_SHORT = ("self-BLEU-3", "Chamfer", "VS-Embed-0.5", "GRUEN × VS-Embed-0.5")
_SHORT_KINDS = ("nonsensical", "shuffle_nouns", "shuffle", "para_c")
MARK = "†"
NOTES = (
    f"{MARK} Rated by `gruen`, whose compact backbone was trained on shuffled words and shuffled nouns, among other "
    "corruptions.",
    "* Significantly worse than the best metric of the column (p < 0.05, paired randomization).",
)
Results = dict[str, pd.DataFrame]


def tables(results: Results) -> Results:
    """Make all tables that the results allow, by name; what matters most first."""
    made: Results = {}
    if "originals" in results:
        made |= _qualities(results["originals"])
    if "people" in results:
        made |= _people(results["people"])
    if "agreement" in results:
        made |= _agreement(results["agreement"])
        made |= _kappa(results["kappa_means"], results["kappa"])
    if "distributions" in results:
        made["distributions"] = _distributions(results["distributions"])
    return made | {"signatures": results["signatures"]}


def shown(name: str) -> str:
    """Mark the name of a row that depends on ratings by `gruen`."""
    return f"{name} {MARK}" if "GRUEN" in name else name


def percent(row: Any, key: str, ends: bool = True, mark: str = "", signed: bool = False) -> str:
    """Format a share of a row in percent, with its interval if there is one."""
    value, low, high = (100 * row[name] for name in (key, f"{key}_low", f"{key}_high"))
    if pd.isna(value):
        return NONE
    interval = f" [{number(low, 1, signed)}, {number(high, 1, signed)}]" if ends and not pd.isna(low) else ""
    return f"{number(value, 1, signed)}{mark}{interval}"


def _column(frame: pd.DataFrame, metrics: list[str], key: str, **options: Any) -> list[str]:
    return [percent(row, key, **options) for _, row in frame.set_index("metric").loc[metrics].iterrows()]


def _wide(frame: pd.DataFrame, index: str, columns: str, texts: list[str], corner: str) -> pd.DataFrame:
    """Lay out texts by the values of two columns, in the order in which these come first."""
    wide = frame.assign(text=texts).pivot(index=index, columns=columns, values="text").fillna("")
    wide = wide.loc[frame[index].unique(), frame[columns].unique()]
    return wide.rename(index=shown, columns=shown).rename_axis(corner).reset_index().rename_axis(None, axis=1)


def _qualities(originals: pd.DataFrame) -> Results:
    metrics, generators = list(originals["metric"].unique()), originals["generator"].unique()
    chosen = [name for name in metrics if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]
    short = {f"original above, %: {' / '.join(generators)}": list(map(shown, chosen))}
    for kind in [name for name in _SHORT_KINDS if name in set(originals["kind"])]:
        shares = originals[originals["kind"] == kind].groupby("metric")["share"]
        texts = [" / ".join(number(100 * share, 0) for share in shares.get_group(name)) for name in chosen]
        short[POORER[kind]] = texts
    full = originals.assign(column=originals["kind"].map(POORER) + ", " + originals["generator"])
    texts = [percent(row, "share") for _, row in full.iterrows()]
    return {
        "qualities": pd.DataFrame(short),
        "qualities-all": _wide(full, "metric", "column", texts, "original above, %"),
    }


def _people(people: pd.DataFrame) -> Results:
    keys = {"majority": "with the majority vote", "balanced": "balanced agreement", "person": "with one person"}
    chosen = [name for name in (PERSON, JUDGE, *_SHORT, FIRST_RULE) if name in set(people["metric"])]
    made = {}
    for table, metrics in (("people", chosen), ("people-all", list(people["metric"]))):
        columns = {head: _column(people, metrics, key, ends=table != "people") for key, head in keys.items()}
        made[table] = pd.DataFrame({"agreement, %": list(map(shown, metrics)), **columns})
    return made


def _agreement(agreement: pd.DataFrame) -> Results:
    metrics, cells = list(agreement["metric"].unique()), list(agreement["cell"].unique())
    whole = [name for name in cells if name.endswith(", all") and name.replace(", all", ", high") not in cells]
    narrow = [name for name in cells if name.endswith(", high")] + whole or cells
    chosen = [name for name in (*_SHORT, FIRST_RULE, "rule: shorter set") if name in metrics]
    judged = list(agreement.loc[agreement["group"] != "rule", "metric"].unique())
    short: dict[str, list[str]] = {}
    margins = {"points": list(map(shown, judged))}
    full = {kind: {"%": list(map(shown, metrics))} for kind in ("clear", "all")}
    marks = ((agreement["group"] != "rule") & (agreement["p_against_best"] < 0.05)).map({True: "*", False: ""})
    for (cell, kind), frame in agreement.assign(mark=marks).groupby(["cell", "pairs"], sort=False):
        head = f"{cell} ({frame['n'].iloc[0]})"
        marked = [percent(row, "accuracy", mark=row["mark"]) for _, row in frame.iterrows()]
        full[kind] |= {f"{head}, accuracy": marked, f"{head}, balanced": _column(frame, metrics, "balanced")}
        if kind == "all":
            short[cell] = _column(frame, chosen, "balanced", ends=False)
            short[cell].insert(0, head.removeprefix("commongen_"))
        elif "margin" in frame and frame["margin"].notna().any():
            rule = frame["rule"].iloc[0].removeprefix("rule: ")
            margins[f"{cell}: above {rule}"] = _column(frame, judged, "margin", signed=True)
    columns = {head: texts for head, *texts in (short[cell] for cell in narrow)}
    made = {"agreement": pd.DataFrame({"balanced accuracy, %": list(map(shown, chosen)), **columns})}
    made |= {f"agreement-{kind}": pd.DataFrame(columns) for kind, columns in full.items()}
    return made | {"margins": pd.DataFrame(margins)}


def _kappa(means: pd.DataFrame, kappa: pd.DataFrame) -> Results:
    parts = means.assign(part=means["part"] + " (" + means["n"].astype(str) + ")")
    short = _wide(parts, "groups", "part", [percent(row, "kappa") for _, row in means.iterrows()], "mean kappa × 100")
    frames = []
    for part, frame in kappa.groupby("part", sort=False):
        texts = ["" if pd.isna(value) else number(value, 2) for value in frame["kappa"]]
        frames.append(_wide(frame, "first", "second", texts, ""))
        frames[-1].insert(1, "part", part)
    return {"kappa": short, "kappa-all": pd.concat(frames)}


def _distributions(distributions: pd.DataFrame) -> pd.DataFrame:
    """Lay out the median and the middle half of the scores of the sets that bear each label."""
    texts = [f"{box['median']:.3g} [{box['q1']:.3g}, {box['q3']:.3g}]" for _, box in distributions.iterrows()]
    wide = _wide(distributions, "metric", "label", texts, "metric")
    # Known labels come first.
    known = [label for label in LABELS if label in wide]
    return wide[["metric", *known, *wide.columns.drop(["metric", *known])]].rename(columns=LABELS)
