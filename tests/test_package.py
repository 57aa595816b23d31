"""The package `text_metrics`: in a checkout, and as a wheel that is built and used in a fresh environment, offline."""

import ast
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import venv
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

import text_metrics
from tests import programs
from tests.conftest import METRICS, ROOT
from text_metrics.__main__ import COMMANDS, main

TEXTS = ["The kettle is on the stove.", "A dog barks at the sea.", "purple the of seven eats clock a."]


def test_a_metric_is_loaded_by_its_name(load):
    result = text_metrics.load("self_bleu").compute(predictions=TEXTS)
    assert result == load("self_bleu").compute(predictions=TEXTS)
    assert text_metrics.load("self_bleu", experiment_id="mine").experiment_id == "mine"
    assert tuple(sorted(path.parent.name for path in METRICS.glob("[!_]*/requirements.txt"))) == text_metrics.METRICS
    with pytest.raises(ValueError, match="'vendi_embed'"):
        text_metrics.load("vendi")


def use_evaluators(first_use):
    """Load a metric as in a new process, and use the evaluators; returns what failed."""
    for name in list(sys.modules):
        if name.split(".")[0] in ("evaluate", "text_metrics") or name.startswith("transformers.pipelines"):
            del sys.modules[name]
    importlib.import_module("text_metrics").load("self_bleu").compute(predictions=["a b", "a c"], max_order=1)
    assert "transformers.pipelines" not in sys.modules
    exec(first_use, {})
    evaluate = sys.modules["evaluate"]
    from evaluate.evaluator import TextClassificationEvaluator
    from evaluate.evaluator.base import Evaluator

    for make in (evaluate.evaluator, evaluate.evaluation_suite.evaluator):
        made = make("sentiment-analysis")
        assert type(made) is TextClassificationEvaluator is evaluate.TextClassificationEvaluator
        assert isinstance(made, Evaluator)
        assert Evaluator is evaluate.Evaluator
    tree = ast.parse(Path(evaluate.__file__).read_text(encoding="utf-8"))
    imported = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    names = {alias.name for node in imported for alias in node.names} - {"*"}
    assert {"evaluator", "EvaluationSuite", "load"} <= names
    assert all(getattr(evaluate, name) is not None for name in names)
    assert not hasattr(evaluate, "absent")
    return "done"


@pytest.mark.slow
@pytest.mark.parametrize(
    "first_use",
    [
        "from evaluate.evaluator import SUPPORTED_EVALUATOR_TASKS",
        "import evaluate.evaluator as function; function('text-classification')",
    ],
)
def test_load_imports_no_pipelines_and_leaves_the_evaluators_usable(first_use):
    assert programs.in_fork(use_evaluators, first_use) == "done"


def test_the_command_line_lists_its_commands(capsys):
    for words, code in ((["--help"], "0"), ([], "0"), (["scores"], "2")):
        with pytest.raises(SystemExit, match=code):
            main(words)
    out, err = capsys.readouterr()
    assert all(out.count(f"\n    {name}") == 2 for name in COMMANDS)
    assert "'scores'" in err


# Of each command, words that name a file that does not exist.
ABSENT = {
    "score": "absent.jsonl --metric vendi_embed --text-key texts",
    "compare": "absent.jsonl absent.jsonl --metric gruen --by-line",
    "report": "a=absent.jsonl b=absent.jsonl --text-key texts --by-line",
    "choose": "absent.jsonl --text-key texts --keep 1",
    "probe": "report absent.jsonl absent.jsonl",
    "cluster-answers": "absent.jsonl --out out.jsonl --model m",
    "meta-eval": "absent.jsonl",
    "rate-quality": "absent.jsonl --out out.jsonl --model m",
}
# What takes long to import.
HEAVY = ("datasets", "evaluate", "matplotlib", "nltk", "pandas", "scipy.stats", "sklearn", "torch", "transformers")
STARTED = """
import json, sys
from text_metrics.__main__ import COMMANDS, main
absent, heavy = json.loads(sys.argv[1])
calls = [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]
calls += [[name, *words.split()] for name, words in absent.items()]
# The names of metrics are known without them.
calls.append("score pyproject.json --metric vendi --text-key texts".split())
for words in calls:
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    imported = [name for name in heavy if name in sys.modules]
    assert (code, imported) == (0 if words[-1] in ("--help", "--version") else 2, []), words
"""


def test_help_and_bad_paths_import_nothing_heavy(tmp_path):
    (tmp_path / "pyproject.json").write_text("{}", encoding="utf-8")
    done = programs.run(STARTED, json.dumps([ABSENT, HEAVY]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(ABSENT) == set(COMMANDS) - {"demo"}
    assert done.stderr.count("absent.jsonl") == len(ABSENT)
    assert "'vendi_embed'" in done.stderr


def test_the_version_is_that_of_the_signatures(load, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"text-metrics {text_metrics.__version__}\n"
    signature = load("self_bleu").compute(predictions=TEXTS)["signature"]
    assert signature.endswith(f"|version:{text_metrics.__version__}")
    with pytest.raises(AttributeError, match="no attribute 'versions'"):
        _ = text_metrics.versions


def test_the_metrics_of_the_package_share_one_core():
    for name in text_metrics.METRICS:
        core = importlib.import_module(f"text_metrics.metrics.{name}.core")
        for module, shared in (
            ("core_inputs", "LIMITS"),
            ("core_intervals", "Estimate"),
            ("core_metric", "TextMetric"),
        ):
            original = importlib.import_module(f"text_metrics.metrics._core.{module}")
            assert getattr(core, shared) is getattr(original, shared)
    with pytest.raises(ModuleNotFoundError, match="absent"):
        importlib.import_module("text_metrics.metrics.gruen.absent")
    # A module of another package with such a name.
    assert importlib.import_module("matplotlib.style.core").__name__ == "matplotlib.style.core"


def start_without_extras(*words):
    sys.modules |= dict.fromkeys(("openai", "ray"))  # as if they were not installed
    for name in [name for name in sys.modules if name.split(".")[0] == "text_metrics"]:
        del sys.modules[name]
    command_line = importlib.import_module("text_metrics.__main__")
    for module, _ in command_line.COMMANDS.values():
        importlib.import_module(f"text_metrics.commands.{module}")
    with redirect_stderr(io.StringIO()) as shown:
        return command_line.main([*words, "--model", "m", "--base-url", "http://127.0.0.1:9/v1"]), shown.getvalue()


def test_commands_start_without_the_extras(tmp_path):
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps(TEXTS[0]) + "\n", encoding="utf-8")
    words = ("rate-quality", str(texts), "--out", str(tmp_path / "rated.jsonl"))
    code, shown = programs.in_fork(start_without_extras, *words)
    assert code == 2
    assert 'pip install "text-metrics[judge]"' in shown


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """An environment with the wheel, and access to the dependencies of this one."""
    pytest.importorskip("setuptools", reason="setuptools is not installed, which builds the wheel")
    folder = tmp_path_factory.mktemp("package")
    # A copy, since setuptools leaves build/ in the folder that it builds.
    for name in ("metrics", "text_metrics"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source" / name)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    offline = ["--no-index", "--no-deps"]
    run([*pip, "wheel", *offline, "--no-build-isolation", "-w", folder / "wheels", folder / "source"], folder)
    (wheel,) = (folder / "wheels").iterdir()
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env/bin/python"
    run([*pip, "--python", python, "install", *offline, wheel], folder)
    (packages,) = (folder / "env").glob("lib/*/site-packages")
    # Where the dependencies are, which need not be the folder of this environment.
    (packages / "dependencies.pth").write_text(str(Path(np.__file__).parents[1]), encoding="utf-8")
    return folder


def run(words, folder):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    (folder / "elsewhere").mkdir(exist_ok=True)
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder / "elsewhere",
        env={**environment, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


USE = """
import importlib, json, sys
import text_metrics
from text_metrics.__main__ import COMMANDS
texts = json.loads(sys.argv[1])
results = {name: text_metrics.load(name).compute(predictions=texts) for name in ("gruen", "vendi_embed")}
for module, _ in COMMANDS.values():
    importlib.import_module(f"text_metrics.commands.{module}")
ours = [module for name, module in sys.modules.items() if name.startswith("text_metrics.")]
files = [module.__file__ for module in ours if module.__file__]
print(json.dumps({"root": str(text_metrics.FOLDER.parent), "files": files, "results": results}))
"""


@pytest.mark.slow
def test_the_wheel_works_elsewhere(load, fresh):
    said = json.loads(run([fresh / "env/bin/python", "-c", USE, json.dumps(TEXTS)], fresh).splitlines()[-1])
    assert said["root"].startswith(str(fresh / "env"))
    # The commands, and all that they import, are those of the wheel.
    assert all(file.startswith(said["root"]) for file in said["files"])
    for name, result in said["results"].items():
        assert result == load(name).compute(predictions=TEXTS)

    data = fresh / "data.jsonl"
    data.write_text(json.dumps({"texts": TEXTS}) + "\n", encoding="utf-8")
    command = ["score", data, "--metric", "self_bleu", "--text-key", "texts", "--out", fresh / "scored.jsonl"]
    summary = json.loads(run([fresh / "env/bin/text-metrics", *command], fresh))
    assert summary["self_bleu"] == load("self_bleu").compute(predictions=TEXTS)["self_bleu"]
    assert "cluster-answers" in run([fresh / "env/bin/text-metrics", "--help"], fresh)


# What the wheel needs is not read, so that this takes seconds.
MYPY = """
[mypy]
python_version = 3.11
follow_imports = skip
[mypy-text_metrics.*]
follow_imports = silent
"""


@pytest.mark.slow
def test_a_program_of_a_user_is_checked_by_mypy(fresh, request):
    """The package says by py.typed that it has types; otherwise, mypy knows none of its names."""
    (fresh / "mypy.ini").write_text(MYPY, encoding="utf-8")
    # A line with a mistake ends with the kind of error that mypy must name, and no other line has any.
    program = shutil.copy(ROOT / "tests/data/typed_program.txt", fresh / "program.py")
    cache = request.config.cache.mkdir("mypy")
    words = [sys.executable, "-m", "mypy", "--config-file", fresh / "mypy.ini", "--cache-dir", cache, "--no-pretty"]
    words += ["--python-executable", fresh / "env/bin/python", "program.py"]
    done = subprocess.run(list(map(str, words)), cwd=fresh, capture_output=True, text=True, check=False)
    found = re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, flags=re.MULTILINE)
    lines = [line.partition("  # ")[2] for line in program.read_text(encoding="utf-8").splitlines()]
    expected = [(str(number), kind) for number, kind in enumerate(lines, 1) if kind]
    assert found == expected, done.stdout + done.stderr


@pytest.mark.slow
def test_the_wheel_holds_the_files_of_the_checkout(fresh):
    (packages,) = (fresh / "env").glob("lib/*/site-packages/text_metrics")
    held = files_of(packages)
    product = files_of(ROOT / "text_metrics")
    metrics = files_of(METRICS)
    assert held == product | {f"metrics/{name}" for name in metrics if name.endswith((".py", ".safetensors", ".md"))}
    for name in held:
        origin = ROOT if name.startswith("metrics/") else ROOT / "text_metrics"
        assert (packages / name).read_bytes() == (origin / name).read_bytes()
    (metadata,) = packages.parent.glob("text_metrics-*/METADATA")
    described = metadata.read_text(encoding="utf-8")
    assert "\n# Metrics for generated text\n" in described
    assert not re.search(r"\]\((?!https?://|#)", described)


def files_of(folder):
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {file.as_posix() for file in files if "__pycache__" not in file.parts}
