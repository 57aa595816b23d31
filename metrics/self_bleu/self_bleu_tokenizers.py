"""Split texts into tokens: at white space, by a tokenizer of sacreBLEU, or by a user-supplied function."""

from collections.abc import Callable
from typing import Any

from .core import caller_name, describe, is_unspaced, warn

WHITESPACE = "whitespace"
# Tokenizers that find no word within a run of letters.
_BY_SPACES = (WHITESPACE, "none", "13a", "intl")


def tokenize(
    texts: list[str], tokenizer: str | Callable[[str], Any], where: Callable[[int], str]
) -> tuple[list[list[str]], str]:
    """Split texts into tokens; returns them and the name of the tokenizer for a signature.

    The tokenizer is "whitespace", a name that sacreBLEU knows, or a function from a text to its list of tokens. `where`
    names the text of an index in an error. Warns, with the count, if the tokenizer splits at spaces and texts are in a
    script without them. Raises an ImportError if sacreBLEU, or what it needs for a language, is not installed, a
    TypeError if the function returns anything but a list of strings, and a ValueError if the name is unknown.
    """
    if callable(tokenizer):
        return _by_function(texts, tokenizer, where), f"custom({caller_name(tokenizer)})"
    is_name = isinstance(tokenizer, str)
    n_unspaced = sum(map(is_unspaced, texts)) if is_name and tokenizer in _BY_SPACES else 0
    if n_unspaced:
        warn(
            f"{n_unspaced} of {len(texts)} texts are in a script without spaces, where tokenizer={tokenizer!r} takes a "
            "sentence for a word. Pass tokenizer='zh' for Chinese, 'ja-mecab' for Japanese, or 'char'."
        )
    if is_name and tokenizer == WHITESPACE:
        return [text.split() for text in texts], WHITESPACE
    return _by_sacrebleu(texts, tokenizer)


def _by_function(texts: list[str], tokenizer: Callable[[str], Any], where: Callable[[int], str]) -> list[list[str]]:
    tokens = []
    for i, text in enumerate(texts):
        words = tokenizer(text)
        if not isinstance(words, (list, tuple)) or not all(isinstance(token, str) for token in words):
            raise TypeError(f"tokenizer must return a list of strings. Got {describe(words)} for {where(i)}.")
        tokens.append(list(words))
    return tokens


def _by_sacrebleu(texts: list[str], name: Any) -> tuple[list[list[str]], str]:
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(f"tokenizer {name!r} needs sacreBLEU: pip install sacrebleu") from error
    known = tuple(sacrebleu.BLEU.TOKENIZERS)
    if not isinstance(name, str) or name not in known:
        names = ", ".join(map(repr, (WHITESPACE, *known)))
        raise ValueError(f"tokenizer must be one of {names}, or a callable. Got {describe(name)}.")
    try:
        split = sacrebleu.BLEU(tokenize=name).tokenizer
    except RuntimeError as error:  # how sacreBLEU says that MeCab is missing
        raise ImportError(f"tokenizer {name!r} needs a further package: {str(error).strip()}") from error
    return [split(text).split() for text in texts], f"{name}-sacrebleu{sacrebleu.__version__}"
