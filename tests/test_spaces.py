"""The demos as they are served, used as a person would: in Chromium.

Each number on a page is compared with what `compute` gives for the same input.
"""

import ast
import csv
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from scripts.tooling.screenshots import LAPTOP, PHONE, click_example, open_page, wait_for_figures
from tests.demos import CASES, HTTP, SECRET, call, csv_of, in_every_demo

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


def boxes_of(page):
    """Return the boxes of texts and names; a prompt, which is optional, is not one."""
    boxes = page.locator(".tm-input .tabitem [data-testid=textbox]")
    boxes.first.wait_for()
    return boxes.all()


def write(page, texts):
    page.locator(".tm-input .tabitem [data-testid=textbox]").nth(len(texts) - 1).wait_for()
    for box, text in zip(boxes_of(page), texts, strict=True):
        box.fill(text)


def choose_file(page, content):
    page.locator(".tm-input input[type=file]").set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_text("mine").first.wait_for()


def expect_old(page, is_old=True):
    """Wait until the page says, or no longer says, that the input has changed since the result was scored."""
    page.locator("#answer .tm-stale").wait_for(state="visible" if is_old else "hidden")


def set_number(page, label, value):
    """Open the settings, and write a number into one."""
    if not page.get_by_label(f"number input for {label}").is_visible():
        page.get_by_role("button", name="More settings").click()
        # What was just opened listens to events a moment later.
        page.wait_for_timeout(500)
    number = page.get_by_label(f"number input for {label}")
    number.fill(f"{value:g}")
    number.press("Enter")


def download(page, label):
    """Click a link, and return the name and the text of what it downloads."""
    with page.expect_download() as waiting:
        page.get_by_role("link", name=label).click()
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
    expect_old(page, False)
    boxes_of(page)[-1].press("Enter")
    expect_old(page)

    if case.setting:
        label, name, value = case.setting
        set_number(page, label, value)
        expect_numbers(page, case.numbers(compute(**case.arguments, **{name: value})))

    page.get_by_role("tab", name="File").click()
    choose_file(page, case.file)
    press_score(page, "Score the file")
    if case.setting:
        expected = case.numbers(compute(**case.arguments, **{case.setting[1]: case.setting[2]}))
    expect_numbers(page, expected)
    expect_old(page, False)
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
    boxes_of(page)[0].focus()
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


demo_of = pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)


# Notes in each frame what the page shows, and whether as the score of the input.
SEEN = """() => {
    window.seen = [];
    const look = () => {
        const unit = document.querySelector("#answer .tm-number span");
        if (unit) seen.push(unit.textContent + (document.body.classList.contains("tm-old") ? ", as old" : ", as new"));
        requestAnimationFrame(look);
    };
    look();
}"""


@demo_of
def test_a_result_is_marked_if_and_only_if_it_is_of_another_input(demo, chromium):
    """With a queue before it: a second press during a run; then a setting, the text again, and a file."""
    page = open_page(chromium, demo.url, LAPTOP)
    busy = [f"{SECRET} {i} " * 10 for i in range(40)]
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(call, demo, [[busy]]) for _ in range(4)]
        page.evaluate(SEEN)
        write(page, ("", "a cat\na dog", "", ""))
        press_score(page)
        write(page, ("", "a cat\na dog\na cow", "", ""))
        press_score(page)
        page.get_by_text("of 3", exact=True).wait_for()
        assert "of 2, as new" not in page.evaluate("seen")
        expect_old(page, False)
        assert all(isinstance(each.result(), dict) for each in waiting)
    write(page, ("", "a cat\na dog", "", ""))
    expect_old(page)
    set_number(page, "Order q", 2)
    page.get_by_text("of 2", exact=True).wait_for()
    expect_old(page, False)
    page.get_by_role("tab", name="File").click()
    choose_file(page, "text\na cat\na dog\na cow\na hen\n")
    expect_old(page, False)
    press_score(page, "Score the file")
    page.get_by_text("of 4", exact=True).wait_for()
    page.get_by_role("tab", name="Write").click()
    write(page, ("", "another", "", ""))
    expect_old(page, False)
    page.get_by_role("tab", name="File").click()
    page.locator(".tm-input").get_by_label("Clear").first.click()
    expect_old(page)
    choose_file(page, "text\na cat\na dog\na cow\na hen\n")
    expect_old(page, False)
    page.close()


@demo_of
def test_a_reload_keeps_text_and_settings(demo, chromium):
    page = open_page(chromium, demo.url, LAPTOP)
    texts = ("Ü & {x}", f"a {SECRET} 😀\nb", "", '"c" # %\nd')
    write(page, texts)
    set_number(page, "Order q", 2.5)
    page.wait_for_function("() => decodeURIComponent(location.hash).includes('2.5')")
    page.reload()
    page.get_by_role("button", name="Score", exact=True).wait_for()
    page.wait_for_function("() => document.querySelectorAll('.tm-input textarea')[1].value")
    assert tuple(box.input_value() for box in boxes_of(page)) == texts
    press_score(page)
    page.get_by_text("of 2", exact=True).first.wait_for()
    expect_old(page, False)
    assert "q:2.5" in page.locator("#answer pre").first.text_content()
    page.goto(f"{demo.url}#%7Bnot%20ours")
    page.reload()
    page.get_by_role("button", name="Score", exact=True).wait_for()
    assert {box.input_value() for box in boxes_of(page)} == {""}
    page.close()


@in_every_demo
def test_the_code_on_the_page_computes_the_result(demo, chromium, load):
    """Also with a setting, and with texts that are Python syntax."""
    case = CASES[demo.name]
    page = open_page(chromium, demo.url, LAPTOP)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, case.typed)
    press_score(page)
    page.locator("#answer [data-value]").first.wait_for()
    if case.setting:
        set_number(page, case.setting[0], case.setting[2])
        page.wait_for_function(
            "name => document.querySelectorAll('#answer pre')[1].textContent.includes(name)", arg=case.setting[1]
        )
    expect_old(page, False)
    page.get_by_text("Copy the signature and the code").click()
    page.locator(".tm-copy button").nth(1).click()
    page.get_by_role("button", name="Copied").wait_for()
    code, shown = page.evaluate("navigator.clipboard.readText()"), page.locator(".tm-copy pre").first.text_content()
    *lines, last = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(lines, []), "page", "exec"), names)
    result = eval(compile(ast.Expression(last.value), "page", "eval"), names)
    assert result["signature"] == shown
    assert case.numbers(result) == pytest.approx(
        [float(item.get_attribute("data-value")) for item in page.locator("#answer [data-value]").all()], abs=1e-5
    )
    page.close()


@demo_of
def test_many_sets_are_ranked_also_for_a_visitor_who_was_forgotten(demo, chromium):
    """After more sessions than the server remembers, a setting can still be changed, and results be downloaded."""
    page = open_page(chromium, demo.url, LAPTOP)
    page.get_by_role("tab", name="File").click()
    sizes = {"w": 1, "x": 3, "y": 2, "z": 4}
    animals = ["A cat sleeps.", "Shares fell.", "Rain is wet.", "He sings."]
    choose_file(page, csv_of((text, name) for name, n in sizes.items() for text in animals[:n]))
    press_score(page, "Score the file")
    page.locator(".tm-ranked li").nth(3).wait_for()
    assert page.locator(".tm-ranked bdi").all_inner_texts() == ["D: z", "B: x", "C: y", "A: w"]
    for i in range(110):
        posted = HTTP.post(f"{demo.url}gradio_api/call/score", json={"data": [[["a"]]], "session_hash": f"s{i}"})
        assert posted.status_code == 200
        HTTP.get(f"{demo.url}gradio_api/call/score/{posted.json()['event_id']}")
    set_number(page, "Order q", 2)
    page.wait_for_function("() => document.querySelector('#answer pre').textContent.includes('q:2')")
    expect_old(page, False)
    assert page.get_by_role("alert").count() == 0
    assert len(json.loads(download(page, "Result as JSON")[1])["scores"]) == 4
    page.close()


@pytest.mark.parametrize("demo", ["vendi_embed", "chamfer_diversity", "semantic_entropy"], indirect=True)
def test_what_was_asked_is_taken_out(demo, chromium, load):
    page = open_page(chromium, demo.url, LAPTOP)
    question, texts = (
        "Why was she late?",
        ["She was late as she missed the bus.", "She was late as it rained.", "Late? No."],
    )
    write(page, ("", "\n".join(texts), "", ""))
    press_score(page)
    expect_numbers(page, load(demo.name).compute(predictions=texts)["scores"])
    page.get_by_label("What were they asked?").fill(question)
    expect_old(page)
    page.get_by_label("What were they asked?").press("Enter")
    expect_numbers(page, load(demo.name).compute(predictions=texts, contexts=question)["scores"])
    expect_old(page, False)
    assert "contexts:projected" in page.locator("#answer pre").first.text_content()
    page.close()


@pytest.mark.parametrize("demo", ["self_bleu"], indirect=True)
def test_two_zeros_are_no_comparison(demo, chromium, load):
    """No phrase of four words is shared; the texts are compared by the longest phrases that one side shares."""
    texts = ["the red cat sat", "a red cat ran", "one red cat lay here"]
    detail = load(demo.name).compute(predictions=texts, details=True)
    assert detail["self_bleu"] < 1e-6 < 0.1 < detail["self_bleu_2"]
    page = open_page(chromium, demo.url, LAPTOP)
    write(page, ("", "\n".join(texts), "", ""))
    press_score(page)
    verdict = page.locator("#answer .tm-verdict")
    verdict.wait_for()
    assert "phrases of two words" in verdict.inner_text()
    assert "As much" not in verdict.inner_text()
    assert "No phrase of four words is shared" in page.locator("#answer .tm-headline").inner_text()
    assert "nothing repeated" not in page.locator("#answer").inner_text()
    page.close()


@pytest.mark.parametrize("demo", ["gruen"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lower_scores_have_stronger_marks(demo, chromium, scheme):
    page = open_page(chromium, demo.url, LAPTOP, scheme)
    write(
        page,
        ["The council met on Tuesday to decide. It want them bridge the of on. Went cat dog the the house red by."],
    )
    press_score(page)
    page.locator(".tm-marked mark").first.wait_for()
    legend = page.locator(".tm-legend mark").all()
    for _ in range(100):
        # The style of a page that has just opened comes a moment later.
        background = page.evaluate("getComputedStyle(document.querySelector('.tm-picture')).backgroundColor")
        colours = [mark.evaluate("each => getComputedStyle(each).backgroundColor") for mark in legend]
        distances = [colour_distance(colour, background) for colour in colours]
        if 0.02 < distances[0] < distances[1] < distances[2]:
            break
        page.wait_for_timeout(100)
    assert 0.02 < distances[0] < distances[1] < distances[2]
    page.close()


def colour_distance(colour, other):
    """Return how far two CSS colours are apart, channel by channel, each in [0, 1]."""
    channels = []
    for text in (colour, other):
        numbers = [float(number) for number in re.findall(r"[0-9.]+", text.replace("srgb", ""))][:3]
        channels.append([number / 255 for number in numbers] if text.startswith("rgb") else numbers)
    # A style that has not come yet has no numbers.
    return max((abs(a - b) for a, b in zip(*channels, strict=False)), default=0.0)
