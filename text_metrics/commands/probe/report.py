"""`text-metrics probe report`: a table of models beside people."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from text_metrics.commands.probe.cleaning import clean
from text_metrics.commands.probe.comparing import RULES, Scorer, against_people, rows
from text_metrics.commands.probe.files import Rows, Sections, read_predictions
from text_metrics.commands.shared.formats import estimate, interval, number, p_value, percent
from text_metrics.commands.shared.settings import add_confidence
from text_metrics.commands.shared.statistics import RESAMPLES
from text_metrics.metrics._core.core_results import confidence_level
from text_metrics.metrics.probeval.probeval_formats import Question
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DESCRIPTION = """\
Score the answers of models, and of people, to the same questions.

    text-metrics probe report targets.jsonl a.jsonl b.jsonl
    text-metrics probe report targets.jsonl "GPT-2=a.jsonl" "other people=b.jsonl" --out report.json
    text-metrics probe report targets.jsonl a.jsonl --setting matcher=wordnet

Targets are people's answers: released files of Commonsense Frame Completion or ProtoQA, or a reference of probeval on
each line. Answers are files that `text-metrics probe ask` wrote, or released files; they are cleaned first. Questions
that only one side has, or to which all answers of a model are blank, are left out and named; a blank answer beside
others is wrong.
"""
# The least p-value that random signs can give.
_FLOOR = 1 / (RESAMPLES + 1)
_ALL = """\
KL(people ‖ model) in nats, mean over {n_questions} questions with {n_gold} answers of people, with confidence \
intervals over questions. Coverage is the share of people's answers whose cluster the model hits; wrong is the share \
of the model's answers that match no cluster; entropy is that of the smoothed distribution, people's in parentheses. \
The divergence depends on the number of answers."""
_AGAINST = """\
In {rounds} rounds, people's answers are split at random: one half are the gold answers, the other half serves as the \
model. Of the model and these people, the larger sample is drawn down to the size of the smaller, question by \
question. p: paired randomization test over questions."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("answers", nargs="+", type=_named_file, metavar="[NAME=]FILE", help="a model's answers")
    parser.add_argument("--raw", action="store_true", help="do not clean the answers")
    parser.add_argument("--rounds", type=int, default=20, help="random draws, averaged")
    parser.add_argument("--seed", type=int, default=0)
    add_confidence(parser)


def _named_file(word: str) -> tuple[str, Path]:
    name, equals, path = word.partition("=")
    return (name, Path(path)) if equals else (Path(word).stem, Path(word))


def measure(arguments: argparse.Namespace, references: Rows, settings: ProbevalSettings) -> dict[str, Any]:
    """Read the models' answers, name on stderr the questions that are left out, and compute the report."""
    level = confidence_level(arguments.confidence)
    assert level is not None
    if arguments.rounds < 1:
        raise ValueError(f"--rounds must be at least 1. Got {arguments.rounds}.")
    files: dict[str, dict[str, Counter[str]]] = {}
    distinct = []
    for name, path in arguments.answers:
        if not name or name in files or name in RULES:
            raise ValueError(f"each file of answers needs a name of its own. Got {name!r} for {path}: pass NAME=FILE.")
        questions, unknown = read_predictions(path, references)
        files[name] = count_answers(name, questions, arguments.raw)
        distinct += [name] * all((question.counts == 1).all() for question in questions)
        missing = [row["id"] for row in references if row["id"] not in files[name]]
        for kind, ids in (("unknown", unknown), ("missing", missing)):
            if ids:
                print(f"{name}: {kind}: {', '.join(ids)}", file=sys.stderr)
    scorer = Scorer(references, files, settings)
    how = arguments.rounds, arguments.seed, level
    return {
        "confidence": level,
        "rounds": arguments.rounds,
        "seed": arguments.seed,
        "signature": scorer.signature,
        "n_questions": len(scorer.questions),
        "n_gold": sum(int(question.gold_counts.sum()) for question in scorer.questions.values()),
        "distinct": distinct,
        "rows": rows(scorer, files, level),
        "against_people": against_people(scorer, files, *how, once=False),
        "against_people_once": against_people(scorer, files, *how, once=True),
    }


def count_answers(name: str, questions: list[Question], raw: bool = False) -> dict[str, Counter[str]]:
    """Count the answers to each question, clean ones unless `raw`; questions with blank ones only are left out."""
    counts: dict[str, Counter[str]] = {question.name: Counter() for question in questions}
    for question in questions:
        for text, count in zip(question.answers, question.counts.astype(int).tolist(), strict=True):
            counts[question.name][text if raw else clean(text)] += count
    counts = {question: answers for question, answers in counts.items() if any(text.strip() for text in answers)}
    if not counts:
        raise ValueError(f"{name}: none of its {len(questions)} questions has an answer that is not blank.")
    return counts


def sections(report: dict[str, Any]) -> Sections:
    """Lay the report out."""
    scored = [["answers of", "questions", "answers to each", "KL", "coverage", "wrong", "entropy"]]
    for row in report["rows"]:
        sizes, entropies = row["n_answers"], row["distribution_entropy"]
        cells = [row["name"], str(len(sizes)), "–".join(map(str, sorted({min(sizes), max(sizes)})))]
        cells += [estimate(row["probeval"], row["interval"], 3), percent(row["coverage"]), percent(row["wrong_rate"])]
        scored.append([*cells, f"{number(entropies['model'], 2)} ({number(entropies['gold'], 2)})"])
    against, once = (
        [["answers of", "KL", "KL of people", "difference", "p"]]
        + [
            [
                row["name"],
                number(row["own"], 3),
                number(row["people"], 3),
                f"{number(row['difference'], 3, signed=True)} {interval(row['interval'], 3)}",
                p_value(row["p"], _FLOOR),
            ]
            for row in report[name]
        ]
        for name in ("against_people", "against_people_once")
    )
    distinct = ", ".join(f"“{name}”" for name in report["distinct"])
    lost = f" No answer of {distinct} to a question comes twice, so only this table compares like with like."
    return [
        ("All answers", _ALL.format(**report), scored),
        ("Against people", _AGAINST.format(**report), against),
        (
            "Against people, each answer once",
            f"The same, with each different answer of a sample counted once.{lost if distinct else ''}",
            once,
        ),
    ]
