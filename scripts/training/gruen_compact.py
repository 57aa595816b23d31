"""Train gruen's compact backbone further, with teachers: writes the weights, whose `sha256sum` belongs into gruen.py.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.gruen_compact first.safetensors new.safetensors

The first file has the weights of commit 3acdd7b (`git show 3acdd7b:metrics/gruen/gruen_compact.safetensors`). Teachers,
larger encoders, are fine-tuned to judge as CoLA's authors do and to tell sentences from corrupted ones; the adapters
and heads learn what they say of all sentences (Hinton et al. 2015), beside the labels. Minutes on an H100, days on two
cores. It is the procedure of commit 2a10319a, which made the weights of 0.9.0; another run has other bits.
"""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as entropy
from torch.nn.functional import pad, smooth_l1_loss, softplus
from torch.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from torch.nn.utils.parametrize import register_parametrization
from transformers import AutoModel, AutoTokenizer

from scripts.arguments import data_folder
from scripts.training.gruen_texts import read_texts
from text_metrics.console import Parser, command
from text_metrics.metrics._core.core_minilm import hidden_states, weight_place
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, read_model

# Of the weights of the encoder, as it was trained before.
_DROPOUT = 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Reader(NamedTuple):
    """An encoder in training, and the sentences that it reads, as `read_texts` returns them.

    hidden : maps the encoder and tokens of b sentences to their contextual embeddings, (b, t, d)
    """

    encoder: Any
    hidden: Callable[[Any, Any], Tensor]
    tokenizer: Any
    texts: pandas.DataFrame

    def read(self, rows: np.ndarray) -> tuple[Any, Tensor]:
        """Return the tokens of sentences, and their contextual embeddings, (b, t, d)."""
        words = self.texts["words"][rows].tolist()
        form = {"is_split_into_words": True, "return_tensors": "pt"}
        tokens = self.tokenizer(words, truncation=True, max_length=40, padding=True, **form).to(DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16):
            return tokens, self.hidden(self.encoder, tokens).float()

    def judge(self, score: Callable[[Any, Tensor], Tensor]) -> Tensor:
        """Score all sentences, in batches of similar lengths."""
        self.encoder.eval()
        order = np.argsort(self.texts["words"].str.len().to_numpy())
        with torch.no_grad():
            scores = [score(*self.read(rows)) for rows in np.array_split(order, len(order) // 1024 + 1)]
        return torch.cat(scores)[np.argsort(order)]

    def fit(self, loss: Callable[..., Tensor], heads: list[Any], recipe: dict[str, Any], cola: pandas.Series) -> None:
        """Minimize the loss of pairs, the sentences before the corrupted ones, and of sentences that `cola` marks."""
        chance = np.random.default_rng(recipe["seed"])
        steps = recipe["steps"]
        used = ~self.texts["held_out"]
        corrupted = self.texts[used & (self.texts["clean"] == 0)]
        judged = self.texts.index[used & cola]
        is_frame = corrupted["source"] == "frames"
        parts = [corrupted.index[~is_frame], corrupted.index[is_frame]]
        tuned = [part for part in self.encoder.train().parameters() if part.requires_grad]
        groups = [{"params": tuned, "lr": recipe["rate"]}, {"params": heads, "lr": 5e-4}]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(20 * (i + 1), steps - i) / steps)
        for step in range(steps):
            drawn = np.concatenate([chance.choice(part, n) for part, n in zip(parts, recipe["pairs"], strict=True)])
            rows = np.concatenate([self.texts["original"][drawn], drawn, chance.choice(judged, recipe["cola"])])
            value = loss(rows, *self.read(rows))
            value.backward()
            clip_grad_norm_(tuned + heads, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            print(f"{step} of {steps}: loss {value.item():.3f}", flush=True)


def teach(name: str, texts: pandas.DataFrame, task: str, recipe: dict[str, Any]) -> Tensor:
    """Fine-tune a teacher for a task; returns its logits of all sentences, (n,)."""
    torch.manual_seed(recipe["seed"])
    encoder = AutoModel.from_pretrained(name, dtype=torch.float32, add_pooling_layer=False).to(DEVICE)
    encoder.get_input_embeddings().requires_grad_(False)
    size = encoder.config.hidden_size
    labels = torch.tensor(texts[task].to_numpy(np.float32), device=DEVICE)
    layers = nn.Linear(2 * size, size), nn.Tanh(), nn.Dropout(0.1), nn.Linear(size, 1)
    head = nn.Sequential(nn.Dropout(0.1), *layers).to(DEVICE)

    def score(tokens: Any, hidden: Tensor) -> Tensor:
        weights = tokens["attention_mask"][..., None]
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return head(torch.cat([mean, hidden[:, 0]], 1))[:, 0]

    is_labelled = texts["acceptable"].notna()
    tokenizer = AutoTokenizer.from_pretrained(name)
    reader = Reader(encoder, lambda encoder, tokens: encoder(**tokens).last_hidden_state, tokenizer, texts)
    reader.fit(lambda rows, *read: entropy(score(*read), labels[rows]), list(head.parameters()), recipe, is_labelled)
    head.eval()
    return reader.judge(score)


class LowRank(nn.Module):
    """Adapters of rows of a weight: to each `weight[rows]`, `up @ down` is added."""

    def __init__(self, shape: torch.Size) -> None:
        super().__init__()
        self.shape = shape
        self.rows: list[slice] = []
        self.ups = nn.ParameterList()
        self.downs = nn.ParameterList()

    def add(self, rows: slice, up: Tensor, down: Tensor) -> None:
        """Add an adapter."""
        self.rows.append(rows)
        self.ups.append(up)
        self.downs.append(down)

    def change(self) -> Tensor:
        """Return the change of the weight."""
        change = torch.zeros(self.shape, device=DEVICE)
        for rows, up, down in zip(self.rows, self.ups, self.downs, strict=True):
            change[rows] = up @ down
        return change

    def forward(self, weight: Tensor) -> Tensor:
        """Return the adapted weight."""
        return weight + self.change()


def train_adapters(network: Any, tensors: dict[str, Tensor]) -> dict[str, nn.Parameter]:
    """Make the adapters, which `read_model` has added to the weights, parameters: by their names in the file."""
    named: dict[str, nn.Parameter] = {}
    adapters: dict[str, LowRank] = {}
    for layer in [name.removesuffix(".up") for name in tensors if name.endswith(".up")]:
        up, down = (nn.Parameter(tensors[f"{layer}.{part}"].float()) for part in ("up", "down"))
        place, rows = weight_place(f"{layer.removeprefix(ADAPTERS)}.weight")
        adapter = adapters.setdefault(place, LowRank(network.get_parameter(place).shape))
        adapter.add(rows, up, down)
        named |= {f"{layer}.up": up, f"{layer}.down": down}
    for place, adapter in adapters.items():
        module, _, weight = place.rpartition(".")
        with torch.no_grad():
            network.get_parameter(place).sub_(adapter.change())
        register_parametrization(network.get_submodule(module), weight, adapter)
    return named


def set_dropout(network: Any) -> None:
    """Set BERT's dropout of embeddings, attention and residual branches, which the default encoder lacks."""
    for layer in network["encoder"].layers:
        layer.self_attn.dropout = layer.dropout1.p = layer.dropout2.p = _DROPOUT
    network["norm"].register_forward_hook(
        lambda norm, given, output: nn.functional.dropout(output, _DROPOUT, norm.training)
    )


def learn(first: Path, texts: pandas.DataFrame, taught: dict[str, Tensor], recipe: dict[str, Any]) -> tuple[Any, Any]:
    """Average the first weights, for one half, and all runs; returns them, and the values of all sentences, (n, 4)."""
    model = read_model(first, DEVICE).model
    tensors = load_file(first, DEVICE)
    named = train_adapters(model.network, tensors) | dict(model.heads.named_parameters())
    set_dropout(model.network)
    parts = list(named.values())
    heads = list(model.heads.parameters())
    known = {task: torch.tensor(texts[task].to_numpy(np.float32), device=DEVICE) for task in taught}
    tokenizer = AutoTokenizer.from_pretrained(find_model(DEFAULT_MODEL).path)
    n = sum(recipe["pairs"])

    def read_hidden(network: Any, tokens: Any) -> Tensor:
        return hidden_states(network, tokens["input_ids"], tokens["attention_mask"])

    reader = Reader(model.network, read_hidden, tokenizer, texts)

    def score(tokens: Any, hidden: Tensor) -> Tensor:
        return model.sentence_values(tokens["input_ids"], tokens["attention_mask"], hidden).float()

    def loss(rows: np.ndarray, tokens: Any, hidden: Tensor) -> Tensor:
        losses, _, sound, acceptable = score(tokens, hidden).T
        wrong = []
        for i, row in enumerate(rows[: 2 * n]):
            marked = texts["wrong"][row]
            wrong.append([float(word in marked) for word in tokens.word_ids(i)])
        inner = pad(tokens["attention_mask"][: 2 * n, 2:], (1, 1)).bool()
        faults = model.heads["word_fault"](hidden[: 2 * n])[..., 0]
        weight = torch.tensor(2.0, device=DEVICE)
        sound_loss = entropy(sound, labels["clean"][rows])
        acceptable_loss = entropy(acceptable, labels["acceptable"][rows])
        pair_loss = softplus(sound[n : 2 * n] - sound[:n]).mean()
        fault_loss = entropy(faults[inner], torch.tensor(wrong).to(DEVICE)[inner], pos_weight=weight)
        change_of_losses = smooth_l1_loss(losses, token_loss[rows])
        return sound_loss + acceptable_loss + 0.3 * pair_loss + 0.5 * fault_loss + 0.5 * change_of_losses

    token_loss = reader.judge(score)[:, 0]
    first_weights = parameters_to_vector(parts).detach()
    ends = []
    for run in recipe["runs"]:
        vector_to_parameters(first_weights.clone(), parts)
        torch.manual_seed(recipe["seed"])
        labels = {task: torch.where(label.isnan(), taught[task], label.lerp(taught[task], run["taught"]))
                  for task, label in known.items()}  # fmt: skip
        reader.fit(loss, heads, recipe | run, texts["source"] == "cola")
        ends.append(parameters_to_vector(parts).detach())
    vector_to_parameters((first_weights + torch.stack(ends).mean(0)) / 2, parts)
    return named, reader.judge(score).cpu().numpy()


def calibrate(texts: pandas.DataFrame, values: np.ndarray) -> dict[str, tuple[float, float]]:
    """Fit the logistic curves on sentences held out; returns slopes and intercepts."""
    held_out = texts[texts["held_out"]]
    corrupted = held_out[held_out["clean"] == 0]
    cola = held_out[held_out["acceptable"].notna()]
    rows = np.concatenate([corrupted["original"], corrupted.index])
    loss, frequency, soundness, _ = values[rows].T
    samples = {"likelihood": loss + frequency, "soundness": soundness, "acceptability": values[cola.index, 3]}
    curves = {}
    for name, sample in samples.items():
        labels = cola["acceptable"] if name == "acceptability" else np.repeat([1, 0], len(corrupted))
        curve = LogisticRegression(C=1e6).fit(sample[:, None], labels)
        curves[name] = (curve.coef_.item(), curve.intercept_.item())
    return curves


@command
def main() -> None:
    """Train, and write the weights."""
    parser = Parser(__doc__)
    default = Path(__file__).with_suffix(".toml")
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE")
    parser.add_argument("--teacher", default="sentence-transformers/all-mpnet-base-v2", help="default: %(default)s")
    parser.add_argument("--settings", type=Path, default=default, help="data, seeds and steps; default: %(default)s")
    given = parser.parse_args()
    settings = tomllib.loads(given.settings.read_text(encoding="utf-8"))
    texts = read_texts(data_folder(parser), settings["texts"])
    taught = {}
    for task, recipe in settings["teachers"].items():
        logits = [teach(given.teacher, texts, task, recipe | {"seed": seed}) for seed in recipe["seeds"]]
        taught[task] = torch.stack(logits).mean(0).sigmoid()
    weights, values = learn(given.files[0], texts, taught, settings["student"])
    weights = {name: part.detach().cpu().half().contiguous() for name, part in weights.items()}
    curves = {"calibration": json.dumps(calibrate(texts, values))}
    save_file(load_file(given.files[0]) | weights, given.files[1], curves)


if __name__ == "__main__":
    raise SystemExit(main())
