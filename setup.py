"""Build the package: pyproject.toml has the rest; here the version, and the description as it is read elsewhere."""

import re
import tomllib
from pathlib import Path

from setuptools import setup

_VERSION = re.compile(r'^VERSION = "(.+)"$', re.MULTILINE)
_RELATIVE = re.compile(r"(!?)\[([^]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")


def long_description(text: str, repository: str | None) -> str:
    """Make the relative links and pictures of a page absolute; without an address, only their texts remain."""

    def absolute(match: re.Match[str]) -> str:
        mark, label, path = match.groups()
        return f"{mark}[{label}]({repository}/{'raw' if mark else 'blob'}/HEAD/{path})" if repository else label

    return _RELATIVE.sub(absolute, text)


if __name__ == "__main__":
    root = Path(__file__).resolve().parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (root / "README.md").read_text(encoding="utf-8")
    (version,) = _VERSION.findall((root / "metrics/_core/core_results.py").read_text(encoding="utf-8"))
    setup(
        version=version,
        long_description=long_description(page, project.get("urls", {}).get("Repository")),
        long_description_content_type="text/markdown",
    )
