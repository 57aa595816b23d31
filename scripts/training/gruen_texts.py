"""The sentences that gruen's compact backbone learns from: public text, frames of plain English, and corruptions."""

import csv
import random
import re
import tomllib
import zipfile
from collections import Counter, defaultdict
from difflib import SequenceMatcher
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from nltk.stem import PorterStemmer

from scripts.results.gruen import PAIRS
from text_metrics.metrics.gruen.gruen_text import split_block

WORDS = tomllib.loads(Path(__file__).with_name("gruen_words.toml").read_text(encoding="utf-8"))
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")
_SPEAKER = re.compile(r"^[A-Z][\w #']{0,20}: ")


class Corruptor:
    """Corrupts sentences, lists of words that end with a mark; learns words and their forms from tagged sentences."""

    def __init__(self, tagged: list[list[tuple[str, str]]], words: dict[str, Any], seed: int) -> None:
        self.chance = random.Random(seed)
        self.kinds = words["kinds"]
        stem = PorterStemmer().stem
        auxiliaries, determiners, prepositions, _ = self.classes = list(map(str.split, words["classes"]))
        self.function_words = sorted({word for group in self.classes for word in group})
        counts = Counter((word.lower(), tag) for sentence in tagged for word, tag in sentence)
        main: dict[str, str] = {}
        families: dict[str, dict[str, str]] = defaultdict(dict)
        for word, tag in (pair for pair, count in counts.most_common() if count > 1):
            is_content = word.isalpha() and len(word) > 2 and word not in self.function_words
            if is_content and main.setdefault(word, tag) == tag:
                families[stem(word)].setdefault(tag, word)
        exchanges = product(families.values(), words["exchanged_tags"])
        pairs = [(family[a], family[b]) for family, (a, b) in exchanges if a in family and b in family]
        self.forms: dict[str, list[str]] = defaultdict(list)
        for a, b in pairs + words["exchanged_words"]:
            self.forms[a].append(b)
            self.forms[b].append(a)
        self.verbs = {word for word, tag in main.items() if tag.startswith("vb")}.union(auxiliaries)
        self.nouns = {word for word, tag in main.items() if tag in ("nn", "nns", "np")}
        self.frequent = [word for word, tag in main.items() if counts[word, tag] >= 20]
        self.dropped: list[dict[str, list[str]]] = []
        for group in (auxiliaries, auxiliaries, determiners + prepositions, self.nouns | self.verbs):
            self.dropped.append({word: [] for word in group})
        self.previous: list[str] = []

    def corrupt(self, words: list[str]) -> list[str] | None:
        """Corrupt a sentence of four words or more; None if the draws change nothing."""
        for kind in self.chance.choices(list(self.kinds), self.kinds.values(), k=8):
            body = words[:-1]
            self._change(body, kind)
            if " ".join(body).lower() != " ".join(words[:-1]).lower():
                self.previous = words
                return body + words[-1:]
        return None

    def _change(self, body: list[str], kind: str) -> None:
        chance = self.chance
        n = len(body)
        match kind:
            case "shuffled" | "repeated":
                size = min(chance.choice((2, 2, 3, 4, 5, n, n) if kind == "shuffled" else (1, 1, 1, 2, 3, 4)), n)
                start = chance.randrange(n - size + 1)
                span = body[start : start + size]
                again = [span[0].lower(), *span[1:]]
                body[start : start + size] = chance.sample(span, size) if kind == "shuffled" else span + again
            case "nouns":
                places = [i for i, word in enumerate(body) if word.lower() in self.nouns]
                for i, noun in zip(places, chance.sample([body[i] for i in places], len(places)), strict=True):
                    body[i] = noun
            case "moved":
                start = chance.randrange(n)
                stop = chance.randrange(n)
                if abs(start - stop) > 1:
                    body.insert(stop, body.pop(start))
            case "truncated":
                cuts = [i + 1 for i in range(1, n - 1) if body[i].lower() in self.function_words]
                del body[chance.choice(cuts if cuts and chance.random() < 0.7 else range(1, n)) :]
            case "inserted":
                start = chance.randrange(1, n + 1)
                body.insert(start, chance.choice(self.function_words if chance.random() < 0.7 else self.frequent))
            case "spliced":
                body[n // 2 :] = self.previous[len(self.previous) // 2 : -1]
            case "dropped":
                self._replace(body, chance.choice(self.dropped))
            case "form":
                self._replace(body, self.forms)
            case "replaced":
                is_any = chance.random() < 0.4
                new = self.frequent if is_any else chance.choice(self.classes)
                old = filter(str.isalpha, map(str.lower, body)) if is_any else set(self.function_words).difference(new)
                self._replace(body, dict.fromkeys(old, new))

    def _replace(self, body: list[str], new: dict[str, list[str]]) -> None:
        """Replace one of the words that have replacements; an empty list omits it."""
        if places := [i for i, word in enumerate(body) if word.lower() in new]:
            place = self.chance.choice(places)
            words = new[body[place].lower()]
            drawn = [self.chance.choice(words)] if words else []
            body[place : place + 1] = [word.capitalize() if body[place][0].isupper() else word for word in drawn]


def read_texts(folder: Path, settings: dict[str, Any]) -> pandas.DataFrame:
    """Read and draw the sentences, and corrupt each in several ways.

    Columns: `words`; `source`, which is "text", "frames" or "cola"; `clean`, 1 for sentences and 0 for corrupted ones;
    `acceptable`, the label of CoLA; both NaN if unknown; `wrong`, the numbers of the wrong words; `held_out`, for
    calibration; `original`, the row of the sentence that was corrupted, or -1.
    """
    seed = settings["seed"]
    chance = random.Random(seed)
    corpora = []
    for name, files in settings["corpora"].items():
        texts_of_corpus = _read_archive(folder / "text", name, files)
        corpora.append([line for text in texts_of_corpus for line in text.splitlines() if line.strip()])
    brown, *spoken = corpora
    tagged = list(map(_read_tags, brown))
    corruptor = Corruptor(tagged, WORDS, seed)
    tested = set(map(tuple, map(_TOKEN.findall, pandas.read_json(PAIRS, lines=True)["clean"])))

    def is_usual(words: list[str]) -> bool:
        """Tell whether words are an ordinary sentence, imperatives included."""
        if not 4 <= len(words) <= 30 or words[-1] not in ".!?" or tuple(words) in tested:
            return False
        n_words = sum(word[0].isalnum() for word in words)
        return n_words >= 0.75 * len(words) and any(word.lower() in corruptor.verbs for word in words)

    untagged = [[word for word, _ in line] for line in tagged]
    sources = [("text", list(filter(is_usual, untagged)))]
    for lines in spoken:
        pieces = [piece for line in lines for piece in split_block(_SPEAKER.sub("", line))]
        sources.append(("text", list(filter(is_usual, map(_TOKEN.findall, pieces)))))
    for name, count in settings["frames"].items():
        drawn = draw(Path(__file__).with_name(f"gruen_{name}.toml"), count, seed).values()
        sources.append(("frames", [words for texts in drawn for words in map(_TOKEN.findall, texts) if len(words) > 2]))
    cola = pandas.read_csv(folder / "gruen/cola_in_domain_train.tsv", sep="\t", header=None, quoting=csv.QUOTE_NONE)
    labelled = list(zip(map(_TOKEN.findall, cola[3]), cola[1], strict=True))
    random.Random(settings["cola_seed"]).shuffle(labelled)
    rows = [("cola", words, label, i < settings["held_out_cola"]) for i, (words, label) in enumerate(labelled)]
    for source, sentences in sources:
        chance.shuffle(sentences)
        n_held_out = settings["held_out_share"] * len(sentences)
        rows += [(source, words, np.nan, i < n_held_out) for i, words in enumerate(sentences)]

    texts = pandas.DataFrame(rows[:: settings["every"]], columns=["source", "words", "acceptable", "held_out"])
    texts["clean"] = np.where(texts["acceptable"] == 0, np.nan, 1)
    originals = texts.index[texts["words"].str.len() > 3].repeat(settings["corruptions"])
    copies = texts.loc[originals].assign(original=originals, clean=lambda copy: copy["clean"] - 1, acceptable=np.nan)
    corrupted = [corruptor.corrupt(words) or [] for words in copies["words"]]
    copies = copies.assign(words=corrupted, wrong=list(map(_wrong_words, copies["words"], corrupted)))
    texts = texts.assign(wrong=[[]] * len(texts), original=-1)
    return pandas.concat([texts, copies[copies["words"].str.len() > 0]], ignore_index=True)


def draw(frames: Path, count: int, seed: int) -> dict[str, list[str]]:
    """Draw different sentences of each construction of a file of frames, by name."""
    chance = random.Random(seed)
    table = tomllib.loads(frames.read_text(encoding="utf-8"))
    drawn = {}
    for name, choices in table["constructions"].items():
        sentences = (_fill(chance.choice(choices), table["words"], chance) for _ in range(20 * count))
        drawn[name] = list(dict.fromkeys(sentences))[:count]
    return drawn


def _fill(frame: str, words: dict[str, list[str]], chance: random.Random) -> str:
    """Put a word into each slot, different ones into slots that a digit distinguishes."""
    filled: dict[str, str] = {}
    for slot in re.findall(r"{(\w+)}", frame):
        unused = [word for word in words[slot.rstrip("2")] if word not in filled.values()]
        filled.setdefault(slot, chance.choice(unused))
    sentence = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", frame.format_map(filled))
    return sentence[0].upper() + sentence[1:]


def _read_archive(folder: Path, archive: str, pattern: str) -> list[str]:
    """Read the files of an archive of NLTK's corpora whose names match."""
    with zipfile.ZipFile(folder / f"{archive}.zip") as opened:
        names = [name for name in sorted(opened.namelist()) if re.search(pattern, name)]
        return [opened.read(name).decode(errors="replace").replace("\r", "") for name in names]


def _read_tags(line: str) -> list[tuple[str, str]]:
    """Return the words of a tagged line of the Brown corpus with their tags; no quotation marks."""
    tagged = []
    for token in line.split():
        word, tag = token.rsplit("/", 1)
        if word not in ("``", "''"):
            tagged.append((word, tag.split("-")[0]))
    return tagged


def _wrong_words(words: list[str], corrupted: list[str]) -> list[int]:
    """Find the inserted words of a corrupted sentence, and the words after omitted ones."""
    steps = SequenceMatcher(None, words, corrupted, autojunk=False).get_opcodes()
    spans = [(low, max(high, low + 1)) for kind, _, _, low, high in steps if kind != "equal"]
    return [i for low, high in spans for i in range(low, min(high, len(corrupted)))]
