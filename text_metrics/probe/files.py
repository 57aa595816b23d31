"""Files of people's answers and of models' answers."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from text_metrics.console import input_checked
from text_metrics.core_api import fold, pair_rows, parse_row, parse_target, read_answers, warn_of_unclustered
from text_metrics.files.reading import current
from text_metrics.files.rows import read_rows
from text_metrics.files.storage import open_file, parse_json
from text_metrics.texts import Marks, clean

Rows = list[dict[str, Any]]
# A report: its numbers, and of each section the title, the text and the table, as pandas makes it.
Report = tuple[dict[str, Any], list[tuple[str, str, Any]]]


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield questions with their places: objects with an id of their own, or records of a released file."""
    names = set()
    unclustered = []
    for where, record in read_rows(path):
        # Commonsense Frame Completion or ProtoQA.
        if "metadata" in record:
            with input_checked():
                record, left = parse_target(record, where)
            unclustered.append(left)
        name = record.get("id")
        if isinstance(name, bool) or not isinstance(name, (str, int)) or not str(name):
            raise ValueError(f"{where} must have an 'id', a string or an integer. Got {name!r:.80}.")
        if str(name) in names:
            raise ValueError(f"{where}: question {name!r:.80} appears twice.")
        names.add(str(name))
        yield where, record
    warn_of_unclustered(unclustered)


def read_references(path: Path) -> Rows:
    """Read people's answers, released or a reference of probeval on each line, as references."""
    references = []
    for where, record in read_records(path):
        if "answers" not in record:
            raise ValueError(f"{where} must have 'answers', or be a released record of answer clusters.")
        with input_checked():
            references.append(parse_row(record, "references", where))
    return references


def read_predictions(path: Path, references: Rows, as_said: bool = False) -> tuple[Rows, dict[str, list[str]]]:
    """Read a model's answers, as `ask` writes them or in any released format, which may be one value of JSON.

    With `as_said`, a raw answer of `ask` that is equal to one of people's, such as "A great deal", is not cleaned.
    Returns the answers to questions that both have, and the ids that are "unknown" to the references or "missing" in
    the file. Raises a ValueError that names the file if it is not valid, or if they share no question.
    """
    try:
        if not path.is_file():
            raise ValueError("a pipe can be read only once, as rows")
        with open_file(path) as file:
            value = parse_json(file.read())
            released = value if isinstance(value, list) else [value]
        current().add(path, [path], len(released))
    except ValueError:
        released = [record for _, record in read_rows(path)]
    if as_said:
        released = [_as_said(record, references) for record in released]
    try:
        predictions, _, skipped = pair_rows(read_answers(released), references, unknown="skip", missing="skip")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return predictions, skipped


def strip_answers(rows: Rows, kinds: Sequence[str], questions: Mapping[Any, str] | None = None) -> tuple[Rows, Marks]:
    """Strip some kinds from answers to questions, and count all.

    questions : the prompts by the ids of rows that do not hold them
    """
    stripped = []
    marks = Marks()
    for row in rows:
        prompt = row.get("question") or (questions or {}).get(row["id"])
        texts, row_marks = clean([answer["text"] for answer in row["answers"]], kinds, prompt)
        answers = [{**answer, "text": text} for answer, text in zip(row["answers"], texts, strict=True)]
        stripped.append({**row, "answers": answers})
        marks += row_marks
    return stripped, marks


def _as_said(record: Any, references: Rows) -> Any:
    """Replace clean answers by raw ones that are equal to people's, in a record of `ask`."""
    answers, raw = ((record.get(name) if isinstance(record, dict) else None) for name in ("answers", "raw"))
    if not (isinstance(answers, list) and isinstance(raw, list) and len(raw) == len(answers)):
        return record
    people = {fold(answer["text"]) for row in references if row["id"] == str(record["id"]) for answer in row["answers"]}
    said = [text if isinstance(text, str) and fold(text) in people else answers[i] for i, text in enumerate(raw)]
    return {**record, "answers": said}
