"""The sentence in words that heads each section of a report. It claims no more than a test shows."""

from typing import Any

from text_metrics.commands.shared.formats import (
    count,
    decimals,
    estimate,
    interval,
    level,
    listed,
    number,
    percent,
    significant,
    with_p,
)
from text_metrics.commands.shared.statistics import TIE

# The share of the prompts, those of least diversity, that the sentence on collapse is about.
_LEAST = 0.05
Report = dict[str, Any]
# docs/quality.md has the intervals.
NONSENSE = (
    " GRUEN cannot see fluent nonsense: weighted by it, original sets rank above nonsense in 44, 45 and 22\u00a0% of "
    "cases for three models; its AUC is .67, .53 and .51."
)


def sentences(report: Report) -> dict[str, str]:
    """Answer in plain text the question of each section of a report, of which its sentences are not read."""
    return {
        "diversity": _diversity(report),
        "quality": _quality(report),
        "likeness": _likeness(report),
        "people": _people(report),
        "collapse": _collapse(report),
        "caveats": _caveats(report),
    }


def comparison(metric: dict[str, Any], first: int, second: int) -> dict[str, Any]:
    """Return the test of two systems in either order, its difference as first - second."""
    test = next(test for test in metric["tests"] if {test["a"], test["b"]} == {first, second})
    if test["a"] == first:
        return test
    ends = test["interval"]
    turned = None if test["difference"] is None else -test["difference"]
    return {**test, "difference": turned, "interval": ends and [-ends[1], -ends[0]]}


def in_section(report: Report, section: str) -> list[dict[str, Any]]:
    """Return the metrics of a section, `diversity` or `quality`, in the order of display."""
    return [metric for metric in report["metrics"] if metric["section"] == section]


def rated_by_gruen(report: Report) -> bool:
    """Whether gruen rated the quality."""
    return any(metric["signature"].startswith("gruen|") for metric in in_section(report, "quality"))


def _first(report: Report, metric: dict[str, Any], what: str) -> str:
    """Say which system is first by a metric, as tests against all others show, or which cannot be told apart from it.

    No system of far lower quality is among the latter: it is named after them, whatever the test.
    """
    systems, values, order = report["systems"], metric["values"], metric["order"]
    digits = decimals((value["mean"], value["interval"]) for value in values)
    if not order:
        return f"{metric['title']} is undefined for every system."
    leader, *others = order
    score = estimate(values[leader]["mean"], values[leader]["interval"], digits)
    if not others:
        alone = "" if len(systems) == 1 else " No other system has a score."
        return f"{systems[leader]} has {what} of {score} ({level(report)} interval).{alone}"
    tests = {other: comparison(metric, leader, other) for other in others}
    if metric["best"] is not None:
        runner = others[0]
        test = tests[runner]
        difference = f"{number(test['difference'], digits, signed=True)} {interval(test['interval'], digits)}".strip()
        bound = with_p(max(test["p_holm"] for test in tests.values()))
        bound = bound if len(others) == 1 else f"against each other system {bound.replace('=', '≤')}"
        return (
            f"{systems[leader]} is first, with {what} of {score}. {systems[runner]}, the next, has "
            f"{number(values[runner]['mean'], digits)}: a difference of {difference} ({bound} after Holm's adjustment)."
            f"{_far_below(report, metric)}"
        )
    far, alpha = _far(metric), 1 - report["confidence"]
    near = [other for other in others if other not in far]
    untested = [systems[other] for other in near if tests[other]["p_holm"] is None]
    equal = [systems[other] for other in near if tests[other]["p_holm"] is not None and tests[other]["p_holm"] >= alpha]
    parts = [f"No system is shown to be first. {systems[leader]} has {what} of {score}"]
    if equal:
        smallest = min(tests[systems.index(name)]["p_holm"] for name in equal)
        bound = with_p(smallest) if len(equal) == 1 else f"each {with_p(smallest).replace('=', '≥')}"
        parts.append(f"{listed(equal)} cannot be told apart from it ({bound} after Holm's adjustment)")
    if untested:
        parts.append(f"{listed(untested)} cannot be tested against it")
    return f"{'; '.join(parts)}.{_far_below(report, metric)}"


def _far(metric: dict[str, Any]) -> list[int]:
    """List the systems that have less than half of the quality of the first."""
    values, order = metric["values"], metric["order"]
    if metric["section"] != "quality" or not order:
        return []
    most = values[order[0]]["mean"]
    return [i for i in order[1:] if most > 0 and values[i]["mean"] < most / 2]


def _far_below(report: Report, metric: dict[str, Any]) -> str:
    digits = decimals((value["mean"], value["interval"]) for value in metric["values"])
    most = number(metric["values"][metric["order"][0]]["mean"], digits)
    named = [f"{report['systems'][i]} ({number(metric['values'][i]['mean'], digits)})" for i in _far(metric)]
    return f" Far below {most}: {listed(named)}." if named else ""


def _diversity(report: Report) -> str:
    main, *rest = in_section(report, "diversity")
    answer = _first(report, main, f"a mean {main['title']}")
    leader = main["best"]
    if leader is None:
        return answer
    rest = [metric for metric in rest if metric["better"] is not None]
    agreeing = [metric for metric in rest if metric["best"] == leader]
    against = [metric for metric in rest if metric["best"] not in (leader, None)]
    undecided = len(rest) - len(agreeing) - len(against)
    parts = []
    if agreeing:
        parts.append(f"{_show(len(agreeing), 'also')} it first")
    for best in dict.fromkeys(metric["best"] for metric in against):
        titles = [metric["title"] for metric in against if metric["best"] == best]
        parts.append(f"{_show(len(titles))} {report['systems'][best]} first ({', '.join(titles)})")
    if undecided:
        parts.append(f"{_show(undecided)} no system first")
    if parts:
        answer += f" Of {count(len(rest), 'other metric')}, {'; '.join(parts)}."
    return answer + _quality_of_winner(report, leader)


def _quality_of_winner(report: Report, leader: int) -> str:
    """Say that the most diverse system has far lower quality, and what gruen cannot see."""
    metrics = in_section(report, "quality")
    far = " Its quality is far below that of another system." if metrics and leader in _far(metrics[0]) else ""
    return far + (NONSENSE if rated_by_gruen(report) else "")


def _show(n: int, also: str = "") -> str:
    return " ".join(filter(None, [str(n), also, "shows" if n == 1 else "show"]))


def _quality(report: Report) -> str:
    metrics = in_section(report, "quality")
    if not metrics:
        return "Quality was not measured, so that diversity that comes from bad texts cannot be told from any other."
    note = NONSENSE if rated_by_gruen(report) else ""
    answer = _first(report, metrics[0], f"a mean quality ({metrics[0]['title']})")
    if len(metrics) == 1 or len(report["systems"]) == 1:
        return answer + note
    weighted = metrics[1]
    if weighted["best"] is None:
        return f"{answer} Of diversity weighted by quality, no system is shown to have most.{note}"
    leader = report["systems"][weighted["best"]]
    return f"{answer} Of diversity weighted by quality, {leader} has most.{note}"


def _likeness(report: Report) -> str:
    likeness = report["likeness"]
    if likeness is None:
        return "There is one system, so that nothing can be compared."
    partition = likeness["partition"]
    digits = decimals([(partition["between"], partition["intervals"].get("between"))], least=2)
    between = estimate(partition["between"], partition["intervals"].get("between"), digits)
    answer = (
        f"These {partition['n_groups']} systems count as {between}, where their texts, exchanged at random, count as "
        f"{number(partition['between_expected'], digits)}. "
    )
    if partition["p"] is None:
        return f"{answer}It cannot be tested."
    p = with_p(partition["p"], partition["least_p"])
    if partition["p"] >= 1 - report["confidence"]:
        return f"{answer}No difference between the systems is shown (permutation test, {p})."
    return (
        f"{answer}They differ (permutation test, {p}), by {percent(partition['share'])} of what "
        f"is possible beyond chance."
    )


def _people(report: Report) -> str:
    people = report["people"]
    if people is None:
        return "No answers of people were given (--people)."
    rows = sorted((row for row in people["rows"] if row["system"] is not None), key=lambda row: row["system"])
    names, alpha = report["systems"], 1 - report["confidence"]
    p_values = {names[row["system"]]: row["p"] for row in rows}
    least = rows[0]["least_p"]
    apart = {system: p for system, p in p_values.items() if p is not None and p < alpha}
    rest = [system for system in p_values if system not in apart]
    parts = []
    if apart:
        bound = with_p(max(apart.values()), least)
        bound = bound if len(apart) == 1 else f"each {bound.replace('=', '≤')}"
        verb = "differs" if len(apart) == 1 else "differ"
        parts.append(f"{listed(apart)} {verb} from people (permutation test, {bound})")
    if rest:
        parts.append(f"{'no' if parts else 'No'} difference between people and {listed(rest)} is shown")
    return " ".join([f"{'; '.join(parts)}.", *_recalls(report, rows)])


def _recalls(report: Report, rows: list[dict[str, Any]]) -> list[str]:
    """Say from where to where recall goes, and what it is between people; nothing if it is undefined."""
    covered = [row for row in rows if row["recall"]["value"] is not None]
    if not covered:
        return []
    low, high = (end(covered, key=lambda row: row["recall"]["value"]) for end in (min, max))
    words = [f"{percent(row['recall']['value'])} ({report['systems'][row['system']]})" for row in (low, high)]
    extent = percent(low["recall"]["value"])
    if extent != percent(high["recall"]["value"]):
        extent = f"from {words[0]} to {words[1]}"
    answer = f"The share of people's texts that have a text of the system nearby is {extent}"
    scales = [row["recall"]["value"] for row in report["people"]["rows"] if row["system"] is None]
    if scales and scales[0] is not None:
        answer += f"; between two halves of the people it is {percent(scales[0])}"
    return [f"{answer}."]


def _collapse(report: Report) -> str:
    metric = in_section(report, "diversity")[0]
    lowest = []
    for system, value in zip(report["systems"], metric["values"], strict=True):
        scores = sorted(score for score in value["scores"] if score is not None)
        if scores:
            lowest.append((scores[max(int(_LEAST * len(scores)) - 1, 0)], system))
    if not lowest:
        return "No prompt has a score."
    lowest.sort(key=lambda pair: pair[0])
    n = report["prompts"]["n"]
    extent, bound = f"the 5\u00a0% of prompts with the lowest {metric['title']}", "at most "
    if n < 1 / _LEAST:
        extent, bound = "its least diverse prompt", ""
    answer = f"On {extent}, {lowest[0][1]} scores {bound}{number(lowest[0][0], 2)}"
    if len(lowest) > 1 and lowest[-1][0] - lowest[0][0] < TIE:
        answer = f"On {extent}, each system scores {bound}{number(lowest[0][0], 2)}"
    elif len(lowest) > 1:
        answer += f" and {lowest[-1][1]} {bound}{number(lowest[-1][0], 2)}"
        answer += "" if len(lowest) == 2 else "; the other systems are between them"
    answer += f" ({metric['unit']})."
    return f"{answer} This describes the prompts and tests nothing."


def _caveats(report: Report) -> str:
    caveats = report["caveats"]
    answer = f"{count(len(caveats), 'thing')} could mislead." if caveats else "No fault was found in the texts."
    main = in_section(report, "diversity")[0]
    power = next((row for row in report["power"] if row["metric"] == main["name"]), None)
    if power is None or power["difference"] is None:
        return answer
    return (
        f"{answer} With {count(report['prompts']['n'], 'prompt')}, a test at 80 % power finds differences in mean "
        f"{main['title']} from {significant(power['difference'])}; smaller ones may be missed."
    )
