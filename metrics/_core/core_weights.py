"""Weights files beside the code of a metric: `evaluate` copies no data files to its cache.

A file is copied beside the code from the source of the code: a folder, or a Space of the Hub.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from .core_models import file_digest
from .core_numbers import first_line

# Seconds.
_SPACE_TIMEOUT = 5


def bring_weights(script: str, module: str, name: str, sha256: str, use: str, instead: str) -> Path:
    """Return the path of a weights file beside a script of a metric, where it is copied to unless it is there.

    `script` is the path of the script, `module` its Python module, whose name holds the id of its Space. Raises a
    ValueError if the file is missing or differs, which says what needs it, `use`, and what to do `instead`.
    """
    place = Path(script).with_name(name)
    if place.is_file() and file_digest(place) == sha256:
        return place
    try:
        source = _beside_original(place) or _from_space(module, name)
        if file_digest(source) != sha256:
            raise ValueError(f"{source} is another file: its SHA-256 is not {sha256}")
        # Atomic, since other processes may copy it too.
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            os.replace(shutil.copy(source, Path(folder) / name), place)
    # The errors of the Hub's client and of its HTTP library have no other base class in common.
    except Exception as error:
        reason = first_line(error)
        raise ValueError(
            f"{use} needs the weights {name}, which are missing: {reason}. Load the metric from a folder that holds "
            f"them, put the file there again, or pass {instead}."
        ) from error
    return place


def _beside_original(place: Path) -> Path | None:
    """Look beside the files that `evaluate` copied the code from: it records the path as typed at the first load."""
    for note in sorted(place.parent.glob("*.json")):
        original = json.loads(note.read_text(encoding="utf-8")).get("original file path")
        weights = Path(original).with_name(place.name) if original else None
        if weights is not None and weights.is_file():
            return weights
    return None


def _from_space(module: str, name: str) -> Path:
    """Download the weights from the Space in the name of a module: `...owner--name.<hash>.name`."""
    from huggingface_hub import HfApi, constants, hf_hub_download

    match = re.search(r"(?:^|\.)([\w-]+)--([\w-]+)\.", module)
    if match is None:
        raise ValueError("no folder and no Space is known that holds them")
    space = f"{match[1]}/{match[2]}"
    if not constants.HF_HUB_OFFLINE:
        # One request with a short timeout first: without a network, the download would retry for a minute.
        HfApi().space_info(space, timeout=_SPACE_TIMEOUT)
    return Path(hf_hub_download(space, name, repo_type="space"))
