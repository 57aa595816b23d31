"""What a report holds, as it is saved in `report.json`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Interval = list[float] | None
# The names of the metrics, in order of display; a report may lack some of them.
METRICS = (
    *("vendi_embed", "n_classes", "chamfer_diversity", "self_bleu", "distinct", "compression_ratio", "length"),
    *("quality", "quality_vendi_embed"),
)


@dataclass(frozen=True)
class Origin:
    """What was read of a system, and from where."""

    file: str
    n_rows: int
    n_bad: int
    n_prompts: int
    n_texts: int


@dataclass(frozen=True)
class Value:
    """The score of each prompt of a system, their mean, and whether the metric can measure most of its texts."""

    mean: float
    interval: Interval
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
    section : "diversity" or "quality"
    order : indices of the systems, the best first
    best : index of the system that beats every other one, if there is one and all values are reliable
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
        """Whether the metric can measure most texts of every system."""
        return all(value.is_reliable for value in self.values)


@dataclass(frozen=True)
class Mean:
    """A mean over prompts with its interval."""

    mean: float | None
    interval: Interval


@dataclass(frozen=True)
class Similarity(Mean):
    """The mean cosine of two texts on one prompt, one of system a and one of system b, which may be the same."""

    a: int
    b: int


@dataclass(frozen=True)
class Partition:
    """Diversity within and between groups of texts, as `text_metrics.between_groups` describes it.

    least_p : the smallest p that permutations can give; None where it has no bound
    """

    within: float
    pooled: float
    between: float
    between_interval: Interval
    between_expected: float
    share: float | None
    share_interval: Interval
    p: float
    least_p: float | None
    signature: str


@dataclass(frozen=True)
class Pair(Partition):
    """The partition of systems a and b; p is also adjusted for all pairs."""

    a: int
    b: int
    p_holm: float | None = None
    least_p_holm: float | None = None


@dataclass(frozen=True)
class Likeness:
    """The partition of all systems, and of each pair of three or more; and cosines of texts by system."""

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
    """A prompt of low diversity: its score, the share of texts that equal another one, and its texts, if shown."""

    prompt: str
    score: float
    equal_share: float
    texts: list[str] | None


@dataclass(frozen=True)
class Caveat:
    """What could mislead. The metrics say nothing about the systems, given by name and by index."""

    kind: str
    sentence: str
    systems: list[int] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """A report on systems, which are given by their index.

    rarefied_to : the number of texts of which scores are expectations; None where all sets have one size
    pairs : `pairs` of vendi_embed of all texts of each system, where sizes differ
    collapse : for each system, its prompts of least diversity, the least diverse first
    sentences : the lines that head the page, by name

    `table` and `tests` are data frames; `save` writes the page, the tables and the figures.
    """

    version: str
    options: dict[str, Any]
    confidence: float
    systems: list[str]
    sources: list[Origin]
    prompts: list[str]
    rarefied_to: int | None
    metrics: list[Metric]
    pairs: list[Mean] | None
    likeness: Likeness | None
    people: People | None
    collapse: list[list[Collapse]]
    caveats: list[Caveat]
    sentences: dict[str, str] = field(default_factory=dict)

    def section(self, name: str) -> list[Metric]:
        """Return the metrics of a section, `diversity` or `quality`."""
        return [metric for metric in self.metrics if metric.section == name]

    @property
    def table(self) -> "pd.DataFrame":
        """Means and the ends of their intervals, a row for each system, the most diverse first."""
        import pandas as pd

        columns: dict[str, list[float | None]] = {}
        for metric in self.metrics:
            low, high = zip(*(value.interval or (None, None) for value in metric.values), strict=True)
            columns[metric.name] = [value.mean for value in metric.values]
            columns |= {f"{metric.name}_low": list(low), f"{metric.name}_high": list(high)}
        frame = pd.DataFrame(columns, index=pd.Index(self.systems, name="system"), dtype=float)
        return frame.iloc[self.metrics[0].order]

    @property
    def tests(self) -> "pd.DataFrame":
        """The paired tests of all metrics: a row for each metric and pair of systems."""
        import pandas as pd

        rows = [
            {
                "metric": metric.name,
                "a": self.systems[test.a],
                "b": self.systems[test.b],
                "difference": test.difference,
                **dict(zip(("low", "high"), test.interval or (None, None), strict=True)),
                "p": test.p,
                "p_holm": test.p_holm,
                "smallest_difference": test.smallest_difference,
            }
            for metric in self.metrics
            for test in metric.tests
        ]
        return pd.DataFrame(rows)

    def to_json(self) -> str:
        """Format all numbers as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1, allow_nan=False, default=str) + "\n"

    def save(self, folder: str | Path, columns: Sequence[str] = ()) -> None:
        """Write the page, the JSON, tables and figures, as docs/report.md lists them, into a folder.

        columns : names of the metrics in `table.tex`, of which those that the report has are taken; all by default
        """
        from text_metrics.commands.report.page import write_pages

        write_pages(self, Path(folder), columns)

    def _repr_html_(self) -> str:
        """Return the summary and the tables of scores, for a notebook."""
        from text_metrics.commands.report.page import to_notebook

        return to_notebook(self)
