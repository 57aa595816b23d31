"""The script that compares metrics with people's ratings of sets."""

import numpy as np
import pandas

from scripts.results import people_sets


def test_contexts_are_drawn_together(rng):
    contexts = pandas.Series(["a", "b", "a", "c", "c", "c"])
    first, *drawn = people_sets.resamples(contexts)
    assert first.tolist() == list(range(6))
    for places in drawn[:50]:
        counts = np.bincount(places, minlength=6)
        assert counts[0] == counts[2]
        assert counts[3] == counts[4] == counts[5]
        assert counts[0] + counts[1] + counts[3] == 3
