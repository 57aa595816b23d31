"""The demo of probeval: who answers in a table, and when one of two models is called closer to people."""

import csv
import io
import json
import re
import sys
from functools import partial

import numpy as np
import pytest

from scripts.tooling.screenshots import DESKTOP, PHONE, open_page
from spaces.probeval import two_models
from tests.conftest import ROOT
from tests.demos import call, download, in_demo
from tests.test_spaces_display import drawn, score
from text_metrics.metrics.probeval import probeval_sampling

pytest_plugins = ["tests.demo_servers"]

PEOPLE = "kettle × 42\nelectric kettle × 8\npot × 21\nsaucepan × 9\nmicrowave × 7\ncup × 5\nmug × 4\ncampfire × 4"
ALIKE = "a kettle × 45\na pot × 30\nsaucepan × 10\nmicrowave × 10\nmug × 5"
ODD = "cup × 40\nhelicopter × 25\nkettle × 20\nfridge × 15"


@pytest.fixture
def questions(monkeypatch):
    """The module that parses, which finds the kit in the folder above its own."""
    monkeypatch.syspath_prepend(ROOT / "spaces")
    monkeypatch.syspath_prepend(ROOT / "spaces" / "probeval")
    import questions

    yield questions
    del sys.modules["questions"]


@pytest.mark.parametrize(
    ("line", "answer", "n"),
    [
        ("kettle: 5", "kettle", 5),
        ("kettle * 5", "kettle", 5),
        ("5 x kettle", "kettle", 5),
        ("5×kettle", "kettle", 5),
        ("kettle x 5", "kettle", 5),
        ("kettle\t5", "kettle", 5),
        ("Xbox 360", "Xbox 360", 1),
        ("4x4", "4x4", 1),
        ("at 10:30", "at 10:30", 1),
        ("a note: well", "a note: well", 1),
    ],
)
def test_counts_are_read_as_people_write_them(questions, line, answer, n):
    (found,) = questions.from_boxes(line, "pot")
    assert found["people"] == [{"text": answer, "count": n}]


@pytest.mark.parametrize("line", ["kettle × -5", "kettle × 1.5", "kettle: 0", "-5 x kettle", "kettle × 12345678901"])
def test_a_count_that_is_none_is_refused_by_line(questions, line):
    with pytest.raises(ValueError, match="Line 3 of the model's answers: a count must be an integer from 1 to"):
        questions.from_boxes("kettle", f"pot\n\n{line}")


def test_a_preview_says_what_is_read_of_each_side(questions):
    found = questions.from_boxes("kettle × 5\nkettle\npot", "cup")
    assert questions.preview(found) == "People: 7 answers, 2 different. Model: 1 answer, 1 different."
    rows = [{"text": text, "who": "people", "cluster": cluster} for text, cluster in (("a", "x"), ("b", ""))]
    partly = questions.from_rows([*rows, {"text": "c", "who": "model 2", "count": "3"}])
    assert "People's clusters are not used, because some answers have none." in questions.preview(partly)
    assert questions.from_rows(questions.to_rows(partly)) == partly


def test_a_cluster_cannot_be_named_as_wrong_answers_are(questions):
    rows = [
        {"text": "a", "who": "people", "cluster": "wrong", "question": "Why?"},
        {"text": "b", "who": "model", "question": "Why?"},
    ]
    with pytest.raises(ValueError, match=r"Question “Why.”: “wrong” is the name of the answers that match no cluster"):
        questions.check(questions.from_rows(rows))


def questions_of(people, model, n_questions=1):
    """Make questions, with people's answers in clusters named like them, from counts of answers."""
    gold = [{"text": text, "count": n, "cluster": text} for text, n in zip("abcde", people, strict=False) if n]
    said = [{"text": text, "count": n} for text, n in zip("abcde?", model, strict=True) if n]
    return {"predictions": [{"answers": said}] * n_questions, "references": [{"answers": gold}] * n_questions}


def result_of(probeval, *counts, people, n_questions=1, **settings):
    """Score a model by counts of its answers in the clusters a to e, and in none."""
    questions = questions_of(people, counts, n_questions)
    labels = {str(i): {**{text: text for text in "abcde"}, "?": "wrong"} for i in range(n_questions)}
    return probeval.compute(**questions, matcher="human", labels=labels, details=True, **settings)


def compare(first, other, debias=False):
    return two_models.compare(first, other, probeval_sampling, debias=debias)


def test_a_clear_difference_is_told_from_a_small_one(load):
    people, score = [50, 30, 15, 5], partial(result_of, load("probeval"))
    close, far = (score(*counts, people=people) for counts in ([48, 30, 17, 5, 0, 0], [0, 10, 10, 40, 0, 40]))
    found = compare(close, far)
    assert found.difference == pytest.approx(far["probeval"] - close["probeval"])
    assert 0 < found.low < found.difference < found.high
    assert two_models.verdict(found, 1) == "Model 1 is closer to people on this question."
    turned = compare(far, close)
    assert turned.difference == pytest.approx(-found.difference)
    assert two_models.verdict(turned, 7) == "Model 2 is closer to people on these 7 questions."
    near = compare(close, score(46, 33, 15, 6, 0, 0, people=people))
    assert near.low < 0 < near.high
    assert two_models.verdict(near, 1) == "The two models are too close to call on this question."
    assert "One question does not rank models" in two_models.caveat(near, 1)
    assert "Other questions may reverse" in two_models.caveat(near, 2)


def test_one_answer_of_each_model_decides_nothing(load):
    score = partial(result_of, load("probeval"), people=[3])
    found = compare(*(score(*counts) for counts in ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1])))
    assert found.low is found.high is None
    assert "too few answers" in two_models.verdict(found, 1)
    assert "at least 10 answers" in two_models.caveat(found, 1)


def test_more_questions_narrow_the_interval(load):
    people, counts = [50, 30, 20], ([50, 30, 15, 0, 0, 5], [30, 30, 30, 0, 0, 10])
    widths = []
    for n in (1, 16):
        found = compare(*(result_of(load("probeval"), *own, people=people, n_questions=n) for own in counts))
        widths.append(found.high - found.low)
    assert widths[1] == pytest.approx(widths[0] / 4, rel=0.15)


@pytest.mark.parametrize(("n", "debias"), [(10, False), (100, False), (20, True)])
def test_equal_models_are_rarely_told_apart(rng, load, n, debias):
    """Models that answer alike differ by chance; at most one verdict in twenty may say so, but for chance."""
    truth, people = np.array([0.4, 0.25, 0.2, 0.1, 0, 0.05]), np.array([0.55, 0.25, 0.1, 0.1])
    said, rounds = 0, 20 if debias else 200
    for _ in range(rounds):
        gold = rng.multinomial(100, people).tolist()
        counts = (rng.multinomial(n, truth).tolist() for _ in range(2))
        found = compare(*(result_of(load("probeval"), *own, people=gold, debias=debias) for own in counts), debias)
        said += found.low > 0 or found.high < 0
    assert said <= 0.1 * rounds


@pytest.mark.parametrize("debias", [False, True])
def test_the_interval_is_of_the_metric_s_own_score(rng, load, debias):
    """Samples that are drawn for the interval have the scores that `compute` gives them."""
    people, probeval = [40, 30, 20, 10], load("probeval")
    detail = result_of(probeval, 30, 20, 0, 5, 0, 5, people=people, debias=debias)["details"][0]
    (gold, gold_times), (model, model_times) = (
        probeval_sampling.redrawn(side, 12, rng) for side in probeval_sampling.sides(detail)
    )
    found = probeval_sampling.divergences(gold, model, gold_times, model_times, debias=debias)
    n_compared = 0
    for value, own, other in zip(found, gold_times @ gold.weights, model_times @ model.weights, strict=True):
        # No answer of people can be in no cluster, and a cluster without any is none.
        if own[-1] == 0 and own[:-1].all():
            counts = [*other[:-1].astype(int).tolist(), 0, int(other[-1])]
            expected = result_of(probeval, *counts, people=own[:-1].astype(int).tolist(), debias=debias)
            assert value == pytest.approx(expected["probeval"], abs=1e-12)
            n_compared += 1
    assert n_compared >= 3


@pytest.mark.parametrize("debias", [False, True])
def test_the_interval_of_soft_clusters_is_of_the_metric_s_own_score(rng, load, debias):
    settings = {"references": [answers(PEOPLE)], "clustering": "soft", "debias": debias}
    probeval = load("probeval")
    detail = probeval.compute(predictions=[answers(ALIKE)], details=True, **settings)["details"][0]
    gold, model = probeval_sampling.sides(detail)
    model_times = rng.multinomial(60, model.times / model.times.sum(), 5).astype(float)
    found = probeval_sampling.divergences(gold, model, gold.times[None], model_times, debias=debias)
    texts = [row["text"] for row in detail["assignments"]]
    expected = [
        probeval.compute(predictions=[{text: int(n) for text, n in zip(texts, times, strict=True) if n}], **settings)[
            "probeval"
        ]
        for times in model_times
    ]
    assert found == pytest.approx(expected, abs=1e-6)
    # A flat smoothing, as of hard clusters, is another statistic.
    flat = model._replace(smoothing=np.ones_like(model.smoothing))
    other = probeval_sampling.divergences(gold._replace(smoothing=flat.smoothing), flat, gold.times[None], model_times)
    assert np.abs(other - found).min() > 1e-4


def test_a_table_names_both_models(questions):
    rows = [
        {"text": "pot", "who": who, "question": "q"}
        for who in ("People", "model", "Model 2", "other", " another model ", "model 1")
    ]
    (found,) = questions.from_rows(rows)
    assert [len(found[side]) for side in ("people", "model", "other")] == [1, 2, 3]
    assert questions.sides_of([found]) == ["people", "model", "other"]
    (alone,) = questions.from_rows(rows[:2])
    assert "other" not in alone
    assert questions.sides_of([alone]) == ["people", "model"]
    with pytest.raises(ValueError, match=r"Row 1: the column “Who” must be people, model or model 2\. Got “model 3”"):
        questions.from_rows([{"text": "pot", "who": "model 3"}])


def test_a_model_that_answers_some_questions_only_is_refused(questions):
    rows = [{"text": "pot", "who": who, "question": name} for name in "ab" for who in ("people", "model", "other")]
    questions.check(questions.from_rows(rows))
    with pytest.raises(ValueError, match="Question “b”: the other model's answers are missing"):
        questions.check(questions.from_rows(rows[:-1]))
    with pytest.raises(ValueError, match="the model's answers are missing"):
        questions.check(questions.from_boxes("pot", "", "pot"))
    assert questions.from_boxes("pot", "pot", " \n") == questions.from_boxes("pot", "pot")


def answers(box):
    """List the answers of a box."""
    pairs = (line.split(" × ") for line in box.split("\n"))
    return [text for text, count in pairs for _ in range(int(count))]


def expected_of(load, model, **settings):
    return load("probeval").compute(predictions=[answers(model)], references=[answers(PEOPLE)], **settings)


def cards(page):
    """Read the cards: each name, number in full, and the text of its facts."""
    page.locator("#answer .tm-card").nth(1).wait_for()
    return [
        (
            card.locator(".tm-name").inner_text(),
            float(card.locator("[data-value]").get_attribute("data-value")),
            card.locator(".tm-tiles").inner_text(),
        )
        for card in page.locator("#answer .tm-card").all()
    ]


@pytest.mark.slow
@in_demo("probeval")
def test_two_models_stand_beside_people(demo, chromium, load):
    page = open_page(chromium, demo, DESKTOP)
    shown = score(page, PEOPLE, ALIKE, ODD)
    assert "Model 1 is closer to people on this question." in shown
    assert "One question does not rank models" in shown
    expected = [expected_of(load, model) for model in (ALIKE, ODD)]
    for (name, value, facts), result, number in zip(cards(page), expected, "12", strict=True):
        assert name == f"Model {number}"
        assert value == pytest.approx(result["probeval"], abs=1e-6)
        assert f"{result['wrong_rate']:.0%}" in facts
        assert f"{result['coverage']:.0%}" in facts
    boxes = [card.bounding_box() for card in page.locator("#answer .tm-card").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    drawn(page)
    read = "() => [...document.querySelectorAll('.js-plotly-plot')].map(p => p.data.map(t => [t.name, [...t.x]]))"
    shares, terms = (dict(traces) for traces in page.evaluate(read))
    assert list(shares) == ["People", "Model 1", "Model 2"]
    assert all(sum(values) == pytest.approx(1) for values in shares.values())
    assert shares["Model 2"][-1] == pytest.approx(expected[1]["wrong_rate"])
    for name, result in zip(("Model 1", "Model 2"), expected, strict=True):
        assert sum(terms[name]) == pytest.approx(result["probeval"], abs=1e-6)
    # Another setting scores both again.
    page.get_by_label("Match the model's answers by").click()
    page.get_by_role("option", name="Gaussian process").click()
    wanted = expected_of(load, ODD, matcher="gp")["probeval"]
    page.wait_for_function(
        "value => Math.abs(document.querySelectorAll('#answer [data-value]')[1].dataset.value - value) < 1e-6",
        arg=wanted,
    )
    # Without the other model, the page is as before.
    score(page, PEOPLE, ALIKE, "")
    page.wait_for_function("document.querySelectorAll('#answer .tm-card').length == 1")
    alone = page.locator("#answer [data-value]").get_attribute("data-value")
    assert float(alone) == pytest.approx(expected_of(load, ALIKE, matcher="gp")["probeval"], abs=1e-6)
    page.wait_for_function("!document.querySelector('.tm-result').innerText.includes('Model 2')")
    page.close()


@pytest.mark.slow
@in_demo("probeval")
def test_a_file_with_two_models_and_what_is_downloaded(demo, chromium, load, tmp_path):
    page = open_page(chromium, demo, DESKTOP)
    rows = [
        (f"question {i}", who, answer, 20 + i)
        for i in range(3)
        for who, said in (("people", ("kettle", "pot")), ("model 1", ("a kettle",)), ("model 2", ("helicopter",)))
        for answer in said
    ]
    path = tmp_path / "two.csv"
    path.write_text("question,who,answer,count\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    page.get_by_role("tab", name="File").click()
    page.locator("input[type=file][accept*=jsonl]").set_input_files(path)
    page.get_by_role("button", name="Score the file").and_(page.locator(":enabled")).click()
    first, second = cards(page)
    assert "Model 1 is closer to people on these 3 questions." in page.locator("#answer").inner_text()
    labels = ("Details as CSV", "All scores as CSV", "Result as JSON")
    files = {label: download(page, label)[1] for label in labels}
    details = list(csv.DictReader(io.StringIO(files["Details as CSV"])))
    assert [(row["Question"], row["Who"], row["Answer"], int(row["Count"])) for row in details] == rows
    scores = list(csv.DictReader(io.StringIO(files["All scores as CSV"])))
    assert [row["Model 2 answers"] for row in scores] == ["20", "21", "22"]
    for name, value, _ in (first, second):
        assert sum(float(row[f"{name}: divergence in nats"]) for row in scores) / 3 == pytest.approx(value)
    whole = json.loads(files["Result as JSON"])
    assert whole["other"]["probeval"] == second[1]
    assert whole["comparison"]["difference"] == pytest.approx(second[1] - first[1])
    assert whole["questions"][2]["other"] == [{"text": "helicopter", "count": 22}]
    page.close()


@pytest.mark.slow
@in_demo("probeval")
def test_the_api_takes_another_model(demo, load):
    from gradio_client import Client

    client = Client(demo.url, verbose=False)
    given = {"people": answers(PEOPLE), "model": answers(ALIKE), "other": answers(ODD)}
    found = client.predict(api_name="/score", **given)
    for result, model in ((found, ALIKE), (found["other"], ODD)):
        expected = expected_of(load, model)
        assert result["probeval"] == pytest.approx(expected["probeval"], abs=1e-6)
        assert result["signature"] == expected["signature"]
    comparison = found["comparison"]
    assert 0 < comparison["low"] < comparison["difference"] < comparison["high"]
    for nothing in (None, []):
        assert "other" not in client.predict(api_name="/score", **{**given, "other": nothing})
    data = [["kettle"], ["pot"], "auto", "auto", 0.55, 1, 0.95, False]
    for wrong in ("kettle", [7], {"a": 1}):
        kind, content = call(demo, {"data": [*data, wrong]}).last()
        assert (kind, content["error"]) == ("error", "other must be a list of texts.")


@pytest.mark.slow
@in_demo("probeval")
def test_clusters_by_degrees(demo, chromium, load):
    page = open_page(chromium, demo, DESKTOP)
    score(page, PEOPLE, ALIKE, ODD)

    def choose(setting, option):
        page.get_by_label(setting).click()
        page.get_by_role("option", name=option).click()

    choose("Clusters of people's answers", "Found: by degrees")
    page.locator("#answer").get_by_text("clustering:soft").wait_for()
    expected = [expected_of(load, model, clustering="soft") for model in (ALIKE, ODD)]
    assert [value for _, value, _ in cards(page)] == pytest.approx([one["probeval"] for one in expected], abs=1e-6)
    # Each answer is listed with its own count, although its degrees divide it.
    chips = page.locator(".tm-groups .tm-chips li").all_inner_texts()
    assert {"kettle × 42", "a kettle × 45", "helicopter × 25"} <= {re.sub(r"\s+", " ", chip) for chip in chips}
    drawn(page)
    read = "() => document.querySelector('.js-plotly-plot').data.map(t => t.x.reduce((a, b) => a + b))"
    assert page.evaluate(read) == pytest.approx([1, 1, 1])
    # They do not go with another matcher; the next choice scores the same answers again.
    choose("Match the model's answers by", "Gaussian process")
    page.get_by_role("alert").filter(has_text="Clusters by degrees").first.wait_for()
    choose("Match the model's answers by", "As the clusters")
    assert [value for _, value, _ in cards(page)] == pytest.approx([one["probeval"] for one in expected], abs=1e-6)
    page.close()


@pytest.mark.slow
@in_demo("probeval")
def test_two_models_on_a_phone(demo, chromium):
    page = open_page(chromium, demo, PHONE, "dark")
    score(page, PEOPLE, ALIKE, ODD)
    boxes = [card.bounding_box() for card in page.locator("#answer .tm-card").all()]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    colours = page.evaluate(
        "[...document.querySelectorAll('#answer .tm-card strong')].map(e => getComputedStyle(e).color)"
    )
    assert len(set(colours)) == 2
    page.close()
