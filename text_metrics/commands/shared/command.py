"""Exit codes and error messages of commands."""

import argparse
import errno
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

EXIT_USAGE, EXIT_INTERRUPTED = 2, 130
# Libraries that a command imports only if it needs them, and the extras that bring them.
_EXTRAS = {"openai": "judge", "penman": "frames", "ray": "ray"}
_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EPIPE)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Show a description as it stands, and in the usage what is required."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """Add the usage, without the options that have defaults."""
        shown = [action for action in actions if action.required or set(action.option_strings) <= {"-h", "--help"}]
        super().add_usage(usage, shown, (), prefix)


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help shows a command's docstring as it stands, with its examples after the options."""
    return argparse.ArgumentParser(**_help(description or ""))


def add_command(commands: Any, name: str, help: str, description: str) -> argparse.ArgumentParser:
    """Add a command to a parser's `add_subparsers()`, with a help as that of `make_parser`."""
    return commands.add_parser(name, help=help, **_help(description))


def _help(description: str) -> dict[str, Any]:
    paragraphs = description.rstrip().split("\n\n")
    examples = [paragraph for paragraph in paragraphs if paragraph.startswith("    text-metrics ")]
    return {
        "description": "\n\n".join(paragraph for paragraph in paragraphs if paragraph not in examples),
        "epilog": "\n\n".join(["examples:", *examples]) if examples else None,
        "formatter_class": HelpFormatter,
    }


def command(main: Callable[..., int | None]) -> Callable[..., int]:
    """Make the main function of a command return its exit code: 2 after a ValueError, OSError or ImportError."""

    @wraps(main)
    def run(*arguments: Any) -> int:
        try:
            code = main(*arguments) or 0
            # An error of printing is raised here, not at the interpreter's exit.
            sys.stdout.flush()
            return code
        except OSError as error:
            return _end(describe_os_error(error))
        except ImportError as error:
            extra = _EXTRAS.get(error.name or "")
            return _end(f"{error.name} is needed: {install(extra)}" if extra else str(error))
        except ValueError as error:
            return _end(str(error))
        except KeyboardInterrupt as interrupt:
            return _end(f"Interrupted. {interrupt}".strip(), EXIT_INTERRUPTED)

    return run


def install(extra: str) -> str:
    """Return the command that installs an extra of this package, from any folder."""
    return f'pip install "text-metrics[{extra}]"'


def describe_os_error(error: OSError) -> str:
    """Describe what the system refused, with the name of the file: every error of writing has one, except stdout's."""
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
    print(message or "The input is invalid.", file=sys.stderr)
    return code
