"""Write the results of asv to results/benchmarks.csv, and check the speed-ups that README states.

python -m scripts.results.benchmarks
"""

import json
import sys
from pathlib import Path
from typing import Any

import pandas

from scripts import ROOT
from scripts.benchmarks import cases
from text_metrics.console import Parser, command

RESULTS = ROOT / "build" / "asv" / "results"


def read_results(folder: Path) -> dict[str, Any]:
    """Read the newest file of results of asv: the commit, the machine, and by benchmark its values and parameters."""
    files = sorted(folder.glob("*/*-*.json"), key=lambda path: path.stat().st_mtime)
    if not files:
        raise ValueError(f"{folder} has no results: run `make benchmark`.")
    saved = json.loads(files[-1].read_text(encoding="utf-8"))
    machine = json.loads((files[-1].parent / "machine.json").read_text(encoding="utf-8"))
    results = {name: dict(zip(saved["result_columns"], row, strict=False)) for name, row in saved["results"].items()}
    return {"commit": saved["commit_hash"], "machine": machine, "results": results}


def rows(results: dict[str, Any]) -> pandas.DataFrame:
    """Return a row for each case and size: seconds, peak memory and speed-up, NaN where a side was not measured."""
    frames = []
    by_name: dict[str, Any] = {name: case for name, case in vars(cases).items() if hasattr(case, "time_score")}
    for name, case in by_name.items():
        values = {kind: results.get(f"cases.{name}.{kind}_score", {}).get("result") for kind in ("time", "peakmem")}
        index = pandas.MultiIndex.from_product(case.params, names=["side", "n"])
        measured = pandas.DataFrame(values, index, dtype=float).unstack("side")
        measured = measured.reindex(columns=pandas.MultiIndex.from_product([values, cases.SIDES]))
        seconds = measured["time"]
        megabytes = measured["peakmem"] / 1e6
        largest = case.params[1][-1]
        columns = {
            "case": case.title,
            "n": measured.index,
            "seconds": seconds["ours"],
            "MB": megabytes["ours"],
            "peer": case.peer,
            "its seconds": seconds["theirs"],
            "its MB": megabytes["theirs"],
            "speed-up": seconds["theirs"] / seconds["ours"],
            "required": pandas.Series({largest: case.claim}, dtype=float),
        }
        frames.append(pandas.DataFrame(columns))
    return pandas.concat(frames)


def formatted(table: pandas.DataFrame) -> pandas.DataFrame:
    """Format the numbers, times and speed-ups with three significant digits."""
    shown = table.astype(object)
    for column in ("seconds", "its seconds", "speed-up"):
        shown[column] = [f"{value:.3g}" if pandas.notna(value) else "" for value in table[column]]
    shown["required"] = [f"{value:g}" if pandas.notna(value) else "" for value in table["required"]]
    for column in ("n", "MB", "its MB"):
        shown[column] = [f"{value:,.0f}".replace(",", " ") if pandas.notna(value) else "" for value in table[column]]
    return shown


@command
def main() -> int:
    """Run the command."""
    Parser(__doc__).parse_args()
    read = read_results(RESULTS)
    table = rows(read["results"])
    formatted(table).to_csv(ROOT / "results" / "benchmarks.csv", index=False)
    machine = read["machine"]
    print(f"Commit {read['commit'][:7]}; {machine['cpu']}, {machine['num_cpu']} cores, {machine['os']}.")
    # A case that failed has no speed-up.
    missed = table[table["required"].notna() & ~(table["speed-up"] >= table["required"])]
    for line in missed.itertuples():
        print(f"{line.case}, n = {line.n}: less than the required speed-up", file=sys.stderr)
    return 1 if len(missed) else 0


if __name__ == "__main__":
    raise SystemExit(main())
