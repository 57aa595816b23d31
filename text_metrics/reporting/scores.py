"""The numbers of a report, from the sets of its systems."""

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from text_metrics import FOLDER
from text_metrics.console import input_checked
from text_metrics.core_api import (
    UNBOUNDED,
    VERSION,
    WHITESPACE,
    EncoderSettings,
    SemanticEntropySettings,
    Signature,
    is_other_script,
    mean_by_set,
    mean_estimate,
    parse_choice,
    parse_flag,
    parse_level,
    parse_number,
    signature,
    split_list,
    tied_ranks,
)
from text_metrics.loading import load_metric
from text_metrics.questions.sets import score_sets
from text_metrics.reporting.caveats import MOST, find_caveats, find_short_texts
from text_metrics.reporting.inputs import SETTINGS, Inputs, column_names, read_frame, read_sets
from text_metrics.reporting.lengths import cut_to_shortest, word_counts
from text_metrics.reporting.likeness import compare_systems, compare_with_people
from text_metrics.reporting.results import (
    MEASURES,
    Caveat,
    Collapse,
    Mean,
    Measure,
    Metric,
    Power,
    Report,
    SameLength,
    Test,
    Value,
)
from text_metrics.reporting.sentences import sentences
from text_metrics.statistics import Leads, holm, paired_test
from text_metrics.texts import parse_kinds, to_signature

if TYPE_CHECKING:
    import pandas as pd

GRUEN, NO_MEANINGS = "gruen", "none"
# Digits of a commit.
_DIGITS = 12
# Prompts of least, and of most, diversity that are shown of each system.
_SHOWN = 5
_NUMBER = re.compile(r"(?:(?<![\w.])-)?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Choices:
    """What a report shows, besides the settings of its metrics.

    by_gruen : whether gruen rates the texts, if the inputs hold no ratings
    level : of the intervals and tests
    shows_texts : whether the report holds texts
    same_length : whether to score also texts of the same length
    keeps_order : whether systems are shown in the order given, or by their numbers, and not by their scores
    difference : a lead by the first metric, for which the number of prompts is computed
    """

    by_gruen: bool = True
    level: float = 0.95
    shows_texts: bool = True
    same_length: bool = False
    keeps_order: bool = False
    difference: float | None = None

    def __post_init__(self) -> None:
        parse_level(self.level, "confidence")
        if self.difference is not None:
            parse_number(self.difference, "difference", 0)
            if self.difference == 0:
                raise ValueError("difference must be positive. Got 0.")


def report(
    systems: Any,
    prompts: Sequence[str] | None = None,
    quality: Mapping[str, Any] | str | None = GRUEN,
    out: str | Path | None = None,
    *,
    people: Sequence[Sequence[str]] | None = None,
    contexts: Sequence[str | None] | None = None,
    classes: Mapping[str, Any] | None = None,
    same_length: bool = False,
    strip: Sequence[str] | str | None = None,
    confidence: float = 0.95,
    cache_dir: str | Path | None = None,
    texts: bool = True,
    progress: bool = False,
    order: bool = False,
    difference: float | None = None,
    text: str | None = None,
    id: str | None = None,
    system: str | None = None,
    **settings: Any,
) -> Report:
    """Compare systems by their texts for the same prompts, as `text-metrics report` does with files.

    Parameters
    ----------
    systems : for each system by name, p sets of texts, one for each prompt; or a pandas DataFrame or a
        `datasets.Dataset` with the columns `text`, `id` and `system`, whose rows hold a text or a list of texts
    prompts : p names of the prompts; their numbers by default
    quality : "gruen"; ratings of each system by name, shaped like its sets; or None
    out : folder to save the report in
    people : texts of people for each prompt
    contexts : what the texts of each prompt answer, which `compute` then takes out of them
    classes : for each system by name, the class of each text among those of its set, a string or an integer, shaped
        like its sets, as a judge gave it; meanings are then these, and not those of the encoder
    same_length : whether to score also the texts cut to the words of the shortest of their prompt
    strip : what is removed from texts because it is not the answer: "reasoning", "special" (tokens and chat markers),
        "prompt" (the context that a text begins with), as a list or with commas between them
    confidence : level of the intervals; a test is significant if p is below 1 minus the level
    cache_dir : folder in which embeddings are kept after the report
    texts : whether the report holds texts
    progress : whether to show a progress bar
    order : whether systems are shown in the order given, or by the number in their names if they differ by it only,
        such as "T=0.3" and "T=1.0"; a line then joins their means
    difference : answer how many prompts are needed to find a system first that leads by this mean Vendi score
    text, id, system : columns of a table: the texts, the prompt of a row, and its system, without which all rows are
        of one. `quality`, `contexts` and `classes` are then names of columns, and `people` is a table
    **settings : `model`, `long_texts`, `batch_size` and `device` of the encoder, `same` of semantic_entropy (None
        leaves out the meanings), and `tokenizer` of self_bleu

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or no prompt has two texts of every system.
    """
    for name in settings:
        parse_choice(name, "a setting", SETTINGS)
    if "same" in settings and settings["same"] is None:
        settings["same"] = NO_MEANINGS
    kinds = parse_kinds(strip)
    if columns := column_names(systems):
        if text is None or id is None or prompts is not None:
            raise ValueError(f"a table needs text and id, and no prompts. Its columns are {', '.join(columns)}.")
        keys: dict[str, Any] = {"text": text, "id": id, "system": system, "context": contexts, "classes": classes}
        keys["quality"] = None if isinstance(quality, str) and quality == GRUEN else quality
        for name, key in keys.items():
            if key is not None and not isinstance(key, str):
                raise TypeError(f"{name} must be a column of the table. Got {type(key).__name__}.")
        inputs = read_frame(systems, people, kinds, **keys)
    else:
        if (text, id, system) != (None, None, None):
            raise TypeError(f"text, id and system are columns of a table. Got {type(systems).__name__} as systems.")
        if quality is not None and not isinstance(quality, Mapping):
            parse_choice(quality, "quality", (GRUEN,))
        inputs = read_sets(systems, prompts, quality, people, contexts, classes, kinds)
    settings |= {"cache_dir": cache_dir, "progress": progress}
    choices = Choices(
        by_gruen=isinstance(quality, str) and quality == GRUEN,
        level=confidence,
        shows_texts=texts,
        same_length=parse_flag(same_length, "same_length"),
        keeps_order=parse_flag(order, "order"),
        difference=difference,
    )
    made = build(inputs, choices, settings)
    if out is not None:
        made.save(out)
    return made


def describe(sets: Sequence[Sequence[str]], quality: Any = GRUEN, **options: Any) -> "pd.DataFrame":
    """Return all scores of one system: a row for each metric, with its interval and its signature.

    Parameters
    ----------
    sets : p sets of texts, one for each prompt
    quality : "gruen"; a rating of each text, shaped like `sets`; or None
    **options : as of `report`; `classes` is shaped like `sets`

    Returns
    -------
    DataFrame by the names of the metrics, with the columns `title`, `score`, `low`, `high`, `better` ("higher",
    "lower" or ""), `is_reliable` (whether it can measure most texts) and `signature`

    Raises
    ------
    TypeError, ValueError
        As `report`.
    """
    import pandas as pd

    rated = quality if quality is None or isinstance(quality, str) else {"sets": quality}
    if options.get("classes") is not None:
        options["classes"] = {"sets": options["classes"]}
    rows = []
    for metric in report({"sets": sets}, quality=rated, **options).metrics:
        (value,) = metric.values
        numbers = (value.mean, *(value.interval or (None, None)))
        rows.append((metric.name, metric.title, *numbers, metric.better or "", value.is_reliable, metric.signature))
    names = ("metric", "title", "score", "low", "high", "better", "is_reliable", "signature")
    return pd.DataFrame(rows, columns=names).set_index("metric")


def build(inputs: Inputs, choices: Choices, settings: Mapping[str, Any]) -> Report:
    """Compute a report; raises a ValueError for an invalid setting.

    settings : those of `SETTINGS`, `cache_dir` and `progress`; with same="none", meanings are not counted
    """
    level = choices.level
    encoder = {name: settings[name] for name in ("model", "long_texts", "batch_size", "device") if name in settings}
    with input_checked():
        encoding = EncoderSettings(**encoder)
        if settings.get("same") is not None and inputs.classes is not None:
            raise ValueError("same and classes cannot be combined: pass one of them.")
        if settings.get("same") is None and inputs.classes is None and not encoding.is_default:
            raise ValueError("another model needs same, its threshold for texts that say the same, or same=none.")
        if settings.get("same") != NO_MEANINGS and inputs.classes is None:
            SemanticEntropySettings(same=settings.get("same"), **encoder).check_found()
    caveats = find_caveats(inputs, settings.get("tokenizer", WHITESPACE), encoding.is_english, choices.by_gruen)
    unread = _unread(caveats)
    by_gruen = inputs.rated_by is None and choices.by_gruen and len(unread["quality"]) < len(inputs.systems)
    bar = tqdm(total=5, desc="Report", unit="step", disable=not settings["progress"])
    with tempfile.TemporaryDirectory() as folder, bar:
        encoder["cache_dir"] = str(settings["cache_dir"] or folder)
        bar.set_postfix_str("quality")
        ratings = rate(inputs, by_gruen, encoder)
        bar.update()
        bar.set_postfix_str("diversity")
        scores = score(inputs, ratings, encoder, settings)
        bar.update()
        bar.set_postfix_str("likeness")
        likeness = compare_systems(inputs, level, encoder)
        bar.update()
        bar.set_postfix_str("people")
        people = compare_with_people(inputs, level, encoder)
        bar.update()
        bar.set_postfix_str("the same length")
        at_length = score_same_length(inputs, level, encoder, settings, caveats) if choices.same_length else None
        bar.update()
        bar.set_postfix_str("")
        pairs = None
        if inputs.smallest is not None:
            arguments = {**encoder, "contexts": inputs.contexts, "pairs": True, "confidence": level}
            results = [load_metric("vendi_embed").compute(predictions=sets, **arguments) for sets in inputs.texts]
            pairs = [Mean(result["pairs"], result["pairs_confidence_interval"]) for result in results]
    shape = (len(inputs.systems), -1)
    size = inputs.smallest or float(inputs.sizes[0, 0])
    measures = dict(MEASURES)
    if inputs.rated_by is not None:
        measures["quality"] = measures["quality"]._replace(title=inputs.rated_by, bounds=UNBOUNDED)
    metrics = []
    for name, measure in measures.items():
        if name in scores:
            values, signed = scores[name]
            system_scores = np.reshape(values, shape)
            metrics.append(summarize(measure, system_scores, signed, size, level, unread[name]))
    options = {
        "quality": inputs.rated_by or (GRUEN if by_gruen else "none"),
        "setting": {name: str(value) for name, value in settings.items() if name in SETTINGS},
    }
    collapse = []
    spread = []
    shown = inputs if choices.shows_texts else inputs._replace(contexts=None)
    for value, sets in zip(metrics[0].values, inputs.texts, strict=True):
        found = least_diverse(shown.ids, value.scores, sets, encoding.is_english, choices.shows_texts, shown.contexts)
        collapse.append(found[:_SHOWN])
        # The most diverse prompt is the last one.
        spread.append(found[_SHOWN:][::-1][:_SHOWN])
    steps = steps_of(inputs.systems) if choices.keeps_order else None
    order = metrics[0].order
    if choices.keeps_order:
        order = list(range(len(inputs.systems)))
        if steps is not None:
            order.sort(key=steps.__getitem__)
    stripped = {}
    if inputs.strip:
        stripped = {name: marks.counts(inputs.strip) for name, marks in inputs.marks.items()}
    report = Report(
        version=VERSION,
        options=options,
        confidence=level,
        systems=inputs.systems,
        sources=inputs.sources,
        prompts=inputs.ids,
        rarefied_to=inputs.smallest,
        metrics=metrics,
        pairs=pairs,
        likeness=likeness,
        people=people,
        collapse=collapse,
        caveats=caveats,
        same_length=at_length,
        stripped=stripped,
        spread=spread,
        set_sizes=[int(inputs.sizes.min()), int(inputs.sizes.max())],
        n_texts=int(inputs.sizes.sum()),
        order=order,
        are_steps=steps is not None,
        power=find_power(metrics[0], choices),
        commit=find_commit(),
    )
    report = _signed(report, inputs.strip)
    return replace(report, sentences=sentences(report))


def _unread(caveats: Sequence[Caveat]) -> dict[str, set[int]]:
    """Return the systems about which each metric says nothing."""
    unread: dict[str, set[int]] = {name: set() for name in MEASURES}
    for caveat in caveats:
        for name in () if caveat.is_doubt else caveat.metrics:
            unread[name].update(caveat.systems)
    return unread


def score_same_length(
    inputs: Inputs, level: float, encoder: dict[str, Any], settings: Mapping[str, Any], caveats: Sequence[Caveat]
) -> SameLength:
    """Score the diversity of texts cut to the words of the shortest of their prompt.

    Quality is measured on whole texts. `caveats` are about whole texts, and hold for their cut texts, too.
    """
    cut, n_words = cut_to_shortest(inputs)
    scores = score(cut, None, encoder, settings)
    short = find_short_texts(cut, settings.get("tokenizer", WHITESPACE))
    unread = _unread(list(chain(caveats, short)))
    size = inputs.smallest or float(inputs.sizes[0, 0])
    metrics = []
    for name, measure in MEASURES.items():
        if name in scores:
            values, signed = scores[name]
            system_scores = np.reshape(values, (len(inputs.systems), -1))
            signed = str(Signature.parse(signed).merge(texts="cut-to-shortest"))
            metrics.append(summarize(measure, system_scores, signed, size, level, unread[name]))
    return SameLength(n_words, metrics)


def _signed(report: Report, strip: Sequence[str]) -> Report:
    """Add what was stripped from texts to all signatures of a report, and to its options."""
    if not strip:
        return report

    def sign(text: str) -> str:
        return str(Signature.parse(text).merge(**to_signature(strip)))

    metrics = [replace(metric, signature=sign(metric.signature)) for metric in report.metrics]
    likeness = report.likeness
    if likeness is not None:
        whole = replace(likeness.partition, signature=sign(likeness.partition.signature))
        pairs = [replace(pair, signature=sign(pair.signature)) for pair in likeness.pairs]
        similarity = sign(likeness.similarity_signature)
        likeness = replace(likeness, partition=whole, pairs=pairs, similarity_signature=similarity)
    people = report.people
    if people is not None:
        people = replace(people, rows=[replace(row, signature=sign(row.signature)) for row in people.rows])
    at_length = report.same_length
    if at_length is not None:
        cut = [replace(metric, signature=sign(metric.signature)) for metric in at_length.metrics]
        at_length = replace(at_length, metrics=cut)
    options = {**report.options, "strip": list(strip)}
    return replace(report, options=options, metrics=metrics, likeness=likeness, people=people, same_length=at_length)


def least_diverse(
    ids: list[str],
    scores: list[float],
    sets: list[list[str]],
    is_english: bool,
    shows_texts: bool,
    contexts: Sequence[str | None] | None = None,
) -> list[Collapse]:
    """Order prompts by diversity, without those most of whose texts an encoder for English cannot read."""
    order = np.argsort(tied_ranks(scores), kind="stable").tolist()
    entries: list[Collapse] = []
    for p in order:
        texts = sets[p]
        if is_english and np.mean(list(map(is_other_script, texts))) >= MOST:
            continue
        n_equal = sum(n for n in Counter(texts).values() if n > 1)
        context = None if contexts is None else contexts[p]
        entries.append(Collapse(ids[p], scores[p], n_equal / len(texts), texts if shows_texts else None, context))
    return entries


def steps_of(names: Sequence[str]) -> list[float] | None:
    """Return the number in each name, if names differ by one number only, such as `T=0.3` and `T=1.0`; or else None."""
    words = {tuple(_NUMBER.split(name)) for name in names}
    columns = list(zip(*(_NUMBER.findall(name) for name in names), strict=False))
    varying = [values for values in columns if len(set(values)) > 1]
    return list(map(float, varying[0])) if len(words) == 1 and len(varying) == 1 else None


def find_power(metric: Metric, choices: Choices) -> Power | None:
    """Return what the tests of a metric find that mark the first system; None if they are undefined."""
    first, *others = metric.order
    if not others or not metric.is_reliable:
        return None
    scores = np.array([value.scores for value in metric.values])
    leads = Leads((scores[first] - scores[others]).T, choices.level)
    smallest = leads.smallest()
    if smallest is None:
        return None
    needed = None if choices.difference is None else leads.n_needed(choices.difference)
    return Power(smallest, choices.difference, needed)


def find_commit() -> str | None:
    """Return the commit of the checkout, or of the installation from a repository; None if it is not known."""
    with suppress(PackageNotFoundError, KeyError, TypeError):
        installed = json.loads(distribution("text-metrics").read_text("direct_url.json") or "{}")
        return installed["vcs_info"]["commit_id"][:_DIGITS]
    root = FOLDER.parent
    if not (root / ".git").exists():
        return None
    words = ["git", "-C", str(root), "describe", "--always", "--dirty=+changes", f"--abbrev={_DIGITS}", "--exclude=*"]
    with suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return None


def rate(inputs: Inputs, by_gruen: bool, encoder: dict[str, Any]) -> tuple[np.ndarray, str] | None:
    """Return ratings of all texts, those of the inputs or of gruen, with their signature; None without them."""
    if inputs.rated_by is not None:
        return inputs.quality, signature("quality", column=inputs.rated_by)
    if not by_gruen:
        return None
    # GRUEN has models of its own.
    settings = {name: value for name, value in encoder.items() if name not in ("model", "long_texts")}
    texts = list(chain.from_iterable(inputs.by_system().values()))
    result = load_metric(GRUEN).compute(predictions=texts, **settings)
    return np.array(result["scores"]), result["signature"]


def score(
    inputs: Inputs, ratings: tuple[np.ndarray, str] | None, encoder: dict[str, Any], settings: Mapping[str, Any]
) -> dict[str, tuple[Any, str]]:
    """Score the sets of all systems, one system after the other, by one call of each metric.

    Returns a score for each set, and the signature, by the names of `MEASURES`.
    """
    sets = list(chain.from_iterable(inputs.texts))
    sizes = inputs.sizes.ravel()
    k = inputs.smallest
    contexts = None if inputs.contexts is None else inputs.contexts * len(inputs.systems)
    embedding_settings = {**encoder, "contexts": contexts}

    def compute(name: str, **settings: Any) -> dict[str, Any]:
        return score_sets(load_metric(name), sets, settings, k)

    scores: dict[str, tuple[Any, str]] = {}
    by_set = None
    if ratings is not None:
        values, signed = ratings
        scores["quality"] = (mean_by_set(values, sizes), signed)
        if values.min() >= 0 and values.max() <= 1:
            by_set = split_list(values.tolist(), sizes)
    vendi = compute("vendi_embed", **embedding_settings, quality=by_set)
    scores["vendi_embed"] = (vendi["scores"], vendi["signature"])
    chamfer = compute("chamfer_diversity", **embedding_settings)
    scores["chamfer_diversity"] = (chamfer["scores"], chamfer["signature"])
    bleu = compute("self_bleu", repetition=True, details=True, tokenizer=settings.get("tokenizer", WHITESPACE))
    scores["self_bleu"] = (bleu["scores"], bleu["signature"])
    scores["distinct"] = ([row["distinct_2"] for row in bleu["details"]], bleu["signature"])
    scores["compression_ratio"] = ([row["compression_ratio"] for row in bleu["details"]], bleu["signature"])
    lengths = mean_by_set(word_counts(chain.from_iterable(sets)), sizes)
    scores["length"] = (lengths, signature("length", unit="words"))
    if settings.get("same") != NO_MEANINGS:
        if inputs.classes is None:
            meanings = compute("semantic_entropy", **embedding_settings, same=settings.get("same"))
        else:
            meanings = compute("semantic_entropy", classes=list(chain.from_iterable(inputs.classes)))
        scores["n_classes"] = (meanings["n_classes_scores"], meanings["signature"])
    if by_set is not None:
        scores["quality_vendi_embed"] = (vendi["quality_scores"], vendi["signature"])
    return scores


def summarize(
    measure: Measure, scores: np.ndarray, signed: str, size: float, level: float, unreliable: Collection[int] = ()
) -> Metric:
    """Return the means of scores (systems, p), and tests of all pairs; `unreliable` are systems without meaning."""
    values = [
        Value(mean.value, mean.interval(level, measure.bounds, size), row.tolist(), i not in unreliable)
        for i, (row, mean) in enumerate(zip(scores, map(mean_estimate, scores), strict=True))
    ]
    pairs = list(combinations(range(len(scores)), 2))
    tests = [Test(i, j, **paired_test(scores[i], scores[j], level, n_tests=len(pairs))) for i, j in pairs]
    adjusted = holm([test.p for test in tests])
    tests = [replace(test, p_holm=p) for test, p in zip(tests, adjusted, strict=True)]
    sign = 1 if measure.better == "lower" else -1
    order = np.argsort(tied_ranks([sign * value.mean for value in values]), kind="stable").tolist()
    # First is the system whose tests against all others hold.
    p_values = [test.p_holm for test in tests if order[0] in (test.a, test.b)]
    is_first = bool(p_values) and all(p is not None and p < 1 - level for p in p_values) and not unreliable
    best = order[0] if is_first and measure.better is not None else None
    name, title, better, _, section = measure
    return Metric(name, title, better, section, signed, values, tests, order, best)
