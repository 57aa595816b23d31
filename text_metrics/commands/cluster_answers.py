"""Have a chat model cluster people's answers, and assign a model's answers to these clusters, for probeval.

    text-metrics cluster-answers people.jsonl clustered.jsonl --model gpt-4o --prices 2.5 10
    text-metrics cluster-answers people.jsonl clustered.jsonl --model gpt-4o --answers sampled.jsonl labels.json

A line of people.jsonl is a question with people's answers, in a form that probeval accepts as references, or a record
of Commonsense Frame Completion or ProtoQA. clustered.jsonl has the same questions with a cluster for each answer.
`--answers` reads a model's answers to the same questions, and writes labels.json:

    probeval.compute(predictions=sampled, references=clustered, matcher="human", labels=labels)

An answer that equals one of people's answers gets its cluster, and a blank answer is wrong; neither costs a request. If
people clustered the answers too, the command prints the agreement. Each answer of the chat model is saved at once in
clustered.jsonl.journal: after a crash, the same command continues and repeats no request. With another file of
`--answers`, it only requests what is new.
"""

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.probe.files import is_released, parse_references
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, journal_files
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import parse_json, read_json_or_lines, read_objects, write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics.probeval.probeval_clusters import compare_clusterings
from text_metrics.metrics.probeval.probeval_formats import WRONG, Question, pair_rows, read_questions
from text_metrics.metrics.probeval.probeval_released import read_answers as read_released

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

EXAMPLE = "What do you boil water in?"
EXAMPLE_ANSWERS = ["kettle", "a pot", "electric kettle", "saucepan", "ketle", "microwave"]
EXAMPLE_NAMES = ["kettle", "pot", "kettle", "pot", "kettle", "microwave"]
EXAMPLE_CLUSTERS = [["kettle", "electric kettle", "ketle"], ["a pot", "saucepan"], ["microwave"]]
EXAMPLE_NEW = ["in the kettle", "cooking pot", "water", "microwave oven"]
EXAMPLE_MATCHES = [1, 2, 0, 3]


class Clustered(NamedTuple):
    """A question whose gold answers are in clusters; `labels` has the name of the cluster of each."""

    question: Question
    text: str
    labels: dict[str, str]

    @property
    def names(self) -> list[str]:
        """Return the names of the clusters, in order of decreasing mass."""
        masses = dict.fromkeys(sorted(set(self.labels.values())), 0.0)
        for answer, count in zip(self.question.gold, self.question.gold_counts.sum(axis=1), strict=True):
            masses[self.labels[answer]] += float(count)
        return sorted(masses, key=lambda name: -masses[name])

    def members(self) -> list[list[str]]:
        """Return the answers of each cluster, in the order of `names`."""
        return [[text for text in self.question.gold if self.labels[text] == name] for name in self.names]

    def known_labels(self) -> dict[str, str]:
        """Label the model's answers that equal one of people's, and the blank ones."""
        plain = {_plain(text): label for text, label in self.labels.items()} | {"": WRONG}
        labels = {text: self.labels.get(text, plain.get(_plain(text))) for text in self.question.answers}
        return {text: label for text, label in labels.items() if label is not None}

    def reference(self) -> dict[str, Any]:
        """Return the question as a reference of probeval."""
        counts = self.question.gold_counts.sum(axis=1)
        answers = [
            {"text": text, "count": int(count), "cluster": self.labels[text]}
            for text, count in zip(self.question.gold, counts, strict=True)
        ]
        return {"id": self.question.name, "question": self.text, "answers": answers}


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


def messages(instructions: str, example: str, answer: str, question: str) -> list[dict[str, str]]:
    """Write a request after its instructions and an example."""
    contents = [("system", instructions), ("user", example), ("assistant", answer), ("user", question)]
    return [{"role": role, "content": content} for role, content in contents]


def parse_numbered(answer: str, size: int) -> list[Any]:
    """Read the values of 1 to `size` from a JSON object of just these; what a model writes around it is ignored."""
    problem = f"it must hold one JSON object with the numbers 1 to {size}"
    for part in re.findall(r"\{[^{}]*\}", answer):
        try:
            pairs = parse_json(part, object_pairs_hook=list)
        except ValueError:
            continue
        keys = [key for key, _ in pairs]
        wanted = [str(i) for i in range(1, size + 1)]
        missing = [key for key in wanted if key not in keys]
        odd = [key for key in dict.fromkeys(keys) if key not in wanted or keys.count(key) > 1]
        if not missing and not odd:
            values = dict(pairs)
            return [values[key] for key in wanted]
        problem = (
            f"the numbers must be 1 to {size}, each once. Missing: {', '.join(missing) or 'none'}; "
            f"unknown or repeated: {', '.join(odd) or 'none'}"
        )
    raise ValueError(problem)


def parse_clusters(answer: str, size: int) -> list[str]:
    """Read the name of the cluster of each answer; names that differ in case or spaces are one, and none is blank."""
    names = []
    for i, name in enumerate(parse_numbered(answer, size), 1):
        plain = _plain(name) if isinstance(name, str) else ""
        if not plain or plain == WRONG:
            raise ValueError(f"the name of a cluster must be a string, not blank and not {WRONG!r}. {i} has {name!r}")
        names.append(plain)
    return names


def parse_matches(answer: str, size: int, clusters: int) -> list[int]:
    """Read the number of the cluster of each new answer, from 1 to `clusters`, or 0 for none."""
    matches = parse_numbered(answer, size)
    for i, match in enumerate(matches, 1):
        if isinstance(match, bool) or not isinstance(match, int) or not 0 <= match <= clusters:
            raise ValueError(f"a cluster must be a number from 0 to {clusters}. {i} has {match!r}")
    return matches


def read(people: Path, answers: Path | None) -> tuple[list[Question], list[str]]:
    """Read questions with people's answers, and a model's if there are any; also returns the texts of the questions."""
    records = list(read_objects(people))
    references = parse_references(records)
    given = [{"id": row["id"], "answers": []} for row in references] if answers is None else read_answers(answers)
    # Released files of a model's answers are of some of the questions only.
    missing = "skip" if is_released(records[0][1]) else "error"
    try:
        predictions, references, _ = pair_rows(given, references, missing=missing)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{answers or people}: {error}") from error
    return read_questions(predictions, references), [reference["question"] for reference in references]


def read_answers(path: Path) -> Any:
    """Read a model's answers to all questions: an object on each line, or one JSON value."""
    value = read_json_or_lines(path)
    if isinstance(value, dict) and "answers" in value:
        value = [value]
    # Without ids, they are in the order of people's.
    is_ordered = isinstance(value, list) and not all(
        isinstance(row, dict) and ("id" in row or "answers" not in row) for row in value
    )
    try:
        return value if is_ordered else read_released(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def ask_clusters(chat: Chat, unclustered: list[Question], texts: list[str]) -> tuple[list[Clustered], int]:
    """Ask for the clusters of people's answers; returns the questions that have them, and the exit code."""
    example = cluster_question(EXAMPLE, EXAMPLE_ANSWERS)
    orders, requests = [], []
    for question, text in zip(unclustered, texts, strict=True):
        counts = question.gold_counts.sum(axis=1)
        order = [question.gold[i] for i in np.argsort(-counts, kind="stable").tolist()]
        content = messages(CLUSTER_INSTRUCTIONS, example, in_json(EXAMPLE_NAMES), cluster_question(text, order))
        parse = partial(parse_clusters, size=len(order))
        requests.append(Request(f"question {question.name!r}", content, parse))
        orders.append(order)
    outcome = chat.ask(requests)
    clustered = [
        Clustered(question, text, dict(zip(order, names, strict=True)))
        for question, text, order, names in zip(unclustered, texts, orders, outcome.values, strict=True)
        if names is not None
    ]
    return clustered, chat.report(outcome)


def ask_labels(chat: Chat, clustered: list[Clustered]) -> tuple[dict[str, dict], int]:
    """Ask for the clusters of the model's answers; returns the labels of complete questions, and the exit code."""
    example = match_question(EXAMPLE, EXAMPLE_CLUSTERS, EXAMPLE_NEW)
    labels: dict[str, dict[str, str]] = {}
    requests: list[Request] = []
    blocks: list[tuple[Clustered, list[str]]] = []
    for item in clustered:
        labels[item.question.name] = item.known_labels()
        new = [text for text in item.question.answers if text not in labels[item.question.name]]
        for start in range(0, len(new), BLOCK):
            block = new[start : start + BLOCK]
            question = match_question(item.text, item.members(), block)
            content = messages(MATCH_INSTRUCTIONS, example, in_json(EXAMPLE_MATCHES), question)
            parse = partial(parse_matches, size=len(block), clusters=len(item.names))
            requests.append(Request(f"answers to question {item.question.name!r}", content, parse))
            blocks.append((item, block))
    outcome = chat.ask(requests)
    for (item, block), matches in zip(blocks, outcome.values, strict=True):
        if matches is None:
            labels.pop(item.question.name, None)
        elif item.question.name in labels:
            columns = [WRONG, *item.names]
            labels[item.question.name] |= {text: columns[match] for text, match in zip(block, matches, strict=True)}
    return labels, chat.report(outcome)


def agreement(clustered: list[Clustered]) -> str:
    """Describe how well the clusters agree with people's, over the questions that people clustered; empty if none."""
    rows = []
    for item in clustered:
        if item.question.clusters is not None:
            clusters = np.unique([item.labels[text] for text in item.question.gold], return_inverse=True)[1]
            rows.append(compare_clusterings(clusters, item.question.gold_counts.argmax(axis=1)))
    if not rows:
        return ""
    means = ", ".join(f"{name} {np.mean([row[name] for row in rows]):.2f}" for name in rows[0])
    return f"Agreement with people's clusters, mean of {len(rows)} questions: {means}."


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("people", type=Path, help="questions with people's answers, as JSON lines")
    parser.add_argument("clustered", type=Path, help="where to write them with clusters")
    parser.add_argument(
        "--answers", type=Path, nargs=2, metavar=("ANSWERS", "LABELS"), help="a model's answers, and their labels"
    )
    add_arguments(parser)
    arguments = parser.parse_args()
    answers, labels_file = arguments.answers or (None, None)
    journal = journal_files(arguments.clustered)
    check_outputs([arguments.people, answers], [arguments.clustered, labels_file, *journal])

    questions_read, texts = read(arguments.people, answers)
    with Chat(arguments, arguments.clustered) as chat:
        clustered, code = ask_clusters(chat, questions_read, texts)
        write_jsonl(arguments.clustered, [item.reference() for item in clustered])
        print(
            f"{arguments.clustered}: {len(clustered)} of {len(questions_read)} questions are clustered.",
            file=sys.stderr,
        )
        if agreement(clustered):
            print(agreement(clustered), file=sys.stderr)
        if labels_file is not None:
            labels, again = ask_labels(chat, clustered)
            code = max(code, again)
            write_text(labels_file, json.dumps(labels, ensure_ascii=False, indent=1) + "\n")
            print(f"{labels_file}: {len(labels)} of {len(questions_read)} questions are labelled.", file=sys.stderr)
    return code
