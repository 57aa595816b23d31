"""Questions with the answers of people and of a model: every accepted form, converted to one.

The canonical form is a row for each question, in the same order on both sides:
predictions `{"id", "answers": [{"text", "count"}]}` and
references `{"id", "question", "sentence", "slot", "answers": [{"text", "count", "cluster"}]}`,
with "" for a missing string.
"""

import warnings
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import check_characters
from .core_numbers import describe, parse_count

WRONG = "wrong"
# How a prediction without a reference, or the reverse, is treated.
UNPAIRED = ("error", "skip")
_MAX_COUNT = 2**53  # floats above it skip integers
# The fields of a question and of an answer, on both sides.
_FIELDS = {"predictions": ("id", "answers"), "references": ("id", "question", "sentence", "slot", "answers")}
_ANSWER_FIELDS = {"predictions": ("text", "count"), "references": ("text", "count", "cluster")}


class Question(NamedTuple):
    """One question; texts are sorted, so that the order of answers does not matter.

    name : its name in errors and details: its id, or its position
    answers : list of u different answers of the model
    counts : ndarray of shape (u,), how often it gave each
    gold : list of g different answers of people
    gold_counts : ndarray of shape (g, c), how often people gave each, by the cluster they put it in; c = 1 without
    clusters : list of c cluster labels, or None if people did not cluster all gold answers
    """

    name: str
    answers: list[str]
    counts: np.ndarray
    gold: list[str]
    gold_counts: np.ndarray
    clusters: list[str] | None


def pair_rows(
    predictions: Any, references: Any, unknown: str = "error", missing: str = "error"
) -> tuple[list[dict], list[dict], dict[str, list[str]]]:
    """Convert predictions and references to the canonical form: a row per question, in the order of the predictions.

    Parameters
    ----------
    predictions : a question each: a list of answers, or `{"id", "answers"}`; or a mapping from ids to answers; or the
        answers to one question. An answer is a string, or `{"text", "count"}`; answers may be a mapping to counts.
    references : the same, with an optional "cluster" (str or int) for an answer, and optional "question", "sentence"
        and "slot" for a question
    unknown, missing : "skip" to leave out predictions without a reference, and references without a prediction

    Returns
    -------
    predictions, references, and the ids without a partner: "unknown" of predictions, "missing" of references

    Raises
    ------
    TypeError
        If something is of the wrong type.
    ValueError
        If an id comes twice or has no partner, a count is below 1, a gold answer is blank, or no question is left.
    """
    given, gold = _rows(predictions, "predictions"), _rows(references, "references")
    if not (given[0]["id"] and gold[0]["id"]):
        return given, _pair_by_position(given, gold), {"unknown": [], "missing": []}
    gold_by_id, answered = {row["id"]: row for row in gold}, {row["id"] for row in given}
    unpaired = {
        "unknown": [row["id"] for row in given if row["id"] not in gold_by_id],
        "missing": [row["id"] for row in gold if row["id"] not in answered],
    }
    if unpaired["unknown"] and unknown == "error":
        raise ValueError(
            f"predictions has question {describe(unpaired['unknown'][0])}, which has no reference. Pass "
            "unknown='skip' to leave it out."
        )
    if unpaired["missing"] and missing == "error":
        raise ValueError(
            f"references has question {describe(unpaired['missing'][0])}, which has no prediction. Pass "
            "missing='skip' to leave it out, or 'answers': [] to score it as unanswered."
        )
    paired = [row for row in given if row["id"] in gold_by_id]
    if not paired:
        raise ValueError(
            f"predictions and references have no question in common. Got {describe(given[0]['id'])}, for example, and "
            f"{describe(gold[0]['id'])}."
        )
    return paired, [gold_by_id[row["id"]] for row in paired], unpaired


def _pair_by_position(given: list[dict], gold: list[dict]) -> list[dict]:
    if len(given) != len(gold):
        raise ValueError(
            f"predictions and references without ids must have equal lengths. Got {len(given)} predictions and "
            f"{len(gold)} references."
        )
    for row, partner in zip(given, gold, strict=True):
        row["id"] = partner["id"] = row["id"] or partner["id"]
    return gold


def parse_reference(item: Any, where: str) -> dict:
    """Convert a question with people's answers to the canonical form; `where` names it in errors.

    Raises a TypeError or ValueError as `pair_rows` does.
    """
    return _row(item, where, "references")


def read_questions(given: list[dict], gold: list[dict]) -> list[Question]:
    """Read canonical rows, merging the counts of equal answers.

    Raises a ValueError if an id comes twice, as it can over several batches.
    """
    _check_ids(given, "predictions")
    return [_question(i, *pair) for i, pair in enumerate(zip(given, gold, strict=True))]


def _question(place: int, given: dict, gold: dict) -> Question:
    counts: Counter[str] = Counter()
    for answer in given["answers"]:
        counts[answer["text"]] += answer["count"]
    answers = sorted(counts)
    texts = sorted({answer["text"] for answer in gold["answers"]})
    labels = sorted({answer["cluster"] for answer in gold["answers"]})
    has_clusters = "" not in labels
    rows, columns = ({name: i for i, name in enumerate(names)} for names in (texts, labels if has_clusters else []))
    table = np.zeros((len(texts), max(len(columns), 1)))
    for answer in gold["answers"]:
        table[rows[answer["text"]], columns.get(answer["cluster"], 0)] += answer["count"]
    return Question(
        name=given["id"] or str(place),
        answers=answers,
        counts=np.array([counts[text] for text in answers], dtype=np.float64),
        gold=texts,
        gold_counts=table,
        clusters=labels if has_clusters else None,
    )


def warn_of_unused_clusters(gold: list[dict], clustering: str) -> None:
    """Warn if `clustering="auto"` leaves people's clusters unused because some answers have none."""
    answers = [(row["id"] or str(i), answer) for i, row in enumerate(gold) for answer in row["answers"]]
    without = [(name, answer["text"]) for name, answer in answers if not answer["cluster"]]
    if 0 < len(without) < len(answers):
        name, text = without[0]
        warnings.warn(
            f"people's clusters are not used, because {len(without)} of {len(answers)} answers have none: the first is "
            f"{describe(text)}, of question {describe(name)}. The clustering is {clustering!r}.",
            stacklevel=4,
        )


def _rows(value: Any, side: str) -> list[dict]:
    """Convert one side: "predictions" or "references"."""
    if value is None:
        raise ValueError(f"{side} is None: probeval compares a model's answers with people's, and needs both.")
    if isinstance(value, Mapping):
        if "answers" in value or "text" in value:
            raise TypeError(f"{side} must be a list of questions. Got a single dict, {describe(value)}.")
        items: list[Any] = [{"id": key, "answers": answers} for key, answers in value.items()]
    else:
        items = _list(value, f"{side} must be a list with the answers to each question")
        if items and (isinstance(items[0], str) or (isinstance(items[0], Mapping) and "text" in items[0])):
            items = [items]
    if not items:
        raise ValueError(f"{side} is empty: there is no question to score.")
    rows = [_row(item, f"{side}[{i}]", side) for i, item in enumerate(items)]
    _check_ids(rows, side)
    without = [i for i, row in enumerate(rows) if not row["id"]]
    if 0 < len(without) < len(rows):
        raise ValueError(f"{side}[{without[0]}] has no id, but others do: give all questions an id, or none.")
    return rows


def _check_ids(rows: list[dict], side: str) -> None:
    first: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row["id"] and first.setdefault(row["id"], i) != i:
            raise ValueError(f"{side} has question {describe(row['id'])} twice, at {first[row['id']]} and {i}.")


def _row(item: Any, where: str, side: str) -> dict:
    if item is None:
        raise TypeError(f"{where} must be the answers to a question. Got None; pass [] if there are none.")
    if not (isinstance(item, Mapping) and "answers" in item):
        item = {"answers": item}
    row: dict[str, Any] = {"id": _name(item.get("id"), f"{where}: the id")}
    if row["id"]:
        where = f"{where} (question {describe(row['id'])})"
    _check_fields(item, _FIELDS[side], where)
    for field in _FIELDS[side][1:-1]:
        row[field] = "" if item.get(field) is None else item[field]
        if not isinstance(row[field], str):
            raise TypeError(f"{where}: the {field} must be a string. Got {describe(row[field])}.")
    answers = item["answers"]
    if isinstance(answers, Mapping):
        answers = [{"text": text, "count": count} for text, count in answers.items()]
    answers = _list(answers, f"{where}: answers must be a list of answers")
    row["answers"] = [_answer(answer, f"{where}, answer {i}", side) for i, answer in enumerate(answers)]
    if side == "references" and not answers:
        raise ValueError(f"{where} has no answers: a question needs at least one gold answer.")
    return row


def _answer(answer: Any, where: str, side: str) -> dict:
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, Mapping):
        raise TypeError(f"{where} must be a string or a dict with 'text' and 'count'. Got {describe(answer)}.")
    _check_fields(answer, _ANSWER_FIELDS[side], where)
    text, count = answer.get("text"), answer.get("count")
    if not isinstance(text, str):
        raise TypeError(f"{where}: the text must be a string. Got {describe(text)}.")
    check_characters([text], lambda _: where)
    if isinstance(count, (float, np.floating)) and float(count).is_integer():
        count = int(count)  # JSON and pandas write some integers as floats
    parsed = {"text": text, "count": 1 if count is None else parse_count(count, f"{where}: the count", high=_MAX_COUNT)}
    if side == "references":
        if not text.strip():
            raise ValueError(f"{where} is blank: a gold answer must hold a word. Got {describe(text)}.")
        parsed["cluster"] = _name(answer.get("cluster"), f"{where}: the cluster")
        if parsed["cluster"] == WRONG:
            raise ValueError(f"{where}: the cluster {WRONG!r} is reserved for answers of the model that match none.")
    return parsed


def _list(value: Any, requirement: str) -> list:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{requirement}. Got a bare string, {describe(value)}.")
    try:
        return list(value.tolist() if hasattr(value, "tolist") else value)
    except TypeError:
        raise TypeError(f"{requirement}. Got {describe(value)}.") from None


def _name(value: Any, where: str) -> str:
    """Read an id or a cluster, a string or an integer; "" if it is None."""
    if value is None:
        return ""
    if not isinstance(value, (str, int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{where} must be a string or an integer. Got {describe(value)}.")
    try:
        return str(value)
    except ValueError:  # of Python, for an integer of thousands of digits
        raise ValueError(f"{where} has too many digits.") from None


def _check_fields(item: Mapping, fields: tuple[str, ...], where: str) -> None:
    if unknown := [key for key in item if key not in fields]:
        raise ValueError(f"{where} may have {', '.join(map(repr, fields))}. Got {describe(unknown[0])} too.")


def parse_labels(labels: Any, given: list[dict], questions: list[Question]) -> list[list[str]]:
    """Read people's cluster for each answer of the model: per question, a label or "wrong" for each answer in order.

    Parameters
    ----------
    labels : a mapping from question ids to mappings from answers to labels; or for each question a list of labels, one
        for each of its answers as they were given
    given : the answers of the questions, in canonical form

    Raises
    ------
    TypeError
        If `labels` is of another form.
    ValueError
        If an answer has no label, or several, or its label is not a cluster of its question.
    """
    by_name = isinstance(labels, Mapping)
    if not by_name:
        labels = _list(labels, "labels must map questions to their labels, or be a list with those of each question")
        if len(labels) != len(questions):
            raise ValueError(f"labels must have those of each of the {len(questions)} questions. Got {len(labels)}.")
    return [
        _labels_of(
            question,
            [answer["text"] for answer in row["answers"]],
            labels.get(question.name) if by_name else labels[i],
        )
        for i, (question, row) in enumerate(zip(questions, given, strict=True))
    ]


def _labels_of(question: Question, texts: list[str], labels: Any) -> list[str]:
    """Read the labels of one question, from a mapping or in the order of its answers as given."""
    where = f"labels of question {describe(question.name)}"
    if isinstance(labels, Mapping):
        pairs = [(text, labels.get(text)) for text in question.answers]
    else:
        labels = _list(labels, f"{where} must map its answers to clusters, or be a list with one for each answer")
        if len(labels) != len(texts):
            raise ValueError(f"{where} must have one for each of its {len(texts)} answers. Got {len(labels)}.")
        pairs = list(zip(texts, labels, strict=True))
    by_text: dict[str, str] = {}
    for text, label in pairs:
        if label is None:
            raise ValueError(f"{where} has no cluster for the answer {describe(text)}.")
        if str(label) not in (WRONG, *(question.clusters or ())):
            raise ValueError(
                f"{where} puts the answer {describe(text)} in {describe(label)}, which is neither a cluster of its "
                f"gold answers nor {WRONG!r}."
            )
        if by_text.setdefault(text, str(label)) != str(label):
            raise ValueError(f"{where} puts the answer {describe(text)} in both {by_text[text]!r} and {str(label)!r}.")
    return [by_text[text] for text in question.answers]
