"""The meta-evaluation: the paper's numbers on its own data, and all of it on small pairs of our own words."""

import base64
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from metrics._core import core_encoder
from scripts import _meta_report, meta_eval
from scripts._statistics import randomization_p
from tests.conftest import METRICS, ROOT

OWN = ROOT / "tests/data/judged_pairs.jsonl"
PAPER_METRICS = [
    "self-BLEU-3",
    "self-BLEU-4",
    "Distinct-4",
    "Entropy-2",
    "VS-ngram-0.5",
    "VS-ngram-1",
    "VS-ngram-∞",
    "self-CosSim",
    "Chamfer",
    "VS-Embed-0.5",
    "VS-Embed-1",
    "VS-Embed-∞",
]
QUALITY_METRICS = ["GRUEN alone", "GRUEN × Chamfer", "GRUEN × VS-Embed-0.5", "VS-Embed-0.5 of GRUEN ≥ 0.5"]


def pairs_of(*rows):
    """Make pairs from (index of set 1, index of set 2, verdict, concept)."""
    first, second, verdicts, concepts = (np.array(column) for column in zip(*rows, strict=True))
    n = len(rows)
    return meta_eval.Pairs([], first, second, verdicts, np.full(n, "x"), np.full(n, ""), concepts, {}, 0)


@pytest.fixture(scope="module")
def scored():
    """Our own pairs, and the rows of all metrics."""
    pairs = meta_eval.read_pairs([OWN])
    rows, failures = meta_eval.all_rows(pairs, core_encoder.DEFAULT_MODEL, [])
    assert failures == []
    return pairs, rows


# Reading.


def test_pairs_are_read_and_vague_ones_left_out():
    pairs = meta_eval.read_pairs([OWN])
    assert len(pairs.first) == 12
    assert pairs.left_out == 1
    assert pairs.verdicts.tolist() == [0, 1, 0, 0, 0, 1] + [0, 1] * 3
    assert set(pairs.data) == {"judged_pairs"}
    assert pairs.parts.tolist() == ["high"] * 6 + ["low"] * 6
    # Pairs about the same thing have one number, whatever their quality.
    assert pairs.concepts.tolist() == [*range(6)] * 2
    assert {label: len(found) for label, found in pairs.labels.items()} == {
        "original": 3,
        "para_a": 2,
        "para_b": 2,
        "para_c": 5,
        "nonsensical": 6,
        "shuffle": 6,
    }
    assert list(meta_eval.cells(pairs)) == ["judged_pairs, all", "judged_pairs, high", "judged_pairs, low"]


def test_a_set_that_comes_twice_is_scored_once(tmp_path):
    line = {"set1": ["a b", "c"], "set2": ["d", "e f"], "llm_diversity": 0}
    other = {"set1": ["d", "e f"], "set2": ["g", "h"], "llm_diversity": 2}
    path = tmp_path / "x_low.jsonl"
    path.write_text("\n\n".join(map(json.dumps, [line, line, other])), encoding="utf-8")
    pairs = meta_eval.read_pairs([path])
    assert pairs.sets == [["a b", "c"], ["d", "e f"]]
    assert (pairs.left_out, pairs.data.tolist(), pairs.parts.tolist()) == (1, ["x", "x"], ["low", "low"])
    # Without `src`, each pair is about something of its own.
    assert pairs.concepts.tolist() == [0, 1]
    assert list(meta_eval.cells(pairs)) == ["x, low"]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"llm_diversity": 1, "Diversity_Set1": 5, "Diversity_Set2": 1}, 1),
        ({"llm_diversity": 2}, None),
        ({"Diversity_Set1": 3.4, "Diversity_Set2": 2.9}, 0),
        ({"Diversity_Set1": 2.9, "Diversity_Set2": 3.4}, 1),
        ({"Diversity_Set1": 3.4, "Diversity_Set2": 3.0}, None),
    ],
)
def test_verdicts(record, expected):
    assert meta_eval.read_verdict(record, "here") == expected


SET = ["a b", "c d"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"set1": SET, "set2": SET}, r"line 1 has no verdict: neither llm_diversity nor Diversity_Set1"),
        ({"set1": SET, "set2": SET, "Diversity_Set1": 3}, "line 1 has no verdict"),
        ({"set1": SET, "set2": SET, "Diversity_Set1": "3", "Diversity_Set2": 1}, "must be numbers. Got '3' and 1"),
        ({"set1": SET, "set2": SET, "llm_diversity": 3}, r"line 1: llm_diversity must be 0, 1 or 2\. Got 3"),
        ({"set1": SET, "set2": SET, "llm_diversity": True}, "Got True"),
        ({"set1": SET, "set2": ["a"], "llm_diversity": 0}, r"must have as many texts\. Got 2 and 1"),
        ({"set2": SET, "llm_diversity": 0}, "line 1 has no 'set1'"),
        ({"set1": SET, "set2": "text", "llm_diversity": 0}, "line 1: 'set2' must be a list of strings"),
        ({"set1": SET, "set2": SET, "llm_diversity": 2}, "all 1 are vague"),
        ("{", "line 1 is no JSON"),
        ("\n\n7", "line 3 must hold an object. Got int"),
        (" \n", "is empty"),
    ],
)
def test_bad_pairs_are_named(tmp_path, line, message):
    path = tmp_path / "bad.jsonl"
    path.write_text(line if isinstance(line, str) else json.dumps(line), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        meta_eval.read_pairs([path])
    with pytest.raises(ValueError, match=r"nowhere\.jsonl cannot be read: No such file"):
        meta_eval.read_pairs([tmp_path / "nowhere.jsonl"])


# Agreement.


def row(scores, sign=1, original=None):
    return meta_eval.Row("m", np.array(scores, dtype=float), sign, "m|v", original)


def test_ties_count_half_or_go_to_the_first():
    pairs = pairs_of((0, 1, 0, 0), (0, 1, 1, 1), (0, 2, 1, 2), (2, 0, 1, 3))
    scores = [1.0, 1.0 + 1e-15, 2.0]
    assert meta_eval.choices(row(scores), pairs, parity=False).tolist() == [0.5, 0.5, 1, 0]
    assert meta_eval.choices(row(scores, sign=-1), pairs, parity=False).tolist() == [0.5, 0.5, 0, 1]
    assert meta_eval.choices(row([1, 1, 2]), pairs, parity=True).tolist() == [0, 0, 1, 0]
    assert meta_eval.choices(row([1, 1, 2], -1), pairs, parity=True).tolist() == [0, 0, 0, 1]
    # What the original's rounding makes of a tie is for parity alone.
    quirk = row([1, 1, 2], original=np.array([1, 1 + 1e-12, 2]))
    assert meta_eval.choices(quirk, pairs, parity=True).tolist() == [1, 1, 1, 0]
    assert meta_eval.choices(quirk, pairs, parity=False).tolist() == [0.5, 0.5, 1, 0]
    for parity, expected in ((False, (0.5 + 0.5 + 1 + 0) / 4), (True, (1 + 0 + 1 + 0) / 4)):
        report = meta_eval.evaluate_metrics(pairs, [row([1, 1, 2])], parity)
        assert report["metrics"][0]["cells"]["x, all"]["accuracy"] == expected
        assert report["metrics"][0]["accuracy_by_parity"] == {"x, all": 0.5}


def test_accuracies_intervals_and_differences(rng):
    """A metric that follows the judge nine times in ten, and one that guesses."""
    n = 400
    verdicts = rng.integers(0, 2, n)
    good, guess = (np.where(rng.random(n) < share, verdicts, 1 - verdicts) for share in (0.9, 0.5))
    pairs = pairs_of(*((0, 0, verdict, i) for i, verdict in enumerate(verdicts)))
    chosen = {"good": good.astype(float), "guess": guess.astype(float), "twin": good.astype(float)}
    found = meta_eval.accuracies(chosen, pairs, np.ones(n, dtype=bool))
    assert found["good"]["accuracy"] == (good == verdicts).mean()
    low, high = found["good"]["interval"]
    assert low < found["good"]["accuracy"] < high
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.9 * 0.1 / n), rel=0.2)
    assert found["good"]["p_against_best"] is None
    assert found["guess"]["p_against_best"] < 0.001
    assert found["twin"]["p_against_best"] == 1


def test_pairs_about_one_thing_are_drawn_together(rng):
    """Copies of a pair tell nothing new: the interval and the p-value stay as they were."""
    verdicts, chosen = rng.integers(0, 2, 60), rng.integers(0, 2, 60).astype(float)
    once = pairs_of(*((0, 0, verdict, i) for i, verdict in enumerate(verdicts)))
    many = pairs_of(*((0, 0, verdict, i) for i, verdict in enumerate(verdicts) for _ in range(20)))
    results = [
        meta_eval.accuracies({"a": own, "b": np.repeat(pairs.verdicts[:1], len(own)) * 1.0}, pairs, own >= 0)
        for pairs, own in ((once, chosen), (many, np.repeat(chosen, 20)))
    ]
    for name in ("a", "b"):
        assert results[1][name]["interval"] == pytest.approx(results[0][name]["interval"])
        assert results[1][name]["p_against_best"] == pytest.approx(results[0][name]["p_against_best"])


def test_kappa_is_that_of_scikit_learn(rng):
    chosen = {"a": rng.choice([0, 0.5, 1], 50), "b": rng.choice([0, 0.5, 1], 50), "c": np.zeros(50), "d": np.zeros(50)}
    table = meta_eval.kappas(chosen)
    assert table[0][1] == table[1][0] == pytest.approx(cohen_kappa_score((2 * chosen["a"]), (2 * chosen["b"])))
    assert table[0][2] == 0
    assert table[2][3] is None
    assert [table[i][i] for i in range(4)] == [1, 1, 1, 1]


def test_randomization_equals_the_exact_test():
    # All 2^10 signs can be tried: the share whose sum is as far from 0.
    differences = np.array([0.3, -0.1, 0.4, 0.2, -0.3, 0.5, 0.1, 0.2, -0.2, 0.6])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 10)).reshape(10, -1)
    exact = (np.abs(differences @ signs) >= abs(differences.sum()) - 1e-9).mean()
    assert randomization_p(differences) == pytest.approx(exact, abs=0.01)
    assert randomization_p(-differences) == randomization_p(differences)
    assert randomization_p(np.zeros(5)) == 1
    assert randomization_p(np.array([])) == 1
    assert randomization_p(np.full(40, 0.1)) == 1 / 10_000


# The whole, on our own pairs.


def test_all_metrics_are_in_the_table(scored):
    _, rows = scored
    assert [one.name for one in rows] == PAPER_METRICS + QUALITY_METRICS
    assert {one.name for one in rows if one.sign < 0} == {"self-BLEU-3", "self-BLEU-4", "self-CosSim"}


def test_rows_are_what_the_modules_give(scored, load):
    pairs, rows = scored
    found = {one.name: one.scores for one in rows}
    for name, metric, settings in (
        ("self-BLEU-3", "self_bleu", {"max_order": 3}),
        ("VS-ngram-∞", "vendi_embed", {"q": "inf", "kernel": "ngram"}),
        ("Chamfer", "chamfer_diversity", {}),
        ("VS-Embed-0.5", "vendi_embed", {"q": 0.5}),
    ):
        expected = load(metric).compute(predictions=pairs.sets, **settings)
        np.testing.assert_allclose(found[name], expected["scores"], atol=1e-6)
    signed = {one.name: one.signature for one in rows}
    model = "model:all-MiniLM-L6-v2@1110a243|precision:float32"
    assert model in signed["Chamfer"]
    assert signed["GRUEN × VS-Embed-0.5"].startswith(f"vendi_embed|q:0.5|kernel:embedding|{model}")
    assert "|quality:(gruen|" in signed["GRUEN × VS-Embed-0.5"]


def test_quality_tells_sense_from_nonsense(scored):
    """On our own pairs: at least as good as plain Vendi, and shuffled words rated below whole sentences."""
    pairs, rows = scored
    report = meta_eval.evaluate_metrics(pairs, rows, parity=False)
    accuracy = {one["name"]: one["cells"]["judged_pairs, all"]["accuracy"] for one in report["metrics"]}
    assert accuracy["GRUEN × VS-Embed-0.5"] >= accuracy["VS-Embed-0.5"] > accuracy["self-BLEU-3"]
    quality = {label: own["median"] for label, own in report["distributions"]["GRUEN alone"].items()}
    assert quality["shuffle"] < min(quality["original"], quality["nonsensical"])


def test_each_text_is_encoded_once(monkeypatch):
    pairs = meta_eval.read_pairs([OWN])
    seen = []
    real = meta_eval.encode

    def watched(texts, *arguments, **settings):
        seen.append(texts)
        return real(texts, *arguments, **settings)

    monkeypatch.setattr(meta_eval, "encode", watched)
    monkeypatch.setattr(meta_eval, "quality_rows", lambda *_: [])
    meta_eval.all_rows(pairs, core_encoder.DEFAULT_MODEL, [])
    # One call, which encodes each different text once.
    assert len(seen) == 1
    assert len(seen[0]) == sum(map(len, pairs.sets))


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts/meta_eval.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Run the command as a user does, once, with two metrics of their own, of which one fails."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "n_words").mkdir()
    (folder / "n_words" / "n_words.py").write_text(N_WORDS, encoding="utf-8")
    (folder / "broken").mkdir()
    (folder / "broken" / "broken.py").write_text(
        N_WORDS.replace("NWords", "Broken").replace("{'n_words': ", "{'one': 1, 'two': "), encoding="utf-8"
    )
    done = run(
        OWN,
        *("--metric", folder / "n_words", "--metric-lower", METRICS / "self_bleu", "--metric", folder / "broken"),
        *("--markdown", folder / "docs/report.md", "--pictures", folder / "docs/pictures"),
        *("--json", folder / "report.json", "--html", folder / "report.html"),
    )
    return folder, done


N_WORDS = """
import datasets
import evaluate


class NWords(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("string")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions):
        return {'n_words': len({word for text in predictions for word in text.split()})}
"""


def test_metrics_of_ones_own_are_in_the_table_and_those_that_fail_are_named(written):
    folder, done = written
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert done.returncode == 1
    assert (
        f"{folder / 'broken'} is left out: it must give one number, or one named 'broken'. Got one, two" in done.stderr
    )
    assert report["settings"]["failures"] == [
        line.replace(" is left out", "", 1) for line in done.stderr.splitlines() if "is left out" in line
    ]
    names = [metric["name"] for metric in report["metrics"]]
    assert names == [*PAPER_METRICS, *QUALITY_METRICS, "n_words", "self_bleu"]
    by_name = {metric["name"]: metric for metric in report["metrics"]}
    assert by_name["self_bleu"]["cells"] == by_name["self-BLEU-4"]["cells"]
    assert by_name["self_bleu"]["more_diverse"] == "lower"
    pairs = meta_eval.read_pairs([OWN])
    words = [len({word for text in members for word in text.split()}) for members in pairs.sets]
    chosen = meta_eval.choices(row(words), pairs, parity=False)
    expected = float((1 - np.abs(chosen - pairs.verdicts)).mean())
    assert by_name["n_words"]["cells"]["judged_pairs, all"]["accuracy"] == pytest.approx(expected)


def test_the_report_is_written_in_all_forms(written):
    folder, done = written
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    shown = f"{100 * report['metrics'][0]['cells']['judged_pairs, all']['accuracy']:.1f}"
    page = (folder / "report.html").read_text(encoding="utf-8")
    text = (folder / "docs/report.md").read_text(encoding="utf-8")
    for form in (done.stdout, page, text):
        assert "judged_pairs, high (6)" in form
        assert shown in form
        assert "GRUEN × VS-Embed-0.5" in form
    # The page needs no other file: each picture is inside, and is one.
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    inside = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(inside) == 3
    for data in inside:
        assert ElementTree.fromstring(base64.b64decode(data)).tag.endswith("svg")
    links = re.findall(r"!\[.*\]\((.*)\)", text)
    assert links == ["pictures/agreement.svg", "pictures/kappa.svg", "pictures/labels.svg"]
    assert all((folder / "docs" / link).is_file() for link in links)
    kappa = (folder / "docs/pictures/kappa.svg").read_text(encoding="utf-8")
    assert "GRUEN × VS-Embed-0.5" in kappa
    for label in ("original", "Para-1", "Para-2", "Para-3", "nonsensical", "shuffled"):
        assert label in (folder / "docs/pictures/labels.svg").read_text(encoding="utf-8")
        assert label in text


def test_markup_in_names_stays_text(written):
    folder, _ = written
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    report["metrics"][0]["name"] = "<script>alert(1)</script> | x"
    page, text = _meta_report.html(report), _meta_report.markdown(report, Path("x.md"), None)
    assert "<script>" not in page
    assert "\\| x" in text


def test_a_file_that_is_not_there_or_a_model_or_a_metric():
    done = run("nowhere.jsonl")
    assert done.returncode == 1
    assert done.stderr.strip() == "nowhere.jsonl cannot be read: No such file or directory."
    done = run(OWN, "--model", "./nowhere")
    assert done.returncode == 1
    assert "model must be a folder with a saved model. Got './nowhere'" in done.stderr
    done = run(OWN, "--metric", "no/such/metric")
    assert done.returncode == 1
    assert "metric 'no/such/metric' cannot be loaded" in done.stderr


def test_a_model_by_its_path(tiny_model):
    pairs = meta_eval.read_pairs([OWN])
    encoded = meta_eval.encode([text for members in pairs.sets for text in members], tiny_model)
    rows = list(meta_eval.embedding_rows(pairs.sets, encoded))
    assert len(rows) == 5
    assert all("model:local@" in one.signature for one in rows)


# The paper's numbers, on its own data.


# Agreement in percent, ties to set 1, by our metrics with the default model: all, high quality, low quality.
EXPECTED = {
    "self-BLEU-3": {"commongen_gpt4t": (48.4, 73.5, 27.6), "commongen_qwen": (50.7, 68.4, 35.3)},
    "Chamfer": {"commongen_gpt4t": (77.1, 79.4, 75.1), "commongen_qwen": (76.2, 69.7, 81.8)},
    "VS-Embed-0.5": {"commongen_gpt4t": (75.7, 77.9, 74.0), "commongen_qwen": (76.3, 72.0, 80.0)},
}


@pytest.fixture(scope="module")
def released(shared_data):
    """The released pairs, and how often each metric agrees with the judge, in percent."""
    pairs = meta_eval.read_pairs(sorted((shared_data / "data/diversity_pairs").glob("*.jsonl")))
    encoded = core_encoder.encode([text for members in pairs.sets for text in members])
    rows = [
        *meta_eval.form_rows(pairs.sets),
        *meta_eval.ngram_rows(pairs.sets),
        *meta_eval.embedding_rows(pairs.sets, encoded),
    ]
    report = meta_eval.evaluate_metrics(pairs, rows, parity=True)
    return report, {
        metric["name"]: {cell: 100 * own["accuracy"] for cell, own in metric["cells"].items()}
        for metric in report["metrics"]
    }


@pytest.mark.slow
def test_the_paper_is_reproduced(released):
    report, found = released
    assert sum(cell["pairs"] for cell in report["cells"] if cell["name"].endswith("all")) == 3278
    for name in ("self-BLEU-3", "self-BLEU-4", "VS-ngram-0.5", "Distinct-4", "Entropy-2"):
        for cell, printed in _meta_report.PAPER[name].items():
            assert found[name][cell] == pytest.approx(printed, abs=0.3), (name, cell)
    for name, data in EXPECTED.items():
        for start, values in data.items():
            cells = [found[name][f"{start}, {part}"] for part in ("all", "high", "low")]
            assert cells == pytest.approx(values, abs=0.3), (name, start)
    for metric in report["metrics"]:
        for cell, value in metric["accuracy_by_parity"].items():
            assert 100 * value == pytest.approx(found[metric["name"]][cell])


@pytest.mark.slow
def test_with_quality_diversity_agrees_with_the_judge(shared_data):
    """What EVIDENCE.md says of one file; gruen takes minutes for all. Nothing was tuned on these labels."""
    pairs = meta_eval.read_pairs([shared_data / "data/diversity_pairs/commongen_gpt4t_low.jsonl"])
    encoded = core_encoder.encode([text for members in pairs.sets for text in members])
    rows = [*meta_eval.embedding_rows(pairs.sets, encoded), *meta_eval.quality_rows(pairs.sets, encoded)]
    report = meta_eval.evaluate_metrics(pairs, rows, parity=False)
    found = {metric["name"]: 100 * own["accuracy"] for metric in report["metrics"] for own in metric["cells"].values()}
    assert found["VS-Embed-0.5"] == pytest.approx(74.0, abs=0.3)
    assert found["GRUEN × VS-Embed-0.5"] == pytest.approx(90.9, abs=0.3)
