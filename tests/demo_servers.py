"""Fixtures: the built demos as running servers, and Chromium."""

import contextlib
import multiprocessing
import os
import runpy
import sys

import pytest

from scripts.tooling import build_space
from scripts.tooling.screenshots import CHROMIUM, answering, browser, free_port
from tests.demos import NAMES, SECRET, Demo

# What each demo imports, of which one process serves all by forks.
LIBRARIES = ["evaluate", "gradio", "mcp.server.fastmcp", "plotly.graph_objects", "sentence_transformers", "uvicorn"]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """All demos as they are built, away from the checkout."""
    folder = tmp_path_factory.mktemp("built")
    for name in NAMES:
        build_space.build(name, folder)
    return folder


class Chromium:
    """The browser of a process, which starts when a test first needs it."""

    def __init__(self):
        self.opened, self.stack = None, contextlib.ExitStack()

    def start(self):
        if self.opened is None:
            self.opened = self.stack.enter_context(browser())
        return self.opened

    def close(self):
        self.opened = None
        self.stack.close()


RUNNING = Chromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem):
    """Close the browser before a test that needs neither it nor a demo: Playwright keeps an event loop running."""
    try:
        return (yield)
    finally:
        if not {"demo", "chromium"} & set(getattr(nextitem, "fixturenames", ())):
            RUNNING.close()


@pytest.fixture
def chromium():
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium-headless-shell")
    return RUNNING.start()


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
    out = os.open(log, os.O_WRONLY | os.O_CREAT)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    os.environ["GRADIO_SERVER_PORT"] = str(port)
    os.chdir(folder)
    sys.path[0] = str(folder)
    runpy.run_path("app.py", run_name="__main__")


@pytest.fixture(scope="session")
def demo(built, request, forks):
    """One running demo; the next starts when its tests are done. It keeps no text of a visitor."""
    name, port, (context, folder) = request.param, free_port(), forks
    log = folder / f"{name}.log"
    process = context.Process(target=run_app, args=(built / name, port, log), daemon=True)
    process.start()
    yield Demo(name, answering(port, process.is_alive, log))
    for page in [page for context in (RUNNING.opened.contexts if RUNNING.opened else []) for page in context.pages]:
        page.close()
    process.terminate()
    process.join(60)
    assert not process.is_alive()
    assert "Finished server process" in log.read_text()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for word in (SECRET, "onerror"):
                assert word.encode() not in content, path
