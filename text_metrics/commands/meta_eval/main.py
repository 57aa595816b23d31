"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric names the more diverse of two sets of texts; its accuracy is the share of pairs on which it agrees
with the judge. A line of a file is a pair: `set1` and `set2`, lists of equal length, and `llm_diversity`, the
verdict (0: set 1 is the more diverse, 1: set 2, 2: neither). docs/meta-eval.md says more.

    text-metrics meta-eval pairs.jsonl --metric my/metric     pairs, and a metric of your own beside ours
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl  ratings of quality from a file
    text-metrics meta-eval pairs.jsonl --out evaluation       tables as CSV, and the results as JSON
"""

import argparse
import json
from pathlib import Path

from text_metrics.commands.meta_eval.pairs import Sets, read_pairs
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics._core.core_models import DEFAULT_MODEL

_PRINTED = ("people", "agreement", "kappa")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="judged pairs")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder")
    parser.add_argument("--cache-dir", type=Path, metavar="FOLDER", help="cache of embeddings")
    parser.add_argument("--metric", action="append", default=[], metavar="MODULE", help="your own metric")
    parser.add_argument(
        "--quality", action="append", default=[], type=Path, metavar="FILE", help="ratings: text and quality"
    )
    parser.add_argument("--no-gruen", action="store_true", help="leave out what is rated by gruen")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write tables and results.json")
    return parser.parse_args()


@command
def main() -> int:
    """Run the command."""
    arguments = parse_arguments()
    reads = [*arguments.files, *arguments.quality, arguments.model, *arguments.metric]
    check_outputs(reads, [arguments.out, arguments.cache_dir])
    sets = Sets()
    pairs, people = read_pairs(arguments.files, sets)
    # pandas takes a second to import.
    from text_metrics.commands.meta_eval.agreement import evaluate
    from text_metrics.commands.meta_eval.scores import score_sets
    from text_metrics.commands.meta_eval.tables import NOTES, tables

    texts, gruen = list(map(list, sets)), not arguments.no_gruen
    scores = score_sets(texts, arguments.model, arguments.cache_dir, arguments.metric, arguments.quality, gruen)
    results = evaluate(scores, pairs, people)
    made = tables(results)
    print("\n\n".join(made[name].to_string(index=False) for name in _PRINTED if name in made))
    print("\n".join(["", *NOTES]))
    if arguments.out:
        for name, table in made.items():
            write_text(arguments.out / f"{name}.csv", table.to_csv(index=False))
        records = {name: json.loads(frame.to_json(orient="records")) for name, frame in results.items()}
        write_text(arguments.out / "results.json", json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    return 0
