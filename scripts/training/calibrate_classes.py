"""From which cosine on two texts say the same: what the default threshold of vendi_embed's classes is set by.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.calibrate_classes
    METRICS_TEST_DATA=/path/to/data python -m scripts.training.calibrate_classes --show 40

Labels come from people or from how a sentence was made, never from an encoder:

    answers     two answers to one question of Commonsense Frame Completion: the same if people put them into one
                cluster
    sentences   a sentence and its paraphrase (the same): a sentence of a `para` set that is not in the original set,
                with the original that is nearest by edit distance; two sentences of one original set (different)
    nouns       a sentence and the same with its nouns shuffled (different): reported, not used for the choice

The threshold is the one, to two digits, with the largest mean balanced accuracy over answers and sentences: on half of
the development questions, and on two of three generators. What is printed for it is on the others. The clusters in the
file of the test questions are not used: answers with the same content words are rarely in one (docs/probeval.md).
`--show n` prints n random pairs of each kind with their labels, to read: how many labels a reader disputes is the label
noise.
"""

import itertools
import random
import string
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rapidfuzz import fuzz
from sklearn.metrics import roc_auc_score

from scripts.arguments import data_folder
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_part, read_texts
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL

THRESHOLDS = np.arange(0.50, 1.0, 0.01)
# What makes a sentence the original of another: similarity of edit, and how far ahead of the second it is.
_NEAR, _AHEAD = 60, 10
_PER_GENERATOR = 500
_SEED = 0


class Pair(NamedTuple):
    """Two texts, and whether they say the same.

    group : the question, or the set: each has the same weight
    chosen_by : whether the pair serves to choose the threshold, or to judge it
    """

    source: str
    group: str
    texts: tuple[str, str]
    same: bool
    chosen_by: bool


def answer_pairs(path: Path) -> Iterator[Pair]:
    """Pair the answers to each question that differ in more than case and punctuation; every second is held out."""
    for i, (where, record) in enumerate(read_objects(path)):
        question = read_part(record, where, str, "metadata", "id")
        cluster_of: dict[str, str] = {}
        for name, cluster in read_part(record, where, dict, "answers", "clusters").items():
            for answer in read_texts(read_part(cluster, where, dict), "answers", where):
                plain = " ".join(answer.lower().translate(str.maketrans("", "", string.punctuation)).split())
                if plain:
                    cluster_of.setdefault(plain, name)
        for answer, other in itertools.combinations(sorted(cluster_of), 2):
            same = cluster_of[answer] == cluster_of[other]
            yield Pair("answers", question, (answer, other), same, i % 2 == 0)


def sentence_pairs(folder: Path, chosen_by: bool) -> Iterator[Pair]:
    """Pair sentences with their paraphrases, with others of their set, and with their nouns shuffled."""

    def read(name: str) -> list[list[str]]:
        return [read_texts(record, "sentences", where) for where, record in read_objects(folder / f"{name}.jsonl")]

    originals = read("original")
    changed = [read(name) for name in ("para_a", "para_b", "para_c")]
    shuffled = read("shuffle_nouns")
    counts = {len(lines) for lines in (originals, *changed, shuffled)}
    if len(counts) > 1 or len(originals) < _PER_GENERATOR:
        raise ValueError(f"{folder}: the files must have as many lines each, at least {_PER_GENERATOR}. Got {counts}.")
    for i in random.Random(_SEED).sample(range(len(originals)), _PER_GENERATOR):
        group, sentences = f"{folder.name} {i}", originals[i]
        for sentence, other in itertools.combinations(sentences, 2):
            yield Pair("sentences", group, (sentence, other), False, chosen_by)
        for new in dict.fromkeys(text for sets in changed for text in sets[i] if text not in sentences):
            ratios = [fuzz.token_sort_ratio(new, text) for text in sentences]
            first, second = sorted(ratios, reverse=True)[:2]
            if first >= _NEAR and first - second >= _AHEAD:
                yield Pair("sentences", group, (sentences[ratios.index(first)], new), True, chosen_by)
        for sentence, other in zip(sentences, shuffled[i], strict=True):
            if sentence != other:
                yield Pair("nouns", group, (sentence, other), False, chosen_by)


def read_pairs(data: Path) -> list[Pair]:
    """Read the pairs of all sources."""
    pairs = list(answer_pairs(data / "probeval/cfc_dev_targets.jsonl"))
    for generator in ("gpt", "llama3", "qwen2"):
        pairs += sentence_pairs(data / "diversity_sets" / generator, generator != "qwen2")
    return pairs


class Labelled(NamedTuple):
    """The pairs of one source: cosines, labels, and weights that make all groups alike."""

    cosines: np.ndarray
    same: np.ndarray
    weights: np.ndarray

    def rates(self, threshold: float) -> tuple[float, float]:
        """Give the shares of pairs at or above a threshold, among those that are the same and among the others."""
        above = self.cosines >= threshold
        hits, alarms = (
            float(np.average(above[part], weights=self.weights[part])) if part.any() else float("nan")
            for part in (self.same, ~self.same)
        )
        return hits, alarms

    def balanced_accuracy(self, threshold: float) -> float:
        """Average the accuracy on both kinds of pairs."""
        hits, false_alarms = self.rates(threshold)
        return (hits + 1 - false_alarms) / 2

    def area(self) -> float:
        """Find the area under the ROC curve."""
        return float(roc_auc_score(self.same, self.cosines, sample_weight=self.weights))


def select(pairs: list[Pair], cosines: np.ndarray, source: str, chosen_by: bool) -> Labelled:
    """Take the pairs of one source."""
    where = [i for i, pair in enumerate(pairs) if pair.source == source and pair.chosen_by == chosen_by]
    keys = [(pairs[i].group, pairs[i].same) for i in where]
    sizes = Counter(keys)
    weights = np.array([1 / sizes[key] for key in keys])
    return Labelled(cosines[where], np.array([pairs[i].same for i in where]), weights)


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a sentence-transformers model")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N pairs of each kind, and stop")
    arguments = parser.parse_args()
    pairs = read_pairs(data_folder(parser))
    if arguments.show:
        rng = random.Random(_SEED)
        for source, same in itertools.product(("answers", "sentences"), (True, False)):
            kind = [pair for pair in pairs if (pair.source, pair.same) == (source, same)]
            print(f"\n{source}, {'the same' if same else 'different'}:")
            for pair in rng.sample(kind, min(arguments.show, len(kind))):
                print("  " + " | ".join(pair.texts))
        return 0

    texts = {text: i for i, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair.texts))}
    embeddings, signed = encode(list(texts), EncoderSettings(arguments.model))
    embeddings = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    left, right = (np.array([texts[pair.texts[side]] for pair in pairs]) for side in (0, 1))
    cosines = np.einsum("ij,ij->i", embeddings[left].astype(np.float64), embeddings[right].astype(np.float64))

    choosing = [select(pairs, cosines, source, True) for source in ("answers", "sentences")]
    means = [np.mean([part.balanced_accuracy(threshold) for part in choosing]) for threshold in THRESHOLDS]
    best = float(THRESHOLDS[int(np.argmax(means))])
    print(f"{signed['model']}: the same from a cosine of {best:.2f} on (mean balanced accuracy {max(means):.3f})\n")
    kinds = ("same, found", "different, taken for the same")
    table = [["source", "pairs", "AUC", "threshold", *kinds, "balanced accuracy"]]
    for source, chosen_by in itertools.product(("answers", "sentences"), (True, False)):
        part = select(pairs, cosines, source, chosen_by)
        best_of_part = float(THRESHOLDS[int(np.argmax([part.balanced_accuracy(t) for t in THRESHOLDS]))])
        for threshold in dict.fromkeys((best, best_of_part)):
            name = f"{source} ({'chosen by' if chosen_by else 'held out'})"
            shares = (f"{share:.3f}" for share in (*part.rates(threshold), part.balanced_accuracy(threshold)))
            table.append([name, str(len(part.same)), f"{part.area():.3f}", f"{threshold:.2f}", *shares])
    print("\n".join(markdown_table(table)))
    for chosen_by in (True, False):
        print(f"\nnouns shuffled, taken for the same: {select(pairs, cosines, 'nouns', chosen_by).rates(best)[1]:.3f}")
    table = [["threshold", *(f"{t:.2f}" for t in THRESHOLDS[::5])]]
    for source in ("answers", "sentences"):
        rates = [select(pairs, cosines, source, False).rates(t) for t in THRESHOLDS[::5]]
        for name, values in zip(kinds, zip(*rates, strict=True), strict=True):
            table.append([f"{source}: {name}", *(f"{value:.2f}" for value in values)])
    print("\n" + "\n".join(markdown_table(table)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
