"""How many groups of texts there really are, such as the systems that wrote them: alpha, beta and gamma diversity.

The texts of a set have a density matrix rho, their weighted kernel, whose von Neumann entropy S(rho) is the log of the
Vendi score at order 1. It is the mixture of the density matrices rho_g of the groups, weighted by their shares w_g of
the probability. Holevo's quantity chi = S(rho) - sum of w_g S(rho_g) is 0 if all rho_g are equal and H(w), the entropy
of the shares, if no text of a group has anything in common with one of another.

References
----------
Holevo, A. S. (1973). Bounds for the quantity of information transmitted by a quantum communication channel. Problems
of Information Transmission 9(3), 177-183.
Leinster, T., & Cobbold, C. A. (2012). Measuring diversity: the importance of species similarity. Ecology 93, 477-489.
Reeve, R., et al. (2014). How to partition diversity. arXiv 1404.6520.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .core_classes import parse_classes
from .core_inputs import TextSets, batches_by_size, gather, sum_by_set
from .core_results import ScoreSummary
from .core_similarity import Similarities, source_keys
from .vendi_embed_kernels import ClassKernel, Kernel
from .vendi_embed_rarefied import group_texts
from .vendi_embed_settings import VendiSettings
from .vendi_embed_weighting import Weighting

# Texts of subsets scored at a time, and of permuted sets held at a time, to bound the memory.
_TEXTS_SCORED = 2**13
_TEXTS_HELD = 2**18
# Values of chi that differ by less differ by rounding, of the embeddings too.
_ROUNDING = 1e-6
# Digits of weights that a seed is made from.
_DIGITS = 9


class Grouped(NamedTuple):
    """The groups of the n texts of m sets.

    labels : ndarray of shape (n,), int64 >= 0: equal for texts of one group, within a set
    contents : ndarray of shape (n,), uint64, of the texts, as by `content_keys`
    weights : ndarray of shape (n,), the probability of each text within its set; uniform if None
    """

    labels: np.ndarray
    contents: np.ndarray
    weights: np.ndarray | None = None


class Partition(NamedTuple):
    """The diversity of m sets, within and between their groups. Entropies are in nats.

    entropies : ndarray of shape (m,), S(rho) of all texts of a set
    chi : ndarray of shape (m,), Holevo's quantity of its groups, in [0, H(w)]
    expected : ndarray of shape (m,), the mean of chi under permuted labels
    limits : ndarray of shape (m,), H(w), the entropy of the shares of the groups; 0 for a single group
    permuted : ndarray of shape (permutations,), the mean of chi over sets under each permutation of the labels
    """

    entropies: np.ndarray
    chi: np.ndarray
    expected: np.ndarray
    limits: np.ndarray
    permuted: np.ndarray

    @property
    def within(self) -> np.ndarray:
        """The effective number of texts within a group of each set, alpha: (m,), at least 1."""
        return np.exp(self.entropies - self.chi)

    @property
    def pooled(self) -> np.ndarray:
        """The effective number of texts of each set, gamma, which is its Vendi score at order 1: (m,)."""
        return np.exp(self.entropies)

    @property
    def between(self) -> np.ndarray:
        """The effective number of groups of each set, beta: (m,), in [1, exp(H(w))]."""
        return np.exp(self.chi)

    @property
    def between_expected(self) -> np.ndarray:
        """What `between` is by chance: (m,), the geometric mean over permutations."""
        return np.exp(self.expected)

    @property
    def p_value(self) -> float:
        """The p-value of the permutation test: the chance of a mean of chi as large if labels do not matter."""
        larger = int(np.count_nonzero(self.permuted >= self.chi.mean() - _ROUNDING))
        return (1 + larger) / (1 + len(self.permuted))

    @property
    def share(self) -> float | None:
        """How much of what is possible beyond chance the groups differ, at most 1; None if nothing is possible."""
        possible = float(self.limits.mean() - self.expected.mean())
        return float(self.chi.mean() - self.expected.mean()) / possible if possible > _ROUNDING else None


def score_groups(
    kernel: Kernel, sets: TextSets, weighting: Weighting, similarities: Similarities | None, settings: VendiSettings
) -> Partition:
    """Partition the diversity of the sets of a call with `groups`.

    Raises a TypeError or ValueError if `groups` is not a label for each text, a string or an integer, or no set has two
    groups.
    """
    labels = parse_classes(settings.groups, sets, "groups")
    if labels.counts.max() < 2:
        raise ValueError("groups must have two different labels in at least one set: there is nothing to compare.")
    contents = source_keys(sets, similarities, settings.embeddings, weighting.given)
    return partition(kernel, Grouped(labels.of_text, contents, weighting.given), settings.permutations)


def group_results(parts: Partition, summary: ScoreSummary) -> dict[str, Any]:
    """Name the results of a call with `groups`; `summary` is of scores that are at least 1."""
    return {
        **summary.of("within", parts.within, "within_"),
        **summary.of("pooled", parts.pooled, "pooled_"),
        **summary.of("between", parts.between, "between_"),
        "between_expected": float(parts.between_expected.mean()),
        "between_expected_scores": parts.between_expected.tolist(),
        "between_p": parts.p_value,
        "between_share": parts.share,
    }


def group_settings(settings: VendiSettings) -> dict[str, object]:
    """Return the entries of a signature; none without groups."""
    if settings.groups is None:
        return {}
    return {"groups": "given", "permutations": settings.permutations, "draw_seed": "content"}


def partition(kernel: Kernel, grouped: Grouped, permutations: int = 200, rows: np.ndarray | None = None) -> Partition:
    """Partition the diversity of sets into that within and that between groups, with a permutation test.

    A permutation draws which texts of a set are in which group. Each group keeps its number of texts and its share of
    the probability, and each text its probability relative to the mean of its group. The draws follow from the contents
    and the probabilities of a set, whatever their order; sets that are equal in both are permuted independently.

    Parameters
    ----------
    permutations : of the labels within each set, at least 1
    rows : ndarray of shape (k,), ascending, the texts that take part, such as those of two of several systems; all by
        default. The others are as if they were not there. Texts of probability 0 take no part.

    Returns
    -------
    of the m sets in which any text takes part
    """
    texts = _select(kernel, grouped, rows)
    kernel, is_uniform = kernel.of_sets(), grouped.weights is None
    entropies = _entropies(kernel, texts.rows, texts.sizes, None if is_uniform else texts.probabilities)
    limits = np.maximum(sum_by_set(-texts.group_shares * np.log(texts.group_shares), texts.n_groups), 0.0)

    def chi(which: np.ndarray, arranged: np.ndarray) -> np.ndarray:
        # Whatever the labels, uniform weights make the same whole.
        values = _holevo(kernel, texts, which, arranged, entropies if is_uniform else None)
        return np.clip(values, 0.0, limits[which])

    observed = chi(np.arange(len(entropies)), np.arange(len(texts.rows)))
    sums, permuted = np.zeros(len(entropies)), np.zeros(permutations)
    seeds, firsts = _seeds(texts)
    for batch in gather(_draws(texts, seeds, permutations), lambda draws: draws[2].size, _TEXTS_HELD):
        which, numbers, arranged = (np.concatenate(column) for column in zip(*batch, strict=True))
        drawn = chi(which, arranged)
        sums += np.bincount(which, drawn, minlength=len(sums))
        permuted += np.bincount(numbers, drawn, minlength=permutations)
    # Equal sets have equal expectations, in any company.
    return Partition(entropies, observed, sums[firsts] / permutations, limits, permuted / len(entropies))


class _Texts(NamedTuple):
    """The k texts that take part, of m sets and c groups: set after set, and in a set group after group.

    rows : ndarray of shape (k,), their indices
    sizes, n_groups : ndarrays of shape (m,), the number of texts and of groups of each set
    group_sizes, group_shares : ndarrays of shape (c,), the number of texts and the probability of each group
    relative : ndarray of shape (k,), the probability of each text over the mean of its group
    contents : ndarray of shape (k,), their contents
    canonical : ndarray of shape (k,), the positions of the texts of each set in an order that follows from its content
    multiplicities : ndarray of shape (k,), how many texts of its set can take the place of each, at these positions
    """

    rows: np.ndarray
    sizes: np.ndarray
    n_groups: np.ndarray
    group_sizes: np.ndarray
    group_shares: np.ndarray
    relative: np.ndarray
    contents: np.ndarray
    canonical: np.ndarray
    multiplicities: np.ndarray

    @property
    def probabilities(self) -> np.ndarray:
        """The probability of each text within its set: (k,)."""
        return self.relative * np.repeat(self.group_shares / self.group_sizes, self.group_sizes)


def _select(kernel: Kernel, grouped: Grouped, rows: np.ndarray | None) -> _Texts:
    """Arrange the texts that take part by set and group; groups of a set are in order of size and share."""
    rows = np.arange(len(grouped.labels)) if rows is None else rows
    if grouped.weights is not None:
        rows = rows[grouped.weights[rows] > 0]
    owners = np.unique(np.repeat(np.arange(len(kernel.sizes)), kernel.sizes)[rows], return_inverse=True)[1]
    sizes = np.bincount(owners)
    shares = 1 / sizes[owners] if grouped.weights is None else grouped.weights[rows]
    shares = shares / np.bincount(owners, shares)[owners]

    labels = grouped.labels[rows]
    _, first, group_of = np.unique(owners * (labels.max() + 1) + labels, return_index=True, return_inverse=True)
    group_sizes, group_shares = np.bincount(group_of), np.bincount(group_of, shares)
    relative = shares * (group_sizes / group_shares)[group_of]
    in_order = np.lexsort((np.round(group_shares, _DIGITS), group_sizes, owners[first]))
    arranged = np.argsort(np.argsort(in_order)[group_of], kind="stable")
    rows, relative = rows[arranged], relative[arranged]

    contents, weights = grouped.contents[rows], np.round(relative, _DIGITS)
    if isinstance(kernel, ClassKernel):
        # Classes of equal size and weights can take each other's place.
        alike = group_texts(kernel.of_text[rows], sizes, weights**2)
        ranks = np.argsort(np.lexsort((np.round(alike.qualities, _DIGITS), alike.counts)))[alike.of_text]
    else:
        alike = group_texts(contents, sizes)
        ranks = alike.of_text
    canonical = np.lexsort((weights, ranks, owners))
    return _Texts(
        rows,
        sizes,
        np.bincount(owners[first]),
        group_sizes[in_order],
        group_shares[in_order],
        relative,
        contents,
        canonical,
        alike.counts[alike.of_text[canonical]],
    )


def _holevo(
    kernel: Kernel, texts: _Texts, which: np.ndarray, arranged: np.ndarray, entropies: np.ndarray | None
) -> np.ndarray:
    """Compute chi of p arrangements of the texts of sets: (p,).

    Parameters
    ----------
    which : ndarray of shape (p,), the set of each
    arranged : the positions of the texts of each, group after group
    entropies : ndarray of shape (m,), of all texts of each set, if they do not depend on the arrangement
    """
    n_groups = texts.n_groups[which]
    groups = _spans(np.cumsum(texts.n_groups) - texts.n_groups, texts.n_groups, which)
    sizes, shares, rows = texts.group_sizes[groups], texts.group_shares[groups], texts.rows[arranged]
    if entropies is not None:
        return entropies[which] - sum_by_set(shares * _entropies(kernel, rows, sizes, None), n_groups)
    relative = texts.relative[arranged]
    weights = relative / np.repeat(sum_by_set(relative, sizes), sizes)
    pooled = _entropies(kernel, rows, texts.sizes[which], weights * np.repeat(shares, sizes))
    return pooled - sum_by_set(shares * _entropies(kernel, rows, sizes, weights), n_groups)


def _spans(starts: np.ndarray, counts: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Concatenate the ranges from `starts` of `counts` integers, for some of them."""
    lengths = counts[which]
    return np.repeat(starts[which] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def _entropies(kernel: Kernel, rows: np.ndarray, sizes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Compute the entropy of consecutive subsets of texts, each of one set, with these probabilities: (len(sizes),)."""
    scores = np.empty(len(sizes))
    for members, places in batches_by_size(sizes, _TEXTS_SCORED):
        part = None if weights is None else weights[places]
        scores[members] = kernel.score_subsets(rows[places], [1.0], part)[:, 0]
    return np.log(scores)


def _seeds(texts: _Texts) -> tuple[list[bytes], np.ndarray]:
    """Make a seed for each set from its contents and weights; of equal sets, each has a seed of its own.

    Returns the m seeds, and the first set that is equal to each: ndarray of shape (m,).
    """
    bounds = np.cumsum(texts.sizes)[:-1]
    weights = np.round(texts.relative[texts.canonical], _DIGITS)
    sizes, shares = texts.group_sizes.astype("<i8"), np.round(texts.group_shares, _DIGITS).astype("<f8")
    group_bounds = np.cumsum(texts.n_groups)[:-1]
    columns = [
        *(np.split(values, bounds) for values in (texts.multiplicities.astype("<i8"), weights.astype("<f8"))),
        *(np.split(values, group_bounds) for values in (sizes, shares)),
    ]
    seeds: list[bytes] = []
    equal: dict[bytes, list[int]] = {}
    firsts = np.empty(len(texts.sizes), dtype=np.int64)
    for i, (contents, *rest) in enumerate(zip(np.split(texts.contents, bounds), *columns, strict=True)):
        content = b"".join(array.tobytes() for array in (np.sort(contents).astype("<u8"), *rest))
        digest = hashlib.blake2b(content, digest_size=16).digest()
        same = equal.setdefault(digest, [])
        same.append(i)
        firsts[i] = same[0]
        seeds.append(digest + len(same).to_bytes(8, "little"))
    return seeds, firsts


def _draws(texts: _Texts, seeds: list[bytes], permutations: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Permute the texts of each set that has several groups.

    Yields
    ------
    which, numbers : ndarrays of shape (b,), the set and the number of each permutation
    arranged : ndarray of shape (b * size,), positions
    """
    for i, places in enumerate(np.split(texts.canonical, np.cumsum(texts.sizes)[:-1])):
        if texts.n_groups[i] == 1:
            continue
        rng = np.random.default_rng(int.from_bytes(seeds[i], "little"))
        step = max(1, _TEXTS_HELD // len(places))
        for start in range(0, permutations, step):
            numbers = np.arange(start, min(start + step, permutations))
            orders = rng.random((len(numbers), len(places))).argsort(axis=1)
            yield np.full(len(numbers), i), numbers, places[orders].ravel()
