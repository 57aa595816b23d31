"""Questions with the answers of people and of a model: every accepted form, converted to one.

The canonical form is a row for each question, in the same order on both sides:
predictions `{"id", "answers": [{"text", "count"}]}` and
references `{"id", "question", "sentence", "slot", "answers": [{"text", "count", "cluster"}]}`,
with "" for a missing string. An answer of count 0 is left out, unless it shows that a count of 1.0 is a share.
"""

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .core import NUMBERS, as_list, check_characters, describe, parse_number, warn
from .probeval_words import normalize

WRONG = "wrong"
# How a prediction without a reference, or the reverse, is treated.
UNPAIRED = ("error", "skip")
_MAX_COUNT = 2**53  # floats above it skip integers
# The fields of a question and of an answer, on both sides.
_TEXTS = ("question", "sentence", "slot")
_FIELDS = {"predictions": ("id", "answers", "total"), "references": ("id", "answers", "total", *_TEXTS)}
_ANSWER_FIELDS = {"predictions": ("text", "count"), "references": ("text", "count", "cluster")}


class Question(NamedTuple):
    """One question; texts are sorted, so that the order of answers does not matter.

    name : its name in errors and details: its id, or its position
    answers : list of u different answers of the model
    counts : ndarray of shape (u,), how often it gave each
    gold : list of g different answers of people
    gold_counts : ndarray of shape (g, c), how often people gave each, by cluster; c = 1 without clusters
    clusters : list of c cluster labels, or None if people did not cluster all gold answers
    shares : the sides whose counts are the shares 1.0 and 0.0, "predictions" or "references"
    """

    name: str
    answers: list[str]
    counts: np.ndarray
    gold: list[str]
    gold_counts: np.ndarray
    clusters: list[str] | None
    shares: tuple[str, ...] = ()

    @property
    def people(self) -> np.ndarray:
        """Number of people who gave each gold answer: ndarray of shape (g,)."""
        return self.gold_counts.sum(axis=1)


def pair_rows(
    predictions: Any, references: Any, unknown: str = "error", missing: str = "error"
) -> tuple[list[dict], list[dict], dict[str, list[str]]]:
    """Convert predictions and references, in any of the forms that `compute` takes, to the canonical form.

    `unknown="skip"` leaves out predictions without a reference, and `missing="skip"` references without a prediction.
    Returns both, paired, in the order of the predictions, and the ids that were left out: "unknown" and "missing".
    Raises a TypeError if something is of the wrong type, and a ValueError if an id comes twice or has no partner, a
    count is negative, or a gold answer is blank.
    """
    given = _rows(predictions, "predictions")
    gold = _rows(references, "references")
    skipped: dict[str, list[str]] = {"unknown": [], "missing": []}
    if not (given[0]["id"] and gold[0]["id"]):
        if len(given) != len(gold):
            raise ValueError(
                f"predictions and references without ids must have equal length. Got {len(given)} and {len(gold)}."
            )
        for row, partner in zip(given, gold, strict=True):
            row["id"] = partner["id"] = row["id"] or partner["id"]
        return given, gold, skipped
    given_by_id = {row["id"]: row for row in given}
    gold_by_id = {row["id"]: row for row in gold}
    for option, policy, name, rows, partners in (
        ("unknown", unknown, "predictions", given_by_id, gold_by_id),
        ("missing", missing, "references", gold_by_id, given_by_id),
    ):
        skipped[option] = [key for key in rows if key not in partners]
        if skipped[option] and policy == "error":
            raise ValueError(
                f"{name} has question {describe(skipped[option][0])}, which the other side lacks. "
                f"Pass {option}='skip' to leave it out."
            )
    paired = [key for key in given_by_id if key in gold_by_id]
    if not paired:
        ids = [describe(rows[0]["id"]) for rows in (given, gold)]
        raise ValueError(f"predictions and references have no question in common. Got {ids[0]} and {ids[1]}.")
    return [given_by_id[key] for key in paired], [gold_by_id[key] for key in paired], skipped


def _rows(value: Any, side: str) -> list[dict]:
    """Convert one side: "predictions" or "references"."""
    if value is None:
        raise ValueError(f"{side} is None: probeval needs predictions and references.")
    if isinstance(value, Mapping):
        if "answers" in value or "text" in value:
            raise TypeError(f"{side} must be a list of questions. Got {describe(value)}.")
        items: list[Any] = [{"id": key, "answers": answers} for key, answers in value.items()]
    else:
        items = as_list(value, side, "a list with the answers to each question")
        first = items[0] if items else None
        if isinstance(first, str) or (isinstance(first, Mapping) and "text" in first) or _is_pair(first):
            items = [items]
    if not items:
        raise ValueError(f"{side} is empty: there is no question to score.")
    rows = [parse_row(item, side, f"{side}[{i}]") for i, item in enumerate(items)]
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        name = row["id"]
        if bool(name) != bool(rows[0]["id"]):
            raise ValueError(f"{side}[0] and {side}[{i}] must both have an id, or none.")
        if name and places.setdefault(name, i) != i:
            raise ValueError(f"{side} has question {describe(name)} twice, at {places[name]} and {i}.")
    return rows


def parse_row(item: Any, side: str, where: str) -> dict:
    """Convert a question of "predictions" or "references" to the canonical form; `where` names it in errors.

    Raises a TypeError or ValueError as `pair_rows` does.
    """
    if not (isinstance(item, Mapping) and "answers" in item):
        item = {"answers": item}
    name = _name(item.get("id"), f"{where}: the id")
    answers = item["answers"]
    if name:
        where = f"{where} (question {describe(name)})"
    _check_fields(item, _FIELDS[side], where)
    texts = dict.fromkeys(_TEXTS if side == "references" else (), "")
    texts |= {field: item[field] for field in texts if item.get(field) is not None}
    for field, text in texts.items():
        if not isinstance(text, str):
            raise TypeError(f"{where}: the {field} must be a string. Got {describe(text)}.")
    if isinstance(answers, Mapping):
        answers = [{"text": text, "count": count} for text, count in answers.items()]
    answers = as_list(answers, f"{where}: answers", "a list of answers")
    parsed = [_answer(answer, side, f"{where}, answer {i}") for i, answer in enumerate(answers)]
    if item.get("total") is not None or not _is_share(answers, parsed):
        parsed = [answer for answer in parsed if answer["count"]]
    if side == "references" and not parsed:
        raise ValueError(f"{where} has no answers: it needs at least one.")
    if parsed and item.get("total") is not None:
        total = parse_number(item["total"], f"{where}: the total", 1, _MAX_COUNT)
        whole = sum(answer["count"] for answer in parsed)
        # Without the rounding of shares.
        parsed = [{**answer, "count": plain_count(round(answer["count"] / whole * total, 9))} for answer in parsed]
    return {"id": name, **texts, "answers": parsed}


def _is_share(answers: list, parsed: list[dict]) -> bool:
    """Tell whether counts are the floats 1.0 and 0.0, which are shares; the integers 1 and 0 are counts."""
    counts = sorted(answer["count"] for answer in parsed)
    if len(counts) < 2 or counts[-1] != 1 or any(counts[:-1]):
        return False
    given = (answer["count"] if isinstance(answer, Mapping) else answer[1] for answer in answers)
    return any(isinstance(count, (float, np.floating)) for count in given)


def _is_pair(value: Any) -> bool:
    """Tell whether a value is an answer and its count."""
    is_two = isinstance(value, (list, tuple)) and len(value) == 2
    return is_two and isinstance(value[0], str) and isinstance(value[1], NUMBERS)


def _answer(answer: Any, side: str, where: str) -> dict:
    if isinstance(answer, str):
        answer = {"text": answer}
    elif _is_pair(answer):
        answer = dict(zip(("text", "count"), answer, strict=True))
    if not isinstance(answer, Mapping):
        raise TypeError(f"{where} must be a string or a dict. Got {describe(answer)}.")
    _check_fields(answer, _ANSWER_FIELDS[side], where)
    text = answer.get("text")
    count = answer.get("count")
    if not isinstance(text, str):
        raise TypeError(f"{where}: the text must be a string. Got {describe(text)}.")
    check_characters([text], lambda _: where)
    count = 1.0 if count is None else parse_number(count, f"{where}: the count", 0, _MAX_COUNT)
    parsed: dict[str, Any] = {"text": text, "count": plain_count(count)}
    if side == "references":
        if not normalize(text):
            raise ValueError(f"{where} is blank: a gold answer holds a word. Got {describe(text)}.")
        cluster = _name(answer.get("cluster"), f"{where}: the cluster")
        if cluster == WRONG:
            raise ValueError(f"{where}: the cluster {WRONG!r} is reserved for answers that match none.")
        parsed["cluster"] = cluster
    return parsed


def plain_count(count: float) -> int | float:
    """Return a count as an integer, if it is one."""
    return int(count) if float(count).is_integer() else float(count)


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
    for key in item:
        if key not in fields:
            raise ValueError(f"{where} may have {', '.join(fields)}. Got {describe(key)} too.")


def count_answers(answers: list[dict]) -> Counter[str]:
    """Count answers in canonical form by text; texts keep their order."""
    counts: Counter[str] = Counter()
    for answer in answers:
        if answer["count"]:
            counts[answer["text"]] += answer["count"]
    return counts


def read_questions(given: list[dict], gold: list[dict]) -> list[Question]:
    """Read canonical rows, merging the counts of equal answers."""
    return [_question(i, *pair) for i, pair in enumerate(zip(given, gold, strict=True))]


def _question(place: int, given: dict, gold: dict) -> Question:
    counts = count_answers(given["answers"])
    people: Counter[tuple[str, str]] = Counter()
    for answer in gold["answers"]:
        if answer["count"]:
            people[answer["text"], answer["cluster"]] += answer["count"]
    shares = []
    for side, row in (("predictions", given), ("references", gold)):
        if not all(answer["count"] for answer in row["answers"]):
            shares.append(side)
    answers = sorted(counts)
    gold_texts, gold_labels = zip(*people, strict=True)
    texts = sorted(set(gold_texts))
    labels = sorted(set(gold_labels))
    cells = [people[cell] for cell in itertools.product(texts, labels)]
    table = np.array(cells, dtype=np.float64).reshape(len(texts), len(labels))
    is_clustered = "" not in labels
    return Question(
        name=given["id"] or str(place),
        answers=answers,
        counts=np.array([counts[text] for text in answers], dtype=np.float64),
        gold=texts,
        gold_counts=table if is_clustered else table.sum(axis=1, keepdims=True),
        clusters=labels if is_clustered else None,
        shares=tuple(shares),
    )


def warn_of_unused_clusters(gold: list[dict], clustering: str) -> None:
    """Warn if `clustering="auto"` leaves people's clusters unused because some answers have none."""
    answers = [answer for row in gold for answer in row["answers"]]
    without = [answer["text"] for answer in answers if not answer["cluster"]]
    if 0 < len(without) < len(answers):
        warn(
            f"people's clusters are not used, because {len(without)} of {len(answers)} answers have none, "
            f"such as {describe(without[0])}. The clustering is {clustering!r}."
        )


def parse_labels(labels: Any, given: list[dict], questions: list[Question]) -> list[list[str]]:
    """Read people's clusters of the model's answers: per question, a label or "wrong" for each of `answers`.

    `labels` are in any of the forms that `compute` takes, and `given` are the answers in canonical form. Raises a
    TypeError for another form, and a ValueError if an answer has no label, or several, or its label is not a cluster of
    its question.
    """
    if not isinstance(labels, Mapping):
        rows = as_list(labels, "labels", "a dict or a list with the labels of each question")
        if len(rows) != len(questions):
            raise ValueError(f"labels must have those of {len(questions)} questions. Got {len(rows)}.")
        labels = {question.name: row for question, row in zip(questions, rows, strict=True)}
    pairs = zip(questions, given, strict=True)
    return [_labels_of(question, row, labels.get(question.name)) for question, row in pairs]


def _labels_of(question: Question, row: dict, labels: Any) -> list[str]:
    """Read the labels of one question, from a mapping or in the order of its answers as given."""
    where = f"labels of question {describe(question.name)}"
    if not isinstance(labels, Mapping):
        texts = [answer["text"] for answer in row["answers"] if answer["count"]]
        in_order = as_list(labels, where, "a dict from answers to clusters, or a list")
        if len(in_order) != len(texts):
            raise ValueError(f"{where} must have {len(texts)}, one for each answer. Got {len(in_order)}.")
        labels = {}
        for text, label in zip(texts, in_order, strict=True):
            if str(labels.setdefault(text, label)) != str(label):
                raise ValueError(f"{where}: the answer {describe(text)} is in two clusters.")
    allowed = (WRONG, *(question.clusters or ()))
    for text in question.answers:
        label = labels.get(text)
        if label is None or str(label) not in allowed:
            raise ValueError(
                f"{where}: the answer {describe(text)} must be in a cluster of its gold answers, "
                f"or in {WRONG!r}. Got {describe(label)}."
            )
    return [str(labels[text]) for text in question.answers]
