"""What a report says follows from its numbers, for random systems, and files of its paper say what was done."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

import text_metrics
from scripts.tooling.release import CITATION, cite
from tests.files import write_jsonl
from text_metrics.__main__ import main
from text_metrics.commands.report import parse_options
from text_metrics.files.listing import named_files
from text_metrics.reporting.build import Choices, find_power, steps_of
from text_metrics.reporting.inputs import read_inputs
from text_metrics.reporting.plots import find_fonts
from text_metrics.reporting.results import LENGTHS, Caveat
from text_metrics.reporting.sentences import sentences

WORDS = ["dog", "cat", "rain", "sea", "town", "shop", "train", "field", "apple", "song"]
WORDS += ["king", "tree", "boat", "snow", "lamp", "road", "wolf", "bell", "corn", "moon"]


class Words:
    """An encoder of the words of a text, without order, which needs no model."""

    signature_name = "words"

    def encode(self, texts):
        rows = []
        for text in texts:
            words = text.removesuffix(".").split()
            rows.append([words.count(word) for word in WORDS] + [0.1])
        return np.array(rows, dtype=float)


def text_of(rng, words):
    return " ".join(rng.choice(words, 5)) + "."


def random_systems(seed):
    """Systems of random diversity, of which "a" and "again" are the same, and some share texts with them."""
    rng = np.random.default_rng(seed)
    n_prompts = int(rng.integers(3, 26))
    systems = {"a": [[text_of(rng, WORDS[: 4 + seed]) for _ in range(3)] for _ in range(n_prompts)]}
    for name in "bcd"[: 1 + seed % 3]:
        n_shared = int(rng.integers(0, 3))
        n_words = int(rng.integers(2, len(WORDS)))
        systems[name] = []
        for texts in systems["a"]:
            own = [text_of(rng, WORDS[-n_words:]) for _ in range(3 - n_shared)]
            systems[name].append([*texts[:n_shared], *own])
    names = rng.permutation([*systems, "again"])
    systems["again"] = systems["a"]
    return {str(name): systems[name] for name in names}


def make(systems, **options):
    return text_metrics.report(systems, quality=None, model=Words(), same=None, **options)


@pytest.mark.parametrize("seed", range(6))
def test_identical_systems_are_never_said_to_differ(seed):
    """And no pair is said to be more alike than they are, whatever other systems share."""
    made = make(random_systems(seed))
    names = made.systems
    said = made.sentences
    equal = {names.index("a"), names.index("again")}
    (same,) = (pair for pair in made.likeness.pairs if {pair.a, pair.b} == equal)
    assert same.equal_share == 1
    assert same.p_holm == pytest.approx(1, abs=1e-3)
    assert same.between == pytest.approx(1, abs=1e-6)
    assert same.between - min(pair.between for pair in made.likeness.pairs) < 1e-6
    named = re.search(r"Most alike are (\w+) and (\w+) \(beta ([\d.]+)", said["alike"])
    if named:
        assert float(named[3]) == pytest.approx(1, abs=1e-3)
    level = 1 - made.confidence
    n_different = sum(pair.p_holm < level for pair in made.likeness.pairs)
    assert f"{n_different} of {len(made.likeness.pairs)} pairs" in said["alike"]
    assert ("not all of them say the same" in said["alike"]) == (made.likeness.partition.p < level)
    assert "what they say differs" not in said["alike"]
    # Neither can be first: the other one says as much.
    main_metric = made.metrics[0]
    assert main_metric.best not in equal
    if main_metric.order[0] in equal:
        assert said["first"].startswith("No system is first")
        assert "cannot be told apart from it" in said["first"]
    for metric in made.metrics:
        (test,) = (test for test in metric.tests if {test.a, test.b} == equal)
        assert test.p_holm == 1


def test_two_identical_systems_are_more_alike_than_by_chance():
    systems = random_systems(3)
    made = make({"a": systems["a"], "again": systems["again"]})
    assert made.likeness.partition.p > 0.9
    assert "no difference in what they say is shown" in made.sentences["alike"]
    assert "they share texts (100" in made.sentences["alike"]
    # But not if only rounding tells the share from that of chance.
    equal = replace(made.likeness, partition=replace(made.likeness.partition, share=-1e-17))
    assert "share texts" not in sentences(replace(made, likeness=equal))["alike"]
    # No test of their means is defined, so that no lead is printed.
    assert made.power is None
    assert "truly" not in made.sentences["misleading"]


def test_systems_that_share_texts_are_not_called_more_alike_than_equal_ones():
    """By the share beyond chance, which is bounded below by its chance, they would be."""
    rng = np.random.default_rng(0)
    b = [[text_of(rng, WORDS) for _ in range(3)] for _ in range(20)]
    c = [[*texts[:2], text_of(rng, WORDS)] for texts in b]
    a = [["dog dog dog dog dog.", "dog dog dog dog dog.", "dog dog dog dog cat."]] * 20
    made = make({"a": a, "again": a, "b": b, "c": c})
    share = {(pair.a, pair.b): pair.share for pair in made.likeness.pairs}
    assert share[2, 3] < share[0, 1] < 0
    assert "Most alike are a and again (beta 1.0" in made.sentences["alike"]
    (shared,) = (pair.equal_share for pair in made.likeness.pairs if (pair.a, pair.b) == (2, 3))
    assert shared == pytest.approx(2 / 3)


@pytest.fixture(scope="module")
def five():
    """Five settings of one system, each more diverse than the one before, on 24 prompts."""
    rng = np.random.default_rng(5)
    systems = {}
    for step, n_words in (("0.3", 2), ("0.5", 3), ("0.7", 5), ("1.0", 8), ("1.3", 20)):
        sets = [[text_of(rng, WORDS[:n_words]) for _ in range(4)] for _ in range(24)]
        systems[f"T={step}"] = sets
    return systems


@pytest.fixture(scope="module")
def made_of_five(five):
    return make(five)


def test_other_metrics_are_named_unless_the_lengths_doubt_them(made_of_five):
    made = made_of_five
    best = made.metrics[0].best
    assert made.systems[best] == "T=1.3"
    others = [metric for metric in made.section("diversity")[1:] if metric.better is not None]
    agreeing = [metric.title for metric in others if metric.best == best]
    (said,) = re.findall(r"It is first by (.*?), too", made.sentences["first"])
    assert re.split(", | and ", said) == agreeing
    assert len(agreeing) > 1
    doubt = Caveat(LENGTHS, "", [best], [metric.name for metric in others[1:]], is_doubt=True)
    made.caveats.append(doubt)
    said = sentences(made)["first"]
    made.caveats.remove(doubt)
    assert f"It is first by {others[0].title}, too." in said
    assert f"on which {', '.join(metric.title for metric in others[1:-1])} and {others[-1].title} depend" in said


def test_lengths_of_people_do_not_doubt_the_order_of_systems(five):
    people = [[f"{'dog ' * 20}{word}." for word in ("cat", "rain")]] * 24
    made = make({"a": five["T=0.3"], "b": five["T=1.3"]}, people=people)
    doubts = {caveat.kind: caveat for caveat in made.caveats}
    assert LENGTHS not in doubts
    assert doubts["lengths beside people"].systems == [0, 1]
    assert "differ in length" not in made.sentences["first"]


def test_the_p_of_the_next_system_is_its_own(five):
    made = make({name: five[name] for name in ("T=1.3", "T=0.3", "T=1.0")})
    metric = made.metrics[0]
    leader, following, *_ = metric.order
    (test,) = (test for test in metric.tests if {test.a, test.b} == {leader, following})
    said = made.sentences["first"].replace("\u00a0", " ")
    (p,) = re.findall(r"the next \(p [<=] (\d\.\d+)", said)
    assert float(p) == pytest.approx(test.p_holm, abs=0.0011)


def test_every_caveat_names_systems_and_metrics(five):
    odd = {"odd": [["", "Dog cat <think>rain</think> sea town."]] * 24, "even": five["T=0.5"]}
    prompts = [f"Write about the number {i}." for i in range(24)]
    made = make(odd, prompts=prompts)
    kinds = {caveat.kind for caveat in made.caveats}
    assert {"sets of different sizes", "empty texts", "prompts not taken out", "reasoning in texts"} <= kinds
    for caveat in made.caveats:
        # Who calls the library has no options of the command.
        assert "--" not in caveat.sentence
        assert caveat.systems, caveat.kind
        assert set(caveat.metrics) & {metric.name for metric in made.metrics}, caveat.kind
        # Only what says nothing makes numbers unreliable.
        for metric in made.metrics:
            if metric.name in caveat.metrics and not caveat.is_doubt:
                assert not any(metric.values[i].is_reliable for i in caveat.systems)


def test_pairs_may_differ_where_all_together_do_not():
    """Identical systems hide in the test of all that another one differs."""
    rng = np.random.default_rng(2)
    a = [[text_of(rng, WORDS[:12]) for _ in range(3)] for _ in range(24)]
    b = [[text_of(rng, WORDS[4:16]) for _ in range(3)] for _ in range(24)]
    made = make({"a": a, "again": a, "third": a, "b": b})
    assert made.likeness.partition.p > 0.05
    n_different = sum(pair.p_holm < 0.05 for pair in made.likeness.pairs)
    assert n_different > 0
    assert f"But {n_different} of 6 pairs differ" in made.sentences["alike"]


def test_a_difference_without_a_test_is_not_called_equal(five):
    """Ratings that differ by 2 on every prompt have no spread."""
    systems = {name: five[name] for name in ("T=0.7", "T=1.0", "T=1.3")}
    ratings = {name: [[score] * 4] * 24 for name, score in zip(systems, (3.0, 5.0, 3.0), strict=True)}
    said = text_metrics.report(systems, quality=ratings, model=Words(), same=None).sentences["quality"]
    assert "T=1.0 has a mean quality (rating) of 5.0" in said
    assert "cannot be told apart" not in said
    assert "no test is defined of its difference from T=0.7 and T=1.3" in said
    said = make({name: sets[:1] for name, sets in systems.items()}).sentences["first"]
    assert "cannot be told apart" not in said
    assert "on one prompt" in said


def test_quality_is_compared_by_the_tests_of_the_page(five):
    rng = np.random.default_rng(4)
    means = {"T=0.3": 0.9, "T=1.0": 0.1, "T=0.7": 0.5, "T=1.3": 0.5}
    ratings = {name: rng.normal(mean, 0.1, (24, 4)).tolist() for name, mean in means.items()}
    made = text_metrics.report({name: five[name] for name in means}, quality=ratings, model=Words(), same=None)
    tests = made.tests.set_index(["metric", "a", "b"]).loc["quality"]
    assert (tests["p_holm"].drop(("T=0.7", "T=1.3")) < 0.05).all()
    assert tests.loc[("T=0.7", "T=1.3"), "p_holm"] > 0.05
    assert "T=1.3 is first, with" in made.sentences["first"]
    assert "lower in quality than T=0.3 (" in made.sentences["first"]


def test_a_rank_of_pairs_needs_intervals_that_do_not_overlap():
    """Three systems of one distribution are as alike as each other."""
    rng = np.random.default_rng(3)
    systems = {name: [[text_of(rng, WORDS) for _ in range(3)] for _ in range(8)] for name in "abc"}
    made = make(systems)
    low = made.likeness.pairs[-1]
    high = made.likeness.pairs[0]
    assert low.between_interval[1] > high.between_interval[0]
    assert "Most alike" not in made.sentences["alike"]


def test_no_lead_is_printed_that_is_impossible(tmp_path):
    """Vendi scores of three texts are 1 to 3."""
    rng = np.random.default_rng(1)
    systems = {name: [[text_of(rng, WORDS) for _ in range(3)] for _ in range(3)] for name in "abcd"}
    made = make(systems, difference=0.2, out=tmp_path)
    assert made.power.smallest_lead is None
    assert made.power.n_needed > 3
    assert "truly" not in made.sentences["misleading"]
    assert f"{made.power.n_needed} prompts" in made.sentences["misleading"]
    assert "every possible lead" in (tmp_path / "methods.tex").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="difference must be at most 2"):
        make(systems, difference=2.1)
    assert "more than 16,777,216 prompts" in make(systems, difference=1e-9).sentences["misleading"]
    # Nor is a question left without an answer where no test is defined.
    same = {"a": systems["a"], "again": systems["a"]}
    assert "0.2 needs cannot be told" in make(same, difference=0.2).sentences["misleading"]


def test_what_a_metric_cannot_measure_has_no_place(five):
    """Neither in quality, nor among texts of the same length."""
    texts = five["T=0.5"]
    foreign = [["Der Hund bellt laut im Garten und die Katze schläft auf dem alten Sofa."] * 4] * 24
    chinese = [["猫在睡觉,狗在公园里大声叫,天正在下雨。"] * 4] * 24
    rated = {"en": texts, "de": foreign, "zh": chinese}
    made = text_metrics.report(rated, model=Words(), same=None)
    quality = made.section("quality")[0]
    assert [value.is_reliable for value in quality.values] == [True, False, False]
    assert "en has a mean quality" in made.sentences["quality"]
    assert "lower quality" not in made.sentences["quality"]
    assert "lowest" not in made.sentences["first"]
    made = make({"en": texts, "zh": chinese}, same_length=True)
    cut = made.same_length.metrics[0]
    unread = replace(cut, values=[replace(value, is_reliable=False) for value in cut.values])
    made = replace(made, same_length=replace(made.same_length, metrics=[unread]))
    assert "no system can be first" in sentences(made)["misleading"]
    # What was done is not advised.
    (said,) = (caveat.sentence for caveat in made.caveats if caveat.kind == LENGTHS)
    assert "same_length" not in said


def test_steps_of_one_parameter_are_in_numeric_order(five, tmp_path):
    given = dict(reversed(five.items()))
    made = make(given, order=True, out=tmp_path)
    assert [made.systems[i] for i in made.order] == list(five)
    assert made.are_steps
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| T=")]
    assert rows[:5] == list(five)
    assert list(made.table.index) == list(five)
    svg = (tmp_path / "figures" / "diversity.svg").read_text(encoding="utf-8")
    assert re.findall(r">(T=[\d.]+)<", svg) == list(five)
    # By default, the most diverse one is first.
    by_score = make(given)
    assert [by_score.systems[i] for i in by_score.order] == list(given)
    # Every table and every sum has this order, and the numbers go with their systems.
    assert made.systems == list(five)
    assert made.tests[["a", "b"]].iloc[0].tolist() == ["T=0.3", "T=0.5"]
    for name in five:
        assert made.table.loc[name].tolist() == pytest.approx(by_score.table.loc[name].tolist(), nan_ok=True)
    # Ratings and classes stay with their system.
    given = {name: given[name][:3] for name in ("T=1.3", "T=0.3")}
    numbers = {name: float(name[2:]) for name in given}
    ratings = {name: [[numbers[name]] * 4] * 3 for name in given}
    labels = {name: [["a", "a", "a", "a" if name == "T=0.3" else "b"]] * 3 for name in given}
    options = {"quality": ratings, "classes": labels, "order": True}
    shown = text_metrics.report(given, model=Words(), **options).table
    assert shown["quality"].to_dict() == pytest.approx(numbers)
    assert shown["n_classes"].tolist() == [1, 2]
    # Names without one number that differs stay in the order given.
    named = {"small": five["T=1.0"][:3], "large": five["T=0.3"][:3], "huge": five["T=1.3"][:3]}
    made = make(named, order=True)
    assert (made.order, made.are_steps) == ([0, 1, 2], False)


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["1.0", "0.7"], [1.0, 0.7]),
        (["step-1000", "step-500"], [1000, 500]),
        (["lr=1e-5 v2", "lr=2e-4 v2"], [1e-5, 2e-4]),
        (["T=-1", "T=0"], [-1, 0]),
        (["T=1 p=0.9", "T=2 p=0.5"], None),
        (["T=1", "p=2"], None),
        (["a", "b"], None),
    ],
)
def test_the_number_of_a_step(names, steps):
    assert steps_of(names) == steps


def test_a_name_may_have_an_equals_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.jsonl", "T=1.jsonl", "x=y.jsonl"):
        (tmp_path / name).touch()
    files = named_files(["T=0.3=a.jsonl", "p=0.9=x=y.jsonl", "T=1.jsonl", "T=2=*.jsonl"])
    expected = {"T=0.3": "a.jsonl", "p=0.9": "x=y.jsonl", "T=1": "T=1.jsonl", "T=2": "*.jsonl"}
    assert {name: str(path) for name, path in files.items()} == expected


def rows_of(systems):
    rows = []
    for name, sets in systems.items():
        for i, texts in enumerate(sets):
            rows += [{"n": i, "ask": f"Write about the number {i}.", "text": text, "T": name} for text in texts]
    return rows


def test_a_table_makes_the_report_of_lists(five):
    from datasets import Dataset

    systems = {name: five[name] for name in ("T=0.3", "T=0.5", "T=1.3")}
    expected = make(systems, prompts=[str(i) for i in range(24)])
    frame = pd.DataFrame(rows_of(systems)).sample(frac=1, random_state=0)
    for table in (frame, Dataset.from_pandas(frame, preserve_index=False)):
        made = make(table, text="text", id="n", system="T")
        scores = made.table["vendi_embed"].to_dict()
        assert scores == pytest.approx(expected.table["vendi_embed"].to_dict())
        # A column with one value for each prompt is offered.
        (said,) = (caveat.sentence for caveat in made.caveats if caveat.kind == "prompts not taken out")
        assert 'contexts="ask"' in said
    taken_out = make(frame, text="text", id="n", system="T", contexts="ask")
    assert "contexts" in taken_out.metrics[0].signature
    assert taken_out.collapse[0][0].context.startswith("Write about the number")
    # Rows that repeat others are named as such; the advice is for who calls the library.
    people = frame[frame["T"] == "T=0.5"]
    made = make(pd.concat([people, people]), text="text", id="n", people=people)
    assert made.people.n_prompts == 24
    assert "repeated rows" in {caveat.kind for caveat in made.caveats}
    assert not [caveat for caveat in made.caveats if "--" in caveat.sentence]


def test_a_faulty_table_is_named(five):
    from datasets import Dataset, DatasetDict

    frame = pd.DataFrame(rows_of(five))
    with pytest.raises(ValueError, match="'nowhere'"):
        make(frame, text="nowhere", id="n")
    with pytest.raises(ValueError, match="text and id"):
        make(frame, text="text")
    with pytest.raises(ValueError, match=r"seems to hold 5 systems.*system=T"):
        make(frame, text="text", id="n")
    with pytest.raises(TypeError, match="splits"):
        make(DatasetDict(train=Dataset.from_pandas(frame)), text="text", id="n", system="T")
    with pytest.raises(ValueError, match="different names"):
        make(pd.concat([frame, frame["T"]], axis=1), text="text", id="n", system="T")
    numbered = frame.assign(**{"T": frame["T"].str[2:].astype(float)}).rename(columns={"ask": 0})
    assert make(numbered, text="text", id="n", system="T").systems == ["0.3", "0.5", "0.7", "1", "1.3"]
    frame.loc[7, "text"] = None
    with pytest.raises(ValueError, match="row 8"):
        make(frame, text="text", id="n", system="T")
    with pytest.raises(TypeError, match="table"):
        make(five, text="text", id="n")


def test_without_meanings_and_with_one_bar(five, capsys):
    made = make({"a": five["T=0.3"], "b": five["T=1.3"]}, progress=True)
    assert "n_classes" not in {metric.name for metric in made.metrics}
    shown = capsys.readouterr().err
    assert set(re.findall(r"(\w+): +\d+%", shown)) == {"Report"}


def test_a_notebook_shows_the_head_and_a_table(made_of_five):
    html = made_of_five._repr_html_()
    assert html.count("<table") == 1
    assert made_of_five.sentences["first"].split(",")[0] in html
    assert all(name in html for name in made_of_five.systems)


def test_no_float_is_longer_than_a_page(five, tmp_path):
    """Tests of many systems are of the first one in the paper's table, and of all in the appendix, in pieces."""
    systems = {f"{name} {i}": sets[:4] for name, sets in list(five.items())[:4] for i in range(2)}
    made = make(systems, out=tmp_path)
    n_tests = {"table.tex": len(systems) - 1, "tables.tex": len(made.metrics[0].tests)}
    for name, n in n_tests.items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.count(r"{\scriptsize $-$ T=") == n
        # A system, or a pair, has two lines.
        assert all(each.count("\\\\\n") < 45 for each in text.split(r"\begin{table")[1:])
        assert len(set(re.findall(r"\\label{.*}", text))) == text.count(r"\label{")


def test_how_many_prompts_a_lead_needs(five):
    made = make(five, difference=0.5)
    few = made.power
    assert f"A lead of 0.5 needs about {few.n_needed} prompts" in made.sentences["misleading"]
    assert "so few prompts" not in made.sentences["misleading"]
    shorter = make({name: sets[:19] for name, sets in list(five.items())[3:]})
    assert "so few prompts" in shorter.sentences["misleading"]
    many = find_power(made.metrics[0], Choices(difference=0.05))
    assert few.n_needed < many.n_needed
    assert few.smallest_lead == many.smallest_lead
    lead = find_power(made.metrics[0], Choices(difference=few.smallest_lead)).n_needed
    assert lead == pytest.approx(24, abs=2)
    with pytest.raises(ValueError, match="difference"):
        make(five, difference=0)


def test_the_command_records_what_was_used(tmp_path, capsys, five):
    """And says that a report is overwritten only once it is."""
    rows = rows_of({name: five[name][:3] for name in ("T=0.3", "T=1.3")})
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    words = ["report", str(data), "--text-key", "text", "--id-key", "n", "--quiet", "--out", str(tmp_path / "out")]
    words += ["--setting", "same=none"]
    assert main([*words, "--system-key", "T", "--quality", "none", "--order", "--difference", "0.5"]) == 0
    made = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert made["options"]["quality"] == "none"
    assert made["power"]["difference"] == 0.5
    capsys.readouterr()
    assert main([*words, "--system-key", "nowhere"]) == 2
    assert "overwritten" not in capsys.readouterr().err
    inputs = read_inputs(parse_options([*words[1:], "--system-key", "T"]))
    assert inputs.context_column == "ask"
    methods = (tmp_path / "out" / "methods.tex").read_text(encoding="utf-8")
    assert "4 texts of each system" in methods
    assert f"version {made['version']}" in methods
    assert "GRUEN" not in methods
    assert made["version"] in (tmp_path / "out" / "refs.bib").read_text(encoding="utf-8")


def test_names_that_pdflatex_does_not_set_are_named(tmp_path, five):
    """In figures, too, unless an installed font has them."""
    sets = list(five.values())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make({"模型": sets[0], "Zoë": sets[4]}, out=tmp_path)
        fonts = find_fonts("模型")
    about_fonts = [str(each.message) for each in caught if "font" in str(each.message)]
    assert len(about_fonts) == (0 if len(fonts) > 1 else 2)
    assert all("型" in message and "Zoë" not in message for message in about_fonts)
    assert find_fonts("Zoë α") == find_fonts("a")
    for name in ("table.tex", "tables.tex", "methods.tex"):
        (line,) = (line for line in (tmp_path / name).read_text(encoding="utf-8").splitlines() if "lualatex" in line)
        assert line.startswith("%")
        assert "模型" in line
        assert "Zoë" not in line


def test_a_release_fills_the_citation():
    text = CITATION.read_text(encoding="utf-8")
    cited = cite(text, "3.10", "2030-01-02", "https://example.org/a")
    values = yaml.safe_load(cited)
    assert values["version"] == "3.10"
    assert str(values["date-released"]) == "2030-01-02"
    assert values["repository-code"] == "https://example.org/a"
    # What is not known stays, and the rest, too.
    assert cite(cited, "3.10", "2030-01-02", None).count("repository-code") == 1
    assert values.items() >= {"type": "software", "license": "Apache-2.0"}.items()
