"""Parts of the demos by themselves: files, downloads, HTML, notes, ranks, uploads and errors."""

import os
import re
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.demos import EVIL, INTERNAL, SECRET

pytest_plugins = ["tests.demo_servers"]

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
    path.unlink()
    with pytest.raises(kit.inputs.InputError, match="soon deleted"):
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
            ("groups", [(EVIL, [(EVIL, [EVIL], 0)])]),
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
