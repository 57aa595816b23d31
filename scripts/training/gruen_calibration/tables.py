"""The tables of a calibration."""

from scripts.training.gruen_calibration.corpora import CORPORA, SIZES
from scripts.training.gruen_calibration.rates import HUMAN, Row
from text_metrics.commands.shared.pages import Table
from text_metrics.metrics.gruen.gruen_focus import FOCUS_THRESHOLD

# The required rates by size: at most for texts as people wrote them, at least for faults.
_FIVE_TO_TWENTY = (5, 10, 20)
REQUIRED: dict[tuple[str, str], dict[int, float]] = {
    ("non-redundancy", HUMAN): dict.fromkeys(SIZES, 0.05),
    ("non-redundancy", "repeated word for word"): dict.fromkeys(SIZES, 0.9),
    ("non-redundancy", "repeated, one clause changed"): dict.fromkeys(SIZES, 0.9),
    ("non-redundancy", "opening clause repeated"): dict.fromkeys(SIZES, 0.8),
    ("non-redundancy", "loop of two sentences"): dict.fromkeys(SIZES, 0.98),
    ("focus", HUMAN): dict.fromkeys(SIZES, 0.1),
    ("focus", "sentence from another document"): dict(zip(_FIVE_TO_TWENTY, (0.75, 0.65, 0.5), strict=True)),
    ("focus", "second half of another document"): dict.fromkeys(SIZES, 0.8),
}
FALSE_ALARMS = (0.025, 0.05, 0.1, 0.2, 0.3)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def rate_table(component: str, rows: list[Row]) -> Table:
    """Share of texts that lose a component, by size; rates that miss a requirement are marked."""
    table = [[f"lose {component}", *(f"{size} sentences" for size in SIZES), "target"]]
    for row in rows:
        required = REQUIRED.get((component, row.name), {})
        cells = []
        for size in SIZES:
            share = row.rate(size)
            limit = required.get(size)
            # A rate is compared as it is printed.
            shown = None if share is None else round(share, 2)
            misses = shown is not None and limit is not None and (shown > limit if row.name == HUMAN else shown < limit)
            cells.append(_percent(share) + (" (missed)" if misses else ""))
        table.append([row.name, *cells, _limits(required, row.name == HUMAN)])
    return table


def _limits(required: dict[int, float], is_most: bool) -> str:
    if not required:
        return ""
    shares = list(dict.fromkeys(required.values()))
    return ("at most " if is_most else "") + " / ".join(f"{100 * share:.0f}" for share in shares) + " %"


def corpus_table(components: dict[str, list[Row]]) -> Table:
    """Share of texts as people wrote them that lose points, by corpus, and the mean loss of non-redundancy."""
    table = [["as people wrote them", "sentences", "lose non-redundancy", "mean", "lose focus"]]
    redundancy, focus = (rows[0].values for rows in components.values())
    for corpus in CORPORA:
        for size in SIZES:
            if corpus in redundancy.get(size, {}):
                flags, margins = redundancy[size][corpus], focus[size][corpus]
                lost, astray = (_percent(float((values < 0).mean())) for values in (flags, margins))
                mean = f"{round(flags.mean(), 2) + 0.0:.2f}".replace("-", "−")
                table.append([corpus, str(size), lost, mean, astray])
    return table


def curve_table(rows: list[Row]) -> Table:
    """Share of faults that focus finds, by the share of human texts that lose it: at other thresholds."""
    human, *faults = rows
    table = [["focus", "sentences", *(f"at {100 * share:g} %" for share in FALSE_ALARMS)]]
    for row in faults:
        for size in SIZES:
            if size in row.values:
                rates = [row.rate(size, human.quantile(size, share)) for share in FALSE_ALARMS]
                table.append([row.name, str(size), *map(_percent, rates)])
    return table


def threshold_table(rows: list[Row]) -> Table:
    """`focus_threshold` that takes the focus of a tenth of the human texts of a size: what the default is chosen by."""
    needed = [FOCUS_THRESHOLD + rows[0].quantile(size, 0.1) for size in SIZES]
    return [["sentences", *map(str, SIZES)], ["focus_threshold", *(f"{value:.3f}" for value in needed)]]
