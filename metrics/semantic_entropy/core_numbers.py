"""Read values: numbers, flags, choices and arrays. Every error names the parameter and what was got."""

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

_INT64_MAX = 2**63 - 1
_SHOWN = 80
_UNPRINTABLE = "a value that cannot be printed"
# Machine epsilon of the floating-point types that numbers are given in.
EPSILONS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def describe(value: Any) -> str:
    """Format an invalid value for an error message: its type and its repr, cut to one line."""
    text = show(value)
    return text if value is None or text == _UNPRINTABLE else f"{type(value).__name__} {text}"


def show(value: Any) -> str:
    """Format a value for an error message: its repr, cut to one line."""
    try:
        text = " ".join(map(str.strip, repr(value).splitlines()))
    except Exception:  # such as an integer of too many digits, or a repr of the caller's
        return _UNPRINTABLE
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def parse_count(value: Any, name: str, low: int = 1, high: int = _INT64_MAX) -> int:
    """Read an integer in [low, high]."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer. Got {describe(value)}.") from None
    if number < low:
        raise ValueError(f"{name} must be at least {low}. Got {show(number)}.")
    if number > high:
        raise ValueError(f"{name} must be at most {high}. Got {show(number)}.")
    return number


def to_float(value: Any) -> float:
    """Convert a real number; one beyond the range of floats becomes infinite.

    Raises a TypeError if it is not a real number, or a bool.
    """
    is_real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not is_real:
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def parse_number(value: Any, name: str, low: float, high: float = math.inf) -> float:
    """Read a finite number in [low, high]."""
    try:
        number = to_float(value)
    except TypeError:
        raise TypeError(f"{name} must be a number. Got {describe(value)}.") from None
    if not (low <= number <= high and math.isfinite(number)):
        least = "finite" if number == math.inf else f"at least {low:g}"
        bounds = least if math.isinf(high) else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name} must be {bounds}. Got {show(value)}.")
    return number


def parse_flag(value: Any, name: str) -> bool:
    """Read True or False, also as numpy's or as 1 and 0: any other value would be taken for one of them."""
    if isinstance(value, (bool, int, np.bool_, np.integer)) and value in (0, 1):
        return bool(value)
    raise TypeError(f"{name} must be True or False. Got {describe(value)}.")


def parse_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Read one of a few names."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {describe(value)}.")


def parse_matrix(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Read an array of floats of shape (n_rows, d), without the checks of its rows in `parse_embeddings`."""
    try:
        matrix = to_array(values)
        if matrix.dtype not in (np.float32, np.float64):
            if matrix.dtype.kind not in "fiu":
                raise TypeError
            matrix = matrix.astype(np.float64)
    except MaskedError:
        raise ValueError(f"{name} has masked entries: fill them, or leave out their texts.") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an (n, d) array of numbers. Got {describe(values)}.") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0 or matrix.shape[0] != n_rows:
        raise ValueError(
            f"{name} must have shape (n, d), with a row for each of the {n_rows} texts. Got shape {matrix.shape}."
        )
    return matrix


class MaskedError(ValueError):
    """An array has masked entries, which stand for no number."""


def to_array(values: Any) -> np.ndarray:
    """Convert lists, arrays and tensors, also those on another device or with gradients, to an array.

    Raises a MaskedError if an entry is masked, where numpy would use what is under the mask, and a TypeError or
    ValueError if it cannot be converted.
    """
    if hasattr(values, "detach"):
        try:
            tensor = values.detach().cpu()
            narrow = tensor.is_floating_point() and tensor.element_size() < 4  # bfloat16 is unknown to numpy
            return tensor.float().numpy() if narrow else tensor.numpy()
        except (RuntimeError, AttributeError) as error:  # such as a tensor that holds no data
            raise TypeError(str(error)) from error
    if isinstance(values, (list, tuple)) and any(hasattr(v, "detach") or hasattr(v, "mask") for v in values):
        values = [to_array(value) for value in values]
    if np.ma.is_masked(values):
        raise MaskedError
    return np.asarray(values)


def float_type(values: Any) -> str:
    """Name the floating-point type of an array, a tensor or a list of them; "float64" for anything else."""
    while isinstance(values, (list, tuple)) and values:
        values = values[0]
    name = str(getattr(values, "dtype", "")).removeprefix("torch.")
    return name if name in EPSILONS else "float64"


def unpack(array: Any) -> Any:
    """Convert an array or tensor to a list; one that holds no data, such as a meta tensor, stays what it is."""
    try:
        return array.tolist()
    except (RuntimeError, TypeError):
        return array
