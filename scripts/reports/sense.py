"""Measure ratings of sense by a local language model on the released nonsense: the table in `docs/evidence/sense.md`.

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.sense --model model.gguf --concepts 30 --ratings FOLDER

The protocol was written before the first rating of a released text. Nothing is trained on or chosen by these texts.

1. Ratings of a text, all by one model:
   - `asked`: the answer to the default question of `text-metrics rate-quality --ask`;
   - `likelihood`: the geometric mean of the tokens' probabilities;
   - `corrected`: the same, corrected for length by a reference, the first 100 captions of COCO;
   - `relative`: the geometric mean of each token's probability divided by that of the most probable token there;
   - `product`, `mean`: asked × corrected, and their geometric mean;
   - `fitted`: a logistic regression on the log-odds of `asked`, the deviation that `corrected` ranks, and the logarithm
     of `relative`, fitted to the 60 pairs of our own sentences (`scripts/training/sense_pairs.jsonl`).
2. The rating that decides is the one with the highest AUC on our own pairs, `fitted` cross-fitted by pair. The released
   texts are the original, nonsensical and paraphrased sets of the first concepts that `text-metrics meta-eval` draws.
3. It ships if, for all three generators, its AUC is at least 75 and above the rule "shorter text", and the Vendi score
   weighted by it ranks the originals above Para-3 at least as often as the score weighted by `gruen`.

The folder receives `measured.jsonl`, which an interrupted run continues, and a file for each rating as
`text-metrics meta-eval --quality` reads it.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.training.choose_question import PAIRS
from text_metrics import load
from text_metrics.commands.meta_eval.generated_sets import (
    ORIGINAL,
    POORER,
    Kinds,
    auc_by_kind,
    originals_above,
    read_kinds,
)
from text_metrics.commands.meta_eval.pairs import Sets
from text_metrics.commands.meta_eval.raters import Rater, gruen_rater, read_rater, shortness_rater
from text_metrics.commands.meta_eval.rows import Scoring, embedding_rows, encode_texts, quality_rows, rule_rows
from text_metrics.commands.rate_quality.asking import SENSE, AskedModel
from text_metrics.commands.rate_quality.likelihood import LanguageModel, Likelihood
from text_metrics.commands.rate_quality.rating import Reference, per_token
from text_metrics.commands.shared.causal import DTYPES, load_causal
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_text_lines, write_jsonl
from text_metrics.commands.shared.pages import markdown_table

CAPTIONS = 100
MEASURED = "measured.jsonl"
NONSENSE = "nonsensical"
KINDS = (ORIGINAL, NONSENSE, "para_a", "para_b", "para_c")
VENDI = "VS-Embed-0.5"
# Concepts that are measured at a time: what a killed run loses.
_AT_ONCE = 3


class Measured(NamedTuple):
    """What a model says of n texts.

    asked : ndarray of shape (n,), in [0, 1]
    likelihood : log-probabilities of the texts, and of the most probable tokens
    """

    asked: np.ndarray
    likelihood: Likelihood

    def features(self, reference: Reference) -> np.ndarray:
        """Return the features of the logistic regression; ndarray of shape (n, 3)."""
        asked = np.clip(self.asked, 1e-6, 1 - 1e-6)
        relative = np.log(self.relative())
        return np.stack([np.log(asked / (1 - asked)), reference.deviation(self.likelihood), relative], axis=1)

    def relative(self) -> np.ndarray:
        """Geometric mean of the tokens' probabilities divided by those of the most probable tokens; (n,)."""
        total, tokens, _, best = self.likelihood
        return np.exp(np.minimum(total - best, 0) / np.maximum(tokens, 1))


class Store:
    """Measurements of texts, in a file that grows by a line for each.

    speed : texts a second by asking and by likelihood in this run; empty if nothing was measured
    """

    def __init__(self, path: Path, model: str, dtype: str) -> None:
        self._path, self._name, self._dtype = path, model, dtype
        self._records: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._records = {record["text"]: record for _, record in read_objects(path)}
        self._models: tuple[AskedModel, LanguageModel] | None = None
        self._seconds, self._texts = np.zeros(2), 0

    def measure(self, texts: list[str]) -> None:
        """Measure the texts that are not in the file."""
        new = [text for text in dict.fromkeys(texts) if text not in self._records]
        if not new:
            return
        if self._models is None:
            model = load_causal(self._name, self._dtype)
            self._models = AskedModel(model, SENSE), LanguageModel(model)
        asking, weighing = self._models
        times = [time.perf_counter()]
        asked = asking.rate(new)
        times.append(time.perf_counter())
        likelihood = weighing.score(new)
        times.append(time.perf_counter())
        self._seconds += np.diff(times)
        self._texts += len(new)
        with self._path.open("a", encoding="utf-8") as file:
            for i, text in enumerate(new):
                record = {
                    "text": text,
                    "asked": float(asked[i]),
                    "log_probability": float(likelihood.total[i]),
                    "best": float(likelihood.best[i]),
                    "tokens": int(likelihood.tokens[i]),
                    "model": f"{likelihood.identity}|{self._dtype}|ask:{SENSE.digest()}",
                }
                self._records[text] = record
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        speed = self._texts / self._seconds
        print(f"{len(self._records)} texts; {speed[0]:.2f} and {speed[1]:.2f} a second", file=sys.stderr, flush=True)

    def read(self, texts: list[str]) -> Measured:
        """Return the measurements of texts."""
        records = [self._records[text] for text in texts]
        asked, total, best, tokens = (
            np.array([record[key] for record in records]) for key in ("asked", "log_probability", "best", "tokens")
        )
        return Measured(asked, Likelihood(total, tokens, records[0]["model"], best))


def read_own() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return our own sentences, whether each makes sense, and the number of its pair."""
    pairs = [record for _, record in read_objects(PAIRS)]
    texts = [pair[side] for side in ("sensible", "nonsense") for pair in pairs]
    return texts, np.repeat([1, 0], len(pairs)), np.tile(np.arange(len(pairs)), 2)


def rate(store: Store, captions: list[str], texts: list[str]) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Rate texts.

    Returns
    -------
    ratings : for each rating an ndarray of shape (n,), in [0, 1]
    own : the AUC of each on our own pairs
    """
    reference = Reference(store.read(captions).likelihood)
    own_texts, labels, pairs = read_own()
    own = store.read(own_texts)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    crossed = cross_val_predict(
        model, own.features(reference), labels, groups=pairs, cv=GroupKFold(10), method="predict_proba"
    )
    model.fit(own.features(reference), labels)
    print(f"fitted: coefficients {model[-1].coef_[0].round(2).tolist()} of the standardized features", file=sys.stderr)
    measured = store.read(texts)
    ratings = _simple_ratings(measured, reference)
    areas = {name: roc_auc_score(labels, values) for name, values in _simple_ratings(own, reference).items()}
    ratings["fitted"] = model.predict_proba(measured.features(reference))[:, 1]
    areas["fitted"] = roc_auc_score(labels, crossed[:, 1])
    return ratings, areas


def _simple_ratings(measured: Measured, reference: Reference) -> dict[str, np.ndarray]:
    corrected = reference.rate(measured.likelihood)
    return {
        "asked": measured.asked,
        "likelihood": per_token(measured.likelihood),
        "corrected": corrected,
        "relative": measured.relative(),
        "product": measured.asked * corrected,
        "mean": np.sqrt(measured.asked * corrected),
    }


def read_sets(folder: Path, concepts: int) -> tuple[list[Kinds], list[list[str]]]:
    """Read the sets of the kinds that are measured, for the first concepts that `meta-eval` draws."""
    every = Sets()
    read = read_kinds(folder, concepts, every)
    texts, sets = every.texts(), Sets()
    kinds = []
    for generator in read:
        numbers = {
            kind: np.array([sets.add(texts[i]) for i in generator.numbers[kind]])
            for kind in KINDS
            if kind in generator.numbers
        }
        kinds.append(generator._replace(numbers=numbers))
    return kinds, sets.texts()


def _measure_all(store: Store, folder: Path, concepts: int) -> None:
    kinds, sets = read_sets(folder, concepts)
    for start in range(0, concepts, _AT_ONCE):
        numbers = [
            i
            for generator in kinds
            for members in generator.numbers.values()
            for i in members[start : start + _AT_ONCE].tolist()
        ]
        store.measure([text for i in numbers for text in sets[i]])


def _percent(result: dict[str, Any]) -> str:
    value = result["share"] if "share" in result else result["auc"]
    low, high = result["interval"]
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def print_tables(kinds: list[Kinds], sets: list[list[str]], raters: list[Rater], own: dict[str, float]) -> None:
    """Print the AUC of each rating, and how often its weighted Vendi score ranks the originals above."""
    names = [generator.name for generator in kinds]
    counts = ", ".join(f"{len(generator.numbers[ORIGINAL])} of {generator.name}" for generator in kinds)
    print(f"\nAUC × 100, original against nonsense; concepts: {counts}\n")
    table = [["rating", "own pairs", *names]]
    for rater in raters:
        areas = [_percent(auc_by_kind(generator, rater.ratings)[NONSENSE]) for generator in kinds]
        own_area = f"{100 * own[rater.name]:.1f}" if rater.name in own else ""
        table.append([rater.name, own_area, *areas])
    print("\n".join(markdown_table(table)))
    encoded = encode_texts(
        [text for members in sets for text in members], Scoring(cache_dir=ROOT / "build" / "embeddings")
    )
    rows = [row for row in embedding_rows(sets, encoded) if row.name == VENDI]
    for rater in raters:
        rows += [row for row in quality_rows(sets, encoded, rater) if row.name.endswith(f"× {VENDI}")]
    rows += [row for row in rule_rows(sets) if row.name == "rule: shorter set"]
    for kind in KINDS[1:]:
        print(f"\noriginal above {POORER[kind]}, %\n")
        table = [["score", *names]]
        table += [[row.name, *(_percent(originals_above(generator, row)[kind]) for generator in kinds)] for row in rows]
        print("\n".join(markdown_table(table)))


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", required=True, help="instruct model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the model")
    parser.add_argument("--concepts", type=int, default=30, help="number of concepts of each generator")
    parser.add_argument("--ratings", type=Path, required=True, metavar="FOLDER", help="where to keep measurements")
    parser.add_argument("--own", action="store_true", help="measure our own sentences only")
    arguments = parser.parse_args()
    data = data_folder(parser)
    arguments.ratings.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.ratings / MEASURED, arguments.model, arguments.dtype)
    captions = read_text_lines(data / "text" / "coco_captions_20k.txt")[:CAPTIONS]
    own_texts = read_own()[0]
    store.measure([*own_texts, *captions])
    if arguments.own:
        for name, area in rate(store, captions, own_texts)[1].items():
            print(f"{name}: {100 * area:.1f}")
        return
    _measure_all(store, data / "diversity_sets", arguments.concepts)
    kinds, sets = read_sets(data / "diversity_sets", arguments.concepts)
    texts = list(dict.fromkeys(text for members in sets for text in members))
    ratings, own = rate(store, captions, texts)
    raters = []
    for name, values in ratings.items():
        path = arguments.ratings / f"{name}.jsonl"
        write_jsonl(path, ({"text": text, "quality": float(value)} for text, value in zip(texts, values, strict=True)))
        raters.append(read_rater(path, sets))
    raters += [gruen_rater(sets, load("gruen"), ROOT / "build" / "embeddings"), shortness_rater(sets)]
    print_tables(kinds, sets, raters, own)


if __name__ == "__main__":
    raise SystemExit(main())
