"""Files of questions, of people's answers and of models' answers; and how a question is put to a model."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from text_metrics.commands.probe.cleaning import clean
from text_metrics.commands.shared.causal import example_turns
from text_metrics.commands.shared.files import read_json_or_lines, read_objects
from text_metrics.metrics._core.core_inputs import check_characters
from text_metrics.metrics._core.core_numbers import parse_count
from text_metrics.metrics.probeval.probeval_formats import parse_reference
from text_metrics.metrics.probeval.probeval_released import parse_target, read_answers

INSTRUCTIONS = (
    "Answer each question as a person in a survey would: with the first answer that comes to mind, in a few words. "
    "Give one answer and nothing else."
)


class Asked(NamedTuple):
    """A question to ask a model."""

    id: str
    question: str
    sentence: str

    def text(self) -> str:
        """Return the sentence that the question is about, and the question."""
        return " ".join(f"{self.sentence} {self.question}".split())


class Shot(NamedTuple):
    """An example of a question with its answer."""

    question: str
    answer: str


def is_released(record: Mapping[str, Any]) -> bool:
    """Return whether this is a record of Commonsense Frame Completion or ProtoQA."""
    return "metadata" in record or "questionid" in record


def read_references(path: Path) -> list[dict[str, Any]]:
    """Read people's answers as references of probeval: released files, or a reference with an id on each line."""
    records = list(read_objects(path))
    for where, record in records:
        if not is_released(record) and not (record.get("id") and "answers" in record):
            raise ValueError(f"{where} must have 'id' and 'answers', or be a released record of answer clusters.")
    return parse_references(records)


def parse_references(records: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Convert released records or references of probeval, each with its place, to canonical references."""
    references: list[dict[str, Any]] = []
    ids: set[str] = set()
    for where, record in records:
        if is_released(record):
            record = parse_target(record, where)
        try:
            reference = parse_reference(record, where)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if reference["id"] in ids:
            raise ValueError(f"{where}: question {reference['id']!r:.80} appears twice.")
        ids |= {reference["id"]} - {""}
        references.append(reference)
    return references


def read_questions(path: Path) -> list[Asked]:
    """Read questions: `id`, `question` and perhaps `sentence` on each line, or released files."""
    questions: dict[str, Asked] = {}
    for where, record in read_objects(path):
        if is_released(record):
            record = parse_target(record, where)
        identity = record.get("id")
        texts = [record.get(name) or "" for name in ("question", "sentence")]
        if isinstance(identity, bool) or not isinstance(identity, (str, int)) or not str(identity):
            raise ValueError(f"{where} must have an 'id', a string or an integer. Got {identity!r:.80}.")
        if not all(isinstance(text, str) for text in texts) or not texts[0].strip():
            raise ValueError(f"{where} must have a 'question', a string, and may have a 'sentence'. Got {texts!r:.80}.")
        if str(identity) in questions:
            raise ValueError(f"{where}: question {identity!r} appears twice.")
        questions[str(identity)] = Asked(str(identity), *texts)
    return list(questions.values())


def read_shots(path: Path) -> list[Shot]:
    """Read examples: `question` and `answer`, and perhaps `sentence`, on each line."""
    shots = []
    for where, record in read_objects(path):
        texts = [record.get(name) for name in ("question", "answer")]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError(f"{where} must have 'question' and 'answer', both strings. Got {texts!r:.80}.")
        question = Asked("", record["question"], str(record.get("sentence") or "")).text()
        shots.append(Shot(question, record["answer"].strip()))
    return shots


def read_counts(path: Path) -> dict[str, Counter[str]]:
    """Read a model's answers, in any released format or as `ask` writes them: question id to counts of answers."""
    released = read_json_or_lines(path)
    try:
        answers_of = read_answers(released)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return {identity: _count(answers, f"{path}, question {identity!r:.80}") for identity, answers in answers_of.items()}


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


def clean_counts(counts: Mapping[str, Mapping[str, int]]) -> dict[str, Counter[str]]:
    """Clean answers, and add up the counts of those that are then equal."""
    cleaned: dict[str, Counter[str]] = {identity: Counter() for identity in counts}
    for identity, answers in counts.items():
        for text, count in answers.items():
            cleaned[identity][clean(text)] += count
    return cleaned


def _pair(answer: Any) -> tuple[Any, Any]:
    return (answer.get("text"), answer.get("count", 1)) if isinstance(answer, dict) else (answer, 1)


def messages(question: Asked, shots: list[Shot]) -> list[dict[str, str]]:
    """Write the messages for a chat model: the instructions, the examples with their answers, and the question."""
    return example_turns(INSTRUCTIONS, shots, question.text())


def completion(question: Asked, shots: list[Shot]) -> str:
    """Write the text that a model without a chat template completes with its answer."""
    blocks = [INSTRUCTIONS, *(f"Q: {shot.question}\nA: {shot.answer}" for shot in shots), f"Q: {question.text()}\nA:"]
    return "\n\n".join(blocks)
