"""Which diversity metric to believe: the meta-evaluation of arXiv 2506.00514, for any metric and any judged pairs.

Each metric is an annotator who says which of two sets of texts is the more diverse. Its accuracy is the share of pairs
on which it says what the judge says.

    python scripts/meta_eval.py                                 the released pairs under $METRICS_TEST_DATA
    python scripts/meta_eval.py mine.jsonl --metric my/metric   pairs and a metric of your own
    python scripts/meta_eval.py --parity                        ties go to set 1, as in the paper; else they count half
    python scripts/meta_eval.py --model princeton-nlp/sup-simcse-roberta-large
    python scripts/meta_eval.py --markdown report.md --json report.json --html report.html

A pair is a JSON object on a line of its own: `set1` and `set2`, lists of as many texts; the judge's verdict,
`llm_diversity` (0: set 1 is the more diverse, 1: set 2, 2: neither) or its scores, `Diversity_Set1` and
`Diversity_Set2`, which are vague if less than 0.5 apart; and, if known, `set1_label` and `set2_label`, how the sets
were made, and `src`, what they are about. Vague pairs are left out. `scripts/judge_diversity.py` writes such files.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import evaluate
import numpy as np
from sklearn.metrics import cohen_kappa_score

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics._core.core_confidence import confidence_interval  # noqa: E402

from metrics._core.core_encoder import DEFAULT_MODEL, PRECISIONS, Encoded, encode  # noqa: E402
from scripts import _meta_report  # noqa: E402
from scripts._files import read_objects, read_texts, read_topic, write_text  # noqa: E402
from scripts._statistics import randomization_p  # noqa: E402

VAGUE = 0.5  # the paper leaves out pairs whose judge scores are less than this apart
LEVEL = 0.95
# Scores so near to each other differ by rounding.
_TIE = 1e-9
# How the paper's sets of low quality were made.
_LOW_QUALITY = {"nonsensical", "shuffle", "shuffled", "noun_shuffle", "random_shuffle"}
_MIN_QUALITY = 0.5  # halfway; nothing was tried
JUDGE = "the judge"


class Pairs(NamedTuple):
    """Judged pairs of sets.

    sets : the distinct sets
    first, second : ndarrays of shape (n,), indices of the sets of each pair
    verdicts : ndarray of shape (n,): 0 where the judge calls the first more diverse, 1 where the second
    data : ndarray of shape (n,), the name of the data set
    parts : ndarray of shape (n,), "high" or "low" quality, or ""
    concepts : ndarray of shape (n,), int: pairs about the same thing have the same number
    labels : for each label, the indices of the sets that bear it
    left_out : how many vague pairs there were
    """

    sets: list[list[str]]
    first: np.ndarray
    second: np.ndarray
    verdicts: np.ndarray
    data: np.ndarray
    parts: np.ndarray
    concepts: np.ndarray
    labels: dict[str, list[int]]
    left_out: int


class Row(NamedTuple):
    """A metric in the table.

    scores : ndarray of shape (number of sets,)
    sign : 1 if higher is more diverse, -1 if lower is
    signature : the settings that decide the scores
    original : the scores with the quirks of the paper's code, where it has any
    """

    name: str
    scores: np.ndarray
    sign: int
    signature: str
    original: np.ndarray | None = None


# Pairs.


def read_pairs(paths: list[Path]) -> Pairs:
    """Read pairs from files of JSON lines; a file named x_high or x_low belongs to the data set x."""
    sets: dict[tuple[str, ...], int] = {}
    concepts: dict[Any, int] = {}
    labels: dict[str, dict[int, None]] = {}
    rows: list[tuple[int, int, int, str, str, int]] = []
    left_out = 0
    for path in paths:
        stem, _, suffix = path.stem.rpartition("_")
        named_part = suffix if suffix in ("high", "low") else ""
        for where, record in read_objects(path):
            members = [read_texts(record, key, where) for key in ("set1", "set2")]
            if len(members[0]) != len(members[1]):
                raise ValueError(
                    f"{where}: set1 and set2 must have as many texts. Got {len(members[0])} and {len(members[1])}."
                )
            verdict = read_verdict(record, where)
            if verdict is None:
                left_out += 1
                continue
            indices = [sets.setdefault(tuple(texts), len(sets)) for texts in members]
            own = [str(record[key]) for key in ("set1_label", "set2_label") if record.get(key) is not None]
            for label, index in zip(own, indices, strict=False):
                labels.setdefault(label, {})[index] = None
            part = named_part or (("low" if _LOW_QUALITY & set(own) else "high") if own else "")
            about = read_topic(record) or len(rows)
            concept = concepts.setdefault(about, len(concepts))
            rows.append((indices[0], indices[1], verdict, stem if named_part else path.stem, part, concept))
    if not rows:
        raise ValueError(f"There is no pair left to judge by: all {left_out} are vague.")
    first, second, verdicts, data, parts, numbers = (np.array(column) for column in zip(*rows, strict=True))
    by_label = {label: list(found) for label, found in labels.items()}
    return Pairs([list(texts) for texts in sets], first, second, verdicts, data, parts, numbers, by_label, left_out)


def read_verdict(record: dict[str, Any], where: str) -> int | None:
    """Read which set the judge calls more diverse: 0, 1, or None where the pair is vague."""
    if "llm_diversity" in record:
        verdict = record["llm_diversity"]
        if isinstance(verdict, bool) or verdict not in (0, 1, 2):
            raise ValueError(f"{where}: llm_diversity must be 0, 1 or 2. Got {verdict!r}.")
        return None if verdict == 2 else int(verdict)
    first, second = record.get("Diversity_Set1"), record.get("Diversity_Set2")
    if first is None or second is None:
        raise ValueError(f"{where} has no verdict: neither llm_diversity nor Diversity_Set1 and Diversity_Set2.")
    if not all(isinstance(score, (int, float)) and np.isfinite(score) for score in (first, second)):
        raise ValueError(f"{where}: Diversity_Set1 and Diversity_Set2 must be numbers. Got {first!r} and {second!r}.")
    difference = first - second
    # 3.4 - 2.9 is a little less than 0.5 in binary.
    return None if abs(difference) < VAGUE - _TIE else int(difference < 0)


# Metrics: one call of a module serves all the rows that it can give.


def form_rows(sets: list[list[str]]) -> Iterator[Row]:
    """Score n-gram overlap, Distinct and Entropy."""
    result = module("self_bleu").compute(predictions=sets, max_order=4, details=True)
    for name, key, sign in (
        ("self-BLEU-3", "self_bleu_3", -1),
        ("self-BLEU-4", "self_bleu_4", -1),
        ("Distinct-4", "distinct_4", 1),
        ("Entropy-2", "entropy_2", 1),
    ):
        scores = column([own[key] for own in result["details"]])
        original = None
        if name == "Distinct-4":
            # The original adds 1e-10 to the number of n-grams: of two sets without a repeat, the longer one wins.
            totals = np.array([sum(max(len(text.split()) - 3, 0) for text in members) for members in sets])
            original = scores * totals / (totals + 1e-10)
        yield Row(name, scores, sign, result["signature"], original)


def ngram_rows(sets: list[list[str]]) -> Iterator[Row]:
    """Score Vendi on n-grams."""
    result = module("vendi_embed").compute(predictions=sets, q=[0.5, 1, "inf"], kernel="ngram", details=True)
    for order, shown in (("0.5", "0.5"), ("1", "1"), ("inf", "∞")):
        scores = column([own["by_order"][order] for own in result["details"]])
        yield Row(f"VS-ngram-{shown}", scores, 1, result["signature"])


def embedding_rows(sets: list[list[str]], encoded: Encoded) -> Iterator[Row]:
    """Score distances and Vendi on embeddings."""
    given = {"predictions": sets, "embeddings": encoded.embeddings, "details": True}
    result = module("chamfer_diversity").compute(**given)
    signature = with_model(result, encoded)
    similarity = column([1 - own["mean_pairwise_distance"] for own in result["details"]])
    yield Row("self-CosSim", similarity, -1, signature)
    yield Row("Chamfer", column(result["scores"]), 1, signature)
    result = module("vendi_embed").compute(**given, q=[0.5, 1, "inf"])
    for order, shown in (("0.5", "0.5"), ("1", "1"), ("inf", "∞")):
        scores = column([own["by_order"][order] for own in result["details"]])
        yield Row(f"VS-Embed-{shown}", scores, 1, with_model(result, encoded))


def quality_rows(sets: list[list[str]], encoded: Encoded) -> Iterator[Row]:
    """Score quality by `gruen` at its defaults, alone and with diversity."""
    texts = list(dict.fromkeys(text for members in sets for text in members))
    gruen = module("gruen").compute(predictions=texts)
    rated = dict(zip(texts, gruen["scores"], strict=True))
    quality = [[rated[text] for text in members] for members in sets]
    yield Row("GRUEN alone", np.array([np.mean(row) for row in quality]), 1, gruen["signature"])
    given = {"predictions": sets, "embeddings": encoded.embeddings, "quality": quality}
    rater = f"|quality:({gruen['signature']})"
    result = module("chamfer_diversity").compute(**given)
    yield Row("GRUEN × Chamfer", column(result["quality_scores"]), 1, with_model(result, encoded) + rater)
    result = module("vendi_embed").compute(**given, q=0.5)
    yield Row("GRUEN × VS-Embed-0.5", column(result["quality_scores"]), 1, with_model(result, encoded) + rater)
    result = module("vendi_embed").compute(**given, q=0.5, min_quality=_MIN_QUALITY)
    name = f"VS-Embed-0.5 of GRUEN ≥ {_MIN_QUALITY}"
    yield Row(name, column(result["scores"]), 1, with_model(result, encoded) + rater)


def with_model(result: dict[str, Any], encoded: Encoded) -> str:
    """Name the model in a signature: the module was handed its embeddings, and cannot know."""
    model = f"model:{encoded.identity}|precision:{encoded.precision}"
    return result["signature"].replace("embeddings:given", model)


def own_rows(path: str, direction: int, sets: list[list[str]]) -> list[Row]:
    """Score sets by any module of `evaluate`: all at once if it takes sets and gives `scores`, else one by one."""
    loaded = load_module(path)
    name = loaded.name
    with contextlib.suppress(Exception):  # what a stranger's module raises at sets of texts is not known
        result = loaded.compute(predictions=sets)
        if isinstance(result.get("scores"), list) and len(result["scores"]) == len(sets):
            return [Row(name, column(result["scores"]), direction, str(result.get("signature", path)))]
    # A call that failed may have left the module in the middle of its work.
    loaded = load_module(path)
    scores = []
    for members in sets:
        result = loaded.compute(predictions=members)
        numbers = {key: value for key, value in result.items() if isinstance(value, (int, float))}
        if name not in numbers and len(numbers) != 1:
            raise ValueError(f"it must give one number, or one named {name!r}. Got {', '.join(result) or 'nothing'}.")
        scores.append(numbers[name] if name in numbers else next(iter(numbers.values())))
    return [Row(name, column(scores), direction, str(result.get("signature", path)))]


def module(name: str) -> Any:
    """Load a metric of this repository."""
    return evaluate.load(str(ROOT / "metrics" / name))


def load_module(path: str) -> Any:
    """Load a module of `evaluate` by its path or its name on the Hub."""
    try:
        return evaluate.load(path)
    except Exception as error:  # many kinds, from the file system to the Hub's client
        raise ValueError(f"metric {path!r} cannot be loaded: {str(error).splitlines()[0]}") from error


def column(values: Sequence[float | None]) -> np.ndarray:
    """Take a number for each set, and make sure that it is one."""
    numbers = np.array(values, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"it gives no number for set {bad[0]} of {len(values)}. Got {values[bad[0]]!r}.")
    return numbers


def all_rows(
    pairs: Pairs, model: str, own: list[tuple[str, int]], precision: str | None = None
) -> tuple[list[Row], list[str]]:
    """Score all sets by all metrics, each text encoded once; a metric that fails is named, and the others stay."""
    sets = pairs.sets
    texts = [text for members in sets for text in members]
    encoded = encode(texts, model, precision=precision, progress=sys.stderr.isatty())
    groups: list[tuple[str, Callable[[], Iterable[Row]]]] = [
        ("self_bleu", lambda: form_rows(sets)),
        ("vendi_embed (n-grams)", lambda: ngram_rows(sets)),
        ("vendi_embed and chamfer_diversity", lambda: embedding_rows(sets, encoded)),
        ("gruen", lambda: quality_rows(sets, encoded)),
        *((path, partial(own_rows, path, direction, sets)) for path, direction in own),
    ]
    rows: list[Row] = []
    failures = []
    for name, score in groups:
        try:
            for row in score():
                taken = row.name in {other.name for other in rows}
                rows.append(row._replace(name=f"{row.name} ({name})") if taken else row)
        except Exception as error:  # a stranger's module may raise anything
            failures.append(f"{name}: {error}")
            print(f"{name} is left out: {error}", file=sys.stderr)
    return rows, failures


# Agreement.


def choices(row: Row, pairs: Pairs, parity: bool) -> np.ndarray:
    """Say which set of each pair a metric calls more diverse: 0, 1, or 0.5 for a tie; (n,)."""
    scores = row.sign * (row.original if parity and row.original is not None else row.scores)
    first, second = scores[pairs.first], scores[pairs.second]
    if parity:
        return (second > first).astype(float)
    tied = np.abs(first - second) <= _TIE * np.maximum(np.abs(first), np.abs(second))
    return np.where(tied, 0.5, second > first)


def cells(pairs: Pairs) -> dict[str, np.ndarray]:
    """Name the columns of the table: each data set, and its parts of high and low quality; masks (n,)."""
    found = {}
    for data in dict.fromkeys(pairs.data.tolist()):
        whole = pairs.data == data
        parts = [part for part in ("high", "low") if (whole & (pairs.parts == part)).any()]
        if len(parts) == 1 and (pairs.parts[whole] == parts[0]).all():
            found[f"{data}, {parts[0]}"] = whole
            continue
        found[f"{data}, all"] = whole
        found |= {f"{data}, {part}": whole & (pairs.parts == part) for part in parts}
    return found


def accuracies(chosen: dict[str, np.ndarray], pairs: Pairs, where: np.ndarray) -> dict[str, dict[str, Any]]:
    """Judge all metrics on some of the pairs.

    Pairs about the same thing share texts, so they are drawn, and change sides, together.

    Parameters
    ----------
    chosen : for each metric an ndarray of shape (n,), from `choices`
    where : ndarray of shape (n,), bool
    """
    _, numbers = np.unique(pairs.concepts[where], return_inverse=True)
    counts = np.bincount(numbers).astype(float)
    sums = {
        # An agreement counts 1, a tie a half.
        name: np.bincount(numbers, weights=1 - np.abs(own - pairs.verdicts)[where])
        for name, own in chosen.items()
    }
    best = max(sums, key=lambda name: float(sums[name].sum()))

    def share(own: np.ndarray, all_pairs: np.ndarray, axis: int) -> np.ndarray:
        return own.sum(axis=axis) / all_pairs.sum(axis=axis)

    return {
        name: {
            "accuracy": float(own.sum() / counts.sum()),
            "interval": confidence_interval(LEVEL, own, counts, statistic=share),
            "ties": int((chosen[name][where] == 0.5).sum()),
            "p_against_best": None if name == best else randomization_p(sums[best] - own),
        }
        for name, own in sums.items()
    }


def kappas(chosen: dict[str, np.ndarray]) -> list[list[float | None]]:
    """Cohen's kappa of all pairs of annotators, a tie being a verdict of its own; None where chance explains all."""
    names = list(chosen)
    table: list[list[float | None]] = [[1.0] * len(names) for _ in names]
    for i, j in itertools.combinations(range(len(names)), 2):
        first, second = ((2 * chosen[names[k]]).astype(int) for k in (i, j))
        alone = len(np.unique(np.concatenate([first, second]))) == 1
        table[i][j] = table[j][i] = None if alone else float(cohen_kappa_score(first, second))
    return table


def distributions(rows: list[Row], labels: dict[str, list[int]]) -> dict[str, dict[str, dict[str, float]]]:
    """Sum up the scores of the sets that bear each label: how many, mean, and quantiles as a box plot shows them."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        found[row.name] = {}
        for label, members in labels.items():
            scores = row.scores[members]
            low, lower, middle, upper, high = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
            found[row.name][label] = {
                "n": len(members),
                "mean": float(scores.mean()),
                "p5": low,
                "q1": lower,
                "median": middle,
                "q3": upper,
                "p95": high,
            }
    return found


def evaluate_metrics(pairs: Pairs, rows: list[Row], parity: bool) -> dict[str, Any]:
    """Hold all metrics against the judge.

    Returns
    -------
    dict, strictly valid JSON: `cells`, `metrics`, `kappa`, `distributions`
    """
    chosen = {row.name: choices(row, pairs, parity) for row in rows}
    found = {name: (where, accuracies(chosen, pairs, where)) for name, where in cells(pairs).items()}
    agreed = {row.name: choices(row, pairs, parity=True) == pairs.verdicts for row in rows}
    return {
        "cells": [{"name": name, "pairs": int(where.sum())} for name, (where, _) in found.items()],
        "metrics": [
            {
                "name": row.name,
                "more_diverse": "higher" if row.sign > 0 else "lower",
                "signature": row.signature,
                "cells": {name: own[row.name] for name, (_, own) in found.items()},
                "accuracy_by_parity": {
                    name: float(agreed[row.name][where].mean()) for name, (where, _) in found.items()
                },
            }
            for row in rows
        ],
        "kappa": {
            "names": [JUDGE, *chosen],
            "matrix": kappas({JUDGE: pairs.verdicts.astype(float), **chosen}),
        },
        "distributions": distributions(rows, pairs.labels),
    }


def main() -> int:
    """Run the command."""
    data = Path(os.environ.get("METRICS_TEST_DATA", "")) / "data" / "diversity_pairs"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="judged pairs; by default those under $METRICS_TEST_DATA")
    parser.add_argument("--parity", action="store_true", help="ties go to set 1, as in the paper; else they count half")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="sentence encoder, a folder or an id of the Hub")
    parser.add_argument("--precision", choices=PRECISIONS, help="of the sentence encoder")
    parser.add_argument("--metric", action="append", default=[], metavar="MODULE", help="path of a metric of your own")
    parser.add_argument(
        "--metric-lower", action="append", default=[], metavar="MODULE", help="the same, where lower is more diverse"
    )
    for form in ("markdown", "json", "html"):
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write the report as {form}")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="write the pictures as SVG, for the markdown")
    arguments = parser.parse_args()
    files = arguments.files or sorted(data.glob("*.jsonl"))
    if not files:
        parser.error("there are no pairs: name files, or set METRICS_TEST_DATA to the folder with the released ones")

    try:
        pairs = read_pairs(files)
        own = [(path, 1) for path in arguments.metric] + [(path, -1) for path in arguments.metric_lower]
        for path, _ in own:
            load_module(path)  # a wrong name is better found before the work than after
        rows, failures = all_rows(pairs, arguments.model, own, arguments.precision)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if not rows:
        return 1
    report = {
        "settings": {
            "files": [path.name for path in files],
            "left_out": pairs.left_out,
            "sets": len(pairs.sets),
            "ties": "go to set 1" if arguments.parity else "count half",
            "level": LEVEL,
            "model": arguments.model,
            "precision": arguments.precision,
            "failures": failures,
        },
        **evaluate_metrics(pairs, rows, arguments.parity),
    }
    print(_meta_report.terminal(report))
    if arguments.json:
        write_text(arguments.json, json.dumps(report, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if arguments.html:
        write_text(arguments.html, _meta_report.html(report))
    if arguments.markdown:
        write_text(arguments.markdown, _meta_report.markdown(report, arguments.markdown, arguments.pictures))
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
