"""What could mislead in a report: each a sentence, with the systems that it is about."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.people import LENGTHS_APART, standardized, word_counts
from text_metrics.commands.report.scores import Quality
from text_metrics.commands.report.systems import Inputs, System
from text_metrics.commands.shared.formats import count, integer, listed, number
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20


class Caveat(NamedTuple):
    """What could mislead: its kind in a few words, the systems that it is about, and a sentence."""

    kind: str
    sentence: str
    systems: Sequence[str] = ()


def find_caveats(
    command: ReportCommand, inputs: Inputs, report: dict[str, Any], quality: Quality | None, cut: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the entries of `caveats` for a report that lacks only these and its sentences.

    `cut` are the warnings of the encoder about texts that it does not read whole.
    """
    found = [
        *_of_quality(command, quality),
        *_of_reading(inputs, report["systems"]),
        *_of_texts(command, inputs.prompts.by_system(), report["systems"]),
        *(Caveat("long texts", message) for message in cut),
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
    if len(prompts.ids) < FEW_PROMPTS:
        n = count(len(prompts.ids), "prompt")
        yield Caveat("few prompts", f"With {n}, intervals may be too narrow or missing, and tests find little.")
    for hint in inputs.hints:
        yield Caveat("systems in one file", hint, names)


def _of_texts(command: ReportCommand, texts: Sequence[list[str]], names: Sequence[str]) -> Iterator[Caveat]:
    """Name systems whose lengths differ, and texts that are empty or in another language."""
    lengths = [word_counts([members]) for members in texts]
    # None: neither of two systems varies.
    apart = {(i, j): standardized(lengths[i], lengths[j]) for i, j in combinations(range(len(names)), 2)}
    far = {pair: math.inf if d is None else abs(d) for pair, d in apart.items() if d is None or abs(d) >= LENGTHS_APART}
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
    readers = ["gruen"] if command.quality == GRUEN else []
    readers += [] if "model" in command.settings else ["the default encoder"]
    counts = {
        ("empty texts", "are empty: they count as texts that mean the same"): [
            sum(not text.strip() for text in members) for members in texts
        ],
        (
            "language",
            "are in another language than English, or source code; trained on English prose: " + " and ".join(readers),
        ): [sum(map(len, find_unread(members))) if readers else 0 for members in texts],
    }
    for (kind, what), of_kind in counts.items():
        some = [(name, n, len(of)) for name, n, of in zip(names, of_kind, texts, strict=True) if n]
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
            "People have one text for each prompt: there is no comparison with other people.",
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
