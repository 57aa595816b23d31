"""The demos as they are built and published: folders that stand alone, and metrics that `evaluate` loads."""

import ast
import re
import shutil
from itertools import chain

import evaluate
import pytest
from huggingface_hub import metadata_load

from scripts.tooling import build_space
from tests.conftest import ROOT
from tests.demos import CASES, NAMES

pytest_plugins = ["tests.demo_servers"]

ROOMS = ("metrics", "scripts", "spaces", "tests", "text_metrics")
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def test_every_metric_has_a_demo(built):
    metrics = sorted(path.parent.name for path in ROOT.glob("metrics/*/README.md"))
    assert NAMES == sorted(CASES) == sorted(path.name for path in built.iterdir()) == metrics


def test_a_built_demo_imports_nothing_of_the_checkout(built):
    """What the kit needs is copied into its folder; tests/test_structure.py checks the other files."""
    for path in sorted((built / "self_bleu").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules.append(node.module)
            of_checkout = {module for module in modules if module.split(".")[0] in ROOMS}
            assert not of_checkout, f"{path} imports {of_checkout}"


def test_no_private_name_of_a_framework_is_used():
    frameworks = r"\b(gr|gradio|uvicorn|starlette|fastapi)\b[.\w]*\._|\b(demo|app|server)\._"
    for path in ROOT.glob("spaces/**/*.py"):
        assert not re.search(frameworks, path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize("name", NAMES)
def test_front_matter_is_whole_and_the_card_is_below(built, name):
    text = (built / name / "README.md").read_text(encoding="utf-8")
    front, gradio = metadata_load(built / name / "README.md"), build_space.pins()["gradio"]
    fixed = {"sdk": "gradio", "sdk_version": gradio, "python_version": "3.11", "app_file": "app.py"}
    assert fixed.items() <= front.items()
    assert all(front[key] for key in ("title", "emoji", "short_description"))
    assert {front["colorFrom"], front["colorTo"]} <= COLOURS
    assert len(front["short_description"]) <= 60
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert f"# Metric Card for {name}" in text


@pytest.mark.parametrize("name", NAMES)
def test_requirements_are_pinned_and_whole(built, name):
    lines = (built / name / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = [line for line in lines if not line.startswith("--")]
    assert all(line.count("==") == 1 for line in pinned)
    needed = [(ROOT / room / name / "requirements.txt").read_text().split() for room in ("metrics", "spaces")]
    found = {line.split("==")[0].split("[")[0] for line in pinned}
    assert found == {line.split(">")[0].split("[")[0].lower() for line in chain(*needed)}
    assert (built / name / "COMMIT").read_text().strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_built_demo_is_a_metric_from_its_folder(built, load, name):
    """With equal results, but for the last digits of an embedding, which follow the number of threads of a process."""
    metrics = evaluate.load(str(built / name)), load(name)
    found, expected = (metric.compute(**CASES[name].arguments) for metric in metrics)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        numeric = isinstance(value, float | list)
        assert found[key] == (pytest.approx(value, abs=1e-6) if numeric else value), key


def test_links_lead_to_the_card_the_paper_and_the_other_demos(kit, monkeypatch):
    """Those of a duplicate lead to its own card, and to the demos beside its origin."""
    paper, hub = ["https://arxiv.org/abs/2210.02410"], "https://huggingface.co/spaces"
    own = [("Metric card", "/card"), ("arXiv 2210.02410", *paper)]
    assert kit.server.links("self_bleu", paper, "") == own
    monkeypatch.setenv("SPACE_ID", "someone/mine")
    for front, owner in (("title: a\n", "someone"), ("title: a\nduplicated_from: maker/self_bleu\n", "maker")):
        links = kit.server.links("self_bleu", paper, f"---\n{front}---\n\n# Card")
        others = [(name, f"{hub}/{owner}/{name}") for name in NAMES if name != "self_bleu"]
        assert links == [("Metric card", f"{hub}/someone/mine/blob/main/README.md"), own[1], *others]


def test_a_folder_of_another_kind_is_not_built_over(tmp_path):
    (tmp_path / "self_bleu").mkdir()
    (tmp_path / "self_bleu" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="not an earlier build of a demo"):
        build_space.build("self_bleu", tmp_path)
    assert (tmp_path / "self_bleu" / "mine.txt").read_text() == "mine"
    with pytest.raises(ValueError, match=r"name must be one of .*Got '\.\./x'"):
        build_space.build("../x", tmp_path)


def test_a_folder_as_encoder_is_not_built(tmp_path, monkeypatch):
    """A Space would not have it."""
    spaces = tmp_path / "spaces"
    shutil.copytree(build_space.SPACES, spaces)
    monkeypatch.setattr(build_space, "SPACES", spaces)
    scoring = spaces / "_kit" / "scoring.py"
    code = scoring.read_text(encoding="utf-8")
    scoring.write_text(re.sub(r"^MODEL\b.*$", f"MODEL = {str(spaces)!r}", code, flags=re.MULTILINE), encoding="utf-8")
    with pytest.raises(ValueError, match="MODEL"):
        build_space.build("vendi_embed", tmp_path / "built")
