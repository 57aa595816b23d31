"""Train gruen's compact backbone further, with teachers: writes the weights, and prints their SHA-256.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.gruen_compact first.safetensors new.safetensors

The first file has the weights of commit 3acdd7b (`git show 3acdd7b:metrics/gruen/gruen_compact.safetensors`). Teachers,
larger encoders, are fine-tuned to judge as CoLA's authors do and to tell sentences from corrupted ones; the adapters
and heads learn what they say of all sentences (Hinton et al. 2015), beside the labels. Seven minutes on an H100, days
on two cores. Commit 2a10319a has the code as it ran: the same steps, with the runs beside each other.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, pad, smooth_l1_loss, softplus
from torch.nn.utils import clip_grad_norm_, parametrize
from transformers import AutoModel, AutoTokenizer

from scripts.arguments import data_folder
from scripts.training.gruen_texts import read_texts
from text_metrics.commands.shared.command import Parser, command
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, read_model

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MAX_TOKENS, DROPOUT, FRAMES_SHARE = 40, 0.1, 0.3
# Of each teacher: seed, steps, pairs of a sentence and its corruption in each, sentences of CoLA, and rate.
TEACHERS = {
    "acceptable": [(0, 970, 0, 32, 3e-5), (1, 970, 0, 32, 3e-5)],
    "clean": [(0, 2200, 128, 0, 5e-5)],
}
# Of each run: its rate, and the share of the teachers beside the labels.
RUNS, STEPS, PAIRS, COLA = [(5e-4, 0.6), (2e-4, 0.6), (5e-4, 1.0)], 4000, 200, 112


class Sentences:
    """Token ids of sentences, and batches of them; `texts` as `read_texts` returns it."""

    def __init__(self, texts: pandas.DataFrame, tokenizer: Any) -> None:
        encoded = tokenizer(texts["words"].tolist(), is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        rows = list(map(torch.tensor, encoded["input_ids"]))
        self.lengths = torch.tensor(list(map(len, rows)))
        self.ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=tokenizer.pad_token_id).to(DEVICE)
        self.wrong = torch.zeros(self.ids.shape)
        for row, wrong in enumerate(texts["wrong"]):
            for place in (i for i, word in enumerate(encoded.word_ids(row)) if wrong and word in wrong):
                self.wrong[row, place] = 1
        self.known = {name: torch.tensor(texts[name].to_numpy(), device=DEVICE).float() for name in TEACHERS}
        pairs, cola = texts[(texts["original"] >= 0) & ~texts["held_out"]], texts["source"] == "cola"
        of_frames = pairs["source"].isin(["plain", "venues"])
        self.pairs = [np.stack([part["original"], part.index], 1) for part in (pairs[~of_frames], pairs[of_frames])]
        self.cola = np.flatnonzero(cola & ~texts["held_out"])
        self.labelled = np.flatnonzero((texts["acceptable"] >= 0) & ~texts["held_out"])

    def draw(self, chance: np.random.Generator, n_pairs: int, cola: np.ndarray, n_cola: int) -> np.ndarray:
        """Draw the rows of a step: the sentences of pairs, their corruptions, and sentences of CoLA."""
        n_frames = int(FRAMES_SHARE * n_pairs)
        drawn = [chance.choice(part, n) for part, n in zip(self.pairs, (n_pairs - n_frames, n_frames), strict=True)]
        return np.concatenate([np.concatenate(drawn).T.ravel(), chance.choice(cola, n_cola)])

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask, (b, t)."""
        lengths = self.lengths[rows]
        mask = (torch.arange(int(lengths.max())) < lengths[:, None]).long().to(DEVICE)
        return self.ids[rows, : mask.shape[1]], mask

    def judge(self, score: Any) -> torch.Tensor:
        """Score all sentences, in batches of similar lengths."""
        order = np.argsort(self.lengths.numpy(), kind="stable")
        with torch.inference_mode():
            scored = [score(*self.batch(rows)).float() for rows in np.array_split(order, len(order) // 1024 + 1)]
        return torch.cat(scored)[torch.from_numpy(np.argsort(order)).to(DEVICE)]


def minimize(loss: Any, groups: list[dict[str, Any]], steps: int) -> None:
    """Run all steps; the rates rise for a twentieth of them, and then fall to zero."""
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(20 * (i + 1) / steps, 1 - i / steps))
    for step in range(steps):
        value = loss()
        value.backward()
        clip_grad_norm_([part for group in groups for part in group["params"]], 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 200 == 0:
            print(step, f"{value.item():.3f}", flush=True)


def teach(name: str, texts: pandas.DataFrame, task: str) -> torch.Tensor:
    """Fine-tune teachers for a task; returns the probabilities of all sentences by their mean logits, (n,)."""
    sentences, logits = Sentences(texts, AutoTokenizer.from_pretrained(name)), []
    for seed, steps, n_pairs, n_cola, rate in TEACHERS[task]:
        torch.manual_seed(seed)
        chance, encoder = np.random.default_rng(seed), AutoModel.from_pretrained(name, add_pooling_layer=False)
        encoder.to(DEVICE).train().get_input_embeddings().requires_grad_(False)
        size = encoder.config.hidden_size
        layers = nn.Linear(2 * size, size), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(size, 1)
        head = nn.Sequential(nn.Dropout(DROPOUT), *layers).to(DEVICE)

        def score(ids: torch.Tensor, mask: torch.Tensor, encoder: Any = encoder, head: Any = head) -> torch.Tensor:
            with torch.autocast(DEVICE, torch.bfloat16):
                hidden = encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            return head(torch.cat([mean, hidden[:, 0]], 1))[:, 0]

        def loss(
            chance: Any = chance, n_pairs: int = n_pairs, n_cola: int = n_cola, score: Any = score
        ) -> torch.Tensor:
            rows = sentences.draw(chance, n_pairs, sentences.labelled, n_cola)
            return binary_cross_entropy_with_logits(score(*sentences.batch(rows)), sentences.known[task][rows])

        tuned = [part for part in encoder.parameters() if part.requires_grad]
        minimize(loss, [{"params": tuned, "lr": rate}, {"params": list(head.parameters()), "lr": 5e-4}], steps)
        encoder.eval(), head.eval()
        logits.append(sentences.judge(score))
    return torch.stack(logits).mean(0).sigmoid()


class Student:
    """The compact model in training, from the first weights."""

    def __init__(self, first: Path, texts: pandas.DataFrame) -> None:
        self.first, self.texts = first, texts
        self.model, tokenizer, adapters = read_model(first)
        self.model.to(DEVICE).bert.requires_grad_(False)
        for layer, adapter in adapters.items():
            part = self.model.bert.get_submodule(layer)
            parametrize.register_parametrization(part, "weight", adapter.to(DEVICE))
        self.adapters = {f"{ADAPTERS}{layer}.{name}": part for layer, adapter in adapters.items()
                         for name, part in adapter.named_parameters()}  # fmt: skip
        self.heads = {name: part for name, part in self.model.named_parameters() if not name.startswith("bert.")}
        self.sentences = Sentences(texts, tokenizer)
        self.token_loss = self.judge()[:, 0]

    def values(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values of sentences, (b, 4), and the logits of a fault of each token, (b, t)."""
        with torch.autocast(DEVICE, torch.bfloat16):
            hidden = self.model.hidden(ids, mask).float()
        return self.model.sentence_values(ids, mask, hidden).float(), self.model.word_fault(hidden)[..., 0]

    def judge(self) -> torch.Tensor:
        """Return the values of all sentences, (n, 4)."""
        self.model.eval()
        with parametrize.cached():
            return self.sentences.judge(lambda ids, mask: self.values(ids, mask)[0])

    def train(self, taught: dict[str, torch.Tensor], rate: float, share: float) -> None:
        """Run all steps; `share` is that of the teachers in what is learnt of a sentence with a label."""
        torch.manual_seed(0)
        chance, sentences = np.random.default_rng(0), self.sentences
        labels = {name: torch.where(known < 0, taught[name], share * taught[name] + (1 - share) * known)
                  for name, known in sentences.known.items()}  # fmt: skip

        def loss() -> torch.Tensor:
            rows = sentences.draw(chance, PAIRS, sentences.cola, COLA)
            ids, mask = sentences.batch(rows)
            values, faults = self.values(ids, mask)
            sound, acceptable = values[:, 2], values[:, 3]
            inner = pad(mask[:, 2:], (1, 1))[: 2 * PAIRS].bool()
            wrong = sentences.wrong[rows[: 2 * PAIRS], : mask.shape[1]].to(DEVICE)[inner]
            heavier = torch.tensor(2.0, device=DEVICE)
            return (
                binary_cross_entropy_with_logits(sound, labels["clean"][rows])
                + binary_cross_entropy_with_logits(acceptable, labels["acceptable"][rows])
                + 0.3 * softplus(sound[PAIRS : 2 * PAIRS] - sound[:PAIRS]).mean()
                + 0.5 * binary_cross_entropy_with_logits(faults[: 2 * PAIRS][inner], wrong, pos_weight=heavier)
                + 0.5 * smooth_l1_loss(values[:, 0], self.token_loss[rows])
            )

        self.model.bert.train()
        parts = [
            {"params": list(self.adapters.values()), "lr": rate},
            {"params": list(self.heads.values()), "lr": 5e-4},
        ]
        minimize(loss, parts, STEPS)

    def train_all(self, taught: dict[str, torch.Tensor]) -> None:
        """Take the mean of the first weights, for one half, and of the runs."""
        named = self.adapters | self.heads
        first = {name: part.detach().clone() for name, part in named.items()}
        mean = {name: part / 2 for name, part in first.items()}
        with torch.no_grad():
            for run in RUNS:
                for name, part in named.items():
                    part.copy_(first[name])
                with torch.enable_grad():
                    self.train(taught, *run)
                mean = {name: part + named[name] / (2 * len(RUNS)) for name, part in mean.items()}
            for name, part in named.items():
                part.copy_(mean[name])

    def save(self, path: Path) -> str:
        """Fit the logistic curves on sentences held out, and write the file; returns its digest."""
        values, held_out = self.judge().cpu().numpy(), self.texts[self.texts["held_out"]]
        corrupted, cola = held_out[held_out["original"] >= 0], held_out[held_out["acceptable"] >= 0]
        of_pairs = values[[*corrupted["original"], *corrupted.index]]
        is_clean = np.repeat([1, 0], len(corrupted))
        curves = {
            "likelihood": logistic(of_pairs[:, 0] + of_pairs[:, 1], is_clean),
            "soundness": logistic(of_pairs[:, 2], is_clean),
            "acceptability": logistic(values[cola.index, 3], cola["acceptable"].to_numpy()),
        }
        with safe_open(self.first, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        trained = self.adapters | self.heads
        tensors |= {name: part.detach().cpu().half().contiguous() for name, part in trained.items()}
        save_file(tensors, path, {"calibration": json.dumps(curves)})
        return hashlib.sha256(path.read_bytes()).hexdigest()


def logistic(values: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return slope and intercept of the logistic curve that fits best."""
    fitted = LogisticRegression(C=1e6).fit(values[:, None], labels)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


@command
def main() -> None:
    """Train, and write the weights."""
    parser = Parser(__doc__)
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE")
    parser.add_argument("--teacher", default="sentence-transformers/all-mpnet-base-v2", help="default: %(default)s")
    given = parser.parse_args()
    texts = read_texts(data_folder(parser), seed=0)
    taught = {task: teach(given.teacher, texts, task) for task in TEACHERS}
    student = Student(given.files[0], texts)
    student.train_all(taught)
    print(f"{given.files[1]}: SHA-256 {student.save(given.files[1])}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
