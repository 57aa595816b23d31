"""Rows that make a number wrong in silence: of several systems, repeated, or swallowed by a row that cannot be read."""

import json
from pathlib import Path

import numpy as np
import pytest

import text_metrics
from tests.files import read_data, read_jsonl, write_data, write_jsonl
from text_metrics.commands.report import parse_options
from text_metrics.reporting.inputs import read_inputs

BLEU = ("--metric", "self_bleu", "--setting", "max_order=2")
BY_ID = ("--id-key", "id", "--text-key", "text")
BLEU_BY_ID = BLEU + BY_ID
WORDS = ("dog", "cat", "sea", "park", "house", "train", "lamp", "book")


def texts_of(i, n=4):
    return [f"a {word} and {WORDS[i % 8]} number {i * j}" for j, word in enumerate(WORDS[:n])]


# Rows of five ids: each document once for each filter or time, with a list or with a text in a row; and what is said.
REPEATED = {
    "filters of lists": (
        [{"id": i, "filter": name, "text": texts_of(i, 1)} for i in range(5) for name in ("strict", "flexible")],
        ("5 sets", "5 rows"),
    ),
    "times": (
        [{"id": i, "time": 9 * i + j, "text": text} for i in range(5) for j, text in enumerate(texts_of(i) * 2)],
        ("20 rows",),
    ),
    "trials of one text": (
        [{"id": i, "trial": trial, "text": texts_of(i, 1)[0]} for trial in (1, 2) for i in range(5)],
        ("5 rows",),
    ),
    "equal rows": ([{"id": i, "text": text} for i in range(5) for text in [*texts_of(i), texts_of(i)[0]]], ("5 rows",)),
}
# One row of an id each, or one text twice under other names, as of a model that says the same sometimes.
SOUND = {
    "a list each": [{"id": i, "text": texts_of(i)} for i in range(5)],
    "samples": [{"id": i, "sample": j, "text": text} for i in range(5) for j, text in enumerate(texts_of(i))],
    "an equal sample": [
        {"id": i, "sample": j, "text": text} for i in range(5) for j, text in enumerate([*texts_of(i), texts_of(i)[0]])
    ],
}


def commands(path):
    return {
        "score": ("score", path, *BLEU_BY_ID, "--out", "out.jsonl", "--restart"),
        "compare": ("compare", path, "other.jsonl", *BLEU_BY_ID, "--no-rarefy"),
    }


@pytest.mark.parametrize("command", ["score", "compare", "report"])
@pytest.mark.parametrize("case", REPEATED | SOUND)
def test_rows_that_repeat_others_of_their_id_are_counted(run, capsys, command, case):
    rows, parts = REPEATED[case] if case in REPEATED else (SOUND[case], ())
    path = write_jsonl(Path("data.jsonl"), rows)
    write_jsonl(Path("other.jsonl"), SOUND["a list each"])
    if command == "report":
        repeats = read_inputs(parse_options([str(path), *BY_ID, "--quality", "none"])).repeats
        assert len(repeats) == len(parts)
        # Who calls the library reads them in the report.
        assert "Warning" not in capsys.readouterr().err
        code, _, shown = run("report", path, *BY_ID, "--quality", "none", "--out", "report", "--quiet")
    else:
        code, _, shown = run(*commands(path)[command])
    assert code == 0, shown
    warnings = [line for line in shown.splitlines() if line.startswith("Warning: data.jsonl")]
    assert len(warnings) == len(parts), shown
    assert all(part in line for part, line in zip(parts, warnings, strict=True)), shown
    if command == "score":
        # Those who read the summary only can see it, too, and so does who asks again.
        summary = json.loads(Path("out.jsonl.summary.json").read_text())
        assert (summary["n_repeated"] > 0) == (len(parts) > 0)
        assert run(*commands(path)["score"][:-1])[2].count("Warning: data.jsonl") == len(parts)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("command", ["score", "compare", "report"])
@pytest.mark.parametrize("are_lists", [True, False])
def test_several_systems_in_one_file_are_an_error_of_every_command(run, kind, command, are_lists):
    rows = []
    for model in ("gpt", "llama"):
        for i in range(5):
            texts = [f"{model} says {text}" for text in texts_of(i)]
            rows += [{"id": i, "model": model, "text": text} for text in ([texts] if are_lists else texts)]
    path = write_data(Path(f"data.{kind}"), rows)
    words = {
        "score": ("score", path, *BLEU_BY_ID, "--out", "out.jsonl"),
        "compare": ("compare", path, path, *BLEU_BY_ID),
        "report": ("report", path, *BY_ID, "--quality", "none"),
    }[command]
    code, _, shown = run(*words)
    assert code == 2, shown
    assert all(part in shown for part in (f"data.{kind}", "--system-key model", "--one-system")), shown
    assert sorted(path.name for path in Path().iterdir()) == [f"data.{kind}"]
    if command != "report":
        assert run(*words, "--one-system")[0] == 0
    if command == "score":
        assert run(*words, "--system-key", "model", "--restart")[0] == 0
        assert len(read_jsonl(Path("out.jsonl"))) == 10


def one_generator(rng, n_prompts, n):
    """Sets of n texts of one generator, whatever n."""
    rows = []
    for i in range(n_prompts):
        rows.append({"id": i, "text": [" ".join(rng.choice(WORDS, 4)) for _ in range(n)]})
    return rows


def test_sets_of_different_sizes_are_compared_at_one_size(run, rng):
    """Eight texts of a generator against three of it are no difference, and the numbers are those of `rarefied`."""
    sides = {name: one_generator(rng, 20, n) for name, n in (("a", 8), ("b", 3))}
    paths = [write_jsonl(Path(f"{name}.jsonl"), rows) for name, rows in sides.items()]
    code, out, shown = run("compare", *paths, *BLEU_BY_ID, "--out", "c.json")
    assert code == 0, shown
    result = json.loads(Path("c.json").read_text())
    assert (result["rarefied_to"], result["n_unequal"], result["sizes"]) == (3, 20, {"a": [8, 8], "b": [3, 3]})
    assert result["p"] > 0.05
    assert "rarefied" in out
    for name, rows in sides.items():
        sets = [row["text"] for row in rows]
        expected = text_metrics.rarefied("self_bleu", sets, 3, max_order=2)
        assert [item[name] for item in result["items"]] == pytest.approx(expected["scores"])
    # As they are, the larger sets repeat themselves more.
    code, out, _ = run("compare", *paths, *BLEU_BY_ID, "--no-rarefy", "--out", "c.json")
    result = json.loads(Path("c.json").read_text())
    assert (code, result["rarefied_to"], result["n_unequal"]) == (0, None, 20)
    assert result["p"] < 0.01
    assert "20 items with sets of different sizes" in out
    differences = [item["a"] - item["b"] for item in result["items"]]
    assert result["difference"]["mean"] == pytest.approx(np.mean(differences))


def test_prompts_with_one_text_are_left_out_of_what_is_rarefied(run, rng):
    first = one_generator(rng, 10, 5)
    second = one_generator(rng, 10, 5)
    first[3]["text"] = first[3]["text"][:1]
    second[4]["text"] = second[4]["text"][:4]
    paths = [write_jsonl(Path(f"{name}.jsonl"), rows) for name, rows in (("a", first), ("b", second))]
    assert run("compare", *paths, *BLEU_BY_ID, "--out", "c.json")[0] == 0
    result = json.loads(Path("c.json").read_text())
    assert (result["n"], result["left_out"], result["rarefied_to"], result["n_unequal"]) == (9, 1, 4, 1)
    assert "3" not in [item["id"] for item in result["items"]]
    # Pairs of equal sizes are scored as they are, whatever the sizes of other pairs.
    second[4]["text"] = [*second[4]["text"], "a dog"]
    first[5]["text"] = first[5]["text"][:2]
    second[5]["text"] = second[5]["text"][:2]
    for path, rows in zip(paths, (first, second), strict=True):
        write_jsonl(path, rows)
    assert run("compare", *paths, *BLEU_BY_ID, "--out", "c.json")[0] == 0
    result = json.loads(Path("c.json").read_text())
    assert (result["n"], result["rarefied_to"], result["n_unequal"]) == (9, None, 0)


def test_sets_that_cannot_be_rarefied_are_refused_unless_a_user_says_so(run, tmp_path):
    module = tmp_path / "words_of" / "words_of.py"
    module.parent.mkdir()
    module.write_text(
        "import datasets\nimport evaluate\n\n\nclass WordsOf(evaluate.Metric):\n"
        "    def _info(self):\n"
        "        features = datasets.Features({'predictions': datasets.Sequence(datasets.Value('string'))})\n"
        "        return evaluate.MetricInfo(description='', citation='', features=features)\n\n"
        "    def _compute(self, predictions):\n"
        "        return {'scores': [len(texts) for texts in predictions]}\n"
    )
    paths = []
    for n in (4, 2):
        paths.append(write_jsonl(Path(f"{n}.jsonl"), [{"id": i, "text": texts_of(i, n)} for i in range(5)]))
    words = ("compare", *paths, "--metric", "./words_of", *BY_ID)
    code, _, shown = run(*words)
    assert (code, "--no-rarefy" in shown) == (2, True), shown
    code, out, shown = run(*words, "--no-rarefy")
    assert code == 0, shown
    assert "2.0000" in out


def swallowed(path, n_rows=2000, opened=598):
    """Write a CSV file in which a quote is opened and never closed."""
    lines = [f"{i // 4},{chr(34) * (i == opened)}text {i} of {WORDS[i % 8]}" for i in range(n_rows)]
    path.write_text("\n".join(["id,text", *lines, ""]))
    return path


@pytest.mark.parametrize("more", [[], ["--one-set", "--out", "out.json"]])
def test_lines_that_a_quote_swallowed_are_counted_and_give_no_mean(run, more):
    data = swallowed(Path("data.csv"))
    keys = ["--text-key", "text", *(more or ["--id-key", "id", "--out", "out.csv"])]
    words = ("score", data, *BLEU, *keys)
    code, out, shown = run(*words)
    assert code == 3, shown
    summary = json.loads(out)
    # The header is no row, and three rows of the set are bad, one of which has all lines after it.
    assert summary["n_bad_lines"] == 2000 - 598 + (summary["n_bad"] - 1)
    assert "1,402" in shown
    numbers = {name: value for name, value in summary.items() if name.startswith(("self_bleu", "distinct"))}
    assert numbers
    assert set(numbers.values()) == {None}
    if not more:
        assert summary["confidence_interval"] is None
        assert len(read_data(Path("out.csv"))) == summary["n_scores"] > 0
    # A limit is missed by what is not there, also of a finished job.
    assert run(*words, "--fail-over", "self_bleu=1")[0] == 5
    (source,) = read_inputs(parse_options([str(data), *BY_ID, "--quality", "none"])).sources
    assert source.n_bad == summary["n_bad_lines"] or more
    assert source.n_bad > 1400


def test_a_row_of_a_few_lines_leaves_the_mean(run):
    data = swallowed(Path("data.csv"), 2000, 1995)
    code, out, _ = run("score", data, *BLEU_BY_ID)
    summary = json.loads(out)
    assert (code, summary["self_bleu"] > 0) == (3, True)
    assert summary["n_bad_lines"] > summary["n_bad"]


def test_choosing_gives_no_mean_of_a_part_either(run):
    code, out, shown = run("choose", swallowed(Path("data.csv"), 60, 20), *BY_ID, "--keep", "2")
    summary = json.loads(out)
    assert (code, summary["chosen_score"], summary["random_score"]) == (3, None, None), shown
    assert summary["n_chosen"] > 0


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("out", ["out.jsonl", "out.parquet"])
def test_a_row_that_is_a_set_stays_as_it_is(run, kind, out):
    """As in a batch of OpenAI, where each id has one row; where an id has two, the columns are lists."""
    rows = [{"id": f"r{i}", "text": texts_of(i), "cost": i + 0.5, "model": "m"} for i in range(5)]
    data = write_data(Path(f"data.{kind}"), rows)
    for more in ([], ["--id-key", "id"]):
        code, _, shown = run("score", data, *BLEU, "--text-key", "text", *more, "--out", out, "--restart")
        assert code == 0, shown
        written = read_data(Path(out))
        assert all(isinstance(row.pop("self_bleu"), float) for row in written)
        as_read = [{**row, "text": json.dumps(row["text"]), "cost": str(row["cost"])} for row in rows]
        assert written == (as_read if kind == "csv" else rows)
    data = write_data(Path(f"twice.{kind}"), [*rows, rows[0]])
    code, _, shown = run("score", data, *BLEU, "--text-key", "text", "--id-key", "id", "--out", out, "--restart")
    assert code == 0, shown
    assert [len(row["model"]) for row in read_data(Path(out))] == [2, 1, 1, 1, 1]
    assert {row["id"] for row in read_data(Path(out))} == {row["id"] for row in rows}
