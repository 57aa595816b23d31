"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric names the more diverse of two sets of texts; its accuracy is the share of pairs on which it agrees
with the judge. A line of a file is a pair: `set1` and `set2`, lists of equal length, and `llm_diversity`, the
verdict (0: set 1 is the more diverse, 1: set 2, 2: neither). docs/meta-eval.md says more.

    text-metrics meta-eval pairs.jsonl --metric my/metric   pairs, and a metric of your own beside ours
    text-metrics meta-eval pairs.jsonl --out evaluation     all numbers, with intervals, as CSV
"""

from pathlib import Path
from typing import Any

from text_metrics.console import Parser, command
from text_metrics.core_api import DEFAULT_MODEL
from text_metrics.files.storage import check_outputs, write_text
from text_metrics.files.written import TABLES, is_evaluation
from text_metrics.meta_eval.pairs import Sets, read_pairs
from text_metrics.options import add_strip, check_strip
from text_metrics.texts import to_signature


def show(results: dict[str, Any]) -> str:
    """Format agreement in percent as text: with people, with the judge by data, and between groups of metrics."""
    parts = []
    if "people" in results:
        people = results["people"].set_index("metric")[["majority", "balanced", "person"]]
        parts.append(("Agreement with people, %", people))
    if "agreement" in results:
        agreement = results["agreement"]
        accuracy = agreement[agreement["pairs"] == "all"].set_index(["metric", "cell"])["balanced"].unstack(sort=False)
        kappas = results["kappa_means"].set_index(["groups", "part"])["kappa"].unstack(sort=False)
        parts += [("Balanced accuracy, %", accuracy), ("Mean kappa × 100", kappas)]
    return "\n\n".join(f"{title}\n{(100 * table).round(1).to_string()}" for title, table in parts)


def check_folder(folder: Path) -> None:
    """Raise a ValueError if a table would replace a file that this command did not write."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out must be a folder. Got {folder}, which is a file.")
    for path in (folder / name for name in TABLES):
        if path.exists() and not is_evaluation(folder):
            raise ValueError(f"{path} was not written by this command: rename it, or choose another --out.")


def write_tables(folder: Path, results: dict[str, Any]) -> None:
    """Write a file for each table, and remove the tables of an earlier evaluation."""
    for name in TABLES:
        (folder / name).unlink(missing_ok=True)
    # The last table comes first: by it, the next run knows the tables of a run that was killed.
    for name, table in reversed(results.items()):
        write_text(folder / f"{name}.csv", table.to_csv(index=False))


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="judged pairs")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder")
    parser.add_argument("--cache-dir", type=Path, metavar="FOLDER", help="cache of embeddings")
    parser.add_argument("--metric", action="append", default=[], metavar="MODULE", help="your own metric")
    parser.add_argument("--no-gruen", action="store_true", help="leave out what is rated by gruen")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write all numbers, a CSV file for each table")
    add_strip(parser)
    arguments = parser.parse_args()
    check_strip(arguments.strip, has_contexts=False)
    reads = arguments.files + arguments.metric + [arguments.model]
    check_outputs(reads, [arguments.out, arguments.cache_dir])
    if arguments.out:
        check_folder(arguments.out)
    sets = Sets()
    pairs, people = read_pairs(arguments.files, sets, arguments.strip)
    from text_metrics.meta_eval.agreement import evaluate
    from text_metrics.meta_eval.scores import score_sets

    texts = list(map(list, sets))
    scores = score_sets(texts, arguments.model, arguments.cache_dir, arguments.metric, not arguments.no_gruen)
    results = evaluate(scores, pairs, people)
    for name, joined in to_signature(arguments.strip).items():
        results["signatures"]["signature"] += f"|{name}:{joined}"
    print(show(results))
    if arguments.out:
        write_tables(arguments.out, results)
    return 0
