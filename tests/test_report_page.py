"""The page of a report: every number of the JSON in its place, nothing claimed that is not shown, readable by all."""

import copy
import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from itertools import combinations

import pytest

from scripts.tooling.screenshots import LAPTOP
from tests.conftest import ROOT
from text_metrics.commands.report.drawing import Scale, mark, scale, tick_labels
from text_metrics.commands.report.latex import escape
from text_metrics.commands.report.page import QUESTIONS, write_pages
from text_metrics.commands.report.sentences import sentences
from text_metrics.commands.report.tables import matrix_of_tests, pairs_table, people_table, scores_table
from text_metrics.commands.shared import formats

pytest_plugins = ["tests.demo_servers"]

REPORT = json.loads((ROOT / "tests/data/report.json").read_text(encoding="utf-8"))
PHONE = {"width": 360, "height": 780}
HOSTILE = [
    "<script>window.broken=1</script>",
    "\"><img src=x onerror='window.broken=1'>",
    "</details></section></main><svg onload=window.broken=1>",
    '" onmouseover="window.broken=1" x="',
    "{{ var(--ink) }} &amp; &lt;b&gt;",
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
        report["systems"] = ["<script>window.broken=1</script>", "x" * 120, "\"><img src=x onerror='window.broken=1'>"]
        for source, name in zip(report["sources"], report["systems"], strict=True):
            source["system"], source["file"] = name, f"{name}.jsonl"
        report["prompts"]["missing"] = [{"system": report["systems"][1], "n": 12, "examples": HOSTILE}]
        report["command"]["id_key"] = HOSTILE[0]
        for prompts in report["collapse"]["least"]:
            for prompt, ident in zip(prompts, HOSTILE, strict=False):
                prompt["prompt"], prompt["texts"] = ident, list(HOSTILE)
        for prompt, ident in zip(report["collapse"]["differ"], HOSTILE[5:], strict=False):
            prompt["prompt"], prompt["texts"] = ident, [list(HOSTILE)] * 3
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
        likeness = report["likeness"]
        for name, matrix in likeness["cosine"].items():
            likeness["cosine"][name] = [[matrix[i][j] for j in origin] for i in origin]
        likeness["partition"]["n_groups"] = n
        likeness["pairs"] = [{**likeness["pairs"][0], "a": i, "b": j} for i, j in combinations(range(n), 2)]
        rows = report["people"]["rows"]
        report["people"]["rows"] = [rows[0], *({**rows[1 + i], "system": k} for k, i in enumerate(origin))]
        report["collapse"]["least"] = [report["collapse"]["least"][i] for i in origin]
        for prompt in report["collapse"]["differ"]:
            prompt["scores"] = [prompt["scores"][i] for i in origin]
            prompt["texts"] = [prompt["texts"][i] for i in origin]

    return changed(change)


def alone():
    """Return a report of one system, without quality and people, with scores that are undefined."""

    def change(report):
        report["systems"] = ["gpt"]
        report["likeness"] = report["people"] = None
        report["metrics"] = [metric for metric in report["metrics"] if metric["section"] == "diversity"]
        for metric in report["metrics"]:
            metric["values"], metric["tests"], metric["order"], metric["best"] = metric["values"][:1], [], [0], None
        report["metrics"][1]["values"][0].update(mean=None, interval=None, scores=[None] * 6)
        report["metrics"][1]["order"] = []
        report["sources"], report["caveats"], report["power"] = report["sources"][:1], [], []
        report["prompts"] = {"n": 6, "n_all": 6, "missing": []}
        report["collapse"] = {"least": report["collapse"]["least"][:1], "differ": []}
        report["collapse"]["least"][0][0]["closest"] = None

    return changed(change)


def texts_of(report):
    collapse = report["collapse"]
    least = [text for prompts in collapse["least"] for prompt in prompts for text in prompt["texts"]]
    return least + [text for prompt in collapse["differ"] for texts in prompt["texts"] for text in texts]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_report_gives_the_same_files(tmp_path):
    for name in "ab":
        write_pages(REPORT, tmp_path / name, texts=True)
    first, second = (files_of(tmp_path / name) for name in "ab")
    assert first == second
    assert {"index.html", "table.md", "table.tex"} < set(first)
    figures = {name for name in first if name.startswith("figures/")}
    assert {"figures/plane.svg", "figures/between.svg", "figures/cosine_same_prompt.svg"} < figures
    assert {f"figures/diversity_{metric['name']}.svg" for metric in REPORT["metrics"][:7]} < figures


def test_a_picture_is_a_file_that_says_what_it_shows(tmp_path):
    write_pages(hostile(), tmp_path, texts=True)
    pictures = sorted((tmp_path / "figures").iterdir())
    for path in pictures:
        text = path.read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert root.tag.endswith("svg")
        assert root.get("role") == "img"
        assert re.search(r"\d", root.get("aria-label"))
        # Readable on white, without a page: the colours are given, and nothing else is loaded.
        assert "var(" not in text
        assert '#ffffff"/>' in text
        assert not {element.tag.split("}")[1] for element in root.iter()} - {
            *("svg", "g", "title", "text", "rect", "line", "path", "circle", "polygon")
        }


def test_the_page_needs_no_other_file(tmp_path):
    write_pages(REPORT, tmp_path, texts=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"\ssrc=|url\(|@import|<link|<script", page)
    assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', page))
    assert [html.unescape(title) for title in re.findall(r"<h2>(.*?)</h2>", page)] == list(QUESTIONS.values())
    for sentence in REPORT["sentences"].values():
        assert html.escape(sentence) in page
    for metric in REPORT["metrics"]:
        assert html.escape(metric["signature"]) in page


def test_numbers_are_those_of_the_report(tmp_path):
    write_pages(REPORT, tmp_path, texts=True)
    markdown = (tmp_path / "table.md").read_text(encoding="utf-8").replace("\u00a0", " ")
    latex = (tmp_path / "table.tex").read_text(encoding="ascii")
    page = (tmp_path / "index.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    for i, system in enumerate(REPORT["systems"]):
        row = next(line for line in markdown.splitlines() if line.startswith(f"| {system} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
        for metric, cell in zip(REPORT["metrics"], cells, strict=False):
            value = metric["values"][i]
            mean, low, high = (float(n.replace("−", "-")) for n in re.findall(r"−?\d+\.\d+", cell))
            digits = len(re.search(r"\.(\d+)", cell)[1])
            assert mean == pytest.approx(value["mean"], abs=0.51 * 10**-digits)
            assert [low, high] == pytest.approx(value["interval"], abs=0.51 * 10**-digits)
            assert cell.startswith("**") == (metric["best"] == i)
            assert f"{mean:.{digits}f}".replace("-", "$-$") in latex
            assert f"<small>{cell.split(' ', 1)[1]}</small>" in page


def test_each_table_holds_what_the_report_holds():
    metric = REPORT["metrics"][0]
    tests = matrix_of_tests(REPORT, metric)
    for test in metric["tests"]:
        there, back = tests.rows[test["a"]][1 + test["b"]], tests.rows[test["b"]][1 + test["a"]]
        assert there.text[1:] == back.text[1:]
        digits = len(there.text.split(".")[1])
        assert float(there.text[1:]) == pytest.approx(abs(test["difference"]), abs=0.51 * 10**-digits)
        assert (there.text[0], back.text[0]) == (("+", "−") if test["difference"] > 0 else ("−", "+"))
        assert there.marked == back.marked == (test["p_holm"] < 0.05)
    shares = [row[1].text for row in pairs_table(REPORT).rows]
    p_values = [row[-1].text for row in pairs_table(REPORT).rows]
    assert [p[0] == "≤" for p in p_values] == [pair["p"] == pair["least_p"] for pair in REPORT["likeness"]["pairs"]]
    assert shares == [f"{100 * pair['share']:.1f}\u00a0%" for pair in REPORT["likeness"]["pairs"]]
    recall = [row[1].text for row in people_table(REPORT).rows]
    assert recall == [f"{row['recall']['value']:.2f}" for row in REPORT["people"]["rows"]]


def test_the_best_is_marked_only_where_the_report_says_so():
    def change(report):
        for metric in report["metrics"]:
            metric["best"] = None

    table = scores_table(changed(change), "diversity")
    assert not any(cell.marked for row in table.rows for cell in row)
    assert not table.legend
    table = scores_table(REPORT, "diversity")
    marked = [[cell.marked for cell in row[1:]] for row in table.rows]
    assert marked == [[metric["best"] == i for metric in REPORT["metrics"][:7]] for i in range(3)]
    assert "Holm" in table.legend


def test_sentences_claim_what_a_test_shows():
    said = sentences(REPORT)
    assert said == REPORT["sentences"]
    assert said["diversity"].startswith("gpt is first")
    assert said["quality"].startswith("No system is shown to be first.")

    def undecided(report):
        for metric in report["metrics"]:
            metric["best"] = None
        report["metrics"][0]["tests"][0]["p_holm"] = None
        report["likeness"]["partition"]["p"] = 0.4
        for row in report["people"]["rows"]:
            row["p"] = 0.4

    said = changed(undecided)["sentences"]
    assert not re.search("is first|differ from|They differ", " ".join(said.values()))
    assert "llama cannot be tested" in said["diversity"]
    assert "No difference between the systems is shown" in said["likeness"]
    assert "No difference between people and gpt, llama and qwen is shown" in said["people"]


def first_by_quality(means, p_values):
    """Return the sentence on quality for these means of three systems, and p-values of their pairs."""

    def change(report):
        metric = report["metrics"][7]
        for value, mean in zip(metric["values"], means, strict=True):
            value.update(mean=mean, interval=[mean - 0.02, mean + 0.02])
        for test, p in zip(metric["tests"], p_values, strict=True):
            test["p_holm"] = p
        metric["order"] = sorted(range(3), key=lambda i: -means[i])

    return changed(change)["sentences"]["quality"].replace("\u00a0", " ")


def test_systems_that_cannot_be_told_apart_from_the_first_are_named():
    said = first_by_quality([0.74, 0.72, 0.66], [0.3, 0.01, 0.2])
    assert "llama cannot be told apart from it (p = 0.300" in said
    assert "qwen" not in said
    assert "; qwen cannot be told" in first_by_quality([0.66, 0.74, 0.72], [0.01, 0.2, 0.3])


@pytest.mark.parametrize("p", [0.001, 0.9, None])
def test_a_system_of_far_lower_quality_is_named_whatever_the_test(p):
    said = first_by_quality([0.80, 0.79, 0.094], [0.4, p, p])
    assert "qwen (0.094)" in said
    assert not re.search("qwen[^.]* cannot be|no difference", said)


def test_a_winner_by_gruen_stands_beside_what_gruen_cannot_see():
    for name in ("diversity", "quality"):
        assert re.search("gruen.*nonsense.* 44, 45 and 22", sentences(REPORT)[name], re.IGNORECASE)

    def change(report):
        for metric in report["metrics"][7:]:
            metric["signature"] = "quality|column:q"

    assert "nonsense" not in " ".join(changed(change)["sentences"].values())


def test_nothing_is_claimed_of_equal_systems():
    def change(report):
        for value in report["metrics"][0]["values"]:
            value["scores"] = [1.5 + 1e-9 * (value["mean"] < 3)] * 6

    said = changed(change)["sentences"]["collapse"]
    assert "each system scores 1.50" in said
    assert "least diverse of all" not in said


def test_a_report_of_one_system_compares_nothing(tmp_path):
    report = alone()
    write_pages(report, tmp_path, texts=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert page.count("<section") == 6
    assert "Holm" not in page
    assert report["sentences"]["likeness"].startswith("There is one system")
    assert "was not measured" in report["sentences"]["quality"]
    assert "--people" in report["sentences"]["people"]
    row = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[4]
    assert row.startswith("| gpt | 3.62 [3.48, 3.75] | – |")


def test_the_plane_says_how_many_dots_it_leaves_out(tmp_path):
    def change(report):
        for metric in report["metrics"]:
            for i, value in enumerate(metric["values"]):
                value["scores"] = [value["mean"] + (k - 50) ** 3 / 1e5 + i / 10 for k in range(100)]
        report["metrics"][0]["values"][0]["scores"][50] = None

    for report, expected in ((REPORT, 18), (changed(change), 299)):
        write_pages(report, tmp_path, texts=False)
        drawn = (tmp_path / "figures/plane.svg").read_text(encoding="utf-8").count("h0")
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        outside = sum(map(int, re.findall(r"(\d+) dots? outside the picture", page)))
        assert drawn + outside == expected
        assert (outside > 0) == (expected == 299)


@pytest.mark.parametrize("held", [True, False])
def test_texts_are_left_out(tmp_path, held):
    """As by `--no-texts`, whose JSON has none; a page made again may leave them out too."""

    def change(report):
        for prompts in [*report["collapse"]["least"], report["collapse"]["differ"]]:
            for prompt in prompts:
                del prompt["texts"]

    write_pages(REPORT if held else changed(change), tmp_path, texts=False)
    for name, content in files_of(tmp_path).items():
        for text in texts_of(REPORT):
            assert html.escape(text) not in content.decode(), name
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Suggest a name for a bakery." in page
    write_pages(REPORT, tmp_path, texts=True)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert all(html.escape(text) in page for text in texts_of(REPORT))


def test_twenty_systems_have_different_marks():
    marks = {re.sub(r'-?\d+(\.\d+)?"', '"', mark(i, 0, 0)).split("</")[0] + mark(i, 0, 0) for i in range(20)}
    assert len(marks) == 20
    shapes = [re.sub(r' fill="[^"]*"', "", mark(i, 0, 0)) for i in range(20)]
    colors = [re.search(r'fill="([^"]*)"', mark(i, 0, 0))[1] for i in range(20)]
    # Neighbours in the list differ in both, so that neither has to be told apart alone.
    assert all(shapes[i] != shapes[i + 1] and colors[i] != colors[i + 1] for i in range(19))


def test_numbers_have_one_form():
    assert formats.number(-0.0001, 2) == "0.00"
    assert formats.number(-1.5, 1) == "−1.5"
    assert formats.number(None, 2) == "–"
    assert formats.number(0.001, 2, signed=True) == formats.number(-0.001, 2, signed=True) == "0.00"
    assert formats.with_p(0.0004).replace("\u00a0", " ") == "p < 0.001"
    assert formats.significant(0.00042) == "0.00042"
    assert formats.with_p(1.0).replace("\u00a0", " ") == "p = 1.000"
    assert formats.with_p(0.04, 0.04).replace("\u00a0", " ") == "p ≤ 0.040"
    assert formats.count(1497, "prompt") == "1\u202f497 prompts"
    assert formats.decimals([(2.63, [2.55, 2.71]), (2.1, None)]) == 2
    assert formats.decimals([(24.0, [12.0, 36.0])]) == 1
    assert formats.decimals([(0.5, None)]) == 3
    assert formats.listed("abcde") == "a, b, c and 2 other systems"
    assert tick_labels(Scale(0, 0.05, 0, 1).ticks(5)) == ["0.00", "0.01", "0.02", "0.03", "0.04", "0.05"]
    same = scale([0.5, 0.5], 0, 10)
    assert same(0.5) == 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"50 % of $x_1$ & #2", r"50 \% of \$x\_1\$ \& \#2"),
        ("a--b ''c'' `d`", r"a-{}-b '{}'c'{}' \`{}d\`{}"),
        ("[x] *y*\nz", r"{[}x{]} {*}y{*} z"),
        ("café Łódź", r"caf\'{e} \L{}\'{o}d\'{z}"),
        ("−1 ≤ 通", r"$-$1 $\leq$ \textless{}U+901A\textgreater{}"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
    ],
)
def test_latex_is_escaped(text, expected):
    assert escape(text) == expected


@pytest.mark.skipif(
    not shutil.which("pdflatex"), reason="pdflatex is not installed: apt-get install texlive-latex-recommended"
)
@pytest.mark.parametrize("within", [False, True])
def test_latex_compiles_alone_and_in_a_document(tmp_path, within):
    def change(report):
        report["systems"] = [r"\input{x} 50 % & #_^~ $", "[a] -- `b` ''\"| <é ł ß 通义 \u202e>", "*" + "x" * 90]
        for source, name in zip(report["sources"], report["systems"], strict=True):
            source["system"] = name
        report["prompts"]["missing"] = []

    write_pages(changed(change), tmp_path, texts=False)
    paper = tmp_path / "paper.tex"
    paper.write_text(
        "\\documentclass{article}\\usepackage{booktabs,graphicx}\\begin{document}\nBefore.\\input{table}After.\n"
        "\\end{document}\n"
    )
    made = "paper" if within else "table"
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{made}.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert (tmp_path / f"{made}.pdf").stat().st_size > 10_000


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
            for opened in (False, True):
                page.evaluate(
                    f"document.querySelectorAll('details').forEach(part => part.open = {str(opened).lower()})"
                )
                wide = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
                assert wide[0] <= wide[1], state
            if name in ("plain", "hostile"):
                for violation in Axe().run(page).response["violations"]:
                    if violation["impact"] in ("serious", "critical"):
                        faults.append((state, violation["id"], [node["html"][:200] for node in violation["nodes"]][:3]))
            assert page.evaluate("window.broken") is None
            assert page.locator("main img, main script").count() == 0
            assert page.locator("section").count() == 6
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
    # The pictures follow: the text of a picture is as light as the text of the page.
    inks = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.querySelector('figure text')).fill]"
    )
    assert inks[0] == inks[1]
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
