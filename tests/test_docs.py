"""Examples in documents are run, and facts that stand in two places are compared."""

import doctest
import inspect
import re
import subprocess
import tomllib
from pathlib import Path

import evaluate
import pytest

from scripts.tooling.cards import entries, fill, to_markdown
from text_metrics import __main__ as cli

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
PAGES = sorted((ROOT / "docs").glob("*.md"))
# The examples of this page need optional packages: tests/test_encoders.py runs them.
RUN_ELSEWHERE = ("encoders.md",)
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


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name not in RUN_ELSEWHERE and python_blocks(page.read_text(encoding="utf-8"))],
    ids=lambda page: page.name,
)
def test_page_examples(page):
    run_markdown(page)


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
    arguments = list(inspect.signature(metric.compute).parameters)
    assert [name for name in arguments if f"`{name}` (" not in card] == []
    assert [name for name in arguments if f"{name} (" not in metric.inputs_description] == []


@every_metric
def test_card_has_lists_that_are_made_from_the_help(folder):
    """That they are is checked by `make lint`."""
    card = (folder / "README.md").read_text(encoding="utf-8")
    for section in ("Args", "Returns"):
        assert f"<!-- help: {section} -->\n- `" in card


def test_card_lists_change_with_the_help():
    help_text = """
Args:
    texts (`list[str]`): some
        texts.
    first (array of shape (n, d)), second_2, ... (`int`, default 2): the `others`: all.

Returns:
    score (`float`): the score.

Raises:
    ValueError: never.
"""
    assert entries(help_text, "Args") == [
        "texts (`list[str]`): some texts.",
        "first (array of shape (n, d)), second_2, ... (`int`, default 2): the `others`: all.",
    ]
    assert (
        to_markdown(entries(help_text, "Args")[1])
        == "- `first` (array of shape (n, d)), `second_2`, ... (`int`, default 2): the `others`: all."
    )
    card = "before\n<!-- help: Returns -->\n- `old`: it.\n<!-- /help -->\nafter\n"
    assert fill(card, help_text) == card.replace("- `old`: it.", "- `score` (`float`): the score.")
    with pytest.raises(ValueError, match="no section 'Yields'"):
        entries(help_text, "Yields")


@every_metric
def test_card_cites_what_the_metric_cites(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert evaluate.load(f"metrics/{folder.name}").citation.strip() in card


@every_metric
def test_requirements_are_those_of_the_project(folder):
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").split()
    assert lines
    assert set(lines) <= set(PYPROJECT["project"]["dependencies"])


def test_readme_shows_what_the_demo_prints(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not cli.main(["demo"])
    printed = [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    rows = {line.split()[0]: line for line in printed if "more diverse)" in line}
    assert rows["self_bleu"].endswith("B: fooled by words")
    assert rows["vendi_embed"].endswith("A, rightly")
    assert rows["chamfer_diversity"].endswith("A, rightly")
    written = {line.strip() for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()}
    assert [line for line in printed if line not in written] == []


@pytest.mark.parametrize(
    "path",
    [*ROOT.glob("*.md"), *PAGES, *ROOT.glob("docs/*/*.md"), *ROOT.glob("metrics/*/*.md")],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
    if path.parent.parent.name == "metrics":
        # A card is also read on a Space, where the folder stands alone.
        assert [link for link in links if ".." in link] == []


def test_readme_links_every_page():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"](docs/{page.name})" not in readme] == []


def test_readme_is_short():
    """Longer text belongs to a page of docs/."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", readme, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= 1500


@pytest.mark.parametrize(
    "path", ["BENCHMARKS.md", "EVIDENCE.md", "docs/evidence/kappa.svg", "metrics/gruen/core_inputs.py"]
)
def test_generated_files_are_marked(path):
    words = ["git", "check-attr", "linguist-generated", path, "metrics/_core/core_inputs.py"]
    try:
        printed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"git cannot read the attributes: {error}")
    assert [line.endswith(": set") for line in printed] == [True, False]


def test_versions_agree():
    signature = evaluate.load("metrics/self_bleu").compute(predictions=["a b", "a c"])["signature"]
    assert signature.endswith(f"|version:{PYPROJECT['project']['version']}")
