"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric names the more diverse of two sets of texts. Its accuracy is the share of pairs on which it agrees with the
judge; its balanced accuracy is the mean of the accuracies over the pairs of each verdict. Each line of a file is a
pair: `set1` and `set2`, lists of equal length, and `llm_diversity`, the judge's verdict (0: set 1 is the more diverse,
1: set 2, 2: neither), or its scores, `Diversity_Set1` and `Diversity_Set2`. docs/meta-eval.md has the other columns.

    text-metrics meta-eval pairs.jsonl --metric my/metric     pairs, and a metric of your own beside ours
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl  ratings of quality from a file
    text-metrics meta-eval pairs.jsonl --parity               ties go to set 1, as in the paper; else they count half
    text-metrics meta-eval pairs.jsonl --out evaluation       tables as CSV, a picture, and the results as JSON
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.meta_eval.pairs import Sets, labelled_sets, read_kinds, read_pairs
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics._core.core_models import DEFAULT_MODEL

# The tables that are printed.
_SHORT = ("qualities", "people", "agreement", "kappa")


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="judged pairs")
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="sets of different kinds about the same concepts")
    parser.add_argument("--concepts", type=int, default=300, help="number to draw for each generator")
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
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write tables, a picture and results.json")
    arguments = parser.parse_args(words)
    if not arguments.files and not arguments.sets:
        parser.error("there is nothing to evaluate on: name files of judged pairs, or pass --sets")
    if arguments.concepts < 2:
        parser.error(f"--concepts must be at least 2. Got {arguments.concepts}.")
    return arguments


def evaluate_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read, score and evaluate; returns data frames by name, or none with --list-texts."""
    sets = Sets()
    pairs, people = read_pairs(arguments.files, sets)
    kinds = read_kinds(arguments.sets, arguments.concepts, sets) if arguments.sets else None
    texts = sets.texts()
    if arguments.list_texts:
        distinct = dict.fromkeys(text for members in texts for text in members)
        write_jsonl(arguments.list_texts, ({"text": text} for text in distinct))
        return {}
    own = [(path, 1) for path in arguments.metric] + [(path, -1) for path in arguments.metric_lower]
    # pandas takes a second to import.
    from text_metrics.commands.meta_eval import agreement
    from text_metrics.commands.meta_eval.scores import score_sets

    gruen = not arguments.no_gruen
    scores = score_sets(texts, arguments.model, arguments.cache_dir, own, arguments.quality, gruen)
    results: dict[str, Any] = {}
    if len(pairs):
        results["agreement"] = agreement.judge_agreement(scores, pairs, arguments.parity)
        results["kappa"], results["kappa_means"] = agreement.kappa_by_quality(scores, pairs, arguments.parity)
    if kinds is not None:
        results["originals"] = agreement.originals_above(scores, kinds)
    if len(people):
        results["people"] = agreement.people_agreement(scores, people)
    if labels := labelled_sets(pairs, kinds):
        results["distributions"] = agreement.distributions(scores, labels)
    results["signatures"] = scores.metrics["signature"].rename_axis("metric").reset_index()
    return results


def write_results(results: dict[str, Any], folder: Path) -> None:
    """Write all tables as CSV, the picture of agreement as SVG, and the results as JSON."""
    from text_metrics.commands.meta_eval.picture import agreement_picture
    from text_metrics.commands.meta_eval.tables import tables

    for name, table in tables(results).items():
        write_text(folder / f"{name}.csv", table.to_csv(index=False))
    if "agreement" in results:
        write_text(folder / "agreement.svg", agreement_picture(results["agreement"]))
    records = {name: json.loads(frame.to_json(orient="records")) for name, frame in results.items()}
    write_text(folder / "results.json", json.dumps(records, indent=1, ensure_ascii=False) + "\n")


@command
def main() -> int:
    """Run the command."""
    arguments = parse_arguments()
    modules = [arguments.model, *arguments.metric, *arguments.metric_lower]
    reads = [*arguments.files, arguments.sets, *arguments.quality]
    reads += [path for name in modules for path in module_files(name)]
    check_outputs(reads, [arguments.out, arguments.cache_dir, arguments.list_texts])
    if results := evaluate_all(arguments):
        from text_metrics.commands.meta_eval.tables import NOTES, tables

        made = tables(results)
        print("\n\n".join(made[name].to_string(index=False) for name in _SHORT if name in made))
        print("\n".join(["", *NOTES]))
        if arguments.out:
            write_results(results, arguments.out)
    return 0
