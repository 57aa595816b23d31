"""From which cosine on do two texts say the same? Choose `same` of semantic_entropy from labelled pairs.

python examples/calibrate_classes.py [pairs.jsonl] [model]

Each line of the file has two `texts` and whether they say the `same`. Label a hundred pairs or more of your own data,
without looking at their cosines; the twenty pairs of examples/data only show the format. The threshold with the largest
balanced accuracy is chosen; its accuracy on the pairs that chose it is too good, so keep some of them apart.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer
from sklearn.metrics import roc_auc_score, roc_curve

from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model
from text_metrics.metrics._core.core_numbers import first_maximum

SAMPLE = Path(__file__).parent / "data" / "pairs.jsonl"


def cosines(pairs: list[tuple[str, str]], encoder: SentenceTransformer) -> np.ndarray:
    """Return the cosine of the embeddings of the two texts of each pair."""
    left, right = (encoder.encode(list(side), normalize_embeddings=True) for side in zip(*pairs, strict=True))
    return (left * right).sum(axis=1)


def best_threshold(same: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Return the threshold with the largest balanced accuracy, midway between two values, and that accuracy."""
    false_positives, recall, thresholds = roc_curve(same, values, drop_intermediate=False)
    accuracy = (recall + 1 - false_positives) / 2
    # Of thresholds with equal accuracy, the highest.
    best = int(first_maximum(accuracy))
    below = values[values < thresholds[best]]
    threshold = (thresholds[best] + below.max()) / 2 if below.size else thresholds[best]
    return float(threshold), float(accuracy[best])


def main(file: Path = SAMPLE, model: str = "") -> None:
    """Print the threshold for the pairs of a file."""
    rows = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    same = np.array([row["same"] for row in rows])
    encoder = SentenceTransformer(model or str(find_model(DEFAULT_MODEL).path))
    values = cosines([tuple(row["texts"]) for row in rows], encoder)
    threshold, accuracy = best_threshold(same, values)
    print(f"{len(rows)} pairs, {int(same.sum())} of them the same; AUC {roc_auc_score(same, values):.3f}")
    print(f"same={threshold:.2f}: balanced accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
