"""The sizes of what is computed at a time bound the memory and change no number."""

import sys

import pytest

from tests.conftest import SETS

CALLS = [
    ("vendi_embed", {"q": [0, 1, 2], "details": True}),
    ("vendi_embed", {"kernel": "ngram"}),
    pytest.param("chamfer_diversity", {"details": True}, marks=pytest.mark.discrete),
    pytest.param("semantic_entropy", {"same": 0.5, "details": True}, marks=pytest.mark.discrete),
    ("semantic_entropy", {"same": lambda left, right: [a[0] == b[0] for a, b in zip(left, right, strict=True)]}),
    ("self_bleu", {"repetition": True}),
]


@pytest.mark.parametrize(("name", "settings"), CALLS)
@pytest.mark.parametrize("tiny", [1, 3])
def test_tiny_blocks_change_nothing(load, name, settings, tiny, tmp_path, monkeypatch):
    # One set that is large beside the limits, and many small ones.
    sets = [[f"{i % 50} dogs bark" + " and run" * (i % 7) for i in range(70)], *SETS]
    cached = {} if name == "self_bleu" else {"cache_dir": tmp_path}
    expected = load(name).compute(predictions=sets, **settings)
    limits = sys.modules[type(load(name)).__module__.rpartition(".")[0] + ".core"].LIMITS
    for field in vars(limits):
        monkeypatch.setattr(limits, field, tiny)
    result = load(name).compute(predictions=sets, **settings, **cached)
    assert result.pop("signature") == expected.pop("signature")
    check(result, expected)


def check(value, expected):
    """Compare all numbers, to within the rounding of embeddings."""
    assert type(value) is type(expected)
    if isinstance(value, dict):
        assert value.keys() == expected.keys()
        value, expected = list(value.values()), list(expected.values())
    if isinstance(value, list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            check(one, other)
    elif isinstance(value, float):
        assert value == pytest.approx(expected, abs=1e-6)
    else:
        assert value == expected
