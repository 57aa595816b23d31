"""Does semantic entropy tell wrong answers from right ones: AUROC on released answers, beside trivial rules.

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.uncertainty

The answers are those of eight models to the test questions of Commonsense Frame Completion, and of GPT-2 XL to its
development questions, cleaned as by `text-metrics probe` and in lower case. A model's answer to a question is its most
frequent one, and if there are several, the first in the file. It is right if people gave it, word for word. A model has
no AUROC if fewer than five of its answers are right, or fewer than five wrong.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scripts.arguments import data_folder
from scripts.reports.systems import MODELS
from text_metrics import load
from text_metrics.commands.probe.files import clean_counts, read_counts
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics.probeval.probeval_released import read_targets
from text_metrics.uncertainty import detect_errors, trivial_rules

_FEWEST = 5
_COLUMNS = ("semantic entropy", "length", "different strings")


class Answered(NamedTuple):
    """What a model answered to m questions.

    answers : for each question, the sampled answers
    is_correct : whether the most frequent one is right
    ties : number of questions with several most frequent answers
    """

    answers: list[list[str]]
    is_correct: list[bool]
    ties: int


def read_answered(targets: Path, predictions: Path) -> Answered:
    """Read a model's answers to the questions of a file; those without an answer are left out."""
    people = {
        row["id"]: {answer["text"]: answer["count"] for answer in row["answers"]} for row in read_targets(targets)
    }
    right, given = normalize(people), normalize(read_counts(predictions))
    questions = [name for name in right if given.get(name)]
    modes = {
        name: [text for text in given[name] if given[name][text] == max(given[name].values())] for name in questions
    }
    return Answered(
        [list(given[name].elements()) for name in questions],
        [modes[name][0] in right[name] for name in questions],
        sum(len(texts) > 1 for texts in modes.values()),
    )


def normalize(counts: Mapping[str, Mapping[str, int]]) -> dict[str, Counter[str]]:
    """Clean answers, put them in lower case, add up the counts of equal ones, and leave out empty ones."""
    normalized: dict[str, Counter[str]] = {}
    for name, answers in clean_counts(counts).items():
        normalized[name] = Counter()
        for text, count in answers.items():
            if text:
                normalized[name][text.lower()] += count
    return normalized


def to_row(name: str, answered: Answered, metric: Any) -> list[str]:
    """Format the AUROC of each rule, and semantic entropy minus the trivial ones, with 95 % intervals."""
    n, right = len(answered.is_correct), sum(answered.is_correct)
    row = [name, str(n), f"{right} ({right / n:.0%})", f"{answered.ties / n:.0%}"]
    if not _FEWEST <= right <= n - _FEWEST:
        return row + ["-"] * (2 * len(_COLUMNS) - 1)
    entropies = metric.compute(predictions=answered.answers, kernel="classes", semantic_entropy=True)
    rules = {_COLUMNS[0]: entropies["semantic_entropy_scores"], **trivial_rules(answered.answers)}
    table = detect_errors(rules, answered.is_correct)
    keys = [(rule, "auroc", "interval") for rule in _COLUMNS]
    keys += [(rule, "difference", "difference_interval") for rule in _COLUMNS[1:]]
    for rule, value, interval in keys:
        low, high = table[rule][interval]
        row.append(f"{table[rule][value]:.2f} [{low:.2f}, {high:.2f}]")
    return row


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.parse_args()
    data = data_folder(parser) / "probeval"
    test = data / "cfc_test"
    files = {name: (test / "targets.jsonl", test / "models" / f"0715{file}") for name, file in MODELS.items()}
    files["GPT-2 XL, development"] = (data / "cfc_dev_targets.jsonl", data / "cfc_dev_gpt2_xl_predictions.json")
    differences = [f"{_COLUMNS[0]} - {rule}" for rule in _COLUMNS[1:]]
    rows = [["model", "questions", "right", "ties", *_COLUMNS, *differences]]
    metric = load("vendi_embed")
    rows += [to_row(name, read_answered(*paths), metric) for name, paths in files.items()]
    print("\n".join(markdown_table(rows)))


if __name__ == "__main__":
    raise SystemExit(main())
