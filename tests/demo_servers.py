"""Fixtures: the built demos as running servers, and Chromium."""

import contextlib

import pytest

from scripts.tooling import build_space
from scripts.tooling.screenshots import CHROMIUM, browser, served
from tests.demos import NAMES, SECRET, Demo


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
def demo(built, request, tmp_path_factory):
    """One running demo; the next starts when its tests are done. It keeps no text of a visitor."""
    name, folder = request.param, tmp_path_factory.mktemp("run")
    with served(built / name, folder / "log", TMPDIR=str(folder), GRADIO_TEMP_DIR=str(folder / "files")) as url:
        yield Demo(name, url)
        for page in [page for context in (RUNNING.opened.contexts if RUNNING.opened else []) for page in context.pages]:
            page.close()
    assert "Uvicorn running" in (folder / "log").read_text()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for word in (SECRET, "onerror"):
                assert word.encode() not in content, path
