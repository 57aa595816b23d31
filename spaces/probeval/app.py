"""Demo of probeval: the distribution of a model's answers to a question, compared with people's."""

import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from _kit import inputs, panels, plots, scoring, server, sets
from _kit.core import first_maximum
from _kit.page import Box, Drawn, Picture, Result, Space, build

probeval = scoring.load(__file__, "probeval")

LIMITS = inputs.Limits(sets=2, texts=200, text_characters=200, characters=3_000)
MOST_COUNTED = 100_000
# Up to this divergence, in nats, the model answers much as people do.
CLOSE = 0.1
# Answers of each side; fewer give no verdict.
LEAST = 20
# What the metric calls answers in no cluster.
WRONG = "wrong"
# Upper bounds on what is drawn.
MOST_CLUSTERS, MOST_CHIPS = 20, 12
SIDES = ("people", "model")
BOXES = (
    Box("People's answers", "One a line, with an optional count: kettle × 42", "kettle × 42\npot × 21\ncup", 6),
    Box("The model's answers", "Sampled many times for the same question.", "a kettle × 45\nsaucepan × 10", 4),
)
STEPS = (
    "Write people's answers to a question, one a line, with an optional count.",
    "Write a model's answers to it. Or click an example.",
    "Press Score.",
)
_COUNT = re.compile(r"(?=0*[1-9])[0-9]{1,9}")
# "pot*21", "pot: 21", "pot x 21" and "pot (21)"; "Xbox 360", "Netflix 4" and "4x4" are answers.
_NUMBER = r"([-+−]?[0-9][0-9.,]*)"
_COUNTED = re.compile(rf"(.*\S)(?:\s*[×*]\s*|\s+x\s*|:\s+|\t){_NUMBER}|(.*\S)\s*\({_NUMBER}\)")
# "pot, 21" is counted where each answer of its side has a count; "June 3, 1990" is an answer.
_AFTER_COMMA = re.compile(rf"(.*\S),\s+{_NUMBER}")


class Answers(NamedTuple):
    """The answers of people and of a model to a question: text and count of each."""

    people: list[tuple[str, int]]
    model: list[tuple[str, int]]


def rows_of(people: str, model: str) -> list[inputs.Row]:
    """Return a row for each line of the boxes."""
    lines = [(line, side) for side, box in zip(SIDES, (people, model), strict=True) for line in inputs.lines_of(box)]
    return [inputs.Row(line, side) for line, side in lines if line]


def group(rows: list[inputs.Row]) -> Answers:
    """Parse the answers of both sides, with their counts."""
    answers = Answers([], [])
    with_commas = {side for side in SIDES if all(has_count(row.text) for row in rows if row.set.lower() == side)}
    for i, row in enumerate(rows, 1):
        side = row.set.lower()
        if side not in SIDES:
            raise inputs.InputError(f"Row {i}: “set” must be people or model. Got “{row.set[:40]}”.")
        text, count = divide(row.text, side in with_commas)
        if not _COUNT.fullmatch(count):
            where = f"“{panels.shorten(row.text, 40)}” of {side}"
            raise inputs.InputError(f"{where}: a count must be an integer from 1 to 999,999,999. Got “{count[:40]}”.")
        answers[SIDES.index(side)].append((text, int(count)))
    return answers


def has_count(text: str) -> bool:
    """Tell whether an answer may have a count, in any form."""
    return bool(_COUNTED.fullmatch(text) or _AFTER_COMMA.fullmatch(text))


def divide(text: str, with_commas: bool) -> tuple[str, str]:
    """Divide what is written into the answer and its count, "1" if there is none."""
    found = _COUNTED.fullmatch(text) or (with_commas and _AFTER_COMMA.fullmatch(text))
    if not found:
        return text, "1"
    answer, count = filter(None, found.groups())
    return answer, count


def compute(answers: Answers) -> scoring.Scored:
    """Check the input and compute the metric."""
    for side, given in zip(SIDES, answers, strict=True):
        if not given:
            raise inputs.InputError(f"The answers of {side} are missing. Write at least one, or click an example.")
    inputs.check_texts(texts_of(answers.people + answers.model), LIMITS)
    total = total_of(answers.people + answers.model)
    if total > MOST_COUNTED:
        raise inputs.InputError(f"The counts are too large: {total:,} in total, the limit here is {MOST_COUNTED:,}.")
    texts = [texts_of(given) for given in answers]
    return scoring.compute(
        probeval,
        texts,
        predictions=[{"id": "0", "answers": counted(answers.model)}],
        references=[{"id": "0", "question": "", "answers": counted(answers.people)}],
    )


def texts_of(answers: list[tuple[str, int]]) -> list[str]:
    """Return the texts of answers, without their counts."""
    return [text for text, _ in answers]


def counted(answers: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return answers with their counts, as arguments of `compute`."""
    return [{"text": text, "count": count} for text, count in answers]


def total_of(answers: list[tuple[str, int]]) -> int:
    """Return how many answers there are, by their counts."""
    return sum(count for _, count in answers)


def score(rows: list[inputs.Row]) -> Result:
    """Score a model, and draw the shares of the answers in each cluster."""
    answers = group(rows)
    scored = compute(answers)
    result = scored.result
    (detail,) = result["details"]
    names = {cluster["cluster"]: cluster["answers"][0]["text"] for cluster in detail["clusters"]}
    names[WRONG] = "wrong: in no cluster"
    table = []
    for who, key in zip(SIDES, ("gold_assignments", "assignments"), strict=True):
        table += [(who, row["text"], row["count"], names[closest(row)]) for row in detail[key]]
    notes, is_enough = cautions(answers)
    return Result(
        scored,
        answers._asdict(),
        pictures=cluster_pictures(detail, names),
        details=pd.DataFrame(table, columns=["Who", "Answer", "Count", "Cluster"]),
        cards=[card(result, detail, scored.is_read and is_enough)],
        verdict="" if scored.is_read else scoring.NOT_READ,
        facts=facts_of(result),
        notes=notes,
    )


def cluster_pictures(detail: dict[str, Any], names: dict[str, str]) -> list[Drawn]:
    """Draw the shares of both sides in the largest clusters, and list their answers; `names` are those of clusters."""
    people = shares_of(detail["gold_assignments"], names)
    model = shares_of(detail["assignments"], names)
    # Wrong answers are always shown, and come last.
    ranked = sorted(names, key=lambda label: (label != WRONG, -max(people[label], model[label])))
    largest = set(ranked[:MOST_CLUSTERS])
    labels = [label for label in names if label in largest]
    cut = sets.first_of(len(labels), len(names), "clusters").replace("first", "largest")
    groups = []
    hovers = []
    for label in labels:
        by_people = members_of(detail["gold_assignments"], label)
        by_model = members_of(detail["assignments"], label)
        groups.append((names[label], [("People", by_people, 0), ("Model", by_model, 1)]))
        hovers.append(", ".join(by_people) or names[label])
    values = {"People": [people[label] for label in labels], "Model": [model[label] for label in labels]}
    bars = plots.bars(values, [names[label] for label in labels], hovers, "share of the answers")
    listed = panels.render("groups", groups, MOST_CHIPS)
    return [
        Drawn(bars, f"Of the answers in each cluster, named by its most common answer.{cut}"),
        Drawn(listed, f"Each answer is listed where it belongs the most.{cut}"),
    ]


def facts_of(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the shares of wrong and of covered answers, and the number of clusters."""
    return [
        (f"{result['wrong_rate']:.0%}", "Wrong", "of the model's answers match no cluster."),
        (f"{result['coverage']:.0%}", "Covered", "of people's answers are in a cluster that the model matches."),
        (f"{result['n_clusters']:.3g}", "Clusters", "of people's answers."),
    ]


def shares_of(assignments: list[dict[str, Any]], labels: dict[str, str]) -> dict[str, float]:
    """Return the share of the answers in each cluster, as counted, without smoothing."""
    counts = dict.fromkeys(labels, 0.0)
    for row in assignments:
        for label, weight in row["clusters"].items():
            counts[label] += row["count"] * weight
    total = sum(counts.values()) or 1.0
    return {label: count / total for label, count in counts.items()}


def closest(assignment: dict[str, Any]) -> str:
    """Return the cluster to which an answer belongs the most."""
    weights = assignment["clusters"]
    return list(weights)[int(first_maximum(list(weights.values())))]


def members_of(assignments: list[dict[str, Any]], label: str) -> list[str]:
    """Return the answers that belong the most to a cluster, with their counts, the most common first."""
    rows = sorted((row for row in assignments if closest(row) == label), key=lambda row: -row["count"])
    return [f"{row['text']} × {row['count']:g}" for row in rows]


def cautions(answers: Answers) -> tuple[list[str], bool]:
    """Return what to know about the numbers of answers, and whether they suffice for a verdict."""
    n_people = total_of(answers.people)
    n_model = total_of(answers.model)
    if min(n_people, n_model) >= LEAST:
        return [], True
    return [f"No verdict: each side needs {LEAST} answers. People gave {n_people:,}, the model {n_model:,}."], False


def card(result: dict[str, Any], detail: dict[str, Any], is_judged: bool) -> panels.Card:
    """Return the card of the divergence, in nats."""
    value = result["probeval"]
    largest = largest_divergence(detail)
    even = even_divergence(detail)
    ends = ("0: as people", f"{largest:.2f}: none of their answers")
    if not is_judged:
        return panels.Card("", "", value, "nats apart", ends=ends)
    headline = headline_of(value, even, largest, result["wrong_rate"])
    beside = f"As many answers, spread evenly over people's clusters, are {even:.2f} apart."
    return panels.Card("", headline, value, "nats apart", beside, value / largest, even / largest, ends)


def headline_of(value: float, even: float, largest: float, wrong_rate: float) -> str:
    """Return the interpretation of a divergence, beside that of answers without preference and of wrong answers."""
    if value <= CLOSE:
        return "The model answers much as people do."
    if wrong_rate > 0.5:
        return "Most of the model's answers are none of people's."
    if value >= largest / 2:
        return "The model hardly gives the answers that people give."
    if value <= even:
        return "The model answers somewhat as people do."
    return "The model has other favourites than people."


def largest_divergence(detail: dict[str, Any]) -> float:
    """Return the divergence if none of the model's answers matched a cluster."""
    return divergence(detail, {WRONG: detail["n_answers"]})


def even_divergence(detail: dict[str, Any]) -> float:
    """Return the divergence if the model's answers were spread evenly over people's clusters."""
    clusters = [cluster["cluster"] for cluster in detail["clusters"]]
    return divergence(detail, dict.fromkeys(clusters, detail["n_answers"] / len(clusters)))


def divergence(detail: dict[str, Any], answers: dict[str, float]) -> float:
    """Return the divergence of answers in clusters from people's, smoothed as the metric does."""
    counts = dict(detail["smoothing"]["model"])
    for label, count in answers.items():
        counts[label] += count
    total = sum(counts.values())
    return sum(p * math.log(p * total / counts[label]) for label, p in detail["gold_distribution"].items() if p)


def api(people: list[str], model: list[str]) -> dict[str, Any]:
    """Compute the divergence of a model's distribution of answers to one question from people's, in nats.

    Args:
        people: people's English answers to the question; repeats are counts.
        model: the model's answers, sampled many times; repeats are counts.

    Returns
    -------
        The result of the metric: "probeval", 0 if the distributions are the same; "wrong_rate"; "coverage"; "details"
        with the clusters; "warnings"; and the "signature" to report with the score.

    """
    for name, texts in zip(SIDES, (people, model), strict=True):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise inputs.InputError(f"{name} must be a list of texts.")
    return compute(Answers([(text, 1) for text in people], [(text, 1) for text in model])).result


SPACE = Space(
    metric=probeval,
    title="Does a model answer as people do?",
    lead="A question of common sense has many right answers, some more common than others. ProbEval compares the "
    "distribution of a model's answers with that of people's. English only.",
    limits=LIMITS,
    boxes=BOXES,
    examples=Path(__file__).with_name("examples.json"),
    steps=STEPS,
    rows=rows_of,
    score=score,
    pictures=(Picture("Shares by cluster", is_wide=True), Picture("The clusters", "html", is_wide=True)),
    api=api,
    sample=Path(__file__).with_name("sample.csv"),
    settings={},
)

demo = build(SPACE)

if __name__ == "__main__":
    compute(Answers([("warm", 1)], [("up", 1)]))
    server.serve(demo, SPACE.limits.file_bytes)
