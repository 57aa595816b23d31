"""Score the answers of models, and of people, to the same questions.

    text-metrics probe report targets.jsonl "GPT-2=a.jsonl" "other people=b.jsonl" --out report.json
    text-metrics probe report targets.jsonl a.jsonl --setting matcher=wordnet

Targets are people's answers: released files of Commonsense Frame Completion or ProtoQA, or a reference of probeval on
each line. Answers are files that `text-metrics probe ask` wrote, or released files. Both sides are cleaned by one rule
first; with matcher=exact, neither is. Questions that only one side has, or to which all answers of a model are blank,
are left out and named; a blank answer beside others is wrong.
"""

import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from text_metrics import load
from text_metrics.core_api import Signature, count_answers, mean_estimate, normalize, parse_count, tied_ranks
from text_metrics.options import warn_of_marks
from text_metrics.probe.cleaning import cleaner
from text_metrics.probe.files import Report, Rows, read_predictions, strip_answers
from text_metrics.reporting.formats import estimate, number, p_value, percent
from text_metrics.statistics import holm, randomization_p
from text_metrics.texts import PROMPT, REASONING, SPECIAL, Marks, to_signature

_ALL = """\
KL(people ‖ model) in nats, mean over questions, with confidence intervals over questions. Coverage is the share of
people's answers whose cluster the model hits; wrong is the share of the model's answers that match no cluster; entropy
is of the smoothed distribution, people's in parentheses. The divergence depends on the number of answers."""
_AGAINST = """\
In {rounds} rounds, people's answers are split at random: one half are the gold answers, the other half serves as the
model. Of the model and these people, the larger sample is drawn down to the size of the smaller, question by question.
p: paired randomization test over questions, after Holm's correction for all models."""


def report(
    references: Rows,
    settings: dict[str, Any],
    answers: Mapping[str, Path],
    rounds: int = 20,
    strip: Sequence[str] = (),
    confidence: float = 0.95,
) -> Report:
    """Read the files of models' answers, name on stderr the questions that are left out, and compute the report."""
    parse_count(rounds, "--rounds")
    is_exact = settings.get("matcher") == "exact"
    prompts = {row["id"]: row["question"] for row in references}
    references, marks = strip_answers(references, strip)
    warn_of_marks(marks, what="answers of people")
    cleaners = {row["id"]: str if is_exact else cleaner(row["answers"]) for row in references}
    references = [_cleaned(row, cleaners) for row in references]
    files: dict[str, dict[str, Rows]] = {}
    stripped: dict[str, Marks] = {}
    for name, path in answers.items():
        questions, skipped = read_predictions(path, references, as_said=is_exact)
        questions, stripped[name] = strip_answers(questions, strip, prompts)
        warn_of_marks(stripped[name], (REASONING, PROMPT), f"different answers of {name}")
        still = Marks()
        files[name] = {}
        for question in questions:
            cleaned = _cleaned(question, cleaners)
            still += strip_answers([cleaned], ())[1]
            answered = cleaned["answers"]
            # A blank answer beside others is wrong.
            if any(normalize(answer["text"]) for answer in answered):
                files[name][question["id"]] = answered
        # Cleaning has removed special tokens at the end.
        warn_of_marks(still, (SPECIAL,), f"different answers of {name}")
        if not files[name]:
            raise ValueError(f"{name}: none of its {len(questions)} questions has an answer that is not blank.")
        skipped["missing"] = [row["id"] for row in references if row["id"] not in files[name]]
        for kind, ids in skipped.items():
            if ids:
                print(f"{name}: {kind}: {', '.join(ids)}", file=sys.stderr)
    rows = []
    # Each answer is encoded once.
    with tempfile.TemporaryDirectory(prefix="text_metrics") as folder:
        compute = partial(load("probeval").compute, **({"cache_dir": folder} | settings))
        for name, by_question in files.items():
            gold = [row for row in references if row["id"] in by_question]
            given = [{"answers": by_question[row["id"]]} for row in gold]
            result = compute(predictions=given, references=gold, confidence=confidence)
            if strip:
                signed = Signature.parse(result["signature"]).merge(**to_signature(strip))
                result |= {"signature": str(signed), "stripped": stripped[name].counts(strip)}
            counts = [count_answers(question["answers"]) for question in given]
            compared = against_people(compute, counts, gold, rounds, confidence)
            row = {"name": name, "questions": [row["id"] for row in gold]}
            rows.append(row | result | {"against_people": compared})
    # The first of equal scores comes first.
    ranks = tied_ranks([row["probeval"] for row in rows])
    rows = [rows[i] for i in np.argsort(ranks, kind="stable")]
    adjusted = holm([row["against_people"]["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        row["against_people"]["p_holm"] = p
    numbers = {"rounds": rounds, "rows": rows, "signatures": [row["signature"] for row in rows]}
    return numbers, _sections(rows, rounds)


def _cleaned(question: dict[str, Any], cleaners: Mapping[str, Callable[[str], str]]) -> dict[str, Any]:
    clean = cleaners[question["id"]]
    return question | {"answers": [answer | {"text": clean(answer["text"])} for answer in question["answers"]]}


def draw(counts: Counter[str], size: int, rng: np.random.Generator) -> dict[str, int]:
    """Draw a sample of answers without replacement; all of them if there are no more. Counts are rounded."""
    texts = sorted(counts)
    times = [round(counts[text]) for text in texts]
    if sum(times) > size:
        times = rng.multivariate_hypergeometric(times, size).tolist()
    return {text: n for text, n in zip(texts, times, strict=True) if n}


def halve(reference: dict[str, Any], rng: np.random.Generator) -> tuple[dict[str, Any], Counter[str]]:
    """Split people's answers at random: a reference with half of them, and the counts of the others, both rounded."""
    counts = [round(answer["count"]) for answer in reference["answers"]]
    drawn = rng.multivariate_hypergeometric(counts, (sum(counts) + 1) // 2).tolist()
    half = []
    rest = Counter[str]()
    for answer, n, n_drawn in zip(reference["answers"], counts, drawn, strict=True):
        if n_drawn:
            half.append(answer | {"count": n_drawn})
        rest[answer["text"]] += n - n_drawn
    return {"answers": half}, rest


def against_people(
    metric: Any, answers: list[Counter[str]], references: list[dict[str, Any]], rounds: int, level: float
) -> dict[str, Any]:
    """Compare a model's answers with people's, a question each, at the same number of answers, as `_AGAINST` says.

    `metric` is `compute` of probeval, with its settings. Returns a dict: the mean divergences of the model, "own", and
    of "people"; their "difference", with an "interval", and the "p" of a paired randomization test over questions.
    """
    # All models have the same splits.
    splits, draws = np.random.default_rng(0).spawn(2)
    samples = []
    gold = []
    for counts, reference in zip(answers, references, strict=True):
        for _ in range(rounds):
            half, people = halve(reference, splits)
            size = round(min(counts.total(), people.total()))
            samples += [{"answers": draw(side, size, draws)} for side in (counts, people)]
            gold += [half, half]
    scores = metric(predictions=samples, references=gold)["scores"]
    model_scores, people_scores = np.reshape(scores, (-1, rounds, 2)).mean(axis=1).T
    differences = model_scores - people_scores
    return {
        "own": float(model_scores.mean()),
        "people": float(people_scores.mean()),
        "difference": float(differences.mean()),
        "interval": mean_estimate(differences).interval(level),
        "p": randomization_p(differences),
    }


def _sections(rows: Rows, rounds: int) -> list[tuple[str, str, Any]]:
    scored: dict[str, list[str]] = defaultdict(list)
    compared: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        entropies = row["distribution_entropy"]
        scored["answers of"].append(row["name"])
        scored["questions"].append(str(len(row["questions"])))
        scored["answers to each"].append(f"{min(row['n_answers'])}–{max(row['n_answers'])}")
        scored["KL"].append(estimate(row["probeval"], row["confidence_interval"], 3))
        scored["coverage"].append(percent(row["coverage"]))
        scored["wrong"].append(percent(row["wrong_rate"]))
        scored["entropy"].append(f"{number(entropies['model'], 2)} ({number(entropies['gold'], 2)})")
        against = row["against_people"]
        compared["answers of"].append(row["name"])
        compared["KL"].append(number(against["own"], 3))
        compared["KL of people"].append(number(against["people"], 3))
        compared["difference"].append(estimate(against["difference"], against["interval"], 3))
        compared["p"].append(p_value(against["p_holm"]))
    return [
        ("All answers", _ALL, scored),
        ("Against people", _AGAINST.format(rounds=rounds), compared),
    ]
