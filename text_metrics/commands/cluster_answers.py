"""Have a chat model cluster people's answers to questions, for probeval.

    text-metrics cluster-answers people.jsonl --out clustered.jsonl --model gpt-4o

A line of people.jsonl is a question with people's answers, a reference of probeval with an id, or a record of
Commonsense Frame Completion or ProtoQA. clustered.jsonl has a cluster for each answer: they are references of probeval,
and targets of `text-metrics probe report`. After a crash, the same command repeats no request.
"""

import json
import re
import sys
from contextlib import suppress
from functools import partial
from typing import Any

from text_metrics.commands.probe.files import Rows, read_references, strip_answers
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot
from text_metrics.commands.shared.cli import add_strip, warn_of_marks
from text_metrics.commands.shared.command import Parser, command
from text_metrics.commands.shared.files import write_jsonl
from text_metrics.metrics.probeval.probeval_formats import WRONG, count_answers
from text_metrics.texts import REASONING, strip

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
    """Read the names of 1 to `size` from a JSON object of just these; what a model writes around it is ignored.

    Names that differ in case or spaces are one. JSON in the model's reasoning is no answer.
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
    requests, texts_of = [], []
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


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    add_arguments(parser, "people", "questions with people's answers, as JSON lines")
    add_strip(parser)
    arguments = parser.parse_args()
    references, chat = read_references(arguments.reads), Chat(arguments)
    references, marks = strip_answers(references, arguments.strip)
    warn_of_marks(marks, what="answers")
    clustered = ask_clusters(chat, references)
    write_jsonl(arguments.out, clustered)
    print(f"{arguments.out}: {len(clustered)} of {len(references)} questions are clustered.", file=sys.stderr)
    return int(len(clustered) < len(references))
