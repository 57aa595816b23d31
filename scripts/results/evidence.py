"""Write the meta-evaluation on the released data to results/, beside what the paper prints.

    METRICS_TEST_DATA=/path/to/data python -m scripts.results.evidence

Writes results/*.csv and results/evidence/agreement.svg.
"""

from pathlib import Path

import numpy as np
import pandas

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.results.tables import LABELS, percents, shown, tables, wide
from text_metrics.console import Parser, command
from text_metrics.files.rows import read_rows
from text_metrics.files.storage import write_text
from text_metrics.meta_eval.agreement import Bootstrap, choices, distributions, evaluate
from text_metrics.meta_eval.pairs import Sets, read_pairs
from text_metrics.meta_eval.scores import Scores, score_sets
from text_metrics.reporting.formats import NONE, number
from text_metrics.reporting.plots import new_figure, styled, to_svg

ORIGINAL = "original"
# The kinds of sets that should rank below the original.
POORER = ("nonsensical", "shuffle_nouns", "shuffle", "para_a", "para_b", "para_c")
# Concepts that are drawn of each generator.
CONCEPTS = 300
# The rows of README's table.
SUMMARY = ("a person, with the other people", "self-BLEU-3", "Chamfer", "VS-Embed-0.5", "rule: set 1")
# Accuracies that the paper prints, in percent. It names the encoder, SimCSE on RoBERTa-large, but not the checkpoint.
PAPER = pandas.DataFrame(
    {
        "commongen_gpt4t, all": [48.4, 49.1, 47.5, 49.2, 64.0, 62.9, 80.6, 76.9, 80.7, 79.3],
        "commongen_gpt4t, high": [73.5, 72.0, None, None, 61.7, None, 80.2, None, 80.2, None],
        "commongen_gpt4t, low": [27.6, 30.0, None, None, 65.9, None, 80.8, None, 81.1, None],
        "commongen_llama, all": [52.7, None, 56.5, None, 61.7, 62.5, 71.9, 71.9, 73.2, 73.1],
        "commongen_qwen, all": [50.7, 51.9, 58.9, 57.7, 69.0, 74.0, 78.9, 80.0, 80.8, 81.1],
        "commongen_qwen, high": [68.4, 67.1, None, None, 58.6, None, 67.5, None, 72.3, None],
        "commongen_qwen, low": [35.3, 38.7, None, None, 79.4, None, 88.9, None, 88.2, None],
    },
    index=[
        "self-BLEU-3",
        "self-BLEU-4",
        "VS-ngram-∞",
        "VS-ngram-0.5",
        "Distinct-4",
        "Entropy-2",
        "Chamfer",
        "self-CosSim",
        "VS-Embed-0.5",
        "VS-Embed-1",
    ],
)


def paper_table(agreement: pandas.DataFrame) -> pandas.DataFrame:
    """Compare our accuracies, ties to set 1 over all pairs, with the paper's."""
    parity = agreement[agreement["pairs"] == "all"].pivot(index="metric", columns="cell", values="parity")
    names = [name for name in agreement["metric"].unique() if name in PAPER.index]
    ours = 100 * parity.loc[names, PAPER.columns]
    printed = PAPER.loc[names].map("{:.1f}".format, na_action="ignore").fillna(NONE)
    texts = ours.map("{:.1f}".format) + " / " + printed
    return texts.reset_index()


def _read_sentences(path: Path) -> list[list[str]]:
    """Read the set of sentences of each row."""
    return [row["sentences"] for _, row in read_rows(path)]


def read_kinds(folder: Path, sets: Sets) -> pandas.DataFrame:
    """Pair the original set of each drawn concept with each poorer one, for each generator of a folder.

    Concepts whose sets differ in size are left out, since a Vendi score grows with the size of a set.
    """
    rows = []
    for generator in sorted(path.parent for path in folder.glob(f"*/{ORIGINAL}.jsonl")):
        paths = [generator / f"{kind}.jsonl" for kind in (ORIGINAL, *POORER)]
        files = {path.stem: _read_sentences(path) for path in paths if path.is_file()}
        drawn = np.random.default_rng(0).permutation(len(files[ORIGINAL]))[:CONCEPTS].tolist()
        for concept, i in enumerate(drawn):
            members = {kind: tuple(lines[i]) for kind, lines in files.items()}
            if len({len(texts) for texts in members.values()}) == 1:
                numbers = {kind: sets.setdefault(texts, len(sets)) for kind, texts in members.items()}
                original = numbers.pop(ORIGINAL)
                rows += [(generator.name, concept, ORIGINAL, kind, original, i) for kind, i in numbers.items()]
    return pandas.DataFrame(rows, columns=["generator", "concept", "label1", "label2", "first", "second"])


def originals_above(scores: Scores, kinds: pandas.DataFrame) -> pandas.DataFrame:
    """Return how often each metric ranks the original above each poorer kind of the same concept; ties count half."""
    wins = 1 - choices(scores, kinds)
    frames = []
    for kind in POORER:
        for generator, rows in kinds[kinds["label2"] == kind].groupby("generator"):
            bootstrap = Bootstrap(rows["concept"])
            frame = bootstrap.summary("share", bootstrap.means(wins.loc[rows.index]))
            frames.append(frame.assign(generator=generator, kind=LABELS[kind]).rename_axis("metric").reset_index())
    return pandas.concat(frames, ignore_index=True)


def quality_tables(originals: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Make the tables of how often the original is ranked above: with intervals, and short for docs/quality.md."""
    frame = originals.assign(column=originals["kind"] + ", " + originals["generator"])
    full = wide(frame, "metric", "column", percents(frame, "share"), "original above, %")
    chosen = frame["metric"].str.fullmatch(r"(.* × )?VS-Embed-0\.5") & ~frame["kind"].isin(["Para-1", "Para-2"])
    shares = originals["share"].map(lambda share: number(100 * share, 0))
    short = (
        frame.assign(text=shares)[chosen].groupby(["metric", "kind"], sort=False)["text"].agg(" / ".join).reset_index()
    )
    corner = f"original above, %: {' / '.join(frame['generator'].unique())}"
    return {"qualities": wide(short, "metric", "kind", short["text"].tolist(), corner), "qualities-all": full}


@styled()
def agreement_picture(agreement: pandas.DataFrame) -> str:
    """Draw the balanced accuracies on clear pairs, with their intervals, as SVG."""
    clear = agreement[agreement["pairs"] == "clear"]
    names = list(clear["metric"].unique())
    panels = list(clear.groupby("cell", sort=False))
    figure = new_figure(260 + 115 * len(panels), 60 + 16 * len(names))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    for panel, (cell, frame) in zip(axes[0], panels, strict=True):
        shares = 100 * frame.set_index("metric").loc[names, ["balanced", "balanced_low", "balanced_high"]].to_numpy()
        bars = np.nan_to_num(np.abs(shares[:, 1:] - shares[:, [0]])).T
        panel.errorbar(shares[:, 0], range(len(names)), xerr=bars, fmt="o", markersize=3, linewidth=1)
        panel.axvline(50, color="grey", linewidth=0.8)
        panel.set_title(str(cell).replace(", ", "\n"), fontsize=9)
        panel.grid(axis="x")
    axes[0][0].set_yticks(range(len(names)), list(map(shown, names)))
    axes[0][0].invert_yaxis()
    figure.supxlabel("balanced accuracy on clear pairs, %; the line is chance", fontsize=9)
    return to_svg(figure, "Balanced accuracy on clear pairs, by metric and part of the data.")


@command
def main() -> None:
    """Run the command."""
    data = data_folder(Parser(__doc__))
    sets = Sets()
    pairs, people = read_pairs(sorted((data / "diversity_pairs").glob("*.jsonl")), sets)
    kinds = read_kinds(data / "diversity_sets", sets)
    scores = score_sets(list(map(list, sets)), cache_dir=ROOT / "build" / "embeddings")
    results = evaluate(scores, pairs, people) | {"distributions": distributions(scores, kinds)}
    written = tables(results) | quality_tables(originals_above(scores, kinds))
    written["paper"] = paper_table(results["agreement"])
    written["summary"] = written["people"][written["people"].iloc[:, 0].isin(SUMMARY)]
    for name, table in written.items():
        table.to_csv(ROOT / "results" / f"{name}.csv", index=False)
    write_text(ROOT / "results" / "evidence" / "agreement.svg", agreement_picture(results["agreement"]))


if __name__ == "__main__":
    raise SystemExit(main())
