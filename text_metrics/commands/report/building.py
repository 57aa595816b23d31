"""The numbers of a report, from the sets of its systems."""

import sys
import warnings
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.collapse import collapse
from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.embedding import Embedded, Encoder, embed, reach
from text_metrics.commands.report.likeness import likeness
from text_metrics.commands.report.people import compare_with_people, draw
from text_metrics.commands.report.scores import Quality, Scorer, power
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, Prompts, describe_source
from text_metrics.metrics._core.core_results import VERSION

# Examples of the prompts that a system lacks.
_EXAMPLES = 10


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds.

    Raises
    ------
    TypeError, ValueError
        If a setting is invalid.
    """
    encoder = Encoder.of(command)
    encoder.check()
    prompts = inputs.prompts
    texts = prompts.texts()
    sample = draw(prompts.ids, texts, inputs.people_texts)
    of_people = [] if sample is None else [sample.people, sample.others or []]
    with warnings.catch_warnings():
        # The caveats count the same texts by system.
        warnings.filterwarnings("ignore", message=r"\d+ of \d+ ")
        embedded = embed((text for sets in [*texts, *of_people] for members in sets for text in members), encoder)
        scorer = Scorer(prompts, encoder, command)
        _tell(encoder, "Scoring")
        metrics, quality = _score(scorer)
        _tell(encoder, "Comparing systems")
        alike = likeness(prompts.ids, texts, embedded, encoder, command.confidence)
        near = None if sample is None else compare_with_people(sample, embedded, encoder, command.confidence)
        reaches = [reach((text for members in sets for text in members), encoder) for sets in texts]
    names = [system.name for system in inputs.reading.systems]
    report = {
        "version": VERSION,
        "command": command.decisive(),
        "confidence": command.confidence,
        "systems": names,
        "sources": [describe_source(system) for system in inputs.reading.systems],
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
        "collapse": _collapse(prompts, metrics, embedded, command),
        "power": power(metrics, command.confidence),
    }
    report["caveats"] = find_caveats(command, inputs, report, quality, reaches)
    report["sentences"] = sentences(report)
    return report


def _score(scorer: Scorer) -> tuple[list[dict[str, Any]], Quality | None]:
    """Score diversity and quality: the entries of `metrics` in order of display, and the quality of the texts."""
    quality = scorer.quality()
    metrics = scorer.diversity(quality)
    if quality is None:
        return metrics, None
    rated = scorer.describe_quality(quality)
    weighted = [metric for metric in metrics if metric["section"] == "quality"]
    return [*(metric for metric in metrics if metric["section"] == "diversity"), rated, *weighted], quality


def _collapse(
    prompts: Prompts, metrics: list[dict[str, Any]], embedded: Embedded, command: ReportCommand
) -> dict[str, Any]:
    scores = np.array([value["scores"] for value in metrics[0]["values"]])
    return collapse(prompts.ids, prompts.texts(), scores, embedded, command.texts)


def _tell(encoder: Encoder, message: str) -> None:
    if not encoder.quiet:
        print(f"{message} ...", file=sys.stderr)
