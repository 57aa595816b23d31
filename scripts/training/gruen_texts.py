"""The sentences that gruen's compact backbone learns from: public text, frames of plain English, and corruptions."""

import csv
import random
import re
import zipfile
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import pandas

from scripts.results.gruen import PAIRS
from scripts.results.gruen_plain import draw
from scripts.training.corruptions import Corruptor
from text_metrics.metrics.gruen.gruen_text import split_block

FRAMES = {name: Path(__file__).with_name(f"gruen_{name}.toml") for name in ("plain", "venues")}
N_CORRUPTIONS, HELD_OUT_COLA = 3, 800
PER_CONSTRUCTION = {"plain": 400, "venues": 300}
HELD_OUT_SHARE = 0.03
COLUMNS = ("words", "clean", "acceptable", "wrong", "source", "held_out", "original")
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")
_SPEAKER = re.compile(r"^[A-Z][\w #']{0,20}: ")


def read_lines(path: Path, pattern: str) -> Iterator[str]:
    """Yield the lines of the files of an archive whose names match."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if re.search(pattern, name)):
            yield from archive.read(name).decode(errors="replace").splitlines()


def wrong_words(words: list[str], corrupted: list[str]) -> list[int]:
    """Find the words of a corrupted sentence that were put in, or stand behind a word that was left out."""
    steps = SequenceMatcher(None, words, corrupted, autojunk=False).get_opcodes()
    spans = [(low, max(high, low + 1)) for kind, _, _, low, high in steps if kind != "equal"]
    return [i for low, high in spans for i in range(low, min(high, len(corrupted)))]


def read_texts(folder: Path, seed: int) -> pandas.DataFrame:
    """Read and draw the sentences, and corrupt each in several ways.

    Columns: `words`; `clean`, 1 for a sentence of the corpora and the frames, 0 for a corrupted one, -1 if unknown;
    `acceptable`, the label of CoLA or -1; `wrong`, the numbers of the words that are wrong; `source`, also of the
    original; `held_out` for calibration; `original`, the row of the sentence that was corrupted, or -1.
    """
    chance = random.Random(seed)
    lines = (line.split() for line in read_lines(folder / "text/brown.zip", r"/c[a-r]\d\d$"))
    pairs = [[token.rsplit("/", 1) for token in line] for line in lines if line]
    tagged = [[(word, tag.split("-")[0]) for word, tag in line if word not in ("``", "''")] for line in pairs]
    corruptor = Corruptor(tagged, seed)
    tested = {tuple(_TOKEN.findall(text)) for text in pandas.read_json(PAIRS, lines=True)["clean"]}

    def is_whole(words: list[str]) -> bool:
        """Whether words are an ordinary sentence, imperatives included."""
        n_words = sum(word[0].isalnum() for word in words)
        has_verb = any(word.lower() in corruptor.verbs for word in words)
        return 4 <= len(words) <= 30 and words[-1] in ".!?" and has_verb and n_words >= 0.75 * len(words)

    spoken = {"abc": r"\.txt$", "state_union": r"\.txt$", "webtext": "overheard"}
    sources = {"brown": [[word for word, _ in line] for line in tagged]} | {
        name: [_TOKEN.findall(part) for line in read_lines(folder / f"text/{name}.zip", pattern)
               for part in split_block(_SPEAKER.sub("", line))]
        for name, pattern in spoken.items()
    }  # fmt: skip
    sources = {name: [words for words in part if is_whole(words) and tuple(words) not in tested]
               for name, part in sources.items()}  # fmt: skip
    for name, path in FRAMES.items():
        drawn = draw(path, PER_CONSTRUCTION[name], seed).values()
        sources[name] = [words for own in drawn for text in own if len(words := _TOKEN.findall(text)) > 2]
    cola = pandas.read_csv(folder / "gruen/cola_in_domain_train.tsv", sep="\t", header=None, quoting=csv.QUOTE_NONE)
    rows = [(_TOKEN.findall(text), label) for text, label in zip(cola[3], cola[1], strict=True)]
    random.Random(5).shuffle(rows)
    texts: list[tuple[object, ...]] = []

    def add_pairs(words: list[str], label: int, source: str, held_out: bool) -> None:
        place = len(texts)
        texts.append((words, 1 if label else -1, label if source == "cola" else -1, [], source, held_out, -1))
        for _ in range(N_CORRUPTIONS if len(words) > 3 else 0):
            if corrupted := corruptor.corrupt(words):
                wrong = wrong_words(words, corrupted)
                texts.append((corrupted, 0 if label else -1, -1, wrong, source, held_out, place if label else -1))

    for number, (words, label) in enumerate(rows):
        add_pairs(words, label, "cola", number < HELD_OUT_COLA)
    for source, part in sources.items():
        chance.shuffle(part)
        for number, words in enumerate(part):
            add_pairs(words, 1, source, number < HELD_OUT_SHARE * len(part))
    return pandas.DataFrame(texts, columns=COLUMNS)
