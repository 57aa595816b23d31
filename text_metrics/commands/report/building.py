"""The numbers of a report, from the sets of its systems."""

import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
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


# Prompts shown of each system, and of all together.
SHOWN = 5


def collapse(
    ids: Sequence[str], sets: Sequence[Sequence[list[str]]], scores: np.ndarray, embedded: Embedded, with_texts: bool
) -> dict[str, Any]:
    """Find the prompts of least diversity of each system, and those on which systems differ most.

    Parameters
    ----------
    ids : list of p prompts
    sets : for each system the texts of each prompt
    scores : ndarray of shape (systems, p), the Vendi scores
    with_texts : whether to show the texts
    """
    least = []
    for of_system, row in zip(sets, scores, strict=True):
        lowest = np.argsort(row, kind="stable")[:SHOWN].tolist()
        least.append(
            [
                {
                    "prompt": ids[p],
                    "score": float(row[p]),
                    **({"texts": of_system[p]} if with_texts else {}),
                    "closest": closest(embedded.of(of_system[p])),
                    "equal_share": equal_share(of_system[p]),
                }
                for p in lowest
            ]
        )
    differ = []
    if len(sets) > 1:
        widest = np.argsort(scores.min(axis=0) - scores.max(axis=0), kind="stable")[:SHOWN].tolist()
        differ = [
            {
                "prompt": ids[p],
                "scores": scores[:, p].tolist(),
                **({"texts": [of_system[p] for of_system in sets]} if with_texts else {}),
            }
            for p in widest
        ]
    return {"least": least, "differ": differ}


def closest(vectors: np.ndarray) -> list[Any]:
    """Return the positions of the two most alike of k unit vectors (k, d), and their cosine."""
    cosines = vectors @ vectors.T
    i, j = np.triu_indices(len(vectors), 1)
    # Equal cosines may differ by rounding, and must not decide.
    best = int(np.argmax(np.round(cosines[i, j], 9)))
    return [int(i[best]), int(j[best]), float(np.clip(cosines[i[best], j[best]], -1, 1))]


def equal_share(texts: Sequence[str]) -> float:
    """Return the share of texts that equal another text of their set."""
    return sum(count for count in Counter(texts).values() if count > 1) / len(texts)
