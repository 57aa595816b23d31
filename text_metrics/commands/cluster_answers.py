"""Have a chat model cluster people's answers, and assign a model's answers to these clusters, for probeval.

    text-metrics cluster-answers people.jsonl --out clustered.jsonl --model gpt-4o
    text-metrics cluster-answers people.jsonl --out clustered.jsonl --model gpt-4o --answers sampled.jsonl labels.json

A line of people.jsonl is a question with people's answers, a reference of probeval with an id, or a record of
Commonsense Frame Completion or ProtoQA. clustered.jsonl has a cluster for each answer. `--answers` reads a model's
answers to the questions, leaves out the questions that it has no answer to, and writes labels.json:

    probeval.compute(predictions=sampled, references=clustered, matcher="human", labels=labels)

An answer that equals one of people's gets its cluster, and a blank one is wrong; neither costs a request. After a
crash, the same command continues from the answers in clustered.jsonl.journal and repeats no request.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from text_metrics.commands.probe.files import Rows, read_predictions, read_references
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics.probeval.probeval_formats import WRONG

BLOCK = 40  # answers of a model in one request

CLUSTER_INSTRUCTIONS = """\
You group answers that many people gave to one question. Answers that say the same, or nearly the same, belong to one \
cluster: spelling variants, synonyms, and answers that differ only in detail that does not matter for the question. \
Answers that a person would count as different answers belong to different clusters. An answer that is like no other \
is a cluster of its own.

Give each cluster a short name. Answer with one JSON object and nothing else, from the number of each answer to the \
name of its cluster, for all numbers: {"1": "<name>", "2": "<name>", ...}"""

MATCH_INSTRUCTIONS = """\
People's answers to a question are in numbered clusters. For each new answer, choose the cluster of people's answers \
that say the same, or nearly the same. If there is none, or the answer does not answer the question, choose 0.

Answer with one JSON object and nothing else, from the number of each new answer to the number of its cluster or 0, \
for all new answers: {"1": <cluster>, "2": <cluster>, ...}"""


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def numbered(texts: list[str]) -> str:
    """List texts by number, a line each."""
    return "\n".join(f"{i}. {' '.join(text.split())}" for i, text in enumerate(texts, 1))


def in_json(values: list) -> str:
    """Write an answer of the chat model: values by number."""
    return json.dumps({str(i): value for i, value in enumerate(values, 1)})


def cluster_question(text: str, answers: list[str]) -> str:
    """Write the request for clusters of answers."""
    return f"Question: {text or '(not known)'}\n\nAnswers:\n{numbered(answers)}"


def match_question(text: str, clusters: list[list[str]], new: list[str]) -> str:
    """Write the request for the clusters of new answers."""
    shown = numbered(["; ".join(members) for members in clusters])
    return f"Question: {text or '(not known)'}\n\nClusters:\n{shown}\n\nNew answers:\n{numbered(new)}"


# An example of each request, with its answer.
_BOIL = "What do you boil water in?"
_CLUSTER_EXAMPLE = (
    cluster_question(_BOIL, ["kettle", "a pot", "electric kettle", "saucepan", "ketle", "microwave"]),
    in_json(["kettle", "pot", "kettle", "pot", "kettle", "microwave"]),
)
_BOIL_CLUSTERS = [["kettle", "electric kettle", "ketle"], ["a pot", "saucepan"], ["microwave"]]
_MATCH_EXAMPLE = (
    match_question(_BOIL, _BOIL_CLUSTERS, ["in the kettle", "cooking pot", "water", "microwave oven"]),
    in_json([1, 2, 0, 3]),
)


def parse_numbered(size: int, read: Callable[[Any], Any], answer: str) -> list[Any]:
    """Read the values of 1 to `size` from a JSON object of just these; what a model writes around it is ignored.

    `read` reads a value; it raises a ValueError that says what a value must be.
    """
    numbers = [str(i) for i in range(1, size + 1)]
    start = answer.find("{")
    while start >= 0:
        with suppress(json.JSONDecodeError):
            values, _ = json.JSONDecoder().raw_decode(answer, start)
            if values.keys() == set(numbers):
                return [read(values[number]) for number in numbers]
        start = answer.find("{", start + 1)
    raise ValueError(f"it must hold one JSON object with the numbers 1 to {size}, each once")


def read_name(value: Any) -> str:
    """Read the name of a cluster; names that differ in case or spaces are one."""
    name = _plain(value) if isinstance(value, str) else ""
    if name in ("", WRONG):
        raise ValueError(f"the name of a cluster must be a string, not blank and not {WRONG!r}: {value!r}")
    name.encode()  # no file can hold an unpaired surrogate
    return name


def read_label(names: list[str], value: Any) -> str:
    """Read the number of a cluster, from 1, or 0 for none: its name."""
    if type(value) is not int or not 0 <= value <= len(names):
        raise ValueError(f"a cluster must be a number from 0 to {len(names)}: {value!r}")
    return [WRONG, *names][value]


def read(people: Path, answers: Path | None) -> tuple[Rows, dict[str, list[str]]]:
    """Read questions with people's answers, and a model's answers by the id of the question if there are any."""
    references = read_references(people)
    if answers is None:
        return references, {}
    questions, unknown = read_predictions(answers, references)
    new = {question.name: question.answers for question in questions}
    missing = [row["id"] for row in references if row["id"] not in new]
    if unknown or missing:
        print(f"Questions of one file only are left out: {', '.join(unknown + missing)}.", file=sys.stderr)
    return [row for row in references if row["id"] in new], new


def ask_clusters(chat: Chat, references: Rows) -> tuple[Rows, int]:
    """Ask for the clusters of people's answers; returns the questions that have them, and the exit code."""
    texts_of = {row["id"]: _by_count(row["answers"], "text") for row in references}
    requests = []
    for row in references:
        texts = texts_of[row["id"]]
        turns = few_shot(CLUSTER_INSTRUCTIONS, [_CLUSTER_EXAMPLE], cluster_question(row["question"], texts))
        requests.append(Request(f"question {row['id']!r}", turns, partial(parse_numbered, len(texts), read_name)))
    found, code = chat.ask(requests)
    clustered = []
    for row, names in zip(references, found, strict=True):
        if names is not None:
            cluster_of = dict(zip(texts_of[row["id"]], names, strict=True))
            answers = [{**answer, "cluster": cluster_of[answer["text"]]} for answer in row["answers"]]
            clustered.append({"id": row["id"], "question": row["question"], "answers": answers})
    return clustered, code


def ask_labels(chat: Chat, clustered: Rows, new_of: dict[str, list[str]]) -> tuple[dict[str, dict[str, str]], int]:
    """Ask for the clusters of a model's answers; returns the labels of complete questions, and the exit code."""
    labels: dict[str, dict[str, str]] = {}
    requests, blocks = [], []
    for row in clustered:
        cluster_of: dict[str, str] = {answer["text"]: answer["cluster"] for answer in row["answers"]}
        names = _by_count(row["answers"], "cluster")
        members = [[text for text, label in sorted(cluster_of.items()) if label == name] for name in names]
        equal = {_plain(text): label for text, label in cluster_of.items()} | {"": WRONG}
        labels[row["id"]] = {text: cluster_of.get(text, equal.get(_plain(text), "")) for text in new_of[row["id"]]}
        new = [text for text, label in labels[row["id"]].items() if not label]
        for start in range(0, len(new), BLOCK):
            block = new[start : start + BLOCK]
            turns = few_shot(MATCH_INSTRUCTIONS, [_MATCH_EXAMPLE], match_question(row["question"], members, block))
            parse = partial(parse_numbered, len(block), partial(read_label, names))
            requests.append(Request(f"answers to question {row['id']!r}", turns, parse))
            blocks.append((row["id"], block))
    found, code = chat.ask(requests)
    for (name, block), own in zip(blocks, found, strict=True):
        if own is not None:
            labels[name].update(zip(block, own, strict=True))
    return {name: own for name, own in labels.items() if all(own.values())}, code


def _by_count(answers: list[dict[str, Any]], key: str) -> list[str]:
    """List the texts or the clusters of answers, the most frequent first."""
    counts: Counter[str] = Counter()
    for answer in answers:
        counts[answer[key]] += answer["count"]
    return sorted(counts, key=lambda value: (-counts[value], value))


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("people", type=Path, help="questions with people's answers, as JSON lines")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write them with clusters")
    names, help = ("ANSWERS", "LABELS"), "a model's answers, and their labels"
    parser.add_argument("--answers", type=Path, nargs=2, metavar=names, help=help)
    add_arguments(parser)
    arguments = parser.parse_args()
    out, (answers, labels_file) = arguments.out, arguments.answers or (None, None)
    check_outputs([arguments.people, answers], [out, labels_file, journal_file(out)])
    references, new_of = read(arguments.people, answers)
    chat = Chat(arguments, out)
    clustered, code = ask_clusters(chat, references)
    write_jsonl(out, clustered)
    print(f"{out}: {len(clustered)} of {len(references)} questions are clustered.", file=sys.stderr)
    if labels_file is not None:
        labels, again = ask_labels(chat, clustered, new_of)
        code = max(code, again)
        write_text(labels_file, json.dumps(labels, ensure_ascii=False, indent=1) + "\n")
        print(f"{labels_file}: {len(labels)} of {len(references)} questions are labelled.", file=sys.stderr)
    return code
