"""How often edited prose loses focus, by which the thresholds of gruen's focus are set.

    METRICS_TEST_DATA=/path/to/data python scripts/calibrate_gruen_focus.py

Reads data/text/brown.zip and data/text/abc.zip of that folder: paragraphs of Brown, articles of ABC news. Prints the
quantiles of both statistics over running text, and the share of texts of several lengths that lose focus at the current
thresholds; and, as a check of the opposite, the same with one inner sentence of each text from another document.
"""

import argparse
import os
import random
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics.gruen.core_encoder import EncoderSettings, encode  # noqa: E402
from metrics.gruen.core_models import DEFAULT_MODEL  # noqa: E402
from metrics.gruen.gruen_focus import COSINE_THRESHOLD, DIGRESSION_THRESHOLD, embedding_breaks  # noqa: E402
from metrics.gruen.gruen_text import split_texts  # noqa: E402

SIZES = (2, 3, 5, 10)


def brown_paragraphs(archive: Path) -> Iterator[list[str]]:
    """Read paragraphs as lists of sentences: a line of the tagged corpus each, indented at a new paragraph."""
    with zipfile.ZipFile(archive) as opened:
        for name in sorted(opened.namelist()):
            if not re.search(r"/c[a-r]\d\d$", name):
                continue
            paragraph: list[str] = []
            for line in opened.read(name).decode("utf-8").splitlines():
                if line.startswith("\t") and paragraph:
                    yield paragraph
                    paragraph = []
                words = [token.rsplit("/", 1)[0] for token in line.split()]
                if words:
                    text = " ".join(word for word in words if word not in ("``", "''"))
                    paragraph.append(re.sub(r" (?=[.,;:?!])", "", text))
            if paragraph:
                yield paragraph


def abc_articles(archive: Path) -> Iterator[list[str]]:
    """Read articles as lists of sentences: an empty line ends one."""
    with zipfile.ZipFile(archive) as opened:
        for name in ("abc/rural.txt", "abc/science.txt"):
            text = opened.read(name).decode("latin-1").replace("\r", "")
            articles = [" ".join(article.split()) for article in re.split(r"\n\s*\n", text)]
            yield from split_texts(articles, parity=False)


def statistics(embeddings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the cosines of adjacent sentences, (n - 1,), and the digression of each inner sentence, (n - 2,)."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    adjacent = (unit[1:] * unit[:-1]).sum(1)
    outer = (unit[2:] * unit[:-2]).sum(1)
    return adjacent, (adjacent[1:] + adjacent[:-1]) / 2 - outer


def report(name: str, texts: list[list[str]], model: str, limit: int) -> None:
    """Print the statistics of one corpus."""
    rng = random.Random(0)
    texts = [text for text in texts if len(text) >= min(SIZES)]
    texts = rng.sample(texts, min(limit, len(texts)))
    encoded = encode([sentence for text in texts for sentence in text], EncoderSettings(model)).embeddings
    parts = np.split(encoded, np.cumsum(list(map(len, texts)))[:-1])
    adjacent, digressions = (np.concatenate(column) for column in zip(*map(statistics, parts), strict=True))
    print(f"{name}: {len(texts)} texts, {len(encoded)} sentences")
    quantiles = (0.01, 0.02, 0.05, 0.1, 0.5)
    for title, values in (("cosine", adjacent), ("digression", digressions)):
        print(f"  {title:10}", *(f"{q:.0%} {np.quantile(values, q):.3f}" for q in quantiles))
    print(f"  below {COSINE_THRESHOLD}: {(adjacent < COSINE_THRESHOLD).mean():.1%} of the adjacent pairs")
    print(f"  below {DIGRESSION_THRESHOLD}: {(digressions < DIGRESSION_THRESHOLD).mean():.1%} of the inner sentences")
    for size in SIZES:
        runs = [part[i : i + size] for part in parts for i in range(0, len(part) - size + 1, size)]
        lost = np.mean([bool(embedding_breaks(run)) for run in runs])
        line = f"  {size:2} sentences: {lost:.1%} of {len(runs)} texts lose focus"
        if size > 2:
            strange = [np.vstack([run[:1], encoded[rng.randrange(len(encoded))], run[2:]]) for run in runs]
            line += f", {np.mean([bool(embedding_breaks(run)) for run in strange]):.1%} with a strange second sentence"
        print(line)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a sentence-transformers model")
    parser.add_argument("--texts", type=int, default=2000, help="texts of each corpus, at most")
    arguments = parser.parse_args()
    if not os.environ.get("METRICS_TEST_DATA"):
        parser.error("METRICS_TEST_DATA is not set: it names the folder with data/text")
    folder = Path(os.environ["METRICS_TEST_DATA"]) / "data" / "text"
    report("Brown", list(brown_paragraphs(folder / "brown.zip")), arguments.model, arguments.texts)
    report("ABC", list(abc_articles(folder / "abc.zip")), arguments.model, arguments.texts)


if __name__ == "__main__":
    main()
