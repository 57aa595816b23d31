"""The pictures of a report, as SVG without a date."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from text_metrics.commands.report.sentences import Report, in_section
from text_metrics.commands.shared.formats import listed
from text_metrics.commands.shared.plots import new_figure, styled, system_style, to_svg

# In pixels of a page, as wide as a phone: of a picture, and of a row.
_WIDTH, _ROW = 340, 24
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
    return [*drawn, _distributions(report)]


def _means(report: Report, metric: dict[str, Any]) -> str:
    """Draw the mean of each system with its interval, the best above."""
    values, order = metric["values"], metric["order"]
    figure = new_figure(_WIDTH, 90 + _ROW * len(order))
    axes = figure.subplots()
    for y, i in enumerate(order):
        mean, ends = values[i]["mean"], values[i]["interval"]
        axes.hlines(y, *(ends or [mean, mean]), color=system_style(i)["color"], linewidth=2.5)
        axes.plot(mean, y, markersize=8, **system_style(i))
    _name_rows(axes, report, order)
    axes.margins(x=0.08)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x")
    axes.set_title(metric["title"])
    axes.set_xlabel(_label(metric, metric["unit"], axes.get_xlim()[0]))
    return to_svg(figure, f"{metric['title']} of {listed(report['systems'][i] for i in order)}, the best first.")


def _label(metric: dict[str, Any], text: str, low: float) -> str:
    """Label an axis: which end is better, and whether it is cut."""
    notes = []
    if metric["better"] is not None:
        notes.append(f"{metric['better']} is {'more diverse' if metric['section'] == 'diversity' else 'better'}")
    if low > 0:
        notes.append("does not begin at 0")
    return "\n".join([text, *notes])


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _MOST_IN_NAME else f"{line[: _MOST_IN_NAME - 1]}…"


def _name_rows(axes: Axes, report: Report, order: list[int]) -> None:
    axes.set_yticks(range(len(order)), [_short(report["systems"][i]) for i in order])
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)


def _plane(report: Report) -> Picture:
    """Draw quality against diversity: a mark with both intervals for each system."""
    across, up = in_section(report, "diversity")[0], in_section(report, "quality")[0]
    figure = new_figure(_WIDTH, 300)
    axes = figure.subplots()
    for i in across["order"]:
        style = system_style(i)
        x, y = (metric["values"][i]["mean"] for metric in (across, up))
        x_ends, y_ends = (metric["values"][i]["interval"] for metric in (across, up))
        axes.hlines(y, *(x_ends or [x, x]), color=style["color"], linewidth=2)
        axes.vlines(x, *(y_ends or [y, y]), color=style["color"], linewidth=2)
        axes.plot(x, y, linestyle="none", markersize=9, label=_short(report["systems"][i]), **style)
    axes.margins(0.08)
    axes.grid()
    axes.tick_params(length=0)
    axes.set_xlabel(_label(across, across["title"], axes.get_xlim()[0]))
    axes.set_ylabel(_label(up, up["title"], axes.get_ylim()[0]))
    figure.legend(loc="outside lower left", ncols=2)
    caption = f"Each mark is the mean of a system, with both intervals: {up['title']} against {across['title']}."
    return Picture("quality", "plane", caption, to_svg(figure, caption))


def _distributions(report: Report) -> Picture:
    """Draw the distribution of the first metric over prompts, a row for each system."""
    metric = in_section(report, "diversity")[0]
    order = metric["order"]
    scores = [metric["values"][i]["scores"] for i in order]
    edges = np.histogram_bin_edges(np.concatenate(scores), 40)
    counts = [np.histogram(of_system, edges)[0] for of_system in scores]
    most = max(row.max() for row in counts)
    figure = new_figure(_WIDTH, 90 + 36 * len(scores))
    axes = figure.subplots()
    for y, (i, row) in enumerate(zip(order, counts, strict=True)):
        axes.stairs(y + 0.4 - 0.85 * row / most, edges, baseline=y + 0.4, fill=True, color=system_style(i)["color"])
    _name_rows(axes, report, order)
    axes.set_xlabel(_label(metric, f"{metric['title']}: {metric['unit']}", edges[0]))
    caption = f"How many prompts have which {metric['title']}; a system that collapses has bars on the left."
    return Picture("collapse", "collapse", caption, to_svg(figure, caption))
