"""Shared parts of evaluation in training and of rewards."""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from torch import distributed

import text_metrics
from text_metrics.core_api import SETS, describe, result_numbers
from text_metrics.questions.sets import score_sets

CONTEXTS = "contexts"


def read_metric(metric: Any, settings: Mapping[str, Any], caller: str, columns: tuple[str, ...] = ()) -> Any:
    """Load a metric by its name, and raise an error for a setting that is invalid or not known before training.

    columns : the settings that may name a column of the trainer's
    """
    metric = text_metrics.load(metric) if isinstance(metric, str) else metric
    metric.settings.read(settings, metric.name)
    for name, declared in metric.settings.declared().items():
        value = settings.get(name)
        is_column = name in columns and isinstance(value, str)
        if declared.is_given(value) and not is_column:
            raise ValueError(f"{name} cannot be given to {caller}: it has a value for each {declared.given}.")
    return metric


def shared_context(contexts: Iterable[str]) -> str:
    """Return the context of a set, which all of its texts must have."""
    first, *different = dict.fromkeys(contexts)
    if different:
        raise ValueError(f"contexts must be equal in a set. Got {describe(first)}, {describe(different[0])}.")
    return first


def read_chat(item: Any, role: str, name: str) -> list[str]:
    """Return the messages of a role in a chat, or a text as the only one; a call of a tool has the empty text.

    Of a surrogate without its pair, as in a byte-level tokenizer's half of a character, U+FFFD is read.
    """
    if isinstance(item, str):
        return [_pair_surrogates(item)]
    try:
        contents = [message.get("content") or "" for message in item if message["role"] == role]
        texts = [content if isinstance(content, str) else _join_parts(content) for content in contents]
        return [_pair_surrogates(text) for text in texts]
    except (TypeError, KeyError, AttributeError):
        expected = "a text, or a list of chat messages with texts, or lists of parts, as content"
        raise TypeError(f"{name} must be {expected}. Got {describe(item)}.") from None


def _pair_surrogates(text: str) -> str:
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _join_parts(content: list[dict[str, str]]) -> str:
    return "".join(part["text"] for part in content if part["type"] == "text")


def read_prompt(prompt: Any, name: str) -> str:
    """Return a text, or the last message of the user in a chat."""
    messages = read_chat(prompt, "user", name)
    if not messages:
        raise TypeError(f"{name} must be a text, or a chat with a message of the user. Got {describe(prompt)}.")
    return messages[-1]


def compute_of_sets(metric: Any, sets: list[list[str]], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Score sets, or their texts by a metric of texts; its interval takes texts of a set as dependent.

    If all texts are empty, results of sets for which lower is more diverse are None: they would be at their best.
    """
    result = score_sets(metric, sets, settings)
    if metric.items == SETS and not any(map(str.strip, chain.from_iterable(sets))):
        for name in result:
            if _is_decreasing(metric, name) or name.endswith("confidence_interval"):
                result[name] = None
    return result


def name_numbers(metric: Any, result: Mapping[str, Any]) -> dict[str, float]:
    """Name the numbers of a result for a log; the metric's own is NaN if there is none.

    Each name holds that of the metric, so that results of several metrics can be merged. A number for which lower is
    better or more diverse is also returned negated, as `neg_<name>`.
    """
    named = {name: float(value) for name, value in result_numbers(result) if value is not None}
    named.setdefault(metric.name, math.nan)
    for name, value in result.items():
        if name.endswith("confidence_interval") and value is not None:
            stem = name.removesuffix("interval")
            named |= {f"{stem}low": value[0], f"{stem}high": value[1]}
    logged = {}
    for name, value in named.items():
        whole = name if metric.name in name else f"{metric.name}_{name}"
        logged[whole] = value
        if _is_decreasing(metric, name):
            logged[f"neg_{whole}"] = -value
    return logged


def _is_decreasing(metric: Any, name: str) -> bool:
    return re.sub(r"_\d+$", "", name) in metric.decreasing


def gather(value: Any) -> tuple[list[Any], int]:
    """Collect a value from all processes of torch.distributed, in order; also return the rank of this process."""
    if not distributed.is_available() or not distributed.is_initialized():
        return [value], 0
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values, distributed.get_rank()
