"""Slow and plain counterparts of probeval's maths, written from the definitions; the expected values of its tests."""

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel


def partitions(tokens):
    """Every way to cut a list into runs: what `more_itertools.partitions` gives, and the ProtoQA evaluator tries."""
    for size in range(len(tokens)):
        for cuts in combinations(range(1, len(tokens)), size):
            bounds = [0, *cuts, len(tokens)]
            yield [" ".join(tokens[i:j]) for i, j in pairwise(bounds)]


def wordnet_score(a, b, tokenize, wordnet):
    """Best assignment of parts over all pairs of partitions, divided by the larger number of parts."""
    best = 0.0
    for left in partitions(tokenize(a)):
        for right in partitions(tokenize(b)):
            matches = [parts_match(x, y, wordnet) for x in left for y in right]
            same = np.reshape(np.array(matches, dtype=float), (len(left), len(right)))
            rows, columns = linear_sum_assignment(-same)
            best = max(best, same[rows, columns].sum() / max(same.shape))
    return best


def parts_match(x, y, wordnet):
    synsets = [wordnet.synsets(part.replace(" ", "_")) for part in (x, y)]
    return x == y or not synsets[0].isdisjoint(synsets[1])


def gp_scores(answers, gold, counts):
    """Fit one Gaussian-process regression for each cluster, a row for each time that a gold answer was given."""
    rows = [(i, j) for i, j in np.argwhere(counts > 0) for _ in range(int(counts[i, j]))]
    points = gold[[i for i, _ in rows]]
    scores = []
    for cluster in range(counts.shape[1]):
        targets = np.array([float(j == cluster) for _, j in rows])
        # The default kernel, but with bounds: scikit-learn fits one without to the data.
        kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
        scores.append(GaussianProcessRegressor(kernel, alpha=1e-7).fit(points, targets).predict(answers))
    return np.array(scores).T


def kl(gold, model, clusters, smoothing=1.0):
    """KL(gold || model) from lists of labels, `wrong` among the clusters."""
    gold = Counter(gold)
    model = Counter(model)
    p = [gold[label] + smoothing for label in clusters]
    q = [model[label] + smoothing for label in clusters]
    total = 0.0
    for x, y in zip(p, q, strict=True):
        if x:
            total += x / sum(p) * np.log((x / sum(p)) / (y / sum(q)))
    return total
