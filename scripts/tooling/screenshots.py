"""Run the built demos and take a screenshot of each state: empty, table, result, error and odd texts.

They are written to build/screenshots, and one of each demo to docs/screenshots, for the README. Needs Chromium
(`apt-get install chromium-headless-shell`).

    python -m scripts.tooling.screenshots [name ...]
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from scripts.tooling.build_space import BUILD, ROOT, build, space_names
from text_metrics.commands.shared.command import make_parser

# The shell has the same engine without a browser's own windows, which take a third of the time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
NO_CHROMIUM = "Chromium is not installed: apt-get install chromium-headless-shell"
DESKTOP, PHONE = {"width": 1440, "height": 1000}, {"width": 390, "height": 844}
LAPTOP = {"width": 1280, "height": 900}
_START_SECONDS = 180

_ARABIC = "مرحبا بالعالم الجميل.\nالجو جميل اليوم في الحديقة.\nتقرأ أختي كتابا عن البحر."
_UNKNOWN = f"😀\n🎉\n{'A' * 60}\n{'B' * 60}"
_SETS = "A man walks his dog.\nRain fell all night.\n\nShe sings.\nShe swims.\nShe sang.\n\nHe runs.\nHe ran."
_MANY = "\n".join(
    f"The {i} {'dogs' if i % 3 else 'cats'} see {7 * i} {'ships' if i % 2 else 'cars'}." for i in range(200)
)
# What is typed into the boxes.
_TYPED = {
    "vendi_embed": {"unknown": [_UNKNOWN], "sets": [_SETS], "many": [_MANY]},
    "chamfer_diversity": {"unknown": [_ARABIC], "sets": [_SETS], "many": [_MANY]},
    "self_bleu": {"short": ["good morning\n" * 3], "sets": [_SETS], "many": [_MANY], "arabic": [_ARABIC]},
    "probeval": {
        "many": [_MANY.replace("The ", "").replace(" see", ""), _MANY[:2_000], "birds × 30\ncar × 10"],
        "arabic": [_ARABIC, _ARABIC.split("\n")[0] + " × 20"],
    },
    "gruen": {
        "unknown": [_ARABIC.replace("\n", " ")],
        "repeats": [" ".join(f"A cat sat on a mat {i % 3}." for i in range(150))],
        "sets": [_SETS],
    },
}


class Demo(NamedTuple):
    """A running demo: its address, its log file and its process."""

    name: str
    url: str
    log: Path
    pid: int


@contextlib.contextmanager
def served(folder: Path, log: Path, **environment: str) -> Iterator[Demo]:
    """Run a built demo as a Space does: alone, in its folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "GRADIO_SERVER_PORT": str(port),
        "HF_HUB_OFFLINE": "1",
        # The log has what was printed before a crash, and where a crash in C happened.
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        **environment,
    }
    with log.open("w") as out:
        process = subprocess.Popen([sys.executable, "app.py"], cwd=folder, env=settings, stdout=out, stderr=out)
        try:
            url = f"http://127.0.0.1:{port}/"
            _wait(url, process, log)
            yield Demo(folder.name, url, log, process.pid)
        finally:
            end = process.poll()
            process.terminate()
            process.wait(timeout=30)
        if end is not None:
            raise RuntimeError(f"the server of {folder.name} died: {_how(end)}. The end of its log:\n{_tail(log)}")


def _how(end: int) -> str:
    """Name the signal or the exit code by which a process ended."""
    return f"signal {-end} ({signal.strsignal(-end)})" if end < 0 else f"exit code {end}"


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4_000:]


def _wait(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (end := process.poll()) is not None:
            raise RuntimeError(f"{url} did not start: {_how(end)}.\n{_tail(log)}")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url, timeout=5).close()
            return
        time.sleep(0.2)
    raise RuntimeError(f"{url} did not start:\n{log.read_text()}")


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Start Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Its sandbox does not work for root, as which CI runs. One process draws all pages, so that it compiles the
        # scripts of Gradio and Plotly once. The compilers that optimize scripts take more time than they save in pages
        # that are open for seconds.
        flags = ["--no-sandbox", "--process-per-site", "--js-flags=--no-maglev --no-turbofan"]
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        try:
            yield opened
        finally:
            opened.close()


def open_page(opened: Any, demo: Demo, size: dict[str, int], scheme: str = "light") -> Any:
    """Open a demo in a new session and a window of the given size."""
    # All pages of a browser share its cache, and a page that stays open keeps the process that draws them.
    if not opened.contexts:
        opened.new_context().new_page().goto(f"{demo.url}robots.txt")
    page = opened.contexts[0].new_page()
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_default_timeout(60_000)
    page.goto(f"{demo.url}?__theme={scheme}")
    page.get_by_role("button", name="Score", exact=True).wait_for()
    return page


def click_example(page: Any, place: int = 0) -> None:
    """Click an example and wait for its answer and its figures."""
    page.locator(".tm-examples button").nth(place).click()
    page.locator("#answer [data-value]").first.wait_for()
    page.locator(".js-plotly-plot .plot-container").first.wait_for()


def take_all(opened: Any, demo: Demo, to: Path) -> None:
    """Take a screenshot of each state."""
    for device, size in (("desktop", DESKTOP), ("phone", PHONE)):
        for scheme in ("light", "dark"):
            page = open_page(opened, demo, size, scheme)
            page.wait_for_timeout(500)
            page.screenshot(path=to / f"{demo.name}-{device}-{scheme}-empty.png")
            page.get_by_role("button", name="Score", exact=True).click()
            page.get_by_role("alert").first.wait_for()
            page.screenshot(path=to / f"{demo.name}-{device}-{scheme}-error.png")
            click_example(page)
            # Plotly draws asynchronously.
            page.wait_for_timeout(1500)
            page.screenshot(path=to / f"{demo.name}-{device}-{scheme}-result.png", full_page=True)
            page.close()


def take_typed(opened: Any, demo: Demo, to: Path) -> None:
    """Take screenshots of the table, of two models beside people, and of odd texts."""
    for device, size, scheme in (("laptop", LAPTOP, "light"), ("phone", PHONE, "dark")):
        start = f"{demo.name}-{device}-{scheme}"
        page = open_page(opened, demo, size, scheme)
        page.get_by_role("tab", name="Table").click()
        page.locator("#source-1 textarea").fill("text\tset\nRain fell.\t1\nIt snowed.\t2")
        page.locator("#source-1 .tm-read, #source-1 .tm-note").wait_for()
        page.screenshot(path=to / f"{start}-table.png")
        page.close()
        for state, texts in _TYPED[demo.name].items():
            page = open_page(opened, demo, size, scheme)
            for box, text in zip(page.locator(".tm-input textarea").all(), texts, strict=False):
                box.fill(text)
            page.get_by_role("button", name="Score", exact=True).click()
            page.locator("#answer [data-value]").first.wait_for()
            page.wait_for_timeout(2500)
            page.screenshot(path=to / f"{start}-{state}.png", full_page=True)
            page.close()


def for_readme(opened: Any, demo: Demo, to: Path) -> None:
    """Take one screenshot, small enough for the repository."""
    from PIL import Image

    page = open_page(opened, demo, {"width": 1280, "height": 1160})
    click_example(page)
    page.wait_for_timeout(1500)
    path = to / f"{demo.name}.png"
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(128).save(path, optimize=True)


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("names", nargs="*", default=space_names(), help=f"of {', '.join(space_names())}")
    names = parser.parse_args().names
    if CHROMIUM is None:
        parser.error(NO_CHROMIUM)
    states, readme = BUILD / "screenshots", ROOT / "docs" / "screenshots"
    for folder in (states, readme):
        folder.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        for name in names:
            with served(build(name), states / f"{name}.log") as demo:
                take_all(opened, demo, states)
                take_typed(opened, demo, states)
                for_readme(opened, demo, readme)
            print(f"{name}: {states}, {readme / name}.png")


if __name__ == "__main__":
    main()
