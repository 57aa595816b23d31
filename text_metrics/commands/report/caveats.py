"""What could mislead in a report: pairs of a kind, in a few words, and a sentence that names the systems."""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.likeness import LENGTHS_APART, standardized
from text_metrics.commands.report.scores import word_counts
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.formats import count, integer, listed, number
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20
_Caveats = Iterator[tuple[str, str]]


def find_caveats(
    command: ReportCommand, inputs: Inputs, report: dict[str, Any], ratings: np.ndarray | None, cut: Sequence[str]
) -> list[dict[str, str]]:
    """Return the entries of `caveats` for a report that lacks only these and its sentences.

    `ratings` are those of texts, (n,), and `cut` the warnings of the encoder about texts that it does not read whole.
    """
    found = [
        *_of_quality(command, ratings),
        *_of_reading(inputs),
        *_of_texts(command, inputs.prompts.by_system(), report["systems"]),
        *(("long texts", message) for message in cut),
        *_of_people(inputs, report),
    ]
    return [{"kind": kind, "sentence": sentence} for kind, sentence in found]


def _of_quality(command: ReportCommand, ratings: np.ndarray | None) -> _Caveats:
    """Say what the quality cannot tell."""
    if ratings is None:
        yield "unmeasured quality", "Quality was not measured: diversity may come from bad texts."
    elif ratings.min() < 0 or ratings.max() > 1:
        extent = f"{command.quality_key} is from {ratings.min():g} to {ratings.max():g}, not within [0, 1]"
        yield "range of quality", f"{extent}: there is no score of diversity weighted by quality."


def _of_reading(inputs: Inputs) -> _Caveats:
    """Say what was set aside, what is missing, what was rarefied, and what may be several systems."""
    prompts, n = inputs.prompts, len(inputs.prompts.ids)
    if inputs.bad:
        names = [part.system or "no known system" for part in inputs.bad]
        rows = listed(f"{count(names.count(name), 'row')} of {name}" for name in dict.fromkeys(names))
        yield (
            "rows set aside",
            f"{rows} could not be used, or belong to a set with such a row; bad.jsonl has the reasons.",
        )
    missing = [(system.name, ids) for system, ids in zip(inputs.systems, prompts.missing, strict=True) if ids]
    if missing:
        lacks = listed(f"{name} lacks {integer(len(ids))}" for name, ids in missing)
        yield (
            "missing prompts",
            f"Of {count(prompts.n_all, 'prompt')}, {lacks} or has fewer than two texts for them: only the {integer(n)} "
            "that all systems have are used.",
        )
    if prompts.smallest is not None:
        yield (
            "sets of different sizes",
            f"Sets have {prompts.sizes.min()} to {prompts.sizes.max()} texts: all scores but length and quality are "
            f"what is expected of {prompts.smallest} texts of each, drawn at random (rarefied).",
        )
    if n < FEW_PROMPTS:
        yield (
            "few prompts",
            f"With {count(n, 'prompt')}, intervals may be too narrow, and tests find little.",
        )
    for hint in inputs.hints:
        yield "systems in one file", hint


def _of_texts(command: ReportCommand, texts: Sequence[list[str]], names: Sequence[str]) -> _Caveats:
    """Name systems whose lengths differ, and texts that are empty or in another language."""
    lengths = [word_counts([members]) for members in texts]
    # None: neither of two systems varies.
    apart = {(i, j): standardized(lengths[i], lengths[j]) for i, j in combinations(range(len(names)), 2)}
    far = {pair: math.inf if d is None else abs(d) for pair, d in apart.items() if d is None or abs(d) >= LENGTHS_APART}
    if far:
        i, j = max(far, key=lambda pair: far[pair])
        yield (
            "different lengths",
            f"{count(len(far), 'pair')} of systems differ in length by {LENGTHS_APART:g} standard deviations or more, "
            f"most of all {names[i]} ({number(lengths[i].mean(), 1)} words a text) and {names[j]} "
            f"({number(lengths[j].mean(), 1)}): self-BLEU, Distinct-2 and compression ratio depend on length, and "
            "similarity may.",
        )
    empty = [sum(not text.strip() for text in members) for members in texts]
    if any(empty):
        yield "empty texts", f"{_shares(empty, texts, names)} are empty: they count as texts that mean the same."
    readers = ["gruen"] * (command.quality == GRUEN) + ["the default encoder"] * ("model" not in command.settings)
    foreign = [sum(map(len, find_unread(members))) if readers else 0 for members in texts]
    if any(foreign):
        yield (
            "language",
            f"{_shares(foreign, texts, names)} are in another language than English, or source code; trained on "
            f"English prose: {' and '.join(readers)}.",
        )


def _shares(counts: Sequence[int], texts: Sequence[list[str]], names: Sequence[str]) -> str:
    rows = zip(counts, texts, names, strict=True)
    return listed(f"{integer(n)} of {count(len(members), 'text')} of {name}" for n, members, name in rows if n)


def _of_people(inputs: Inputs, report: dict[str, Any]) -> _Caveats:
    """Say what limits the comparison with people."""
    section, n = report["people"], report["prompts"]["n"]
    if inputs.people is not None and (section is None or section["n_prompts"] < n):
        shared = integer(section["n_prompts"]) if section else "none"
        yield (
            "people",
            f"People and systems are compared on {shared} of {count(n, 'prompt')}, those with texts of both.",
        )
    rows = section["rows"] if section else []
    if rows and rows[-1]["system"] is not None:
        yield "people", "People have one text for each prompt: there is no comparison with other people."
    apart = [report["systems"][row["system"]] for row in rows if row["system"] is not None and row["length_warning"]]
    if apart:
        yield (
            "different lengths",
            f"Texts of {listed(apart)} differ in length from people's by {LENGTHS_APART:g} standard deviations or "
            "more, which may explain their distance from people.",
        )
