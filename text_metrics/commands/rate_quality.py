"""Rate texts by a language model, for `quality=` and `text-metrics meta-eval --quality`.

Without --ask, a causal language model on this machine rates a text by the geometric mean of the probabilities of its
tokens. With --ask, a chat model is asked whether the text makes sense. The rating is the expected value of the answer,
1 for Yes and 0 for No, if the service returns log-probabilities; otherwise the answer itself. Each answer is saved at
once in rated.jsonl.journal: after a crash, the same command continues.

A line of the input is a string, or an object with `text`. docs/quality.md says how accurate these ratings are.

    text-metrics rate-quality texts.jsonl --out rated.jsonl --model HuggingFaceTB/SmolLM2-135M
    text-metrics rate-quality texts.jsonl --out rated.jsonl --ask --model my-model --base-url http://localhost:8000/v1
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl
"""

import argparse
import hashlib
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from text_metrics.commands.shared.causal import CausalModel, load_causal
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_jsonl, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics._core.core_encoder import progress_bar, token_batches
from text_metrics.metrics._core.core_results import signature

QUESTION = "Could this happen in the real world, and does it make sense? Answer Yes or No."
VALUES = {"yes": 1.0, "no": 0.0}
# The most probable tokens to request. Some services allow no more.
_TOP = 5
# The probability of all possible answers below which their probabilities say nothing.
_LEAST_SHARE = 0.5


class Rated(NamedTuple):
    """The rating of a text, in [0, 1], and whether it is the expected value of the answer by its probabilities."""

    quality: float
    by_probability: bool


def read_answer(answer: str, top: dict[str, float] | None) -> Rated:
    """Rate a text by the expected value of the answer to the question.

    `top` holds log-probabilities of the most probable first tokens, of which the spellings of an answer count together.
    If they hold less than half of the probability, or the answer's text says something else than they, the rating is
    the value of the answer itself. Raises a ValueError if that does not begin with Yes or No.
    """
    shares = dict.fromkeys(VALUES, 0.0)
    for token, log_probability in (top or {}).items():
        if (word := _word(token)) in shares and not math.isnan(log_probability):
            shares[word] += math.exp(log_probability)
    total = sum(shares.values())
    first = re.search(r"\w+", answer)
    written = "" if first is None else first[0].casefold()
    if total >= _LEAST_SHARE and (not written or shares.get(written) == max(shares.values())):
        return Rated(sum(share * VALUES[word] for word, share in shares.items()) / total, True)
    if written not in VALUES:
        raise ValueError("it must begin with Yes or No")
    return Rated(VALUES[written], False)


def _word(token: str) -> str:
    """Return the word of a token, without the space before it and its markup; some servers write the space as Ġ."""
    return token.removeprefix("Ġ").strip(" \t\n*_#`'\".,:!▁").casefold()


class LanguageModel:
    """A causal language model; before each text stands its token for the beginning of a text, or else for its end."""

    def __init__(self, model: CausalModel) -> None:
        self.identity, self._device, self._tokenizer, self._model = model
        self.start = self._tokenizer.bos_token or self._tokenizer.eos_token
        if self.start is None:
            raise ValueError("--model must have a token for the beginning or the end of a text.")

    def log_probabilities(self, texts: list[str], progress: bool | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Compute the log-probability of each text after the start token, of as many tokens as the model can read.

        Returns
        -------
        total : ndarray of shape (n,), natural logarithms; 0 for a text without tokens
        lengths : ndarray of shape (n,), int, the numbers of tokens
        """
        limit = getattr(self._model.config, "max_position_embeddings", 1024) - 1
        encoded = self._tokenizer(texts, add_special_tokens=False)["input_ids"]
        if too_long := sum(len(ids) > limit for ids in encoded):
            print(f"{too_long} texts are longer than {limit} tokens: only their beginnings are rated.", file=sys.stderr)
        encoded = [ids[:limit] for ids in encoded]
        lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
        total = np.zeros(len(texts))
        with progress_bar(len(texts), "Rating", "text", progress) as bar:
            for batch in token_batches(np.maximum(lengths, 1), self._device):
                total[batch] = self._score_batch([encoded[i] for i in batch])
                bar.update(len(batch))
        return total, lengths

    def _score_batch(self, encoded: list[list[int]]) -> np.ndarray:
        import torch

        tokens = [torch.tensor(ids, dtype=torch.long) for ids in encoded]
        start = self._tokenizer.convert_tokens_to_ids(self.start)
        # The loss leaves these labels out. Padding is at the end, which a causal model does not look at.
        labels = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-100)
        ids = torch.nn.functional.pad(labels.masked_fill(labels < 0, start), (1, 0), value=start)
        with torch.inference_mode():
            logits = self._model(ids.to(self._device)).logits[:, :-1].float()
            losses = torch.nn.functional.cross_entropy(
                logits.transpose(1, 2), labels.to(self._device), ignore_index=-100, reduction="none"
            )
        return -losses.sum(dim=1).double().cpu().numpy()


def read_lines(path: Path) -> list[str]:
    """Read texts: a string on each line, or an object with `text`."""
    texts = []
    for where, value in read_jsonl(path):
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a string, or an object with 'text'. Got {value!r:.80}.")
        texts.append(text)
    return texts


def rate_by_likelihood(texts: list[str], model_name: str) -> Iterator[dict[str, Any]]:
    """Yield a line for each text: the geometric mean of its tokens' probabilities, 0 for a text without tokens."""
    model = LanguageModel(load_causal(model_name))
    total, lengths = model.log_probabilities(texts, sys.stderr.isatty() or None)
    ratings = np.where(lengths > 0, np.exp(total / np.maximum(lengths, 1)), 0.0)
    signed = signature("rate_quality", model=model.identity, start=model.start)
    for text, rating, log_probability in zip(texts, ratings.tolist(), total.tolist(), strict=True):
        yield {"text": text, "quality": rating, "log_probability": log_probability, "signature": signed}


def rate_by_asking(texts: list[str], arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], int]:
    """Ask a chat model about each text; returns the lines of those that are rated, and the exit code."""
    asked = [text for text in texts if text]
    requests = [
        Request(f"the text {text!r:.60}", few_shot(QUESTION, (), f"Text:\n{text}"), read_answer, top=_TOP)
        for text in asked
    ]
    values, code = Chat(arguments, arguments.out).ask(requests)
    digest = hashlib.sha256(QUESTION.encode()).hexdigest()[:8]
    signed = signature("rate_quality", service=arguments.model, temperature=arguments.temperature, ask=digest)
    answers = {text: answer for text, answer in zip(asked, values, strict=True) if answer is not None}
    # A text without tokens is rated 0, as by likelihood.
    rated = answers | {text: Rated(0.0, True) for text in texts if not text}
    lines = [{"text": text, "quality": rating.quality, "signature": signed} for text, rating in rated.items()]
    plain = sum(not rating.by_probability for rating in rated.values())
    if plain:
        print(
            f"{plain} of {len(lines)} ratings are the answer itself, 1 or 0: the service gave no log-probabilities of "
            "the possible answers.",
            file=sys.stderr,
        )
    print(f"{arguments.out}: {len(lines)} of {len(texts)} different texts are rated.", file=sys.stderr)
    return lines, code


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("texts", type=Path, help="texts, as JSON lines")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write them with their quality"
    )
    parser.add_argument("--ask", action="store_true", help="ask a chat model whether each text makes sense")
    add_arguments(parser, model="causal language model: a folder, a GGUF file, an id of the Hub; with --ask a name")
    arguments = parser.parse_args()
    if arguments.base_url and not arguments.ask:
        raise ValueError("--base-url needs --ask: a chat service cannot be asked for the likelihood of a text.")
    reads = [arguments.texts, *([] if arguments.ask else module_files(arguments.model))]
    check_outputs(reads, [arguments.out, journal_file(arguments.out) if arguments.ask else None])
    texts = read_lines(arguments.texts)
    unique = list(dict.fromkeys(texts))
    code = 0
    if arguments.ask:
        lines, code = rate_by_asking(unique, arguments)
    else:
        lines = list(rate_by_likelihood(unique, arguments.model))
    by_text = {line["text"]: line for line in lines}
    write_jsonl(arguments.out, (by_text[text] for text in texts if text in by_text))
    return code
