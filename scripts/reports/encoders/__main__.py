"""Compare sentence encoders: the processor time that they take, and how well Vendi scores from them agree with judges.

    python -m scripts.reports.encoders time                              print how fast they are
    python -m scripts.reports.encoders agreement                         print how often they agree with judges
    python -m scripts.reports.encoders time --write docs/encoders.md     put the table between its markers, too
    python -m scripts.reports.encoders time --only default model2vec     some encoders
    python -m scripts.reports.encoders peak --write docs/scale.md        the default against its multiplications alone

The encoders are those of docs/encoders.md, made from the bundled model. They take turns in one process, each in one
thread: `make encoders` sets the environment for it. Time is processor time, which varies less on a busy machine than
time on the clock. The captions and the judged pairs are those under $METRICS_TEST_DATA.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from scripts.arguments import data_folder, publish
from scripts.reports.benchmark.measure import machine, take_turns
from scripts.reports.encoders.peak import peak_table
from scripts.reports.encoders.recipes import ENCODERS
from text_metrics import load
from text_metrics.commands.meta_eval.agreement import Draws, balanced_accuracy, compare
from text_metrics.commands.meta_eval.pairs import read_verdict, read_votes
from text_metrics.commands.meta_eval.rows import rule_rows
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_text_lines, read_texts, read_topic
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import markdown_table
from text_metrics.metrics._core.core_encoder import EncoderSettings, encode
from text_metrics.metrics._core.core_models import DEFAULT_MODEL, find_model

PAIRS = {
    "GPT-4": "commongen_gpt4t_high",
    "Qwen": "commongen_qwen_high",
    "Llama": "commongen_llama_high",
    "people": "human_pairs",
}
ORDER = 0.5  # of the Vendi score
# Texts encoded alone, and among others of many lengths, to see whether an embedding depends on its batch.
ALONE = 200
PACKAGES = ("torch", "sentence-transformers", "transformers", "model2vec", "onnxruntime")


def encode_by(model: Any, texts: list[str]) -> np.ndarray:
    """Embed texts as a metric does that is given `model=`."""
    return encode(texts, EncoderSettings(model=model, device="cpu")).embeddings


def batch_dependence(model: Any, texts: list[str]) -> float:
    """Find the largest change of a number of an embedding between a text alone and the same text among others."""
    together = encode_by(model, texts)[:ALONE]
    alone = np.concatenate([encode_by(model, [text]) for text in texts[:ALONE]])
    return float(np.abs(together - alone).max())


class Judged(NamedTuple):
    """Pairs of sets, and which of each pair its judge calls more diverse.

    sets : the first set of each of n pairs, then the second of each
    verdicts : ndarray of shape (n,): 0 for the first, 1 for the second
    topics : ndarray of shape (n,), int: pairs about the same thing, which share texts, have the same number
    """

    sets: list[list[str]]
    verdicts: np.ndarray
    topics: np.ndarray


def read_judged(path: Path) -> Judged:
    """Read pairs with their verdicts, the majority's where people voted; without those that the judge calls vague."""
    first, second, verdicts, topics = [], [], [], []
    for where, record in read_objects(path):
        if "human_diversity" in record:
            votes = read_votes(record, where)
            verdict: int | None = int(2 * sum(votes) > len(votes))
        else:
            verdict = read_verdict(record, where)
        if verdict is None:
            continue
        first.append(read_texts(record, "set1", where))
        second.append(read_texts(record, "set2", where))
        verdicts.append(verdict)
        topics.append(read_topic(record))
    return Judged(first + second, np.array(verdicts), np.unique(topics, return_inverse=True)[1])


def agreement(scores: np.ndarray, judged: Judged) -> tuple[float, list[float] | None]:
    """Compute the balanced accuracy of scores in naming the more diverse set, a tie counting half, and its interval."""
    agreed = 1 - np.abs(compare(*scores.reshape(2, -1)) - judged.verdicts)
    draws = Draws(judged.topics)
    value, resampled = balanced_accuracy(agreed, judged.verdicts, draws)
    return value, draws.interval(resampled)


def time_table(models: dict[str, Any], made: dict[str, float], captions: list[str], sizes: dict[int, int]) -> list[str]:
    """Write how many times as fast as the default each model is; `sizes` are numbers of captions, and their rounds."""

    def measure(n: int, rounds: int) -> dict[str, list[float]]:
        return take_turns({name: partial(encode_by, model, captions[:n]) for name, model in models.items()}, rounds)

    measure(ALONE, 1)  # a warm-up
    times = {n: measure(n, rounds) for n, rounds in sizes.items()}
    header = ["encoder", "made in", *(f"{size:_} captions".replace("_", " ") for size in sizes)]
    rows = []
    for name in models:
        ratios = [ratio_cell(taken, name) for taken in times.values()]
        rows.append([ENCODERS[name].title, "" if name == "default" else f"{made[name]:.0f} s", *ratios])
    return [*markdown_table([header, *rows]), "", about_machine()]


def ratio_cell(taken: dict[str, list[float]], name: str) -> str:
    """Write the median over the rounds and their range; of the default, its seconds."""
    if name == "default":
        return f"1 ({np.median(taken[name]):.1f} s)"
    ratios = [first / seconds for first, seconds in zip(taken["default"], taken[name], strict=True)]
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{np.median(ratios):.2f}{spread}"


def agreement_table(models: dict[str, Any], captions: list[str], folder: Path) -> list[str]:
    """Write the agreements in percent, with their intervals, and the batch dependence of the embeddings."""
    vendi = load("vendi_embed")
    data = [read_judged(folder / f"{stem}.jsonl") for stem in PAIRS.values()]

    def cells(scores: list[np.ndarray]) -> list[str]:
        agreements = [agreement(values, judged) for values, judged in zip(scores, data, strict=True)]
        return [
            f"{100 * value:.1f} ({'–'.join(f'{100 * bound:.1f}' for bound in interval or [])})"
            for value, interval in agreements
        ]

    rows = []
    for name, model in models.items():
        results = [vendi.compute(predictions=judged.sets, model=model, q=ORDER, device="cpu") for judged in data]
        shown = cells([np.array(result["scores"]) for result in results])
        rows.append([ENCODERS[name].title, *shown, f"{batch_dependence(model, captions[: 5 * ALONE]):.0e}"])
        print(f"{name}: {', '.join(shown)}", file=sys.stderr, flush=True)
    rules = [{row.name: row.scores for row in rule_rows(judged.sets)} for judged in data]
    rows += [[name, *cells([shares[name] for shares in rules]), ""] for name in rules[0]]
    return markdown_table([["encoder", *PAIRS, "batch dependence"], *rows])


def about_machine() -> str:
    """Say what the times were measured on."""
    about = machine()
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Processor: {about['Processor']}; one thread each. {about['System']}. {versions}."


def make(names: Sequence[str], scratch: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Make encoders; returns what `model=` takes, and the processor seconds that each took to make."""
    folder = str(find_model(DEFAULT_MODEL).path)
    models, made = {}, {}
    for name in names:
        start = time.process_time()
        models[name] = ENCODERS[name].make(folder, scratch)
        made[name] = time.process_time() - start
        print(f"{name}: made in {made[name]:.1f} s", file=sys.stderr, flush=True)
    return models, made


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("table", choices=("time", "agreement", "peak"))
    parser.add_argument("--only", nargs="+", choices=ENCODERS, default=list(ENCODERS), help="compare these encoders")
    parser.add_argument("--sizes", nargs="+", type=int, default=[4_000, 20_000], metavar="N", help="captions to time")
    parser.add_argument("--rounds", nargs="+", type=int, default=[5, 2], metavar="N", help="turns at each size")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its markers in a page")
    arguments = parser.parse_args()
    if len(arguments.rounds) != len(arguments.sizes) or min(arguments.rounds) < 1:
        parser.error(f"--rounds must give one number for each of --sizes. Got {arguments.rounds}, {arguments.sizes}.")
    torch.set_num_threads(1)
    data = data_folder(parser)
    check_outputs([data], [arguments.write])
    captions = read_text_lines(data / "text" / "coco_captions_20k.txt")
    if arguments.table == "peak":
        lines = [*peak_table(captions[: arguments.sizes[0]], arguments.rounds[0]), "", about_machine()]
    else:
        with tempfile.TemporaryDirectory() as scratch:
            models, made = make(list(dict.fromkeys(["default", *arguments.only])), Path(scratch))
            if arguments.table == "time":
                lines = time_table(models, made, captions, dict(zip(arguments.sizes, arguments.rounds, strict=True)))
            else:
                lines = agreement_table(models, captions, data / "diversity_pairs")
    publish(lines, arguments.write, f"compare_encoders {arguments.table}")


if __name__ == "__main__":
    raise SystemExit(main())
