"""Score a file of generations with rewards by the command line, without a network.

python examples/score_a_file.py
"""

import json
import tempfile
from pathlib import Path

from text_metrics.__main__ import main

ROWS = [
    {"prompt": "Name a pet.", "generations": ["a dog", "a dog", "a cat"], "reward": [1.0, 1.0, 0.5]},
    {"prompt": "Name a drink.", "generations": ["tea", "coffee", "water"], "reward": [0.8, 0.9, 1.0]},
]

with tempfile.TemporaryDirectory() as folder:
    data, out = Path(folder, "generations.jsonl"), Path(folder, "scored.jsonl")
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    # In a shell: text-metrics score generations.jsonl --metric semantic_entropy --text-key generations ...
    words = f"score {data} --metric semantic_entropy --text-key generations --column quality=reward --out {out} --quiet"
    if code := main([*words.split(), "--setting", "patience=0.8"]):
        raise SystemExit(code)
    for row in map(json.loads, out.read_text().splitlines()):
        print(f"{row['prompt']:14} {row['n_classes_scores']:.0f} meanings, utility {row['utility_scores']:.2f}")
