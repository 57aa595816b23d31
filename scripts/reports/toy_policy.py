"""Train toy policies with the rewards: do they collapse to one answer, and do they stay valid.

    python -m scripts.reports.toy_policy train --plot docs/rewards.svg
    python -m scripts.reports.toy_policy time

train: a policy is a softmax over sixteen answers to one prompt: eight sentences of ours, which are valid, and the same
with their words shuffled, which are noise. It is trained as by GRPO: groups of answers, rewards standardized within a
group, a step of Adam. Training starts from random policies, or from policies that prefer one valid answer. Prints for
each reward, as means over seeds after training: the effective number of valid answers, which is the exponential of the
entropy among them; the probability of a valid answer; and the lowest mean of that probability during training.

time: what the rewards cost beside the generation of the texts by a model of the size of GPT-2, with random weights.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from text_metrics import load
from text_metrics.commands.shared.command import command, drawn, make_parser
from text_metrics.commands.shared.pages import save_figure
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model
from text_metrics.metrics._core.core_results import mean_estimate

_VALID = (
    "I read a long novel on the sofa.",
    "My brother and I bake bread with nuts.",
    "She plays the violin for an hour.",
    "We repair the old bicycle in the garage.",
    "They visit the museum of trains.",
    "He calls his grandmother in Spain.",
    "I paint the kitchen walls yellow.",
    "The children build a castle of blankets.",
)
_PROMPT = "What do you do on a rainy day?"
_GROUP, _STEPS, _RATE = 8, 200, 0.05
# Policies that are trained with each reward.
_SEEDS = 10
# Prompts in a step that is timed, and tokens of a text.
_PROMPTS, _TOKENS = 8, 64
# What is added to the logit of the first answer.
_STARTS = {"random": 0.0, "one answer": 4.0}
_LEVEL = 0.95
Reward = Callable[..., list[float | None]]


class Course(NamedTuple):
    """What the policies of all seeds were at each step, as arrays of shape (steps + 1, seeds).

    effective : effective number of valid answers, in [1, 8]
    valid : probability of a valid answer, in [0, 1]
    """

    effective: np.ndarray
    valid: np.ndarray


def make_rewards() -> dict[str, Reward]:
    """Make the rewards that are compared; `both` is the sum of quality and quality × contribution."""
    gruen = load("gruen").for_rewards()
    vendi = load("vendi_embed")
    product = vendi.for_rewards(_GROUP, "quality_times_contribution", gruen)

    def both(**columns: Any) -> list[float | None]:
        return np.add(gruen(**columns), product(**columns)).tolist()

    rewards = {
        "quality": gruen,
        "contribution": vendi.for_rewards(_GROUP),
        "quality × contribution": product,
        "both": both,
    }
    for reward in ("distinct_share", "inverse_class_size"):
        rewards[reward.replace("_", " ")] = vendi.for_rewards(_GROUP, reward, kernel="classes")
    for reward in ("distinct_share", "inverse_class_size"):
        by_quality = vendi.for_rewards(_GROUP, f"quality_times_{reward}", gruen, kernel="classes")
        rewards[f"quality × {reward.replace('_', ' ')}"] = by_quality
    return rewards


def train(reward: Reward, n_seeds: int, preference: float) -> Course:
    """Train a policy for each seed; the groups of all are scored in one call, each as a prompt of its own."""
    rng = np.random.default_rng(0)
    shuffled = [" ".join(rng.permutation(text.rstrip(".").split())) + "." for text in _VALID]
    answers = [*_VALID, *shuffled]
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(n_seeds, len(answers), generator=generator)
    logits[:, 0] += preference
    logits.requires_grad_()
    prompts = [f"{_PROMPT} ({seed})" for seed in range(n_seeds) for _ in range(_GROUP)]
    optimizer = torch.optim.Adam([logits], lr=_RATE)
    states = [logits.detach().softmax(-1).numpy()]
    for _ in range(_STEPS):
        probabilities = logits.softmax(-1)
        drawn = torch.multinomial(probabilities.detach(), _GROUP, replacement=True, generator=generator)
        texts = [answers[i] for i in drawn.ravel().tolist()]
        rewards = torch.tensor(reward(prompts=prompts, completions=texts)).view(n_seeds, _GROUP)
        advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-4)
        optimizer.zero_grad()
        (-(advantages * probabilities.log().gather(1, drawn)).mean(1).sum()).backward()
        optimizer.step()
        states.append(logits.detach().softmax(-1).numpy())
    valid = np.stack(states)[:, :, : len(_VALID)].astype(np.float64)
    share = valid.sum(-1)
    among = valid / share[..., None]
    return Course(np.exp(-(among * np.log(np.maximum(among, 1e-30))).sum(-1)), share)


def to_row(start: str, name: str, effective: np.ndarray, valid: np.ndarray, lowest: float) -> str:
    """Format the means over seeds with their intervals."""
    cells = []
    for values, scale in ((effective, 1), (valid, 100)):
        interval = mean_estimate(values * scale).interval(_LEVEL)
        assert interval is not None
        cells.append(f"{values.mean() * scale:.1f} [{interval[0]:.1f}, {interval[1]:.1f}]")
    return f"| {start} | {name} | {' | '.join(cells)} | {lowest * 100:.1f} |"


def plot(courses: dict[str, dict[str, Course]], path: Path) -> None:
    """Draw the means over seeds at each step, a row of panels for each start."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rewards"})
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes = figure.subplots(len(courses), 2)
    for row, (start, by_reward) in zip(axes, courses.items(), strict=True):
        titles = ("effective number of valid answers", "probability of a valid answer")
        for axis, title, name, top in zip(row, titles, Course._fields, (len(_VALID), 1), strict=True):
            for label, course in by_reward.items():
                axis.plot(getattr(course, name).mean(1), label=label)
            axis.set(title=f"start: {start}; {title}", xlabel="step", ylim=(0, top * 1.05))
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, path, metadata={"Date": None})


def run_training(path: Path | None) -> None:
    """Train from each start with each reward, and print and plot what becomes of the policies."""
    rewards, courses = make_rewards(), {}
    print("| start | reward | effective number of valid answers | valid, % | lowest, % |\n|---|---|---|---|---|")
    for start, preference in _STARTS.items():
        courses[start] = {name: train(reward, _SEEDS, preference) for name, reward in rewards.items()}
        first = courses[start]["quality"]
        print(to_row(start, "before training", first.effective[0], first.valid[0], first.valid[0].mean()))
        for name, course in courses[start].items():
            print(to_row(start, name, course.effective[-1], course.valid[-1], course.valid.mean(1).min()))
    if path is not None:
        plot(courses, path)


def run_timing() -> None:
    """Time the generation of texts, and their rewards."""
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    tokenizer: Any = AutoTokenizer.from_pretrained(find_model(DEFAULT_MODEL).path)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), bos_token_id=101, eos_token_id=102)).eval()
    n_texts = _PROMPTS * _GROUP
    ids = torch.randint(1000, len(tokenizer), (n_texts, 16))

    def generate() -> torch.Tensor:
        return model.generate(
            ids, do_sample=True, max_new_tokens=_TOKENS, min_new_tokens=_TOKENS, pad_token_id=0, eos_token_id=102
        )

    seconds, written = fastest(generate)
    written = written[:, ids.shape[1] :].clone()
    # Sentences, as in a text that is written by a model with trained weights.
    written[:, 11::12] = tokenizer.convert_tokens_to_ids(".")
    texts = tokenizer.batch_decode(written, skip_special_tokens=True)
    prompts = [f"{_PROMPT} ({i})" for i in range(_PROMPTS) for _ in range(_GROUP)]
    print(f"{n_texts} texts of {_TOKENS} tokens, {torch.get_num_threads()} thread(s)")
    print(f"generation: {seconds:.1f} s")
    for name, reward in make_rewards().items():
        reward(prompts=prompts[:_GROUP], completions=texts[:_GROUP])
        taken, _ = fastest(partial(reward, prompts=prompts, completions=texts))
        print(f"{name}: {taken:.2f} s, {taken / seconds:.1%} of the generation")


def fastest(function: Callable[[], Any]) -> tuple[float, Any]:
    """Call a function twice; returns the seconds of the faster call, and the last result."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("command", choices=("train", "time"))
    parser.add_argument("--plot", type=drawn, help="file for the plot of the training, such as .svg")
    arguments = parser.parse_args()
    if arguments.command == "train":
        run_training(arguments.plot)
    elif arguments.plot:
        parser.error("--plot is for train.")
    else:
        run_timing()


if __name__ == "__main__":
    raise SystemExit(main())
