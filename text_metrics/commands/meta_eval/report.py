"""The sections of the report: titles, what they show, and their tables. Some tables are blocks for other pages."""

from collections.abc import Callable
from typing import Any, NamedTuple

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE, PERSON
from text_metrics.commands.meta_eval.generated_sets import POORER
from text_metrics.commands.meta_eval.pairs import VAGUE
from text_metrics.commands.shared.pages import Section, Table

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
# The rows and kinds of the short tables, which other pages show.
_SHORT = ("self-BLEU-3", "Chamfer", "VS-Embed-0.5", "GRUEN × VS-Embed-0.5")
_SHORT_RULES = (FIRST_RULE, "rule: shorter set")
_SHORT_KINDS = ("nonsensical", "shuffle_nouns", "shuffle", "para_c")
MARK = "†"
NOTE = (
    f"{MARK} Rated by the compact backbone of `gruen`, which was trained on shuffled words and shuffled nouns, among "
    "other corruptions."
)
TRAINING = (
    f"Rows with a {MARK} use ratings by `gruen` with its compact backbone. It was trained to tell sentences of public "
    "corpora from the same sentences corrupted: shuffled words, shuffled nouns, dropped, moved, repeated, inserted and "
    "replaced words, wrong agreement, number, case and verb forms, spliced and truncated sentences."
)


class Claims(NamedTuple):
    """What is known of the data of a report beyond their files; by default nothing.

    source : where the data are from
    prefix : of the names of data sets, left out in short tables
    training : what the ratings were trained on, as far as it concerns the data
    kinds, verdicts, raters, kappa : added to the text of these sections
    sections : sections about the data, after those about the judge
    mark : puts the name of a block around its table, for other pages to find it
    """

    source: str = ""
    prefix: str = ""
    training: str = ""
    kinds: str = ""
    verdicts: str = ""
    raters: str = ""
    kappa: str = ""
    sections: Callable[[dict[str, Any]], list[Section]] = lambda report: []
    mark: Callable[[str, str], str] = lambda block, text: text


NO_CLAIMS = Claims()


def sections(report: dict[str, Any], claims: Claims = NO_CLAIMS) -> list[Section]:
    """List the parts of a report, what matters most first."""
    parts = []
    if "kinds" in report:
        parts.append(_kinds_section(report, claims))
    if "people" in report:
        parts.append(_people_section(report))
    if "metrics" in report:
        parts += [*_judge_sections(report, claims), *claims.sections(report)]
    if any(rater["auc"] or rater["judge"] for rater in report["raters"]):
        parts.append(_rater_section(report, claims))
    if "kappa" in report:
        parts.append(_kappa_section(report, claims))
    if labels_of(report):
        parts.append(_label_section(report))
    parts.append(_settings_section(report))
    failures = report["settings"]["failures"]
    if failures:
        parts.append(Section("Left out", "", [("", [["metric and reason"], *([failure] for failure in failures)])]))
    return parts


def _kinds_section(report: dict[str, Any], claims: Claims) -> Section:
    kinds = report["kinds"]
    names = [generator["name"] for generator in kinds["generators"]]
    counts = ", ".join(f"{generator['name']} {generator['concepts']}" for generator in kinds["generators"])
    rows = {row["name"]: row for row in kinds["metrics"]}
    short_kinds = [kind for kind in _SHORT_KINDS if kind in kinds["kinds"]]
    short = [[f"original above, %: {' / '.join(names)}", *(POORER[kind] for kind in short_kinds)]]
    for name in [name for name in rows if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]:
        above = rows[name]["above"]
        cells = [
            " / ".join(f"{100 * above[generator][kind]['share']:.0f}" for generator in names) for kind in short_kinds
        ]
        short.append([shown(rows[name]), *cells])
    full = []
    for kind in kinds["kinds"]:
        table = [["metric", *names]]
        for row in rows.values():
            table.append([shown(row), *(_percent(row["above"][generator][kind], "share") for generator in names)])
        full.append((f"Original above {POORER[kind]}, %:", table))
    text = (
        "Sets of different quality for the same concepts: how often each metric ranks the original set above a poorer "
        f"one, in %; 50 is chance, ties count half. {_sentence(claims.kinds)}Concepts drawn of each generator: "
        f"{counts}."
    )
    return Section("Across qualities", text, [("", short), *full], "qualities", "qualities")


def _people_section(report: dict[str, Any]) -> Section:
    people = report["people"]
    by_name = {row["name"]: row for row in people}
    keys = ("majority", "balanced", "person")
    head = ["agreement, %", "with most people", "the same, balanced", "with one person"]
    full = [head, *([shown(with_signature(row, report)), *(_percent(row, key) for key in keys)] for row in people)]
    chosen = [by_name[name] for name in (PERSON, JUDGE, *_SHORT, FIRST_RULE) if name in by_name]
    short = [head, *([shown(with_signature(row, report)), *(_point(row[key]) for key in keys)] for row in chosen)]
    text = (
        f"Pairs that {by_name[PERSON]['people']} people judged: the share of pairs on which each annotator agrees with "
        "most people, the same balanced over the two verdicts, and its mean agreement with one person. The first row "
        "compares a person with the others (a tie of the others counts half): the ceiling to expect."
    )
    return Section(
        "Agreement with people", text, [("", short), ("All rows, with intervals:", full)], "people", "people"
    )


def with_signature(row: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Find the row of a name that has its signature; the row itself if there is none."""
    for group in (report.get("metrics", []), report.get("kinds", {}).get("metrics", [])):
        for metric in group:
            if metric["name"] == row["name"]:
                return metric
    return row


def _judge_sections(report: dict[str, Any], claims: Claims) -> list[Section]:
    settings = report["settings"]
    names = [cell["name"] for cell in report["cells"]]
    whole = [name for name in names if name.endswith(", all") and name.replace(", all", ", high") not in names]
    narrow = [name for name in names if name.endswith(", high")] + whole or names
    rows = {row["name"]: row for row in report["metrics"]}
    counts = {cell["name"]: cell["pairs"] for cell in report["cells"]}
    short = [["balanced accuracy, %", *(f"{cell.removeprefix(claims.prefix)} ({counts[cell]})" for cell in narrow)]]
    for row in [rows[name] for name in (*_SHORT, *_SHORT_RULES) if name in rows]:
        short.append([shown(row), *(_point(row["cells"][cell]["balanced"]) for cell in narrow)])
    reading = (
        f"{100 * settings['level']:.0f} % bootstrap intervals; pairs about the same topic are drawn together. Ties "
        f"{settings['ties']}."
    )
    agreement = Section(
        "Agreement with the judge",
        f"How often each metric agrees with the judge, in %, with {reading} Balanced accuracy weights both verdicts "
        'equally: the rule "set 1" has 50. *All pairs* are those with a verdict; '
        f"{settings['left_out']} have none and are left out. *Clear pairs* are those whose scores by the judge differ "
        f"by {VAGUE} or more, or are unknown. {_sentence(claims.verdicts)}Rules are trivial baselines: {_RULES}.",
        [
            ("In short, all pairs of sets that are well written or of unknown quality:", short),
            ("Balanced accuracy, clear pairs:", _accuracies(report, "clear_cells", "balanced")),
            ("Accuracy, clear pairs:", _accuracies(report, "clear_cells", "accuracy")),
            ("Balanced accuracy, all pairs:", _accuracies(report, "cells", "balanced")),
            ("Accuracy, all pairs:", _accuracies(report, "cells", "accuracy")),
        ],
        "agreement",
        "agreement",
    )
    margins = Section(
        "Above the best trivial rule",
        "Balanced accuracy on clear pairs, minus that of the best rule of the column, in points. Where the interval "
        "includes 0, a rule that needs no metric does as well.",
        [("", _margins(report))],
    )
    return [agreement, margins]


def _sentence(text: str) -> str:
    return f"{text} " if text else ""


_RULES = '"nonsense wins" also reads how a set was made. "Alone" is the mean quality of a set'
WORSE = "An asterisk: significantly worse than the best metric of the column (p < 0.05, paired randomization)."


def _accuracies(report: dict[str, Any], cells: str, kind: str) -> Table:
    """Lay out accuracies: a row for each metric, a column for each part of the data."""
    interval = "interval" if kind == "accuracy" else "balanced_interval"
    count = "pairs" if cells == "cells" else "clear"
    columns = [cell for cell in report["cells"] if cell["name"] in report["metrics"][0][cells]]
    rows = [["metric", *(f"{cell['name']} ({cell[count]})" for cell in columns)]]
    for metric in report["metrics"]:
        row = [shown(metric)]
        for cell in columns:
            result = metric[cells][cell["name"]]
            p = result["p_against_best"]
            worse = kind == "accuracy" and metric["group"] != "rule" and p is not None and p < 0.05
            row.append(_interval(result[kind], result[interval], "*" * worse))
        rows.append(row)
    return rows


def _margins(report: dict[str, Any]) -> Table:
    metrics = [metric for metric in report["metrics"] if metric["group"] != "rule"]
    if not metrics:
        return [["metric"]]
    columns = [name for name, metric in metrics[0]["clear_cells"].items() if metric["margin"]]
    rules = [metrics[0]["clear_cells"][name]["margin"]["rule"].removeprefix("rule: ") for name in columns]
    rows = [["metric", *(f"{name}: above {rule}" for name, rule in zip(columns, rules, strict=True))]]
    for metric in metrics:
        cells = [metric["clear_cells"][name]["margin"] for name in columns]
        rows.append([shown(metric), *(_interval(cell["difference"], cell["interval"], sign="+") for cell in cells)])
    return rows


def _rater_section(report: dict[str, Any], claims: Claims) -> Section:
    raters = report["raters"]
    generators = list(raters[0]["auc"])
    kinds = list(next(iter(raters[0]["auc"].values()))) if generators else []
    tables = []
    if kinds:
        auc = [["AUC", *(f"{POORER[kind]}, {generator}" for kind in kinds for generator in generators)]]
        for rater in raters:
            cells = [rater["auc"][generator][kind] for kind in kinds for generator in generators]
            auc.append([shown(rater), *(_interval(cell["auc"], cell["interval"]) for cell in cells)])
        tables.append(("", auc))
    columns = list(raters[0]["judge"])
    if columns:
        judge = [["Spearman × 100", *(f"{name} ({raters[0]['judge'][name]['sets']} sets)" for name in columns)]]
        for rater in raters:
            cells = [rater["judge"][name] for name in columns]
            judge.append([shown(rater), *(_interval(cell["spearman"], cell["interval"]) for cell in cells)])
        caption = (
            "Correlation of a set's mean rating with the judge's rating of its quality, with 95 % intervals by the "
            "jackknife over sets (up to version 0.3.0, by the bootstrap):"
        )
        tables.append((caption, judge))
    text = (
        "How well a rating of single texts separates those of the original sets from those of the bad kinds: AUC × "
        f"100, 50 is chance. {_sentence(claims.raters)}`--quality FILE` adds ratings of your own."
    )
    return Section("Raters of quality", text, tables, "", "raters")


def _kappa_section(report: dict[str, Any], claims: Claims) -> Section:
    kappa = report["kappa"]
    parts = list(kappa["matrices"])
    keys = list(dict.fromkeys(key for by_pairing in kappa["groups"].values() for key in by_pairing))
    groups = [["mean kappa × 100", *(f"{part} ({kappa['pairs'][part]})" for part in parts)]]
    for key in keys:
        cells = [kappa["groups"][part].get(key) for part in parts]
        groups.append([key, *("" if cell is None else _interval(cell["kappa"], cell["interval"]) for cell in cells)])
    text = (
        "Agreement of the metrics with each other and with the judge beyond chance: 1 if two always choose the same "
        "set, 0 if no more often than chance. Form: n-gram metrics; content: metrics on embeddings. "
        f"{_sentence(claims.kappa)}Pooled over all pairs, and by quality."
    )
    tables = [("", groups)] if keys else []
    names = [shown(with_signature({"name": name}, report)) for name in kappa["names"]]
    tables += [(f"{part.capitalize()}:", _kappa_table(names, kappa["matrices"][part])) for part in parts]
    return Section("Cohen's kappa", text, tables, "kappa")


def _kappa_table(names: list[str], matrix: list[list[float | None]]) -> Table:
    """Lay out Cohen's kappa; columns bear the numbers of the rows."""
    rows = [
        [f"{i}. {name}", *("" if value is None else f"{value:.2f}" for value in row)]
        for i, (name, row) in enumerate(zip(names, matrix, strict=True), 1)
    ]
    return [["", *(f"{i}." for i in range(1, len(names) + 1))], *rows]


def labels_of(report: dict[str, Any]) -> list[str]:
    """List the labels of sets, known ones first."""
    labels = dict.fromkeys(label for by_label in report.get("distributions", {}).values() for label in by_label)

    def place(label: str) -> tuple[int, str]:
        known, shown = list(LABELS.values()), LABELS.get(label, label)
        return (known.index(shown) if shown in known else len(known), label)

    return sorted(labels, key=place)


def _label_section(report: dict[str, Any]) -> Section:
    labels = labels_of(report)
    rows = [["metric", *(LABELS.get(label, label) for label in labels)]]
    for name, by_label in report["distributions"].items():
        boxes = [by_label[label] for label in labels]
        cells = [f"{box['median']:.3g} [{box['q1']:.3g}, {box['q3']:.3g}]" for box in boxes]
        rows.append([shown(with_signature({"name": name}, report)), *cells])
    text = (
        "How each metric scores sets that were made in different ways: median, and the middle half in brackets. The "
        "whiskers of the picture reach from 5 to 95 % of the sets."
    )
    return Section("Scores by the way a set was made", text, [("", rows)], "labels")


def _settings_section(report: dict[str, Any]) -> Section:
    metrics = report.get("metrics") or report.get("kinds", {}).get("metrics", [])
    rows = [["metric", "more diverse", "signature"]]
    for metric in metrics:
        if metric["signature"]:
            rows.append([metric["name"], metric.get("more_diverse", ""), metric["signature"]])
    return Section("Settings", f"Files: {', '.join(report['settings']['files'])}.", [("", rows)])


def shown(row: dict[str, Any]) -> str:
    """Name a row, marked where its ratings come from the compact backbone."""
    return f"{row['name']} {MARK}" if "backbone:compact" in row.get("signature", "") else row["name"]


def _point(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _percent(result: dict[str, Any], key: str) -> str:
    return _interval(result[key], result.get(f"{key}_interval", result.get("interval")))


def _interval(value: float | None, interval: list[float] | None, mark: str = "", sign: str = "") -> str:
    if value is None:
        return "–"
    bounds = "" if interval is None else f" [{100 * interval[0]:{sign}.1f}, {100 * interval[1]:{sign}.1f}]"
    return f"{100 * value:{sign}.1f}{mark}{bounds}"


def terminal(report: dict[str, Any], claims: Claims = NO_CLAIMS) -> str:
    """Write the short form of each section as plain text."""
    lines = []
    for section in sections(report, claims):
        if section.title in ("Settings", "Scores by the way a set was made", "Cohen's kappa"):
            continue
        tables = section.tables[-1:] if section.title == "Agreement with the judge" else section.tables[:1]
        for _, table in tables:
            widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
            lines += ["", section.title, ""]
            lines += [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
            ]
    return "\n".join([*lines, "", WORSE])
