"""`text-metrics probe report`: a table of models beside people."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics.commands.probe.cleaning import clean_counts
from text_metrics.commands.probe.comparing import PEOPLE, RULES, Comparing, against_people, describe_second, pairs, rows
from text_metrics.commands.probe.files import read_counts, read_references
from text_metrics.commands.probe.output import add_report, check_report, write_outputs
from text_metrics.commands.probe.scoring import Scorer
from text_metrics.commands.probe.tables import html, markdown
from text_metrics.commands.shared.command import drawn
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.settings import add_confidence
from text_metrics.metrics._core.core_results import confidence_level
from text_metrics.metrics.probeval.probeval_settings import ProbevalSettings

DESCRIPTION = """\
Score the answers of models, and of people, to the same questions.

    text-metrics probe report targets.jsonl a.jsonl b.jsonl
    text-metrics probe report targets.jsonl "GPT-2=a.jsonl" --people people.json --html report.html
    text-metrics probe report targets.jsonl a.jsonl --setting matcher=wordnet --json report.json

Targets are people's answers: released files of Commonsense Frame Completion or ProtoQA, or a reference of probeval on
each line. Answers are files that `text-metrics probe ask` wrote, or released files; they are cleaned first. Questions
that only one side has, or to which all answers of a model are blank, are left out and named; a blank answer beside
others is wrong.
"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = add_report(commands, "report", "score the answers of models beside people's", DESCRIPTION, run)
    parser.add_argument("answers", nargs="+", metavar="[NAME=]FILE", help="a model's answers")
    parser.add_argument("--people", type=Path, metavar="FILE", help="a second sample of people's answers")
    parser.add_argument("--raw", action="store_true", help="do not clean the answers")
    parser.add_argument("--rounds", type=int, default=Comparing().rounds, help="random draws, averaged")
    parser.add_argument("--seed", type=int, default=Comparing().seed)
    add_confidence(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report as Markdown")
    parser.add_argument("--html", type=drawn, metavar="FILE", help="write a page with the picture")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    level = confidence_level(arguments.confidence)
    assert level is not None
    if arguments.rounds < 1:
        raise ValueError(f"--rounds must be at least 1. Got {arguments.rounds}.")
    paths = _paths(arguments.answers)
    reads = [arguments.targets, arguments.people, *paths.values()]
    pipeline = check_report(arguments, reads, arguments.markdown, arguments.html)
    references = read_references(arguments.targets)
    files = {name: read_counts(path) for name, path in paths.items()}
    people = read_counts(arguments.people) if arguments.people else None
    how = Comparing(level, arguments.rounds, arguments.seed, not arguments.raw)
    report = make_report(references, files, people, pipeline, how)
    text = markdown(report)
    write_outputs(arguments, "report", text, report)
    if arguments.markdown:
        write_text(arguments.markdown, f"# Models beside people\n\n{text}")
    if arguments.html:
        write_text(arguments.html, html(report))
    for row in report["rows"]:
        for kind, names in row.get("skipped", {}).items():
            if names:
                print(f"{row['name']}: {kind}: {', '.join(names)}", file=sys.stderr)
    for left_out in report["without_questions"]:
        print(left_out, file=sys.stderr)
    return 0


def make_report(
    references: list[dict[str, Any]],
    files: dict[str, dict[str, Counter[str]]],
    people: dict[str, Counter[str]] | None,
    pipeline: ProbevalSettings,
    how: Comparing,
) -> dict[str, Any]:
    """Compute all numbers of the report, as strictly valid JSON; `people` is a second sample of people's answers."""
    given = {**files, PEOPLE: people} if people is not None else dict(files)
    everyone = {
        name: _answered(name, clean_counts(answers) if how.clean else answers) for name, answers in given.items()
    }
    distinct = {
        name for name, answers in given.items() if all(n == 1 for counts in answers.values() for n in counts.values())
    }
    files = {name: everyone[name] for name in files}
    scorer = Scorer(references, everyone, pipeline)
    table = rows(scorer, everyone, how.level)
    for row in table:
        row["distinct"] = row["name"] in distinct
        if row["name"] in everyone:
            answered = everyone[row["name"]]
            row["skipped"] = {
                "unknown": [name for name in answered if name not in scorer.questions],
                "missing": [name for name in scorer.questions if name not in answered],
            }
    about = None
    if people is not None:
        about = describe_second(scorer.references, everyone[PEOPLE], np.random.default_rng(how.seed))
    second = everyone[PEOPLE] if about is not None and not about["same"] else None
    against = against_people(scorer, files, second, False, how)
    compared = everyone if second is not None else files
    paired = pairs(scorer, compared, how)
    return {
        "confidence": how.level,
        "rounds": how.rounds,
        "seed": how.seed,
        "signature": scorer.signature,
        "n_questions": len(scorer.questions),
        "n_gold": sum(int(question.gold_counts.sum()) for question in scorer.questions.values()),
        "second_sample": about,
        "rows": table,
        "against_people": against,
        "against_people_once": against_people(scorer, files, second, True, how),
        "pairs": paired,
        "without_questions": _without_questions(files, against, list(compared), paired),
    }


def _answered(name: str, counts_of: dict[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Leave out the questions that have no answer, or only blank ones; raises a ValueError if none is left."""
    answered = {question: answers for question, answers in counts_of.items() if any(text.strip() for text in answers)}
    if not answered:
        raise ValueError(f"{name}: none of its {len(counts_of)} questions has an answer that is not blank.")
    return answered


def _without_questions(
    files: Iterable[str], against: list[dict[str, Any]], compared: list[str], paired: list[dict[str, Any]]
) -> list[str]:
    """Name what could not be compared, because no question was answered by both sides."""
    done = {row["name"] for row in against}
    pairs_done = {(row["a"], row["b"]) for row in paired}
    alone = [f"{name}: no question in common with the second sample of people" for name in files if name not in done]
    apart = [pair for pair in combinations(compared, 2) if pair not in pairs_done]
    return alone + [f"{first} and {second}: no question in common" for first, second in apart]


def _paths(given: list[str]) -> dict[str, Path]:
    """Read the files of answers by their names."""
    paths: dict[str, Path] = {}
    for value in given:
        name, equals, path = value.partition("=")
        if not equals:
            name, path = Path(value).stem, value
        if not name or name in paths or name in (PEOPLE, *RULES):
            raise ValueError(f"each file of answers needs a name of its own. Got {name!r} for {path}: pass NAME=FILE.")
        paths[name] = Path(path)
    return paths
