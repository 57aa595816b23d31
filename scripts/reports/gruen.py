"""How far to trust gruen's compact backbone: against CoLA, against corrupted sentences, and against people.

    python -m scripts.reports.gruen --text DATA/text --gruen DATA/gruen [--report validation.md]

Four tables: Matthews' correlation with CoLA's labels; how often a held-out clean sentence scores above its corrupted
form; Spearman's correlation with people's ratings of the output of dialogue systems, beside that of the rule "shorter
is better"; and how often focus is lost in coherent text, and with a sentence of another document in the middle.
"""

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import matthews_corrcoef

from scripts.training.gruen.corpora import documents
from scripts.training.gruen.corpus import read_cola, read_corpus
from text_metrics import load
from text_metrics.commands.meta_eval.agreement import percentile_interval
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_csv, read_json, read_part, write_text
from text_metrics.commands.shared.outputs import check_outputs
from text_metrics.commands.shared.pages import Table, markdown_table

SEED = 99
PAIRS = 200  # of each kind of corruption
WINDOWS = 500  # of three sentences, for focus
RESAMPLES = 1000
RATINGS = ("naturalness", "quality")


def scores_of(metric: Any, sentences: list[str]) -> dict[str, np.ndarray]:
    """Score sentences one by one: likelihood, acceptability and the grammaticality made of them."""
    details = metric.compute(predictions=sentences, components=["grammaticality"], details=True)["details"]
    # A text that is split into sentences has the mean of these; one without sentences has 0.
    parts = {
        name: np.array([np.mean([part[name] for part in detail["sentences"]] or [0.0]) for detail in details])
        for name in ("likelihood", "acceptability")
    }
    return {**parts, "grammaticality": np.array([detail["grammaticality"] for detail in details])}


def cola_table(metric: Any, path: Path) -> Table:
    """Matthews' correlation of acceptability above one half with the labels."""
    sentences, labels = zip(*read_cola(path), strict=True)
    correlation = matthews_corrcoef(labels, scores_of(metric, list(sentences))["acceptability"] > 0.5)
    return [["CoLA", "sentences", "MCC of acceptability > 0.5"], [path.stem, str(len(labels)), f"{correlation:.3f}"]]


def corrupted_table(metric: Any, text: Path, cola: Path) -> Table:
    """Share of pairs in which the clean sentence scores above the corrupted one."""
    corpus = read_corpus(text, cola)
    corruptor = corpus.corruptor(SEED)
    names = ("grammaticality", "acceptability", "likelihood")
    table = [["corruption", "pairs", *names]]
    for how in corruptor.kinds:
        corrupted = [(words, result.words) for words in corpus.held_out if (result := corruptor.corrupt(words, how))]
        pairs = [tuple(map(" ".join, pair)) for pair in corrupted[:PAIRS]]
        clean = scores_of(metric, [pair[0] for pair in pairs])
        corrupted_scores = scores_of(metric, [pair[1] for pair in pairs])
        shares = [(clean[name] > corrupted_scores[name]).mean() for name in names]
        table.append([how, str(len(pairs)), *(f"{share:.3f}" for share in shares)])
    return table


def read_ratings(folder: Path) -> dict[str, list[tuple[str, dict[str, float]]]]:
    """Read what people thought of what systems said: texts, each with its ratings by name."""
    bagel = [
        (row["sys_ref"], {name: _number(row[name], where) for name in RATINGS})
        for where, row in read_csv(folder / "bagel_human_ratings.csv", ("sys_ref", *RATINGS))
    ]
    path = folder / "sfhot_human_ratings.json"
    hotels = []
    for i, item in enumerate(read_part(read_json(path), str(path), list)):
        where = f"{path}, item {i}"
        ratings = {
            name: _number(read_part(item, where, object, "scores", key), where)
            for name, key in (("naturalness", "naturalness"), ("quality", "overall"))
        }
        hotels.append((read_part(item, where, str, "system_output"), ratings))
    return {"BAGEL": bagel, "SFHOTEL": hotels}


def _number(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not np.isfinite(number):
        raise ValueError(f"{where}: a rating must be a number. Got {value!r:.80}.")
    return number


def people_table(metric: Any, folder: Path) -> Table:
    """Spearman's correlation with people's ratings, with 95 % bootstrap intervals for that of gruen."""
    table = [["ratings", "texts", "gruen", "95 %", "acceptability", "likelihood", "shorter is better"]]
    rng = np.random.default_rng(SEED)
    for name, rows in read_ratings(folder).items():
        texts = [text for text, _ in rows]
        columns = scores_of(metric, texts)
        whole = np.array(metric.compute(predictions=texts)["scores"])
        shorter = -np.array([len(text.split()) for text in texts])
        for rating in RATINGS:
            given = np.array([ratings[rating] for _, ratings in rows])
            draws = rng.integers(0, len(rows), (RESAMPLES, len(rows)))
            resampled = [spearmanr(whole[draw], given[draw]).statistic for draw in draws]
            low, high = percentile_interval(np.array(resampled))
            correlations = [
                f"{spearmanr(values, given).statistic:.3f}"
                for values in (whole, columns["acceptability"], columns["likelihood"], shorter)
            ]
            correlations.insert(1, f"{low:.3f} to {high:.3f}")
            table.append([f"{name}, {rating}", str(len(rows)), *correlations])
    return table


def focus_table(metric: Any, text: Path) -> Table:
    """Share of windows of three sentences that lose focus: as they are, and with a sentence of another document."""
    pool = [document for document in documents(text) if len(document) > 20]
    draw = random.Random(SEED)
    whole: list[str] = []
    inserted: list[str] = []
    for _ in range(100 * WINDOWS if len(pool) > 1 else 0):
        if len(whole) == WINDOWS:
            break
        document, other = draw.sample(pool, 2)
        at = draw.randrange(len(document) - 2)
        first, middle, last = document[at : at + 3]
        foreign = draw.choice(other)
        if min(map(len, (first, middle, last, foreign))) >= 6:
            whole.append(" ".join([*first, *middle, *last]))
            inserted.append(" ".join([*first, *foreign, *last]))
    if len(whole) < WINDOWS:
        raise ValueError(f"{text} has too few documents of more than 20 sentences of six words or more.")
    table = [["three sentences", "windows", "share that loses focus"]]
    for name, texts in (("as they are", whole), ("with a sentence of another document in the middle", inserted)):
        details = metric.compute(predictions=texts, components=["focus"], details=True)["details"]
        table.append([name, str(len(texts)), f"{np.mean([detail['focus'] < 0 for detail in details]):.3f}"])
    return table


@command
def main() -> None:
    """Print the tables, and write them to a file too."""
    parser = make_parser(__doc__)
    parser.add_argument("--text", type=Path, required=True, help="as for scripts/training/train_gruen_compact.py")
    parser.add_argument("--gruen", type=Path, required=True, help="a folder with CoLA and the ratings")
    parser.add_argument("--report", type=Path)
    arguments = parser.parse_args()
    check_outputs([arguments.text, arguments.gruen], [arguments.report])
    metric = load("gruen")
    signature = metric.compute(predictions=["It works."])["signature"]
    with warnings.catch_warnings():
        # Some outputs of the systems are not sentences.
        warnings.simplefilter("ignore")
        tables = [
            cola_table(metric, arguments.gruen / "cola_in_domain_dev.tsv"),
            corrupted_table(metric, arguments.text, arguments.gruen),
            people_table(metric, arguments.gruen),
            focus_table(metric, arguments.text),
        ]
    text = "\n\n".join([f"`{signature}`", *("\n".join(markdown_table(table)) for table in tables)]) + "\n"
    print(text)
    if arguments.report:
        write_text(arguments.report, text)


if __name__ == "__main__":
    raise SystemExit(main())
