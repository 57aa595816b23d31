"""How the compact backbone of gruen is trained: the corruptions of sentences, and two steps of each stage."""

import hashlib
import zipfile

import numpy as np
import pytest

from scripts.training import train_gruen_compact as training
from scripts.training.gruen import finishing, judging
from scripts.training.gruen.corpora import split_words
from scripts.training.gruen.corpus import Corpus
from scripts.training.gruen.corruptions import Corruptor
from scripts.training.gruen.lexicon import learn_lexicon
from scripts.training.gruen.names import Renamer
from scripts.training.gruen.trainer import Stage, Trainer
from text_metrics.metrics._core.core_encoder import EncoderSettings
from text_metrics.metrics.gruen.gruen_compact import CompactBackbone

TAGGED = """
The/at dog/nn was/bedz barking/vbg at/in the/at gate/nn ./.
A/at girl/nn walks/vbz the/at dogs/nns and/cc he/pps walks/vbz them/ppo home/nr ./.
Dogs/nns bark/vb and/cc they/ppss walk/vb to/in the/at gates/nns with/in a/at dog/nn ./.
She/pps walked/vbd to/in the/at gate/nn of/in the/at house/nn in/in Oslo/np ./.
""".strip()
SENTENCES = [
    "The dog was barking at the gate of the old house.",
    "She has walked to the gate with a dog that is tired.",
    "He walks the dogs when they are awake, and a girl walks with them.",
    "These girls have walked home from Bergen with their dogs.",
]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpora") / "brown.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("brown/ca01", TAGGED)
    # Twenty occurrences make a word frequent, which none of so few has.
    return learn_lexicon(path)._replace(frequent=("river", "green", "slowly"))


def with_common_words(lexicon):
    return lexicon._replace(frequent=("dog", "river"), noun_number={"dog": "dogs"})


def test_words_are_known_by_their_tags(lexicon):
    assert lexicon.agreement["walks"] == ("walk",)
    assert set(lexicon.verb_forms["walks"]) >= {"walk", "walked"}
    assert lexicon.noun_number["dogs"] == "dog"
    assert "gate" in lexicon.nouns


def test_each_corruption_marks_the_words_that_show_it(lexicon):
    corruptor = Corruptor(lexicon, seed=0)
    corruptor.other = split_words(SENTENCES[1])
    found = set()
    for words in map(split_words, SENTENCES):
        for how in corruptor.kinds:
            for _ in range(10):
                corrupted = corruptor.corrupt(words, how)
                if corrupted is not None:
                    found.add(how)
                    assert corrupted.words != words
                    assert len(corrupted.words) == len(corrupted.wrong)
                    assert any(corrupted.wrong)
    assert found == set(corruptor.kinds)


def test_corruption_is_seeded(lexicon):
    words = split_words(SENTENCES[0])
    first, second = (Corruptor(lexicon, seed=3) for _ in range(2))
    assert [first.corrupt(words) for _ in range(20)] == [second.corrupt(words) for _ in range(20)]


def test_other_names_stand_where_names_stood(lexicon):
    renamer = Renamer(lexicon, [split_words(sentence) for sentence in SENTENCES], seed=0)
    assert renamer.names == [["Bergen"]]
    words = split_words("She has walked to Oslo with a dog.")
    found = {" ".join(renamer.rename(words)) for _ in range(50)}
    assert {"She has walked to Bergen with a dog .", "She has walked to X with a dog ."} <= found
    assert all("has walked to" in sentence and "with a dog ." in sentence for sentence in found)


def test_names_made_of_common_words(lexicon):
    sentences = [split_words(sentence) for sentence in SENTENCES]
    words = split_words("She has walked to Oslo with a dog.")
    renamer = Renamer(with_common_words(lexicon), sentences, 0, made=0.6)
    found = {" ".join(renamer.rename(words)) for _ in range(2000)}
    assert {"She has walked to dog on dog with a dog .", "She has walked to X with a dog ."} <= found
    assert not any("river" in sentence for sentence in found)


def test_a_teacher_learns_to_judge(tiny_model, monkeypatch):
    for name, value in (("RATE", 3e-3), ("HEAD_RATE", 3e-3), ("BATCH", 8), ("EPOCHS", 8)):
        monkeypatch.setattr(judging, name, value)
    rows = [("a b c", 1), ("a z c", 0), ("d a b a", 1), ("c d z b", 0)] * 48
    teacher = judging.Teacher(tiny_model, seed=0)
    teacher.fit(rows, seed=0)
    after = teacher.judge(["a z z", "b c b d c b a a", "c d a"])
    assert after[0] < 0 < min(after[1:])
    # In the order of the question, not of length.
    np.testing.assert_allclose(teacher.judge(["c d a", "a z z"]), after[[2, 0]], atol=0.1)


@pytest.mark.slow
def test_training_gives_the_same_file_twice_and_the_backbone_reads_it(lexicon, tiny_model, tmp_path, monkeypatch):
    stages = (
        Stage(2, pairs=2, masked=2, cola=2, adapter_rate=1e-3, head_rate=1e-3),
        Stage(2, 2, 2, 2, 1e-3, 1e-3, judged=2, other_weight=0.1, renamed=0.5, dropout=True),
    )
    monkeypatch.setattr(training, "STAGES", stages)
    monkeypatch.setattr(training, "ROUNDS", ((1,),))
    monkeypatch.setattr(judging, "JUDGED_SENTENCES", 50)
    monkeypatch.setattr(finishing, "TOTAL_SENTENCES", 100)
    monkeypatch.setattr(judging, "EPOCHS", 1)
    monkeypatch.setattr(judging, "TEACHER_THREADS", 1)
    words = [split_words(sentence) for sentence in SENTENCES] * 25
    judged = [(sentence, i % 2) for i, sentence in enumerate(SENTENCES)] * 25
    corpus = Corpus(
        words,
        words,
        words,
        judged,
        judged,
        words[:4],
        lambda seed: Corruptor(lexicon, seed),
        lambda seed, made: Renamer(with_common_words(lexicon), words, seed, made),
    )
    digests = []
    for path in (tmp_path / "first.safetensors", tmp_path / "second.safetensors"):
        trainer = Trainer(corpus, seed=0)
        training.train_all(trainer, tiny_model, seed=0)
        finishing.count_tokens(trainer)
        finishing.fit_log_total(trainer, seed=0)
        digests.append(finishing.save(trainer, path, finishing.calibrate(trainer, 0)))
    assert digests[0] == digests[1] == hashlib.sha256(path.read_bytes()).hexdigest()

    backbone = CompactBackbone(path, digests[0], EncoderSettings(device="cpu"))
    scores = backbone.score_sentences(SENTENCES)
    # Half precision in the file, single in training.
    np.testing.assert_allclose(scores.loss, trainer.predict(SENTENCES)[:, 0], rtol=0.01)
    assert ((scores.acceptability > 0) & (scores.acceptability < 1)).all()
