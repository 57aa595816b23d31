"""The numbers of a report, from the sets of its systems."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.likeness import compare_with_people, draw, equal_numbers, likeness
from text_metrics.commands.report.scores import rate, score
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, System
from text_metrics.metrics._core.core_results import VERSION
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings

# Options that decide no number.
_WITHOUT_EFFECT = ("out", "cache_dir", "quiet")
# Prompts of least diversity that are shown of each system.
_SHOWN = 5


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a ValueError for an invalid setting or a missing model."""
    try:
        SemanticEntropySettings(**{**command.settings, **command.encoder}).check_found()
    except TypeError as error:
        raise ValueError(str(error)) from None
    sides = None
    if inputs.people is not None:
        sides = draw(inputs.ids, inputs.texts, inputs.people.texts())
    quality = rate(inputs, command)
    metrics = score(inputs, quality, command)
    report = {
        "version": VERSION,
        "command": {name: value for name, value in asdict(command).items() if name not in _WITHOUT_EFFECT},
        "confidence": command.confidence,
        "systems": [system.name for system in inputs.systems],
        "sources": [_source(system) for system in inputs.systems],
        "prompts": {"n": len(inputs.ids), "n_all": inputs.n_all, "ids": inputs.ids},
        "rarefied_to": inputs.smallest,
        "metrics": metrics,
        "likeness": likeness(equal_numbers(inputs.ids, inputs.texts), command),
        "people": None if sides is None else compare_with_people(sides, command),
        "collapse": [
            _collapse(inputs.ids, value["scores"], sets, command.texts)
            for value, sets in zip(metrics[0]["values"], inputs.texts, strict=True)
        ],
        "caveats": find_caveats(command, inputs),
    }
    return {**report, "sentences": sentences(report)}


def _source(system: System) -> dict[str, Any]:
    """Describe what was read of a system."""
    return {
        "file": str(system.file),
        "n_rows": system.n_rows,
        "n_bad": system.n_bad,
        "n_prompts": len(system.sets),
        "n_texts": sum(map(len, system.sets.values())),
    }


def _collapse(ids: list[str], scores: list[float], sets: list[list[str]], with_texts: bool) -> list[dict[str, Any]]:
    """Find the prompts of least diversity, with the share of texts that equal another text of their set."""
    entries = []
    for p in np.argsort(scores, kind="stable")[:_SHOWN].tolist():
        texts = sets[p]
        equal = sum(n for n in Counter(texts).values() if n > 1)
        entry = {"prompt": ids[p], "score": scores[p], "equal_share": equal / len(texts)}
        entries.append({**entry, "texts": texts} if with_texts else entry)
    return entries
