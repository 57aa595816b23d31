"""Measure how good the greedy choice of `text-metrics choose` is: beside the best one where that is known, else chance.

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.choice

Small groups: the sentences about one set of concepts and their paraphrases (data/diversity_sets/gpt), of which half are
chosen; the best subset is found by trying all. Large groups: captions (data/text/coco_captions_20k.txt), of which a
tenth is chosen. Each is scored as `text-metrics choose` does, with all texts of the same quality, and with random
qualities.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from scripts.arguments import data_folder
from text_metrics.commands.choose.greedy import choose, choose_best, subset_score
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_text_lines, read_texts, read_topic
from text_metrics.metrics._core.core_encoder import encode
from text_metrics.metrics._core.core_inputs import content_ranks

_GROUPS = 200
_CAPTIONS = 2000
_SEED = 0


def read_groups(folder: Path) -> list[list[str]]:
    """Read the different sentences about each of some sets of concepts."""
    names = ("original", "para_a", "para_b", "para_c")
    files = [
        [
            (where, read_topic(record), read_texts(record, "sentences", where))
            for where, record in islice(read_objects(folder / f"{name}.jsonl"), _GROUPS)
        ]
        for name in names
    ]
    if len(set(map(len, files))) > 1:
        raise ValueError(f"{folder}: the files must have as many lines each. Got {[len(lines) for lines in files]}.")
    groups = []
    for row in zip(*files, strict=True):
        topics = {topic for _, topic, _ in row}
        if len(topics) > 1:
            raise ValueError(f"{row[0][0]}: the other files have another src there. Got {sorted(topics)}.")
        groups.append(list(dict.fromkeys(text for _, _, texts in row for text in texts)))
    return groups


def measure(texts: list[str], quality: np.ndarray, keep: int, try_all: bool) -> list[float]:
    """Score the greedy choice, the mean of random ones, and the best if all are tried."""
    vectors = encode(texts).embeddings.astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sizes, wanted = np.array([len(texts)]), np.array([keep])
    (chosen,) = choose(vectors, quality, sizes, wanted, content_ranks(texts))
    rng = np.random.default_rng(_SEED)
    drawn = [rng.choice(len(texts), keep, replace=False) for _ in range(20)]

    def score(places: np.ndarray) -> float:
        rows = vectors[places]
        return subset_score(rows @ rows.T, quality[places])

    scores = [score(chosen), float(np.mean([score(places) for places in drawn]))]
    if try_all:
        scores.append(score(np.array(choose_best(vectors @ vectors.T, quality, keep))))
    return scores


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.parse_args()
    data = data_folder(parser)
    groups = read_groups(data / "diversity_sets/gpt")
    encode([text for group in groups for text in group])
    captions = read_text_lines(data / "text/coco_captions_20k.txt")[:_CAPTIONS]
    for kind in ("equal", "random"):
        rng = np.random.default_rng(_SEED)
        rows = []
        for group in groups:
            quality = np.ones(len(group)) if kind == "equal" else rng.random(len(group))
            rows.append(measure(group, quality, len(group) // 2, try_all=True))
        greedy, drawn, best = np.array(rows).T
        print(
            f"{len(rows)} groups of {min(map(len, groups))} to {max(map(len, groups))} sentences, {kind} quality: "
            f"greedy {np.mean(greedy / best):.4f} of the best (worst {np.min(greedy / best):.3f}, the best itself "
            f"in {np.mean(greedy > best - 1e-9):.0%}), random {np.mean(drawn / best):.3f}"
        )
        quality = np.ones(len(captions)) if kind == "equal" else rng.random(len(captions))
        chosen, random_choice = measure(captions, quality, len(captions) // 10, try_all=False)
        print(f"{len(captions)} captions, {kind} quality: greedy {chosen:.1f}, random {random_choice:.1f}")


if __name__ == "__main__":
    raise SystemExit(main())
