"""Pages of HTML from templates of Jinja2."""

from pathlib import Path
from typing import Any

from text_metrics.commands.shared.formats import integer, level, printable, shortened

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """Return a page from a template of the folder templates/, with every text escaped; a page runs no script."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from text_metrics.commands.shared.plots import COLORS, themed

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) else printable(str(value)),
    )
    environment.filters.update(themed=themed, shortened=shortened, integer=integer, level=level)
    return environment.get_template(template).render(colors=COLORS, **values)
