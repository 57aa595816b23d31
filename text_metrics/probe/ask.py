"""Ask a chat model each question many times, and write its answers.

    text-metrics probe ask questions.jsonl --out answers.jsonl --model gpt-4o --samples 100
    text-metrics probe ask questions.jsonl --out answers.jsonl --model my-model --base-url http://localhost:8000/v1

A question is a JSON object on its own line: `id`, `question`, and perhaps the `sentence` that it is about; or a record
of a released file of targets. A line of the output has the `id`, the clean `answers`, which are what follows the
model's reasoning, and the `raw` ones. Each answer is
saved in answers.jsonl.journal when it arrives: after a crash, the same command continues, and requests none twice.
"""

import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

from text_metrics.core_api import parse_count
from text_metrics.files.storage import write_jsonl
from text_metrics.jobs.chat import Chat, Request, few_shot
from text_metrics.options import warn_of_marks
from text_metrics.probe.cleaning import clean
from text_metrics.probe.files import read_records
from text_metrics.texts import REASONING, Marks
from text_metrics.texts import clean as clean_texts

INSTRUCTIONS = (
    "Answer each question as a person in a survey would: with the first answer that comes to mind, in a few words. "
    "Give one answer and nothing else."
)


def read_questions(path: Path) -> dict[str, str]:
    """Read questions, on each line `id`, `question` and perhaps `sentence`, or a released record: texts by id."""
    questions = {}
    for where, record in read_records(path):
        sentence, question = (record.get(name) or "" for name in ("sentence", "question"))
        if not (isinstance(sentence, str) and isinstance(question, str) and question.strip()):
            got = f"{question!r:.80} and {sentence!r:.80}"
            raise ValueError(f"{where} must have a 'question', a string, and may have a 'sentence'. Got {got}.")
        questions[str(record["id"])] = " ".join(f"{sentence} {question}".split())
    return questions


def run(reads: Path, out: Path, model: str, temperature: float, samples: int, **endpoint: Any) -> int:
    """Write answers; returns the exit code. Parameters are the options of the command."""
    parse_count(samples, "--samples")
    questions = read_questions(reads)
    chat = Chat(reads, out, model, temperature=temperature, **endpoint)
    requests = []
    n_asked = Counter[str]()
    for name, question in questions.items():
        messages = few_shot(INSTRUCTIONS, question)
        # Identical questions are asked separately.
        for sample in range(n_asked[question], n_asked[question] + samples):
            requests.append(Request(f"question {name!r}", messages, lambda answer, top: answer, sample))
        n_asked[question] += samples
    answers = chat.ask(requests)
    received = iter(answers)
    rows: list[dict[str, Any]] = []
    marks = Marks()
    for name, question in questions.items():
        raw = [answer for answer in islice(received, samples) if answer is not None]
        if not raw:
            continue
        # A cut answer, whose reasoning does not end, is empty.
        without_reasoning, question_marks = clean_texts(raw, (REASONING,))
        marks += question_marks
        row = {"id": name, "question": question, "answers": list(map(clean, without_reasoning)), "raw": raw}
        rows.append(row | {"model": model, "temperature": temperature})
    write_jsonl(out, rows)
    if marks.removed:
        print(f"{marks.removed[REASONING]:,} of {marks.n_texts:,} answers began with reasoning.", file=sys.stderr)
        warn_of_marks(marks, (), "answers")
    n_complete = sum(len(row["raw"]) == samples for row in rows)
    print(f"{out}: {n_complete} of {len(questions)} questions have all their answers.", file=sys.stderr)
    return int(None in answers)
