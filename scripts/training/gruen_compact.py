"""Train gruen's compact backbone further, with two teachers: writes the weights, and prints their SHA-256.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.gruen_compact first.safetensors new.safetensors

The first file has the weights to begin with (`git show 3acdd7b:metrics/gruen/gruen_compact.safetensors`). A larger
encoder is fine-tuned twice, to judge as CoLA's authors do and to tell sentences from corrupted ones; what both say of
all sentences is learnt by the adapters and the sentence heads (Hinton et al. 2015), beside the labels themselves. The
mean loss of the tokens is kept as the first weights have it. Ten minutes on a large GPU, days on two cores.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_, parametrize
from transformers import AutoModel, AutoTokenizer

from scripts.arguments import data_folder
from scripts.training.gruen_texts import Texts, read_texts
from text_metrics.commands.shared.command import Parser, command
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, CompactModel, read_model

MAX_TOKENS = 40
DROPOUT = 0.1


class Recipe(NamedTuple):
    """How a model is trained: steps, pairs of a sentence and its corruption and sentences of CoLA a step, rates."""

    steps: int
    pairs: int
    cola: int
    rate: float
    head_rate: float


TEACHERS = {"acceptable": Recipe(970, 0, 32, 3e-5, 5e-4), "clean": Recipe(2500, 128, 0, 5e-5, 5e-4)}
STUDENT = Recipe(4000, 200, 112, 5e-4, 5e-4)
# The share of frames among the pairs, and of the teacher in what a sentence is to score.
FRAMES_SHARE, TAUGHT_SHARE = 0.3, 0.6
FRAMES = ("plain", "venues")


class Sentences:
    """Token ids of n sentences on a device, and what is known of each, as numbers."""

    def __init__(self, texts: Texts, tokenizer: Any, device: str) -> None:
        encoded = tokenizer(texts.words, is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        ids = np.full((len(texts.words), MAX_TOKENS), tokenizer.pad_token_id, np.int16)
        wrong = np.zeros(ids.shape, np.uint8)
        for row, tokens in enumerate(encoded["input_ids"]):
            ids[row, : len(tokens)] = tokens
            if texts.wrong[row]:
                marked = set(texts.wrong[row])
                wrong[row, : len(tokens)] = [word in marked for word in encoded.word_ids(row)]
        self.lengths = np.array(list(map(len, encoded["input_ids"])))
        self.ids, self.wrong = torch.from_numpy(ids).to(device), torch.from_numpy(wrong).to(device)
        self.clean, self.acceptable = (torch.tensor(part, device=device).float() for part in (texts[1], texts[2]))
        source, held_out, original = np.array(texts.source), np.array(texts.held_out), np.array(texts.original)
        pairs = np.stack([original, np.arange(len(original))], 1)[original >= 0]
        used, is_frame = ~held_out[pairs[:, 0]], np.isin(source[pairs[:, 0]], FRAMES)
        self.frames, self.written = pairs[used & is_frame], pairs[used & ~is_frame]
        self.held_out_pairs = pairs[~used]
        labelled = np.array(texts.acceptable) >= 0
        self.cola, self.held_out_cola = np.flatnonzero(labelled & ~held_out), np.flatnonzero(labelled & held_out)
        self.judged = np.flatnonzero((source == "cola") & ~held_out)

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return numbers of rows, token ids and mask, (b, t)."""
        at = torch.from_numpy(rows).to(self.ids.device)
        longest = int(self.lengths[rows].max())
        ids = self.ids[at, :longest].long()
        mask = torch.arange(longest, device=ids.device) < torch.from_numpy(self.lengths[rows]).to(ids.device)[:, None]
        return at, ids, mask.long()

    def draw(self, recipe: Recipe, chance: np.random.Generator, cola: np.ndarray) -> np.ndarray:
        """Draw the sentences of a step: pairs, the sentences first, then those of CoLA."""
        n_frames = int(recipe.pairs * FRAMES_SHARE)
        drawn = [chance.choice(self.written, recipe.pairs - n_frames), chance.choice(self.frames, n_frames)]
        return np.concatenate([np.concatenate(drawn).T.ravel(), chance.choice(cola, recipe.cola)])

    def parts(self, size: int) -> Iterator[np.ndarray]:
        """Cut all sentences into batches of similar lengths."""
        yield from np.array_split(np.argsort(self.lengths, kind="stable"), len(self.lengths) // size + 1)


def optimized(recipe: Recipe, groups: Sequence[tuple[Sequence[nn.Parameter], float]]) -> tuple[Any, Any]:
    """Return an optimizer and its schedule: the rates rise for a twentieth of the steps, and then fall to zero."""
    settings = [{"params": list(part), "lr": rate} for part, rate in groups]
    optimizer = torch.optim.AdamW(settings, weight_decay=0.01, betas=(0.9, 0.98))
    rise = recipe.steps / 20
    return optimizer, torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / rise, 1 - step / recipe.steps)
    )


class Teacher(nn.Module):
    """An encoder, fine-tuned but for its embeddings, and a head that gives a logit."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(name, dtype=torch.float32, add_pooling_layer=False)
        self.encoder.get_input_embeddings().requires_grad_(False)
        size = self.encoder.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(DROPOUT), nn.Linear(2 * size, size), nn.Tanh(), nn.Dropout(DROPOUT), nn.Linear(size, 1)
        )

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return logits: (b, t) to (b,)."""
        with torch.autocast(ids.device.type, torch.bfloat16):
            hidden = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        mean = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.head(torch.cat([mean, hidden[:, 0]], 1))[:, 0]


def teach(name: str, texts: Texts, task: str, seed: int, device: str) -> np.ndarray:
    """Fine-tune a teacher for a task; returns its logits of all sentences."""
    torch.manual_seed(seed)
    chance, recipe = np.random.default_rng(seed), TEACHERS[task]
    sentences, teacher = Sentences(texts, AutoTokenizer.from_pretrained(name), device), Teacher(name).to(device)
    trained = [part for part in teacher.encoder.parameters() if part.requires_grad]
    optimizer, schedule = optimized(recipe, [(trained, recipe.rate), (list(teacher.head.parameters()), recipe.head_rate)])
    teacher.train()
    for step in range(recipe.steps):
        rows, ids, mask = sentences.batch(sentences.draw(recipe, chance, sentences.cola))
        loss = functional.binary_cross_entropy_with_logits(teacher(ids, mask), getattr(sentences, task)[rows])
        loss.backward()
        clip_grad_norm_(teacher.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(task, seed, step, f"{loss.item():.3f}", flush=True)
    teacher.eval()
    logits = np.empty(len(texts.words), np.float32)
    with torch.inference_mode():
        for part in sentences.parts(1024):
            logits[part] = teacher(*sentences.batch(part)[1:]).cpu().numpy()
    return logits


class Student:
    """The compact model in training."""

    def __init__(self, first: Path, texts: Texts, device: str) -> None:
        self.first = first
        self.model, tokenizer, adapters = read_model(first)
        self.sentences = Sentences(texts, tokenizer, device)
        self.model.to(device).bert.requires_grad_(False)
        self.adapters = nn.ModuleDict({name.replace(".", "/"): part for name, part in adapters.items()}).to(device)
        for layer, adapter in adapters.items():
            parametrize.register_parametrization(self.model.bert.get_submodule(layer), "weight", adapter)
        self.loss = self.judge()[:, 0]

    def judge(self) -> np.ndarray:
        """Return the values of all sentences, (n, 4)."""
        self.model.eval()
        values = np.empty((len(self.sentences.lengths), 4), np.float32)
        with torch.inference_mode(), parametrize.cached():
            for part in self.sentences.parts(1024):
                values[part] = self.values(*self.sentences.batch(part)[1:])[0].cpu().numpy()
        return values

    def values(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the values of sentences, (b, 4), and their contextual embeddings."""
        with torch.autocast(ids.device.type, torch.bfloat16):
            hidden = self.model.hidden(ids, mask).float()
        return self.model.sentence_values(ids, mask, functional.dropout(hidden, 0.0)), hidden

    def parameters(self) -> dict[str, nn.Parameter]:
        """Name what is trained, as in the file."""
        heads = {name: part for name, part in self.model.named_parameters() if not name.startswith("bert.")}
        return heads | {
            ADAPTERS + name.replace("/", "."): part for name, part in self.adapters.named_parameters()
        }

    def train(self, recipe: Recipe, taught: dict[str, torch.Tensor], seed: int) -> None:
        """Run all steps; `taught` has the probabilities of both teachers, (n,)."""
        torch.manual_seed(seed)
        chance, device = np.random.default_rng(seed), self.sentences.ids.device
        loss_before = torch.from_numpy(self.loss).to(device)
        named = self.parameters()
        groups = [[part for name, part in named.items() if name.startswith(ADAPTERS) == is_adapter]
                  for is_adapter in (True, False)]  # fmt: skip
        optimizer, schedule = optimized(recipe, list(zip(groups, (recipe.rate, recipe.head_rate), strict=True)))
        self.model.bert.train()
        for step in range(recipe.steps):
            rows, ids, mask = self.sentences.batch(self.sentences.draw(recipe, chance, self.sentences.judged))
            values, hidden = self.values(ids, mask)
            losses = self.losses(recipe, rows, mask, values.float(), hidden, taught, loss_before[rows])
            torch.stack(list(losses.values())).sum().backward()
            clip_grad_norm_(named.values(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if step % 200 == 0:
                print(seed, step, *(f"{name} {loss.item():.3f}" for name, loss in losses.items()), flush=True)

    def losses(
        self, recipe: Recipe, rows: torch.Tensor, mask: torch.Tensor, values: torch.Tensor, hidden: torch.Tensor,
        taught: dict[str, torch.Tensor], loss_before: torch.Tensor,
    ) -> dict[str, torch.Tensor]:  # fmt: skip
        """Return the losses of a step by name."""
        n, entropy = recipe.pairs, functional.binary_cross_entropy_with_logits

        def mixed(task: str) -> torch.Tensor:
            label, taught_share = getattr(self.sentences, task)[rows], TAUGHT_SHARE
            share = torch.where(label < 0, 1.0, taught_share)
            return share * taught[task][rows] + (1 - share) * label

        sound, acceptable = values[:, 2], values[:, 3]
        faults = self.model.word_fault(hidden)[..., 0]
        inner = functional.pad(mask[:, 2:], (1, 1))[: 2 * n].bool()
        wrong = self.sentences.wrong[rows[: 2 * n], : mask.shape[1]].float()
        return {
            "clean": entropy(sound, mixed("clean")),
            "rank": 0.3 * functional.softplus(sound[n : 2 * n] - sound[:n]).mean(),
            "acceptable": entropy(acceptable, mixed("acceptable")),
            "words": 0.5 * entropy(faults[: 2 * n][inner], wrong[inner], pos_weight=torch.tensor(2.0, device=wrong.device)),
            "likelihood": 0.5 * functional.smooth_l1_loss(values[:, 0], loss_before),
        }

    def calibrate(self) -> dict[str, tuple[float, float]]:
        """Fit the logistic curves on sentences held out."""
        values, pairs, cola = self.judge(), self.sentences.held_out_pairs, self.sentences.held_out_cola
        is_clean = np.repeat([1, 0], len(pairs))
        of_pairs, labels = values[pairs.T.ravel()], self.sentences.acceptable.cpu().numpy()[cola]
        return {
            "likelihood": logistic(of_pairs[:, 0] + of_pairs[:, 1], is_clean),
            "soundness": logistic(of_pairs[:, 2], is_clean),
            "acceptability": logistic(values[cola, 3], labels),
        }

    def save(self, path: Path) -> str:
        """Write the weights in half precision; returns the digest of the file."""
        with safe_open(self.first, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        tensors |= {name: part.detach().cpu().half().contiguous() for name, part in self.parameters().items()}
        save_file(tensors, path, {"calibration": json.dumps(self.calibrate())})
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
    given: argparse.Namespace = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    texts = read_texts(data_folder(parser), seed=0)
    taught = {task: teach(given.teacher, texts, task, 0, device) for task in TEACHERS}
    student = Student(given.files[0], texts, device)
    student.train(STUDENT, {task: torch.from_numpy(part).sigmoid().to(device) for task, part in taught.items()}, seed=0)
    print(f"{given.files[1]}: SHA-256 {student.save(given.files[1])}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
