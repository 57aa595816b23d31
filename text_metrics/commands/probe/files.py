"""Files of people's answers and of models' answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.files import read_json_or_lines, read_objects
from text_metrics.metrics.probeval.probeval_formats import Question, pair_rows, parse_reference, read_questions
from text_metrics.metrics.probeval.probeval_released import parse_target, read_answers

Rows = list[dict[str, Any]]
# Parts of a report: titles, texts and tables, whose first row is the header.
Sections = list[tuple[str, str, list[list[str]]]]


def is_released(record: Mapping[str, Any]) -> bool:
    """Return whether this is a record of Commonsense Frame Completion or ProtoQA."""
    return "metadata" in record or "questionid" in record


def read_references(path: Path) -> Rows:
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


def read_predictions(path: Path, references: Rows) -> tuple[list[Question], list[str]]:
    """Read a model's answers, in any released format or as `ask` writes them, to the questions of some references.

    Returns the questions that both have, and the ids of the model's others. Raises a ValueError that names the file if
    it is not valid, or if they share no question.
    """
    released = read_json_or_lines(path)
    try:
        predictions, gold, skipped = pair_rows(read_answers(released), references, unknown="skip", missing="skip")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return read_questions(predictions, gold), skipped["unknown"]
