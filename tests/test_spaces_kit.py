"""The kit of the demos: what is read, what is refused, and that nothing a visitor wrote is taken for code."""

import base64
import csv
import io
import json
import re
import subprocess
import sys
import time
import warnings

import gradio as gr
import numpy as np
import pytest
import tqdm.auto
from hypothesis import example, given
from hypothesis import strategies as st

from scripts.tooling import build_space
from spaces._kit import examples, inputs, sets, work
from spaces._kit.page import layout
from spaces._kit.server import errors
from spaces._kit.show import downloads, panels, plots
from text_metrics.commands import demo

LIMITS = inputs.Limits(sets=3, texts=4, text_characters=10, characters=20, file_bytes=60)
ROLES = sets.ROLES


def test_the_examples_are_the_sentences_of_the_demo():
    for name in ("DIFFERENT", "PARAPHRASES"):
        assert getattr(examples, name) == getattr(demo, name)


def test_one_text_a_line_and_a_blank_line_between_sets():
    assert inputs.sets_from_text("a\n b \r\n\n\n \nc\rd\n") == [["a", "b"], ["c", "d"]]
    assert inputs.sets_from_text(" \n\n") == []
    # A form feed, or a line separator of Unicode, does not end a line.
    assert inputs.sets_from_text("a\x0cb\u2028c") == [["a\x0cb\u2028c"]]


def test_sets_of_rows_are_grouped_in_order():
    rows = [{"text": "a", "set": "x"}, {"text": "b", "set": "y"}, {"text": "c", "set": "x"}, {"text": " ", "set": "z"}]
    assert inputs.sets_from_rows(rows) == [["a", "c"], ["b"]]
    assert inputs.sets_from_rows([{"text": ["a", "b"]}, {"text": ["c"]}]) == [["a", "b"], ["c"]]
    assert inputs.sets_from_rows([{"text": "a"}, {"text": "b"}]) == [["a", "b"]]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "There is no text yet"),
        ([[]], "There is no text yet"),
        ("text", "must be a list of sets"),
        ([["a"], "b"], "must be a list of sets"),
        ([["a"], []], "Set 2 is empty"),
        ([["a", 3]], "Text 2 of set 1 must be a string. Got int"),
        ([["a"]] * 4, "Too many sets: 4, the limit here is 3"),
        ([["a"] * 5], "Too many texts: 5, the limit here is 4"),
        ([["a", "b" * 11]], "Text 2 is too long: 11 characters, the limit here is 10"),
        ([["a" * 10, "b" * 10, "c"]], "21 characters in total, the limit here is 20"),
    ],
)
def test_what_is_too_much_is_refused(texts, message):
    with pytest.raises(inputs.InputError, match=message):
        inputs.check_sets(texts, LIMITS)


def file_of(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        ("a.csv", '\ufefftext,set\n"a, b",1\nc\n', ["text", "set"], [["a, b", "1"], ["c"]]),
        ("a.csv", "text;n\na,b;1\n", ["text", "n"], [["a,b", "1"]]),
        ("a.CSV", "text,,text\na,b,c\n", ["text", "column 2", "text (3)"], [["a", "b", "c"]]),
        ("a.csv", "model,score\na b,5\n", ["model", "score"], [["a b", "5"]]),
        ("a.csv", "Rain fell.,1\nIt snowed.,2\n", ["column 1", "column 2"], [["Rain fell.", "1"], ["It snowed.", "2"]]),
        ("a.csv", "rain\nsnow\n", ["column 1"], [["rain"], ["snow"]]),
        ("a.csv", "set\ttext\na,b\tc;d\n", ["set", "text"], [["a,b", "c;d"]]),
        (
            "a.jsonl",
            '{"t": "a", "n": 1}\n\n{"t": null, "m": [1, "b"]}\n',
            ["t", "n", "m"],
            [["a", "1"], ["", ["1", "b"]]],
        ),
        ("a.jsonl", '"a"\n["b", "c"]\n', ["text"], [["a"], [["b", "c"]]]),
    ],
)
def test_files_are_tables(tmp_path, name, content, columns, rows):
    table = inputs.read_table(file_of(tmp_path, name, content), LIMITS, ROLES)
    assert table.columns == columns
    assert [list(row.values()) for row in table.rows] == rows


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.exe", "a", r"must end in \.csv, \.jsonl\. Got \.exe"),
        ("a.csv", "a" * 61, "too large: 61 bytes, the limit here is 60"),
        ("a.csv", b"caf\xe9", "must be UTF-8 text, and byte 3 is not"),
        ("a.csv", 'a\n"b', "not valid CSV"),
        ("a.csv", "text\nHello, world\n", "Line 2 has 2 cells, and the first line has 1. Put a text .* in quotes"),
        ("a.csv", "", "contains no text"),
        ("a.csv", "text\n", "contains no text"),
        ("a.jsonl", '{"a": 1}\n{"a"', "Line 2 of the file is not valid JSON"),
        ("a.jsonl", "[" * 60, "Line 1 of the file is not valid JSON"),
    ],
)
def test_files_that_cannot_be_read_are_refused(tmp_path, name, content, message):
    with pytest.raises(inputs.InputError, match=message):
        inputs.read_table(file_of(tmp_path, name, content), LIMITS, ROLES)


def test_columns_are_guessed_and_chosen():
    table = inputs.Table(["id", "n", "Text"], [{"id": "1", "n": "long content", "Text": "a"}])
    assert inputs.guess_columns(table, ROLES) == ["Text", "id"]
    unnamed = inputs.Table(["x", "y"], [{"x": "1", "y": "the longest"}])
    assert inputs.guess_columns(unnamed, ROLES) == ["y", None]
    assert inputs.pick_columns(table, ROLES, ["n", ""]) == [{"text": "long content"}]
    for columns in (["no such", ""], [None, ""], ["n", "../../etc/passwd"]):
        with pytest.raises(inputs.InputError, match=r"Choose the column for .*The table has id, n, Text"):
            inputs.pick_columns(table, ROLES, columns)


def test_what_a_table_leaves_out_is_said():
    table = inputs.parse_csv("set,text,n,m\na,x,1,1\nb,,1,1\n", LIMITS, ROLES)
    rows = inputs.pick_columns(table, ROLES, ["text", "set"])
    remarks = inputs.table_remarks(table, ["text", "set"], len(rows))
    assert remarks == ["The first row names the columns.", "1 row without a text left out.", "Not read: n, m."]
    without = inputs.parse_csv("set,text,n,m\n", LIMITS, ROLES, has_header=False)
    assert inputs.table_remarks(without, without.columns, 1) == ["No header: the first row is data."]


def test_names_of_sets_are_in_every_table():
    texts = inputs.sets_from_rows(
        [{"text": "a", "set": "x"}, {"text": ["b", "c"], "set": "y"}, {"text": "d", "set": "z"}]
    )
    assert inputs.sets_from_rows(sets.to_rows(texts)) == texts == [["a"], ["b", "c"], ["d"]]
    assert sets.set_name(texts, 1) == "Set 2 (y)"
    assert sets.choices(texts) == ["Set 1 (x): a", "Set 2 (y): b", "Set 3 (z): d"]
    details = sets.details(("Set", "No."), [[1, 1], [3, 1]], texts)
    assert details == (("Set", "Name", "No."), [[1, "x", 1], [3, "z", 1]])
    assert sets.scores_table(texts, {"S": [None, 0.5, None]}).rows[1] == [2, "y", 2, "b", 0.5]
    assert sets.report("m", {}, texts)["names"] == ["x", "y", "z"]
    unnamed = inputs.sets_from_text("a\nb")
    assert sets.details(("Set", "No."), [[1, 2]], unnamed) == (("No.",), [[2]])
    assert "names" not in sets.report("m", {}, unnamed)


# Few characters, so that delimiters, quotes and formulas meet.
CELLS = st.text() | st.text("a1 ;,\t\n\"'=+-@|", max_size=8)


@given(st.lists(st.lists(CELLS, max_size=3), max_size=3), st.lists(CELLS, max_size=3))
@example([["a;=1+1", 'a;"=1', "a\n=1", "\t=1", "a;\t'=1"]], [])
def test_no_cell_of_a_csv_is_a_formula(rows, headers):
    text = downloads.csv_text(headers, rows)
    # Spreadsheets of some locales split at semicolons or tabs.
    for delimiter in ",;\t":
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            for cell in line:
                assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
                assert delimiter != "," or not cell.startswith(("\t", "\r", "\n"))


def test_a_csv_holds_what_it_was_given():
    rows = [["=1+1", -2.5], ['a\n"b"', None], ["  @x", 3], ["fine", 0]]
    found = list(csv.reader(io.StringIO(downloads.csv_text(["t", "n"], rows), newline="")))
    assert found == [["t", "n"], ["'=1+1", "-2.5"], ['a\n"b"', ""], ["'  @x", "3"], ["fine", "0"]]


def test_downloads_are_in_the_link():
    tables = {"Details": downloads.Table(["t"], [["<b>é"]]), "All scores": downloads.Table(["s"], [[0.25]])}
    html = downloads.links("name", tables, {"scores": [0.1], "text": "<b>é"})
    table, scores, whole = (base64.b64decode(data).decode() for data in re.findall(r"base64,([^\"]+)", html))
    assert table == "\ufefft\r\n<b>é\r\n"
    assert scores == "\ufeffs\r\n0.25\r\n"
    assert re.findall(r'download="([^"]+)"', html) == ["name.csv", "name-scores.csv", "name.json"]
    assert json.loads(whole) == {"scores": [0.1], "text": "<b>é"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        downloads.links("name", {}, {"score": float("nan")})


def test_samples_are_files_that_the_demos_read(tmp_path):
    typed = sets.EXAMPLES[0].texts[0]
    texts = inputs.sets_from_text(typed)
    html = downloads.samples("name", sets.to_rows(texts), typed)
    found = re.findall(r'download="name-sample([^"]+)" [^>]*base64,([^"]+)', html)
    contents = {suffix: base64.b64decode(data).decode() for suffix, data in found}
    assert list(contents) == [".txt", ".csv", ".jsonl"]
    assert inputs.sets_from_text(contents[".txt"]) == texts
    for suffix in inputs.TABLES:
        table = inputs.read_table(file_of(tmp_path, f"a{suffix}", contents[suffix]), inputs.Limits(), ROLES)
        columns = inputs.guess_columns(table, ROLES)
        assert inputs.sets_from_rows(inputs.pick_columns(table, ROLES, columns)) == texts


@given(st.text())
def test_escaped_text_holds_no_markup(text):
    escaped = panels.escape(text)
    assert not set(escaped) & set("<>\"'{}$`")
    import html

    assert html.unescape(escaped) == html.unescape(html.escape(text))


@given(st.text())
def test_labels_hold_no_markup(text):
    assert "<" not in plots.label(text).replace("<br>", "")
    assert "&" not in re.sub(r"&(amp|lt|gt);", "", plots.label(text))


def test_every_panel_escapes():
    evil = "<img src=x onerror=alert(1)>{{x}}${x}"
    card = panels.Card(evil, 1.0, evil, evil, 0.5, (evil, evil), facts=[(evil, evil, evil)])
    made = [
        panels.answer([card], evil, [evil], evil, panels.tiles([(evil, evil, evil)])),
        panels.error(evil),
        panels.message(evil, evil),
        panels.empty([evil]),
        panels.heading(evil, evil),
        panels.banner(evil, evil, evil),
        panels.mark(evil, evil, 0.5),
        panels.texts([panels.mark(evil, evil, 2)], [(evil, 0.5)]),
        panels.passage([panels.sentence(0, evil, evil, 0.5, [1])], [(evil, 1)]),
        panels.ledger([(evil, evil)], evil),
        panels.ledger([], evil),
        panels.groups([(evil, [(evil, [(evil, 2)], 0)])], 1),
        panels.add_notes(panels.answer([card]), [evil]),
    ]
    for html in made:
        assert "<img" not in html
        assert "{{" not in html
        assert "${" not in html


def test_hidden_text_is_not_coloured():
    assert re.fullmatch(r'<mark [^>]*>a</mark><span class="tm-sr"> \(tip\) </span>', panels.mark("a", "tip", 0.5))


def test_figures_hold_no_markup():
    evil = ["<a href='javascript:alert(1)'>x</a>", "<img src=x>%{x}"]
    matrix = np.eye(2)
    points = plots.plane(matrix)[0]
    figures = [
        plots.heat_map(matrix, evil),
        plots.text_map(points, evil, ["1", "2"], [0, 1], evil, [(0, 1)]),
        plots.paired_bars({evil[0]: [1, 2], evil[1]: [3, 4]}, evil, "x"),
        plots.paired_bars({evil[0]: [1, 2], evil[1]: [3, 4]}, evil, "x", first=1),
        plots.ranked_bars([(evil[0], 1.0, 0, evil[1])], [evil[0]], "x"),
        plots.bars({evil[0]: [1], evil[1]: [2]}, ["1"], "x"),
        plots.curves({evil[0]: ([1], [2])}, "x", "y", ""),
    ]
    for figure in figures:
        made = json.dumps(json.loads(figure.to_json()), ensure_ascii=False)
        assert "<a " not in made
        assert "<img" not in made


def test_lines_of_labels_run_in_the_direction_of_their_script():
    assert plots.label("one two", 3) == "one<br>two"
    assert plots.label("مرحبا بالعالم.", 8) == "\u2068مرحبا\u2069<br>\u2068بالعالم.\u2069"


def test_rounding_errors_do_not_fill_a_figure():
    assert plots.bars({"a": [1e-16, None]}, ["1", "2"], "x").layout.yaxis.range == (0, 1)
    assert plots.bars({"a": [1e-16, 0.1]}, ["1", "2"], "x").layout.yaxis.range is None


def test_columns_have_room_for_their_numbers():
    long = "A text of many words that has to share what is left."
    shares = [float(width[:-1]) for width in layout.column_widths(("No.", "Text", "Adds"), [[1, long, -0.0671]] * 2)]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    assert 720 * shares[2] / 100 >= 28 + 9 * 7
    assert shares[1] > 70
    assert layout.column_widths(("a", "b"), []) == ["50.00%", "50.00%"]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_the_plane_keeps_distances_where_it_can(n, rng):
    flat = rng.normal(size=(n, 2))
    points, share = plots.plane(flat @ flat.T)
    expected = np.linalg.norm(flat[:, None] - flat, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(points[:, None] - points, axis=-1), expected, atol=1e-6)
    assert share == pytest.approx(1.0)


def test_labels_of_a_map_avoid_its_arrows():
    points, texts = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), ["a", "b", "c"]

    def places(*arrows):
        return list(plots.text_map(points, texts, texts, [0, 0, 0], ["Set 1"], arrows).data[0].textposition)

    assert places() == ["top center"] * 3
    # The first one's arrow points upwards, and ends at the second one from below.
    assert places((0, 1)) == ["bottom center", "top center", "top center"]
    assert places((0, 1), (0, 2), (2, 0)) == ["bottom center", "top center", "middle right"]


def test_two_sets_are_looked_at():
    assert sets.two_of([], 1) == [0]
    assert sets.two_of([None, None], 3) == [0, 1]
    assert sets.two_of([2, 0], 3) == [2, 0]
    assert sets.two_of([2, 2], 3) == [2, 0]
    assert sets.two_of([7, -1], 3) == [0, 1]


def test_a_model_that_is_not_listed_is_refused():
    with pytest.raises(inputs.InputError, match=r"model must be one of all-MiniLM-L6-v2, .*Got '\.\./secret'"):
        sets.check_model("../secret")


def test_progress_and_warnings_reach_the_run_they_belong_to(monkeypatch, capfd):
    monkeypatch.setattr(tqdm.auto, "tqdm", tqdm.auto.tqdm)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        work.install()
        steps = []
        with work.running(lambda done, total: steps.append((done, total))) as heard:
            for _ in tqdm.auto.tqdm(range(1)):
                pass
            with tqdm.auto.tqdm(total=4, disable=True) as bar:
                bar.update(3)
                bar.update(1)
            for _ in range(2):
                warnings.warn("a text was cut", stacklevel=1)
        assert steps[-2:] == [(3, 4), (4, 4)]
        assert heard == ["a text was cut"] * 2
    assert capfd.readouterr().err == ""


def test_a_run_that_is_stopped_ends_at_the_next_step():
    stops = work.Stops()
    ended, other = stops.start("a"), stops.start("b")
    stops.stop("a")
    stops.stop("a")
    stops.stop(None)
    assert ended.is_set()
    assert not other.is_set()
    assert not stops.start("b").is_set()
    # A new run of a session ends the one before it.
    assert other.is_set()


def test_a_run_has_a_time_limit(monkeypatch):
    monkeypatch.setattr(tqdm.auto, "tqdm", work._Bar)

    def run():
        with work.running(lambda done, total: None, 0.01):
            for _ in tqdm.auto.tqdm(range(3), mininterval=0):
                time.sleep(0.02)

    with pytest.raises(inputs.InputError, match=r"Stopped after 0\.01 seconds, the limit here\. Send fewer"):
        run()


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: inputs.check_choice("q", ["1"], ["1", "2"]), "q must be one of 1, 2. Got .*1"),
        (lambda: inputs.check_number("n", "x", 1, 5, is_integer=True), "n must be an integer from 1 to 5. Got 'x'"),
        (lambda: inputs.check_number("n", 1.5, 1, 5, is_integer=True), "n must be an integer from 1 to 5. Got '1.5'"),
        (lambda: inputs.check_number("n", float("nan"), 0, 1), "n must be a number from 0 to 1. Got 'nan'"),
        (lambda: inputs.check_number("n", True, 0, 1), "n must be a number from 0 to 1. Got 'True'"),
        (lambda: inputs.check_sets([["a\ud800"]], LIMITS), "Text 1 contains a broken character"),
        (lambda: inputs.check_sets([["a"], ["b", "c" * 11]], LIMITS), "Text 2 of set 2 is too long"),
        (lambda: inputs.check_typed(["a" * 30, "b" * 11], LIMITS), "41 characters in total, the limit here is 20"),
    ],
)
def test_settings_and_texts_are_checked(check, message):
    with pytest.raises(inputs.InputError, match=message):
        check()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_file_with_many_columns_is_refused_at_once(tmp_path, suffix):
    if suffix == ".jsonl":
        content = "\n".join(json.dumps({f"key {i} {j}": "" for j in range(10)}) for i in range(5_000))
    else:
        content = ",".join(f"key {i}" for i in range(50_000)) + "\na\n"
    begin = time.monotonic()
    with pytest.raises(inputs.InputError, match="too many columns"):
        inputs.read_table(file_of(tmp_path, f"a{suffix}", content), inputs.Limits(), ROLES)
    assert time.monotonic() - begin < 2


def test_a_file_with_many_rows_is_refused(tmp_path):
    content = "text\n" + "a\n" * 20_000
    with pytest.raises(inputs.InputError, match="too many rows: 20,000, the limit here is 10,000"):
        inputs.read_table(file_of(tmp_path, "a.csv", content), inputs.Limits(), ROLES)


def test_programmers_errors_are_not_shown():
    for error in (TypeError("unhashable type: 'list'"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates")):
        shown = errors.public_error(error)
        assert "unhashable" not in shown
        assert "surrogate" not in shown
        assert "Please try again" in shown
    assert errors.public_error(gr.Error("")).strip()


def test_errors_that_are_not_the_visitors_are_logged_without_text(caplog):
    try:
        {}["a secret text"]
    except KeyError as error:
        shown = errors.public_error(error)
    assert "secret" not in shown + caplog.text
    assert "KeyError at" in caplog.text
    assert errors.public_error(ValueError("what to do")) == "what to do"


def test_shuffled_texts_have_the_tokens_of_the_texts(tmp_path):
    # An app runs from its build, in a process of its own.
    program = """
import app
for tokenizer in app.TOKENIZERS:
    for text in ("我喜欢 New York 的大 apple pie", 'He said: "sales rose 3.5%, to $1,000." - Don\\'t!'):
        shuffled = app.shuffle(text, tokenizer, "0")
        assert shuffled != text, tokenizer
        assert sorted(app.split(shuffled, tokenizer)) == sorted(app.split(text, tokenizer)), tokenizer
"""
    folder = build_space.build("self_bleu", tmp_path)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
