"""Texts that are not in English, which the models of the metrics do not read."""

import warnings
from collections.abc import Sequence

# The file of the metrics, which the build copies.
from .core_language import find_unread


class OtherLanguageWarning(UserWarning):
    """Texts are not in English; `sets.unjudged` asks for it."""


def check_english(sets: Sequence[Sequence[str]], what: str = "texts", advice: str = "") -> None:
    """Warn of texts that are not in English; the short ones of a set are judged together.

    what : what they are called
    advice : what to do about it
    """
    n_others = sum(len(find_unread(texts).other_language) for texts in sets)
    if n_others:
        warnings.warn(
            f"{n_others:,} of {sum(map(len, sets)):,} {what} {'is' if n_others == 1 else 'are'} not in English. "
            f"The model reads English only, so the score is no judgement of them. {advice}".strip(),
            OtherLanguageWarning,
            stacklevel=2,
        )
