"""Files of people's answers and of models' answers."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.files import read_json_or_lines, read_objects
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import parse_count
from text_metrics.metrics.probeval.probeval_formats import parse_reference
from text_metrics.metrics.probeval.probeval_released import parse_target, read_answers


def is_released(record: Mapping[str, Any]) -> bool:
    """Return whether this is a record of Commonsense Frame Completion or ProtoQA."""
    return "metadata" in record or "questionid" in record


def read_references(path: Path) -> list[dict[str, Any]]:
    """Read people's answers as references of probeval: released files, or a reference with an id on each line."""
    references: dict[str, dict[str, Any]] = {}
    for where, record in read_objects(path):
        if not is_released(record) and not (record.get("id") and "answers" in record):
            raise ValueError(f"{where} must have 'id' and 'answers', or be a released record of answer clusters.")
        try:
            reference = parse_reference(parse_target(record, where) if is_released(record) else record, where)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if reference["id"] in references:
            raise ValueError(f"{where}: question {reference['id']!r:.80} appears twice.")
        references[reference["id"]] = reference
    return list(references.values())


def read_counts(path: Path) -> dict[str, Counter[str]]:
    """Read a model's answers, in any released format or as `ask` writes them: question id to counts of answers."""
    released = read_json_or_lines(path)
    try:
        answers_of = read_answers(released)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return {name: _count(answers, f"{path}, question {name!r:.80}") for name, answers in answers_of.items()}


def _count(answers: Any, where: str) -> Counter[str]:
    if not isinstance(answers, (dict, list)):
        raise ValueError(f"{where}: answers must be a list, or an object with counts. Got {answers!r:.80}.")
    counts: Counter[str] = Counter()
    for text, count in answers.items() if isinstance(answers, dict) else map(_pair, answers):
        if not isinstance(text, str):
            raise ValueError(f"{where}: an answer must be a string. Got {text!r:.80}.")
        check_characters([text], lambda _: f"{where}: an answer")
        if isinstance(count, float) and count.is_integer():
            count = int(count)
        try:
            counts[text] += parse_count(count, f"{where}: a count")
        except TypeError as error:
            raise ValueError(str(error)) from error
    return counts


def _pair(answer: Any) -> tuple[Any, Any]:
    return (answer.get("text"), answer.get("count", 1)) if isinstance(answer, dict) else (answer, 1)
