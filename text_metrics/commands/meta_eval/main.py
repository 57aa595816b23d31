"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric names the more diverse of two sets of texts. Its accuracy is the share of pairs on which it agrees with the
judge; its balanced accuracy is the mean of the accuracies over the pairs of each verdict.

    text-metrics meta-eval pairs.jsonl --metric my/metric    pairs, and a metric of your own beside ours
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl ratings of quality from a file
    text-metrics meta-eval pairs.jsonl --parity              ties go to set 1, as in the paper; else they count half
    text-metrics meta-eval pairs.jsonl --out evaluation      all tables as CSV, pictures, and the results as JSON

Each line is a pair: `set1` and `set2`, lists of equal length, and `llm_diversity`, the judge's verdict (0: set 1 is
the more diverse, 1: set 2, 2: neither), or its scores, `Diversity_Set1` and `Diversity_Set2`. docs/evidence.md has the
other columns, the files of `--sets`, and how pairs that people judged are read.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.meta_eval.agreement import LEVEL, people_agreement
from text_metrics.commands.meta_eval.evaluation import (
    distributions,
    evaluate_kinds,
    evaluate_metrics,
    labels_of_kinds,
)
from text_metrics.commands.meta_eval.kinds import read_kinds
from text_metrics.commands.meta_eval.pairs import Sets, has_people, read_pairs, read_people
from text_metrics.commands.meta_eval.rows import Scoring, all_rows
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.commands.shared.pages import save_figure
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_models import DEFAULT_MODEL

CONCEPTS = 300
# The tables that are printed.
_SHORT = ("qualities", "people", "agreement", "kappa")


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="judged pairs")
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="sets of different kinds about the same concepts")
    parser.add_argument("--concepts", type=int, default=CONCEPTS, help="number to draw for each generator")
    parser.add_argument("--parity", action="store_true", help="ties go to set 1, as in the paper; else they count half")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder, a folder or an id of the Hub")
    parser.add_argument("--cache-dir", type=Path, metavar="FOLDER", help="cache of embeddings")
    parser.add_argument("--metric", action="append", default=[], metavar="MODULE", help="path of a metric of your own")
    parser.add_argument(
        "--metric-lower", action="append", default=[], metavar="MODULE", help="the same, where lower is more diverse"
    )
    parser.add_argument(
        "--quality", action="append", default=[], type=Path, metavar="FILE", help="ratings: text and quality, in [0, 1]"
    )
    parser.add_argument("--no-gruen", action="store_true", help="leave out what is rated by gruen")
    parser.add_argument("--list-texts", type=Path, metavar="FILE", help="write the texts to be rated, and stop")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write tables, pictures and results.json")
    arguments = parser.parse_args(words)
    if not arguments.files and not arguments.sets:
        parser.error("there is nothing to evaluate on: name files of judged pairs, or pass --sets")
    if arguments.concepts < 2:
        parser.error(f"--concepts must be at least 2. Got {arguments.concepts}.")
    return arguments


def evaluate_all(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Read, score and evaluate; None with --list-texts, or if nothing could be scored."""
    sets = Sets()
    judged_by_people = [path for path in arguments.files if has_people(path)]
    pairs = read_pairs([path for path in arguments.files if path not in judged_by_people], sets)
    people = read_people(judged_by_people, sets)
    kinds = read_kinds(arguments.sets, arguments.concepts, sets) if arguments.sets else []
    texts = sets.texts()
    if arguments.list_texts:
        distinct = dict.fromkeys(text for members in texts for text in members)
        write_jsonl(arguments.list_texts, ({"text": text} for text in distinct))
        return None
    metrics = [(path, 1) for path in arguments.metric] + [(path, -1) for path in arguments.metric_lower]
    for path, _ in metrics:
        load_metric(path)  # fails before any work is done
    scoring = Scoring(arguments.model, arguments.cache_dir, metrics, arguments.quality, not arguments.no_gruen)
    rows, failures = all_rows(texts, scoring)
    if not rows:
        return None
    results: dict[str, Any] = {
        "settings": {
            "files": [path.name for path in arguments.files],
            "left_out": 0 if pairs is None else pairs.left_out,
            "sets": len(texts),
            "ties": "go to set 1" if arguments.parity else "count half",
            "level": LEVEL,
            "model": arguments.model,
            "failures": failures,
        }
    }
    if pairs is not None:
        results |= evaluate_metrics(pairs, rows, arguments.parity)
    if kinds:
        results["kinds"] = evaluate_kinds(kinds, rows)
        results["distributions"] = distributions(rows, labels_of_kinds(kinds))
    if people is not None:
        results["people"] = people_agreement(people, rows)
    return results


def write_results(results: dict[str, Any], folder: Path) -> None:
    """Write all tables as CSV, the pictures as SVG, and the results as JSON."""
    # pandas and matplotlib take a second to import.
    from text_metrics.commands.meta_eval.pictures import pictures
    from text_metrics.commands.meta_eval.tables import tables

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables(results).items():
        write_text(folder / f"{name}.csv", table.to_csv(index=False))
    for name, figure in pictures(results).items():
        save_figure(figure, folder / f"{name}.svg")
    write_text(folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


@command
def main() -> int:
    """Run the command."""
    arguments = parse_arguments()
    modules = [arguments.model, *arguments.metric, *arguments.metric_lower]
    reads = [*arguments.files, arguments.sets, *arguments.quality]
    reads += [path for name in modules for path in module_files(name)]
    check_outputs(reads, [arguments.out, arguments.cache_dir, arguments.list_texts])
    results = evaluate_all(arguments)
    if results is None:
        return 0 if arguments.list_texts else 1
    from text_metrics.commands.meta_eval.tables import NOTES, tables

    shown = tables(results)
    for name in _SHORT:
        if name in shown:
            print(f"{shown[name].to_string(index=False)}\n")
    print("\n".join(NOTES))
    if arguments.out:
        write_results(results, arguments.out)
    return 1 if results["settings"]["failures"] else 0
