"""What the documents say is run: every example, and the facts that are written in two places."""

import doctest
import inspect
import re
import runpy
import tomllib
from pathlib import Path

import evaluate
import pytest

from metrics._core.core_results import VERSION

ROOT = Path(__file__).resolve().parents[1]
METRICS = sorted(path.parent for path in ROOT.glob("metrics/*/*.py") if path.stem == path.parent.name)
CARD_SECTIONS = [
    "Metric Description",
    "How to Use",
    "Inputs",
    "Output Values",
    "Limitations and Bias",
    "Citation(s)",
    "Further References",
]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

every_metric = pytest.mark.parametrize("folder", METRICS, ids=lambda folder: folder.name)


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
    """Examples load metrics by the path `metrics/<name>`."""
    monkeypatch.chdir(ROOT)


def run_examples(text: str, name: str) -> int:
    """Run the doctests in a text, in one namespace; returns how many examples there were."""
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, name, 0)
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, attempted = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=report.append)
    assert not failed, "".join(report)
    return attempted


def python_blocks(markdown: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", markdown, flags=re.MULTILINE | re.DOTALL)


def only_python_blocks(markdown: str) -> str:
    """Blank out what is not in a python fence: line numbers in a report stay those of the file."""
    lines, inside = [], False
    for line in markdown.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines) + "\n"


def run_markdown(path: Path) -> None:
    markdown = path.read_text(encoding="utf-8")
    for block in python_blocks(markdown):
        assert block.startswith(">>> "), f"{path}: a python block is a doctest, so that it is run:\n{block}"
    assert run_examples(only_python_blocks(markdown), str(path)) > 0


def test_readme_examples():
    run_markdown(ROOT / "README.md")


@every_metric
def test_card_examples(folder):
    run_markdown(folder / "README.md")


@every_metric
def test_help_examples(folder):
    assert run_examples(evaluate.load(f"metrics/{folder.name}").inputs_description, folder.name) > 0


@every_metric
def test_card_has_its_sections(folder):
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"# Metric Card for {folder.name}"
    assert [line[3:] for line in lines if line.startswith("## ")] == CARD_SECTIONS


@every_metric
def test_card_and_help_have_every_argument(folder):
    metric = evaluate.load(f"metrics/{folder.name}")
    card = (folder / "README.md").read_text(encoding="utf-8")
    arguments = list(inspect.signature(metric._compute).parameters)
    assert [name for name in arguments if f"`{name}` (" not in card] == []
    assert [name for name in arguments if f"{name} (" not in metric.inputs_description] == []


@every_metric
def test_card_cites_what_the_metric_cites(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert evaluate.load(f"metrics/{folder.name}").citation.strip() in card


@every_metric
def test_requirements_are_those_of_the_project(folder):
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").split()
    assert lines
    assert set(lines) <= set(PYPROJECT["project"]["dependencies"])


def test_readme_shows_what_the_demo_prints(capsys):
    runpy.run_path(str(ROOT / "scripts" / "demo.py"))["main"]()
    printed = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    written = {line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()}
    assert [line for line in printed if line not in written] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", *(f"metrics/{f.name}/README.md" for f in METRICS)])
def test_links_lead_somewhere(name):
    path = ROOT / name
    # `make benchmark` writes BENCHMARKS.md, `make meta-eval` EVIDENCE.md.
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    written = ("BENCHMARKS.md", "EVIDENCE.md")
    assert [link for link in links if not (path.parent / link).exists() and link not in written] == []


def test_versions_agree():
    assert PYPROJECT["project"]["version"] == VERSION
