"""Files of questions and answers as they were released: Commonsense Frame Completion and ProtoQA."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .core_numbers import describe


def from_released(targets: Any, predictions: Any) -> dict[str, list[dict]]:
    """Read the files of Commonsense Frame Completion (arXiv 2406.04145) or ProtoQA, as released.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects. `metadata.id`, `question.normalized`, `answers.raw` and
        `answers.clusters`: counts come from `raw`, since those stored with clusters are not always right; an answer in
        two clusters counts in both, as in the original. ProtoQA cleaned answers before it clustered them: those that
        `raw` lacks share the rest of their cluster's count evenly, each at least 1. References keep
        `question.sentence` and `question.slot`, if there are any, and then `question.question` in place of
        `question.normalized`.
    predictions : path of a JSON or JSON Lines file, or its objects: `annotated_prediction_data` (id to text to
        `{"cluster", "count"}`), `model_answers` (id to texts), or both; ids to ranked answers; or records
        `{"question_id", "ranked_answers"}`. Counts are used if there are any.

    Returns
    -------
    dict with "predictions" and, for the same questions, "references", for `compute(**from_cfc(...))`

    Raises
    ------
    TypeError, ValueError
        If a record lacks a required field, or a question comes twice in `predictions`.
    """
    answers = read_answers(predictions)
    references = [parse_target(record, where) for where, record in _read(targets, "targets")]
    return {
        "predictions": [{"id": name, "answers": own} for name, own in answers.items()],
        "references": [reference for reference in references if reference["id"] in answers],
    }


def read_answers(predictions: Any) -> dict[str, Any]:
    """Read released predictions, in any of the formats of `from_released`: question id to answers.

    Raises a TypeError if they are not mappings, and a ValueError if a question comes twice.
    """
    merged: dict[str, Any] = {}
    for where, record in _read(predictions, "predictions"):
        record = _mapping(record, where)
        if "question_id" in record:
            record = {str(record["question_id"]): _field(record, "ranked_answers", where)}
        elif "id" in record and "answers" in record:
            record = {str(record["id"]): record["answers"]}
        else:
            record = record.get("annotated_prediction_data") or record.get("model_answers") or record
        for name, answers in _mapping(record, where).items():
            if str(name) in merged:
                raise ValueError(f"predictions has question {describe(name)} twice.")
            is_annotated = isinstance(answers, Mapping) and any(isinstance(one, Mapping) for one in answers.values())
            merged[str(name)] = _annotated(answers, name, "count") if is_annotated else answers
    return merged


def labels_from_cfc(predictions: Any) -> dict[str, dict[str, str]]:
    """Read people's cluster for each predicted answer from `annotated_prediction_data`: id to text to label."""
    labels = {}
    for where, record in _read(predictions, "predictions"):
        record = _mapping(record, where)
        for name, answers in _mapping(record.get("annotated_prediction_data", record), where).items():
            labels[str(name)] = {text: str(label) for text, label in _annotated(answers, name, "cluster").items()}
    return labels


def _annotated(answers: Any, name: Any, key: str) -> dict[str, Any]:
    """Return one field of each annotated answer to a question."""
    where = f"predictions, question {describe(name)}"
    return {
        text: _field(entry, key, f"{where}, answer {describe(text)}")
        for text, entry in _mapping(answers, where).items()
    }


def _mapping(value: Any, where: str) -> Mapping:
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} must be a JSON object from question ids to answers. Got {describe(value)}.")
    return value


def _field(record: Any, key: str, where: str) -> Any:
    if not isinstance(record, Mapping) or key not in record:
        raise ValueError(f"{where} has no {key!r}. Got {describe(record)}.")
    return record[key]


def parse_target(record: Any, where: str) -> dict:
    """Read a record of answer clusters as a reference; raises a ValueError that names the record if it is invalid."""
    try:
        name = str(record["metadata"]["id"])
        raw, clusters = record["answers"]["raw"], record["answers"]["clusters"]
        about = record.get("question") or {}
        texts = {"question": about.get("question") or about.get("normalized") or ""}
        texts |= {key: about.get(key) or "" for key in ("sentence", "slot")}
        answers = [
            {"text": text, "count": count, "cluster": label}
            for label, cluster in clusters.items()
            for text, count in _cluster_counts(cluster, raw).items()
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a record of answer clusters: {error!r} in {describe(record)}.") from error
    return {"id": name, **texts, "answers": answers}


def _cluster_counts(cluster: Mapping, raw: Mapping) -> dict[str, Any]:
    """Count the answers of a cluster: as in `raw`, or an even share of what is left of the cluster's count."""
    if isinstance(cluster["answers"], str):
        raise TypeError("the answers of a cluster must be a list")
    counts = {text: raw[text] for text in cluster["answers"] if text in raw}
    others = [text for text in dict.fromkeys(cluster["answers"]) if text not in raw]
    left = cluster["count"] - sum(counts.values()) if others else 0
    for i, text in enumerate(others):
        share, more = divmod(max(left, 0), len(others))
        counts[text] = max(share + (i < more), 1)
    return counts


def _read(source: Any, name: str) -> list[tuple[str, Any]]:
    """List the objects of a JSON file, a JSON Lines file or a list, each with what errors call it."""
    if isinstance(source, (str, os.PathLike)):
        name, source = f"{name} {os.fspath(source)}", _parse(Path(source))
    if not isinstance(source, (list, tuple)):
        return [(name, source)]
    return [(f"{name}[{i}]", record) for i, record in enumerate(source)]


def _parse(path: Path) -> Any:
    """Read a JSON file, or the objects of a JSON Lines file as a list."""
    place = str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            objects = []
            for number, line in enumerate(text.split("\n"), 1):
                place = f"{path}, line {number}"
                objects += [json.loads(line)] if line.strip() else []
            return objects
    # Python's own errors, for bytes, depth and integers of thousands of digits, are no JSONDecodeError.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is not valid JSON: {error}.") from None
