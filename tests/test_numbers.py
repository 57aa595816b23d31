"""Ties: values that differ by rounding are equal, and the first of equals wins."""

import numpy as np
import pytest

from text_metrics.metrics._core.core_numbers import TIE, first_maximum, tied_ranks


@pytest.mark.parametrize("noise", [0, TIE / 10])
def test_first_of_equals_wins_whatever_the_rounding(rng, noise):
    values = rng.integers(0, 4, (300, 9)).astype(float)
    noisy = values + rng.uniform(-noise, noise, values.shape)
    assert first_maximum(noisy).tolist() == values.argmax(axis=1).tolist()
    assert first_maximum(-noisy).tolist() == values.argmin(axis=1).tolist()
    for row, exact in zip(noisy, values, strict=True):
        assert tied_ranks(row).tolist() == np.unique(exact, return_inverse=True)[1].tolist()


def test_what_differs_by_more_is_not_tied():
    values = np.array([0.5, 0.5 + 2 * TIE, 0.5 - 2 * TIE])
    assert (first_maximum(values), first_maximum(-values)) == (1, 2)
    assert tied_ranks(values).tolist() == [1, 2, 0]


def test_infinite_values_and_single_ones():
    assert first_maximum([-np.inf, -np.inf]) == first_maximum([3.0]) == 0
    assert first_maximum([[-np.inf, 2.0], [np.inf, 0.0]]).tolist() == [1, 0]
    assert tied_ranks([]).tolist() == []
    assert tied_ranks([3.0]).tolist() == [0]
