"""Files of other formats, and options that do not exist."""

import csv
import gzip

import pytest

from text_metrics.__main__ import main

TEXTS = ["The kettle is on.", "A dog barks, twice.", "The sea is calm; a bell rings.", 'She said "no".']
ROWS = [{"id": i, "text": text, "prompt": "ab"[i // 2]} for i, text in enumerate(TEXTS)]


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
    assert "'prompt' is 'a'" in capsys.readouterr().err


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
