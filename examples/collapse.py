"""Does training make a model's answers alike? Diversity of the answers of its checkpoints to the same prompts.

python examples/collapse.py before=examples/data/lively.jsonl after=examples/data/cautious.jsonl

Each row of a file has a `prompt` and a list of `answers`. EAD is Distinct-1, adjusted for length. Beta is the effective
number of different checkpoints, this one and the first, from 1 to 2, and chance what it is if their answers are mixed.
"""

import sys
from pathlib import Path

import pandas
from matplotlib import pyplot

from text_metrics import between_groups, load

DATA = Path(__file__).parent / "data"
OUT = Path("build/collapse.svg")
VOCABULARY = 50_000  # of the model's tokenizer

words = sys.argv[1:] or [f"before={DATA / 'lively.jsonl'}", f"after={DATA / 'cautious.jsonl'}"]
files = dict(word.split("=", 1) for word in words)
tables = [pandas.read_json(path, lines=True).set_index("prompt")["answers"] for path in files.values()]
# Prompts that all checkpoints answered.
answers = pandas.concat(tables, axis=1, join="inner", keys=list(files))

rows = {}
for name in files:
    sets, first = answers[name].tolist(), answers.iloc[:, 0].tolist()
    pooled = [[*before, *after] for before, after in zip(first, sets, strict=True)]
    groups = [[0] * len(before) + [1] * len(after) for before, after in zip(first, sets, strict=True)]
    beta = between_groups("vendi_embed", pooled, groups)
    rows[name] = {
        "EAD": load("self_bleu").compute(predictions=sets, vocabulary_size=VOCABULARY)["ead"],
        "Vendi score": load("vendi_embed").compute(predictions=sets)["vendi_embed"],
        "semantic entropy": load("semantic_entropy").compute(predictions=sets)["semantic_entropy"],
        "beta": beta["between"],
        "chance": beta["between_expected"],
    }
table = pandas.DataFrame.from_dict(rows, orient="index")
print(f"{len(answers)} prompts\n{table.to_string(float_format='{:.3f}'.format)}")

axes = table.plot(subplots=[("EAD",), ("Vendi score",), ("semantic entropy",), ("beta", "chance")], layout=(1, 4))
for axis in axes.flat:
    axis.set(ylim=(0, None))
pyplot.gcf().set(size_inches=(12, 3), layout_engine="constrained")
OUT.parent.mkdir(exist_ok=True)
pyplot.savefig(OUT)
print(f"The picture is in {OUT}.")
