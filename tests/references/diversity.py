"""The metrics written out slowly and plainly, as the papers define them: what the fast core is compared with."""

import gzip
import math
from collections import Counter

import numpy as np


def ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def clipped_matches(hypothesis, references, n):
    ours = ngrams(hypothesis, n)
    theirs = Counter()
    for reference in references:
        theirs |= ngrams(reference, n)
    return sum((ours & theirs).values()), max(len(hypothesis) - n + 1, 0)


def closest_length(hypothesis, references):
    return min((abs(len(reference) - len(hypothesis)), len(reference)) for reference in references)[1]


def nlg_eval_self_bleu(groups, max_order):
    """Corpus BLEU of each text against the others of its set, pooled over all the sets, with nlg-eval's constants."""
    matches = [0] * max_order
    totals = [0] * max_order
    hypothesis_length = reference_length = 0
    for tokens in groups:
        for i, hypothesis in enumerate(tokens):
            references = tokens[:i] + tokens[i + 1 :]
            hypothesis_length += len(hypothesis)
            reference_length += closest_length(hypothesis, references)
            for n in range(1, max_order + 1):
                n_matches, total = clipped_matches(hypothesis, references, n)
                matches[n - 1] += n_matches
                totals[n - 1] += total
    scores = []
    product = 1.0
    for n in range(max_order):
        product *= (matches[n] + 1e-15) / (totals[n] + 1e-9)
        scores.append(product ** (1 / (n + 1)))
    ratio = (hypothesis_length + 1e-15) / (reference_length + 1e-9)
    return [score * math.exp(1 - 1 / ratio) if ratio < 1 else score for score in scores]


def pooled_ngrams(tokens, n):
    return sum((ngrams(text, n) for text in tokens), Counter())


def distinct(tokens, n):
    counts = pooled_ngrams(tokens, n)
    return len(counts) / sum(counts.values()) if counts else 0.0


def entropy(tokens, n):
    counts = pooled_ngrams(tokens, n)
    total = sum(counts.values())
    return -sum(c / total * math.log(c / total) for c in counts.values())


def cosines(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def vendi(vectors, q):
    """Vendi score from the full kernel; eigenvalues below n * eps * the largest count as zero."""
    n = len(vectors)
    eigenvalues = np.linalg.eigvalsh(cosines(vectors) / n)
    eigenvalues = eigenvalues[eigenvalues > n * np.finfo(float).eps * eigenvalues.max()]
    if q == 0:
        return float(len(eigenvalues))
    if q == 1:
        return math.exp(-(eigenvalues * np.log(eigenvalues)).sum())
    if q == math.inf:
        return 1 / eigenvalues.max()
    return (eigenvalues**q).sum() ** (1 / (1 - q))


def nearest_distances(vectors):
    distances = 1 - cosines(vectors)
    np.fill_diagonal(distances, np.inf)
    return distances.min(axis=1)


def mean_pairwise_distance(vectors):
    n = len(vectors)
    return float((1 - cosines(vectors))[~np.eye(n, dtype=bool)].mean())


def self_repetition(tokens, n):
    """Mean over texts of the log of 1 + how many other texts hold each of its different n-grams, summed."""
    held = [set(ngrams(text, n)) for text in tokens]
    sums = []
    for i, grams in enumerate(held):
        sums.append(sum(gram in other for gram in grams for j, other in enumerate(held) if j != i))
    return sum(math.log(1 + total) for total in sums) / len(sums)


def compression_ratio(texts):
    data = " ".join(texts).encode()
    return len(data) / len(gzip.compress(data))
