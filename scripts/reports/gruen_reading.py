"""Count the texts that gruen reads otherwise than with the original's normalizer, and what either leaves whole.

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.gruen_reading

Three tables: texts of which the sentences differ; addresses, numbers and the like that are whole in a sentence; and
recall and precision of the sentence boundaries of the Brown corpus. Texts are the paragraphs of the corpora in
data/text, captions, the rated texts in data/gruen, each released file in data/diversity_pairs and data/diversity_sets,
Python's language reference, and the descriptions of the installed packages.
"""

import importlib.metadata
import itertools
import pydoc_data.topics
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import sentencex

from scripts.arguments import data_folder
from scripts.reports.gruen import read_ratings
from scripts.training.gruen.corpus import read_cola
from scripts.training.gruen_calibration.corpora import brown_paragraphs
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_archive, read_objects, read_text_lines, read_texts
from text_metrics.commands.shared.pages import Table, markdown_table
from text_metrics.metrics.gruen.gruen_markup import read_blocks
from text_metrics.metrics.gruen.gruen_text import normalize, of_two_words, split_block

KINDS = {
    "address": r"(?:https?://|www\.)[^\s<>\"')\]]*\w|[\w.+-]+@[\w-]+(?:\.\w+)+",
    "number with points": r"(?<![\w.])[v$£€]?\d+(?:\.\d+)+(?![\w.])",
    "name with points": r"(?<![\w./@-])[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+",
    "abbreviation with points": r"(?<![\w.])(?:[A-Za-z]\.){2,}",
    "ellipsis": r"\w\.{3}",
}


def original_split(block: str) -> list[str]:
    """Split a block as `gruen` did with the original's normalizer."""
    return [part.strip() for part in sentencex.segment("en", normalize(block))]


def read_sources(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield texts by their source."""
    for name in ("abc", "state_union", "movie_reviews", "webtext"):
        files = read_archive(folder / "text" / f"{name}.zip", r"\.txt$")
        texts = (data.decode("utf-8", errors="replace").replace("\r", "") for _, data in files)
        yield f"{name}.zip", [part for text in texts for part in re.split(r"\n\s*\n", text) if part.strip()]
    yield "coco_captions_20k.txt", read_text_lines(folder / "text" / "coco_captions_20k.txt")
    yield (
        "CoLA",
        [text for part in ("train", "dev") for text, _ in read_cola(folder / "gruen" / f"cola_in_domain_{part}.tsv")],
    )
    for name, rows in read_ratings(folder / "gruen").items():
        yield name, [text for text, _ in rows]
    for path in sorted((folder / "diversity_pairs").glob("*.jsonl")):
        sets = [read_texts(row, key, where) for where, row in read_objects(path) for key in ("set1", "set2")]
        yield path.name, list(itertools.chain(*sets))
    for path in sorted((folder / "diversity_sets").glob("*/*.jsonl")):
        sets = [read_texts(row, "sentences", where) for where, row in read_objects(path)]
        yield f"{path.parent.name}/{path.name}", list(itertools.chain(*sets))
    yield "Python's language reference", list(pydoc_data.topics.topics.values())
    packages = {found.name: found.metadata.json.get("description") for found in importlib.metadata.distributions()}
    yield "descriptions of packages", [str(text) for _, text in sorted(packages.items()) if text]


def boundary_table(folder: Path) -> Table:
    """Recall and precision of the boundaries in paragraphs without brackets of which each sentence ends with a mark."""
    counts: Counter[str] = Counter()
    for paragraph in itertools.chain(*brown_paragraphs(folder)):
        if set("()[]").intersection("".join(paragraph)) or not all(sentence[-1] in ".!?" for sentence in paragraph):
            continue
        expected, split = _ends(paragraph), _ends(split_block(" ".join(paragraph)))
        counts += Counter(paragraphs=1, expected=len(expected), split=len(split), common=len(expected & split))
    shares = [f"{100 * counts['common'] / counts[name]:.1f} %" for name in ("expected", "split")]
    head = ["Brown, paragraphs", "boundaries", "recall", "precision"]
    return [head, [str(counts["paragraphs"]), str(counts["expected"]), *shares]]


def _ends(sentences: list[str]) -> set[int]:
    """Return where sentences end but the last, in characters without space."""
    return set(itertools.accumulate(len("".join(sentence.split())) for sentence in sentences[:-1]))


@command
def main() -> None:
    """Print the tables."""
    parser = make_parser(__doc__)
    parser.parse_args()
    folder = data_folder(parser)
    counts: Table = [["source", "texts", "read differently"]]
    tokens: Counter[str] = Counter()
    whole: Counter[tuple[str, bool]] = Counter()
    for name, texts in read_sources(folder):
        n_different = 0
        for text in texts:
            blocks = read_blocks(text).texts
            splits = [[split(block) for block in blocks] for split in (original_split, split_block)]
            before, now = (of_two_words(list(itertools.chain(*split))) for split in splits)
            n_different += before != now
            for i, block in enumerate(blocks):
                for kind, pattern in KINDS.items():
                    for token in re.findall(pattern, block):
                        tokens[kind] += 1
                        for is_now in (False, True):
                            whole[kind, is_now] += any(token in sentence for sentence in splits[is_now][i])
        counts.append([name, str(len(texts)), str(n_different)])
    kinds: Table = [["with points", "in these texts", "whole with the original's normalizer", "whole"]]
    for kind, n in tokens.items():
        kinds.append([kind, str(n), *(f"{100 * whole[kind, is_now] / n:.0f} %" for is_now in (False, True))])
    print("\n\n".join("\n".join(markdown_table(table)) for table in (counts, kinds, boundary_table(folder / "text"))))


if __name__ == "__main__":
    raise SystemExit(main())
