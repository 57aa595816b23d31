"""Distillation: sentences with the judgements of a teacher, for the compact backbone of `gruen` to learn from."""

import random

import torch
from sklearn.metrics import matthews_corrcoef
from torch.nn import functional

from scripts.training.gruen.corpora import split_words
from scripts.training.gruen.teacher import Teacher
from scripts.training.gruen.trainer import Trainer

# Sentences to judge besides CoLA's, and the share of their new names that consist of common words.
JUDGED_SENTENCES = 40_000
JUDGED_MADE_NAMES = 0.3
# Fixed, because the rounding of sums depends on the number of threads.
TEACHER_THREADS = 2


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
