"""Measure ratings of sense by a local language model on the released texts: the tables of `docs/evidence/sense.md`.

    METRICS_TEST_DATA=/path/to/data python -m scripts.reports.sense --model model.gguf --concepts 30 --ratings FOLDER

Nothing is trained on or chosen by the released texts. `asked` is the answer to the default question of `text-metrics
rate-quality --ask`, `likelihood` the geometric mean of the tokens' probabilities, and `corrected` the same, corrected
for length by a reference, the first 100 captions of COCO. Each is held against the released nonsense and shuffled texts
by its AUC, and by how often the Vendi score weighted by it ranks the originals above these and their paraphrases,
beside `gruen`, the product of both, and the rule "shorter text". The concepts are the first that `text-metrics
meta-eval` draws of each generator.

The folder receives `measured.jsonl`, which an interrupted run continues, and a file for each rating as
`text-metrics meta-eval --quality` reads it.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.training.choose_question import read_own
from text_metrics import load
from text_metrics.commands.meta_eval.generated_sets import (
    BAD,
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
from text_metrics.commands.rate_quality.likelihood import LanguageModel, Likelihood, Reference, per_token
from text_metrics.commands.shared.causal import DTYPES, load_causal
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_text_lines, write_jsonl
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.commands.shared.pages import markdown_table

CAPTIONS = 100
MEASURED = "measured.jsonl"
VENDI = "VS-Embed-0.5"
# Concepts that are measured at a time: what a killed run loses.
_AT_ONCE = 3


class Store:
    """Measurements of texts by one model, in a file that grows by a line for each."""

    def __init__(self, path: Path, model: str, dtype: str) -> None:
        self._path, self._name, self._dtype = path, model, dtype
        self._records: dict[str, dict[str, Any]] = {}
        if path.exists():
            for where, record in read_objects(path):
                if not record.keys() >= {"text", "asked", "log_probability", "tokens", "model"}:
                    raise ValueError(f"{where} is not a measurement of an earlier run.")
                self._records[record["text"]] = record
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
            self._signature = f"{model.identity}|{self._dtype}|ask:{SENSE.digest()}"
            others = {record["model"] for record in self._records.values()} - {self._signature}
            if others:
                raise ValueError(f"{self._path} holds measurements by {others.pop()}: choose another folder.")
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
                    "tokens": int(likelihood.tokens[i]),
                    "model": self._signature,
                }
                self._records[text] = record
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        speed = self._texts / self._seconds
        print(f"{len(self._records)} texts; {speed[0]:.2f} and {speed[1]:.2f} a second", file=sys.stderr, flush=True)

    def read(self, texts: list[str]) -> tuple[np.ndarray, Likelihood]:
        """Return the ratings of texts by asking, (n,), in [0, 1], and their log-probabilities."""
        records = [self._records[text] for text in texts]
        asked, total, tokens = (
            np.array([record[key] for record in records]) for key in ("asked", "log_probability", "tokens")
        )
        return asked, Likelihood(total, tokens, records[0]["model"])


def rate(asked: np.ndarray, likelihood: Likelihood, reference: Reference) -> dict[str, np.ndarray]:
    """Rate texts; for each rating an ndarray of shape (n,), in [0, 1]."""
    return {"asked": asked, "likelihood": per_token(likelihood), "corrected": reference.rate(likelihood)}


def _measure_all(store: Store, kinds: list[Kinds], sets: list[list[str]], concepts: int) -> None:
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
    areas = {rater.name: [auc_by_kind(generator, rater.ratings) for generator in kinds] for rater in raters}
    for kind in BAD:
        print(f"\nAUC × 100, original against {POORER[kind]}; concepts: {counts}\n")
        table = [["rating", "own pairs", *names]]
        for name, of_rater in areas.items():
            own_area = f"{100 * own[name]:.1f}" if name in own else ""
            table.append([name, own_area, *(_percent(of_generator[kind]) for of_generator in of_rater)])
        print("\n".join(markdown_table(table)))
    encoded = encode_texts(
        [text for members in sets for text in members], Scoring(cache_dir=ROOT / "build" / "embeddings")
    )
    rows = [row for row in embedding_rows(sets, encoded) if row.name == VENDI]
    for rater in raters:
        rows += [row for row in quality_rows(sets, encoded, rater) if row.name.endswith(f"× {VENDI}")]
    rows += [row for row in rule_rows(sets) if row.name == "rule: shorter set"]
    for kind, title in POORER.items():
        print(f"\noriginal above {title}, %\n")
        table = [["score", *names]]
        table += [[row.name, *(_percent(originals_above(generator, row)[kind]) for generator in kinds)] for row in rows]
        print("\n".join(markdown_table(table)))


def product(first: Rater, second: Rater) -> Rater:
    """Multiply the ratings of two raters, text by text."""
    ratings = [a * b for a, b in zip(first.ratings, second.ratings, strict=True)]
    return Rater(f"{first.name} × {second.name}", ratings, f"{first.signature} × {second.signature}")


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", required=True, help="instruct model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the model")
    parser.add_argument("--concepts", type=int, default=30, help="number of concepts of each generator")
    parser.add_argument("--ratings", type=Path, required=True, metavar="FOLDER", help="where to keep measurements")
    arguments = parser.parse_args()
    data = data_folder(parser)
    check_outputs([data, *module_files(arguments.model)], [arguments.ratings])
    arguments.ratings.mkdir(parents=True, exist_ok=True)
    store = Store(arguments.ratings / MEASURED, arguments.model, arguments.dtype)
    captions = read_text_lines(data / "text" / "coco_captions_20k.txt")[:CAPTIONS]
    own_texts, labels = read_own()
    store.measure([*own_texts, *captions])
    reference = Reference(store.read(captions)[1])
    own = {name: roc_auc_score(labels, values) for name, values in rate(*store.read(own_texts), reference).items()}
    drawn = Sets()
    kinds = read_kinds(data / "diversity_sets", arguments.concepts, drawn)
    sets = drawn.texts()
    _measure_all(store, kinds, sets, arguments.concepts)
    texts = list(dict.fromkeys(text for members in sets for text in members))
    ratings = rate(*store.read(texts), reference)
    raters = []
    for name, values in ratings.items():
        path = arguments.ratings / f"{name}.jsonl"
        write_jsonl(path, ({"text": text, "quality": float(value)} for text, value in zip(texts, values, strict=True)))
        raters.append(read_rater(path, sets))
    gruen = gruen_rater(sets, load("gruen"), ROOT / "build" / "embeddings")
    raters += [gruen, product(raters[0], gruen), shortness_rater(sets)]
    print_tables(kinds, sets, raters, own)


if __name__ == "__main__":
    raise SystemExit(main())
