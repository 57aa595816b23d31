"""What could mislead in a report: each a sentence, with the systems that it is about."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.embedding import Reach
from text_metrics.commands.report.people import LENGTHS_APART, standardized, word_counts
from text_metrics.commands.report.scores import Quality
from text_metrics.commands.report.systems import Inputs, System
from text_metrics.commands.shared.formats import significant
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20


def find_caveats(
    command: ReportCommand, inputs: Inputs, report: dict[str, Any], quality: Quality | None, reaches: Sequence[Reach]
) -> list[dict[str, Any]]:
    """Return the entries of `caveats` for a report that lacks only these and its sentences."""
    prompts, texts = inputs.prompts, inputs.prompts.by_system()
    caveats = Caveats(report["systems"])
    _add_reading(caveats, inputs)
    for hint in inputs.hints:
        caveats.add("systems", hint)
    _add_lengths(caveats, texts)
    _add_reach(caveats, reaches, command.settings.get("long_texts") != "cut")
    _add_language(caveats, texts, command)
    _add_quality(caveats, quality, command)
    _add_power(caveats, len(prompts.ids), report)
    _add_permutations(caveats, report["likeness"], command.confidence)
    _add_people(caveats, inputs.people, report["people"], len(prompts.ids))
    return caveats.entries


class Caveats:
    """The caveats of a report, in the order in which they are added."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.entries = names, list[dict[str, Any]]()

    def add(self, kind: str, sentence: str, systems: Sequence[str] | None = None) -> None:
        """Add a caveat about some systems, by default about all."""
        self.entries.append(
            {"kind": kind, "systems": list(self.names if systems is None else systems), "sentence": sentence}
        )

    def add_counts(self, kind: str, counts: Sequence[tuple[int, int]], what: str, effect: str) -> None:
        """Add a caveat about the systems of which some texts are of a kind.

        `counts` has for each system the number of such texts and of all; `what` is their predicate, such as "are
        empty", and `effect` a clause, what follows from it.
        """
        some = [(name, *pair) for name, pair in zip(self.names, counts, strict=True) if pair[0]]
        if some:
            listed = "; ".join(f"{count:,} of {total:,} texts of {name}" for name, count, total in some)
            self.add(kind, f"{listed} {what}: {effect}.", [name for name, *_ in some])


def _add_reading(caveats: Caveats, inputs: Inputs) -> None:
    """Add what was set aside, what is missing, and what was rarefied."""
    prompts = inputs.prompts
    bad = [(system.name, system.n_bad) for system in inputs.systems if system.n_bad]
    unknown = sum(row.system is None for row in inputs.bad)
    if bad or unknown:
        listed = [f"{_count(count, 'row')} of {name}" for name, count in bad]
        listed += [f"{_count(unknown, 'row')} of no known system"] if unknown else []
        caveats.add(
            "bad_rows",
            f"{', '.join(listed)} could not be used, or belong to a set with such a row; bad.jsonl has the reasons.",
            [name for name, _ in bad],
        )
    missing = [(system, len(ids)) for system, ids in zip(inputs.systems, prompts.missing, strict=True) if ids]
    if missing:
        listed = [f"{system.name} lacks {count:,}" for system, count in missing]
        caveats.add(
            "missing",
            f"Of {prompts.n_all:,} prompts, {', '.join(listed)} or has fewer than two texts for them: only the "
            f"{len(prompts.ids):,} that all systems have are used.",
            [system.name for system, _ in missing],
        )
    if prompts.smallest is not None:
        sizes = prompts.sizes
        caveats.add(
            "sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: Vendi scores, meanings, Chamfer diversity, self-BLEU, "
            f"Distinct-2 and compression ratio are what is expected of {prompts.smallest} texts of each, drawn at "
            f"random (rarefied).",
            [name for name, row in zip(caveats.names, sizes, strict=True) if row.max() > prompts.smallest],
        )


def _add_lengths(caveats: Caveats, texts: Sequence[list[str]]) -> None:
    """Add systems whose lengths differ enough to explain other differences, and empty texts."""
    lengths = [word_counts([members]) for members in texts]
    apart = []
    for i, j in combinations(range(len(lengths)), 2):
        size = standardized(lengths[i], lengths[j])
        if size is None or abs(size) >= LENGTHS_APART:
            apart.append((math.inf if size is None else abs(size), i, j))
    if apart:
        size, i, j = max(apart, key=lambda entry: entry[0])
        far = f", {size:.1f} standard deviations apart" if math.isfinite(size) else ""
        pairs = f"{_count(len(apart), 'pair')} of systems {'differs' if len(apart) == 1 else 'differ'}"
        caveats.add(
            "lengths",
            f"{pairs} in length by {LENGTHS_APART:g} standard deviations or more, most of all {caveats.names[i]} "
            f"({lengths[i].mean():.1f} words a text) and {caveats.names[j]} ({lengths[j].mean():.1f}){far}: self-BLEU, "
            "Distinct-2 and compression ratio depend on length, and similarity may.",
            [caveats.names[index] for index in sorted({index for _, *pair in apart for index in pair})],
        )
    counts = [(sum(not text.strip() for text in members), len(members)) for members in texts]
    caveats.add_counts("empty", counts, "are empty", "they count as texts that mean the same")


def _add_reach(caveats: Caveats, reaches: Sequence[Reach], in_windows: bool) -> None:
    """Add texts that the encoder cuts, reads in windows, or does not know."""
    limit = next((reach.limit for reach in reaches if reach.limit is not None), None)
    what = f"are longer than the {limit} tokens that the encoder reads at a time"
    effect = "each is embedded as the mean of its windows" if in_windows else "the rest of each is cut off"
    caveats.add_counts("cut", [(reach.n_long, reach.n) for reach in reaches], what, effect)
    caveats.add_counts(
        "unread",
        [(reach.n_unread, reach.n) for reach in reaches],
        "consist of words that the encoder does not know, such as emoji or another script",
        "their similarities are unreliable",
    )


def _add_language(caveats: Caveats, texts: Sequence[list[str]], command: ReportCommand) -> None:
    """Add texts that are not English prose, which is what gruen and the default encoder are trained on."""
    readers = ["gruen"] if command.quality == GRUEN else []
    readers += [] if "model" in command.settings else ["the default encoder"]
    if readers:
        counts = [(sum(map(len, find_unread(members))), len(members)) for members in texts]
        effect = f"{' and '.join(readers)} {'is' if len(readers) == 1 else 'are'} trained on English prose"
        caveats.add_counts("language", counts, "are in another language than English, or source code", effect)


def _add_quality(caveats: Caveats, quality: Quality | None, command: ReportCommand) -> None:
    """Add what the quality cannot tell."""
    if quality is None:
        caveats.add("quality", "Quality was not measured: diversity may come from bad texts.")
        return
    if command.quality == GRUEN:
        return
    low, high = float(quality.values.min()), float(quality.values.max())
    if low < 0 or high > 1:
        caveats.add(
            "quality",
            f"{command.quality_key} is from {low:g} to {high:g}, not within [0, 1]: there is no score of diversity "
            "weighted by quality.",
        )


def _add_power(caveats: Caveats, n: int, report: dict[str, Any]) -> None:
    """Add that there are few prompts, and how large a difference they show."""
    if n >= FEW_PROMPTS:
        return
    size = ""
    if report["power"]:
        shown = report["power"][0]
        (title,) = (metric["title"] for metric in report["metrics"] if metric["name"] == shown["metric"])
        size = f" A test finds a difference in mean {title} from {significant(shown['difference'])} on, at 80 % power."
    caveats.add("few", f"With {_count(n, 'prompt')}, intervals may be too narrow or missing.{size}")


def _add_people(caveats: Caveats, people: System | None, section: dict[str, Any] | None, n_prompts: int) -> None:
    """Add what limits the comparison with people."""
    if people is None:
        return
    if people.n_bad:
        rows = _count(people.n_bad, "row")
        caveats.add("bad_rows", f"{rows} of people could not be used; bad.jsonl has the reasons.", [])
    if section is None:
        caveats.add("people", "People and systems have no prompt in common: they are not compared.")
        return
    if section["n_prompts"] < n_prompts:
        caveats.add(
            "people", f"People and systems are compared on {section['n_prompts']:,} of {n_prompts:,} prompts.", []
        )
    if all(row["system"] is not None for row in section["rows"]):
        caveats.add(
            "people",
            "People have one text for each prompt: there is no comparison with other people, and the neighbours of "
            "their texts are on other prompts, so precision, recall and coverage tell little.",
            [],
        )
    apart = [
        caveats.names[row["system"]] for row in section["rows"] if row["system"] is not None and row["length_warning"]
    ]
    if apart:
        caveats.add(
            "lengths",
            f"Texts of {', '.join(apart)} differ in length from people's by {LENGTHS_APART:g} standard deviations or "
            "more, which may explain their distance from people.",
            apart,
        )


def _add_permutations(caveats: Caveats, section: dict[str, Any] | None, level: float) -> None:
    """Add that pairs of systems are too many for their permutation tests."""
    if section is None:
        return
    if section["partition"]["least_p"] is None:
        return
    n_pairs, permutations = len(section["pairs"]), section["pairs_permutations"]
    smallest = n_pairs / (1 + permutations)
    if smallest >= 1 - level:
        caveats.add(
            "permutations",
            f"After Holm's adjustment, no p-value of the {n_pairs} pairs of systems can be below {smallest:.2g}, "
            f"because each test has {permutations} permutations.",
        )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
