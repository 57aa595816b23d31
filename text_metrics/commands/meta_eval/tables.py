"""The tables of an evaluation, as data frames whose cells are text."""

from typing import Any

import pandas as pd

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE, PERSON
from text_metrics.commands.meta_eval.pairs import POORER
from text_metrics.commands.shared.formats import NONE, number

# Labels of sets as tables show them, in order.
LABELS = {"original": "original", "para_a": "Para-1", "para_b": "Para-2", "para_c": "Para-3"}
LABELS |= {"nonsensical": "nonsensical", "noun_shuffle": "shuffled nouns", "random_shuffle": "shuffled words"}
LABELS |= {"shuffle_nouns": "shuffled nouns", "shuffle": "shuffled words"}
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
        made |= {"kappa": _kappa(results["kappa_means"]), "kappa-all": _kappa_all(results["kappa"])}
    if "distributions" in results:
        made["distributions"] = _distributions(results["distributions"])
    return made | {"signatures": results["signatures"]}


def shown(name: str) -> str:
    """Mark the name of a row that depends on ratings by `gruen`."""
    return f"{name} {MARK}" if "GRUEN" in name else name


def percent(row: Any, key: str, with_interval: bool = True, mark: str = "", signed: bool = False) -> str:
    """Format a share of a row in percent, with its interval if there is one."""
    value, low, high = (100 * row[name] for name in (key, f"{key}_low", f"{key}_high"))
    if pd.isna(value):
        return NONE
    ends = f" [{number(low, 1, signed)}, {number(high, 1, signed)}]" if with_interval and not pd.isna(low) else ""
    return f"{number(value, 1, signed)}{mark}{ends}"


def _column(frame: pd.DataFrame, metrics: list[str], key: str, **options: Any) -> list[str]:
    by_metric = frame.set_index("metric").loc[metrics]
    return [percent(row, key, **options) for _, row in by_metric.iterrows()]


def _qualities(originals: pd.DataFrame) -> Results:
    metrics, generators = list(originals["metric"].unique()), list(originals["generator"].unique())
    head = f"original above, %: {' / '.join(generators)}"
    chosen = [name for name in metrics if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]
    short, full = {head: list(map(shown, chosen))}, {"original above, %": list(map(shown, metrics))}
    shares = originals.set_index(["metric", "generator", "kind"])["share"]
    for kind in [name for name in POORER if name in set(originals["kind"])]:
        of_kind = originals[originals["kind"] == kind]
        for generator in generators:
            of_both = of_kind[of_kind["generator"] == generator]
            full[f"{POORER[kind]}, {generator}"] = _column(of_both, metrics, "share")
    for kind in [name for name in _SHORT_KINDS if name in set(originals["kind"])]:
        short[POORER[kind]] = [
            " / ".join(number(100 * shares[name, generator, kind], 0) for generator in generators) for name in chosen
        ]
    return {"qualities": pd.DataFrame(short), "qualities-all": pd.DataFrame(full)}


def _people(people: pd.DataFrame) -> Results:
    keys = {"majority": "with the majority vote", "balanced": "balanced agreement", "person": "with one person"}
    chosen = [name for name in (PERSON, JUDGE, *_SHORT, FIRST_RULE) if name in set(people["metric"])]
    made = {}
    for table, metrics in (("people", chosen), ("people-all", list(people["metric"]))):
        columns = {head: _column(people, metrics, key, with_interval=metrics != chosen) for key, head in keys.items()}
        made[table] = pd.DataFrame({"agreement, %": list(map(shown, metrics)), **columns})
    return made


def _agreement(agreement: pd.DataFrame) -> Results:
    metrics, cells = list(agreement["metric"].unique()), list(agreement["cell"].unique())
    frames = dict(list(agreement.groupby(["cell", "pairs"], sort=False)))
    whole = [name for name in cells if name.endswith(", all") and name.replace(", all", ", high") not in cells]
    narrow = [name for name in cells if name.endswith(", high")] + whole or cells
    chosen = [name for name in (*_SHORT, FIRST_RULE, "rule: shorter set") if name in metrics]
    short = {"balanced accuracy, %": list(map(shown, chosen))}
    for cell in narrow:
        frame = frames[cell, "all"]
        head = f"{cell.removeprefix('commongen_')} ({frame['n'].iloc[0]})"
        short[head] = _column(frame, chosen, "balanced", with_interval=False)
    made = {"agreement": pd.DataFrame(short)}
    judged = list(agreement.loc[agreement["group"] != "rule", "metric"].unique())
    margins = {"points": list(map(shown, judged))}
    for table, kind in (("agreement-clear", "clear"), ("agreement-all", "all")):
        full = {"%": list(map(shown, metrics))}
        for cell, frame in [(cell, frames[cell, kind]) for cell in cells if (cell, kind) in frames]:
            head = f"{cell} ({frame['n'].iloc[0]})"
            by_metric = frame.set_index("metric").loc[metrics]
            full[f"{head}, accuracy"] = [
                percent(row, "accuracy", mark="*" if row["group"] != "rule" and row["p_against_best"] < 0.05 else "")
                for _, row in by_metric.iterrows()
            ]
            full[f"{head}, balanced"] = _column(frame, metrics, "balanced")
            if kind == "clear" and "margin" in frame and frame["margin"].notna().any():
                rule = frame["rule"].iloc[0].removeprefix("rule: ")
                margins[f"{cell}: above {rule}"] = _column(frame, judged, "margin", signed=True)
        made[table] = pd.DataFrame(full)
    return made | {"margins": pd.DataFrame(margins)}


def _kappa(means: pd.DataFrame) -> pd.DataFrame:
    rows = list(dict.fromkeys(means["groups"]))
    columns = {"mean kappa × 100": rows}
    for (part, n), frame in means.groupby(["part", "n"], sort=False):
        texts = {row["groups"]: percent(row, "kappa") for _, row in frame.iterrows()}
        columns[f"{part} ({n})"] = [texts.get(name, "") for name in rows]
    return pd.DataFrame(columns)


def _kappa_all(kappa: pd.DataFrame) -> pd.DataFrame:
    frames = []
    for part, frame in kappa.groupby("part", sort=False):
        names = list(frame["first"].unique())
        table = frame.pivot(index="first", columns="second", values="kappa").loc[names, names]
        texts = table.map(lambda value: "" if pd.isna(value) else number(value, 2)).rename(columns=shown)
        texts.insert(0, "part", part)
        texts.insert(0, "", list(map(shown, names)))
        frames.append(texts)
    return pd.concat(frames)


def ordered_labels(distributions: pd.DataFrame) -> list[str]:
    """List the labels of sets, known ones first, in order."""
    known = list(dict.fromkeys(LABELS.values()))
    labels = distributions["label"].unique()
    return sorted(labels, key=lambda label: (known.index(LABELS[label]) if label in LABELS else len(known), label))


def _distributions(distributions: pd.DataFrame) -> pd.DataFrame:
    """Lay out the median and the middle half of the scores of the sets that bear each label."""
    metrics = list(distributions["metric"].unique())
    columns = {"metric": list(map(shown, metrics))}
    for label in ordered_labels(distributions):
        boxes = distributions[distributions["label"] == label].set_index("metric").loc[metrics]
        columns[LABELS.get(label, label)] = [
            f"{box['median']:.3g} [{box['q1']:.3g}, {box['q3']:.3g}]" for _, box in boxes.iterrows()
        ]
    return pd.DataFrame(columns)
