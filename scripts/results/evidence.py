"""Write the meta-evaluation on the released data to results/, beside what the paper prints.

    python -m scripts.results.evidence            write results/*.csv and results/evidence/agreement.svg
    python -m scripts.results.evidence --check    write nothing; exit with 1 if a table would differ

The data are those under $METRICS_TEST_DATA.
"""

from pathlib import Path
from typing import Any

import pandas

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics.commands.meta_eval.main import evaluate_all, parse_arguments
from text_metrics.commands.meta_eval.picture import agreement_picture
from text_metrics.commands.meta_eval.tables import tables
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import write_text

# Accuracies that the paper prints, in percent. It names the encoder, SimCSE on RoBERTa-large, but not the checkpoint.
PAPER_METRICS = (
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
)
PAPER = {
    "commongen_gpt4t, all": (48.4, 49.1, 47.5, 49.2, 64.0, 62.9, 80.6, 76.9, 80.7, 79.3),
    "commongen_gpt4t, high": (73.5, 72.0, None, None, 61.7, None, 80.2, None, 80.2, None),
    "commongen_gpt4t, low": (27.6, 30.0, None, None, 65.9, None, 80.8, None, 81.1, None),
    "commongen_llama, all": (52.7, None, 56.5, None, 61.7, 62.5, 71.9, 71.9, 73.2, 73.1),
    "commongen_qwen, all": (50.7, 51.9, 58.9, 57.7, 69.0, 74.0, 78.9, 80.0, 80.8, 81.1),
    "commongen_qwen, high": (68.4, 67.1, None, None, 58.6, None, 67.5, None, 72.3, None),
    "commongen_qwen, low": (35.3, 38.7, None, None, 79.4, None, 88.9, None, 88.2, None),
}


def paper_table(agreement: pandas.DataFrame) -> pandas.DataFrame:
    """Set our accuracies, ties to set 1 over all pairs, beside those that the paper prints."""
    parity = agreement[agreement["pairs"] == "all"].pivot(index="metric", columns="cell", values="parity")
    rows = []
    for name in [name for name in agreement["metric"].unique() if name in PAPER_METRICS]:
        place = PAPER_METRICS.index(name)
        cells = {
            cell: f"{100 * parity.loc[name, cell]:.1f} / {printed[place] or '–'}" for cell, printed in PAPER.items()
        }
        rows.append({"metric": name, **cells})
    return pandas.DataFrame(rows)


# The rows of README's table.
SUMMARY = ("a person, with the other people", "self-BLEU-3", "Chamfer", "VS-Embed-0.5", "rule: set 1")


def evaluate(data: Path) -> dict[str, Any]:
    """Evaluate all metrics on the released data."""
    words = [*sorted((data / "diversity_pairs").glob("*.jsonl")), "--sets", data / "diversity_sets"]
    words += ["--cache-dir", ROOT / "build" / "embeddings"]
    return evaluate_all(parse_arguments(list(map(str, words))))


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a table would differ")
    check = parser.parse_args().check
    report = evaluate(data_folder(parser))
    differing = []
    written = tables(report)
    written |= {
        "paper": paper_table(report["agreement"]),
        "summary": written["people"][written["people"].iloc[:, 0].isin(SUMMARY)],
    }
    for name, table in written.items():
        path, text = ROOT / "results" / f"{name}.csv", table.to_csv(index=False)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            differing.append(path.name)
            if not check:
                write_text(path, text)
    print(f"{len(differing)} tables differ: {', '.join(differing)}" if differing else "No table differs.")
    if not check:
        write_text(ROOT / "results" / "evidence" / "agreement.svg", agreement_picture(report["agreement"]))
    return int(bool(check and differing))


if __name__ == "__main__":
    raise SystemExit(main())
