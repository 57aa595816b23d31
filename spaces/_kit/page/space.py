"""The description of one demo, from which its page is built."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import inputs
from ..show.downloads import Table


class Box(NamedTuple):
    """A text box for the visitor's input."""

    label: str
    info: str
    placeholder: str
    lines: int = 11


class Picture(NamedTuple):
    """A panel below the answer: a Plotly figure, or HTML; a wide one takes a full row."""

    title: str
    is_figure: bool = True
    is_wide: bool = False


class Example(NamedTuple):
    """Sample texts, one for each box."""

    name: str
    texts: tuple[str, ...]


class Result(NamedTuple):
    """The content of a page after scoring.

    answer : HTML
    pictures : for each panel its figure or HTML, and a caption; None hides the panel
    details : the table of details
    report : the content of the JSON download
    scores : the table of scores, if there are more than the answer shows
    choices : the items that the visitor can select for a closer look; `chosen` holds the indices of those shown
    """

    answer: str
    pictures: Sequence[tuple[Any, str] | None]
    details: Table
    report: dict[str, Any]
    scores: Table | None = None
    choices: Sequence[str] = ()
    chosen: Sequence[int] = ()


class Space(NamedTuple):
    """One demo.

    from_boxes, from_rows : convert the text of the boxes, or the rows of a table, to the input of `score`
    to_rows : the inverse of `from_rows`, for the sample files
    preview : says what such an input contains
    score : returns a result for that input, the selected items and the settings by name
    settings, more_settings : components by their names, made outside of a page; the latter are folded away
    choosers : labels of the lists that select what is shown
    api : the public endpoint
    """

    name: str
    title: str
    lead: str
    limits: inputs.Limits
    boxes: Sequence[Box]
    roles: Sequence[inputs.Role]
    from_boxes: Callable[..., Any]
    from_rows: Callable[[list[dict[str, Any]]], Any]
    to_rows: Callable[[Any], list[dict[str, Any]]]
    preview: Callable[[Any], str]
    examples: Sequence[Example]
    settings: dict[str, Any]
    more_settings: dict[str, Any]
    choosers: Sequence[str]
    pictures: Sequence[Picture]
    score: Callable[[Any, Sequence[int | None], dict[str, Any]], Result]
    api: Callable[..., dict[str, Any]]
    steps: Sequence[str]

    def suffixes(self) -> tuple[str, ...]:
        """List the endings of the files that the demo reads."""
        return (*([inputs.PLAIN] if len(self.boxes) == 1 else []), *inputs.TABLES)

    def is_typed(self, path: str) -> bool:
        """Return whether a file is read as if its text were typed into the only box."""
        return len(self.boxes) == 1 and path.lower().endswith(inputs.PLAIN)
