"""Check that each metric has a card with its sections, tests, a row in README, and the requirements that it imports.

python -m scripts.tooling.check_metrics    exit with 1 if one lacks something
"""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from scripts import ROOT
from text_metrics import METRICS

SECTIONS = [
    "Metric Description",
    "How to Use",
    "Inputs",
    "Output Values",
    "Limitations and Bias",
    "Citation(s)",
    "Further References",
]


def normalized(requirement: str) -> str:
    """Return the name of a requirement without its version, extras and case."""
    return re.split(r"[\[<>=]", requirement)[0].lower().replace("_", "-")


def imported(folder: Path) -> set[str]:
    """Return the distributions that the files of a metric import, anywhere in them."""
    nodes = [node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    modules = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
    known = packages_distributions()
    return {normalized(known.get(module, [module])[0]) for module in modules}


def problems(folder: Path, readme: str, extras: set[str]) -> list[str]:
    """List the missing parts of a metric."""
    card = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    required = {normalized(line) for line in (folder / "requirements.txt").read_text(encoding="utf-8").split()}
    needed = imported(folder) - extras
    sections = [line[3:] for line in card if line.startswith("## ")]
    messages = []
    if card[0] != f"# Metric Card for {folder.name}" or sections != SECTIONS:
        messages.append(f"README.md must begin with its name and have the sections {', '.join(SECTIONS)}")
    if not (ROOT / f"tests/test_{folder.name}.py").is_file():
        messages.append(f"tests/test_{folder.name}.py is missing")
    if f"| [{folder.name}](metrics/{folder.name}/README.md)" not in readme:
        messages.append("README.md of the project has no row for it")
    if needed - required:
        messages.append(f"requirements.txt lacks {sorted(needed - required)}")
    if required - needed:
        messages.append(f"requirements.txt has {sorted(required - needed)}, which nothing imports")
    return [f"{folder.name}: {message}" for message in messages]


def main() -> int:
    """Run the command."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {normalized(name) for extra in project["optional-dependencies"].values() for name in extra}
    extras -= {normalized(name) for name in project["dependencies"]}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    failures = [problem for name in METRICS for problem in problems(ROOT / "metrics" / name, readme, extras)]
    print("\n".join(failures) or f"{len(METRICS)} metrics: ok")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
