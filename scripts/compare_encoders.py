"""Compare sentence encoders: the processor time that they take, and how well Vendi scores from them agree with judges.

    python scripts/compare_encoders.py time                              print how fast they are
    python scripts/compare_encoders.py agreement                         print how often they agree with judges
    python scripts/compare_encoders.py time --write docs/encoders.md     put the table between its markers, too
    python scripts/compare_encoders.py time --only default model2vec     some encoders

The encoders are those of docs/encoders.md, made from the bundled model. Each runs in one thread, and they take turns in
one process. Time is processor time, which varies less on a busy machine than time on the clock. The captions and the
judged pairs are those under $METRICS_TEST_DATA.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One thread for each encoder; read when the libraries are imported.
for variable in ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
    os.environ[variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import evaluate  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from metrics._core.core_encoder import EncoderSettings, encode  # noqa: E402
from metrics._core.core_models import DEFAULT_MODEL, find_model  # noqa: E402
from scripts._benchmark.measure import machine  # noqa: E402
from scripts._encoders.recipes import ENCODERS  # noqa: E402
from scripts._files import read_objects, write_text  # noqa: E402
from scripts.meta_eval import Row, accuracies, choices, read_pairs  # noqa: E402

PAIRS = {
    "GPT-4": "commongen_gpt4t_high",
    "Qwen": "commongen_qwen_high",
    "Llama": "commongen_llama_high",
    "people": "human_pairs",
}
ORDER = 0.5  # of the Vendi score
# Texts encoded alone, and among others of many lengths, to see whether company changes an embedding.
ALONE = 200
PACKAGES = ("torch", "sentence-transformers", "transformers", "model2vec", "onnxruntime")


def encode_by(model: Any, texts: list[str]) -> np.ndarray:
    """Embed texts as a metric does that is given `model=`."""
    return encode(texts, EncoderSettings(model=model, device="cpu")).embeddings


def measure(models: dict[str, Any], texts: list[str], rounds: int) -> dict[str, list[float]]:
    """Measure the processor seconds that each model takes for texts, turn by turn; a list of `rounds` for each."""
    taken: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds):
        for name, model in models.items():
            start = time.process_time()
            encode_by(model, texts)
            taken[name].append(time.process_time() - start)
            note(f"round {number + 1} of {rounds}, {len(texts)} texts, {name}: {taken[name][-1]:.1f} s")
    return taken


def company(model: Any, texts: list[str]) -> float:
    """Find the largest change of a number of an embedding between a text alone and the same text in company."""
    together = encode_by(model, texts)[:ALONE]
    alone = np.concatenate([encode_by(model, [text]) for text in texts[:ALONE]])
    return float(np.abs(together - alone).max())


def read_people(path: Path, scratch: Path) -> Path:
    """Write the pairs that people judged as pairs with one verdict, the majority's, for `read_pairs`."""
    lines = []
    for _, record in read_objects(path):
        votes = record["human_diversity"]
        verdict = int(2 * sum(votes) > len(votes))
        kept = {name: record[name] for name in ("src", "set1", "set2")}
        lines.append(json.dumps({**kept, "llm_diversity": verdict}))
    written = scratch / path.name
    write_text(written, "\n".join(lines) + "\n")
    return written


def agreement(models: dict[str, Any], folder: Path, scratch: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Score the sets of all judged pairs; for each data set and model, the accuracy and its interval."""
    vendi = evaluate.load(str(ROOT / "metrics" / "vendi_embed"))
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for title, stem in PAIRS.items():
        path = folder / f"{stem}.jsonl"
        pairs = read_pairs([read_people(path, scratch) if title == "people" else path])
        chosen = {}
        for name, model in models.items():
            result = vendi.compute(predictions=pairs.sets, model=model, q=ORDER, device="cpu")
            row = Row(name, np.array(result["scores"]), 1, result["signature"])
            chosen[name] = choices(row, pairs, parity=False)
            note(f"{stem}, {name}: {1 - np.abs(chosen[name] - pairs.verdicts).mean():.3f}")
        found[title] = accuracies(chosen, pairs, np.ones(len(pairs.verdicts), dtype=bool))
    return found


def time_table(models: dict[str, Any], made: dict[str, float], captions: list[str], sizes: dict[int, int]) -> list[str]:
    """Write how many times as fast as the default each model is; `sizes` are numbers of captions, and their rounds."""
    measure(models, captions[:ALONE], 1)  # a warm-up
    times = {size: measure(models, captions[:size], rounds) for size, rounds in sizes.items()}
    header = ["encoder", "made in", *(f"{size:_} captions".replace("_", " ") for size in sizes)]
    rows = []
    for name in models:
        ratios = [ratio_cell(taken, name) for taken in times.values()]
        rows.append([ENCODERS[name].title, "" if name == "default" else f"{made[name]:.0f} s", *ratios])
    return [*markdown(header, rows), "", about_machine()]


def ratio_cell(taken: dict[str, list[float]], name: str) -> str:
    """Write the median over the rounds and their range; of the default, its seconds."""
    if name == "default":
        return f"1 ({np.median(taken[name]):.1f} s)"
    ratios = [first / own for first, own in zip(taken["default"], taken[name], strict=True)]
    spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
    return f"{np.median(ratios):.2f}{spread}"


def agreement_table(models: dict[str, Any], captions: list[str], folder: Path, scratch: Path) -> list[str]:
    """Write the accuracies in percent, with their intervals, and what company does to the embeddings."""
    agreed = agreement(models, folder, scratch)
    rows = []
    for name, model in models.items():
        cells = []
        for found in agreed.values():
            low, high = found[name]["interval"]
            cells.append(f"{100 * found[name]['accuracy']:.1f} ({100 * low:.1f}–{100 * high:.1f})")
        rows.append([ENCODERS[name].title, *cells, f"{company(model, captions[: 5 * ALONE]):.0e}"])
    return markdown(["encoder", *agreed, "company"], rows)


def markdown(header: list[str], rows: list[list[str]]) -> list[str]:
    """Write a table as lines of Markdown."""
    return ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]


def about_machine() -> str:
    """Say what the times were measured on."""
    about = machine()
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return f"Processor: {about['Processor']}; one thread each. {about['System']}. {versions}."


def put_between(path: Path, table: str, written: str) -> None:
    """Put a table between its markers in a page."""
    start, end = (f"<!-- compare_encoders {table}: {what} -->" for what in ("start", "end"))
    page = path.read_text(encoding="utf-8")
    if page.count(start) != 1 or page.count(end) != 1:
        raise ValueError(f"{path} must hold {start} and {end}, once each.")
    before, rest = page.split(start)
    after = rest.split(end)[1]
    write_text(path, f"{before}{start}\n{written}{end}{after}")


def note(line: str) -> None:
    """Say how far the work is."""
    print(line, file=sys.stderr, flush=True)


def make(names: Sequence[str], scratch: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Make encoders; returns what `model=` takes, and the processor seconds that each took to make."""
    folder = str(find_model(DEFAULT_MODEL).path)
    models, made = {}, {}
    for name in names:
        start = time.process_time()
        models[name] = ENCODERS[name].make(folder, scratch)
        made[name] = time.process_time() - start
        note(f"{name}: made in {made[name]:.1f} s")
    return models, made


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("time", "agreement"))
    parser.add_argument("--only", nargs="+", choices=ENCODERS, default=list(ENCODERS), help="compare these encoders")
    parser.add_argument("--sizes", nargs="+", type=int, default=[4_000, 20_000], metavar="N", help="captions to time")
    parser.add_argument("--rounds", nargs="+", type=int, default=[5, 2], metavar="N", help="turns at each size")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table between its markers in a page")
    arguments = parser.parse_args()
    if "METRICS_TEST_DATA" not in os.environ:
        parser.error("METRICS_TEST_DATA must name the folder with the captions and the judged pairs")
    if len(arguments.rounds) != len(arguments.sizes) or min(arguments.rounds) < 1:
        parser.error(f"--rounds must give one number for each of --sizes. Got {arguments.rounds}, {arguments.sizes}.")
    torch.set_num_threads(1)
    data = Path(os.environ["METRICS_TEST_DATA"]) / "data"
    try:
        captions = (data / "text" / "coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()
        with tempfile.TemporaryDirectory() as scratch:
            models, made = make(list(dict.fromkeys(["default", *arguments.only])), Path(scratch))
            if arguments.table == "time":
                lines = time_table(models, made, captions, dict(zip(arguments.sizes, arguments.rounds, strict=True)))
            else:
                lines = agreement_table(models, captions, data / "diversity_pairs", Path(scratch))
        written = "\n".join(lines) + "\n"
        print(written)
        if arguments.write:
            put_between(arguments.write, arguments.table, written)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
