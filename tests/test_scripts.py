"""Vendoring; `make lint` holds the copies against the core."""

import shutil

import pytest

from scripts.tooling import vendor
from tests.conftest import METRICS


@pytest.fixture
def folder(tmp_path):
    """A copy of one metric folder beside the real core."""
    return shutil.copytree(METRICS / "chamfer_diversity", tmp_path / "chamfer_diversity")


def test_a_copy_that_differs_is_found(folder):
    with (folder / "core_distances.py").open("a") as file:
        file.write("# drift\n")
    assert [line for line in vendor.problems(folder) if "core_distances.py: differs" in line]
    vendor.vendor(folder)
    assert vendor.problems(folder) == []


def test_a_copy_that_is_missing_or_not_needed_is_found(folder):
    (folder / "core_results.py").unlink()
    (folder / "core_ngrams.py").write_bytes((METRICS / "_core/core_ngrams.py").read_bytes())
    found = "\n".join(vendor.problems(folder))
    assert "core_results.py: missing" in found
    assert "core_ngrams.py: chamfer_diversity.py does not import it" in found


def test_an_import_that_evaluate_would_not_follow_is_found(folder):
    script = folder / "chamfer_diversity.py"
    lines = script.read_text().splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if line.startswith("from .core_results"))
    script.write_text("".join(lines[:start] + lines[start + 1 :]))
    assert "core_results.py: chamfer_diversity.py does not import it" in "\n".join(vendor.problems(folder))
    script = folder / "core_inputs.py"
    script.write_text("from .core_vectors import something\n" + script.read_text())
    assert "imports core_vectors, but chamfer_diversity.py does not" in "\n".join(vendor.problems(folder))
