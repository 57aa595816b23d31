"""Evaluate diversity metrics as arXiv 2506.00514 does: any metric, on any judged pairs.

Each metric is an annotator that says which of two sets of texts is more diverse. Its accuracy is the share of pairs on
which it says what the judge says; its balanced accuracy is the mean of the accuracies of both verdicts.

    python scripts/meta_eval.py                                 the released data under $METRICS_TEST_DATA
    python scripts/meta_eval.py mine.jsonl --metric my/metric   pairs and a metric of your own
    python scripts/meta_eval.py mine.jsonl --quality mine.jsonl ratings of quality from anywhere
    python scripts/meta_eval.py --parity                        ties go to set 1, as in the paper; else they count half
    python scripts/meta_eval.py --model princeton-nlp/sup-simcse-roberta-large --pooling pooler
    python scripts/meta_eval.py --markdown report.md --json report.json --html report.html

A pair is a JSON object on a line of its own: `set1` and `set2`, lists of as many texts; the judge's verdict,
`llm_diversity` (0: set 1 is the more diverse, 1: set 2, 2: neither) or its scores, `Diversity_Set1` and
`Diversity_Set2`, which are vague if less than 0.5 apart; and, if known, `set1_label` and `set2_label`, how the sets
were made, `src`, what they are about, and `Quality_Set1` and `Quality_Set2`. Vague pairs are left out.
`scripts/judge_diversity.py` writes such files. Pairs with `human_diversity`, a list of people's verdicts, are reported
apart. `--sets` names a folder with a folder for each generator, in which `original.jsonl` and files of poorer kinds
hold `src` and `sentences` on each line.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics._core.core_models import DEFAULT_MODEL, PRECISIONS  # noqa: E402
from scripts._command import command, drawn  # noqa: E402
from scripts._files import read_text, write_jsonl, write_text  # noqa: E402
from scripts._meta_eval import pages, report  # noqa: E402
from scripts._meta_eval.agreement import LEVEL  # noqa: E402
from scripts._meta_eval.evaluation import (  # noqa: E402
    distributions,
    evaluate_kinds,
    evaluate_metrics,
    labels_of_kinds,
)
from scripts._meta_eval.kinds import read_kinds  # noqa: E402
from scripts._meta_eval.pairs import Sets, has_people, read_pairs, read_people  # noqa: E402
from scripts._meta_eval.people import people_agreement  # noqa: E402
from scripts._meta_eval.pooling import POOLINGS  # noqa: E402
from scripts._meta_eval.raters import rate_raters, shortness_rater  # noqa: E402
from scripts._meta_eval.rows import Scoring, all_rows, load_module  # noqa: E402
from scripts._outputs import check_outputs, module_files  # noqa: E402
from scripts._pages import picture_files  # noqa: E402

CONCEPTS = 300


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="judged pairs; by default those under $METRICS_TEST_DATA")
    parser.add_argument("--sets", type=Path, metavar="FOLDER", help="sets of different kinds about the same concepts")
    parser.add_argument("--concepts", type=int, default=CONCEPTS, help="how many to draw of each generator")
    parser.add_argument("--parity", action="store_true", help="ties go to set 1, as in the paper; else they count half")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder, a folder or an id of the Hub")
    parser.add_argument("--pooling", choices=POOLINGS, help="of a bare transformer; SimCSE's is pooler")
    parser.add_argument("--precision", choices=PRECISIONS, help="of the sentence encoder")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="where to keep embeddings between runs")
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
    parser.add_argument("--append", type=Path, metavar="FILE", help="a text to put at the end of the markdown")
    parser.add_argument("--pictures", type=drawn, metavar="FOLDER", help="write the pictures as SVG, for the markdown")
    arguments = parser.parse_args()
    data = Path(os.environ.get("METRICS_TEST_DATA", "")) / "data"
    if not arguments.files and not arguments.sets:
        arguments.files = sorted((data / "diversity_pairs").glob("*.jsonl"))
        arguments.sets = data / "diversity_sets" if (data / "diversity_sets").is_dir() else None
    if not arguments.files and not arguments.sets:
        parser.error("there are no pairs: name files, or set METRICS_TEST_DATA to the folder with the released ones")
    if arguments.concepts < 2:
        parser.error(f"--concepts must be at least 2. Got {arguments.concepts}.")
    return arguments


def evaluate_all(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Read, score and evaluate; None where only the texts were asked for, or nothing could be scored.

    Raises
    ------
    ValueError
        If a file, a model or a metric cannot be read.
    """
    sets = Sets()
    judged_by_people = [path for path in arguments.files if has_people(path)]
    pairs = read_pairs([path for path in arguments.files if path not in judged_by_people], sets)
    people = read_people(judged_by_people, sets)
    kinds = read_kinds(arguments.sets, arguments.concepts, sets) if arguments.sets else []
    texts = sets.texts()
    if arguments.list_texts:
        write_jsonl(arguments.list_texts, ({"text": text} for text in dict.fromkeys(t for own in texts for t in own)))
        return None
    own = [(path, 1) for path in arguments.metric] + [(path, -1) for path in arguments.metric_lower]
    for path, _ in own:
        load_module(path)  # a wrong name is better found before the work than after
    scoring = Scoring(
        model=arguments.model,
        precision=arguments.precision,
        pooling=arguments.pooling,
        cache_dir=arguments.cache,
        own=own,
        ratings=arguments.quality,
        gruen=not arguments.no_gruen,
    )
    rows, raters, failures = all_rows(texts, scoring)
    if not rows:
        return None
    found: dict[str, Any] = {
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
        found |= evaluate_metrics(pairs, rows, arguments.parity)
    if kinds:
        found["kinds"] = evaluate_kinds(kinds, rows)
        found["distributions"] = distributions(rows, labels_of_kinds(kinds))
    if people is not None:
        found["people"] = people_agreement(people, rows)
    found["raters"] = rate_raters([*raters, shortness_rater(texts)], pairs, kinds)
    return found


@command
def main() -> int:
    """Run the command."""
    arguments = parse_arguments()
    modules = [arguments.model, *arguments.metric, *arguments.metric_lower]
    reads = [*arguments.files, arguments.sets, *arguments.quality, arguments.append]
    reads += [path for name in modules for path in module_files(name)]
    reports = [arguments.markdown, arguments.json, arguments.html, arguments.list_texts]
    pictures = picture_files(arguments.pictures, pages.PICTURES)
    check_outputs(reads, [*reports, arguments.cache, arguments.pictures, *pictures])
    more = read_text(arguments.append) if arguments.append else ""
    found = evaluate_all(arguments)
    if found is None:
        return 0 if arguments.list_texts else 1
    print(report.terminal(found))
    if arguments.json:
        write_text(arguments.json, json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if arguments.html:
        write_text(arguments.html, pages.html(found))
    if arguments.markdown:
        text = pages.markdown(found, arguments.markdown, arguments.pictures)
        write_text(arguments.markdown, f"{text}\n{more}" if more else text)
    return 1 if found["settings"]["failures"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
