"""The sections of the report: titles, what they show, and their tables. Some tables are blocks for other pages."""

from collections.abc import Callable
from typing import Any, NamedTuple

from text_metrics.commands.meta_eval.agreement import FIRST_RULE, JUDGE
from text_metrics.commands.meta_eval.generated_sets import POORER
from text_metrics.commands.meta_eval.people import PERSON
from text_metrics.commands.shared.pages import Table

LABELS = {
    "original": "original",
    "para_a": "Para-1",
    "para_b": "Para-2",
    "para_c": "Para-3",
    "nonsensical": "nonsensical",
    # The released pairs call shuffled nouns so.
    "shuffle": "shuffled nouns",
    "noun_shuffle": "shuffled nouns",
    "random_shuffle": "shuffled words",
}
# The order of the picture of scores: the paper's.
_LABEL_ORDER = ("original", "Para-1", "Para-2", "Para-3", "nonsensical", "shuffled nouns", "shuffled words")
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


class Section(NamedTuple):
    """A part of the report.

    block : the name under which other pages may show the first table; "" for none
    tables : each with the line above it
    """

    title: str
    text: str
    tables: list[tuple[str, Table]]
    picture: str = ""
    block: str = ""


def _no_sections(report: dict[str, Any]) -> list[Section]:
    return []


def _unmarked(block: str, text: str) -> str:
    return text


class Claims(NamedTuple):
    """What is known of the data of a report beyond their files. By default nothing is.

    source : where the data are from
    training : on what the ratings were trained, as far as it concerns the data
    verdicts : what to know of the judge's verdicts
    kappa : what to know of the agreement beyond chance
    sections : sections about the data, after those about the judge
    mark : puts the name of a block around its table, for other pages to find it
    """

    source: str = ""
    training: str = ""
    verdicts: str = ""
    kappa: str = ""
    sections: Callable[[dict[str, Any]], list[Section]] = _no_sections
    mark: Callable[[str, str], str] = _unmarked


NO_CLAIMS = Claims()


def sections(report: dict[str, Any], claims: Claims = NO_CLAIMS) -> list[Section]:
    """List the parts of a report, what matters most first."""
    found = []
    if "kinds" in report:
        found.append(_kinds_section(report))
    if "people" in report:
        found.append(_people_section(report))
    if "metrics" in report:
        found += [*_judge_sections(report, claims), *claims.sections(report)]
    if any(rater["auc"] or rater["judge"] for rater in report["raters"]):
        found.append(_rater_section(report))
    if "kappa" in report:
        found.append(_kappa_section(report, claims))
    if labels_of(report):
        found.append(_label_section(report))
    found.append(_settings_section(report))
    failures = report["settings"]["failures"]
    if failures:
        found.append(Section("Left out", "", [("", [["metric and reason"], *([failure] for failure in failures)])]))
    return found


def _kinds_section(report: dict[str, Any]) -> Section:
    kinds = report["kinds"]
    names = [own["name"] for own in kinds["generators"]]
    counts = ", ".join(f"{own['name']} {own['concepts']}" for own in kinds["generators"])
    rows = {row["name"]: row for row in kinds["metrics"]}
    short_kinds = [kind for kind in _SHORT_KINDS if kind in kinds["kinds"]]
    short = [[f"original above, %: {' / '.join(names)}", *(POORER[kind] for kind in short_kinds)]]
    for name in [name for name in rows if name == "VS-Embed-0.5" or name.endswith(" × VS-Embed-0.5")]:
        above = rows[name]["above"]
        cells = [" / ".join(f"{100 * above[own][kind]['share']:.0f}" for own in names) for kind in short_kinds]
        short.append([shown(rows[name]), *cells])
    full = [
        (
            f"Original above {POORER[kind]}, %:",
            [
                ["metric", *names],
                *(
                    [shown(row), *(_percent(row["above"][own][kind], "share") for own in names)]
                    for row in rows.values()
                ),
            ],
        )
        for kind in kinds["kinds"]
    ]
    text = (
        "Sets of different quality for the same concepts: how often each metric ranks the original set above a poorer "
        "one, in %; 50 is chance, ties count half. Nonsensical sentences are fluent and absurd; Para-1 to Para-3 "
        "replace one, two and two of four sentences by paraphrases of others, so that they are well written and less "
        f"diverse. Concepts drawn of each generator: {counts}."
    )
    return Section("Across qualities", text, [("", short), *full], "qualities", "qualities")


def _people_section(report: dict[str, Any]) -> Section:
    found = report["people"]
    by_name = {own["name"]: own for own in found}
    keys = ("majority", "balanced", "person")
    head = ["agreement, %", "with most people", "the same, balanced", "with one person"]
    full = [head, *([shown(with_signature(own, report)), *(_percent(own, key) for key in keys)] for own in found)]
    chosen = [by_name[name] for name in (PERSON, JUDGE, *_SHORT, FIRST_RULE) if name in by_name]
    short = [head, *([shown(with_signature(own, report)), *(_point(own[key]) for key in keys)] for own in chosen)]
    text = (
        f"Pairs that {by_name[PERSON]['people']} people judged, too: the share of pairs on which each annotator agrees "
        "with most people, the same balanced over the two verdicts, and its mean agreement with one person. The first "
        "row, a person compared with the others (a tie of the others counts half), is the ceiling to expect."
    )
    return Section(
        "Agreement with people", text, [("", short), ("All rows, with intervals:", full)], "people", "people"
    )


def with_signature(own: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Find the row of a name that has its signature; the row itself if there is none."""
    for group in (report.get("metrics", []), report.get("kinds", {}).get("metrics", [])):
        for metric in group:
            if metric["name"] == own["name"]:
                return metric
    return own


def _judge_sections(report: dict[str, Any], claims: Claims) -> list[Section]:
    settings = report["settings"]
    names = [cell["name"] for cell in report["cells"]]
    whole = [name for name in names if name.endswith(", all") and name.replace(", all", ", high") not in names]
    narrow = [name for name in names if name.endswith(", high")] + whole or names
    rows = {own["name"]: own for own in report["metrics"]}
    counts = {cell["name"]: cell["pairs"] for cell in report["cells"]}
    short = [["balanced accuracy, %", *(f"{cell.removeprefix('commongen_')} ({counts[cell]})" for cell in narrow)]]
    for own in [rows[name] for name in (*_SHORT, *_SHORT_RULES) if name in rows]:
        short.append([shown(own), *(_point(own["cells"][cell]["balanced"]) for cell in narrow)])
    reading = (
        f"{100 * settings['level']:.0f} % bootstrap intervals; pairs about the same thing are drawn together. Ties "
        f"{settings['ties']}."
    )
    agreement = Section(
        "Agreement with the judge",
        f"How often each metric says what the judge says, in %, with {reading} Balanced accuracy "
        'weights both verdicts equally: the rule "set 1" has 50. *By the paper\'s rule* are the pairs whose scores '
        f"differ by 0.5 or more; *as released* are all pairs with a verdict ({settings['left_out']} of the files have "
        f"none). {_sentence(claims.verdicts)}Rules are trivial baselines: {_RULES}.",
        [
            ("In short, as released, where both sets are well written or of unknown quality:", short),
            ("Balanced accuracy, by the paper's rule:", _accuracies(report, "clear_cells", "balanced")),
            ("Accuracy, by the paper's rule:", _accuracies(report, "clear_cells", "accuracy")),
            ("Balanced accuracy, as released:", _accuracies(report, "cells", "balanced")),
            ("Accuracy, as released:", _accuracies(report, "cells", "accuracy")),
        ],
        "agreement",
        "agreement",
    )
    margins = Section(
        "Above the best trivial rule",
        "Balanced accuracy by the paper's rule, minus that of the best rule of the column, in points. Where the "
        "interval includes 0, a rule that needs no metric does as well.",
        [("", _margins(report))],
    )
    return [agreement, margins]


def _sentence(text: str) -> str:
    return f"{text} " if text else ""


_RULES = '"nonsense wins" also reads how a set was made. "Alone" is the mean quality of a set'
WORSE = "An asterisk: worse than the best metric of the column by more than chance (p < 0.05, paired randomization)."


def _accuracies(report: dict[str, Any], cells: str, kind: str) -> Table:
    """Lay out accuracies: a row for each metric, a column for each part of the data."""
    interval = "interval" if kind == "accuracy" else "balanced_interval"
    count = "pairs" if cells == "cells" else "clear"
    columns = [cell for cell in report["cells"] if cell["name"] in report["metrics"][0][cells]]
    rows = [["metric", *(f"{cell['name']} ({cell[count]})" for cell in columns)]]
    for metric in report["metrics"]:
        row = [shown(metric)]
        for cell in columns:
            own = metric[cells][cell["name"]]
            p = own["p_against_best"]
            worse = kind == "accuracy" and metric["group"] != "rule" and p is not None and p < 0.05
            row.append(_interval(own[kind], own[interval], "*" * worse))
        rows.append(row)
    return rows


def _margins(report: dict[str, Any]) -> Table:
    metrics = [own for own in report["metrics"] if own["group"] != "rule"]
    if not metrics:
        return [["metric"]]
    columns = [name for name, own in metrics[0]["clear_cells"].items() if own["margin"]]
    rules = [metrics[0]["clear_cells"][name]["margin"]["rule"].removeprefix("rule: ") for name in columns]
    rows = [["metric", *(f"{name}: above {rule}" for name, rule in zip(columns, rules, strict=True))]]
    for own in metrics:
        cells = [own["clear_cells"][name]["margin"] for name in columns]
        rows.append([shown(own), *(_interval(cell["difference"], cell["interval"], sign="+") for cell in cells)])
    return rows


def _rater_section(report: dict[str, Any]) -> Section:
    raters = report["raters"]
    generators = list(raters[0]["auc"])
    kinds = list(next(iter(raters[0]["auc"].values()))) if generators else []
    tables = []
    if kinds:
        auc = [["AUC", *(f"{POORER[kind]}, {own}" for kind in kinds for own in generators)]]
        for rater in raters:
            cells = [rater["auc"][own][kind] for kind in kinds for own in generators]
            auc.append([shown(rater), *(_interval(cell["auc"], cell["interval"]) for cell in cells)])
        tables.append(("", auc))
    columns = list(raters[0]["judge"])
    if columns:
        judge = [["Spearman × 100", *(f"{name} ({raters[0]['judge'][name]['sets']} sets)" for name in columns)]]
        for rater in raters:
            cells = [rater["judge"][name] for name in columns]
            judge.append([shown(rater), *(_interval(cell["spearman"], cell["interval"]) for cell in cells)])
        tables.append(("Correlation of a set's mean rating with the judge's rating of its quality:", judge))
    text = (
        "How well a rating of single texts tells those of the original sets from those of the bad kinds: AUC × 100, "
        "50 is chance. No rating sees more than its text. A rating of your own is measured by `--quality FILE`."
    )
    return Section("Raters of quality", text, tables, "", "raters")


def _kappa_section(report: dict[str, Any], claims: Claims) -> Section:
    kappa = report["kappa"]
    parts = list(kappa["matrices"])
    keys = list(dict.fromkeys(key for own in kappa["groups"].values() for key in own))
    groups = [["mean kappa × 100", *(f"{part} ({kappa['pairs'][part]})" for part in parts)]]
    for key in keys:
        cells = [kappa["groups"][part].get(key) for part in parts]
        groups.append([key, *("" if cell is None else _interval(cell["kappa"], cell["interval"]) for cell in cells)])
    text = (
        "Agreement of the metrics with each other and with the judge beyond chance: 1 where two always choose the same "
        "set, 0 where no more often than chance. Form: n-gram metrics; content: metrics on embeddings. "
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
    """List the labels of sets, the paper's in its order."""
    found = dict.fromkeys(label for own in report.get("distributions", {}).values() for label in own)

    def place(label: str) -> tuple[int, str]:
        shown = LABELS.get(label, label)
        return (_LABEL_ORDER.index(shown) if shown in _LABEL_ORDER else len(_LABEL_ORDER), label)

    return sorted(found, key=place)


def _label_section(report: dict[str, Any]) -> Section:
    labels = labels_of(report)
    rows = [["metric", *(LABELS.get(label, label) for label in labels)]]
    for name, own in report["distributions"].items():
        found = [own[label] for label in labels]
        cells = [f"{one['median']:.3g} [{one['q1']:.3g}, {one['q3']:.3g}]" for one in found]
        rows.append([shown(with_signature({"name": name}, report)), *cells])
    text = (
        "How each metric scores sets that were made in different ways: median, and the middle half in brackets. The "
        "whiskers of the picture reach from 5 to 95 % of the sets."
    )
    return Section("Scores by the way a set was made", text, [("", rows)], "labels")


def _settings_section(report: dict[str, Any]) -> Section:
    metrics = report.get("metrics") or report.get("kinds", {}).get("metrics", [])
    rows = [["metric", "more diverse", "signature"]]
    rows += [[own["name"], own.get("more_diverse", ""), own["signature"]] for own in metrics if own["signature"]]
    return Section("Settings", f"Files: {', '.join(report['settings']['files'])}.", [("", rows)])


def shown(row: dict[str, Any]) -> str:
    """Name a row, marked where its ratings come from the compact backbone."""
    return f"{row['name']} {MARK}" if "backbone:compact" in row.get("signature", "") else row["name"]


def _point(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _percent(own: dict[str, Any], key: str) -> str:
    return _interval(own[key], own.get(f"{key}_interval", own.get("interval")))


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
