"""What could mislead in a report: pairs of a kind, in a few words, and a sentence that names the systems."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.scores import word_counts
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.formats import count, number
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20
# Standard deviations by which lengths must differ to explain other numbers.
LENGTHS_APART = 0.5
_Caveats = Iterator[tuple[str, str]]


def find_caveats(command: ReportCommand, inputs: Inputs) -> list[dict[str, str]]:
    """Return the entries of `caveats`."""
    found = [*_of_reading(inputs), *_of_lengths(inputs), *_of_texts(command, inputs)]
    return [{"kind": kind, "sentence": sentence} for kind, sentence in found]


def _of_reading(inputs: Inputs) -> _Caveats:
    """Say what was set aside, what is missing, what was rarefied, and what may be several systems."""
    n, sizes = len(inputs.ids), inputs.sizes
    if inputs.bad:
        yield "rows set aside", f"{count(len(inputs.bad), 'row')} could not be used: see bad.jsonl."
    if n < inputs.n_all:
        prompts = count(inputs.n_all, "prompt")
        yield "missing prompts", f"Of {prompts}, every system has two texts or more only of {n:,}, which are used."
    if inputs.smallest is not None:
        yield (
            "sets of different sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: all scores but length and quality are what is expected "
            f"of {inputs.smallest} texts of each, drawn at random (rarefied).",
        )
    if n < FEW_PROMPTS:
        yield "few prompts", f"With {count(n, 'prompt')}, intervals may be too narrow, and tests find little."
    for hint in inputs.hints:
        yield "systems in one file", hint


def _of_lengths(inputs: Inputs) -> _Caveats:
    """Name the pair whose texts differ most in length, in standard deviations, people included."""
    lengths = {}
    for system, texts in zip(inputs.systems, inputs.by_system(), strict=True):
        lengths[system.name] = word_counts([texts])
    if inputs.people is not None:
        lengths["people"] = word_counts(list(inputs.people.texts().values()))
    apart = {}
    for first, second in combinations(lengths, 2):
        spread = np.sqrt((lengths[first].var() + lengths[second].var()) / 2)
        difference = abs(lengths[first].mean() - lengths[second].mean())
        apart[first, second] = difference / max(spread, 1e-9)
    if not apart:
        return
    first, second = max(apart, key=lambda pair: apart[pair])
    if apart[first, second] >= LENGTHS_APART:
        yield (
            "different lengths",
            f"Texts of {first} have {number(lengths[first].mean(), 1)} words, those of {second} "
            f"{number(lengths[second].mean(), 1)}: self-BLEU, Distinct-2 and compression ratio depend on length, and "
            "similarity may.",
        )


def _of_texts(command: ReportCommand, inputs: Inputs) -> _Caveats:
    """Name systems with texts that are empty or in another language."""
    is_english = command.quality == GRUEN or "model" not in command.settings
    for system, texts in zip(inputs.systems, inputs.by_system(), strict=True):
        of = f"of {count(len(texts), 'text')} of {system.name}"
        n_empty = sum(not text.strip() for text in texts)
        if n_empty:
            yield "empty texts", f"{n_empty:,} {of} are empty: they count as texts that mean the same."
        n_foreign = sum(map(len, find_unread(texts))) if is_english else 0
        if n_foreign:
            yield (
                "language",
                f"{n_foreign:,} {of} are source code or in another language than English, which GRUEN and the default "
                "encoder read.",
            )
