"""Rate texts by asking a chat model whether they make sense, for `quality=` and `text-metrics meta-eval --quality`.

The rating is the expected value of the answer, 1 for Yes and 0 for No, if the service returns log-probabilities;
otherwise the answer itself. Each answer is saved at once: after a crash, the same command continues. docs/quality.md
says how accurate ratings are.

    text-metrics rate-quality texts.jsonl --out rated.jsonl --model my-model --base-url http://localhost:8000/v1
"""

import argparse
import hashlib
import math
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

from text_metrics.commands.shared.chat import Chat, Request, add_arguments, few_shot, journal_file
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_jsonl, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics._core.core_results import signature

QUESTION = "Could this happen in the real world, and does it make sense? Answer Yes or No."
VALUES = {"yes": 1.0, "no": 0.0}
# The most probable tokens to request. Some services allow no more.
_TOP = 5
# The probability of all possible answers below which their probabilities say nothing.
_LEAST_SHARE = 0.5


class Rated(NamedTuple):
    """The rating of a text, in [0, 1], and whether it follows from probabilities of answers."""

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
        # Without the space before the word, which some servers write as Ġ, and its markup.
        word = token.removeprefix("Ġ").strip(" \t\n*_#`'\".,:!▁").casefold()
        if word in shares and not math.isnan(log_probability):
            shares[word] += math.exp(log_probability)
    total = sum(shares.values())
    first = re.search(r"\w+", answer)
    written = "" if first is None else first[0].casefold()
    if total >= _LEAST_SHARE and (not written or shares.get(written) == max(shares.values())):
        return Rated(sum(share * VALUES[word] for word, share in shares.items()) / total, True)
    if written not in VALUES:
        raise ValueError("it must begin with Yes or No")
    return Rated(VALUES[written], False)


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
    # An empty text makes no sense.
    rated = {text: Rated(0.0, True) for text in texts if not text} | dict(zip(asked, values, strict=True))
    rated = {text: rating for text, rating in rated.items() if rating is not None}
    if plain := sum(not rating.by_probability for rating in rated.values()):
        said = f"{plain} of {len(rated)} ratings are the answer itself, 1 or 0"
        print(f"{said}: the service gave no log-probabilities.", file=sys.stderr)
    print(f"{arguments.out}: {len(rated)} of {len(texts)} different texts are rated.", file=sys.stderr)
    return [{"text": text, "quality": rating.quality, "signature": signed} for text, rating in rated.items()], code


def read_lines(path: Path) -> list[str]:
    """Read texts: a string on each line, or an object with `text`."""
    texts = []
    for where, value in read_jsonl(path):
        text = value.get("text") if isinstance(value, dict) else value
        if not isinstance(text, str):
            raise ValueError(f"{where} must be a string, or an object with 'text'. Got {value!r:.80}.")
        texts.append(text)
    return texts


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("texts", type=Path, help="JSON lines: strings, or objects with text")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="where to write them with their quality"
    )
    add_arguments(parser)
    arguments = parser.parse_args()
    check_outputs([arguments.texts], [arguments.out, journal_file(arguments.out)])
    texts = read_lines(arguments.texts)
    lines, code = rate_by_asking(list(dict.fromkeys(texts)), arguments)
    by_text = {line["text"]: line for line in lines}
    write_jsonl(arguments.out, (by_text[text] for text in texts if text in by_text))
    return code
