"""What no order, company or form of the answers may change in probeval, over random questions."""

import json
import math
import warnings
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzzing import TIMES
from tests.test_fuzz_metrics import Letters

TEXTS = ("kettle", "Kettle", " kettle", "a kettle", "pot", "teapot", "a tea pot", "mug", "cup of tea", "!", "qzx")
PIPELINES = [
    {"clustering": "human", "matcher": "cosine"},
    {"clustering": "human", "matcher": "gp"},
    {"clustering": "human", "matcher": "soft", "debias": True},
    {"clustering": "soft"},
    {"clustering": "soft", "debias": True},
    {"clustering": "soft", "rarefy": 1},
    {"clustering": "hac", "matcher": "soft"},
    {"clustering": "hac", "linkage": "ward", "parity": True},
    {"clustering": "xmeans"},
    {"clustering": "gmeans", "matcher": "gp"},
    {"clustering": "none", "rarefy": 1, "rarefy_people": 1},
]
counts = st.integers(1, 4)
people = st.lists(st.tuples(st.sampled_from(TEXTS), counts, st.sampled_from("abcdefgh")), min_size=1, max_size=6)
model = st.lists(st.tuples(st.sampled_from([*TEXTS, "", "  "]), counts), min_size=1, max_size=6)
questions = st.lists(st.tuples(people, model), min_size=1, max_size=3)


def score(metric, requested, **given):
    predictions = []
    references = []
    for entry, said in requested:
        predictions.append([{"text": text, "count": n} for text, n in said])
        references.append([{"text": text, "count": n, "cluster": label} for text, n, label in entry])
    return metric.compute(predictions=predictions, references=references, model=Letters(), **given)


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda entry: "-".join(map(str, entry.values())))
@settings(max_examples=8 * TIMES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requested=questions, data=st.data())
def test_order_and_company_change_nothing(probeval, pipeline, requested, data):
    result = score(probeval, requested, **pipeline, details=True)
    json.dumps(result, allow_nan=False)
    for i, question in enumerate(requested):
        alone = score(probeval, [question], **pipeline)
        assert alone["scores"] == pytest.approx([result["scores"][i]], abs=1e-6)
        (detail,) = result["details"][i : i + 1]
        shares = {}
        for side, rows, answers in zip(
            ("gold", "model"), (detail["gold_assignments"], detail["assignments"]), question, strict=True
        ):
            assert sum(row["count"] for row in rows) == sum(answer[1] for answer in answers)
            counts = Counter(detail["smoothing"][side])
            for row in rows:
                assert sum(row["clusters"].values()) == pytest.approx(1)
                counts.update({label: weight * row["count"] for label, weight in row["clusters"].items()})
            shares[side] = {label: count / sum(counts.values()) for label, count in counts.items()}
            assert sum(detail[f"{side}_distribution"].values()) == pytest.approx(1)
        if not pipeline.keys() & {"debias", "rarefy", "parity"}:
            # The score follows from what the details hold.
            expected = sum(p * math.log(p / shares["model"][label]) for label, p in shares["gold"].items() if p)
            assert detail["score"] == pytest.approx(expected, abs=1e-9)
        if not pipeline.get("debias"):
            assert result["scores"][i] >= 0
    names = dict(zip("abcdefgh", data.draw(st.permutations("abcdefgh")), strict=True))
    turned = []
    for entry, said in requested:
        renamed = [(text, n, names[label]) for text, n, label in data.draw(st.permutations(entry))]
        turned.append((renamed, data.draw(st.permutations(said))))
    again = score(probeval, turned[::-1], **pipeline)
    assert again["scores"] == pytest.approx(result["scores"][::-1], abs=1e-6)
    for key in ("probeval", "coverage", "wrong_rate", "n_clusters"):
        assert again[key] == pytest.approx(result[key], abs=1e-6)


def test_clusters_of_some_answers_are_not_left_unused_in_silence(probeval):
    people = [{"text": "pot", "cluster": "a"}, {"text": "kettle"}, {"text": "mug", "cluster": "b"}]
    inputs = {"predictions": [["pot"], ["pot"]], "references": [people[::2], people], "model": Letters()}
    with pytest.warns(UserWarning, match="1 of 5 answers .*'kettle'"):
        result = probeval.compute(**inputs)
    assert "clustering:soft" in result["signature"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probeval.compute(**inputs, clustering="hac")
        probeval.compute(predictions=[["pot"]], references=[people[::2]], model=Letters())
        probeval.compute(predictions=[["pot"]], references=[["pot"]], model=Letters())


@pytest.mark.parametrize("n", [1, 10**5, 10**12])
def test_gaussian_process_of_equal_answers_given_often(probeval, n):
    class Lower(Letters):
        def encode(self, texts):
            return super().encode([text.lower() for text in texts])

    entry = [("kettle", n, "a"), ("Kettle", 3 * n, "b"), ("pot", n, "c")]
    predictions = [["kettle", "pot"]]
    references = [[{"text": text, "count": count, "cluster": label} for text, count, label in entry]]
    (row,) = probeval.compute(
        predictions=predictions, references=references, matcher="gp", model=Lower(), details=True
    )["details"]
    assert [actual["clusters"] for actual in row["assignments"]] == [{"b": 1}, {"c": 1}]
