"""The metrics compute the same numbers as the packages that the benchmark compares them with."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from asv.config import Config
from asv_runner.discovery import disc_benchmarks

from scripts.benchmarks import cases, inputs
from tests import programs
from text_metrics import load


def test_self_bleu_is_that_of_fast_bleu():
    fast_bleu = pytest.importorskip("fast_bleu", reason="fast-bleu needs a compiler: it is in the benchmark extra")
    texts = inputs.captions(200)
    for order in (2, 3, 4):
        weights = {order: (1 / order,) * order}
        theirs = fast_bleu.SelfBLEU([text.split() for text in texts], weights, smoothing_func=1).get_score()[order]
        ours = load("self_bleu").compute(predictions=texts, aggregate="sentence", max_order=order)
        assert ours["self_bleu"] == pytest.approx(np.mean(theirs), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "n", "error"),
    [
        ("VendiSet", 1_000, 1e-8),
        ("Chamfer", 3_000, 1e-6),
        ("Contributions", 20, 1e-8),
        ("ContributionsOfSet", 40, 1e-8),
        ("Choose", 40, 0),
        ("Choose", 1_100, 0),
    ],
)
def test_a_peer_computes_the_same(name, n, error):
    case = getattr(cases, name)()
    case.prepare()
    given = case.make(n)
    np.testing.assert_allclose(np.ravel(case.ours(given)), np.ravel(case.theirs(given)), rtol=0, atol=error)


def discover():
    """Import the cases as asv does; returns their names, and whether each can be run."""
    folder = Path(cases.__file__).parent
    assert Config.load(folder / "asv.conf.json").benchmark_dir == "."
    sys.path.insert(0, str(folder.parent))
    discovered = list(disc_benchmarks(str(folder)))
    return [case.name for case in discovered], all(case.check(str(folder)) for case in discovered)


def test_asv_finds_the_cases():
    """It imports every module of their folder, as a package of the folder's name."""
    names, can_run = programs.in_fork(discover)
    assert can_run
    assert {f"cases.{name}.time_score" for name, case in vars(cases).items() if hasattr(case, "time_score")} < {*names}


def run_program(program):
    """Run the program of a case in a fork: a new process would import everything again."""
    assert programs.in_fork(exec, program, {}) is None


@pytest.mark.parametrize("case", [case for case in vars(cases).values() if hasattr(case, "time_score")])
def test_a_case_of_the_benchmark_runs(case, monkeypatch):
    monkeypatch.setattr(cases, "_run", run_program)
    for side in case.params[0]:
        run = case()
        run.setup(side, 4)
        run.time_score(side, 4)


def test_a_program_of_a_case_runs_in_a_new_process():
    before = cases._children_seconds()
    cases._run("sum(range(10**6))")
    assert cases._children_seconds() > before
    with pytest.raises(subprocess.CalledProcessError):
        cases._run("1 / 0")
