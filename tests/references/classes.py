"""Classes, contributions and rarefaction written out as plain loops: what the fast core is compared with."""

import itertools

import numpy as np

from tests.references import diversity


def complete_classes(n, same, content):
    """Each text, in order of content, joins the first class whose members are all the same as it."""
    classes = []
    for i in sorted(range(n), key=lambda i: content[i]):
        for members in classes:
            if all(same(i, j) for j in members):
                members.append(i)
                break
        else:
            classes.append([i])
    return labels_of(n, classes)


def greedy_classes(n, same):
    """Each text, in the order given, joins the first class whose first member is the same as it.

    NoveltyBench's loop partitions so (src/partition.py). Its code of 2025 writes the largest of these labels as the
    number of classes of a prompt, which is one too few.
    """
    classes = []
    for i in range(n):
        for members in classes:
            if same(i, members[0]):
                members.append(i)
                break
        else:
            classes.append([i])
    return labels_of(n, classes)


def last_match_classes(n, same):
    """As jlko/semantic_uncertainty groups (Farquhar et al. 2024).

    A text without a class founds one, and claims all that match. A text that matches two founders goes to the later
    one, where `greedy_classes` leaves it with the earlier.
    """
    labels = [None] * n
    for i in range(n):
        if labels[i] is None:
            for j in range(i, n):
                if i == j or same(i, j):
                    labels[j] = i
    return first_appearance(labels)


def labels_of(n, classes):
    labels = [None] * n
    for number, members in enumerate(classes):
        for i in members:
            labels[i] = number
    return first_appearance(labels)


def first_appearance(labels):
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    return [numbers[label] for label in labels]


def vendi(labels, q, weights=None):
    """Vendi score from the full kernel of ones and zeros."""
    n = len(labels)
    p = np.full(n, 1 / n) if weights is None else np.asarray(weights)
    kernel = np.equal.outer(labels, labels).astype(float)
    eigenvalues = np.linalg.eigvalsh(kernel * np.sqrt(np.outer(p, p)))
    return diversity.vendi_of_eigenvalues(eigenvalues[eigenvalues > 1e-12], q)


def utility(labels, quality, patience):
    """NoveltyBench's utility of a list of generations, with quality in [0, 1]."""
    total = 0.0
    for i, label in enumerate(labels):
        if label not in labels[:i]:
            total += patience**i * quality[i]
    if patience == 1:
        return total / len(labels)
    return (1 - patience) / (1 - patience ** len(labels)) * total


def chamfer(vectors, factors=None):
    distances = 1 - diversity.cosines(vectors)
    np.fill_diagonal(distances, np.inf)
    factors = np.ones(len(vectors)) if factors is None else factors
    return float((factors * distances.min(axis=1)).mean())


def expected(score, n, k):
    """Average a score of places over all subsets of k of n."""
    return np.mean([score(list(places)) for places in itertools.combinations(range(n), k)], axis=0)
