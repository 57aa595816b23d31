"""The committed examples of text-metrics report, from the released data.

    python -m scripts.reports.systems generators    three generators, and paraphrases of one, on 1 497 concepts
    python -m scripts.reports.systems people        eight models and people on 46 questions

`generators` compares the released original sets of GPT-4, Llama 3 and Qwen 2, and as a fourth system the sets of GPT-4
in which two of four sentences are replaced by paraphrases of a third (Para-3). `people` compares the answers of eight
models to the test set of Commonsense Frame Completion with those of people. Both need METRICS_TEST_DATA. Embeddings
are kept in build/embeddings. The released texts are not part of this repository: the reports leave them out, and name
prompts by their place in the data.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from scripts.arguments import data_folder
from text_metrics.commands.probe.files import clean_counts, read_counts, read_questions
from text_metrics.commands.report.main import main as report
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects, read_texts, read_topic, write_jsonl

GENERATORS = {
    "GPT-4": "gpt/original.jsonl",
    "Llama 3": "llama3/original.jsonl",
    "Qwen 2": "qwen2/original.jsonl",
    "GPT-4, paraphrased": "gpt/para_c.jsonl",
}
MODELS = {
    "GPT-2 large": "modelgpt2-large_sample200_temp1.0.jsonl",
    "GPT-2 XL": "modelgpt2-xl_sample100_temp1.0.jsonl",
    "GPT-2 large, one shot": "oneshot_modelgpt2-large_sample200_temp0.9.jsonl",
    "GPT-2 XL, one shot": "oneshot_modelgpt2-xl_sample100_temp1.0.jsonl",
    "ProtoQA-tuned": "modelprotoqa_sample200_temp1.0.jsonl",
    "ProtoQA-tuned, one shot": "oneshot_modelprotoqa_sample200_temp1.0.jsonl",
    "fine-tuned": "modelft_grad8lr5e-06sample200_temp1.0.jsonl",
    "fine-tuned, one shot": "oneshot_modelft_grad32lr1e-06sample200_temp1.0.jsonl",
}


def generator_words(data: Path, folder: Path) -> list[str]:
    """Give the concepts of the generators' sets numbers, and return the words of the command."""
    numbers: dict[str, int] = {}
    files = []
    for name, file in GENERATORS.items():
        path = folder / f"{name}.jsonl"
        rows = []
        for where, row in read_objects(data / "diversity_sets" / file):
            number = numbers.setdefault(read_topic(row), len(numbers) + 1)
            rows.append({"prompt": f"concepts {number}", "texts": read_texts(row, "sentences", where)})
        write_jsonl(path, rows)
        files.append(f"{name}={path}")
    return [*files, "--text-key", "texts", "--id-key", "prompt"]


def write_answers(path: Path, counts: Mapping[str, Counter[str]], questions: Mapping[str, str]) -> Path:
    """Write the cleaned answers to each question, each as often as it was given; returns the path."""
    rows = (
        {"question": questions[name], "answers": sorted(answers.elements())}
        for name, answers in clean_counts(counts).items()
        if answers
    )
    write_jsonl(path, rows)
    return path


def people_words(data: Path, folder: Path) -> list[str]:
    """Convert the answers of people and of the models, and return the words of the command."""
    cfc = data / "probeval" / "cfc_test"
    questions = {question.id: f"question {i}" for i, question in enumerate(read_questions(cfc / "targets.jsonl"), 1)}
    files = [
        f"{name}={write_answers(folder / f'{name}.jsonl', read_counts(cfc / 'models' / f'0715{file}'), questions)}"
        for name, file in MODELS.items()
    ]
    people = write_answers(folder / "people.jsonl", read_counts(cfc / "human_predictions.json"), questions)
    return [*files, "--text-key", "answers", "--id-key", "question", "--people", str(people), "--quality", "none"]


@command
def main() -> int:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("example", choices=("generators", "people"))
    example = parser.parse_args().example
    data, folder = data_folder(parser), Path("build/systems")
    folder.mkdir(parents=True, exist_ok=True)
    words = (generator_words if example == "generators" else people_words)(data, folder)
    return report([*words, "--no-texts", "--out", f"docs/report/{example}", "--cache-dir", "build/embeddings"])


if __name__ == "__main__":
    raise SystemExit(main())
