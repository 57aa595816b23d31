"""Sets of answers that are drawn from a pool by the five schemes of the paper (arXiv 2406.04145, section 5)."""

from collections.abc import Callable

import numpy as np

from scripts.reports.probeval.pools import Pool


def centered(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix the pool's distribution with people's and the uniform one, at least half of it the pool's."""
    weight = rng.uniform(0.5, 1)
    other = rng.uniform()
    return weight * answers + (1 - weight) * (other * gold + (1 - other) / len(gold))


def diverse(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Mix people's distribution with the uniform one."""
    weight = rng.uniform()
    return weight * gold + (1 - weight) / len(gold)


def missing_answer(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Leave out some clusters, at least one, and keep at least two."""
    share = gold.copy()
    share[rng.choice(len(gold), rng.integers(1, max(len(gold) - 1, 2)), replace=False)] = 0.0
    return share / share.sum()


def wrong_ranking(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permute people's shares over the clusters."""
    share = rng.permutation(gold)
    while np.ptp(gold) > 0 and (share == gold).all():
        share = rng.permutation(gold)
    return share


def wrong_score(gold: np.ndarray, answers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move each share by up to half of its distance to the next, which keeps the ranking."""
    order = np.argsort(-gold, kind="stable")
    gaps = np.abs(np.diff(gold[order]))
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf)) / 2
    room = np.minimum(room, np.minimum(gold[order], 1 - gold[order]))
    share = gold.copy()
    share[order] += rng.uniform(-room, room)
    return share / share.sum()


SCHEMES: tuple[Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray], ...] = (
    centered,
    diverse,
    missing_answer,
    wrong_ranking,
    wrong_score,
)


def draw(pool: Pool, scheme: Callable, rng: np.random.Generator) -> np.ndarray:
    """Draw a set from the pool, without replacement, as large as it allows for the scheme's distribution.

    Returns
    -------
    ndarray of shape (u,), how often each answer is in the set
    """
    gold, answers = pool.shares()
    share = scheme(gold, answers, rng)
    # As in the original, each cluster counts one answer more than it has; drawing that one gives no answer.
    sizes = np.bincount(pool.columns, weights=pool.question.counts, minlength=len(gold)).astype(int) + 1
    wanted = share * sizes.sum()
    ratio = min(float(np.min(np.divide(sizes, wanted, out=np.ones(len(gold)), where=wanted > sizes))), 1.0)
    numbers = np.rint(wanted * ratio).astype(int)
    if scheme in (wrong_ranking, wrong_score):
        numbers = _each_once(numbers)
        # Small sets grow until they rank the clusters as the scheme does.
        while ratio + 0.1 <= 1 and not np.array_equal(_order(numbers), _order(share)):
            ratio += 0.1
            numbers = _each_once(np.rint(wanted * ratio).astype(int))
    drawn = np.zeros(len(pool.columns))
    for column, (size, number) in enumerate(zip(sizes, np.minimum(numbers, sizes), strict=True)):
        members = np.flatnonzero(pool.columns == column)
        tokens = np.repeat(members, pool.question.counts[members].astype(int))
        picked = rng.choice(size, number, replace=False)
        np.add.at(drawn, tokens[picked[picked < size - 1]], 1)
    return drawn


def _each_once(numbers: np.ndarray) -> np.ndarray:
    return numbers + bool((numbers == 0).any())


def _order(shares: np.ndarray) -> np.ndarray:
    return np.argsort(-shares, kind="stable")
