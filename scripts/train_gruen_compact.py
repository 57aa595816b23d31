"""Train the compact backbone of `gruen`: adapters and heads on the default sentence encoder, from public text.

    python scripts/train_gruen_compact.py --text DATA/text --cola DATA/gruen

`--text` is a folder with NLTK's corpora as zip files (abc, brown, movie_reviews, state_union, webtext) and
`coco_captions_20k.txt`; `--cola` has `cola_in_domain_train.tsv`. Nothing else is read: the development set and the
human ratings that `validate_gruen.py` reports are not seen here.

Stage 1 learns, in each step, from four tasks: to tell sentences from spoiled ones (of a pair, and each alone), to mark
the words where a spoiled one is wrong, to predict masked and replaced words, and to judge as CoLA's authors do. Stage 2
puts other names in, so that a strange name is no fault. In stages 3 and 4 it learns from a teacher: a larger encoder,
fine-tuned on CoLA, that has judged many sentences (Hinton et al. 2015). Stages 2 and 3, then stage 4, are run twice,
without and with names made of common words, and the weights of both averaged (a model soup, Wortsman et al. 2022): one
run alone is a matter of chance. Then a head is fitted that stands for the sum over the vocabulary, and the outputs are
calibrated, on sentences kept apart. In bfloat16, as it runs, it takes three hours on two cores. The same seed and
machine give the same file. `--checkpoints` keeps each stage, and the judgements.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import matthews_corrcoef
from torch import nn
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics.gruen.core_encoder import DEFAULT_MODEL, find_model  # noqa: E402
from metrics.gruen.gruen_backbone import pad, token_batches  # noqa: E402
from metrics.gruen.gruen_compact import ADAPTERS, WEIGHTS_FILE, CompactModel, sentence_values  # noqa: E402
from scripts._gruen_training.corruptions import Renamer, Spoiler, documents, is_clean, learn_lexicon, split_words  # noqa: E402
from scripts._gruen_training.teacher import Teacher  # noqa: E402

RANK = 32
SCALE = 2.0
KEPT_APART = 1500  # clean sentences
COLA_KEPT_APART = 800
MAX_TOKENS = 64
DROPOUT = 0.1
LAYERS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)


class Stage(NamedTuple):
    """Settings of one stage; rates fall linearly. `renamed` is the share of sentences with other names in them."""

    steps: int
    pairs: int
    masked: int
    cola: int
    adapter_rate: float
    head_rate: float
    judged: int = 0
    cola_weight: float = 1.0
    other_weight: float = 1.0
    renamed: float = 0.0
    dropout: bool = False


# The shares of names made of common words, in the runs that are averaged.
MADE_NAMES = (0.0, 0.15)
_TAUGHT = Stage(
    1300,
    pairs=6,
    masked=4,
    cola=16,
    judged=48,
    cola_weight=0.5,
    other_weight=0.1,
    adapter_rate=3e-4,
    head_rate=5e-4,
    renamed=0.4,
    dropout=True,
)
STAGES = (
    Stage(1700, pairs=40, masked=24, cola=6, cola_weight=0.5, adapter_rate=3e-4, head_rate=1e-3),
    Stage(500, pairs=40, masked=16, cola=6, cola_weight=0.5, adapter_rate=2e-4, head_rate=5e-4, renamed=0.6),
    _TAUGHT,
    _TAUGHT._replace(cola=8, judged=64, cola_weight=0.25),
    _TAUGHT._replace(steps=1000, cola=8, judged=64, cola_weight=0.25),
)
# Which stages (by index) are run from the same weights, once for each share of made names, before these are averaged.
ROUNDS = ((1, 2), (3,), (4,))
# What the teacher judges: sentences beside CoLA's, and the share of their new names that are made of common words.
JUDGED_SENTENCES = 40_000
JUDGED_MADE_NAMES = 0.3
# The teacher is large; with another number of threads, sums would be others.
TEACHER_THREADS = 2
# What the head for the sum over the vocabulary is fitted on.
TOTAL_SENTENCES = 36_000
TOTAL_EPOCHS = 12


class Corpus(NamedTuple):
    """What there is to learn from.

    sentences : sentences to spoil, as words; masked : sentences to mask; captions : those of pictures;
    cola, cola_apart : (sentence, label); apart : clean sentences that the training does not see
    """

    sentences: list[list[str]]
    masked: list[list[str]]
    captions: list[list[str]]
    cola: list[tuple[str, int]]
    cola_apart: list[tuple[str, int]]
    apart: list[list[str]]
    spoiler: Callable[[int], Spoiler]
    renamer: Callable[[int, float], Renamer]


class Adapter(nn.Module):
    """A frozen layer with a low-rank addition that is trained."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(RANK, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Run the layer: (..., in) to (..., out)."""
        added = functional.linear(functional.linear(inputs, self.down), self.up)
        return functional.linear(inputs, self.layer.weight, self.layer.bias) + SCALE * added


def read_corpus(text: Path, cola: Path) -> Corpus:
    """Read all text, and keep some of it apart."""
    lexicon = learn_lexicon(text / "brown.zip")
    sentences = [sentence for document in documents(text) for sentence in document]
    clean = [sentence for sentence in sentences if is_clean(sentence, lexicon)]
    rows = read_cola(cola / "cola_in_domain_train.tsv")
    random.Random(5).shuffle(rows)
    random.Random(1).shuffle(clean)
    apart, rest = clean[:KEPT_APART], clean[KEPT_APART:]
    # Short sentences teach more a second, and are what people score.
    rest = [sentence for i, sentence in enumerate(rest) if len(sentence) <= 20 or i % 6 == 0]
    cola_apart, rows = rows[:COLA_KEPT_APART], rows[COLA_KEPT_APART:]
    examples = [words for sentence, label in rows if label for words in [split_words(sentence)] if len(words) >= 4]
    captions = [split_words(line) for line in (text / "coco_captions_20k.txt").open(encoding="utf-8")]
    masked = rest + [sentence for sentence in sentences if 5 <= len(sentence) <= 26][::3] + captions[::2]
    return Corpus(
        rest + examples * 2,
        masked,
        captions[::2],
        rows,
        cola_apart,
        apart,
        lambda seed: Spoiler(lexicon, seed),
        lambda seed, made: Renamer(lexicon, rest, seed, made),
    )


def read_cola(path: Path) -> list[tuple[str, int]]:
    """Read sentences and labels, 1 if acceptable."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row[3], int(row[1])) for row in rows]


class Trainer:
    """A compact model in training."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        from transformers import AutoTokenizer, BertModel

        torch.manual_seed(seed)
        self.corpus = corpus
        path = find_model(DEFAULT_MODEL).path
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        # Plain attention is the faster one in bfloat16, at these lengths.
        bert: Any = BertModel.from_pretrained(path, attn_implementation="eager", add_pooling_layer=False)
        bert.requires_grad_(False)
        self.adapters: dict[str, Adapter] = {}
        for number in range(bert.config.num_hidden_layers):
            for layer in LAYERS:
                name = f"encoder.layer.{number}.{layer}"
                self.adapters[name] = Adapter(bert.get_submodule(name))
                bert.set_submodule(name, self.adapters[name])
        self.model = CompactModel(bert)
        self.judged: list[tuple[str, float]] = []

    def train(self, stage: Stage, seed: int, made: float) -> None:
        """Run one stage; `made` is the share of names made of common words."""
        if stage is not STAGES[0]:
            torch.manual_seed(seed)
        self.random = random.Random(seed)
        self.spoiler, self.renamer = self.corpus.spoiler(seed), self.corpus.renamer(seed, made)
        adapters = [parameter for adapter in self.adapters.values() for parameter in (adapter.down, adapter.up)]
        heads = [parameter for name, parameter in self.model.named_parameters() if not name.startswith("bert.")]
        optimizer = torch.optim.AdamW(
            [{"params": adapters, "lr": stage.adapter_rate}, {"params": heads, "lr": stage.head_rate}],
            weight_decay=0.01,
            betas=(0.9, 0.98),
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / 100, max(0.02, 1 - step / stage.steps))
        )
        self.model.bert.train(stage.dropout)
        streams = (
            self.batches(self.corpus.sentences, stage.pairs),
            self.batches(self.corpus.masked, stage.masked),
            self.batches(self.corpus.cola, stage.cola),
            self.batches(self.judged, stage.judged),
        )
        smoothed: dict[str, float] = {}
        start = time.monotonic()
        for step in range(1, stage.steps + 1):
            losses = self.losses(stage, *map(next, streams))
            torch.stack(list(losses.values())).sum().backward()
            nn.utils.clip_grad_norm_(adapters + heads, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            for name, loss in losses.items():
                smoothed[name] = 0.98 * smoothed.get(name, 0.0) + 0.02 * loss.item()
            if step % 50 == 0:
                shown = " ".join(f"{name} {loss:.3f}" for name, loss in smoothed.items())
                print(f"step {step}, {time.monotonic() - start:.0f} s: {shown}", flush=True)

    def losses(
        self, stage: Stage, pairs: list[Any], masked: list[Any], cola: list[Any], judged: list[Any]
    ) -> dict[str, torch.Tensor]:
        """Losses of one step, each with its weight."""
        model = self.model
        with torch.autocast("cpu", torch.bfloat16):
            ids, mask, wrong, inner = self.pair_batch(stage, pairs)
            hidden = model.hidden(ids, mask).float()
            inputs, masked_mask, expected, chosen = self.masked_batch(masked)
            predicted = model.vocabulary_logits(model.hidden(inputs, masked_mask)[chosen])
            cola_ids, cola_mask = self.tensors(self.encode([sentence for sentence, _ in cola + judged]))
            cola_hidden = model.hidden(cola_ids, cola_mask)
        half = len(ids) // 2
        pooled = model.pool(hidden, mask)
        sound = self.logits(model.soundness, pooled)
        clean = torch.cat([torch.ones(half), torch.zeros(half)])
        faults = model.word_fault(hidden)[..., 0]
        fault_losses = functional.binary_cross_entropy_with_logits(
            faults, wrong, reduction="none", pos_weight=torch.tensor(2.0)
        )
        cola_logits = self.logits(model.acceptability, model.pool(cola_hidden.float(), cola_mask))
        labels = torch.tensor([float(label) for _, label in cola + judged])
        cross_entropy = functional.binary_cross_entropy_with_logits
        others = {
            "sound": cross_entropy(sound, clean),
            "rank": 0.5 * functional.softplus(sound[half:] - sound[:half]).mean(),
            "words": (fault_losses * inner).sum() / inner.sum(),
            # A small batch may have no masked token.
            "masked": 0.3 * functional.cross_entropy(predicted.float(), expected[chosen]).nan_to_num(),
            # A spoiled sentence is unacceptable too, though CoLA's authors would not write it.
            "spoiled": 0.15 * cross_entropy(self.logits(model.acceptability, pooled), clean),
        }
        losses = {name: stage.other_weight * loss for name, loss in others.items()}
        n = len(cola)
        losses["cola"] = stage.cola_weight * cross_entropy(cola_logits[:n], labels[:n])
        if judged:
            losses["taught"] = cross_entropy(cola_logits[n:], labels[n:].sigmoid())
        return losses

    @staticmethod
    def logits(head: nn.Module, pooled: torch.Tensor) -> torch.Tensor:
        """Run a head with dropout before each layer: (b, k) to (b,)."""
        first, activation, last = head.children()
        hidden = activation(first(functional.dropout(pooled, DROPOUT)))
        return last(functional.dropout(hidden, DROPOUT))[:, 0]

    def batches(self, items: list[Any], size: int) -> Iterator[list[Any]]:
        """Yield batches for ever, each of items of like length."""
        while not size:
            yield []
        while True:
            order = list(range(len(items)))
            self.random.shuffle(order)
            for start in range(0, len(order) - size * 40 + 1, size * 40):
                part = sorted(order[start : start + size * 40], key=lambda i: characters(items[i]))
                groups = [part[i : i + size] for i in range(0, len(part), size)]
                self.random.shuffle(groups)
                for group in groups:
                    yield [items[i] for i in group]

    def pair_batch(self, stage: Stage, sentences: list[list[str]]) -> tuple[torch.Tensor, ...]:
        """Token ids and mask of sentences, then of their spoiled forms; which tokens are wrong; which are words."""
        good: list[list[str]] = []
        bad: list[list[str]] = []
        wrong: list[list[bool]] = []
        for words in sentences:
            # The first stage draws nothing here.
            if stage.renamed and self.random.random() < stage.renamed:
                words = self.renamer.rename(words)
            spoiled = self.spoiler.spoil(words)
            if spoiled is None or not spoiled.words:
                continue
            # A full stop tells nothing.
            chance = self.random.random()
            good.append(without_stop(words, chance))
            bad.append(spoiled.words if spoiled.how == "truncated" else without_stop(spoiled.words, chance))
            wrong.append(spoiled.wrong)
        encoded = self.tokenizer(good + bad, is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        ids, mask = self.tensors(encoded["input_ids"])
        faults, inner = torch.zeros(ids.shape), torch.zeros(ids.shape)
        for row in range(len(ids)):
            for place, word in enumerate(encoded.word_ids(row)):
                if word is not None:
                    inner[row, place] = 1
                    if row >= len(good):
                        faults[row, place] = float(wrong[row - len(good)][word])
        return ids, mask, faults, inner

    def masked_batch(self, sentences: list[list[str]]) -> tuple[torch.Tensor, ...]:
        """Token ids with some masked, replaced or left; the mask; the true ids; which were chosen.

        More of them are replaced than in BERT: the likelihood is taken in one pass, over words that are seen.
        """
        encoded = self.tokenizer(sentences, is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        ids, mask = self.tensors(encoded["input_ids"])
        special = (ids == self.tokenizer.cls_token_id) | (ids == self.tokenizer.sep_token_id) | (mask == 0)
        chosen = (torch.rand(ids.shape) < 0.2) & ~special
        chance = torch.rand(ids.shape)
        inputs = ids.clone()
        inputs[chosen & (chance < 0.6)] = self.tokenizer.mask_token_id
        # Drawn from the batch, so as often as they are used.
        others = ids[~special][torch.randint(int((~special).sum()), ids.shape)]
        replaced = chosen & (chance >= 0.6) & (chance < 0.85)
        inputs[replaced] = others[replaced]
        return inputs, mask, ids, chosen

    @staticmethod
    def tensors(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token ids and mask: both (b, longest)."""
        ids, mask = pad(sequences, 0)
        return torch.from_numpy(ids), torch.from_numpy(mask)

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Token ids of each sentence, special ones included."""
        return self.tokenizer(sentences, truncation=True, max_length=MAX_TOKENS)["input_ids"]

    def in_batches(self, sentences: list[str]) -> Iterator[tuple[np.ndarray, torch.Tensor, torch.Tensor]]:
        """Yield batches of sentences of like length: which they are, their token ids and their mask."""
        encoded = self.encode(sentences)
        for batch in token_batches(np.array(list(map(len, encoded))), "cpu"):
            yield batch, *self.tensors([encoded[i] for i in batch])

    @torch.inference_mode()
    def predict(self, sentences: list[str]) -> np.ndarray:
        """Give what the backbone makes of sentences: (n, 4), as `sentence_values` has it."""
        self.model.eval()
        found = np.empty((len(sentences), 4))
        for batch, ids, mask in self.in_batches(sentences):
            found[batch] = sentence_values(self.model, ids, mask).numpy()
        return found

    def texts_to_judge(self, seed: int) -> list[str]:
        """Make sentences for a teacher to judge: good ones, bad ones, and all between.

        CoLA's, as they are, spoiled, and with words that this model predicts in place of one or two; and those of the
        other corpora, half of them with other names, half of them spoiled.
        """
        chance = random.Random(seed)
        spoiler, renamer = self.corpus.spoiler(seed), self.corpus.renamer(seed, JUDGED_MADE_NAMES)
        sentences = [sentence for sentence, _ in self.corpus.cola]
        texts = sentences + self.refill(sentences, seed) + self.refill(sentences, seed + 1)
        for sentence in sentences:
            spoiled = spoiler.spoil(split_words(sentence))
            texts += [" ".join(spoiled.words)] if spoiled and spoiled.words else []
        short = [words for words in self.corpus.sentences + self.corpus.captions if len(words) <= 20]
        for words in chance.sample(short, JUDGED_SENTENCES):
            if chance.random() < 0.5:
                words = renamer.rename(words)
            spoiled = spoiler.spoil(words) if chance.random() < 0.5 else None
            texts.append(" ".join(spoiled.words if spoiled and spoiled.words else words))
        return list(dict.fromkeys(texts))

    @torch.inference_mode()
    def refill(self, sentences: list[str], seed: int) -> list[str]:
        """Put other words in the place of one or two tokens of each sentence, as the model predicts; seeded."""
        torch.manual_seed(seed)
        self.model.eval()
        texts = [""] * len(sentences)
        for batch, ids, mask in self.in_batches(sentences):
            inner = functional.pad(mask[:, 2:], (1, 1)).float()
            rows = torch.arange(len(ids))
            for places in torch.multinomial(inner + 1e-9, 2).T[: 1 + int(torch.rand(()) < 0.5)]:
                masked = ids.clone()
                masked[rows, places] = self.tokenizer.mask_token_id
                logits = self.model.vocabulary_logits(self.model.hidden(masked, mask)[rows, places])
                ids[rows, places] = torch.multinomial(logits.softmax(1), 1)[:, 0]
            for row, i in enumerate(batch):
                texts[i] = self.tokenizer.decode(ids[row][mask[row] == 1], skip_special_tokens=True)
        return texts

    def fit_log_total(self, seed: int) -> None:
        """Teach the head that stands for the sum over the vocabulary; prints its error on sentences kept apart."""
        torch.manual_seed(seed)
        spoiler = self.corpus.spoiler(seed)
        chance = random.Random(seed)

        def mixed(sentences: list[list[str]]) -> list[str]:
            spoiled = [chance.random() < 0.5 and spoiler.spoil(words) for words in sentences]
            return [" ".join(s.words if s else words) for s, words in zip(spoiled, sentences, strict=True)]

        rows, totals, _ = self.totals(mixed(chance.sample(self.corpus.masked, TOTAL_SENTENCES)))
        head: Any = self.model.log_total.train()
        for layer in (head[0], head[2]):
            layer.reset_parameters()
        head[2].bias.data.fill_(float(totals.mean()))
        optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3, weight_decay=0.0)
        steps = TOTAL_EPOCHS * (len(rows) // 512)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        for _ in range(TOTAL_EPOCHS):
            for part in torch.randperm(len(rows)).split(512)[: len(rows) // 512]:
                loss = functional.mse_loss(head(rows[part])[:, 0], totals[part])
                loss.backward()
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        rows, totals, owners = self.totals(mixed(self.corpus.apart))
        with torch.inference_mode():
            errors = (head(rows)[:, 0] - totals).numpy()
        means = np.bincount(owners, errors) / np.bincount(owners)
        token, sentence = (np.sqrt((each**2).mean()) for each in (errors, means))
        print(f"sum over the vocabulary: error {token:.3f} of a token, {sentence:.3f} of a sentence's mean, in nats")

    @torch.inference_mode()
    def totals(self, sentences: list[str]) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Give, of each token of sentences, what predicts it (n, size), its log sum (n,), and its sentence (n,)."""
        self.model.eval()
        rows, totals, owners = [], [], []
        words, bias = self.model.bert.embeddings.word_embeddings.weight, self.model.vocabulary_bias
        for batch, ids, mask in self.in_batches(sentences):
            inner = functional.pad(mask[:, 2:], (1, 1)).bool()
            rows.append(self.model.word_query(self.model.hidden(ids, mask)[inner]))
            totals.append(functional.linear(rows[-1], words, bias).logsumexp(1))
            owners.append(np.repeat(batch, inner.sum(1).numpy()))
        return torch.cat(rows), torch.cat(totals), np.concatenate(owners)

    def count_tokens(self) -> None:
        """Learn how frequent each token is; one that never occurs counts a half."""
        counts = np.full(len(self.model.log_frequency), 0.5)
        encoded = self.tokenizer([" ".join(words) for words in self.corpus.masked], add_special_tokens=False)
        counts += np.bincount(np.concatenate(encoded["input_ids"]), minlength=len(counts))
        self.model.log_frequency.copy_(torch.from_numpy(np.log(counts / counts.sum())))

    def calibrate(self, seed: int) -> dict[str, tuple[float, float]]:
        """Fit a logistic curve to each output, on sentences kept apart; returns slopes and intercepts."""
        spoiler = self.corpus.spoiler(seed)
        pairs = [(words, spoiled.words) for words in self.corpus.apart if (spoiled := spoiler.spoil(words)) is not None]
        values = self.predict([" ".join(words) for side in zip(*pairs, strict=True) for words in side])
        labels = [1] * len(pairs) + [0] * len(pairs)
        cola = self.predict([sentence for sentence, _ in self.corpus.cola_apart])
        return {
            "likelihood": logistic(values[:, 0] + values[:, 1], labels),
            "soundness": logistic(values[:, 2], labels),
            "acceptability": logistic(cola[:, 3], [label for _, label in self.corpus.cola_apart]),
        }

    def save(self, path: Path, calibration: dict[str, tuple[float, float]]) -> str:
        """Write adapters and heads in half precision; returns the SHA-256 of the file."""
        tensors = {name: tensor for name, tensor in self.model.state_dict().items() if not name.startswith("bert.")}
        for name, adapter in self.adapters.items():
            tensors[f"{ADAPTERS}{name}.down"] = adapter.down.detach()
            tensors[f"{ADAPTERS}{name}.up"] = SCALE * adapter.up.detach()
        halves = {name: tensor.half().contiguous() for name, tensor in tensors.items()}
        save_file(halves, path, metadata={"calibration": json.dumps(calibration)})
        return hashlib.sha256(path.read_bytes()).hexdigest()


def logistic(values: np.ndarray, labels: list[int]) -> tuple[float, float]:
    """Slope and intercept of the logistic curve that fits best."""
    fitted = LogisticRegression(C=1e6).fit(values[:, None], labels)
    return float(fitted.coef_[0, 0]), float(fitted.intercept_[0])


def characters(item: Any) -> int:
    """Length of a sentence as words, or of one with a label."""
    return len(item[0]) if isinstance(item, tuple) else len(" ".join(item))


def without_stop(words: list[str], chance: float) -> list[str]:
    """Take the mark at the end off, one time in four."""
    return words[:-1] if chance < 0.25 and words[-1] in ".!?" else words


def teach(trainer: Trainer, encoder: str, seed: int) -> list[tuple[str, float]]:
    """Fine-tune a teacher on CoLA, and let it judge many sentences; returns them with its logits."""
    texts = trainer.texts_to_judge(seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(TEACHER_THREADS)
    teacher = Teacher(encoder, seed)
    teacher.fit(trainer.corpus.cola, seed)
    apart, labels = zip(*trainer.corpus.cola_apart, strict=True)
    print(f"teacher: MCC {matthews_corrcoef(labels, teacher.judge(apart) > 0):.3f} on what is kept apart of CoLA")
    logits = teacher.judge(texts)
    torch.set_num_threads(threads)
    return list(zip(texts, logits.tolist(), strict=True))


def train_all(trainer: Trainer, teacher: str, seed: int, checkpoints: Path | None = None) -> None:
    """Run the first stage, then each round from the mean weights of the last; the model gets those of the last."""

    def run(number: int, made: float, file: str) -> None:
        path = checkpoints and checkpoints / file
        if path and path.is_file():
            trainer.model.load_state_dict(torch.load(path))
            return
        print(f"stage {number + 1}, {made:.0%} of names made of common words: {STAGES[number]}", flush=True)
        trainer.train(STAGES[number], seed + number, made)
        if path:
            torch.save(trainer.model.state_dict(), path)

    def weights() -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}

    run(0, 0.0, "stage1.pt")
    kept = checkpoints and checkpoints / "judged.pt"
    if kept and kept.is_file():
        trainer.judged = torch.load(kept)
    else:
        trainer.judged = teach(trainer, teacher, seed)
        if kept:
            torch.save(trainer.judged, kept)
    for stages in ROUNDS:
        begun, ends = weights(), []
        for made in MADE_NAMES:
            trainer.model.load_state_dict(begun)
            for number in stages:
                run(number, made, f"stage{number + 1}_names{made}.pt")
            ends.append(weights())
        trainer.model.load_state_dict({name: torch.stack([end[name] for end in ends]).mean(0) for name in begun})


def main() -> None:
    """Train, calibrate and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--cola", type=Path, required=True)
    parser.add_argument(
        "--teacher",
        default="sentence-transformers/all-mpnet-base-v2",
        help="an encoder to fine-tune as teacher: a Hub id or a local path (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "metrics/gruen" / WEIGHTS_FILE)
    parser.add_argument(
        "--checkpoints", type=Path, help="a folder: keep each stage there, and take those that are kept"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # More threads would give other sums, and other weights; and one does most for each core.
    torch.set_num_threads(1)
    trainer = Trainer(read_corpus(arguments.text, arguments.cola), arguments.seed)
    train_all(trainer, arguments.teacher, arguments.seed, arguments.checkpoints)
    trainer.count_tokens()
    trainer.fit_log_total(arguments.seed)
    calibration = trainer.calibrate(arguments.seed)
    digest = trainer.save(arguments.out, calibration)
    print(f"calibration: {calibration}\n{arguments.out}: SHA-256 {digest}; put it into gruen.py")


if __name__ == "__main__":
    main()
