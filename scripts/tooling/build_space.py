"""Assemble the demo of a metric in build/<name>: a self-contained folder to upload, which `evaluate.load` also loads.

It contains the metric with its data files, the app with the shared kit and what this needs of the core and of the
package, pinned requirements, and the commit of the build. Its README is the front matter for the Hub, followed by the
metric card.

    python -m scripts.tooling.build_space                all demos
    python -m scripts.tooling.build_space vendi_embed    one
"""

import re
import shutil
import subprocess
from pathlib import Path

from huggingface_hub import metadata_load

from scripts import ROOT
from scripts.tooling.vendor import core_of
from text_metrics.console import Parser, command

SPACES = ROOT / "spaces"
METRICS = ROOT / "metrics"
BUILD = ROOT / "build"
KIT = "_kit"
# Of WordNet, which the demos name as negations.
ANTONYMS = METRICS / "probeval" / "probeval_antonyms.py"
# Reasoning and special tokens: it needs the standard library only.
TEXTS = ROOT / "text_metrics" / "texts.py"
COMMIT = "COMMIT"
# torch without CUDA: free Spaces have no GPU, and the CUDA builds are large.
_CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"


def space_names() -> list[str]:
    """List the metrics that have a demo."""
    return sorted(path.parent.name for path in SPACES.glob("[!_]*/app.py"))


def build(name: str, to: Path = BUILD) -> Path:
    """Assemble one demo and return its folder."""
    if name not in space_names():
        raise ValueError(f"name must be one of {', '.join(space_names())}. Got {name!r}.")
    target = to / name
    if target.exists():
        if not (target / COMMIT).is_file():
            raise ValueError(f"{target} exists and is not an earlier build of a demo. Move or delete it.")
        shutil.rmtree(target)
    target.mkdir(parents=True)
    space = SPACES / name
    metric = METRICS / name
    for file in _files(metric) + _files(space) + [ROOT / "LICENSE"]:
        if file.name not in ("README.md", "requirements.txt"):
            shutil.copyfile(file, target / file.name)
    _build_kit(target / KIT)
    requirements = []
    for folder in (metric, space):
        requirements += (folder / "requirements.txt").read_text(encoding="utf-8").split()
    (target / "requirements.txt").write_text("\n".join(pinned(requirements)) + "\n", encoding="utf-8")
    front = (space / "README.md").read_text(encoding="utf-8")
    card = (metric / "README.md").read_text(encoding="utf-8")
    version = (metadata_load(space / "README.md") or {}).get("sdk_version")
    gradio = pins()["gradio"]
    if version != gradio:
        raise ValueError(
            f"spaces/{name}/README.md: sdk_version must be the Gradio of constraints.txt, {gradio}. Got {version}."
        )
    (target / "README.md").write_text(f"{front.rstrip()}\n\n{card}", encoding="utf-8")
    (target / COMMIT).write_text(f"{commit()}\n", encoding="utf-8")
    return target


def _build_kit(target: Path) -> None:
    """Copy the kit with the antonyms, and what it needs of the core and of the package.

    Raises a ValueError if its encoder is a folder of this machine, which a Space would not have.
    """
    shutil.copytree(SPACES / KIT, target, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ANTONYMS, target / "antonyms.py")
    shutil.copyfile(TEXTS, target / TEXTS.name)
    (target / "core.py").write_text(core_of(SPACES / KIT), encoding="utf-8")
    code = (target / "scoring.py").read_text(encoding="utf-8")
    model = re.search(r"^MODEL\b.*= *[\"'](.+)[\"']$", code, re.MULTILINE)
    if model and Path(model[1]).is_dir():
        raise ValueError(f"MODEL of spaces/{KIT}/scoring.py is a folder: upload it to the Hub. Got {model[1]}.")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def pins() -> dict[str, str]:
    """Return the versions that CI tests, by name in lower case."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.lower().split("==") for line in lines if "==" in line)


def pinned(requirements: list[str]) -> list[str]:
    """Return the requirements, each pinned to the version that CI tests."""
    versions = pins()
    lines = {}
    for requirement in requirements:
        match = re.match(r"[\w.-]+(\[[\w,]+\])?", requirement)
        assert match, requirement
        name = match[0].lower().split("[")[0]
        if name not in versions:
            raise ValueError(f"{requirement!r} has no version in constraints.txt.")
        lines[name] = f"{match[0]}=={versions[name]}"
    return ([_CPU_INDEX] if "torch" in lines else []) + [lines[name] for name in sorted(lines)]


def git(*words: str) -> str:
    """Return what a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def commit() -> str:
    """Return the commit that is checked out, with "+changes" if files differ from it."""
    try:
        changed = git("status", "--porcelain", "--", "metrics", "spaces", "constraints.txt", str(TEXTS))
        return git("rev-parse", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@command
def main() -> None:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("names", nargs="*", default=space_names(), help=f"of {', '.join(space_names())}")
    for name in parser.parse_args().names:
        print(build(name))


if __name__ == "__main__":
    raise SystemExit(main())
