"""`probe.py report`: a table of models beside people."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from metrics._core.core_results import parse_confidence
from metrics.probeval.core_encoder import EncoderSettings
from metrics.probeval.probeval_pipeline import Settings
from scripts._command import drawn
from scripts._files import write_text
from scripts._probe.comparing import PEOPLE, RULES, Comparing, against_people, describe_second, pairs, rows
from scripts._probe.files import clean_counts, read_counts, read_references
from scripts._probe.output import add_outputs, write_outputs
from scripts._probe.pictures import draw_report
from scripts._probe.scoring import Scorer
from scripts._probe.tables import html, markdown
from scripts._settings import ENCODER, parse_settings

DESCRIPTION = """\
Score the answers of models, and of people, to the same questions.

    python scripts/probe.py report targets.jsonl a.jsonl b.jsonl
    python scripts/probe.py report targets.jsonl "GPT-2=a.jsonl" --people people.json --html report.html
    python scripts/probe.py report targets.jsonl a.jsonl --setting matcher=wordnet --json report.json

Targets are people's answers: released files of Commonsense Frame Completion or ProtoQA, or a reference of probeval on
each line. Answers are files that `probe.py ask` wrote, or released files; they are cleaned first. Questions that only
one side has are left out and named.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report",
        help="score the answers of models beside people's",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", type=Path, help="questions with people's answers")
    parser.add_argument("answers", nargs="+", metavar="[NAME=]FILE", help="a model's answers")
    parser.add_argument("--people", type=Path, metavar="FILE", help="a second sample of people's answers")
    parser.add_argument("--raw", action="store_true", help="do not clean the answers")
    parser.add_argument("--rounds", type=int, default=Comparing().rounds, help="random draws, averaged")
    parser.add_argument("--seed", type=int, default=Comparing().seed)
    parser.add_argument("--confidence", type=float, default=Comparing().level, help="level of the intervals")
    add_pipeline(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report as Markdown")
    parser.add_argument("--html", type=drawn, metavar="FILE", help="write a page with the picture")
    add_outputs(parser)
    parser.set_defaults(run=run)


def add_pipeline(parser: argparse.ArgumentParser) -> None:
    """Add the option that sets the pipeline of probeval."""
    parser.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of probeval: clustering, matcher, threshold, smoothing, debias, ..., model, device, cache_dir",
    )


def parse_pipeline(pairs: list[str]) -> tuple[Settings, EncoderSettings]:
    """Read the settings of probeval; raises a ValueError for one that it does not have."""
    given = parse_settings(pairs, "--setting")
    # The commands draw answers down themselves.
    names = [*(name for name in Settings._fields if not name.startswith("rarefy")), *ENCODER]
    for name in given:
        if name not in names:
            known = ", ".join(names)
            raise ValueError(f"--setting {name}: probeval has no such setting here. It has {known}.")
    encoder = EncoderSettings(**{name: value for name, value in given.items() if name in ENCODER})
    return Settings(**{name: value for name, value in given.items() if name in Settings._fields}), encoder


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    level = parse_confidence(arguments.confidence)
    assert level is not None
    if arguments.rounds < 1:
        raise ValueError(f"--rounds must be at least 1. Got {arguments.rounds}.")
    references = read_references(arguments.targets)
    files = _read_files(arguments.answers)
    people = read_counts(arguments.people) if arguments.people else None
    how = Comparing(level, arguments.rounds, arguments.seed, not arguments.raw)
    report = make_report(references, files, people, parse_pipeline(arguments.setting), how)
    text = markdown(report)
    write_outputs(arguments, "probe report", text, report, draw_report)
    if arguments.markdown:
        write_text(arguments.markdown, f"# Models beside people\n\n{text}")
    if arguments.html:
        write_text(arguments.html, html(report, draw_report(report)))
    for row in report["rows"]:
        for kind, names in row.get("skipped", {}).items():
            if names:
                print(f"{row['name']}: {kind}: {', '.join(names)}", file=sys.stderr)
    return 0


def make_report(
    references: list[dict[str, Any]],
    files: dict[str, dict[str, Counter[str]]],
    people: dict[str, Counter[str]] | None,
    pipeline: tuple[Settings, EncoderSettings],
    how: Comparing,
) -> dict[str, Any]:
    """Compute all numbers of the report, as strictly valid JSON.

    Parameters
    ----------
    files : the answers of each model: name to question id to counts
    people : a second sample of people's answers, or None
    """
    everyone = {**files, PEOPLE: people} if people is not None else dict(files)
    distinct = {
        name for name, found in everyone.items() if max(max(own.values(), default=1) for own in found.values()) == 1
    }
    if how.clean:
        everyone = {name: clean_counts(found) for name, found in everyone.items()}
    files = {name: everyone[name] for name in files}
    scorer = Scorer(references, everyone, *pipeline)
    own = rows(scorer, everyone, how.level)
    for row in own:
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
    return {
        "confidence": how.level,
        "rounds": how.rounds,
        "seed": how.seed,
        "signature": scorer.signature,
        "n_questions": len(scorer.questions),
        "n_gold": sum(int(question.gold_counts.sum()) for question in scorer.questions.values()),
        "second_sample": about,
        "rows": own,
        "against_people": against_people(scorer, files, second, False, how),
        "against_people_once": against_people(scorer, files, second, True, how),
        "pairs": pairs(scorer, everyone if second is not None else files, how),
    }


def _read_files(given: list[str]) -> dict[str, dict[str, Counter[str]]]:
    files: dict[str, dict[str, Counter[str]]] = {}
    for value in given:
        name, equals, path = value.partition("=")
        if not equals:
            name, path = Path(value).stem, value
        if not name or name in files or name in (PEOPLE, *RULES):
            raise ValueError(f"each file of answers needs a name of its own. Got {name!r} for {path}: pass NAME=FILE.")
        files[name] = read_counts(Path(path))
    return files
