"""The lines that head a report: they claim no more than a test shows, and are made from its numbers alone."""

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

Report = dict[str, Any]
# docs/quality.md has the intervals.
NONSENSE = (
    "GRUEN cannot see fluent nonsense: its AUC there is .67, .53 and .51 for three models; weighted by it, original "
    "sets rank above nonsense in 44, 45 and 22\u00a0% of cases."
)


def sentences(report: Report) -> dict[str, str]:
    """Return the lines that head the page: `first`, `quality`, `misleading` and, of several systems, `alike`."""
    lines = {"first": _first(report), "quality": _quality(report), "misleading": _misleading(report)}
    return lines if report["likeness"] is None else {**lines, "alike": _alike(report)}


def in_section(report: Report, section: str) -> list[dict[str, Any]]:
    """Return the metrics of a section, `diversity` or `quality`, in the order of display."""
    return [metric for metric in report["metrics"] if metric["section"] == section]


def _leader(report: Report, metric: dict[str, Any], what: str) -> str:
    """Say which system is first by a metric, as tests against all others show, or which may be."""
    systems, (leader, *others) = report["systems"], metric["order"]
    answer = f"{systems[leader]} has {what} of {_mean(metric, leader)}"
    tests = {test["a"] + test["b"] - leader: test for test in metric["tests"] if leader in (test["a"], test["b"])}
    p_values = {other: test["p_holm"] for other, test in tests.items()}
    if metric["best"] is not None:
        test, runner = tests[others[0]], systems[others[0]]
        sign = 1 if test["a"] == leader else -1
        ends = test["interval"] and sorted(sign * end for end in test["interval"])
        digits = decimals([(None, ends)])
        bound = with_p(max(p_values.values()))
        bound = bound if len(others) == 1 else bound.replace("=", "≤")
        return (
            f"{systems[leader]} is first: it has {what} of {_mean(metric, leader)}, a difference of "
            f"{number(sign * test['difference'], digits, signed=True)} {interval(ends, digits)} to {runner}, the next "
            f"({bound} after Holm's adjustment)."
        )
    if not others:
        return f"{answer}."
    near = [other for other in others if other not in _poor(metric)]
    equal = {systems[i]: p for i in near if (p := p_values[i]) is not None and p >= 1 - report["confidence"]}
    untested = [systems[i] for i in near if p_values[i] is None]
    if equal:
        bound = with_p(min(equal.values()))
        bound = bound if len(equal) == 1 else f"each {bound.replace('=', '≥')}"
        answer += f"; {listed(equal)} cannot be told apart from it ({bound} after Holm's adjustment)"
    if untested:
        answer += f"; {listed(untested)} cannot be tested against it"
    return f"No system is first. {answer}."


def _mean(metric: dict[str, Any], system: int) -> str:
    value = metric["values"][system]
    return estimate(value["mean"], value["interval"], decimals((v["mean"], v["interval"]) for v in metric["values"]))


def _first(report: Report) -> str:
    main, *rest = in_section(report, "diversity")
    answer = _leader(report, main, f"a mean {main['title']}")
    if main["best"] is None:
        return answer
    rest = [metric for metric in rest if metric["better"] is not None]
    agreeing = sum(metric["best"] == main["best"] for metric in rest)
    parts = [f"{agreeing} of {count(len(rest), 'other metric')} {'agrees' if agreeing == 1 else 'agree'}"]
    for best in dict.fromkeys(metric["best"] for metric in rest):
        if best not in (main["best"], None):
            titles = [metric["title"] for metric in rest if metric["best"] == best]
            parts.append(f"{report['systems'][best]} is first by {listed(titles, 'metric')}")
    return f"{answer} {'; '.join(parts)}."


def _poor(metric: dict[str, Any]) -> list[int]:
    """List the systems of lower quality than the others: those below the widest gap between intervals of neighbours.

    Where means have no interval, as on one prompt, they have to be below half of the next.
    """
    if metric["section"] != "quality":
        return []
    values, order = metric["values"], metric["order"]
    ends = [value["interval"] or [value["mean"] / 2, value["mean"]] for value in values]
    gaps = {
        rank: min(ends[i][0] for i in order[:rank]) - max(ends[i][1] for i in order[rank:])
        for rank in range(1, len(order))
    }
    rank = max(gaps, key=lambda rank: gaps[rank], default=0)
    return order[rank:] if gaps and gaps[rank] > TIE else []


def _quality(report: Report) -> str:
    metrics = in_section(report, "quality")
    if not metrics:
        return "Quality was not measured, so that diversity that comes from bad texts cannot be told from any other."
    quality, systems = metrics[0], report["systems"]
    parts = []
    leader = in_section(report, "diversity")[0]["best"]
    if leader not in (None, quality["order"][0]):
        parts.append(f"{systems[leader]}, the most diverse, has a mean quality of {_mean(quality, leader)}.")
    parts.append(_leader(report, quality, f"a mean quality ({quality['title']})"))
    poor = _poor(quality)
    if poor:
        next_ = quality["order"][-len(poor) - 1]
        low = listed(f"{systems[i]} ({_mean(quality, i)})" for i in poor)
        parts.append(f"Of lower quality than all others, which have {_mean(quality, next_)} or more: {low}.")
    if quality["signature"].startswith("gruen|"):
        parts.append(NONSENSE)
    return " ".join(parts)


def _misleading(report: Report) -> str:
    kinds = list(dict.fromkeys(caveat["kind"] for caveat in report["caveats"]))
    answer = "No fault was found in the texts."
    if kinds:
        answer = f"{count(len(report['caveats']), 'thing')} could mislead: {listed(kinds, 'thing')}."
    main = in_section(report, "diversity")[0]
    for row in report["power"]:
        if row["metric"] == main["name"]:
            answer += (
                f" With {count(report['prompts']['n'], 'prompt')}, a test at 80\u00a0% power finds differences in mean "
                f"{main['title']} from {significant(row['difference'])}; smaller ones may be missed."
            )
    return answer


def _alike(report: Report) -> str:
    whole, pairs, names = report["likeness"]["partition"], report["likeness"]["pairs"], report["systems"]
    ends = whole["intervals"]["between"]
    digits = decimals([(whole["between"], ends)], least=2)
    p = with_p(whole["p"], whole["least_p"])
    answer = f"they differ ({p}), by {percent(whole['share'])} of what is possible beyond chance"
    if whole["p"] >= 1 - report["confidence"]:
        answer = f"no difference between them is shown ({p})"
    answer = (
        f"The {whole['n_groups']} systems count as {estimate(whole['between'], ends, digits)}, where their texts, "
        f"exchanged at random, count as {number(whole['between_expected'], digits)}: {answer}."
    )
    pairs = [pair for pair in pairs if pair["share"] is not None]
    if len(pairs) < 2:
        return answer
    least, most = ((f"{names[pair['a']]} and {names[pair['b']]}", pair["share"]) for pair in (pairs[0], pairs[-1]))
    below = ", more than by chance" if most[1] < 0 else ""
    return f"{answer} {most[0]} are most alike ({percent(most[1])}{below}), {least[0]} least ({percent(least[1])})."
