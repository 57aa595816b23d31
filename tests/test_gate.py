"""The gate between nights: limits, exit codes, the history of summaries, and unpaired comparisons."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests import programs
from tests.commands import run_command
from tests.files import read_jsonl, write_jsonl
from text_metrics.console import EXIT_IN_USE, EXIT_LIMIT, EXIT_USAGE
from text_metrics.core_api import mean_estimate
from text_metrics.files.written import find_writer
from text_metrics.gate import missed_limits, read_history
from text_metrics.jobs.locks import locked
from text_metrics.options import Options
from text_metrics.statistics import contrast, drift, unpaired_test

WORDS = ["tea", "sea", "dog", "park", "rain", "boat", "song", "moon", "door", "lamp", "bread", "stone"]


def night(rng, n_words, n_sets=12, n_texts=3):
    """Make sets of texts of words: the fewer words there are, the more the texts repeat each other."""
    sets = rng.integers(n_words, size=(n_sets, n_texts, 5))
    return [{"texts": [" ".join(WORDS[i] for i in text) for text in members]} for members in sets]


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command on files of a folder, with self_bleu of single words; returns the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run_once(name, *words):
        words = [*words, "--metric", "self_bleu", "--setting", "max_order=1", "--text-key", "texts"]
        return run_command(monkeypatch, name, *words), *capsys.readouterr()

    run_once.monkeypatch = monkeypatch
    return run_once


def gate(run, data, *words):
    """Score a night, and compare it with those before it in one history."""
    return run("score", data, "--history", "nights.jsonl", "--against", "nights.jsonl", "--quiet", *words)


def summary_of(name):
    with open(f"{name}.jsonl.self_bleu.jsonl.summary.json", encoding="utf-8") as file:
        return json.load(file)


def test_a_gate_over_three_nights(run, rng, tmp_path):
    for name, n_words in (("n1", 12), ("n2", 12), ("n3", 2), ("n4", 12)):
        write_jsonl(tmp_path / f"{name}.jsonl", night(rng, n_words))
    limits = ("--fail-over", "difference=0.2", "--fail-over", "difference_low=0")
    # There is nothing to compare the first night with.
    code, _, shown = gate(run, "n1.jsonl", *limits)
    assert (code, "difference is not judged yet" in shown) == (0, True)
    assert summary_of("n1")["against"]["n_nights"] == 0
    assert gate(run, "n2.jsonl", *limits)[0] == 0
    # Texts of two words only repeat each other.
    code, _, shown = gate(run, "n3.jsonl", *limits)
    assert (code, "--fail-over 0.2" in shown) == (EXIT_LIMIT, True)
    against = summary_of("n3")["against"]
    before = [summary_of(name)["self_bleu"] for name in ("n1", "n2")]
    assert against["n_nights"] == 2
    assert against["mean"] == pytest.approx(np.mean(before))
    assert against["difference"]["mean"] == pytest.approx(summary_of("n3")["self_bleu"] - np.mean(before))
    # A retry is the same night: it is judged as before, and is no line more.
    assert gate(run, "n3.jsonl", *limits)[0] == EXIT_LIMIT
    lines = read_jsonl(tmp_path / "nights.jsonl")
    assert [bool(line["missed"]) for line in lines] == [False, False, True]
    # The night that missed its limit is no standard for the next one.
    assert gate(run, "n4.jsonl", *limits)[0] == 0
    assert summary_of("n4")["against"]["n_nights"] == 2
    assert gate(run, "n4.jsonl", "--last", 1)[0] == 0
    assert summary_of("n4")["against"]["mean"] == pytest.approx(before[1])
    # The folder of a history may be new.
    assert run("score", "n1.jsonl", "--history", "new/nights.jsonl")[0] == 0
    assert len(read_jsonl(tmp_path / "new" / "nights.jsonl")) == 1
    # A history is no data of a pattern.
    assert find_writer(tmp_path / "nights.jsonl").is_record
    # One summary is a history, too.
    code, _, _ = run("score", "n4.jsonl", "--against", "n1.jsonl.self_bleu.jsonl.summary.json", *limits)
    assert (code, summary_of("n4")["against"]["mean"]) == (0, pytest.approx(before[0]))


def test_a_night_under_other_settings_is_not_compared(run, rng, tmp_path):
    for name in ("n1", "n2"):
        write_jsonl(tmp_path / f"{name}.jsonl", night(rng, 12))
    assert gate(run, "n1.jsonl")[0] == 0
    code, _, shown = gate(run, "n2.jsonl", "--setting", "smooth=floor")
    assert (code, "smooth" in shown) == (EXIT_USAGE, True)
    for broken in ('{"written_by": "text-metrics sc', '{"a": 1}'):
        (tmp_path / "broken.jsonl").write_text(f"{broken}\n")
        code, _, shown = run("score", "n2.jsonl", "--against", "broken.jsonl", "--out", "o.jsonl")
        assert (code, "broken.jsonl, line 1" in shown) == (EXIT_USAGE, True)
    code, _, shown = run("score", "n2.jsonl", "--against", "absent.jsonl", "--out", "o.jsonl")
    assert (code, "absent.jsonl" in shown) == (EXIT_USAGE, True)
    # It is read before anything is scored.
    assert not list(tmp_path.glob("o.jsonl*"))
    code, _, shown = run("score", "n1.jsonl", "--history", "n1.jsonl")
    assert (code, "which is read" in shown) == (EXIT_USAGE, True)


def test_a_history_survives_kills_retries_and_other_writers(run, rng, tmp_path):
    history = tmp_path / "nights.jsonl"
    for name in ("n1", "n2", "n3"):
        write_jsonl(tmp_path / f"{name}.jsonl", night(rng, 12))
        # A night that was killed while it wrote its line.
        with history.open("a") as file:
            file.write('{"written_by": "text')
        assert gate(run, f"{name}.jsonl")[0] == 0
        assert read_jsonl(history)[-1]["self_bleu"] == summary_of(name)["self_bleu"]
    written = history.read_bytes()
    # A retry is judged as before, without the nights after it. One file may have two paths.
    (tmp_path / "link.jsonl").symlink_to(history)
    assert run("score", "n2.jsonl", "--history", history, "--against", "link.jsonl")[0] == 0
    summaries = [json.loads(line) for line in history.read_text().splitlines()]
    assert [each["against"]["n_nights"] for each in summaries] == [0, 1, 2, 1]
    assert history.read_bytes().startswith(written)
    assert [each["self_bleu"] for each in read_history(history)] == [each["self_bleu"] for each in summaries[:3]]
    # Metrics that run at the same time.
    writer = "import sys; from pathlib import Path; from text_metrics.gate import append\n"
    writer += "for i in range(20): append(Path(sys.argv[2]), {'n': f'{sys.argv[1]} {i}', 'pad': 'x' * 20_000}, [])"
    both = [subprocess.Popen([sys.executable, "-c", writer, name, str(tmp_path / "both.jsonl")]) for name in "ab"]
    assert [process.wait() for process in both] == [0, 0]
    assert len({line["n"] for line in read_jsonl(tmp_path / "both.jsonl")}) == 40


def test_streams_of_one_history_are_told_apart_by_their_names(run, tmp_path):
    """Also if they have the same data and settings."""
    for name, texts in (("n1", ["a b", "a b"]), ("n2", ["a b", "c d"])):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"texts": texts}] * 3)
    for name, stream, n_nights in (("n1", "x", 0), ("n2", "y", 0), ("n1", "y", 1), ("n1", "x", 0), ("n2", None, 0)):
        words = ["--fail-over", "difference=0.1", "--restart"]
        words += ["--name", stream] if stream else []
        code = gate(run, f"{name}.jsonl", *words)[0]
        assert summary_of(name)["against"]["n_nights"] == n_nights
        assert summary_of(name).get("name") == stream
        # Of the stream y, the second night repeats its texts more.
        assert code == (EXIT_LIMIT if n_nights else 0)
    code, _, shown = run("score", "n2.jsonl", "--against", "nights.jsonl", "--name", "z", "--quiet")
    assert (code, "--name z" in shown) == (EXIT_USAGE, True)
    # Without a name, what is missing is a summary without one.
    assert run("score", "n1.jsonl", "--history", "named.jsonl", "--name", "x", "--quiet")[0] == 0
    code, _, shown = run("score", "n2.jsonl", "--against", "named.jsonl", "--quiet")
    assert (code, "--name" in shown) == (EXIT_USAGE, True)


def test_scores_that_do_not_vary_are_judged(run, tmp_path):
    """The same answers pass, and a drop from them fails, also without an interval."""
    for name, texts in (("n1", ["a b", "a b"]), ("n2", ["a b", "a b"]), ("n3", ["a b", "c d"])):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"texts": texts}] * 5)
    limits = ("--fail-under", "difference=0", "--fail-under", "difference_high=0", "--fail-under", "low=0")
    for name, code in (("n1", 0), ("n2", 0), ("n3", EXIT_LIMIT)):
        assert gate(run, f"{name}.jsonl", *limits)[0] == code
    for first, second, code in (("n1", "n2", 0), ("n3", "n1", EXIT_LIMIT)):
        for pairing in ("--by-line", "--unpaired"):
            words = (f"{first}.jsonl", f"{second}.jsonl", pairing, "--fail-under", "low=-0.05")
            assert run("compare", *words)[0] == code
    # One set has no interval.
    write_jsonl(tmp_path / "one.jsonl", [{"texts": ["a b", "a c"]}])
    assert run("compare", "n1.jsonl", "one.jsonl", "--unpaired", "--fail-under", "low=-9")[0] == EXIT_LIMIT
    assert run("score", "one.jsonl", "--fail-under", "low=-9")[0] == EXIT_LIMIT


def test_a_limit_that_is_never_missed_is_an_error(run, rng, tmp_path):
    write_jsonl(tmp_path / "n1.jsonl", night(rng, 12))
    for limit in ("low", "=1", "low=x", "self_bleu=-inf", "n_bad=0"):
        assert run("score", "n1.jsonl", f"--fail-under={limit}")[0] == EXIT_USAGE, limit
    assert not (tmp_path / "n1.jsonl.self_bleu.jsonl").exists()
    # A file that has no score of the metric, or that is no history.
    words = ("--text-key", "texts", "--keep", "1", "--column", "classes=texts", "--out", "c.jsonl")
    assert run_command(run.monkeypatch, "choose", "n1.jsonl", *words) == 0
    code, _, shown = run("score", "n1.jsonl", "--against", "c.jsonl.summary.json", "--fail-under", "difference=0")
    assert (code, "has no self_bleu" in shown) == (EXIT_USAGE, True)
    other = write_jsonl(tmp_path / "other.jsonl", [{"text": "not a summary"}])
    assert run("score", "n1.jsonl", "--history", other)[0] == EXIT_USAGE
    assert len(read_jsonl(other)) == 1


def test_rounding_decides_no_limit(capsys):
    options = Options(fail_under=[("a", 0.3), ("b", 0.0)], fail_over=[("c", 0.3)], against=None)
    assert missed_limits(options, {"a": 0.1 * 3 - 1e-9, "b": -5e-17, "c": 0.1 + 0.2}) == []
    assert missed_limits(options, {"a": 0.2999, "b": -1e-4, "c": math.nan}) == ["a", "b", "c"]


def test_limits_on_the_ends_of_intervals(run, rng, tmp_path):
    data = write_jsonl(tmp_path / "n1.jsonl", night(rng, 12))
    assert run("score", data)[0] == 0
    low, high = summary_of("n1")["confidence_interval"]
    for limit, code in (
        (("--fail-under", f"low={low - 0.001}"), 0),
        (("--fail-under", f"low={low + 0.001}"), EXIT_LIMIT),
        (("--fail-over", f"high={high + 0.001}"), 0),
        (("--fail-over", f"high={high - 0.001}"), EXIT_LIMIT),
        # Without --against, there is no difference.
        (("--fail-under", "difference=0"), EXIT_USAGE),
    ):
        assert run("score", data, *limit)[0] == code, limit


@pytest.mark.parametrize("pairing", ["--by-line", "--unpaired"])
def test_limits_of_a_comparison(run, rng, tmp_path, pairing):
    a = write_jsonl(tmp_path / "a.jsonl", night(rng, 12))
    b = write_jsonl(tmp_path / "b.jsonl", night(rng, 6))
    words = (a, b, pairing, "--out", tmp_path / "c.json")
    assert run("compare", *words)[0] == 0
    result = json.loads((tmp_path / "c.json").read_text())
    low, high = result["difference"]["interval"]
    values = {"difference": result["difference"]["mean"], "low": low, "high": high}
    values |= {"p": result["p"], "a": result["a"]["mean"], "b": result["b"]["mean"]}
    for name, value in values.items():
        for option, sign in (("--fail-under", 1), ("--fail-over", -1)):
            assert run("compare", *words, f"{option}={name}={value - sign * 0.001}")[0] == 0
            code, _, shown = run("compare", *words, f"{option}={name}={value + sign * 0.001}")
            assert (code, f"{name} is " in shown) == (EXIT_LIMIT, True)
    assert run("compare", *words, "--fail-under", "mean=1")[0] == EXIT_USAGE


def test_unpaired_systems_are_compared_by_their_means(run, rng, tmp_path):
    a = write_jsonl(tmp_path / "a.jsonl", night(rng, 12, n_sets=9))
    b = write_jsonl(tmp_path / "b.jsonl", night(rng, 3, n_sets=14))
    code, out, _ = run("compare", a, b, "--unpaired", "--out", tmp_path / "c.json")
    result = json.loads((tmp_path / "c.json").read_text())
    assert (code, "Welch" in out) == (0, True)
    scores = [[item[side] for item in result["items"] if side in item] for side in "ab"]
    assert [len(side) for side in scores] == [9, 14] == [result[side]["n"] for side in "ab"]
    assert result["difference"]["mean"] == pytest.approx(np.mean(scores[0]) - np.mean(scores[1]))
    means = [mean_estimate(np.array(side)) for side in scores]
    assert result["difference"]["interval"] == unpaired_test(*means, 0.95)["interval"]
    assert result["a"]["interval"] == means[0].interval(0.95, (0, 1))
    # They have as many prompts as they have.
    assert run("compare", a, b, "--by-line")[0] == EXIT_USAGE
    assert run("compare", a, b, "--by-line", "--unpaired")[0] == EXIT_USAGE


def test_unpaired_sets_of_different_sizes_are_rarefied(run, rng, tmp_path):
    a = write_jsonl(tmp_path / "a.jsonl", night(rng, 12, n_texts=3))
    b = write_jsonl(tmp_path / "b.jsonl", night(rng, 12, n_texts=6))
    code, _, _ = run("compare", a, b, "--unpaired", "--out", tmp_path / "c.json")
    result = json.loads((tmp_path / "c.json").read_text())
    assert (code, result["rarefied_to"], result["n_unequal"]) == (0, 3, 12)
    # Without a difference in the texts, there is none in the scores.
    assert result["p"] > 0.01
    run("compare", a, b, "--unpaired", "--no-rarefy", "--out", tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["p"] < 0.01


def test_rows_of_one_id_are_a_set_of_an_unpaired_system(run, tmp_path):
    texts = ["a b", "a c", "d e", "d f"]
    a = write_jsonl(tmp_path / "a.jsonl", [{"id": f"a{i // 2}", "texts": text} for i, text in enumerate(texts)])
    b = write_jsonl(tmp_path / "b.jsonl", [{"id": f"b{i // 2}", "texts": text} for i, text in enumerate(texts)])
    words = (a, b, "--unpaired", "--id-key", "id", "--out", tmp_path / "c.json")
    assert run("compare", *words)[0] == 0
    assert [item["id"] for item in json.loads((tmp_path / "c.json").read_text())["items"]] == ["a0", "a1", "b0", "b1"]


def test_samples_without_skewness_have_the_test_of_welch():
    first = np.array([1.0, 2.0, 3.0, 4.0, 7.0, 8.0, 9.0, 10.0])
    second = np.array([3.0, 5.0, 7.0, 9.0, 11.0])
    test = unpaired_test(mean_estimate(first), mean_estimate(second), 0.9)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert test["p"] == pytest.approx(expected.pvalue)
    assert test["interval"] == pytest.approx(list(expected.confidence_interval(0.9)))
    assert test["n_units"] == 13


def test_a_sample_without_variance_is_a_constant(rng):
    """So that the test is that of one sample, with its skewness."""
    sample = rng.lognormal(size=12)
    difference = contrast([mean_estimate(sample), mean_estimate(np.full(30, 0.5))], [1, -1])
    assert difference == pytest.approx(mean_estimate(sample - 0.5))
    reverse = contrast([mean_estimate(np.full(30, 0.5)), mean_estimate(sample)], [1, -1])
    assert reverse.interval(0.9) == pytest.approx([-end for end in difference.interval(0.9)[::-1]])
    alone = contrast([mean_estimate(sample), mean_estimate(sample[:1])], [1, -1])
    assert alone.interval(0.9) is None


def test_an_interval_of_drift_covers_items_and_nights(rng):
    """Nights that vary by more than their items explain: 95 % of intervals hold the difference of a new night, 0."""
    n_covered = 0
    for _ in range(300):
        nights = []
        for mean in rng.normal(0, 1, 6):
            nights.append(mean_estimate(rng.normal(mean, 1, 20)))
        low, high = drift(nights[-1], nights[:-1], 0.95)["difference"]["interval"]
        n_covered += low < 0 < high
    assert 0.9 < n_covered / 300 < 0.99
    # Of nights that are equal, by chance or because a night was copied, the items still vary.
    night = mean_estimate(rng.normal(0, 1, 20))
    low, high = drift(night, [night, night], 0.95)["difference"]["interval"]
    assert low < -night.error < night.error < high


def test_an_interval_of_drift_is_of_possible_differences(run, rng, tmp_path):
    """Of two nights that differ by much, the interval would be wider than the range of self-BLEU."""
    for name, n_words in (("n1", 12), ("n2", 2), ("n3", 12)):
        write_jsonl(tmp_path / f"{name}.jsonl", night(rng, n_words))
        assert gate(run, f"{name}.jsonl")[0] == 0
    assert summary_of("n3")["against"]["difference"]["interval"] == [-1, 1]


def test_what_is_in_use_has_a_code_of_its_own(run, rng, tmp_path):
    data = write_jsonl(tmp_path / "n1.jsonl", night(rng, 12))
    with locked(tmp_path / "n1.jsonl.self_bleu.jsonl.parts" / "lock"):
        assert run("score", data)[0] == EXIT_IN_USE
    assert run("score", data)[0] == 0


@pytest.mark.parametrize("command", ["score", "choose", "report"])
def test_quiet_commands_and_private_rows(run, tmp_path, monkeypatch, capsys, command):
    secret = 123456789
    rows = [{"id": 1, "texts": ["a b", "a c"]}, {"id": 2, "texts": ["d e", secret]}, {"id": 3, "texts": ["x y", "z"]}]
    data = write_jsonl(tmp_path / "a.jsonl", rows)
    words = {
        "score": ("--metric", "self_bleu", "--setting", "max_order=1", "--out", "out.jsonl"),
        "choose": ("--keep", "1", "--column", "classes=texts", "--out", "out.jsonl"),
        "report": ("--by-line", "--quality", "none", "--out", "."),
    }[command]
    if command == "report":
        (tmp_path / "report").mkdir()
        monkeypatch.chdir(tmp_path / "report")
    words = (command, data, "--text-key", "texts", *words)
    assert run_command(monkeypatch, *words) == 3
    shown = capsys.readouterr().err
    assert "Read " in shown
    assert str(secret) in shown
    words = (*words, "--quiet", "--no-texts", *(() if command == "report" else ("--restart",)))
    assert run_command(monkeypatch, *words) == 3
    shown = capsys.readouterr().err
    assert "row 2" in shown
    assert "Read " not in shown
    assert str(secret) not in shown
    (bad,) = Path().glob("*bad.jsonl")
    assert "row" in bad.read_text()
    assert str(secret) not in bad.read_text()


# Without a home and its caches, as in a container.
HOMELESS = """
import json, sys
import text_metrics
from text_metrics.__main__ import main
from text_metrics.files.storage import write_jsonl
from pathlib import Path
sets = json.loads(sys.argv[1])
for name in "ab":
    write_jsonl(Path(f"{name}.jsonl"), [{"id": i, "texts": members} for i, members in enumerate(sets)])
keys = ["--text-key", "texts"]
assert main(["score", "a.jsonl", "--metric", "vendi_embed", *keys, "--history", "nights.jsonl"]) == 0
assert main(["score", "b.jsonl", "--metric", "self_bleu", *keys]) == 0
assert main(["choose", "a.jsonl", *keys, "--keep", "2"]) == 0
assert main(["report", "a.jsonl", "b.jsonl", *keys, "--id-key", "id", "--out", "report"]) == 0
print("scored", text_metrics.load("self_bleu").compute(predictions=["a b", "a c"], max_order=1)["self_bleu"])
text_metrics.load("self_bleu").add_batch(predictions=["a b"])
"""


def test_commands_need_no_home(tmp_path):
    (tmp_path / "home").write_text("a file is no folder, for any user")
    sets = [["The sea is cold.", "A dog barks."], ["Tea.", "No."]]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    done = programs.run(HOMELESS, json.dumps(sets), cwd=tmp_path, env=env)
    assert "scored" in done.stdout, done.stderr
    # A warning is of the texts, not of a line of code.
    assert "Warning: " in done.stderr
    assert "UserWarning" not in done.stderr
    # The last line stores a batch, which needs a folder.
    assert done.stderr.splitlines()[-1].startswith("ValueError")
    assert "HF_HOME" in done.stderr
    assert (tmp_path / "report" / "index.html").exists()
