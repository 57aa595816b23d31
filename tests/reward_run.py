"""Rewards in a process of several: by hand, with a slice of the completions, or in real steps of GRPOTrainer."""

import json
import os

import torch

import text_metrics
from tests.trainer_run import build_causal, build_tokenizer

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


def train(folder, name, settings, n_generations, per_process, steps=2, prompts=PROMPTS * 2, seed=5):
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
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=[make_reward(name, settings), record],
        args=GRPOConfig(
            output_dir=str(folder),
            per_device_train_batch_size=per_process,
            num_generations=n_generations,
            max_completion_length=8,
            max_steps=steps,
            learning_rate=0.01,
            logging_steps=1,
            save_strategy="no",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            ddp_backend="gloo" if "RANK" in os.environ else None,
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=seed,
        ),
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


def main(file):
    """Run the jobs of a file, and write what each gave to another."""
    rank = int(os.environ["RANK"])
    found = []
    for i, job in enumerate(json.loads(file.read_text(encoding="utf-8"))):
        if job.pop("train", False):
            found.append(train(file.with_name(f"run{i}"), **job))
            continue
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        found.append(score_slice(**job))
    file.with_name(f"found-{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
