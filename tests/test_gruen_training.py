"""gruen's compact backbone: plain correct English, names that are words, corruptions, and training."""

import hashlib
import itertools
import shutil
import tomllib

import evaluate
import numpy as np
import pytest
from safetensors.numpy import load_file

from scripts.training import gruen_compact
from scripts.training.gruen_texts import WORDS, Corruptor, draw
from tests.conftest import METRICS, ROOT


def test_plain_sentences_of_each_construction_are_above_their_corruptions(load):
    drawn = draw(ROOT / "tests/data/plain_sentences.toml", count=6, seed=20)
    plain = list(itertools.chain.from_iterable(drawn.values()))
    corrupted = []
    for sentence in plain:
        words = sentence.split()
        middle = len(words) // 2
        words[middle - 1 : middle + 1] = [words[middle], words[middle - 1]]
        corrupted.append(" ".join(words))
    scores = load("gruen").compute(predictions=plain + corrupted, components=["grammaticality"])["scores"]
    gains = dict(zip(plain, np.subtract(scores[: len(plain)], scores[len(plain) :]), strict=True))
    means = {name: np.mean([gains[sentence] for sentence in sentences]) for name, sentences in drawn.items()}
    assert len(means) == 46
    assert {name: mean for name, mean in means.items() if mean < 0.2} == {}


@pytest.mark.parametrize(
    ("frame", "names", "plain"),
    [
        ("The letter from {0} came on Monday, and {0} was late.", ["Reading"], ["Oslo"]),
        ("The letter from {0} came on Monday, and {0} was late.", ["Mark"], ["Tom"]),
        ("She was with Tom, {}, {} and {} in {}.", ["Mark", "Will", "Grace", "Nice"], ["Ann", "Sam", "Kim", "Oslo"]),
        ("{} was in {} on Monday.", ["Will", "Nice"], ["Tom", "Oslo"]),
        ("{} likes the letter, which was late.", ["Will"], ["Tom"]),
    ],
)
def test_names_that_are_words_are_names(load, frame, names, plain):
    texts = [frame.format(*words) for words in (names, plain, map(str.lower, names))]
    result = load("gruen").compute(predictions=[*texts, texts[0].replace("was", "were was")], details=True)
    assert result["scores"][0] == pytest.approx(result["scores"][1]) != result["scores"][2]
    marked = {word for text in result["details"] for sentence in text["sentences"] for word in sentence["suspects"]}
    assert set() < marked <= {*" ".join(texts).split(), "were"}


SETTINGS = ROOT / "tests/data/gruen_training.toml"
TRAINING = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("kind", "corrupted"), TRAINING["samples"].items())
def test_a_sentence_is_corrupted_in_this_way_among_others(kind, corrupted):
    words = WORDS | {"kinds": {kind: 1}}
    tags = {"dog": "nn", "dogs": "nns", "walk": "vb", "walking": "vbg", "train": "nn", "leaves": "vbz"}
    corruptor = Corruptor([list(tags.items())] * 20, words, seed=0)
    sentence = "The dog is walking to the train and leaves ."
    drawn = [corruptor.corrupt(sentence.split()) for _ in range(3000)]
    results = {" ".join(words) for words in drawn if words}
    assert corrupted in results
    assert sentence not in results
    assert all(result.endswith(" .") for result in results)


def test_training_writes_weights_that_the_metric_reads(shared_data, tiny_model, tmp_path, monkeypatch):
    folder = shutil.copytree(METRICS / "gruen", tmp_path / "gruen")
    first = METRICS / "gruen/gruen_compact.safetensors"
    new = folder / "gruen_compact.safetensors"
    words = ["gruen_compact", first, new, "--teacher", tiny_model, "--settings", SETTINGS]
    monkeypatch.setattr("sys.argv", list(map(str, words)))
    assert gruen_compact.main() == 0
    before = load_file(first)
    after = load_file(new)
    changed = {name for name, values in before.items() if (values != after[name]).any()}
    unchanged = {*before} - changed
    assert "log_frequency" in unchanged
    # The two steps of a single number may cancel, in half precision.
    assert all(before[name].size == 1 for name in unchanged - {"log_frequency"})
    # The mean of the first weights and of two runs of two steps at rates of at most 5e-4, in half precision.
    for name, values in before.items():
        largest = abs(values.astype(float) - after[name]).max()
        assert largest < 6e-4 + 1e-3 * float(abs(values).max()), name
    script = folder / "gruen.py"
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, new)]
    script.write_text(script.read_text(encoding="utf-8").replace(*digests), encoding="utf-8")
    texts = ["The cat sleeps on the stove.", "Cat the on sleeps stove."]
    good, bad = evaluate.load(str(folder)).compute(predictions=texts)["scores"]
    assert 0 < bad < good < 1
