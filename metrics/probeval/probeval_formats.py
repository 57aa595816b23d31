"""Questions with the answers of people and of a model: every accepted form, converted to one.

The canonical form is a row for each question, in the same order on both sides:
predictions `{"id", "answers": [{"text", "count"}]}` and
references `{"id", "question", "sentence", "slot", "answers": [{"text", "count", "cluster"}]}`,
with "" for a missing string.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .core_inputs import check_characters
from .core_numbers import describe, parse_count, show, unpack

WRONG = "wrong"
# Above it, floats skip integers.
_MOST = 2**53
# How a prediction without a reference, or the reverse, is treated.
UNPAIRED = ("error", "skip")
_GOLD_FIELDS = ("id", "question", "sentence", "slot", "answers")
_GOLD_ANSWER = ("text", "count", "cluster")


class Question(NamedTuple):
    """One question; texts are sorted, so that the order of answers does not matter.

    name : its name in errors and details: its id, or its position
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
    references : the same, with an optional "cluster" (str or int) for an answer, and optional "question", "sentence"
        and "slot" for a question

    Raises
    ------
    TypeError
        If something is of the wrong type.
    ValueError
        If an id comes twice or has no partner, a count is below 1, or a gold answer is blank.
    """
    return pair_rows(predictions, references)[:2]


def pair_rows(
    predictions: Any, references: Any, unknown: str = "error", missing: str = "error"
) -> tuple[list[dict], list[dict], dict[str, list[str]]]:
    """Convert as `parse_rows` does, and leave out questions without a partner where `unknown` or `missing` is "skip".

    The third result has the ids that are left out: `unknown` of predictions, `missing` of references.

    Raises
    ------
    TypeError, ValueError
        As `parse_rows` does, or if no question is left.
    """
    given = _items(predictions, "predictions", ("id", "answers"), ("text", "count"))
    gold = _items(references, "references", _GOLD_FIELDS, _GOLD_ANSWER)
    for name, rows in (("predictions", given), ("references", gold)):
        _check_ids(name, rows)
    skipped: dict[str, list[str]] = {"unknown": [], "missing": []}
    if given[0]["id"] and gold[0]["id"]:
        names, gold_names = {row["id"] for row in given}, {row["id"] for row in gold}
        if unknown == "skip":
            skipped["unknown"] = [row["id"] for row in given if row["id"] and row["id"] not in gold_names]
        if missing == "skip":
            skipped["missing"] = [row["id"] for row in gold if row["id"] and row["id"] not in names]
        given = [row for row in given if row["id"] not in set(skipped["unknown"])]
        gold = [row for row in gold if row["id"] not in set(skipped["missing"])]
        if not (given and gold):
            raise ValueError(
                f"no prediction has a reference: predictions has question {show(next(iter(names)))}, for example, and "
                f"references has {show(next(iter(gold_names)))}."
            )
    return given, _align(given, gold), skipped


def parse_reference(item: Any, where: str) -> dict:
    """Convert a question with people's answers to the canonical form; `where` names it in errors.

    Raises a TypeError or ValueError as `parse_rows` does.
    """
    return _row(item, where, _GOLD_FIELDS, _GOLD_ANSWER)


def read_questions(given: list[dict], gold: list[dict]) -> list[Question]:
    """Read canonical rows, merging the counts of equal answers.

    Raises a ValueError if an id comes twice, as it can over several batches.
    """
    _check_ids("predictions", given)
    return [_question(i, *pair) for i, pair in enumerate(zip(given, gold, strict=True))]


def warn_of_unused_clusters(gold: list[dict], clustering: str) -> None:
    """Warn if `clustering="auto"` leaves people's clusters unused because some answers have none."""
    without = [
        (i, row["id"], answer["text"])
        for i, row in enumerate(gold)
        for answer in row["answers"]
        if not answer["cluster"]
    ]
    n_answers = sum(len(row["answers"]) for row in gold)
    if not 0 < len(without) < n_answers:
        return
    place, name, text = without[0]
    warnings.warn(
        f"people's clusters are not used, because {len(without)} of {n_answers} answers have none: the first is "
        f"{show(text)}, of question {show(name or str(place))}. The clustering is {clustering!r}.",
        stacklevel=4,
    )


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
        value = unpack(value)
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
    row: dict[str, Any] = {"id": _text(identity, f"{where}: the id")}
    if row["id"]:
        where = f"{where} (question {show(row['id'])})"
    _check_fields(item, fields, where)
    for field in fields[1:-1]:
        text = item.get(field)
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{where}: the {field} must be a string. Got {describe(text)}.")
        row[field] = text or ""
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
    parsed: dict[str, Any] = {"text": text, "count": 1 if count is None else _count(count, f"{where}: the count")}
    if "cluster" in fields:
        if not text.strip():
            raise ValueError(f"{where} is blank: a gold answer must hold a word. Got {show(text)}.")
        parsed["cluster"] = _label(answer.get("cluster"), where)
    return parsed


def _count(value: Any, name: str) -> int:
    """Read an integer >= 1; JSON and pandas write some integers as floats."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return parse_count(value, name, high=_MOST)


def _label(label: Any, where: str) -> str:
    if label is None:
        return ""
    if not isinstance(label, (str, int, np.integer)) or isinstance(label, bool):
        raise TypeError(f"{where}: the cluster must be a string or an integer. Got {describe(label)}.")
    name = _text(label, f"{where}: the cluster")
    if name == WRONG:
        raise ValueError(
            f"{where}: the cluster {WRONG!r} is reserved for answers of the model that match no gold answer."
        )
    return name


def _text(value: Any, name: str) -> str:
    try:
        return str(value)
    except ValueError:  # of Python, for an integer of thousands of digits
        raise ValueError(f"{name} has too many digits.") from None


def _check_fields(item: Mapping, fields: tuple[str, ...], where: str) -> None:
    unknown = [key for key in item if key not in fields]
    if unknown:
        raise ValueError(f"{where} may have {', '.join(map(repr, fields))}. Got {show(unknown[0])} too.")


def _check_ids(name: str, rows: list[dict]) -> None:
    seen: dict[str, int] = {}
    for i, row in enumerate(rows):
        if row["id"] and seen.setdefault(row["id"], i) != i:
            raise ValueError(f"{name} has question {show(row['id'])} twice, at {seen[row['id']]} and {i}.")


def _align(given: list[dict], gold: list[dict]) -> list[dict]:
    """Put the references in the order of the predictions: by id if both have ids, else by position."""
    for name, rows in (("predictions", given), ("references", gold)):
        without = [i for i, row in enumerate(rows) if not row["id"]]
        if without and len(without) < len(rows):
            raise ValueError(f"{name}[{without[0]}] has no id, but others do: give all questions an id, or none.")
    if not (given[0]["id"] and gold[0]["id"]):
        if len(given) != len(gold):
            raise ValueError(
                f"predictions and references without ids must have equal lengths. Got {len(given)} predictions and "
                f"{len(gold)} references."
            )
        for row, partner in zip(given, gold, strict=True):
            row["id"] = partner["id"] = row["id"] or partner["id"]
        return gold
    partners = {row["id"]: row for row in gold}
    for i, row in enumerate(given):
        if row["id"] not in partners:
            raise ValueError(
                f"predictions[{i}] (question {show(row['id'])}) has no reference. Pass unknown='skip' to leave it out."
            )
    answered = {row["id"] for row in given}
    for i, row in enumerate(gold):
        if row["id"] not in answered:
            raise ValueError(
                f"references[{i}] (question {show(row['id'])}) has no prediction. Pass missing='skip' to leave it "
                "out, or 'answers': [] to score it as unanswered."
            )
    return [partners[row["id"]] for row in given]


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
    if isinstance(labels, (list, tuple)):
        labels = _labels_by_text(labels, given, questions)
    if not isinstance(labels, Mapping):
        raise TypeError(
            "labels must map each question's id to a dict from its answers to clusters, or be a list with a list of "
            f"clusters for each question. Got {describe(labels)}."
        )
    rows = []
    for question in questions:
        question_labels = labels.get(question.name)
        if not isinstance(question_labels, Mapping):
            raise ValueError(
                f"labels must have a dict for question {show(question.name)}. Got {describe(question_labels)}."
            )
        row = []
        for text in question.answers:
            label = question_labels.get(text)
            if label is None:
                raise ValueError(
                    f"labels has no cluster for the answer {show(text)} to question {show(question.name)}."
                )
            if str(label) != WRONG and str(label) not in (question.clusters or ()):
                raise ValueError(
                    f"labels puts the answer {show(text)} to question {show(question.name)} in {show(label)}, which is "
                    f"neither a cluster of its gold answers nor {WRONG!r}."
                )
            row.append(str(label))
        rows.append(row)
    return rows


def _labels_by_text(labels: Sequence[Any], given: list[dict], questions: list[Question]) -> dict[str, dict[str, Any]]:
    """Turn lists of labels, one for each answer as it was given, to mappings from answers to labels."""
    if len(labels) != len(given):
        raise ValueError(f"labels must have a list for each of the {len(given)} questions. Got {len(labels)}.")
    by_name = {}
    for row, question, question_labels in zip(given, questions, labels, strict=True):
        name, texts = show(question.name), [answer["text"] for answer in row["answers"]]
        of_question = _list(question_labels, f"labels of question {name}", "a list with a label for each answer")
        if len(of_question) != len(texts):
            raise ValueError(
                f"labels of question {name} must have a label for each of its {len(texts)} answers. Got "
                f"{len(of_question)}."
            )
        by_text: dict[str, Any] = {}
        for text, label in zip(texts, of_question, strict=True):
            if str(by_text.setdefault(text, label)) != str(label):
                raise ValueError(
                    f"labels puts the answer {show(text)} to question {name} in both {show(by_text[text])} and "
                    f"{show(label)}."
                )
        by_name[question.name] = by_text
    return by_name
