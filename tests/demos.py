"""Ways to use a running demo in tests: by HTTP, and past the page."""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from scripts.tooling import build_space

NAMES = build_space.space_names()
# In every text of a test that may not appear in a log.
SECRET = "zanzibar"
# How many times the usual number of hostile cases.
TIMES = int(os.environ.get("ATTACK_TIMES", "1"))
# Upper bounds of one answer, on a busy machine.
SECONDS, BYTES = 60, 4_000_000
# An error that is not the visitor's.
INTERNAL = "Something went wrong"
# Where a demo puts uploaded files, beside its log.
FILES = "files"
# Chamfer has the short queue, so that a test can fill it.
SWITCHES = {"self_bleu": {"SPACE_MCP": "1"}, "probeval": {"SPACE_MCP": "1"}, "chamfer_diversity": {"SPACE_QUEUE": "3"}}
every_space = pytest.mark.parametrize("name", NAMES)
in_chromium = pytest.mark.parametrize("demo", NAMES, indirect=True)


def in_demo(*names):
    """Run a test in some of the demos."""
    return pytest.mark.parametrize("demo", names, indirect=True)


class Answered(NamedTuple):
    """What a server answered: the status, the events of the stream, and their size in bytes."""

    status: int
    events: list[tuple[str, Any]]
    n_bytes: int
    seconds: float

    def last(self):
        """Return the last event that is not a heartbeat."""
        return next(event for event in reversed(self.events) if event[0] != "heartbeat")


def came_from(address):
    """Return the header by which a proxy on this machine says where a request came from."""
    return {"X-Forwarded-For": address}


def call(demo, data, path="call/score", timeout=120, address="127.0.0.1"):
    """Call the endpoint as curl does; returns what came back."""
    begin = time.monotonic()
    # A client that loads certificates at each request, in many threads at once, reads its result too late.
    options = {"timeout": timeout, "headers": came_from(address), "verify": False}
    posted = httpx.post(f"{demo.url}gradio_api/{path}", json=data, **options)
    if posted.status_code != 200:
        return Answered(
            posted.status_code, [("refused", json_of(posted))], len(posted.content), time.monotonic() - begin
        )
    events, name, size = [], "", 0
    results = f"{demo.url}gradio_api/call/score/{posted.json()['event_id']}"
    with httpx.stream("GET", results, **options) as stream:
        for line in lines_of(stream):
            size += len(line)
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                events.append((name, json.loads(line[5:])))
    return Answered(posted.status_code, events, size, time.monotonic() - begin)


def lines_of(stream):
    """Yield the lines of a stream; those of httpx end at any separator of Unicode, too."""
    rest = b""
    for part in stream.iter_bytes():
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.decode()


def json_of(response):
    try:
        return response.json()
    except ValueError:
        return response.text


def join(demo, fn_index, data, session, timeout=120):
    """Send an event of the page, past the page; returns the final message, and the bytes that were sent."""
    body = {"data": data, "fn_index": fn_index, "session_hash": session}
    posted = httpx.post(f"{demo.url}gradio_api/queue/join", json=body, timeout=timeout)
    if posted.status_code != 200:
        return {"success": False, "output": json_of(posted), "status": posted.status_code}, len(posted.content)
    size = 0
    address = f"{demo.url}gradio_api/queue/data?session_hash={session}"
    with httpx.stream("GET", address, timeout=timeout) as stream:
        for line in lines_of(stream):
            size += len(line)
            if line.startswith("data:"):
                message = json.loads(line[5:])
                if message["msg"] in ("process_completed", "unexpected_error"):
                    return message, size
    return None, size


def event_of(demo, *kinds, is_run=False):
    """Return the index and the inputs of the smallest event whose inputs begin with components of these kinds.

    is_run : only of the events that score
    """
    config = httpx.get(f"{demo.url}config").json()
    components = {component["id"]: component for component in config["components"]}
    for event in sorted(config["dependencies"], key=lambda event: len(event["inputs"])):
        found = [components[i] for i in event["inputs"]]
        if not event["backend_fn"] or (is_run and not event["queue"]):
            continue
        if [component["type"] for component in found[: len(kinds)]] == list(kinds):
            return event["id"], found
    raise AssertionError(f"no event begins with {kinds}")


def score_boxes(demo, *texts, session="boxes"):
    """Press Score with these texts, past the page; returns the message and its bytes."""
    place, components = event_of(demo, *["textbox"] * len(texts), is_run=True)
    settings = [component["props"].get("value") for component in components[len(texts) :]]
    return join(demo, place, [*texts, *settings], session)


def download(page, label):
    """Click a link and return what it downloads: its name and its text. A page that is drawn anew may lose a click."""
    from playwright.sync_api import TimeoutError as NothingCame

    for seconds in (15, 60):
        try:
            with page.expect_download(timeout=1000 * seconds) as waiting:
                page.get_by_role("link", name=label).click()
        except NothingCame:
            continue
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_text(encoding="utf-8-sig")
    raise AssertionError(f"{label} downloads nothing")


def use_mcp(demo, *calls):
    """Return the only tool of the MCP server, and its answers to calls with these arguments."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def use():
        async with (
            streamablehttp_client(f"{demo.url}gradio_api/mcp/") as (read, send, _),
            ClientSession(read, send) as session,
        ):
            await session.initialize()
            (tool,) = (await session.list_tools()).tools
            return tool, [await session.call_tool(tool.name, arguments) for arguments in calls]

    # In a thread of its own: Playwright's event loop runs in this one.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, use()).result()


def processor_seconds(pid):
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until(holds: Callable[[], bool], seconds: float):
    """Wait for a condition; returns whether it came to hold."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.2)
    return holds()


def is_idle(demo):
    """Return whether a server computes nothing for two seconds."""
    before = processor_seconds(demo.pid)
    time.sleep(2)
    return processor_seconds(demo.pid) - before < 0.4


def long_texts():
    """Make texts that gruen reads for long."""
    rare = random.Random(7)
    words = ["".join(rare.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(6)) for _ in range(8_000)]
    sentences = [f"The {' '.join(words[i : i + 8])} went home." for i in range(0, 8_000, 8)]
    return [" ".join(sentences[i : i + 50]) for i in range(0, 750, 50)]


def report(demo, what, ends):
    """Print how the cases ended; `pytest -rP` shows it."""
    sys.stdout.write(f"{demo.name}: {ends.total()} {what} held: {dict(sorted(ends.items(), key=str))}\n")
