"""Settings of a metric on the command line, as all commands read them."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from text_metrics.commands.shared.outputs import module_files

# The settings of the encoder that a command takes.
ENCODER = ("model", "precision", "long_texts", "batch_size", "device", "cache_dir")


def parse_settings(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """Read NAME=VALUE pairs, where a value is JSON, or else a string.

    Parameters
    ----------
    option : the option that the pairs were given with, for errors

    Raises
    ------
    ValueError
        If a pair is not of this form.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"{option} must be NAME=VALUE. Got {pair!r}.")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def paths_of(settings: Mapping[str, Any]) -> list[str | Path]:
    """List the files that settings name, such as those of a model."""
    return [
        path
        for name, value in settings.items()
        # A value that is no path, such as that of kernel="ngram", may be the name of a folder.
        if isinstance(value, str) and name != "cache_dir" and (name.endswith("model") or os.sep in value)
        for path in module_files(value)
    ]


def cache_of(settings: Mapping[str, Any]) -> Path | None:
    """Return the folder of the cache; None if there is none."""
    folder = settings.get("cache_dir")
    return Path(folder).expanduser() if folder and isinstance(folder, str) else None
