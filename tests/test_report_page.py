"""The page of a report: every number of the JSON in its place, nothing claimed that is not shown, readable by all."""

import copy
import json
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pandas as pd
import pytest
from markupsafe import escape

from scripts.tooling.screenshots import LAPTOP
from tests.conftest import ROOT
from text_metrics.commands.report import tables
from text_metrics.commands.report.page import write_pages
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.shared import formats
from text_metrics.commands.shared.tables import latex, markdown

pytest_plugins = ["tests.demo_servers"]

REPORT = json.loads((ROOT / "tests/data/report.json").read_text(encoding="utf-8"))
PHONE = {"width": 360, "height": 780}
SECTIONS = ["diversity", "quality", "likeness", "people", "collapse", "caveats"]
HOSTILE = [
    "<script>window.broken=1</script>",
    "\"><img src=x onerror='window.broken=1'>",
    "</details></section></main><svg onload=window.broken=1>",
    '" onmouseover="window.broken=1" x="',
    "{{ var(--ink) }} &amp; &lt;b&gt; $x_1$",
    "مرحبا \u202e exe.txt",
    "a\x00b\x07c \u2028",
    "x" * 5000,
    "",
    "  \n\tindented\n  lines\n",
]


def changed(change):
    """Return the report with a change, and its sentences."""
    report = copy.deepcopy(REPORT)
    change(report)
    return {**report, "sentences": sentences(report)}


def hostile():
    """Return the report with markup, control characters and endless words in every text of a user."""

    def change(report):
        report["systems"] = [HOSTILE[0], "x" * 120, HOSTILE[1]]
        for source, name in zip(report["sources"], report["systems"], strict=True):
            source["system"], source["file"] = name, f"{name}.jsonl"
        report["command"]["id_key"] = HOSTILE[0]
        for prompts in report["collapse"]:
            for prompt, ident in zip(prompts, HOSTILE, strict=False):
                prompt["prompt"], prompt["texts"] = ident, list(HOSTILE)
        for metric in report["metrics"]:
            metric["signature"] = f"{HOSTILE[2]}|{'y' * 300}"
        report["caveats"][0]["sentence"] = HOSTILE[1]

    return changed(change)


def with_systems(n):
    """Return the report with n systems: those of the report again and again under other names."""

    def change(report):
        origin = [i % 3 for i in range(n)]
        report["systems"] = [f"system {i} of many" for i in range(n)]
        report["sources"] = [{**report["sources"][i], "system": report["systems"][k]} for k, i in enumerate(origin)]
        for metric in report["metrics"]:
            metric["values"] = [metric["values"][i] for i in origin]
            metric["order"], metric["best"] = list(range(n)), None
            metric["tests"] = [{**metric["tests"][0], "a": i, "b": j} for i, j in combinations(range(n), 2)]
        likeness, rows = report["likeness"], report["people"]["rows"]
        likeness["partition"]["n_groups"] = n
        likeness["pairs"] = [{**likeness["pairs"][0], "a": i, "b": j} for i, j in combinations(range(n), 2)]
        report["people"]["rows"] = [rows[0], *({**rows[1 + i], "system": k} for k, i in enumerate(origin))]
        report["collapse"] = [report["collapse"][i] for i in origin]

    return changed(change)


def alone():
    """Return a report of one system, without quality and people."""

    def change(report):
        report["systems"] = ["gpt"]
        report["likeness"] = report["people"] = None
        report["metrics"] = [metric for metric in report["metrics"] if metric["section"] == "diversity"]
        for metric in report["metrics"]:
            metric["values"], metric["tests"], metric["order"], metric["best"] = metric["values"][:1], [], [0], None
        report["sources"], report["caveats"], report["power"] = report["sources"][:1], [], []
        report["collapse"] = report["collapse"][:1]

    return changed(change)


def texts_of(report):
    return [text for prompts in report["collapse"] for prompt in prompts for text in prompt["texts"]]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def page_of(report, folder, texts=True):
    write_pages(report, folder, texts)
    return (folder / "index.html").read_text(encoding="utf-8")


def test_the_same_report_gives_the_same_files(tmp_path):
    for name in "ab":
        write_pages(REPORT, tmp_path / name, texts=True)
    first, second = (files_of(tmp_path / name) for name in "ab")
    assert first == second
    figures = {f"figures/{metric['section']}_{metric['name']}.svg" for metric in REPORT["metrics"]}
    assert {"index.html", "table.md", "table.tex", "figures/plane.svg", *figures} < set(first)


def test_a_picture_is_a_file_that_says_what_it_shows(tmp_path):
    write_pages(hostile(), tmp_path, texts=True)
    for path in (tmp_path / "figures").iterdir():
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.get("role") == "img"
        assert re.search(r"\d", root.get("aria-label"))
        # Readable on white, without a page: the colours are given, and nothing else is loaded.
        assert "var(" not in path.read_text(encoding="utf-8")
        names = {element.tag.split("}")[1] for element in root.iter()}
        assert not names - {*("svg", "g", "text", "rect", "path", "use", "defs", "style", "clipPath", "image", "tspan")}


def test_systems_are_sorted_and_truncated_axes_say_so(tmp_path):
    write_pages(REPORT, tmp_path, texts=True)
    for metric in REPORT["metrics"]:
        svg = (tmp_path / "figures" / f"{metric['section']}_{metric['name']}.svg").read_text(encoding="utf-8")
        root = ElementTree.fromstring(svg)
        texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
        names = [text for text in texts if text in REPORT["systems"]]
        assert names == [REPORT["systems"][i] for i in metric["order"]]
        ticks = [float(text.replace("−", "-")) for text in texts if re.fullmatch(r"−?[\d.]+", text)]
        assert ("does not begin at 0" in svg) == (min(ticks) > 0)


def test_the_page_begins_with_four_lines_and_needs_no_other_file(tmp_path):
    page = page_of(REPORT, tmp_path)
    assert not re.search(r"\ssrc=|@import|<link|<script", page)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', page))
    assert re.findall(r'<section id="(\w+)"', page) == SECTIONS
    places = [page.index(str(escape(REPORT["sentences"][n]))) for n in ("first", "quality", "misleading", "alike")]
    assert places == sorted(places)
    assert places[-1] < page.index("<section")
    for metric in REPORT["metrics"]:
        assert str(escape(metric["signature"])) in page


def test_numbers_are_those_of_the_report(tmp_path):
    page = page_of(REPORT, tmp_path).replace("\u00a0", " ")
    printed = (tmp_path / "table.md").read_text(encoding="utf-8").replace("\u00a0", " ")
    tex = (tmp_path / "table.tex").read_text(encoding="utf-8")
    for i, system in enumerate(REPORT["systems"]):
        row = next(line for line in printed.splitlines() if line.startswith(f"| {system} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        for metric, cell in zip(REPORT["metrics"], cells, strict=False):
            value = metric["values"][i]
            mean, low, high = (float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.\d+", cell))
            digits = len(re.search(r"\.(\d+)", cell)[1])
            assert mean == pytest.approx(value["mean"], abs=0.51 * 10**-digits)
            assert [low, high] == pytest.approx(value["interval"], abs=0.51 * 10**-digits)
            assert cell.startswith("**") == (metric["best"] == i)
            assert f"{mean:.{digits}f}".replace("-", "$-$") in tex
            assert f"<small>{cell.strip('*').split(' ', 1)[1]}</small>" in page


def test_each_table_holds_what_the_report_holds():
    tests = tables.tests_table(REPORT)
    for j, metric in enumerate(REPORT["metrics"], 1):
        for i, test in enumerate(metric["tests"]):
            difference, p = tests.frame.iloc[i, j].split("\n")
            shown = float(difference.replace("−", "-"))
            digits = len(difference.partition(".")[2])
            assert shown == pytest.approx(test["difference"], abs=0.51 * 10**-digits)
            assert p == formats.with_p(test["p_holm"])
            assert ((i, j) in tests.marked) == (test["p_holm"] is not None and test["p_holm"] < 0.05)
    pairs = tables.partition_table(REPORT).frame.iloc[1:]
    rows = REPORT["likeness"]["pairs"]
    assert [cell.split("\n")[0] for cell in pairs.iloc[:, 1]] == [formats.percent(row["share"], 1) for row in rows]
    assert [p[0] == "≤" for p in pairs["p"]] == [row["p"] == row["least_p"] for row in rows]
    near = [row["share"] for row in REPORT["people"]["rows"] if row["system"] is not None]
    shown = [cell.split("\n")[0] for cell in tables.people_table(REPORT).frame.iloc[1:, 1]]
    assert shown == [formats.percent(share, 1) for share in sorted(near)]


def test_sentences_claim_what_a_test_shows():
    said = sentences(REPORT)
    assert said == REPORT["sentences"]
    assert said["first"].startswith("gpt is first")
    assert "No system is first" in said["quality"]

    def undecided(report):
        for metric in report["metrics"]:
            metric["best"] = None
        report["metrics"][0]["tests"][0]["p_holm"] = None
        report["likeness"]["partition"]["p"] = 0.4

    said = changed(undecided)["sentences"]
    assert not re.search(r"(?<!system) is first|to differ|they differ", " ".join(said.values()))
    assert "llama cannot be tested" in said["first"]
    assert "no difference" in said["alike"]


def test_a_report_of_one_system_has_no_section_without_content(tmp_path):
    report = alone()
    page = page_of(report, tmp_path)
    assert re.findall(r'<section id="(\w+)"', page) == ["diversity", "collapse", "caveats"]
    assert "Holm" not in page
    assert report["sentences"].keys() == {"first", "quality", "misleading"}
    row = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[4]
    assert row.replace("\u00a0", " ").startswith("| gpt | 3.62 [3.48, 3.75] |")


@pytest.mark.parametrize("held", [True, False])
def test_texts_are_left_out(tmp_path, held):
    """As by `--no-texts`, whose JSON has none; a page made again may leave them out too."""

    def change(report):
        for prompts in report["collapse"]:
            for prompt in prompts:
                del prompt["texts"]

    assert "Suggest a name for a bakery." in page_of(REPORT if held else changed(change), tmp_path, texts=False)
    for name, content in files_of(tmp_path).items():
        for text in texts_of(REPORT):
            assert str(escape(text)) not in content.decode(), name
    page = page_of(REPORT, tmp_path)
    assert all(str(escape(text)) in page for text in texts_of(REPORT))


def test_tables_are_escaped():
    hostile = r"[a] 50 % of $x_1$ & #2 \input{x} ~^ <b> | *c* −1"
    frame = pd.DataFrame([[hostile, "1.5\n[1.0, 2.0]"]], columns=["a_b", "c %"])
    tex = latex(frame, "Caption_1 50 %", {(0, 1)})
    assert r"{}[a] 50 \% of \$x\_1\$ \& \#2 \textbackslash input\{x\}" in tex
    assert "$-$1" in tex
    assert r"\textbf{1.5 [1.0, 2.0]}" in tex
    assert r"\caption{Caption\_1 50 \%}" in tex
    row = markdown(frame, {(0, 1)}).splitlines()[2]
    assert re.split(r"(?<!\\)\|", row)[2].strip() == "**1.5 [1.0, 2.0]**"
    assert r"\<b\> \| \*c\*" in row


@pytest.mark.slow
def test_the_page_in_chromium(chromium, tmp_path):
    """On a laptop and a phone, light and dark, by the keyboard, with texts that try to break it."""
    from axe_playwright_python.sync_playwright import Axe

    reports = {"plain": REPORT, "hostile": hostile(), "many": with_systems(20), "alone": alone()}
    for name, report in reports.items():
        write_pages(report, tmp_path / name, texts=True)
    requests, messages, faults = [], [], []
    views = {"light": LAPTOP, "dark": PHONE}
    for name in reports:
        for scheme, size in views.items() if name in ("plain", "hostile") else [("dark", PHONE)]:
            page = chromium.new_page(viewport=size, color_scheme=scheme)
            page.on("request", lambda request: requests.append(request.url))
            page.on("console", lambda message: messages.append(message.text))
            page.goto((tmp_path / name / "index.html").as_uri())
            state = f"{name}, {size['width']}"
            # In the page as it opens, and with all that is folded.
            for opened in ("false", "true"):
                page.evaluate(f"document.querySelectorAll('details').forEach(part => part.open = {opened})")
                wide = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
                assert wide[0] <= wide[1], state
            if name in ("plain", "hostile"):
                for violation in Axe().run(page).response["violations"]:
                    if violation["impact"] in ("serious", "critical"):
                        faults.append((state, violation["id"], [node["html"][:200] for node in violation["nodes"]][:3]))
            assert page.evaluate("window.broken") is None
            assert page.locator("main img, main script").count() == 0
            if name == "plain":
                look_closely(page, scheme)
            page.close()
    assert not faults, "\n".join(map(str, faults))
    assert not messages
    assert all(url.startswith("file://") and url.endswith("index.html") for url in requests)


def look_closely(page, scheme):
    """Check the theme, the keyboard and the headers of the plain page."""
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(channel) for channel in re.findall(r"\d+", ground)]
    assert (sum(channels) < 200) == (scheme == "dark")
    # The pictures follow: the names in a picture are as light as the text of the page.
    inks = page.evaluate(
        "[getComputedStyle(document.body).color, ...[...document.querySelectorAll('figure text')].map("
        "text => getComputedStyle(text).fill)]"
    )
    assert inks[0] in inks[1:]
    page.evaluate("window.scrollTo(0, 0)")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator("th:not([scope])").count() == 0
    assert page.locator("figure svg[role=img][aria-label]").count() == page.locator("figure svg").count()
    row = page.locator("#diversity tbody tr").first
    assert row.locator("th").inner_text().strip() == "gpt"
    assert row.locator("td").first.inner_text().split() == ["3.62", "[3.48,", "3.75]"]
