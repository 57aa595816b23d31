"""Slow and obvious implementations of what gruen computes."""

import difflib
import itertools
import math
import re

import numpy as np


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above = row[0]
        row[0] = i
        for j, y in enumerate(b, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (x != y))
    return row[-1]


def raised_flags(a, b):
    """The flags that sentence a raises with a later sentence b, by the rules of the GRUEN paper's code."""
    names = ["longest_substring", "substring_words", "edit_distance", "common_words"]
    if a in b or b in a:
        return names
    a_words = a.split()
    b_words = b.split()
    fewer = min(len(a_words), len(b_words))
    if max(len(a_words), len(b_words)) < 5:
        return []
    match = difflib.SequenceMatcher(None, a, b).find_longest_match(0, len(a), 0, len(b))
    shorter = min(len(a), len(b))
    words_of_match = a[match.a : match.a + match.size].split()
    raised = [
        match.size > 0.8 * shorter,
        len(words_of_match) > 0.8 * fewer,
        edit_distance(a, b) < 0.6 * max(len(a), len(b)),
        sum(word in b_words for word in a_words) > 0.8 * fewer,
    ]
    return [name for name, flag in zip(names, raised, strict=True) if flag]


def redundant_pairs(sentences):
    pairs = []
    for (i, a), (j, b) in itertools.combinations(enumerate(sentences), 2):
        flags = raised_flags(a.strip(), b.strip())
        if flags:
            pairs.append((i, j, flags))
    return pairs


def normalize(text):
    """One line, a space after full stops, no decimals: step by step, each to the end."""
    text = ". ".join(text.strip().split("\n\n"))
    text = ". ".join(text.split("\n"))
    for old, new in (("..", "."), (".", ". "), (". . ", ". "), (".  . ", ". ")):
        text = new.join(text.split(old))
    while "  " in text:
        text = " ".join(text.split("  "))
    while match := re.search(r"(\d+)\. (\d+)", text):
        text = "UNK".join(text.split(match.group()))
    return text.strip()


class OneByOne:
    """Grammaticality as the GRUEN paper's code takes it: a sentence at a time, acceptability padded to 128 tokens."""

    def __init__(self, lm_model, cola_model):
        from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(lm_model)
        self.lm = AutoModelForMaskedLM.from_pretrained(lm_model).eval()
        self.cola = AutoModelForSequenceClassification.from_pretrained(cola_model).eval()

    def loss(self, sentence):
        ids = self.tokenizer(sentence, truncation=True, max_length=512, return_tensors="pt")["input_ids"]
        return self.lm(input_ids=ids, labels=ids).loss.item()

    def acceptability(self, sentence):
        settings = {"truncation": True, "max_length": 128, "padding": "max_length"}
        return self.cola(**self.tokenizer(sentence, return_tensors="pt", **settings)).logits[0, 1].item()

    def grammaticality(self, sentences):
        """A text without sentences has a likelihood of exp(0)."""
        perplexity = acceptability = 0.0
        if sentences:
            perplexity = sum(math.exp(self.loss(sentence)) for sentence in sentences) / len(sentences)
            acceptability = sum(map(self.acceptability, sentences)) / len(sentences)
        return max(0.0, (math.exp(-0.5 * perplexity) + acceptability) / 8 + 0.5)


def word_movers_distance(first, second, table):
    """The transport problem of two lists of words, as a linear program; a word weighs log(1 + its count)."""
    from scipy.optimize import linprog

    u = sorted(set(first))
    v = sorted(set(second))
    p = np.log1p([first.count(word) for word in u])
    q = np.log1p([second.count(word) for word in v])
    ways = [math.dist(table[x], table[y]) for x in u for y in v]
    leaving = np.kron(np.eye(len(u)), np.ones(len(v)))
    coming = np.kron(np.ones(len(u)), np.eye(len(v)))
    return linprog(ways, A_eq=np.vstack([leaving, coming]), b_eq=np.concatenate([p / p.sum(), q / q.sum()])).fun
