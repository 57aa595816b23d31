"""A tiny causal model that has learnt a few sentences and answers: `python tests/tiny_causal.py FOLDER` saves it."""

import itertools
import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

DATA = Path(__file__).resolve().parents[1] / "text_metrics/integrations/data"
SENTENCES = [
    "The couple walk their dog in the park.",
    "A dog sleeps on the sofa all day.",
    "Rain falls on the roofs of the city.",
    "In the city it rains all day.",
    "A small boat sails on the open sea.",
    "The sea is calm and the boat is red.",
    "The child reads a book under the table.",
    "Her brother has lost the last page of the book.",
]
CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def read(name):
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def training_texts():
    """Every sentence after every prompt, and every answer of people after its question, as often as they gave it."""
    for row, sentence in itertools.product(read("prompts.jsonl"), SENTENCES):
        yield f"{row['prompt']} {sentence} </s>"
    for row in read("questions.jsonl"):
        for answer in row["answers"]:
            yield from [f"{row['question']} {answer['text']} </s>"] * answer["count"]


def build(folder, steps=150):
    """Train a word-level model of one layer, in a few seconds, and save it with its tokenizer."""
    torch.manual_seed(0)
    texts = list(training_texts())
    vocabulary = dict.fromkeys(["<pad>", "</s>", "<unk>", *(word for text in texts for word in text.split())])
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", padding_side="left"
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    sizes = {"vocab_size": len(tokenizer), "n_positions": 128, "n_embd": 64, "n_layer": 1, "n_head": 2}
    model = GPT2LMHeadModel(GPT2Config(bos_token_id=1, eos_token_id=1, pad_token_id=0, **sizes))
    batch = tokenizer(texts, return_tensors="pt", padding=True, padding_side="right")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss.backward()
        optimizer.step()
    # lighteval samples only if the model says so.
    model.generation_config.do_sample = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    build(sys.argv[1])
