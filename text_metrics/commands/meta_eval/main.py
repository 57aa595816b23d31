"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric names the more diverse of two sets of texts. Its accuracy is the share of pairs on which it agrees with the
judge; its balanced accuracy is the mean of the accuracies over the pairs of each verdict.

    text-metrics meta-eval pairs.jsonl --metric my/metric    pairs, and a metric of your own beside ours
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl ratings of quality from a file
    text-metrics meta-eval pairs.jsonl --parity              ties go to set 1, as in the paper; else they count half
    text-metrics meta-eval pairs.jsonl --model princeton-nlp/sup-simcse-roberta-large --pooling pooler
    text-metrics meta-eval pairs.jsonl --markdown report.md --json report.json --html report.html

Each line is a pair, a JSON object with `set1` and `set2`, lists of equal length; the judge's verdict, `llm_diversity`
(0: set 1 is the more diverse, 1: set 2, 2: neither), or its scores, `Diversity_Set1` and `Diversity_Set2`; and, if
known, `set1_label` and `set2_label`, how the sets were made, `src`, their subject, and `Quality_Set1` and
`Quality_Set2`. Pairs whose scores differ by less than 0.5 are vague and left out. `text-metrics judge-diversity` writes
such files. Pairs with `human_diversity`, a list of people's verdicts, are reported separately. `--sets` names a folder
with a folder for each generator; in its `original.jsonl`, and in the files of corrupted or paraphrased sets, each line
has `src` and `sentences`.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.meta_eval import pages, report
from text_metrics.commands.meta_eval.agreement import LEVEL, people_agreement
from text_metrics.commands.meta_eval.evaluation import (
    distributions,
    evaluate_kinds,
    evaluate_metrics,
    labels_of_kinds,
)
from text_metrics.commands.meta_eval.generated_sets import read_kinds
from text_metrics.commands.meta_eval.pairs import Sets, has_people, read_pairs, read_people
from text_metrics.commands.meta_eval.raters import rate_raters, shortness_rater
from text_metrics.commands.meta_eval.rows import POOLINGS, Scoring, all_rows
from text_metrics.commands.shared.command import command, drawn, make_parser
from text_metrics.commands.shared.files import write_jsonl, write_text
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.commands.shared.pages import picture_files
from text_metrics.commands.shared.settings import load_metric
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, PRECISIONS

CONCEPTS = 300


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="judged pairs")
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="sets of different kinds about the same concepts")
    parser.add_argument("--concepts", type=int, default=CONCEPTS, help="number to draw for each generator")
    parser.add_argument("--parity", action="store_true", help="ties go to set 1, as in the paper; else they count half")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder, a folder or an id of the Hub")
    parser.add_argument("--pooling", choices=POOLINGS, help="of a bare transformer; SimCSE's is pooler")
    parser.add_argument("--precision", choices=PRECISIONS, help="of the sentence encoder")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="cache of embeddings")
    parser.add_argument("--metric", action="append", default=[], metavar="MODULE", help="path of a metric of your own")
    parser.add_argument(
        "--metric-lower", action="append", default=[], metavar="MODULE", help="the same, where lower is more diverse"
    )
    parser.add_argument(
        "--quality", action="append", default=[], type=Path, metavar="FILE", help="ratings: text and quality, in [0, 1]"
    )
    parser.add_argument("--no-gruen", action="store_true", help="leave out what is rated by gruen")
    parser.add_argument("--list-texts", type=Path, metavar="FILE", help="write the texts to be rated, and stop")
    for form, kind in (("markdown", Path), ("json", Path), ("html", drawn)):
        parser.add_argument(f"--{form}", type=kind, metavar="FILE", help=f"write the report as {form}")
    parser.add_argument("--pictures", type=drawn, metavar="FOLDER", help="write the pictures as SVG, for the markdown")
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
    scoring = Scoring(
        model=arguments.model,
        precision=arguments.precision,
        pooling=arguments.pooling,
        cache_dir=arguments.cache,
        metrics=metrics,
        ratings=arguments.quality,
        gruen=not arguments.no_gruen,
    )
    rows, raters, failures = all_rows(texts, scoring)
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
            "pooling": arguments.pooling,
            "precision": arguments.precision,
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
    results["raters"] = rate_raters([*raters, shortness_rater(texts)], pairs, kinds)
    return results


def write_report(arguments: argparse.Namespace, claims: report.Claims = report.NO_CLAIMS) -> int:
    """Evaluate, print the report in short, and write it in the requested forms; returns the exit code."""
    modules = [arguments.model, *arguments.metric, *arguments.metric_lower]
    reads = [*arguments.files, arguments.sets, *arguments.quality]
    reads += [path for name in modules for path in module_files(name)]
    reports = [arguments.markdown, arguments.json, arguments.html, arguments.list_texts]
    pictures = picture_files(arguments.pictures, pages.PICTURES)
    check_outputs(reads, [*reports, arguments.cache, arguments.pictures, *pictures])
    results = evaluate_all(arguments)
    if results is None:
        return 0 if arguments.list_texts else 1
    print(report.terminal(results, claims))
    if arguments.json:
        write_text(arguments.json, json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if arguments.html:
        write_text(arguments.html, pages.html(results, claims))
    if arguments.markdown:
        write_text(arguments.markdown, pages.markdown(results, arguments.markdown, arguments.pictures, claims))
    return 1 if results["settings"]["failures"] else 0


@command
def main() -> int:
    """Run the command."""
    return write_report(parse_arguments())
