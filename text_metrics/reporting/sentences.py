"""The lines that head a report, which claim no more than a test shows."""

from text_metrics.core_api import TIE, Signature
from text_metrics.questions.groups import FEW_SETS
from text_metrics.reporting.formats import count, decimals, estimate, listed, number, percent, with_p
from text_metrics.reporting.results import LENGTHS, Likeness, Metric, Pair, Report
from text_metrics.statistics import MOST_PROMPTS

# The report has the default variant of gruen.
COMPACT = "Compact GRUEN leaves out coherence, and is not the score of the GRUEN paper."
# From docs/quality.md, which has the intervals.
NONSENSE = "It cannot see fluent nonsense: its AUC there is .67, .53 and .51 for three models."


def sentences(report: Report) -> dict[str, str]:
    """Return the lines `first`, `quality`, `misleading` and, of several systems, `alike`."""
    lines = {"first": _first(report), "quality": _quality(report), "misleading": _misleading(report)}
    return lines if report.likeness is None else {**lines, "alike": _alike(report, report.likeness)}


def _mean(metric: Metric, system: int) -> str:
    digits = decimals((value.mean, value.interval) for value in metric.values)
    return estimate(metric.values[system].mean, metric.values[system].interval, digits)


def _highest(metric: Metric) -> int:
    """Return the first system by a metric, of those that it can measure if there are any."""
    return next((i for i in metric.order if metric.values[i].is_reliable), metric.order[0])


def _leader(report: Report, metric: Metric, what: str) -> tuple[str, str]:
    """Say which system is first by a metric, or which may be: the beginning and the end of a sentence."""
    systems = report.systems
    leader = _highest(metric)
    behind = [system for system in metric.order if system != leader]
    mean = f"a mean {what} of {_mean(metric, leader)}"
    if not metric.is_reliable:
        unread = listed(systems[i] for i, value in enumerate(metric.values) if not value.is_reliable)
        doubt = f"{metric.title} says nothing about the texts of {unread} (see what could mislead)"
        return f"No system can be first: {doubt}. {systems[leader]} has {mean}", ""
    if not behind:
        return f"{systems[leader]} has {mean}", ""
    tests = {test.a + test.b - leader: test for test in metric.tests if leader in (test.a, test.b)}
    p_values = {other: tests[other].p_holm for other in behind}
    if metric.best is None:
        level = 1 - report.confidence
        parts = []
        if equal := [systems[other] for other, p in p_values.items() if p is not None and p >= level]:
            parts.append(f"; {listed(equal)} cannot be told apart from it")
        if untested := [systems[other] for other, p in p_values.items() if p is None]:
            reason = "on one prompt" if len(report.prompts) == 1 else "which does not vary"
            parts.append(f"; no test is defined of its difference from {listed(untested)}, {reason}")
        return f"No system is first. {systems[leader]} has {mean}", "".join(parts)
    test = tests[behind[0]]
    ends = sorted(abs(end) for end in test.interval or ())
    difference = estimate(abs(test.difference), ends, decimals([(None, test.interval)]))
    shown = with_p(test.p_holm)
    largest = with_p(max(p for p in p_values.values() if p is not None))
    if largest != shown:
        shown = f"{shown}; {largest.replace('=', '≤')} against every other system"
    more = f", {difference} more than {systems[behind[0]]}, the next ({shown}, after Holm's adjustment)"
    return f"{systems[leader]} is first, with {mean}", more


def _first(report: Report) -> str:
    main, *rest = report.section("diversity")
    begin, end = _leader(report, main, main.title)
    verb = "is " if main.best is None else ""
    at_quality = ""
    if quality := report.section("quality"):
        at_quality = _at_quality(report, quality[0], _highest(main), verb)
    if main.best is None:
        return f"{begin}{at_quality}{end}."
    answer = f"{begin}{end}{at_quality}."
    doubted = _doubted_by_length(report, main.best)
    rest = [metric for metric in rest if metric.better is not None and metric.is_reliable]
    sure = [metric for metric in rest if metric.name not in doubted]
    agreeing = [metric.title for metric in sure if metric.best == main.best]
    others = [metric.title for metric in sure if metric.best != main.best]
    if agreeing:
        but = f", but not by {listed(others, len(others))}" if others else ""
        answer += f" It is first by {listed(agreeing, len(agreeing))}, too{but}."
    elif others:
        answer += f" By {listed(others, len(others))}, it is not first."
    if doubted:
        titles = [metric.title for metric in (main, *rest) if metric.name in doubted]
        answer += (
            f" Its texts differ in length from those of others, on which {listed(titles, len(titles))} depend: see "
            "what could mislead."
        )
    return answer


def _doubted_by_length(report: Report, system: int) -> set[str]:
    """Name the metrics by which the place of a system is in doubt, because its texts differ in length from others."""
    names: set[str] = set()
    for caveat in report.caveats:
        if caveat.kind == LENGTHS and system in caveat.systems:
            names.update(caveat.metrics)
    return names


def _at_quality(report: Report, quality: Metric, system: int, verb: str) -> str:
    """Say the quality of the most diverse system, with a verb if it needs one, and which others test as better."""
    if not quality.values[system].is_reliable:
        return f", and {quality.title} says nothing about its texts"
    value = f"{quality.title} {_mean(quality, system)}"
    if system == quality.best:
        return f", and {verb}first in quality ({value})"
    better = []
    tests = [test for test in quality.tests if system in (test.a, test.b)]
    for test in tests:
        other = test.a + test.b - system
        is_below = test.difference < 0 if test.a == system else test.difference > 0
        is_shown = test.p_holm is not None and test.p_holm < 1 - report.confidence
        if is_below and is_shown and quality.values[other].is_reliable:
            better.append(report.systems[other])
    if not better:
        return f", at a quality ({quality.title}) of {_mean(quality, system)}"
    place = "lowest in quality" if 1 < len(better) == len(tests) else f"lower in quality than {listed(better)}"
    return f", and {verb}{place} ({value})"


def _quality(report: Report) -> str:
    metrics = report.section("quality")
    if not metrics:
        unread = any("quality" in caveat.metrics for caveat in report.caveats if not caveat.is_doubt)
        reason = ": GRUEN reads English prose, which most texts are not. Pass ratings instead" if unread else ""
        return f"Quality was not measured{reason}: diversity may come from bad texts."
    quality = metrics[0]
    answer = "".join(_leader(report, quality, f"quality ({quality.title})")) + "."
    is_gruen = Signature.parse(quality.signature).metric == "gruen"
    return f"{answer} {COMPACT} {NONSENSE}" if is_gruen else answer


def _misleading(report: Report) -> str:
    kinds = list(dict.fromkeys(caveat.kind for caveat in report.caveats))
    answer = f"{listed(kinds, len(kinds)).capitalize()}." if kinds else "No fault was found in the texts."
    main = report.section("diversity")[0]
    if report.same_length is not None and len(report.systems) > 1:
        answer += f" {_at_same_length(report, main, report.same_length.metrics[0])}"
    return f"{answer} {_power(report, main)}".strip()


def _power(report: Report, main: Metric) -> str:
    """Say which lead marks a system as the first one, by the adjusted tests that mark it."""
    power = report.power
    asked = report.options.get("difference")
    if power is None:
        return f"How many prompts a lead of {asked:g} needs cannot be told from these texts." if asked else ""
    n_prompts = len(report.prompts)
    others = "every other system" if len(report.systems) > 2 else "the other one"
    adjusted = "80\u00a0% power, after Holm's adjustment"
    if n_prompts < FEW_SETS:
        adjusted += ", if the spread on so few prompts is the true one"
    if power.smallest_lead is None:
        answer = f"With {count(n_prompts, 'prompt')}, even the largest possible lead may be missed ({adjusted})."
    else:
        about = "about " if n_prompts < FEW_SETS else ""
        answer = (
            f"With {count(n_prompts, 'prompt')}, a system is found first if its mean {main.title} is truly "
            f"{about}{power.smallest_lead:.3g} above that of {others} ({adjusted}); smaller leads may be missed."
        )
    if power.n_needed is not None:
        answer += f" A lead of {power.difference:g} needs about {count(power.n_needed, 'prompt')} like these."
    elif asked:
        answer += f" A lead of {asked:g} needs more than {count(MOST_PROMPTS, 'prompt')} like these."
    return answer


def _at_same_length(report: Report, whole: Metric, cut: Metric) -> str:
    """Say which system is first by texts of the same length, and whether it is by whole texts."""
    if not cut.is_reliable:
        return f"Cut to the same length, no system can be first: {cut.title} says nothing about some of them."
    if cut.best is None:
        return f"Cut to the same length, no system is first by {cut.title}."
    also = ", too" if cut.best == whole.best else ""
    return f"Cut to the same length, {report.systems[cut.best]} is first by {cut.title}{also}."


def _alike(report: Report, likeness: Likeness) -> str:
    """Say whether systems say the same things, which is another question than how much they say."""
    names = report.systems
    whole = likeness.partition
    pairs = likeness.pairs
    level = 1 - report.confidence
    digits = decimals([(whole.between, whole.between_interval)])
    p = with_p(whole.p)
    equal = f"{percent(whole.equal_share)} of their texts equal one of another system"
    all_of_them = "of all together, " if pairs else ""
    answer = f"{all_of_them}no difference in what they say is shown ({p})"
    if whole.p < level:
        # Some of several systems may be the same.
        differ = "not all of them say the same" if pairs else "what they say differs"
        answer = f"{differ} ({p}); the difference is {percent(whole.share)} of what is possible beyond chance"
    elif whole.equal_share > 0 and (whole.share or 0) < -TIE:
        answer = f"{answer}; they are more alike than by chance, as they share texts ({equal})"
    answer = (
        f"The effective number of systems is {estimate(whole.between, whole.between_interval, digits)} of "
        f"{len(names)}; with permuted labels it would be {number(whole.between_expected, digits)}: {answer}."
    )
    if pairs:
        n_different = sum(pair.p_holm is not None and pair.p_holm < level for pair in pairs)
        verb = "differs" if n_different == 1 else "differ"
        # Systems that share texts can hide, in the test of all, that others differ.
        but = " But" if n_different and whole.p >= level else ""
        answer += f"{but} {n_different} of {count(len(pairs), 'pair')} {verb} after Holm's adjustment."
    if pairs and len(report.prompts) > 1 and _are_apart(pairs[-1], pairs[0]):
        digits = decimals([(pair.between, pair.between_interval) for pair in (pairs[-1], pairs[0])])
        most, least = (_beta(names, pair, digits) for pair in (pairs[-1], pairs[0]))
        answer += f" Most alike are {most}, least {least}."
    return answer


def _are_apart(low: Pair, high: Pair) -> bool:
    """Return whether the interval of one beta is below that of another one; without a spread, beta has none."""
    low_end = (low.between_interval or [low.between, low.between])[1]
    high_end = (high.between_interval or [high.between, high.between])[0]
    return high_end - low_end > TIE


def _beta(names: list[str], pair: Pair, digits: int) -> str:
    beta = estimate(pair.between, pair.between_interval, digits)
    return f"{names[pair.a]} and {names[pair.b]} (beta {beta}; {number(pair.between_expected, digits)} by chance)"
