"""The report of `text-metrics probe report` as Markdown and as a page."""

import html as markup
from typing import Any

from text_metrics.commands.shared.pages import Section, Table, html_page, html_picture, html_sections, markdown_table

TITLE = "Models beside people"
_STAR = 0.05


def sections(report: dict[str, Any]) -> list[Section]:
    """Lay the report out."""
    level = f"{100 * report['confidence']:g} %"
    answers = f"{report['n_questions']} questions, {report['n_gold']} answers of people"
    source = (
        "a second sample of people serves as the model"
        if report["second_sample"] and not report["second_sample"]["same"]
        else "people's answers are split at random: one half are the gold answers, the other half serves as the model"
    )
    parts = [
        (
            "All answers",
            f"KL(people ‖ model) in nats, mean over questions, with {level} confidence intervals over questions "
            f"({answers}). Coverage is the share of people's answers whose cluster the model hits; wrong is the share "
            "of the model's answers that match no cluster; entropy is that of the smoothed distribution, people's in "
            f"parentheses. The divergence depends on the number of answers.{_about_second(report)}",
            _rows(report),
        ),
        (
            "Against people",
            f"In {report['rounds']} rounds, {source}. Of the model and these people, the larger sample is drawn down "
            "to the size of the smaller, question by question. p: paired randomization test over questions.",
            _against(report["against_people"]),
        ),
        (
            "Against people, each answer once",
            "The same, with each different answer of a sample counted once. "
            + (_distinct(report) or "No file holds only different answers."),
            _against(report["against_people_once"]),
        ),
        ("By slot", "KL of the model / of people, as under “Against people”.", _slots(report)),
        (
            "Model against model",
            "Mean difference of KL, row minus column, the larger sample drawn down to the smaller; * where the paired "
            f"randomization test has p < {_STAR}, adjusted by Benjamini-Hochberg. Negative: the row is closer to "
            "people.",
            _pairs(report["pairs"]),
        ),
    ]
    return [Section(title, text, [("", table)]) for title, text, table in parts if table]


def _about_second(report: dict[str, Any]) -> str:
    second = report["second_sample"]
    if second is None:
        return ""
    if not second["same"]:
        return f" {100 * second['overlap']:.0f} % of the row “people”, a second sample, are equal to gold answers."
    return (
        f" {100 * second['overlap']:.1f} % of the answers in the row “people” pair with an equal gold answer; of a "
        f"new sample of the gold answers, {100 * second['expected']:.1f} % would. They are the gold answers "
        "themselves: the divergence is near 0 by construction, and the row is not used below."
    )


def _distinct(report: dict[str, Any]) -> str:
    names = [f"“{row['name']}”" for row in report["rows"] if row["distinct"]]
    if not names:
        return ""
    return (
        f"{', '.join(names)}: no answer to a question comes twice, so how often the model gave it is not known, and "
        "only this table compares like with like."
    )


def _rows(report: dict[str, Any]) -> Table:
    table = [["answers of", "questions", "answers to each", "KL", "coverage", "wrong", "entropy"]]
    for row in report["rows"]:
        low, high = row["n_answers"]
        table.append(
            [
                row["name"],
                str(row["n_questions"]),
                str(low) if low == high else f"{low}–{high}",
                f"{row['probeval']:.3f}{_interval(row['interval'])}",
                f"{100 * row['coverage']:.0f} %",
                "–" if row["wrong_rate"] is None else f"{100 * row['wrong_rate']:.0f} %",
                f"{row['entropy']:.2f} ({row['gold_entropy']:.2f})",
            ]
        )
    return table


def _interval(interval: list[float] | None) -> str:
    return "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"


def _against(rows: list[dict[str, Any]]) -> Table:
    table = [
        [
            row["name"],
            f"{row['own']:.3f}",
            f"{row['people']:.3f}",
            f"{row['difference']:+.3f}{_interval(row['interval'])}",
            f"{row['p']:.4f}",
        ]
        for row in rows
    ]
    return [["answers of", "KL", "KL of people", "difference", "p"], *table]


def _slots(report: dict[str, Any]) -> Table:
    slots = sorted({slot for row in report["against_people"] for slot in row["by_slot"]})
    if not slots:
        return []
    counts = max(report["rows"], key=lambda row: row["n_questions"])["by_slot"]
    table = [["answers of", *(f"{slot} ({counts[slot]['n'] if slot in counts else 0})" for slot in slots)]]
    for row in report["against_people"]:
        cells = [row["by_slot"].get(slot) for slot in slots]
        table.append([row["name"], *("–" if cell is None else f"{cell[0]:.2f} / {cell[1]:.2f}" for cell in cells)])
    return table


def _pairs(pairs: list[dict[str, Any]]) -> Table:
    if not pairs:
        return []
    names = list(dict.fromkeys(name for pair in pairs for name in (pair["a"], pair["b"])))
    cells = {}
    for pair in pairs:
        star = "*" if pair["p_adjusted"] < _STAR else ""
        cells[pair["a"], pair["b"]] = f"{pair['difference']:+.3f}{star}"
        cells[pair["b"], pair["a"]] = f"{-pair['difference']:+.3f}{star}"
    return [["", *names], *([row, *(cells.get((row, column), "") for column in names)] for row in names)]


def markdown(report: dict[str, Any]) -> str:
    """Write the report as Markdown."""
    lines: list[str] = []
    for section in sections(report):
        lines += [f"### {section.title}", "", section.text, "", *markdown_table(section.tables[0][1]), ""]
    return "\n".join([*lines, f"`{report['signature']}`"]) + "\n"


def html(report: dict[str, Any]) -> str:
    """Write the report as a page with its picture inside."""
    # matplotlib is an extra.
    from text_metrics.commands.probe.pictures import draw_report

    signature = f"<code>{markup.escape(report['signature'])}</code>"
    return html_page(TITLE, [signature], html_picture(TITLE, draw_report(report)) + html_sections(sections(report)))
