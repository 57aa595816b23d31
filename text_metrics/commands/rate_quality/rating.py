"""From log-probabilities to ratings in [0, 1], corrected for length."""

import numpy as np

from text_metrics.commands.rate_quality.likelihood import Likelihood


class Reference:
    """What good texts of some kind look like to a language model.

    A text of n tokens has a log-probability of about intercept + slope · n, with a deviation that grows as √n. The
    rating of a text is the share of reference texts that deviate further downwards.

    Raises
    ------
    ValueError
        If there are fewer than 20 texts, or all are of one length.
    """

    def __init__(self, likelihood: Likelihood) -> None:
        if len(likelihood.total) < 20 or len(np.unique(likelihood.tokens)) < 2:
            raise ValueError(
                f"the reference must hold at least 20 texts, of different lengths. Got {len(likelihood.total)} of "
                f"{len(np.unique(likelihood.tokens))} different lengths in tokens."
            )
        # Weighted least squares, by the deviation's variance.
        self.slope, self.intercept = np.polyfit(
            likelihood.tokens, likelihood.total, 1, w=1 / np.sqrt(np.maximum(likelihood.tokens, 1))
        )
        self._deviations = np.sort(self._deviation(likelihood))

    def rate(self, likelihood: Likelihood) -> np.ndarray:
        """Rate texts; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
        below = np.searchsorted(self._deviations, self._deviation(likelihood), "left")
        ratings = below / len(self._deviations)
        return np.where(likelihood.tokens > 0, ratings, 0.0)

    def _deviation(self, likelihood: Likelihood) -> np.ndarray:
        expected = self.intercept + self.slope * likelihood.tokens
        return (likelihood.total - expected) / np.sqrt(np.maximum(likelihood.tokens, 1))


def per_token(likelihood: Likelihood) -> np.ndarray:
    """Geometric mean of the tokens' probabilities; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
    return np.where(likelihood.tokens > 0, np.exp(likelihood.total / np.maximum(likelihood.tokens, 1)), 0.0)
