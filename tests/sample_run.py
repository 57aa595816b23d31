"""Samples of a tiny model at an evaluation: in a test, or in a process of two."""

from transformers import Trainer, TrainingArguments, default_data_collator

import text_metrics
from tests.trainer_run import build_causal, build_tokenizer, on_cpu

PROMPTS = ["what sleeps in the house", "what runs", "what do you boil tea with", "the sea", "a man sees"]
CHATS = [[{"role": "system", "content": "a"}, {"role": "user", "content": prompt}] for prompt in PROMPTS]
METRICS = {"vendi_embed": {}, "chamfer_diversity": {}, "self_bleu": {"max_order": 2}, "gruen": {}}
N = 3


def build_callback(metrics=METRICS, prompts=PROMPTS, **arguments):
    arguments = {"generation": {"max_new_tokens": 8, "top_k": 0}} | arguments
    return text_metrics.SampleCallback(metrics, prompts, n=N, **arguments)


def evaluate_once(model, tokenizer, callback, folder, **arguments):
    trainer = Trainer(
        model=model,
        args=TrainingArguments(**on_cpu(folder, **arguments)),
        eval_dataset=[{"input_ids": [3, 4], "labels": [3, 4]}] * 2,
        processing_class=tokenizer,
        data_collator=default_data_collator,
        callbacks=[callback],
    )
    return trainer.evaluate()


def main(folder, jobs):
    """Evaluate in this process of several; returns the scores, and how many texts it sampled."""
    model = build_causal(tokenizer := build_tokenizer())
    generate, sizes = model.generate, []

    def count(*args, **settings):
        written = generate(*args, **settings)
        sizes.append(len(written))
        return written

    model.generate = count
    scores = evaluate_once(model, tokenizer, build_callback(), folder / "run")
    numbers = {name: n for name, n in scores.items() if not name.endswith(("loss", "time", "second"))}
    return {"scores": numbers, "n_sampled": sum(sizes)}
