"""The page of a report: every number of the JSON in its place, nothing claimed that is not shown, readable by all."""

import copy
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from itertools import combinations, combinations_with_replacement

import msgspec
import pandas as pd
import pytest
from markupsafe import escape

import text_metrics
from scripts.tooling.screenshots import LAPTOP
from tests.files import write_jsonl
from tests.test_report import PEOPLE, SYSTEMS, rows_of, run, write_systems
from tests.test_report_sentences import Words
from text_metrics.reporting import formats, page
from text_metrics.reporting.markup import latex, markdown
from text_metrics.reporting.page import tables, write_pages
from text_metrics.reporting.results import Report
from text_metrics.reporting.sentences import sentences

pytest_plugins = ["tests.demo_servers"]

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


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of three systems, with quality and people."""
    folder = tmp_path_factory.mktemp("report")
    people = write_jsonl(folder / "people.jsonl", rows_of(PEOPLE))
    return run(folder, *write_systems(folder, SYSTEMS), "--people", people, quality=())[1]


def parse(report):
    return msgspec.convert(report, Report)


def changed(report, **changes):
    """Return the report with changes, and its sentences."""
    report = copy.deepcopy(report) | changes
    return report | {"sentences": sentences(parse(report))}


def hostile(report):
    """Return the report with markup, control characters and endless words in every text of a user."""
    report = changed(report, systems=[HOSTILE[0], "x" * 120, HOSTILE[1]])
    for source, name in zip(report["sources"], report["systems"], strict=True):
        source["file"] = f"{name}.jsonl"
    for prompts in report["collapse"]:
        for prompt, ident in zip(prompts, HOSTILE, strict=False):
            prompt["prompt"] = ident
            prompt["texts"] = list(HOSTILE)
    for metric in report["metrics"]:
        metric["signature"] = f"{HOSTILE[2]}|{'y' * 300}"
    report["caveats"][0]["sentence"] = HOSTILE[1]
    return changed(report)


def with_systems(report, n):
    """Return the report with n systems: those of the report again and again under other names."""
    origin = [i % 3 for i in range(n)]
    pairs = list(combinations(range(n), 2))
    parts = {}
    for name in ("sources", "collapse"):
        parts[name] = [report[name][i] for i in origin]
    report = changed(report, systems=[f"system {i} of many" for i in range(n)], people=None, **parts)
    for metric in report["metrics"]:
        metric["values"] = [metric["values"][i] for i in origin]
        metric["order"] = list(range(n))
        metric["best"] = None
        metric["tests"] = [metric["tests"][0] | {"a": i, "b": j, "p_holm": 0.5} for i, j in pairs]
    likeness = report["likeness"]
    likeness["pairs"] = [likeness["pairs"][0] | {"a": i, "b": j} for i, j in pairs]
    every = combinations_with_replacement(range(n), 2)
    likeness["similarity"] = [likeness["similarity"][0] | {"a": i, "b": j} for i, j in every]
    return changed(report)


def with_same_length(report):
    """Return the report with scores of texts of the same length, by which the last system is first."""
    metrics = [copy.deepcopy(metric) for metric in report["metrics"] if metric["section"] == "diversity"]
    for metric in metrics:
        metric["values"].reverse()
        metric["best"] = len(metric["values"]) - 1
    return changed(report, same_length={"n_words": [3, 9, 4, 4, 5, 5], "metrics": metrics})


@pytest.fixture(scope="module")
def alone():
    """The report of one system, without quality and people."""
    made = text_metrics.report({"wide": list(SYSTEMS["wide"].values())}, quality=None, model=Words(), same=None)
    return json.loads(made.to_json())


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    """The folder that the report is written to."""
    folder = tmp_path_factory.mktemp("written")
    write_pages(parse(report), folder)
    return folder


def read(folder, name):
    return (folder / name).read_text(encoding="utf-8")


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_report_gives_the_same_files(report, written, tmp_path):
    write_pages(parse(report), tmp_path)
    first = files_of(tmp_path)
    assert first == files_of(written)
    figures = {f"figures/{name}.{suffix}" for name in ("diversity", "quality") for suffix in ("svg", "pdf")}
    texts = {f"{name}.tex" for name in ("table", "tables", "methods", "signatures")}
    assert set(first) == texts | figures | {"index.html", "report.json", "table.md", "refs.bib"}
    assert all(first[name].startswith(b"%PDF") for name in figures if name.endswith("pdf"))
    # What an error of writing leaves is a report, which the next run may replace.
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "figures").touch()
    with pytest.raises(OSError, match="figures"):
        write_pages(parse(report), torn)
    assert (torn / "report.json").is_file()


def test_a_picture_is_a_file_that_says_what_it_shows(report, tmp_path):
    write_pages(parse(hostile(report)), tmp_path)
    for path in (tmp_path / "figures").glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.get("role") == "img"
        assert root.get("aria-label")
        # Readable on white, without a page: the colours are given, and nothing else is loaded.
        assert "var(" not in path.read_text(encoding="utf-8")
        names = {element.tag.split("}")[1] for element in root.iter()}
        assert not names - {*("svg", "g", "text", "rect", "path", "use", "defs", "style", "clipPath", "image", "tspan")}


def test_systems_are_sorted_and_truncated_axes_say_so(report, written):
    order = [report["systems"][i] for i in report["metrics"][0]["order"]]
    for name in ("diversity", "quality"):
        svg = read(written, f"figures/{name}.svg")
        texts = ["".join(text.itertext()) for text in ElementTree.fromstring(svg).findall(".//{*}text")]
        assert [text for text in texts if text in order] == order
        ticks = [float(text.replace("−", "-")) for text in texts if re.fullmatch(r"−?[\d.]+", text)]
        assert ("does not begin at 0" in svg) == (min(ticks) > 0)


def test_the_page_begins_with_four_lines_and_needs_no_other_file(report, written):
    page = read(written, "index.html")
    assert not re.search(r"\ssrc=|@import|<link|<script", page)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', page))
    assert re.findall(r'<section id="(\w+)"', page) == SECTIONS
    places = [page.index(str(escape(report["sentences"][n]))) for n in ("first", "quality", "misleading", "alike")]
    assert places == sorted(places)
    assert places[-1] < page.index("<section")
    for metric in report["metrics"]:
        assert str(escape(metric["signature"])) in page


def test_numbers_are_those_of_the_report(report, written):
    page = read(written, "index.html").replace("\u00a0", " ")
    printed = read(written, "table.md")
    tex = read(written, "tables.tex")
    for i, system in enumerate(report["systems"]):
        row = next(line for line in printed.splitlines() if line.startswith(f"| {system} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        for metric, cell in zip(report["metrics"], cells, strict=False):
            value = metric["values"][i]
            mean, *ends = (float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.\d+", cell))
            digits = len(re.search(r"\.(\d+)", cell)[1])
            assert mean == pytest.approx(value["mean"], abs=0.51 * 10**-digits)
            assert ends == pytest.approx(value["interval"] or [], abs=0.51 * 10**-digits)
            assert ("*" in cell) == (metric["best"] == i)
            assert f"{mean:.{digits}f}".replace("-", "$-$") in tex
            if ends:
                assert f"<small>{cell.split(' ', 1)[1]}</small>" in page


def test_each_table_holds_what_the_report_holds(report):
    shown = {name: table.frame for name, table in tables(parse(report)).items()}
    for j, metric in enumerate(report["metrics"], 1):
        for i, test in enumerate(metric["tests"]):
            difference, p = shown["tests"].iloc[i, j].split("\n")
            digits = len(difference.partition(".")[2])
            assert number_of(difference) == pytest.approx(test["difference"], abs=0.51 * 10**-digits)
            assert p == formats.with_p(test["p_holm"])
    pairs = shown["likeness"].iloc[1:]
    rows = report["likeness"]["pairs"]
    assert list(map(number_of, pairs.iloc[:, 1])) == pytest.approx([row["between"] for row in rows], abs=0.0051)
    assert list(map(number_of, pairs.iloc[:, 3])) == pytest.approx([100 * row["share"] for row in rows], abs=0.051)
    assert pairs["p"].tolist() == [formats.p_value(row["p_holm"]) for row in rows]
    near = sorted(report["people"]["rows"], key=lambda row: row["between"])
    columns = [[row["between"] for row in near], [100 * row["share"] for row in near]]
    for i, expected in enumerate(columns, 1):
        assert list(map(number_of, shown["people"].iloc[:, i])) == pytest.approx(expected, abs=0.051)


def number_of(cell):
    """The number of a cell, without what is below it."""
    return float(cell.partition("\n")[0].replace("−", "-"))


def test_both_tables_stand_side_by_side(report, written, tmp_path):
    made = with_same_length(report)
    write_pages(parse(made), tmp_path)
    shown = tables(parse(made))
    whole = shown["diversity"]
    cut = shown["same_length"]
    assert "3 to 9 words" in cut.caption
    # Rows are in the same order, so that they can be compared.
    assert cut.frame["System"].tolist() == whole.frame["System"].tolist()
    n = len(made["systems"])
    cells = dict(zip(cut.frame["System"], cut.frame.iloc[:, 1], strict=True))
    expected = dict(zip(whole.frame["System"], whole.frame.iloc[:, 1], strict=True))
    for i, name in enumerate(made["systems"]):
        value = cells[name].replace("*", "").split("\n")
        assert value == expected[made["systems"][n - 1 - i]].replace("*", "").split("\n")
    assert f"Cut to the same length, {made['systems'][-1]} is first by Vendi score." in made["sentences"]["misleading"]
    assert read(tmp_path, "index.html").count('<div class="beside halves">') == 1
    assert read(tmp_path, "table.md").count("3 to 9 words") == 1
    assert "halves" not in read(written, "index.html").partition("</style>")[2]


def test_sentences_claim_what_a_test_shows(report):
    said = sentences(parse(report))
    assert said == report["sentences"]
    assert said["first"].startswith("wide is first")
    undecided = copy.deepcopy(report)
    for metric in undecided["metrics"]:
        metric["best"] = None
        for test, p in zip(metric["tests"], (None, 0.4, 0.4), strict=True):
            test["p_holm"] = p
    undecided["likeness"]["partition"]["p"] = 0.4
    said = " ".join(sentences(parse(undecided)).values())
    assert not re.search(r"(?<!system) is first|they differ", said)
    first = sentences(parse(undecided))["first"]
    assert "; same cannot be told apart" in first
    assert "no test is defined of its difference from narrow" in first


@pytest.mark.parametrize(
    ("p_values", "place"),
    [
        ((0.01, 0.01), "and lowest in quality (Compact GRUEN 0.2"),
        ((0.01, 0.2), "and lower in quality than narrow (Compact GRUEN 0.2"),
        ((0.2, None), "at a quality (Compact GRUEN) of 0.2"),
    ],
)
def test_low_quality_and_nonsense_are_named_in_the_first_lines(report, p_values, place):
    """By the adjusted tests, which mark the first system, too."""
    poor = copy.deepcopy(report)
    quality = next(metric for metric in poor["metrics"] if metric["name"] == "quality")
    for value, mean in zip(quality["values"], (0.2, 0.7, 0.8), strict=True):
        value.update(mean=mean, interval=[mean - 0.01, mean + 0.01])
    quality.update(order=[2, 1, 0], best=None)
    for test, p in zip(quality["tests"], p_values, strict=False):
        test.update(difference=-0.5, p_holm=p)
    said = sentences(parse(poor))
    assert said["first"].startswith("wide is first, with")
    assert place in said["first"]
    assert "nonsense" in said["quality"]


def test_a_report_of_one_system_has_no_section_without_content(alone, tmp_path):
    write_pages(parse(alone), tmp_path)
    page = read(tmp_path, "index.html")
    assert re.findall(r'<section id="(\w+)"', page) == ["diversity", "collapse", "caveats"]
    assert "Holm" not in page
    assert alone["sentences"].keys() == {"first", "quality", "misleading"}
    assert alone["likeness"] is None
    assert all(metric["tests"] == [] and metric["best"] is None for metric in alone["metrics"])


def test_tables_are_escaped():
    hostile = r"50 % of $x_1$ & #2 \input{x} ~^ <b> | *c* −1"
    frame = pd.DataFrame([[hostile, "1.5\n[1.0, 2.0]"]], columns=["a_b", "c %"])
    tex = latex(frame, "Caption_1 50 %")
    assert r"50 \% of \$x\_1\$ \& \#2 \textbackslash{}input\{x\}" in tex
    assert "$-$1" in tex
    # An interval is a row of its own below the number.
    assert r"& 1.5 \\" in tex
    assert r" & {\scriptsize [1.0, 2.0]} \\" in tex
    assert r"\caption{Caption\_1 50 \%}" in tex
    # After a line break, TeX would take them for an argument.
    names = ["[0.5]", "*", "[a", "b"]
    tex = latex(pd.DataFrame({"System": names, "c": "1"}), "")
    rows = [line.partition(" & ")[0] for line in tex.splitlines() if line.endswith(r" & 1 \\")]
    assert rows == [r"{}[0.5]", "{}*", "{}[a", "b"]
    row = markdown(frame).splitlines()[2]
    assert re.split(r"(?<!\\)\|", row)[2].strip() == "1.5 [1.0, 2.0]"
    assert r"\<b\> \| \*c\*" in row


DOCUMENT = r"""\documentclass[twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage{booktabs,graphicx}
PACKAGES
\begin{document}
\input{methods}
Table~\ref{tab:scores}
\input{table}
\includegraphics[width=\columnwidth]{figures/diversity.pdf}
\includegraphics[width=\columnwidth]{figures/quality.pdf}
\sbox0{\vbox{\hbox{FIRST}\hbox{SECOND}}}
\typeout{WIDTHS \the\wd0 \space \the\columnwidth}
\bibliographystyle{STYLE}
\bibliography{refs}
\appendix
\input{tables}
\input{signatures}
\end{document}
"""


@pytest.mark.parametrize(
    ("columns", "packages", "style"),
    [((), "", "plain"), (("vendi_embed", "self_bleu"), r"\usepackage{natbib}", "plainnat")],
)
def test_a_paper_compiles(report, tmp_path, columns, packages, style):
    """With names that TeX could read as markup, with and without natbib; its table fits one of two columns."""
    if shutil.which("pdflatex") is None or subprocess.run(["kpsewhich", "booktabs.sty"]).returncode:
        pytest.skip("TeX is not installed: apt-get install texlive-latex-base texlive-latex-recommended")
    names = ["[0.5] 100 %", "*a_b & $c [x]", "\\input{x} ~^#"]
    write_pages(parse(changed(report, systems=names)), tmp_path, columns)
    table = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert table.count(r"\begin{table}") == 1
    first, second = re.findall(r"\\setlength.*?\\end\{tabular\}", table, re.DOTALL)
    document = DOCUMENT
    for word, text in {"PACKAGES": packages, "FIRST": first, "SECOND": second, "STYLE": style}.items():
        document = document.replace(word, text)
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    for program in (["pdflatex", "-halt-on-error", "paper"], ["bibtex", "paper"], *[["pdflatex", "paper"]] * 2):
        done = subprocess.run(program, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "undefined" not in done.stdout
    assert (tmp_path / "paper.pdf").exists()
    width, column = (float(part) for part in re.search(r"WIDTHS ([\d.]+)pt ([\d.]+)pt", done.stdout).groups())
    assert width <= column
    log = (tmp_path / "paper.log").read_text(encoding="latin-1")
    assert "multiply defined" not in log


def test_the_methods_cite_what_the_references_have(report, alone, written):
    cited = re.findall(r"\\citep\{([^}]*)\}", read(written, "methods.tex"))
    assert set(",".join(cited).split(",")) == set(re.findall(r"@\w+\{(\S+),", read(written, "refs.bib")))
    plain = read(written, "signatures.tex").replace(r"\allowbreak{}", "").replace("\\_", "_")
    for metric in report["metrics"]:
        assert metric["signature"] in plain
    assert "GRUEN" not in page.methods(parse(alone))["methods.tex"]
    with pytest.raises(ValueError, match="columns"):
        write_pages(parse(report), written, ["vendi"])


@pytest.mark.slow
def test_the_page_in_chromium(report, alone, chromium, tmp_path):
    """On a laptop and a phone, light and dark, by the keyboard, with texts that try to break it."""
    from axe_playwright_python.sync_playwright import Axe

    reports = {"plain": report, "hostile": hostile(report), "many": with_systems(report, 20), "alone": alone}
    reports["cut"] = with_same_length(report)
    for name, each in reports.items():
        write_pages(parse(each), tmp_path / name)
    requests = []
    messages = []
    faults = []
    views = {"plain": ["light", "dark"], "cut": ["light"]}
    for name in reports:
        for scheme in views.get(name, ["dark"]):
            size = LAPTOP if scheme == "light" else PHONE
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
            if name not in ("many", "alone"):
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
    assert row.locator("th").inner_text().strip() == "wide"
    assert re.search(r"\d\*\s+\[", row.locator("td").first.inner_text())
