"""Questions with the answers of people and of a model: every accepted form, converted to one.

The canonical form is a row for each question, in the same order on both sides:
predictions `{"id", "answers": [{"text", "count"}]}` and
references `{"id", "question", "answers": [{"text", "count", "cluster"}]}`, with "" for an id, a question or a cluster
that is not there.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import NO_TEXTS, SettingsCheckedError, check_characters, describe, parse_count

WRONG = "wrong"
# Above it, floats skip integers.
_MOST = 2**53


class Question(NamedTuple):
    """One question; texts are sorted, so that the order of answers does not matter.

    name : how errors and details call it: its id, or its place
    answers : list of u different answers of the model
    counts : ndarray of shape (u,), how often it gave each
    gold : list of g different answers of people
    gold_counts : ndarray of shape (g, c), how often people gave each, by the cluster they put it in; c = 1 without
    clusters : list of c cluster labels, or None where people did not cluster all gold answers
    """

    name: str
    answers: list[str]
    counts: np.ndarray
    gold: list[str]
    gold_counts: np.ndarray
    clusters: list[str] | None


def parse_rows(predictions: Any, references: Any) -> tuple[list[dict], list[dict]]:
    """Convert predictions and references to the canonical form: a row per question, in the order of the predictions.

    Parameters
    ----------
    predictions : a question each: a list of answers, or `{"id", "answers"}`; or a mapping from ids to answers; or the
        answers to one question. An answer is a string, or `{"text", "count"}`; answers may be a mapping to counts.
    references : the same, with an optional "cluster" (str or int) for an answer and "question" for a question

    Raises
    ------
    TypeError
        If something is of the wrong type.
    ValueError
        If an id comes twice or has no partner, a count is below 1, or a gold answer is blank.
    """
    given = _items(predictions, "predictions", ("id", "answers"), ("text", "count"))
    gold = _items(references, "references", ("id", "question", "answers"), ("text", "count", "cluster"))
    for name, rows in (("predictions", given), ("references", gold)):
        _check_ids(name, rows)
    return given, _align(given, gold)


def questions(given: list[dict], gold: list[dict]) -> list[Question]:
    """Read canonical rows, merging the counts of equal answers.

    Raises
    ------
    ValueError
        If an id comes twice, as it can over several batches.
    """
    _check_ids("predictions", given)
    return [_question(i, *pair) for i, pair in enumerate(zip(given, gold, strict=True))]


def _question(place: int, given: dict, gold: dict) -> Question:
    counts: dict[str, int] = {}
    for answer in given["answers"]:
        counts[answer["text"]] = counts.get(answer["text"], 0) + answer["count"]
    answers = sorted(counts)
    labelled = all(answer["cluster"] for answer in gold["answers"])
    texts = {text: i for i, text in enumerate(sorted({answer["text"] for answer in gold["answers"]}))}
    clusters = sorted({answer["cluster"] for answer in gold["answers"]}) if labelled else None
    columns = {label: i for i, label in enumerate(clusters or [])}
    table = np.zeros((len(texts), max(len(columns), 1)))
    for answer in gold["answers"]:
        table[texts[answer["text"]], columns.get(answer["cluster"], 0)] += answer["count"]
    return Question(
        name=given["id"] or str(place),
        answers=answers,
        counts=np.array([counts[text] for text in answers], dtype=np.float64),
        gold=list(texts),
        gold_counts=table,
        clusters=clusters,
    )


def _items(value: Any, name: str, fields: tuple[str, ...], answer_fields: tuple[str, ...]) -> list[dict]:
    if value is NO_TEXTS:
        raise SettingsCheckedError
    if value is None:
        raise ValueError(f"{name} is None: probeval compares a model's answers with people's, and needs both.")
    if isinstance(value, Mapping):
        if "answers" in value or "text" in value:
            raise TypeError(f"{name} must be a list of questions. Got a single dict, {describe(value)}.")
        items: list[Any] = [{"id": key, "answers": answers} for key, answers in value.items()]
    else:
        items = _list(value, name, "a list with the answers to each question")
        if items and _is_answer(items[0]):
            items = [items]
    if not items:
        raise ValueError(f"{name} is empty: there is no question to score.")
    return [_row(item, f"{name}[{i}]", fields, answer_fields) for i, item in enumerate(items)]


def _list(value: Any, name: str, expected: str) -> list:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be {expected}. Got a bare string, {describe(value)}.")
    if hasattr(value, "tolist"):
        value = value.tolist()
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name} must be {expected}. Got {describe(value)}.") from None


def _is_answer(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, Mapping) and "text" in item)


def _row(item: Any, where: str, fields: tuple[str, ...], answer_fields: tuple[str, ...]) -> dict:
    if item is None:
        raise TypeError(f"{where} must be the answers to a question. Got None; pass [] if there are none.")
    if not (isinstance(item, Mapping) and "answers" in item):
        item = {"answers": item}
    identity = item.get("id")
    identity = "" if identity is None else identity
    if not isinstance(identity, (str, int, np.integer)) or isinstance(identity, bool):
        raise TypeError(f"{where}: the id must be a string. Got {describe(identity)}.")
    row: dict[str, Any] = {"id": str(identity)}
    if row["id"]:
        where = f"{where} (question {row['id']!r})"
    _check_fields(item, fields, where)
    if "question" in fields:
        question = item.get("question")
        if question is not None and not isinstance(question, str):
            raise TypeError(f"{where}: the question must be a string. Got {describe(question)}.")
        row["question"] = question or ""
    answers = item["answers"]
    if isinstance(answers, Mapping):
        answers = [{"text": text, "count": count} for text, count in answers.items()]
    row["answers"] = [
        _answer(answer, f"{where}, answer {i}", answer_fields)
        for i, answer in enumerate(_list(answers, f"{where}: answers", "a list of answers"))
    ]
    if "question" in fields and not row["answers"]:
        raise ValueError(f"{where} has no answers: a question needs at least one gold answer.")
    return row


def _answer(answer: Any, where: str, fields: tuple[str, ...]) -> dict:
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, Mapping):
        raise TypeError(f"{where} must be a string or a dict with 'text' and 'count'. Got {describe(answer)}.")
    _check_fields(answer, fields, where)
    text = answer.get("text")
    if not isinstance(text, str):
        raise TypeError(f"{where}: the text must be a string. Got {describe(text)}.")
    check_characters([text], lambda _: where)
    count = answer.get("count")
    parsed: dict[str, Any] = {
        "text": text,
        "count": 1 if count is None else parse_count(count, f"{where}: the count", high=_MOST),
    }
    if "cluster" in fields:
        if not text.strip():
            raise ValueError(f"{where} is blank: a gold answer must hold a word. Got {text!r}.")
        parsed["cluster"] = _label(answer.get("cluster"), where)
    return parsed


def _label(label: Any, where: str) -> str:
    if label is None:
        return ""
    if not isinstance(label, (str, int, np.integer)) or isinstance(label, bool):
        raise TypeError(f"{where}: the cluster must be a string or an integer. Got {describe(label)}.")
    if str(label) == WRONG:
        raise ValueError(
            f"{where}: the cluster {WRONG!r} is reserved for answers of the model that match no gold answer."
        )
    return str(label)


def _check_fields(item: Mapping, fields: tuple[str, ...], where: str) -> None:
    unknown = [key for key in item if key not in fields]
    if unknown:
        raise ValueError(f"{where} may have {', '.join(map(repr, fields))}. Got {unknown[0]!r} too.")


def _check_ids(name: str, rows: list[dict]) -> None:
    seen: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row["id"] and seen.setdefault(row["id"], i) != i:
            raise ValueError(f"{name} has question {row['id']!r} twice, at {seen[row['id']]} and {i}.")


def _align(given: list[dict], gold: list[dict]) -> list[dict]:
    """Put the references in the order of the predictions: by id if both have ids, else by position."""
    for name, rows in (("predictions", given), ("references", gold)):
        without = [i for i, row in enumerate(rows) if not row["id"]]
        if without and len(without) < len(rows):
            raise ValueError(f"{name}[{without[0]}] has no id, but others do: give all questions an id, or none.")
    if not (given[0]["id"] and gold[0]["id"]):
        if len(given) != len(gold):
            raise ValueError(
                f"predictions without ids must be as many as references. Got {len(given)} predictions for "
                f"{len(gold)} references."
            )
        for row, partner in zip(given, gold, strict=True):
            row["id"] = partner["id"] = row["id"] or partner["id"]
        return gold
    partners = {row["id"]: row for row in gold}
    for i, row in enumerate(given):
        if row["id"] not in partners:
            raise ValueError(f"predictions[{i}] (question {row['id']!r}) has no reference.")
    answered = {row["id"] for row in given}
    for i, row in enumerate(gold):
        if row["id"] not in answered:
            raise ValueError(
                f"references[{i}] (question {row['id']!r}) has no prediction. Leave it out, or pass "
                "'answers': [] to score it as unanswered."
            )
    return [partners[row["id"]] for row in given]


def parse_labels(labels: Any, asked: list[Question]) -> list[list[str]]:
    """Read people's cluster for each answer of the model: per question, a label or "wrong" for each answer in order.

    Raises
    ------
    TypeError
        If `labels` is no mapping of mappings.
    ValueError
        If an answer has no label, or one that is no cluster of its question.
    """
    if not isinstance(labels, Mapping):
        raise TypeError(
            f"labels must map each question's id to a dict from its answers to clusters. Got {describe(labels)}."
        )
    rows = []
    for question in asked:
        own = labels.get(question.name)
        if not isinstance(own, Mapping):
            raise ValueError(f"labels must have a dict for question {question.name!r}. Got {describe(own)}.")
        row = []
        for text in question.answers:
            label = own.get(text)
            if label is None:
                raise ValueError(f"labels has no cluster for the answer {text!r} to question {question.name!r}.")
            if str(label) != WRONG and str(label) not in (question.clusters or ()):
                raise ValueError(
                    f"labels puts the answer {text!r} to question {question.name!r} in {label!r}, which is neither a "
                    f"cluster of its gold answers nor {WRONG!r}."
                )
            row.append(str(label))
        rows.append(row)
    return rows


def from_cfc(targets: Any, predictions: Any) -> dict[str, list[dict]]:
    """Read Commonsense Frame Completion's files, as released with arXiv 2406.04145.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects: `metadata.id`, `question.normalized`, `answers.raw` and
        `answers.clusters`. Counts come from `raw`, since those stored with clusters are not always right; an answer in
        two clusters counts in both, as in the original.
    predictions : path of a JSON file, or its object: `annotated_prediction_data` (id to text to `{"cluster",
        "count"}`) and `model_answers` (id to texts), or either of them. Counts are used if there are any.

    Returns
    -------
    dict with "predictions" and "references", for `compute(**from_cfc(...))`: the questions that have predictions

    Raises
    ------
    ValueError
        If a record lacks what it must have, or a predicted question has no target.
    """
    data = _load(predictions)
    if not isinstance(data, Mapping):
        raise TypeError(f"predictions must be a JSON object from question ids to answers. Got {describe(data)}.")
    by_question = data.get("annotated_prediction_data") or data.get("model_answers") or data
    given = {}
    for identity, answers in by_question.items():
        if isinstance(answers, Mapping):
            answers = {text: entry["count"] if isinstance(entry, Mapping) else entry for text, entry in answers.items()}
        given[str(identity)] = answers
    return _convert(_records(targets), given)


def labels_from_cfc(predictions: Any) -> dict[str, dict[str, str]]:
    """Read people's cluster for each predicted answer from `annotated_prediction_data`: id to text to label."""
    data = _load(predictions)
    annotated = data.get("annotated_prediction_data", data)
    return {
        str(identity): {text: str(entry["cluster"]) for text, entry in answers.items()}
        for identity, answers in annotated.items()
    }


def from_protoqa(targets: Any, predictions: Any) -> dict[str, list[dict]]:
    """Read ProtoQA's files: the answer-cluster format, in its old form too, and ranked predictions.

    Parameters
    ----------
    targets : path of a JSON Lines file, or its objects: as for `from_cfc`, or with `questionid`,
        `normalized-question` and `answers-cleaned`, a list of `{"count", "answers"}`. The answers in `raw` were
        cleaned before they were clustered, so an answer's count is that in `raw` where it has one, and the rest of its
        cluster's count is spread evenly over the others, each at least 1.
    predictions : path of a JSON or JSON Lines file, or its object: ids to ranked answers, or records
        `{"question_id", "ranked_answers"}`

    Returns
    -------
    dict with "predictions" and "references", for `compute(**from_protoqa(...))`: the questions that have predictions

    Raises
    ------
    ValueError
        If a record lacks what it must have, or a predicted question has no target.
    """
    data = _load(predictions)
    if not isinstance(data, Mapping):
        merged: dict[str, Any] = {}
        for record in data:
            own = {record["question_id"]: record["ranked_answers"]} if "question_id" in record else record
            for identity in own:
                if identity in merged:
                    raise ValueError(f"predictions has question {identity!r} twice.")
            merged.update(own)
        data = merged
    elif "question_id" in data:
        data = {data["question_id"]: data["ranked_answers"]}
    return _convert(_records(targets), {str(identity): answers for identity, answers in data.items()})


def _convert(records: list[tuple[str, Any]], given: dict[str, Any]) -> dict[str, list[dict]]:
    targets = {}
    for where, record in records:
        reference = parse_target(record, where)
        if reference["id"] in targets:
            raise ValueError(f"targets has question {reference['id']!r} twice.")
        targets[reference["id"]] = reference
    for identity in given:
        if identity not in targets:
            raise ValueError(f"predictions has question {identity!r}, which is not among the targets.")
    predictions, references = parse_rows(given, [targets[identity] for identity in given])
    return {"predictions": predictions, "references": references}


def parse_target(record: Any, where: str) -> dict:
    """Read a record of answer clusters as a reference; raises a ValueError that says where it is, if it is none."""
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
        if isinstance(question, Mapping):
            question = question.get("normalized") or question.get("normalized-question") or ""
        answers = []
        for label, cluster in clusters.items():
            known = {text: raw[text] for text in cluster["answers"] if text in raw}
            unknown = [text for text in dict.fromkeys(cluster["answers"]) if text not in raw]
            left = cluster["count"] - sum(known.values()) if unknown else 0
            for i, text in enumerate(unknown):
                share, more = divmod(max(left, 0), len(unknown))
                known[text] = max(share + (i < more), 1)
            answers += [{"text": text, "count": count, "cluster": label} for text, count in known.items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is not a record of answer clusters: {error!r} in {describe(record)}.") from error
    return {"id": identity, "question": question, "answers": answers}


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
                raise ValueError(f"{path} is no JSON: {error}.") from None
            return [(f"{path}, line {number}", _parse_line(path, number, line)) for number, line in lines]
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}.") from None
    if not isinstance(whole, list):
        return [(str(path), whole)]
    return [(f"{path}, item {i}", value) for i, value in enumerate(whole)]


def _parse_line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}, line {number} is no JSON: {error}.") from None
