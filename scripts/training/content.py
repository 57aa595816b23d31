"""Train the adapters of `model="content"`: writes the weights, whose `sha256sum` belongs into core_content.py.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.content metrics/_core/content.safetensors

People wrote sets of five texts that answer a context: one thing in five ways, or five things (McDiv, Tevet and Berant
2021). Low-rank adapters of the last layers of the default encoder learn to tell them apart by the cosines within a set,
with and without the components along the context; cosines of other texts must stay what they are. Each run leaves out
a part of the contexts and is judged on it; the weights are the mean of the runs. The file's metadata has the optimal
classification accuracy (OCA) of the scores of all sets, each by the run that left it out. An hour on one core; another
machine gives other bits.
"""

import json
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from safetensors.torch import save_file
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as entropy
from torch.nn.functional import normalize
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence

from scripts.arguments import data_folder
from text_metrics.console import Parser, command
from text_metrics.files.rows import read_rows
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model

SETTINGS = Path(__file__).with_suffix(".toml")
BLOCK_TOKENS = 2048


class Sets(NamedTuple):
    """Sets of k texts by the rows of these, (n, k), and of their contexts, (n,), and whether they say one thing."""

    texts: np.ndarray
    contexts: np.ndarray
    same: Tensor

    def take(self, places: np.ndarray) -> "Sets":
        """Return some of the sets."""
        return Sets(self.texts[places], self.contexts[places], self.same[places])


class Student:
    """The default encoder, whose last layers have adapters; what the layers below them make of n texts is kept.

    hidden : for each text, the input of the layers with adapters, (t, d), in half precision
    original : the embeddings of the texts without adapters, unit vectors, (n, d)
    """

    def __init__(self, texts: Sequence[str], first_layer: int, limit: int) -> None:
        from transformers import AutoTokenizer, BertModel

        path = find_model(DEFAULT_MODEL).path
        bert: Any = BertModel.from_pretrained(path, add_pooling_layer=False).eval().requires_grad_(False)
        tokens = AutoTokenizer.from_pretrained(path)(list(texts), truncation=True, max_length=limit)["input_ids"]
        self.lengths = np.array(list(map(len, tokens)))
        self.layers = bert.encoder.layer[first_layer:]
        self.hidden: list[Tensor] = [torch.empty(0)] * len(tokens)
        with torch.no_grad():
            for rows in self._blocks(np.arange(len(tokens))):
                ids = pad_sequence([torch.tensor(tokens[i]) for i in rows], batch_first=True)
                hidden = read(bert.encoder.layer[:first_layer], bert.embeddings(ids), self._mask(rows))
                for i, vectors in zip(rows, hidden, strict=True):
                    self.hidden[i] = vectors[: self.lengths[i]].half().clone()
            parts = np.array_split(np.arange(len(tokens)), len(tokens) // 512 + 1)
            self.original = torch.cat([self.embed(rows) for rows in parts])
        self.adapted: dict[str, Any] = {}
        for name, layer in bert.named_modules():
            if isinstance(layer, nn.Linear) and any(layer is part for part in self.layers.modules()):
                self.adapted[name] = layer
                layer.register_forward_hook(adapt)

    def reset(self, rank: int, seed: int) -> list[nn.Parameter]:
        """Reset the adapters to no change; returns their parameters."""
        torch.manual_seed(seed)
        for layer in self.adapted.values():
            layer.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
            layer.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        return [part for layer in self.adapted.values() for part in (layer.down, layer.up)]

    def strengthen(self, factor: float) -> None:
        """Scale the adapters."""
        for layer in self.adapted.values():
            layer.up = nn.Parameter(factor * layer.up.detach())

    def changes(self) -> dict[str, Tensor]:
        """Return the change of each weight, by the name of its module."""
        return {name: (layer.up @ layer.down).detach() for name, layer in self.adapted.items()}

    def embed(self, rows: np.ndarray) -> Tensor:
        """Embed texts: unit vectors, (n, d)."""
        blocks = list(self._blocks(rows))
        embedded = []
        for places in blocks:
            mask = self._mask(rows[places])
            hidden = pad_sequence([self.hidden[i] for i in rows[places]], batch_first=True).float()
            sums = (read(self.layers, hidden, mask) * mask[..., None]).sum(1)
            embedded.append(normalize(sums, dim=-1))
        return torch.cat(embedded)[np.argsort(np.concatenate(blocks))]

    def _blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """Cut the places of rows, in order of length, into blocks within a token budget, padding included."""
        order = np.argsort(self.lengths[rows], kind="stable")
        start = 0
        while start < len(order):
            padded = self.lengths[rows[order[start:]]] * np.arange(1, len(order) - start + 1)
            stop = start + max(1, int(np.searchsorted(padded, BLOCK_TOKENS, side="right")))
            yield order[start:stop]
            start = stop

    def _mask(self, rows: np.ndarray) -> Tensor:
        """Mark the tokens of texts that are not padding: (b, t)."""
        lengths = torch.tensor(self.lengths[rows])
        return torch.arange(int(lengths.max())) < lengths[:, None]


def read(layers: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the output of layers for the input (b, t, d) with a mask (b, t)."""
    for layer in layers:
        hidden = layer(hidden, mask[:, None, None])
    return hidden


def adapt(layer: Any, given: tuple[Tensor], output: Tensor) -> Tensor:
    """Add the adapter's output to the output of a layer."""
    return output + given[0] @ layer.down.T @ layer.up.T


def take_out(texts: Tensor, contexts: Tensor) -> Tensor:
    """Project contexts, (n, d), out of unit embeddings of texts, (n, k, d)."""
    along = (texts @ contexts[..., None]) * contexts[:, None]
    return normalize(texts - along, dim=-1)


def inner_cosines(embeddings: Tensor) -> Tensor:
    """Return the cosines of the pairs of each set, (n, k, d): (n, k (k - 1) / 2)."""
    first, second = torch.triu_indices(embeddings.shape[1], embeddings.shape[1], 1)
    return (embeddings @ embeddings.mT)[:, first, second]


def vendi(embeddings: Tensor) -> np.ndarray:
    """Return the Vendi scores of sets of unit embeddings, (n, k, d): (n,)."""
    similarities = embeddings.double() @ embeddings.double().mT / embeddings.shape[1]
    shares = torch.linalg.eigvalsh(similarities).clamp(min=1e-12)
    return torch.exp(-(shares * shares.log()).sum(-1)).numpy()


def new_curves() -> nn.Parameter:
    """Return the slope and the offset by which a cosine tells one thing, for texts as they are and without contexts."""
    return nn.Parameter(torch.tensor([[10.0, -4.0], [10.0, -4.0]]))


def content_loss(texts: Tensor, contexts: Tensor, same: Tensor, curves: Tensor, share: float) -> Tensor:
    """Return the logistic loss of the cosines of sets, (n, k, d); `share` is the weight of those without contexts."""
    losses = []
    for embeddings, (slope, offset) in zip((texts, take_out(texts, contexts)), curves, strict=True):
        logits = slope * inner_cosines(embeddings) + offset
        losses.append(entropy(logits, same[:, None].expand_as(logits)))
    return losses[0].lerp(losses[1], share)


def fit(student: Student, sets: Sets, others: Sets, recipe: dict[str, Any], seed: int) -> None:
    """Train new adapters on sets of people, beside other sets, whose cosines must stay."""
    adapters, curves = student.reset(recipe["rank"], seed), new_curves()
    groups = [{"params": adapters, "lr": recipe["rate"]}, {"params": [curves], "lr": 1e-2}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
    steps = recipe["epochs"] * (len(sets.same) // recipe["sets"])
    warmup = max(1, steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min((i + 1) / warmup, (steps - i) / (steps - warmup))
    )
    chance = np.random.default_rng(seed)
    order = np.concatenate([chance.permutation(len(sets.same)) for _ in range(recipe["epochs"])])
    for step in range(steps):
        drawn = sets.take(order[step * recipe["sets"] : (step + 1) * recipe["sets"]])
        kept = others.take(chance.choice(len(others.texts), recipe["others"], replace=False))
        rows = np.concatenate([drawn.texts.ravel(), drawn.contexts, kept.texts.ravel()])
        now, before = student.embed(rows), student.original[rows]
        texts, contexts, now_kept = now.split([drawn.texts.size, drawn.contexts.size, kept.texts.size])
        texts = texts.unflatten(0, drawn.texts.shape)
        now_kept = now_kept.unflatten(0, kept.texts.shape)
        before_kept = before[-kept.texts.size :].unflatten(0, kept.texts.shape)
        drift = (now @ now.T - before @ before.T).square().mean()
        drift_kept = (inner_cosines(now_kept) - inner_cosines(before_kept)).square().mean()
        loss = content_loss(texts, contexts, drawn.same, curves, recipe["contexts"])
        loss = loss + recipe["penalty"] * drift + recipe["penalty_kept"] * drift_kept
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(adapters, 1.0)
        optimizer.step()
        schedule.step()
        print(f"{step} of {steps}: loss {loss.item():.3f}", flush=True)


def fit_map(texts: Tensor, contexts: Tensor, same: Tensor, recipe: dict[str, Any]) -> Tensor:
    """Fit a linear map (d, d) of embeddings of sets, (n, k, d), and of their contexts, (n, d), by the same loss."""
    torch.manual_seed(recipe["seed"])
    identity, curves = torch.eye(texts.shape[-1]), new_curves()
    weight = nn.Parameter(identity.clone())
    optimizer = torch.optim.Adam([weight, curves], lr=recipe["rate"])
    for _ in range(recipe["epochs"]):
        for rows in torch.randperm(len(same)).split(recipe["sets"]):
            mapped = normalize(texts[rows] @ weight.T, dim=-1)
            around = normalize(contexts[rows] @ weight.T, dim=-1)
            loss = content_loss(mapped, around, same[rows], curves, recipe["contexts"])
            loss = loss + recipe["penalty"] * (weight - identity).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return weight.detach()


def read_people(data: Path) -> pandas.DataFrame:
    """Read the sets of people, with `texts`, `context` and `different_content`."""
    return pandas.read_json(data / "people_sets" / "mcdiv_train.jsonl", lines=True)


def parts_of(contexts: pandas.Series, recipe: dict[str, Any]) -> np.ndarray:
    """Divide sets into parts without common contexts: the number of the part of each, (n,)."""
    names = sorted(set(contexts))
    numbers = np.random.default_rng(recipe["part_seed"]).permutation(len(names)) % recipe["parts"]
    return contexts.map(dict(zip(names, numbers, strict=True))).to_numpy()


def read_others(data: Path, recipe: dict[str, Any]) -> list[list[str]]:
    """Draw sets of four texts whose cosines must stay: sentences of models, captions, parts of reviews of films."""
    chance = np.random.default_rng(recipe["seed"])
    names = [f"{generator}/{kind}.jsonl" for generator in recipe["generators"] for kind in recipe["kinds"]]
    files = [[row["sentences"] for _, row in read_rows(data / "diversity_sets" / name)] for name in names]
    drawn = chance.permutation(len(files[0]))[: recipe["concepts"]]
    sets = [file[i] for i in drawn for file in files if len(file[i]) == 4]
    captions = (data / "text" / "coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()
    drawn = chance.permutation(len(captions))[: 4 * recipe["captions"]].reshape(-1, 4)
    sets += [[captions[i].strip() for i in places] for places in drawn]
    with zipfile.ZipFile(data / "text" / "movie_reviews.zip") as archive:
        reviews = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        for i in chance.permutation(len(reviews))[: recipe["reviews"]]:
            words = archive.read(reviews[i]).decode("latin-1").split()
            starts = range(0, 4 * recipe["words"], recipe["words"])
            if len(words) >= starts.stop:
                sets.append([" ".join(words[start : start + recipe["words"]]) for start in starts])
    return sets


def judge(student: Student, sets: Sets, others: Sets) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Return the Vendi scores of sets of people, and how well they tell these apart and how other sets changed.

    The second has the AUC of the scores without contexts, "plain", and with them; the root mean square of the change of
    cosines within the other sets, "drift"; and the rank correlation of their Vendi scores with those before, "rank".
    """
    with torch.no_grad():
        texts = student.embed(sets.texts.ravel()).unflatten(0, sets.texts.shape)
        contexts = student.embed(sets.contexts)
        now = student.embed(others.texts.ravel()).unflatten(0, others.texts.shape)
    before = student.original[others.texts.ravel()].unflatten(0, others.texts.shape)
    scores = {"plain": vendi(texts), "contexts": vendi(take_out(texts, contexts))}
    result = {name: float(roc_auc_score(1 - sets.same.numpy(), column)) for name, column in scores.items()}
    result["drift"] = (inner_cosines(now) - inner_cosines(before)).square().mean().sqrt().item()
    result["rank"] = float(spearmanr(vendi(now), vendi(before))[0])
    return scores, result


def optimal_accuracy(different: np.ndarray, scores: np.ndarray) -> float:
    """Return the optimal classification accuracy (OCA), at the best threshold above which sets are different."""
    order = np.argsort(scores, kind="stable")
    n_wrong = np.concatenate([[0], np.cumsum(2 * different[order] - 1)]) + (1 - different).sum()
    # Sets of equal scores are on one side of a threshold.
    is_threshold = np.concatenate([[True], np.diff(scores[order]) > 0, [True]])
    return 1 - float(n_wrong[is_threshold].min()) / len(scores)


def factors(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Factor a change of a weight, (out, in), into the nearest product of (out, r) and (r, in)."""
    left, values, right = torch.linalg.svd(change, full_matrices=False)
    roots = values[:rank].sqrt()
    return left[:, :rank] * roots, roots[:, None] * right[:rank]


def find_sets(texts: Sequence[Sequence[str]], contexts: Sequence[str], same: np.ndarray, place: dict[str, int]) -> Sets:
    """Return sets by the places of their texts; a context that has none is not read."""
    rows = np.array([[place[text] for text in members] for members in texts])
    around = np.array([place.get(context, 0) for context in contexts])
    return Sets(rows, around, torch.tensor(same, dtype=torch.float32))


@command
def main() -> None:
    """Train, and write the weights."""
    parser = Parser(__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="data and steps; default: %(default)s")
    given = parser.parse_args()
    settings = tomllib.loads(given.settings.read_text(encoding="utf-8"))
    recipe, of_texts, data = settings["adapters"], settings["texts"], data_folder(parser)
    written, other_texts = read_people(data), read_others(data, of_texts["others"])
    every = [*written["texts"].explode(), *written["context"], *(text for members in other_texts for text in members)]
    place = {text: i for i, text in enumerate(dict.fromkeys(every))}
    different = written["different_content"].to_numpy(int)
    people = find_sets(written["texts"], written["context"], 1 - different, place)
    others = find_sets(other_texts, [""] * len(other_texts), np.zeros(len(other_texts)), place)
    is_held_out = np.arange(len(other_texts)) % of_texts["others"]["held_out"] == 0
    kept, held_out = (others.take(np.flatnonzero(mask)) for mask in (~is_held_out, is_held_out))
    parts = parts_of(written["context"], of_texts)
    student = Student(list(place), recipe["first_layer"], of_texts["limit"])
    scores = {name: np.zeros(len(written)) for name in ("plain", "contexts")}
    runs = []
    for part in range(of_texts["parts"]):
        places = np.flatnonzero(parts == part)
        fit(student, people.take(np.flatnonzero(parts != part)), kept, recipe, seed=part)
        student.strengthen(recipe["strength"])
        of_part, result = judge(student, people.take(places), held_out)
        print(f"part {part}: {result}", flush=True)
        for name, column in of_part.items():
            scores[name][places] = column
        runs.append(student.changes())
    tensors = {}
    for name in runs[0]:
        up, down = factors(torch.stack([changes[name] for changes in runs]).mean(0), recipe["kept_rank"])
        tensors[f"adapters.{name}.up"] = up.half().contiguous()
        tensors[f"adapters.{name}.down"] = down.half().contiguous()
    save_file(tensors, given.file, {"oca": json.dumps(set_accuracy(written, scores))})


def set_accuracy(written: pandas.DataFrame, scores: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Return the OCA of all sets, and of those that continue a few words ("prompt"), by the name of the scores."""
    different = written["different_content"].to_numpy(int)
    is_prompt = (written["task"] == "prompt").to_numpy()
    return {
        name: {
            "all": optimal_accuracy(different, column),
            "prompt": optimal_accuracy(different[is_prompt], column[is_prompt]),
        }
        for name, column in scores.items()
    }


if __name__ == "__main__":
    raise SystemExit(main())
