"""Write results/gruen_plain.csv: how gruen's compact backbone rates plain correct English, by construction.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.gruen_plain

The sentences are drawn from the frames of gruen_plain.toml, and from people's sentences of 4 to 12 words that training
did not see: acceptable ones of CoLA's development set, and dialogues and stories of Tevet and Berant 2021.
"""

import csv
import json
import random
import re
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pandas
from sklearn.metrics import roc_auc_score

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.console import Parser, command

FRAMES = Path(__file__).with_suffix(".toml")
PER_CONSTRUCTION, SEED = 75, 20
_DROPPED = "a an the is are was were has have to of in on at for with from"


def draw(frames: Path = FRAMES, count: int = PER_CONSTRUCTION, seed: int = SEED) -> dict[str, list[str]]:
    """Draw different sentences of each construction, by name."""
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


def corrupt(sentence: str, chance: random.Random) -> str:
    """Exchange two neighbouring words, leave out a function word, or repeat a word."""
    words = sentence.split()
    functions = [i for i, word in enumerate(words) if word.lower() in _DROPPED.split()]
    ways = ["exchange", "repeat", "leave out"] if functions else ["exchange", "repeat"]
    way = chance.choice(ways)
    at = chance.randrange(max(1, len(words) - 2))
    if way == "leave out":
        del words[chance.choice(functions)]
    elif way == "repeat":
        words.insert(at, words[at])
    else:
        words[at : at + 2] = reversed(words[at : at + 2])
    return " ".join(words)


def from_people(folder: Path) -> dict[str, list[str]]:
    """Read sentences of 4 to 12 words that people wrote, by source."""
    cola = pandas.read_csv(folder / "gruen/cola_in_domain_dev.tsv", sep="\t", header=None, quoting=csv.QUOTE_NONE)
    lines = (folder / "people_sets/mcdiv_nuggets.jsonl").read_text(encoding="utf-8").splitlines()
    sets = list(map(json.loads, lines))
    texts_of = {"CoLA, acceptable": cola[3][cola[1] == 1].tolist()}
    for task in ("dialogue", "story"):
        texts_of[f"people's {task}"] = [text.strip() for row in sets if row["task"] == task for text in row["texts"]]
    whole = re.compile(r"[A-Z][^.!?]*[.!?]")
    sentences = {}
    for source, texts in texts_of.items():
        different = dict.fromkeys(texts)
        sentences[source] = [text for text in different if 4 <= len(text.split()) <= 12 and whole.fullmatch(text)]
    return sentences


def summary(name: str, plain: pandas.Series, corrupted: pandas.Series) -> dict[str, Any]:
    """Return a row of the table, from the scores of the sentences of a construction and of their corruptions."""
    is_plain = [1] * len(plain) + [0] * len(corrupted)
    return {
        "construction": name,
        "sentences": len(plain),
        "mean": plain.mean(),
        "below 0.4": (plain < 0.4).mean(),
        "below 0.6": (plain < 0.6).mean(),
        "AUC, corrupted": roc_auc_score(is_plain, pandas.concat([plain, corrupted])),
    }


@command
def main() -> None:
    """Write the table."""
    folder = data_folder(Parser(__doc__))
    chance = random.Random(SEED)
    suite = draw() | from_people(folder)
    pairs = [(name, text, corrupt(text, chance)) for name, texts in suite.items() for text in texts]
    table = pandas.DataFrame(pairs, columns=["construction", "plain", "corrupted"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("plain", "corrupted"):
            result = load("gruen").compute(predictions=table[name].tolist(), components=["grammaticality"])
            table[name] = result["scores"]
    parts = [*table.groupby("construction", sort=False), ("all", table)]
    rows = [summary(str(name), part["plain"], part["corrupted"]) for name, part in parts]
    pandas.DataFrame(rows).to_csv(ROOT / "results" / "gruen_plain.csv", index=False, float_format="%.3f")


if __name__ == "__main__":
    raise SystemExit(main())
