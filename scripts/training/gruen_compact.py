"""Train the compact backbone of gruen further on plain sentences: writes its weights, and prints their SHA-256.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.gruen_compact released.safetensors new.safetensors

The first file has the weights of commit 3acdd7b (`git show 3acdd7b:metrics/gruen/gruen_compact.safetensors`). A step
learns from sentences and their corruptions, drawn from the frames of gruen_plain.toml and from Brown, ABC news and
overheard conversations; and from what the first weights say of other sentences, so that they forget nothing.
The heads of likelihood and the calibration stay. One seed, one thread, bfloat16.

The metric still has the first weights: its model card says how far these steps come.
"""

import csv
import hashlib
import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_, parametrize

from scripts.arguments import data_folder
from scripts.results.gruen import PAIRS
from scripts.results.gruen_plain import draw
from scripts.training.corruptions import Corruptor
from text_metrics.commands.shared.command import Parser, command
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, read_model
from text_metrics.metrics.gruen.gruen_text import split_block

FRAMES = Path(__file__).with_name("gruen_plain.toml")
SEED, STEPS, RATE, PER_CONSTRUCTION, KEPT = 0, 280, 3e-4, 400, 3000
# Sentences of a step: from frames, from corpora, and judged by the first weights.
PLAIN, WRITTEN, JUDGED = 16, 8, 28
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*%?|\w+(?:['’-]\w+)*|[^\w\s]")
_SPEAKER = re.compile(r"^[A-Z][\w #']{0,20}: ")


def read_lines(path: Path, pattern: str) -> Iterator[str]:
    """Yield the lines of the files of an archive whose names match."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(name for name in archive.namelist() if re.search(pattern, name)):
            yield from archive.read(name).decode(errors="replace").splitlines()


class Trainer:
    """A compact model in training, and what it learns from."""

    def __init__(self, folder: Path, first: Path) -> None:
        torch.manual_seed(SEED)
        self.chance, self.first = random.Random(SEED), first
        brown = (line.split() for line in read_lines(folder / "text/brown.zip", r"/c[a-r]\d\d$"))
        pairs = [[token.rsplit("/", 1) for token in line] for line in brown if line]
        tagged = [[(word, tag.split("-")[0]) for word, tag in line if word not in ("``", "''")] for line in pairs]
        self.corruptor = Corruptor(tagged, SEED)
        plain = [*read_lines(folder / "text/abc.zip", r"\.txt$"), *read_lines(folder / "text/webtext.zip", "overheard")]
        read = (_TOKEN.findall(sentence) for line in plain for sentence in split_block(_SPEAKER.sub("", line)))
        tested = {tuple(_TOKEN.findall(text)) for text in pandas.read_json(PAIRS, lines=True)["clean"]}
        sentences = [[word for word, _ in line] for line in tagged] + list(read)
        self.written = [words for words in sentences if self._is_whole(words) and tuple(words) not in tested]
        self.chance.shuffle(self.written)
        self.plain = [_TOKEN.findall(one) for own in draw(FRAMES, PER_CONSTRUCTION, SEED).values() for one in own]

        self.model, self.tokenizer, self.adapters = read_model(first)
        self.model.bert.requires_grad_(False)
        for layer, adapter in self.adapters.items():
            parametrize.register_parametrization(self.model.bert.get_submodule(layer), "weight", adapter)
        cola = folder / "gruen/cola_in_domain_train.tsv"
        labelled = pandas.read_csv(cola, sep="\t", header=None, quoting=csv.QUOTE_NONE)[3].tolist()
        corrupted = filter(None, map(self.corruptor.corrupt, self.written[KEPT : 2 * KEPT]))
        words = self.written[:KEPT] + [one for one, _ in corrupted]
        texts = sorted(labelled + list(map(" ".join, words)), key=len)
        with torch.inference_mode():
            values = torch.cat([self._run(texts[i : i + 64])[0] for i in range(0, len(texts), 64)])
        self.judged = list(zip(texts, values.clone(), strict=True))

    def _is_whole(self, words: list[str]) -> bool:
        """Whether words are an ordinary sentence, or an imperative: the first training left these out."""
        n_words = sum(word[0].isalnum() for word in words)
        has_verb = any(word.lower() in self.corruptor.verbs for word in words)
        return 4 <= len(words) <= 22 and words[-1] in ".!?" and has_verb and n_words >= 0.75 * len(words)

    def _run(self, texts: list[Any], **form: bool) -> tuple[torch.Tensor, torch.Tensor, Any]:
        """Return loss, soundness and acceptability of texts, (n, 3), their contextual embeddings, and their tokens."""
        tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=64, return_tensors="pt", **form)
        ids, mask = tokens["input_ids"], tokens["attention_mask"]
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.model.hidden(ids, mask)
        values = self.model.sentence_values(ids, mask, hidden.float())
        return values[:, [0, 2, 3]].float(), hidden.float(), tokens

    def train(self) -> None:
        """Run all steps; the rate rises for 20 and then falls linearly."""
        heads = (self.model.soundness, self.model.acceptability, self.model.word_fault)
        trained = [parameter for part in (*heads, *self.adapters.values()) for parameter in part.parameters()]
        optimizer = torch.optim.AdamW(trained, RATE, weight_decay=0.01, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 20, 1 - i / STEPS))
        for step in range(STEPS):
            losses = self._losses()
            optimizer.zero_grad()
            torch.stack(list(losses.values())).sum().backward()
            clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            if step % 20 == 0:
                print(step, " ".join(f"{name} {loss.item():.3f}" for name, loss in losses.items()), flush=True)

    def _losses(self) -> dict[str, torch.Tensor]:
        """Tell sentences from corruptions, in pairs, each alone and word by word; and judge as the first weights."""
        drawn = self.chance.sample(self.plain, PLAIN) + self.chance.sample(self.written, WRITTEN)
        pairs = [(words, *one) for words in drawn if (one := self.corruptor.corrupt(words))]
        good, bad, faults = map(list, zip(*pairs, strict=True))
        n, marks = len(good), [[False] * len(words) for words in good] + faults
        values, hidden, tokens = self._run(good + bad, is_split_into_words=True)
        owners = [(row, i, w) for row in range(2 * n) for i, w in enumerate(tokens.word_ids(row)) if w is not None]
        rows, places, _ = map(list, zip(*owners, strict=True))
        is_fault = torch.tensor([float(marks[row][word]) for row, _, word in owners])
        clean, sound = torch.cat([torch.ones(n), torch.zeros(n)]), values[:, 1]
        texts, expected = zip(*self.chance.sample(self.judged, JUDGED), strict=True)
        judged, first = self._run(list(texts))[0], torch.stack(expected)
        entropy = functional.binary_cross_entropy_with_logits
        return {
            "sound": entropy(sound, clean),
            "rank": 0.5 * functional.softplus(sound[n:] - sound[:n]).mean(),
            "words": entropy(self.model.word_fault(hidden[rows, places])[:, 0], is_fault),
            "acceptable": 0.5 * entropy(values[:, 2], clean),
            "judged": 2 * entropy(judged[:, 1:], first[:, 1:].sigmoid()),
            "likelihood": functional.smooth_l1_loss(judged[:, 0], first[:, 0]),
        }

    def save(self, path: Path) -> str:
        """Write the adapters and heads in half precision; returns the digest of the file."""
        with safe_open(self.first, framework="pt") as file:
            names, metadata = list(file.keys()), file.metadata()
        state = self.model.state_dict()
        for layer, adapter in self.adapters.items():
            state |= {f"{ADAPTERS}{layer}.{part}": getattr(adapter, part) for part in ("up", "down")}
        save_file({name: state[name].detach().half().contiguous() for name in names}, path, metadata)
        return hashlib.sha256(path.read_bytes()).hexdigest()


@command
def main() -> None:
    """Train, and write the weights."""
    parser = Parser(__doc__)
    parser.add_argument("files", nargs=2, type=Path, metavar="FILE")
    first, new = parser.parse_args().files
    torch.set_num_threads(1)  # sums of several differ in the last digits
    trainer = Trainer(data_folder(parser), first)
    trainer.train()
    print(f"{new}: SHA-256 {trainer.save(new)}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
