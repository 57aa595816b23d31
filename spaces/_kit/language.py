"""Texts that are not in English, which the models of the metrics do not read."""

import functools
import re
import warnings
from collections.abc import Sequence

from py3langid.langid import MODEL_FILE, LanguageIdentifier

# A text of fewer letters is too short to tell its language.
LEAST_LETTERS = 6
# The sentences of a text that have as many letters are judged one by one, and the texts of a set that have fewer are
# also judged together.
_SHORT = 20
# A text of at least so many letters is in another language if the probability of English is below a bar; docs/demos.md
# has the errors. Longer sentences of other languages are far below it, and English ones with foreign names not.
_OF_TEXT = ((30, 0.0005), (_SHORT, 0.003), (LEAST_LETTERS, 0.00001))
# Words say less than a sentence. The more there are, the surer the identifier is of English, and the higher is the bar.
_OF_WORDS = ((60, 0.1), (40, 0.03), (30, 0.01), (_SHORT, 0.003), (LEAST_LETTERS, 0.001))
# A sentence ends at a line, too: an item of a list has no full stop.
_ENDS = re.compile(r"(?<=[.!?…])[\"”’»)\]]*\s+|(?<=[。！？])|\n+")


class OtherLanguageWarning(UserWarning):
    """Texts are not in English; `sets.unjudged` asks for it."""


@functools.cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def is_other(text: str, bars: Sequence[tuple[int, float]] = _OF_TEXT) -> bool:
    """Return whether a text is long enough to tell its language, and not in English."""
    n_letters = _n_letters(text)
    least_english = next((bar for least, bar in bars if n_letters >= least), 0.0)
    return least_english > 0 and dict(_identifier().rank(text))["en"] < least_english


def is_mixed(text: str) -> bool:
    """Return whether a text has sentences that are not in English, but is in English otherwise."""
    others = [is_other(part) for part in _ENDS.split(text) if _n_letters(part) >= _SHORT]
    return any(others) and not (all(others) and is_other(text))


def _n_letters(text: str) -> int:
    return sum(map(str.isalpha, text))


def check_english(sets: Sequence[Sequence[str]], what: str = "texts", advice: str = "") -> None:
    """Warn of texts that are not in English, or not throughout; the short ones of a set are also judged together.

    what : what they are called
    advice : what to do about it
    """
    n_others, n_mixed = 0, 0
    for texts in sets:
        short = {text: None for text in texts if _n_letters(text) < _SHORT}
        # Each word once: the identifier takes every repetition for new evidence.
        words = dict.fromkeys(word for text in short for word in text.split() if _n_letters(word))
        are_other = is_other(" ".join(words), _OF_WORDS)
        for text in texts:
            if is_mixed(text):
                n_mixed += 1
            else:
                n_others += (are_other and text in short) or is_other(text)
    of_all = f"of {sum(map(len, sets)):,} {what}"
    found = []
    if n_others:
        found.append(f"{n_others:,} {of_all} {'is' if n_others == 1 else 'are'} not in English")
    if n_mixed:
        found.append(f"{n_mixed:,} {of_all} {'has' if n_mixed == 1 else 'have'} sentences in another language")
    if found:
        warnings.warn(
            f"{' and '.join(found)}. The model reads English only, so the score is no judgement of them. "
            f"{advice}".strip(),
            OtherLanguageWarning,
            stacklevel=2,
        )
