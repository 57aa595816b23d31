"""The tables of a report, and how they are written as Markdown."""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from text_metrics.commands.report.figures import PEOPLE
from text_metrics.commands.report.sentences import Report, comparison, in_section
from text_metrics.commands.shared.formats import (
    count,
    decimals,
    direction,
    integer,
    interval,
    level,
    number,
    p_value,
    percent,
    percent_interval,
    significant,
    with_p,
)
from text_metrics.commands.shared.pages import markdown_table


class Cell(NamedTuple):
    """A cell: a number or a name, what stands small below it, the system that it names, and a mark.

    `marked` is for the best of a column, and for a test with a difference; `words` is for a cell of words.
    """

    text: str
    below: str = ""
    system: int | None = None
    marked: bool = False
    words: bool = False


class Head(NamedTuple):
    """The head of a column: its title, its unit, as in `words`, and its direction, as in `higher is better`."""

    text: str
    unit: str = ""
    direction: str = ""
    system: int | None = None

    @property
    def below(self) -> str:
        """What stands below the title."""
        return "; ".join(part for part in (self.unit, self.direction) if part)


class Table(NamedTuple):
    """A table: its name, its caption, its heads, its rows, and what a marked cell means.

    The first cell of a row names it.
    """

    name: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    marks: str = ""

    @property
    def legend(self) -> str:
        """What a marked cell means, if there is one."""
        return self.marks if any(cell.marked for row in self.rows for cell in row) else ""


def scores_table(report: Report, section: str) -> Table | None:
    """Return the means of the metrics of a section, a row for each system; None without metrics."""
    metrics = in_section(report, section)
    if not metrics:
        return None
    columns = [_estimates((value["mean"], value["interval"]) for value in metric["values"]) for metric in metrics]
    rows = [
        [
            _system(report, i),
            *(cell._replace(marked=metric["best"] == i) for metric, cell in zip(metrics, cells, strict=True)),
        ]
        for i, cells in enumerate(zip(*columns, strict=True))
    ]
    heads = [Head("System"), *(Head(metric["title"], metric["unit"], direction(metric)) for metric in metrics)]
    what = {"diversity": "Diversity", "quality": "Quality"}[section]
    caption = f"{what}: means over {count(report['prompts']['n'], 'prompt')} with {level(report)} intervals."
    marks = "Bold: the paired tests against all other systems hold after Holm's adjustment."
    return Table(section, caption, heads, rows, marks)


def matrix_of_tests(report: Report, metric: dict[str, Any]) -> Table | None:
    """Return the matrix of the paired tests of a metric; None for one system."""
    n, alpha = len(report["systems"]), 1 - report["confidence"]
    if n == 1:
        return None
    digits = decimals((test["difference"], test["interval"]) for test in metric["tests"])
    cells = {(i, i): Cell("") for i in range(n)}
    for pair in combinations(range(n), 2):
        for i, j in (pair, pair[::-1]):
            test = comparison(metric, i, j)
            p = test["p_holm"]
            cells[i, j] = Cell(
                number(test["difference"], digits, signed=True),
                with_p(p),
                marked=p is not None and p < alpha,
            )
    rows = [[_system(report, i), *(cells[i, j] for j in range(n))] for i in range(n)]
    caption = f"{metric['title']}: row minus column, with p of the paired test after Holm's adjustment."
    heads = [Head("Row − column"), *(Head(label, system=j) for j, label in enumerate(report["systems"]))]
    return Table(f"tests_{metric['name']}", caption, heads, rows, f"Bold: p < {alpha:.2g}.")


def partition_table(report: Report) -> Table | None:
    """Return the partition of diversity within and between systems, and that of each pair; None for one system."""
    likeness = report["likeness"]
    if likeness is None:
        return None
    whole = likeness["partition"]
    intervals = whole["intervals"]
    parts = [(whole[key], intervals.get(key)) for key in ("within", "pooled", "between")]
    digits = decimals(parts, least=2)
    row = [
        Cell(f"All {whole['n_groups']} systems"),
        *_estimates(parts, least=2),
        Cell(number(whole["between_expected"], digits)),
        Cell(percent(whole["share"], 1), percent_interval(intervals.get("share"), 1)),
        Cell(p_value(whole["p"], whole["least_p"])),
    ]
    heads = [
        Head("Systems"),
        Head("Within (alpha)", "different texts of a system"),
        Head("Pooled (gamma)", "different texts of all"),
        Head("Between (beta)", "effective systems", "higher is more different"),
        Head("By chance", "beta of permuted systems"),
        Head("Share", "of the possible beyond chance", "higher is more different"),
        Head("p", "permutation test"),
    ]
    return Table("partition", f"Effective number of systems, with {level(report)} intervals.", heads, [row])


def pairs_table(report: Report) -> Table | None:
    """Return the pairs of systems, those that differ most first; None for fewer than two pairs."""
    likeness = report["likeness"]
    if likeness is None or len(likeness["pairs"]) < 2:
        return None
    names, alpha = report["systems"], 1 - report["confidence"]
    digits = decimals([(pair["between"], None) for pair in likeness["pairs"]])
    rows = [
        [
            Cell(f"{names[pair['a']]} and {names[pair['b']]}"),
            Cell(percent(pair["share"], 1), percent_interval(pair["interval"], 1)),
            Cell(number(pair["between"], digits)),
            Cell(number(pair["between_expected"], digits)),
            Cell(
                p_value(pair["p_holm"], pair["least_p_holm"]),
                marked=pair["p_holm"] is not None and pair["p_holm"] < alpha,
            ),
        ]
        for pair in likeness["pairs"]
    ]
    heads = [
        Head("Pair"),
        Head("Share", "of the possible beyond chance", "higher is more different"),
        Head("Between (beta)", "effective systems, 1 to 2", "higher is more different"),
        Head("By chance", "beta of permuted systems"),
        Head("p", "permutation test, after Holm"),
    ]
    return Table("pairs", "Pairs of systems, the most different first.", heads, rows, f"Bold: p < {alpha:.2g}.")


def people_table(report: Report) -> Table | None:
    """Return how near each system is to people, with half of the people as the scale; None without people."""
    people = report["people"]
    if people is None:
        return None
    measures = ("recall", "precision", "coverage")
    columns = [_estimates((row[key]["value"], row[key]["interval"]) for row in people["rows"]) for key in measures]
    rows = []
    for row, *estimates in zip(people["rows"], *columns, strict=True):
        head = Cell(PEOPLE.capitalize(), "against the other half") if row["system"] is None else None
        rows.append(
            [
                head or _system(report, row["system"]),
                *estimates,
                Cell(number(row["between"], 3), f"by chance {number(row['between_expected'], 3)}"),
                Cell(percent(row["share"], 1)),
                Cell(p_value(row["p"], row["least_p"])),
                Cell(number(row["mean_length"], 1), "unlike people's" if row["length_warning"] else ""),
            ]
        )
    heads = [
        Head("Beside people"),
        Head("Recall", "of people's texts", "higher is nearer"),
        Head("Precision", "of the system's texts", "higher is nearer"),
        Head("Coverage", "of people's neighbourhoods", "higher is nearer"),
        Head("Between (beta)", "effective systems, 1 to 2", "lower is nearer"),
        Head("Share", "of the possible beyond chance", "lower is nearer"),
        Head("p of between", "permutation test"),
        Head("Mean length", "words"),
    ]
    caption = (
        f"{integer(people['n_texts'])} texts of each side, {people['k']} nearest neighbours, {level(report)} intervals."
    )
    return Table("people", caption, heads, rows)


def power_table(report: Report) -> Table | None:
    """Return the smallest differences that the prompts show at 80 % power; None if there are none."""
    titles = {metric["name"]: metric for metric in report["metrics"]}
    rows = [
        [
            Cell(titles[row["metric"]]["title"]),
            Cell(significant(row["difference"])),
            Cell(titles[row["metric"]]["unit"], words=True),
        ]
        for row in report["power"]
    ]
    heads = [Head("Metric"), Head("Smallest difference", "of two means, at 80 % power"), Head("Unit")]
    caption = f"What {count(report['prompts']['n'], 'prompt')} could show."
    return Table("power", caption, heads, rows) if rows else None


def sources_table(report: Report) -> Table:
    """Return what was read from each file."""
    rows = [
        [
            _system(report, i),
            Cell(source["file"], words=True),
            *(Cell(integer(source[key])) for key in ("n_rows", "n_bad", "n_prompts", "n_texts")),
            Cell(" / ".join(f"{size:g}" for size in source["set_sizes"])),
        ]
        for i, source in enumerate(report["sources"])
    ]
    titles = ("System", "File", "Rows", "Bad rows", "Prompts", "Texts")
    heads = [*map(Head, titles), Head("Texts of a prompt", "least / median / most")]
    return Table("sources", "What was read.", heads, rows)


def missing_table(report: Report) -> Table | None:
    """Return how many prompts each system lacks, with examples; None if none is missing."""
    rows = [
        [
            _named(report, row["system"]),
            Cell(integer(row["n"])),
            Cell("; ".join(row["examples"]) + ("; …" if row["n"] > len(row["examples"]) else ""), words=True),
        ]
        for row in report["prompts"]["missing"]
    ]
    heads = [Head("System"), Head("Missing prompts"), Head("Which")]
    return (
        Table("missing", "Prompts that some systems lack; comparisons leave them out.", heads, rows) if rows else None
    )


def least_table(report: Report) -> Table:
    """Return the prompts of least diversity of each system."""
    metric = in_section(report, "diversity")[0]
    rows = [
        [
            _system(report, i),
            Cell(prompt["prompt"], words=True),
            Cell(number(prompt["score"], 2)),
            Cell(number(prompt["closest"][2], 2) if prompt["closest"] else "–"),
            Cell(percent(prompt["equal_share"])),
        ]
        for i, prompts in enumerate(report["collapse"]["least"])
        for prompt in prompts
    ]
    heads = [
        Head("System"),
        Head("Prompt"),
        Head(metric["title"], metric["unit"], direction(metric)),
        Head("Closest pair", "cosine"),
        Head("Equal texts", "share that equals another"),
    ]
    return Table("least", "The least diverse prompts of each system.", heads, rows)


def differ_table(report: Report) -> Table | None:
    """Return the prompts on which systems differ most, a column for each system; None if there are none."""
    metric = in_section(report, "diversity")[0]
    rows = [
        [Cell(prompt["prompt"], words=True), *(Cell(number(score, 2)) for score in prompt["scores"])]
        for prompt in report["collapse"]["differ"]
    ]
    heads = [Head("Prompt"), *(Head(label, system=i) for i, label in enumerate(report["systems"]))]
    caption = f"Prompts on which systems differ most: {metric['title']}, {metric['unit']}."
    return Table("differ", caption, heads, rows) if rows else None


def markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown."""
    blocks = []
    for table in tables:
        head = [f"{_plain(cell.text)} ({cell.below})" if cell.below else _plain(cell.text) for cell in table.heads]
        rows = [[_markdown(cell) for cell in row] for row in table.rows]
        legend = f" {table.legend}" if table.legend else ""
        blocks.append(f"{_plain(table.caption)}{legend}\n\n" + "\n".join(markdown_table([head, *rows])))
    return "\n\n".join(blocks) + "\n"


def main_tables(report: Report) -> list[Table]:
    """Return the tables of scores, likeness and people, those that a paper may show."""
    tables = [
        scores_table(report, "diversity"),
        scores_table(report, "quality"),
        partition_table(report),
        pairs_table(report),
        people_table(report),
    ]
    return [table for table in tables if table is not None]


def _markdown(cell: Cell) -> str:
    words = _plain(cell.text)
    words = f"**{words}**" if cell.marked else words
    return f"{words} {_plain(cell.below)}" if cell.below else words


def _plain(words: str) -> str:
    """Escape what Markdown would read as markup, and put the words on one line."""
    line = " ".join(words.split())
    return "".join(f"\\{c}" if c in "\\`*_<>#~&" or (c == "[" and "](" in line) else c for c in line)


def _estimates(values: Iterable[tuple[float | None, Sequence[float] | None]], least: int = 1) -> list[Cell]:
    """Return the cells of numbers above their intervals, with the decimals that these deserve."""
    pairs = list(values)
    digits = decimals(pairs, least)
    return [Cell(number(value, digits), interval(ends, digits)) for value, ends in pairs]


def _system(report: Report, i: int) -> Cell:
    return Cell(report["systems"][i], system=i)


def _named(report: Report, label: str) -> Cell:
    return Cell(label, system=report["systems"].index(label) if label in report["systems"] else None)
