"""Copy the shared core into each metric folder, or check that the copies are right.

`evaluate.load` reads only the folder of a metric, and of it the files that its main script imports. So the lines
`from .core_x import y` of a main script decide which files of metrics/_core are copied to its folder.

    python -m scripts.tooling.vendor            copy
    python -m scripts.tooling.vendor --check    change nothing; exit with 1 if a copy differs, is missing or is not
                                                needed, or a metric does not load
"""

import sys
from pathlib import Path

import evaluate
from evaluate.loading import get_imports

from scripts import ROOT
from text_metrics.commands.shared.command import make_parser

METRICS = ROOT / "metrics"
CORE = METRICS / "_core"


def siblings(script: Path) -> list[str]:
    """List the files in its own folder that a script imports."""
    return [name for kind, name, _, _ in get_imports(str(script)) if kind == "internal"]


def problems(folder: Path) -> list[str]:
    """List what is wrong with the copies of one metric."""
    script = folder / f"{folder.name}.py"
    manifest = siblings(script)
    messages = []
    for name in manifest:
        file, original = folder / f"{name}.py", CORE / f"{name}.py"
        if not file.is_file():
            messages.append(f"{file}: missing, but {script.name} imports it")
        elif original.is_file() and file.read_bytes() != original.read_bytes():
            messages.append(f"{file}: differs from {original}")
        elif not original.is_file() and name.startswith("core_"):
            messages.append(f"{file}: has no original in {CORE}")
    for file in sorted(folder.glob("*.py")):
        if file != script and file.stem not in manifest:
            messages.append(f"{file}: {script.name} does not import it")
        for name in siblings(file):
            if name not in manifest:
                messages.append(f"{file}: imports {name}, but {script.name} does not: evaluate would not copy it")
    return messages


def vendor(folder: Path) -> None:
    """Copy the core files that one metric needs, and delete all others."""
    manifest = siblings(folder / f"{folder.name}.py")
    for file in folder.glob("core_*.py"):
        if file.stem not in manifest:
            file.unlink()
    for name in manifest:
        if (CORE / f"{name}.py").is_file():
            (folder / f"{name}.py").write_bytes((CORE / f"{name}.py").read_bytes())


def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 on any difference")
    check = parser.parse_args().check
    failures = []
    for folder in sorted(path for path in METRICS.iterdir() if (path / f"{path.name}.py").is_file()):
        if not check:
            vendor(folder)
        messages = problems(folder)
        if not messages:
            try:
                evaluate.load(str(folder))
            except Exception as error:
                messages = [f"{folder}: does not load: {error}"]
        failures += messages
        print(f"{folder.name}: {'wrong' if messages else 'right'}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
