"""The commands of users, and those of scripts/, as tests run them: in this process, by the names that run them."""

import sys
from importlib import import_module

from tests.conftest import ROOT
from text_metrics import __main__ as cli

# The commands of scripts/, by what follows `python -m scripts.`: the modules with a function `main`.
WORKSHOP = {
    ".".join(path.relative_to(ROOT / "scripts").with_suffix("").parts).removesuffix(".__main__"): ".".join(
        path.relative_to(ROOT).with_suffix("").parts
    )
    for path in sorted((ROOT / "scripts").rglob("*.py"))
    if "\ndef main(" in path.read_text(encoding="utf-8")
}


def run_command(monkeypatch, name, *words):
    """Run a command; returns its exit code."""
    try:
        if name in cli.COMMANDS:
            return cli.main([name, *map(str, words)])
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        return import_module(WORKSHOP[name]).main()
    except SystemExit as stop:  # of argparse
        return stop.code


def command_of(path):
    """Return the name of the command that a module belongs to."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] == ("text_metrics", "commands"):
        return parts[2].replace("_", "-")
    dotted = ".".join(parts[1:]).removesuffix(".__main__")
    return dotted if dotted in WORKSHOP else ".".join(parts[1:-1])
