"""Demo of probeval: the distribution of a model's answers to a question, compared with people's."""

import math
import re
from typing import Any

import pandas as pd
from _kit import inputs, panels, plots, scoring, server, sets
from _kit.core import first_maximum
from _kit.page import Drawn, Picture, Result, Space, build, text_box

probeval = scoring.load(__file__, "probeval")

LIMITS = inputs.Limits(sets=2, texts=200, text_characters=200, characters=3_000)
MOST_COUNTED = 100_000
# Up to this divergence, in nats, the model answers much as people do.
CLOSE = 0.1
# Answers of each side; fewer give no verdict.
LEAST = 20
# Label of answers in no cluster.
WRONG = "wrong"
# Clusters that are drawn and listed.
MOST_CLUSTERS = 20
SIDES = ("people", "model")
_HINT = "One a line, with an optional count: kettle × 42"
BOXES = (
    text_box("People's answers", "kettle × 42\npot × 21\ncup", 6, _HINT),
    text_box("The model's answers", "a kettle × 45\nsaucepan × 10", 4, "Sampled many times for the same question."),
)
_COUNT = re.compile(r"(?=0*[1-9])[0-9]{1,9}")
# "pot*21", "pot: 21", "pot x 21" and "pot (21)"; "Xbox 360", "Netflix 4" and "4x4" are answers.
_NUMBER = r"([-+−]?[0-9][0-9.,]*)"
_COUNTED = re.compile(rf"(.*\S)(?:\s*[×*]\s*|\s+x\s*|:\s+|\t){_NUMBER}|(.*\S)\s*\({_NUMBER}\)")
# "pot, 21" is counted where each answer of its side has a count; "June 3, 1990" is an answer.
_AFTER_COMMA = re.compile(rf"(.*\S),\s+{_NUMBER}")


# The answers of each side, each with "text" and "count", as `compute` takes them.
Answers = dict[str, list[dict[str, Any]]]


def rows_of(*boxes: str) -> list[inputs.Row]:
    """Return a row for each line of the boxes."""
    rows = []
    for side, box in zip(SIDES, boxes, strict=True):
        rows += [inputs.Row(line, side) for line in inputs.lines_of(box) if line]
    return rows


def group(rows: list[inputs.Row]) -> Answers:
    """Parse the answers of both sides, with their counts."""
    written: dict[str, list[str]] = {side: [] for side in SIDES}
    for i, row in enumerate(rows, 1):
        side = row.set.lower()
        if side not in SIDES:
            raise inputs.InputError(f"Row {i}: “set” must be people or model. Got “{row.set[:40]}”.")
        written[side].append(row.text)
    answers: Answers = {}
    for side, texts in written.items():
        with_commas = all(_COUNTED.fullmatch(text) or _AFTER_COMMA.fullmatch(text) for text in texts)
        answers[side] = [parse(text, with_commas, side) for text in texts]
    return answers


def parse(written: str, with_commas: bool, side: str) -> dict[str, Any]:
    """Divide what is written into the answer and its count, 1 if there is none."""
    found = _COUNTED.fullmatch(written) or (with_commas and _AFTER_COMMA.fullmatch(written))
    if not found:
        return {"text": written, "count": 1}
    answer, count = filter(None, found.groups())
    if not _COUNT.fullmatch(count):
        where = f"“{panels.shorten(written, 40)}” of {side}"
        raise inputs.InputError(f"{where}: a count must be an integer from 1 to 999,999,999. Got “{count[:40]}”.")
    return {"text": answer, "count": int(count)}


def compute(answers: Answers) -> scoring.Scored:
    """Check the input and compute the metric."""
    texts = {side: [answer["text"] for answer in given] for side, given in answers.items()}
    for side, given in texts.items():
        if not given:
            raise inputs.InputError(f"The answers of {side} are missing. Write at least one, or click an example.")
    inputs.check_texts(texts["people"] + texts["model"], LIMITS)
    total = sum(map(total_of, answers.values()))
    if total > MOST_COUNTED:
        raise inputs.InputError(f"The counts are too large: {total:,} in total, the limit here is {MOST_COUNTED:,}.")
    return scoring.compute(
        probeval,
        list(texts.values()),
        predictions=[{"id": "0", "answers": answers["model"]}],
        references=[{"id": "0", "question": "", "answers": answers["people"]}],
    )


def total_of(answers: list[dict[str, Any]]) -> int:
    """Return how many answers there are, by their counts."""
    return sum(answer["count"] for answer in answers)


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
    n_people, n_model = map(total_of, answers.values())
    notes = []
    if min(n_people, n_model) < LEAST:
        notes = [f"No verdict: each side needs {LEAST} answers. People gave {n_people:,}, the model {n_model:,}."]
    return Result(
        scored,
        answers,
        pictures=cluster_pictures(detail, names),
        details=pd.DataFrame(table, columns=["Who", "Answer", "Count", "Cluster"]),
        cards=[card(result, detail, scored.is_read and not notes)],
        verdict="" if scored.is_read else scoring.NOT_READ,
        notes=notes,
    )


def cluster_pictures(detail: dict[str, Any], names: dict[str, str]) -> list[Drawn]:
    """Draw the shares of both sides in the largest clusters, and list their answers; `names` maps labels to names."""
    people = shares_of(detail["gold_assignments"], names)
    model = shares_of(detail["assignments"], names)
    # Wrong answers are always shown, and come last.
    ranked = sorted(names, key=lambda label: (label != WRONG, -max(people[label], model[label])))
    largest = set(ranked[:MOST_CLUSTERS])
    labels = [label for label in names if label in largest]
    groups = []
    hovers = []
    for label in labels:
        by_people = members_of(detail["gold_assignments"], label)
        by_model = members_of(detail["assignments"], label)
        groups.append((names[label], [("People", by_people, 0), ("Model", by_model, 1)]))
        hovers.append(", ".join(by_people) or names[label])
    values = {"People": [people[label] for label in labels], "Model": [model[label] for label in labels]}
    bars = plots.bars(values, [names[label] for label in labels], hovers, "share of the answers")
    cut = sets.first_of(len(labels), len(names), "clusters", "largest")
    return [
        Drawn(bars, f"Of the answers in each cluster, named by its most common answer.{cut}"),
        Drawn(panels.render("groups", groups), f"Each answer is listed where it belongs the most.{cut}"),
    ]


def facts_of(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the shares of wrong and of covered answers, and the number of clusters."""
    return [
        (f"{result['wrong_rate']:.0%}", "Wrong", "of the model's answers match no cluster."),
        (f"{result['coverage']:.0%}", "Covered", "of people's answers are matched."),
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


def card(result: dict[str, Any], detail: dict[str, Any], is_judged: bool) -> panels.Card:
    """Return the card of the divergence, in nats, with two yardsticks: only wrong answers, and an even spread."""
    value = result["probeval"]
    n = detail["n_answers"]
    clusters = [cluster["cluster"] for cluster in detail["clusters"]]
    largest = divergence(detail, {WRONG: n})
    even = divergence(detail, dict.fromkeys(clusters, n / len(clusters)))
    shown = panels.Card("", "", value, "nats apart", facts=facts_of(result))
    if not is_judged:
        return shown
    return shown._replace(
        headline=headline_of(value, even, largest, result["wrong_rate"]),
        meaning=f"As many answers, spread evenly over people's clusters, are {even:.2f} apart.",
        meter=value / largest,
        mark=even / largest,
        ends=("0: as people", f"{largest:.2f}: none of their answers"),
    )


def headline_of(value: float, even: float, largest: float, wrong_rate: float) -> str:
    """Interpret a divergence, given the divergences of an even spread and of wrong answers only."""
    if value <= CLOSE:
        return "The model answers much as people do."
    if wrong_rate > 0.5:
        return "Most of the model's answers are none of people's."
    if value >= largest / 2:
        return "The model hardly gives the answers that people give."
    if value <= even:
        return "The model answers somewhat as people do."
    return "The model has other favourites than people."


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
    answers: Answers = {}
    for side, texts in zip(SIDES, (people, model), strict=True):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise inputs.InputError(f"{side} must be a list of texts.")
        answers[side] = [{"text": text, "count": 1} for text in texts]
    return compute(answers).result


SPACE = Space(
    metric=probeval,
    title="Does a model answer as people do?",
    lead="A question of common sense has many right answers, some more common than others. ProbEval compares the "
    "distribution of a model's answers with that of people's. English only.",
    limits=LIMITS,
    boxes=BOXES,
    rows=rows_of,
    score=score,
    pictures=(Picture("Shares by cluster", is_wide=True), Picture("The clusters", is_html=True, is_wide=True)),
    api=api,
)

demo = build(SPACE)

if __name__ == "__main__":
    api(["warm"], ["up"])
    server.serve(demo, SPACE.limits.file_bytes)
