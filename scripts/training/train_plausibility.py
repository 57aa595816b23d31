r"""Train a plausibility head: the compact backbone of `gruen`, fine-tuned to detect sentences that make no sense.

    export NLTK_DATA=DATA/nltk_data
    python -m scripts.training.train_plausibility --text DATA/text --cola DATA/gruen --rate texts.jsonl \
        --out plausibility.jsonl
    text-metrics meta-eval pairs.jsonl --sets DATA/diversity_sets --quality plausibility.jsonl

`--text` and `--cola` are those of train_gruen_compact. The corruptions keep the grammar: a noun, or all nouns, replaced
by frequent ones of another class of WordNet; a verb replaced; two roles swapped. Training starts from the
weights of the compact backbone, with its adapters, its losses, and these corruptions in place of its own. Printed are
the AUCs on sentences that it has not seen, by kind of corruption, on CoLA, and of the rule that the shorter text is
the better one. The ratings are written for `text-metrics meta-eval`. Nothing is shipped; EVIDENCE.md has the result.
"""

from pathlib import Path

import numpy as np
import torch
from nltk.tag import PerceptronTagger
from safetensors import safe_open
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from scripts import ROOT
from scripts.training.gruen.corpora import split_words
from scripts.training.gruen.corpus import read_corpus
from scripts.training.gruen.sense import SenseCorruptor, noun_classes
from scripts.training.gruen.trainer import SCALE, Stage, Trainer
from text_metrics.commands.rate_quality.main import read_lines
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_jsonl
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.metrics.gruen.gruen_compact import ADAPTERS, WEIGHTS_FILE

LONGEST = 20
HELD_OUT_CAPTIONS = 1500


def continue_from(trainer: Trainer, weights: Path) -> None:
    """Give a trainer the adapters and heads of a trained backbone."""
    with safe_open(weights, framework="pt") as file:
        tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118
    with torch.no_grad():
        for name, adapter in trainer.adapters.items():
            adapter.down.copy_(tensors.pop(f"{ADAPTERS}{name}.down"))
            adapter.up.copy_(tensors.pop(f"{ADAPTERS}{name}.up") / SCALE)
    trainer.model.load_state_dict(tensors, strict=False)


def soundness(trainer: Trainer, sentences: list[str]) -> np.ndarray:
    """Rate sentences: ndarray of logits, of shape (n,)."""
    return trainer.predict(sentences)[:, 2]


def report(trainer: Trainer, held_out: dict[str, list[list[str]]], corruptor: SenseCorruptor) -> None:
    """Print the AUC on held-out sentences, by kind of corruption, and on CoLA."""
    for source, sentences in held_out.items():
        for kind in corruptor.kinds:
            pairs = [(words, corrupted.words) for words in sentences if (corrupted := corruptor.corrupt(words, kind))]
            texts = [" ".join(words) for side in zip(*pairs, strict=True) for words in side]
            labels = [1] * len(pairs) + [0] * len(pairs)
            auc = roc_auc_score(labels, soundness(trainer, texts))
            shorter = roc_auc_score(labels, [-len(text) for text in texts])
            print(
                f"{source}, {kind}: AUC {auc:.3f} of {len(pairs)} pairs; rule, shorter text: {shorter:.3f}", flush=True
            )
    texts, labels = map(list, zip(*trainer.corpus.cola_held_out, strict=True))
    print(f"CoLA: AUC {roc_auc_score(labels, soundness(trainer, texts)):.3f} of {len(labels)}", flush=True)


@command
def main() -> None:
    """Train, report and rate."""
    parser = make_parser(__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--cola", type=Path, required=True)
    parser.add_argument(
        "--rate", type=Path, required=True, help="JSON lines of texts, as text-metrics meta-eval --list-texts writes"
    )
    parser.add_argument("--out", type=Path, required=True, help="where to write text and quality")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    check_outputs([arguments.text, arguments.cola, arguments.rate], [arguments.out])
    torch.set_num_threads(1)
    corpus = read_corpus(arguments.text, arguments.cola)
    lines = (arguments.text / "coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()
    held_out = {
        "prose": [words for words in corpus.held_out if len(words) <= LONGEST],
        "captions": [split_words(line) for line in lines[1::2]][:HELD_OUT_CAPTIONS],
    }
    sentences = [words for words in corpus.sentences if len(words) <= LONGEST] + corpus.captions
    classes = noun_classes()
    first = SenseCorruptor(sentences, classes, PerceptronTagger().tag, arguments.seed)
    trainer = Trainer(corpus._replace(sentences=sentences, corruptor=lambda seed: first), arguments.seed)
    continue_from(trainer, ROOT / "metrics/gruen" / WEIGHTS_FILE)
    print("before training", flush=True)
    report(trainer, held_out, first)
    stage = Stage(arguments.steps, pairs=24, masked=2, cola=4, cola_weight=0.5, adapter_rate=3e-4, head_rate=5e-4)
    trainer.train(stage, arguments.seed, 0.0)
    report(trainer, held_out, first)
    texts = read_lines(arguments.rate)
    signature = f"plausibility|steps:{arguments.steps}|seed:{arguments.seed}"
    rated = zip(texts, expit(soundness(trainer, texts)).tolist(), strict=True)
    write_jsonl(arguments.out, ({"text": text, "quality": quality, "signature": signature} for text, quality in rated))


if __name__ == "__main__":
    raise SystemExit(main())
