"""Texts drawn at random, by their content alone: the order of files, rows and texts does not matter."""

import hashlib
from collections import Counter
from collections.abc import Sequence

# Texts of each side on a prompt whose diversity is partitioned: the time grows with the third power.
MOST_TEXTS = 25
_SEED = 0


def shuffled(texts: Sequence[str], prompt: str) -> list[str]:
    """Return texts in a random order that depends only on their content, their prompt and how often each is there.

    Different sets are drawn from independently, also where they share texts.
    """
    whole = hashlib.blake2b("\0".join([str(_SEED), prompt, *sorted(texts)]).encode(), digest_size=16).digest()
    keys = [
        (hashlib.blake2b(f"{number}\0{text}".encode(), digest_size=16, key=whole).digest(), text)
        for text, count in Counter(texts).items()
        for number in range(count)
    ]
    return [text for _, text in sorted(keys)]


def equal_numbers(ids: Sequence[str], sets: Sequence[Sequence[list[str]]]) -> list[list[list[str]]]:
    """Draw for each prompt as many texts of each side as the smallest side has, at most `MOST_TEXTS`.

    A set that has no more is returned as it is.

    Parameters
    ----------
    ids : list of p prompts
    sets : for each side, such as a system, the texts of each prompt
    """
    counts = [min(MOST_TEXTS, *map(len, sides)) for sides in zip(*sets, strict=True)]
    return [
        [
            texts if len(texts) == count else shuffled(texts, prompt)[:count]
            for texts, prompt, count in zip(side, ids, counts, strict=True)
        ]
        for side in sets
    ]
