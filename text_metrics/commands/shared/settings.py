"""Settings of a metric on the command line, as all commands read them."""

import json
from collections.abc import Sequence
from typing import Any

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
