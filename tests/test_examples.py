"""The scripts of examples/, as a newcomer runs them: without a network."""

import runpy
import socket
import sys

import pytest

from tests.conftest import ROOT

# A line that each script prints.
PRINTED = {
    "encoders": "1.68 different texts; vendi_embed|q:1|kernel:embedding|model:given(all-MiniLM-L6-v2, pooler)",
    "compare_samples": "model B             3.50/4                  0.61         0.00",
    "quality_and_diversity": "2.52 different texts; 1.53, times their mean quality",
    "collapse": "after  0.681        2.257             0.989 1.531   1.514",
    "score_a_file": "Name a pet.    2 meanings, utility 0.54",
    "calibrate_classes": "same=0.83: balanced accuracy 0.850",
    "noveltybench": "distinct 2.33, utility 5.83: as in their summary.json",
}


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_example(path, monkeypatch, capsys):
    def refuse(*arguments, **more):
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    assert PRINTED[path.stem] in capsys.readouterr().out
