"""The numbers of a report, from the sets of its systems."""

import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from text_metrics.commands.report.caveats import find_caveats
from text_metrics.commands.report.command import ReportCommand
from text_metrics.commands.report.likeness import equal_numbers, likeness
from text_metrics.commands.report.people import compare_with_people, draw
from text_metrics.commands.report.scores import power, rate, score
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.systems import Inputs, Prompts, System
from text_metrics.commands.shared.statistics import TIE
from text_metrics.metrics._core.core_encoder import EncoderSettings, UnknownWordsWarning, encode
from text_metrics.metrics._core.core_results import VERSION
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import SemanticEntropySettings

# Examples of the prompts that a system lacks.
_EXAMPLES = 10
# Prompts of least diversity that are shown of each system, and of all together.
_SHOWN = 5


def build(command: ReportCommand, inputs: Inputs) -> dict[str, Any]:
    """Compute the dict that `report.json` holds; raises a ValueError for an invalid setting or a missing model."""
    try:
        SemanticEntropySettings(**command.encoder, **command.meaning).check_found()
    except TypeError as error:
        raise ValueError(str(error)) from None
    prompts = inputs.prompts
    texts = prompts.texts()
    sets_of_people = inputs.people.sets if inputs.people else {}
    sample = draw(prompts.ids, texts, {prompt: members.texts for prompt, members in sets_of_people.items()})
    of_people = [] if sample is None else [*sample.people, *(sample.others or [])]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vectors = _embed(sorted(set(chain(*prompts.by_system(), *of_people))), command)
    # The caveats on languages are about the words of all texts, also of those that are in the cache.
    cut = [str(warning.message) for warning in caught if not issubclass(warning.category, UnknownWordsWarning)]
    quality = rate(prompts, command)
    if not command.quiet:
        print("Scoring and comparing systems ...", file=sys.stderr)
    with warnings.catch_warnings():
        # About texts that are cut, again.
        warnings.filterwarnings("ignore", message=r"\d+ of \d+ ")
        metrics = score(prompts, quality, command)
        alike = likeness(equal_numbers(prompts.ids, texts), command)
        near = None if sample is None else compare_with_people(sample, command)
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
        "collapse": _collapse(prompts, metrics[0], vectors, command.texts),
        "power": power(metrics, command.confidence),
    }
    report["caveats"] = find_caveats(command, inputs, report, quality, cut)
    report["sentences"] = sentences(report)
    return report


def _embed(texts: list[str], command: ReportCommand) -> dict[str, np.ndarray]:
    """Embed each text once, in parts that the cache keeps."""
    # The longest first, so that a lack of memory shows at once.
    ordered = sorted(texts, key=len, reverse=True)
    settings = EncoderSettings(**command.encoder, progress=not command.quiet)
    return dict(zip(ordered, encode(ordered, settings).embeddings, strict=True))


def _source(system: System) -> dict[str, Any]:
    """Describe what was read of a system."""
    sizes = [len(members.texts) for members in system.sets.values()]
    middle = float(np.median(sizes))
    return {
        "system": system.name,
        "file": str(system.file),
        "n_rows": system.n_rows,
        "n_bad": system.n_bad,
        "n_prompts": len(sizes),
        "n_texts": sum(sizes),
        "set_sizes": [min(sizes), int(middle) if middle.is_integer() else middle, max(sizes)],
    }


def _collapse(
    prompts: Prompts, metric: dict[str, Any], vectors: Mapping[str, np.ndarray], with_texts: bool
) -> dict[str, Any]:
    """Find the prompts of least diversity of each system, and those on which systems differ most, by one metric."""
    ids, sets = prompts.ids, prompts.texts()
    scores = np.array([value["scores"] for value in metric["values"]])
    least = [
        [
            {
                "prompt": ids[p],
                "score": float(row[p]),
                **({"texts": of_system[p]} if with_texts else {}),
                "closest": _closest(np.stack([vectors[text] for text in of_system[p]])),
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
    """Return the positions of the two most alike of k vectors (k, d), and their cosine."""
    vectors = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    i, j = np.triu_indices(len(vectors), 1)
    # Equal cosines may differ by rounding, and must not decide.
    best = int(np.argmax(np.round(cosines[i, j], 9)))
    return [int(i[best]), int(j[best]), float(np.clip(cosines[i[best], j[best]], -1, 1))]
