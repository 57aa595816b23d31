"""Measure how often the demos take English for another language, and find another language.

    python -m scripts.reports.languages
    python -m scripts.reports.languages --write docs/demos.md

English: captions of COCO, consecutive sentences of five corpora of NLTK, and answers to the questions of Commonsense
Frame Completion. Other languages: the sentences and words of tests/data. Needs METRICS_TEST_DATA.
"""

import json
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts import ROOT
from scripts.arguments import data_folder, publish
from spaces._kit import language
from text_metrics.commands.probe.files import read_counts
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_archive, read_text_lines
from text_metrics.commands.shared.pages import markdown_table

CORPORA = {"abc": "news", "brown": "Brown", "movie_reviews": "reviews", "state_union": "speeches", "webtext": "web"}
LENGTHS = (3, 4, 6, 8, 12, 20)
# Sets of words drawn of each language and length, and of the answers to each question and length.
DRAWS = 100
SENTENCES = 10
SEED = 0
OTHERS = ROOT / "tests" / "data"


def is_told(texts: Sequence[str]) -> bool:
    """Return whether the demos say of one of these texts, which are one set, that it is not in English."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        language.check_english([texts])
    return bool(caught)


def captions_of(data: Path) -> list[str]:
    """Read the captions."""
    return read_text_lines(data / "text" / "coco_captions_20k.txt")


def sentences_of(path: Path) -> Iterator[str]:
    """Yield the sentences of a corpus, in order."""
    for _, content in read_archive(path, r"(?<!/)(?<!README)(?<!CONTENTS)(?<!cats\.txt)$"):
        text = content.decode("utf-8", "replace")
        if path.stem == "brown":
            # A tag follows each word.
            text = re.sub(r"(\S+)/\S+", r"\1", text)
        for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n", text):
            if sentence.strip():
                yield " ".join(sentence.split())


def row(name: str, sets: Sequence[Sequence[str]]) -> list[str]:
    """Measure sets of texts."""
    n_told = sum(map(is_told, sets))
    return [name, f"{len(sets):,}", f"{n_told:,}", f"{100 * n_told / len(sets):.2f}"]


def english_rows(data: Path) -> Iterator[list[str]]:
    """Measure English texts."""
    yield row("captions", [[caption] for caption in captions_of(data)])
    for corpus, name in CORPORA.items():
        sentences = list(sentences_of(data / "text" / f"{corpus}.zip"))
        texts = [" ".join(sentences[i : i + SENTENCES]) for i in range(0, len(sentences), SENTENCES)]
        yield row(f"{name}, {SENTENCES} sentences each", [[text] for text in texts])
    rng = random.Random(SEED)
    answers = [sorted(counts) for counts in read_counts(data / "probeval/cfc_test/human_predictions.json").values()]
    for n in LENGTHS:
        drawn = [rng.sample(of_question, min(n, len(of_question))) for of_question in answers for _ in range(DRAWS)]
        yield row(f"lists of {n} answers to a question", drawn)


def other_rows(data: Path) -> Iterator[list[str]]:
    """Measure texts in other languages."""
    sentences, words = (
        json.loads((OTHERS / name).read_text(encoding="utf-8")) for name in ("other_languages.json", "other_words.json")
    )
    alone = [sentence for of_language in sentences.values() for sentence in of_language]
    yield row(f"sentences in {len(sentences)} languages", [[sentence] for sentence in alone])
    captions = [caption for caption in captions_of(data) if caption.endswith(".")]
    mixed = [[f"{captions[2 * i]} {sentence} {captions[2 * i + 1]}"] for i, sentence in enumerate(alone)]
    yield row("the same, each between two English captions", mixed)
    rng = random.Random(SEED)
    for n in LENGTHS:
        drawn = [
            rng.sample(of_language, min(n, len(of_language))) for of_language in words.values() for _ in range(DRAWS)
        ]
        yield row(f"lists of {n} words in {len(words)} languages", drawn)


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its markers in a page")
    arguments = parser.parse_args()
    data = data_folder(parser)
    table = [
        ["texts", "number", "not in English, by the demos", "%"],
        ["**English**", "", "", ""],
        *english_rows(data),
        ["**other languages**", "", "", ""],
        *other_rows(data),
    ]
    publish(markdown_table(table), arguments.write, "languages")


if __name__ == "__main__":
    raise SystemExit(main())
