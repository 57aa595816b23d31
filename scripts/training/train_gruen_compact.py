"""Train the compact backbone of `gruen`: adapters and heads on the default sentence encoder, from public text.

    python -m scripts.training.train_gruen_compact --text DATA/text --cola DATA/gruen

`--text` is a folder with NLTK's corpora as zip files (abc, brown, movie_reviews, state_union, webtext) and
`coco_captions_20k.txt`; `--cola` has `cola_in_domain_train.tsv`. Nothing else is read, and so neither the development
set nor the human ratings that `scripts/reports/gruen.py` reports.

Stage 1 learns from four tasks in each step: to tell sentences from corrupted ones (within a pair, and each alone), to
mark the words where a corrupted one is wrong, to predict masked and replaced words, and to judge as CoLA's authors do.
Stage 2 replaces names, so that a rare name does not count as an error. Stages 3 and 4 learn from a teacher: a larger
encoder, fine-tuned on CoLA, that has judged many sentences (Hinton et al. 2015). Stages 2 and 3, and then stage 4, run
twice, without and with names made of common words, and their weights are averaged (a model soup, Wortsman et al. 2022),
because single runs vary. Then a head that predicts the logarithm of the softmax denominator is fitted, and the outputs
are calibrated on held-out sentences. Training runs in bfloat16 and takes three hours on two cores. The same seed, the
same machine and the same versions of all libraries give the same file. `--checkpoints` keeps each stage, and the
judgements.
"""

from pathlib import Path
from typing import Any

import torch

from scripts import ROOT
from scripts.training.gruen.corpus import read_corpus
from scripts.training.gruen.finishing import calibrate, count_tokens, fit_log_total, save
from scripts.training.gruen.judging import teach
from scripts.training.gruen.trainer import Stage, Trainer
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import written_whole
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.metrics.gruen.gruen_compact import WEIGHTS_FILE

# The shares of names made of common words in the runs that are averaged.
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
# Stages, by index, that run from the same weights, once for each share of made names, before the average is taken.
ROUNDS = ((1, 2), (3,), (4,))


def train_all(trainer: Trainer, teacher: str, seed: int, checkpoints: Path | None = None) -> None:
    """Run the first stage, then each round from the averaged weights of the round before."""

    def run(number: int, made: float, file: str) -> None:
        path = checkpoints and checkpoints / file
        if path and path.is_file():
            trainer.model.load_state_dict(torch.load(path))
            return
        if number:
            torch.manual_seed(seed + number)
        print(f"stage {number + 1}, {made:.0%} of names made of common words: {STAGES[number]}", flush=True)
        trainer.train(STAGES[number], seed + number, made)
        if path:
            save_tensors(trainer.model.state_dict(), path)

    def weights() -> dict[str, torch.Tensor]:
        return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}

    run(0, 0.0, "stage1.pt")
    judged_file = checkpoints and checkpoints / "judged.pt"
    if judged_file and judged_file.is_file():
        trainer.judged = torch.load(judged_file)
    else:
        trainer.judged = teach(trainer, teacher, seed)
        if judged_file:
            save_tensors(trainer.judged, judged_file)
    for stages in ROUNDS:
        begun, ends = weights(), []
        for made in MADE_NAMES:
            trainer.model.load_state_dict(begun)
            for number in stages:
                run(number, made, f"stage{number + 1}_names{made}.pt")
            ends.append(weights())
        trainer.model.load_state_dict({name: torch.stack([end[name] for end in ends]).mean(0) for name in begun})


def save_tensors(value: Any, path: Path) -> None:
    """Write what `torch.load` reads, atomically."""
    # Given a path, torch's error has no name and no reason.
    with written_whole(path) as temporary, temporary.open("wb") as file:
        torch.save(value, file)


@command
def main() -> None:
    """Train, calibrate and write the weights."""
    parser = make_parser(__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--cola", type=Path, required=True)
    parser.add_argument(
        "--teacher",
        default="sentence-transformers/all-mpnet-base-v2",
        help="an encoder to fine-tune as teacher: a Hub id or a local path (default: %(default)s)",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "metrics/gruen" / WEIGHTS_FILE)
    parser.add_argument(
        "--checkpoints", type=Path, help="a folder that keeps each stage, and from which a stopped training continues"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    reads = [arguments.text, arguments.cola, *module_files(arguments.teacher)]
    check_outputs(reads, [arguments.out, arguments.checkpoints])
    # The rounding of sums depends on the number of threads.
    torch.set_num_threads(1)
    trainer = Trainer(read_corpus(arguments.text, arguments.cola), arguments.seed)
    train_all(trainer, arguments.teacher, arguments.seed, arguments.checkpoints)
    count_tokens(trainer)
    fit_log_total(trainer, arguments.seed)
    calibration = calibrate(trainer, arguments.seed)
    digest = save(trainer, arguments.out, calibration)
    print(f"calibration: {calibration}\n{arguments.out}: SHA-256 {digest}; put it into gruen.py")


if __name__ == "__main__":
    raise SystemExit(main())
