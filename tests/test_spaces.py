"""The demos as they are served: used in Chromium as a person would, and by the API and MCP.

Each number is compared with what `compute` gives for the same input.
"""

import ast
import csv
import io
import json
import math
import os
import signal
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from gradio_client import Client

from scripts.tooling.screenshots import LAPTOP, PHONE, click_example, open_page, wait_for_figures
from tests.demos import CASES, EVIL, HTTP, INTERNAL, SECRET, call, in_every_demo, use_mcp

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


@pytest.fixture
def visit(demo, chromium):
    """A function that opens the demo and scores texts, if there are some; the pages are closed after the test."""
    pages = []

    def open_and_score(texts=(), size=LAPTOP, scheme="light"):
        pages.append(page := open_page(chromium, demo.url, size, scheme))
        if texts:
            write(page, texts)
            press_score(page)
            page.wait_for_function("() => !document.body.classList.contains('tm-old')")
        return page

    yield open_and_score
    for page in pages:
        page.close()


def press_score(page, name="Score"):
    page.get_by_role("button", name=name, exact=True).click()


def boxes_of(page):
    """Return the boxes of texts; names and a prompt are among the settings."""
    boxes = page.locator(".tm-input .tabitem [data-testid=textbox]")
    boxes.first.wait_for()
    return boxes.all()


def texts_of(written):
    """Return the texts of what is written into boxes: of four, the first and the third are names."""
    return written[1::2] if len(written) == 4 else written


def write(page, written):
    texts = texts_of(written)
    page.locator(".tm-input .tabitem [data-testid=textbox]").nth(len(texts) - 1).wait_for()
    for box, text in zip(boxes_of(page), texts, strict=True):
        box.fill(text)
    if len(written) == 4 and any(written[::2]):
        open_settings(page, page.get_by_label("Name of A"))
        for letter, name in zip("AB", written[::2], strict=True):
            page.get_by_label(f"Name of {letter}").fill(name)


def open_settings(page, setting):
    """Open the settings, if this one is not visible."""
    if not setting.is_visible():
        page.get_by_role("button", name="More settings").click()
    setting.wait_for()


def expect_units(page, *units):
    """Wait until the page has scores of just these units."""
    page.wait_for_function(
        """expected => {
            const units = [...document.querySelectorAll("#answer .tm-number span")].map(span => span.textContent);
            return units.join() === expected.join();
        }""",
        arg=list(units),
    )


def choose_file(page, content):
    page.locator(".tm-input input[type=file]").set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_text("mine").first.wait_for()


def expect_old(page, is_old=True):
    """Wait until the page says, or no longer says, that the input has changed since the result was scored."""
    page.locator("#answer .tm-stale").wait_for(state="visible" if is_old else "hidden")


def set_number(page, label, value):
    """Open the settings, and write a number into one until the page has it: it listens a moment after it opens."""
    number = page.get_by_label(f"number input for {label}")
    open_settings(page, number)
    for _ in range(100):
        number.fill(f"{value:g}")
        number.press("Enter")
        if value in json.loads(unquote(page.evaluate("location.hash.slice(1)")) or "[]"):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{label} does not become {value}")


def download(page, label):
    """Click a link, and return the name and the text of what it downloads."""
    with page.expect_download() as waiting:
        page.get_by_role("link", name=label).click()
    with open(waiting.value.path(), encoding="utf-8-sig") as file:
        return waiting.value.suggested_filename, file.read()


def result_of_code(page):
    """Copy the signature and the code on the page; returns the signature, and what the code computes."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_text("Copy the signature and the code").click()
    page.locator(".tm-copy button").nth(1).click()
    page.get_by_role("button", name="Copied").wait_for()
    *lines, last = ast.parse(page.evaluate("navigator.clipboard.readText()")).body
    names = {}
    exec(compile(ast.Module(lines, []), "page", "exec"), names)
    result = eval(compile(ast.Expression(last.value), "page", "eval"), names)
    return page.locator(".tm-copy pre").first.text_content(), result


def faults_of(page, state, part=None):
    """List what axe finds to be serious, in the whole page or a part of it."""
    from axe_playwright_python.sync_playwright import Axe

    return [
        (state, violation["id"], [node["html"][:200] for node in violation["nodes"]][:3])
        for violation in Axe().run(page, context=part).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


@in_every_demo
def test_a_visit(demo, visit, load):
    """An example, nothing, texts with markup, a setting, the code, a file, downloads, and an example, on a laptop."""
    case, compute = CASES[demo.name], load(demo.name).compute
    expected = case.numbers(compute(**case.arguments))
    page, requests = visit(), []
    page.on("request", lambda request: requests.append(request.url))
    # The page opens with a result, and its button is in the window.
    assert page.locator("#answer [data-value]").count()
    button = page.get_by_role("button", name="Score", exact=True).bounding_box()
    assert button["y"] + button["height"] <= LAPTOP["height"]

    faults = []
    # An error, and the box of a file, are the same in all demos.
    is_first = demo.name == next(iter(CASES))
    if is_first:
        write(page, [""] * len(case.typed))
        press_score(page)
        page.get_by_role("alert").first.wait_for()
        faults += faults_of(page, "error", "#answer")
        page.get_by_role("tab", name="File").click()
        faults += faults_of(page, "file", ".tm-input")
        page.get_by_role("tab", name="Write").click()

    write(page, case.typed)
    press_score(page)
    expect_numbers(page, expected)
    wait_for_figures(page)
    faults += faults_of(page, "result")
    expect_old(page, False)
    boxes_of(page)[-1].press("Enter")
    expect_old(page)

    if case.setting:
        label, name, value = case.setting
        set_number(page, label, value)
        expected = case.numbers(compute(**case.arguments, **{name: value}))
    else:
        press_score(page)
    expect_numbers(page, expected)
    expect_old(page, False)
    signature, result = result_of_code(page)
    assert result["signature"] == signature
    assert case.numbers(result) == pytest.approx(expected, abs=1e-5)

    page.get_by_role("tab", name="File").click()
    choose_file(page, case.file)
    press_score(page, "Score the file")
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
    assert not faults, "\n".join(map(str, faults))
    assert all(url.startswith((demo.url, "data:", "blob:")) for url in requests)


@pytest.mark.parametrize("demo", ["chamfer_diversity", "self_bleu", "probeval", "gruen"], indirect=True)
def test_a_visit_by_phone(demo, visit, load):
    """By the keyboard, in the dark."""
    case = CASES[demo.name]
    page = visit(size=PHONE, scheme="dark")
    boxes_of(page)[0].focus()
    for i, text in enumerate(texts_of(case.typed)):
        if i:
            page.keyboard.press("Tab")
        page.keyboard.press("ControlOrMeta+a")
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
    assert not faults, "\n".join(map(str, faults))


demo_of = pytest.mark.parametrize("demo", ["vendi_embed"], indirect=True)


ORDINARY = json.loads((Path(__file__).parent / "data" / "ordinary_inputs.json").read_text(encoding="utf-8"))


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
def test_a_result_is_marked_if_and_only_if_it_is_of_another_input(demo, visit):
    """While the server computes: a second press; then a setting, the text again, and a file."""
    page = visit(("", "a cat\na dog\na cow\na hen", "", ""))
    # Then the page has loaded all that it needs.
    expect_units(page, "of 4")
    page.evaluate(SEEN)
    os.kill(demo.process, signal.SIGSTOP)
    try:
        for texts in ("a cat\na dog", "a cat\na dog\na cow"):
            write(page, ("", texts, "", ""))
            press_score(page)
    finally:
        os.kill(demo.process, signal.SIGCONT)
    expect_units(page, "of 3")
    assert "of 2, as new" not in page.evaluate("seen")
    expect_old(page, False)
    write(page, ("", "a cat\na dog", "", ""))
    expect_old(page)
    set_number(page, "Order q", 2)
    expect_units(page, "of 2")
    expect_old(page, False)
    page.get_by_role("tab", name="File").click()
    choose_file(page, "text\na cat\na dog\na cow\na hen\n")
    expect_old(page, False)
    press_score(page, "Score the file")
    expect_units(page, "of 4")
    page.get_by_role("tab", name="Write").click()
    write(page, ("", "another", "", ""))
    page.wait_for_function("location.hash.includes('another')")
    expect_old(page, False)
    page.get_by_role("tab", name="File").click()
    page.locator(".tm-input").get_by_label("Clear").first.click()
    expect_old(page)
    choose_file(page, "text\na cat\na dog\na cow\na hen\n")
    expect_old(page, False)


@demo_of
def test_a_reload_keeps_text_and_settings(demo, visit):
    page = visit()
    texts = ("Ü & {x}", f"a {SECRET} 😀\nb", "", '"c" # %\nd')
    write(page, texts)
    set_number(page, "Order q", 2.5)
    page.reload()
    page.get_by_role("button", name="Score", exact=True).wait_for()
    page.wait_for_function("() => document.querySelector('.tm-input .tabitem textarea').value")
    assert [box.input_value() for box in boxes_of(page)] == [texts[1], texts[3]]
    open_settings(page, page.get_by_label("Name of A"))
    assert [page.get_by_label(f"Name of {letter}").input_value() for letter in "AB"] == [texts[0], texts[2]]
    press_score(page)
    expect_units(page, "of 2", "of 2")
    expect_old(page, False)
    assert "q:2.5" in page.locator("#answer pre").first.text_content()
    page.goto(f"{demo.url}#%7Bnot%20ours")
    page.reload()
    page.get_by_role("button", name="Score", exact=True).wait_for()
    assert {box.input_value() for box in boxes_of(page)} == {""}
    # A link that is pasted into the open page.
    link = quote(json.dumps(["", "a fox\na hen\nan owl", "", "", "", True, 1]))
    page.evaluate(f"location.hash = {link!r}")
    expect_units(page, "of 3")
    assert boxes_of(page)[0].input_value() == "a fox\na hen\nan owl"


@demo_of
def test_what_was_asked_is_taken_out(demo, visit, load):
    question = "Why was she late?"
    texts = ["She was late as she missed the bus.", "She was late as it rained.", "Late? No."]
    page = visit(("", "\n".join(texts), "", ""))
    expect_numbers(page, load(demo.name).compute(predictions=texts)["scores"])
    open_settings(page, page.get_by_label("What were they asked?"))
    page.get_by_label("What were they asked?").fill(question)
    expect_old(page)
    page.get_by_label("What were they asked?").press("Enter")
    expect_numbers(page, load(demo.name).compute(predictions=texts, contexts=question)["scores"])
    expect_old(page, False)
    assert "contexts:projected" in page.locator("#answer pre").first.text_content()


# Whether each mark of the legend contrasts more with the page than the one before.
STRONGER = """() => {
    const channels = (place) => {
        const colour = getComputedStyle(place).backgroundColor;
        return colour.match(/[0-9.]+/g).slice(0, 3).map(number => colour.startsWith("rgb") ? number / 255 : +number);
    };
    const page = channels(document.querySelector(".tm-picture"));
    const contrasts = [...document.querySelectorAll(".tm-legend mark")].map(
        mark => Math.max(...channels(mark).map((channel, i) => Math.abs(channel - page[i]))));
    return contrasts.length === 3 && contrasts.every((contrast, i) => contrast > (i ? contrasts[i - 1] : 0.02));
}"""


@pytest.mark.parametrize("demo", ["gruen"], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lower_scores_have_stronger_marks(demo, visit, scheme):
    page = visit(["The council met to decide. It want them bridge the of on. Went cat dog red by."], scheme=scheme)
    page.locator(".tm-marked mark").first.wait_for()
    page.wait_for_function(STRONGER)


@pytest.mark.parametrize("demo", ["self_bleu", "vendi_embed"], indirect=True)
def test_ordinary_inputs_have_a_result_in_a_browser(demo, visit, load):
    """Each of tests/data/ordinary_inputs.json: the page shows what `compute` gives, or says what to change."""
    page = visit()
    compute = load(demo.name).compute
    for title, texts in ORDINARY.items():
        write(page, ("", "\n".join(texts), "", ""))
        press_score(page)
        # What is shown names the input that it is of.
        page.wait_for_function(
            """text => document.querySelector("#answer [data-token]").dataset.token.includes(JSON.stringify(text))""",
            arg="\n".join(texts),
        )
        shown = page.locator("#answer").inner_text()
        assert INTERNAL not in shown, title
        if page.locator("#answer .tm-error").count():
            assert title == "one word"
        elif title not in ("numbered list", "bullets"):
            # The page has removed the markers of these lists.
            expect_numbers(page, [compute(predictions=texts)[demo.name]])


# The API and MCP.


@in_every_demo
def test_the_api_and_mcp_give_what_compute_gives(demo, load):
    case, compute = CASES[demo.name], load(demo.name).compute
    expected = compute(**case.arguments)
    tool, by_mcp = use_mcp(demo, case.api)
    assert tool.name == demo.name
    assert tool.description
    assert set(case.api) <= set(tool.inputSchema["properties"])
    # A call may leave settings out.
    for result in (call(demo, list(case.api.values())), by_mcp):
        assert isinstance(result["warnings"], list)
        assert result["signature"] == expected["signature"]
        for name, value in expected.items():
            if isinstance(value, float) and not math.isnan(value):
                assert result[name] == pytest.approx(value, abs=1e-5), name
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    assert "missing a required argument" in call(demo, [])
    assert HTTP.get(f"{demo.url}card").text.strip().startswith(f"# Metric Card for {demo.name}")


@demo_of
def test_the_client_of_gradio(demo, load):
    case = CASES[demo.name]
    client = Client(demo.url, verbose=False)
    assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/score"]
    _, name, value = case.setting
    result = client.predict(**case.api, **{name: value}, api_name="/score")
    expected = load(demo.name).compute(**case.arguments, **{name: value})
    assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)


# Texts that every metric reads: markup, formulas, templates, scripts of both directions, emoji, control characters.
ODD = [
    EVIL,
    "=1+1",
    "@SUM(A1)",
    "\x00\x01\x07",
    "مرحبا بالعالم",
    "😀🎉",
    "a\u2028b",
    "{{7*7}}",
    "'; DROP TABLE texts;--",
]


@in_every_demo
def test_odd_texts_are_scored(demo):
    texts = ODD if demo.name == "probeval" else [*ODD, "A" * 2_000]
    answer = call(demo, {"gruen": [texts], "probeval": [texts, texts]}.get(demo.name, [[texts]]))
    assert isinstance(answer, dict), answer
    assert isinstance(answer[demo.name], float)


@demo_of
def test_requests_past_the_page(demo):
    """Large bodies, files outside of the uploads, other people's files, and bodies that are no JSON."""
    address = f"{demo.url}gradio_api/"
    body = b'{"data": ["' + b"a" * 1_000_000 + b'"]}'
    assert HTTP.post(f"{address}call/score", content=body).status_code == 413
    assert HTTP.post(f"{address}upload", files={"files": ("a.csv", body)}).status_code == 413
    assert HTTP.post(f"{address}call/score", content=b"[" * 10_000).status_code in (400, 422)
    assert "broken character" in call(demo, [[["a", "broken \ud800"]]])
    for path in ("/etc/passwd", "app.py", "_kit/server.py"):
        assert HTTP.get(f"{address}file={path}").status_code in (403, 404)
    assert HTTP.get(f"{demo.url}monitoring").status_code >= 400
    for path in ("openapi.json", "gradio_api/openapi.json", "gradio_api/deep_link", "gradio_api/deep_link/"):
        assert HTTP.get(f"{demo.url}{path}?session_hash=s", follow_redirects=True).status_code == 404
    assert HTTP.get(f"{address}proxy=https://example.com/").status_code >= 400
    config = HTTP.get(f"{demo.url}config").json()
    kinds = {component["id"]: component["type"] for component in config["components"]}
    # The server remembers few sessions, so a page keeps nothing in them.
    assert "state" not in kinds.values()
    (event, *_) = [
        event for event in config["dependencies"] if [kinds[i] for i in event["inputs"]][:2] == ["textbox", "file"]
    ]
    file = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
    values = ["1[]", file, *[SECRET] * (len(event["inputs"]) - 2)]
    posted = HTTP.post(f"{address}queue/join", json={"data": values, "fn_index": event["id"], "session_hash": "s"})
    assert posted.status_code == 200
    with HTTP.stream("GET", f"{address}queue/data?session_hash=s") as stream:
        messages = [json.loads(line[5:]) for line in stream.iter_lines() if line.startswith("data:")]
    assert not next(message for message in messages if message["msg"] == "process_completed")["success"]
