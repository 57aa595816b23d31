"""The API and MCP of the demos, input that they refuse with a reason, and what they read in spite of its looks."""

import json
import math
import os
import re
import sys
import time

import numpy as np
import pandas as pd
import pytest
from gradio_client import Client

from tests.demos import CASES, EVIL, HTTP, INTERNAL, SECRET, WITH_CONTEXTS, call, in_every_demo, use_mcp

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

LONG, MANY, PAIR = "word " * 2_000, [f"{SECRET} {i}" for i in range(500)], [[SECRET, "b"]]
# For the endpoint of sets, of texts, and of people's and a model's answers: the data, and a word of the reason.
NOT_SETS = [
    ([[]], "no text"),
    ([[["a"], []]], "empty"),
    ([[SECRET]], "list of sets"),
    ([[["a", None]]], "must be a string"),
    ([[["a", {"path": "/etc/passwd"}]]], "must be a string"),
    ([[[SECRET, LONG]]], "too long"),
    ([[MANY]], "Too many texts"),
    ([PAIR * 60], "Too many sets"),
    ([[["a", "broken \ud800"]]], "broken character"),
    ([], "missing a required argument: 'texts'"),
    ([PAIR, *[1] * 9], "too many positional arguments"),
]
NOT_TEXTS = [
    ([[]], "no text"),
    ([SECRET], "no text"),
    ([[3]], "must be a string"),
    ([[LONG]], "too long"),
    ([MANY], "Too many texts"),
    ([], "missing a required argument: 'texts'"),
]
NOT_ANSWERS = [
    ([[], ["a"]], "missing"),
    ([["a"], []], "missing"),
    ([SECRET, ["a"]], "list of texts"),
    ([["a"], [3]], "list of texts"),
    ([["a"], [LONG]], "too long"),
    ([["a"]], "missing a required argument: 'model'"),
]
NOT_SETTINGS = {
    "vendi_embed": [0, 6, "1; drop", None, True, [SECRET]],
    "semantic_entropy": [0.1, 2, SECRET, [1]],
    "self_bleu": [0, 9, 1.5, SECRET, None],
}
NOT_CONTEXTS = [SECRET, [], [3], [SECRET, SECRET], [LONG]]


def refused(name):
    """Return data that the endpoint of a demo refuses, with a word of the reason."""
    rows = [([PAIR, value], "must be") for value in NOT_SETTINGS.get(name, [])]
    if name in WITH_CONTEXTS:
        default = {"vendi_embed": [1], "semantic_entropy": [0.83]}.get(name, [])
        rows += [([PAIR, *default, value], "contexts") for value in NOT_CONTEXTS]
    return rows + {"gruen": NOT_TEXTS, "probeval": NOT_ANSWERS}.get(name, NOT_SETS)


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
    "A" * 2_000,
]


@in_every_demo
def test_the_api_and_mcp_give_what_compute_gives(demo, load):
    case, compute = CASES[demo.name], load(demo.name).compute
    expected = compute(**case.arguments)
    client = Client(demo.url, verbose=False)
    assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/score"]
    tool, by_mcp = use_mcp(demo, case.api)
    assert tool.name == demo.name
    assert tool.description
    assert set(case.api) <= set(tool.inputSchema["properties"])
    for result in (client.predict(**case.api, api_name="/score"), by_mcp):
        assert isinstance(result["warnings"], list)
        assert result["signature"] == expected["signature"]
        for name, value in expected.items():
            if isinstance(value, float) and not math.isnan(value):
                assert result[name] == pytest.approx(value, abs=1e-5), name
        assert result["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    if case.setting:
        _, name, value = case.setting
        result = client.predict(**case.api, **{name: value}, api_name="/score")
        assert result["scores"] == pytest.approx(compute(**case.arguments, **{name: value})["scores"], abs=1e-5)


@in_every_demo
def test_what_the_api_refuses(demo):
    for data, reason in refused(demo.name):
        answer = call(demo, data)
        assert isinstance(answer, str), (str(data)[:80], answer)
        assert reason in answer, (str(data)[:80], answer)
        assert INTERNAL not in answer


@in_every_demo
def test_a_call_may_leave_settings_out_and_odd_texts_are_scored(demo, load):
    answer = call(demo, list(CASES[demo.name].api.values()))
    assert isinstance(answer, dict), answer
    assert answer["scores"] == pytest.approx(load(demo.name).compute(**CASES[demo.name].arguments)["scores"], abs=1e-5)
    texts = [text for text in ODD if demo.name != "probeval" or len(text) <= 200]
    answer = call(demo, {"gruen": [texts], "probeval": [texts, texts]}.get(demo.name, [[texts]]))
    assert isinstance(answer, dict), answer
    assert isinstance(answer[demo.name], float)


@in_every_demo
def test_what_is_not_the_answer_is_named(demo):
    texts = ["<think>Rivers.</think>Paris is the capital.", "Paris is the capital.</s>"]
    answer = call(demo, {"gruen": [texts], "probeval": [["Paris"], texts]}.get(demo.name, [[texts]]))
    (note,) = [warning for warning in answer["warnings"] if "<think>" in warning]
    assert "1 of 2 texts hold reasoning" in note
    assert "--strip reasoning,special " in note


@in_every_demo
def test_requests_past_the_page(demo):
    """Large bodies, files outside of the uploads, other people's files, and bodies that are no JSON."""
    address = f"{demo.url}gradio_api/"
    body = b'{"data": ["' + b"a" * 1_000_000 + b'"]}'
    assert HTTP.post(f"{address}call/score", content=body).status_code == 413
    assert HTTP.post(f"{address}upload", files={"files": ("a.csv", body)}).status_code == 413
    assert HTTP.post(f"{address}call/score", content=b"[" * 10_000).status_code in (400, 422)
    for path in ("/etc/passwd", "app.py", "_kit/server.py"):
        assert HTTP.get(f"{address}file={path}").status_code in (403, 404)
    assert HTTP.get(f"{demo.url}monitoring").status_code >= 400
    assert HTTP.get(f"{demo.url}card").text.strip().startswith(f"# Metric Card for {demo.name}")
    for path in ("openapi.json", "gradio_api/openapi.json", "gradio_api/deep_link", "gradio_api/deep_link/"):
        assert HTTP.get(f"{demo.url}{path}?session_hash=s", follow_redirects=True).status_code == 404
    assert HTTP.get(f"{address}proxy=https://example.com/").status_code >= 400
    config = HTTP.get(f"{demo.url}config").json()
    kinds = {component["id"]: component["type"] for component in config["components"]}
    (event, *_) = [
        event for event in config["dependencies"] if [kinds[i] for i in event["inputs"]][:2] == ["textbox", "file"]
    ]
    values = [
        "1[]",
        {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
        *[SECRET] * (len(event["inputs"]) - 2),
    ]
    posted = HTTP.post(f"{address}queue/join", json={"data": values, "fn_index": event["id"], "session_hash": "s"})
    assert posted.status_code == 200
    with HTTP.stream("GET", f"{address}queue/data?session_hash=s") as stream:
        messages = [json.loads(line[5:]) for line in stream.iter_lines() if line.startswith("data:")]
    assert not next(message for message in messages if message["msg"] == "process_completed")["success"]


FILES = {
    "no text column": (".csv", b"body,set\na,b\n", "column “text”"),
    "more cells": (".csv", b"text,set\na,b,c\nd,e,f\n", "more cells"),
    "one line with more cells": (".csv", b"text,set\na,b\nd,e,f\n", "not valid CSV"),
    "an open quote": (".csv", b'text,set\n"a,b\n', "not valid CSV"),
    "an empty text": (".csv", b"text,set\na,b\n,c\n", "Row 2"),
    "only a header": (".csv", b"text,set\n", "no text"),
    "Latin-1": (".csv", "text\ncafé\n".encode("latin-1"), "UTF-8"),
    "JSON of numbers": (".jsonl", b"1\n2\n", "not valid JSON|column"),
    "a number": (".jsonl", b'{"text": 3}\n', "Row 1"),
    "null": (".jsonl", b'{"text": "a"}\n{"text": null}\n', "Row 2"),
    "deep": (".jsonl", b'{"text": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n", "not valid JSON|Row 1"),
    "too large": (".csv", b"text\n" + b"a" * 70_000, "too large"),
    "no ending": ("", b"text\na\n", "must end in"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_refused(kit, tmp_path, case):
    ending, content, reason = FILES[case]
    path = tmp_path / f"mine{ending}"
    path.write_bytes(content)
    with pytest.raises(kit.inputs.InputError, match=reason):
        kit.inputs.read_table(str(path), kit.inputs.Limits())


def test_files_that_are_read(kit, tmp_path):
    Row = kit.inputs.Row  # noqa: N806
    quoted = '\ufefftext,set,more\n"a, ""b""\nc",1,x\n=1+1,NA,\nnull,,\n'
    lines = '{"text": "2026-01-01", "set": "1"}\n{"text": "ü", "set": null, "x": [1]}\n'
    for name, content, rows in [
        ("a.csv", quoted, [Row('a, "b"\nc', "1"), Row("=1+1", "NA"), Row("null")]),
        ("a.CSV", "text\r\n<b>\r\n", [Row("<b>")]),
        ("a.jsonl", lines, [Row("2026-01-01", "1"), Row("ü")]),
    ]:
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert kit.inputs.read_table(str(tmp_path / name), kit.inputs.Limits()) == rows, name


def test_no_formula_is_in_a_download(kit):
    cells = ["=1+1", " =1", "+a", "-a", "@a", "\t=1", "＝1", "a=1", "", 3, None]
    harmless = list(kit.harmless(pd.DataFrame({"a": pd.Series(cells, dtype=object)}))["a"])
    assert harmless[:7] == [f"'{cell}" for cell in cells[:7]]
    assert harmless[7:] == cells[7:]


def test_no_markup_is_in_the_html(kit):
    card = kit.panels.Card(EVIL, EVIL, 0.5, EVIL, EVIL, 0.5, 0.1, (EVIL, EVIL), 0, [(EVIL,) * 3])
    ranked = kit.panels.Ranked(EVIL, EVIL, 0.5, EVIL, 1, 0.5)
    html = "".join(
        kit.panels.render(*call_of_macro)
        for call_of_macro in (
            ("answer", [card], [ranked], EVIL, [EVIL], EVIL, EVIL, EVIL),
            ("banner", EVIL, EVIL, EVIL, [(EVIL, EVIL)]),
            ("empty",),
            ("error", EVIL, EVIL),
            ("heading", EVIL, EVIL),
            ("marked", [[(EVIL, 1), (EVIL, 0)]], [EVIL], 0),
            ("groups", [(EVIL, [(EVIL, [EVIL], 0)])], 5),
            ("ledger", [(EVIL, EVIL)], EVIL),
            ("ledger", [], EVIL),
            ("downloads", [(EVIL, EVIL, EVIL)]),
        )
    )
    assert not re.search(r"<img|<b>bold|[{}$`]", html)


@pytest.mark.parametrize(
    ("first", "second", "cosine", "kind"),
    [
        ("I like it.", "I don't like it.", 0.9, "negation"),
        ("He likes it.", "He does not like it.", 0.9, "negation"),
        ("Anna left early.", "Maria left early.", 0.9, "the first word"),
        ("She was late because she missed the bus.", "She missed the bus, so she was late.", 0.9, None),
        ("The couple walk.", "The couple walk!", 0.9, None),
        ("The drug is safe.", "The drug is unsafe.", 0.1, None),
        ("The food was good.", "The food was bad.", 0.9, "negation"),
        ("Yes, it is.", "No, it is not.", 0.9, "negation"),
    ],
)
def test_what_the_encoder_hardly_sees(kit, first, second, cosine, kind):
    square = np.array([[1, cosine, 0], [cosine, 1, 0], [0, 0, 1]])
    found = kit.scoring.reading.differences([first, second, "Rain fell all night."], square >= 0.7)
    assert found == ({kind: (0, 1)} if kind else {})


@pytest.mark.discrete
def test_equal_scores_have_one_place(kit):
    """Whatever the rounding, and in the order in which they came."""
    sets = sys.modules["_kit.sets"]
    items = [
        kit.panels.Ranked(name, "", value) for name, value in zip("abcd", (0.2, 0.5, 0.5 + 1e-9, 0.1), strict=True)
    ]
    assert [(row.place, row.name) for row in sets.rank(items)] == [(1, "b"), (1, "c"), (3, "a"), (4, "d")]
    given = sets.Sets([["a"]] * 3, ["x", "y", "z"])
    assert sets.verdict(given, [0.5, 0.2, 0.1], 0.1, "More", "Equal") == "More in A: x than in any other of 3 sets."
    assert sets.verdict(given, [0.5, 0.2, 0.45], 0.1, "More", "Equal") == ""
    assert sets.shown_of([None, 0.5, 0.1, 0.5 + 1e-9, 0.1 - 1e-9]) == [1, 2]


def test_old_uploads_go_whatever_their_name(kit, tmp_path):
    """Those of aborted uploads have temporary names; beyond the bound, the oldest go first."""
    for name in ("old", "new", "full"):
        (tmp_path / name).mkdir()
    files = {"full/a.csv": 0, "tmp1234": 0, "tmp5678": None, "new/b.csv": None}
    for name, modified in files.items():
        (tmp_path / name).write_text("text")
        if modified is not None:
            os.utime(tmp_path / name, (modified, modified))
    for name in ("old", "full"):
        os.utime(tmp_path / name, (0, 0))
    kit.server.sweep(tmp_path, 60, 100)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["b.csv", "full", "new", "tmp5678"]
    now = time.time()
    os.utime(tmp_path / "tmp5678", (now - 5, now - 5))
    kit.server.sweep(tmp_path, 60, 4)
    assert [path.name for path in tmp_path.rglob("*.csv")] == ["b.csv"]
    assert not (tmp_path / "tmp5678").exists()


def test_an_error_of_ours_is_logged_without_its_text(kit, caplog):
    shown = kit.server.shown_error(KeyError(SECRET)).message
    assert INTERNAL in shown
    assert SECRET not in shown + caplog.text
    assert "KeyError" in caplog.text
