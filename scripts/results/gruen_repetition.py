"""Rates of non-redundancy: of answers of models, of people's passages and lists, and of loops made of these.

Parallel items were chosen on the answers. The thresholds were chosen on the other half of the documents of the four
corpora, but the number of words that a sentence has to say twice, and what is a loop, also on texts that may be in this
half. Web text was used for what is a loop, and choruses, which are in the public domain, for nothing.
"""

import itertools
import random
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from text_metrics.metrics.gruen.gruen_text import split, split_block

CHORUSES = Path(__file__).with_name("gruen_choruses.txt")
ANSWERS, LEAST_CHARACTERS = 900, 150
FORMS = {
    "plain text": "{0} {0}",
    "quotation marks": '"{0} {0}"',
    "brackets": "({0} {0})",
    "HTML": "<p>{0}</p><p>{0}</p>",
}
# The archive of NLTK's corpora, and which of its members are documents.
CORPORA = {
    "Brown": ("brown", r"/c[a-r]\d\d$"),
    "ABC news": ("abc", r"(rural|science)\.txt$"),
    "State of the Union": ("state_union", r"\.txt$"),
    "film reviews": ("movie_reviews", r"(neg|pos)/.*\.txt$"),
}
TEXTS, LEAST, MOST, SEED = 250, 5, 10, 0
# A measure, its number of texts or pairs, its value, and the value of a trivial rule.
Row = tuple[str, int, float, float | None]


def repeated(metric: Any, data: Path) -> list[Row]:
    """Return the shares of texts that lose non-redundancy and that score 0 for it, beside those by `trivial`."""
    sets = pandas.read_json(data / "equivalence" / "noveltybench_pairs.jsonl", lines=True)["texts"]
    answers = list(dict.fromkeys(text for texts in sets for text in texts if len(text) > LEAST_CHARACTERS))[:ANSWERS]
    groups = {"answers": answers}
    for name, form in FORMS.items():
        groups[f"answers twice, in {name}"] = [form.format(" ".join(text.split())) for text in answers]
    rows: list[Row] = []
    for name, texts in (groups | texts_of_people(data / "text")).items():
        scores = np.array(metric.compute(predictions=texts, components=["non_redundancy"])["scores"])
        simple = np.array([trivial(text) for text in texts])
        rows.append((f"{name}: lose non-redundancy", len(texts), (scores < 1).mean(), (simple < 1).mean()))
        rows.append((f"{name}: score 0", len(texts), (scores == 0).mean(), (simple == 0).mean()))
    return rows


def trivial(text: str) -> float:
    """Subtract .4 for each pair of sentences with half of their words in common (Jaccard), as for equal sentences."""
    words = [set(re.findall(r"\w+", piece.lower())) for piece in split(text).pieces]
    n_pairs = sum(2 * len(a & b) >= len(a | b) > 0 for a, b in itertools.combinations(words, 2))
    return max(0.0, 1 - 0.4 * n_pairs)


def texts_of_people(folder: Path) -> dict[str, list[str]]:
    """Return passages, lists and loops by name; `folder` has NLTK's corpora."""
    chance = random.Random(SEED)
    groups: dict[str, list[str]] = {}
    passages: list[list[str]] = []
    lists: list[list[str]] = []
    for corpus in CORPORA:
        documents = list(map(_sentences, _documents(folder, corpus)))
        candidates = []
        for pieces in documents:
            for start in range(0, len(pieces) - MOST, MOST):
                candidates.append(pieces[start : start + chance.randint(LEAST, MOST)])
        sample = chance.sample(candidates, TEXTS)
        groups[f"passages, {corpus}"] = list(map(" ".join, sample))
        passages += sample
        runs = [list(run) for pieces in documents for words, run in itertools.groupby(pieces, _first_words) if words]
        lists += [run[:MOST] for run in runs if len(run) >= 3]
    groups["three sentences or more that begin alike"] = list(map(" ".join, lists))
    groups["the same as a list"] = list(map(_listed, lists))
    choruses = CHORUSES.read_text(encoding="utf-8").strip().split("\n\n")
    return groups | _lines(folder) | _loops(passages, chance) | {"choruses": choruses}


def _lines(folder: Path) -> dict[str, list[str]]:
    """Return people's lines of web text: titles of bugs that begin alike, reviews in order, and conversations."""
    firefox, overheard, wine = read_archive(folder, "webtext", "(firefox|overheard|wine)")
    titles = defaultdict(list)
    for title in dict.fromkeys(firefox.splitlines()):
        titles[_first_words(title)].append(title)
    reviews = [line for line in wine.splitlines() if len(line.split()) > 3]
    groups = {
        "titles of bugs that begin alike": [alike for words, alike in titles.items() if words],
        "reviews of wines": [reviews[i : i + MOST] for i in range(0, len(reviews), MOST)],
        "overheard conversations": [talk.splitlines() for talk in re.split(r"\n\s*\n", overheard)],
    }
    sampled = {}
    for name, texts in groups.items():
        joined = ["\n".join(lines[:MOST]) for lines in texts if len(lines) >= LEAST]
        sampled[name] = joined[:TEXTS]
    return sampled


def _loops(passages: list[list[str]], chance: random.Random) -> dict[str, list[str]]:
    """Repeat all of each passage, or its last sentence, also with another word in a random place each time."""
    words = sorted({word for passage in passages for word in " ".join(passage).split() if word.isalpha()})
    ended = [passage for passage in passages if len(passage[-1].split()) >= LEAST]
    changed = []
    for passage in ended:
        copies = [passage[-1].split() for _ in range(3)]
        for copy in copies:
            copy[chance.randrange(len(copy))] = chance.choice(words)
        changed.append(passage + list(map(" ".join, copies)))
    # Without a mark between the copies.
    joined = []
    tails = []
    for passage in ended:
        last = passage[-1].rstrip(".!?")
        joined.append([*passage[:-1], " and ".join([last] * 4)])
        tails.append([*passage[:-1], " ".join([last] + last.split()[-6:] * 4)])
    twice = [" ".join(passage * 2) for passage in passages]
    last_repeated = [" ".join(passage + passage[-1:] * 3) for passage in ended]
    return {
        "passages twice": twice,
        "last sentence three more times": last_repeated,
        "the same, joined by and": list(map(" ".join, joined)),
        "last six words four more times": list(map(" ".join, tails)),
        "the same, one word replaced": list(map(" ".join, changed)),
        "the same, one word replaced, as a list": list(map(_listed, changed)),
    }


def _documents(folder: Path, corpus: str) -> list[str]:
    """Return the half of the documents that the thresholds were not chosen on."""
    texts = read_archive(folder, *CORPORA[corpus])
    if corpus == "Brown":
        # Tags, quotation marks and the space before other marks.
        texts = [re.sub(r"/[^\s/]+(?=\s|$)|(``|'')/\S+\s*|\s(?=[.,;:?!]+/)", "", text) for text in texts]
    elif corpus == "ABC news":
        texts = [article for text in texts for article in re.split(r"\n\s*\n", text) if article.strip()]
    elif corpus == "State of the Union":
        texts = [text.split("\n \n", 1)[-1] for text in texts]
    random.Random(SEED).shuffle(texts)
    return texts[1::2]


def read_archive(folder: Path, archive: str, pattern: str, encoding: str = "latin-1") -> list[str]:
    """Read the files of an archive of NLTK's corpora whose names match."""
    with zipfile.ZipFile(folder / f"{archive}.zip") as opened:
        names = [name for name in sorted(opened.namelist()) if re.search(pattern, name)]
        return [opened.read(name).decode(encoding, "replace").replace("\r", "") for name in names]


def _sentences(text: str) -> list[str]:
    """Return the sentences of two words or more."""
    return [piece for line in text.splitlines() for piece in split_block(line) if len(piece.split()) > 1]


def _first_words(sentence: str) -> tuple[str, ...]:
    """Return the first two words of three or more."""
    words = re.findall(r"\w+", sentence.lower())
    return tuple(words[:2]) if len(words) > 2 else ()


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
