"""Uploaded files: one for each request, and nothing on disk after an error or ten minutes."""

import getpass
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import HTTPException
from gradio import route_utils
from gradio_client.utils import is_valid_file

KEPT_SECONDS = 600
FILES = 400


def use_folder(name: str) -> None:
    """Let Gradio put files into a folder of this demo, unless its owner has named one."""
    folder = Path(tempfile.gettempdir()) / f"{name}-demo-{getpass.getuser()}"
    os.environ.setdefault("GRADIO_TEMP_DIR", str(folder.resolve()))


def path_of(component: gr.File, file: Any) -> str:
    """Return the path of an uploaded file, in place of Gradio's method, which leaves an empty file at each use."""
    if not is_valid_file(file.path, component.file_types or []):
        raise gr.Error(f"Invalid file type. Choose {', '.join(component.file_types or [])}.", print_exception=False)
    return file.path


async def receive(request: Any, folder: str, most_bytes: float, *rest: Any, **more: Any) -> Any:
    """Store the file of a request, in place of Gradio's function; its temporary files are always removed."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    if sum(path.is_file() for path in Path(folder).rglob("*")) >= FILES:
        raise HTTPException(507, "The demo has no room for further files. Please try again in ten minutes.")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        paths, *_ = await route_utils.upload_fn(request, place, most_bytes, None)
        if len(paths) != 1:
            raise HTTPException(400, f"Send one file, in the field “files”. Got {len(paths)}.")
        target = Path(folder) / Path(paths[0]).relative_to(place)
        target.parent.mkdir(exist_ok=True)
        os.replace(paths[0], target)
    return [str(target)], [], []


def sweep(app: Any, seconds: float = KEPT_SECONDS) -> None:
    """Delete the files that are older, whoever left them, and forget those that are deleted."""
    oldest = time.time() - seconds
    for path in sorted(Path(app.uploaded_file_dir).rglob("*"), reverse=True):
        try:
            if path.stat().st_ctime <= oldest:
                path.rmdir() if path.is_dir() else path.unlink()
        except OSError:
            # A folder that is not empty, or a file that has just been deleted.
            continue
    for paths in app.get_blocks().temp_file_sets:
        paths -= {path for path in list(paths) if not Path(path).exists()}
