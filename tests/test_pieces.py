"""Files read in pieces, each by a process of its own: the same rows, sets and batches as in one reading."""

import json

import datasets
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files import compress, write_jsonl
from tests.fuzzing import cases, damage_lines
from text_metrics.commands.jobs import pieces as _pieces
from text_metrics.commands.jobs.batches import Job, open_reader, read_items
from text_metrics.commands.jobs.options import Command
from text_metrics.commands.jobs.pieces import Piece
from text_metrics.commands.jobs.rows import Source
from text_metrics.commands.score import main as score
from text_metrics.commands.shared.remote import parse_path

ROWS = [{"text": f"text {i} é"} for i in range(37)]
LAYOUTS = [(None, 5), (4, 5), (3, 1), (50, 4)]


def read_job(job):
    """Read by one process, and in pieces."""
    read = open_reader(job._replace(in_pieces=True))
    items = list(read_items(job._replace(in_pieces=True)))
    assert all(isinstance(item, Piece) for item in items)
    return list(read_items(job)), [batch for item in items for batch in read(item)]


def check(path, set_size, size):
    source = Source(path, None)
    rows = list(source.rows(0))
    pieces = list(source.pieces(0, size, set_size or 1))
    assert [row for piece in pieces for row in source.rows(0, piece=piece)] == rows
    for piece in pieces[:-1]:
        n_rows = sum(not row.is_blank for row in source.rows(0, piece=piece))
        assert n_rows >= size
        assert n_rows % (set_size or 1) == 0
    job = Job(Command(path, "self_bleu", "text", set_size=set_size, batch_size=size), "texts")
    batches, in_pieces = read_job(job)
    assert in_pieces == batches
    # From each batch on, as after a kill.
    for i, (units, _) in enumerate(batches):
        rest, in_pieces = read_job(job._replace(start=units[-1].end))
        assert in_pieces == rest == batches[i + 1 :]
    return len(pieces)


@pytest.mark.parametrize(("set_size", "size"), LAYOUTS)
def test_damaged_lines_in_pieces(tmp_path, monkeypatch, set_size, size):
    monkeypatch.setattr(_pieces, "_BYTES", 64)
    path, odd = tmp_path / "data.jsonl", b"\n \n\xc2\xa0\n{}\xff\n[1]\n\x0b\r\n"
    n_pieces = []
    for _, draw in cases("pieces", 15):
        start = draw.choice([b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n"])
        data = b"{}\n" + damage_lines(draw, ROWS)
        cut = draw.randrange(len(data))
        path.write_bytes(start + data[:cut] + odd * draw.randrange(2) + data[cut:].rstrip() + b"\n" * draw.randrange(3))
        n_pieces.append(check(path, set_size, size))
    assert max(n_pieces) > 4 or set_size == 50


@pytest.mark.parametrize(("set_size", "size"), LAYOUTS)
def test_tables_in_pieces(tmp_path, set_size, size):
    table = pa.Table.from_pylist(ROWS)
    for group in (1, 7, 100):
        pq.write_table(table, tmp_path / "data.parquet", row_group_size=group)
        n_pieces = check(tmp_path / "data.parquet", set_size, size)
        assert (n_pieces > 1) == (group < 100 and set_size != 50)
    datasets.Dataset(table).save_to_disk(tmp_path / "data")
    check(tmp_path / "data", set_size, size)


def test_other_files_are_one_piece(tmp_path):
    plain = write_jsonl(tmp_path / "data.jsonl", ROWS)
    (tmp_path / "old.jsonl").write_bytes(plain.read_bytes().replace(b"\n", b"\r"))
    (tmp_path / "data.csv").write_text("text\na\nb\n")
    (tmp_path / "data.json").write_text(json.dumps(ROWS))
    for path in (compress(plain, ".gz"), *(tmp_path / name for name in ("old.jsonl", "data.csv", "data.json"))):
        assert list(Source(path, None).pieces(0, 1, 1)) == [Piece(0, 0, None)]


def test_files_of_another_file_system(tmp_path, capsys):
    rows = [{"text": ["a dog", f"the sea {i}", "a dog runs"]} for i in range(50)]
    plain = write_jsonl(tmp_path / "data.jsonl", rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet", row_group_size=9)
    outputs = []
    for kind in ("jsonl", "parquet"):
        data, url = plain.with_suffix(f".{kind}"), f"memory://test/data.{kind}"
        fsspec.filesystem("memory").pipe(url, data.read_bytes())
        for place in (str(data), url):
            out = tmp_path / f"{len(outputs)}.jsonl"
            more = ["--metric", "self_bleu", "--text-key", "text", "--batch-size", "12", "--out", str(out), "--quiet"]
            assert score.main([place, *more]) == 0
            outputs.append(out.read_bytes())
    assert len(set(outputs)) == 1
    assert check(parse_path("memory://test/data.jsonl"), None, 5) == 10
    capsys.readouterr()
    words = ["--metric", "self_bleu", "--text-key", "text"]
    assert score.main(["memory://test/data.jsonl", *words]) == score.EXIT_USAGE
    assert "--out is needed: memory://test/data.jsonl is not in a folder" in capsys.readouterr().err
    assert score.main(["memory://test/none.jsonl", *words]) == score.EXIT_USAGE
    assert "memory://test/none.jsonl does not exist" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        score.main(["nothing://data.jsonl", *words])
    assert "nothing://data.jsonl cannot be opened" in capsys.readouterr().err
