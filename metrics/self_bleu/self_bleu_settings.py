"""The settings of self_bleu."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .core import SetSettings, parse_choice, parse_count, parse_flag, setting
from .self_bleu_ngrams import SMOOTHINGS

# Each order is a pass over all tokens, and three numbers of the result.
_LONGEST = 100


@dataclass(frozen=True, kw_only=True)
class SelfBleuSettings(SetSettings):
    """The settings of a call, as the help explains them."""

    max_order: int = setting(4, parse_count, high=_LONGEST, help="`int`: length of the longest n-grams, at most 100.")
    aggregate: str = setting(
        "set",
        parse_choice,
        choices=("set", "corpus", "sentence"),
        help='`"set"`, `"corpus"` or `"sentence"`: how n-gram counts are combined. `"set"` pools them within each set, '
        'and averages the scores of sets. `"corpus"` pools them over all sets, also for Distinct-n and Entropy-n; '
        '`scores` are still per set, so their mean is not `self_bleu`. `"sentence"` averages the BLEU of texts over a '
        "set, then over sets. The references of a text are always the other texts of its set.",
    )
    smoothing: str | None = setting(
        None,
        parse_choice,
        choices=SMOOTHINGS,
        help='`"nlg-eval"`, `"method1"` or `"none"`: treatment of a precision of zero. `"nlg-eval"` uses its '
        "constants: 1e-15 is added to the matches and to the length of the text, 1e-9 to the totals and to "
        'the length of the reference. `"method1"` is NLTK\'s method 1: a match count of 0 becomes 0.1, and a '
        'text without a single matching word scores 0. `"none"` leaves zero, and the score is 0. Default: '
        '`"method1"` if `aggregate` is `"sentence"`, otherwise `"nlg-eval"`.',
    )
    tokenizer: str | Callable[[str], Any] = setting(
        "whitespace",
        help='`str` or callable: `"whitespace"`; the name of a sacreBLEU tokenizer (`"13a"`, `"intl"`, `"char"`, '
        '`"zh"`, `"ja-mecab"`, ...); or a function from a text to its list of tokens. The signature reports a '
        "function as `custom(<name>)`, or by its attribute `signature_name`.",
    )
    singletons: str = setting(
        "error",
        parse_choice,
        choices=("error", "skip"),
        help='`"error"` or `"skip"`: a set of one text has no references. Either raise an error, or return None as '
        "its score and leave it out of the means of what compares texts: self-BLEU, self-repetition and ROUGE-L.",
    )
    vocabulary_size: int | None = setting(
        None,
        parse_count,
        low=2,
        help="`int`, at least 2: also return Distinct-1 adjusted for the number of tokens, for a vocabulary of "
        "this many tokens: that of the models compared, the largest if they differ.",
    )
    repetition: bool = setting(
        False,
        parse_flag,
        help="`bool`: also return the compression ratio and the self-repetition, as in arXiv 2403.00553.",
    )
    homogenization: bool = setting(
        False,
        parse_flag,
        help="`bool`: also return the mean ROUGE-L of all pairs of texts of a set, by the package `rouge-score`, "
        "whose words are letters a to z, in lower case, and digits. The time is quadratic in the size of a "
        "set.",
    )

    @property
    def pooled_by(self) -> str | None:
        """The setting that pools all sets."""
        return "aggregate" if self.aggregate == "corpus" else None

    @property
    def smoothed_by(self) -> str:
        """The smoothing of BLEU; the default depends on the aggregate."""
        return self.smoothing or ("method1" if self.aggregate == "sentence" else "nlg-eval")
