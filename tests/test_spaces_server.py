"""The closed server of the demos: its routes, what one client may take of it, and what stays in memory, disk and log.

`make attack` opens and sends ten times as much, and measures memory.
"""

import json
import re
import socket
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from gradio.exceptions import ServerFailedToStartError

from scripts.tooling.screenshots import served
from spaces._kit.server import start_in_thread
from tests.demos import (
    FILES,
    INTERNAL,
    SECONDS,
    SECRET,
    TIMES,
    call,
    event_of,
    in_demo,
    join,
    report,
    score_boxes,
    wait_until,
)

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

# The routes of the installed Gradio that a demo refuses: a new version's are in neither list until someone decides.
REFUSED = (
    "/gradio_api/api/{api_name}", "/gradio_api/component_server",
    "/gradio_api/custom_component/{id}/{environment}/{type}/{file_name}", "/gradio_api/deep_link",
    "/gradio_api/dev/reload", "/gradio_api/file/{path:path}", "/gradio_api/file={path_or_url:path}",
    "/gradio_api/login_check", "/gradio_api/mcp/messages", "/gradio_api/mcp/sse", "/gradio_api/openapi.json",
    "/gradio_api/process_recording", "/gradio_api/proxy={url_path:path}", "/gradio_api/queue/status",
    "/gradio_api/run-history/buckets", "/gradio_api/run-history/connect", "/gradio_api/run-history/records",
    "/gradio_api/run-history/records/{endpoint}/{record_id}/assets/{asset_id}", "/gradio_api/runs",
    "/gradio_api/stream/{event_id}", "/gradio_api/stream/{event_id}/close",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/playlist-file",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/playlist.m3u8",
    "/gradio_api/stream/{session_hash}/{run}/{component_id}/{segment_id}.{ext}", "/gradio_api/token",
    "/gradio_api/undo-vibe-edit", "/gradio_api/upload_progress", "/gradio_api/user", "/gradio_api/vibe-code",
    "/gradio_api/vibe-edit", "/gradio_api/vibe-starter-queries", "/login", "/logout", "/manifest.json",
    "/monitoring", "/monitoring/summary", "/monitoring/{key}", "/openapi.json", "/pwa_icon", "/pwa_icon/{size}",
    "/svelte/{path:path}",
)  # fmt: skip
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def routes_of(routes, prefix=""):
    """List the paths of Starlette's routes, with those that are mounted or included."""
    for route in routes:
        if hasattr(route, "original_router"):
            yield from routes_of(route.original_router.routes, prefix)
        elif hasattr(route, "app") and not hasattr(route, "methods"):
            yield prefix + route.path
            yield from routes_of(getattr(route, "routes", None) or [], prefix + route.path)
        else:
            yield prefix + route.path


def test_every_route_of_gradio_is_open_or_refused():
    import gradio as gr
    from gradio.routes import App

    from spaces._kit.server.door import ROUTES

    with gr.Blocks() as empty:
        pass
    app = App.create_app(empty, mcp_server=True)
    installed = {path.rstrip("/") for path in routes_of(app.router.routes)}
    opened = {path.rstrip("/") for path in ROUTES}
    assert opened & set(REFUSED) == set()
    assert installed == opened | set(REFUSED)


@in_demo("self_bleu")
def test_routes_that_no_demo_needs_are_refused(demo):
    score_boxes(demo, f"{SECRET} one\n{SECRET} two", session="deep")
    client = httpx.Client()
    for path in (*REFUSED, "/gradio_api/deep_link?session_hash=deep", "/gradio_api//deep_link", "/%67radio_api/user"):
        url = demo.url.rstrip("/") + re.sub(r"{.*?}", "x", path)
        for method in ("GET", "POST", "DELETE"):
            assert client.request(method, url).status_code in (404, 405), (method, path)
    for path in ("", "config", "theme.css", "gradio_api/info", "gradio_api/mcp/schema", "favicon.ico", "robots.txt"):
        assert client.get(demo.url + path).status_code == 200, path
    # It would run past the queue.
    assert httpx.post(f"{demo.url}gradio_api/run/score", json={"data": [[["a b", "a c"]]]}).status_code == 404


def post_raw(demo, body, n_bytes):
    """Send an upload that announces so many bytes, and hang up."""
    address = demo.url.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((address[0], int(address[1]))) as connection:
        head = "POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=B\r\n"
        connection.sendall(f"{head}Content-Length: {n_bytes}\r\n\r\n".encode() + body)
        time.sleep(0.05)


@in_demo("self_bleu")
def test_an_upload_that_fails_leaves_no_file(demo):
    folder, url = demo.log.parent / FILES, f"{demo.url}gradio_api/upload"

    def files():
        return [path for path in folder.rglob("*") if path.is_file()]

    before = set(files())
    part = b'--B\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n' + SECRET.encode() * 1_000
    form = {"Content-Type": "multipart/form-data; boundary=B"}
    for _ in range(10 * TIMES):
        post_raw(demo, part, len(part) + 5_000)
    three = [("files", (f"{i}.txt", b"x" * 900_000)) for i in range(3)]
    client = httpx.Client()
    got = [
        client.post(url, files=three),
        client.post(url, files=[("files", (f"{i}.txt", b"x")) for i in range(2)]),
        client.post(url, files={"files": ("a.txt", b"x" * 1_100_000)}),
        client.post(url, files={"other": ("a.txt", b"x")}),
        client.post(url, data={"files": "x"}),
        client.post(url, content=part, headers=form),
        client.post(url, content=part, headers={"Content-Type": "multipart/form-data"}),
    ]
    assert [one.status_code for one in got] == [413, 400, 413, 400, 400, 400, 400], [one.text for one in got]
    assert all(one.text for one in got)
    assert set(files()) == before
    # The good ones are there once, scored or not.
    chosen, (place, components) = event_of(demo, "file")[0], event_of(demo, "file", "dropdown", "dropdown", is_run=True)
    settings = [component["props"].get("value") for component in components[3:]]
    for i in range(5):
        stored = client.post(url, files={"files": ("b.txt", f"one two\n{i}".encode())})
        file = {"path": stored.json()[0], "meta": {"_type": "gradio.FileData"}, "orig_name": "b.txt"}
    columns = [column.get("value") for column in join(demo, chosen, [file], "b")[0]["output"]["data"][:2]]
    assert "data-value" in json.dumps(join(demo, place, [file, *columns, *settings], "b")[0])
    assert len(set(files()) - before) == 5
    assert SECRET not in demo.log.read_text()


def test_old_files_are_swept(tmp_path):
    from spaces._kit.server import uploads

    (tmp_path / "hash").mkdir()
    (tmp_path / "hash" / "a.txt").write_text("a")
    (tmp_path / "tmp123").write_text("left by a process that was killed")
    paths = {str(tmp_path / "hash" / "a.txt"), "gone"}
    app = SimpleNamespace(uploaded_file_dir=str(tmp_path), get_blocks=lambda: SimpleNamespace(temp_file_sets=[paths]))
    uploads.sweep(app)
    assert len(list(tmp_path.iterdir())) == 2
    assert paths == {str(tmp_path / "hash" / "a.txt")}
    time.sleep(0.01)
    uploads.sweep(app, 0)
    assert not list(tmp_path.rglob("*.txt"))
    assert not (tmp_path / "tmp123").exists()
    assert paths == set()


def test_a_server_goes_on_if_a_busy_machine_does_not_answer_in_time(built, tmp_path):
    """Gradio ends a server that does not answer Gradio itself within three seconds, although visitors use it."""
    (tmp_path / "sitecustomize.py").write_text("import gradio.networking as n\nn.url_ok = lambda url: False\n")
    log = tmp_path / "log"
    # It raises an error if the server ends by itself.
    with served(built / "self_bleu", log, PYTHONPATH=str(tmp_path)) as demo:
        assert wait_until(lambda: "Running on" in log.read_text(), SECONDS)
        time.sleep(2)
        assert call(demo, {"data": [[["a b c d", "a b c d"]]]}).last()[0] == "complete"


def test_a_server_may_take_long_to_start_but_not_fail(monkeypatch):
    slow = SimpleNamespace(started=False, reloader=None)
    slow.run = lambda: (time.sleep(0.2), setattr(slow, "started", True))
    # Gradio's own limit is by this clock.
    monkeypatch.setattr(time, "time", iter(range(0, 10**6, 100)).__next__)
    start_in_thread(slow)
    assert slow.started
    with pytest.raises(ServerFailedToStartError, match="Is its port taken"):
        start_in_thread(SimpleNamespace(started=False, reloader=None, run=lambda: None))


def test_a_server_that_ends_is_told_by_its_exit_code(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import gradio.networking as n\nn.url_ok = lambda url: exit(7)\n")
    (tmp_path / "app.py").write_text("import sys\nprint('so far')\nsys.exit(7)\n")
    with (
        pytest.raises(RuntimeError, match=r"did not start: exit code 7\.\nso far"),
        served(tmp_path, tmp_path / "log"),
    ):
        pass


@in_demo("self_bleu")
def test_the_server_remembers_a_few_sessions(demo):
    config = httpx.get(f"{demo.url}config").json()
    components = {component["id"]: component for component in config["components"]}
    kinds = {event["id"]: [components[i]["type"] for i in event["inputs"]] for event in config["dependencies"]}
    again = next(event for event in config["dependencies"] if kinds[event["id"]][:1] == ["state"])
    reads = next(event for event in config["dependencies"] if kinds[event["id"]] == ["textbox"])
    settings = [
        None if components[i]["type"] == "state" else components[i]["props"].get("value") for i in again["inputs"]
    ]

    # The box, which a change of a setting scores again.
    box = next(i for i, place in enumerate(again["inputs"]) if components[place]["type"] == "textbox")
    settings[box] = "one two three four\none two three five"

    def score_again():
        return "data-value" in json.dumps(join(demo, again["id"], settings, "first")[0])

    score_boxes(demo, "one two three four\none two three five", session="first")
    assert score_again()
    client = httpx.Client()
    for i in range(50 * TIMES):
        body = {"data": [""], "fn_index": reads["id"], "session_hash": f"another {i}"}
        assert client.post(f"{demo.url}gradio_api/run/predict", json=body).status_code == 200
    assert not score_again()


def memory_mb(pid):
    """Return the memory of a process without mapped files: the pages of the weights are read as words need them."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


@pytest.mark.skipif(TIMES == 1, reason="500 long calls: part of make attack")
@in_demo("gruen")
def test_memory_does_not_grow(demo):
    def score(i):
        message, n_bytes = score_boxes(demo, f"The cat {i} sat. " * 200, session=f"memory {i}")
        assert message["success"]
        return n_bytes

    for i in range(70):
        score(i)
    before = memory_mb(demo.pid)
    n_bytes = [score(i) for i in range(70, 70 + 50 * TIMES)]
    after = memory_mb(demo.pid)
    report(demo, f"large calls, {before:.0f} MB before and {after:.0f} MB after them,", Counter(result=len(n_bytes)))
    assert sum(n_bytes) / 2**20 > 100
    assert abs(after - before) < 50


@in_demo("self_bleu")
def test_malformed_mcp_calls_log_no_text(demo):
    def rpc(params, method="tools/call"):
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    client = httpx.Client(timeout=SECONDS)
    name, secret, texts = "self_bleu_score", SECRET, [[SECRET, SECRET]]
    bodies = [
        *(rpc(params) for params in (secret, [secret], {secret: 1}, {"name": secret}, {"name": 7, secret: secret})),
        *(rpc({"name": secret, "arguments": arguments}) for arguments in ({}, secret, {secret: secret})),
        *(
            rpc({"name": name, "arguments": arguments})
            for arguments in (secret, [secret], {secret: 1}, {"texts": secret})
        ),
        rpc({"name": name, "arguments": {"texts": texts, secret: 1}}),
        rpc({"name": name, "arguments": {"texts": texts}, "_meta": secret}),
        *(rpc({secret: secret}, method) for method in (secret, "initialize", "resources/read", "prompts/get")),
        {"jsonrpc": "2.0", "method": f"notifications/{secret}", "params": {secret: secret}},
        {"jsonrpc": "2.0", "id": secret, "result": {secret: secret}},
        {secret: secret},
        [rpc({"name": secret})],
        secret,
    ]
    for body in bodies:
        got = client.post(f"{demo.url}gradio_api/mcp/", json=body, headers=MCP_HEADERS)
        assert got.status_code in (200, 202, 400), (body, got.text)
    for content in (b"[" * 50_000, b'{"a":' * 50_000, b"\xff", b"", b"{", SECRET.encode()):
        got = client.post(f"{demo.url}gradio_api/mcp/", content=content, headers=MCP_HEADERS)
        assert got.status_code == 400
        assert got.json()["error"].startswith("The request does not fit")
    # A client that only listens would stay for ever.
    assert httpx.get(f"{demo.url}gradio_api/mcp/", headers=MCP_HEADERS).status_code == 405
    log = demo.log.read_text()
    assert SECRET not in log
    assert "Traceback" not in log


@in_demo("self_bleu")
def test_errors_contain_no_internals(demo):
    file = event_of(demo, "file")[0]
    odd = [SECRET, 7, ["x"], {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}, {"headers": 1, "data": "x"}]
    shown = [join(demo, file, [value], "odd")[0]["output"]["error"] for value in odd]
    shown += [call(demo, {"data": [value]}).last()[1]["error"] for value in odd]
    for text in shown:
        assert not re.search(rf"pydantic|InvalidPath|validation error|Traceback|{INTERNAL}", text), text
        assert re.search("does not fit the API of this demo|must be a list of sets|There is no", text), text
    many = call(demo, {"data": [[["a b", "a c"]], 2, *[True] * 9]}).last()
    assert many == ("error", many[1])
    assert "Too many arguments: the limit is 5. Got 11." in many[1]["error"]
    unknown = call(demo, {"texts": [["a b", "a c"]], SECRET: 1}, "call/v2/score")
    assert unknown.status == 400
    assert "does not fit the API" in unknown.last()[1]["error"]
