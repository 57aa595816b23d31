"""Have a chat model cluster people's answers, and assign a model's answers to these clusters, for probeval.

    text-metrics cluster-answers people.jsonl clustered.jsonl --model gpt-4o
    text-metrics cluster-answers people.jsonl clustered.jsonl --model gpt-4o --answers sampled.jsonl labels.json

A line of people.jsonl is a question with people's answers, a reference of probeval with an id, or a record of
Commonsense Frame Completion or ProtoQA. clustered.jsonl has a cluster for each answer. `--answers` reads a model's
answers to the questions, leaves out the questions that it has no answer to, and writes labels.json:

    probeval.compute(predictions=sampled, references=clustered, matcher="human", labels=labels)

An answer that equals one of people's gets its cluster, and a blank one is wrong; neither costs a request. If people
clustered the answers too, the agreement is printed. After a crash, the same command continues from the answers in
clustered.jsonl.journal and repeats no request.
"""

import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.probe.files import read_counts, read_references
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file, json_values
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics.probeval.probeval_clusters import compare_clusterings
from text_metrics.metrics.probeval.probeval_formats import WRONG, Question, pair_rows, read_questions

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


class Clustered(NamedTuple):
    """A question whose gold answers are in clusters; `labels` has the name of the cluster of each."""

    question: Question
    text: str
    labels: dict[str, str]

    def counts(self) -> dict[str, int]:
        """Return how often people gave each answer."""
        return dict(zip(self.question.gold, self.question.gold_counts.sum(axis=1).astype(int).tolist(), strict=True))

    def clusters(self) -> dict[str, list[str]]:
        """Return people's answers by the name of their cluster, the most common cluster first."""
        mass: Counter[str] = Counter()
        for answer, count in self.counts().items():
            mass[self.labels[answer]] += count
        names = sorted(mass, key=lambda name: (-mass[name], name))
        return {name: [answer for answer in self.question.gold if self.labels[answer] == name] for name in names}

    def known_labels(self) -> dict[str, str]:
        """Label the model's answers that equal one of people's, and the blank ones."""
        plain = {_plain(text): label for text, label in self.labels.items()} | {"": WRONG}
        labels = {text: self.labels.get(text, plain.get(_plain(text))) for text in self.question.answers}
        return {text: label for text, label in labels.items() if label is not None}

    def reference(self) -> dict[str, Any]:
        """Return the question as a reference of probeval."""
        answers = [
            {"text": text, "count": count, "cluster": self.labels[text]} for text, count in self.counts().items()
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


def parse_numbered(answer: str, size: int) -> list[Any]:
    """Read the values of 1 to `size` from a JSON object of just these; what a model writes around it is ignored."""
    numbers = [str(i) for i in range(1, size + 1)]
    for values in json_values(answer, "{"):
        if values.keys() == set(numbers):
            return [values[number] for number in numbers]
    raise ValueError(f"it must hold one JSON object with the numbers 1 to {size}, each once")


def parse_clusters(answer: str, size: int) -> list[str]:
    """Read the name of the cluster of each answer; names that differ in case or spaces are one, and none is blank."""
    values = parse_numbered(answer, size)
    names = [_plain(name) if isinstance(name, str) else "" for name in values]
    for i, name in enumerate(names):
        if name in ("", WRONG):
            problem = f"the name of a cluster must be a string, not blank and not {WRONG!r}"
            raise ValueError(f"{problem}. {i + 1} has {values[i]!r}")
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
    references = read_references(people)
    counts = read_counts(answers) if answers else {row["id"]: Counter[str]() for row in references}
    try:
        predictions, references, skipped = pair_rows(counts, references, missing="skip")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{answers or people}: {error}") from error
    if skipped["missing"]:
        left_out = f"{len(skipped['missing'])} questions of {people} are left out"
        print(f"{answers} has no answers to {', '.join(skipped['missing'])}: {left_out}.", file=sys.stderr)
    return read_questions(predictions, references), [reference["question"] for reference in references]


def ask_clusters(chat: Chat, questions: list[Question], texts: list[str]) -> tuple[list[Clustered], int]:
    """Ask for the clusters of people's answers; returns the questions that have them, and the exit code."""
    orders, requests = [], []
    for question, text in zip(questions, texts, strict=True):
        order = [question.gold[i] for i in np.argsort(-question.gold_counts.sum(axis=1), kind="stable").tolist()]
        content = few_shot(CLUSTER_INSTRUCTIONS, [_CLUSTER_EXAMPLE], cluster_question(text, order), system=True)
        requests.append(Request(f"question {question.name!r}", content, partial(parse_clusters, size=len(order))))
        orders.append(order)
    named, code = chat.ask(requests)
    clustered = [
        Clustered(question, text, dict(zip(order, names, strict=True)))
        for question, text, order, names in zip(questions, texts, orders, named, strict=True)
        if names is not None
    ]
    return clustered, code


def ask_labels(chat: Chat, clustered: list[Clustered]) -> tuple[dict[str, dict[str, str]], int]:
    """Ask for the clusters of the model's answers; returns the labels of complete questions, and the exit code."""
    labels = {item.question.name: item.known_labels() for item in clustered}
    requests, blocks = [], []
    for item in clustered:
        name, clusters = item.question.name, item.clusters()
        new = [text for text in item.question.answers if text not in labels[name]]
        for start in range(0, len(new), BLOCK):
            block = new[start : start + BLOCK]
            question = match_question(item.text, list(clusters.values()), block)
            content = few_shot(MATCH_INSTRUCTIONS, [_MATCH_EXAMPLE], question, system=True)
            parse = partial(parse_matches, size=len(block), clusters=len(clusters))
            requests.append(Request(f"answers to question {name!r}", content, parse))
            blocks.append((name, block, [WRONG, *clusters]))
    matched, code = chat.ask(requests)
    for (name, block, columns), matches in zip(blocks, matched, strict=True):
        if matches is None:
            labels.pop(name, None)
        elif name in labels:
            labels[name] |= {text: columns[match] for text, match in zip(block, matches, strict=True)}
    return labels, code


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
    return f" Agreement with people's clusters, mean of {len(rows)} questions: {means}."


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("people", type=Path, help="questions with people's answers, as JSON lines")
    parser.add_argument("clustered", type=Path, help="where to write them with clusters")
    names, help = ("ANSWERS", "LABELS"), "a model's answers, and their labels"
    parser.add_argument("--answers", type=Path, nargs=2, metavar=names, help=help)
    add_arguments(parser)
    arguments = parser.parse_args()
    out, (answers, labels_file) = arguments.clustered, arguments.answers or (None, None)
    check_outputs([arguments.people, answers], [out, labels_file, journal_file(out)])
    questions, texts = read(arguments.people, answers)
    with Chat(arguments, out) as chat:
        clustered, code = ask_clusters(chat, questions, texts)
        write_jsonl(out, [item.reference() for item in clustered])
        n = len(questions)
        print(f"{out}: {len(clustered)} of {n} questions are clustered.{agreement(clustered)}", file=sys.stderr)
        if labels_file is not None:
            labels, again = ask_labels(chat, clustered)
            code = max(code, again)
            write_text(labels_file, json.dumps(labels, ensure_ascii=False, indent=1) + "\n")
            print(f"{labels_file}: {len(labels)} of {n} questions are labelled.", file=sys.stderr)
    return code
