"""Print what rewards are in size, what GRPO makes of four paraphrases, and the CPU time of a step: docs/training.md.

    python -m scripts.results.rewards FOLDER

FOLDER is that of METRICS_TEST_DATA. Times are of one thread if OMP_NUM_THREADS is 1.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas

import text_metrics

N_SETS = 24
SIZES = (4, 8, 16)
REWARDS = [
    ("vendi_embed", "contribution"),
    ("chamfer_diversity", "distance"),
    ("semantic_entropy", "contribution"),
    ("semantic_entropy", "distinct_share"),
]
PARAPHRASES = [
    "The couple take their dog for a walk in the park.",
    "A couple is taking the dog to walk at a park.",
    "At the park, two partners walk a dog they have taken along.",
    "Their dog was taken on a park walk by this couple.",
]


def read_rows(path: Path) -> list[dict]:
    """Read JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def draw_sets(data: Path, n: int) -> dict[str, list[list[str]]]:
    """Draw sets of n texts: short answers with their repeats, sentences of one concept set, and captions of photos."""
    rng = np.random.default_rng(0)
    answers = []
    for row in read_rows(data / "probeval/cfc_dev_targets.jsonl")[:N_SETS]:
        counts = row["answers"]["raw"]
        everybody = [text for text, count in counts.items() for _ in range(count)]
        answers.append(rng.choice(everybody, n).tolist())
    sentences: dict[str, list[str]] = defaultdict(list)
    for model in ("gpt", "llama3", "qwen2"):
        for form in ("original", "para_a", "para_b", "para_c"):
            for row in read_rows(data / f"diversity_sets/{model}/{form}.jsonl")[:200]:
                sentences[row["src"]] += row["sentences"]
    pools = [list(dict.fromkeys(texts)) for texts in sentences.values()]
    large = [pool for pool in pools if len(pool) >= max(SIZES)][:N_SETS]
    captions = (data / "text/coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()
    return {
        "short answers of people": answers,
        "sentences with four given words": [rng.choice(pool, n, replace=False).tolist() for pool in large],
        "captions of different photos": [rng.choice(captions, n, replace=False).tolist() for _ in range(N_SETS)],
    }


def measure_rewards(data: Path) -> pandas.DataFrame:
    """Return the mean reward, its 5th and 95th percentile, and the mean standard deviation in a set."""
    rows = []
    for n in SIZES:
        for kind, sets in draw_sets(data, n).items():
            prompts = [str(i) for i in range(len(sets)) for _ in range(n)]
            texts = [text for members in sets for text in members]
            for name, reward in REWARDS:
                function = text_metrics.for_rewards(name, reward=reward)
                values = np.array(function(prompts=prompts, completions=texts)).reshape(-1, n)
                low, high = np.percentile(values, [5, 95])
                spread = values.std(axis=1, ddof=1).mean()
                rows.append([function.__name__, kind, n, values.mean(), low, high, spread])
    columns = ["reward", "prompts", "n", "mean", "5 %", "95 %", "deviation in a set"]
    return pandas.DataFrame(rows, columns=columns)


def measure_advantages() -> pandas.DataFrame:
    """Return the contributions of four paraphrases, and their advantages by GRPO with scale_rewards="group"."""
    rewards = np.array(text_metrics.for_rewards("vendi_embed")(prompts=["a"] * 4, completions=PARAPHRASES))
    centred = rewards - rewards.mean()
    scaled = centred / (rewards.std(ddof=1) + 1e-4)
    return pandas.DataFrame({"contribution": rewards, "group": scaled, "none": centred})


def measure_times(data: Path) -> pandas.DataFrame:
    """Return the seconds of CPU for one step of completions, eight of each prompt."""
    rows: list[list] = []
    words = " ".join((data / "text/coco_captions_20k.txt").read_text(encoding="utf-8").splitlines()).split()
    for name, reward in [*REWARDS[:3], ("gruen", "quality")]:
        function = text_metrics.for_rewards(name, reward=reward)
        for n_texts, n_words in ((64, 20), (64, 100), (64, 400), (256, 20)):
            starts = np.random.default_rng(n_words).integers(0, len(words) - n_words, n_texts)
            texts = [" ".join(words[start : start + n_words]) for start in starts]
            prompts = [str(i // 8) for i in range(n_texts)]
            if not rows or rows[-1][0] != function.__name__:
                # Load the model.
                function(prompts=prompts[:8], completions=texts[:8])
            start = time.process_time()
            function(prompts=prompts, completions=texts)
            rows.append([function.__name__, n_texts, n_words, time.process_time() - start])
    return pandas.DataFrame(rows, columns=["reward", "completions", "words", "CPU seconds"])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    show(measure_advantages())
    show(measure_rewards(data))
    show(measure_times(data))


def show(table: pandas.DataFrame) -> None:
    """Print a table."""
    print(table.to_string(index=False, float_format=lambda value: f"{value:.3f}"), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
