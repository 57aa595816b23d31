"""Have a chat model cluster people's answers to questions, for probeval, or a model's texts for each prompt.

    text-metrics cluster-answers people.jsonl --out clustered.jsonl --model gpt-4o
    text-metrics cluster-answers data.jsonl --text-key generations --out classes.jsonl --model gpt-4o
    text-metrics cluster-answers data.jsonl --text-key texts --criterion "same plot" --out classes.jsonl --model gpt-4o

A line of people.jsonl is a question with people's answers, a reference of probeval with an id, or a record of
Commonsense Frame Completion or ProtoQA. clustered.jsonl has a cluster for each answer: they are references of probeval,
and targets of `text-metrics probe report`.

With --criterion, or a key such as --text-key, the file is one of texts that text-metrics score reads. A row keeps its
columns, and gets `classes`: a name, or a list of them where the row has a list of texts, null if there is no answer.
Equal texts of a set are of one class. `score --metric semantic_entropy`, `compare`, `report` and `choose` read them by
--column classes=classes. A row that cannot be read is skipped with its set and written to <out>.bad.jsonl.

After a crash, the same command repeats no request.
"""

import json
import os
import re
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from text_metrics import options as cli
from text_metrics.console import EXIT_BAD_ROWS, Parser, command
from text_metrics.core_api import WRONG, Signature, count_answers
from text_metrics.files.sets import Unit
from text_metrics.files.storage import open_file, write_jsonl
from text_metrics.jobs import kept
from text_metrics.jobs.chat import Chat, Request, few_shot
from text_metrics.probe.files import Rows, read_references, strip_answers
from text_metrics.texts import REASONING, strip, to_signature

INSTRUCTIONS = """\
You group answers that many people gave to one question. Answers that say the same, or nearly the same, belong to one \
cluster: spelling variants, synonyms, and answers that differ only in detail that does not matter for the question. \
Answers that a person would count as different answers belong to different clusters. An answer that is like no other \
is a cluster of its own.

Give each cluster a short name. Answer with one JSON object and nothing else, from the number of each answer to the \
name of its cluster, for all numbers: {"1": "<name>", "2": "<name>", ...}"""


def ask_about(question: str, answers: list[str]) -> str:
    """Write the request for clusters of answers, which are listed by number."""
    listed = "\n".join(f"{i}. {' '.join(text.split())}" for i, text in enumerate(answers, 1))
    return f"Question: {question or '(not known)'}\n\nAnswers:\n{listed}"


EXAMPLE = (
    ask_about("What do you boil water in?", ["kettle", "a pot", "electric kettle", "saucepan", "ketle", "microwave"]),
    '{"1": "kettle", "2": "pot", "3": "kettle", "4": "pot", "5": "kettle", "6": "microwave"}',
)


def parse_names(size: int, answer: str, top: Any = None) -> list[str]:
    """Read the names of 1 to `size` from a JSON object of just these; text around it is ignored.

    Names that differ in case or spaces are one. JSON in the model's reasoning is ignored.
    """
    answer = strip(answer, (REASONING,))
    numbers = [str(i) for i in range(1, size + 1)]
    for start in re.finditer("{", answer):
        with suppress(json.JSONDecodeError):
            values, _ = json.JSONDecoder().raw_decode(answer, start.start())
            if values.keys() == set(numbers):
                return [_parse_name(values[number]) for number in numbers]
    raise ValueError(f"it must hold one JSON object with the numbers 1 to {size}, each once")


def _parse_name(value: Any) -> str:
    name = " ".join(value.lower().split()) if isinstance(value, str) else ""
    if name in ("", WRONG):
        raise ValueError(f"the name of a cluster must be a string, not blank and not {WRONG!r}: {value!r}")
    return name


def ask_clusters(chat: Chat, references: Rows) -> Rows:
    """Ask for the clusters of people's answers; returns the questions that have them."""
    requests = []
    texts_of = []
    for row in references:
        counts = count_answers(row["answers"])
        texts = sorted(counts, key=lambda text: (-counts[text], text))
        texts_of.append(texts)
        messages = few_shot(INSTRUCTIONS, ask_about(row["question"], texts), EXAMPLE)
        requests.append(Request(f"question {row['id']!r}", messages, partial(parse_names, len(texts))))
    clustered = []
    for row, texts, names in zip(references, texts_of, chat.ask(requests), strict=True):
        if names is not None:
            cluster_of = dict(zip(texts, names, strict=True))
            answers = [{**answer, "cluster": cluster_of[answer["text"]]} for answer in row["answers"]]
            clustered.append({"id": row["id"], "question": row["question"], "answers": answers})
    return clustered


SAME_CONTENT = "same content: who has read one of them learns nothing new from the other"
# Columns that are added to a row of texts.
COLUMNS = ("classes", "classes_signature")
# The classes of texts that the model is not asked about: blank texts, and the text of a set without any other text.
_BLANK = "(blank)"
_ONLY = "(only)"


def criterion_instructions(criterion: str) -> str:
    """Write the instructions to partition texts by a criterion."""
    return f"""\
You sort texts into classes by one criterion. Two texts belong to the same class if, and only if, this holds for them:

{criterion}

Nothing else about the texts matters. A text that shares its class with no other is a class of its own.

Give each class a short name. Answer with one JSON object and nothing else, from the number of each text to the name \
of its class, for all numbers: {{"1": "<name>", "2": "<name>", ...}}"""


def read_criterion(value: str | None) -> str:
    """Return a criterion, read from a file if the value names one; raises a ValueError if it is blank or missing."""
    if value is None:
        return SAME_CONTENT
    text = value
    if os.path.isfile(value):
        with open_file(Path(value)) as file:
            text = file.read().decode("utf-8-sig")
    elif value.endswith((".txt", ".md")):
        raise ValueError(f"--criterion: {value} does not exist.")
    if not text.strip():
        raise ValueError(f"--criterion must not be blank. Got {value!r}.")
    return text.strip()


def ask_about_texts(prompt: str | None, texts: list[str]) -> str:
    """Write the request for classes of texts, which are listed by number."""
    parts = [f"Text {i}:\n{text}" for i, text in enumerate(texts, 1)]
    return "\n\n".join([f"The texts answer this prompt:\n{prompt}", *parts] if prompt else parts)


def _different_texts(unit: Unit) -> list[str]:
    """Return the different texts of a set that are not blank, in order."""
    return list(dict.fromkeys(text for text in unit.texts if text.strip()))


def ask_classes(chat: Chat, units: list[Unit], criterion: str) -> list[dict[str, str] | None]:
    """Ask for the classes of the different texts of each set; returns them by text, None without an answer."""
    instructions = criterion_instructions(criterion)
    different = [_different_texts(unit) for unit in units]
    requests = []
    for unit, texts in zip(units, different, strict=True):
        if len(texts) > 1:
            messages = few_shot(instructions, ask_about_texts(unit.given.get("contexts"), texts))
            name = f"the set of row {unit.rows[0].number}"
            requests.append(Request(name, messages, partial(parse_names, len(texts))))
    answers = iter(chat.ask(requests))
    classes: list[dict[str, str] | None] = []
    for unit, texts in zip(units, different, strict=True):
        names = next(answers) if len(texts) > 1 else [_ONLY] * len(texts)
        blank = {text: _BLANK for text in unit.texts if not text.strip()}
        classes.append(None if names is None else blank | dict(zip(texts, names, strict=True)))
    return classes


def partition_texts(arguments: cli.Options) -> int:
    """Write rows of texts with their classes; returns the exit code."""
    criterion = read_criterion(arguments.criterion)
    is_file = arguments.criterion is not None and os.path.isfile(arguments.criterion)
    kept.check_outputs(arguments, *([arguments.criterion] if is_file else []))
    rows = kept.read(arguments, COLUMNS, reads_sets=True)
    chat = Chat(**cli.chat_options(arguments))
    units = [unit for unit in rows.units if unit.rows]
    classes = ask_classes(chat, units, criterion)
    signed = chat.signature("cluster_answers", criterion_instructions(criterion))
    signed = str(Signature.parse(signed).merge(**to_signature(arguments.strip)))
    answers = rows.answers()
    added = {}
    for unit, by_text in zip(units, classes, strict=True):
        for row in unit.rows:
            value: Any = None
            if by_text is not None:
                names = [by_text[text] for text in answers[row.number]]
                value = names[0] if row.is_text else names
            added[row.number] = {"classes": value, "classes_signature": signed}
    kept.write(arguments, rows, added)
    n_asked = len(classes) - classes.count(None)
    print(f"{arguments.out}: {n_asked} of {len(units)} sets are clustered.", file=sys.stderr)
    if rows.bad:
        return EXIT_BAD_ROWS
    return int(None in classes)


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    cli.add_chat(parser, "answers", "questions with people's answers, as JSON lines; or a file of texts")
    help = "what texts of one class have in common, or a text file that says so; by default, the same content"
    parser.add_argument("--criterion", metavar="TEXT", help=help)
    cli.add_rows(parser, contexts=True)
    arguments = parser.parse_args(None, cli.Options())
    options_of_texts = ("criterion", "text_key", "id_key", "system_key", "context_key", "rows", "delimiter")
    if any(getattr(arguments, name) is not None for name in options_of_texts):
        return partition_texts(arguments)
    references = read_references(arguments.reads)
    references, marks = strip_answers(references, arguments.strip)
    cli.warn_of_marks(marks, what="answers")
    chat = Chat(**cli.chat_options(arguments))
    clustered = ask_clusters(chat, references)
    write_jsonl(arguments.out, clustered)
    print(f"{arguments.out}: {len(clustered)} of {len(references)} questions are clustered.", file=sys.stderr)
    return int(len(clustered) < len(references))
