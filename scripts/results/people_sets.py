"""Write results/people-sets.csv, people-sets-all.csv and values.csv: metrics of sets of texts beside people's ratings.

    python -m scripts.results.people_sets

The data are half of McDiv nuggets and of DecTest (Tevet and Berant 2021): answers to a context, whose diversity ten
people rated. The first two tables have rank correlations with the mean rating, and differences between these, with 95 %
intervals over 1 000 resamples of contexts. The ceiling is the square root of the reliability of the mean rating, by the
standard deviations of the ratings. The third has the median and the middle half of scores by rating, and of the first
300 sets of sentences that each generator of arXiv 2506.00514 wrote about given words. It needs METRICS_TEST_DATA.
"""

from collections.abc import Iterator

import numpy as np
import pandas
from scipy.stats import kendalltau, rankdata

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics import load
from text_metrics.console import Parser, command
from text_metrics.meta_eval.scores import content_columns, join_columns, score_sets
from text_metrics.metrics._core.core_models import DEFAULT_MODEL
from text_metrics.metrics._core.core_numbers import tied_ranks
from text_metrics.reporting.formats import interval, number

SETS = {"mcdiv_nuggets": "McDiv nuggets", "dectest": "DecTest"}
TASKS = ("prompt", "dialogue", "story")
N_RATERS, RESAMPLES = 10, 1000
CEILING, RULE, CONTEXTS = "people (ceiling)", "rule: share of distinct words", " with contexts"
SHORT = ("VS-Embed-1", "Chamfer", "VS-Classes-0", "self-BLEU-4", "rule: longer set", "rule: distinct-3", RULE)

# The columns of values.csv, and the sign by which each differs from what is more diverse.
VALUES = {
    "vendi_embed": ("VS-Embed-1", 1),
    "with contexts": (f"VS-Embed-1{CONTEXTS}", 1),
    "chamfer_diversity": ("Chamfer", 1),
    "n_classes": ("VS-Classes-0", 1),
    "self_bleu": ("self-BLEU-4", -1),
    "distinct_1": (RULE, 1),
    "gruen": ("GRUEN alone", 1),
}


def score(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Score the sets by every metric, with and without contexts, and by trivial rules: higher is more diverse."""
    sets = rows["texts"].tolist()
    cache = ROOT / "build" / "embeddings"
    scores = score_sets(sets, cache_dir=cache)
    encoder = {"model": DEFAULT_MODEL, "cache_dir": cache, "contexts": rows["context"].tolist()}
    in_context = join_columns([*content_columns(sets, encoder)])
    values = (scores.values * scores.metrics["sign"]).drop(columns="rule: shorter set")
    values = values.join((in_context.values * in_context.metrics["sign"]).add_suffix(CONTEXTS))
    words = pandas.DataFrame(load("self_bleu").compute(predictions=sets, details=True)["details"])
    return values.assign(**{RULE: words["distinct_1"], "rule: distinct-3": words["distinct_3"]})


def resamples(contexts: pandas.Series) -> Iterator[np.ndarray]:
    """Yield the places of the sets, and of resamples of their contexts."""
    places = list(pandas.Series(range(len(contexts))).groupby(contexts.to_numpy()).apply(np.array))
    generator = np.random.default_rng(0)
    yield np.arange(len(contexts))
    for _ in range(RESAMPLES):
        yield np.concatenate([places[i] for i in generator.integers(len(places), size=len(places))])


def spearman(values: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of k columns (n, k) with the ratings (n,): (k,)."""
    ranks = rankdata(np.column_stack([values, people]), axis=0)
    return np.corrcoef(ranks, rowvar=False)[-1, :-1]


def show(values: np.ndarray, signed: bool = False) -> str:
    """Format a number, the first, with the interval of the other ones."""
    return f"{number(values[0], 3, signed)} {interval(np.quantile(values[1:], [0.025, 0.975]), 2)}"


def correlate(rows: pandas.DataFrame, values: pandas.DataFrame) -> pandas.DataFrame:
    """Return a row for each metric: correlations over all sets and by task, and differences between metrics."""
    values = values.apply(tied_ranks)
    people = rows["people"].to_numpy()
    matrix = values.to_numpy()
    correlations = np.array([spearman(matrix[draw], people[draw]) for draw in resamples(rows["context"])])
    by_name = dict(zip(values, correlations.T, strict=True))
    reliability = 1 - (rows["people_sd"] ** 2 / (N_RATERS - 1)).mean() / rows["people"].var()
    lines = [{"metric": CEILING, "Spearman": number(reliability**0.5, 3)}]
    for name, column in by_name.items():
        line = {"metric": name, "Spearman": show(column), "Kendall": number(kendalltau(values[name], people)[0], 3)}
        for task in TASKS:
            part = (rows["task"] == task).to_numpy()
            line[task] = number(spearman(values.loc[part, [name]].to_numpy(), people[part])[0], 3)
        if name.endswith(CONTEXTS):
            line["gain by contexts"] = show(column - by_name[name.removesuffix(CONTEXTS)], signed=True)
        if name != RULE:
            line["above the share of distinct words"] = show(column - by_name[RULE], signed=True)
        lines.append(line)
    return pandas.DataFrame(lines).fillna("")


def typical(name: str, values: pandas.DataFrame) -> dict[str, str]:
    """Format the median and the middle half of the scores of some sets."""
    line = {"sets": f"{name} ({len(values)})"}
    for column, (metric, sign) in VALUES.items():
        low, middle, high = np.quantile(sign * values[metric], [0.25, 0.5, 0.75])
        line[column] = f"{number(middle, 2)} {interval((low, high), 2)}"
    return line


@command
def main() -> None:
    """Write the tables."""
    data = data_folder(Parser(__doc__))
    frames = []
    lines = []
    for file, name in SETS.items():
        rows = pandas.read_json(data / "people_sets" / f"{file}.jsonl", lines=True)
        values = score(rows)
        frames.append(correlate(rows, values))
        frames[-1].insert(0, "sets", f"{name} ({len(rows)})")
        for low in range(1, 5):
            rated = (rows["people"] >= low) & ((rows["people"] < low + 1) | (low == 4))
            lines.append(typical(f"{len(rows['texts'][0])} answers, rated {low} to {low + 1}", values[rated]))
    for generator in ("gpt", "llama3", "qwen2"):
        rows = pandas.read_json(data / "diversity_sets" / generator / "original.jsonl", lines=True, nrows=300)
        sets = rows.rename(columns={"sentences": "texts", "src": "context"})
        lines.append(typical(f"4 sentences by {generator}", score(sets)))
    pandas.DataFrame(lines).to_csv(ROOT / "results" / "values.csv", index=False)
    whole = pandas.concat(frames)
    whole.to_csv(ROOT / "results" / "people-sets-all.csv", index=False)
    names = [CEILING, *(name for base in SHORT for name in (base, base + CONTEXTS) if name in set(whole["metric"]))]
    short = whole.pivot(index="metric", columns="sets", values="Spearman").loc[names, whole["sets"].unique()]
    short.rename_axis("Spearman with people").to_csv(ROOT / "results" / "people-sets.csv")


if __name__ == "__main__":
    raise SystemExit(main())
