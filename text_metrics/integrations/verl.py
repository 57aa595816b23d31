"""A reward function in the form that the batch reward manager of verl calls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from text_metrics.training.rewards import RewardFunction


def for_verl(reward: RewardFunction, key: str = "uid") -> Callable[..., list[float]]:
    """Make verl's `compute_score` for a batch of responses, grouped by their prompts in any order.

    Parameters
    ----------
    reward : as `for_rewards` returns it, with a `set_size` of verl's `rollout.n`
    key : the entry of `extra_info` that is equal for the responses to one prompt, and for no others of a batch

    Returns
    -------
    The function that verl's `BatchRewardManager` calls, with keywords: it returns a score for each response. It raises
    a ValueError if a response lacks the key or has no rating, or the responses with one value are not `set_size`.
    """

    def compute_score(
        data_sources: Sequence[Any],
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any]],
        **reward_kwargs: Any,
    ) -> list[float]:
        for i, extra in enumerate(extra_infos):
            if extra is None or key not in extra:
                raise ValueError(f"extra_infos[{i}] has no {key!r}, which says to which prompt a response belongs.")
        prompts = [str(extra[key]) for extra in extra_infos]
        order = sorted(range(len(prompts)), key=prompts.__getitem__)
        values = reward(
            prompts=[prompts[i] for i in order],
            completions=[solution_strs[i] for i in order],
            data_source=[data_sources[i] for i in order],
            ground_truth=[ground_truths[i] for i in order],
            extra_info=[extra_infos[i] for i in order],
            **reward_kwargs,
        )
        scores = [0.0] * len(prompts)
        for i, value in zip(order, values, strict=True):
            if value is None:
                raise ValueError(f"solution_strs[{i}] has no rating, and verl needs a number.")
            scores[i] = value
        return scores

    return compute_score
