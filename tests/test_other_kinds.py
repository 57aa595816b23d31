"""Files of other formats, texts in other containers, models of other kinds, and words that are wrong."""

import csv
import gzip
import json
import shutil

import datasets
import numpy as np
import pandas
import pytest

from tests.files import write_jsonl
from text_metrics.__main__ import main

TEXTS = ["The kettle is on.", "A dog barks, twice.", "The sea is calm; a bell rings.", 'She said "no".']
ROWS = [{"id": i, "text": text, "prompt": "ab"[i // 2]} for i, text in enumerate(TEXTS)]
SETS = [{"id": i, "texts": TEXTS[i : i + 3]} for i in range(2)]


def write_csv(path, rows, delimiter=",", encoding="utf-8"):
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def score(data, *words, key="text", metric="self_bleu"):
    return main(["score", str(data), "--metric", metric, "--text-key", key, *map(str, words)])


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_table_of_excel_is_read(tmp_path, capsys, delimiter):
    plain = write_csv(tmp_path / "plain.csv", ROWS)
    excel = write_csv(tmp_path / "excel.csv", ROWS, delimiter, "utf-8-sig")
    outs = []
    for data in (plain, excel):
        outs.append(data.with_suffix(".jsonl"))
        assert score(data, "--group-key", "prompt", "--out", outs[-1], "--quiet") == 0
    assert outs[0].read_text() == outs[1].read_text()
    mixed = write_csv(tmp_path / "mixed.csv", [ROWS[0], ROWS[2], ROWS[1]], delimiter)
    assert score(mixed, "--group-key", "prompt", "--quiet") == 2
    assert f"sep={delimiter!r}" in capsys.readouterr().err.replace("'\"'\"'", "'")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.jsonl", gzip.compress(b'{"text": "a"}\n'), "is a gzip file: decompress it"),
        ("data.csv", b"PK\x03\x04" + bytes(50), "is a zip archive or an Excel workbook: extract it, or save it as CSV"),
        ("data.csv", 'id;text\n0;"a"\n'.encode("utf-16"), "is text in UTF-16: save it in UTF-8"),
        ("data.json", b"PAR1\x15" + bytes(50), "is a Parquet file: give it the extension .parquet"),
    ],
    ids=["gzip", "zip", "utf-16", "parquet"],
)
def test_another_format_is_named_at_once(tmp_path, capsys, name, content, message):
    data = tmp_path / name
    data.write_bytes(content)
    for words in (
        ["score", data, "--metric", "self_bleu", "--text-key", "text"],
        ["choose", data, "--text-key", "text", "--keep", "1"],
        ["compare", data, data, "--metric", "self_bleu", "--text-key", "text", "--by-line"],
        ["rate-quality", data, "--out", tmp_path / "rated.jsonl", "--model", "m"],
    ):
        assert main(list(map(str, words))) == 2
        shown = capsys.readouterr().err
        assert f"{data} {message}" in shown
        assert shown.count("\n") == 1


def test_an_error_of_all_rows_is_said_once(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", SETS * 20)
    assert score(data, "--quiet") == 2
    assert (
        capsys.readouterr().err
        == f"text-metrics score: {data}: no row can be scored: has no 'text': it has id, texts\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--metric", "probeval"], "probeval compares with people's answers: pass --reference-key"),
        (["--metric", "self_bleu", "--setting", "setsize=2"], "no such argument: did you mean '--set-size'?"),
        (["--metric", "self_blue"], "--metric self_blue is not a metric: did you mean 'self_bleu'? The metrics are"),
    ],
)
def test_wrong_words_have_a_suggestion(tmp_path, capsys, words, message):
    data = write_jsonl(tmp_path / "data.jsonl", SETS)
    assert main(["score", str(data), "--text-key", "texts", *words]) == 2
    assert message in capsys.readouterr().err


# Calls from Python.


@pytest.mark.parametrize(
    ("predictions", "advice"),
    [
        (pandas.DataFrame({"text": TEXTS}), r'Pass one column as a list, such as predictions\["text"\]\.tolist\(\)\.$'),
        (datasets.Dataset.from_dict({"text": TEXTS}), r"such as predictions\[\"text\"\]\.tolist\(\)\.$"),
        ({"a": TEXTS[:2], "b": TEXTS[2:]}, r"Pass list\(predictions\.values\(\)\)\.$"),
        (set(TEXTS), r"Pass list\(predictions\)\.$"),
        (ROWS, r"predictions\[0\] must be .*\. Pass the texts of such rows alone, as in \[row\['text'\] for row in"),
    ],
)
def test_texts_in_another_container(load, predictions, advice):
    with pytest.raises(TypeError, match=advice):
        load("self_bleu").compute(predictions=predictions)


def test_a_column_is_a_list(load):
    expected = load("self_bleu").compute(predictions=TEXTS)
    assert load("self_bleu").compute(predictions=pandas.DataFrame({"text": TEXTS})["text"]) == expected
    assert load("self_bleu").compute(predictions=datasets.Dataset.from_dict({"text": TEXTS})["text"]) == expected


def test_texts_under_another_name(load):
    with pytest.raises(TypeError, match=r"self_bleu has no argument 'texts': pass the texts as predictions=\."):
        load("self_bleu").compute(texts=TEXTS)
    with pytest.raises(TypeError, match=r"self_bleu takes its texts by name: pass compute\(predictions=\.\.\.\)\."):
        load("self_bleu").compute(TEXTS)
    with pytest.raises(TypeError, match="has no argument 'setsize': did you mean 'set_size'"):
        load("self_bleu").compute(predictions=TEXTS, setsize=2)


# Models of other kinds.


KNOWN = ["the kettle is on", "a dog barks", "some seas are calm"]


@pytest.fixture(scope="module")
def words():
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", *" ".join(KNOWN).split()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer, np.random.default_rng(0).normal(size=(len(vocabulary), 8)).astype(np.float32)


def test_a_folder_of_model2vec(load, words, tmp_path):
    static = pytest.importorskip("model2vec", reason="model2vec is not installed: pip install '.[dev]'").StaticModel
    tokenizer, vectors = words
    model = static(vectors=vectors, tokenizer=tokenizer, config={"normalize": True})
    model.save_pretrained(str(tmp_path / "static"))
    metric = load("chamfer_diversity")
    found = metric.compute(predictions=KNOWN, model=str(tmp_path / "static"))
    expected = metric.compute(predictions=KNOWN, embeddings=model.encode(KNOWN))
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 different texts consist of words that the model does not know"):
        metric.compute(predictions=["a dog barks", "zebra zebra"], model=str(tmp_path / "static"))


def test_folders_of_sentence_transformers(load, words, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW, StaticEmbedding

    tokenizer, vectors = words
    modules = {
        "static": StaticEmbedding(tokenizer, embedding_weights=vectors),
        "bag": BoW(list(tokenizer.get_vocab())),
    }
    for name, module in modules.items():
        model = SentenceTransformer(modules=[module], device="cpu")
        model.save(str(tmp_path / name))
        found = load("chamfer_diversity").compute(predictions=KNOWN, model=str(tmp_path / name))
        expected = load("chamfer_diversity").compute(predictions=KNOWN, embeddings=model.encode(KNOWN))
        assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)


def test_what_a_folder_is_not(load, tiny_model, tmp_path, capsys):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:1]))
    with pytest.raises(ValueError, match=r"model: .* could not be loaded as a sentence encoder"):
        load("chamfer_diversity").compute(predictions=KNOWN, model=str(folder))
    # The rows of the two sets differ, and the error is the same.
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    words = ("--set-size", 2, "--setting", f"model={folder}", "--quiet")
    assert score(data, *words, metric="chamfer_diversity") == 2
    assert f"{data}: no row can be scored: model: {folder}" in (shown := capsys.readouterr().err)
    assert shown.count("\n") == 1
