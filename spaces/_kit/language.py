"""Texts that are not in English, which the models of the metrics do not read."""

import functools
import warnings
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# Letters of a text whose language is told by itself; shorter ones are judged together.
LEAST_LETTERS = 20
# Below this probability of English, a text is in another language.
_LEAST_ENGLISH = 0.001


class OtherLanguageWarning(UserWarning):
    """Texts are not in English; `sets.unjudged` asks for it."""


@functools.cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def is_other(text: str) -> bool:
    """Return whether a text is long enough to tell its language, and not in English."""
    return sum(map(str.isalpha, text)) >= LEAST_LETTERS and dict(_identifier().rank(text))["en"] < _LEAST_ENGLISH


def check_english(sets: Sequence[Sequence[str]], what: str = "texts", advice: str = "") -> None:
    """Warn of texts that are not in English; those of a set that are too short are judged together.

    what : what they are called
    advice : what to do about it
    """
    n_others = 0
    for texts in sets:
        short = [text for text in texts if sum(map(str.isalpha, text)) < LEAST_LETTERS]
        n_others += sum(map(is_other, texts)) + (len(short) if is_other(" ".join(dict.fromkeys(short))) else 0)
    if n_others:
        warnings.warn(
            f"{n_others:,} of {sum(map(len, sets)):,} {what} are not in English. The model reads English "
            f"only, so the score is no judgement of them. {advice}".strip(),
            OtherLanguageWarning,
            stacklevel=2,
        )
