"""The demos as they are served, used as a person would: in Chromium.

Each number on a page is compared with what `compute` gives for the same input.
"""

import csv
import io
import json

import pytest

from scripts.tooling.screenshots import LAPTOP, PHONE, click_example, open_page, wait_for_figures
from tests.demos import CASES, in_every_demo

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow


def expect_numbers(page, expected):
    """Wait until the page shows these numbers: the embeddings of a batch may differ in the last digits."""
    page.wait_for_function(
        """expected => {
            const found = [...document.querySelectorAll("#answer [data-value]")].map(item => +item.dataset.value);
            return found.length === expected.length && found.every((x, i) => Math.abs(x - expected[i]) < 1e-5);
        }""",
        arg=expected,
    )
    shown = page.locator("#answer [data-value]").all_inner_texts()
    assert [float(text.replace("−", "-")) for text in shown] == pytest.approx(expected, abs=0.0051)


def press_score(page, name="Score"):
    page.get_by_role("button", name=name, exact=True).click()


def write(page, texts):
    for box, text in zip(page.locator(".tm-input textarea").all(), texts, strict=True):
        box.fill(text)


def download(page, label):
    """Click a button when its file is there, and return the name and the text of what it downloads."""
    page.get_by_role("button", name=label).scroll_into_view_if_needed()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=label).click()
    with open(waiting.value.path(), encoding="utf-8-sig") as file:
        return waiting.value.suggested_filename, file.read()


def faults_of(page, state, part=None):
    """List what axe finds to be serious, in the whole page or a part of it."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (state, violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
        for violation in Axe().run(page, context=part).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


@in_every_demo
def test_a_visit(demo, chromium, load):
    """Nothing, then texts with markup, a setting, a file, downloads, and an example, on a laptop."""
    case, compute = CASES[demo.name], load(demo.name).compute
    expected = case.numbers(compute(**case.arguments))
    page = open_page(chromium, demo.url, LAPTOP)
    requests = []
    page.on("request", lambda request: requests.append(request.url))

    press_score(page)
    page.get_by_role("alert").first.wait_for()
    faults = faults_of(page, "error", "#answer")

    write(page, case.typed)
    press_score(page)
    expect_numbers(page, expected)
    wait_for_figures(page)
    faults += faults_of(page, "result")
    page.get_by_role("tab", name="File").click()
    faults += faults_of(page, "file", ".tm-input")
    page.get_by_role("tab", name="Write").click()
    page.locator(".tm-input textarea").first.press("Enter")
    assert "tm-old" in page.locator("body").get_attribute("class")

    if case.setting:
        label, name, value = case.setting
        page.get_by_role("button", name="More settings").click()
        # What was just opened listens to events a moment later.
        page.wait_for_timeout(500)
        number = page.get_by_label(f"number input for {label}")
        number.fill(f"{value:g}")
        number.press("Enter")
        expect_numbers(page, case.numbers(compute(**case.arguments, **{name: value})))

    page.get_by_role("tab", name="File").click()
    page.locator(".tm-input input[type=file]").set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": case.file.encode()}
    )
    page.get_by_text("mine").first.wait_for()
    press_score(page, "Score the file")
    page.wait_for_function("() => !document.body.classList.contains('tm-old')")
    if case.setting:
        expected = case.numbers(compute(**case.arguments, **{case.setting[1]: case.setting[2]}))
    expect_numbers(page, expected)
    name, text = download(page, "Result as JSON")
    assert name.startswith(demo.name)
    assert case.numbers(json.loads(text)) == pytest.approx(expected, abs=1e-5)
    name, text = download(page, "Details as CSV")
    assert name.endswith(".csv")
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "-")) and cell.strip("-0123456789.e")]
    assert page.evaluate("window.broken") is None
    assert page.locator("#answer img, .tm-picture img, .js-plotly-plot .main-svg a, .tm-picture td b").count() == 0

    click_example(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]
    page.close()
    assert not faults, "\n".join(map(str, faults))
    assert all(url.startswith((demo.url, "data:", "blob:")) for url in requests)


@in_every_demo
def test_a_visit_by_phone(demo, chromium, load):
    """By the keyboard, in the dark."""
    case = CASES[demo.name]
    page = open_page(chromium, demo.url, PHONE, "dark")
    page.locator(".tm-input textarea").first.focus()
    for i, text in enumerate(case.typed):
        if i:
            page.keyboard.press("Tab")
        page.keyboard.insert_text(text)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "Score"
    page.keyboard.press("Enter")
    expect_numbers(page, case.numbers(load(demo.name).compute(**case.arguments)))
    # The answer comes into view by itself, and nothing is wider than the window.
    page.wait_for_function("document.getElementById('answer').getBoundingClientRect().top < window.innerHeight / 2")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    wait_for_figures(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    faults = faults_of(page, "dark")
    page.close()
    assert not faults, "\n".join(map(str, faults))
