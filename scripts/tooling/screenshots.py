"""Run the built demos and take screenshots of each, opened and with a result, on a laptop and a phone, light and dark.

They are in build/screenshots, and one of each demo in docs/screenshots. Needs chromium-headless-shell.

    python -m scripts.tooling.screenshots [name ...]
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from scripts.tooling.build_space import BUILD, ROOT, build, space_names
from text_metrics.console import Parser

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
LAPTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SECONDS_TO_START = 240
SECONDS_TO_ANSWER = 120


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def answering(port: int, is_alive: Callable[[], bool], log: Path) -> str:
    """Wait until a demo answers at a port; returns its address."""
    url = f"http://127.0.0.1:{port}/"
    end = time.monotonic() + SECONDS_TO_START
    while is_alive() and time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return url
        time.sleep(0.2)
    raise RuntimeError(f"The demo did not start:\n{log.read_text(errors='replace')[-4_000:]}")


@contextlib.contextmanager
def served(folder: Path, log: Path) -> Iterator[str]:
    """Run a built demo as a Space does, alone in its folder; yields its address."""
    port = free_port()
    settings = os.environ | {"GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    with log.open("a") as out:
        process = subprocess.Popen([sys.executable, "app.py"], cwd=folder, env=settings, stdout=out, stderr=out)
        try:
            yield answering(port, lambda: process.poll() is None, log)
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium, without its sandbox, which does not work for root, as which CI runs."""
    with sync_playwright() as p, p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as opened:
        yield opened


def open_page(opened: Any, url: str, size: dict[str, int], scheme: str = "light") -> Any:
    """Open a demo in a window of the given size, and wait until it shows its first result."""
    page = opened.new_page(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(1000 * SECONDS_TO_ANSWER)
    page.goto(f"{url}?__theme={scheme}")
    page.get_by_role("button", name="Score", exact=True).wait_for()
    page.locator("#answer [data-token]").wait_for()
    return page


def click_example(page: Any) -> None:
    """Click the first example and wait for its answer and its figures."""
    page.locator(".tm-examples button").first.click()
    page.locator("#answer [data-value]").first.wait_for()
    wait_for_figures(page)


def wait_for_figures(page: Any) -> None:
    """Wait until every panel that is shown has its content."""
    page.locator(".tm-picture:visible").first.wait_for()
    page.wait_for_function("[...document.querySelectorAll('.tm-picture .empty')].every(place => !place.offsetParent)")


def main() -> None:
    """Run the command."""
    parser = Parser(__doc__)
    parser.add_argument("names", nargs="*", default=space_names(), help=f"of {', '.join(space_names())}")
    (states := BUILD / "screenshots").mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().names:
        with served(build(name), states / f"{name}.log") as url, browser() as opened:
            for (device, size), scheme in product((("laptop", LAPTOP), ("phone", PHONE)), ("light", "dark")):
                page = open_page(opened, url, size, scheme)
                path = states / f"{name}-{device}-{scheme}"
                wait_for_figures(page)
                page.screenshot(path=f"{path}-opened.png")
                click_example(page)
                page.screenshot(path=f"{path}-shown.png")
                page.screenshot(path=f"{path}-result.png", full_page=True)
        shutil.copyfile(states / f"{name}-laptop-light-opened.png", ROOT / "docs" / "screenshots" / f"{name}.png")


if __name__ == "__main__":
    main()
