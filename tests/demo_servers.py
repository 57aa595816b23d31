"""Fixtures: the built demos as running servers, and Chromium."""

import contextlib

import pytest

from scripts.tooling import build_space
from scripts.tooling.screenshots import CHROMIUM, NO_CHROMIUM, browser, served
from tests.demos import FILES, NAMES, SECRET, SWITCHES


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


@pytest.fixture(scope="session")
def closed_in_the_end():
    yield
    RUNNING.close()


@pytest.fixture
def chromium(closed_in_the_end):
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    return RUNNING.start()


@pytest.fixture(scope="session")
def demo(built, request, tmp_path_factory):
    """One running demo; the next starts when its tests are done."""
    name = request.param
    folder = tmp_path_factory.mktemp("logs")
    log = folder / f"{name}.log"
    with served(built / name, log, GRADIO_TEMP_DIR=str(folder / FILES), **SWITCHES.get(name, {})) as running:
        yield running
    # No text of a visitor is in the log.
    text = log.read_text()
    for word in (SECRET, "council", "kettle", "walks his dog", "onerror"):
        assert word not in text
