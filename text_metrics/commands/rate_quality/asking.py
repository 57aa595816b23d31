"""Ratings of texts by an instruct model that answers a question about each, on this machine or as a chat service."""

import copy
import hashlib
import json
import math
import re
from typing import NamedTuple

import numpy as np

from text_metrics.commands.shared.causal import CausalModel
from text_metrics.commands.shared.chat import few_shot
from text_metrics.metrics._core.core_encoder import progress_bar, token_batches

# The most probable tokens to request. Some services allow no more.
TOP = 5
# The probability of all possible answers below which their probabilities say nothing.
_LEAST_SHARE = 0.5
# What a chat template is rendered with in place of the text.
_TEXT = "\ue000"


class Question(NamedTuple):
    """A question about a text.

    values : for each possible answer a rating in [0, 1]
    examples : texts with their answers
    """

    wording: str
    values: dict[str, float]
    examples: tuple[tuple[str, str], ...] = ()

    def messages(self, text: str) -> list[dict[str, str]]:
        """Write the messages for a chat model: the examples with their answers, then the text."""
        examples = ((f"Text:\n{example}", answer) for example, answer in self.examples)
        return few_shot(self.wording, examples, f"Text:\n{text}")

    def completion(self, text: str) -> str:
        """Write the text that a model without a chat template completes with its answer."""
        blocks = [self.wording, *(f"Text:\n{example}\nAnswer: {answer}" for example, answer in self.examples)]
        return "\n\n".join([*blocks, f"Text:\n{text}\nAnswer:"])

    def digest(self) -> str:
        """Return a digest of the question, its answers and its examples."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:8]


SENSE = Question(
    "Could this happen in the real world, and does it make sense? Answer Yes or No.", {"Yes": 1.0, "No": 0.0}
)


class AskedModel:
    """A causal language model that is asked a question about texts; what precedes the text is computed once."""

    def __init__(self, model: CausalModel, question: Question) -> None:
        self.identity, self._device, self._tokenizer, self._model = model
        self.ask(question)

    def ask(self, question: Question) -> None:
        """Set the question, and compute the part of the prompt that precedes the text."""
        import torch

        if self._tokenizer.chat_template:
            prompt = self._tokenizer.apply_chat_template(
                question.messages(_TEXT), add_generation_prompt=True, tokenize=False
            )
            space = ""
        else:
            prompt, space = question.completion(_TEXT), " "
        before, _, after = prompt.rpartition(_TEXT)
        self._suffix = self._tokenizer(after, add_special_tokens=False)["input_ids"]
        # A chat template writes the token for the beginning of a text itself.
        prefix = self._tokenizer(before, add_special_tokens=bool(space), return_tensors="pt")["input_ids"]
        answers = self._tokenizer([space + answer for answer in question.values], add_special_tokens=False)["input_ids"]
        self._answers = torch.tensor([ids[0] for ids in answers])
        if len(self._answers.unique()) < len(answers):
            raise ValueError(f"the answers to a question must begin with different tokens. Got {[*question.values]}.")
        self._values = np.array([*question.values.values()])
        self._n_prefix = prefix.shape[1]
        with torch.inference_mode():
            self._cache = self._model(prefix.to(self._device), use_cache=True, logits_to_keep=1).past_key_values

    def rate(self, texts: list[str], progress: bool | None = None) -> np.ndarray:
        """Rate texts by the expected value of the answer; ndarray of shape (n,), in [0, 1]; 0 for an empty text."""
        limit = getattr(self._model.config, "max_position_embeddings", 1024) - self._n_prefix - len(self._suffix)
        # The text must not end its turn, or begin one, by a special token.
        encoded = self._tokenizer(
            texts, truncation=True, max_length=limit, add_special_tokens=False, split_special_tokens=True
        )["input_ids"]
        ids = [[*tokens, *self._suffix] for tokens in encoded]
        ratings = np.zeros(len(texts))
        with progress_bar(len(texts), "Asking", "text", progress) as bar:
            for batch in token_batches(np.array([len(tokens) for tokens in ids], dtype=np.int64), self._device):
                ratings[batch] = self._rate_batch([ids[i] for i in batch])
                bar.update(len(batch))
        return np.where([bool(tokens) for tokens in encoded], ratings, 0.0)

    def _rate_batch(self, ids: list[list[int]]) -> np.ndarray:
        import torch

        last = torch.tensor([len(tokens) - 1 for tokens in ids])
        # Padding is at the end, which a causal model does not look at.
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(tokens) for tokens in ids], batch_first=True)
        columns, column = torch.unique(last, return_inverse=True)
        with torch.inference_mode():
            cache = copy.deepcopy(self._cache)
            cache.batch_repeat_interleave(len(ids))
            logits = self._model(
                padded.to(self._device), past_key_values=cache, logits_to_keep=columns.to(self._device)
            ).logits[torch.arange(len(ids)), column]
        shares = torch.softmax(logits[:, self._answers].double(), dim=1).cpu().numpy()
        return shares @ self._values


class Rated(NamedTuple):
    """The rating of a text, in [0, 1], and whether it is the expected value of the answer by its probabilities."""

    quality: float
    by_probability: bool


def read_answer(question: Question, answer: str, top: dict[str, float] | None) -> Rated:
    """Rate a text by the expected value of the answer to a question.

    `top` holds log-probabilities of the most probable first tokens, of which the spellings of an answer count together.
    If they hold less than half of the probability, or the answer's text says something else than they, the rating is
    the value of the answer itself, which must begin with one of the possible ones.
    """
    values = {name.casefold(): value for name, value in question.values.items()}
    shares = dict.fromkeys(values, 0.0)
    for token, log_probability in (top or {}).items():
        if (word := _word(token)) in shares and not math.isnan(log_probability):
            shares[word] += math.exp(log_probability)
    total = sum(shares.values())
    first = re.search(r"\w+", answer)
    written = "" if first is None else first[0].casefold()
    if total >= _LEAST_SHARE and written in ("", *values) and shares.get(written, total) == max(shares.values()):
        return Rated(sum(share * values[word] for word, share in shares.items()) / total, True)
    if written not in values:
        raise ValueError(f"it must begin with {' or '.join(question.values)}")
    return Rated(values[written], False)


def _word(token: str) -> str:
    """Return the word of a token, without the space before it and its markup; some servers write the space as Ġ."""
    return token.removeprefix("Ġ").strip(" \t\n*_#`'\".,:!▁").casefold()
