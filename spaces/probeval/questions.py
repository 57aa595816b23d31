"""Questions with the answers of people and of one or two models: parsed from boxes or rows, and checked."""

import re
from typing import Any

from _kit import inputs
from _kit.show.panels import shorten

LIMITS = inputs.Limits(sets=50, texts=1_000, text_characters=300, characters=30_000)
MOST_COUNTED = 100_000
ROLES = (
    inputs.Role("text", "Answer", True, ("answer", "text", "answers")),
    inputs.Role("who", "Who: people, model, model 2", True, ("who", "side", "source", "from")),
    inputs.Role("count", "Count", False, ("count", "n", "times")),
    inputs.Role("cluster", "Cluster", False, ("cluster", "label", "group")),
    inputs.Role("question", "Question", False, ("question", "id", "qid", "prompt")),
)
# The words for each side in the column “Who”, and the side in an error.
_WORDS = {
    "people": "people person human humans gold reference references",
    "model": "model models prediction predictions machine llm",
    "other": "other another",
}
_SIDE_OF = {word: side for side, words in _WORDS.items() for word in words.split()}
_SIDE_OF |= {"model 1": "model", "model1": "model"}
_SIDE_OF |= dict.fromkeys(("model 2", "model2", "other model", "another model"), "other")
_PREVIEWED = {"people": "People", "model": "Model", "other": "Model 2"}
_OWNERS = {"people": "people's answers", "model": "the model's answers", "other": "the other model's answers"}
_COUNT = re.compile(r"(?=0*[1-9])[0-9]{1,9}(\.0)?")
_COUNT_FIRST = re.compile(r"(?P<count>[-+−]?[0-9][0-9.,]*)(\s*[×*]\s*|\s+x\s+)(?P<text>\S.*)")
# What a count, or a number that is no count, consists of.
_NUMERIC = "0123456789.,+-−"
# What the metric calls answers in no cluster.
WRONG = "wrong"


def from_boxes(people: str, model: str, other: str = "") -> list[dict[str, Any]]:
    """Parse one question from the boxes; the last one may be empty."""
    rows = [
        {"text": text, "who": who, "count": n}
        for who, box in (("people", people), ("model", model), ("other", other))
        for text, n in counted(box, _OWNERS[who])
    ]
    return from_rows(rows)


def counted(box: str, owner: str) -> list[tuple[str, str]]:
    """Parse one answer a line, with an optional count; `owner` names the box in an error."""
    answers = []
    for number, line in enumerate(inputs.lines_of(box), 1):
        if line:
            text, count = answer_and_count(line)
            _check_count(count, f"Line {number} of {owner}")
            answers.append((text, count))
    return answers


def answer_and_count(line: str) -> tuple[str, str]:
    """Split a line into an answer and its count, which is not checked.

    The count is after a "×", "*", tab, or a colon and a space, or after an "x" between spaces: "pot × 21", "pot*21",
    "pot: 21", "pot x21"; or it comes first: "21 × pot", "21 x pot". "Xbox 360", "Netflix 4" and "4x4" are answers.
    """
    rest = line.rstrip(_NUMERIC)
    text, count = rest.rstrip(), line[len(rest) :]
    gap = rest[len(text) :]
    if any(map(str.isdigit, count)):
        is_marked = text.endswith(("×", "*")) or (text.endswith("x") and text[-2:-1].isspace())
        if is_marked or (text.endswith(":") and gap):
            text = text[:-1].rstrip()
            return (text, count) if text else (line, "1")
        if "\t" in gap:
            return (text, count) if text else (line, "1")
    first = _COUNT_FIRST.match(line)
    return (first["text"], first["count"]) if first else (line, "1")


def _check_count(count: str, where: str) -> None:
    if not _COUNT.fullmatch(count):
        raise inputs.InputError(f"{where}: a count must be an integer from 1 to 999,999,999. Got “{count[:40]}”.")


def from_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group rows by "question" into the answers of "people", the "model", and the "other" model where it has any."""
    questions: dict[str, dict[str, Any]] = {}
    for i, row in enumerate(rows, 1):
        who = str(row.get("who", "")).strip().lower()
        side = _SIDE_OF.get(who)
        if side is None:
            raise inputs.InputError(f"Row {i}: the column “Who” must be people, model or model 2. Got “{who[:40]}”.")
        count = str(row.get("count", "") or "1").strip()
        _check_count(count, f"Row {i}")
        question = questions.setdefault(str(row.get("question", "")).strip(), {"people": [], "model": []})
        answer: dict[str, Any] = {"text": str(row["text"]).strip(), "count": int(float(count))}
        if side == "people" and str(row.get("cluster", "")).strip():
            answer["cluster"] = str(row["cluster"]).strip()
        question.setdefault(side, []).append(answer)
    return [{"question": name, **answers} for name, answers in questions.items()]


def to_rows(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each answer, from which `from_rows` makes the questions again."""
    who = {"other": "model 2"}
    return [
        {
            "text": answer["text"],
            "who": who.get(side, side),
            "count": answer["count"],
            "cluster": answer.get("cluster", ""),
            "question": question["question"],
        }
        for question in questions
        for side in sides_of(questions)
        for answer in question.get(side, [])
    ]


def preview(questions: list[dict[str, Any]]) -> str:
    """Say how many answers each side gives, and whether people's clusters are used."""
    parts = [] if len(questions) == 1 else [f"{len(questions):,} questions."]
    for side in sides_of(questions):
        answers = [answer for question in questions for answer in question.get(side, [])]
        total = sum(answer["count"] for answer in answers)
        different = len({answer["text"] for answer in answers})
        parts.append(f"{_PREVIEWED[side]}: {total:,} answer{'' if total == 1 else 's'}, {different:,} different.")
    partly, people = 0, [question["people"] for question in questions]
    for answers in people:
        partly += 0 < sum("cluster" in answer for answer in answers) < len(answers)
    if partly:
        where = "" if len(questions) == 1 else f" of {partly:,} questions"
        parts.append(f"People's clusters{where} are not used, because some answers have none.")
    return " ".join(parts)


def name_of(questions: list[dict[str, Any]], i: int) -> str:
    """Return the text of a question, or its number."""
    return questions[i]["question"] or f"Question {i + 1}"


def sides_of(questions: list[dict[str, Any]]) -> list[str]:
    """List who answers: people, the model, and the other model if it answers any question."""
    return [side for side in _OWNERS if side != "other" or any("other" in question for question in questions)]


def check(questions: list[dict[str, Any]]) -> None:
    """Check the size of the input, and that every side answers every question."""
    if not questions:
        raise inputs.InputError("There is no answer yet. Write people's answers and the model's, or click an example.")
    if len(questions) > LIMITS.sets:
        raise inputs.InputError(f"Too many questions: {len(questions):,}, the limit here is {LIMITS.sets}.")
    sides = sides_of(questions)
    for question in questions:
        name = f"Question “{shorten(question['question'], 40)}”: " if question["question"] else ""
        for side in sides:
            if not question.get(side):
                raise inputs.InputError(f"{name}{_OWNERS[side]} are missing. Write at least one.")
        if any(answer.get("cluster") == WRONG for answer in question["people"]):
            raise inputs.InputError(
                f"{name}“{WRONG}” is the name of the answers that match no cluster. Give that cluster another name."
            )
    answers = [answer for question in questions for side in sides for answer in question[side]]
    inputs.check_texts([answer["text"] for answer in answers], LIMITS)
    total = sum(answer["count"] for answer in answers)
    if total > MOST_COUNTED:
        raise inputs.InputError(f"The counts are too large: {total:,} in total, the limit here is {MOST_COUNTED:,}.")
