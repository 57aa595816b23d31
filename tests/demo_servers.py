"""Fixtures: the built demos as running servers, and Chromium."""

import importlib
import multiprocessing
import os
import runpy
import sys

import pytest

from scripts.tooling import build_space
from scripts.tooling.screenshots import CHROMIUM, answering, browser, free_port
from tests.demos import NAMES, SECRET, Demo

# What each demo imports, of which one process serves all by forks.
LIBRARIES = ["evaluate", "gradio", "mcp.server.fastmcp", "plotly.graph_objects", "torch", "uvicorn"]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """All demos as they are built, away from the checkout."""
    folder = tmp_path_factory.mktemp("built")
    for name in NAMES:
        build_space.build(name, folder)
    return folder


@pytest.fixture(scope="module")
def kit(built):
    """The kit as it is built, without a page."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(built / "self_bleu")
        sys.path_importer_cache.clear()
        importlib.import_module("_kit.sets")
        yield importlib.import_module("_kit.page")
    for name in [name for name in sys.modules if name.startswith("_kit")]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def chromium():
    """Chromium, for one file of tests: Playwright keeps an event loop running."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium-headless-shell")
    with browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    """The context of processes that start with the libraries imported, and the folder of their temporary files."""
    folder = tmp_path_factory.mktemp("run")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("TMPDIR", str(folder))
        patch.setenv("GRADIO_TEMP_DIR", str(folder / "files"))
        context.Process(target=os.getpid).start()
    return context, folder


def run_app(folder, port, log):
    """Run a built demo as a Space does, alone in its folder."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    os.environ["GRADIO_SERVER_PORT"] = str(port)
    os.chdir(folder)
    sys.path[0] = str(folder)
    runpy.run_path("app.py", run_name="__main__")


@pytest.fixture(scope="session")
def demo(built, request, forks):
    """One running demo; the next starts when its tests are done. It keeps no text of a visitor."""
    name = request.param
    port = free_port()
    context, folder = forks
    log = folder / f"{name}.log"
    process = context.Process(target=run_app, args=(built / name, port, log), daemon=True)
    process.start()
    yield Demo(name, answering(port, process.is_alive, log), process.pid)
    process.terminate()
    process.join(60)
    assert not process.is_alive()
    assert b"Finished server process" in log.read_bytes()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for word in (SECRET, "onerror"):
                assert word.encode() not in content, path
