"""The report of the benchmark: rows for the terminal, and a page of Markdown."""

from typing import Any

import numpy as np

from text_metrics.commands.shared.pages import Table, markdown_table

COLUMNS = {
    "case": 16,
    "n": 9,
    "ours": 9,
    "growth": 7,
    "peer": 29,
    "its time": 9,
    "ratio": 6,
    "needed": 6,
    "MB": 10,
    "its MB": 6,
    "apart": 7,
    "result": 6,
}
PICTURES = {kind: f"docs/benchmarks/{kind}.svg" for kind in ("time", "memory")}


def points(case: dict[str, Any], side: str, quantity: str) -> list[tuple[int, float]]:
    """List the sizes of a case with the seconds or megabytes of a side, where these are known."""
    values = [(row["n"], row[side][quantity]) for row in case["rows"] if row[side]]
    return [(n, value) for n, value in values if value is not None]


def growth(measured: list[tuple[int, float]]) -> float | None:
    """Fit the exponent k of n^k; None for fewer than two sizes, or a value of 0."""
    if len(measured) < 2 or any(value <= 0 for _, value in measured):
        return None
    x, y = np.log(measured).T
    return float(np.polyfit(x, y, 1)[0])


def number(value: float) -> str:
    """Format a count."""
    return f"{value:,.0f}".replace(",", " ")


def rounded(value: float) -> str:
    """Format a number to three digits."""
    return number(float(f"{value:.3g}")) if value >= 100 else f"{value:.3g}"


def line(cells: dict[str, str]) -> str:
    """Format a row of the table."""
    return f"| {' | '.join(cells.get(name, '').ljust(width) for name, width in COLUMNS.items())} |"


def head() -> list[str]:
    """Format the head of the table."""
    return [line({name: name for name in COLUMNS}), line({name: "-" * width for name, width in COLUMNS.items()})]


def body(case: dict[str, Any], place: int) -> str:
    """Format one size of a case; growth is relative to the size before."""
    row = case["rows"][place]
    cells = {"case": case["name"], "n": number(row["n"]), "apart": row["apart"] or ""}
    if not row["alone"]:
        cells["peer"] = case["peer"]
    for side, seconds, megabytes in (("ours", "ours", "MB"), ("peer", "its time", "its MB")):
        if row[side]:
            cells[seconds] = f"{row[side]['seconds']:.3g} s"
            if row[side]["megabytes"] is not None:
                cells[megabytes] = f"{row[side]['megabytes']:.0f}"
    exponent = growth(points({"rows": case["rows"][max(place - 1, 0) : place + 1]}, "ours", "seconds"))
    if exponent is not None:
        cells["growth"] = f"n^{exponent:.2f}"
    if row["ratio"]:
        cells["ratio"] = f"{row['ratio']:.2f}"
    if row["ratio_needed"]:
        cells["needed"] = f"{row['ratio_needed']:g}"
    if row["megabytes_allowed"] and "MB" in cells:
        cells["MB"] += f" < {row['megabytes_allowed']:g}"
    cells["result"] = "; ".join([*row["failures"], *(f"not measured: {note}" for note in row["unmeasured"])]) or "ok"
    return line(cells)


def notes(report: dict[str, Any], kind: str) -> list[str]:
    """List the failures, or what was not measured, of all rows."""
    return [
        f"{case['name']} at {number(row['n'])}: {note}"
        for case in report["cases"]
        for row in case["rows"]
        for note in row[kind]
    ]


def summary(report: dict[str, Any]) -> list[str]:
    """Format a row for each case: its largest size that both sides ran, or else its largest."""
    names = ("case", "what is measured", "n", "ours", "n a second", "peer", "its time", "faster", "MB", "its MB")
    table: Table = [list(names)]
    for case in report["cases"]:
        row = max(case["rows"], key=lambda row: (row["peer"] is not None, row["n"]))
        peer = "" if row["alone"] else case["peer"]
        if not row["ours"]:
            why = "; ".join(row["failures"] + row["unmeasured"])
            table.append([f"`{case['name']}`", f"{case['title']}. Not measured: {why}", *[""] * (len(names) - 2)])
            continue
        seconds, megabytes = (
            [side[name] if side and side[name] is not None else None for side in (row["ours"], row["peer"])]
            for name in ("seconds", "megabytes")
        )
        shown = [
            number(row["n"]),
            f"{seconds[0]:.3g} s",
            rounded(row["n"] / seconds[0]),
            peer,
            "" if seconds[1] is None else f"{seconds[1]:.3g} s",
            f"**{rounded(row['ratio'])}** times" if row["ratio"] else "",
            *("" if value is None else f"{value:.0f}" for value in megabytes),
        ]
        table.append([f"`{case['name']}`", case["title"], *shown])
    return markdown_table(table)


PAGE = """\
# Benchmarks

Written by `make benchmark`. {verdict}

{about}

## Each case

At the largest size that both sides ran.

{summary}

## Growth

Both axes are logarithmic, with the same scale in all panels. The exponents are fitted to all sizes.

![Seconds against the size of the input, for each case: ours and the peer](docs/benchmarks/time.svg)

![Megabytes against the size of the input, for each case: ours and the peer](docs/benchmarks/memory.svg)

## Each size

Each side runs in a fresh process, after a warm-up; the two take turns. A turn repeats a short run and takes the mean.
Times are medians over at most {turns} turns, fewer if they take longer than {seconds:g} seconds. Memory is the largest
increase of resident memory after imports, warm-up and the making of the input. `growth` compares our time with the row
above. `ratio` is the peer's time divided by ours, and `needed` its lower bound. `apart` is the difference between the
numbers of the two sides; a row is `ok` only if it is within the bound of the case.

{table}

{bounds}
"""


def markdown(report: dict[str, Any]) -> str:
    """Write the page."""
    failures, unmeasured = (notes(report, kind) for kind in ("failures", "unmeasured"))
    verdict = f"{len(failures)} rows failed." if failures else "All rows are as they should be."
    if unmeasured:
        verdict += f" Not measured: {'; '.join(unmeasured)}."
    return PAGE.format(
        verdict=verdict,
        about="\n".join(f"- {name}: {value}" for name, value in {**report["machine"], "Run": report["run"]}.items()),
        summary="\n".join(summary(report)),
        turns=report["settings"]["turns"],
        seconds=report["settings"]["seconds"],
        table="\n".join([*head(), *(body(case, i) for case in report["cases"] for i in range(len(case["rows"])))]),
        bounds="\n".join(f"- `{case['name']}`: {case['title']}. Asked: {case['bound']}." for case in report["cases"]),
    )
