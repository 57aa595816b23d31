"""Write EVIDENCE.md: the meta-evaluation on the released data, beside what the paper prints and what was trained on.

    python -m scripts.reports.evidence            write EVIDENCE.md, docs/evidence/ and the tables of README and cards
    python -m scripts.reports.evidence --check    write nothing; exit with 1 if EVIDENCE.md would differ

The data are those under $METRICS_TEST_DATA. `RELEASED` holds what is known of them, which `text-metrics meta-eval` must
not say of the files of a user.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from scripts import ROOT
from scripts.arguments import data_folder
from scripts.tooling import fill_evidence
from text_metrics.commands.meta_eval.main import parse_arguments, write_report
from text_metrics.commands.meta_eval.report import Claims
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_text, write_text
from text_metrics.commands.shared.pages import Section, Table

# Accuracies that the paper prints, in percent. It names the encoder, SimCSE on RoBERTa-large, but not the checkpoint.
_PAPER_CELLS = {
    "commongen_gpt4t, all": (48.4, 49.1, 47.5, 49.2, 64.0, 62.9, 80.6, 76.9, 80.7, 79.3),
    "commongen_gpt4t, high": (73.5, 72.0, None, None, 61.7, None, 80.2, None, 80.2, None),
    "commongen_gpt4t, low": (27.6, 30.0, None, None, 65.9, None, 80.8, None, 81.1, None),
    "commongen_qwen, all": (50.7, 51.9, 58.9, 57.7, 69.0, 74.0, 78.9, 80.0, 80.8, 81.1),
    "commongen_qwen, high": (68.4, 67.1, None, None, 58.6, None, 67.5, None, 72.3, None),
    "commongen_qwen, low": (35.3, 38.7, None, None, 79.4, None, 88.9, None, 88.2, None),
    "commongen_llama, all": (52.7, None, 56.5, None, 61.7, 62.5, 71.9, 71.9, 73.2, 73.1),
}
_PAPER_METRICS = (
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
    metric: {cell: printed[i] for cell, printed in _PAPER_CELLS.items() if printed[i] is not None}
    for i, metric in enumerate(_PAPER_METRICS)
}


def paper_table(report: dict[str, Any]) -> Table | None:
    """Set our accuracies beside those that the paper prints, where the data are its own."""
    names = [cell["name"] for cell in report["cells"] if cell["name"] in _PAPER_CELLS]
    if not names:
        return None
    rows = [["metric", *names]]
    for metric in report["metrics"]:
        printed = PAPER.get(metric["name"])
        if printed:
            cells = [f"{100 * metric['accuracy_by_parity'][name]:.1f} / {printed.get(name, '–')}" for name in names]
            rows.append([metric["name"], *cells])
    return rows


def _sections(report: dict[str, Any]) -> list[Section]:
    table = paper_table(report)
    if table is None:
        return []
    text = (
        "Accuracies here / as printed in arXiv 2506.00514, ties to set 1, over all pairs: the paper's text leaves out "
        "pairs less than 0.5 apart, but its numbers are those of the files with them. Our encoder is "
        f"{report['settings']['model']}, the paper's is SimCSE on RoBERTa-large."
    )
    return [Section("Comparison with the paper", text, [("", table)])]


RELEASED = Claims(
    source="Data: arXiv 2506.00514. Written by `make meta-eval`.",
    prefix="commongen_",
    kinds=(
        "Nonsensical sentences are fluent and absurd; Para-1 to Para-3 replace one, two and two of four sentences with "
        "paraphrases of others, so that they are well written and less diverse."
    ),
    raters="No rating uses more than the text.",
    training=(
        "Two of the poorer kinds below, shuffled nouns and shuffled words, are corruptions of its training; fluent "
        "nonsense is not. No text and no verdict of these files was trained on."
    ),
    verdicts=(
        "Position matters: in most files the judge calls set 1 the more diverse more often than not, so that the rule "
        '"set 1" has a high accuracy. No setting of a metric was chosen by these verdicts.'
    ),
    kappa="The paper reports that form and content disagree on sets of low quality.",
    sections=_sections,
    mark=fill_evidence.wrap,
)


def parse(folder: Path, data: Path) -> argparse.Namespace:
    """Return the arguments of `meta-eval` for the released data, with all that it writes in a folder."""
    words = [*sorted((data / "diversity_pairs").glob("*.jsonl")), "--sets", data / "diversity_sets"]
    words += ["--markdown", folder / "EVIDENCE.md", "--pictures", folder / "docs" / "evidence"]
    words += ["--json", folder / "build" / "meta_eval.json", "--html", folder / "build" / "meta_eval.html"]
    return parse_arguments([*map(str, words), "--cache", str(ROOT / "build" / "embeddings")])


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if EVIDENCE.md would differ")
    check = parser.parse_args().check
    data = data_folder(parser)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if check else ROOT
        code = write_report(parse(folder, data), RELEASED)
        page = folder / "EVIDENCE.md"
        text = f"{read_text(page)}\n{read_text(ROOT / 'docs' / 'evidence' / 'sense.md')}"
        if check:
            differs = text != read_text(ROOT / "EVIDENCE.md")
            print("EVIDENCE.md differs." if differs else "EVIDENCE.md is what this computes.", file=sys.stderr)
            return code or int(differs)
        write_text(page, text)
    fill_evidence.write(ROOT)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
