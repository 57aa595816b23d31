"""The partition of diversity by groups, written out slowly: density matrices in the space of features."""

import itertools

import numpy as np


def entropy(density):
    eigenvalues = np.linalg.eigvalsh(density)
    eigenvalues = eigenvalues[eigenvalues > 1e-12]
    return -float((eigenvalues * np.log(eigenvalues)).sum())


def holevo(kernel, labels, weights):
    """Return S(rho), chi and H(w) of the texts of one set."""
    values, vectors = np.linalg.eigh(kernel)
    features = vectors * np.sqrt(np.maximum(values, 0))
    whole, within, limit = np.zeros_like(kernel), 0.0, 0.0
    for label in set(labels):
        members = [i for i, other in enumerate(labels) if other == label]
        share = sum(weights[i] for i in members)
        density = sum(weights[i] / share * np.outer(features[i], features[i]) for i in members)
        whole += share * density
        within += share * entropy(density)
        limit -= share * np.log(share)
    return entropy(whole), entropy(whole) - within, limit


def all_permutations(kernel, labels, weights):
    """Return chi for each way to give the labels to the texts, each equally probable.

    A group keeps its number of texts and its share; a text keeps its weight relative to the mean of its group.
    """
    labels = list(labels)
    shares = {label: sum(w for w, other in zip(weights, labels, strict=True) if other == label) for label in labels}
    relative = [w * labels.count(label) / shares[label] for w, label in zip(weights, labels, strict=True)]
    values = []
    for permuted in set(itertools.permutations(labels)):
        sums = {
            label: sum(r for r, other in zip(relative, permuted, strict=True) if other == label) for label in labels
        }
        new = [r * shares[label] / sums[label] for r, label in zip(relative, permuted, strict=True)]
        values.append(holevo(kernel, permuted, new)[1])
    return np.array(values)
