"""Hostile visitors of the demos: no input stops a server, reaches a log, or gets an empty answer.

The cases are drawn from a seed. `make attack` runs ten times as many.
"""

import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from scripts.tooling.screenshots import DESKTOP, open_page
from tests.demos import (
    BYTES,
    INTERNAL,
    SECONDS,
    SECRET,
    TIMES,
    call,
    came_from,
    event_of,
    in_chromium,
    in_demo,
    is_idle,
    join,
    json_of,
    long_texts,
    report,
    score_boxes,
    use_mcp,
    wait_until,
)

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

PIECES = (
    "\t" * 3_000, " " * 3_000, "a" * 4_000, "A" * 200, "😀" * 50, "👩‍👩‍👧‍👦", "\0", "\x1b[31m", "\u202e", "\u2028",
    "\ufeff", "\ud800", "é" * 500, "我喜欢", "مرحبا بالعالم", "<img src=x onerror=alert(1)>", "{{7*7}}", "${7*7}",
    "'; DROP TABLE t; --", "=1+1", "../../etc/passwd", "%s%s%n", "a.\nb.\n" * 50, "x" + "\u0308" * 300, "1" * 400,
    "a × " + "9" * 30, "a × 0", "a\t-1", ". " * 500, "NaN", "null", "[" * 500, '"' * 99, "\\" * 99,
)  # fmt: skip
VALUES = (
    None, True, -1, 0, 1e308, 2**70, "", "x", "\ud800", [], {}, [[]], ["a"], {"a": 1}, "nan", [None], "../x",
)  # fmt: skip


def hostile_text(draw, name):
    """Draw an odd text: mostly one of a length that the demo reads."""
    text = SECRET + draw.choice((" ", "\n", "")).join(draw.choice(PIECES) for _ in range(draw.randint(1, 4)))
    if draw.random() < 0.9:
        text = text[: 200 if name == "probeval" else 2_000].replace("\ud800", "")
    return text


def hostile_lines(draw, name, suffix):
    """Draw the lines of a file; those of probeval mostly say who answers."""
    texts = [hostile_text(draw, name).replace("\ud800", "") for _ in range(draw.choice((0, 1, 30)))]
    if name == "probeval" and draw.random() < 0.7:
        answers = [{"answer": text, "who": ("people", "model")[i % 2], "count": i + 1} for i, text in enumerate(texts)]
        if suffix == ".csv":
            rows = (f'"{one["answer"].replace(chr(34), chr(34) * 2)}",{one["who"]}' for one in answers)
            return ["answer,who", *rows]
        return [json.dumps(one) for one in answers]
    if suffix != ".jsonl":
        return texts
    return [
        json.dumps(draw.choice((text, [text], {text: text, "who": 1}, {f"k{j}": j for j in range(400)})))
        for text in texts
    ]


def hostile_input(draw, name):
    """Draw an input: of the right form with odd texts, mostly; else of the wrong form."""
    if draw.random() < 0.2:
        return draw.choice(VALUES)
    texts = [hostile_text(draw, name) for _ in range(draw.choice((1, 2, 2, 3, 20)))]
    if draw.random() < 0.1:
        texts[draw.randrange(len(texts))] = draw.choice(VALUES)
    if name in ("probeval", "gruen"):
        return texts
    return [texts] if draw.random() < 0.7 else [texts[:1], texts[1:]]


def hostile_body(draw, name):
    """Draw the body of a call, with some settings that are wrong."""
    data = [hostile_input(draw, name)]
    if name == "probeval":
        data.append(hostile_input(draw, name))
        if draw.random() < 0.2:
            # Another model's answers come after the settings.
            data += ["auto", "auto", 0.55, 1.0, 0.95, False, hostile_input(draw, name)]
    data += [draw.choice(VALUES) for _ in range(draw.choice((0, 0, 0, 1, 2, 9)))]
    return {"data": data[: draw.choice((len(data), len(data), 1, 0))]}


def dumps(body):
    # Lone surrogates travel as escapes, as a browser sends them.
    return json.dumps(body).encode()


def answer_of(demo, body):
    """Post a body and read the answer to its end: status, last event, bytes and seconds."""
    begin, headers = time.monotonic(), {"Content-Type": "application/json"}
    posted = httpx.post(f"{demo.url}gradio_api/call/score", content=dumps(body), headers=headers, timeout=SECONDS)
    if posted.status_code != 200:
        return posted.status_code, "refused", json_of(posted), len(posted.content), time.monotonic() - begin
    got = httpx.get(f"{demo.url}gradio_api/call/score/{posted.json()['event_id']}", timeout=SECONDS)
    kinds = [line[7:] for line in got.text.split("\n") if line.startswith("event: ")]
    data = [line[6:] for line in got.text.split("\n") if line.startswith("data: ")]
    return got.status_code, kinds[-1], json.loads(data[-1]), len(got.content), time.monotonic() - begin


def check_answer(status, kind, content, n_bytes, seconds):
    """Every answer is a result or says what is wrong."""
    assert n_bytes < BYTES
    assert seconds < SECONDS
    if kind == "complete":
        assert content[0]["signature"]
    elif kind == "error":
        assert content["error"].strip()
        assert INTERNAL not in content["error"], content
    else:
        assert status in (400, 413, 422, 503), content
        assert content["detail"]


@in_chromium
def test_hostile_calls_get_a_result_or_a_reason(demo):
    draw, ends = random.Random(f"{demo.name} calls"), Counter()
    for _ in range(30 * TIMES):
        body = hostile_body(draw, demo.name)
        try:
            found = answer_of(demo, body)
            check_answer(*found)
        except Exception as error:
            raise AssertionError(f"for {dumps(body)[:2_000]!r}") from error
        ends[found[1]] += 1
    report(demo, "calls", ends)
    # Neither all calls are refused, nor none.
    assert min(ends["complete"], ends["error"]) > 0
    assert SECRET not in demo.log.read_text()


@in_chromium
def test_hostile_bodies_are_refused_with_a_reason(demo):
    draw, ends = random.Random(f"{demo.name} bodies"), Counter()
    routes = ("call/score", "call/v2/score", "call/nothing", "run/predict", "run/score", "queue/join", "queue/data")
    bodies = (b"", b"{", b"[]", b"null", b'"' + SECRET.encode() + b'"', b"\xff\xfe", b"[" * 100_000, b'{"data": 7}')
    for _ in range(20 * TIMES):
        body = draw.choice(bodies)
        if draw.random() < 0.5:
            body = dumps({draw.choice(("data", "texts", SECRET, "fn_index")): draw.choice(VALUES), SECRET: SECRET})
        url = f"{demo.url}gradio_api/{draw.choice(routes)}"
        got = httpx.post(url, content=body, headers={"Content-Type": "application/json"}, timeout=SECONDS)
        assert got.status_code != 500 or json_of(got)["error"], (url, body)
        assert got.content, (url, body)
        ends[got.status_code] += 1
    report(demo, "bodies", ends)
    assert SECRET not in demo.log.read_text()


@in_chromium
def test_hostile_boxes_in_the_page(demo, chromium):
    draw, page = random.Random(f"{demo.name} boxes"), open_page(chromium, demo, DESKTOP)
    page.on("dialog", lambda dialog: pytest.fail("a script of a visitor ran"))
    outside = []
    page.on("request", lambda request: outside.append(request.url) if demo.url not in request.url else None)
    boxes, ends = page.locator(".tm-input textarea").all()[: 3 if demo.name == "probeval" else 1], Counter()
    for i in range(2 * TIMES):
        if i:
            page.reload()
        for box in boxes:
            text = "\n".join(hostile_text(draw, demo.name) for _ in range(draw.choice((1, 3)))).replace("\ud800", "")
            box.fill(text)
        page.get_by_role("button", name="Score", exact=True).click()
        page.locator("#answer [data-value], #answer [role=alert]").first.wait_for()
        shown = page.locator("#answer").inner_text().strip()
        assert shown
        assert INTERNAL not in shown
        ends["result" if page.locator("#answer [data-value]").count() else "error"] += 1
    report(demo, "pasted texts", ends)
    assert not [url for url in outside if not url.startswith(("data:", "blob:"))]
    page.close()


@in_demo("vendi_embed", "probeval")
def test_hostile_files_are_read_or_refused(demo, tmp_path):
    draw, place, ends = random.Random(f"{demo.name} files"), event_of(demo, "file")[0], Counter()
    n_columns = 5 if demo.name == "probeval" else 2
    score_place, components = event_of(demo, "file", *["dropdown"] * n_columns, "checkbox", is_run=True)
    for i in range(10 * TIMES):
        suffix = draw.choice((".txt", ".csv", ".jsonl", ".exe"))
        files = {"files": (f"a{suffix}", "\n".join(hostile_lines(draw, demo.name, suffix)).encode())}
        uploaded = httpx.post(f"{demo.url}gradio_api/upload", files=files).json()[0]
        file = {"path": uploaded, "meta": {"_type": "gradio.FileData"}, "orig_name": f"a{suffix}"}
        begin = time.monotonic()
        message, n_bytes = join(demo, place, [file], f"file{i}")
        is_read = suffix != ".exe" and (suffix != ".txt" or demo.name != "probeval")
        assert message["success"] == is_read, message
        assert message["success"] or "Invalid file type" in message["output"]["error"]
        # Those that the page guesses.
        guessed = message["output"]["data"][: n_columns + 1] if message["success"] else [{}] * (n_columns + 1)
        columns = [column.get("value") for column in guessed]
        settings = [component["props"].get("value") for component in components[2 + n_columns :]]
        message, more_bytes = join(demo, score_place, [file, *columns, *settings], f"file{i}")
        assert message["success"] or message["output"]["error"], message
        assert time.monotonic() - begin < SECONDS
        assert n_bytes + more_bytes < BYTES
        shown = json.dumps(message)
        assert INTERNAL not in shown
        ends["result" if "data-value" in shown else "error"] += 1
    report(demo, "files", ends)


@in_demo("probeval")
def test_a_line_of_tabs_does_not_freeze_the_server(demo):
    begin = time.monotonic()
    message, _ = score_boxes(demo, f"{SECRET} kettle" + "\t" * 20_000 + "b", "kettle", session="tabs")
    assert "too long" in json.dumps(message)
    assert time.monotonic() - begin < 10
    message, _ = score_boxes(demo, "kettle" + "\t" * 60_000 + "b", "kettle", session="more tabs")
    assert "too long" in json.dumps(message)


@in_demo("probeval")
def test_numbers_in_answers_are_no_counts(demo):
    answers = {"Netflix 4": 1, "Xbox 360": 1, "4x4": 1, "pot": 3, "pan": 21, "lid": 2, "kettle": 5, "box x3y": 1}
    typed = "Netflix 4\nXbox 360\n4x4\npot x 3\npan×21\nlid x2\nkettle\t5\nbox x3y"
    place, components = event_of(demo, "textbox", "textbox", is_run=True)
    settings = [component["props"].get("value") for component in components[2:]]
    message, _ = join(demo, place, [typed, "kettle", *settings], "counts")
    tables = [one for one in message["output"]["data"] if isinstance(one, dict) and "headers" in str(one)]
    rows = [row for table in tables for row in (table.get("value") or {}).get("data", [])]
    assert {row[2]: int(row[3]) for row in rows if row[1] == "people"} == answers


@in_chromium
def test_callers_may_leave_defaults_out(demo, load):
    texts = [["A dog barks.", "A dog barked."]] if demo.name not in ("probeval", "gruen") else ["A dog barks."]
    given = [texts, texts] if demo.name == "probeval" else [texts]
    found = call(demo, {"data": given})
    assert found.last()[0] == "complete"
    assert found.last()[1][0]["signature"].startswith(demo.name)
    for data in ([], [None], ["x"]):
        kind, content = call(demo, {"data": data}).last()
        assert kind == "error"
        assert content["error"].strip()
    refused = call(demo, {SECRET: 1}, "call/v2/score")
    assert refused.status == 400
    assert "does not fit the API" in refused.last()[1]["error"]
    assert SECRET not in demo.log.read_text()


@in_demo("vendi_embed")
def test_errors_of_programmers_do_not_reach_visitors(demo):
    for wrong in ([["x"]], {"a": 1}, None, 7):
        content = call(demo, {"data": [[["a", "b"]], wrong]}).last()[1]
        assert "q must be one of" in content["error"]
    status, kind, content, *_ = answer_of(demo, {"data": [[["\ud800", "b"]]]})
    assert (status, kind) == (200, "error")
    assert "Text 1 contains a broken character" in content["error"]


@in_demo("vendi_embed")
def test_a_request_that_is_too_large_is_refused_at_the_door(demo):
    got = httpx.post(f"{demo.url}gradio_api/call/score", json={"data": ["a" * 5_000_000]})
    assert got.status_code == 413
    assert "too large: the limit is" in got.json()["error"]


@in_demo("vendi_embed")
def test_a_file_of_many_keys_is_refused_at_once(demo):
    lines = (json.dumps({f"key {i} {j}": "" for j in range(10)}) for i in range(5_000))
    files = {"files": ("a.jsonl", "\n".join(lines).encode())}
    uploaded = httpx.post(f"{demo.url}gradio_api/upload", files=files).json()[0]
    file = {"path": uploaded, "meta": {"_type": "gradio.FileData"}, "orig_name": "a.jsonl"}
    begin = time.monotonic()
    message, _ = join(demo, event_of(demo, "file")[0], [file], "keys")
    assert time.monotonic() - begin < 5
    assert "too many columns" in json.dumps(message)


@in_demo("self_bleu")
def test_what_is_drawn_is_bounded(demo):
    words = [f"w{i % 40}" for i in range(12_000)]
    texts = [" ".join(words[start : start + 600]) for start in range(0, len(words), 600)]
    message, n_bytes = score_boxes(demo, "\n".join(texts), session="marks")
    assert message["success"]
    assert n_bytes < 2_000_000
    assert "Only the first 800 words are shown" in json.dumps(message)


@in_demo("gruen")
def test_a_text_that_repeats_itself_is_bounded(demo):
    text = "The cat sat. " * 500
    message, n_bytes = score_boxes(demo, text, session="pairs")
    assert message["success"]
    assert n_bytes < 2_000_000
    assert "and 124,740 more pairs" in json.dumps(message)
    found = call(demo, {"data": [[text]]})
    assert found.n_bytes < 2_000_000
    assert found.last()[1][0]["details"][0]["n_redundant_pairs"] == 124_750


@in_demo("gruen")
def test_a_visitor_who_leaves_costs_nothing(demo, chromium):
    page = open_page(chromium, demo, DESKTOP)
    page.locator(".tm-input textarea").first.fill("\n\n".join(long_texts()))
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("button", name="Stop").wait_for()
    # The run has begun, and would take long.
    page.wait_for_timeout(3_000)
    assert not page.locator("#answer [data-value], #answer [role=alert]").count()
    page.close()
    assert wait_until(lambda: is_idle(demo), 10), "the run of a visitor who left goes on"


@in_demo("gruen")
def test_a_caller_who_hangs_up_costs_nothing(demo):
    posted = httpx.post(f"{demo.url}gradio_api/call/score", json={"data": [long_texts()]})
    with httpx.stream("GET", f"{demo.url}gradio_api/call/score/{posted.json()['event_id']}"):
        assert wait_until(lambda: not is_idle(demo), 10)
    # Gradio looks every 10 seconds whether its caller is still there.
    assert wait_until(lambda: is_idle(demo), 15), "the run of a caller who hung up goes on"


@in_demo("chamfer_diversity")
def test_a_full_queue_says_when_to_come_back(demo, chromium):
    page = open_page(chromium, demo, DESKTOP)
    page.locator(".tm-input textarea").first.fill("A dog barks.\nA dog barked.")
    body = {"data": [[[f"{SECRET} {i} " + "word and more words " * 12 for i in range(200)]]]}
    answered, refused, is_over = [], [], threading.Event()

    def fill_the_queue(client):
        while not is_over.is_set():
            answered.append(call(demo, body, timeout=SECONDS, address=f"192.0.2.{client}"))
            time.sleep(0.1)

    def is_full():
        refused.append(httpx.post(f"{demo.url}gradio_api/call/score", json=body, headers=came_from("192.0.2.99")))
        return refused[-1].status_code == 503

    with ThreadPoolExecutor(10) as pool:
        for client in range(10):
            pool.submit(fill_the_queue, client)
        try:
            assert wait_until(is_full, SECONDS)
            page.get_by_role("button", name="Score", exact=True).click()
            page.locator("#answer").get_by_text("Please try again in 30 seconds").wait_for()
        finally:
            is_over.set()
    assert page.locator("[role=status].tm-sr").inner_text().startswith("The demo is busy")
    assert refused[-1].headers["Retry-After"] == "30"
    assert "The demo is busy" in refused[-1].json()["error"]
    assert "try again in 30 seconds" in refused[-1].json()["detail"]
    # Those who wait are served, and so is the visitor who comes back.
    assert {one.status for one in answered} <= {200, 503}
    assert all(one.last()[0] == "complete" for one in answered if one.status == 200)
    page.get_by_role("button", name="Score", exact=True).click()
    page.locator("#answer [data-value]").first.wait_for()
    page.close()


@in_demo("self_bleu")
def test_many_visitors_at_once_all_get_their_own_answer(demo):
    """Each of many callers gets the score of its own texts, or is told that the queue is full."""
    n, failed, ends = 60 * TIMES, [], []

    def visit(i):
        texts = [[f"one two three four {i}", "one two three four five" if i % 2 else f"{i} {i} {i} {i}"]]
        found = call(demo, {"data": [texts]}, address=f"192.0.2.{i % 250}")
        kind, content = found.last()
        if kind == "complete":
            is_right = (content[0]["self_bleu"] > 0.3) == bool(i % 2)
        else:
            is_right = found.status == 503 and "try again in" in content["error"]
        ends.append(kind)
        if not is_right:
            failed.append((i, found.status, kind, content))

    with ThreadPoolExecutor(60) as pool:
        list(pool.map(visit, range(n)))
    assert not failed
    report(demo, "concurrent callers", Counter(ends))


@in_demo("self_bleu", "probeval")
def test_the_mcp_tool_bears_the_metrics_name_and_returns_json(demo):
    texts = [f"{SECRET} a b c d"] * 2
    given, setting = {
        "self_bleu": ({"texts": [texts]}, ("max_order", "an integer from 1 to 5")),
        "probeval": ({"people": texts, "model": texts}, ("threshold", "a number from 0 to 1")),
    }[demo.name]
    name, expected = setting
    tool, (answer, wrong, nothing) = use_mcp(demo, given, given | {name: 77}, {})
    assert tool.name == f"{demo.name}_score"
    result = json.loads(answer.content[0].text)
    assert result["signature"].startswith(f"{demo.name}|")
    assert result["warnings"] == []
    assert wrong.isError
    assert f"{name} must be {expected}" in wrong.content[0].text
    assert nothing.isError
    assert nothing.content[0].text.strip()
    assert SECRET not in demo.log.read_text()
