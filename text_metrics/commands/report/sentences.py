"""The sentence in words that heads each section of a report. It claims no more than a test shows."""

from collections import Counter
from typing import Any

from text_metrics.commands.report.formats import (
    count,
    decimals,
    estimate,
    integer,
    interval,
    level,
    listed,
    number,
    percent,
    with_p,
)

# The share of the prompts, those of least diversity, that the sentence on collapse is about.
_LEAST = 0.05
Report = dict[str, Any]


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


def _first(report: Report, metric: dict[str, Any], what: str) -> str:
    """Say which system is first by a metric, and whether a test shows it."""
    systems, values, order = report["systems"], metric["values"], metric["order"]
    digits = decimals((value["mean"], value["interval"]) for value in values)
    if not order:
        return f"{metric['title']} is undefined for every system."
    leader = order[0]
    score = estimate(values[leader]["mean"], values[leader]["interval"], digits)
    if len(order) == 1:
        alone = "" if len(systems) == 1 else " No other system has a score."
        return f"{systems[leader]} has {what} of {score} ({level(report)} interval).{alone}"
    runner = order[1]
    test = comparison(metric, leader, runner)
    second = f"{systems[runner]}, the next, has {number(values[runner]['mean'], digits)}"
    if test["p_holm"] is None:
        return f"{systems[leader]} has {what} of {score} and {second}; the difference cannot be tested."
    adjusted = f"{with_p(test['p_holm'])} after Holm's adjustment"
    if metric["best"] is not None:
        difference = f"{number(test['difference'], digits, signed=True)} {interval(test['interval'], digits)}".strip()
        return (
            f"{systems[leader]} is first, with {what} of {score}. {second}: a difference of {difference}, {adjusted}."
        )
    return (
        f"No system is shown to be first. {systems[leader]} has {what} of {score} and {second}: "
        f"no difference is shown ({adjusted})."
    )


def _diversity(report: Report) -> str:
    main, *rest = in_section(report, "diversity")
    answer = _first(report, main, f"a mean {main['title']}")
    rest = [metric for metric in rest if metric["better"] is not None]
    if main["best"] is None or not rest:
        return answer
    leader = main["best"]
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
    return f"{answer} Of {count(len(rest), 'other metric')}, {'; '.join(parts)}."


def _show(n: int, also: str = "") -> str:
    return " ".join(filter(None, [str(n), also, "shows" if n == 1 else "show"]))


def _quality(report: Report) -> str:
    metrics = in_section(report, "quality")
    if not metrics:
        return "Quality was not measured, so that diversity that comes from bad texts cannot be told from any other."
    answer = _first(report, metrics[0], f"a mean quality ({metrics[0]['title']})")
    if len(metrics) == 1 or len(report["systems"]) == 1:
        return answer
    weighted = metrics[1]
    if weighted["best"] is None:
        return f"{answer} Of diversity weighted by quality, no system is shown to have most."
    leader = report["systems"][weighted["best"]]
    return f"{answer} Of diversity weighted by quality, {leader} has most."


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
    if partition["p"] >= 1 - report["confidence"]:
        return f"{answer}No difference between the systems is shown (permutation test, {with_p(partition['p'])})."
    return (
        f"{answer}They differ (permutation test, {with_p(partition['p'])}), by {percent(partition['share'])} of what "
        f"is possible beyond chance."
    )


def _people(report: Report) -> str:
    people = report["people"]
    if people is None:
        return "No answers of people were given (--people)."
    rows = sorted((row for row in people["rows"] if row["system"] is not None), key=lambda row: row["system"])
    names, alpha = report["systems"], 1 - report["confidence"]
    p_values = {names[row["system"]]: _people_p(row) for row in rows}
    apart = {system: p for system, p in p_values.items() if p is not None and p < alpha}
    rest = [system for system in p_values if system not in apart]
    parts = []
    if apart:
        bound = with_p(max(apart.values()))
        bound = bound if len(apart) == 1 else f"each {bound.replace('=', '≤')}"
        verb = "differs" if len(apart) == 1 else "differ"
        parts.append(f"{listed(apart)} {verb} from people ({bound}, twice the smaller of two permutation tests)")
    if rest:
        parts.append(f"{'no' if parts else 'No'} difference between people and {listed(rest)} is shown")
    return " ".join([f"{'; '.join(parts)}.", *_recalls(report, rows)])


def _people_p(row: dict[str, Any]) -> float | None:
    """Return the p-value of the partition and of MMD² together: twice the smaller, by Bonferroni."""
    held = [p for p in (row["p"], row["mmd2_p"]) if p is not None]
    return min(len(held) * min(held), 1.0) if held else None


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
    least = Counter(
        min(zip(scores, report["systems"], strict=True))[1]
        for scores in zip(*(value["scores"] for value in metric["values"]), strict=True)
        if None not in scores and sorted(scores)[:2] != [min(scores)] * 2
    )
    n = report["prompts"]["n"]
    extent, bound = f"the 5\u00a0% of prompts with the lowest {metric['title']}", "at most "
    if n < 1 / _LEAST:
        extent, bound = "its least diverse prompt", ""
    answer = f"On {extent}, {lowest[0][1]} scores {bound}{number(lowest[0][0], 2)}"
    if len(lowest) > 1:
        answer += f" and {lowest[-1][1]} {bound}{number(lowest[-1][0], 2)}"
        answer += "" if len(lowest) == 2 else "; the other systems are between them"
    answer += f" ({metric['unit']})."
    if len(lowest) > 1 and least:
        system, times = min(least.items(), key=lambda item: (-item[1], report["systems"].index(item[0])))
        answer += f" {system} is the least diverse of all on {integer(times)} of {count(n, 'prompt')}."
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
        f"{main['title']} from {number(power['difference'], 3)}; smaller ones may be missed."
    )
