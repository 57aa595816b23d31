"""A number that moves needs a new version, a line in CHANGELOG.md, and `python -m tests.frozen_scores`."""

import json

import pytest

import text_metrics
from tests.frozen_scores import CALLS, FILE, scores

FROZEN = json.loads(FILE.read_text(encoding="utf-8"))


def test_the_frozen_scores_are_of_this_version():
    assert FROZEN["version"] == text_metrics.__version__
    assert set(FROZEN["results"]) == set(CALLS)


def test_scores_are_those_of_the_version():
    for name, result in scores()["results"].items():
        for key, value in result.items():
            assert value == pytest.approx(FROZEN["results"][name][key], abs=1e-6), (name, key)
