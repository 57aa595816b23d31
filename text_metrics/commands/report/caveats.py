"""What could mislead in a report: each a sentence, with the systems that it is about."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.embedding import Reach
from text_metrics.commands.report.people import LENGTHS_APART, standardized, word_counts
from text_metrics.commands.report.scores import Quality
from text_metrics.commands.report.systems import Inputs, System
from text_metrics.commands.shared.formats import count, integer, listed, number, significant
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20


class Caveat(NamedTuple):
    """What could mislead: its kind in a few words, the systems that it is about, and a sentence."""

    kind: str
    sentence: str
    systems: Sequence[str] = ()


def find_caveats(
    command: ReportCommand, inputs: Inputs, report: dict[str, Any], quality: Quality | None, reaches: Sequence[Reach]
) -> list[dict[str, Any]]:
    """Return the entries of `caveats` for a report that lacks only these and its sentences."""
    found = [
        *_of_quality(command, quality),
        *_of_reading(inputs, report["systems"]),
        *_of_texts(command, inputs.prompts.by_system(), report["systems"], reaches),
        *_of_numbers(report, command.confidence),
        *_of_people(inputs.people, report),
    ]
    return [caveat._asdict() for caveat in found]


def _of_reading(inputs: Inputs, names: Sequence[str]) -> Iterator[Caveat]:
    """Say what was set aside, what is missing, what was rarefied, and what may be several systems."""
    prompts = inputs.prompts
    bad = [(system.name, system.n_bad) for system in inputs.systems if system.n_bad]
    unknown = sum(row.system is None for row in inputs.bad)
    if bad or unknown:
        rows = [f"{count(n, 'row')} of {name}" for name, n in bad]
        rows += [f"{count(unknown, 'row')} of no known system"] if unknown else []
        yield Caveat(
            "rows set aside",
            f"{', '.join(rows)} could not be used, or belong to a set with such a row; bad.jsonl has the reasons.",
            [name for name, _ in bad],
        )
    missing = [(name, len(ids)) for name, ids in zip(names, prompts.missing, strict=True) if ids]
    if missing:
        lacks = ", ".join(f"{name} lacks {integer(n)}" for name, n in missing)
        yield Caveat(
            "missing prompts",
            f"Of {count(prompts.n_all, 'prompt')}, {lacks} or has fewer than two texts for them: only the "
            f"{integer(len(prompts.ids))} that all systems have are used.",
            [name for name, _ in missing],
        )
    if prompts.smallest is not None:
        sizes = prompts.sizes
        yield Caveat(
            "sets of different sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: Vendi scores, meanings, Chamfer diversity, self-BLEU, "
            f"Distinct-2 and compression ratio are what is expected of {prompts.smallest} texts of each, drawn at "
            "random (rarefied).",
            [name for name, row in zip(names, sizes, strict=True) if row.max() > prompts.smallest],
        )
    for hint in inputs.hints:
        yield Caveat("systems in one file", hint, names)


def _of_texts(
    command: ReportCommand, texts: Sequence[list[str]], names: Sequence[str], reaches: Sequence[Reach]
) -> Iterator[Caveat]:
    """Name systems whose lengths differ, and texts that are empty, in another language, or not read as they are."""
    lengths = [word_counts([members]) for members in texts]
    pairs = list(combinations(range(len(names)), 2))
    apart = {(i, j): standardized(lengths[i], lengths[j]) for i, j in pairs}
    # None: neither side varies.
    far = {pair: float("inf") if d is None else abs(d) for pair, d in apart.items() if d is None or abs(d) >= 0.5}
    if far:
        i, j = max(far, key=lambda pair: far[pair])
        yield Caveat(
            "different lengths",
            f"{count(len(far), 'pair')} of systems differ in length by {LENGTHS_APART:g} standard deviations or more, "
            f"most of all {names[i]} ({number(lengths[i].mean(), 1)} words a text) and {names[j]} "
            f"({number(lengths[j].mean(), 1)}): self-BLEU, Distinct-2 and compression ratio depend on length, and "
            "similarity may.",
            [names[k] for k in sorted({k for pair in far for k in pair})],
        )
    totals = [len(members) for members in texts]
    different = [reach.n for reach in reaches]
    limit = next((reach.limit for reach in reaches if reach.limit is not None), None)
    is_cut = command.settings.get("long_texts") == "cut"
    readers = ["gruen"] if command.quality == GRUEN else []
    readers += [] if "model" in command.settings else ["the default encoder"]
    kinds: list[tuple[str, list[int], list[int], str]] = [
        (
            "empty texts",
            [sum(not text.strip() for text in members) for members in texts],
            totals,
            "are empty: they count as texts that mean the same",
        ),
        (
            "long texts",
            [reach.n_long for reach in reaches],
            different,
            f"are longer than the {limit} tokens that the encoder reads at a time: "
            + ("the rest of each is cut off" if is_cut else "each is embedded as the mean of its windows"),
        ),
        (
            "unknown words",
            [reach.n_unread for reach in reaches],
            different,
            "consist of words that the encoder does not know, such as emoji or another script: their similarities are "
            "unreliable",
        ),
        (
            "language",
            [sum(map(len, find_unread(members))) if readers else 0 for members in texts],
            totals,
            f"are in another language than English, or source code; trained on English prose: {' and '.join(readers)}",
        ),
    ]
    for kind, counts, of, what in kinds:
        some = [(name, n, total) for name, n, total in zip(names, counts, of, strict=True) if n]
        if some:
            shares = "; ".join(f"{integer(n)} of {count(total, 'text')} of {name}" for name, n, total in some)
            yield Caveat(kind, f"{shares} {what}.", [name for name, *_ in some])


def _of_quality(command: ReportCommand, quality: Quality | None) -> Iterator[Caveat]:
    """Say what the quality cannot tell."""
    if quality is None:
        yield Caveat("unmeasured quality", "Quality was not measured: diversity may come from bad texts.")
    elif command.quality_key is not None:
        low, high = float(quality.values.min()), float(quality.values.max())
        if low < 0 or high > 1:
            yield Caveat(
                "range of quality",
                f"{command.quality_key} is from {low:g} to {high:g}, not within [0, 1]: there is no score of diversity "
                "weighted by quality.",
            )


def _of_numbers(report: dict[str, Any], level: float) -> Iterator[Caveat]:
    """Say that there are few prompts, or too many pairs of systems for their permutation tests."""
    n = report["prompts"]["n"]
    if n < FEW_PROMPTS:
        size = ""
        if report["power"]:
            shown = report["power"][0]
            (title,) = (metric["title"] for metric in report["metrics"] if metric["name"] == shown["metric"])
            size = f" A test at 80 % power finds a difference in mean {title} from {significant(shown['difference'])}."
        yield Caveat("few prompts", f"With {count(n, 'prompt')}, intervals may be too narrow or missing.{size}")
    alike = report["likeness"]
    if alike is not None and alike["partition"]["least_p"] is not None:
        n_pairs, permutations = len(alike["pairs"]), alike["pairs_permutations"]
        smallest = n_pairs / (1 + permutations)
        if smallest >= 1 - level:
            yield Caveat(
                "permutations",
                f"After Holm's adjustment, no p-value of the {n_pairs} pairs of systems can be below {smallest:.2g}, "
                f"because each test has {integer(permutations)} permutations.",
            )


def _of_people(people: System | None, report: dict[str, Any]) -> Iterator[Caveat]:
    """Say what limits the comparison with people."""
    if people is None:
        return
    if people.n_bad:
        rows = count(people.n_bad, "row")
        yield Caveat("rows set aside", f"{rows} of people could not be used; bad.jsonl has the reasons.")
    section, n = report["people"], report["prompts"]["n"]
    if section is None:
        yield Caveat("people", "People and systems have no prompt in common: they are not compared.")
        return
    if section["n_prompts"] < n:
        yield Caveat(
            "people", f"People and systems are compared on {integer(section['n_prompts'])} of {count(n, 'prompt')}."
        )
    if all(row["system"] is not None for row in section["rows"]):
        yield Caveat(
            "people",
            "People have one text for each prompt: there is no comparison with other people, and the neighbours of "
            "their texts are on other prompts, so precision, recall and coverage tell little.",
        )
    apart = [row["system"] for row in section["rows"] if row["system"] is not None and row["length_warning"]]
    if apart:
        names = [report["systems"][i] for i in apart]
        yield Caveat(
            "different lengths",
            f"Texts of {listed(names)} differ in length from people's by {LENGTHS_APART:g} standard deviations or "
            "more, which may explain their distance from people.",
            names,
        )
