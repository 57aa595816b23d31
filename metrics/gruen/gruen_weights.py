"""The weights file of this module: `evaluate` copies code to its cache, and no data files.

The file is copied beside the code from the source of the code: a folder, or a Space of the Hub.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from .core_models import file_digest

_HUB_TIMEOUT_SECONDS = 5


def bring_weights(script: str, module: str, name: str, sha256: str) -> str | None:
    """Copy the weights beside the main script, unless they are there; returns the reason if that is not possible.

    Parameters
    ----------
    script : path of the main script that runs
    module : name of its Python module, which holds the id of its Space
    name : file name of the weights
    sha256 : their digest
    """
    place = Path(script).with_name(name)
    if place.is_file() and file_digest(place) == sha256:
        return None
    source, reason = _beside_original(Path(script), name), "no folder and no Space is known that it was loaded from"
    if source is None or file_digest(source) != sha256:
        if source is not None:
            reason = _difference(source, sha256)
        elif place.is_file():
            reason = _difference(place, sha256)
        space = _space(module)
        if space is None:
            return reason
        try:
            source = _from_space(space, name, sha256)
        # The errors of the client and of its HTTP library have no other base class in common.
        except Exception as error:
            detail = (str(error).strip() or type(error).__name__).splitlines()[0]
            return f"the Space {space} could not be read ({detail})"
        if file_digest(source) != sha256:
            return _difference(source, sha256)
    try:
        # Atomic, since other processes may copy it too.
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            os.replace(shutil.copy(source, Path(folder) / name), place)
    except OSError as error:
        return f"{source} could not be copied to {place}: {error.strerror}"
    return None


def check_weights(script: str, module: str, name: str, sha256: str) -> Path:
    """Return the path of the weights beside the main script, with their digest checked.

    Raises a ValueError that says what to do if they are missing or differ.
    """
    reason = bring_weights(script, module, name, sha256)
    if reason is not None:
        raise ValueError(
            f"backbone='compact' needs the weights {name}, which are missing: {reason}. Load the metric from a "
            "folder that holds them, put the file there again, or pass backbone='bert'."
        )
    return Path(script).with_name(name)


def _beside_original(script: Path, name: str) -> Path | None:
    """Look beside the file that `evaluate` copied the script from: it records the path as typed at the first load."""
    note = script.with_suffix(".json")
    if not note.is_file():
        return None
    original = json.loads(note.read_text(encoding="utf-8")).get("original file path")
    weights = Path(original).with_name(name) if original else None
    return weights if weights is not None and weights.is_file() else None


def _space(module: str) -> str | None:
    """Return the Space in the name of a module that was loaded from one: `...owner--name.<hash>.name`."""
    match = re.search(r"(?:^|\.)([\w-]+)--([\w-]+)\.", module)
    return f"{match[1]}/{match[2]}" if match else None


def _from_space(space: str, name: str, sha256: str) -> Path:
    from huggingface_hub import HfApi, constants, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        cached = Path(hf_hub_download(space, name, repo_type="space", local_files_only=True))
        if file_digest(cached) == sha256:
            return cached
    except LocalEntryNotFoundError:
        pass
    if constants.HF_HUB_OFFLINE:
        raise ConnectionError("HF_HUB_OFFLINE is set")
    # One request with a short timeout first: without a network, the download would retry for a minute.
    HfApi().space_info(space, timeout=_HUB_TIMEOUT_SECONDS)
    return Path(hf_hub_download(space, name, repo_type="space"))


def _difference(path: Path, sha256: str) -> str:
    return f"{path} is another file (SHA-256 {file_digest(path)}, expected {sha256})"
