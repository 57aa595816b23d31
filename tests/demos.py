"""How the demos are used in the tests: the input of each, and the ways to a running one."""

import ast
import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx
import pytest

from scripts.tooling import build_space

NAMES = build_space.space_names()
# In every text of a visitor, and so in no log and no file that stays.
SECRET = "zanzibar"
# An error that is not the visitor's.
INTERNAL = "Something went wrong"
EVIL = '<img src=x onerror="window.broken=1"> <b>bold</b> {{value}} ${1+1} `1`'
WITH_CONTEXTS = ("vendi_embed", "chamfer_diversity", "semantic_entropy")
in_every_demo = pytest.mark.parametrize("demo", NAMES, indirect=True)


class Demo(NamedTuple):
    """A running demo."""

    name: str
    url: str
    process: int


class Case(NamedTuple):
    """How a demo is used.

    typed : what is written into the boxes, names included
    file : a CSV file with the same input
    arguments : the same for `compute`
    api : the same for the API
    numbers : the numbers on the page, from the result
    setting : label of a number on the page, its name for the API and for `compute`, and a value
    """

    typed: tuple[str, ...]
    file: str
    arguments: dict[str, Any]
    api: dict[str, Any]
    numbers: Callable[[dict[str, Any]], list[float]] = lambda result: result["scores"]
    setting: tuple[str, str, float] | None = None


SETS = [
    [f"A man of {SECRET} walks his dog.", f"=A man of {SECRET} walks a dog to its owner, then home.", EVIL],
    [f"She sings in {SECRET}.", "She swims."],
]
_TYPED = ("cats", "\n".join(SETS[0]), "owls", "\n".join(SETS[1]))


def csv_of(rows):
    """Write rows of text and set as CSV."""
    quoted = []
    for row in rows:
        quoted.append(",".join('"' + cell.replace('"', '""') + '"' for cell in row))
    return "\n".join(["text,set", *quoted]) + "\n"


_CSV = csv_of((text, name) for name, texts in zip(("cats", "owls"), SETS, strict=True) for text in texts)
_PEOPLE = ["kettle"] * 6 + ["pot"] * 3 + [SECRET]
_MODEL = ["a kettle"] * 5 + ["-helicopter"] * 5
_STORIES = [
    f"The council of {SECRET} met on Tuesday. It wants a bridge. It wants a bridge.",
    "He go home then fast the.",
]


def _sets_case(**setting: Any) -> Case:
    return Case(_TYPED, _CSV, {"predictions": SETS}, {"texts": SETS}, **setting)


_ANSWERS = csv_of([("kettle × 6", "people"), ("pot: 3", "people"), (SECRET, "People"), ("a kettle × 5", "model")])
_PROBEVAL = Case(
    (f"kettle × 6\npot x 3\n{SECRET}", "a kettle: 5\n-helicopter*5"),
    _ANSWERS + "-helicopter*5,model\n",
    {"predictions": [_MODEL], "references": [_PEOPLE]},
    {"people": _PEOPLE, "model": _MODEL},
    lambda result: [result["probeval"]],
)
_GRUEN = Case(
    ("\n---\n".join(_STORIES),),
    csv_of((text, "") for text in _STORIES),
    {"predictions": _STORIES},
    {"texts": _STORIES},
    lambda result: [result["gruen"]],
)
CASES = {
    "vendi_embed": _sets_case(setting=("Order q", "q", 2.0)),
    "chamfer_diversity": _sets_case(),
    "semantic_entropy": _sets_case(setting=("Say the same from this cosine", "same", 0.6)),
    "self_bleu": _sets_case(setting=("Longest phrase", "max_order", 2)),
    "probeval": _PROBEVAL,
    "gruen": _GRUEN,
}


# One for all calls: each would load the certificates anew.
HTTP = httpx.Client(timeout=120)


def call(demo, data):
    """Call the endpoint as curl does; returns the result, or the text of the error."""
    address = f"{demo.url}gradio_api/call/score"
    # By json, which httpx does not write: it refuses half of an emoji.
    body = json.dumps({"data": data})
    kind = {"Content-Type": "application/json"}
    posted = HTTP.post(address, content=body, headers=kind)
    if posted.status_code != 200:
        return posted.text
    name = ""
    with HTTP.stream("GET", f"{address}/{posted.json()['event_id']}") as stream:
        for line in stream.iter_lines():
            if line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:") and name in ("complete", "error"):
                value = json.loads(line[5:])
                return value[0] if name == "complete" else str(value)
    raise AssertionError("the stream ended without a result")


def use_mcp(demo, arguments):
    """Return the tools of the MCP server, and the only one's answer to a call."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async def use():
        async with (
            streamablehttp_client(f"{demo.url}gradio_api/mcp/") as (read, send, _),
            ClientSession(read, send) as session,
        ):
            await session.initialize()
            (tool,) = (await session.list_tools()).tools
            return tool, await session.call_tool(tool.name, arguments)

    # In a thread of its own: Playwright's event loop runs in this one.
    with ThreadPoolExecutor(1) as pool:
        tool, answer = pool.submit(asyncio.run, use()).result()
    return tool, ast.literal_eval(answer.content[0].text)
