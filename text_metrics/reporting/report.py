"""A report from Python: its arguments, of lists of sets or of a table."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from text_metrics.core_api import parse_choice, parse_flag
from text_metrics.reporting.build import Choices, build
from text_metrics.reporting.frames import column_names, read_frame
from text_metrics.reporting.inputs import SETTINGS, read_sets
from text_metrics.reporting.results import Report
from text_metrics.reporting.scores import GRUEN, NO_MEANINGS
from text_metrics.texts import parse_kinds

if TYPE_CHECKING:
    import pandas as pd


def report(
    systems: Any,
    prompts: Sequence[str] | None = None,
    quality: Mapping[str, Any] | str | None = GRUEN,
    out: str | Path | None = None,
    *,
    people: Sequence[Sequence[str]] | None = None,
    contexts: Sequence[str | None] | None = None,
    classes: Mapping[str, Any] | None = None,
    same_length: bool = False,
    strip: Sequence[str] | str | None = None,
    confidence: float = 0.95,
    cache_dir: str | Path | None = None,
    texts: bool = True,
    progress: bool = False,
    order: bool = False,
    difference: float | None = None,
    text: str | None = None,
    id: str | None = None,
    system: str | None = None,
    **settings: Any,
) -> Report:
    """Compare systems by their texts for the same prompts, as `text-metrics report` does with files.

    Parameters
    ----------
    systems : for each system by name, p sets of texts, one for each prompt; or a pandas DataFrame or a
        `datasets.Dataset` with the columns `text`, `id` and `system`, whose rows hold a text or a list of texts
    prompts : p names of the prompts; their numbers by default
    quality : "gruen"; ratings of each system by name, shaped like its sets; or None
    out : folder to save the report in
    people : texts of people for each prompt
    contexts : what the texts of each prompt answer, which `compute` then takes out of them
    classes : for each system by name, the class of each text among those of its set, a string or an integer, shaped
        like its sets, as a judge gave it; meanings are then these, and not those of the encoder
    same_length : whether to score also the texts cut to the words of the shortest of their prompt
    strip : what is removed from texts because it is not the answer: "reasoning", "special" (tokens and chat markers),
        "prompt" (the context that a text begins with), as a list or with commas between them
    confidence : level of the intervals; a test is significant if p is below 1 minus the level
    cache_dir : folder in which embeddings are kept after the report
    texts : whether the report holds texts
    progress : whether to show a progress bar
    order : whether systems are shown in the order given, or by the number in their names if they differ by it only,
        such as "T=0.3" and "T=1.0"; a line then joins their means
    difference : answer how many prompts are needed to find a system first that leads by this mean Vendi score
    text, id, system : columns of a table: the texts, the prompt of a row, and its system, without which all rows are
        of one. `quality`, `contexts` and `classes` are then names of columns, and `people` is a table
    **settings : `model`, `long_texts`, `batch_size` and `device` of the encoder, `same` of semantic_entropy (None
        leaves out the meanings), and `tokenizer` of self_bleu

    Returns
    -------
    Report

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid, or no prompt has two texts of every system.
    """
    for name in settings:
        parse_choice(name, "a setting", SETTINGS)
    if "same" in settings and settings["same"] is None:
        settings["same"] = NO_MEANINGS
    kinds = parse_kinds(strip)
    by_gruen = isinstance(quality, str) and quality == GRUEN
    if (columns := column_names(systems)) is not None:
        if text is None or id is None or prompts is not None:
            raise ValueError(f"a table needs text and id, and no prompts. Its columns are {columns}.")
        keys: dict[str, Any] = {"text": text, "id": id, "system": system, "context": contexts, "classes": classes}
        keys["quality"] = None if by_gruen else quality
        for name, key in keys.items():
            if key is not None and not isinstance(key, str):
                raise TypeError(f"{name} must be a column of the table. Got {type(key).__name__}.")
        inputs = read_frame(systems, people, kinds, **keys)
    else:
        if (text, id, system) != (None, None, None):
            raise TypeError(f"text, id and system are columns of a table. Got {type(systems).__name__} as systems.")
        if quality is not None and not isinstance(quality, Mapping):
            parse_choice(quality, "quality", (GRUEN,))
        inputs = read_sets(systems, prompts, quality, people, contexts, classes, kinds)
    settings |= {"cache_dir": cache_dir, "progress": progress}
    choices = Choices(
        by_gruen=by_gruen,
        level=confidence,
        shows_texts=texts,
        same_length=parse_flag(same_length, "same_length"),
        keeps_order=parse_flag(order, "order"),
        difference=difference,
    )
    made = build(inputs, choices, settings)
    if out is not None:
        made.save(out)
    return made


def describe(sets: Sequence[Sequence[str]], quality: Any = GRUEN, **options: Any) -> "pd.DataFrame":
    """Return all scores of one system: a row for each metric, with its interval and its signature.

    Parameters
    ----------
    sets : p sets of texts, one for each prompt
    quality : "gruen"; a rating of each text, shaped like `sets`; or None
    **options : as of `report`; `classes` is shaped like `sets`

    Returns
    -------
    DataFrame by the names of the metrics, with the columns `title`, `score`, `low`, `high`, `better` ("higher",
    "lower" or ""), `is_reliable` (whether it can measure most texts) and `signature`

    Raises
    ------
    TypeError, ValueError
        As `report`.
    """
    import pandas as pd

    rated = quality if quality is None or isinstance(quality, str) else {"sets": quality}
    if options.get("classes") is not None:
        options["classes"] = {"sets": options["classes"]}
    rows = []
    for metric in report({"sets": sets}, quality=rated, **options).metrics:
        (value,) = metric.values
        numbers = (value.mean, *(value.interval or (None, None)))
        rows.append((metric.name, metric.title, *numbers, metric.better or "", value.is_reliable, metric.signature))
    names = ("metric", "title", "score", "low", "high", "better", "is_reliable", "signature")
    return pd.DataFrame(rows, columns=names).set_index("metric")
