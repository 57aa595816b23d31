"""Texts that are not in English, which the models of the metrics do not read."""

import functools
import warnings
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# A text of fewer letters is too short to tell its language.
LEAST_LETTERS = 6
# The short texts of a set are also judged together.
_SHORT = 20
# Below this probability of English, a text is in another language; docs/demos.md has the errors.
_LEAST_ENGLISH, _LEAST_ENGLISH_SHORT = 0.003, 0.001


class OtherLanguageWarning(UserWarning):
    """Texts are not in English; `sets.unjudged` asks for it."""


@functools.cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def is_other(text: str) -> bool:
    """Return whether a text is long enough to tell its language, and not in English."""
    n_letters = _n_letters(text)
    least = _LEAST_ENGLISH if n_letters >= _SHORT else _LEAST_ENGLISH_SHORT
    return n_letters >= LEAST_LETTERS and dict(_identifier().rank(text))["en"] < least


def _n_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def check_english(sets: Sequence[Sequence[str]], what: str = "texts", advice: str = "") -> None:
    """Warn of texts that are not in English; the short ones of a set are also judged together.

    what : what they are called
    advice : what to do about it
    """
    n_others = 0
    for texts in sets:
        short = {text: None for text in texts if _n_letters(text) < _SHORT}
        are_other = is_other(" ".join(short))
        n_others += sum((are_other and text in short) or is_other(text) for text in texts)
    if n_others:
        warnings.warn(
            f"{n_others:,} of {sum(map(len, sets)):,} {what} are not in English. The model reads English "
            f"only, so the score is no judgement of them. {advice}".strip(),
            OtherLanguageWarning,
            stacklevel=2,
        )
