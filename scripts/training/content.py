"""Train the linear map of `model="content"`: writes the weights, whose `sha256sum` belongs into core_content.py.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.content metrics/_core/content.safetensors

People wrote sets of five texts that answer a context: one thing in five ways, or five things (McDiv, Tevet and Berant
2021). A matrix W learns to tell them apart by the cosines of W e within a set, for the default encoder's embeddings e;
a penalty on the squared distance from the identity keeps it from unlearning the rest. The penalty is the largest whose
maps tell sets of contexts that they did not see apart as well as those of the best penalty: by the mean of the areas
under the curve (AUC) of Vendi scores with and without contexts. The rated sets of McDiv and DecTest are not read.

Minutes on one core. On one machine the file is the same at each run.
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from safetensors.torch import save_file
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as entropy
from torch.nn.functional import normalize

from scripts.arguments import data_folder
from text_metrics.console import Parser, command
from text_metrics.metrics._core.core_content import CONTENT_WEIGHT
from text_metrics.metrics._core.core_encoder import encode

SETTINGS = Path(__file__).with_suffix(".toml")


class WrittenSets(NamedTuple):
    """The embeddings of n sets of k texts by people, and of their contexts: unit vectors, float32.

    texts : (n, k, d)
    contexts : (n, d)
    same : 1 for sets whose writer was asked to say one thing, 0 for those of k things, (n,)
    """

    texts: Tensor
    contexts: Tensor
    same: Tensor

    def take(self, rows: Any) -> "WrittenSets":
        """Return some of the sets."""
        return WrittenSets(self.texts[rows], self.contexts[rows], self.same[rows])

    def mapped(self, weight: Tensor) -> "WrittenSets":
        """Return the sets with all embeddings mapped by a matrix (d, d)."""
        texts = normalize(self.texts @ weight.T, dim=-1)
        contexts = normalize(self.contexts @ weight.T, dim=-1)
        return WrittenSets(texts, contexts, self.same)

    def without_contexts(self) -> Tensor:
        """Return the texts without their components along the contexts, (n, k, d), as `contexts=` does."""
        along = (self.texts @ self.contexts[..., None]) * self.contexts[:, None]
        return normalize(self.texts - along, dim=-1)


def fit_map(sets: WrittenSets, penalty: float, recipe: dict[str, Any]) -> Tensor:
    """Fit a linear map (d, d) by the logistic loss of the cosines within sets, whose slope and offset are learned."""
    chance = torch.Generator().manual_seed(recipe["seed"])
    identity = torch.eye(sets.texts.shape[-1])
    weight = identity.clone().requires_grad_()
    slope = torch.tensor(recipe["slope"], requires_grad=True)
    offset = torch.tensor(recipe["offset"], requires_grad=True)
    optimizer = torch.optim.Adam([weight, slope, offset], lr=recipe["rate"])
    for _ in range(recipe["epochs"]):
        for rows in torch.randperm(len(sets.same), generator=chance).split(recipe["batch"]):
            batch = sets.take(rows).mapped(weight)
            loses_context = torch.rand(len(rows), generator=chance) < recipe["share_without_contexts"]
            texts = torch.where(loses_context[:, None, None], batch.without_contexts(), batch.texts)
            cosines = inner_cosines(texts)
            loss = entropy(slope * cosines + offset, batch.same[:, None].expand_as(cosines))
            loss = loss + penalty * (weight - identity).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return weight.detach()


def inner_cosines(embeddings: Tensor) -> Tensor:
    """Return the cosines of the pairs of each set, (n, k, d): (n, k (k - 1) / 2)."""
    first, second = torch.triu_indices(embeddings.shape[1], embeddings.shape[1], 1)
    return (embeddings @ embeddings.mT)[:, first, second]


def vendi(embeddings: Tensor) -> np.ndarray:
    """Return the Vendi scores of sets of unit embeddings, (n, k, d): (n,)."""
    similarities = embeddings.double() @ embeddings.double().mT / embeddings.shape[1]
    shares = torch.linalg.eigvalsh(similarities).clamp(min=1e-12)
    return torch.exp(-(shares * shares.log()).sum(-1)).numpy()


def judge(sets: WrittenSets) -> tuple[float, float]:
    """Return the AUC of the Vendi scores of sets for five things, without contexts and with them."""
    different = 1 - sets.same.numpy()
    plain = roc_auc_score(different, vendi(sets.texts))
    in_context = roc_auc_score(different, vendi(sets.without_contexts()))
    return float(plain), float(in_context)


def parts_of(contexts: pandas.Series, recipe: dict[str, Any]) -> np.ndarray:
    """Divide sets into parts without common contexts: the number of the part of each, (n,)."""
    names = sorted(set(contexts))
    numbers = np.random.default_rng(recipe["seed"]).permutation(len(names)) % recipe["parts"]
    return contexts.map(dict(zip(names, numbers, strict=True))).to_numpy()


def choose_penalty(sets: WrittenSets, parts: np.ndarray, recipe: dict[str, Any]) -> float:
    """Return the largest penalty whose maps tell sets of left-out contexts apart as well as those of the best one.

    As well: the mean AUC, over the parts, without contexts and with them, is at most the tolerance below.
    """
    means = {}
    for penalty in recipe["penalties"]:
        scores = []
        for part in range(recipe["parts"]):
            weight = fit_map(sets.take(parts != part), penalty, recipe)
            scores.append(judge(sets.take(parts == part).mapped(weight)))
        plain, in_context = np.mean(scores, axis=0)
        means[penalty] = (plain + in_context) / 2
        print(f"penalty {penalty}: AUC {plain:.4f}, {in_context:.4f} with contexts", flush=True)
    bound = max(means.values()) - recipe["tolerance"]
    return max(penalty for penalty, mean in means.items() if mean >= bound)


def read_people(data: Path) -> pandas.DataFrame:
    """Read the sets of people, with `texts`, `context` and `different_content`."""
    return pandas.read_json(data / "people_sets" / "mcdiv_train.jsonl", lines=True)


def embed_people(written: pandas.DataFrame) -> WrittenSets:
    """Embed the sets of people by the default encoder."""
    texts = torch.from_numpy(encode(written["texts"].explode().tolist()).rows)
    contexts = torch.from_numpy(encode(written["context"].tolist()).rows)
    same = torch.tensor(1 - written["different_content"].to_numpy(int), dtype=torch.float32)
    return WrittenSets(texts.unflatten(0, (len(written), -1)), contexts, same)


@command
def main() -> None:
    """Train, and write the weights."""
    parser = Parser(__doc__)
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="default: %(default)s")
    given = parser.parse_args()
    recipe = tomllib.loads(given.settings.read_text(encoding="utf-8"))
    # Sums of several threads have other digits.
    torch.set_num_threads(1)
    written = read_people(data_folder(parser))
    sets = embed_people(written)
    penalty = choose_penalty(sets, parts_of(written["context"], recipe), recipe)
    weight = fit_map(sets, penalty, recipe)
    save_file({CONTENT_WEIGHT: weight.half()}, given.file, {"penalty": str(penalty)})


if __name__ == "__main__":
    raise SystemExit(main())
