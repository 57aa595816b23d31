"""Measure which way of reading long texts keeps more of what they say: cut off, or in windows (`long_texts=`).

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.long_texts
    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.long_texts --write docs/long-texts.md

Each text is split in the middle, so that each half is longer than the default encoder reads. Does the embedding of the
second half find its own first half, as the nearest by cosine, among those of 200 other texts? The texts are film
reviews and sections of speeches (data/text/movie_reviews.zip, data/text/state_union.zip).
"""

from pathlib import Path

import numpy as np

from scripts.arguments import data_folder, publish
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_archive
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics._core.core_encoder import LONG_TEXTS, EncoderSettings, encode
from text_metrics.metrics._core.core_results import mean_estimate

# Texts that are compared with each other: one is right, 200 are wrong.
GROUP = 201
# Words of a text, enough for both halves to be longer than 256 tokens, and of a section of a speech.
LEAST, SECTION = 700, 1200
LEVEL = 0.95
SEED = 0


def read_zip(path: Path) -> list[str]:
    """Read the texts of an archive, in order of their names."""
    return [text.decode("utf-8", "replace") for _, text in read_archive(path, r"\.txt$")]


def sections(text: str) -> list[str]:
    """Split a speech at line ends into consecutive sections of at least `SECTION` words; a shorter end is left out."""
    parts: list[list[str]] = [[]]
    n_words = 0
    for line in text.splitlines(keepends=True):
        parts[-1].append(line)
        n_words += len(line.split())
        if n_words >= SECTION:
            parts.append([])
            n_words = 0
    return ["".join(lines) for lines in parts[:-1]]


def halves(text: str) -> tuple[str, str]:
    """Split a text at the first end of a line, or else of a word, after its middle."""
    middle = len(text) // 2
    places = [place for mark in "\n " if (place := text.find(mark, middle)) >= 0]
    return text[: places[0]], text[places[0] :]


def found_halves(parts: list[tuple[str, str]], way: str) -> np.ndarray:
    """Find which second halves are nearest to their own first half, group by group: (n,), bool."""
    texts = [half for pair in parts for half in pair]
    vectors = encode(texts, EncoderSettings(long_texts=way)).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = (vectors[i::2].reshape(-1, GROUP, vectors.shape[1]) for i in (0, 1))
    return ((second @ first.transpose(0, 2, 1)).argmax(axis=2) == np.arange(GROUP)).ravel()


def nearest_lengths(parts: list[tuple[str, str]]) -> np.ndarray:
    """Find which second halves are nearest to their own first half in characters: (n,), bool."""
    lengths = np.array([[len(half) for half in pair] for pair in parts]).reshape(-1, GROUP, 2)
    apart = np.abs(lengths[:, :, None, 1] - lengths[:, None, :, 0])
    return (apart.argmin(axis=2) == np.arange(GROUP)).ravel()


def percent(values: np.ndarray, sign: str = "") -> str:
    """Format a mean in percent, with its confidence interval over texts."""
    low, high = mean_estimate(values).interval(LEVEL) or (np.nan, np.nan)
    return f"{100 * values.mean():{sign}.1f} ({100 * low:{sign}.1f} to {100 * high:{sign}.1f})"


def measure(name: str, texts: list[str], n_groups: int) -> list[str]:
    """Measure one kind of texts: a row of the table."""
    texts = [text for text in texts if len(text.split()) >= LEAST]
    chosen = np.random.default_rng(SEED).permutation(len(texts))[: n_groups * GROUP]
    if len(chosen) < n_groups * GROUP:
        raise ValueError(f"{name}: {n_groups * GROUP} texts of {LEAST} words are needed, and there are {len(texts)}.")
    parts = [halves(texts[i]) for i in chosen]
    words = np.median([len(half.split()) for pair in parts for half in pair])
    hits = {way: found_halves(parts, way).astype(float) for way in LONG_TEXTS}
    more = percent(hits["windows"] - hits["cut"], "+")
    cells = [f"{len(parts)} {name}", f"{words:.0f}", percent(hits["cut"]), percent(hits["windows"]), more]
    return [*cells, f"{100 * nearest_lengths(parts).mean():.1f}"]


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its markers in a page")
    arguments = parser.parse_args()
    folder = data_folder(parser) / "text"
    check_outputs([folder], [arguments.write])
    header = ["texts", "words of a half, median", '"cut", %', '"windows", %', "difference, points", "rule: length, %"]
    speeches = [section for text in read_zip(folder / "state_union.zip") for section in sections(text)]
    rows = [
        header,
        measure("reviews", read_zip(folder / "movie_reviews.zip"), 2),
        measure("sections of speeches", speeches, 1),
    ]
    publish(markdown_table(rows), arguments.write, "measure_long_texts")


if __name__ == "__main__":
    raise SystemExit(main())
