"""Rewards in a process of several: by hand, with a slice of the completions, or in real steps of GRPOTrainer."""

import torch

import text_metrics
from tests.trainer_run import build_causal, build_tokenizer, on_cpu

PROMPTS = ["what sleeps in the house", "what runs on the sea", "what do you boil tea with"]
TEXTS = [
    "the cat sleeps on the red house .",
    "a cat sleeps on a house .",
    "the dog runs by the sea .",
    "the dog runs by the sea .",
    "a woman sings in the train .",
    "it rains on her boats .",
    "it rains on her boats .",
    "a train runs to the sea .",
    "a kettle to boil water",
    "a kettle to boil tea",
    "her small red cup",
    "a pot",
]
SIZE = 4


def rate_by_length(completions, **columns):
    """Rate texts by their numbers of words."""
    return [len(text.split()) / 10 for text in completions]


def make_reward(name, settings):
    if "quality" in settings:
        settings = {**settings, "quality": rate_by_length}
    return text_metrics.for_rewards(text_metrics.load(name), **settings)


def train(folder, name, settings, n_generations=4, per_process=8, prompts=PROMPTS * 2, seed=5):
    """Train a tiny model; return the log, all completions of this process, and whether the weights changed."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    seen = []

    def record(prompts, completions, **columns):
        seen.append([prompts, completions])
        return [0.0] * len(completions)

    tokenizer = build_tokenizer()
    model = build_causal(tokenizer)
    before = [weights.clone() for weights in model.parameters()]
    sizes = {"per_device_train_batch_size": per_process, "num_generations": n_generations, "max_completion_length": 8}
    steps = {"max_steps": 2, "learning_rate": 0.01, "logging_steps": 1, "save_strategy": "no", "seed": seed}
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[make_reward(name, settings), record],
        args=GRPOConfig(bf16=False, gradient_checkpointing=False, **on_cpu(folder, **sizes, **steps)),
        train_dataset=Dataset.from_dict({"prompt": prompts, "answer": ["cat"] * len(prompts)}),
        processing_class=tokenizer,
    )
    trainer.train()
    changed = any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))
    return {"log": trainer.state.log_history, "seen": seen, "changed": changed}


def score_slice(name, settings, ends, logs=False):
    """Compute the rewards of this process's slice, which ends at `ends[rank]`.

    With `logs`, return what it logs instead.
    """
    rank = torch.distributed.get_rank()
    part = slice(ends[rank - 1] if rank else 0, ends[rank])
    texts = list(TEXTS[part])
    prompts = [prompt for prompt in PROMPTS for _ in range(SIZE)][part]
    logged = []
    columns = {"completion_ids": [[]] * len(texts), "log_metric": lambda name, value: logged.append([name, value])}
    try:
        rewards = make_reward(name, settings)(prompts=prompts, completions=texts, **columns)
        return logged if logs else rewards
    except (TypeError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


def main(folder, jobs):
    """Run jobs in a process of several; returns what each gave."""
    results = []
    for i, job in enumerate(jobs):
        if job.pop("train", False):
            results.append(train(folder / f"run{i}", **job))
            continue
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        results.append(score_slice(**job))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return results
