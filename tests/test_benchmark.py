"""The benchmark: measuring, comparing and reporting; no test depends on how long anything takes."""

import importlib.metadata
import itertools
import json
import tempfile
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from scripts.reports.benchmark import __main__ as benchmark
from scripts.reports.benchmark import plot as benchmark_plot
from scripts.reports.benchmark import report as benchmark_report
from scripts.reports.benchmark.cases import CASES, Cosines, Values
from scripts.reports.benchmark.implementations import score_each_set, score_file
from scripts.reports.benchmark.inputs import file_of_sets

SVG = "{http://www.w3.org/2000/svg}"
FAST = "gruen_redundancy"
SMALL = ["--only", FAST, "--quick", "--scale", "0.1", "--seconds", "0.01"]


def made_report(ours=1.0, peer=2.0, power=1.0):
    """A report with a row for each size of each case: n^power times the milliseconds, and ten times as many MB."""
    cases = []
    for name, case in CASES.items():
        rows = []
        for size in case.sizes:
            row = {**made_row(size.n), "alone": size.alone, "ours": figures(ours * size.n**power)}
            if not size.alone:
                row |= {"peer": figures(peer * size.n**power), "ratio": peer / ours}
            rows.append(row)
        cases.append(
            {"name": name, "title": case.title, "peer": case.peer.name, "bound": str(case.agreement), "rows": rows}
        )
    machine = {"Processor": "Abacus <1>, 2 cores; beads", "Memory": "1 GiB", "Date": "2026-01-01"}
    return {"machine": machine, "run": "1 second", "settings": {"turns": 7, "seconds": 10, "scale": 1}, "cases": cases}


def made_row(n):
    nothing = dict.fromkeys(("ours", "peer", "ratio", "ratio_needed", "megabytes_allowed", "apart"))
    return {**nothing, "n": n, "alone": False, "failures": [], "unmeasured": []}


def figures(milliseconds):
    return {"seconds": milliseconds / 1000, "megabytes": 10 * milliseconds}


def texts_of(picture):
    """The texts of a plot."""
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The output folder and the report of a real run of a fast case."""
    folder = tmp_path_factory.mktemp("benchmark")
    assert benchmark.main([*SMALL, "--out", str(folder), "--check"]) == 0
    return folder, json.loads((folder / "build/benchmark.json").read_text(encoding="utf-8"))


def test_a_run_measures_both_sides_and_compares_them(measured):
    _, report = measured
    (case,) = report["cases"]
    assert [row["n"] for row in case["rows"]] == [5, 20, 200]
    assert [row["peer"] is None for row in case["rows"]] == [False, False, True]
    for row in case["rows"]:
        assert row["ours"]["seconds"] > 0
        assert row["failures"] == row["unmeasured"] == []
    assert [row["apart"] for row in case["rows"]] == ["0", "0", None]
    assert case["rows"][0]["ratio"] == case["rows"][0]["peer"]["seconds"] / case["rows"][0]["ours"]["seconds"]


def test_the_page_says_what_was_measured_and_on_what(measured):
    folder, _ = measured
    page = (folder / "BENCHMARKS.md").read_text(encoding="utf-8")
    assert f"| `{FAST}` | {CASES[FAST].title} | 20 |" in page
    assert f"| {FAST} " in page
    for name in ("Processor", "Memory", "Packages", "Busy at the start", "Captions"):
        assert f"\n- {name}: " in page
    assert f"torch {importlib.metadata.version('torch')}" in page
    assert "all sizes times 0.1" in page
    for kind in ("time", "memory"):
        assert f"](docs/benchmarks/{kind}.svg)" in page


def test_the_report_is_written_again_from_json(measured, tmp_path):
    folder, _ = measured
    assert benchmark.main(["--from-json", str(folder / "build/benchmark.json"), "--out", str(tmp_path)]) == 0
    for name in ("BENCHMARKS.md", *benchmark_report.PICTURES.values()):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_case_that_cannot_run_says_why(monkeypatch, tmp_path, capsys):
    why = "rapidfuzz is not for this machine"
    (tmp_path / "rapidfuzz.py").write_text(f"raise ImportError('{why}')\n")
    # The processes of both sides inherit sys.path.
    monkeypatch.syspath_prepend(tmp_path)
    assert benchmark.main([*SMALL, "--check", "--out", str(tmp_path)]) == 0
    assert f"not measured: {FAST} at 5: {why}" in capsys.readouterr().out
    assert f"Not measured: {why}" in (tmp_path / "BENCHMARKS.md").read_text(encoding="utf-8")
    for name in benchmark_report.PICTURES.values():
        assert why in " ".join(texts_of((tmp_path / name).read_text(encoding="utf-8")))


def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    peer = CASES[FAST].peer._replace(package="no_such_package", name="no peer")
    monkeypatch.setitem(CASES, FAST, CASES[FAST]._replace(peer=peer))
    row = benchmark.run(FAST, CASES[FAST].sizes[0]._replace(n=5), 0.01)
    assert row["unmeasured"] == ["no peer is not installed"]
    assert row["ours"]["seconds"] > 0
    assert row["peer"] is None


@pytest.mark.parametrize(
    ("error", "kind", "note"),
    [
        ("ImportError('rapidfuzz is not for this machine')", "unmeasured", "rapidfuzz is not for this machine"),
        ("RuntimeError('a fault')", "failures", "a process ended early"),
    ],
)
def test_a_side_that_cannot_start_is_named(error, kind, note, monkeypatch, tmp_path):
    (tmp_path / "rapidfuzz.py").write_text(f"raise {error}\n")
    # The processes of both sides inherit sys.path.
    monkeypatch.syspath_prepend(tmp_path)
    row = benchmark.run(FAST, CASES[FAST].sizes[0]._replace(n=5), 0.01)
    assert set(row[kind][0].split("; ")) == {note}
    assert row["ours"] is None


def test_a_miss_is_a_failure(monkeypatch, capsys):
    size = CASES[FAST].sizes[0]._replace(n=5, ratio=1e9)
    monkeypatch.setitem(CASES, FAST, CASES[FAST]._replace(sizes=(size,)))
    assert benchmark.main(["--only", FAST, "--seconds", "0.01", "--check"]) == 1
    assert "times as fast, not 1e+09" in capsys.readouterr().out


@pytest.mark.parametrize("kind", benchmark_report.PICTURES)
def test_the_picture_has_every_case(kind):
    report = made_report()
    picture = benchmark_plot.picture(report, kind)
    words = texts_of(picture)
    for case in report["cases"]:
        assert case["name"] in words
        # A title is wrapped, not cut.
        assert case["title"].replace("`", "")[:30] in " ".join(words)
    root = ElementTree.fromstring(picture)
    for case in report["cases"]:
        for key, rows in (("ours", case["rows"]), ("peer", [row for row in case["rows"] if row["peer"]])):
            line = [group for group in root.iter(f"{SVG}g") if group.get("id") == f"{case['name']}-{key}"]
            assert len([mark for group in line for mark in group.iter(f"{SVG}use")]) == len(rows)
    compared = sum(any(row["peer"] for row in case["rows"]) for case in report["cases"])
    assert sum("2.0× " in text for text in words) == compared
    assert sum("n^1.00" in text for text in words) == len(CASES) + compared
    assert "Abacus <1>, 2 cores; 1 GiB; 2026-01-01" in words
    # The first path is the ground of the figure: it is read on a dark page too.
    assert "fill: #ffffff" in next(root.iter(f"{SVG}path")).get("style")
    assert benchmark_plot.picture(report, kind) == picture


def test_nothing_in_the_picture_lies_outside_or_on_another_label():
    for ours, peer, power in ((1.0, 1.01, 1.0), (1.0, 500.0, 1.5), (300.0, 1.0, 0.5)):
        figure = benchmark_plot.draw(made_report(ours, peer, power), "time")
        figure.draw_without_rendering()
        for panel in figure.axes:
            labels = [text.get_window_extent() for text in panel.texts]
            assert not any(first.overlaps(second) for first, second in itertools.combinations(labels, 2))
            assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in labels)
            for line in panel.lines:
                places = panel.transData.transform(line.get_xydata())
                assert all(panel.bbox.contains(*place) for place in places)


def test_growth_is_the_exponent():
    assert benchmark_report.growth([(10, 1.0), (40, 8.0), (1000, 1000.0)]) == pytest.approx(1.5)
    assert benchmark_report.growth([(10, 1.0)]) is None
    assert benchmark_report.growth([(10, 0.0), (20, 1.0)]) is None


def test_values_are_compared_one_by_one():
    found, agree = Values(1e-3).compare(np.array([1.0, 100.0]), np.array([1.0005, 100.1]))
    assert (found, agree) == ("0.1", True)
    assert not Values(1e-3).compare(np.array([1.0]), np.array([1.01]))[1]
    assert not Values(1e-3).compare(np.array([np.nan]), np.array([1.0]))[1]
    assert not Values(1e-3).compare(np.ones(2), np.ones(1))[1]


def test_embeddings_are_compared_by_their_cosines():
    peer = np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    turned = np.array([[0.8, 0.6], [0.0, 1.0]], dtype=np.float32)
    found, agree = Cosines(largest=0.21, mean=0.11).compare(turned, peer)
    assert (found, agree) == ("cosines 0.2 from 1, 0.1 in the mean", True)
    assert not Cosines(largest=0.19).compare(turned, peer)[1]
    assert not Cosines(mean=0.09).compare(turned, peer)[1]
    assert not Cosines(mean=0.09).compare(np.full((2, 2), np.nan), peer)[1]
    assert not Cosines(mean=0.09).compare(peer[:1], peer)[1]


def test_the_command_scores_a_file_as_compute_does(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = file_of_sets(16)
    ours = score_file(file)
    assert ours.shape == (4,)
    assert Values(1e-9).compare(ours, score_each_set(file))[1]


def test_sizes_that_are_chosen():
    assert all(sizes == list(CASES[name].sizes) for name, sizes in benchmark.chosen(None, False, 1).items())
    assert list(benchmark.chosen("chamfer", True, 1)) == ["chamfer"]
    assert [size.n for size in benchmark.chosen("chamfer", True, 1)["chamfer"]] == [5_000, 20_000]
    # Sizes that become equal are merged, and scaled sizes have no bounds.
    (size,) = benchmark.chosen("probeval_gp", False, 0.01)["probeval_gp"]
    assert (size.n, size.ratio) == (4, None)


def test_a_wrong_command_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        benchmark.main(["--scale", "0"])
    assert "--scale must be more than 0. Got 0." in capsys.readouterr().err
