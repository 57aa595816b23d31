"""Fixtures: the built demos as running servers, and Chromium."""

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


@pytest.fixture(scope="module")
def chromium():
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with browser() as opened:
        yield opened


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
