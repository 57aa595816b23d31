"""probeval: the goldens of the original, clusters, matchers, distributions, input, signature."""

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import nltk
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import text_metrics
from tests.conftest import ROOT, own_data
from tests.references import probeval as reference
from text_metrics.metrics.probeval import probeval_wordnet
from text_metrics.metrics.probeval.probeval_clusters import gmeans, hac, xmeans
from text_metrics.metrics.probeval.probeval_matching import assign, gp_scores, wordnet_scores
from text_metrics.metrics.probeval.probeval_protoqa import ranked_scores

DATA = ROOT / "tests" / "data"
TARGETS = DATA / "probeval_cfc_targets.jsonl"
PREDICTIONS = DATA / "probeval_cfc_predictions.json"
PROTOQA_TARGETS = DATA / "probeval_protoqa_targets.jsonl"
PROTOQA_PREDICTIONS = DATA / "probeval_protoqa_predictions.jsonl"

# Orthogonal words: each is like itself alone.
WORDS = dict(zip(("kettle", "pot", "cup", "spoon"), np.eye(4).tolist(), strict=True))
PHRASES = """a hot dog|hot dogs|dog|frankfurter|the red cross|red wine cross|motorcar|a fast car|automobile racing
car race|fire fighter|fireman.|ran to the shop|run|shop|the|it's a mouse trap|mice|ice cream cone|ice-cream|dog dog cat
cat dog dog dog""".replace("\n", "|").split("|")


@pytest.fixture(scope="session")
def wordnet():
    try:
        return probeval_wordnet.load_wordnet()
    except ValueError as error:
        pytest.skip(f"no WordNet on this machine: {error}")


def answers(**counts):
    return [{"text": text, "count": count} for text, count in counts.items() if count]


def unclustered(probeval, model, people, **settings):
    """Score counts of single words, each its own cluster."""
    return probeval.compute(
        predictions=[answers(**model)], references=[answers(**people)], clustering="none", vectors=WORDS, **settings
    )


@pytest.mark.parametrize(("matcher", "key"), [("human", "human_kl"), ("wordnet", "wordnet_human_clusters_kl")])
def test_parity_equals_what_the_original_printed(probeval, shared_data, wordnet, matcher, key):
    golden = json.loads((shared_data / "goldens" / "probeval_goldens.json").read_text(encoding="utf-8"))
    question = golden["question"]
    samples = golden["samples"]
    gold = [
        {"text": text, "count": question["raw"][text], "cluster": label}
        for label, texts in question["clusters"].items()
        for text in texts
    ]
    predictions = []
    labels = []
    for sample in samples:
        predictions.append([text for text, _ in sample["answers"]])
        labels.append([label for _, label in sample["answers"]])
    if matcher != "human":
        labels = None
    result = probeval.compute(
        predictions=predictions, references=[gold] * len(samples), matcher=matcher, labels=labels, parity=True
    )
    assert len(samples) == 80
    np.testing.assert_allclose(result["scores"], [sample[key] for sample in samples], rtol=0, atol=1e-9)


def test_labels_give_the_plain_definition(probeval, cfc):
    labels = probeval.labels_from_cfc(PREDICTIONS)
    result = probeval.compute(**cfc, matcher="human", labels=labels)
    people = [["1"] * 12 + ["2"] * 5 + ["3"] * 3, ["1"] * 9 + ["2"] * 2 + ["3"] * 3]
    model = [["1"] * 6 + ["2"] * 3 + ["wrong"], ["1"] * 2 + ["3"] * 5 + ["wrong"] * 3]
    expected = [reference.kl(*pair, ["1", "2", "3", "wrong"]) for pair in zip(people, model, strict=True)]
    assert result["scores"] == pytest.approx(expected, abs=1e-12)
    assert result["probeval"] == pytest.approx(sum(expected) / 2)
    assert result["wrong_rate"] == pytest.approx((0.1 + 0.3) / 2)
    assert result["coverage"] == pytest.approx((17 / 20 + 12 / 14) / 2)
    assert result["n_clusters"] == 3
    assert result["n_answers"] == [10, 10]


def test_parity_leaves_people_raw_where_clusters_are_automatic(probeval):
    people = {"kettle": 3, "pot": 1}
    model = {"kettle": 2, "cup": 2}
    result = unclustered(probeval, model, people, parity=True)
    p = np.array([3 / 4, 1 / 4])
    q = np.array([3 / 7, 1 / 7])
    assert result["probeval"] == pytest.approx(float((p * np.log(p / q)).sum()))
    assert result["distribution_entropy"]["gold"] == pytest.approx(-(p * np.log(p)).sum())
    symmetric = unclustered(probeval, model, people)
    expected = reference.kl("kkkp", "kkww", "kpw")
    assert symmetric["probeval"] == pytest.approx(expected)


def test_no_answers_are_uniform_and_counted(probeval):
    people = {"kettle": 6, "pot": 3}
    result = unclustered(probeval, {}, people, details=True)
    assert result["n_empty"] == 1
    assert result["n_answers"] == [0]
    assert list(result["details"][0]["model_distribution"].values()) == pytest.approx([1 / 3] * 3)
    assert result["wrong_rate"] is None
    assert result["coverage"] == 0.0
    assert result["probeval"] == pytest.approx(reference.kl("k" * 6 + "p" * 3, "", "kpw"))
    assert unclustered(probeval, {}, people, smoothing=0)["probeval"] < math.inf


def test_without_smoothing_a_missing_cluster_is_an_error(probeval):
    with pytest.raises(ValueError, match=r"smoothing is 0, .* question '0': the divergence is infinite"):
        unclustered(probeval, {"kettle": 1}, {"kettle": 1, "pot": 1}, smoothing=0)


def test_debias_is_the_jackknife(probeval):
    people = Counter("kkkkkppc")
    model = Counter("kkpppc")
    value = lambda gold, given: reference.kl(list(gold.elements()), list(given.elements()), "kpcw")  # noqa: E731
    whole = value(people, model)
    less_gold = [value(people - Counter(x), model) for x in people.elements()]
    less_model = [value(people, model - Counter(x)) for x in model.elements()]
    expected = whole - 7 * (np.mean(less_gold) - whole) - 5 * (np.mean(less_model) - whole)
    named = {"k": "kettle", "p": "pot", "c": "cup"}
    sides = []
    for side in (model, people):
        sides.append({named[x]: count for x, count in side.items()})
    assert unclustered(probeval, *sides, debias=True)["probeval"] == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:The multilingual functions")
def test_wordnet_equals_nltk(wordnet, tmp_path, monkeypatch):
    """NLTK's own reader on the same files, with the file that Debian leaves out."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    folder = Path("/usr/share/wordnet")
    if not (folder / "data.noun").is_file():
        pytest.skip("wordnet-base is not installed: apt-get install wordnet-base")
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "lexnames").write_text("".join(f"{i:02d}\tname{i}\t1\n" for i in range(45)), encoding="utf-8")
    monkeypatch.setattr(nltk.data, "path", [*nltk.data.path, str(tmp_path)])
    # It compares versions with the WordNet of NLTK's data, which need not be there.
    monkeypatch.setattr(WordNetCorpusReader, "map_wn", lambda self, version=None: None)
    reader = WordNetCorpusReader(str(tmp_path), None)
    parts = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
    for form in [word for phrase in PHRASES for word in phrase.split()] + ["hot_dog", "glasses", "better", "axes"]:
        expected = {(parts[synset.pos()], f"{synset.offset():08d}") for synset in reader.synsets(form)}
        assert wordnet.synsets(form) == expected, form


def test_a_missing_wordnet_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    with pytest.raises(ValueError, match="WNSEARCHDIR"):
        probeval_wordnet.load_wordnet()


def test_wordnet_scores_equal_every_pair_of_partitions(wordnet):
    scores = wordnet_scores(PHRASES, PHRASES, wordnet)
    expected = []
    for a in PHRASES:
        expected.append([reference.wordnet_score(a, b, probeval_wordnet.content_tokens, wordnet) for b in PHRASES])
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert len(np.unique(scores)) >= 5


def test_gp_equals_a_regression_for_each_cluster(rng):
    gold = rng.standard_normal((12, 5))
    requested = rng.standard_normal((7, 5))
    gold, requested = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (gold, requested))
    counts = np.zeros((12, 3))
    counts[np.arange(12), np.arange(12) % 3] = rng.integers(1, 9, 12)
    counts[0] = [2, 3, 0]  # an answer in two clusters
    expected = reference.gp_scores(requested, gold, counts)
    np.testing.assert_allclose(gp_scores(requested, gold, counts), expected, atol=1e-6)


def test_ties_split_evenly_and_the_rest_is_wrong():
    scores = np.array([[0.7, 0.7, 0.1], [0.2, 0.55, 0.1], [0.1, 0.2, 0.3]])
    expected = [[0.5, 0.5, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(assign(scores, 0.55), expected)
    np.testing.assert_array_equal(assign(scores, 0.55, strict=True)[1], [0, 0, 0, 1])


def blobs(rng, centers=4, each=8, noise=0.05):
    points = np.repeat(np.eye(12)[:centers], each, axis=0) + noise * rng.standard_normal((centers * each, 12))
    return points / np.linalg.norm(points, axis=1, keepdims=True), np.repeat(np.arange(centers), each)


def test_clusterings_find_what_is_there(rng):
    points, truth = blobs(rng)
    many, expected = blobs(rng, each=40)
    assert adjusted_rand_score(truth, hac(points, "average", 0.9)) > 0.7
    assert adjusted_rand_score(truth, xmeans(points, np.ones(len(points)), 0)) > 0.7
    assert adjusted_rand_score(expected, gmeans(many, np.ones(len(many)), 0)) > 0.7


@pytest.mark.parametrize("method", [xmeans, gmeans])
def test_k_means_counts_an_answer_as_often_as_it_was_given(probeval, rng, method):
    points, _ = blobs(rng, each=12)
    times = rng.integers(1, 6, len(points)).astype(float)
    actual = np.repeat(method(points, times, 0), times.astype(int))
    each = np.repeat(points, times.astype(int), axis=0)
    assert adjusted_rand_score(actual, method(each, np.ones(len(each)), 0)) == 1
    people = [{"a kettle": 50, "a dog": 50}]
    result = probeval.compute(predictions=[{"a kettle": 100}], references=people, clustering=method.__name__)
    assert (result["n_clusters"], result["coverage"]) == (2, 0.5)


def test_parity_lets_repeated_answers_weigh_in_the_linkage(probeval):
    angles = {"kettle": 0.0, "pot": 0.6, "cup": 1.3}
    vectors = {word: [math.cos(angle), math.sin(angle)] for word, angle in angles.items()}
    people = [answers(kettle=9, pot=1, cup=1)]
    # From {kettle, pot} to cup: (1.21 + 0.69) / 2, or with counts (9 * 1.21 + 0.69) / 10.
    settings = {"clustering": "hac", "distance": 1.0, "vectors": vectors}
    actual = [
        probeval.compute(predictions=[["pot"]], references=people, **settings, parity=parity)["n_clusters"]
        for parity in (False, True)
    ]
    assert actual == [1, 2]
    with pytest.raises(ValueError, match="at most 20,000 answers"):
        probeval.compute(predictions=[["pot"]], references=[answers(kettle=10**6)], **settings, parity=True)


def test_auto_takes_people_s_clusters_if_every_answer_bears_one(probeval, cfc):
    signature = probeval.compute(**cfc)["signature"]
    assert "clustering:human" in signature
    assert probeval.compute(**cfc, linkage="ward", seed=3)["signature"] == signature
    references = json.loads(json.dumps(cfc["references"]))
    references[1]["answers"][0]["cluster"] = ""
    given = {"predictions": cfc["predictions"], "references": references}
    assert "clustering:soft|matcher:soft|threshold:0.475|" in probeval.compute(**given)["signature"]
    with pytest.raises(ValueError, match="question 'q2'"):
        probeval.compute(predictions=cfc["predictions"], references=references, clustering="human")


@pytest.mark.parametrize(
    "setting", [{"parity": True}, {"matcher": "cosine"}, {"linkage": "complete"}, {"distance": 0.9}]
)
def test_auto_finds_hard_clusters_where_a_setting_asks_for_them(probeval, setting):
    signature = probeval.compute(predictions=[["cup"]], references=[["kettle", "pot"]], **setting)["signature"]
    assert "clustering:hac|" in signature
    assert "|matcher:cosine|threshold:0.55|" in signature


@pytest.mark.filterwarnings("ignore:.*no word in vectors")
def test_word_vectors_are_averaged(probeval):
    result = probeval.compute(predictions=[["pot cup", "zebra"]], references=[["pot", "kettle"]], vectors=WORDS)
    # cos(pot + cup, pot) = 0.71
    assert result["wrong_rate"] == 0.5
    assert "vectors:custom(dict)" in result["signature"]
    assert "model:" not in result["signature"]


def test_files_of_word_vectors(probeval, tmp_path):
    gensim = pytest.importorskip("gensim", reason="gensim reads files of word vectors: pip install gensim")
    vectors = gensim.models.KeyedVectors(4)
    vectors.add_vectors(list(WORDS), np.array(list(WORDS.values()), dtype=np.float32))
    vectors.save_word2vec_format(str(tmp_path / "words.vec"), binary=False)
    inputs = {"predictions": [["kettle", "cup"]], "references": [["kettle", "pot"]]}
    result = probeval.compute(**inputs, vectors=tmp_path / "words.vec")
    assert result["scores"] == probeval.compute(**inputs, vectors=WORDS)["scores"]
    assert "vectors:words.vec@" in result["signature"]
    (tmp_path / "bad.vec").write_text("not a file of vectors", encoding="utf-8")
    for wrong in (tmp_path / "bad.vec", tmp_path, "nowhere.bin", 3):
        with pytest.raises((TypeError, ValueError), match="vectors"):
            probeval.compute(**inputs, vectors=wrong)


FORMS = [
    ([["kettle", "pot", "kettle"]], [["kettle", "pot"]]),
    (["kettle", "pot", "kettle"], ["kettle", "pot"]),
    ([[{"text": "kettle", "count": 2}, {"text": "pot"}]], [[{"text": "kettle", "count": 1}, "pot"]]),
    ([{"answers": ["kettle", "kettle", "pot"]}], [{"answers": {"kettle": 1, "pot": 1}, "question": "what?"}]),
    ([{"id": "q", "answers": {"kettle": 2, "pot": 1}}], [{"id": "q", "answers": ["kettle", "pot"]}]),
    ({"q": ["kettle", "kettle", "pot"]}, {"q": ["kettle", "pot"]}),
    ((("kettle", "pot", "kettle"),), np.array([["kettle", "pot"]])),
    ([{"id": 7, "answers": ["kettle", "kettle", "pot"]}], [["kettle", "pot"]]),
    # As the files of surveys have them.
    ([("kettle", 2), ("pot", 1)], [[["kettle", 1], ["pot", 1.0]]]),
    ([{"kettle": 2.0, "pot": np.int64(1), "cup": 0}], [[("kettle", 1), ("pot", 1), ("spoon", 0)]]),
    ([{"answers": {"kettle": 2 / 3, "pot": 1 / 3}, "total": 3}], [{"answers": {"kettle": 50, "pot": 50}, "total": 2}]),
]


@pytest.mark.parametrize(("predictions", "references"), FORMS)
def test_every_form_is_brought_to_one(probeval, predictions, references):
    result = probeval.compute(predictions=predictions, references=references, clustering="none", vectors=WORDS)
    assert result["scores"] == pytest.approx([reference.kl("kp", "kkp", "kpw")])
    probeval.add_batch(predictions=predictions, references=references)
    stored = probeval.compute(clustering="none", vectors=WORDS)
    assert stored == result


def test_questions_without_a_partner_are_left_out_and_named(probeval):
    predictions = {"a": ["kettle"], "b": ["pot", "pot", "cup"], "c": ["cup"]}
    references = {"d": ["spoon"], "b": ["pot", "cup"], "c": ["cup"]}
    settings = {"clustering": "none", "vectors": WORDS}
    both = {"unknown": "skip", "missing": "skip"}
    skipping = settings | both
    result = probeval.compute(predictions=predictions, references=references, **skipping)
    assert result.pop("skipped") == {"unknown": ["a"], "missing": ["d"]}
    retained = []
    for side in (predictions, references):
        retained.append({key: side[key] for key in ("b", "c")})
    assert result == probeval.compute(predictions=retained[0], references=retained[1], **settings)
    for policy, message in (({"missing": "skip"}, "predictions .*'a'"), ({"unknown": "skip"}, "references .*'d'")):
        with pytest.raises(ValueError, match=message):
            probeval.compute(predictions=predictions, references=references, **policy)
    with pytest.raises(ValueError, match="no question in common"):
        probeval.compute(predictions={"x": ["pot"]}, references=references, **both)


GOLD = [{"id": "q1", "answers": ["a"]}]


@pytest.mark.parametrize(
    ("predictions", "references", "error", "message"),
    [
        ([{"id": "q1", "answers": ["a"]}] * 2, GOLD, ValueError, "predictions has question 'q1' twice, at 0 and 1"),
        ([{"id": "q1", "answers": ["a"]}], GOLD * 2, ValueError, "references has question 'q1' twice"),
        ([{"id": "q9", "answers": ["a"]}], GOLD, ValueError, "predictions has question 'q9'"),
        ([["a"], ["b"]], GOLD, ValueError, "predictions and references .*2 and 1"),
        (
            [{"id": "q1", "answers": {"a": -1}}],
            GOLD,
            ValueError,
            r"predictions\[0\] .*'q1'.*, answer 0: the count .*-1",
        ),
        ([["a"]], [{"answers": {"a": float("inf")}}], ValueError, r"references\[0\], answer 0: the count .*inf"),
        ([["a"]], [{"answers": {"a": 0, "b": 0}}], ValueError, r"references\[0\] has no answers"),
        ([["a"]], [{"answers": ["a"], "total": 0}], ValueError, r"references\[0\]: the total .*0"),
        ([[("a", True)]], GOLD, TypeError, "the count must be a number. Got True"),
        ([{"a": 0.4, "b": 0.6}], [["a"]], ValueError, "predictions, question '0': the counts are shares.*'total'"),
        ([["a"]], [{"a": 0.4, "b": 0.6}], ValueError, "references, question '0': the counts are shares.*'total'"),
        ([["a"]], [{"id": "q1", "answers": {"a": -2}}], ValueError, r"references\[0\] .*'q1'.*, answer 0: the count"),
        ([[{"text": "a", "count": "1"}]], GOLD, TypeError, "the count must be a number. Got '1'"),
        ([[{"text": 3}]], GOLD, TypeError, "the text must be a string. Got 3"),
        ([[{"text": "a", "counts": 3}]], GOLD, ValueError, "Got 'counts' too"),
        ([["a", "b", 3]], GOLD, TypeError, r"predictions\[0\], answer 2 .*Got 3"),
        ([None], GOLD, TypeError, r"predictions\[0\].*None"),
        ("abc", GOLD, TypeError, "predictions must be a list .*Got"),
        ([], GOLD, ValueError, "predictions is empty"),
        ([["a"]], None, ValueError, "references is None"),
        ([["a"]], [[]], ValueError, r"references\[0\] has no answers"),
        ([["a"]], [[" "]], ValueError, r"references\[0\], answer 0 is blank"),
        ([["a"]], [[{"text": "a", "cluster": "wrong"}]], ValueError, "the cluster 'wrong' is reserved"),
        ([["a"]], [[{"text": "a", "cluster": 1.5}]], TypeError, "the cluster must be a string or an integer"),
        ([["a"]], [{"question": 0, "answers": ["a"]}], TypeError, "the question must be a string. Got 0"),
        ([{"id": "q1", "answers": ["a"]}], [*GOLD, {"id": "q2", "answers": ["a"]}], ValueError, "references .*'q2'"),
        ([{"id": "q1", "answers": ["a"]}, ["b"]], GOLD, ValueError, r"predictions\[1\]"),
    ],
)
def test_wrong_input_names_the_question(probeval, predictions, references, error, message):
    with pytest.raises(error, match=message):
        probeval.compute(predictions=predictions, references=references)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"matcher": "cosin"}, ValueError, "matcher .*'cosin'"),
        ({"clustering": "kmeans"}, ValueError, "clustering .*'kmeans'"),
        ({"clustering": "hac", "linkage": "averaged"}, ValueError, "linkage"),
        ({"smoothing": -1}, ValueError, "smoothing .*-1"),
        ({"distance": float("nan")}, ValueError, "distance .*nan"),
        ({"missing": "drop"}, ValueError, "missing .*'drop'"),
        ({"rarefy": 0}, ValueError, "rarefy .*0"),
        ({"rarefy": 11}, ValueError, "rarefy .*11.*'q1' has 10"),
        ({"rarefy_people": 15}, ValueError, "rarefy_people .*15.*'q2' has 14"),
        ({"rarefy": 5, "debias": True}, ValueError, "debias and rarefy"),
        ({"smoothing": 0, "debias": True}, ValueError, "smoothing must be above 0"),
        ({"clustering": "soft", "matcher": "cosine"}, ValueError, "matcher .*'cosine'"),
        ({"matcher": "human"}, ValueError, "labels"),
        ({"labels": {}}, ValueError, "labels"),
        ({"matcher": "human", "labels": {}, "clustering": "hac"}, ValueError, "clustering .*'hac'"),
        ({"matcher": "human", "labels": "a"}, TypeError, "labels .*'a'"),
        ({"matcher": "human", "labels": []}, ValueError, "labels .*2 questions. Got 0"),
        ({"matcher": "human", "labels": [["wrong"]] * 2}, ValueError, "labels of question 'q1'"),
        ({"matcher": "human", "labels": {}}, TypeError, "labels of question 'q1'"),
        ({"matcher": "human", "labels": {"q1": {}}}, ValueError, "labels .*the answer 'kettle'"),
        ({"matcher": "human", "labels": {"q1": {"kettle": "x", "pot": "x"}}}, ValueError, "labels .*'kettle' .*'x'"),
    ],
)
def test_wrong_settings_are_errors(probeval, cfc, settings, error, message):
    with pytest.raises(error, match=message):
        probeval.compute(**cfc, **settings)


def test_labels_may_be_lists(probeval, cfc):
    by_text = probeval.labels_from_cfc(PREDICTIONS)
    lists = []
    for row in cfc["predictions"]:
        lists.append([by_text[row["id"]][answer] for answer in row["answers"]])
    expected = probeval.compute(**cfc, matcher="human", labels=by_text)
    assert probeval.compute(**cfc, matcher="human", labels=lists) == expected
    repeated = {"predictions": [["a", "a"]], "references": [[{"text": "b", "cluster": "1"}]]}
    with pytest.raises(ValueError, match=r"labels .*the answer 'a'"):
        probeval.compute(**repeated, matcher="human", labels=[["1", "wrong"]])


def test_cfc_counts_come_from_raw(probeval, cfc):
    assert [row["id"] for row in cfc["references"]] == ["q1", "q2"]
    assert cfc["references"][0]["question"] == "what do you boil water in?"
    clusters = Counter()
    for answer in cfc["references"][0]["answers"]:
        clusters[answer["cluster"]] += answer["count"]
    assert clusters == {"q1.1": 12, "q1.2": 5, "q1.3": 3}
    assert cfc["predictions"][0]["answers"]["kettle"] == 6


def test_plain_answers_and_those_without_a_target(probeval, tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text('{"q2": ["owner", "owner"]}\n\n{"q9": ["kettle"]}\n', encoding="utf-8")
    read = probeval.from_cfc(TARGETS, file)
    result = probeval.compute(**read, unknown="skip")
    assert (result["n_answers"], result["skipped"]["unknown"]) == ([2], ["q9"])
    with pytest.raises(ValueError, match="question 'q9'"):
        probeval.compute(**read)
    file.write_text('{"q2": ["owner"]}\n{"q1": \n', encoding="utf-8")
    for targets, predictions, error, message in (
        ([{"id": 3}], {}, ValueError, r"targets\[0\]"),
        (TARGETS, 3, TypeError, "predictions.*Got 3"),
        (TARGETS, [{"q2": ["owner"]}, {"q2": ["sister"]}], ValueError, "predictions.*'q2'.*twice"),
        (TARGETS, {"q2": {"owner": {"cluster": "1"}}}, ValueError, "question 'q2', answer 'owner' has no 'count'"),
        (TARGETS, file, ValueError, r"answers\.jsonl.*line 3"),
    ):
        with pytest.raises(error, match=message):
            probeval.from_cfc(targets, predictions)


def test_released_files(probeval, shared_data):
    folder = shared_data / "data" / "probeval"
    annotated = folder / "cfc_dev_annotated_predictions.json"
    read = probeval.from_cfc(folder / "cfc_dev_targets.jsonl", str(annotated))
    assert len(read["predictions"]) == 49
    by_people = probeval.compute(**read, matcher="human", labels=probeval.labels_from_cfc(annotated))
    assert by_people["coverage"] == 1.0
    first = {side: rows[:12] for side, rows in read.items()}
    automatic = probeval.compute(**first)
    assert automatic["probeval"] == pytest.approx(np.mean(by_people["scores"][:12]), abs=0.005)
    for name in ("cfc_dev_predictions.json", "cfc_dev_gpt2_xl_predictions.json"):
        read = probeval.from_cfc(folder / "cfc_dev_targets.jsonl", folder / name)
        predicted = {row["id"] for row in read["predictions"]}
        known = {row["id"] for row in read["references"]}
        assert predicted - known == {"r3q21"}
    for file in (folder / "cfc_test" / "human_predictions.json", *(folder / "cfc_test" / "models").iterdir()):
        read = probeval.from_cfc(folder / "cfc_test" / "targets.jsonl", file)
        assert len(read["predictions"]) == len(read["references"]) == 46
        assert all(row["question"] and row["sentence"] and row["slot"] for row in read["references"])


def test_protoqa_formats(probeval):
    read = probeval.from_protoqa(PROTOQA_TARGETS, PROTOQA_PREDICTIONS)
    first = {answer["text"]: answer["count"] for answer in read["references"][0]["answers"]}
    # "red apple" and "apples" share what raw's "apple" leaves of the cluster's 44.
    assert first == {"apple": 40, "red apple": 2, "apples": 2, "pear": 20, "plum": 5}
    assert [answer["cluster"] for answer in read["references"][1]["answers"]] == ["r1q2.0", "r1q2.1"]


def test_protoqa_scores(probeval, wordnet):
    result = probeval.protoqa_scores(**probeval.from_protoqa(PROTOQA_TARGETS, PROTOQA_PREDICTIONS))
    first = result["scores"][0]["exact"]
    dcg = 20 + 44 / np.log2(4) + 5 / np.log2(7)
    best_dcg = 44 + 20 / np.log2(3) + 5 / np.log2(4)
    # pear, (stone), apple, (brick), (roof), plum: the clusters hold 44, 20 and 5 of 69.
    assert first == pytest.approx(
        {
            "max_answers_1": 20 / 44,
            "max_answers_3": 64 / 69,
            "max_answers_5": 64 / 69,
            "max_answers_10": 1.0,
            "max_answers_all": 1.0,
            "max_incorrect_1": 20 / 69,
            "max_incorrect_3": 64 / 69,
            "max_incorrect_5": 1.0,
            "set_intersection": 1.0,
            "dcg": dcg / best_dcg,
        }
    )
    assert result["exact"]["max_answers_1"] == pytest.approx((20 / 44 + 2 / 3) / 2)
    assert set(result["wordnet"]) == set(first)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["signature"] == f"protoqa_scores|wordnet:3.0|version:{text_metrics.__version__}"


def test_protoqa_rules_have_the_values_of_the_evaluator_s_own_tests():
    for case in own_data("protoqa_evaluator.json")["cases"]:
        matches = []
        for answer in case["answers"]:
            matches.append([answer in cluster for cluster, _ in case["clusters"]])
        scores = ranked_scores(np.array(matches), np.array([float(count) for _, count in case["clusters"]]))
        assert {rule: scores[rule] for rule in case["expected"]} == pytest.approx(case["expected"]), case


def test_an_answer_that_matches_two_clusters_wins_the_one_that_is_left():
    """ "broccoli/banana" and "an apple", matched by common subsequences: 1.0 in the evaluator's own tests."""
    assert ranked_scores(np.array([[True, True], [True, False]]), np.array([5.0, 3.0]))["max_answers_all"] == 1
