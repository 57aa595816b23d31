"""Files of questions and answers as they were released: Commonsense Frame Completion and ProtoQA."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .core import describe, parse_choice, warn


def from_released(targets: Any, predictions: Any, unclustered: str = "skip") -> dict[str, list[dict]]:
    """Read the files of Commonsense Frame Completion (arXiv 2406.04145) or ProtoQA, as released.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects, with `metadata.id`, `question`, `answers.raw` and
        `answers.clusters`. Counts are from `raw`: the counts stored with clusters are not always right. As in the
        original, an answer in two clusters counts in both. ProtoQA cleaned answers before it clustered them: those
        that `raw` lacks share the rest of their cluster's count evenly, each at least 1.
    predictions : path of a JSON or JSON Lines file, or its objects: `annotated_prediction_data` (id to text to
        `{"cluster", "count"}`), `model_answers` (id to texts), or both; ids to ranked answers; or records
        `{"question_id", "ranked_answers"}`
    unclustered : "skip" to leave out, with a warning, people's answers that are in no cluster, as ProtoQA's evaluator
        does: a model that gives them is wrong; "own" to make each a cluster of its own

    Returns
    -------
    dict with "predictions" and, for the same questions, "references", for `compute(**from_cfc(...))`

    Raises
    ------
    TypeError, ValueError
        If a record lacks a required field, or a question comes twice in `predictions`.
    """
    parse_choice(unclustered, "unclustered", ("skip", "own"))
    answers = read_answers(predictions)
    parsed = [parse_target(record, where) for where, record in _read(targets, "targets")]
    parsed = [pair for pair in parsed if pair[0]["id"] in answers]
    if unclustered == "own":
        for reference, left in parsed:
            reference["answers"] += [{"text": text, "count": n, "cluster": f"own: {text}"} for text, n in left.items()]
    else:
        warn_of_unclustered(left for _, left in parsed)
    return {
        "predictions": [{"id": name, "answers": texts} for name, texts in answers.items()],
        "references": [reference for reference, _ in parsed],
    }


def warn_of_unclustered(left: Iterable[Mapping[str, int]]) -> None:
    """Warn, once, of people's answers that are left out because they are in no cluster."""
    counts: list[tuple[str, int]] = []
    for row in left:
        counts += row.items()
    if counts:
        text, count = max(counts, key=lambda pair: pair[1])
        warn(
            f"{len(counts)} different answers of people are in no cluster, and left out, such as {describe(text)}, "
            f"given {count} times: a model that gives them is wrong. from_protoqa(..., unclustered='own') keeps them."
        )


def read_answers(predictions: Any) -> dict[str, Any]:
    """Read released predictions, in any of the formats of `from_released`: question id to answers.

    Raises a TypeError if they are not mappings, and a ValueError if a question comes twice.
    """
    merged: dict[str, Any] = {}
    for where, name, answers in _by_question(predictions):
        if name in merged:
            raise ValueError(f"{where} comes twice.")
        if isinstance(answers, Mapping) and any(isinstance(entry, Mapping) for entry in answers.values()):
            answers = _annotated(answers, "count", where)
        merged[name] = answers
    return merged


def labels_from_cfc(predictions: Any) -> dict[str, dict[str, str]]:
    """Read people's cluster for each predicted answer from `annotated_prediction_data`: id to text to label."""
    labels = {}
    for where, name, answers in _by_question(predictions):
        clusters = _annotated(answers, "cluster", where)
        labels[name] = {text: str(label) for text, label in clusters.items()}
    return labels


def _by_question(predictions: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the name of a question for errors, its id and its answers, from released predictions."""
    for where, record in _read(predictions, "predictions"):
        if not isinstance(record, Mapping):
            raise TypeError(f"{where} must be a JSON object. Got {describe(record)}.")
        if "question_id" in record:
            record = {str(record["question_id"]): record.get("ranked_answers")}
        elif "id" in record and "answers" in record:
            record = {str(record["id"]): record["answers"]}
        else:
            record = record.get("annotated_prediction_data") or record.get("model_answers") or record
        if not isinstance(record, Mapping):
            raise TypeError(f"{where} must map question ids to answers. Got {describe(record)}.")
        for name, answers in record.items():
            yield f"{where}, question {describe(name)}", str(name), answers


def _annotated(answers: Any, key: str, where: str) -> dict[str, Any]:
    """Return one field of each annotated answer to a question."""
    if not isinstance(answers, Mapping):
        raise ValueError(f"{where} must map answers to objects. Got {describe(answers)}.")
    for text, entry in answers.items():
        if not isinstance(entry, Mapping) or key not in entry:
            raise ValueError(f"{where}, answer {describe(text)} has no {key!r}. Got {describe(entry)}.")
    return {text: entry[key] for text, entry in answers.items()}


def parse_target(record: Any, where: str) -> tuple[dict, dict[str, int]]:
    """Read a record of answer clusters as a reference, and the counts of its answers that are in no cluster.

    Raises a ValueError if it is invalid.
    """
    answers = []
    try:
        about = record.get("question") or {}
        raw = record["answers"]["raw"]
        clusters = record["answers"]["clusters"]
        for label, cluster in clusters.items():
            counts = _cluster_counts(cluster, raw)
            answers += [{"text": text, "count": count, "cluster": label} for text, count in counts.items()]
        row = {
            "id": str(record["metadata"]["id"]),
            "question": about.get("question") or about.get("normalized") or "",
            "sentence": about.get("sentence") or "",
            "slot": about.get("slot") or "",
            "answers": answers,
        }
        return row, _unclustered(clusters.values(), raw)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} must be a record of answer clusters. Got {describe(record)}.") from error


def _unclustered(clusters: Iterable[Mapping], raw: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of answers that are in no cluster.

    Some were merely cleaned: a cluster counts them, under another spelling. These are taken to be the least frequent.
    """
    clustered = set[str]()
    n_cleaned = 0
    for cluster in clusters:
        clustered |= set(cluster["answers"])
        n_cleaned += max(cluster.get("count", 0) - sum(raw.get(text, 0) for text in cluster["answers"]), 0)
    left = {text: count for text, count in raw.items() if text not in clustered}
    for text in sorted(left, key=left.__getitem__):
        n_cleaned -= left[text]
        if n_cleaned >= 0:
            del left[text]
    return left


def _cluster_counts(cluster: Mapping, raw: Mapping) -> dict[str, Any]:
    """Count the answers of a cluster: as in `raw`, or an even share of the rest of the cluster's count."""
    if isinstance(cluster["answers"], str):
        raise TypeError("the answers of a cluster must be a list")
    counts = {text: raw[text] for text in cluster["answers"] if text in raw}
    cleaned = [text for text in dict.fromkeys(cluster["answers"]) if text not in raw]
    left = cluster["count"] - sum(counts.values()) if cleaned else 0
    for i, text in enumerate(cleaned):
        share, more = divmod(max(left, 0), len(cleaned))
        counts[text] = max(share + (i < more), 1)
    return counts


def _read(source: Any, name: str) -> list[tuple[str, Any]]:
    """List the objects of a JSON file, a JSON Lines file or a list, each with its name for errors."""
    if isinstance(source, (str, os.PathLike)):
        name = f"{name} {os.fspath(source)}"
        source = _parse(Path(source))
    if not isinstance(source, (list, tuple)):
        source = [source]
    return [(f"{name}[{i}]", record) for i, record in enumerate(source)]


def _parse(path: Path) -> Any:
    """Read a JSON file, or the objects of a JSON Lines file as a list."""
    values: list[Any] = []
    end = 0
    try:
        text = path.read_text(encoding="utf-8-sig")
        while end < len(text):
            if text[end].isspace():
                end += 1
            else:
                value, end = json.JSONDecoder().raw_decode(text, end)
                values.append(value)
    # Python's own errors, for bytes, depth and integers of thousands of digits, are not JSONDecodeErrors.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from None
    return values[0] if len(values) == 1 else values
