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
from text_metrics.commands.report.likeness import likeness
from text_metrics.commands.report.people import compare_with_people, draw
from text_metrics.commands.report.scores import Scorer, power
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, Prompts, describe_source
from text_metrics.commands.shared.statistics import TIE
from text_metrics.metrics._core.core_results import VERSION

# Examples of the prompts that a system lacks.
_EXAMPLES = 10
# Prompts of least diversity that are shown of each system, and of all together.
SHOWN = 5


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a TypeError or a ValueError for an invalid setting."""
    encoder = Encoder.of(command)
    encoder.check()
    prompts = inputs.prompts
    texts = prompts.texts()
    sets_of_people = inputs.people.sets if inputs.people else {}
    sample = draw(prompts.ids, texts, {prompt: members.texts for prompt, members in sets_of_people.items()})
    of_people = [] if sample is None else [sample.people, sample.others or []]
    with warnings.catch_warnings():
        # The caveats count the same texts by system.
        warnings.filterwarnings("ignore", message=r"\d+ of \d+ ")
        people = (text for sets in of_people for members in sets for text in members)
        embedded = embed(chain(*prompts.by_system(), people), encoder)
        scorer = Scorer(prompts, encoder, command)
        _tell(encoder, "Scoring")
        quality = scorer.quality()
        metrics = scorer.metrics(quality)
        _tell(encoder, "Comparing systems")
        alike = likeness(prompts.ids, texts, embedded, encoder, command.confidence)
        near = None if sample is None else compare_with_people(sample, embedded, encoder, command.confidence)
        reaches = [reach(of_system, encoder) for of_system in prompts.by_system()]
    names = [system.name for system in inputs.systems]
    report = {
        "version": VERSION,
        "command": command.decisive(),
        "confidence": command.confidence,
        "systems": names,
        "sources": [describe_source(system) for system in inputs.systems],
        "prompts": {
            "n": len(prompts.ids),
            "n_all": prompts.n_all,
            "ids": prompts.ids,
            "missing": [
                {"system": name, "n": len(ids), "examples": ids[:_EXAMPLES]}
                for name, ids in zip(names, prompts.missing, strict=True)
                if ids
            ],
        },
        "rarefied_to": prompts.smallest,
        "metrics": metrics,
        "likeness": alike,
        "people": near,
        "collapse": collapse(prompts, metrics[0], embedded, command.texts),
        "power": power(metrics, command.confidence),
    }
    report["caveats"] = find_caveats(command, inputs, report, quality, reaches)
    report["sentences"] = sentences(report)
    return report


def _tell(encoder: Encoder, message: str) -> None:
    if not encoder.quiet:
        print(f"{message} ...", file=sys.stderr)


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
                "closest": closest(embedded.of(of_system[p])),
                # Of the texts that equal another text of their set.
                "equal_share": sum(n for n in Counter(of_system[p]).values() if n > 1) / len(of_system[p]),
            }
            for p in np.argsort(row, kind="stable")[:SHOWN].tolist()
        ]
        for of_system, row in zip(sets, scores, strict=True)
    ]
    widest = np.argsort(-np.ptp(scores, axis=0), kind="stable")[:SHOWN].tolist()
    apart = np.ptp(scores, axis=0)
    differ = [
        {
            "prompt": ids[p],
            "scores": scores[:, p].tolist(),
            **({"texts": [of_system[p] for of_system in sets]} if with_texts else {}),
        }
        for p in widest
        if apart[p] >= TIE
    ]
    return {"least": least, "differ": differ}


def closest(vectors: np.ndarray) -> list[Any]:
    """Return the positions of the two most alike of k unit vectors (k, d), and their cosine."""
    cosines = vectors @ vectors.T
    i, j = np.triu_indices(len(vectors), 1)
    # Equal cosines may differ by rounding, and must not decide.
    best = int(np.argmax(np.round(cosines[i, j], 9)))
    return [int(i[best]), int(j[best]), float(np.clip(cosines[i[best], j[best]], -1, 1))]
