"""Warnings that point to the user's line."""

import inspect
import traceback
import warnings
from types import FrameType

# Packages whose frames are not the user's: this one, also in the cache of `evaluate`; those that call a metric for the
# user; and the library's, between two functions of this package.
_NOT_OF_THE_USER = frozenset(
    (
        "text_metrics",
        "evaluate_modules",
        "evaluate",
        "datasets",
        "accelerate",
        "transformers",
        "trl",
        "contextlib",
    )
)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line: the first frame outside of this package and of packages that call it.

    Without such a line, as in a thread, it is the outermost one.
    """
    for frame, _ in traceback.walk_stack(inspect.currentframe()):
        if _package(frame) not in _NOT_OF_THE_USER:
            break
    module = frame.f_globals
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=module.get("__name__"),
        registry=module.setdefault("__warningregistry__", {}),
    )


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]
