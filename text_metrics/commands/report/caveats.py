"""What could mislead in a report: pairs of a kind, in a few words, and a sentence that names the systems."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from text_metrics.commands.report.command import GRUEN, ReportCommand
from text_metrics.commands.report.scores import word_counts
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.formats import count, listed, number
from text_metrics.metrics._core.core_language import find_unread

# Fewer prompts than this give intervals that may be too narrow (docs/intervals.md).
FEW_PROMPTS = 20
# Standard deviations by which lengths must differ to explain other numbers.
LENGTHS_APART = 0.5
_Caveats = Iterator[tuple[str, str]]


def find_caveats(command: ReportCommand, inputs: Inputs) -> list[dict[str, str]]:
    """Return the entries of `caveats`."""
    texts = dict(zip([system.name for system in inputs.systems], inputs.by_system(), strict=True))
    found = [*_of_reading(inputs), *_of_lengths(inputs, texts), *_of_texts(command, texts)]
    return [{"kind": kind, "sentence": sentence} for kind, sentence in found]


def _of_reading(inputs: Inputs) -> _Caveats:
    """Say what was set aside, what is missing, and what was rarefied."""
    n, sizes = len(inputs.ids), inputs.sizes
    if inputs.bad:
        rows = count(len(inputs.bad), "row")
        yield "rows set aside", f"{rows} could not be used, or belong to a set with such a row; bad.jsonl has them."
    if n < inputs.n_all:
        used = f"only the {n:,} are used of which every system has two texts or more"
        yield "missing prompts", f"Of {count(inputs.n_all, 'prompt')}, {used}."
    if inputs.smallest is not None:
        yield (
            "sets of different sizes",
            f"Sets have {sizes.min()} to {sizes.max()} texts: all scores but length and quality are what is expected "
            f"of {inputs.smallest} texts of each, drawn at random (rarefied).",
        )
    if n < FEW_PROMPTS:
        yield "few prompts", f"With {count(n, 'prompt')}, intervals may be too narrow, and tests find little."


def _of_lengths(inputs: Inputs, texts: dict[str, list[str]]) -> _Caveats:
    """Name the pair whose texts differ most in length, in standard deviations, people included."""
    lengths = {name: word_counts([members]) for name, members in texts.items()}
    if inputs.people is not None:
        lengths["people"] = word_counts([[text for text, _ in rated] for rated in inputs.people.sets.values()])
    apart = {}
    for first, second in combinations(lengths, 2):
        spread = np.sqrt((lengths[first].var() + lengths[second].var()) / 2)
        difference = abs(lengths[first].mean() - lengths[second].mean())
        apart[first, second] = difference / max(spread, 1e-9)
    first, second = max(apart, key=lambda pair: apart[pair], default=("", ""))
    if apart and apart[first, second] >= LENGTHS_APART:
        yield (
            "different lengths",
            f"Texts of {first} have {number(lengths[first].mean(), 1)} words, those of {second} "
            f"{number(lengths[second].mean(), 1)}: self-BLEU, Distinct-2 and compression ratio depend on length, and "
            "similarity may.",
        )


def _of_texts(command: ReportCommand, texts: dict[str, list[str]]) -> _Caveats:
    """Name systems with texts that are empty or in another language."""
    empty = [sum(not text.strip() for text in members) for members in texts.values()]
    if any(empty):
        yield "empty texts", f"{_shares(empty, texts)} are empty: they count as texts that mean the same."
    if command.quality != GRUEN and "model" in command.settings:
        return
    foreign = [sum(map(len, find_unread(members))) for members in texts.values()]
    if any(foreign):
        yield (
            "language",
            f"{_shares(foreign, texts)} are in another language than English, or source code: GRUEN and the default "
            "encoder are trained on English prose.",
        )


def _shares(counts: Sequence[int], texts: dict[str, list[str]]) -> str:
    rows = zip(counts, texts.items(), strict=True)
    return listed(f"{n:,} of {count(len(members), 'text')} of {name}" for n, (name, members) in rows if n)
