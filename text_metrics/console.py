"""Exit codes and error messages of commands."""

import argparse
import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tqdm import tqdm

from text_metrics.files.reading import reading
from text_metrics.files.storage import without_secrets

EXIT_USAGE = 2
EXIT_BAD_ROWS = 3
EXIT_LIMIT = 5
EXIT_IN_USE = 6
EXIT_INTERRUPTED = 130
# What each code means, in all commands; docs/watch.md has this table.
EXIT_CODES = {
    0: "done",
    1: "some requests to a chat model have no answer",
    EXIT_USAGE: "the command, a setting or a file is invalid",
    EXIT_BAD_ROWS: "done, but some rows were skipped",
    EXIT_LIMIT: "done, but a number is beyond its limit, or null",
    EXIT_IN_USE: "another process works on the same output",
    EXIT_INTERRUPTED: "interrupted: the same command continues",
}
# The extras that bring libraries.
_EXTRAS = {"openai": "judge", "penman": "frames", "ray": "ray"}
# Messages of one kind that are printed before the others are counted.
_SHOWN = 10
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


class InUseError(ValueError):
    """Another process has locked a file."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Show a description verbatim, and only required arguments in the usage."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:  # noqa: D102
        shown = [action for action in actions if action.required or set(action.option_strings) <= {"-h", "--help"}]
        super().add_usage(usage, shown, (), prefix)


class Parser(argparse.ArgumentParser):
    """A parser whose help shows a docstring verbatim."""

    def __init__(self, description: str | None = None, **named: Any) -> None:
        super().__init__(description=description, formatter_class=HelpFormatter, **named)

    def parse_args(self, *arguments: Any) -> Any:  # type: ignore[override]
        """Print completions if a shell asks for them; otherwise, parse the words."""
        if "_ARGCOMPLETE" in os.environ:
            import argcomplete

            argcomplete.autocomplete(self)
        return super().parse_args(*arguments)


def command(main: Callable[..., int | None]) -> Callable[..., int]:
    """Make the main function of a command return one of EXIT_CODES: 2 after a ValueError, OSError or ImportError."""

    @wraps(main)
    def run(*arguments: Any) -> int:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A terminal may not have all characters.
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with _warned_once(), reading():
                code = main(*arguments) or 0
            # An error of printing is raised here, not at the interpreter's exit.
            sys.stdout.flush()
            return code
        except OSError as error:
            return _end(_describe(error))
        except ImportError as error:
            extra = _EXTRAS.get(error.name or "")
            advice = f'{error.name} is needed: pip install "text-metrics[{extra}]"'
            return _end(advice if extra else str(error))
        except InUseError as error:
            return _end(str(error), EXIT_IN_USE)
        except ValueError as error:
            return _end(str(error))
        except KeyboardInterrupt as interrupt:
            return _end(f"Interrupted. {interrupt}".strip(), EXIT_INTERRUPTED)

    return run


@contextmanager
def input_checked() -> Iterator[None]:
    """Turn the TypeError of a check of settings or of a file into a ValueError; elsewhere, a TypeError is a bug."""
    try:
        yield
    except TypeError as error:
        raise ValueError(str(error)) from None


@contextmanager
def _warned_once() -> Iterator[None]:
    """Print warnings that differ in numbers only once, and at the end how often each came, with its counts added up."""
    seen: dict[str, list[str]] = {}
    formatted = warnings.formatwarning
    with warnings.catch_warnings():
        # Python would ignore the same numbers of another batch; a filter of the user is before this one.
        warnings.simplefilter("always", UserWarning, append=True)
        show = warnings.showwarning

        def show_once(message: Any, *arguments: Any, **named: Any) -> None:
            messages = seen.setdefault(_NUMBER.sub("...", str(message)), [])
            messages.append(str(message))
            if len(messages) == 1:
                show(message, *arguments, **named)

        warnings.showwarning = show_once
        # Without a line of code, which is not the user's.
        warnings.formatwarning = lambda message, *_arguments, **_named: f"Warning: {message}\n"
        try:
            yield
        finally:
            warnings.formatwarning = formatted
            for messages in seen.values():
                total = _add_counts(messages)
                if total != messages[0]:
                    print(f"This warning came {len(messages)} times, in all: {total}", file=sys.stderr)


def _add_counts(messages: Sequence[str]) -> str:
    """Merge messages that differ in numbers: counts, as in "3 of 8 texts", are added up; equal ones stay."""
    between = _NUMBER.split(messages[0])
    merged = between[0]
    for i, values in enumerate(zip(*map(_NUMBER.findall, messages), strict=False)):
        value = values[0] if len(set(values)) == 1 else "..."
        if " of " in (between[i], between[i + 1]) and "." not in "".join(values):
            value = f"{sum(int(value.replace(',', '')) for value in values):,}"
        merged += value + between[i + 1]
    return merged


class Notices:
    """Lines on stderr of one kind: the first ones are printed, and the others counted."""

    def __init__(self) -> None:
        self._n = 0

    def add(self, line: str) -> None:
        """Print a line, or count it."""
        self._n += 1
        if self._n <= _SHOWN:
            # Above a progress bar.
            tqdm.write(without_secrets(line), file=sys.stderr)

    def end(self, what: str) -> None:
        """Format the number and kind of the lines that were not printed."""
        if self._n > _SHOWN:
            print(f"And {self._n - _SHOWN:,} more {what}.", file=sys.stderr)


def _describe(error: OSError) -> str:
    """Describe an error of the system; write errors name a file, unless stdout failed."""
    if error.filename is not None:
        # Some libraries give their own words.
        return f"{error.filename} cannot be used: {os.strerror(error.errno) if error.errno else error}."
    if error.errno not in _WRITING:
        return str(error)
    try:
        sys.stdout.flush()
    except OSError:
        # Python would try again at its end, and fail with another message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return f"The standard output cannot be written: {error.strerror}."


def _end(message: str, code: int = EXIT_USAGE) -> int:
    print(without_secrets(message) or "The input is invalid.", file=sys.stderr)
    return code
