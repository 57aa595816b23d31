"""A loaded metric as a reward function for reinforcement learning, as GRPOTrainer of TRL calls it."""

import hashlib
import itertools
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .core_forks import one_thread
from .core_inputs import as_list
from .core_numbers import describe, parse_choice, parse_count, parse_number
from .core_results import TEXTS
from .core_trainer import check_settings, count_processes

QUALITY, CONTRIBUTION = "quality", "contribution"
DISTINCT_SHARE, INVERSE_CLASS_SIZE = "distinct_share", "inverse_class_size"
_TIMES = "quality_times_"


class _Part(NamedTuple):
    """The completions of one process, with the digests of their prompts and their ratings."""

    texts: list[str]
    prompts: list[bytes]
    qualities: list[float | None]


class RewardFunction:
    """A function from completions to rewards; the completions of one prompt are a set.

    Each process holds a slice of the completions, and only those of all processes together divide into sets. The
    slices are exchanged, and each process scores the sets of which it holds a part.

    Attributes
    ----------
    signature : signature of the last call
    set_size : number of completions of a prompt; None if each text is scored by itself
    """

    def __init__(
        self,
        metric: Any,
        set_size: int | None,
        reward: str | None,
        quality: Callable[..., Any] | None,
        settings: dict[str, Any],
    ) -> None:
        name, scores_texts = metric.name, metric.items == TEXTS
        if scores_texts:
            rewards: tuple[str, ...] = (QUALITY,)
        elif "contributions" in metric.settings.declared():
            rewards = (CONTRIBUTION, f"{_TIMES}{CONTRIBUTION}")
            if "classes" in metric.settings.declared():
                rewards += tuple(
                    f"{times}{name}" for name in (DISTINCT_SHARE, INVERSE_CLASS_SIZE) for times in ("", _TIMES)
                )
        else:
            raise ValueError(f"{name} gives no rewards: it does not score the single texts of a set.")
        check_settings(metric, settings, "for_rewards")
        for key in settings:
            if metric.settings.declared()[key].of_mean:
                raise ValueError(f"{key} cannot be given to for_rewards: a reward is the score of one text.")
        self._reward = rewards[0] if reward is None else reward
        parse_choice(self._reward, "reward", rewards)
        if scores_texts and set_size is not None:
            raise ValueError(f"set_size has no effect: {name} scores each text by itself.")
        if not scores_texts and set_size is None:
            raise ValueError(
                "set_size must be the number of completions of a prompt, the trainer's num_generations. Got None."
            )
        self._measure = self._reward.removeprefix(_TIMES)
        if self._measure in (DISTINCT_SHARE, INVERSE_CLASS_SIZE) and settings.get("kernel") != "classes":
            raise ValueError(f"reward={self._reward!r} needs kernel='classes', which says what is distinct.")
        if self._measure == DISTINCT_SHARE and set_size == 1:
            raise ValueError(f"reward={self._reward!r} needs a set_size of at least 2. Got 1.")
        if self._reward != self._measure and quality is None:
            raise ValueError(f"reward={self._reward!r} needs quality: a reward function with values in [0, 1].")
        if self._reward == self._measure and quality is not None:
            product = f"{_TIMES}{CONTRIBUTION if scores_texts else self._measure}"
            raise ValueError(f"quality has no effect on reward={self._reward!r}: pass reward={product!r}.")
        if quality is not None and not callable(quality):
            raise TypeError(f"quality must be a reward function, such as gruen.for_rewards(). Got {describe(quality)}.")
        self._metric, self._quality, self._settings = metric, quality, settings
        self.set_size = None if set_size is None else parse_count(set_size, "set_size")
        self.__name__ = f"{name}_{self._reward}"
        self.signature: str | None = None

    def __call__(self, *, completions: Any, prompts: Any = None, **columns: Any) -> list[float | None]:
        """Compute the rewards of this process's completions; with several processes, all must call together.

        Parameters
        ----------
        completions : list of n strings, or of n lists of chat messages, of which the assistant's are read
        prompts : list of n strings or lists of messages, to check that the completions of each prompt are a set. A
            trainer that is not of TRL, and may generate several sets in a row for one prompt, must not pass them.
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
        RuntimeError
            If another process raised such an error.
        """
        if self.set_size is None:
            return self._score(read_completions(completions), columns)
        part: _Part | None = None
        error: Exception | None = None
        try:
            part = self._read(completions, prompts, columns)
        except Exception as raised:
            error = raised
        parts, rank = _exchange(str(error) if part is None else part)
        if error is not None:
            raise error
        for process, message in enumerate(parts):
            if isinstance(message, str):
                raise RuntimeError(f"Process {process} could not read its completions: {message}")
        return self._reward_slice(parts, rank, columns)

    def _read(self, completions: Any, prompts: Any, columns: Mapping[str, Any]) -> _Part:
        texts = read_completions(completions)
        given = [] if prompts is None else as_list(prompts, "prompts", "a list, with a prompt for each completion")
        if prompts is not None and len(given) != len(texts):
            raise ValueError(f"prompts must have an item for each completion. Got {len(given)} for {len(texts)}.")
        qualities: list[float | None] = []
        if self._quality is not None:
            qualities = _read_qualities(self._quality(prompts=prompts, completions=completions, **columns), len(texts))
        return _Part(texts, [_digest(prompt) for prompt in given], qualities)

    def _reward_slice(self, parts: list[_Part], rank: int, columns: Mapping[str, Any]) -> list[float | None]:
        """Score the sets that hold a text of this process, and select the rewards of its texts."""
        size = self.set_size
        assert size is not None
        texts = [text for part in parts for text in part.texts]
        prompts = [prompt for part in parts for prompt in part.prompts]
        _check_sets(size, len(texts), len(parts), prompts, _stated_size(columns))
        start = sum(len(part.texts) for part in parts[:rank])
        stop = start + len(parts[rank].texts)
        first, last = start // size * size, -(-stop // size) * size
        # The process that holds the first text of a set logs its score.
        values = self._score(texts[first:last], columns, int(start > first))[start - first : stop - first]
        if self._quality is None:
            return values
        return [multiply(*pair) for pair in zip(parts[rank].qualities, values, strict=True)]

    def _score(self, texts: list[str], columns: Mapping[str, Any], n_unlogged: int = 0) -> list[float | None]:
        """Score texts, or the consecutive sets that they make: the value of each text.

        Log the scores of the sets, without the first `n_unlogged`; the trainer averages them.
        """
        if not texts:
            return []
        finer = "contributions" if self._measure == CONTRIBUTION else "details"
        sets = {} if self.set_size is None else {"set_size": self.set_size, finer: True}
        with one_thread():
            result = self._metric._compute(predictions=texts, **sets, **self._settings)
        self.signature = f"{result['signature']}|reward:{self._reward}"
        if self._quality is not None:
            name = getattr(self._quality, "__name__", type(self._quality).__name__)
            self.signature += f"|quality:custom({name})"
        if self.set_size is None:
            return result["scores"]
        values: list[float | None]
        if self._measure == CONTRIBUTION:
            values = [value for row in result["contributions"] for value in row]
        else:
            values = [value for row in result["details"] for value in class_rewards(row["classes"], self._measure)]
        if all(value is None for value in values):
            raise ValueError(
                f"set_size={self.set_size}, but {self._metric.name} has no contributions for sets of this size."
            )
        if columns.get("log_metric") is not None:
            for score in result["scores"][n_unlogged:]:
                columns["log_metric"](self._metric.name, score)
        return values


def _check_sets(size: int, n_texts: int, n_processes: int, prompts: list[bytes], stated: int | None) -> None:
    """Raise a ValueError unless the completions of each prompt are a set.

    Parameters
    ----------
    prompts : the digests of n_texts prompts; empty if there are none
    stated : the number of completions of a prompt; if None, the greatest that the prompts allow
    """
    runs = [len(list(run)) for _, run in itertools.groupby(prompts)]
    expected = stated or math.gcd(*runs) or size
    if expected == size and n_texts % size == 0:
        return
    seen = ""
    if stated is not None:
        seen = f", of which the trainer generates {stated} for each prompt"
    elif runs:
        seen = f", whose prompts are equal in runs of {', '.join(map(str, sorted(set(runs))))}"
    raise ValueError(
        "set_size must be the number of consecutive completions of each prompt: the trainer's num_generations, in an "
        f"evaluation its num_generations_eval. Got set_size={size} for {n_texts} completions of {n_processes} "
        f"processes{seen}."
    )


def _stated_size(columns: Mapping[str, Any]) -> int | None:
    """Return the number of completions of a prompt in this call, if a trainer of TRL calls; otherwise None.

    Prompts do not always show it: a dataset may hold one twice, and environments change them.
    """
    trainer = getattr(columns.get("log_metric"), "__self__", None)
    is_evaluation = getattr(getattr(trainer, "model", None), "training", True) is False
    stated = getattr(trainer, "num_generations_eval" if is_evaluation else "num_generations", None)
    return stated if isinstance(stated, int) else None


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


def multiply(quality: float | None, contribution: float | None) -> float | None:
    """Multiply a rating by a contribution, or a share, of which a negative one counts as 0.

    The product of a negative contribution would be the higher, the worse the text.
    """
    return None if quality is None or contribution is None else quality * max(contribution, 0.0)


def read_completions(completions: Any) -> list[str]:
    """Read completions, strings or lists of chat messages with `role` and `content`, as texts.

    The contents of the assistant's messages are joined by newlines, without the calls of tools and their results.
    Raises a TypeError if a completion is neither, or a content is not a text.
    """
    items = as_list(completions, "completions", "a list of texts or of lists of chat messages")
    return [_read_completion(item, f"completions[{i}]") for i, item in enumerate(items)]


def _read_completion(item: Any, name: str) -> str:
    if isinstance(item, str):
        return item
    if not isinstance(item, (list, tuple)):
        raise TypeError(f"{name} must be a text or a list of chat messages. Got {describe(item)}.")
    contents = []
    for i, message in enumerate(item):
        if not isinstance(message, Mapping) or "content" not in message:
            raise TypeError(f"{name}[{i}] must be a chat message with a content. Got {describe(message)}.")
        if message.get("role", "assistant") == "assistant":
            contents.append(_read_content(message["content"], f"{name}[{i}]['content']"))
    return "\n".join(filter(None, contents))


def _read_content(content: Any, name: str) -> str:
    """Read the content of a message: a text, the parts of one, or None beside the call of a tool."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, (list, tuple)) or not all(
        isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content
    ):
        raise TypeError(f"{name} must be a text or a list of parts with a text. Got {describe(content)}.")
    return "".join(part["text"] for part in content)


def _read_qualities(given: Any, n_texts: int) -> list[float | None]:
    values = as_list(given, "quality", "a function that returns a list of ratings")
    if len(values) != n_texts:
        raise ValueError(f"quality must return a rating for each completion. Got {len(values)} for {n_texts}.")
    return [
        None if value is None else parse_number(value, f"quality of completions[{i}]", 0, 1)
        for i, value in enumerate(values)
    ]


def _digest(prompt: Any) -> bytes:
    """Identify a prompt, the same in all processes."""
    return hashlib.blake2b(json.dumps(prompt, sort_keys=True, default=_show).encode(), digest_size=16).digest()


def _show(value: Any) -> str:
    """Describe a part of a prompt that JSON does not know: an image by its pixels, and others by their types."""
    name = type(value).__name__
    if not hasattr(value, "__array_interface__"):
        return name
    pixels = np.ascontiguousarray(value)
    return f"{name} {pixels.shape} {hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()}"


def _exchange(message: Any) -> tuple[list[Any], int]:
    """Collect the objects of all processes, in the order of their ranks; also return the rank of this process."""
    if count_processes() == 1:
        return [message], 0
    distributed = sys.modules["torch.distributed"]
    parts: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(parts, message)
    return parts, distributed.get_rank()
