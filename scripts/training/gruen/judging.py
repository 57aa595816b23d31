"""Distillation: sentences with the judgements of a teacher, for the compact backbone of `gruen` to learn from.

The teacher is a larger encoder. All of it but the embeddings is fine-tuned on the Corpus of Linguistic Acceptability.
Its logits for many more sentences than CoLA has are what the backbone learns from.
"""

import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef
from torch import nn
from torch.nn import functional

from scripts.training.gruen.corpora import split_words
from scripts.training.gruen.trainer import Trainer

# Sentences to judge besides CoLA's, and the share of their new names that consist of common words.
JUDGED_SENTENCES = 40_000
JUDGED_MADE_NAMES = 0.3
# Fixed, because the rounding of sums depends on the number of threads.
TEACHER_THREADS = 2
EPOCHS = 4
BATCH = 32
RATE = 3e-5
HEAD_RATE = 5e-4
DROPOUT = 0.1
MAX_TOKENS = 64


class Teacher(nn.Module):
    """An encoder and a head that judges a sentence: one logit, above 0 if it is more likely acceptable than not.

    Parameters
    ----------
    encoder : a Hub id or a local path that transformers' Auto classes load
    """

    def __init__(self, encoder: str | Path, seed: int) -> None:
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        torch.manual_seed(seed)
        self.tokenizer = AutoTokenizer.from_pretrained(encoder)
        self.encoder = AutoModel.from_pretrained(encoder, dtype=torch.float32)
        self.encoder.get_input_embeddings().requires_grad_(False)
        width = self.encoder.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(DROPOUT), nn.Linear(2 * width, width), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(width, 1)
        )

    def forward(self, sentences: Sequence[str]) -> torch.Tensor:
        """Judge sentences: n texts to (n,) logits."""
        encoded = self.tokenizer(
            list(sentences), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
        )
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.encoder(
                input_ids=encoded["input_ids"], attention_mask=encoded["attention_mask"]
            ).last_hidden_state.float()
        mask = encoded["attention_mask"][..., None]
        mean = (hidden * mask).sum(1) / mask.sum(1)
        return self.head(torch.cat([mean, hidden[:, 0]], 1))[:, 0]

    def fit(self, rows: Sequence[tuple[str, int]], seed: int) -> None:
        """Fine-tune on sentences and labels, 1 if acceptable."""
        shuffler = random.Random(seed)
        steps = EPOCHS * (len(rows) // BATCH)
        body = [parameter for parameter in self.encoder.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(
            [{"params": body, "lr": RATE}, {"params": list(self.head.parameters()), "lr": HEAD_RATE}],
            weight_decay=0.01,
            fused=True,
        )
        warm = max(1, steps // 16)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        self.train()
        start = time.monotonic()
        smoothed = 0.7
        step = 0
        while step < steps:
            for batch in batches_of_similar_length(rows, shuffler):
                labels = torch.tensor([float(label) for _, label in batch])
                loss = functional.binary_cross_entropy_with_logits(self([sentence for sentence, _ in batch]), labels)
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                step += 1
                smoothed = 0.98 * smoothed + 0.02 * loss.item()
                if step % 50 == 0:
                    print(f"step {step} of {steps}, {time.monotonic() - start:.0f} s: {smoothed:.3f}", flush=True)

    @torch.inference_mode()
    def judge(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the logits of sentences: (n,)."""
        self.eval()
        order = np.argsort([len(sentence) for sentence in sentences], kind="stable")
        logits = np.empty(len(sentences), dtype=np.float32)
        for start in range(0, len(order), 2 * BATCH):
            part = order[start : start + 2 * BATCH]
            logits[part] = self([sentences[i] for i in part]).numpy()
        return logits


def batches_of_similar_length(rows: Sequence[tuple[str, int]], shuffler: random.Random) -> list[list[tuple[str, int]]]:
    """Make full batches of sentences of similar length, in random order."""
    order = shuffler.sample(range(len(rows)), len(rows))
    wide = 16 * BATCH
    order = [
        i
        for start in range(0, len(order), wide)
        for i in sorted(order[start : start + wide], key=lambda i: len(rows[i][0]))
    ]
    batches = [[rows[i] for i in order[start : start + BATCH]] for start in range(0, len(order) - BATCH + 1, BATCH)]
    shuffler.shuffle(batches)
    return batches


def teach(trainer: Trainer, encoder: str, seed: int) -> list[tuple[str, float]]:
    """Fine-tune a teacher on CoLA, and let it judge many sentences; returns the sentences with its logits."""
    texts = texts_to_judge(trainer, seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(TEACHER_THREADS)
    teacher = Teacher(encoder, seed)
    teacher.fit(trainer.corpus.cola, seed)
    held_out, labels = zip(*trainer.corpus.cola_held_out, strict=True)
    print(f"teacher: MCC {matthews_corrcoef(labels, teacher.judge(held_out) > 0):.3f} on the held-out part of CoLA")
    logits = teacher.judge(texts)
    torch.set_num_threads(threads)
    return list(zip(texts, logits.tolist(), strict=True))


def texts_to_judge(trainer: Trainer, seed: int) -> list[str]:
    """Make sentences of all degrees of acceptability for a teacher to judge.

    They are the sentences of CoLA: unchanged, corrupted, and with one or two tokens replaced by predictions of this
    model; and sentences of the other corpora, half of them with other names, half of them corrupted.
    """
    chance = random.Random(seed)
    corruptor, renamer = trainer.corpus.corruptor(seed), trainer.corpus.renamer(seed, JUDGED_MADE_NAMES)
    sentences = [sentence for sentence, _ in trainer.corpus.cola]
    texts = sentences + refill(trainer, sentences, seed) + refill(trainer, sentences, seed + 1)
    for sentence in sentences:
        corrupted = corruptor.corrupt(split_words(sentence))
        texts += [" ".join(corrupted.words)] if corrupted and corrupted.words else []
    short = [words for words in trainer.corpus.sentences + trainer.corpus.captions if len(words) <= 20]
    for words in chance.sample(short, JUDGED_SENTENCES):
        if chance.random() < 0.5:
            words = renamer.rename(words)
        corrupted = corruptor.corrupt(words) if chance.random() < 0.5 else None
        texts.append(" ".join(corrupted.words if corrupted and corrupted.words else words))
    return list(dict.fromkeys(texts))


@torch.inference_mode()
def refill(trainer: Trainer, sentences: list[str], seed: int) -> list[str]:
    """Replace one or two tokens of each sentence by samples from the model's predictions; seeded."""
    torch.manual_seed(seed)
    trainer.model.eval()
    texts = [""] * len(sentences)
    for batch, ids, mask in trainer.in_batches(sentences):
        inner = functional.pad(mask[:, 2:], (1, 1)).float()
        rows = torch.arange(len(ids))
        for places in torch.multinomial(inner + 1e-9, 2).T[: 1 + int(torch.rand(()) < 0.5)]:
            masked = ids.clone()
            masked[rows, places] = trainer.tokenizer.mask_token_id
            logits = trainer.model.vocabulary_logits(trainer.model.hidden(masked, mask)[rows, places])
            ids[rows, places] = torch.multinomial(logits.softmax(1), 1)[:, 0]
        for row, i in enumerate(batch):
            texts[i] = trainer.tokenizer.decode(ids[row][mask[row] == 1], skip_special_tokens=True)
    return texts
