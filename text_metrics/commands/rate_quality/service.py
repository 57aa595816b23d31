"""Ratings by a chat service: from the probabilities of the first token of its answer, or from the answer itself."""

import math
import re
from typing import NamedTuple

from text_metrics.commands.rate_quality.asking import Question

# The most probable tokens to request. Some services allow no more.
TOP = 5


class Rated(NamedTuple):
    """The rating of a text, in [0, 1], and whether it is the expected value of the answer by its probabilities."""

    quality: float
    by_probability: bool


def read_answer(question: Question, answer: str, top: dict[str, float] | None) -> Rated:
    """Rate a text by the expected value of the answer to a question.

    Parameters
    ----------
    top : log-probabilities of the most probable first tokens; without one of the possible answers among them, the
        rating is the value of the answer itself

    Raises
    ------
    ValueError
        If the answer does not begin with one of the possible answers either.
    """
    shares = {token: math.exp(value) for token, value in (top or {}).items() if token in question.values}
    total = sum(shares.values())
    if total > 0:
        return Rated(sum(share * question.values[token] for token, share in shares.items()) / total, True)
    values = {name.casefold(): value for name, value in question.values.items()}
    # Whatever marks up the answer, and what explains it, does not matter.
    first = re.search(r"\w+", answer)
    if first is None or first[0].casefold() not in values:
        raise ValueError(f"it must begin with {' or '.join(question.values)}")
    return Rated(values[first[0].casefold()], False)
