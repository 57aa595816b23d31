"""The tables of an evaluation, as data frames whose cells are text."""

from collections.abc import Sequence
from typing import Any

import pandas

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE, PERSON
from text_metrics.commands.meta_eval.kinds import POORER

# In the order of the picture of scores.
LABELS = {
    "original": "original",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
    "nonsensical": "nonsensical",
    "noun_shuffle": "shuffled nouns",
    "random_shuffle": "shuffled words",
}
# The rows and kinds of the short tables.
_SHORT = ("self-BLEU-3", "Chamfer", "VS-Embed-0.5", "GRUEN × VS-Embed-0.5")
_SHORT_RULES = (FIRST_RULE, "rule: shorter set")
_SHORT_KINDS = ("nonsensical", "shuffle_nouns", "shuffle", "para_c")
MARK = "†"
NOTES = (
    f"{MARK} Rated by `gruen`, whose compact backbone was trained on shuffled words and shuffled nouns, among other "
    "corruptions.",
    "* Significantly worse than the best metric of the column (p < 0.05, paired randomization).",
)


def tables(report: dict[str, Any]) -> dict[str, pandas.DataFrame]:
    """Make all tables that the results allow, by name; what matters most first."""
    made: dict[str, pandas.DataFrame] = {}
    if "kinds" in report:
        made |= _kinds(report["kinds"])
    if "people" in report:
        made |= _people(report["people"])
    if "metrics" in report:
        made |= _judge(report)
        made |= _kappa(report["kappa"])
    if labels_of(report):
        made["distributions"] = _distributions(report)
    metrics = report.get("metrics") or report.get("kinds", {}).get("metrics", [])
    signed = [[metric["name"], metric["signature"]] for metric in metrics if metric["signature"]]
    made["signatures"] = pandas.DataFrame(signed, columns=["metric", "signature"])
    return made


def _frame(rows: Sequence[Sequence[str]]) -> pandas.DataFrame:
    return pandas.DataFrame(rows[1:], columns=list(rows[0]))


def _kinds(kinds: dict[str, Any]) -> dict[str, pandas.DataFrame]:
    names = [generator["name"] for generator in kinds["generators"]]
    rows = {row["name"]: row for row in kinds["metrics"]}
    short_kinds = [kind for kind in _SHORT_KINDS if kind in kinds["kinds"]]
    short = [[f"original above, %: {' / '.join(names)}", *(POORER[kind] for kind in short_kinds)]]
    for name in [name for name in rows if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]:
        above = rows[name]["above"]
        short.append(
            [
                shown(name),
                *(" / ".join(f"{100 * above[each][kind]['share']:.0f}" for each in names) for kind in short_kinds),
            ]
        )
    full = [["original above, %", *(f"{POORER[kind]}, {name}" for kind in kinds["kinds"] for name in names)]]
    for name, row in rows.items():
        results = [row["above"][each][kind] for kind in kinds["kinds"] for each in names]
        full.append([shown(name), *(interval(result["share"], result["interval"]) for result in results)])
    return {"qualities": _frame(short), "qualities-all": _frame(full)}


def _people(people: list[dict[str, Any]]) -> dict[str, pandas.DataFrame]:
    by_name = {row["name"]: row for row in people}
    keys = ("majority", "balanced", "person")
    head = ["agreement, %", "with the majority vote", "balanced agreement", "with one person"]
    chosen = [by_name[name] for name in (PERSON, JUDGE, *_SHORT, FIRST_RULE) if name in by_name]
    short = [head, *([shown(row["name"]), *(interval(row[key], None) for key in keys)] for row in chosen)]
    full = [head]
    for row in people:
        full.append([shown(row["name"]), *(interval(row[key], row[f"{key}_interval"]) for key in keys)])
    return {"people": _frame(short), "people-all": _frame(full)}


def _judge(report: dict[str, Any]) -> dict[str, pandas.DataFrame]:
    names = [cell["name"] for cell in report["cells"]]
    whole = [name for name in names if name.endswith(", all") and name.replace(", all", ", high") not in names]
    narrow = [name for name in names if name.endswith(", high")] + whole or names
    rows = {row["name"]: row for row in report["metrics"]}
    counts = {cell["name"]: cell["pairs"] for cell in report["cells"]}
    short = [["balanced accuracy, %", *(f"{cell.removeprefix('commongen_')} ({counts[cell]})" for cell in narrow)]]
    for row in [rows[name] for name in (*_SHORT, *_SHORT_RULES) if name in rows]:
        short.append([shown(row["name"]), *(interval(row["cells"][cell]["balanced"], None) for cell in narrow)])
    return {
        "agreement": _frame(short),
        "agreement-clear": _accuracies(report, "clear_cells"),
        "agreement-all": _accuracies(report, "cells"),
        "margins": _margins(report),
    }


def _accuracies(report: dict[str, Any], cells: str) -> pandas.DataFrame:
    """Lay out accuracies: a row for each metric, and for each part of the data accuracy and balanced accuracy."""
    count = "pairs" if cells == "cells" else "clear"
    columns = [cell for cell in report["cells"] if cell["name"] in report["metrics"][0][cells]]
    kinds = ("accuracy", "balanced")
    rows = [["%", *(f"{cell['name']} ({cell[count]}), {kind}" for cell in columns for kind in kinds)]]
    for metric in report["metrics"]:
        row = [shown(metric["name"])]
        for cell in columns:
            result = metric[cells][cell["name"]]
            p = result["p_against_best"]
            mark = "*" if metric["group"] != "rule" and p is not None and p < 0.05 else ""
            row.append(interval(result["accuracy"], result["interval"], mark))
            row.append(interval(result["balanced"], result["balanced_interval"]))
        rows.append(row)
    return _frame(rows)


def _margins(report: dict[str, Any]) -> pandas.DataFrame:
    metrics = [metric for metric in report["metrics"] if metric["group"] != "rule"]
    cells = metrics[0]["clear_cells"] if metrics else {}
    columns = [name for name, result in cells.items() if result["margin"]]
    rules = [cells[name]["margin"]["rule"].removeprefix("rule: ") for name in columns]
    rows = [["points", *(f"{name}: above {rule}" for name, rule in zip(columns, rules, strict=True))]]
    for metric in metrics:
        margins = [metric["clear_cells"][name]["margin"] for name in columns]
        cells_of_row = (interval(margin["difference"], margin["interval"], sign="+") for margin in margins)
        rows.append([shown(metric["name"]), *cells_of_row])
    return _frame(rows)


def _kappa(kappa: dict[str, Any]) -> dict[str, pandas.DataFrame]:
    parts = list(kappa["matrices"])
    keys = list(dict.fromkeys(key for by_pairing in kappa["groups"].values() for key in by_pairing))
    rows = [["mean kappa × 100", *(f"{part} ({kappa['pairs'][part]})" for part in parts)]]
    for key in keys:
        results = [kappa["groups"][part].get(key) for part in parts]
        rows.append([key, *("" if each is None else interval(each["kappa"], each["interval"]) for each in results)])
    matrices = [["", "part", *map(shown, kappa["names"])]]
    for part in parts:
        for name, row in zip(kappa["names"], kappa["matrices"][part], strict=True):
            matrices.append([shown(name), part, *("" if value is None else f"{value:.2f}" for value in row)])
    return {"kappa": _frame(rows), "kappa-all": _frame(matrices)}


def labels_of(report: dict[str, Any]) -> list[str]:
    """List the labels of sets, known ones first."""
    labels = dict.fromkeys(label for by_label in report.get("distributions", {}).values() for label in by_label)
    known = list(LABELS.values())

    def place(label: str) -> tuple[int, str]:
        name = LABELS.get(label, label)
        return (known.index(name) if name in known else len(known), label)

    return sorted(labels, key=place)


def _distributions(report: dict[str, Any]) -> pandas.DataFrame:
    """Lay out the median and the middle half of the scores of the sets that bear each label."""
    labels = labels_of(report)
    rows = [["metric", *(LABELS.get(label, label) for label in labels)]]
    for name, by_label in report["distributions"].items():
        boxes = [by_label[label] for label in labels]
        rows.append([shown(name), *(f"{box['median']:.3g} [{box['q1']:.3g}, {box['q3']:.3g}]" for box in boxes)])
    return _frame(rows)


def shown(name: str) -> str:
    """Mark the name of a row that depends on ratings by `gruen`."""
    return f"{name} {MARK}" if "GRUEN" in name else name


def interval(value: float | None, ends: Sequence[float] | None, mark: str = "", sign: str = "") -> str:
    """Format a share in percent, with its interval if there is one."""
    if value is None:
        return "–"
    bounds = "" if ends is None else f" [{100 * ends[0]:{sign}.1f}, {100 * ends[1]:{sign}.1f}]"
    return f"{100 * value:{sign}.1f}{mark}{bounds}"
