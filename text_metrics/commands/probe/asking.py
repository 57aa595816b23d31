"""`text-metrics probe ask`: have a model answer questions many times over."""

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from text_metrics.commands.probe.cleaning import clean
from text_metrics.commands.probe.files import messages, read_questions, read_shots
from text_metrics.commands.probe.local import Sampler, Sampling
from text_metrics.commands.shared.chat import Chat, Journal, Request, add_arguments, journal_files
from text_metrics.commands.shared.command import add_command
from text_metrics.commands.shared.files import write_jsonl
from text_metrics.commands.shared.outputs import check_outputs, module_files

DESCRIPTION = """\
Ask a model each question many times, and write its answers.

    text-metrics probe ask questions.jsonl answers.jsonl --model gpt-4o --samples 100 --prices 2.5 10
    text-metrics probe ask questions.jsonl answers.jsonl --model my-model --base-url http://localhost:8000/v1
    text-metrics probe ask questions.jsonl answers.jsonl --model HuggingFaceTB/SmolLM2-135M --local

A question is a JSON object on its own line: `id`, `question`, and perhaps the `sentence` that it is about; or a record
of a released file of targets. A line of the output has the `id`, the clean `answers` and the `raw` ones. Each answer is
kept in answers.jsonl.journal as it comes: after a crash, the same command continues, and asks for none of them again.
"""

# Unpaired surrogates, which UTF-8 cannot encode.
_UNPAIRED = re.compile("[\ud800-\udfff]")
# More than the samples of any question.
_ABOVE_SAMPLES = 1_000_000_000


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_command(commands, "ask", "have a model answer questions many times over", DESCRIPTION)
    parser.add_argument("questions", type=Path, help="questions, as JSON lines")
    parser.add_argument("answers", type=Path, help="where to write the answers")
    parser.add_argument("--samples", type=int, default=100, help="answers to each question")
    parser.add_argument("--shots", type=Path, metavar="FILE", help="examples: `question` and `answer` on each line")
    add_arguments(parser)
    local = parser.add_argument_group("with --local")
    local.add_argument(
        "--local", action="store_true", help="--model is a causal model: a folder, a GGUF file, a Hub id"
    )
    local.add_argument("--max-tokens", type=int, default=Sampling().max_tokens, help="the maximum length of an answer")
    local.add_argument("--batch-size", type=int, default=Sampling().batch_size, help="answers sampled at a time")
    local.add_argument("--seed", type=int, default=0)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    if arguments.samples < 1:
        raise ValueError(f"--samples must be at least 1. Got {arguments.samples}.")
    path, lock = journal_files(arguments.answers)
    reads = [arguments.questions, arguments.shots, *module_files(arguments.model if arguments.local else None)]
    check_outputs(reads, [arguments.answers, path, lock])
    questions = read_questions(arguments.questions)
    shots = read_shots(arguments.shots) if arguments.shots else []
    outcome = None
    if arguments.local:
        sampling = Sampling(arguments.temperature, arguments.max_tokens, arguments.batch_size, arguments.seed)
        sampler = Sampler(arguments.model, sampling)
        with Journal(path) as journal:
            raw_answers = sampler.ask(questions, shots, arguments.samples, journal)
        model = sampler.identity
    else:
        requests, before = [], Counter[str]()
        for question in questions:
            # Two questions of the same words are asked each for itself.
            first = before[question.text()] * _ABOVE_SAMPLES
            before[question.text()] += 1
            requests += [
                Request(f"question {question.id!r}", messages(question, shots), str, first + i)
                for i in range(arguments.samples)
            ]
        with Chat(arguments, arguments.answers) as chat:
            outcome = chat.ask(requests)
        starts = range(0, len(outcome.values), arguments.samples)
        by_question = (outcome.values[start : start + arguments.samples] for start in starts)
        raw_answers = [[answer for answer in answers if answer is not None] for answers in by_question]
        model = arguments.model
    whole = [[_UNPAIRED.sub("\ufffd", answer) for answer in answers] for answers in raw_answers]
    n_replaced = sum(_UNPAIRED.search(answer) is not None for answers in raw_answers for answer in answers)
    if n_replaced:
        print(
            f"{arguments.answers}: in {n_replaced} answers, unpaired surrogates are replaced by U+FFFD; {path} has "
            "the original answers.",
            file=sys.stderr,
        )
    lines = [
        {
            "id": question.id,
            "question": question.text(),
            "answers": [clean(answer) for answer in answers],
            "raw": answers,
            "model": model,
            "temperature": arguments.temperature,
        }
        for question, answers in zip(questions, whole, strict=True)
        if answers
    ]
    write_jsonl(arguments.answers, lines)
    complete = sum(len(answers) == arguments.samples for answers in raw_answers)
    print(
        f"{arguments.answers}: {complete} of {len(questions)} questions have all their {arguments.samples} answers.",
        file=sys.stderr,
    )
    if outcome is not None:
        return chat.report(outcome)
    return 0 if complete == len(questions) else 1
