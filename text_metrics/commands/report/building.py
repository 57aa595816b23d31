"""The numbers of a report, from the sets of its systems."""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.likeness import (
    compare_systems,
    compare_with_people,
    equal_numbers,
    shuffled,
    split_people,
)
from text_metrics.commands.report.scores import pairs_of_all_texts, score
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs
from text_metrics.commands.shared.settings import settings_checked
from text_metrics.metrics._core.core_results import VERSION
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings

# Options that decide no number.
_WITHOUT_EFFECT = ("out", "cache_dir", "quiet", "by_line")
# Prompts of least diversity that are shown of each system.
_SHOWN = 5


def build(options: argparse.Namespace, inputs: Inputs, cache: Path) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a ValueError for an invalid setting or a missing model."""
    encoder = {name: value for name, value in options.setting.items() if name != "same"} | {"cache_dir": str(cache)}
    with settings_checked():
        SemanticEntropySettings(**{**options.setting, **encoder}).check_found()
    ids, level = inputs.ids, options.confidence
    metrics = score(inputs, options, encoder)
    drawn = [list(map(shuffled, sets, ids)) for sets in inputs.texts]
    people = None
    if inputs.people is not None:
        halves = split_people([shuffled(inputs.people.get(prompt, ()), prompt) for prompt in ids])
        people = compare_with_people(equal_numbers([halves[0], *drawn, *halves[1:]]), level, encoder)
    report = {
        "version": VERSION,
        "options": {name: value for name, value in vars(options).items() if name not in _WITHOUT_EFFECT},
        "confidence": level,
        "systems": [system.name for system in inputs.systems],
        "sources": [system.source for system in inputs.systems],
        "prompts": ids,
        "rarefied_to": inputs.smallest,
        "metrics": metrics,
        "pairs": pairs_of_all_texts(inputs, level, encoder),
        "likeness": compare_systems(equal_numbers(drawn), level, encoder),
        "people": people,
        "collapse": [
            _least_diverse(ids, value["scores"], sets, not options.no_texts)
            for value, sets in zip(metrics[0]["values"], inputs.texts, strict=True)
        ],
        "caveats": find_caveats(inputs, options),
    }
    return {**report, "sentences": sentences(report)}


def _least_diverse(
    ids: list[str], scores: list[float], sets: list[list[str]], with_texts: bool
) -> list[dict[str, Any]]:
    """Find the prompts of least diversity, with the share of texts that equal another text of their set."""
    entries = []
    for p in np.argsort(scores, kind="stable")[:_SHOWN].tolist():
        equal = sum(n for n in Counter(sets[p]).values() if n > 1)
        entry = {"prompt": ids[p], "score": scores[p], "equal_share": equal / len(sets[p])}
        entries.append({**entry, "texts": sets[p]} if with_texts else entry)
    return entries
