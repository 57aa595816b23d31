"""The numbers of a report, from the sets of its systems."""

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.likeness import compare_with_people, draw, equal_numbers, likeness
from text_metrics.commands.report.scores import power, rate, score
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, Prompts, System
from text_metrics.metrics._core.core_results import VERSION
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings

# Examples of the prompts that a system lacks, and prompts of least diversity that are shown of each system.
_EXAMPLES, _SHOWN = 10, 5


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a ValueError for an invalid setting or a missing model."""
    try:
        SemanticEntropySettings(**{**command.settings, **command.encoder}).check_found()
    except TypeError as error:
        raise ValueError(str(error)) from None
    prompts = inputs.prompts
    texts = prompts.texts
    sets_of_people = inputs.people.sets if inputs.people else {}
    sides = draw(prompts.ids, texts, {prompt: members.texts for prompt, members in sets_of_people.items()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quality = rate(prompts, command)
        metrics = score(prompts, quality, command)
        if not command.quiet:
            print("Comparing systems ...", file=sys.stderr)
        alike = likeness(equal_numbers(prompts.ids, texts), command)
        near = None if sides is None else compare_with_people(sides, len(texts), command)
    messages = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    print(*messages, sep="\n", end="\n" * bool(messages), file=sys.stderr)
    # The first is about all texts, others are about some of them.
    cut = [message for message in messages if "different texts are longer than the model reads" in message][:1]
    names = [system.name for system in inputs.systems]
    missing = {name: ids for name, ids in zip(names, prompts.missing, strict=True) if ids}
    report = {
        "version": VERSION,
        "command": command.decisive(),
        "confidence": command.confidence,
        "systems": names,
        "sources": [_source(system) for system in inputs.systems],
        "prompts": {
            "n": len(prompts.ids),
            "n_all": prompts.n_all,
            "ids": prompts.ids,
            "missing": [{"system": name, "n": len(ids), "examples": ids[:_EXAMPLES]} for name, ids in missing.items()],
        },
        "rarefied_to": prompts.smallest,
        "metrics": metrics,
        "likeness": alike,
        "people": near,
        "collapse": _collapse(prompts, metrics[0], command.texts),
        "power": power(metrics, command.confidence),
    }
    report["caveats"] = find_caveats(command, inputs, report, None if quality is None else quality[1], cut)
    report["sentences"] = sentences(report)
    return report


def _source(system: System) -> dict[str, Any]:
    """Describe what was read of a system."""
    sizes = [len(members.texts) for members in system.sets.values()]
    return {
        "system": system.name,
        "file": str(system.file),
        "n_rows": system.n_rows,
        "n_bad": system.n_bad,
        "n_prompts": len(sizes),
        "n_texts": sum(sizes),
        "set_sizes": [min(sizes), float(np.median(sizes)), max(sizes)],
    }


def _collapse(prompts: Prompts, metric: dict[str, Any], with_texts: bool) -> list[list[dict[str, Any]]]:
    """Find the prompts of least diversity of each system by a metric."""
    return [
        [
            {
                "prompt": prompts.ids[p],
                "score": value["scores"][p],
                # Of the texts that equal another text of their set.
                "equal_share": sum(n for n in Counter(of_system[p]).values() if n > 1) / len(of_system[p]),
                **({"texts": of_system[p]} if with_texts else {}),
            }
            for p in np.argsort(value["scores"], kind="stable")[:_SHOWN].tolist()
        ]
        for of_system, value in zip(prompts.texts, metric["values"], strict=True)
    ]
