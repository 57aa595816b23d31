"""Coverage of intervals of a difference of unpaired means, with and without the correction for skewness.

python -m scripts.results.unpaired
"""

import numpy as np

from text_metrics.core_api import mean_estimate
from text_metrics.statistics import contrast

N_SAMPLES = 2000
SIZES = ((10, 10), (10, 40), (50, 50), (200, 20))


def main() -> None:
    """Print the coverage of 95 % intervals of lognormal minus normal means."""
    rng = np.random.default_rng(0)
    truth = np.exp(0.5)
    for n_first, n_second in SIZES:
        n_covered = {"Hall": 0, "Welch": 0}
        for _ in range(N_SAMPLES):
            first = mean_estimate(rng.lognormal(size=n_first))
            second = mean_estimate(rng.normal(size=n_second))
            difference = contrast([first, second], [1, -1])
            for name, estimate in (("Hall", difference), ("Welch", difference._replace(skewness=0.0))):
                low, high = estimate.interval(0.95) or (np.inf, -np.inf)
                n_covered[name] += low <= truth <= high
        shares = {name: 100 * n / N_SAMPLES for name, n in n_covered.items()}
        print(n_first, n_second, shares)


if __name__ == "__main__":
    main()
