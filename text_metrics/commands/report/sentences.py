"""The sentences of a report. They claim no more than a test shows, and are made from the numbers of its JSON alone."""

from typing import Any

from text_metrics.commands.shared.formats import (
    count,
    decimals,
    estimate,
    interval,
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
    "GRUEN cannot see fluent nonsense: its AUC there is .67, .53 and .51 for three models; weighted by it, original "
    "sets rank above nonsense in 44, 45 and 22\u00a0% of cases."
)


def sentences(report: Report) -> dict[str, str]:
    """Return the lines that head the page, `first`, `quality`, `misleading` and `alike`, and those of two sections.

    A line about something that there is not, such as the likeness of one system, is missing.
    """
    lines = {
        "first": _first(report),
        "quality": _quality(report),
        "misleading": _misleading(report),
        "alike": _alike(report),
        "people": _people(report),
        "collapse": _collapse(report),
    }
    return {name: line for name, line in lines.items() if line}


def in_section(report: Report, section: str) -> list[dict[str, Any]]:
    """Return the metrics of a section, `diversity` or `quality`, in the order of display."""
    return [metric for metric in report["metrics"] if metric["section"] == section]


def level(report: Report) -> str:
    """Format the level of confidence, as in `95 %`."""
    return percent(report["confidence"], 0 if round(100 * report["confidence"], 6).is_integer() else 1)


def comparison(metric: dict[str, Any], first: int, second: int) -> dict[str, Any]:
    """Return the test of two systems in either order, its difference as first - second."""
    test = next(test for test in metric["tests"] if {test["a"], test["b"]} == {first, second})
    if test["a"] == first:
        return test
    ends = test["interval"]
    return {**test, "difference": -test["difference"], "interval": ends and [-ends[1], -ends[0]]}


def _leader(report: Report, metric: dict[str, Any], what: str) -> str:
    """Say which system is first by a metric, as tests against all others show, or which may be."""
    systems, values, (leader, *others) = report["systems"], metric["values"], metric["order"]
    digits = decimals((value["mean"], value["interval"]) for value in values)
    score = estimate(values[leader]["mean"], values[leader]["interval"], digits)
    if not others:
        return f"{systems[leader]} has {what} of {score}."
    tests = {other: comparison(metric, leader, other) for other in others}
    if metric["best"] is not None:
        test = tests[others[0]]
        difference = f"{number(test['difference'], digits, signed=True)} {interval(test['interval'], digits)}".strip()
        bound = with_p(max(test["p_holm"] for test in tests.values()))
        bound = bound if len(others) == 1 else bound.replace("=", "≤")
        return (
            f"{systems[leader]} is first, with {what} of {score}: a difference of {difference} to "
            f"{systems[others[0]]}, the next ({bound} after Holm's adjustment)."
        )
    poor, alpha = _poor(metric), 1 - report["confidence"]
    p_values = {systems[other]: test["p_holm"] for other, test in tests.items() if other not in poor}
    equal = {name: p for name, p in p_values.items() if p is not None and p >= alpha}
    untested = [name for name, p in p_values.items() if p is None]
    parts = [f"No system is first. {systems[leader]} has {what} of {score}"]
    if equal:
        bound = with_p(min(equal.values()))
        bound = bound if len(equal) == 1 else f"each {bound.replace('=', '≥')}"
        parts.append(f"{listed(equal)} cannot be told apart from it ({bound} after Holm's adjustment)")
    if untested:
        parts.append(f"{listed(untested)} cannot be tested against it")
    return f"{'; '.join(parts)}."


def _first(report: Report) -> str:
    main, *rest = in_section(report, "diversity")
    answer = _leader(report, main, f"a mean {main['title']}")
    rest = [metric for metric in rest if metric["better"] is not None]
    if main["best"] is None:
        return answer
    agreeing = sum(metric["best"] == main["best"] for metric in rest)
    parts = [f"{agreeing} of {count(len(rest), 'other metric')} {'agrees' if agreeing == 1 else 'agree'}"]
    for best in dict.fromkeys(metric["best"] for metric in rest):
        titles = [metric["title"] for metric in rest if metric["best"] == best]
        if best not in (main["best"], None):
            parts.append(f"{report['systems'][best]} is first by {listed(titles)}")
    return f"{answer} {'; '.join(parts)}."


def _poor(metric: dict[str, Any]) -> list[int]:
    """List the systems of lower quality than the others: those below the widest gap between intervals of neighbours.

    Where a mean has no interval, as on one prompt, it has to be below half of the next.
    """
    values, order = metric["values"], metric["order"]
    if metric["section"] != "quality":
        return []
    gaps = []
    for rank in range(1, len(order)):
        above, below = ([values[i] for i in part] for part in (order[:rank], order[rank:]))
        if all(value["interval"] for value in values):
            gap = min(value["interval"][0] for value in above) - max(value["interval"][1] for value in below)
        else:
            gap = min(value["mean"] for value in above) / 2 - max(value["mean"] for value in below)
        gaps.append((gap, rank))
    gap, rank = max(gaps, default=(0, 0))
    return order[rank:] if gap > TIE else []


def _quality(report: Report) -> str:
    metrics = in_section(report, "quality")
    if not metrics:
        return "Quality was not measured, so that diversity that comes from bad texts cannot be told from any other."
    quality, systems, values = metrics[0], report["systems"], metrics[0]["values"]
    digits = decimals((value["mean"], value["interval"]) for value in values)
    parts = []
    leader = in_section(report, "diversity")[0]["best"]
    if leader not in (None, quality["order"][0]):
        score = estimate(values[leader]["mean"], values[leader]["interval"], digits)
        parts.append(f"{systems[leader]}, the most diverse, has a mean quality of {score}.")
    parts.append(_leader(report, quality, f"a mean quality ({quality['title']})"))
    poor = _poor(quality)
    if poor:
        rest = min(value["mean"] for i, value in enumerate(values) if i not in poor)
        low = listed(f"{systems[i]} ({number(values[i]['mean'], digits)})" for i in poor)
        parts.append(f"Of lower quality than all others, which have {number(rest, digits)} or more: {low}.")
    if quality["signature"].startswith("gruen|"):
        parts.append(NONSENSE)
    return " ".join(parts)


def _misleading(report: Report) -> str:
    kinds = list(dict.fromkeys(caveat["kind"] for caveat in report["caveats"]))
    answer = "No fault was found in the texts."
    if kinds:
        answer = f"{count(len(report['caveats']), 'thing')} could mislead: {listed(kinds)}."
    main = in_section(report, "diversity")[0]
    sizes = [row["difference"] for row in report["power"] if row["metric"] == main["name"]]
    if not sizes:
        return answer
    return (
        f"{answer} With {count(report['prompts']['n'], 'prompt')}, a test at 80\u00a0% power finds differences in mean "
        f"{main['title']} from {significant(sizes[0])}; smaller ones may be missed."
    )


def _alike(report: Report) -> str:
    alike = report["likeness"]
    if alike is None:
        return ""
    whole, names = alike["partition"], report["systems"]
    digits = decimals([(whole["between"], whole["intervals"]["between"])], least=2)
    between = estimate(whole["between"], whole["intervals"]["between"], digits)
    answer = (
        f"The {whole['n_groups']} systems count as {between}, where their texts, exchanged at random, count as "
        f"{number(whole['between_expected'], digits)}"
    )
    p = with_p(whole["p"], whole["least_p"])
    if whole["p"] >= 1 - report["confidence"]:
        answer += f": no difference between the systems is shown ({p})."
    else:
        answer += f": they differ ({p}), by {percent(whole['share'])} of what is possible beyond chance."
    pairs = [pair for pair in alike["pairs"] if pair["share"] is not None]
    if len(pairs) < 2:
        return answer
    most, least = pairs[-1], pairs[0]
    return (
        f"{answer} {names[most['a']]} and {names[most['b']]} are most alike ({percent(most['share'])}), "
        f"{names[least['a']]} and {names[least['b']]} least ({percent(least['share'])})."
    )


def _people(report: Report) -> str:
    if report["people"] is None:
        return ""
    rows = [row for row in report["people"]["rows"] if row["system"] is not None]
    names, alpha = report["systems"], 1 - report["confidence"]
    apart = {names[row["system"]]: row["p"] for row in rows if row["p"] < alpha}
    rest = [names[row["system"]] for row in rows if row["p"] >= alpha]
    parts = []
    if apart:
        bound = with_p(max(apart.values()), rows[0]["least_p"])
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
    return [f"{answer}; between two halves of the people it is {percent(scales[0])}." if scales else f"{answer}."]


def _collapse(report: Report) -> str:
    metric, n = in_section(report, "diversity")[0], report["prompts"]["n"]
    position = max(int(_LEAST * n) - 1, 0)
    lowest = [sorted(value["scores"])[position] for value in metric["values"]]
    low, high = (end(range(len(lowest)), key=lambda i: lowest[i]) for end in (min, max))
    extent, bound = "its least diverse prompt", ""
    if n >= 1 / _LEAST:
        extent, bound = f"the {percent(_LEAST)} of prompts with the lowest {metric['title']}", "at most "
    names = report["systems"]
    answer = f"On {extent}, {names[low]} scores {bound}{number(lowest[low], 2)}"
    if len(names) > 1 and lowest[high] - lowest[low] < TIE:
        answer = f"On {extent}, each system scores {bound}{number(lowest[low], 2)}"
    elif len(names) > 1:
        answer += f" and {names[high]} {bound}{number(lowest[high], 2)}"
        answer += "" if len(names) == 2 else "; the other systems are between them"
    return f"{answer} ({metric['unit']}). This describes the prompts and is no significance test."
