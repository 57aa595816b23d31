"""How the result of a question looks: shares and terms by cluster, the clusters, tables, and the answer."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ground
import two_models
from _kit import sets
from _kit.show import panels
from _kit.show.downloads import Table
from questions import WRONG, name_of, sides_of

# Upper bounds on what is drawn.
MOST_CLUSTERS = 20
MOST_CHIPS = 12
# Of the facts of a card, which is narrow.
_SHORT = ("in no cluster", "of people's answers")
# Smaller surpluses, in shares, and terms, in nats, are not named.
_LIKE_PEOPLE, _LARGE_TERM = 0.01, 0.005


def results_by_name(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the result of each model by its name on the page."""
    return {"Model 1": result, "Model 2": result["other"]} if "other" in result else {"Model": result}


def by_name(values: Mapping[str, dict[str, float]], labels: Sequence[str]) -> dict[str, list[float]]:
    """Return the values of these clusters for each name."""
    return {name: [value[label] for label in labels] for name, value in values.items()}


def people_shares(detail: dict[str, Any], names: dict[str, str]) -> dict[str, float]:
    """Return the share of people's answers in each cluster, as counted, without smoothing."""
    counts = {cluster["cluster"]: cluster["count"] for cluster in detail["clusters"]}
    return as_shares(dict.fromkeys(names, 0.0) | counts)


def model_shares(detail: dict[str, Any], names: dict[str, str]) -> dict[str, float]:
    """Return the share of a model's answers in each cluster, as counted, without smoothing."""
    counts = dict.fromkeys(names, 0.0)
    for assignment in detail["assignments"]:
        for label, weight in assignment["clusters"].items():
            counts[label] += assignment["count"] * weight
    return as_shares(counts)


def as_shares(counts: dict[str, float]) -> dict[str, float]:
    """Divide counts by their sum."""
    total = sum(counts.values()) or 1.0
    return {label: count / total for label, count in counts.items()}


def terms_of(detail: dict[str, Any]) -> dict[str, float]:
    """Return the terms of the divergence, by cluster."""
    return {
        label: (p * math.log(p / detail["model_distribution"][label]) if p else 0.0)
        for label, p in detail["gold_distribution"].items()
    }


def largest(names: dict[str, str], shares: Sequence[dict[str, float]]) -> list[str]:
    """Return the labels of the largest clusters, in the order of `names`; wrong answers are always among them."""
    ranked = sorted(names, key=lambda label: (label != WRONG, -max(share[label] for share in shares)))
    selected = set(ranked[:MOST_CLUSTERS])
    return [label for label in names if label in selected]


def scores_table(questions: list[dict[str, Any]], results: dict[str, dict[str, Any]]) -> Table | None:
    """Return the table of the scores of each question, if there are more than two."""
    if len(questions) < 3:
        return None
    owners = list(results) if len(results) > 1 else ["Model's"]
    units = [f"{who}: divergence in nats" for who in results] if len(results) > 1 else ["Divergence in nats"]
    rows = [
        [
            name_of(questions, i),
            *(result["scores"][i] for result in results.values()),
            *(sum(answer["count"] for answer in questions[i][side]) for side in sides_of(questions)),
        ]
        for i in range(len(questions))
    ]
    return Table(("Question", *units, "People's answers", *(f"{who} answers" for who in owners)), rows)


def surplus(who: str, names: dict[str, str], people: dict[str, float], model: dict[str, float]) -> str:
    """Describe the largest surplus of a model."""
    over = max(names, key=lambda label: model[label] - people[label])
    if model[over] - people[over] < _LIKE_PEOPLE:
        return f"{who} and people have nearly the same shares."
    if over == WRONG:
        return f"{who} exceeds people the most in answers that match no cluster."
    return f"{who} says “{panels.shorten(names[over], 40)}” more often than people."


def largest_term(who: str, names: dict[str, str], terms: dict[str, float]) -> str:
    """Name the cluster that adds the most to the divergence of a model."""
    worst = max(names, key=lambda label: terms[label])
    to = f" to that of {who.lower()}" if who else ""
    if terms[worst] <= _LARGE_TERM:
        return f"None adds much{to}." if who else "None is large."
    return f"“{panels.shorten(names[worst], 40)}” adds the most{to}."


def members_of(detail: dict[str, Any], label: str) -> list[dict[str, Any]]:
    """Return people's answers in a cluster, the most common first."""
    return next((cluster["answers"] for cluster in detail["clusters"] if cluster["cluster"] == label), [])


def closest(assignment: dict[str, Any]) -> list[str]:
    """Return the cluster to which an answer belongs the most, or several if they tie; none if most of it is wrong."""
    weights = dict(assignment["clusters"])
    if weights.pop(WRONG, 0.0) > 0.5 + 1e-9:
        return [WRONG]
    most = max(weights.values())
    return [label for label, weight in weights.items() if weight >= most - 1e-9]


def cluster_names(detail: dict[str, Any]) -> dict[str, str]:
    """Name each cluster by its most common answer; `wrong` comes last."""
    names = {cluster["cluster"]: cluster["answers"][0]["text"] for cluster in detail["clusters"]}
    return {**names, WRONG: "wrong: in no cluster"}


def clusters_panel(details: dict[str, dict[str, Any]], names: dict[str, str]) -> str:
    """Return the clusters with the answers of all sides."""
    first = next(iter(details.values()))
    blocks = []
    for label, name in names.items():
        sides = [("People", [(answer["text"], answer["count"]) for answer in members_of(first, label)], 0)]
        for series, (who, detail) in enumerate(details.items(), 1):
            said = [
                # A tie is split; the degrees of an answer in further clusters are not shown.
                (assignment["text"], round(assignment["count"] / len(closest(assignment)), 1))
                for assignment in detail["assignments"]
                if label in closest(assignment)
            ]
            sides.append((who, said, series))
        blocks.append((name, sides))
    return panels.groups(blocks, MOST_CHIPS)


def detail_rows(question: str, results: dict[str, dict[str, Any]], i: int) -> list[list[Any]]:
    """Return each answer to a question with its cluster."""
    details = {who: result["details"][i] for who, result in results.items()}
    first = next(iter(details.values()))
    names = cluster_names(first)
    rows = [
        [question, "people", answer["text"], answer["count"], names[cluster["cluster"]]]
        for cluster in first["clusters"]
        for answer in cluster["answers"]
    ]
    return rows + [
        [
            question,
            who.lower(),
            assignment["text"],
            assignment["count"],
            " or ".join(names[label] for label in closest(assignment)),
        ]
        for who, detail in details.items()
        for assignment in detail["assignments"]
    ]


def answer(result: dict[str, Any], signature: str) -> str:
    """Return the answer: for each model the divergence in nats, wrong answers and coverage, and which is closer."""
    results, n = results_by_name(result), len(result["scores"])
    grounds = [ground.of_result(of_model) for of_model in results.values()]
    gold = f"{result['distribution_entropy']['gold']:.2f}"
    clusters = (f"{result['n_clusters']:.3g}", "Clusters", "of people's answers.")
    notes = [
        (f"{name}. " if len(results) > 1 else "") + missing
        for (name, of_model), of_ground in zip(results.items(), grounds, strict=True)
        if not sets.unjudged("answers") and (missing := ground.missing(of_ground, of_model))
    ]
    if len(results) == 1:
        model = f"{result['distribution_entropy']['model']:.2f}"
        entropy = (f"{model} / {gold}", "Entropy", "model's and people's, in nats.")
        at_equal = ground.facts(grounds[0]) if grounds[0] is not None else []
        facts = panels.tiles([*facts_of(result), *at_equal, clusters, entropy])
        return panels.answer([card("", result, grounds[0], n)], sets.unjudged("answers"), notes, signature, facts)
    comparison = two_models.Comparison(**result["comparison"])
    cards = [
        card(name, of_model, of_ground, n, series)._replace(
            facts=[
                *((value, name, short) for (value, name, _), short in zip(facts_of(of_model), _SHORT, strict=True)),
                (f"{of_model['distribution_entropy']['model']:.2f}", "Entropy", "in nats"),
            ]
        )
        for series, ((name, of_model), of_ground) in enumerate(zip(results.items(), grounds, strict=True), 1)
    ]
    return panels.answer(
        cards,
        sets.unjudged("answers") or two_models.verdict(comparison, n),
        [two_models.caveat(comparison, n), *notes],
        signature,
        panels.tiles([clusters, (gold, "People's entropy", "in nats.")]),
    )


def card(
    name: str, result: dict[str, Any], of_ground: ground.Ground | None, n_questions: int, series: int = 0
) -> panels.Card:
    """Return the card of a model's divergence."""
    value = result["probeval"]
    words = "" if of_ground is None or sets.unjudged("answers") else ground.verdict(of_ground)
    return panels.Card(
        name,
        value,
        "nats apart" if n_questions == 1 else f"nats apart, mean of {n_questions} questions",
        f"{words} It covers {result['coverage']:.0%} of their answers." if words else "",
        ground.distance(of_ground) if of_ground is not None and words else None,
        ("like people", "unlike people"),
        series,
    )


def facts_of(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the shares of wrong answers and of people's answers that a model covers."""
    wrong = result["wrong_rate"]
    return [
        ("–" if wrong is None else f"{wrong:.0%}", "Wrong", "of the model's answers match no cluster."),
        (f"{result['coverage']:.0%}", "Covered", "of people's answers are in a cluster that the model matches."),
    ]
