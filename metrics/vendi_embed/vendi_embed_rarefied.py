"""Expected scores of vendi_embed for k texts drawn from each set without replacement."""

from typing import NamedTuple

import numpy as np

from .core_class_scores import vendi_from_shares
from .core_inputs import batches_by_size
from .core_rarefaction import expected_distinct, expected_over_subsets
from .vendi_embed_kernels import ClassKernel, Kernel
from .vendi_embed_weighting import Weighting

# The largest subset whose partitions into classes are all scored: there are 627 of 20 texts.
LARGEST_EXACT = 20
# Entries of a table of probabilities held at a time.
_ENTRIES = 2**22


class Scored(NamedTuple):
    """Scores of m sets.

    by_order : ndarray of shape (m, number of orders); NaN for a set without a score
    with_quality : ndarray of shape (m,), mean quality times the score at the main order; None without quality
    eigenvalues : of each set, where details show them; else empty
    errors : ndarray of the shape of `by_order`, the standard errors of rarefied scores; None for whole sets
    is_exact : whether rarefied scores are exact: by a formula instead of subsets
    """

    by_order: np.ndarray
    with_quality: np.ndarray | None
    eigenvalues: list[np.ndarray]
    errors: np.ndarray | None = None
    is_exact: bool = True

    @property
    def main(self) -> np.ndarray:
        """The scores at the main order: (m,)."""
        return self.by_order[:, 0]

    @property
    def has_score(self) -> np.ndarray:
        """Whether each set has a score: (m,), bool."""
        return ~np.isnan(self.main)


class Groups(NamedTuple):
    """Texts of one set that can take each other's place in any subset: of one class, or equal.

    of_text : ndarray of shape (n,), the group of each text, numbered over all sets
    counts, owners : ndarrays of shape (c,), the number of texts and the set of each group
    qualities : ndarray of shape (c,), the mean quality of its texts; 1 without quality
    """

    of_text: np.ndarray
    counts: np.ndarray
    owners: np.ndarray
    qualities: np.ndarray


def rarefied(kernel: Kernel, orders: list[float], k: int, contents: np.ndarray, weighting: Weighting) -> Scored:
    """Find the expected scores of k texts that count, drawn without replacement; NaN for a set of fewer.

    Each text is given the mean quality of its group, which leaves the expectation as it is. `contents`, ndarray of
    shape (n,), are those of the texts, as by `content_keys`.
    """
    rows = np.arange(len(contents)) if weighting.counted is None else np.flatnonzero(weighting.counted)
    sizes, contents = weighting.sizes(kernel.sizes), contents[rows]
    qualities = None if weighting.qualities is None else weighting.qualities[rows]
    by_class = isinstance(kernel, ClassKernel)
    groups = group_texts(kernel.classes.of_text if isinstance(kernel, ClassKernel) else contents, sizes, qualities)
    large = sizes >= k
    by_order, errors = np.full((2, len(sizes), len(orders)), np.nan)
    products = np.full(len(sizes), np.nan)

    is_number = by_class and set(orders) == {0.0} and qualities is None
    is_exact = is_number or (by_class and k <= LARGEST_EXACT)
    if is_exact:
        errors[large] = 0.0
    if is_exact and not is_number:
        by_order[large], products[large] = expected_of_classes(_of_sets(groups, large), k, orders)
    elif not is_exact and large.any():
        # Classes of equal size and quality are alike.
        order = np.argsort(np.lexsort((groups.qualities, groups.counts))) if by_class else np.arange(len(groups.counts))

        def score(places: np.ndarray) -> np.ndarray:
            scores = kernel.score_subsets(rows[places], orders)
            return np.column_stack([scores, groups.qualities[groups.of_text[places]].mean(axis=1) * scores[:, 0]])

        expected = expected_over_subsets(score, contents, sizes, k, order[groups.of_text])
        by_order, errors, products = expected.means[:, :-1], expected.errors[:, :-1], expected.means[:, -1]
    if by_class and 0.0 in orders:
        large_groups = _of_sets(groups, large)
        number = expected_distinct(large_groups.counts, large_groups.owners, sizes[large], k)
        for column in np.flatnonzero(np.array(orders) == 0):
            by_order[large, column], errors[large, column] = number, 0.0
    return Scored(by_order, None if qualities is None else products, [], errors, is_exact)


def group_texts(keys: np.ndarray, sizes: np.ndarray, qualities: np.ndarray | None = None) -> Groups:
    """Group the texts of each set whose keys (n,) are equal, in order of the keys."""
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((keys, set_of))
    new = (np.diff(set_of[order], prepend=-1) > 0) | np.concatenate([[True], np.diff(keys[order]) != 0])[: len(keys)]
    of_text = np.empty(len(keys), dtype=np.int64)
    of_text[order] = np.cumsum(new) - 1
    counts = np.bincount(of_text)
    means = np.ones(len(counts)) if qualities is None else np.bincount(of_text, weights=qualities) / counts
    return Groups(of_text, counts, set_of[order][new], means)


def _of_sets(groups: Groups, chosen: np.ndarray) -> Groups:
    """Leave out the groups of the other sets, and their texts."""
    is_chosen = chosen[groups.owners]
    of_text = (np.cumsum(is_chosen) - 1)[groups.of_text[is_chosen[groups.of_text]]]
    return Groups(
        of_text,
        groups.counts[is_chosen],
        (np.cumsum(chosen) - 1)[groups.owners[is_chosen]],
        groups.qualities[is_chosen],
    )


class Partitions(NamedTuple):
    """All ways in which up to k texts may fall into classes, and how one more class changes them.

    parts : ndarray of shape (r, k), the number of texts of each class, for the ways in which k texts may; 0 for none
    complete : the states of these
    n_states : the number of ways in which at most k texts may fall into classes; none drawn is the first
    one_class, singles : for c from 1 to k, the states before and after c texts are drawn: of one more class, or each of
        a class of its own
    """

    parts: np.ndarray
    complete: np.ndarray
    n_states: int
    one_class: list[tuple[np.ndarray, np.ndarray]]
    singles: list[tuple[np.ndarray, np.ndarray]]


def partitions(k: int) -> Partitions:
    """List the partitions of the integers up to k: 5 of 4, 42 of 10 and 627 of 20."""
    of_sum: list[list[tuple[int, ...]]] = [[()]]
    for total in range(1, k + 1):
        smaller = ((c, rest) for c in range(1, total + 1) for rest in of_sum[total - c])
        of_sum.append([(c, *rest) for c, rest in smaller if max(rest, default=c) <= c])
    state = {parts: i for i, parts in enumerate(parts for same_sum in of_sum for parts in same_sum)}

    def moves(added: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        before = [parts for same_sum in of_sum[: k + 1 - sum(added)] for parts in same_sum]
        after = [state[tuple(sorted((*parts, *added), reverse=True))] for parts in before]
        return np.array([state[parts] for parts in before]), np.array(after)

    return Partitions(
        np.array([[*parts, *[0] * (k - len(parts))] for parts in of_sum[k]]),
        np.array([state[parts] for parts in of_sum[k]]),
        len(state),
        [moves((c,)) for c in range(1, k + 1)],
        [moves((1,) * c) for c in range(1, k + 1)],
    )


def expected_of_classes(groups: Groups, k: int, orders: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the expected Vendi scores of the classes of k texts, exactly: from the chance of each partition of k.

    A subset takes c of the h texts of a class in C(h, c) ways, so classes are taken in one after the other, and those
    of one text together.

    Parameters
    ----------
    groups : the classes, at least k texts in each set

    Returns
    -------
    scores : ndarray of shape (m, len(orders))
    products : ndarray of shape (m,), of mean quality and the score at the first order
    """
    known = partitions(k)
    values = np.clip(vendi_from_shares(known.parts / k, orders), 1.0, (known.parts > 0).sum(axis=1)[:, None])
    n_sets = int(groups.owners[-1]) + 1 if len(groups.owners) else 0
    # First the texts that are alone in their class, then the other classes.
    alone = groups.counts == 1
    n_alone = np.bincount(groups.owners[alone], minlength=n_sets)
    total = np.bincount(groups.owners[alone], weights=groups.qualities[alone], minlength=n_sets)
    owners = np.concatenate([np.arange(n_sets), groups.owners[~alone]])
    order = np.argsort(owners, kind="stable")
    counts = np.concatenate([n_alone, groups.counts[~alone]])[order]
    qualities = np.concatenate([total / np.maximum(n_alone, 1), groups.qualities[~alone]])[order]

    scores, products = np.empty((n_sets, len(orders))), np.empty(n_sets)
    for members, rows in batches_by_size(np.bincount(owners), _ENTRIES // known.n_states):
        ways = np.zeros((known.n_states, len(rows)))
        ways[0] = 1.0
        # The sum of the qualities of the texts drawn, over all ways.
        sums = np.zeros_like(ways)
        for step in range(rows.shape[1]):
            held, quality = counts[rows[:, step]], qualities[rows[:, step]]
            choices = np.ones(len(rows))
            ways_before, sums_before = ways.copy(), sums.copy()
            for c, (before, after) in enumerate(known.one_class if step else known.singles, 1):
                choices *= np.maximum(held - c + 1, 0) / c
                if not choices.any():
                    break
                ways[after] += choices * ways_before[before]
                sums[after] += choices * (sums_before[before] + c * quality * ways_before[before])
        subsets, weighted = ways[known.complete], sums[known.complete]
        n_subsets = subsets.sum(axis=0)
        scores[members] = subsets.T @ values / n_subsets[:, None]
        products[members] = weighted.T @ values[:, 0] / n_subsets / k
    return scores, products
