"""A metric as a reward function for reinforcement learning, as GRPOTrainer of TRL calls it."""

import asyncio
import inspect
import itertools
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from text_metrics.core_api import SETS, Signature, as_list, describe, parse_choice, parse_count, parse_number
from text_metrics.questions.contributions import score_contributions
from text_metrics.training.common import (
    CONTEXTS,
    Stripper,
    gather,
    read_chat,
    read_metric,
    read_prompt,
    shared_context,
)

CONTRIBUTION, DISTINCT_SHARE = "contribution", "distinct_share"
# Set metrics for which higher is more diverse, and gruen.
REWARDS = {
    "vendi_embed": (CONTRIBUTION,),
    "chamfer_diversity": (CONTRIBUTION,),
    "semantic_entropy": (CONTRIBUTION, DISTINCT_SHARE),
    "gruen": ("quality",),
}


def for_rewards(
    metric: Any,
    set_size: int | None = None,
    reward: str | None = None,
    quality: Callable[..., Any] | None = None,
    strip: Any = None,
    **settings: Any,
) -> "RewardFunction":
    """Make a reward function of a metric for reinforcement learning, as GRPOTrainer of TRL calls it.

    The completions of one prompt are a set.

    Parameters
    ----------
    metric : a loaded metric, or its name: vendi_embed, chamfer_diversity or semantic_entropy of sets, gruen of texts
    set_size : number of completions of a prompt, the trainer's `num_generations`, at least 2, or 3 for
        chamfer_diversity; not for gruen
    reward : "contribution", of each text to the score of its set, by default; of semantic_entropy also
        "distinct_share", the share of the others that are not of its class (arXiv 2509.02534); of gruen "quality"
    quality : another reward function, with values in [0, 1], by which the reward is multiplied; not for gruen
    strip : what is removed from completions before they are scored, because it is not the answer: "reasoning",
        "special" (tokens and chat markers), "prompt", as a list or with commas between them; `quality` gets them whole
    **settings : of `compute`, such as `device`; `contexts` may be "prompts" or another column of the trainer's, of
        texts or chats; of a chat, the last message of the user is the context

    Returns
    -------
    RewardFunction

    Raises
    ------
    TypeError, ValueError
        For arguments that are invalid or not known before training.
    """
    return RewardFunction(metric, set_size, reward, quality, strip, **settings)


class RewardFunction:
    """A metric as a reward function for reinforcement learning; `for_rewards` makes it, and has its parameters.

    Processes exchange the completions, and each scores the sets of which it holds a part. `signature` is that of the
    last call.

    Raises
    ------
    TypeError, ValueError
        For arguments that are invalid or not known before training; when called, if completions are not texts, those
        of a prompt are not a set, or a rating is not in [0, 1].
    """

    def __init__(
        self,
        metric: Any,
        set_size: int | None = None,
        reward: str | None = None,
        quality: Callable[..., Any] | None = None,
        strip: Any = None,
        **settings: Any,
    ) -> None:
        self.strip = Stripper(strip)
        self.metric = read_metric(metric, settings, "for_rewards", (CONTEXTS,))
        self.contexts = settings.pop(CONTEXTS, None)
        self.settings = settings
        name = self.metric.name
        parse_choice(name, "metric", tuple(REWARDS))
        if self.metric.items == SETS:
            set_size = parse_count(set_size, "set_size", 3 if name == "chamfer_diversity" else 2)
        elif set_size is not None or quality is not None:
            raise ValueError(f"set_size and quality go with metrics of sets: {name} scores each text by itself.")
        if quality is not None and not callable(quality):
            raise TypeError(f"quality must be a reward function. Got {describe(quality)}.")
        self.set_size = set_size
        self.quality = quality
        self.reward = parse_choice(reward or REWARDS[name][0], "reward", REWARDS[name])
        self.signature = ""
        self.__name__ = f"{name}_{self.reward}" + ("_times_quality" if quality else "")

    def __call__(self, *, completions: Any, prompts: Any = None, **columns: Any) -> list[float | None]:
        """Compute the rewards of this process's completions; with several processes, all must call together.

        `completions` are n strings, or lists of chat messages with role and content; the assistant's are read.
        `prompts`, in the same form, show whether consecutive completions of each are whole sets. `quality` gets the
        columns that it takes; `log_metric` logs scores of sets. Returns a list of n floats, with None for a text
        without a rating.
        """
        columns |= {"prompts": prompts, "completions": completions}
        items = as_list(completions, "completions", "a list of texts or of lists of chat messages")
        # A call of a tool has no text.
        chats = [read_chat(item, "assistant", f"completions[{i}]") for i, item in enumerate(items)]
        texts = ["\n".join(filter(None, messages)) for messages in chats]
        texts = self.strip(texts, self._read_prompts(prompts, len(texts)))
        if self.set_size is None:
            return self._score(texts)[0]
        known_prompts = () if prompts is None else prompts
        keys = [json.dumps(prompt, default=lambda part: type(part).__name__) for prompt in known_prompts]
        contexts = []
        if self.contexts is not None:
            rows = () if columns.get(self.contexts) is None else columns[self.contexts]
            contexts = [read_prompt(row, f"{self.contexts}[{i}]") for i, row in enumerate(rows)]
            if len(contexts) != len(texts):
                raise ValueError(f"contexts: the trainer must pass {self.contexts!r} for each completion.")
        parts, rank = gather((texts, keys, contexts))
        all_texts, all_keys, all_contexts = (
            list(itertools.chain.from_iterable(lists)) for lists in zip(*parts, strict=True)
        )
        _check_sets(self.set_size, len(all_texts), all_keys)
        # The sets that hold a text of this process.
        start = sum(len(part_texts) for part_texts, _, _ in parts[:rank])
        end = start + len(texts)
        first_set = start // self.set_size
        end_set = -(-end // self.set_size)
        places = [slice(i * self.set_size, (i + 1) * self.set_size) for i in range(first_set, end_set)]
        given = {CONTEXTS: [shared_context(all_contexts[place]) for place in places]} if contexts else {}
        values, scores = self._score([all_texts[place] for place in places], **given)
        # Texts of the first set that other processes hold.
        n_before = start - first_set * self.set_size
        log_metric = columns.get("log_metric")
        if log_metric:
            # The process that holds the first text of a set logs its score; the trainer averages them.
            for score in scores[1:] if n_before else scores:
                log_metric(self.metric.name, score)
        values = values[n_before : n_before + len(texts)]
        if self.quality is None:
            return values
        ratings = _rate(self.quality, columns, len(texts))
        rewards: list[float | None] = []
        for rating, value in zip(ratings, values, strict=True):
            # Multiplying a negative contribution would reward low quality.
            rewards.append(None if rating is None or value is None else rating * max(value, 0.0))
        return rewards

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

    def _score(self, predictions: list[Any], **contexts: Any) -> tuple[list[float | None], list[float | None]]:
        """Return the value of each text, and the score of each set or text."""
        settings = self.settings | contexts
        if self.reward == CONTRIBUTION:
            result, rows = score_contributions(self.metric, predictions, settings)
            values = list(itertools.chain.from_iterable(rows))
        elif self.set_size is None:
            result = self.metric.compute(predictions=predictions, **settings)
            values = result["scores"]
        else:
            result = self.metric.compute(predictions=predictions, details=True, **settings)
            classes = [(i, label) for i, row in enumerate(result["details"]) for label in row["classes"]]
            sizes = Counter(classes)
            n = self.set_size
            values = [(n - sizes[label]) / (n - 1) for label in classes]
        signed = {"reward": self.reward}
        if self.quality:
            signed["quality"] = "given"
        self.signature = self.strip.sign(str(Signature.parse(result["signature"]).merge(**signed)))
        return values, result["scores"]


def _check_sets(size: int, n_texts: int, prompts: list[str]) -> None:
    """Raise a ValueError unless consecutive completions of each prompt are whole sets."""
    runs = [len(list(run)) for _, run in itertools.groupby(prompts)]
    do_prompts_match = len(prompts) in (0, n_texts)
    # Two sets of one prompt may be neighbours.
    are_runs_whole = all(run % size == 0 for run in runs)
    if n_texts % size or not do_prompts_match or not are_runs_whole:
        lengths = ", ".join(map(str, sorted(set(runs))))
        seen = f", whose prompts are equal in runs of {lengths}" if runs else ""
        raise ValueError(
            "set_size must be the number of consecutive completions of each prompt: the trainer's num_generations, in "
            f"an evaluation its num_generations_eval. Got set_size={size} for {n_texts} completions{seen}."
        )


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
    values = as_list(given, "quality", "a function that returns a list of ratings")
    if len(values) != n_texts:
        raise ValueError(f"quality must return a rating for each completion. Got {len(values)} for {n_texts}.")
    name = "quality of completions[{}]".format
    return [None if value is None else parse_number(value, name(i), 0, 1) for i, value in enumerate(values)]
