"""The demos as they are built and served, used as a person would: in Chromium, by the API, and by MCP.

Each number on a page is compared with what `compute` gives for the same input.
"""

import base64
import csv
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import httpx
import pytest

from scripts.tooling import build_space, push_space
from scripts.tooling.screenshots import DESKTOP, PHONE, click_example, open_page
from spaces._kit import sets
from tests import programs
from tests.conftest import ROOT
from tests.demos import NAMES, SECRET, SWITCHES, download, event_of, every_space, in_chromium, in_demo, join, use_mcp

pytest_plugins = ["tests.demo_servers"]

COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
EVIL = "<img src=x onerror=\"window.broken=1\"> <b>bold</b> <a href='javascript:1'>link</a> {{value}} ${1+1} =1+1"


class Case(NamedTuple):
    """How a demo is used in the tests.

    typed : what is written into the boxes
    arguments : the same for `compute`, with the settings of the page
    numbers : the numbers on the page, from the result
    change : changes a setting on the page
    changed : what that is for `compute`
    file : a CSV file with the same input
    api : the same for the API
    """

    typed: tuple[str, ...]
    arguments: dict[str, Any]
    numbers: Callable[[dict[str, Any]], list[float]]
    change: Callable[[Any], None] | None
    changed: dict[str, Any]
    file: str
    api: dict[str, Any]


SETS = [
    ["A man walks his dog.", "=A man walks a dog to its owner.", "Rain fell all night."],
    ["She sings.", "She swims."],
]
_TEXT = "\n\n".join("\n".join(members) for members in SETS)
_CSV = "group,body\n" + "".join(f'{i},"{text}"\n' for i, members in enumerate(SETS) for text in members)
_PEOPLE, _MODEL = ["kettle"] * 6 + ["pot"] * 3 + ["cup"], ["a kettle"] * 5 + ["-helicopter"] * 5
_STORY = "The council met on Tuesday. It wants a bridge. The bridge is what it wants.\n\nHe go home then fast the."
_STORIES = ["The council met on Tuesday. It wants a bridge. The bridge is what it wants.", "He go home then fast the."]


def _choose(label: str, option: str) -> Callable[[Any], None]:
    def choose(page):
        page.get_by_label(label).click()
        page.get_by_role("option", name=option).click()

    return choose


CASES = {
    "vendi_embed": Case(
        (_TEXT,),
        {"predictions": SETS},
        lambda result: result["scores"],
        lambda page: page.get_by_label("∞: only the largest").check(),
        {"q": "inf"},
        _CSV,
        {"texts": SETS},
    ),
    "chamfer_diversity": Case(
        (_TEXT,), {"predictions": SETS}, lambda result: result["scores"], None, {}, _CSV, {"texts": SETS}
    ),
    "self_bleu": Case(
        (_TEXT,),
        {"predictions": SETS},
        lambda result: result["scores"],
        lambda page: page.get_by_label("number input for Longest phrase, in words").fill("2"),
        {"max_order": 2},
        _CSV,
        {"texts": SETS},
    ),
    "probeval": Case(
        ("kettle × 6\npot x 3\ncup", "a kettle\t5\n-helicopter × 5", ""),
        {"predictions": [_MODEL], "references": [_PEOPLE]},
        lambda result: [result["probeval"]],
        _choose("Match the model's answers by", "Gaussian process"),
        {"matcher": "gp"},
        "answer,who,n\nkettle,people,6\npot,people,3\ncup,people,1\na kettle,model,5\n-helicopter,model,5\n",
        {"people": _PEOPLE, "model": _MODEL},
    ),
    "gruen": Case(
        (_STORY,),
        {"predictions": _STORIES, "components": ["grammaticality", "non_redundancy", "focus"]},
        lambda result: [result["gruen"]],
        lambda page: page.get_by_label("Focus", exact=True).uncheck(),
        {"components": ["grammaticality", "non_redundancy"]},
        "id,body\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(_STORIES)),
        {"texts": _STORIES},
    ),
}


def test_every_metric_has_a_demo(built):
    assert NAMES == sorted(CASES) == sorted(path.name for path in built.iterdir())


@every_space
def test_front_matter_is_whole_and_the_card_is_below(built, name):
    text = (built / name / "README.md").read_text(encoding="utf-8")
    front = build_space.front_matter(text)
    assert front["title"]
    assert front["emoji"]
    assert {front["colorFrom"], front["colorTo"]} <= COLOURS
    assert front["sdk"] == "gradio"
    assert front["sdk_version"] == build_space.pins()["gradio"]
    assert front["python_version"] == "3.11"
    assert front["app_file"] == "app.py"
    assert 0 < len(front["short_description"]) <= 60
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert f"# Metric Card for {name}" in text
    offered = {f"sentence-transformers/{model.split('/')[-1]}" for model in sets.MODELS}
    assert set(front.get("models", ())) <= offered
    if "model_setting" in (built / name / "app.py").read_text(encoding="utf-8"):
        assert set(front["models"]) == offered


@every_space
def test_requirements_are_pinned_and_whole(built, name):
    lines = (built / name / "requirements.txt").read_text(encoding="utf-8").split("\n")[:-1]
    pinned = [line for line in lines if not line.startswith("--")]
    assert all(line.count("==") == 1 for line in pinned)
    wanted = [
        line
        for room in ("metrics", "spaces")
        for line in (ROOT / f"{room}/{name}/requirements.txt").read_text().split()
    ]
    found = {line.split("==")[0].split("[")[0] for line in pinned}
    assert found == {line.split(">")[0].split("[")[0].lower() for line in wanted}
    assert (built / name / "COMMIT").read_text().strip()


def run_alone(program, cwd, **environment):
    """Run a program in a fresh process that knows nothing of the checkout."""
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = programs.run(program, cwd=cwd, env={**settings, **environment})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def score_program(**places):
    """Write a program that loads metrics from these places, and prints what each gives for its case."""
    cases = {
        place: {key: value for key, value in CASES[name].arguments.items() if value is not None}
        for name, place in places.items()
    }
    return (
        "import evaluate, json\n"
        f"cases = json.loads({json.dumps(cases)!r})\n"
        "print(json.dumps([evaluate.load(place).compute(**case) for place, case in cases.items()]))"
    )


def assert_same_result(found, expected):
    """Equal, but for the last digits of a float32 embedding, which follow the number of threads of a process."""
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        numeric = isinstance(value, float | list)
        assert found[key] == (pytest.approx(value, abs=1e-6) if numeric else value), key


@pytest.mark.slow
def test_built_demos_are_metrics_from_their_folders(built, load, tmp_path):
    cache = {"HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules")}
    program = score_program(**{name: f"./{name}" for name in NAMES})
    for name, found in zip(NAMES, run_alone(program, built, HF_HUB_OFFLINE="1", **cache), strict=True):
        assert_same_result(found, load(name).compute(**CASES[name].arguments))


@pytest.mark.slow
def test_a_built_demo_is_a_metric_from_the_hub(built, load, hub_server, tmp_path):
    """In a process of its own, which has imported nothing for another metric."""
    name = "vendi_embed"
    server = hub_server(built / name, "spaces", f"someone/{name}")
    address = f"http://127.0.0.1:{server.server_port}"
    cache = {"HF_HOME": str(tmp_path / "home"), "HF_MODULES_CACHE": str(tmp_path / "modules")}
    program = score_program(**{name: f"someone/{name}"})
    (found,) = run_alone(program, tmp_path, HF_ENDPOINT=address, HF_HUB_OFFLINE="0", **cache)
    assert_same_result(found, load(name).compute(**CASES[name].arguments))


def test_a_folder_of_another_kind_is_not_built_over(tmp_path):
    (tmp_path / "self_bleu").mkdir()
    (tmp_path / "self_bleu" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="not an earlier build of a demo"):
        build_space.build("self_bleu", tmp_path)
    assert (tmp_path / "self_bleu" / "mine.txt").read_text() == "mine"
    with pytest.raises(ValueError, match=r"name must be one of .*Got '\.\./x'"):
        build_space.build("../x", tmp_path)


def test_a_push_is_dry_unless_it_is_asked_for(built, monkeypatch, capsys):
    monkeypatch.setattr(push_space, "push", lambda *arguments: pytest.fail("something was sent"))
    command = ["push_space.py", "self_bleu", "--owner", "someone", "--build", str(built)]
    monkeypatch.setattr(sys, "argv", command)
    push_space.main()
    printed = capsys.readouterr().out
    assert "for the Space someone/self_bleu" in printed
    assert "self_bleu.py" in printed
    assert "Nothing was sent" in printed


def test_only_a_build_of_a_commit_is_pushed(tmp_path):
    folder = build_space.build("self_bleu", tmp_path)
    for commit in ("unknown", "0123+changes"):
        (folder / "COMMIT").write_text(commit)
        with pytest.raises(ValueError, match="not committed"):
            push_space.check(folder)
    (folder / "COMMIT").write_text("0123\n")
    assert push_space.check(folder) == "0123"
    (folder / "COMMIT").unlink()
    with pytest.raises(ValueError, match=r"Run: python -m scripts\.tooling\.build_space self_bleu"):
        push_space.check(folder)


class AcceptingHub(BaseHTTPRequestHandler):
    """The part of the Hub's protocol that creates a Space and takes one commit."""

    def do_GET(self):
        # What the Space holds so far: one file of an earlier build.
        path = self.path.split("?")[0]
        tree = [{"type": "file", "path": "old.py", "size": 1, "oid": "0"}]
        self.answer(tree if "/tree/" in path else {"id": "someone/self_bleu", "sha": "0" * 40, "siblings": []})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/repos/create":
            self.received["repo"] = json.loads(body)
            self.answer({"url": f"http://{self.headers['Host']}/spaces/someone/self_bleu"})
        elif "/preupload/" in self.path:
            files = [{"path": file["path"], "uploadMode": "regular"} for file in json.loads(body)["files"]]
            self.answer({"files": [{**file, "shouldIgnore": False, "oid": None} for file in files]})
        elif "/commit/" in self.path:
            for line in body.decode().splitlines():
                entry = json.loads(line)
                self.received.setdefault(entry["key"], []).append(entry["value"])
            url = f"http://{self.headers['Host']}/spaces/someone/self_bleu/commit/{'1' * 40}"
            self.answer({"success": True, "commitOid": "1" * 40, "commitUrl": url})
        else:
            self.answer({"warnings": [], "errors": []})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_a_push_makes_the_space_hold_just_the_build(tmp_path):
    folder = build_space.build("self_bleu", tmp_path)
    (folder / "COMMIT").write_text("0123\n")
    received = {}
    handler = type("Handler", (AcceptingHub,), {"received": received})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {**os.environ, "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_TOKEN": "hf_test"}
    environment |= {"HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "scripts.tooling.push_space", "self_bleu", "--owner", "someone", "--push"]
    command += ["--build", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    server.shutdown()
    assert done.returncode == 0, done.stderr
    assert received["repo"]["type"] == "space"
    assert received["repo"]["sdk"] == "gradio"
    sent = {file["path"]: base64.b64decode(file["content"]) for file in received["file"]}
    assert sent == {str(path.relative_to(folder)): path.read_bytes() for path in push_space.files_of(folder)}
    assert [file["path"] for file in received["deletedFile"]] == ["old.py"]
    assert received["header"][0]["summary"] == "Build of 0123"


SPACE_HAS_MORE = {"chamfer_diversity": False}
in_vendi = in_demo("vendi_embed")
slow = pytest.mark.slow


def numbers_on(page):
    """Read the large numbers, as they are shown and in full."""
    page.locator("#answer [data-value]").first.wait_for()
    found = page.locator("#answer [data-value]")
    shown, full = found.all_inner_texts(), [float(item.get_attribute("data-value")) for item in found.all()]
    assert shown == [f"{value:.2f}" for value in full]
    return full


def expect_numbers(page, expected):
    """Wait until the page shows these numbers first: the embeddings of a batch may differ in the last digits."""
    from playwright.sync_api import expect

    first = page.locator("#answer [data-value]").first
    expect(first).to_have_text(f"{expected[0]:.2f}", timeout=60_000)
    assert numbers_on(page)[: len(expected)] == pytest.approx(expected, abs=1e-6)


def write(page, case):
    for box, text in zip(page.locator(".tm-input textarea").all(), case.typed, strict=False):
        box.fill(text)
    page.get_by_role("button", name="Score", exact=True).click()


@slow
@in_chromium
def test_typed_texts_and_a_setting(demo, chromium, load):
    case, metric = CASES[demo.name], load(demo.name)
    page = open_page(chromium, demo, DESKTOP)
    assert "Nothing scored yet" in page.locator("#answer").inner_text()
    write(page, case)
    expect_numbers(page, case.numbers(metric.compute(**case.arguments)))
    if case.change is not None:
        case.change(page)
        expected = case.numbers(metric.compute(**{**case.arguments, **case.changed}))
        expect_numbers(page, expected)
    page.close()


@slow
@in_chromium
def test_a_file_and_the_downloads(demo, chromium, load, tmp_path):
    case = CASES[demo.name]
    result = load(demo.name).compute(**case.arguments)
    page = open_page(chromium, demo, DESKTOP)
    page.get_by_role("tab", name="File").click()
    path = tmp_path / "mine.csv"
    path.write_text(case.file)
    page.locator("input[type=file][accept*=jsonl]").set_input_files(path)
    page.get_by_role("button", name="Score the file").and_(page.locator(":enabled")).click()
    expect_numbers(page, case.numbers(result))
    files = dict(download(page, label) for label in ("Details as CSV", "Result as JSON"))
    whole = json.loads(files[f"{demo.name}.json"])
    assert case.numbers(whole) == pytest.approx(case.numbers(result), abs=1e-6)
    assert whole["signature"] == result["signature"]
    table = list(csv.reader(io.StringIO(files[f"{demo.name}.csv"])))
    assert len(table) > 1
    assert not [cell for line in table for cell in line if cell.startswith(("=", "@", "-h"))]
    page.close()


@slow
@in_chromium
def test_errors_say_what_to_do(demo, chromium, tmp_path):
    page = open_page(chromium, demo, DESKTOP)

    def alert(part):
        page.get_by_role("alert").filter(has_text=part).first.wait_for()
        assert not page.locator("#answer [data-value]").count()

    score = page.get_by_role("button", name="Score", exact=True)
    score.click()
    alert("There is no answer yet" if demo.name == "probeval" else "There is no text yet")
    for box in page.locator(".tm-input textarea").all()[: len(CASES[demo.name].typed)]:
        box.fill(f"{SECRET} " * 2_000)
    score.click()
    alert("too long")
    click_example(page)
    page.get_by_role("tab", name="Table").click()
    page.locator("#source-1 textarea").fill('text\n"a')
    page.get_by_text("The table is not valid CSV").wait_for()
    assert page.get_by_role("button", name="Score the table").is_disabled()
    page.get_by_role("tab", name="File").click()
    path = tmp_path / "bad.csv"
    path.write_bytes(f"{SECRET} caf\xe9".encode("latin-1"))
    page.locator("input[type=file][accept*=jsonl]").set_input_files(path)
    page.get_by_text("The file must be UTF-8 text").wait_for()
    page.close()


@slow
@in_chromium
def test_markup_is_shown_as_text(demo, chromium):
    case = CASES[demo.name]
    page = open_page(chromium, demo, DESKTOP)
    page.on("dialog", lambda dialog: pytest.fail("a script of a visitor ran"))
    write(page, case._replace(typed=tuple("\n".join([EVIL, f"{EVIL} again"]) for _ in case.typed)))
    numbers_on(page)
    page.locator(".js-plotly-plot .plot-container").first.wait_for()
    for plot in page.locator(".js-plotly-plot:visible").all():
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        for share in (0.3, 0.5, 0.7):
            page.mouse.move(box["x"] + share * box["width"], box["y"] + 0.5 * box["height"])
    shown = "".join(page.locator("#answer, .tm-picture").all_inner_texts())
    assert not [word for word in ("<img", "<b>bold</b>", "{{value}}", "${1+1}") if word not in shown]
    inside = (
        "#answer img, .tm-picture img, .js-plotly-plot .main-svg a, .tm-picture a[href^=javascript], .tm-picture td b"
    )
    assert page.locator(inside).count() == 0
    assert page.evaluate("window.broken") is None
    page.close()


@slow
@in_chromium
def test_axe_finds_nothing_serious(demo, chromium):
    from axe_playwright_python.sync_playwright import Axe

    axe, found = Axe(), []

    def look(state):
        for violation in axe.run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                found.append((state, violation["id"], [node["html"][:200] for node in violation["nodes"]][:3]))

    for scheme in ("light", "dark"):
        page = open_page(chromium, demo, DESKTOP, scheme)
        if demo.name == "self_bleu":
            # The same in all demos, so one of them does.
            for tab in ("Table", "File"):
                page.get_by_role("tab", name=tab).click()
                look(f"{scheme}, {tab}")
            page.get_by_role("tab", name="Write").click()
            page.get_by_role("button", name="Score", exact=True).click()
            page.get_by_role("alert").first.wait_for()
            look(f"{scheme}, error")
        click_example(page)
        if SPACE_HAS_MORE.get(demo.name, True):
            page.get_by_role("button", name="More settings").click()
        look(f"{scheme}, result")
        if demo.name == "probeval":
            click_example(page, 3)
            page.locator("#answer .tm-card").nth(1).wait_for()
            look(f"{scheme}, two models")
        page.close()
    assert not found, "\n".join(map(str, found))


@slow
@in_chromium
def test_a_phone_and_the_keyboard(demo, chromium, load):
    case = CASES[demo.name]
    page = open_page(chromium, demo, PHONE, "dark")
    page.locator(".tm-input textarea").first.focus()
    for i, text in enumerate(case.typed):
        if i:
            page.keyboard.press("Tab")
        page.keyboard.insert_text(text)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "Score"
    page.keyboard.press("Enter")
    expect_numbers(page, case.numbers(load(demo.name).compute(**case.arguments)))
    page.locator(".js-plotly-plot .plot-container").first.wait_for()
    # The answer comes into view by itself, and nothing is wider than the window.
    page.wait_for_function("document.getElementById('answer').getBoundingClientRect().top < window.innerHeight / 2")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")[:3]
    assert max(red, green, blue) < 60
    page.close()


LONG = "\n".join(f"{SECRET} {i} " + "word and more words " * 20 for i in range(200))


@slow
@in_vendi
def test_two_visitors_at_once_and_a_stop(demo, chromium, load):
    case = CASES[demo.name]
    expected = case.numbers(load(demo.name).compute(**case.arguments))
    first, second = open_page(chromium, demo, DESKTOP), open_page(chromium, demo, DESKTOP)
    write(first, case._replace(typed=(LONG,)))
    first.get_by_role("button", name="Stop").wait_for()
    first.get_by_role("button", name="Stop").click()
    # Shown, and announced to screen readers.
    first.locator("#answer").get_by_text("Nothing was scored").first.wait_for()
    for page in (first, second):
        write(page, case)
    for page in (first, second):
        expect_numbers(page, expected)
        page.close()


@slow
@in_chromium
def test_the_api(demo, load):
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    case = CASES[demo.name]
    result = load(demo.name).compute(**case.arguments)
    client = Client(demo.url, verbose=False)
    found = client.predict(api_name="/score", **case.api)
    assert case.numbers(found) == pytest.approx(case.numbers(result), abs=1e-6)
    assert found["signature"] == result["signature"]
    described = client.view_api(return_format="dict")["named_endpoints"]
    assert list(described) == ["/score"]
    assert {one["parameter_name"] for one in described["/score"]["parameters"]} >= set(case.api)
    empty = {key: [] for key in case.api}
    with pytest.raises(AppError, match="yet"):
        client.predict(api_name="/score", **empty)
    wrong = {"threshold": 7} if demo.name == "probeval" else {"model": "/etc/passwd"}
    if demo.name == "self_bleu":
        wrong = {"tokenizer": "flores200"}
    with pytest.raises(AppError, match="must be"):
        client.predict(api_name="/score", **case.api, **wrong)


@slow
@in_vendi
def test_no_path_and_no_url_of_a_visitor_is_read(demo, hub_server, tmp_path):
    (tmp_path / "a.csv").write_text("text\nfetched\n")
    server = hub_server(tmp_path, "spaces", "someone/files")
    url = f"http://127.0.0.1:{server.server_port}/spaces/someone/files/resolve/main/a.csv"
    for path in ("/etc/passwd", str(tmp_path / "a.csv"), url, "https://example.com/a.csv"):
        file = {"path": path, "meta": {"_type": "gradio.FileData"}, "orig_name": "a.csv"}
        place, _ = event_of(demo, "file")
        answer, _ = join(demo, place, [file], f"private{place}")
        assert answer is None or not answer["success"], path
    for path in ("/etc/passwd", f"{demo.log}"):
        assert httpx.get(f"{demo.url}gradio_api/file={path}").status_code in (403, 404)


@slow
@in_chromium
def test_a_file_that_is_too_large_is_refused_at_the_door(demo):
    files = {"files": ("a.csv", b"text\n" + b"a" * 1_100_000)}
    assert httpx.post(f"{demo.url}gradio_api/upload", files=files).status_code == 413


@slow
@in_chromium
def test_mcp_answers_where_it_is_switched_on(demo, load):
    if "SPACE_MCP" not in SWITCHES.get(demo.name, {}):
        assert httpx.post(f"{demo.url}gradio_api/mcp/", json={}).status_code in (404, 405)
        return
    case = CASES[demo.name]
    tool, (answer,) = use_mcp(demo, case.api)
    assert tool.name == f"{demo.name}_score"
    assert {"self_bleu": "repeat each other", "probeval": "divergence"}[demo.name] in tool.description
    assert case.api.keys() <= tool.inputSchema["properties"].keys()
    assert set(tool.inputSchema["required"]) == case.api.keys()
    expected = load(demo.name).compute(**case.arguments)
    found = json.loads(answer.content[0].text)
    assert found["signature"] == expected["signature"]
    assert case.numbers(found) == pytest.approx(case.numbers(expected), abs=1e-12)
