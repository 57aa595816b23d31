"""Sentences that an instruct model writes from sets of words: plausible ones, and nonsense."""

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from text_metrics.commands.shared.causal import CausalModel

# For each kind of sentence. Half of the sets of words are for the first kind, a quarter for each of the others.
PROMPTS = {
    "nonsense": (
        "Write four sentences, each with the words {}. Each must be grammatical but make no sense: what it says cannot "
        "happen. One sentence per line.",
        "Write four nonsensical sentences, each of which uses the words {}. One sentence per line.",
    ),
    "mild nonsense": (
        "Write four sentences, each with the words {}. Each must sound natural at first but be illogical: it breaks "
        "common sense. One sentence per line.",
    ),
    "sensible": (
        "Write four different short sentences about everyday life, each with the words {}. One sentence per line.",
        "Write four plausible sentences, each of which uses the words {}. One sentence per line.",
    ),
}
_KINDS = ("nonsense", "mild nonsense", "sensible", "nonsense")
PROMPTS_AT_ONCE = 64
_NEW_TOKENS = 96
_SIZES = (3, 3, 4, 4, 5)
_MARK = re.compile(r"^\s*(\d+[.)]|[-*•])\s*")
Tagger = Callable[[list[str]], list[tuple[str, str]]]


class Written(NamedTuple):
    """A sentence, and the words that it was to contain."""

    text: str
    words: list[str]


def draw_words(captions: list[list[str]], tagger: Tagger, chance: random.Random) -> Iterator[list[str]]:
    """Yield sets of three to five nouns and verbs of a caption, without end."""
    while True:
        tagged = tagger([word.lower() for word in chance.choice(captions) if word.isalpha()])
        words = list(dict.fromkeys(word for word, tag in tagged if tag in ("NN", "NNS") or tag.startswith("VB")))
        words = [word for word in words if len(word) > 3]
        size = chance.choice(_SIZES)
        if len(words) >= size:
            yield chance.sample(words, size)


def write(model: CausalModel, sets: Iterator[list[str]], chance: random.Random) -> Iterator[list[Written]]:
    """Let a chat model write four sentences for each set of words; yields what it wrote for `PROMPTS_AT_ONCE` sets."""
    import torch

    model.tokenizer.padding_side = "left"
    kinds = itertools.cycle(_KINDS)
    while True:
        words = list(itertools.islice(sets, PROMPTS_AT_ONCE))
        texts = [
            model.tokenizer.apply_chat_template(
                [{"role": "user", "content": chance.choice(PROMPTS[next(kinds)]).format(", ".join(chosen))}],
                add_generation_prompt=True,
                tokenize=False,
            )
            for chosen in words
        ]
        encoded = model.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        with torch.inference_mode():
            output: Any = model.model.generate(
                **encoded, max_new_tokens=_NEW_TOKENS, do_sample=True, temperature=1.0, top_k=50, top_p=1.0
            )
        rows = output[:, encoded["input_ids"].shape[1] :]
        answers = model.tokenizer.batch_decode(rows, skip_special_tokens=True)
        yield [
            Written(text, chosen)
            for answer, row, chosen in zip(answers, rows, words, strict=True)
            for text in read_sentences(answer, is_whole=model.tokenizer.eos_token_id in row)
        ]


def read_sentences(answer: str, is_whole: bool) -> list[str]:
    """Read the sentences of an answer, one a line; the last one of an answer that was cut off is left out."""
    lines = answer.split("\n")
    sentences = [_MARK.sub("", line).strip().strip('"') for line in (lines if is_whole else lines[:-1])]
    return [text for text in sentences if text[-1:] in (".", "!", "?") and 4 <= len(text.split()) <= 30]
