"""The sizes of what is computed at a time bound the memory and change no number."""

import sys

import numpy as np
import pytest

from tests.conftest import SETS, approx

# One set that is large beside the limits, and many small ones.
LARGE_AND_SMALL = [[f"{i % 50} dogs bark" + " and run" * (i % 7) for i in range(70)], *SETS]
WEIGHTS = [np.arange(1, n + 1) / (n * (n + 1) / 2) for n in map(len, LARGE_AND_SMALL)]
CALLS = [
    ("vendi_embed", {"q": [0, 1, 2], "details": True}),
    ("vendi_embed", {"weights": WEIGHTS}),
    ("vendi_embed", {"kernel": "ngram"}),
    pytest.param("chamfer_diversity", {"details": True}, marks=pytest.mark.discrete),
    pytest.param("semantic_entropy", {"same": 0.5, "details": True}, marks=pytest.mark.discrete),
    ("semantic_entropy", {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}),
    ("self_bleu", {"repetition": True}),
]


@pytest.mark.parametrize(("name", "settings"), CALLS)
@pytest.mark.parametrize("tiny", [1, 3])
def test_tiny_blocks_change_nothing(load, name, settings, tiny, tmp_path, monkeypatch):
    cached = {} if name == "self_bleu" else {"cache_dir": tmp_path}
    expected = load(name).compute(predictions=LARGE_AND_SMALL, **settings)
    limits = sys.modules[type(load(name)).__module__.rpartition(".")[0] + ".core"].LIMITS
    for field in vars(limits):
        monkeypatch.setattr(limits, field, tiny)
    assert load(name).compute(predictions=LARGE_AND_SMALL, **settings, **cached) == approx(expected)
