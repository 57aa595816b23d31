"""What the demos say of a score: no verdict without ground, and no word that the numbers beside it contradict.

The apps run here as they are built, in this process, without a page.
"""

import contextlib
import html
import json
import random
import re
import sys
import warnings
from importlib import import_module
from typing import NamedTuple

import numpy as np
import pytest
import tqdm.auto
from gradio import processing_utils

import text_metrics
from spaces._kit import examples, language
from spaces._kit.core_language import find_unread
from tests.conftest import ROOT, encode
from tests.demos import in_demo
from tests.test_spaces_probeval import PEOPLE, result_of

pytest_plugins = ["tests.demo_servers"]

ANIMALS = (
    "dog cat horse cow pig sheep goat lion tiger bear wolf fox rabbit mouse rat deer moose elk camel giraffe zebra "
    "hippo rhino elephant monkey ape gorilla eagle hawk owl duck goose swan hen frog toad snake lizard turtle whale"
)
LANGUAGES, WORDS = (
    json.loads((ROOT / f"tests/data/other_{name}.json").read_text(encoding="utf-8")) for name in ("languages", "words")
)
SETTINGS = {
    "probeval": {
        "clustering": "auto",
        "matcher": "auto",
        "threshold": 0.55,
        "smoothing": 1.0,
        "distance": 0.95,
        "debias": False,
    },
    "vendi_embed": {"q": "1", "kernel": "embedding", "model": "all-MiniLM-L6-v2"},
    "chamfer_diversity": {"model": "all-MiniLM-L6-v2"},
    "self_bleu": {"max_order": 4, "tokenizer": "whitespace", "aggregate": "set", "smoothing": "default"},
    "gruen": {
        "components": ["grammaticality", "non_redundancy", "focus"],
        "focus_threshold": 0.1,
        "model": "all-MiniLM-L6-v2",
    },
}


class Shown(NamedTuple):
    """What a page shows: the text of the answer, of its cards, the captions, and the result with the warnings."""

    answer: str
    cards: list[str]
    captions: str
    result: object
    messages: list[str]


@contextlib.contextmanager
def as_before():
    """Undo what a demo changes in its process."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(tqdm.auto, "tqdm", tqdm.auto.tqdm)
        patch.setattr(processing_utils, "async_ssrf_protected_download", None)
        yield patch


@pytest.fixture(scope="module")
def app(built):
    """Load a built app, once in this file."""
    loaded = {}

    def load_once(name):
        if name not in loaded:
            before = set(sys.modules)
            with as_before() as patch:
                patch.syspath_prepend(built / name)
                loaded[name] = import_module("app")
            for module in set(sys.modules) - before:
                if str(built) in str(getattr(sys.modules[module], "__file__", "")):
                    del sys.modules[module]
        return loaded[name]

    return load_once


@pytest.fixture
def show(app):
    """Score an input as the page does."""

    def score(name, data, chosen=(), **settings):
        loaded = app(name)
        with as_before():
            loaded.sets.work.install()
            with loaded.sets.work.running(lambda done, total: None) as messages:
                result = loaded.score(data, list(chosen), {**SETTINGS[name], **settings})
        cards = result.answer.split('<div class="tm-card ')[1:]
        captions = " ".join(picture[1] for picture in result.pictures if picture is not None)
        return Shown(plain(result.answer), list(map(plain, cards)), captions, result, messages)

    return score


def plain(text):
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity", "self_bleu"])
def test_the_details_hold_every_set_with_its_name(show, app, load, name):
    rows = [
        {"text": text, "set": animal}
        for animal in ("cat", "dog", "owl")
        for text in (f"The {animal} sleeps all day.", f"The {animal} sleeps at night.", "It rains in town.")
    ]
    result = show(name, app(name).SPACE.from_rows(rows)).result
    for table in (result.details, result.scores):
        assert list(dict.fromkeys((row[0], row[1]) for row in table.rows)) == [(1, "cat"), (2, "dog"), (3, "owl")]
    assert result.report["names"] == ["cat", "dog", "owl"]
    if name != "self_bleu":
        adds = [dict(zip(result.details.headers, row, strict=True))["Adds"] for row in result.details.rows]
        sets, compute = [[row[3] for row in result.details.rows[i : i + 3]] for i in (0, 3, 6)], load(name)
        expected = text_metrics.contributions(compute, sets)
        assert adds == pytest.approx([value for row in expected for value in row], abs=2e-4)


def test_near_duplicates_are_listed(show):
    copies = ["A man walks his dog.", "Rain fell.", "A man walks his dog.", "A man walks his dog!"]
    shown = show("chamfer_diversity", [copies, ["She sings.", "It rained."]])
    assert [row[-1] for row in shown.result.details.rows] == ["", "", 1, 1, "", ""]
    listed, caption = shown.result.pictures[-1]
    assert "2 texts to remove" in caption
    assert plain(listed).split("Set 1")[0].strip() == "A man walks his dog."
    assert "None: no two texts" in show("chamfer_diversity", [["She sings.", "It rained."]]).result.pictures[-1][0]


def test_gruen_needs_a_part_of_the_score(show):
    with pytest.raises(ValueError, match=r"Select at least one of Grammar \(grammaticality\), Repetition"):
        show("gruen", ["It rains."], components=[])


def ask(app, people, model, other=""):
    return app("probeval").from_boxes(people, model, other)


@pytest.mark.parametrize(("n", "verdict"), [(1, "No verdict"), (40, "The model answers very differently")])
def test_one_answer_is_not_like_forty_different_ones(app, show, n, verdict):
    shown = show("probeval", ask(app, ANIMALS.replace(" ", "\n"), f"dog × {n}"))
    assert shown.result.report["probeval"] < 0.3
    assert verdict in shown.answer
    assert not re.search("as people do|somewhat", shown.answer)
    assert "4%" in shown.answer


def test_a_verdict_does_not_follow_the_number_of_answers(app, show):
    scores, words = {}, {}
    for n in (1, 5, 19, 20, 100, 1_000):
        shown = show("probeval", ask(app, PEOPLE, f"kettle × {n}"))
        scores[n] = round(shown.result.report["probeval"], 2)
        words[n] = re.search(r"No verdict.*?\d+\.|The model answers.*?people.*?\.", shown.answer)[0]
    # The divergence of the same answers.
    assert [scores[n] for n in (1, 5, 19, 100, 1_000)] == [0.24, 0.12, 0.27, 0.66, 1.02]
    assert all("at least 20 answers of people and 20 of the model" in words[n] for n in (1, 5, 19))
    assert words[20] == words[100] == words[1_000] == "The model answers differently from people."
    shown = show("probeval", ask(app, PEOPLE, "kettle × 19"), debias=True)
    assert "No verdict" in shown.answer
    assert "Debias removes" not in shown.answer
    # People's side counts, too.
    assert "people gave 19" in show("probeval", ask(app, "kettle × 19", PEOPLE)).answer


def test_people_who_do_not_agree_are_no_ground(app, show):
    shown = show("probeval", ask(app, ANIMALS.replace(" ", "\n"), "dog × 40"), clustering="none")
    assert "No verdict: people's answers differ so much from each other" in shown.answer


def test_random_strings_get_no_verdict(app, show):
    draw = random.Random(0)
    people, model = (
        "\n".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(n)) for n in (280, 58)
    )
    shown = show("probeval", ask(app, people, model))
    assert shown.result.report["probeval"] < 0.1
    assert "so the score says little about them" in shown.answer
    assert "The model answers" not in shown.answer


def test_verdicts_of_models_that_answer_like_people_and_unlike_them(app, load, rng):
    """Models drawn from people's distribution are called like people; the favourite alone and wrong answers are not."""
    ground, truth = app("probeval").ground, [0.4, 0.3, 0.15, 0.1, 0.05]
    words = {"like": [], "top": [], "wrong": []}
    for n in (20, 60, 400):
        for _ in range(5):
            people = rng.multinomial(100, truth).tolist()
            for name, counts in (
                ("like", [*rng.multinomial(n, truth).tolist(), 0]),
                ("top", [n, 0, 0, 0, 0, 0]),
                ("wrong", [0, 0, 0, 0, 0, n]),
            ):
                result = result_of(load("probeval"), *counts, people=people)
                words[name].append(ground.verdict(ground.find(load("probeval"), result)))
    like, top, wrong = (
        f"The model answers {how}."
        for how in ("much as people do", "differently from people", "very differently from people")
    )
    assert words["like"].count(like) >= 12
    assert set(words["top"]) <= {top, wrong}
    assert set(words["wrong"]) == {wrong}


def test_the_api_and_the_download_hold_the_comparison_at_equal_numbers(app, show):
    report = show("probeval", ask(app, PEOPLE, "kettle × 100")).result.report
    equal = report["equal_numbers"]
    assert equal["n"] == [50]
    assert equal["of_people"] < equal["divergence"] < equal["largest"]
    assert equal["coverage"] < equal["coverage_of_people"] <= 1
    with as_before():
        assert app("probeval").api(["kettle"] * 30, ["kettle"] * 10)["equal_numbers"] is None


def test_models_are_compared_at_equal_numbers(app, show):
    shown = show("probeval", ask(app, PEOPLE, "kettle × 1000", "kettle × 100"))
    comparison = shown.result.report["comparison"]
    assert comparison["n"] == [100]
    assert comparison["difference"] == pytest.approx(0, abs=1e-9)
    assert "too close to call" in shown.answer
    assert "of 100 answers of each model" in shown.answer


def n_other(*texts):
    return len(find_unread(texts).other_language)


def test_other_languages_are_told_from_english():
    for name, sentences in LANGUAGES.items():
        assert all(map(n_other, sentences)), name
    ours = (*examples.DIFFERENT, *examples.PARAPHRASES, *examples.SHUFFLED, *examples.WAYS_TO_WAKE_UP)
    assert not any(map(n_other, (*ours, ANIMALS, "It rains.", "campfire", "No way!", "Hund")))


def test_english_captions_are_rarely_taken_for_another_language(shared_data):
    captions = (shared_data / "data/text/coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()[::8]
    assert sum(map(n_other, captions)) <= len(captions) / 1_000


@pytest.mark.parametrize("name", WORDS)
def test_short_answers_in_any_language_are_told(name):
    words = WORDS[name][:12]
    with pytest.warns(language.OtherLanguageWarning, match=f"{len(words)} of {len(words)} answers are not in English"):
        language.check_english([words], "answers")


def test_short_answers_are_judged_together():
    with pytest.warns(language.OtherLanguageWarning, match="6 of 8 answers are not in English"):
        language.check_english(
            [["bouilloire", "casserole", "micro-ondes", "tasse", "feu de camp", "verre d'eau"], ["kettle", "pot"]],
            "answers",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        language.check_english([["kettle", "electric kettle", "saucepan", "microwave", "campfire"]])
        # Repeated words are no more evidence than one.
        language.check_english([[f"The {i} {'dogs' if i % 3 else 'cats'} see {7 * i} ships." for i in range(200)]])


MIXED = [
    "A man walks his dog in the large park.",
    "Ein Mann geht mit seinem Hund im großen Park spazieren.",
    "Un homme promène son chien dans le grand parc.",
]


@pytest.mark.parametrize("name", ["vendi_embed", "chamfer_diversity"])
def test_one_sentence_in_three_languages_gets_no_verdict(show, name):
    shown = show(name, [MIXED])
    assert "Some texts are not in English" in shown.answer
    assert "2 of 3 texts are not in English" in shown.messages[0]
    assert not re.search("different|separated|diverse as|of its own", shown.cards[0])
    assert not show(name, [MIXED[:1] * 2]).messages


@pytest.mark.parametrize("text", [LANGUAGES["German"][0], LANGUAGES["Vietnamese"][0]])
def test_the_grammar_of_other_languages_is_not_judged(show, text):
    shown = show("gruen", [text])
    assert shown.result.report["gruen"] < 0.5
    assert "The model reads English only" in shown.answer
    assert "The model finds" not in shown.answer
    assert "The model does not" not in shown.answer


def test_short_foreign_answers_get_no_verdict(show, app):
    german = "\n".join(f"{word} × 10" for word in WORDS["German"][:6])
    shown = show("probeval", ask(app, PEOPLE, german))
    assert "6 of 14 answers are not in English" in shown.messages[0]
    assert "Some answers are not in English" in shown.answer
    assert not re.search("The model answers", shown.answer)


CODE = (
    "import os\nfor name in os.listdir('.'):\n    if name.endswith('.py'):\n        print(name)",
    '{"name": "kettle", "price": 12.5, "tags": ["kitchen", "water"]}',
    "SELECT name, price FROM items WHERE price > 10 ORDER BY price;",
    "name | price | stock\nkettle | 12 | 4\npot | 20 | 1",
    r"$\frac{a}{b} = \sqrt{c^2 + d^2}$ for all $a, b > 0$.",
)


def test_code_and_lists_are_told_from_sentences(app):
    gruen = app("gruen")
    assert all(map(gruen.is_code, CODE))
    sentences = [text for example in gruen.SPACE.examples for text in example.texts]
    sentences += ["Bring the book(s), pens and/or paper.", "A dog runs on the beach"]
    assert not any(map(gruen.is_code, sentences))
    assert all(map(gruen.is_sentence, sentences))
    assert not gruen.is_sentence("apples, pears, plums, bananas, oranges, lemons, limes")


@pytest.mark.parametrize(
    "text",
    ["Hello", "- milk and bread\n- eggs\n- butter and cheese", "https://example.com/a?b=3", "12 15 19 22", CODE[0]],
)
def test_what_has_no_sentence_is_not_judged(show, text):
    shown = show("gruen", [text])
    assert "GRUEN is for sentences" in shown.answer
    assert not re.search("The model|anguage|ritten", shown.answer)


def test_the_words_promise_no_more_than_the_number(show):
    shown = show("gruen", ["The list of items are on the desk. Each of the students have a book."])
    assert shown.result.report["gruen"] > 0.8
    assert "The model finds the sentences fluent." in shown.answer
    assert "ritten" not in shown.answer


def test_headlines_name_what_repeats(show):
    sets = [list(examples.DIFFERENT), list(examples.SHUFFLED)]
    shown = show("self_bleu", sets)
    details = shown.result.report["details"]
    assert details[0]["self_bleu_4"] > details[1]["self_bleu_4"]
    assert details[0]["self_bleu_1"] < details[1]["self_bleu_1"]
    assert details[0]["distinct_1"] > details[1]["distinct_1"]
    assert (
        "Set 1 repeats more phrases of up to 4 words than set 2, but set 2 repeats more single words." in shown.answer
    )
    assert "Set 2 repeats more words than set 1." in show("self_bleu", sets, max_order=1).answer
    words = "the cat sat on the mat by the door"
    repeat = [words, " ".join(sorted(words.split()))]
    other = ["a dog ran over some green grass in May", "she reads one old book about her ship"]
    assert (
        "Both sets repeat phrases of up to 4 words equally, but set 1 repeats more single words."
        in show("self_bleu", [repeat, other]).answer
    )


def test_the_charts_are_of_the_set_that_is_looked_at(show):
    sets = [list(examples.DIFFERENT), list(examples.PARAPHRASES)]
    for i in (0, 1):
        shown = show("self_bleu", sets, [i])
        details, figures = shown.result.report["details"][i], [picture[0] for picture in shown.result.pictures[2:]]
        for measure, figure in zip(("self_bleu", "distinct", "entropy"), figures, strict=True):
            assert list(figure.data[0].y) == [details[f"{measure}_{n}"] for n in range(1, 5)]
        assert shown.captions.count(f"Set {i + 1}. ") == 3
        # The facts are of each set, too.
        assert f"{details['distinct_1']:.0%}" in shown.cards[i]
    assert show("self_bleu", [sets[0], ["alone"]], [1]).result.pictures[2:] == [None] * 3


def test_shares_of_nothing_are_undefined(show):
    shown = show("self_bleu", [["hello", "world"]])
    assert "Distinct-2 – there are no pairs of words." in shown.answer
    assert list(shown.result.pictures[3][0].data[0].y) == [1.0, None, None, None]
    assert "There are no 2-grams." in shown.captions
    shown = show("self_bleu", [["hello", "world"], ["a cat sat", "a cat ran"], ["she sings", "he runs"]])
    assert "1 of 3 sets have no pairs of words: 0 in the mean of Distinct-2." in shown.answer


def test_words_without_spaces_are_not_compared(show):
    texts = ["今天天气很好，我们去公园散步。", "今天天气很好，我们去公园跑步。"]
    shown = show("self_bleu", [texts])
    assert "no spaces between words" in shown.answer
    assert "Choose Chinese or Characters" in shown.answer
    assert "no spaces" not in show("self_bleu", [texts], tokenizer="char").answer


def test_capitals_and_sizes_are_said(show):
    shown = show("self_bleu", [["The Cat sat on a mat.", "the cat sat on a mat"], ["a b", "a c", "a d"]])
    assert "3 words differ from another only in capitals or punctuation" in shown.answer
    assert "self-BLEU tends to be larger in a larger set" in shown.answer


def test_the_closest_pair_is_in_one_group(show):
    shown = show("vendi_embed", [list(examples.DIFFERENT), list(examples.PARAPHRASES)])
    pair = re.search(r"Set 2\. Texts (\d) and (\d) are the most similar \(0\.94\)", shown.captions)
    rows = {(row[0], row[1]): row[5] for row in shown.result.details.rows}
    assert rows[2, int(pair[1])] == rows[2, int(pair[2])]
    scores = shown.result.report["scores"]
    for i, (n_groups, score) in enumerate(zip((4, 2), scores, strict=True), 1):
        assert len({group for (place, _), group in rows.items() if place == i}) == n_groups
        assert f"Set {i}: {n_groups} groups, score {score:.2f}, which is less because" in shown.captions
        assert f"As diverse as {score:.2f} texts" in shown.cards[i - 1]


def test_a_headline_does_not_claim_sense(show):
    shown = show("vendi_embed", [list(examples.DIFFERENT), list(examples.SHUFFLED)])
    scores = shown.result.report["scores"]
    assert scores[1] > scores[0]
    assert "says more" not in shown.answer
    assert "The score counts differences, not sense" in shown.answer


def test_words_are_compared_by_n_grams(show):
    shown = show("vendi_embed", [list(examples.DIFFERENT), MIXED], kernel="ngram")
    assert "no words in common" in shown.cards[0]
    assert "not in English" not in shown.answer


def test_extremes_are_of_one_set(show):
    shown = show("chamfer_diversity", [list(examples.DIFFERENT), list(examples.PARAPHRASES)])
    for card, detail in zip(shown.cards, shown.result.report["details"], strict=True):
        for name, value in (("Minimum", min(detail["distances"])), ("Maximum", max(detail["distances"]))):
            assert f"{name} {value:.2f}" in card
    mean = show("chamfer_diversity", [["a cat", "a dog"], ["rain", "snow"], ["one", "two"]])
    assert "Minimum" not in mean.answer


@pytest.mark.slow
@in_demo("gruen")
def test_a_text_file_is_read_as_the_box(demo, tmp_path):
    """A report that is wrapped at 45 columns is one text, typed or in a file."""
    from textwrap import fill

    from tests.demos import event_of, join, score_boxes

    wrapped = fill(
        "The council met on Tuesday to decide on the new bridge. Most members of the council were in favour of the "
        "bridge. They want work on it to begin in spring, before the river rises under the old bridge.",
        45,
    )
    import httpx

    upload = httpx.post(f"{demo.url}gradio_api/upload", files={"files": ("a.txt", wrapped.encode())})
    place, components = event_of(demo, "file", "dropdown", is_run=True)
    file = {"path": upload.json()[0], "meta": {"_type": "gradio.FileData"}, "orig_name": "a.txt"}
    settings = [component["props"].get("value") for component in components[1:]]
    messages = [join(demo, place, [file, *settings], "file")[0], score_boxes(demo, wrapped, session="typed")[0]]
    values = [re.search(r'data-value="([^"]+)"', json.dumps(message).replace('\\"', '"'))[1] for message in messages]
    assert values[0] == values[1]
    assert float(values[0]) > 0.7


def test_how_alike_sets_are_is_the_mean_of_their_cosines(show):
    cats = ["The cat sleeps all day.", "A cat is asleep on the mat.", "The cat naps.", "A sleeping cat."]
    rain = ["It rains in town.", "Rain fell all night."]
    texts = [cats, rain, ["Rain fell in the night.", "It is raining.", "It is raining!"]]
    maps, repeats = show("vendi_embed", texts).result.pictures[-2:]
    flat = [text for members in texts for text in members]
    drawn = maps[0].data[0].z
    vectors = encode(flat).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = vectors @ vectors.T
    assert drawn[0][1] == pytest.approx(cosines[:4, 4:6].mean(), abs=1e-5)
    assert drawn[1][1] == pytest.approx(cosines[4, 5], abs=1e-5)
    assert drawn[1][2] > drawn[0][1] + 0.2
    assert plain(repeats[0]).strip().startswith("2 of 3 texts")


def test_sets_of_one_text_and_a_single_set_have_no_likeness_to_show(show):
    assert show("vendi_embed", [["She sings.", "It rained."]]).result.pictures[-2:] == [None, None]
    matrix, repeats = show("vendi_embed", [["She sings."], ["It rained."], ["A dog barks."]]).result.pictures[-2:]
    assert matrix[0].data[0].z[0][0] is None
    assert repeats is None
