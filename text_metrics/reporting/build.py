"""Build a report from the sets of its systems: check its settings, compute its parts, and say what they show."""

import json
import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from text_metrics import FOLDER
from text_metrics.console import input_checked
from text_metrics.core_api import (
    VERSION,
    WHITESPACE,
    EncoderSettings,
    SemanticEntropySettings,
    Signature,
    is_other_script,
    parse_level,
    parse_number,
    tied_ranks,
)
from text_metrics.reporting.caveats import MOST, find_caveats
from text_metrics.reporting.inputs import SETTINGS, Inputs
from text_metrics.reporting.likeness import compare_systems, compare_with_people
from text_metrics.reporting.results import Collapse, Metric, Power, Report
from text_metrics.reporting.scores import (
    GRUEN,
    NO_MEANINGS,
    find_unread,
    rate,
    score,
    score_same_length,
    summarize_all,
)
from text_metrics.reporting.sentences import sentences
from text_metrics.statistics import Leads
from text_metrics.texts import to_signature

# Digits of a commit.
_DIGITS = 12
# Prompts of least, and of most, diversity that are shown of each system.
_SHOWN = 5
_NUMBER = re.compile(r"(?:(?<![\w.])-)?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Choices:
    """Choices of what a report shows, besides the settings of its metrics.

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


def build(inputs: Inputs, choices: Choices, settings: Mapping[str, Any]) -> Report:
    """Compute a report; raises a ValueError for an invalid setting.

    settings : those of `SETTINGS`, `cache_dir` and `progress`; with same="none", meanings are not counted
    """
    level = choices.level
    encoder = {name: settings[name] for name in ("model", "long_texts", "batch_size", "device") if name in settings}
    is_english = _check(inputs, choices, settings, encoder)
    steps = steps_of(inputs.systems) if choices.keeps_order else None
    if steps is not None:
        inputs = inputs.ordered(np.argsort(steps, kind="stable").tolist())
    tokenizer = settings.get("tokenizer", WHITESPACE)
    caveats = find_caveats(inputs, tokenizer, is_english, choices.by_gruen, choices.same_length)
    is_rateable = len(find_unread(caveats)["quality"]) < len(inputs.systems)
    by_gruen = inputs.rated_by is None and choices.by_gruen and is_rateable
    bar = tqdm(total=5, desc="Report", unit="step", postfix="quality", disable=not settings["progress"])

    def go_on_to(step: str) -> None:
        bar.update()
        bar.set_postfix_str(step)

    with tempfile.TemporaryDirectory() as folder, bar:
        encoder["cache_dir"] = str(settings["cache_dir"] or folder)
        ratings = rate(inputs, by_gruen, encoder)
        go_on_to("diversity")
        scores = score(inputs, ratings, encoder, settings)
        go_on_to("likeness")
        likeness = compare_systems(inputs, level, encoder)
        go_on_to("people")
        people = compare_with_people(inputs, level, encoder)
        go_on_to("the same length")
        at_length = score_same_length(inputs, level, encoder, settings, caveats) if choices.same_length else None
        go_on_to("")
    metrics = summarize_all(inputs, scores, level, caveats)
    options: dict[str, Any] = {
        "quality": inputs.rated_by or (GRUEN if by_gruen else "none"),
        "setting": {name: str(value) for name, value in settings.items() if name in SETTINGS},
        "difference": choices.difference,
    }
    contexts = inputs.contexts if choices.shows_texts else None
    prompts = []
    for value, sets in zip(metrics[0].values, inputs.texts, strict=True):
        prompts.append(least_diverse(inputs.ids, value.scores, sets, is_english, choices.shows_texts, contexts))
    report = Report(
        version=VERSION,
        options=options,
        confidence=level,
        systems=inputs.systems,
        sources=inputs.sources,
        prompts=inputs.ids,
        rarefied_to=inputs.smallest,
        metrics=metrics,
        likeness=likeness,
        people=people,
        collapse=[entries[:_SHOWN] for entries in prompts],
        caveats=caveats,
        same_length=at_length,
        stripped={name: marks.counts(inputs.strip) for name, marks in inputs.marks.items() if inputs.strip},
        # The most diverse prompt is the last one.
        spread=[entries[_SHOWN:][::-1][:_SHOWN] for entries in prompts],
        set_sizes=[int(inputs.sizes.min()), int(inputs.sizes.max())],
        n_texts=int(inputs.sizes.sum()),
        order=list(range(len(inputs.systems))) if choices.keeps_order else metrics[0].order,
        are_steps=steps is not None,
        power=find_power(metrics[0], choices, inputs.set_size),
        commit=find_commit(),
    )
    if inputs.strip:
        options["strip"] = list(inputs.strip)
        report = _signed(report, inputs.strip)
    return replace(report, sentences=sentences(report))


def _check(inputs: Inputs, choices: Choices, settings: Mapping[str, Any], encoder: Mapping[str, Any]) -> bool:
    """Raise a ValueError for an invalid setting, and return whether the encoder reads English only."""
    largest = inputs.set_size - 1
    if choices.difference is not None and choices.difference > largest:
        raise ValueError(
            f"difference must be at most {largest:g}, the most by which Vendi scores of {inputs.set_size:g} texts "
            f"differ. Got {choices.difference:g}."
        )
    same = settings.get("same")
    has_classes = inputs.classes is not None
    with input_checked():
        encoding = EncoderSettings(**encoder)
        if same is not None and has_classes:
            raise ValueError("same and classes cannot be combined: pass one of them.")
        if same is None and not has_classes and not encoding.is_default:
            raise ValueError("another model needs same, its threshold for texts that say the same, or same=none.")
        if same != NO_MEANINGS and not has_classes:
            SemanticEntropySettings(same=same, **encoder).check_found()
    return encoding.is_english


def _signed(part: Any, strip: Sequence[str]) -> Any:
    """Add what was stripped from texts to all signatures in a part of a report."""
    if isinstance(part, list):
        return [_signed(each, strip) for each in part]
    if not is_dataclass(part) or isinstance(part, type):
        return part
    signed = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name.endswith("signature"):
            signed[field.name] = str(Signature.parse(value).merge(**to_signature(strip)))
        else:
            signed[field.name] = _signed(value, strip)
    return replace(part, **signed)


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
        context = contexts[p] if contexts else None
        entries.append(Collapse(ids[p], scores[p], n_equal / len(texts), texts if shows_texts else None, context))
    return entries


def steps_of(names: Sequence[str]) -> list[float] | None:
    """Return the number in each name, if names differ by one number only, such as `T=0.3` and `T=1.0`; or else None."""
    words = {tuple(_NUMBER.split(name)) for name in names}
    columns = list(zip(*(_NUMBER.findall(name) for name in names), strict=False))
    varying = [values for values in columns if len(set(values)) > 1]
    return list(map(float, varying[0])) if len(words) == 1 and len(varying) == 1 else None


def find_power(metric: Metric, choices: Choices, size: float = math.inf) -> Power | None:
    """Return what the tests of a metric of sets of a size find that mark the first system; None if undefined."""
    first, *others = metric.order
    if not others or not metric.is_reliable:
        return None
    scores = np.array([value.scores for value in metric.values])
    leads = Leads((scores[first] - scores[others]).T, choices.level)
    smallest = leads.smallest()
    if smallest is None:
        return None
    needed = None if choices.difference is None else leads.n_needed(choices.difference)
    return Power(smallest if smallest <= size - 1 else None, choices.difference, needed)


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
