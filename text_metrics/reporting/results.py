"""The parts of a report, as it is saved in `report.json`."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from text_metrics.core_api import Bounds
from text_metrics.files.written import mark

if TYPE_CHECKING:
    import pandas as pd

Interval = list[float] | None
# The kind of the caveat about lengths.
LENGTHS = "different lengths"


class Measure(NamedTuple):
    """A number of each set, its range, and how it is shown; `better` as in `Metric`."""

    name: str
    title: str
    better: str | None
    bounds: Bounds
    section: str = "diversity"


_POSITIVE = (0.0, math.inf)
# In order of display; a report may lack some of them.
_MEASURES = (
    Measure("vendi_embed", "Vendi score", "higher", (1.0, float)),
    Measure("n_classes", "Meanings", "higher", (1.0, float)),
    Measure("chamfer_diversity", "Chamfer diversity", "higher", (0.0, 2.0)),
    Measure("self_bleu", "Self-BLEU", "lower", (0.0, 1.0)),
    Measure("distinct", "Distinct-2", "higher", (0.0, 1.0)),
    Measure("compression_ratio", "Compression ratio", "lower", _POSITIVE),
    Measure("length", "Length", None, _POSITIVE),
    Measure("quality", "Compact GRUEN", "higher", (0.0, 1.0), "quality"),
    Measure("quality_vendi_embed", "Quality\u00a0× Vendi", "higher", _POSITIVE, "quality"),
)
MEASURES = {measure.name: measure for measure in _MEASURES}


@dataclass(frozen=True)
class Origin:
    """The file of a system, and numbers of rows, prompts and texts that were read."""

    file: str
    n_rows: int
    n_bad: int
    n_prompts: int
    n_texts: int


@dataclass(frozen=True)
class Mean:
    """A mean over prompts with its interval."""

    mean: float
    interval: Interval


@dataclass(frozen=True)
class Value(Mean):
    """The score of each prompt of a system, their mean, and whether the metric can measure most of its texts."""

    scores: list[float]
    is_reliable: bool = True


@dataclass(frozen=True)
class Test:
    """The paired test of systems a and b by a metric, as `paired_test` describes it; `p_holm` is adjusted."""

    a: int
    b: int
    n_units: int
    difference: float
    interval: Interval
    p: float | None
    smallest_difference: float | None
    p_holm: float | None = None


@dataclass(frozen=True)
class Metric:
    """The scores of all systems by a metric.

    better : "higher" or "lower"; None where neither is
    order : the systems, the best first
    best : the system that beats every other one, if there is one and all values are reliable
    """

    name: str
    title: str
    better: str | None
    section: str
    signature: str
    values: list[Value]
    tests: list[Test]
    order: list[int]
    best: int | None

    @property
    def is_reliable(self) -> bool:
        """True if the metric can measure most texts of every system."""
        return all(value.is_reliable for value in self.values)


@dataclass(frozen=True)
class Similarity(Mean):
    """The mean cosine of two texts on one prompt, one of system a and one of system b, which may be the same."""

    a: int
    b: int


@dataclass(frozen=True)
class Partition:
    """Diversity within and between groups of texts, as `text_metrics.between_groups` describes it.

    equal_share : the share of texts that equal one of another group on the same prompt
    """

    within: float
    pooled: float
    between: float
    between_interval: Interval
    between_expected: float
    share: float | None
    share_interval: Interval
    p: float
    equal_share: float
    signature: str


@dataclass(frozen=True)
class Pair(Partition):
    """The partition of systems a and b; p is also adjusted for all pairs."""

    a: int
    b: int
    p_holm: float | None = None


@dataclass(frozen=True)
class Likeness:
    """The partition of all systems, and of each pair of three or more, the most different first, and cosines."""

    partition: Partition
    pairs: list[Pair]
    similarity: list[Similarity]
    similarity_signature: str


@dataclass(frozen=True)
class People:
    """Partitions of people and each system, and last of two halves of people, at `n_texts` of each side."""

    n_texts: int
    n_prompts: int
    rows: list[Partition]


@dataclass(frozen=True)
class Collapse:
    """A prompt of low or of high diversity, with the share of its texts that equal another one.

    texts, context : its texts, and the prompt's own text, if they are shown
    """

    prompt: str
    score: float
    equal_share: float
    texts: list[str] | None
    context: str | None = None


@dataclass(frozen=True)
class Power:
    """Power of the tests that mark the first system by the first metric: what they find with a probability of 80 %.

    smallest_lead : over every other system, on the prompts of the report; None if none is possible
    difference, n_needed : a lead, and the number of prompts like these that it needs; None if it is more than 2**24
    """

    smallest_lead: float | None
    difference: float | None = None
    n_needed: int | None = None


@dataclass(frozen=True)
class Caveat:
    """A fault in the texts that could mislead readers.

    systems, metrics : what it is about, by index and by name; no system if it is about people
    is_doubt : True if the numbers are in doubt, such as the order of `systems` by `metrics`; False if `metrics` say
        nothing about `systems`
    """

    kind: str
    sentence: str
    systems: list[int] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    is_doubt: bool = False


@dataclass(frozen=True)
class SameLength:
    """The scores of diversity of texts cut to as many words as the shortest text of a prompt has, by prompt."""

    n_words: list[int]
    metrics: list[Metric]


@dataclass(frozen=True)
class Report:
    """A report on systems, which are given by their index; a part that was not asked for is None or empty.

    rarefied_to : the number of texts to which sets are rarefied; None where all have one size
    stripped : by system, and "people", from how many texts what is not the answer was removed, by kind, and how many
        are "empty" without it
    collapse, spread : for each system, its prompts of least and of most diversity, the most extreme first
    set_sizes, n_texts : the least and the largest number of texts of a system on a prompt, and the number of all
    order : in which systems are shown
    are_steps : whether the systems are steps of one parameter, whose means a line joins
    power : of the tests of the first metric; None where they are undefined
    commit : of the checkout that made the report
    sentences : the lines that head the page, by name
    """

    version: str
    options: dict[str, Any]
    confidence: float
    systems: list[str]
    sources: list[Origin]
    prompts: list[str]
    rarefied_to: int | None
    metrics: list[Metric]
    likeness: Likeness | None
    people: People | None
    collapse: list[list[Collapse]]
    caveats: list[Caveat]
    sentences: dict[str, str] = field(default_factory=dict)
    same_length: SameLength | None = None
    stripped: dict[str, dict[str, int]] = field(default_factory=dict)
    spread: list[list[Collapse]] = field(default_factory=list)
    set_sizes: list[int] = field(default_factory=list)
    n_texts: int = 0
    order: list[int] = field(default_factory=list)
    are_steps: bool = False
    power: Power | None = None
    commit: str | None = None

    def section(self, name: str) -> list[Metric]:
        """Return the metrics of a section, `diversity` or `quality`."""
        return [metric for metric in self.metrics if metric.section == name]

    @property
    def table(self) -> "pd.DataFrame":
        """Means and the ends of their intervals, a row for each system in the order of the report."""
        import pandas as pd

        columns: dict[str, list[Any]] = {}
        for metric in self.metrics:
            columns[metric.name] = [value.mean for value in metric.values]
            for end, name in enumerate(("low", "high")):
                columns[f"{metric.name}_{name}"] = [value.interval and value.interval[end] for value in metric.values]
        index = pd.Index(self.systems, name="system")
        return pd.DataFrame(columns, index, dtype=float).iloc[self.order]

    @property
    def tests(self) -> "pd.DataFrame":
        """The paired tests of all metrics: a row for each metric and pair of systems."""
        import pandas as pd

        rows = []
        for metric in self.metrics:
            for test in metric.tests:
                low, high = test.interval or (None, None)
                names = {"metric": metric.name, "a": self.systems[test.a], "b": self.systems[test.b]}
                rows.append(vars(test) | names | {"low": low, "high": high})
        shown = ["metric", "a", "b", "difference", "low", "high", "p", "p_holm", "smallest_difference"]
        return pd.DataFrame(rows, columns=shown)

    def to_json(self) -> str:
        """Format all numbers as JSON."""
        values = mark("report") | asdict(self)
        return json.dumps(values, ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"

    def _repr_html_(self) -> str:
        from text_metrics.reporting.page import notebook

        return notebook(self)

    def save(self, folder: str | Path, columns: Sequence[str] = ()) -> None:
        """Write the page, the JSON, tables and figures, as docs/report.md lists them, into a folder.

        columns : names of the metrics in `table.tex`, if the report has them; all by default
        """
        from text_metrics.reporting.page import write_pages

        write_pages(self, Path(folder), columns)
