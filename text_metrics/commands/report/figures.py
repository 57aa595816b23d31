"""The pictures of a report, as SVG without a date."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from text_metrics.commands.report.drawing import (
    FONT,
    Scale,
    axis,
    color,
    dots,
    escape,
    line,
    mark,
    name,
    scale,
    svg,
    text,
    tick_labels,
    width_of,
)
from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.formats import count, decimals, direction, estimate, integer, number

PEOPLE = "half of the people"
_WIDTH, _ROW, _TOP = 360, 22, 34
_WIDER = 420
# The share of the scores of prompts at each end that the axes of the plane need not hold.
_OUTERMOST = 0.05
_MEASURES = {
    "recall": ("Recall", "The share of people's texts that have a text of the system nearby.", "higher is nearer →"),
    "precision": ("Precision", "The share of the system's texts that have a person's nearby.", "higher is nearer →"),
    "coverage": (
        "Coverage",
        "The share of people's neighbourhoods that hold a text of the system.",
        "higher is nearer →",
    ),
}


class Picture(NamedTuple):
    """A picture: its section, the name of its file, its caption, its SVG, and whether its width grows with systems."""

    section: str
    name: str
    caption: str
    svg: str
    wide: bool = False


class Row(NamedTuple):
    """A row of a picture of intervals; `system` is None for people."""

    label: str
    system: int | None
    value: float
    ends: Sequence[float] | None


def pictures(report: Report) -> list[Picture]:
    """Draw the report from its numbers alone, in the order of its sections."""
    return [
        *_scores(report, "diversity"),
        *_plane(report),
        *_scores(report, "quality"),
        *_likeness(report),
        *_people(report),
        *_collapse(report),
        *_power(report),
    ]


def _scores(report: Report, section: str) -> list[Picture]:
    drawn = []
    for metric in in_section(report, section):
        rows = [
            Row(report["systems"][i], i, value["mean"], value["interval"])
            for i, value in enumerate(metric["values"])
            if value["mean"] is not None
        ]
        if rows:
            svg = intervals(metric["title"], rows, [metric["unit"], _arrow(metric)])
            drawn.append(Picture(section, f"{section}_{metric['name']}", metric["help"], svg))
    return drawn


def _arrow(metric: dict[str, Any]) -> str:
    words = direction(metric)
    return {"higher": f"{words} →", "lower": f"← {words}", None: ""}[metric["better"]]


def intervals(
    title: str,
    rows: Sequence[Row],
    axis_titles: Sequence[str],
    held: Sequence[float] = (),
    reference: float | None = None,
) -> str:
    """Draw a mark with its interval for each row; the axis holds `held` too, and `reference` is a dashed line."""
    left = min(max(width_of(row.label) for row in rows) + 16, 0.4 * _WIDTH)
    bottom = _TOP + _ROW * len(rows)
    values = [end for row in rows for end in [row.value, *(row.ends or [])]]
    horizontal = scale([*values, *held, *([] if reference is None else [reference])], left, _WIDTH - 10)
    titles = [line for line in axis_titles if line]
    parts = [text(0, 16, title, font_weight=600, font_size=FONT + 1), axis(horizontal, _TOP, bottom, titles)]
    if reference is not None:
        x = horizontal(reference)
        parts.append(line(x, _TOP, x, bottom, "var(--ink)", stroke_dasharray="3 3"))
    digits = decimals((row.value, row.ends) for row in rows)
    said = []
    for i, row in enumerate(rows):
        y = _TOP + _ROW * (i + 0.5)
        words = f"{row.label}: {estimate(row.value, row.ends, digits)}"
        said.append(words)
        parts.append(name(left - 10, y + 4, row.label, left - 10))
        if row.ends is not None:
            ends = [horizontal(end) for end in row.ends]
            parts.append(line(ends[0], y, ends[1], y, color(row.system), stroke_width=2.5))
        parts.append(mark(row.system, horizontal(row.value), y, words))
    return svg(_WIDTH, bottom + 22 + 14 * len(titles), f"{title}. {'; '.join(said)}.", parts)


def _plane(report: Report) -> list[Picture]:
    """Draw quality against diversity: a cross of both intervals for each system, and a faint dot for each prompt."""
    qualities = in_section(report, "quality")
    if not qualities:
        return []
    across, up = in_section(report, "diversity")[0], qualities[0]
    pairs = list(zip(across["values"], up["values"], strict=True))
    systems = [i for i, (x, y) in enumerate(pairs) if x["mean"] is not None and y["mean"] is not None]
    if not systems:
        return []
    plot, left = 310, 48
    horizontal = scale(_in_sight(pairs[i][0] for i in systems), left, _WIDER - 8)
    vertical = scale(_in_sight(pairs[i][1] for i in systems), plot, 10)
    titles = [across["title"], _arrow(across)]
    parts = [axis(horizontal, 10, plot, titles), _vertical_axis(vertical, left, _WIDER, up)]
    outside = 0
    for i in systems:
        scores = zip(*(value["scores"] for value in pairs[i]), strict=True)
        every = [(horizontal(x), vertical(y)) for x, y in scores if x is not None and y is not None]
        points = [(x, y) for x, y in every if left <= x <= _WIDER - 8 and 10 <= y <= plot]
        outside += len(every) - len(points)
        # The more dots, the fainter.
        opacity = round(min(max(12 / max(len(points) * len(systems), 1) ** 0.6, 0.12), 0.6), 2)
        parts.append(dots(points, stroke=color(i), stroke_width=3, stroke_opacity=opacity))
    digits = [decimals((value["mean"], value["interval"]) for value in metric["values"]) for metric in (across, up)]
    said = []
    for i in systems:
        words = ", ".join(
            f"{metric['title']} {estimate(value['mean'], value['interval'], n)}"
            for metric, value, n in zip((across, up), pairs[i], digits, strict=True)
        )
        said.append(f"{report['systems'][i]}: {words}")
        parts.append(_cross(i, pairs[i], (horizontal, vertical), said[-1]))
    legend, height = _legend(report["systems"], systems, _WIDER, plot + 74)
    title = f"{up['title']} against {across['title']}. {'; '.join(said)}."
    caption = (
        f"Each mark is the mean of a system with both intervals; each faint dot is a prompt. Upwards: {up['title']} "
        f"({direction(up)}); to the right: {across['title']} ({direction(across)})."
    )
    if outside:
        caption += f" {count(outside, 'dot')} outside the picture {'is' if outside == 1 else 'are'} not drawn."
    return [Picture("quality", "plane", caption, svg(_WIDER, plot + 74 + height, title, [*parts, *legend]))]


def _in_sight(values: Iterable[dict[str, Any]]) -> list[float]:
    """List what an axis of the plane holds: means, ends of intervals, and all but the outermost scores of prompts."""
    ends, scores = [], []
    for value in values:
        ends += [value["mean"], *(value["interval"] or [])]
        scores += [score for score in value["scores"] if score is not None]
    outermost = int(_OUTERMOST * len(scores))
    return ends + sorted(scores)[outermost : len(scores) - outermost]


def _cross(system: int, pair: Sequence[dict[str, Any]], scales: Sequence[Scale], words: str) -> str:
    """Draw the mark of a system with both intervals, over a halo that parts it from the dots."""
    (across, up), (horizontal, vertical) = pair, scales
    x, y = horizontal(across["mean"]), vertical(up["mean"])
    parts = []
    for width, stroke in ((4.5, "var(--page)"), (2, color(system))):
        if across["interval"] is not None:
            low, high = (horizontal(end) for end in across["interval"])
            parts.append(line(low, y, high, y, stroke, stroke_width=width))
        if up["interval"] is not None:
            low, high = (vertical(end) for end in up["interval"])
            parts.append(line(x, low, x, high, stroke, stroke_width=width))
    return "".join([*parts, mark(system, x, y, words, radius=4)])


def _vertical_axis(vertical: Scale, left: float, right: float, metric: dict[str, Any]) -> str:
    values = vertical.ticks(5)
    parts = []
    for value, label in zip(values, tick_labels(values), strict=True):
        parts.append(line(left, vertical(value), right - 8, vertical(value)))
        parts.append(text(left - 6, vertical(value) + 4, label, "end", fill="var(--soft)", font_size=11))
    middle = (vertical.start + vertical.end) / 2
    turned = {"transform": f"rotate(-90 12 {middle:.1f})", "fill": "var(--soft)", "font_size": 11}
    parts.append(text(12, middle, f"{metric['title']}; {_arrow(metric)}", "middle", **turned))
    return "".join(parts)


def _legend(names: Sequence[str], systems: Sequence[int], width: float, top: float) -> tuple[list[str], float]:
    """Lay out marks with names in rows."""
    column = min(max(width_of(names[i]) for i in systems) + 34, width / 2)
    n_columns = max(int(width // column), 1)
    parts = []
    for place, i in enumerate(systems):
        x, y = column * (place % n_columns), top + 20 * (place // n_columns)
        room = round((column - 34) / width_of("n"))
        label = names[i] if len(names[i]) <= room else f"{names[i][: room - 1]}…"
        parts += [mark(i, x + 10, y, names[i]), text(x + 22, y + 4, label)]
    return parts, 20 * -(-len(systems) // n_columns)


def _likeness(report: Report) -> list[Picture]:
    likeness = report["likeness"]
    if likeness is None:
        return []
    matrices = {
        "same_prompt": ("Same prompt", "Mean cosine of texts to the same prompt; the diagonal is within a system."),
        "other_prompts": ("Different prompts", "Mean cosine of texts to different prompts, the baseline."),
    }
    means = [cell["mean"] for key in matrices for row in likeness["cosine"][key] for cell in row]
    largest = max([mean for mean in means if mean is not None], default=1.0)
    drawn = []
    for key, (title, caption) in matrices.items():
        matrix = _matrix(report["systems"], likeness["cosine"][key], title, largest)
        drawn.append(Picture("likeness", f"cosine_{key}", caption, matrix, wide=True))
    return [*drawn, _partition(likeness["partition"])]


def _matrix(names: Sequence[str], cells: Sequence[Sequence[dict]], title: str, largest: float) -> str:
    """Draw a matrix of numbers; a stronger colour is a larger number, the strongest is `largest`."""
    n = len(names)
    side = min(max(300 / n, 25), 52)
    left = min(max(width_of(label) for label in names) + 28, 150)
    top = 30
    parts = [text(0, 16, title, font_weight=600, font_size=FONT + 1)]
    said = []
    for i, row in enumerate(cells):
        y = top + 26 + side * i
        parts.append(name(left - 24, y + side / 2 + 4, names[i], left - 24))
        parts += [mark(i, left - 12, y + side / 2), mark(i, left + side * (i + 0.5), top + 13)]
        for j, cell in enumerate(row):
            x, mean = left + side * j, cell["mean"]
            words = f"{names[i]} and {names[j]}: {estimate(mean, cell['interval'], 2)}"
            share = 0.0 if mean is None else min(max(mean / largest, 0), 1) if largest > 0 else 0.0
            box = f'x="{x:.1f}" y="{y:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}" rx="2"'
            heat = f'<rect {box} fill="var(--heat)" fill-opacity="{0.7 * share:.2f}"/>'
            # As in `.62`.
            short = number(mean, 2).replace("0.", ".", 1)
            label = text(x + side / 2, y + side / 2 + 4, short, "middle", font_size=12 if side > 34 else 9.5)
            parts.append(f"<g><title>{escape(words)}</title>{heat}{label}</g>")
            if j >= i:
                said.append(words)
    return svg(left + side * n, top + 30 + side * n, f"{title}: mean cosine. {'; '.join(said)}.", parts)


def _partition(partition: dict[str, Any]) -> Picture:
    """Draw the effective number of systems between 1 and their number, with what chance gives."""
    n, width, y = partition["n_groups"], _WIDTH, 74
    horizontal = Scale(1, n, 16, width - 16)
    ends = partition["intervals"].get("between")
    value, expected = partition["between"], partition["between_expected"]
    digits = decimals([(value, ends)], least=2)
    parts = [
        text(0, 16, "How many systems?", font_weight=600, font_size=FONT + 1),
        axis(horizontal, 54, 94, ["effective number of different systems"]),
    ]
    if ends is not None:
        a, b = (horizontal(min(max(end, 1), n)) for end in ends)
        parts.append(line(a, y, b, y, "var(--accent)", stroke_width=3))
    x = horizontal(expected)
    parts.append(line(x, 48, x, 94, "var(--ink)", stroke_dasharray="3 3"))
    anchor = "start" if x < width / 2 else "end"
    parts.append(text(x + (4 if anchor == "start" else -4), 46, f"by chance {number(expected, digits)}", anchor))
    words = f"between {estimate(value, ends, digits)}"
    at = f'cx="{horizontal(value):.1f}" cy="{y}" r="6" fill="var(--accent)" stroke="var(--page)"'
    parts.append(f"<circle {at}><title>{words}</title></circle>")
    caption = (
        f"1 if all {n} systems say the same, {n} if they have nothing in common. The dashed line is the mean over "
        f"{integer(partition['permutations'])} permutations of the systems within each prompt."
    )
    title = f"Effective number of systems: {words}; by chance {number(expected, digits)}; at most {n}."
    return Picture("likeness", "between", caption, svg(width, 134, title, parts))


def _people(report: Report) -> list[Picture]:
    people = report["people"]
    if people is None:
        return []
    names: dict[int | None, str] = {None: PEOPLE, **dict(enumerate(report["systems"]))}
    drawn = []
    for key, (title, caption, arrow) in _MEASURES.items():
        rows = [
            Row(names[row["system"]], row["system"], row[key]["value"], row[key]["interval"])
            for row in people["rows"]
            if row[key]["value"] is not None
        ]
        if rows:
            scales = [row.value for row in rows if row.system is None]
            picture = intervals(title, rows, [arrow], (0, 1), scales[0] if scales else None)
            drawn.append(Picture("people", f"people_{key}", caption, picture))
    return drawn


def _collapse(report: Report) -> list[Picture]:
    """Draw the distribution of the first metric over prompts, a row for each system."""
    metric = in_section(report, "diversity")[0]
    scores = [[score for score in value["scores"] if score is not None] for value in metric["values"]]
    held = [score for system in scores for score in system]
    if not held:
        return []
    width, row_height, n_bins = _WIDER, 34, 48
    left = min(max(width_of(label) for label in report["systems"]) + 28, 0.38 * width)
    horizontal = scale(held, left, width - 10)
    step = (horizontal.high - horizontal.low) / n_bins
    bins = [[0] * n_bins for _ in scores]
    for system, row in zip(scores, bins, strict=True):
        for score in system:
            row[min(int((score - horizontal.low) / step), n_bins - 1)] += 1
    most = max(max(row) for row in bins)
    bottom = 10 + row_height * len(scores)
    parts = [axis(horizontal, 10, bottom, [f"{metric['title']}: {metric['unit']}", _arrow(metric)])]
    said = []
    for i, (label, row) in enumerate(zip(report["systems"], bins, strict=True)):
        base = 10 + row_height * (i + 1)
        parts += [name(left - 24, base - 8, label, left - 24), mark(i, left - 12, base - 12)]
        for k, n in enumerate(row):
            if n:
                low, high = horizontal.low + step * k, horizontal.low + step * (k + 1)
                height = max((row_height - 8) * n / most, 1.5)
                box = f'x="{horizontal(low):.1f}" y="{base - height:.1f}" height="{height:.1f}"'
                said_n = f"{label}: {integer(n)} between {number(low, 2)} and {number(high, 2)}"
                bar = f'<rect {box} width="{horizontal(high) - horizontal(low) - 0.6:.1f}" fill="{color(i)}">'
                parts.append(f"{bar}<title>{escape(said_n)}</title></rect>")
        if scores[i]:
            said.append(f"{label}: from {number(min(scores[i]), 2)} to {number(max(scores[i]), 2)}")
    title = f"{metric['title']} of the prompts. {'; '.join(said)}."
    caption = f"How many prompts have which {metric['title']}; a system that collapses has bars on the left."
    return [Picture("collapse", "collapse", caption, svg(width, bottom + 52, title, parts))]


def _power(report: Report) -> list[Picture]:
    """Draw the differences of systems as multiples of the smallest that the prompts show."""
    power = {row["metric"]: row["difference"] for row in report["power"] if row["difference"]}
    rows = []
    for metric in report["metrics"]:
        differences = [abs(test["difference"]) for test in metric["tests"] if test["difference"] is not None]
        if differences and metric["name"] in power:
            rows.append((metric, [difference / power[metric["name"]] for difference in differences]))
    if not rows:
        return []
    width, left = _WIDER, min(max(width_of(metric["title"]) for metric, _ in rows) + 14, 0.45 * _WIDER)
    largest = max(max(multiples) for _, multiples in rows)
    bottom = 30 + _ROW * len(rows)
    horizontal = Scale(0, max(1.05 * largest, 1.5), left, width - 12)
    x = horizontal(1)
    titles = ["observed difference of two systems ÷ smallest shown"]
    parts = [
        axis(horizontal, 20, bottom, titles),
        line(x, 16, x, bottom, "var(--ink)", stroke_dasharray="3 3"),
        text(x + 4, 14, "smallest shown", fill="var(--soft)", font_size=11),
    ]
    said = []
    for i, (metric, multiples) in enumerate(rows):
        y = 20 + _ROW * (i + 0.7)
        parts.append(name(left - 10, y + 4, metric["title"], left - 10))
        parts.append(dots([(horizontal(m), y) for m in multiples], stroke="var(--accent)", stroke_width=8))
        said.append(f"{metric['title']}: {number(min(multiples), 1)} to {number(max(multiples), 1)}")
    title = f"Observed differences as multiples of the smallest that the prompts show. {'; '.join(said)}."
    caption = "Each dot is a pair of systems. Left of the dashed line, this many prompts often miss a difference."
    return [Picture("caveats", "power", caption, svg(width, bottom + 40, title, parts))]
