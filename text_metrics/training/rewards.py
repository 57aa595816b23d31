"""A metric as a reward function for reinforcement learning, as GRPOTrainer of TRL calls it."""

import asyncio
import hashlib
import inspect
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from numbers import Real
from typing import Any

from text_metrics.core_api import (
    SETS,
    TIE,
    Signature,
    as_list,
    describe,
    parse_choice,
    parse_count,
    parse_number,
    warn,
)
from text_metrics.questions.contributions import score_contributions
from text_metrics.stripping import Stripper
from text_metrics.training.common import (
    CONTEXTS,
    gather,
    read_chat,
    read_metric,
    read_prompt,
    shared_context,
)

CONTRIBUTION, DISTANCE, DISTINCT_SHARE, QUALITY = "contribution", "distance", "distinct_share", "quality"
# Set metrics for which higher is more diverse, and gruen.
REWARDS = {
    "vendi_embed": (CONTRIBUTION,),
    "chamfer_diversity": (DISTANCE,),
    "semantic_entropy": (CONTRIBUTION, DISTINCT_SHARE),
    "gruen": (QUALITY,),
}
# Settings that do not change a number, and are not part of a name.
_UNNAMED = ("batch_size", "cache_dir", "confidence", "device", "progress")
# Numbers that trainers log themselves.
_LOGGED = ("entropy", "epoch", "grad_norm", "kl", "learning_rate", "loss", "reward", "reward_std", "step")
# Two texts of a set have equal contributions, distances and shares.
_FEWEST = 3


def for_rewards(
    metric: Any,
    set_size: int | None = None,
    reward: str | None = None,
    quality: Callable[..., Any] | None = None,
    strip: Any = None,
    name: str | None = None,
    **settings: Any,
) -> "RewardFunction":
    """Make a reward function of a metric for reinforcement learning, as GRPOTrainer of TRL calls it.

    The completions of one prompt are a set.

    Parameters
    ----------
    metric : a loaded metric, or its name: vendi_embed, chamfer_diversity or semantic_entropy of sets, gruen of texts
    set_size : number of completions of a prompt, at least 3, or 2 with `quality`; only needed where neither TRL's
        `num_generations` nor the prompts say it; not for gruen
    reward : of vendi_embed "contribution", of each text to the score of its set; of chamfer_diversity "distance", to
        the nearest other text of its set; of semantic_entropy "contribution" or "distinct_share", the share of the
        others that are not of its class (arXiv 2509.02534); of gruen "quality"; the first by default
    quality : another reward function, with values in [0, 1], by which the reward is multiplied; not for gruen
    strip : what is removed from completions before they are scored, because it is not the answer: "reasoning",
        "special" (tokens and chat markers), "prompt", as a list or with commas between them; `quality` gets them whole
    name : of the reward and of the scores of sets in logs; by default that of the metric, with the settings
    **settings : of `compute`, such as `device`; `contexts` may be "prompts" or another column of the trainer's, of
        texts or chats; of a chat, the last message of the user is the context

    Returns
    -------
    RewardFunction

    Raises
    ------
    TypeError, ValueError
        For arguments that are invalid or not known before training; when called, if completions are not texts, those
        of a prompt are not a set, the sets are too small for different rewards, another reward of the trainer has the
        same name, or a rating is not in [0, 1].
    """
    return RewardFunction(metric, set_size, reward, quality, strip, name, settings)


class RewardFunction:
    """A reward function that `for_rewards` makes; `signature` is that of the last call.

    Processes exchange the completions, and each scores the sets of which it holds a part.
    """

    def __init__(
        self,
        metric: Any,
        set_size: int | None,
        reward: str | None,
        quality: Callable[..., Any] | None,
        strip: Any,
        name: str | None,
        settings: dict[str, Any],
    ) -> None:
        self.strip = Stripper(strip)
        self.metric = read_metric(metric, settings, "for_rewards", (CONTEXTS,))
        metric_name = parse_choice(self.metric.name, "metric", tuple(REWARDS))
        self.reward = parse_choice(reward or REWARDS[metric_name][0], "reward", REWARDS[metric_name])
        if name is not None and (not isinstance(name, str) or name in ("", *_LOGGED)):
            raise ValueError(f"name must be a text, and no number that trainers log. Got {describe(name)}.")
        if quality is not None and not callable(quality):
            raise TypeError(f"quality must be a reward function. Got {describe(quality)}.")
        if self.metric.items != SETS and (set_size is not None or quality is not None):
            raise ValueError(f"set_size and quality go with metrics of sets: {metric_name} scores each text by itself.")
        self.quality = quality
        self.fewest = _FEWEST if quality is None else 2
        self.set_size = None if set_size is None else parse_count(set_size, "set_size", self.fewest)
        differences = {"strip": "_".join(self.strip.kinds)} if self.strip.kinds else {}
        differences |= {key: value for key, value in settings.items() if key not in _UNNAMED}
        self.contexts = settings.pop(CONTEXTS, None)
        self.settings = settings
        self.signature = ""
        self.__name__ = name or _name([metric_name, self.reward], differences, quality)
        self.score_name = name or _name([metric_name], differences)
        self._scored = [metric_name, differences]
        self._has_rewarded = False
        self._warned_of_size = False

    def __call__(self, *, completions: Any, prompts: Any = None, **columns: Any) -> list[float | None]:
        """Compute the rewards of this process's completions; with several processes, all must call together.

        `completions` are n strings, or lists of chat messages with role and content; the assistant's are read.
        Consecutive completions of equal `prompts`, in the same form, are a set, of `num_generations` in TRL; without
        prompts, `set_size` of them. `quality` gets the columns that it takes; `log_metric` logs scores of sets. Returns
        a list of n floats, with None for a text without a rating, or alone in its set.
        """
        columns |= {"prompts": prompts, "completions": completions}
        self._check_names(columns)
        items = as_list(completions, "completions", "a list of texts or of lists of chat messages")
        # A call of a tool has no text.
        chats = [read_chat(item, "assistant", f"completions[{i}]") for i, item in enumerate(items)]
        texts = ["\n".join(filter(None, messages)) for messages in chats]
        texts = self.strip(texts, self._read_prompts(prompts, len(texts)))
        if self.metric.items != SETS:
            return self._score(texts)[0]
        keys = [json.dumps(prompt, default=_to_key) for prompt in _list(prompts)]
        parts, rank = gather((texts, keys, self._read_contexts(columns, len(texts))))
        all_texts, all_keys, all_contexts = (
            list(itertools.chain.from_iterable(lists)) for lists in zip(*parts, strict=True)
        )
        size = self._read_size(len(all_texts), all_keys, columns)
        # The sets that hold a text of this process.
        start = sum(len(part_texts) for part_texts, _, _ in parts[:rank])
        end = start + len(texts)
        first_set = start // size
        end_set = -(-end // size)
        places = [slice(i * size, (i + 1) * size) for i in range(first_set, end_set)]
        given = {CONTEXTS: [shared_context(all_contexts[place]) for place in places]} if all_contexts else {}
        values: list[float | None] = [None] * (len(places) * size)
        scores: list[float | None] = []
        if size > 1:
            values, scores = self._score([all_texts[place] for place in places], **given)
        # Texts of the first set that other processes hold.
        n_before = start - first_set * size
        if log_metric := columns.get("log_metric"):
            # The process that holds the first text of a set logs its score; the trainer averages them.
            for score in scores[1:] if n_before else scores:
                log_metric(self.score_name, score)
        values = values[n_before : n_before + len(texts)]
        if self.quality is None:
            return values
        ratings = _rate(self.quality, columns, len(texts))
        rewards: list[float | None] = []
        for rating, value in zip(ratings, values, strict=True):
            # Multiplying a negative contribution would reward low quality.
            rewards.append(None if rating is None or value is None else rating * max(value, 0.0))
        return rewards

    def _check_names(self, columns: Mapping[str, Any]) -> None:
        """Raise a ValueError if another reward of the trainer has the name of this one, or of other scores of sets.

        Trainers log the mean of numbers of one name.
        """
        functions = getattr(_find_trainer(columns), "reward_funcs", ())
        others = [function for function in functions if function is not self]
        if len(others) == len(functions):
            # It is the quality of another reward.
            return
        for function in others:
            has_name = getattr(function, "__name__", None) == self.__name__
            has_score_name = isinstance(function, RewardFunction) and function.score_name == self.score_name
            if has_name or (has_score_name and function._scored != self._scored):
                raise ValueError(
                    f"name: the trainer has another reward named {self.__name__!r}, or with scores named "
                    f"{self.score_name!r}, and would log the mean of both. Pass name= to one of them."
                )

    def _read_size(self, n_texts: int, keys: list[str], columns: Mapping[str, Any]) -> int:
        """Return the number of texts of a set, by the trainer, the prompts or `set_size`, in this order.

        keys : what tells the prompts of all texts apart; none if there are no prompts
        """
        runs = [len(list(run)) for _, run in itertools.groupby(keys)]
        # A prompt that comes twice in a row has a run of two sets.
        by_prompts = math.gcd(*runs)
        by_trainer, is_training = _ask_trainer(columns)
        size = by_trainer or by_prompts or self.set_size
        if size is None:
            raise ValueError("set_size is needed where no prompts are passed.")
        is_ambiguous = by_trainer is None and len(set(runs)) > 1 and by_prompts % (self.set_size or n_texts) > 0
        if n_texts % size or by_prompts % size or len(keys) not in (0, n_texts) or is_ambiguous:
            lengths = ", ".join(map(str, sorted(set(runs))))
            seen = f", whose prompts are equal in runs of {lengths}" if runs else ""
            raise ValueError(
                "each prompt must have equally many consecutive completions, set_size of them if it may come twice in "
                f"a row. Got set_size={self.set_size} for {n_texts} completions{seen}."
            )
        if is_training and self.set_size not in (None, size) and not self._warned_of_size:
            self._warned_of_size = True
            warn(
                f"set_size={self.set_size} is wrong: the prompts have {size} consecutive completions, which are a set."
            )
        self._has_rewarded |= size >= self.fewest
        # A caller that is not of TRL may be evaluating fewer texts than it trains with.
        if size < self.fewest and is_training and (by_trainer or not self._has_rewarded):
            raise ValueError(
                f"{self.__name__} needs 3 completions of a prompt, or 2 and quality, because all rewards of a smaller "
                f"set are equal. Got sets of {size}."
            )
        return size

    def _read_prompts(self, prompts: Any, n: int) -> list[str] | None:
        """Read the prompts of n completions, the last messages of users; None if they are not known, nor needed."""
        if prompts is None or len(prompts) != n:
            if self.strip.needs_prompts:
                raise ValueError("strip: 'prompt' requires that the trainer passes the prompt of each completion.")
            return None
        try:
            return [read_prompt(prompt, f"prompts[{i}]") for i, prompt in enumerate(prompts)]
        except TypeError:
            if self.strip.needs_prompts:
                raise
            # Only a count of repeated prompts needs them.
            return None

    def _read_contexts(self, columns: Mapping[str, Any], n: int) -> list[str]:
        """Read the contexts of n completions from their column; empty without `contexts`."""
        if self.contexts is None:
            return []
        rows = _list(columns.get(self.contexts))
        contexts = [read_prompt(row, f"{self.contexts}[{i}]") for i, row in enumerate(rows)]
        if len(contexts) != n:
            raise ValueError(f"contexts: the trainer must pass {self.contexts!r} for each completion.")
        return contexts

    def _score(self, predictions: list[Any], **contexts: Any) -> tuple[list[float | None], list[float | None]]:
        """Return the value of each text, and the score of each set or text."""
        settings = self.settings | contexts
        if self.reward == CONTRIBUTION:
            result, rows = score_contributions(self.metric, predictions, settings)
        else:
            result = self.metric.compute(predictions=predictions, details=True, **settings)
            if self.reward == QUALITY:
                rows = [result["scores"]]
            elif self.reward == DISTANCE:
                rows = [details["distances"] for details in result["details"]]
            else:
                rows = [_distinct_shares(details["classes"]) for details in result["details"]]
        values = list(itertools.chain.from_iterable(rows))
        signed = {"reward": self.reward}
        if self.quality:
            signed["quality"] = "given"
        self.signature = self.strip.sign(str(Signature.parse(result["signature"]).merge(**signed)))
        return values, result["scores"]


def _name(words: list[str], differences: Mapping[str, Any], quality: Any = None) -> str:
    """Join the name of a reward: two with different settings or qualities have different names."""
    if quality is not None:
        quality_name = getattr(quality, "__name__", QUALITY)
        words = [*words, "times", quality_name if quality_name.isidentifier() else QUALITY]
    for setting, value in differences.items():
        # Of an object, such as an encoder, the class.
        is_plain = isinstance(value, (str, int, float, list, tuple))
        words = [*words, setting, str(value) if is_plain else type(value).__name__]
    return re.sub(r"[^\w.-]+", "_", "_".join(words)).strip("_")


def _list(values: Any) -> list[Any]:
    return [] if values is None else list(values)


def _find_trainer(columns: Mapping[str, Any]) -> Any:
    """Return the trainer of TRL that calls, or None: it passes its method `log_metric`."""
    return getattr(columns.get("log_metric"), "__self__", None)


def _ask_trainer(columns: Mapping[str, Any]) -> tuple[int | None, bool]:
    """Return the number of completions of a prompt, None if unknown, and whether the trainer trains, or evaluates."""
    trainer = _find_trainer(columns)
    if not hasattr(trainer, "num_generations_eval"):
        return None, True
    is_training = trainer.model.training
    return trainer.num_generations if is_training else trainer.num_generations_eval, is_training


def _distinct_shares(classes: list[int]) -> list[float | None]:
    """Return for each text of a set the share of the others that are not of its class, in [0, 1]."""
    n = len(classes)
    sizes = Counter(classes)
    return [(n - sizes[label]) / (n - 1) for label in classes]


def _to_key(part: Any) -> str:
    """Return what tells a part of a prompt that is not JSON, such as an image, from others."""
    content = part.tobytes() if hasattr(part, "tobytes") else type(part).__name__.encode()
    return hashlib.sha256(content).hexdigest()


def _rate(quality: Callable[..., Any], columns: dict[str, Any], n_texts: int) -> list[float | None]:
    """Call a reward function, also an async one, with the columns that it takes."""
    parameters = inspect.signature(quality).parameters
    if all(each.kind is not each.VAR_KEYWORD for each in parameters.values()):
        columns = {name: column for name, column in columns.items() if name in parameters}
    given = quality(**columns)
    if inspect.isawaitable(given):
        # In a thread of its own, since this one may run an event loop; as a coroutine, which `run` takes alone.
        with ThreadPoolExecutor(1) as threads:
            given = threads.submit(asyncio.run, asyncio.wait_for(given, None)).result()
    given = list(given) if isinstance(given, Iterator) else given
    values = as_list(given, "quality", "a function that returns a list of ratings")
    if len(values) != n_texts:
        raise ValueError(f"quality must return a rating for each completion. Got {len(values)} for {n_texts}.")
    return [_read_rating(value, f"quality of completions[{i}]") for i, value in enumerate(values)]


def _read_rating(value: Any, name: str) -> float | None:
    """Read a rating in [0, 1], within `TIE`, as TRL reads rewards: None and NaN are none, a boolean is 0 or 1."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    # As a tensor of one number.
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None:
        return None
    if not isinstance(value, (Real, Decimal)):
        return parse_number(value, name, 0, 1)
    rating = float(value)
    if math.isnan(rating):
        return None
    if -TIE <= rating <= 1 + TIE:
        return min(max(rating, 0.0), 1.0)
    return parse_number(rating, name, 0, 1)
