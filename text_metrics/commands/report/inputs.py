"""The sets of texts that a report compares: one of each system for each prompt.

Nothing here imports torch, so that invalid input is reported at once.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.report.model import Origin
from text_metrics.metrics._core.core_inputs import TextSets, flatten, parse_sets, split_list
from text_metrics.metrics._core.core_numbers import describe, parse_number

# Cubes of larger ratings, which the intervals sum up, could overflow.
LARGEST_RATING = 1e12
# The texts of a system and their ratings, NaN without one, by prompt.
RatedSets = dict[str, list[tuple[str, float]]]


class Inputs(NamedTuple):
    """What a report is made from.

    systems : their names
    sources : for each system, where it is from, and numbers of rows, prompts and texts
    bad : file, row and error of each row that is skipped
    n_all : the number of prompts of any system
    ids : the p prompts of which every system has two texts or more, in order
    texts : for each system, for each of these prompts, a list of texts
    quality : of all these texts, in order: ndarray of shape (n,), NaN where they are not rated
    people : texts of people by prompt; None without them
    contexts : what the texts of each of these prompts answer; None without them
    """

    systems: list[str]
    sources: list[Origin]
    bad: list[dict[str, Any]]
    n_all: int
    ids: list[str]
    texts: list[list[list[str]]]
    quality: np.ndarray
    people: dict[str, list[str]] | None
    contexts: list[str | None] | None

    def by_system(self) -> dict[str, list[str]]:
        """Return all texts of each system, in the order of the prompts."""
        texts = [list(chain.from_iterable(sets)) for sets in self.texts]
        return dict(zip(self.systems, texts, strict=True))

    @property
    def sizes(self) -> np.ndarray:
        """The number of texts of each set: (systems, p)."""
        return np.array([[len(texts) for texts in sets] for sets in self.texts])

    @property
    def smallest(self) -> int | None:
        """The size to which sets are rarefied; None where all have one size."""
        sizes = self.sizes
        return int(sizes.min()) if sizes.min() < sizes.max() else None


def pair_systems(
    systems: Mapping[str, RatedSets],
    sources: list[Origin],
    bad: list[dict[str, Any]],
    people: dict[str, list[str]] | None,
    contexts: Mapping[str, str | None] | None,
) -> Inputs:
    """Pair the sets of the systems by prompt; raises a ValueError if they have none in common.

    Texts of a set are sorted, so that no number depends on their order.
    """
    sets = [{prompt: sorted(rated, key=itemgetter(0)) for prompt, rated in each.items()} for each in systems.values()]
    ids = sorted(prompt for prompt in sets[0] if all(len(each.get(prompt, ())) > 1 for each in sets))
    if not ids:
        raise ValueError(
            "there is nothing to compare: no prompt has two texts or more of every system, and one text has no "
            "diversity. Check what names the prompts, and what holds the texts."
        )
    if people is not None and people.keys().isdisjoint(ids):
        raise ValueError("people (--people) have no text for any prompt of the systems: check what names the prompts.")
    return Inputs(
        systems=list(systems),
        sources=sources,
        bad=bad,
        n_all=len(set().union(*sets)),
        ids=ids,
        texts=[[[text for text, _ in each[prompt]] for prompt in ids] for each in sets],
        quality=np.array([rating for each in sets for prompt in ids for _, rating in each[prompt]]),
        people=people,
        contexts=None if contexts is None else [contexts.get(prompt) for prompt in ids],
    )


def read_sets(
    systems: Any,
    prompts: Sequence[str] | None,
    quality: Any,
    people: Sequence[Sequence[str]] | None,
    contexts: Sequence[str | None] | None,
) -> Inputs:
    """Read the arguments of `text_metrics.report`; raises a TypeError or ValueError that names the invalid one."""
    if not isinstance(systems, Mapping) or not systems:
        raise TypeError(f"systems must be a dict from names to lists of sets. Got {describe(systems)}.")
    parsed = {str(name): _parse(sets, f"systems[{name!r}]") for name, sets in systems.items()}
    n = len(next(iter(parsed.values())).sizes)
    # In order also as text.
    ids = [f"{i:0{len(str(n))}}" for i in range(1, n + 1)] if prompts is None else list(map(str, prompts))
    if len(set(ids)) < len(ids):
        raise ValueError("prompts must differ: the sets of a system for one prompt make one set.")
    lengths = {f"systems[{name!r}]": len(sets.sizes) for name, sets in parsed.items()} | {"prompts": len(ids)}
    for name, length in lengths.items():
        if length != n:
            raise ValueError(f"{name} must have as many entries as the first system, {n}. Got {length}.")
    rated = {}
    for name, sets in parsed.items():
        ratings = [float("nan")] * len(sets.texts)
        if isinstance(quality, Mapping):
            if name not in quality:
                raise ValueError(f"quality has no ratings of {name!r}.")
            flat = flatten(quality[name], sets, f"quality[{name!r}]", "rating")
            ratings = [parse_number(value, "a rating", -LARGEST_RATING, LARGEST_RATING) for value in flat]
        members = split_list(list(zip(sets.texts, ratings, strict=True)), sets.sizes)
        rated[name] = dict(zip(ids, members, strict=True))
    given: dict[str, Any] = {}
    for name, values in (("people", people), ("contexts", contexts)):
        if values is not None and (isinstance(values, str) or len(values) != n):
            raise ValueError(f"{name} must have an entry for each of {n} prompts. Got {describe(values)}.")
        given[name] = None if values is None else dict(zip(ids, values, strict=True))
    sources = [Origin("", n, 0, n, len(sets.texts)) for sets in parsed.values()]
    return pair_systems(rated, sources, [], given["people"], given["contexts"])


def _parse(sets: Any, name: str) -> TextSets:
    try:
        parsed = parse_sets(sets)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("predictions", name)) from None
    if not parsed.nested:
        raise TypeError(f"{name} must be a list of sets, each a list of texts. Got {describe(sets)}.")
    return parsed
