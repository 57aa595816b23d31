"""Files of questions and answers as they were released: Commonsense Frame Completion and ProtoQA."""

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .core_numbers import describe, parse_choice, show
from .probeval_formats import UNPAIRED, parse_rows


def from_released(targets: Any, predictions: Any, unknown: str = "error") -> dict[str, list[dict]]:
    """Read the files of Commonsense Frame Completion (arXiv 2406.04145) or ProtoQA, as released.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects. `metadata.id`, `question.normalized`, `answers.raw` and
        `answers.clusters`: counts come from `raw`, since those stored with clusters are not always right; an answer in
        two clusters counts in both, as in the original. References keep `question.sentence` and `question.slot`, if
        there are any, and then `question.question` in place of `question.normalized`. Or ProtoQA's older form,
        `questionid`, `normalized-question` and `answers-cleaned`, a list of `{"count", "answers"}`: the answers in
        `raw` were cleaned before they were clustered, so an answer's count is that in `raw` where it has one, and the
        rest of its cluster's count is spread evenly over the others, each at least 1.
    predictions : path of a JSON or JSON Lines file, or its objects: `annotated_prediction_data` (id to text to
        `{"cluster", "count"}`), `model_answers` (id to texts), or both; ids to ranked answers; or records
        `{"question_id", "ranked_answers"}`. Counts are used if there are any.
    unknown : "error", or "skip" to leave out predicted questions that have no target, with a warning that names them

    Returns
    -------
    dict with "predictions" and "references", for `compute(**from_cfc(...))`: the questions that have predictions

    Raises
    ------
    ValueError
        If a record lacks a required field, or a predicted question has no target.
    """
    parse_choice(unknown, "unknown", UNPAIRED)
    target_of = {reference["id"]: reference for reference in read_targets(targets)}
    answers_to = read_answers(predictions)
    absent = [identity for identity in answers_to if identity not in target_of]
    if absent and (unknown == "error" or len(absent) == len(answers_to)):
        raise ValueError(
            f"predictions has question {show(absent[0])}, which is not among the targets. Pass unknown='skip' to "
            "leave out such questions."
        )
    if absent:
        names = ", ".join(map(repr, absent))
        warnings.warn(
            f"{len(absent)} of {len(answers_to)} predicted questions are not among the targets, and are left out: "
            f"{names}.",
            stacklevel=2,
        )
    known = {identity: answers for identity, answers in answers_to.items() if identity in target_of}
    rows = parse_rows(known, [target_of[identity] for identity in known])
    return dict(zip(("predictions", "references"), rows, strict=True))


def read_answers(predictions: Any) -> dict[str, Any]:
    """Read released predictions, in any of the formats of `from_released`: question id to answers.

    Raises a TypeError if they are not mappings, and a ValueError if a question comes twice.
    """
    data = _load(predictions)
    merged: dict[str, Any] = {}
    for i, record in enumerate(data if isinstance(data, (list, tuple)) else [data]):
        record = _mapping(record, "predictions")
        if "question_id" in record:
            record = {str(record["question_id"]): _part(record, "ranked_answers", f"predictions[{i}]")}
        elif "id" in record and "answers" in record:
            record = {str(record["id"]): record["answers"]}
        else:
            record = record.get("annotated_prediction_data") or record.get("model_answers") or record
            record = _mapping(record, "predictions")
        for identity, answers in record.items():
            if str(identity) in merged:
                raise ValueError(f"predictions has question {show(identity)} twice.")
            merged[str(identity)] = _counted(answers, f"predictions, question {show(identity)}")
    return merged


def _counted(answers: Any, where: str) -> Any:
    """Replace the entries of annotated answers by their counts."""
    if not isinstance(answers, Mapping):
        return answers
    return {
        text: _part(entry, "count", f"{where}, answer {show(text)}") if isinstance(entry, Mapping) else entry
        for text, entry in answers.items()
    }


def read_targets(targets: Any) -> list[dict]:
    """Read released questions with people's answers as references, in any of the formats of `from_released`.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects

    Returns
    -------
    list of {"id", "question", "sentence", "slot", "answers"}

    Raises
    ------
    ValueError
        If a record lacks a required field, or a question comes twice.
    """
    references: dict[str, dict] = {}
    for where, record in _records(targets):
        reference = parse_target(record, where)
        if reference["id"] in references:
            raise ValueError(f"targets has question {show(reference['id'])} twice.")
        references[reference["id"]] = reference
    return list(references.values())


def labels_from_cfc(predictions: Any) -> dict[str, dict[str, str]]:
    """Read people's cluster for each predicted answer from `annotated_prediction_data`: id to text to label."""
    data = _mapping(_load(predictions), "predictions")
    annotated = _mapping(data.get("annotated_prediction_data", data), "predictions")
    return {
        str(identity): {
            text: str(_part(entry, "cluster", f"predictions (question {show(identity)}, answer {show(text)})"))
            for text, entry in _mapping(answers, f"predictions (question {show(identity)})").items()
        }
        for identity, answers in annotated.items()
    }


def _mapping(value: Any, where: str) -> Mapping:
    if not isinstance(value, Mapping):
        raise TypeError(f"{where} must be a JSON object from question ids to answers. Got {describe(value)}.")
    return value


def _part(record: Any, key: str, where: str) -> Any:
    if not isinstance(record, Mapping) or key not in record:
        raise ValueError(f"{where} has no {key!r}. Got {describe(record)}.")
    return record[key]


def parse_target(record: Any, where: str) -> dict:
    """Read a record of answer clusters as a reference; raises a ValueError that names the record if it is invalid."""
    try:
        identity = str(record["metadata"]["id"] if "metadata" in record else record["questionid"])
        if "answers" in record:
            raw, clusters = record["answers"]["raw"], record["answers"]["clusters"]
        else:
            raw, cleaned = record.get("raw-answers-cleaned", {}), record["answers-cleaned"]
            if isinstance(cleaned, Mapping):  # the oldest form: a cluster is one answer
                cleaned = [{"count": count, "answers": [text]} for text, count in cleaned.items()]
            clusters = {f"{identity}.{i}": cluster for i, cluster in enumerate(cleaned)}
        question = record.get("question", "")
        about = question if isinstance(question, Mapping) else {"question": question}
        text = about.get("question") or about.get("normalized") or about.get("normalized-question") or ""
        texts = {"question": text, "sentence": about.get("sentence") or "", "slot": about.get("slot") or ""}
        answers = []
        for label, cluster in clusters.items():
            if isinstance(cluster["answers"], str):
                raise TypeError("the answers of a cluster must be a list")
            known = {text: raw[text] for text in cluster["answers"] if text in raw}
            unknown = [text for text in dict.fromkeys(cluster["answers"]) if text not in raw]
            left = cluster["count"] - sum(known.values()) if unknown else 0
            for i, text in enumerate(unknown):
                share, more = divmod(max(left, 0), len(unknown))
                known[text] = max(share + (i < more), 1)
            answers += [{"text": text, "count": count, "cluster": label} for text, count in known.items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a record of answer clusters: {error!r} in {describe(record)}.") from error
    return {"id": identity, **texts, "answers": answers}


def _records(targets: Any) -> list[tuple[str, Any]]:
    """List the records, each with what errors call it."""
    if isinstance(targets, (str, os.PathLike)):
        return _read(Path(targets))
    return [(f"targets[{i}]", record) for i, record in enumerate([targets] if isinstance(targets, dict) else targets)]


def _load(source: Any) -> Any:
    """Read a path as JSON or JSON Lines; return anything else unchanged."""
    if not isinstance(source, (str, os.PathLike)):
        return source
    values = [value for _, value in _read(Path(source))]
    return values[0] if len(values) == 1 else values


def _read(path: Path) -> list[tuple[str, Any]]:
    """Read the items of a JSON array, a JSON object alone, or JSON lines; each with its place."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        try:
            whole = json.loads(text)
        except json.JSONDecodeError as error:
            lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
            if len(lines) < 2:
                raise ValueError(f"{path} is not valid JSON: {error}.") from None
            return [(f"{path}, line {number}", _parse_line(path, number, line)) for number, line in lines]
        except ValueError as error:  # of Python, for an integer of thousands of digits
            raise ValueError(f"{path} is not valid JSON: {error}.") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(whole, list):
        return [(str(path), whole)]
    return [(f"{path}, item {i}", value) for i, value in enumerate(whole)]


def _parse_line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number} is not valid JSON: {error}.") from None
