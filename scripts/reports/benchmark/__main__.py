"""Time and peak memory of the metrics, ours against a named peer in the same run.

Each side runs in a fresh process, after a warm-up on a small input; the two take turns, so that other load on the
machine affects both alike. Time is the median over the turns. Memory is the largest increase of resident memory after
imports, warm-up and the making of the input. Both sides must give the same numbers.

    python -m scripts.reports.benchmark                            all cases
    python -m scripts.reports.benchmark --only self_bleu --quick   one case, without its long sizes
    python -m scripts.reports.benchmark --check                    exit with 1 on a missed ratio, too much memory, or
                                                                   numbers that differ
    python -m scripts.reports.benchmark --out .                    write BENCHMARKS.md and docs/benchmarks/, and row by
                                                                   row build/benchmark.json
    python -m scripts.reports.benchmark --from-json build/benchmark.json --out .    write the page again
    python -m scripts.reports.benchmark --scale 0.01               check that everything runs

The cases are in cases.py. A case whose package is missing is left out, and the report names the package.
"""

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm

from scripts.reports.benchmark import plot, report
from scripts.reports.benchmark.cases import CASES, Size
from scripts.reports.benchmark.measure import MAX_TURNS, Measurement, machine, measure
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_json, write_text
from text_metrics.commands.shared.outputs import check_outputs

# For the turns of one size, such that all cases end within 20 minutes on two cores.
SECONDS = 10.0
PAGE = "BENCHMARKS.md"
# The smallest scaled size: some inputs consist of sets of four.
_LEAST = 4


def run(name: str, size: Size, budget: float) -> dict[str, Any]:
    """Measure one size of a case and judge it."""
    case = CASES[name]
    row: dict[str, Any] = {
        "n": size.n,
        "alone": size.alone,
        "ours": None,
        "peer": None,
        "ratio": None,
        "ratio_needed": size.ratio,
        "megabytes_allowed": size.megabytes,
        "apart": None,
        "failures": [],
        "unmeasured": [],
    }
    installed = importlib.util.find_spec(case.peer.package) is not None
    if not size.alone and not installed:
        row["unmeasured"].append(f"{case.peer.name} is not installed")
    try:
        measured = measure(name, size.n, ["ours", "peer"] if installed and not size.alone else ["ours"], budget)
    except ImportError as error:
        return {**row, "unmeasured": [*row["unmeasured"], str(error)]}
    except EOFError:
        return {**row, "failures": ["a process ended early"]}
    ours, peer = measured if len(measured) == 2 else (measured[0], None)
    row["ours"] = _figures(ours)
    if size.megabytes and ours.megabytes is None:
        row["unmeasured"].append("no memory figures on this system")
    if size.megabytes and ours.megabytes is not None and ours.megabytes > size.megabytes:
        row["failures"].append(f"takes {ours.megabytes:.0f} MB, not {size.megabytes:g}")
    if peer:
        row["peer"], row["ratio"] = _figures(peer), peer.seconds / ours.seconds
        if size.ratio and row["ratio"] < size.ratio:
            row["failures"].append(f"missed: {row['ratio']:.2f} times as fast, not {size.ratio:g}")
        row["apart"], agree = case.agreement.compare(ours.numbers, peer.numbers)
        if not agree:
            row["failures"].append(f"numbers differ by {row['apart']}")
    return row


def _figures(measured: Measurement) -> dict[str, float | None]:
    return {"seconds": measured.seconds, "megabytes": measured.megabytes}


def chosen(only: str | None, quick: bool, scale: float) -> dict[str, list[Size]]:
    """List the sizes of each case; scaled sizes have no bounds on ratio and memory."""
    by_case = {}
    for name in [only] if only else CASES:
        sizes = [size for size in CASES[name].sizes if not (size.long and quick)]
        if scale != 1:
            scaled = {max(round(size.n * scale), _LEAST): size for size in reversed(sizes)}
            sizes = [Size(n, alone=size.alone, long=size.long) for n, size in sorted(scaled.items())]
        by_case[name] = sizes
    return by_case


def run_all(sizes: dict[str, list[Size]], budget: float, scale: float, to_json: Path | None) -> dict[str, Any]:
    """Measure all sizes; each result is printed, and written to `to_json`, at once."""
    measured: dict[str, Any] = {
        "machine": machine(),
        "run": "",
        "settings": {"turns": MAX_TURNS, "seconds": budget},
        "cases": [],
    }
    print("\n".join([*(f"- {name}: {value}" for name, value in measured["machine"].items()), ""]))
    print("\n".join(report.head()), flush=True)
    start = time.monotonic()
    with tqdm(total=sum(map(len, sizes.values())), unit="size", file=sys.stderr) as bar:
        for name, case_sizes in sizes.items():
            case = CASES[name]
            rows: list[dict[str, Any]] = []
            about = {"name": name, "title": case.title, "peer": case.peer.name, "bound": str(case.agreement)}
            measured["cases"].append({**about, "rows": rows})
            for size in case_sizes:
                bar.set_description(f"{name}, n = {report.number(size.n)}")
                rows.append(run(name, size, budget))
                bar.write(report.body(measured["cases"][-1], len(rows) - 1))
                sys.stdout.flush()
                bar.update()
                measured["run"] = f"{time.monotonic() - start:.0f} seconds"
                measured["run"] += f", all sizes times {scale:g}, as a check that it runs" if scale != 1 else ""
                if to_json:
                    write_text(to_json, json.dumps(measured, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return measured


@command
def main(words: list[str] | None = None) -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row fails")
    parser.add_argument("--only", choices=CASES, help="run one case")
    parser.add_argument("--quick", action="store_true", help="leave out the long sizes")
    parser.add_argument("--scale", type=float, default=1, help="multiply all sizes by this, and check no bounds")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the turns of one size")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write BENCHMARKS.md and docs/benchmarks/ in it")
    parser.add_argument("--from-json", type=Path, metavar="FILE", help="measure nothing: read an earlier run")
    arguments = parser.parse_args(words)
    if not arguments.scale > 0:
        parser.error(f"--scale must be more than 0. Got {arguments.scale:g}.")
    pages = [arguments.out / name for name in (PAGE, *report.PICTURES.values())] if arguments.out else []
    check_outputs([arguments.from_json], pages)
    if arguments.from_json:
        try:
            measured = read_json(arguments.from_json)
            _write_report(measured, arguments)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            parser.error(f"{arguments.from_json} is not what --out wrote: {error!r:.200}")
    else:
        to_json = arguments.out and arguments.out / "build" / "benchmark.json"
        sizes = chosen(arguments.only, arguments.quick, arguments.scale)
        measured = run_all(sizes, arguments.seconds, arguments.scale, to_json)
        _write_report(measured, arguments)
    return 1 if arguments.check and report.notes(measured, "failures") else 0


def _write_report(measured: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Write the page and its plots where `--out` says, and print what is wrong."""
    if arguments.out:
        text = report.markdown(measured)
        for kind, name in report.PICTURES.items():
            write_text(arguments.out / name, plot.picture(measured, kind))
        write_text(arguments.out / PAGE, text)
    unmeasured, failures = (report.notes(measured, kind) for kind in ("unmeasured", "failures"))
    print("\n".join(["", *(f"not measured: {note}" for note in unmeasured), *failures]))


if __name__ == "__main__":
    raise SystemExit(main())
