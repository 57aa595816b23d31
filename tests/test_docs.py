"""Examples and commands in documents are run, and what they name exists."""

import doctest
import re
import shlex
import shutil
from pathlib import Path

import evaluate
import pytest

from tests.conftest import ROOT
from text_metrics.__main__ import COMMANDS
from text_metrics.__main__ import main as text_metrics
from text_metrics.console import EXIT_CODES

METRICS = sorted(path.parent for path in ROOT.glob("metrics/*/*.py") if path.stem == path.parent.name)
PAGES = sorted((ROOT / "docs").glob("*.md"))
# Their programs need optional packages: the tests of what they show run them.
RUN_ELSEWHERE = ("cluster.md", "training.md")


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


PYTHON = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


DESCRIBED = [ROOT / "README.md", *PAGES]
DESCRIBED += [folder / "README.md" for folder in METRICS]
WITH_EXAMPLES = []
for page in DESCRIBED:
    if page.name not in RUN_ELSEWHERE and PYTHON.search(page.read_text(encoding="utf-8")):
        WITH_EXAMPLES.append(page)


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_of_pages_and_cards(path):
    blocks = PYTHON.findall(path.read_text(encoding="utf-8"))
    for block in blocks:
        assert block.startswith(">>> "), f"{path}: a python block is a doctest, so that it is run:\n{block}"
    assert run_examples("\n".join(blocks), str(path)) > 0


@pytest.mark.parametrize("folder", METRICS, ids=lambda folder: folder.name)
def test_card_and_help(folder):
    """The arguments in both are filled from the declarations, which tests/test_invariants.py reads."""
    assert PYTHON.search((folder / "README.md").read_text(encoding="utf-8"))
    metric = evaluate.load(f"metrics/{folder.name}")
    assert run_examples(metric.inputs_description, folder.name) > 0
    assert metric.inputs_description in metric.compute.__doc__
    assert metric.inputs_description in metric.add.__doc__
    assert metric.citation.strip() in (folder / "README.md").read_text(encoding="utf-8")


README = (ROOT / "README.md").read_text(encoding="utf-8")
# Commands after a `$`, each with the output that is shown below it.
SHOWN = [
    command.partition("\n")[::2]
    for block in re.findall(r"^```console\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=lambda text: text.split("\n")[0][:20])
def test_readme_commands(command, output, tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    program, *words = shlex.split(command)
    assert program == "text-metrics"
    assert text_metrics(words) == 0
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    printed = capsys.readouterr().out.strip().replace("\N{NO-BREAK SPACE}", " ") + "\n"
    assert doctest.OutputChecker().check_output(output, printed, flags), printed


def test_readme_names_the_commands_of_a_fresh_machine():
    """Where a newcomer installs: each is a target that makes its own environment."""
    (install,) = re.findall(r"^## Install\n(.*?)^## ", README, flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"(?:^|`)(make [a-z-]+)", install, flags=re.MULTILINE)
    assert set(named) >= {"make demo", "make test"}


DOCUMENTS = [path for pattern in ("*.md", "docs/**/*.md", "metrics/*/*.md") for path in ROOT.glob(pattern)]
every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@every_document
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []
    if path.parent.parent.name == "metrics":
        # A card is also read on a Space, where the folder stands alone.
        assert [link for link in links if ".." in link] == []


def code_of(path: Path) -> list[str]:
    """List what is set in code font: the lines of blocks, and the spans in the prose."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(r"`([^`\n]+)`", prose)


def test_exit_codes_are_documented():
    page = (ROOT / "docs/watch.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, flags=re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


def is_run_by_python(module: str) -> bool:
    file = ROOT / module.replace(".", "/")
    return file.with_suffix(".py").is_file() or (file / "__main__.py").is_file()


@every_document
def test_commands_exist(path):
    code = code_of(path)
    modules = [name for line in code for name in re.findall(r"python -m (scripts\.[\w.]+)", line)]
    assert [module for module in modules if not is_run_by_python(module)] == []
    # A script is run as a module, not by its path.
    assert [line for line in code if re.search(r"python scripts/|scripts/\S+\.py -", line)] == []
    commands = [name for line in code for name in re.findall(r"(?:^|\s)text-metrics ([a-z][\w-]*)", line)]
    assert [name for name in commands if name not in COMMANDS] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z][\w-]*):", makefile, flags=re.MULTILINE)
    made = [name for line in code for words in re.findall(r"^make((?: [a-z][\w-]*)+)", line) for name in words.split()]
    assert [name for name in made if name not in targets] == []
