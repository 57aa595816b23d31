"""Measure how often confidence intervals contain the true value, and how often tests reject a true null hypothesis.

    python -m scripts.reports.intervals
    python -m scripts.reports.intervals --write docs/intervals.md

Scores of n items are drawn many times from a distribution with a known mean. An interval at level 0.95 should contain
this mean in 95 % of the samples. A test of the hypothesis that it is the mean should reject it at 0.05 in 5 %. The same
is done for statistics that are not means, whose intervals are those of the jackknife.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from scripts.arguments import publish
from text_metrics.commands.meta_eval.raters import spearman
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.pages import Table, markdown_table
from text_metrics.commands.shared.statistics import mean_p, randomization_p
from text_metrics.metrics._core.core_results import jackknife_estimate, mean_estimate

LEVEL = 0.95
SIZES = (5, 10, 20, 50, 100, 200)
# Numbers of samples, and of resamples of the bootstrap and of randomization.
COVERAGE_SAMPLES, TEST_SAMPLES = 10_000, 2000
# Numbers of units for statistics that are not means.
JACKKNIFE_SIZES = (5, 10, 20, 40, 100, 200)
RESAMPLES = 1000
SEED = 0


class Scores(NamedTuple):
    """A distribution of scores.

    draw : maps a generator and a shape to independent scores
    mean : of the scores
    """

    name: str
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    mean: float


def _at_the_top(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 4 - np.where(rng.random(shape) < 0.5, 0, rng.exponential(0.5, shape))


def _mostly_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.7, 0, rng.lognormal(size=shape))


DISTRIBUTIONS = (
    Scores("normal", lambda rng, shape: rng.normal(size=shape), 0.0),
    Scores("lognormal", lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
    Scores("0 or 1, 90 % are 1", lambda rng, shape: (rng.random(shape) < 0.9) * 1.0, 0.9),
    Scores("half at the maximum, the others exponential below it", _at_the_top, 3.75),
    Scores("70 % at 0, the others lognormal", _mostly_zero, float(0.3 * np.exp(0.5))),
)
# Differences of two systems whose mean is 0.
DIFFERENCES = (
    Scores("normal", lambda rng, shape: rng.normal(size=shape), 0.0),
    Scores("-1, 0 or 1: 10, 80, 10 %", lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], shape, p=[0.1, 0.8, 0.1]), 0.0),
    Scores("exponential", lambda rng, shape: rng.exponential(size=shape) - 1, 0.0),
    Scores("lognormal", lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5), 0.0),
    Scores("-1, 0 or 3: 15, 80, 5 %", lambda rng, shape: rng.choice([-1.0, 0.0, 3.0], shape, p=[0.15, 0.8, 0.05]), 0.0),
)


class Statistic(NamedTuple):
    """A statistic that is not a mean.

    draw : maps a generator and a number of units n to a sample: ndarray of shape (columns, n)
    of_sample : maps a sample to the statistic, and to it without each unit: ndarray of shape (n,)
    value : of all units there are
    samples : how many are drawn
    """

    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    of_sample: Callable[[np.ndarray], tuple[float, np.ndarray]]
    value: float
    samples: int = COVERAGE_SAMPLES


def _of_sums(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return the `of_sample` of a function of the sums of the columns."""

    def of_sample(columns: np.ndarray) -> tuple[float, np.ndarray]:
        sums = columns.sum(axis=1, keepdims=True)
        return float(function(sums)[0]), function(sums - columns)

    return of_sample


def _geometric_mean(sums: np.ndarray) -> np.ndarray:
    return np.exp(np.log(sums[1:] / sums[0]).mean(axis=0))


def _ranked(columns: np.ndarray) -> tuple[float, np.ndarray]:
    n = columns.shape[1]
    others = columns[:, None].repeat(n, axis=1)[:, ~np.eye(n, dtype=bool)].reshape(2, n, n - 1)
    return float(spearman(*columns)), spearman(*others)


def _parts_of(totals: np.ndarray, shares: np.ndarray) -> np.ndarray:
    return np.stack([totals * shares, totals])


def _precisions(rng: np.random.Generator, n: int) -> np.ndarray:
    totals = 1 + rng.poisson(rng.lognormal(4, 0.5, n))
    return np.stack([totals, *(totals * rng.beta(10 * p, 10 * (1 - p), n) for p in _PRECISIONS)])


_RATIO = _of_sums(lambda sums: sums[0] / sums[1])
# Of n-grams of orders 1 to 4, as a corpus BLEU has.
_PRECISIONS = (0.7, 0.4, 0.25, 0.15)
_CORRELATED = [[1, 0.6], [0.6, 1]]
STATISTICS = (
    Statistic(
        "ratio of sums: lognormal totals, shares of Beta(9, 1)",
        lambda rng, n: _parts_of(rng.lognormal(size=n), rng.beta(9, 1, n)),
        _RATIO,
        0.9,
    ),
    Statistic(
        "the same, totals of Gamma(2)",
        lambda rng, n: _parts_of(rng.gamma(2, size=n), rng.beta(9, 1, n)),
        _RATIO,
        0.9,
    ),
    Statistic(
        "ratio of sums: lognormal totals, shares of Beta(5, 5)",
        lambda rng, n: _parts_of(rng.lognormal(size=n), rng.beta(5, 5, n)),
        _RATIO,
        0.5,
    ),
    Statistic(
        "ratio of means: lognormal and uniform",
        lambda rng, n: np.stack([rng.lognormal(size=n), rng.uniform(0.5, 1.5, n)]),
        _RATIO,
        float(np.exp(0.5)),
    ),
    Statistic(
        "geometric mean of four ratios of sums, as corpus BLEU",
        _precisions,
        _of_sums(_geometric_mean),
        float(np.prod(_PRECISIONS) ** (1 / len(_PRECISIONS))),
    ),
    Statistic(
        "Spearman's correlation of normal values, 0.58",
        lambda rng, n: rng.multivariate_normal([0, 0], _CORRELATED, n).T,
        _ranked,
        float(6 / np.pi * np.arcsin(0.6 / 2)),
        TEST_SAMPLES,
    ),
)


class Coverage(NamedTuple):
    """How often intervals contain the mean, among the samples whose scores are not all equal.

    width : median width, relative to that of Student's interval
    none : share of samples whose scores are all equal, which have no interval
    """

    skewed: float
    student: float
    bootstrap: float
    width: float
    none: float


def generator(row: Scores | Statistic, n: int) -> np.random.Generator:
    """Return the generator of one cell of a table, so that each cell can be computed alone."""
    return np.random.default_rng([SEED, n, *row.name.encode()])


def coverage(scores: Scores, n: int, samples: int = COVERAGE_SAMPLES) -> Coverage:
    """Measure the coverage of the intervals of means of n scores."""
    rng = generator(scores, n)
    values = scores.draw(rng, (samples, n))
    estimates = [estimate for row in values if (estimate := mean_estimate(row)).error > 0]
    values = values[np.ptp(values, axis=1) > 0]
    skewed = np.array([estimate.interval(LEVEL) for estimate in estimates])
    half = t.ppf((1 + LEVEL) / 2, n - 1) * values.std(axis=1, ddof=1) / np.sqrt(n)
    student = values.mean(axis=1)[:, None] + half[:, None] * [-1, 1]
    drawn = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n
    percentile = np.quantile(values @ drawn.T, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1).T
    intervals = (skewed, student, percentile)
    held = [float(((ends[:, 0] <= scores.mean) & (scores.mean <= ends[:, 1])).mean()) for ends in intervals]
    width = float(np.median(np.ptp(skewed, axis=1) / np.ptp(student, axis=1)))
    return Coverage(held[0], held[1], held[2], width, 1 - len(estimates) / samples)


def unit_coverage(n: int, by_unit: bool, samples: int = COVERAGE_SAMPLES) -> float:
    """Measure the coverage for n prompts with 1 to 8 texts, whose scores share half of their variance."""
    rng = np.random.default_rng([SEED, n])
    held = 0
    for _ in range(samples):
        units = np.repeat(np.arange(n), rng.integers(1, 9, n))
        values = rng.normal(size=n)[units] + rng.normal(size=len(units))
        low, high = mean_estimate(values, units if by_unit else None).interval(LEVEL) or (np.nan, np.nan)
        held += low <= 0 <= high
    return held / samples


class JackknifeCoverage(NamedTuple):
    """How often intervals of the jackknife contain the value of a statistic, among the samples that have one.

    fewer : as they are, with the degrees of freedom of the variance
    all : with n - 1 degrees of freedom
    student : without the correction for skewness, too
    width : median width, relative to the last
    """

    fewer: float
    all: float
    student: float
    width: float


def jackknife_coverage(statistic: Statistic, n: int, samples: int | None = None) -> JackknifeCoverage:
    """Measure the coverage of the intervals of a statistic that is not a mean."""
    rng = generator(statistic, n)
    intervals = []
    for _ in range(samples or statistic.samples):
        estimate = jackknife_estimate(*statistic.of_sample(statistic.draw(rng, n)))
        if estimate.error > 0:
            others = estimate._replace(effective_degrees=None), estimate._replace(effective_degrees=None, skewness=0.0)
            intervals.append([one.interval(LEVEL) for one in (estimate, *others)])
    ends = np.array(intervals)
    held = ((ends[..., 0] <= statistic.value) & (statistic.value <= ends[..., 1])).mean(axis=0).tolist()
    widths = np.ptp(ends, axis=2)
    return JackknifeCoverage(held[0], held[1], held[2], float(np.median(widths[:, 0] / widths[:, 2])))


def sizes(differences: Scores, n: int, samples: int = TEST_SAMPLES) -> tuple[float, float]:
    """Measure how often a true null hypothesis is rejected: by the test of the mean, and by randomization."""
    values = differences.draw(generator(differences, n), (samples, n))
    by_mean = [(p := mean_p(mean_estimate(row))) is not None and p <= 1 - LEVEL for row in values]
    by_signs = [randomization_p(row, RESAMPLES - 1) <= 1 - LEVEL for row in values]
    return float(np.mean(by_mean)), float(np.mean(by_signs))


def percent(share: float) -> str:
    """Format a share in percent."""
    return f"{100 * share:.1f}"


def _rows(name: str, cells: Sequence[Coverage | JackknifeCoverage], others: tuple[str, str]) -> Table:
    """Format the cells of a distribution or statistic: our method first, then two others, then the width of ours."""
    rows = [[title, *(percent(cell[i]) for cell in cells)] for i, title in enumerate((f"**{name}**", *others))]
    return [*rows, ["width, relative to Student's", *(f"{cell.width:.2f}" for cell in cells)]]


def coverage_table() -> Table:
    """Measure all distributions and sizes."""
    table = [["coverage of 95 % intervals, %", *(f"n = {n}" for n in SIZES)]]
    for scores in DISTRIBUTIONS:
        cells = [coverage(scores, n) for n in SIZES]
        table += _rows(scores.name, cells, ("Student's t", "percentile bootstrap"))
        if any(cell.none >= 0.0005 for cell in cells):
            table.append(["samples without an interval, %", *(percent(cell.none) for cell in cells)])
    table.append(["**n prompts with 1 to 8 texts, over prompts**", *(percent(unit_coverage(n, True)) for n in SIZES)])
    table.append(["the same, over texts", *(percent(unit_coverage(n, False)) for n in SIZES)])
    return table


def jackknife_table() -> Table:
    """Measure all statistics and numbers of units."""
    table = [["coverage of 95 % intervals of the jackknife, %", *(f"n = {n}" for n in JACKKNIFE_SIZES)]]
    for statistic in STATISTICS:
        cells = [jackknife_coverage(statistic, n) for n in JACKKNIFE_SIZES]
        table += _rows(statistic.name, cells, ("with n - 1 degrees of freedom", "Student's t"))
    return table


def size_table() -> Table:
    """Measure both tests."""
    table = [["rejected at 0.05, %", *(f"n = {n}" for n in SIZES)]]
    for differences in DIFFERENCES:
        by_mean, by_signs = zip(*(sizes(differences, n) for n in SIZES), strict=True)
        table.append([f"**{differences.name}**", *map(percent, by_mean)])
        table.append(["randomization", *map(percent, by_signs)])
    return table


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables between their markers in a page")
    arguments = parser.parse_args()
    for name, table in (("coverage", coverage_table()), ("jackknife", jackknife_table()), ("tests", size_table())):
        publish(markdown_table(table), arguments.write, name)


if __name__ == "__main__":
    raise SystemExit(main())
