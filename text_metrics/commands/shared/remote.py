"""Files that `fsspec` opens by a URL, such as s3://bucket/data.jsonl: they are copied to this machine once."""

import os
from argparse import ArgumentTypeError
from pathlib import Path

from text_metrics.commands.shared.files import written_whole


def copies() -> Path:
    """Return the folder of the copies."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "text_metrics" / "files"


def parse_path(text: str) -> Path:
    """Read a path, or a URL of which the copy is the path, as a type of argparse."""
    if "://" not in text:
        return Path(text)
    import fsspec

    try:
        system, name = fsspec.core.url_to_fs(text)
        if system.protocol in ("file", ("file", "local")):
            return Path(name)
        # A file that has changed has another key.
        path = copies() / system.ukey(name)[:16] / Path(name).name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with written_whole(path) as temporary:
                system.get_file(name, str(temporary))
                # A copy that is made again is the same file to a job.
                os.utime(temporary, (0, 0))
    except FileNotFoundError:
        raise ArgumentTypeError(f"{text} does not exist.") from None
    except Exception as error:  # Each file system has its own, such as those of missing credentials.
        raise ArgumentTypeError(f"{text} cannot be read: {type(error).__name__}: {error}") from None
    return path
