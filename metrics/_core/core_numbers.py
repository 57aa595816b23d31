"""Read numbers, choices and arrays. Every error names the parameter and what was got."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

# The types of a number; bool is excluded, although it is an int.
INTEGERS = (int, np.integer)
NUMBERS = (float, *INTEGERS, np.floating)
_INT64_MAX = 2**63 - 1
_SHOWN = 80

# Tolerances. A discrete result treats values that differ by no more as equal, and takes the first of equals.
#
# Of cosines, and of what is computed from them: in another batch, float32 embeddings of a text move a cosine by up to
# 3e-7. Values that differ by about this much may still be equal in one call and not in another.
TIE = 1e-6
# Of sums of the same float64 numbers in another order, relative to their size.
ROUNDING = 1e-9
# Of similarities that were rounded to four digits, and of sums of probabilities that were rounded to three digits or
# stored as float16.
ROUNDED_ENTRY, ROUNDED_SUM = 1e-4, 1e-3
# Of unit rows of the same text in another batch, by the type of the numbers: at least five times what the default model
# differs by (1e-6 in float32, 7e-3 in bfloat16). Rows in float64 are mostly float32 rows in a wider type.
ROW_ERRORS = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
# Machine epsilon of the floating-point types that numbers are given in.
EPSILONS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def describe(value: Any) -> str:
    """Format a value for an error message: its repr, cut to one line."""
    try:
        text = " ".join(map(str.strip, repr(value).splitlines()))
    except Exception:  # such as an integer of too many digits, or a repr that fails
        return f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if the message is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def parse_count(value: Any, name: str, low: int = 1, high: int = _INT64_MAX) -> int:
    """Read an integer in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, INTEGERS):
        raise TypeError(f"{name} must be an integer. Got {describe(value)}.")
    if not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}. Got {describe(value)}.")
    return int(value)


def parse_number(value: Any, name: str, low: float, high: float = sys.float_info.max) -> float:
    """Read a number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, NUMBERS):
        raise TypeError(f"{name} must be a number. Got {describe(value)}.")
    if not low <= value <= high:
        raise ValueError(f"{name} must be in [{low:g}, {high:g}]. Got {describe(value)}.")
    return float(value)


def parse_level(value: Any, name: str = "confidence") -> float:
    """Read the level of a confidence interval: a number between 0 and 1."""
    level = parse_number(value, name, 0, 1)
    if level in (0, 1):
        raise ValueError(f"{name} must be between 0 and 1, such as 0.95. Got {describe(value)}.")
    return level


def parse_flag(value: Any, name: str) -> bool:
    """Read True or False, or 1 or 0; other values would pass as one of them by truth."""
    if isinstance(value, (np.bool_, *INTEGERS)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} must be True or False. Got {describe(value)}.")


def parse_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Read one of a few names."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {describe(value)}.")


def parse_matrix(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Read an array of floats of shape (n_rows, d); its values are not checked."""
    try:
        matrix = to_array(values)
    except (TypeError, ValueError):
        matrix = np.empty(0, dtype=object)
    if matrix.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be an (n, d) array of numbers. Got {describe(values)}.")
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.shape[0] != n_rows:
        raise ValueError(f"{name} must have shape ({n_rows}, d). Got shape {matrix.shape}.")
    return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)


def to_array(values: Any) -> np.ndarray:
    """Convert lists, arrays and tensors, also those on another device or with gradients, to an array.

    Raises a TypeError or ValueError if it cannot be converted, or an entry is masked.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if values.is_floating_point() and values.element_size() < 4:
            values = values.float()  # bfloat16 is unknown to numpy
    elif isinstance(values, (list, tuple)):
        are_rows = any(hasattr(value, "detach") or hasattr(value, "mask") for value in values)
        values = list(map(to_array, values)) if are_rows else values
    if np.ma.is_masked(values):
        raise ValueError("An entry is masked.")
    return np.asarray(values)


def unit_vectors(vectors: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Scale vectors (..., d) to length 1, in float64; those that are not longer than `least` become zero."""
    vectors = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > least)


def float_type(values: Any) -> str:
    """Name the floating-point type of an array, a tensor or a list; "float64" for others."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    name = str(getattr(values, "dtype", "")).removeprefix("torch.")
    return name if name in EPSILONS else "float64"


def first_maximum(values: Any) -> np.ndarray:
    """Return the first index along the last axis whose value equals the maximum, to within TIE: (..., n) to (...).

    Values may be infinite, but not NaN; n >= 1.
    """
    values = np.asarray(values)
    return (values >= values.max(-1, keepdims=True) - TIE).argmax(-1)


def tied_ranks(values: Any) -> np.ndarray:
    """Rank values (n,), finite, in ascending order from 0: (n,), int64, equal for values that are tied.

    Sorted values are tied if neighbours differ by TIE or less. A stable argsort of the ranks keeps their order.
    """
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > TIE)
    return ranks
