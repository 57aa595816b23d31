"""The pictures of a report, as SVG and PDF without a date."""

import warnings
from typing import NamedTuple

import numpy as np

from text_metrics.reporting.plots import SOFT, new_figure, styled, system_style, to_pdf, to_svg
from text_metrics.reporting.results import Metric, Report, Value

# In pixels of a page.
_WIDTH, _ROW = 340, 40
_BINS = 24
_MOST_IN_NAME = 20


class Picture(NamedTuple):
    """A picture with its caption."""

    caption: str
    svg: str
    pdf: bytes


def pictures(report: Report) -> dict[str, Picture]:
    """Draw the pictures of a report by section, from its numbers alone."""
    with styled("".join(map(_short, report.systems))), warnings.catch_warnings():
        # It says once what matplotlib says of each glyph.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        return _drawn(report)


def _drawn(report: Report) -> dict[str, Picture]:
    main = report.section("diversity")[0]
    drawn = {"diversity": _distributions(report, main)}
    quality = report.section("quality")
    if quality:
        drawn["quality"] = _plane(report, main, quality[0])
    return drawn


def _distributions(report: Report, metric: Metric) -> Picture:
    """Draw the scores of prompts and their mean, a row for each system."""
    values = [metric.values[i] for i in report.order]
    edges = np.histogram_bin_edges([value.scores for value in values], _BINS)
    counts = [np.histogram(value.scores, edges)[0] for value in values]
    most = np.max(counts)
    figure = new_figure(_WIDTH, 80 + _ROW * len(values))
    axes = figure.subplots()
    if report.are_steps:
        heights = [y + 0.3 for y in range(len(values))]
        axes.plot([value.mean for value in values], heights, color=SOFT, linewidth=1)
    for y, (i, value, row) in enumerate(zip(report.order, values, counts, strict=True)):
        style = system_style(i)
        axes.stairs(y + 0.3 - 0.8 * row / most, edges, baseline=y + 0.3, fill=True, alpha=0.4, color=style["color"])
        axes.hlines(y + 0.3, *_ends(value), color=style["color"], linewidth=3)
        axes.plot(value.mean, y + 0.3, markersize=8, **style)
    axes.set_yticks(range(len(values)), [_short(report.systems[i]) for i in report.order])
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.tick_params(length=0)
    axes.set_xlabel(_label(metric, axes.get_xlim()[0]))
    caption = (
        f"{metric.title}: the mark is the mean with its interval, the bars are prompts. A system that collapses has "
        "bars on the left."
    )
    return Picture(caption, to_svg(figure, caption), to_pdf(figure))


def _plane(report: Report, across: Metric, up: Metric) -> Picture:
    """Draw quality against diversity: a mark with both intervals for each system."""
    figure = new_figure(_WIDTH, 300)
    axes = figure.subplots()
    if report.are_steps:
        means = [(across.values[i].mean, up.values[i].mean) for i in report.order]
        axes.plot(*zip(*means, strict=True), color=SOFT, linewidth=1)
    for i in report.order:
        style = system_style(i)
        x = across.values[i]
        y = up.values[i]
        axes.hlines(y.mean, *_ends(x), color=style["color"], linewidth=2)
        axes.vlines(x.mean, *_ends(y), color=style["color"], linewidth=2)
        axes.plot(x.mean, y.mean, linestyle="none", markersize=9, label=_short(report.systems[i]), **style)
    axes.margins(0.08)
    axes.grid()
    axes.tick_params(length=0)
    axes.set_xlabel(_label(across, axes.get_xlim()[0]))
    axes.set_ylabel(_label(up, axes.get_ylim()[0]))
    figure.legend(loc="outside lower left", ncols=2)
    caption = f"Each mark is the mean of a system, with both intervals: {up.title} against {across.title}."
    if report.are_steps:
        caption += " The line joins the systems in order."
    return Picture(caption, to_svg(figure, caption), to_pdf(figure))


def _ends(value: Value) -> tuple[float, float]:
    """Return the ends of an interval, or the mean without one."""
    low, high = value.interval or (value.mean, value.mean)
    return low, high


def _label(metric: Metric, low: float) -> str:
    """Label an axis: which end is better, and whether it is cut."""
    better = "more diverse" if metric.section == "diversity" else "better"
    cut = ["does not begin at 0"] if low > 0 else []
    return "\n".join([f"{metric.title}, {metric.better} is {better}", *cut])


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _MOST_IN_NAME else f"{line[: _MOST_IN_NAME - 1]}…"
