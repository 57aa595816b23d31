"""How a command on the rows of a file ends: its exit codes, and what it prints last."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from text_metrics.commands.jobs.options import UsageError
from text_metrics.commands.jobs.progress import BadRowError
from text_metrics.commands.shared.command import describe_os_error

EXIT_USAGE, EXIT_BAD_ROWS, EXIT_STRICT, EXIT_INTERRUPTED = 2, 3, 4, 130


def show(summary: Mapping[str, Any]) -> int:
    """Print the summary of a job that is done; returns the exit code."""
    print(json.dumps(summary, indent=2))
    # Only text-metrics choose goes on with the rest of a set that lacks a row.
    is_short = summary.get("n_incomplete", 0) and not summary["command"]["drop_incomplete"]
    return EXIT_BAD_ROWS if summary["n_bad"] or is_short else 0


def end(name: str, run: Callable[[], int]) -> int:
    """Run the command of this name, and return its exit code; what is wrong goes to stderr."""
    try:
        code = run()
        sys.stdout.flush()
        return code
    except BadRowError:
        print("Stopped at this row. Finished batches are saved.", file=sys.stderr)
        return EXIT_STRICT
    except (UsageError, OSError) as error:
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        print(f"{name}: {message}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        print("Interrupted. Run the same command to continue.", file=sys.stderr)
        return EXIT_INTERRUPTED
