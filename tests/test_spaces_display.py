"""What the pages of the demos say and draw: nothing misleads, nothing is cut, and everyone can read it."""

import csv
import io
import re

import pytest

from scripts.tooling.screenshots import DESKTOP, LAPTOP, PHONE, click_example, open_page
from tests.demos import download, event_of, in_chromium, in_demo, score_boxes

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

ARABIC = "مرحبا بالعالم الجميل."


def score(page, *texts):
    """Type texts and press Score; returns the text of the answer."""
    for box, text in zip(page.locator(".tm-input textarea").all(), texts, strict=False):
        box.fill(text)
    # The answer itself: what Gradio shows around it changes at once.
    own = "(document.querySelector('#answer section') || {}).outerHTML"
    before = page.evaluate(own)
    page.get_by_role("button", name="Score", exact=True).click()
    page.wait_for_function(
        f"before => {own} != before && document.querySelector('#answer [data-value], #answer [role=alert]')",
        arg=before,
    )
    page.get_by_role("button", name="Stop").wait_for(state="hidden")
    return page.locator("#answer").inner_text()


def drawn(page):
    """Wait until the figures are drawn."""
    page.locator(".js-plotly-plot .plot-container").first.wait_for()
    page.wait_for_timeout(1_500)


@pytest.fixture
def page(demo, chromium):
    opened = open_page(chromium, demo, LAPTOP)
    yield opened
    opened.close()


def paste(page, box, text):
    """Paste as a visitor does: by the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    box.focus()
    page.keyboard.press("Control+V")


@in_demo("vendi_embed")
def test_rows_of_a_spreadsheet_can_be_pasted(page):
    page.get_by_role("tab", name="Table").click()
    box = page.locator("#source-1 textarea")
    paste(page, box, 'set\ttext\nbirds\t"An owl, or a hawk"\nrain\tRain fell.\nbirds\tA duck.\nrain\t\n')
    page.get_by_text(
        "Read: 2 sets, of 2, 1 texts. The first row names the columns. 1 row without a text left out."
    ).wait_for()
    box.press("Control+Enter")
    answer = page.locator("#answer")
    answer.get_by_text("Set 1 (birds)", exact=True).wait_for()
    answer.get_by_text("of 2", exact=True).wait_for()
    box.fill("")
    paste(page, box, "A dog barks.,x\nRain fell.,y")
    page.get_by_text("Read: 2 texts. No header: the first row is data. Not read: column 2.").wait_for()
    answer.get_by_text("of 2", exact=True).wait_for()


@in_demo("self_bleu")
def test_an_edited_input_marks_the_result_as_old_and_a_setting_scores_what_the_box_holds(page):
    score(page, "a man walks a dog\na man walks a cat\na man sings\na man runs")
    old = page.locator("body.tm-old")
    assert old.count() == 0
    box = page.locator("#source-0 textarea").first
    paste(page, box, "\nRain fell.")
    old.wait_for()
    page.locator("[role=status]").get_by_text("The input has changed").wait_for()
    box.fill("a man walks a dog\na man walks a cat")
    page.get_by_label("number input for Longest phrase, in words").fill("2")
    page.locator("#answer").get_by_text("set_size:2|").wait_for()
    assert old.count() == 0
    assert "a man sings" not in page.locator(".tm-result").inner_text()
    click_example(page)
    page.locator("#answer").get_by_text("set_size:4|").wait_for()
    assert old.count() == 0


@in_demo("self_bleu")
def test_texts_shorter_than_the_order_get_no_verdict_on_repetition(page):
    answer = score(page, "good morning\ngood morning\ngood morning")
    assert "hardly share" not in answer
    assert "Too short to compare: no text has 4 words" in answer
    assert "2 texts are copies of another" in answer
    assert "Set the longest phrase below 4 words" in answer
    assert "They score as equally diverse" in page.locator(".tm-result").inner_text()
    answer = score(page, "good morning\na man walks a dog in the park\na man walks a dog in the rain")
    assert "1 of 3 texts have fewer than 4 words" in answer


@in_demo("self_bleu")
def test_characters_are_not_called_words(page):
    page.get_by_label("Split texts at").click()
    page.get_by_role("option", name="Characters").click()
    answer = score(page, "abc\nabcde\nabcdf")
    assert "1 of 3 texts have fewer than 4 characters" in answer
    assert "Self-BLEU compares characters, not meanings." in answer
    assert "of the pairs of characters are distinct" in answer
    assert "word" not in page.locator(".tm-result").inner_text().lower()


@in_demo("chamfer_diversity", "vendi_embed")
@pytest.mark.parametrize("texts", ["😀\n🎉", "A" * 120 + "\n" + "B" * 120, f"{ARABIC}\nصباح الخير"])
def test_texts_that_the_model_does_not_know_get_no_verdict(page, texts):
    answer = score(page, texts)
    assert "The model does not know the words of some texts" in answer
    assert "2 of 2 different texts consist of words that the model does not know" in answer
    assert "texts that say the same" not in page.locator(".tm-result").inner_text()
    for verdict in ("nearly the same", "near duplicate", "These say", "something of its own"):
        assert verdict not in answer


@in_demo("probeval")
def test_answers_that_the_model_does_not_know_get_no_verdict(page):
    for model, other in (("🎉", ""), ("🎉 × 20", "😀 × 20")):
        answer = score(page, "😀 × 20\n我喜欢 × 10", model, other)
        assert "The model does not know the words of some answers" in answer
        assert "3 of 3 different texts consist of words that the model does not know" in answer
        assert not re.search("The model answers|closer to people|too close to call", answer)


@in_demo("gruen")
def test_another_script_is_not_judged(page):
    answer = score(page, f"我喜欢在公园里散步。 今天天气很好。\n\n{ARABIC} الجو جميل اليوم في الحديقة.")
    assert "GRUEN is for sentences" in score(page, "😀 🎉 😀.")
    assert not re.search("written|Readable|Hardly", answer)


@in_demo("gruen")
def test_repetition_is_told_from_grammar(page):
    lead = page.locator(".tm-banner").inner_text()
    assert "coherence" not in lead
    answer = score(page, "The hotel is near the station and has free parking. " * 4)
    assert "Hardly language" not in answer
    assert "fluent, but the text repeats itself." in answer
    answer = score(page, " ".join(f"A cat sat on a mat {i % 3}." for i in range(150)))
    assert re.search(r"[\d,]+ signs of repetition, −0\.1 each; the score stops at 0", answer)
    assert not re.search(r"−\d{2,}", answer)
    drawn(page)
    assert not re.search(r"−\d{2,}", page.locator(".js-plotly-plot").first.inner_text())
    assert page.evaluate("document.documentElement.scrollHeight") < 5_000


@in_demo("probeval")
def test_the_chart_shows_the_shares_as_they_were_counted(page):
    score(page, "kettle × 3\npot × 1", "kettle × 4")
    drawn(page)
    bars = page.evaluate("document.querySelector('.js-plotly-plot').data.map(trace => [trace.name, [...trace.x]])")
    shares = {name: [round(value, 6) for value in values] for name, values in bars}
    # The last bar is that of wrong answers, of which there are none.
    assert shares["Model"][-1] == shares["People"][-1] == 0
    assert sum(shares["Model"]) == pytest.approx(1)
    assert sum(shares["People"]) == pytest.approx(1)


@in_demo("probeval")
def test_a_page_of_many_answers_stays_short(page):
    words = [f"{first}{second}" for first in ("river", "stone", "cloud", "apple", "horse") for second in "abcdefghij"]
    page.get_by_label("Clusters of people's answers").click()
    page.get_by_role("option", name="One cluster for each answer").click()
    people = "\n".join(f"{word} {i}" for word in words for i in ("tea", "car", "moon", "law"))
    score(page, people, "\n".join(words))
    drawn(page)
    assert page.evaluate("document.documentElement.scrollHeight") < 6_000
    assert "Only the largest 20 of 201 clusters are shown" in page.locator(".tm-result").inner_text()


@in_demo("vendi_embed", "chamfer_diversity", "self_bleu", "gruen")
def test_many_sets_have_a_table_of_scores_and_a_csv(demo, page):
    texts = [["a man walks a dog", "rain falls on the roof"], ["a man walks", "a man walked"], ["she sings", "he runs"]]
    score(page, "\n\n".join("\n".join(members) for members in texts))
    table = page.locator(".tm-picture").filter(has=page.get_by_role("heading", name="All scores"))
    table.get_by_role("gridcell").first.wait_for()
    name, text = download(page, "All scores as CSV")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3
    assert name == f"{demo.name}-scores.csv"
    message, _ = score_boxes(demo, "\n\n".join("\n".join(members) for members in texts), session="scores")
    assert message["success"]
    column = {"vendi_embed": "Vendi score", "chamfer_diversity": "Chamfer diversity", "gruen": "GRUEN"}
    values = [float(row[column.get(demo.name, "Self-BLEU")]) for row in rows]
    mean = float(page.locator("#answer [data-value]").first.get_attribute("data-value"))
    if demo.name != "self_bleu":
        assert sum(values) / 3 == pytest.approx(mean)


@in_demo("vendi_embed", "chamfer_diversity")
def test_sets_and_texts_have_one_name(page):
    score(page, "a man walks a dog\nrain falls on the roof\n\nshe sings\nhe runs")
    drawn(page)
    everything = page.locator("body").inner_text()
    assert "Set 1" in everything
    assert "Set A" not in everything
    assert not re.search(r"\bset [AB]\b", everything)
    labels = page.evaluate(
        "[...document.querySelectorAll('.js-plotly-plot')].flatMap(p => p.data.flatMap(t => t.text ?? []))"
    )
    assert {"1.1", "1.2", "2.1", "2.2"} <= set(labels)


@in_demo("vendi_embed")
def test_a_large_set_is_described_as_a_whole(page):
    nouns = [
        "house",
        "tree",
        "bird",
        "lake",
        "town",
        "hill",
        "moon",
        "car",
        "road",
        "book",
        "cup",
        "bell",
        "lamp",
        "door",
        "ring",
        "rope",
        "fish",
        "sand",
        "milk",
        "bread",
    ]
    texts = [
        f"The {a} {n} sees a {c}."
        for a in ("old", "new", "red", "big", "sad")
        for n in ("man", "dog", "cat", "ship", "king")
        for c in nouns
    ]
    score(page, "\n".join(texts))
    shown = page.locator(".tm-result").inner_text()
    one, other, most = re.search(r"Texts (\d+) and (\d+) are the most similar \((\d\.\d\d)\)", shown).groups()
    rows = list(csv.DictReader(io.StringIO(download(page, "Details as CSV")[1])))
    assert f"{max(float(row['Similarity']) for row in rows):.2f}" == most
    assert rows[int(one) - 1]["Most similar no."] == other
    assert "Only the first 60 of 500 texts are shown" in shown
    assert re.search(r"Only the largest 12 of \d+ groups are shown", shown)
    assert "Only the first 75 of 500 texts are shown" in shown


@in_demo("chamfer_diversity")
def test_a_map_of_a_large_set_says_what_is_left_out(page):
    score(page, "\n".join(f"The {i} dogs see {i * 7} cats." for i in range(100)))
    shown = page.locator(".tm-result").inner_text()
    assert "Only the first 75 of 100 texts are shown" in shown
    assert "The 40 smallest of 100 are shown" in shown


@in_chromium
def test_no_column_is_cut_on_a_laptop(demo, page):
    long = "A dog barked at the very long fence near the river in the afternoon, and nobody came to see why."
    score(page, f"{long}\n{long} Then it rained.", f"{long} × 3")
    drawn(page)
    for table in page.locator(".tm-result .tm-table:visible").all():
        box = table.bounding_box()
        for head in table.locator("[role=columnheader]").all():
            own = head.bounding_box()
            assert own["x"] + own["width"] <= box["x"] + box["width"] + 2, head.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= LAPTOP["width"]


@in_demo("vendi_embed", "self_bleu")
def test_a_setting_on_a_phone_leaves_the_visitor_where_they_are(demo, chromium):
    page = open_page(chromium, demo, PHONE)
    click_example(page)
    page.wait_for_function("document.getElementById('answer').getBoundingClientRect().top < window.innerHeight / 2")
    if demo.name == "vendi_embed":
        setting = page.get_by_label("∞: only the largest")
    else:
        setting = page.get_by_label("number input for Longest phrase, in words")
    setting.scroll_into_view_if_needed()
    before = page.evaluate("window.scrollY")
    first = page.locator("#answer [data-value]").first.get_attribute("data-value")
    setting.check() if demo.name == "vendi_embed" else setting.fill("2")
    page.wait_for_function("first => document.querySelector('#answer [data-value]').dataset.value != first", arg=first)
    page.wait_for_timeout(500)
    assert abs(page.evaluate("window.scrollY") - before) < 200
    page.close()


@in_demo("gruen", "self_bleu", "probeval")
def test_arabic_runs_from_right_to_left(demo, page):
    text = f"{ARABIC} الجو جميل اليوم في الحديقة."
    score(page, text if demo.name == "probeval" else f"{text}\n{text}", text)
    box = page.locator(".tm-input textarea").first
    assert box.evaluate("element => getComputedStyle(element).unicodeBidi") == "plaintext"
    if demo.name == "probeval":
        place = page.locator(".tm-group h3").first
    else:
        place = page.locator(".tm-passage, .tm-texts span[dir]").first
    assert place.evaluate("element => getComputedStyle(element).direction") == "rtl"
    cell = page.locator(".tm-result [role=gridcell] .text").filter(has_text=re.compile("[\u0600-\u06ff]")).first
    assert cell.evaluate("element => getComputedStyle(element).unicodeBidi") == "plaintext"


@in_demo("probeval", "self_bleu")
def test_results_and_errors_are_announced(demo, page):
    status = page.locator("[role=status].tm-sr")
    assert status.count() == 1
    page.locator(".tm-examples button").first.click()
    page.locator("#answer [data-value]").first.wait_for()
    number = page.locator("#answer [data-value]").first.inner_text()
    page.wait_for_function(
        "number => document.querySelector('[role=status].tm-sr').textContent.includes(number)", arg=number
    )
    for box in page.locator(".tm-input textarea").all():
        if box.is_visible():
            box.fill("")
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("alert").first.wait_for()


@in_demo("vendi_embed")
def test_the_limit_of_a_file_is_one_number(demo, page, tmp_path):
    components = event_of(demo, "file")[1]
    assert components[0]["props"]["label"] == ".txt, .csv, .jsonl, up to 1 MB"
    page.get_by_role("tab", name="File").click()
    path = tmp_path / "large.txt"
    path.write_text("a" * 1_100_000)
    page.locator("input[type=file][accept*=jsonl]").set_input_files(path)
    page.get_by_text(re.compile(r"maximum allowed size of 1(\.0)? M[Bb]")).wait_for()
    assert "976" not in page.locator("body").inner_text()


@in_demo("vendi_embed")
def test_a_wide_window_is_filled(demo, chromium):
    page = open_page(chromium, demo, DESKTOP)
    assert page.locator(".gradio-container main").first.bounding_box()["width"] > 1_200
    page.close()
