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

    def __init__(self, found: Likelihood) -> None:
        if len(found.total) < 20 or len(np.unique(found.tokens)) < 2:
            raise ValueError(
                f"the reference must hold at least 20 texts, of different lengths. Got {len(found.total)} of "
                f"{len(np.unique(found.tokens))} different lengths in tokens."
            )
        # Weighted least squares, by the deviation's variance.
        self.slope, self.intercept = np.polyfit(
            found.tokens, found.total, 1, w=1 / np.sqrt(np.maximum(found.tokens, 1))
        )
        self._deviations = np.sort(self._deviation(found))

    def rate(self, found: Likelihood) -> np.ndarray:
        """Rate texts; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
        below = np.searchsorted(self._deviations, self._deviation(found), "left")
        ratings = below / len(self._deviations)
        return np.where(found.tokens > 0, ratings, 0.0)

    def _deviation(self, found: Likelihood) -> np.ndarray:
        expected = self.intercept + self.slope * found.tokens
        return (found.total - expected) / np.sqrt(np.maximum(found.tokens, 1))


def per_token(found: Likelihood) -> np.ndarray:
    """Geometric mean of the tokens' probabilities; ndarray of shape (n,), in [0, 1]; 0 for a text without tokens."""
    return np.where(found.tokens > 0, np.exp(found.total / np.maximum(found.tokens, 1)), 0.0)
