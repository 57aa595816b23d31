"""What a page says of ordinary inputs, held against the numbers beside it.

Each demo runs as it is built, without a server, on all inputs of tests/data/ordinary_inputs.json.
"""

import itertools
import json
import os
import re
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from scripts.tooling import build_space
from tests.demos import INTERNAL, NAMES, WITH_CONTEXTS

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

INPUTS = json.loads((Path(__file__).parent / "data" / "ordinary_inputs.json").read_text(encoding="utf-8"))
# A visitor has no parameters.
PARAMETER = re.compile(r"\b\w+=|[Pp]ass \w|max_order|self_bleu|\b1 (?:texts|meanings|sets|words)\b")
FEW_PEOPLE = ["kettle × 42", "pot × 21", "saucepan × 9", "microwave × 7", "cup × 3"]


def boxes_of(name, texts):
    """Return what a visitor writes into the boxes of a demo."""
    lines = "\n".join(texts)
    if name == "gruen":
        return [lines.replace("\n", "\n\n")]
    if name == "probeval":
        return ["\n".join(FEW_PEOPLE), lines]
    return ["", lines, "", ""]


PEOPLE = "kettle × 42\nelectric kettle × 8\npot × 21\nsaucepan × 9\nmicrowave × 7\ncup × 13"
ANSWERS = {
    "as people": "kettle × 50\npot × 21\nsaucepan × 9\nmicrowave × 7\ncup × 13",
    "another favourite": "cup × 97\nkettle\npot\nsaucepan",
    "mostly wrong": "helicopter × 90\nkettle × 10",
    "all wrong": "helicopter × 100",
    "one favourite": "kettle × 100",
    "evenly": "kettle × 20\npot × 20\nsaucepan × 20\nmicrowave × 20\ncup × 20",
}
COUNTS = {"kettle": 42, "pot": 21, "cup": 5}
COUNTED = [{"text": text, "count": count} for text, count in COUNTS.items()]
COUNT_FORMS = {"×": "{} × {}", "colon": "{}: {}", "brackets": "{} ({})", "comma": "{}, {}", "tab": "{}\t{}"}
ESSAY = [
    "The council met on Tuesday. Most members were in favour of the bridge.",
    "They want work on it to begin in spring.",
]
TIPS = ["Set two alarms.", "Go to bed earlier.", "Ask a friend to call.", "Open the curtains.", "Drink water."]
LISTS = {
    "plain": TIPS,
    "numbered": [f"{i}. {tip}" for i, tip in enumerate(TIPS, 1)],
    "bracketed": [f"{i}) {tip}" for i, tip in enumerate(TIPS, 1)],
    "dashes": [f"- {tip}" for tip in TIPS],
}
CATS = ["the cat sat on the mat", "the cat lay on the mat", "the dog sat on the mat"]
# Besides the ordinary inputs, for single tests: what is written into the boxes, by kind and name.
MORE = {name: {"lists": {form: boxes_of(name, texts) for form, texts in LISTS.items()}} for name in NAMES}
MORE["self_bleu"]["cats"] = {"cats": boxes_of("self_bleu", CATS)}
# Rows of a file: each text of cats beside a tip, and a text alone.
FOUR_SETS = [[text, f"set {i}"] for i, pair in enumerate(zip(CATS, TIPS, strict=False)) for text in pair]
FOUR_SETS.append(["Rain is wet.", "alone"])
MORE["self_bleu"]["files"] = {"four sets": FOUR_SETS}
MORE["chamfer_diversity"]["files"] = {"four sets": FOUR_SETS}
MORE["probeval"] = {
    "answers": {name: [PEOPLE, model] for name, model in ANSWERS.items()},
    "counts": {
        name: ["\n".join(form.format(*pair) for pair in COUNTS.items()), PEOPLE] for name, form in COUNT_FORMS.items()
    },
    "no counts": {
        "dates": ["June 3, 1990\nmy birthday\nin May", PEOPLE],
        "digits": ["Xbox 360\nNetflix 4\n4x4", PEOPLE],
    },
}
MORE["gruen"]["essays"] = {
    "essay": ["\n\n".join(ESSAY)],
    "heading": ["\n\n".join(["The new bridge", *ESSAY])],
    "equal": ["\n\n".join([ESSAY[0], ESSAY[0]])],
    "two": ["\n---\n".join(ESSAY)],
}


def write_shown(folder, inputs, out):
    """Write what a built demo, alone in its folder, shows of each input."""
    os.chdir(folder)
    sys.path[0] = str(folder)
    app = runpy.run_path("app.py")
    space = app["SPACE"]
    settings = {name: component.value for name, component in space.settings.items()}
    page = sys.modules["_kit.page"]
    shown = {}
    for name, boxes in inputs.items():
        try:
            is_file = isinstance(boxes[0], list)
            rows = [sys.modules["_kit.inputs"].Row(*row) for row in boxes] if is_file else space.rows(*boxes)
            result = space.score(rows, **settings)
            # The table as the page fills it, and the downloads.
            page.filled_table(result.details)
            page.downloads_of(space.metric.name, result)
        except sys.modules["_kit.inputs"].InputError as error:
            shown[name] = {"refused": str(error)}
            continue
        except Exception as error:
            shown[name] = {"error": repr(error)}
            continue
        shown[name] = {
            "result": result.scored.result,
            "is_read": result.scored.is_read,
            "texts": result.texts,
            "cards": [f"{card.name} {card.unit}" for card in result.cards],
            "headlines": [card.headline for card in result.cards],
            "values": [card.value for card in result.cards],
            "ends": [card.ends for card in result.cards],
            "meters": [card.meter for card in result.cards],
            "verdict": result.verdict,
            "notes": [*result.scored.result["warnings"], *result.notes],
            "captions": [drawn.caption for drawn in result.pictures if drawn],
        }
    out.write_text(json.dumps(shown, default=lambda value: np.asarray(value).tolist()), encoding="utf-8")


@pytest.fixture(scope="module")
def shown(built, forks, tmp_path_factory):
    """A function that returns what a demo shows of the ordinary inputs, or of others by the names of `MORE`."""
    folder = tmp_path_factory.mktemp("shown")
    results = {}

    def show(name, more=None):
        if name not in results:
            boxes = {f"/{title}": boxes_of(name, texts) for title, texts in INPUTS.items()}
            for kind, inputs in MORE[name].items():
                boxes |= {f"{kind}/{title}": written for title, written in inputs.items()}
            results[name] = run(forks, built / name, boxes, folder / f"{name}.json")
        prefix = f"{more or ''}/"
        return {title.removeprefix(prefix): page for title, page in results[name].items() if title.startswith(prefix)}

    return show


def run(forks, folder, boxes, out):
    """Return what a built demo shows of each input, in a process of its own."""
    process = forks[0].Process(target=write_shown, args=(folder, boxes, out))
    process.start()
    process.join()
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_no_ordinary_input_ends_in_an_error_of_ours(name, shown):
    failed = {title: page["error"] for title, page in shown(name).items() if "error" in page}
    assert not failed
    for title, page in shown(name).items():
        if "refused" in page:
            assert INTERNAL not in page["refused"]
            # One word has no others to be compared with, and a long text is no answer.
            assert title == ("a long text" if name == "probeval" else "one word"), page["refused"]


@pytest.mark.parametrize("name", NAMES)
def test_words_are_for_visitors(name, shown):
    """No parameter of Python, and no "1 texts"."""
    for title, page in shown(name).items():
        words = [*page.get("headlines", []), page.get("verdict", ""), *page.get("notes", [])]
        for sentence in words:
            assert not PARAMETER.search(sentence), (title, sentence)


@pytest.mark.parametrize("name", NAMES)
def test_cards_show_what_compute_gives(name, shown, load):
    """On the texts that the page says it scored."""
    for title, page in shown(name).items():
        if "refused" in page:
            continue
        result = page["result"]
        expected = [result["gruen"]] if name == "gruen" else [result[name]]
        assert page["values"] == pytest.approx(expected, abs=1e-9), title
        if name in ("self_bleu", "gruen"):
            found = load(name).compute(**page["texts"], **({"singletons": "skip"} if name == "self_bleu" else {}))
            assert found[name] == pytest.approx(result[name], abs=1e-5), title


def test_vendi_counts_things_as_its_headline_says(shown):
    for title, page in shown("vendi_embed").items():
        (headline,) = page["headlines"]
        (value,) = page["values"]
        n = len(page["texts"]["predictions"][0])
        if n == 1 or not page["is_read"]:
            continue
        assert ("nearly the same" in headline) == (value < 1.15), (title, headline, value)
        stated = re.search(r"about ([\d.]+) different", headline)
        if stated:
            assert float(stated[1]) == pytest.approx(value, abs=0.051)
        if "something of its own" in headline:
            assert value > 0.9 * n, (title, headline, value)
        for count in re.findall(r"the two count as ([\d.]+) different", " ".join(page["notes"])):
            assert float(count) < 1.6, (title, page["notes"])


def test_meanings_are_those_of_the_classes(shown):
    for title, page in shown("semantic_entropy").items():
        (headline,) = page["headlines"]
        (detail,) = page["result"]["details"]
        classes = dict(zip(page["texts"]["predictions"][0], detail["classes"], strict=True))
        if headline:
            assert int(re.search(r"(\d+) meaning", headline)[1]) == len(set(classes.values())), title
        for note in page["notes"]:
            pair = re.match("“(.+?)” and “(.+?)”", note)
            if pair:
                is_one = classes[pair[1]] == classes[pair[2]]
                assert is_one == ("one meaning" in note), (title, note)
                assert is_one != ("two meanings" in note), (title, note)
    notes = {title: " ".join(page["notes"]) for title, page in shown("semantic_entropy").items()}
    # The encoder has these in one class, or says why it has not.
    assert "differ only in negation" in notes["yes and no"]
    assert "one contains the other" in notes["a name in a sentence"]


@pytest.mark.parametrize("name", WITH_CONTEXTS)
def test_a_note_on_a_difference_is_on_texts_that_the_metric_finds_alike(name, shown):
    """Good and bad, as not."""
    notes = {
        title: [note for note in page.get("notes", []) if "differ only in" in note]
        for title, page in shown(name).items()
    }
    assert notes["negation"]
    assert not notes["different words"] + notes["no common word"]
    if name != "semantic_entropy":
        assert "negation" in " ".join(notes["antonyms"])
    for note in itertools.chain(*notes.values()):
        assert "%" not in note


def test_no_shared_word_is_the_best_score(shown):
    for title, page in shown("self_bleu").items():
        if "refused" in page:
            continue
        (texts,) = page["texts"]["predictions"]
        words = [set(text.split()) for text in texts]
        is_shared = any(left & right for i, left in enumerate(words) for right in words[:i])
        if "No word is in two texts" in page["verdict"]:
            assert not is_shared, title
            assert page["values"][0] < 1e-6
    assert "No word is in two texts" in shown("self_bleu")["no common word"]["verdict"]


def test_the_words_in_random_order_are_a_mean_of_many(shown):
    """One order of these words repeats a phrase of four words, most do not: the verdict follows the mean."""
    page = shown("self_bleu", "cats")["cats"]
    assert "More repetition in these texts than in shuffled words" in page["verdict"]


def test_markers_of_lists_change_no_score_in_silence(shown):
    """Numbered, with dashes, and plain: one score, and the page says what was removed."""
    for name in ("vendi_embed", "chamfer_diversity", "semantic_entropy", "self_bleu"):
        pages = shown(name, "lists")
        for form, page in pages.items():
            assert page["values"] == pytest.approx(pages["plain"]["values"], abs=1e-6), form
            said = [note for note in page["notes"] if "markers were removed from 5 texts" in note]
            assert len(said) == (form != "plain")
    (texts,) = shown("vendi_embed")["not a list"]["texts"]["predictions"]
    assert texts == INPUTS["not a list"]


def test_a_headline_on_answers_follows_the_divergence(shown):
    pages = shown("probeval", "answers")
    headlines = {name: page["headlines"][0] for name, page in pages.items()}
    values = {name: page["values"][0] for name, page in pages.items()}
    close = [name for name, headline in headlines.items() if "much as people do" in headline]
    assert close == ["as people"]
    assert values["as people"] == min(values.values())
    for name in ("another favourite", "mostly wrong", "all wrong"):
        assert "as people do" not in headlines[name]
    for name in ("mostly wrong", "all wrong"):
        assert "Most of the model's answers" in headlines[name]
        assert pages[name]["result"]["wrong_rate"] > 0.5
    # No answer of people's is as far away as the scale goes.
    assert pages["all wrong"]["meters"][0] == pytest.approx(1)
    assert all(meter < 1 for name, page in pages.items() for meter in page["meters"] if name != "all wrong")


def test_counts_in_each_form(shown):
    pages = shown("probeval", "counts")
    for name in COUNT_FORMS:
        assert pages[name]["texts"]["people"] == COUNTED, name
    pages = shown("probeval", "no counts")
    assert pages["dates"]["texts"]["people"] == [
        {"text": text, "count": 1} for text in ("June 3, 1990", "my birthday", "in May")
    ]
    assert [answer["count"] for answer in pages["digits"]["texts"]["people"]] == [1, 1, 1]


def test_paragraphs_are_one_text(shown):
    """Two equal paragraphs repeat each other, a heading is no text of its own, and a line of dashes divides."""
    pages = shown("gruen", "essays")
    assert [len(page["texts"]["predictions"]) for page in pages.values()] == [1, 1, 1, 2]
    assert pages["equal"]["result"]["non_redundancy"] < 0
    assert "repeats itself" in pages["equal"]["headlines"][0]
    assert pages["heading"]["values"][0] > 0.4
    for page in [*pages.values(), *shown("gruen").values()]:
        (headline,) = page["headlines"]
        if headline:
            assert ("repeats itself" in headline) == (page["result"]["non_redundancy"] <= -0.05)
            assert ("changes its subject" in headline) == (page["result"]["focus"] <= -0.05)
            # The lower end of the scale contradicts no headline.
            assert "fluent" not in page["ends"][0][0]


# An encoder of one's own, by which unrelated texts have cosines near .75.
WARM = """
import numpy as np

class Warm:
    def encode(self, texts):
        rows = np.array([[1.0 + text.count(letter) for letter in "aeinorst"] for text in texts])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return np.concatenate([np.full((len(rows), 1), 1.5), rows], axis=1)

MODEL = Warm()
"""


@pytest.mark.parametrize("name", WITH_CONTEXTS)
def test_words_follow_the_encoder_of_the_demo(name, forks, tmp_path):
    """The map, the scale and the calibration are of the encoder, not of the default one."""
    folder = build_space.build(name, tmp_path)
    scoring = folder / "_kit" / "scoring.py"
    code, n = re.subn(r"^MODEL\b.*$", WARM, scoring.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert n == 1
    scoring.write_text(code, encoding="utf-8")
    out = tmp_path / "shown.json"
    texts = "\n".join(INPUTS["no common word"])
    page = run(forks, folder, {"texts": ["", texts, "", ""]}, out)["texts"]
    joined = re.search(r"from a similarity of ([\d.]+)", " ".join(page["captions"]))
    unrelated = re.search(r"Unrelated texts have ([\d.]+)", " ".join(page["captions"]))
    assert float(unrelated[1]) > 0.9
    assert float(joined[1]) > float(unrelated[1])
    assert not [note for note in page["notes"] if "differ only in" in note]


def test_a_folder_as_encoder_is_not_built(tmp_path, monkeypatch):
    """A Space would not have it."""
    spaces = tmp_path / "spaces"
    shutil.copytree(build_space.SPACES, spaces)
    monkeypatch.setattr(build_space, "SPACES", spaces)
    scoring = spaces / "_kit" / "scoring.py"
    code = scoring.read_text(encoding="utf-8")
    scoring.write_text(re.sub(r"^MODEL\b.*$", f"MODEL = {str(spaces)!r}", code, flags=re.MULTILINE), encoding="utf-8")
    with pytest.raises(ValueError, match="MODEL"):
        build_space.build("vendi_embed", tmp_path / "built")


@pytest.mark.parametrize("name", ["chamfer_diversity", "self_bleu"])
def test_a_mean_counts_the_sets_that_have_a_score(name, shown):
    """Of four sets of a file, one has a single text."""
    page = shown(name, "files")["four sets"]
    assert page["result"]["scores"].count(None) == 1
    (card,) = page["cards"]
    assert re.search(r"(\d+) sets", card)[1] == "3"
    assert [note for note in page["notes"] if "not scored: 1 of 4" in note]
