"""How the folders depend on each other, and that every metric is in each list of metrics."""

import ast
import importlib
import inspect
import itertools
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from importlib.util import resolve_name

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import text_metrics
from tests import test_frozen_scores, test_questions
from tests.conftest import ROOT, metrics_of
from tests.demos import CASES as DEMO_CASES

ROOMS = ("metrics", "scripts", "spaces", "text_metrics")
# Not what is generated from metrics/_core.
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path.name != "core.py"]


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def package_of(path):
    """Return the name of the package of a file: metrics/ is installed as text_metrics.metrics."""
    name = ".".join(path.relative_to(ROOT).parts[:-1])
    return f"text_metrics.{name}" if name.startswith("metrics") else name


def is_module(name):
    """Tell whether a module of this checkout has a name."""
    path = ROOT.joinpath(*name.removeprefix("text_metrics.metrics.").split("."))
    if name.startswith("text_metrics.metrics."):
        path = ROOT / "metrics" / path.relative_to(ROOT)
    return path.with_suffix(".py").is_file()


def imports_of(path):
    """List the imports of a file, anywhere in it: module, imported name or "", and the name that it has in the file."""
    imports = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            imports += [(alias.name, "", alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            module = resolve_name(module, package_of(path)) if node.level else module
            imports += [(module, alias.name, alias.asname or alias.name) for alias in node.names]
    return imports


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


# Imports.


def test_demos_and_metrics_stand_alone():
    """A Space, and the cache of `evaluate`, have no other folder of this checkout than their own."""
    for path in FILES:
        package = package_of(path)
        # The package of metrics is imported with text_metrics only.
        if package.startswith(("spaces", "text_metrics.metrics.")):
            allowed = "spaces" if package.startswith("spaces") else "text_metrics.metrics."
            for module, name, _ in imports_of(path):
                is_of_us = module.split(".")[0] in (*ROOMS, "tests")
                assert not is_of_us or module.startswith(allowed), f"{path} imports {name} from {module}"


def test_private_names_are_not_used_across_folders():
    for path in FILES:
        package = package_of(path)
        modules = {}
        for module, name, bound in imports_of(path):
            is_near = package in (module, module.rpartition(".")[0])
            if module.split(".")[0] in ROOMS and not is_near:
                assert not is_private(name), f"{path} imports {name} from {module}"
                whole = f"{module}.{name}".rstrip(".")
                modules |= {bound: whole} if is_module(whole) else {}
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                owner = modules.get(ast.unparse(node.value))
                assert owner is None, f"{path}:{node.lineno} uses {node.attr} of {owner}"


def test_the_package_uses_the_metrics_through_one_module():
    for path in FILES:
        if path.relative_to(ROOT).parts[0] == "text_metrics" and path.name != "core_api.py":
            used = [module for module, _, _ in imports_of(path) if module.startswith("text_metrics.metrics")]
            assert not used, f"{path} imports {used}: only core_api.py does"


# What reads command lines; the last one has a type of argparse.
OF_COMMAND_LINES = (
    "text_metrics/commands/*",
    "text_metrics/console.py",
    "text_metrics/options.py",
    "*/files/storage.py",
)


def test_only_commands_declare_options():
    for path in FILES:
        inside = path.relative_to(ROOT)
        if inside.parts[0] == "text_metrics" and not any(inside.match(pattern) for pattern in OF_COMMAND_LINES):
            modules = [module for module, _, _ in imports_of(path)]
            assert "argparse" not in modules, f"{path} imports argparse: options belong to commands"


def test_every_warning_is_raised_by_the_function_that_finds_the_line_of_the_user():
    for path in FILES:
        calls = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]
        warned = [
            call.lineno for call in calls if ast.unparse(call.func) in ("warnings.warn", "warnings.warn_explicit")
        ]
        assert not warned or path.name == "core_warnings.py", f"{path}:{warned} must call warn of core_warnings"


def test_every_error_has_a_message():
    """One that is raised without arguments prints as an empty line."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Raise) and node.exc is not None:
                is_class = isinstance(node.exc, ast.Name) and node.exc.id[0].isupper()
                is_empty = isinstance(node.exc, ast.Call) and not (node.exc.args or node.exc.keywords)
                has_message = not is_class and not is_empty
                assert has_message, f"{path}:{node.lineno} raises {ast.unparse(node.exc)}"


# The metrics.


def named_in_readme():
    rows = re.findall(r"\| \[(\w+)\]\(metrics/(\w+)/README\.md\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert all(name == folder for name, folder in rows)
    return [name for name, _ in rows]


def demos_on_the_hub():
    """The names that every demo links to: a Space cannot import the package."""
    (declared,) = (
        node.value
        for node in tree_of(ROOT / "spaces/_kit/server.py").body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEMOS"
    )
    return ast.literal_eval(declared)


def folders_with(room, file):
    return [path.parent.name for path in ROOT.glob(f"{room}/[!_]*/{file}")]


LISTS = {
    "metrics/": lambda: folders_with("metrics", "requirements.txt"),
    "tests/": lambda: [name for name in text_metrics.METRICS if (ROOT / f"tests/test_{name}.py").is_file()],
    "spaces/": lambda: folders_with("spaces", "app.py"),
    "DEMOS of spaces/_kit/server.py": demos_on_the_hub,
    "the table of README.md": named_in_readme,
    "CASES of tests/demos.py": lambda: DEMO_CASES,
    "CALLS of tests/test_frozen_scores.py": lambda: [call[0] for call in test_frozen_scores.CALLS.values()],
}


@pytest.mark.parametrize("place", LISTS)
def test_every_metric_is_in_each_list(place):
    listed = set(LISTS[place]())
    absent = set(text_metrics.METRICS) - listed
    assert not absent, f"{place} lacks {absent}"
    unknown = listed - set(text_metrics.METRICS)
    assert not unknown, f"{place} has {unknown}, which METRICS lacks"


def test_every_metric_of_sets_is_asked_further_questions():
    absent = set(metrics_of("sets")) - {name for name, _ in test_questions.CASES.values()}
    assert not absent, f"CASES of tests/test_questions.py lacks {absent}"


SECTIONS = ["Metric Description", "How to Use", "Inputs", "Output Values", "Limitations and Bias", "Citation(s)"]
SECTIONS += ["Further References"]


@pytest.mark.parametrize("name", text_metrics.METRICS)
def test_every_card_has_the_same_sections(name):
    card = (ROOT / "metrics" / name / "README.md").read_text(encoding="utf-8").splitlines()
    assert card[0] == f"# Metric Card for {name}"
    assert [line[3:] for line in card if line.startswith("## ")] == SECTIONS


distributions = cache(packages_distributions)


def names_of(requirements):
    """Return the normalized names of requirements, without versions and extras."""
    return {canonicalize_name(Requirement(line).name) for line in requirements}


@pytest.mark.parametrize("name", text_metrics.METRICS)
def test_a_metric_requires_what_it_imports(name):
    """Anywhere in its files, but for what an extra brings."""
    folder = ROOT / "metrics" / name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = names_of(itertools.chain(*project["optional-dependencies"].values())) - names_of(project["dependencies"])
    imports = [found for path in folder.glob("*.py") for found in imports_of(path)]
    modules = {module.partition(".")[0] for module, _, _ in imports if not module.startswith("text_metrics")}
    installed = distributions()
    needed = names_of(installed.get(module, [module])[0] for module in modules - sys.stdlib_module_names) - optional
    assert needed == names_of((folder / "requirements.txt").read_text(encoding="utf-8").split())


NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def test_readme_counts_the_metrics():
    page = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    counts = re.findall(rf"\b({'|'.join(NUMBERS)})\b (?:\[[^\]]*\]\([^)]*\) )?metrics\b", page)
    assert {NUMBERS.index(count) for count in counts} <= {len(text_metrics.METRICS)}, f"README counts {counts}"


def test_every_folder_is_a_package_of_the_wheel():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["tool"]["setuptools"]["packages"]
    files = [path for room in ("metrics", "text_metrics") for path in (ROOT / room).rglob("*.*")]
    folders = {package_of(path) for path in files if path.is_file() and "__pycache__" not in path.parts}
    absent = folders - set(declared)
    assert not absent, f"packages of pyproject.toml lacks {absent}"
    unknown = set(declared) - folders
    assert not unknown, f"packages of pyproject.toml has {unknown}, which do not exist"


# The public names.


def imported_for_tools():
    """Return the modules of the names that type checkers and editors see."""
    tree = ast.parse((ROOT / "text_metrics/__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module for node in imports for alias in node.names}


def test_public_names():
    public = set(text_metrics.__all__)
    assert dir(text_metrics) == sorted(public)
    assert {"METRICS", "load", "__version__"} < public
    namespace = {}
    exec("from text_metrics import *", namespace)
    assert namespace.keys() - {"__builtins__"} == public
    seen = imported_for_tools()
    lazy = {name for name in public if callable(namespace[name])} - vars(text_metrics).keys()
    assert seen.keys() == lazy
    for name, module in seen.items():
        assert namespace[name] is getattr(importlib.import_module(module), name)


def test_what_is_public_describes_its_parameters():
    for name in text_metrics.__all__:
        documented = getattr(text_metrics, name)
        if callable(documented):
            section = inspect.getdoc(documented).partition("Parameters\n")[2].partition("\n\n")[0]
            heads = re.findall(r"^\*{0,2}(\w+(?:, \w+)*) :", section, flags=re.MULTILINE)
            described = [parameter for head in heads for parameter in head.split(", ")]
            assert sorted(described) == sorted(inspect.signature(documented).parameters), name
