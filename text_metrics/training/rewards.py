"""A metric as a reward function for reinforcement learning, as GRPOTrainer of TRL calls it."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from text_metrics.metrics._core.core_inputs import as_list
from text_metrics.metrics._core.core_numbers import describe, parse_choice, parse_count, parse_number
from text_metrics.metrics._core.core_results import SETS, TEXTS
from text_metrics.questions.contributions import score_contributions
from text_metrics.training.common import gather, read_metric

QUALITY, CONTRIBUTION = "quality", "contribution"
DISTINCT_SHARE, INVERSE_CLASS_SIZE = "distinct_share", "inverse_class_size"
_TIMES = "quality_times_"
# Of these, more is more diverse, so that a contribution is a reward.
_DIVERSITY = ("vendi_embed", "chamfer_diversity", "semantic_entropy")


def for_rewards(
    metric: Any,
    set_size: int | None = None,
    reward: str | None = None,
    quality: Callable[..., Any] | None = None,
    **settings: Any,
) -> "RewardFunction":
    """Make a reward function for reinforcement learning, such as by GRPOTrainer of TRL.

    Parameters
    ----------
    metric : a loaded metric, or its name: vendi_embed, chamfer_diversity or semantic_entropy of sets, gruen of texts
    set_size : number of completions of a prompt, the trainer's `num_generations`; not for gruen
    reward : "contribution", of each text to the score of its set, which is the default; of semantic_entropy also
        "distinct_share", the share of the other texts that are not of its class, or "inverse_class_size"; each also
        times quality, such as "quality_times_contribution"; of gruen "quality"
    quality : for the rewards times quality, another reward function, with values in [0, 1]
    **settings : of `compute`, such as `device`

    Returns
    -------
    A function of `prompts`, `completions` and further keyword arguments that returns a float for each text.

    Raises
    ------
    TypeError, ValueError
        For arguments and settings that are invalid, do not go together, or are not known before training.
    """
    metric = read_metric(metric, settings, "for_rewards")
    rewards: tuple[str, ...] = (QUALITY,)
    if metric.items == SETS and metric.name in _DIVERSITY:
        by_class = (DISTINCT_SHARE, INVERSE_CLASS_SIZE) if metric.name == "semantic_entropy" else ()
        rewards = tuple(f"{times}{measure}" for measure in (CONTRIBUTION, *by_class) for times in ("", _TIMES))
    elif metric.items != TEXTS:
        raise ValueError(f"{metric.name} gives no rewards: it does not say how diverse each text makes its set.")
    reward = rewards[0] if reward is None else reward
    parse_choice(reward, "reward", rewards)
    if (set_size is None) != (metric.items == TEXTS):
        raise ValueError(
            "set_size must be the number of completions of a prompt, the trainer's num_generations, and is not for a "
            f"metric of single texts. Got {set_size} for {metric.name}."
        )
    least = 2 if reward.removeprefix(_TIMES) == DISTINCT_SHARE else 1
    set_size = None if set_size is None else parse_count(set_size, "set_size", least)
    if reward.startswith(_TIMES) != (quality is not None):
        raise ValueError(f"reward={reward!r} and quality={describe(quality)}: quality goes with '{_TIMES}...' only.")
    if quality is not None and not callable(quality):
        raise TypeError(f"quality must be a reward function, such as for_rewards('gruen'). Got {describe(quality)}.")
    return RewardFunction(metric, set_size, reward, quality, settings)


@dataclass(eq=False)
class RewardFunction:
    """A function from completions to rewards; the completions of one prompt are a set: see `for_rewards`.

    Each process holds a slice of the completions, and only those of all processes together divide into sets. The
    slices are exchanged, and each process scores the sets of which it holds a part. `signature` is of the last call.
    """

    metric: Any
    set_size: int | None
    reward: str
    quality: Callable[..., Any] | None
    settings: dict[str, Any]
    signature: str | None = None

    def __post_init__(self) -> None:
        self.__name__ = f"{self.metric.name}_{self.reward}"

    def __call__(self, *, completions: Any, prompts: Any = None, **columns: Any) -> list[float | None]:
        """Compute the rewards of this process's completions; with several processes, all must call together.

        Parameters
        ----------
        completions : list of n strings, or of n lists of chat messages, of which the assistant's are read
        prompts : list of n strings or lists of messages, to check that the completions of each prompt are a set. A
            trainer that may generate several sets in a row for one prompt must not pass them.
        **columns : what else the trainer passes. `quality` receives all of it. If `log_metric` is among it, the scores
            of the sets are logged.

        Returns
        -------
        list of n floats; None for a text without a rating

        Raises
        ------
        TypeError, ValueError
            If the completions are not texts, the completions of each prompt are not a set, or a rating is not in
            [0, 1].
        """
        texts = read_completions(completions)
        if self.set_size is None:
            return self._score(texts)[0] if texts else []
        keys = [] if prompts is None else [json.dumps(prompt, sort_keys=True, default=_type) for prompt in prompts]
        parts, rank = gather((texts, keys))
        sizes = [len(part) for part, _ in parts]
        together = [text for part, _ in parts for text in part]
        _check_sets(self.set_size, len(together), [key for _, part in parts for key in part])
        # The sets that hold a text of this process.
        start = sum(sizes[:rank])
        first, last = start // self.set_size, -(-(start + len(texts)) // self.set_size)
        if not texts:
            return []
        sets = [together[i * self.set_size : (i + 1) * self.set_size] for i in range(first, last)]
        values, scores = self._score(sets)
        if columns.get("log_metric") is not None:
            # The process that holds the first text of a set logs its score; the trainer averages them.
            for score in scores[int(start > first * self.set_size) :]:
                columns["log_metric"](self.metric.name, score)
        values = values[start - first * self.set_size :][: len(texts)]
        if self.quality is None:
            return values
        ratings = _read_ratings(self.quality(prompts=prompts, completions=completions, **columns), len(texts))
        return [multiply(*pair) for pair in zip(ratings, values, strict=True)]

    def _score(self, predictions: list[Any]) -> tuple[list[float | None], list[float | None]]:
        """Return the value of each text, and the score of each set or text."""
        values: list[float | None]
        measure = self.reward.removeprefix(_TIMES)
        if measure == CONTRIBUTION:
            result, rows = score_contributions(self.metric, predictions, self.settings)
            values = [value for row in rows for value in row]
            if all(value is None for value in values):
                raise ValueError(f"set_size={self.set_size}: a text alone has no contribution to {self.metric.name}.")
        elif measure == QUALITY:
            result = self.metric.compute(predictions=predictions, **self.settings)
            values = result["scores"]
        else:
            result = self.metric.compute(predictions=predictions, details=True, **self.settings)
            values = [value for row in result["details"] for value in class_rewards(row["classes"], measure)]
        self.signature = f"{result['signature']}|reward:{self.reward}"
        if self.quality is not None:
            self.signature += f"|quality:custom({getattr(self.quality, '__name__', type(self.quality).__name__)})"
        return values, result["scores"]


def _check_sets(size: int, n_texts: int, prompts: list[str]) -> None:
    """Raise a ValueError unless the completions of each prompt, if there are any prompts, are a set."""
    runs = [len(list(run)) for _, run in itertools.groupby(prompts)]
    # A prompt may have two sets in a row: those that have one show the size.
    if n_texts % size or len(prompts) not in (0, n_texts) or (math.gcd(*runs) or size) != size:
        seen = f", whose prompts are equal in runs of {', '.join(map(str, sorted(set(runs))))}" if runs else ""
        raise ValueError(
            "set_size must be the number of consecutive completions of each prompt: the trainer's num_generations, in "
            f"an evaluation its num_generations_eval. Got set_size={size} for {n_texts} completions{seen}."
        )


def class_rewards(classes: list[int], measure: str) -> list[float]:
    """Reward each of n texts by the size of its class.

    Parameters
    ----------
    classes : the class of each text, n of at least 2 for DISTINCT_SHARE
    measure : DISTINCT_SHARE: (n - size) / (n - 1), the share of the other texts that are not of its class (DARLING,
        arXiv 2509.02534); or INVERSE_CLASS_SIZE: 1 / size

    Returns
    -------
    list of n floats in [0, 1]; higher is more distinct
    """
    n, sizes = len(classes), Counter(classes)
    if measure == DISTINCT_SHARE:
        return [(n - sizes[label]) / (n - 1) for label in classes]
    return [1 / sizes[label] for label in classes]


def multiply(rating: float | None, contribution: float | None) -> float | None:
    """Multiply a rating by a contribution, or a share, of which a negative one counts as 0.

    The product of a negative contribution would be the higher, the worse the text.
    """
    return None if rating is None or contribution is None else rating * max(contribution, 0.0)


def read_completions(completions: Any) -> list[str]:
    """Read completions, strings or lists of chat messages with `role` and `content`, as texts.

    The contents of the assistant's messages are joined by newlines; a call of a tool has none. Raises a TypeError if a
    completion is neither, or a content is not a text.
    """
    items = as_list(completions, "completions", "a list of texts or of lists of chat messages")
    return [_read_completion(item, f"completions[{i}]") for i, item in enumerate(items)]


def _read_completion(item: Any, name: str) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, (list, tuple)) or not all(isinstance(message, Mapping) for message in item):
        raise TypeError(f"{name} must be a text or a list of chat messages. Got {describe(item)}.")
    contents = [message.get("content") or "" for message in item if message.get("role", "assistant") == "assistant"]
    for content in contents:
        if not isinstance(content, str):
            raise TypeError(f"{name} must have texts as contents of its messages. Got {describe(content)}.")
    return "\n".join(filter(None, contents))


def _read_ratings(given: Any, n_texts: int) -> list[float | None]:
    values = as_list(given, "quality", "a function that returns a list of ratings")
    if len(values) != n_texts:
        raise ValueError(f"quality must return a rating for each completion. Got {len(values)} for {n_texts}.")
    return [
        None if value is None else parse_number(value, f"quality of completions[{i}]", 0, 1)
        for i, value in enumerate(values)
    ]


def _type(value: Any) -> str:
    """Stand for a part of a prompt that JSON does not know, such as an image."""
    return type(value).__name__
