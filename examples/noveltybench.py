"""NoveltyBench's distinct and utility from its file scores.jsonl, and what else these answers say, without a network.

python examples/noveltybench.py results/curated/my-model/scores.jsonl
"""

import json
import sys
from pathlib import Path

import text_metrics

# A small file of the same shape, with answers of our own.
SAMPLE = Path(__file__).parents[1] / "tests" / "data" / "shapes" / "noveltybench_scores.jsonl"

path = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
generations = [row["generations"] for row in rows]
# Their ratings are 1 to 10, and 0 for a repetition, whose rating does not count.
result = text_metrics.load("semantic_entropy").compute(
    predictions=generations,
    classes=[row["partition"] for row in rows],
    quality=[[score / 10 for score in row["generation_scores"]] for row in rows],
    patience=0.8,
)
print(f"distinct {result['n_classes']:.2f}, utility {10 * result['utility']:.2f}: as in their summary.json")

contexts = [row["prompt"] for row in rows]
vendi = text_metrics.load("vendi_embed").compute(predictions=generations, contexts=contexts)
print(f"different answers without a classifier: {vendi['vendi_embed']:.2f}")
