"""Errors: what their callers read of them, and what the log keeps."""

import logging
import sysconfig
import traceback
from pathlib import Path

import gradio as gr

from .. import inputs

logger = logging.getLogger("demo")

UNFIT = "The request does not fit the API of this demo. The link “Use via API” on the page describes it."
_OURS = (inputs.InputError, ValueError, ImportError)
_LIBRARIES = tuple(Path(sysconfig.get_path(name)).as_posix() for name in ("stdlib", "purelib", "platlib"))


def public_error(error: BaseException) -> str:
    """Return a message for the visitor; it is never empty.

    The messages of input errors are shown. Any other error is logged by its type and its place in the code, without its
    message, which may contain a visitor's text.
    """
    if isinstance(error, gr.Error):
        message = str(error.message)
    elif isinstance(error, _OURS) and not isinstance(error, UnicodeError) and not _place(error).startswith(_LIBRARIES):
        message = str(error)
    else:
        message = ""
    if message.strip():
        return message
    log_place(error)
    return f"Something went wrong on our side ({type(error).__name__}). Please try again."


def log_place(error: BaseException) -> None:
    """Log the type of an error and the place in the code where it was raised."""
    logger.error("%s at %s", type(error).__name__, _place(error))


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).as_posix()}:{frames[-1].lineno}" if frames else "an unknown place"


class Places(logging.Formatter):
    """Formats a record of a library as its place in the code: its message may contain a visitor's text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message of a record of ours, and the place of any other."""
        if record.name == logger.name:
            return record.getMessage()
        error = record.exc_info[0] if record.exc_info else None
        return f"{error.__name__ if error else record.levelname} at {record.pathname}:{record.lineno}"


def log_places() -> None:
    """Log the records of all libraries by their place only."""
    logging.basicConfig(force=True)
    for name in (None, "uvicorn"):
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(Places())
