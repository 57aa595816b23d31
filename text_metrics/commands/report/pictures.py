"""The pictures of a report, as SVG without a date."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.formats import decimals, estimate, number, percent, shortened
from text_metrics.commands.shared.plots import new_figure, styled, system_style, to_svg

# In pixels of a page: of a picture and of a wide one, and of a row.
_WIDTH, _WIDER, _ROW = 340, 560, 24
_MOST_IN_NAME = 20


class Picture(NamedTuple):
    """A picture: its section, the name of its file, its caption, and its SVG."""

    section: str
    name: str
    caption: str
    svg: str


@styled()
def pictures(report: Report) -> list[Picture]:
    """Draw the report from its numbers alone, in the order of its sections."""
    drawn = [
        Picture(metric["section"], f"{metric['section']}_{metric['name']}", metric["help"], _means(report, metric))
        for metric in report["metrics"]
    ]
    if in_section(report, "quality"):
        drawn.append(_plane(report))
    if report["likeness"] is not None:
        drawn.append(_pairs(report))
    return [*drawn, _distributions(report)]


def _direction(metric: dict[str, Any]) -> str:
    if metric["better"] is None:
        return ""
    words = f"{metric['better']} is {'more diverse' if metric['section'] == 'diversity' else 'better'}"
    return f"\n{words} →" if metric["better"] == "higher" else f"\n← {words}"


def _means(report: Report, metric: dict[str, Any]) -> str:
    """Draw the mean of each system with its interval, the best above."""
    names, values, order = report["systems"], metric["values"], metric["order"]
    figure = new_figure(_WIDTH, 90 + _ROW * len(order))
    axes = figure.subplots()
    for y, i in enumerate(order):
        mean, style = values[i]["mean"], system_style(i)
        axes.plot(values[i]["interval"] or [mean, mean], [y, y], color=style["color"], linewidth=2.5)
        axes.plot([mean], [y], linestyle="none", markersize=8, **style)
    _name_rows(axes, [names[i] for i in order])
    axes.margins(x=0.08)
    axes.grid(axis="x")
    axes.set_title(metric["title"])
    axes.set_xlabel(_said_if_cut(metric["unit"] + _direction(metric), axes.get_xlim()[0]))
    digits = decimals((value["mean"], value["interval"]) for value in values)
    said = "; ".join(f"{names[i]}: {estimate(values[i]['mean'], values[i]['interval'], digits)}" for i in order)
    return to_svg(figure, f"{metric['title']}. {said}.")


def _said_if_cut(label: str, low: float) -> str:
    return f"{label}\n(the axis does not begin at 0)" if low > 0 else label


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [shortened(name, _MOST_IN_NAME) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


def _plane(report: Report) -> Picture:
    """Draw quality against diversity: a mark with both intervals for each system."""
    across, up = in_section(report, "diversity")[0], in_section(report, "quality")[0]
    figure = new_figure(_WIDER, 380)
    axes = figure.subplots()
    said = []
    for i in across["order"]:
        (x, x_ends), (y, y_ends) = (
            (metric["values"][i]["mean"], metric["values"][i]["interval"]) for metric in (across, up)
        )
        name, style = report["systems"][i], system_style(i)
        axes.plot(x_ends or [x, x], [y, y], [x, x], y_ends or [y, y], color=style["color"], linewidth=2)
        axes.plot([x], [y], linestyle="none", markersize=9, label=shortened(name, 2 * _MOST_IN_NAME), **style)
        said.append(f"{name}: {across['title']} {number(x, 2)}, {up['title']} {number(y, 2)}")
    axes.margins(0.08)
    axes.grid()
    axes.tick_params(length=0)
    axes.set_xlabel(_said_if_cut(across["title"] + _direction(across), axes.get_xlim()[0]))
    axes.set_ylabel(_said_if_cut(up["title"] + _direction(up), axes.get_ylim()[0]))
    figure.legend(loc="outside lower left", ncols=2)
    caption = f"Each mark is the mean of a system, with both intervals: {up['title']} against {across['title']}."
    return Picture("quality", "plane", caption, to_svg(figure, f"{caption} {'; '.join(said)}."))


def _pairs(report: Report) -> Picture:
    """Draw the difference of each pair of systems, as a share of what is possible beyond chance."""
    names, pairs = report["systems"], report["likeness"]["pairs"]
    shares = np.full((len(names), len(names)), np.nan)
    for pair in pairs:
        shares[pair["a"], pair["b"]] = shares[pair["b"], pair["a"]] = np.nan if pair["share"] is None else pair["share"]
    # The system that differs most from the others is last.
    order = np.argsort(np.nansum(shares, axis=1), kind="stable")
    shares = shares[np.ix_(order, order)]
    side = 30 * len(names)
    figure = new_figure(side + 180, side + 160)
    axes = figure.subplots()
    # No darker than black digits can be read on; both are the same in the dark.
    darkest = 1.6 * max(np.nanmax(shares, initial=0.0), 0.1)
    axes.pcolormesh(np.ma.masked_invalid(shares.clip(0)), cmap="Blues", vmin=0, vmax=darkest, edgecolor="white")
    for (i, j), share in np.ndenumerate(shares):
        if not np.isnan(share):
            axes.text(j + 0.5, i + 0.5, number(100 * share, 0), ha="center", va="center", color="black")
    places = np.arange(len(names)) + 0.5
    labels = [shortened(names[i], _MOST_IN_NAME) for i in order]
    axes.set_xticks(places, labels, rotation=90)
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    said = "; ".join(f"{names[pair['a']]} and {names[pair['b']]}: {percent(pair['share'])}" for pair in pairs)
    caption = "How much two systems differ: % of what is possible beyond chance. 0 is as by chance."
    return Picture("likeness", "pairs", caption, to_svg(figure, f"{caption} {said}."))


def _distributions(report: Report) -> Picture:
    """Draw the distribution of the first metric over prompts, a row for each system."""
    metric = in_section(report, "diversity")[0]
    scores = [metric["values"][i]["scores"] for i in metric["order"]]
    edges = np.histogram_bin_edges(np.concatenate(scores), 40)
    figure = new_figure(_WIDER, 80 + 36 * len(scores))
    axes = figure.subplots()
    counts = [np.histogram(of_system, edges)[0] for of_system in scores]
    most = max(row.max() for row in counts)
    for y, (i, row) in enumerate(zip(metric["order"], counts, strict=True)):
        axes.stairs(y + 0.4 - 0.85 * row / most, edges, baseline=y + 0.4, fill=True, color=system_style(i)["color"])
    _name_rows(axes, [report["systems"][i] for i in metric["order"]])
    axes.set_xlabel(f"{metric['title']}: {metric['unit']}{_direction(metric)}")
    caption = f"How many prompts have which {metric['title']}; a system that collapses has bars on the left."
    said = "; ".join(
        f"{report['systems'][i]}: from {number(min(row), 2)} to {number(max(row), 2)}"
        for i, row in zip(metric["order"], scores, strict=True)
    )
    return Picture("collapse", "collapse", caption, to_svg(figure, f"{caption} {said}."))
