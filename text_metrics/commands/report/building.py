"""The numbers of a report, from the sets of its systems."""

import sys
import warnings
from collections import Counter
from itertools import chain
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.embedding import Embedded, Encoder, embed, reach
from text_metrics.commands.report.likeness import equal_numbers, likeness
from text_metrics.commands.report.people import compare_with_people, draw
from text_metrics.commands.report.scores import power, rate, score
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, Prompts, describe_source
from text_metrics.commands.shared.statistics import TIE
from text_metrics.metrics._core.core_results import VERSION

# Examples of the prompts that a system lacks.
_EXAMPLES = 10
# Prompts of least diversity that are shown of each system, and of all together.
_SHOWN = 5


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a TypeError or a ValueError for an invalid setting."""
    encoder, level = Encoder.of(command), command.confidence
    prompts = inputs.prompts
    texts = prompts.texts()
    sets_of_people = inputs.people.sets if inputs.people else {}
    sample = draw(prompts.ids, texts, {prompt: members.texts for prompt, members in sets_of_people.items()})
    of_people = [] if sample is None else [*sample.people, *(sample.others or [])]
    with warnings.catch_warnings():
        # The caveats count the same texts by system.
        warnings.filterwarnings("ignore", message=r"\d+ of \d+ ")
        embedded = embed(chain(*prompts.by_system(), *of_people), encoder)
        quality = rate(prompts, encoder, command)
        if not command.quiet:
            print("Scoring and comparing systems ...", file=sys.stderr)
        metrics = score(prompts, encoder, quality, level)
        alike = likeness(equal_numbers(prompts.ids, texts), encoder, level)
        near = None if sample is None else compare_with_people(sample, embedded, encoder, level)
        reaches = [reach(of_system, encoder) for of_system in prompts.by_system()]
    names = [system.name for system in inputs.systems]
    missing = {name: ids for name, ids in zip(names, prompts.missing, strict=True) if ids}
    report = {
        "version": VERSION,
        "command": command.decisive(),
        "confidence": level,
        "systems": names,
        "sources": [describe_source(system) for system in inputs.systems],
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
        "collapse": collapse(prompts, metrics[0], embedded, command.texts),
        "power": power(metrics, level),
    }
    report["caveats"] = find_caveats(command, inputs, report, quality, reaches)
    report["sentences"] = sentences(report)
    return report


def collapse(prompts: Prompts, metric: dict[str, Any], embedded: Embedded, with_texts: bool) -> dict[str, Any]:
    """Find the prompts of least diversity of each system, and those on which systems differ most, by one metric."""
    ids, sets = prompts.ids, prompts.texts()
    scores = np.array([value["scores"] for value in metric["values"]])
    least = [
        [
            {
                "prompt": ids[p],
                "score": float(row[p]),
                **({"texts": of_system[p]} if with_texts else {}),
                "closest": _closest(embedded.of(of_system[p])),
                # Of the texts that equal another text of their set.
                "equal_share": sum(n for n in Counter(of_system[p]).values() if n > 1) / len(of_system[p]),
            }
            for p in np.argsort(row, kind="stable")[:_SHOWN].tolist()
        ]
        for of_system, row in zip(sets, scores, strict=True)
    ]
    apart = np.ptp(scores, axis=0)
    differ = [
        {
            "prompt": ids[p],
            "scores": scores[:, p].tolist(),
            **({"texts": [of_system[p] for of_system in sets]} if with_texts else {}),
        }
        for p in np.argsort(-apart, kind="stable")[:_SHOWN].tolist()
        if apart[p] >= TIE
    ]
    return {"least": least, "differ": differ}


def _closest(vectors: np.ndarray) -> list[Any]:
    """Return the positions of the two most alike of k unit vectors (k, d), and their cosine."""
    cosines = vectors @ vectors.T
    i, j = np.triu_indices(len(vectors), 1)
    # Equal cosines may differ by rounding, and must not decide.
    best = int(np.argmax(np.round(cosines[i, j], 9)))
    return [int(i[best]), int(j[best]), float(np.clip(cosines[i[best], j[best]], -1, 1))]
