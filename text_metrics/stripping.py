"""Strip what is not the answer from the texts of a call in Python, and warn of what is left."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from text_metrics.core_api import Signature, owners_of, split_list, warn
from text_metrics.texts import KINDS, PROMPT, clean, parse_kinds, to_signature

_EMPTIED = "emptied"


class Stripper:
    """Strip what is not the answer from texts, and warn once of what is left, with counts.

    Parameters
    ----------
    kinds : of `text_metrics.texts`, as a list or with commas between them; None for none

    Raises a TypeError or ValueError for other kinds.
    """

    def __init__(self, kinds: Any) -> None:
        self.kinds = parse_kinds(kinds)
        self._warned: set[str] = set()

    @property
    def needs_prompts(self) -> bool:
        """True if the prompts of texts must be known."""
        return PROMPT in self.kinds

    def __call__(self, texts: Sequence[str], prompts: Sequence[str | None] | None = None) -> list[str]:
        """Strip texts, whose prompts may be unknown; returns them in order."""
        stripped, marks = clean(texts, self.kinds, prompts)
        new = [kind for kind in KINDS if marks.left[kind] and kind not in self._warned]
        if new:
            warn(marks.warning("strip='{}'", new))
            self._warned.update(new)
        if marks.n_empty and _EMPTIED not in self._warned:
            warn(marks.emptied())
            self._warned.add(_EMPTIED)
        return stripped

    def sets(self, sets: Sequence[Sequence[str]], prompts: Sequence[str | None] | None) -> list[list[str]]:
        """Strip the texts of sets, whose prompts, one for each, may be unknown."""
        sizes = np.array([len(texts) for texts in sets])
        prompt_of_text = None if prompts is None else [prompts[i] for i in owners_of(sizes)]
        return split_list(self(list(chain.from_iterable(sets)), prompt_of_text), sizes)

    def sign(self, signature: str) -> str:
        """Add what was stripped to a signature."""
        return str(Signature.parse(signature).merge(**to_signature(self.kinds))) if self.kinds else signature
