"""Where systems collapse: the prompts of least diversity, and those on which systems differ most."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from text_metrics.commands.report.embedding import Embedded

# Prompts shown of each system, and of all together.
SHOWN = 5


def collapse(
    ids: Sequence[str], sets: Sequence[Sequence[list[str]]], scores: np.ndarray, embedded: Embedded, with_texts: bool
) -> dict[str, Any]:
    """Find the prompts of least diversity of each system, and those on which systems differ most.

    Parameters
    ----------
    ids : list of p prompts
    sets : for each system the texts of each prompt
    scores : ndarray of shape (systems, p), the Vendi scores
    with_texts : whether to show the texts
    """
    least = []
    for of_system, row in zip(sets, scores, strict=True):
        lowest = np.argsort(row, kind="stable")[:SHOWN].tolist()
        least.append(
            [
                {
                    "prompt": ids[p],
                    "score": float(row[p]),
                    **({"texts": of_system[p]} if with_texts else {}),
                    "closest": closest(embedded.of(of_system[p])),
                    "equal_share": equal_share(of_system[p]),
                }
                for p in lowest
            ]
        )
    differ = []
    if len(sets) > 1:
        widest = np.argsort(scores.min(axis=0) - scores.max(axis=0), kind="stable")[:SHOWN].tolist()
        differ = [
            {
                "prompt": ids[p],
                "scores": scores[:, p].tolist(),
                **({"texts": [of_system[p] for of_system in sets]} if with_texts else {}),
            }
            for p in widest
        ]
    return {"least": least, "differ": differ}


def closest(vectors: np.ndarray) -> list[Any]:
    """Return the positions of the two most alike of k unit vectors (k, d), and their cosine."""
    cosines = vectors @ vectors.T
    i, j = np.triu_indices(len(vectors), 1)
    # Equal cosines may differ by rounding, and must not decide.
    best = int(np.argmax(np.round(cosines[i, j], 9)))
    return [int(i[best]), int(j[best]), float(np.clip(cosines[i[best], j[best]], -1, 1))]


def equal_share(texts: Sequence[str]) -> float:
    """Return the share of texts that equal another text of their set."""
    return sum(count for count in Counter(texts).values() if count > 1) / len(texts)
