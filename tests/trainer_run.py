"""Tiny models with random weights, and an evaluation by the real Trainer: in a test, or as a process of several."""

import json
import os
import socket
from importlib import import_module

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForSeq2Seq,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
)

import text_metrics
from tests.programs import FORKS

_WORDS = """
the a dog cat couple man woman park sea house train walks runs takes sees sleeps in on to by old red small her his their
it rains sings boats kettle pot cup tea water boil with what do you .
"""
LENGTH = 9
# Four texts for each prompt.
PROMPTS = ["what do you boil tea with", "what runs on the sea", "what sleeps in the house"]
TEXTS = [
    "the couple walks to the park .",
    "a man takes his dog to the park .",
    "the cat sleeps on the red house .",
    "a cat sleeps on a house .",
    "the dog runs by the sea .",
    "the dog runs by the sea .",
    "a woman sings in the train .",
    "it rains on her boats .",
    "the man sees old boats .",
    "a train runs to the sea .",
    "a kettle to boil water",
    "the woman takes a train .",
]


def build_tokenizer(padding_side="left"):
    vocabulary = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *_WORDS.split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", padding_side=padding_side
    )


def build_seq2seq(tokenizer, num_return_sequences=1):
    torch.manual_seed(3)
    ids = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
    sizes = {"vocab_size": len(tokenizer), "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
    config = T5Config(initializer_factor=8.0, **(sizes | ids))
    model = T5ForConditionalGeneration(config)
    beams = {"num_beams": num_return_sequences, "num_return_sequences": num_return_sequences}
    generation = beams | ids
    model.generation_config = GenerationConfig(max_new_tokens=LENGTH - 1, **generation)
    return model


def build_causal(tokenizer):
    torch.manual_seed(4)
    sizes = {"vocab_size": len(tokenizer), "n_embd": 32, "n_layer": 1, "n_head": 4, "n_positions": 32}
    return GPT2LMHeadModel(GPT2Config(initializer_range=0.6, bos_token_id=0, eos_token_id=1, **sizes))


def build_dataset(tokenizer, n_examples, seed=0):
    """Prompts of differing lengths, each twice, side by side; with labels."""
    generator = torch.Generator().manual_seed(seed)
    examples = []
    for i in range(n_examples):
        if i % 2 == 0:
            size = int(torch.randint(3, 7, (1,), generator=generator))
            prompt = torch.randint(3, len(tokenizer), (size,), generator=generator).tolist()
        labels = torch.randint(3, len(tokenizer), (4,), generator=generator).tolist()
        examples.append({"input_ids": prompt, "attention_mask": [1] * size, "labels": labels})
    return examples


def on_cpu(folder, **arguments):
    """Return the arguments of a Trainer that runs on the CPU and prints nothing."""
    quiet = {"report_to": [], "disable_tqdm": True, "dataloader_pin_memory": False}
    backend = "gloo" if "RANK" in os.environ else None
    return {"output_dir": str(folder), "use_cpu": True, "ddp_backend": backend} | quiet | arguments


def build_trainer(folder, model, tokenizer, compute_metrics, dataset, **arguments):
    arguments = {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, **arguments}
    return Seq2SeqTrainer(
        model=model,
        args=Seq2SeqTrainingArguments(predict_with_generate=True, **on_cpu(folder, **arguments)),
        train_dataset=dataset,
        eval_dataset=dataset,
        processing_class=tokenizer,
        data_collator=DataCollatorForSeq2Seq(tokenizer),
        compute_metrics=compute_metrics,
    )


def run(folder, name, settings, n_examples, num_return_sequences=1, known=True, **arguments):
    """Evaluate once; returns the numbers of the metric."""
    tokenizer = build_tokenizer()
    model = build_seq2seq(tokenizer, num_return_sequences)
    dataset = build_dataset(tokenizer, n_examples)
    compute_metrics = text_metrics.for_trainer(name, tokenizer, n_examples=n_examples if known else None, **settings)
    trainer = build_trainer(folder, model, tokenizer, compute_metrics, dataset, **arguments)
    return {name: n for name, n in trainer.evaluate().items() if not name.endswith(("loss", "time", "second", "epoch"))}


def main(folder, jobs):
    """Run jobs in a process of several; returns what each gave, or the error."""
    results = []
    for i, job in enumerate(jobs):
        try:
            results.append(run(folder / f"run{i}", **job))
        except ValueError as error:
            results.append({"error": str(error)})
    return results


def in_two_processes(folder, module, jobs=()):
    """Run `main` of a module of tests with some jobs in two processes of one group; returns what each returned."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.start_processes(_as_rank, (port, folder, module, jobs), nprocs=2, start_method=FORKS)
    return [json.loads((folder / f"rank-{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def _as_rank(rank, port, folder, module, jobs):
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    results = import_module(f"tests.{module}").main(folder, jobs)
    (folder / f"rank-{rank}.json").write_text(json.dumps(results), encoding="utf-8")
