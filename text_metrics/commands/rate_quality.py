"""Rate texts by a language model, for `quality=` of a metric and `--quality-key` of text-metrics report.

A chat model is asked whether a text makes sense. The rating is the expected value of the answer, 1 for Yes and 0 for
No, if the service returns log-probabilities; otherwise the answer itself. After a crash, the same command continues.
With --likelihood, a causal model on this machine rates a text by the geometric mean of the probabilities of its tokens.
docs/quality.md says how accurate ratings are.

    text-metrics rate-quality texts.jsonl --out rated.jsonl --model my-model --base-url http://localhost:8000/v1
    text-metrics rate-quality texts.jsonl --out rated.jsonl --likelihood --model HuggingFaceTB/SmolLM2-135M
"""

import argparse
import hashlib
import math
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot
from text_metrics.commands.shared.cli import add_strip, check_strip, warn_of_marks
from text_metrics.commands.shared.command import Parser, command
from text_metrics.commands.shared.files import check_outputs, write_jsonl
from text_metrics.commands.shared.rows import read_rows
from text_metrics.metrics._core.core_models import TRANSFORMER, find_device, find_model, quiet_loading
from text_metrics.metrics._core.core_results import Signature, signature
from text_metrics.metrics._core.core_windows import token_batches
from text_metrics.texts import REASONING, SPECIAL, clean, strip, to_signature

QUESTION = "Could this happen in the real world, and does it make sense? Answer Yes or No."
VALUES = {"yes": 1.0, "no": 0.0}
# The most probable tokens to request. Some services allow no more.
_TOP = 5
# The probability of all possible answers below which their probabilities say nothing.
_LEAST_SHARE = 0.5


def read_answer(answer: str, top: dict[str, float] | None) -> tuple[float, bool]:
    """Rate a text by the expected value of the answer to the question.

    Returns the rating, in [0, 1], and whether it follows from probabilities of answers.

    `top` holds log-probabilities of the most probable first tokens, of which the spellings of an answer count together.
    If they hold less than half of the probability, or the answer's text says something else than they, the rating is
    the value of the answer itself. Reasoning of the judge is left out of it. Raises a ValueError if the answer does not
    begin with Yes or No.
    """
    answer = strip(answer, (REASONING, SPECIAL))
    shares = dict.fromkeys(VALUES, 0.0)
    for token, log_probability in (top or {}).items():
        # Without the space before the word, which some servers write as Ġ, and its markup.
        word = token.removeprefix("Ġ").strip(" \t\n*_#`'\".,:!▁").casefold()
        if word in shares and not math.isnan(log_probability):
            shares[word] += math.exp(log_probability)
    total = sum(shares.values())
    first = re.search(r"\w+", answer)
    written = "" if first is None else first[0].casefold()
    if total >= _LEAST_SHARE and (not written or shares.get(written) == max(shares.values())):
        return sum(share * VALUES[word] for word, share in shares.items()) / total, True
    if written not in VALUES:
        raise ValueError("it must begin with Yes or No")
    return VALUES[written], False


def rate_by_asking(texts: list[str], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Ask a chat model about each text; returns the lines of those that are rated."""
    chat = Chat(arguments)
    digest = hashlib.sha256(QUESTION.encode()).hexdigest()[:8]
    decisive = {"service": arguments.model, "host": chat.host, "temperature": arguments.temperature, "ask": digest}
    signed = signature("rate_quality", **decisive)
    # An empty text makes no sense.
    ratings: dict[str, tuple[float, bool]] = {text: (0.0, True) for text in texts if not text}
    nonempty = [text for text in texts if text]
    answers = chat.ask(
        [
            Request(f"the text {text!r:.60}", few_shot(QUESTION, f"Text:\n{text}"), read_answer, top=_TOP)
            for text in nonempty
        ]
    )
    ratings |= {text: answer for text, answer in zip(nonempty, answers, strict=True) if answer is not None}
    if plain := sum(not by_probability for _, by_probability in ratings.values()):
        said = f"{plain} of {len(ratings)} ratings are the answer itself, 1 or 0"
        print(f"{said}: the service gave no log-probabilities.", file=sys.stderr)
    print(f"{arguments.out}: {len(ratings)} of {len(texts)} different texts are rated.", file=sys.stderr)
    return [{"text": text, "quality": rating, "signature": signed} for text, (rating, _) in ratings.items()]


def rate_by_likelihood(texts: list[str], name: str) -> list[dict[str, Any]]:
    """Rate each text by the geometric mean of the probabilities of its tokens; 0 without tokens.

    Before a text stands the model's token for the beginning of a text, or else for its end. Of a text that is too long,
    the beginning is rated. Raises a ValueError for a model that is not there, or is not causal.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    files = find_model(name, "--model", TRANSFORMER)
    device = find_device(None)
    with quiet_loading("--model", files.path, "a causal language model"):
        tokenizer = AutoTokenizer.from_pretrained(files.path, local_files_only=True)
        model: Any = AutoModelForCausalLM.from_pretrained(files.path, local_files_only=True, dtype="float32")
    model = model.to(device).eval()
    start = tokenizer.bos_token or tokenizer.eos_token
    if start is None:
        raise ValueError(f"--model must have a token for the beginning or the end of a text. Got {name!r}.")
    limit = getattr(model.config, "max_position_embeddings", 1024) - 1
    encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
    if too_long := sum(len(ids) > limit for ids in encoded):
        print(f"{too_long} texts are longer than {limit} tokens: only their beginnings are rated.", file=sys.stderr)
    encoded = [ids[:limit] for ids in encoded]
    lengths = np.array([max(len(ids), 1) for ids in encoded])
    totals = np.zeros(len(texts))
    start_id: Any = tokenizer.convert_tokens_to_ids(start)
    with tqdm(total=len(texts), desc="Rating", unit="text", disable=not sys.stderr.isatty()) as bar:
        for batch in token_batches(lengths, device):
            tokens = [torch.tensor(encoded[i], dtype=torch.long) for i in batch]
            # The loss ignores these labels. Padding is at the end, which a causal model does not read.
            labels = torch.nn.utils.rnn.pad_sequence(tokens, batch_first=True, padding_value=-100)
            ids = torch.nn.functional.pad(labels.masked_fill(labels < 0, start_id), (1, 0), value=start_id)
            with torch.inference_mode():
                logits = model(ids.to(device)).logits[:, :-1].float().transpose(1, 2)
                losses = torch.nn.functional.cross_entropy(logits, labels.to(device), reduction="none")
            totals[batch] = -losses.sum(dim=1).double().cpu().numpy()
            bar.update(len(batch))
    signed = signature("rate_quality", model=files.identity, start=start)
    lines = []
    for text, ids, total in zip(texts, encoded, totals.tolist(), strict=True):
        quality = math.exp(total / len(ids)) if ids else 0.0
        lines.append({"text": text, "quality": quality, "log_probability": total, "signature": signed})
    return lines


def read_lines(path: Path) -> list[str]:
    """Read texts: a string on each line, or an object with `text`."""
    texts = []
    for where, value in read_rows(path, any_value=True):
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a string, or an object with 'text'. Got {value!r:.80}.")
        texts.append(text)
    return texts


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("--likelihood", action="store_true", help="by a causal model on this machine; ask nothing")
    add_arguments(parser, "texts", "JSON lines: strings, or objects with text")
    add_strip(parser)
    arguments = parser.parse_args()
    check_strip(arguments.strip, has_contexts=False)
    texts = read_lines(arguments.reads)
    answers, marks = clean(texts, arguments.strip)
    warn_of_marks(marks, (REASONING, SPECIAL))
    unique = list(dict.fromkeys(answers))
    if arguments.likelihood:
        check_outputs([arguments.reads, arguments.model], [arguments.out])
        lines = rate_by_likelihood(unique, arguments.model)
    else:
        lines = rate_by_asking(unique, arguments)
    by_answer = {line["text"]: _signed(line, arguments.strip) for line in lines}
    pairs = zip(texts, answers, strict=True)
    write_jsonl(arguments.out, ({**by_answer[answer], "text": text} for text, answer in pairs if answer in by_answer))
    return int(len(by_answer) < len(unique))


def _signed(line: dict[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """Add what was stripped from the text to the signature of a line."""
    if not kinds:
        return line
    return {**line, "signature": str(Signature.parse(line["signature"]).merge(**to_signature(kinds)))}
