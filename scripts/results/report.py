"""Write docs/report/index.html, the example of text-metrics report, from the released data.

    python -m scripts.results.report          in the root of the repository

It compares the released original sets of GPT-4, Llama 3 and Qwen 2 on 1 497 concepts, and as a fourth system the sets
of GPT-4 in which two of four sentences are replaced by paraphrases of a third (Para-3). It needs METRICS_TEST_DATA.
The released texts are not part of this repository: the report leaves them out, and names prompts by their place.
"""

import shutil
from pathlib import Path

from scripts import ROOT
from scripts.arguments import data_folder
from text_metrics.commands.report import main as report
from text_metrics.console import Parser, command
from text_metrics.files.rows import read_rows
from text_metrics.files.storage import write_jsonl
from text_metrics.meta_eval.pairs import read_texts, read_topic

SYSTEMS = {
    "GPT-4": "gpt/original.jsonl",
    "Llama 3": "llama3/original.jsonl",
    "Qwen 2": "qwen2/original.jsonl",
    "GPT-4, paraphrased": "gpt/para_c.jsonl",
}


def write_systems(data: Path, folder: Path) -> list[str]:
    """Give the concepts numbers, write a file for each system, and return the words that name them."""
    numbers: dict[str, int] = {}
    words = []
    for name, file in SYSTEMS.items():
        rows = []
        for where, row in read_rows(data / "diversity_sets" / file):
            number = numbers.setdefault(read_topic(row), len(numbers) + 1)
            rows.append({"prompt": f"concepts {number}", "texts": read_texts(row, "sentences", where)})
        path = folder / f"{name}.jsonl"
        write_jsonl(path, rows)
        words.append(f"{name}={path.relative_to(ROOT)}")
    return words


@command
def main() -> int:
    """Run the command."""
    parser = Parser(__doc__)
    parser.parse_args()
    folder = ROOT / "build" / "systems"
    folder.mkdir(parents=True, exist_ok=True)
    words = [*write_systems(data_folder(parser), folder), "--text-key", "texts", "--id-key", "prompt", "--no-texts"]
    out = ROOT / "build" / "report"
    code = report([*words, "--out", str(out), "--cache-dir", str(ROOT / "build" / "embeddings")])
    shutil.copy(out / "index.html", ROOT / "docs" / "report")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
