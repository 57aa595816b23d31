"""The lines that head a report, which claim no more than a test shows."""

from typing import Any

from text_metrics.commands.shared.formats import count, decimals, estimate, listed, number, percent, with_p
from text_metrics.commands.shared.statistics import TIE

Report = dict[str, Any]
# From docs/quality.md, which has the intervals.
NONSENSE = "GRUEN cannot see fluent nonsense: its AUC there is .67, .53 and .51 for three models."


def sentences(report: Report) -> dict[str, str]:
    """Return the lines `first`, `quality`, `misleading` and, of several systems, `alike`."""
    lines = {"first": _first(report), "quality": _quality(report), "misleading": _misleading(report)}
    return lines if report["likeness"] is None else {**lines, "alike": _alike(report)}


def in_section(report: Report, section: str) -> list[dict[str, Any]]:
    """Return the metrics of a section, `diversity` or `quality`."""
    return [metric for metric in report["metrics"] if metric["section"] == section]


def _mean(metric: dict[str, Any], system: int) -> str:
    digits = decimals((value["mean"], value["interval"]) for value in metric["values"])
    return estimate(metric["values"][system]["mean"], metric["values"][system]["interval"], digits)


def _leader(report: Report, metric: dict[str, Any], what: str) -> str:
    """Say which system is first by a metric, or which may be."""
    systems, (leader, *others) = report["systems"], metric["order"]
    mean = f"a mean {what} of {_mean(metric, leader)}"
    if not others:
        return f"{systems[leader]} has {mean}."
    tests = {test["a"] + test["b"] - leader: test for test in metric["tests"] if leader in (test["a"], test["b"])}
    p_values = {other: test["p_holm"] for other, test in tests.items()}
    if metric["best"] is None:
        level = 1 - report["confidence"]
        equal = [other for other in others if p_values[other] is None or p_values[other] >= level]
        names = listed(systems[other] for other in equal)
        return f"No system is first. {systems[leader]} has {mean}; {names} cannot be told apart from it."
    next_, test = systems[others[0]], tests[others[0]]
    ends = sorted(abs(end) for end in test["interval"])
    difference = estimate(abs(test["difference"]), ends, decimals([(None, test["interval"])]))
    p = with_p(max(p_values.values())).replace("=", "≤")
    return (
        f"{systems[leader]} is first, with {mean}, {difference} more than {next_}, the next "
        f"({p} after Holm's adjustment)."
    )


def _first(report: Report) -> str:
    main, *rest = in_section(report, "diversity")
    answer = _leader(report, main, main["title"])
    if main["best"] is None:
        return answer
    rest = [metric for metric in rest if metric["better"] is not None]
    agreeing = sum(metric["best"] == main["best"] for metric in rest)
    return f"{answer} It is first by {agreeing} of the {len(rest)} other metrics, too."


def _poor(metric: dict[str, Any]) -> list[int]:
    """List the systems of lower quality than the others: those below the widest gap between intervals of neighbours.

    Where means have no interval, as on one prompt, they have to be below half of the next.
    """
    order = metric["order"]
    ends = [value["interval"] or [value["mean"] / 2, value["mean"]] for value in metric["values"]]
    gaps = {
        rank: min(ends[i][0] for i in order[:rank]) - max(ends[i][1] for i in order[rank:])
        for rank in range(1, len(order))
    }
    rank = max(gaps, key=lambda rank: gaps[rank], default=0)
    return order[rank:] if gaps and gaps[rank] > TIE else []


def _quality(report: Report) -> str:
    metrics = in_section(report, "quality")
    if not metrics:
        return "Quality was not measured: diversity may come from bad texts."
    quality, systems = metrics[0], report["systems"]
    parts = [_leader(report, quality, f"quality ({quality['title']})")]
    leader, poor = in_section(report, "diversity")[0]["best"], _poor(quality)
    if leader not in (None, quality["order"][0], *poor):
        parts.append(f"That of {systems[leader]}, the most diverse, is {_mean(quality, leader)}.")
    if poor:
        next_ = quality["order"][-len(poor) - 1]
        low = listed(f"{systems[i]} ({_mean(quality, i)})" for i in poor)
        parts.append(f"Of lower quality than all others, which have {_mean(quality, next_)} or more: {low}.")
    if quality["signature"].startswith("gruen|"):
        parts.append(NONSENSE)
    return " ".join(parts)


def _misleading(report: Report) -> str:
    kinds = list(dict.fromkeys(caveat["kind"] for caveat in report["caveats"]))
    answer = f"{listed(kinds).capitalize()}." if kinds else "No fault was found in the texts."
    main = in_section(report, "diversity")[0]
    sizes = [test["smallest_difference"] for test in main["tests"] if test["smallest_difference"] is not None]
    if sizes:
        answer += (
            f" With {count(len(report['prompts']), 'prompt')}, a test finds differences in mean {main['title']} from "
            f"{max(sizes):.3g} (80\u00a0% power); smaller ones may be missed."
        )
    return answer


def _alike(report: Report) -> str:
    whole, pairs, names = report["likeness"]["partition"], report["likeness"]["pairs"], report["systems"]
    digits = decimals([(whole["between"], whole["between_interval"])])
    p = with_p(whole["p"], whole["least_p"])
    answer = f"they differ ({p}), by {percent(whole['share'])} of what is possible beyond chance"
    if whole["p"] >= 1 - report["confidence"]:
        answer = f"no difference between them is shown ({p})"
    answer = (
        f"The {len(names)} systems count as {estimate(whole['between'], whole['between_interval'], digits)}, where "
        f"their texts, exchanged at random, count as {number(whole['between_expected'], digits)}: {answer}."
    )
    if pairs:
        named = [f"{names[pair['a']]} and {names[pair['b']]} ({percent(pair['share'])})" for pair in pairs]
        answer += f" Most alike are {named[-1]}, least {named[0]}."
    return answer
