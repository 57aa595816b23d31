"""What a page and the endpoint say of inputs, held against the numbers beside it.

Each demo runs as it is built, without a server, on all inputs of tests/data/ordinary_inputs.json.
"""

import itertools
import json
import os
import re
import runpy
import sys

import numpy as np
import pandas as pd
import pytest

from scripts.tooling import build_space
from tests.conftest import ROOT
from tests.demos import INTERNAL, NAMES, SECRET, WITH_CONTEXTS

pytest_plugins = ["tests.demo_servers"]
pytestmark = pytest.mark.slow

INPUTS = json.loads((ROOT / "tests/data/ordinary_inputs.json").read_text(encoding="utf-8"))
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
# No phrase of four words is shared.
RED_CATS = ["the red cat sat", "a red cat ran", "one red cat lay here"]
LATE = ["She was late as she missed the bus.", "She was late as it rained.", "Late? No."]
QUESTION = "Why was she late?"
PAIRS = {
    "the order of words": ("The dog bit the man.", "The man bit the dog."),
    "negation": ("The drug is safe.", "The drug is unsafe."),
    "numbers": ("It sank in 1912.", "It sank in 1913."),
    "names": ("She moved to Spain.", "She moved to Portugal."),
}
FRENCH = ["Le chat dort sur le canapé.", "La pluie tombe sur la ville.", "Il chante très mal ce soir."]
# Of texts, what a note says of their language, if it says anything: only sentences are judged.
LANGUAGES = {
    "dishes": (["Spaghetti alla carbonara", "Boeuf bourguignon", "Sauerbraten mit Rotkohl"], None),
    "formulas": (["E = mc^2", "int_0^infty exp(-x^2) dx = sqrt(pi)/2"], None),
    "names": (["Wolfgang Amadeus Mozart", "Johann Sebastian Bach, Ludwig van Beethoven, Giuseppe Verdi"], None),
    "one of two": ([FRENCH[0], "The cat sleeps."], "1 of 2 different texts seems not to be in English"),
    "other scripts": (["هذا نص باللغة العربية كتب اليوم.", "שלום עולם.", "هل هو قادم؟"], "3 of 3 different texts"),
}
# Besides the ordinary inputs, for single tests: what is written into the boxes, by kind and name.
MORE = {name: {"lists": {form: boxes_of(name, texts) for form, texts in LISTS.items()}} for name in NAMES}
for name in WITH_CONTEXTS:
    MORE[name]["pairs"] = {"pairs": boxes_of(name, itertools.chain(*PAIRS.values()))}
    MORE[name]["languages"] = {kind: boxes_of(name, texts) for kind, (texts, _) in LANGUAGES.items()}
    MORE[name]["questions"] = {prompt: boxes_of(name, LATE) for prompt in ("", QUESTION)}
MORE["self_bleu"]["cats"] = {"cats": boxes_of("self_bleu", CATS), "red cats": boxes_of("self_bleu", RED_CATS)}
# Rows of a file: each text of cats beside a tip, and a text alone.
FOUR_SETS = [[text, f"set {i}"] for i, pair in enumerate(zip(CATS, TIPS, strict=False)) for text in pair]
FOUR_SETS.append(["Rain is wet.", "alone"])
ANIMALS = ["A cat sleeps.", "Shares fell.", "Rain is wet.", "He sings."]
SIZES = {"w": 1, "x": 3, "y": 2, "z": 4}
MORE["self_bleu"]["files"] = {"four sets": FOUR_SETS}
MORE["chamfer_diversity"]["files"] = {"four sets": FOUR_SETS}
MORE["vendi_embed"]["files"] = {"sizes": [[text, name] for name, n in SIZES.items() for text in ANIMALS[:n]]}
MORE["probeval"] = {
    "answers": {name: [PEOPLE, model] for name, model in ANSWERS.items()},
    "counts": {
        name: ["\n".join(form.format(*pair) for pair in COUNTS.items()), PEOPLE] for name, form in COUNT_FORMS.items()
    },
    "no counts": {
        "dates": ["June 3, 1990\nmy birthday\nin May", PEOPLE],
        "digits": ["Xbox 360\nNetflix 4\n4x4", PEOPLE],
    },
    # The same answers on both sides are the same texts.
    "languages": {"French": ["\n".join(FRENCH)] * 2},
}
MORE["gruen"]["essays"] = {
    "essay": ["\n\n".join(ESSAY)],
    "heading": ["\n\n".join(["The new bridge", *ESSAY])],
    "equal": ["\n\n".join([ESSAY[0], ESSAY[0]])],
    "two": ["\n---\n".join(ESSAY)],
}

LONG = "word " * 2_000
MANY = [f"{SECRET} {i}" for i in range(500)]
PAIR = [[SECRET, "b"]]
# For the endpoint of sets, of texts, and of people's and a model's answers: the data, and a word of the reason.
NOT_SETS = [
    ([[]], "no text"),
    ([[["a"], []]], "empty"),
    ([[SECRET]], "list of sets"),
    ([[["a", None]]], "must be a string"),
    ([[["a", {"path": "/etc/passwd"}]]], "must be a string"),
    ([[[SECRET, LONG]]], "too long"),
    ([[MANY]], "Too many texts"),
    ([PAIR * 60], "Too many sets"),
    ([PAIR, *[1] * 9], "too many positional arguments"),
]
NOT_TEXTS = [
    ([[]], "no text"),
    ([SECRET], "no text"),
    ([[3]], "must be a string"),
    ([[LONG]], "too long"),
    ([MANY], "Too many texts"),
]
NOT_ANSWERS = [
    ([[], ["a"]], "missing"),
    ([["a"], []], "missing"),
    ([SECRET, ["a"]], "list of texts"),
    ([["a"], [3]], "list of texts"),
    ([["a"], [LONG]], "too long"),
    ([["a"]], "missing a required argument: 'model'"),
]
NOT_SETTINGS = {
    "vendi_embed": [0, 6, "1; drop", None, True, [SECRET]],
    "semantic_entropy": [0.1, 2, SECRET, [1]],
    "self_bleu": [0, 9, 1.5, SECRET, None],
}
NOT_CONTEXTS = [SECRET, [], [3], [SECRET, SECRET], [LONG]]


def refused(name):
    """Return data that the endpoint of a demo refuses, with a word of the reason."""
    rows = [([PAIR, value], "must be") for value in NOT_SETTINGS.get(name, [])]
    if name in WITH_CONTEXTS:
        default = {"vendi_embed": [1], "semantic_entropy": [0.83]}.get(name, [])
        rows += [([PAIR, *default, value], "contexts") for value in NOT_CONTEXTS]
    return rows + {"gruen": NOT_TEXTS, "probeval": NOT_ANSWERS}.get(name, NOT_SETS)


MARKED = ["<think>Rivers.</think>Paris is the capital.", "Paris is the capital.</s>"]


def marked_calls(name):
    """Return calls of texts that hold what is not the answer: without contexts, and with contexts that they repeat."""
    call = {"gruen": [MARKED], "probeval": [["Paris"], MARKED]}.get(name, [[MARKED]])
    return [call, [[["Where is it? Nice", "Lyon"]], ["Where is it?"]]] if name == "chamfer_diversity" else [call]


def write_shown(folder, inputs, calls, out):
    """Write what a built demo, alone in its folder, shows of each input, and answers to each call of its endpoint."""
    os.chdir(folder)
    sys.path[0] = str(folder)
    app = runpy.run_path("app.py")
    kit = {name: sys.modules[f"_kit.{name}"] for name in ("inputs", "page", "panels", "server")}
    space = app["SPACE"]
    pages = {}
    for name, boxes in inputs.items():
        settings = {name: component.value for name, component in space.settings.items()}
        if name.endswith(QUESTION):
            settings["prompt"] = QUESTION
        try:
            is_file = isinstance(boxes[0], list)
            rows = [kit["inputs"].Row(*row) for row in boxes] if is_file else space.rows(*boxes)
            result = space.score(rows, **settings)
            # What the page shows besides, and the downloads.
            answer, *_ = kit["page"]._shown(space, "0", result)
        except kit["inputs"].InputError as error:
            pages[name] = {"refused": str(error)}
            continue
        except Exception as error:
            pages[name] = {"error": repr(error)}
            continue
        drawn = dict(zip([picture.title for picture in space.pictures], result.pictures, strict=True))
        heat = drawn.get("Similarity of the texts")
        copies = result.details.get("Near duplicate of no.", pd.Series()).astype(object)
        pages[name] = {
            "result": result.scored.result,
            "is_read": result.scored.is_read,
            "texts": result.texts,
            "settings": settings,
            "cards": [f"{card.name} {card.unit}" for card in result.cards],
            "headlines": [card.headline for card in result.cards],
            "values": [card.value for card in result.cards],
            "ends": [card.ends for card in result.cards],
            "meters": [card.meter for card in result.cards],
            "ranking": [row.name for row in result.ranking],
            "verdict": result.verdict,
            "notes": [*result.scored.result["warnings"], *result.notes],
            "captions": [panel.caption for panel in result.pictures if panel],
            "heat": heat.content.data[0].z if heat else None,
            "adds": list(result.details["Adds"]) if "Adds" in result.details else None,
            "copies": copies.where(copies.notna(), None).tolist(),
            "duplicates": drawn["Near duplicates"].content if "Near duplicates" in drawn else None,
            "answer": answer,
        }
    answers = []
    for data in calls:
        try:
            answers.append(space.api(*kit["server"].completed(space.api, data)))
        except Exception as error:
            answers.append(kit["server"].shown_error(error).message)
    written = json.dumps([pages, answers], default=lambda value: np.asarray(value).tolist())
    out.write_text(written, encoding="utf-8")


def run(forks, folder, inputs, calls, out):
    """Return what a built demo shows and answers, in a process of its own."""
    process = forks[0].Process(target=write_shown, args=(folder, inputs, calls, out))
    process.start()
    process.join()
    return json.loads(out.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def everything(built, forks, tmp_path_factory):
    """A function that returns the pages and the answers of a demo: it runs once."""
    folder = tmp_path_factory.mktemp("shown")
    results = {}

    def show(name):
        if name not in results:
            inputs = {f"/{title}": boxes_of(name, texts) for title, texts in INPUTS.items()}
            for kind, more in MORE[name].items():
                inputs |= {f"{kind}/{title}": written for title, written in more.items()}
            calls = [data for data, _ in refused(name)] + marked_calls(name)
            results[name] = run(forks, built / name, inputs, calls, folder / f"{name}.json")
        return results[name]

    return show


@pytest.fixture(scope="module")
def shown(everything):
    """A function that returns what a demo shows of the ordinary inputs, or of others by the names of `MORE`."""

    def show(name, more=""):
        pages, _ = everything(name)
        return {title.removeprefix(f"{more}/"): page for title, page in pages.items() if title.startswith(f"{more}/")}

    return show


@pytest.mark.parametrize("name", NAMES)
def test_what_the_api_refuses(name, everything):
    for (data, reason), answer in zip(refused(name), everything(name)[1], strict=False):
        assert isinstance(answer, str), (str(data)[:80], answer)
        assert reason in answer, (str(data)[:80], answer)
        assert INTERNAL not in answer


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_the_answer_is_named(name, everything, shown):
    answer, *others = everything(name)[1][len(refused(name)) :]
    (note,) = [warning for warning in answer["warnings"] if "<think>" in warning]
    assert "1 of 2 texts hold reasoning" in note
    assert "1 of 2 texts hold special tokens (</s>)" in note
    assert "--strip reasoning,special " in note
    for repeats in others:
        assert any("1 of 2 texts begin with their prompt" in warning for warning in repeats["warnings"]), repeats[
            "warnings"
        ]
    assert not any("--strip" in warning for warning in shown(name)["no common word"]["notes"])


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
        for sentence in [*page.get("headlines", []), page.get("verdict", ""), *page.get("notes", [])]:
            assert not PARAMETER.search(sentence), (title, sentence)


@pytest.mark.parametrize("name", NAMES)
def test_cards_show_what_compute_gives(name, shown, load):
    """On the texts that the page says it scored."""
    for title, page in shown(name).items():
        if "refused" in page:
            continue
        result = page["result"]
        assert page["values"] == pytest.approx([result[name]], abs=1e-9), title
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
        for title, page in (shown(name) | shown(name, "pairs")).items()
    }
    expected = [f"“{first}” and “{second}” differ only in {kind}" for kind, (first, second) in PAIRS.items()]
    assert [note.partition(":")[0] for note in notes.pop("pairs")] == expected
    assert notes["negation"]
    assert not notes["different words"] + notes["no common word"]
    if name != "semantic_entropy":
        assert "negation" in " ".join(notes["antonyms"])
    for note in itertools.chain(*notes.values()):
        assert "%" not in note


@pytest.mark.parametrize("name", [*WITH_CONTEXTS, "probeval"])
def test_only_sentences_are_judged_by_their_language(name, shown):
    for kind, page in shown(name, "languages").items():
        said = LANGUAGES[kind][1] if kind in LANGUAGES else "3 of 3 different texts seem not to be in English"
        notes = " ".join(page["notes"])
        assert (said or "") in notes, kind
        assert ("in English" in notes or "different texts" in notes) == bool(said), kind
        if name != "probeval":
            assert bool(page["headlines"][0]) == (not said), kind


@pytest.mark.parametrize("name", WITH_CONTEXTS)
def test_what_was_asked_is_taken_out(name, shown, load):
    for prompt, page in shown(name, "questions").items():
        expected = load(name).compute(predictions=LATE, **({"contexts": prompt} if prompt else {}))
        assert page["values"] == pytest.approx(expected["scores"], abs=1e-5)
        assert ("contexts:projected" in page["result"]["signature"]) == bool(prompt)


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


def test_two_zeros_are_no_comparison(shown):
    """The texts are compared by the longest phrases that one side shares."""
    page = shown("self_bleu", "cats")["red cats"]
    assert page["values"][0] < 1e-6 < 0.1 < page["result"]["self_bleu_2"]
    assert "phrases of two words" in page["verdict"]
    assert "As much" not in page["verdict"]
    assert "No phrase of four words is shared" in page["headlines"][0]
    assert "nothing repeated" not in page["answer"]


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


@pytest.mark.parametrize("name", ["chamfer_diversity", "self_bleu"])
def test_a_mean_counts_the_sets_that_have_a_score(name, shown):
    """Of four sets of a file, one has a single text."""
    page = shown(name, "files")["four sets"]
    assert page["result"]["scores"].count(None) == 1
    (card,) = page["cards"]
    assert re.search(r"(\d+) sets", card)[1] == "3"
    assert [note for note in page["notes"] if "not scored: 1 of 4" in note]


def test_many_sets_are_ranked(shown):
    page = shown("vendi_embed", "files")["sizes"]
    assert page["ranking"] == ["D: z", "B: x", "C: y", "A: w"]
    assert re.findall(r"<bdi>(.*?)</bdi>", page["answer"]) == page["ranking"]


def test_near_duplicates_are_below_the_first_of_them(shown):
    pages = shown("chamfer_diversity")
    equal = pages["equal texts"]
    assert equal["copies"] == [None, 1, 1]
    assert equal["duplicates"].count("She was late.") == 3
    different = pages["no common word"]
    assert different["copies"] == [None, None, None]
    assert "The cat sleeps." not in different["duplicates"]


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
def test_all_follows_the_encoder_of_the_demo(name, load, forks, tmp_path):
    """MODEL of the kit is the one place: numbers, figures, the scale and the calibration are by this encoder."""
    folder = build_space.build(name, tmp_path)
    scoring = folder / "_kit" / "scoring.py"
    code, n = re.subn(r"^MODEL\b.*$", WARM, scoring.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert n == 1
    scoring.write_text(code, encoding="utf-8")
    texts = ["A man walks his dog.", "A dog is walked.", "Rain fell all night.", "It rained until the morning."]
    inputs = {"texts": boxes_of(name, texts), "words": boxes_of(name, INPUTS["no common word"])}
    pages, _ = run(forks, folder, inputs, [], tmp_path / "shown.json")
    captions = " ".join(pages["words"]["captions"])
    joined = re.search(r"from a similarity of ([\d.]+)", captions)
    unrelated = re.search(r"Unrelated texts have ([\d.]+)", captions)
    assert float(unrelated[1]) > 0.9
    assert float(joined[1]) > float(unrelated[1])
    assert not [note for note in pages["words"]["notes"] if "differ only in" in note]

    namespace = {}
    exec(WARM, namespace)
    warm = namespace["MODEL"]
    rows = warm.encode(texts)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    page = pages["texts"]
    assert np.array(page["heat"]) == pytest.approx(rows @ rows.T, abs=1e-6)
    # Without a calibrated threshold, the page begins at one that follows the encoder.
    given = {"same": page["settings"]["same"]} if name == "semantic_entropy" else {}

    def score(predictions):
        return load(name).compute(predictions=predictions, model=warm, **given)[name]

    assert page["result"][name] == pytest.approx(score(texts), abs=1e-6)
    assert "Warm" in page["result"]["signature"]
    if page["adds"]:
        without = [score(texts[:i] + texts[i + 1 :]) for i in range(len(texts))]
        assert page["adds"] == pytest.approx([score(texts) - value for value in without], abs=1e-6)
