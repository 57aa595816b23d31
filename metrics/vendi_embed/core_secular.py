"""Eigenvalues of a symmetric matrix without one of its rows and columns, for many of them, from its own eigenvalues.

They are the roots of a secular equation, one between each two neighbouring eigenvalues of the matrix. All rows share
these intervals: what far eigenvalues add to the equation is a polynomial in each, whose coefficients are one product of
matrices, so that all rows together take about the time of a few decompositions, not of one each.
"""

import math

import torch

# Beyond this many half widths of an interval, the terms of an eigenvalue are a polynomial in it: 2.5 half widths and 16
# coefficients leave an error of 7^-16.
_REACH, _TERMS = 2.5, 16
# Steps double the number of digits; the bound is that of bisection.
_MAX_STEPS = 100
# A step this small beside the distances to both ends leaves an error of its square.
_LAST_STEP = 1e-7
# Rows taken together, and entries of an array.
_ROWS, _ENTRIES = 1024, 2**20


def eigenvalues_without(eigenvalues: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Find the eigenvalues that a symmetric matrix has without each of some of its rows and columns.

    With the eigenvectors U, those without row i are the roots of sum(U[i, k]² / (eigenvalues[k] - x)) (Golub 1973,
    "Some modified matrix eigenvalue problems", section 5). Each is found by the rational interpolation of Bunch,
    Nielsen and Sorensen (1978), within its interval.

    Parameters
    ----------
    eigenvalues : tensor of shape (m,), ascending, float64. Several equal ones may be given as one.
    weights : tensor of shape (c, m), >= 0: for each of c rows of the matrix, the squares of its entries in the
        eigenvectors; of several with equal eigenvalues, their sum

    Returns
    -------
    tensor of shape (c, m - 1), ascending: column j is between eigenvalues j and j + 1
    """
    return torch.cat([_roots(eigenvalues, weights[start : start + _ROWS]) for start in range(0, len(weights), _ROWS)])


def _roots(poles: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    low, high = poles[:-1], poles[1:]
    roots = ((low + high) / 2).repeat(len(weights), 1)
    # Between eigenvalues that differ by rounding, any number is as good.
    eps = torch.finfo(poles.dtype).eps
    intervals = torch.nonzero(high - low > eps * torch.maximum(poles.abs().amax() / 4, 4 * high.abs())).squeeze(1)
    reach = _REACH * (high - low)[intervals] / 2
    first = torch.searchsorted(poles, low[intervals] - reach)
    last = torch.searchsorted(poles, high[intervals] + reach, right=True)
    order = torch.argsort(last - first)
    n_near = (last - first)[order].tolist()
    while n_near:
        # Intervals with about equally many near eigenvalues, as many as fit.
        n = 1
        while n < len(n_near) and (n + 1) * max(len(weights) * max(n_near[n], _TERMS), len(poles) * _TERMS) < _ENTRIES:
            n += 1
        part, order, n_near = order[:n], order[n:], n_near[n:]
        roots[:, intervals[part]] = _solve(poles, weights, intervals[part], first[part], last[part])
    return roots


def _solve(
    poles: torch.Tensor, weights: torch.Tensor, intervals: torch.Tensor, first: torch.Tensor, last: torch.Tensor
) -> torch.Tensor:
    """Find the roots (c, b) in some intervals (b,), of which the eigenvalues from `first` to before `last` are near."""
    low, high = poles[intervals], poles[intervals + 1]
    center, half = (low + high) / 2, (high - low) / 2
    places = torch.arange(len(poles), device=poles.device)
    is_far = (places[:, None] < first) | (places[:, None] >= last)
    angles = (torch.arange(_TERMS, dtype=poles.dtype, device=poles.device) + 0.5) * (math.pi / _TERMS)
    # The coefficients of Chebyshev polynomials from the values at their nodes.
    transform = torch.cos(angles[:, None] * torch.arange(_TERMS, device=poles.device)) * (2 / _TERMS)
    transform[:, 0] /= 2
    nodes = center[:, None] + half[:, None] * torch.cos(angles)
    values = torch.where(is_far[:, :, None], 1 / (poles[:, None, None] - nodes), 0.0) @ transform
    far = (weights @ values.flatten(1)).reshape(-1, _TERMS).T.contiguous()

    near = first[:, None] + torch.arange(int((last - first).max()), device=poles.device)
    is_near, is_below = near < last[:, None], near <= intervals[:, None]
    near = near.clamp(max=len(poles) - 1)
    near_weights = torch.where(is_near, weights[:, near], 0.0).flatten(0, 1)
    rows = torch.arange(len(near_weights), device=poles.device)
    columns = rows % len(intervals)
    near_poles = poles[near]
    bracket = [low[columns], high[columns]]
    tolerance = torch.finfo(poles.dtype).eps * float(poles.abs().amax()) / 1024
    roots = center[columns]
    x = roots.clone()
    for _ in range(_MAX_STEPS):
        value, slope = _polynomial(far, (x - center[columns]) / half[columns])
        distances = near_poles[columns] - x[:, None]
        terms = near_weights / distances
        slopes = terms / distances
        below = (slopes * is_below[columns]).sum(1)
        sums = terms.sum(1) + value, below, slopes.sum(1) - below + slope / half[columns]
        x, is_last = _step(x, sums, low[columns], high[columns], bracket, tolerance)
        roots[rows] = x
        left = torch.nonzero(~is_last).squeeze(1)
        if not len(left):
            break
        rows, columns, x, near_weights, far = rows[left], columns[left], x[left], near_weights[left], far[:, left]
        bracket = [side[left] for side in bracket]
    return roots.reshape(len(weights), len(intervals))


def _polynomial(coefficients: torch.Tensor, t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum Chebyshev polynomials (p, e) at t (e,) in [-1, 1], and their slopes, by Clenshaw's recurrence."""
    value = before = slope = slope_before = torch.zeros_like(t)
    for coefficient in coefficients[1:].flip(0):
        slope, slope_before = 2 * (value + t * slope) - slope_before, slope
        value, before = coefficient + 2 * t * value - before, value
    return coefficients[0] + t * value - before, value + t * slope - slope_before


def _step(
    x: torch.Tensor,
    sums: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    low: torch.Tensor,
    high: torch.Tensor,
    bracket: list[torch.Tensor],
    tolerance: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Take a step from x (e,) towards the root between two poles; returns where it leads, and whether it is the last.

    Parameters
    ----------
    sums : at x, the sum of all terms; the slope of those of the poles up to `low`; and that of all others: (e,) each
    bracket : bounds of the roots (e,), which are improved
    """
    total, below, above = sums
    to_low, to_high = low - x, high - x
    bracket[0] = torch.where(total < 0, x, bracket[0])
    bracket[1] = torch.where(total < 0, bracket[1], x)
    # Each side is taken for a constant and one pole, with the value and the slope of both together at x.
    constant = total - to_low * below - to_high * above
    linear = constant * (to_low + to_high) + to_low**2 * below + to_high**2 * above
    product = to_low * to_high * total
    root = (linear**2 - 4 * constant * product).clamp(min=0).sqrt()
    move = torch.where(linear <= 0, (linear - root) / (2 * constant), 2 * product / (linear + root))
    target = x + move
    is_last = (move.abs() <= _LAST_STEP * torch.minimum(-to_low, to_high)) | (move.abs() <= tolerance + 1e-15 * x.abs())
    # Without weight at the poles on one side, the root is that side's end.
    at_low, at_high = (target <= low) & (bracket[0] == low), (target >= high) & (bracket[1] == high)
    is_outside = ~((target > bracket[0]) & (target < bracket[1]) | is_last)
    target = torch.where(is_outside, (bracket[0] + bracket[1]) / 2, target)
    target = torch.where(at_low, low, torch.where(at_high, high, target))
    return target, is_last | at_low | at_high
