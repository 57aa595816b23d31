"""Train the upper layers of gruen's compact backbone on plain sentences: writes the weights, and prints their SHA-256.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.gruen_compact first.safetensors new.safetensors

The first file has the weights of commit 3acdd7b (`git show 3acdd7b:metrics/gruen/gruen_compact.safetensors`). The
adapters of the last two layers and the sentence heads learn to tell sentences from corruptions: sentences of the frames
of gruen_plain.toml, and of Brown, ABC news and overheard conversations. Of other sentences (CoLA, the frames of
gruen_venues.toml, more of the corpora) they learn what the first weights say, so that they forget nothing. The lower
layers do not change, so that each sentence passes them once. The result is the mean of the weights of several short
runs, each with a seed of its own, and of the first weights. Bfloat16, a thread a process.
"""

import csv
import hashlib
import json
import random
import re
import zipfile
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_, parametrize

from scripts.arguments import data_folder
from scripts.results.gruen import PAIRS
from scripts.results.gruen_plain import draw
from scripts.training.corruptions import Corruptor
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, read_model
from text_metrics.metrics.gruen.gruen_text import split_block

PLAIN, VENUES = (Path(__file__).with_name(f"gruen_{name}.toml") for name in ("plain", "venues"))
SEED, RUNS, STEPS, RATE, SHARE = 0, 8, 60, 6e-4, 1.0
FIRST_TRAINED_LAYER, BATCH = 4, 64
PER_CONSTRUCTION, N_WRITTEN, N_HELD_OUT = 160, 3500, 600
# Sentences of a step: pairs of frames, pairs of the corpora, and single ones that the first weights judge.
N_PLAIN, N_OTHER, N_JUDGED = 12, 4, 18
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")
_SPEAKER = re.compile(r"^[A-Z][\w #']{0,20}: ")


class Texts(NamedTuple):
    """Sentences: `plain` and `written` pairs of a sentence and its corruption, and `judged` ones."""

    plain: list[tuple[str, str]]
    written: list[tuple[str, str]]
    judged: list[str]


def read_lines(path: Path, pattern: str) -> Iterator[str]:
    """Yield the lines of the files of an archive whose names match."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if re.search(pattern, name)):
            yield from archive.read(name).decode(errors="replace").splitlines()


def read_texts(folder: Path) -> Texts:
    """Draw the sentences, and corrupt them."""
    chance = random.Random(SEED)
    lines = (line.split() for line in read_lines(folder / "text/brown.zip", r"/c[a-r]\d\d$"))
    pairs = [[token.rsplit("/", 1) for token in line] for line in lines if line]
    tagged = [[(word, tag.split("-")[0]) for word, tag in line if word not in ("``", "''")] for line in pairs]
    corruptor = Corruptor(tagged, SEED)
    spoken = [*read_lines(folder / "text/abc.zip", r"\.txt$"), *read_lines(folder / "text/webtext.zip", "overheard")]
    read = [_TOKEN.findall(sentence) for line in spoken for sentence in split_block(_SPEAKER.sub("", line))]
    tested = {tuple(_TOKEN.findall(text)) for text in pandas.read_json(PAIRS, lines=True)["clean"]}

    def is_whole(words: list[str]) -> bool:
        """Whether words are an ordinary sentence, or an imperative: the first training left these out."""
        n_words = sum(word[0].isalnum() for word in words)
        has_verb = any(word.lower() in corruptor.verbs for word in words)
        return 4 <= len(words) <= 22 and words[-1] in ".!?" and has_verb and n_words >= 0.75 * len(words)

    def corrupted(sentences: list[list[str]]) -> list[tuple[str, str]]:
        return [(" ".join(one), " ".join(other)) for one in sentences if (other := corruptor.corrupt(one))]

    sentences = [[word for word, _ in line] for line in tagged] + read
    written = [words for words in sentences if is_whole(words) and tuple(words) not in tested]
    frames = [[_TOKEN.findall(one) for own in draw(path, PER_CONSTRUCTION, SEED).values() for one in own]
              for path in (PLAIN, VENUES)]  # fmt: skip
    for part in (written, *frames):
        chance.shuffle(part)
    cola = pandas.read_csv(folder / "gruen/cola_in_domain_train.tsv", sep="\t", header=None, quoting=csv.QUOTE_NONE)
    more = corrupted(frames[1]) + corrupted(written[N_WRITTEN : 2 * N_WRITTEN])
    judged = cola[3].tolist() + [text for pair in more for text in pair]
    return Texts(corrupted(frames[0]), corrupted(written[:N_WRITTEN]), judged)


class Trainer:
    """A compact model whose upper layers are trained, and the sentences as its lower layers see them."""

    def __init__(self, first: Path, texts: Texts) -> None:
        self.first = first
        self.model, tokenizer, adapters = read_model(first)
        self.model.bert.requires_grad_(False)
        for layer, adapter in adapters.items():
            parametrize.register_parametrization(self.model.bert.get_submodule(layer), "weight", adapter)
        self.upper = {name: part for name, part in adapters.items() if int(name.split(".")[2]) >= FIRST_TRAINED_LAYER}
        everything = [text for pair in (*texts.plain, *texts.written) for text in pair] + texts.judged
        self.ids = tokenizer(everything, truncation=True, max_length=64)["input_ids"]
        n_plain, n_pairs = len(texts.plain), len(texts.plain) + len(texts.written)
        pairs = np.arange(2 * n_pairs).reshape(-1, 2)
        self.plain, self.held_out, self.written = np.split(pairs, [n_plain, n_plain + N_HELD_OUT])
        self.judged = np.arange(2 * n_pairs, len(everything))
        self.lower: list[torch.Tensor] = []
        self.expected: dict[int, torch.Tensor] = {}
        self.faults: dict[int, torch.Tensor] = {}

    def batches(self, rows: Iterable[int]) -> list[np.ndarray]:
        """Cut sentences into batches of similar lengths."""
        ordered = np.array(sorted(rows, key=lambda row: len(self.ids[row])))
        return np.array_split(ordered, len(ordered) // BATCH)

    def pad(self, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask, (b, t)."""
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(self.ids[row]) for row in rows], batch_first=True)
        return ids, (ids != 0).long()

    def pass_lower(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return the embeddings (t, d) of sentences after the lower layers, in half precision."""
        ids, mask = self.pad(rows)
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16), parametrize.cached():
            hidden = self.model.bert.embeddings(input_ids=ids)
            for layer in self.model.bert.encoder.layer[:FIRST_TRAINED_LAYER]:
                hidden = layer(hidden, mask[:, None, None].bool())
        return [row[:length].half().numpy() for row, length in zip(hidden, mask.sum(1).tolist(), strict=True)]

    def pass_upper(self, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return loss, soundness and acceptability of sentences, (b, 3), and the logits of a fault, (b, t)."""
        ids, mask = self.pad(rows)
        hidden = torch.nn.utils.rnn.pad_sequence([self.lower[row] for row in rows], batch_first=True).float()
        for layer in self.model.bert.encoder.layer[FIRST_TRAINED_LAYER:]:
            with torch.autocast("cpu", torch.bfloat16):
                hidden = layer(hidden, mask[:, None, None].bool()).float()
        values = self.model.sentence_values(ids, mask, hidden)[:, [0, 2, 3]].float()
        return values, self.model.word_fault(hidden)[..., 0]

    def judge(self, rows: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Return the values of sentences, and the logits of a fault of each."""
        with torch.inference_mode(), parametrize.cached():
            values, faults = self.pass_upper(rows)
        return values.numpy(), [row[: len(self.ids[i])].numpy() for row, i in zip(faults, rows, strict=True)]

    def parameters(self) -> dict[str, torch.nn.Parameter]:
        """Name the parameters that are trained, as in the file."""
        heads = {name: getattr(self.model, name) for name in ("soundness", "acceptability", "word_fault")}
        named = {f"{name}.{key}": value for name, head in heads.items() for key, value in head.named_parameters()}
        return named | {f"{ADAPTERS}{name}.{key}": value for name, part in self.upper.items()
                        for key, value in part.named_parameters()}  # fmt: skip

    def train(self, seed: int) -> dict[str, np.ndarray]:
        """Run all steps; the rate rises for 20 and then falls linearly."""
        torch.manual_seed(seed)
        draws, parameters = np.random.default_rng(seed), self.parameters()
        optimizer = torch.optim.AdamW(parameters.values(), RATE, weight_decay=0.01, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 20, 1 - i / STEPS))
        for step in range(STEPS):
            pairs = np.concatenate([draws.choice(self.plain, N_PLAIN), draws.choice(self.written, N_OTHER)])
            losses = self.losses(pairs.T.ravel(), draws.choice(self.judged, N_JUDGED))
            optimizer.zero_grad()
            torch.stack(list(losses.values())).sum().backward()
            clip_grad_norm_(parameters.values(), 1.0)
            optimizer.step()
            schedule.step()
            if step % 20 == 0:
                print(seed, step, *(f"{name} {loss.item():.3f}" for name, loss in losses.items()), flush=True)
        return {name: value.detach().numpy() for name, value in parameters.items()}

    def losses(self, pairs: np.ndarray, judged: np.ndarray) -> dict[str, torch.Tensor]:
        """Tell sentences, the first half of the pairs, from corruptions; and judge as the first weights."""
        n, entropy = len(pairs) // 2, functional.binary_cross_entropy_with_logits
        values, _ = self.pass_upper(pairs)
        sound, clean = values[:, 1], torch.arange(2 * n).lt(n).float()
        (own, faults), expected = self.pass_upper(judged), torch.stack([self.expected[i] for i in judged.tolist()])
        marks = torch.nn.utils.rnn.pad_sequence([self.faults[i] for i in judged.tolist()], True, -100.0)
        return {
            "sound": entropy(sound, clean),
            "rank": 0.5 * functional.softplus(sound[n:] - sound[:n]).mean(),
            "acceptable": 0.5 * entropy(values[:, 2], clean),
            "judged": 2 * entropy(own[:, 1:], expected[:, 1:].sigmoid()),
            "words": entropy(faults[marks > -100], marks[marks > -100].sigmoid()),
            "likelihood": functional.smooth_l1_loss(own[:, 0], expected[:, 0]),
        }

    def average(self, runs: list[dict[str, np.ndarray]]) -> None:
        """Take the mean of the runs for the trained share of the weights."""
        with torch.no_grad():
            for name, value in self.parameters().items():
                value.lerp_(torch.from_numpy(np.mean([run[name] for run in runs], axis=0)), SHARE)

    def save(self, path: Path) -> str:
        """Fit the curve of soundness on sentences held out, and write the file; returns its digest."""
        values = np.concatenate([self.judge(rows)[0] for rows in np.array_split(self.held_out.T.ravel(), 20)])
        is_clean = np.arange(len(values)) < len(self.held_out)
        fitted = LogisticRegression(C=1e6).fit(values[:, 1:2], is_clean)
        with safe_open(self.first, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            calibration = json.loads(file.metadata()["calibration"])
        calibration["soundness"] = [float(fitted.coef_[0, 0]), float(fitted.intercept_[0])]
        tensors |= {name: value.detach().half().contiguous() for name, value in self.parameters().items()}
        save_file(tensors, path, {"calibration": json.dumps(calibration)})
        return hashlib.sha256(path.read_bytes()).hexdigest()


_SHARED: list[Trainer] = []


def _call(method: str, argument: Any) -> Any:
    return getattr(_SHARED[0], method)(argument)


def in_parallel(trainer: Trainer, method: str, arguments: list, processes: int) -> list:
    """Call a method of a trainer with each argument, in processes that inherit the trainer."""
    torch.set_num_threads(1)  # sums of several differ in the last digits
    with get_context("fork").Pool(processes, _SHARED.append, [trainer]) as pool:
        return pool.starmap(_call, [(method, argument) for argument in arguments], chunksize=1)


@command
def main() -> None:
    """Train, and write the weights."""
    parser = make_parser(__doc__)
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE")
    parser.add_argument("--processes", type=int, default=2, help="any number gives the same weights; default 2")
    given = parser.parse_args()
    first, new = given.files
    trainer = Trainer(first, read_texts(data_folder(parser)))
    batches = trainer.batches(range(len(trainer.ids)))
    passed = in_parallel(trainer, "pass_lower", batches, given.processes)
    lower = dict(zip(np.concatenate(batches).tolist(), (row for rows in passed for row in rows), strict=True))
    trainer.lower = [torch.from_numpy(lower[row]) for row in range(len(lower))]
    batches = trainer.batches(trainer.judged)
    for rows, (values, faults) in zip(batches, in_parallel(trainer, "judge", batches, given.processes), strict=True):
        trainer.expected |= zip(rows.tolist(), map(torch.from_numpy, values), strict=True)
        trainer.faults |= zip(rows.tolist(), map(torch.from_numpy, faults), strict=True)
    trainer.average(in_parallel(trainer, "train", list(range(RUNS)), given.processes))
    print(f"{new}: SHA-256 {trainer.save(new)}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
