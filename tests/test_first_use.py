"""What a first attempt meets: files of other formats, models of other kinds, and words that are wrong."""

import csv
import gzip
import json
import re
import shutil

import datasets
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files import write_jsonl
from text_metrics.__main__ import main
from text_metrics.commands.score.command import parse_command
from text_metrics.commands.score.scoring import open_metric
from text_metrics.metrics._core import core_encoder

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
        ["compare", data, data, "--metric", "self_bleu", "--text-key", "text"],
        ["rate-quality", data, tmp_path / "rated.jsonl", "--model", "m"],
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


def test_different_errors_are_all_said(tmp_path, capsys):
    data = write_jsonl(tmp_path / "data.jsonl", [{"text": 1}, {"texts": "a"}])
    assert score(data, "--quiet") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{data}, row 1: 'text' must be a text or a list of texts. Got int 1"
    assert lines[1] == f"{data}, row 2: has no 'text': it has texts"
    assert len(lines) == 3


def test_a_model_that_is_not_there_is_said_before_the_file_is_read(tmp_path, capsys, monkeypatch):
    data = write_jsonl(tmp_path / "data.jsonl", SETS)
    absent = f"model={tmp_path / 'absent'}"
    for words in (
        ["score", data, "--metric", "chamfer_diversity", "--text-key", "texts", "--setting", absent],
        ["choose", data, "--text-key", "texts", "--keep", "1", "--setting", absent],
    ):
        assert main([*map(str, words), "--quiet"]) == 2
        shown = capsys.readouterr().err
        assert "model must be a folder with a saved model" in shown
        assert shown.count("\n") == 1


def test_progress_is_that_of_texts(tmp_path, capsys, monkeypatch):
    data = write_jsonl(tmp_path / "data.jsonl", SETS)
    words = [str(data), "--metric", "chamfer_diversity", "--text-key", "texts"]
    assert open_metric(parse_command(words)).settings == {"progress": True}
    assert open_metric(parse_command([*words, "--quiet"])).settings == {}
    assert open_metric(parse_command([*words, "--setting", "progress=false"])).settings == {"progress": False}
    words[2] = "self_bleu"
    assert open_metric(parse_command(words)).settings == {}
    monkeypatch.setattr(core_encoder, "_DELAY", 0)
    assert main(["choose", str(data), "--text-key", "texts", "--keep", "1"]) == 0
    assert re.search(r"Encoding: +\d+%.*text/s", capsys.readouterr().err)


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


# compare reads what score reads.


def compared(capsys, first, second, *words):
    code = main(["compare", str(first), str(second), "--metric", "self_bleu", *map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out.replace(first.name, "A").replace(second.name, "B"), shown.err


def test_two_systems_in_any_format(tmp_path, capsys):
    others = [{"id": row["id"], "texts": row["texts"][::-1][:2]} for row in SETS]
    second = write_jsonl(tmp_path / "second.jsonl", others)
    words = ("--text-key", "texts", "--id-key", "id")
    expected = compared(capsys, write_jsonl(tmp_path / "first.jsonl", SETS), second, *words)
    assert expected[0] == 0
    pq.write_table(pa.Table.from_pylist(SETS), tmp_path / "first.parquet")
    (tmp_path / "first.json").write_text(json.dumps(SETS, indent=1))
    for name in ("first.parquet", "first.json"):
        found = compared(capsys, tmp_path / name, second, *words)
        assert (found[0], found[2]) == (0, "")
        assert found[1].split("\n", 2)[2] == expected[1].split("\n", 2)[2]
    datasets.DatasetDict({"test": datasets.Dataset.from_list(SETS)}).save_to_disk(tmp_path / "folder")
    datasets.DatasetDict({"test": datasets.Dataset.from_list(others)}).save_to_disk(tmp_path / "others")
    found = compared(capsys, tmp_path / "folder", tmp_path / "others", *words, "--split", "test")
    assert found[1].split("\n", 3)[3] == expected[1].split("\n", 3)[3]
    # In CSV, a list is JSON, and an id is a text.
    tables = [
        write_csv(tmp_path / f"{i}.csv", [{**row, "texts": json.dumps(row["texts"])} for row in rows], ";")
        for i, rows in enumerate((SETS, others))
    ]
    assert compared(capsys, *tables, *words)[1].split("\n", 3)[3] == expected[1].split("\n", 3)[3]


def test_what_is_wrong_with_two_files(tmp_path, capsys):
    sets, lines = write_jsonl(tmp_path / "sets.jsonl", SETS), write_jsonl(tmp_path / "lines.jsonl", [TEXTS[:2], None])
    code, _, shown = compared(capsys, sets, sets)
    assert (code, shown) == (2, f"{sets} holds objects: pass --text-key with the key of the texts. It has id, texts.\n")
    code, _, shown = compared(capsys, sets, sets, "--text-key", "text")
    assert (code, shown) == (2, f"{sets}, line 1 has no 'text': it has id, texts.\n")
    code, _, shown = compared(capsys, sets, sets, "--text-key", "texts", "--references", sets)
    assert (code, shown) == (2, "--references: self_bleu takes no references: leave it out.\n")
    code, _, shown = compared(capsys, lines, lines)
    assert (code, shown) == (2, f"{lines}, line 2 must not be null. Got None.\n")


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
    static = pytest.importorskip(
        "model2vec", reason="model2vec is not installed: pip install '.[encoders]'"
    ).StaticModel
    tokenizer, vectors = words
    model = static(vectors=vectors, tokenizer=tokenizer, config={"normalize": True})
    model.save_pretrained(str(tmp_path / "static"))
    metric = load("chamfer_diversity")
    found = metric.compute(predictions=KNOWN, model=str(tmp_path / "static"))
    expected = metric.compute(predictions=KNOWN, embeddings=model.encode(KNOWN))
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-6)
    with pytest.warns(UserWarning, match="1 of 2 different texts consist of words that the model does not know"):
        metric.compute(predictions=["a dog barks", "zebra zebra"], model=str(tmp_path / "static"))
    with pytest.raises(ValueError, match=r"precision 'float16' is not possible with model .*static': it is float32"):
        metric.compute(predictions=KNOWN, model=str(tmp_path / "static"), precision="float16")


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
        assert "|precision:float32|" in found["signature"]


def test_what_a_folder_is_not(load, tiny_model, tmp_path, capsys):
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:1]))
    message = (
        f"model: {folder} could not be loaded as a sentence encoder: its modules (Transformer) return no embedding"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        load("chamfer_diversity").compute(predictions=KNOWN, model=str(folder))
    # The rows of the two sets differ, and the error is the same.
    data = write_jsonl(tmp_path / "data.jsonl", ROWS)
    words = ("--set-size", 2, "--setting", f"model={folder}", "--quiet")
    assert score(data, *words, metric="chamfer_diversity") == 2
    assert f"{data}: no row can be scored: {message}" in (shown := capsys.readouterr().err)
    assert shown.count("\n") == 1
    settings = folder / "config_sentence_transformers.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "model_type": "SparseEncoder"}))
    with pytest.raises(
        ValueError, match=r"it is a SparseEncoder of sentence-transformers, not a SentenceTransformer\."
    ):
        load("chamfer_diversity").compute(predictions=KNOWN, model=str(folder))
