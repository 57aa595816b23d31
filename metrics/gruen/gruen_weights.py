"""The weights file of this module: `evaluate` copies code to its cache, and no data files.

The file is copied beside the code from the source of the code: a folder, or a Space of the Hub.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from .core import file_digest, first_line

_HUB_TIMEOUT_SECONDS = 5


def bring_weights(script: str, module: str, name: str, sha256: str) -> Path:
    """Return the path of the weights beside the main script, where they are copied to unless they are there.

    `script` is the path of the main script, `module` its Python module, whose name holds the id of its Space. Raises a
    ValueError that says what to do if they are missing or differ.
    """
    place = Path(script).with_name(name)
    if place.is_file() and file_digest(place) == sha256:
        return place
    try:
        source = _beside_original(Path(script), name) or _from_space(module, name)
        if file_digest(source) != sha256:
            raise ValueError(f"{source} is another file: its SHA-256 is not {sha256}")
        # Atomic, since other processes may copy it too.
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            os.replace(shutil.copy(source, Path(folder) / name), place)
    # The errors of the Hub's client and of its HTTP library have no other base class in common.
    except Exception as error:
        reason = first_line(error)
        raise ValueError(
            f"backbone='compact' needs the weights {name}, which are missing: {reason}. Load the metric from a "
            "folder that holds them, put the file there again, or pass backbone='bert'."
        ) from error
    return place


def _beside_original(script: Path, name: str) -> Path | None:
    """Look beside the file that `evaluate` copied the script from: it records the path as typed at the first load."""
    note = script.with_suffix(".json")
    if not note.is_file():
        return None
    original = json.loads(note.read_text(encoding="utf-8")).get("original file path")
    weights = Path(original).with_name(name) if original else None
    return weights if weights is not None and weights.is_file() else None


def _from_space(module: str, name: str) -> Path:
    """Download the weights from the Space in the name of a module: `...owner--name.<hash>.name`."""
    from huggingface_hub import HfApi, constants, hf_hub_download

    match = re.search(r"(?:^|\.)([\w-]+)--([\w-]+)\.", module)
    if match is None:
        raise ValueError("no folder and no Space is known that holds them")
    space = f"{match[1]}/{match[2]}"
    if not constants.HF_HUB_OFFLINE:
        # One request with a short timeout first: without a network, the download would retry for a minute.
        HfApi().space_info(space, timeout=_HUB_TIMEOUT_SECONDS)
    return Path(hf_hub_download(space, name, repo_type="space"))
