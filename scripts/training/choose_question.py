"""Choose the question of `text-metrics rate-quality --ask`, on pairs of our own sentences.

    python -m scripts.training.choose_question --model model.gguf

Both sentences of a pair in `sense_pairs.jsonl` have the same number of words, and the nonsense is grammatical. Printed
are the AUC of each question, and of the rule that the shorter text is the better one. No released text is read.
"""

import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from text_metrics.commands.rate_quality.asking import AskedModel, Question
from text_metrics.commands.shared.causal import DTYPES, load_causal
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_objects

PAIRS = Path(__file__).with_name("sense_pairs.jsonl")
EVENT = "Could this happen in the real world, and does it make sense?"
YES_NO = (f"{EVENT} Answer Yes or No.", {"Yes": 1.0, "No": 0.0})
SCALE = (
    f"{EVENT} Answer with a number from 1 (absurd) to 5 (ordinary).",
    {"1": 0.0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1.0},
)
EXAMPLES = (
    ("The mayor opened the new swimming pool on Friday.", "Yes", "5"),
    ("The swimming pool opened its mouth and sang to the mayor.", "No", "1"),
    ("A bird dreamed the postman into a jar of green arithmetic.", "No", "1"),
    ("He hung his wet socks over the chair to dry.", "Yes", "5"),
    ("The mountain packed a suitcase and moved to the bakery.", "No", "1"),
    ("Nobody noticed that the soup had gone cold.", "Yes", "5"),
)
CANDIDATES = {
    "yes or no": Question(*YES_NO),
    "yes or no, examples": Question(*YES_NO, tuple((text, answer) for text, answer, _ in EXAMPLES)),
    "scale": Question(*SCALE),
    "scale, examples": Question(*SCALE, tuple((text, answer) for text, _, answer in EXAMPLES)),
}


def read_own() -> tuple[list[str], np.ndarray]:
    """Return our own sentences, and whether each makes sense."""
    pairs = [record for _, record in read_objects(PAIRS)]
    return [pair[side] for side in ("sensible", "nonsense") for pair in pairs], np.repeat([1, 0], len(pairs))


@command
def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", required=True, help="instruct model: a folder, a GGUF file, an id of the Hub")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="of the model")
    arguments = parser.parse_args()
    texts, labels = read_own()
    print(f"rule, shorter text: {roc_auc_score(labels, [-len(text.split()) for text in texts]):.3f}")
    model = AskedModel(load_causal(arguments.model, arguments.dtype), CANDIDATES["yes or no"])
    for name, question in CANDIDATES.items():
        model.ask(question)
        start = time.perf_counter()
        area = roc_auc_score(labels, model.rate(texts))
        print(f"{name}: {area:.3f}; {len(texts) / (time.perf_counter() - start):.2f} texts a second", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
