"""Write results/same.csv and results/same-by-length.csv: from which cosine on two texts say the same.

    python -m scripts.results.same [--similarity pairs:MODEL]

The pairs are those of NoveltyBench, long answers to one prompt of which a person said whether they are functionally the
same, and all pairs of answers to a development question of Commonsense Frame Completion, the same if people put them
into one cluster. The context is the prompt, or the question. The chosen cosine has the largest balanced accuracy, that
for both kinds of pairs the largest mean of the two; intervals are those of 1 000 resamples of prompts. A model of pairs
is judged by its own threshold, 0.5. It needs METRICS_TEST_DATA.
"""

import itertools
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.commands.probe.files import read_references
from text_metrics.commands.shared.command import Parser, command
from text_metrics.commands.shared.rows import read_rows
from text_metrics.metrics._core.core_numbers import TIE, first_maximum
from text_metrics.metrics.semantic_entropy.semantic_entropy_settings import DEFAULT_SAME, DEFAULT_SAME_IN_CONTEXT

GRID = np.arange(-20, 101) / 100
RESAMPLES = 1000
# Words of the longer text of a pair.
LENGTHS = {"all": (0, np.inf), "up to 150": (0, 150), "151 to 350": (150, 350), "more than 350": (350, np.inf)}


class Pairs(NamedTuple):
    """Pairs of texts, whether they say the same, (n,), and the context of each."""

    texts: list[list[str]]
    same: np.ndarray
    contexts: list[str]

    def similarities(self, **settings: Any) -> np.ndarray:
        """Compute the similarity of each pair, (n,): the Chamfer diversity of two texts is 1 minus that."""
        cache = ROOT / "build" / "embeddings"
        result = load("chamfer_diversity").compute(predictions=self.texts, cache_dir=cache, **settings)
        return 1 - np.array(result["scores"])


class Counts(NamedTuple):
    """How many pairs of each prompt reach each cosine of the grid, and a column of all: (p, 122)."""

    same: np.ndarray
    other: np.ndarray

    @classmethod
    def of(cls, pairs: Pairs, similarities: np.ndarray) -> Self:
        """Count the pairs that are the same and those that are not."""
        reached = np.column_stack([similarities[:, None] >= GRID - TIE, np.ones(len(similarities))])
        kinds = (pandas.DataFrame(reached * (pairs.same == value)[:, None]) for value in (True, False))
        return cls(*(frame.groupby(pairs.contexts).sum().to_numpy() for frame in kinds))

    def balanced(self, weights: np.ndarray) -> np.ndarray:
        """Compute the balanced accuracy of each cosine, with weights of prompts (..., p): (..., 121)."""
        same, other = weights @ self.same, weights @ self.other
        return (same[..., :-1] / same[..., -1:] + 1 - other[..., :-1] / other[..., -1:]) / 2


def read_pairs(data: Path) -> dict[str, Pairs]:
    """Read both kinds of pairs."""
    rows = [row for _, row in read_rows(data / "equivalence" / "noveltybench_pairs.jsonl")]
    triples = [
        ([left["text"], right["text"]], left["cluster"] == right["cluster"], question["question"])
        for question in read_references(data / "probeval" / "cfc_dev_targets.jsonl")
        for left, right in itertools.combinations(question["answers"], 2)
    ]
    texts, same, contexts = map(list, zip(*triples, strict=True))
    return {
        "NoveltyBench": Pairs(
            [row["texts"] for row in rows],
            np.array([bool(row["same"]) for row in rows]),
            [row["prompt"] for row in rows],
        ),
        "human clusters": Pairs(texts, np.array(same), contexts),
    }


def left_out(counts: list[Counts], place: int) -> float:
    """Compute the balanced accuracy of one kind of pairs, each prompt with the cosine that the others choose."""
    sums, n = np.zeros((2, 2)), len(counts[place].same)
    fixed = [other.balanced(np.ones(len(other.same))) for i, other in enumerate(counts) if i != place]
    for prompt in range(n):
        weights = np.ones(n)
        weights[prompt] = 0
        best = first_maximum(np.mean([*fixed, counts[place].balanced(weights)], axis=0))
        sums += [[field[prompt, best], field[prompt, -1]] for field in counts[place]]
    return (sums[0, 0] / sums[0, 1] + 1 - sums[1, 0] / sums[1, 1]) / 2


def choose(kinds: dict[str, Pairs], default: float, contexts: bool) -> pandas.DataFrame:
    """Choose the cosine for each kind of pairs, and for both."""
    similarities = {
        name: pairs.similarities(**({"contexts": pairs.contexts} if contexts else {})) for name, pairs in kinds.items()
    }
    counts = {name: Counts.of(pairs, similarities[name]) for name, pairs in kinds.items()}
    generator, rows = np.random.default_rng(0), []
    for names in ([*kinds], *([name] for name in kinds)):
        parts, resampled = [counts[name] for name in names], []
        whole = np.mean([part.balanced(np.ones(len(part.same))) for part in parts], axis=0)
        for part in parts:
            n = len(part.same)
            resampled.append(part.balanced(generator.multinomial(n, np.full(n, 1 / n), RESAMPLES)))
        chosen = GRID[first_maximum(np.mean(resampled, axis=0))]
        low, high = np.quantile(chosen, [0.025, 0.975])
        left = np.mean([left_out(parts, i) for i in range(len(parts))])
        row = {"pairs": " and ".join(names), "contexts": "yes" if contexts else "no"}
        row["AUC"] = f"{np.mean([roc_auc_score(kinds[name].same, similarities[name]) for name in names]):.3f}"
        row["best cosine"] = f"{GRID[first_maximum(whole)]:.2f} [{low:.2f}, {high:.2f}]"
        near = GRID[whole >= whole.max() - 0.005]
        row["within 0.5 points"] = f"{near.min():.2f} to {near.max():.2f}"
        row |= {"balanced accuracy, %": f"{100 * whole.max():.1f}", "of prompts left out, %": f"{100 * left:.1f}"}
        rows.append(row | {"at the default, %": f"{100 * whole[np.isclose(GRID, default)][0]:.1f}"})
    return pandas.DataFrame(rows)


def by_length(pairs: Pairs, model: str | None) -> pandas.DataFrame:
    """Judge the defaults, and a model of pairs, by the length of the longer answer."""
    kinds: dict[str, tuple[float, dict[str, Any]]] = {
        "cosine": (DEFAULT_SAME, {}),
        "cosine, contexts": (DEFAULT_SAME_IN_CONTEXT, {"contexts": pairs.contexts}),
    }
    if model:
        kinds[model] = (0.5, {"similarity": model, "contexts": pairs.contexts})
    words = np.array([max(len(text.split()) for text in texts) for texts in pairs.texts])
    rows = []
    for name, (threshold, settings) in kinds.items():
        similarities = pairs.similarities(**settings)
        for length, (low, high) in LENGTHS.items():
            part = (low < words) & (words <= high)
            same, values = pairs.same[part], similarities[part]
            accuracy = balanced_accuracy_score(same, values >= threshold - TIE)
            row = {"the same by": name, "words of the longer answer": length, "pairs": len(same)}
            rows.append(
                row | {"AUC": f"{roc_auc_score(same, values):.3f}", "balanced accuracy, %": f"{100 * accuracy:.1f}"}
            )
    return pandas.DataFrame(rows)


@command
def main() -> None:
    """Write the tables."""
    parser = Parser(__doc__)
    parser.add_argument("--similarity", help="judge a model of pairs too: pairs:MODEL or nli:MODEL")
    model = parser.parse_args().similarity
    kinds = read_pairs(data_folder(parser))
    thresholds = pandas.concat([choose(kinds, DEFAULT_SAME, False), choose(kinds, DEFAULT_SAME_IN_CONTEXT, True)])
    for name, table in (("same", thresholds), ("same-by-length", by_length(kinds["NoveltyBench"], model))):
        table.to_csv(ROOT / "results" / f"{name}.csv", index=False)


if __name__ == "__main__":
    raise SystemExit(main())
