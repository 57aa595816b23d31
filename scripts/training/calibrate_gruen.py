"""How often gruen takes points off prose that people wrote, and how often it finds faults inserted into it.

    METRICS_TEST_DATA=/path/to/data python -m scripts.training.calibrate_gruen [--card metrics/gruen/README.md]

Reads brown.zip, abc.zip, state_union.zip and movie_reviews.zip in data/text of that folder. Documents are split into
two parts: thresholds of redundancy and focus are chosen by the first, and the tables report on the second. With
--choose, the same is shown of the first part, with the rates at other thresholds. Corpora have equal weights.
"""

import itertools
from pathlib import Path

from scripts.arguments import data_folder
from scripts.training.gruen_calibration.corpora import CORPORA, SIZES, Part, read_parts
from scripts.training.gruen_calibration.rates import HUMAN, Embeddings, Row, focus_rows, redundancy_rows
from text_metrics.commands.shared.command import command, make_parser
from text_metrics.commands.shared.files import read_text, write_text
from text_metrics.commands.shared.outputs import check_outputs, module_files
from text_metrics.commands.shared.pages import Table, markdown_table
from text_metrics.metrics._core.core_encoder import EncoderSettings
from text_metrics.metrics._core.core_models import DEFAULT_MODEL
from text_metrics.metrics.gruen.gruen_focus import FOCUS_THRESHOLD
from text_metrics.metrics.gruen.gruen_repeats import REPEAT_RULE

BEGIN, END = "<!-- scripts/training/calibrate_gruen.py -->", "<!-- end of scripts/training/calibrate_gruen.py -->"
# What is tried of the thresholds of redundancy, at the sizes that decide.
GRID = {"clause": (7, 8, 9), "passage": (9, 10, 11), "in_order": (0.35, 0.4, 0.45)}
GRID_SIZES = (20, 40)
LONGEST = max(SIZES)
# From each half of a corpus: runs of 40 sentences, and texts of each size, at most.
RUNS, TEXTS = 150, 200
# Times as many of both for redundancy, which needs no model.
MORE = 3
PASSAGES = (8, 10, 12, 14, 16, 18)
# The required rates by size: at most for texts as people wrote them, at least for faults.
_FIVE_TO_TWENTY = (5, 10, 20)
REQUIRED: dict[tuple[str, str], dict[int, float]] = {
    ("non-redundancy", HUMAN): dict.fromkeys(SIZES, 0.05),
    ("non-redundancy", "repeated word for word"): dict.fromkeys(SIZES, 0.9),
    ("non-redundancy", "repeated, one clause changed"): dict.fromkeys(SIZES, 0.9),
    ("non-redundancy", "opening clause repeated"): dict.fromkeys(SIZES, 0.8),
    ("non-redundancy", "loop of two sentences"): dict.fromkeys(SIZES, 0.98),
    ("focus", HUMAN): dict.fromkeys(SIZES, 0.1),
    ("focus", "sentence from another document"): dict(zip(_FIVE_TO_TWENTY, (0.75, 0.65, 0.5), strict=True)),
    ("focus", "second half of another document"): dict.fromkeys(SIZES, 0.8),
}
FALSE_ALARMS = (0.025, 0.05, 0.1, 0.2, 0.3)


def report(parts: list[Part], more: list[Part], settings: EncoderSettings) -> list[Table]:
    """Return the tables of one half of the documents; redundancy, which needs no model, is judged on more texts."""
    components = {
        "non-redundancy": redundancy_rows(more),
        "focus": focus_rows(parts, Embeddings(parts, settings)),
    }
    return [
        *(rate_table(name, rows) for name, rows in components.items()),
        passage_table(more),
        corpus_table(components),
        curve_table(components["focus"]),
        threshold_table(components["focus"]),
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def rate_table(component: str, rows: list[Row]) -> Table:
    """Share of texts that lose a component, by size; rates that miss a requirement are marked."""
    table = [[f"lose {component}", *(f"{size} sentences" for size in SIZES), "target"]]
    for row in rows:
        required = REQUIRED.get((component, row.name), {})
        cells = []
        for size in SIZES:
            share = row.rate(size)
            limit = required.get(size)
            # A rate is compared as it is printed.
            shown = None if share is None else round(share, 2)
            misses = shown is not None and limit is not None and (shown > limit if row.name == HUMAN else shown < limit)
            cells.append(_percent(share) + (" (missed)" if misses else ""))
        table.append([row.name, *cells, _limits(required, row.name == HUMAN)])
    return table


def _limits(required: dict[int, float], is_most: bool) -> str:
    if not required:
        return ""
    shares = list(dict.fromkeys(required.values()))
    return ("at most " if is_most else "") + " / ".join(f"{100 * share:.0f}" for share in shares) + " %"


def corpus_table(components: dict[str, list[Row]]) -> Table:
    """Share of texts as people wrote them that lose points, by corpus, and the mean loss of non-redundancy."""
    table = [["as people wrote them", "sentences", "lose non-redundancy", "mean", "lose focus"]]
    redundancy, focus = (rows[0].values for rows in components.values())
    for corpus in CORPORA:
        for size in SIZES:
            if corpus in redundancy.get(size, {}):
                flags, margins = redundancy[size][corpus], focus[size][corpus]
                lost, astray = (_percent(float((values < 0).mean())) for values in (flags, margins))
                mean = f"{round(flags.mean(), 2) + 0.0:.2f}".replace("-", "−")
                table.append([corpus, str(size), lost, mean, astray])
    return table


def curve_table(rows: list[Row]) -> Table:
    """Share of faults that focus finds, by the share of human texts that lose it: at other thresholds."""
    human, *faults = rows
    table = [["focus", "sentences", *(f"at {100 * share:g} %" for share in FALSE_ALARMS)]]
    for row in faults:
        for size in SIZES:
            if size in row.values:
                rates = [row.rate(size, human.quantile(size, share)) for share in FALSE_ALARMS]
                table.append([row.name, str(size), *map(_percent, rates)])
    return table


def threshold_table(rows: list[Row]) -> Table:
    """`focus_threshold` that takes the focus of a tenth of the human texts of a size: what the default is chosen by."""
    needed = [FOCUS_THRESHOLD + rows[0].quantile(size, 0.1) for size in SIZES]
    return [["sentences", *map(str, SIZES)], ["focus_threshold", *(f"{value:.3f}" for value in needed)]]


def passage_table(parts: list[Part]) -> Table:
    """Return the rates of redundancy at 40 sentences that other weights of a passage give."""
    table: Table = []
    for weight in PASSAGES:
        rows = redundancy_rows(parts, REPEAT_RULE._replace(passage=weight, growth=0), (LONGEST,))
        table = table or [[f"weight of a passage, {LONGEST} sentences", *(row.name for row in rows)]]
        table.append([str(weight), *(f"{100 * (row.rate(LONGEST) or 0):.1f} %" for row in rows)])
    return table


def try_rules(parts: list[Part]) -> Table:
    """Return a table of the rates of redundancy that other thresholds give."""
    table: Table = []
    for values in itertools.product(*GRID.values()):
        rule = REPEAT_RULE._replace(**dict(zip(GRID, values, strict=True)))
        rows = redundancy_rows(parts, rule, GRID_SIZES)
        table = table or [[*GRID, *(f"{row.name}, {size}" for row in rows for size in GRID_SIZES)]]
        rates = (f"{100 * (row.rate(size) or 0):.1f}" for row in rows for size in GRID_SIZES)
        table.append([*map(str, values), *rates])
    return table


@command
def main() -> None:
    """Print the tables, and put those of the second part into the card."""
    parser = make_parser(__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a sentence-transformers model")
    parser.add_argument("--choose", action="store_true", help="show the part to choose by, and other thresholds")
    parser.add_argument("--card", type=Path, help="a file that gets the tables between its markers")
    arguments = parser.parse_args()
    folder = data_folder(parser) / "text"
    check_outputs([folder, *module_files(arguments.model)], [arguments.card])
    card = read_text(arguments.card) if arguments.card else BEGIN + END
    if card.count(BEGIN) != 1 or card.count(END) != 1 or card.index(BEGIN) > card.index(END):
        raise ValueError(f"{arguments.card} must hold {BEGIN} and {END}, once each.")
    half = 0 if arguments.choose else 1
    parts = read_parts(folder, RUNS, TEXTS)[half]
    more = read_parts(folder, MORE * RUNS, MORE * TEXTS)[half]
    page = report(parts, more, EncoderSettings(arguments.model))
    if arguments.choose:
        page.append(try_rules(more))
    text = "\n\n".join("\n".join(markdown_table(table)) for table in page)
    print(text)
    if arguments.card and not arguments.choose:
        before, rest = card.split(BEGIN)
        write_text(arguments.card, f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    raise SystemExit(main())
