"""Parts that the demos over sets of texts share: input, examples, names of sets, figures and tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from . import panels, plots
from .inputs import Limits, Row, blocks_of
from .page import Box, Drawn, Example

LIMITS = Limits()
SAMPLE = Path(__file__).with_name("sample.csv")
BOX = Box(
    "Your texts",
    "One text a line. A blank line starts a second set.",
    "A man walks his dog in the park.\nIn the park, a man is walking his dog.\n\nThe couple take a train to the sea.",
)
STEPS = (
    "Write or paste texts, one a line, or upload a file. Or click an example.",
    "Leave a blank line between two sets to compare them.",
    "Press Score.",
)
NO_QUALITY = "The score counts differences, not sense: shuffled words or nonsense can score higher than good texts."
ADDS = "The score of the set less its score without the text."
# A figure of more texts is slow and illegible.
MOST_DRAWN = 60

# Sentences of ours for the concepts walk, dog, take, park and couple of the CommonGen task.
_DIFFERENT = """The couple walk in the park and take photos of a dog.
The couple walk in the park when a thief runs up to take their dog.
The couple take a taxi to the park because their old dog cannot walk.
The couple take a vote to keep every dog off the walk in the park."""
_PARAPHRASES = """The couple take their dog for a walk in the park.
A couple is taking the dog to walk at a park.
At the park, two partners walk a dog they have taken along.
Their dog was taken on a park walk by this couple."""
_SHUFFLED = """park take the couple walk in dog the of photos a and.
thief the dog in walk couple park when a their take up to runs.
walk taxi dog the cannot couple to old park take their a because.
dog vote every the in walk keep take off a couple park to the."""
_WAYS_TO_WAKE_UP = """Set two alarms and put the second one across the room.
Go to bed an hour earlier than you think you need to.
Ask a friend to call you at six and not to take no for an answer.
Leave the curtains open so that the sun falls on your face.
Use an alarm that is out of reach, so that you must stand up.
Have coffee ready on a timer: the smell gets you out of bed."""
EXAMPLES = (
    Example("Four stories, or one told four ways?", (f"{_DIFFERENT}\n\n{_PARAPHRASES}",)),
    Example("Stories or shuffled words?", (f"{_DIFFERENT}\n\n{_SHUFFLED}",)),
    Example("Advice on waking up", (_WAYS_TO_WAKE_UP,)),
)


class Sets(NamedTuple):
    """Sets of texts with their names; "" is the name of a set that is alone."""

    texts: list[list[str]]
    names: list[str]

    def figure_name(self, i: int) -> str:
        """Return the name of a set in a figure, which is never empty."""
        return self.names[i] or "These texts"

    def text_name(self, i: int, j: int) -> str:
        """Return the label of a text in a figure: set and text, such as "2.14"."""
        return f"{i + 1}.{j + 1}" if len(self.texts) > 1 else f"{j + 1}"

    def choices(self) -> list[str]:
        """Name the sets for a list, each with the beginning of its first text."""
        return [f"{name}: {panels.shorten(texts[0], 40)}" for name, texts in zip(self.names, self.texts, strict=True)]


def rows_of(box: str) -> list[Row]:
    """Return a row for each line of a box; a blank line starts a set."""
    return [Row(text, str(i)) for i, texts in enumerate(blocks_of(box), 1) for text in texts]


def group(rows: list[Row]) -> Sets:
    """Group rows into sets, in order of first appearance."""
    members: dict[str, list[str]] = {}
    for row in rows:
        members.setdefault(row.set, []).append(row.text)
    names = [""]
    if len(members) > 1:
        given = enumerate(members, 1)
        names = [
            f"Set {i}" + (f" ({panels.shorten(name, 30)})" if name not in ("", str(i)) else "") for i, name in given
        ]
    return Sets(list(members.values()), names)


def two_of(chosen: Sequence[int | None], n_sets: int, most: int = 2) -> list[int]:
    """Select the sets to show: the selected ones, completed by the first."""
    selected = [i for i in chosen if i is not None and 0 <= i < n_sets]
    return list(dict.fromkeys([*selected, *range(n_sets)]))[:most]


def heat_maps(sets: Sets, shown: Sequence[int], matrices: Sequence[np.ndarray]) -> list[Drawn | None]:
    """Draw the similarities within one or two sets; None for a single text or a missing set."""
    maps: list[Drawn | None] = []
    for series, i in enumerate(shown):
        matrix, texts = matrices[i][:MOST_DRAWN, :MOST_DRAWN], sets.texts[i][:MOST_DRAWN]
        if len(matrix) < 2:
            continue
        apart = matrices[i] - 3 * np.eye(len(matrices[i]))
        a, b = sorted(np.unravel_index(apart.argmax(), apart.shape))
        closest = f"Texts {a + 1} and {b + 1} are the most similar ({matrices[i][a, b]:.2f})."
        name = f"{sets.names[i]}. " if sets.names[i] else ""
        caption = name + closest + first_of(len(texts), len(sets.texts[i]))
        maps.append(Drawn(plots.heat_map(matrix, texts, series), caption))
    return [*maps, None, None][:2]


def text_bars(
    sets: Sets, shown: Sequence[int], values: Sequence[Sequence[float | None] | None], title: str, caption: str
) -> Drawn | None:
    """Draw a value of each text of one or two sets, in the order of the tables; None if no text has one.

    values : for each set, a number for each text, or None
    """
    known = [(i, j) for i in shown for j, value in enumerate(values[i] or []) if value is not None]
    drawn = [(i, j) for i, j in known if j < MOST_DRAWN]
    if not drawn:
        return None
    groups = {
        sets.figure_name(of_group): [values[i][j] if i == of_group else None for i, j in drawn]  # type: ignore[index]
        for of_group in shown
    }
    names = [sets.text_name(i, j) for i, j in drawn]
    figure = plots.bars(groups, names, title, [sets.texts[i][j] for i, j in drawn], is_shared=True)
    return Drawn(figure, caption + first_of(len(drawn), len(known)))


def details(sets: Sets, columns: dict[str, list[list[Any]]]) -> pd.DataFrame:
    """Return the table of all texts; each column has a list for each set."""
    table: dict[str, list[Any]] = {}
    if len(sets.texts) > 1:
        table["Set"] = [name for name, texts in zip(sets.names, sets.texts, strict=True) for _ in texts]
    table["No."] = [j for texts in sets.texts for j in range(1, len(texts) + 1)]
    table["Text"] = [text for texts in sets.texts for text in texts]
    return pd.DataFrame(
        table | {name: [cell for cells in column for cell in cells] for name, column in columns.items()}
    )


def scores(sets: Sets, columns: dict[str, Sequence[float | None]]) -> pd.DataFrame | None:
    """Return the table of the scores of each set, if there are more than two."""
    if len(sets.texts) < 3:
        return None
    firsts = [panels.shorten(texts[0], 60) for texts in sets.texts]
    return pd.DataFrame({"Set": sets.names, "Texts": list(map(len, sets.texts)), "First text": firsts, **columns})


def first_of(shown: int, total: int, what: str = "texts") -> str:
    """Return a remark for a caption if not all items are shown."""
    return f" Only the first {shown:,} of {total:,} {what} are shown." if shown < total else ""
