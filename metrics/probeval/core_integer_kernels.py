"""The layers of a BERT with products of whole numbers, as loops that numba compiles.

Rows of floats are rounded to whole numbers of steps. Products of those are summed exactly, in 32 bits; all else is
float32. A row is cut into blocks of vectors, and those into chunks, each of which has a step size of its own. In 16
bits, what the vectors of a block have in one lane is a chunk, so that 16 sizes are found side by side; in 8 bits, all.
"""

import functools
import hashlib
import math
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .core_integer_tiles import LANES, QUERIES, ROWS, WIDTH, instructions

# Vectors in a block, at most. The fewer products of 16 bits are summed before the sum becomes a float, the smaller may
# steps be.
_DEPTH = 24
# Rows that go through the wide part of a layer at once: few enough for a processor's cache, and enough to be worth the
# reading of the weights.
WIDE_ROWS = 126
# Rows of room behind the last, for tiles that stick out.
MARGIN = max(ROWS, QUERIES, LANES)
# Beyond it, gelu is the identity, or 0, to 2e-6.
_GELU_END = 5.0

# What the compiler may do with floats: not what would make digits differ between processors, as estimates of quotients
# and sums in another order do.
_FREEDOMS = {"nnan", "ninf", "nsz", "contract"}

_MODULE = "_text_metric_kernels"

_Array = np.ndarray[Any, Any]


@functools.cache
def compiled() -> Callable[..., None]:
    """Give `take_through_layers` for numba, which compiles it at its first call and keeps that on disk.

    Raises
    ------
    ImportError
        If there is no numba.
    """
    import numba

    file = _kept_source()
    # A module that the functions are in, wherever they come from: numba looks it up when it loads what it has kept.
    module = sys.modules[_MODULE] = types.ModuleType(_MODULE)
    names = vars(module)
    names.update({**globals(), **instructions(), "__name__": _MODULE})
    compiler = numba.njit(nogil=True, fastmath=_FREEDOMS, error_model="numpy", cache=bool(file))
    for function in (depth_of, _multiply, _round_row, _normalise, _gelu, _exponentiate, _attend, take_through_layers):
        # As from the file beside which numba keeps them.
        code = function.__code__.replace(co_filename=str(file or function.__code__.co_filename))
        own = types.FunctionType(code, names, function.__name__)
        names[function.__name__] = compiler(own)
    entry: Callable[..., None] = names["take_through_layers"]
    return entry


def note_of(bits: int) -> Path | None:
    """Name the file that says, if it is there, that what numba keeps will do here for steps of so many bits.

    None if nothing can be written there.
    """
    from llvmlite import binding

    file = _kept_source()
    kind = f"{bits}-{binding.get_host_cpu_name()}-{sys.implementation.cache_tag}"
    return file and file.with_name(f"{file.stem}-{kind}.compiled")


@functools.cache
def _kept_source() -> Path | None:
    """Put what is compiled into a folder of the user's, so that all copies of this file share what numba keeps there.

    None if nothing can be written there.
    """
    sources = [Path(part.__code__.co_filename).read_bytes() for part in (take_through_layers, instructions)]
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "text-metrics"
        file = home / f"kernels-{hashlib.sha256(b''.join(sources)).hexdigest()[:16]}.py"
        (home / "__pycache__").mkdir(parents=True, exist_ok=True)
        if not file.exists():
            draft = file.with_suffix(f".{os.getpid()}")
            draft.write_bytes(sources[0])
            draft.replace(file)
    # There may be no home at all.
    except (OSError, RuntimeError):
        return None
    return file if os.access(home / "__pycache__", os.W_OK) else None


def _series(function: Callable[[float], float], low: float, high: float, degree: int) -> tuple[np.float32, ...]:
    """Approximate a function by a polynomial of t, which runs from -1 at `low` to 1 at `high`; lowest power first."""
    middle, half = (high + low) / 2, (high - low) / 2
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = [function(middle + half * node) for node in nodes.tolist()]
    return tuple(np.polynomial.polynomial.polyfit(nodes, values, degree).astype(np.float32))


# Of the normal distribution, by the square of x: (P(X < x) - 1/2) / x. And 2^x, where x is rounded off.
_GELU = _series(lambda square: math.erf(math.sqrt(square / 2)) / 2 / math.sqrt(square), 1e-9, _GELU_END**2, 12)
_POWER = _series(lambda x: 2.0**x, -0.5, 0.5, 6)


def _instruction(*values: Any) -> Any:
    raise TypeError("Only compiled functions have instructions.")


round_block = integer_tile = float_tile = wide_float_tile = turn = shift_row = share_row = _instruction
normalise_row = larger = float_of_bits = _instruction


def depth_of(k: int) -> int:
    """Say how many vectors a block has in rows of k numbers: a multiple of 4."""
    depth = _DEPTH
    while k % (depth * LANES):
        depth -= 4
    return depth


def take_through_layers(
    ids: _Array,
    lengths: _Array,
    tables: tuple[_Array, _Array, _Array, _Array],
    linears: tuple[tuple[_Array, _Array, _Array], ...],
    heads: int,
    epsilon: float,
    limits: tuple[float, float, float],
    room: tuple[_Array, ...],
    is_pooled: bool,
    found: _Array,
) -> None:
    """Take texts that lie one behind the other through all layers.

    Parameters
    ----------
    ids : (t,), int32, and lengths : of each text, int64
    tables : the embeddings of tokens and of places; (2, d), weight and bias of their norm; (layers, 4, d), those of
        the two norms of each layer
    linears : steps, columns and factors of the layers' four linear parts, as `round_linear` gives them
    limits : of the steps of a row, as `round_block` takes them
    room : arrays to work in, as `_make_room` makes them
    is_pooled : whether the mean of each text is wanted
    found : (t, d), or a row for each text, float32, is written
    """
    words, places, first_norm, norms = tables
    project, attended, widen, narrow = linears
    hidden, mixed, projected, steps, sizes, wide, wide_steps, wide_sizes, keys, scores = room
    n, n_rows, d = len(ids), (len(ids) + ROWS - 1) // ROWS * ROWS, words.shape[1]
    block, n_sizes = wide.shape[1], wide_sizes.shape[1] * wide.shape[1] // wide_steps.shape[1]
    row = 0
    for length in lengths:
        for place in range(length):
            for i in range(d):
                mixed[row, i] = words[ids[row], i] + places[place, i]
            _normalise(mixed[row], first_norm, epsilon, hidden[row])
            _round_row(hidden[row], project[2][0], steps[row], sizes[row], limits)
            row += 1
    for layer in range(len(norms)):
        _multiply(steps, sizes, n_rows, project[0][layer], project[1][layer], 0, projected)
        start = 0
        for length in lengths:
            _attend(projected, start, length, heads, keys, scores, mixed)
            start += length
        for row in range(n):
            _round_row(mixed[row], attended[2][layer], steps[row], sizes[row], limits)
        _multiply(steps, sizes, n_rows, attended[0][layer], attended[1][layer], 0, mixed)
        for row in range(n):
            for i in range(d):
                mixed[row, i] += hidden[row, i]
            _normalise(mixed[row], norms[layer], epsilon, hidden[row])
            _round_row(hidden[row], widen[2][layer], steps[row], sizes[row], limits)
        for first in range(0, n_rows, WIDE_ROWS):
            part = min(WIDE_ROWS, n_rows - first)
            for column in range(0, wide_steps.shape[1], block):
                _multiply(steps[first:], sizes[first:], part, widen[0][layer], widen[1][layer], column, wide)
                # What is behind the last token is left as it is: it would grow from layer to layer.
                for row in range(min(part, n - first)):
                    _gelu(wide[row])
                    size = wide_sizes[row, column // block * n_sizes :]
                    _round_row(wide[row], narrow[2][layer, column:], wide_steps[row, column:], size, limits)
            _multiply(wide_steps, wide_sizes, part, narrow[0][layer], narrow[1][layer], 0, mixed[first:])
        for row in range(n):
            for i in range(d):
                mixed[row, i] += hidden[row, i]
            _normalise(mixed[row], norms[layer, 2:], epsilon, hidden[row])
            if layer + 1 < len(norms):
                _round_row(hidden[row], project[2][layer + 1], steps[row], sizes[row], limits)
    if not is_pooled:
        for row in range(n):
            for i in range(d):
                found[row, i] = hidden[row, i]
        return
    start = 0
    for text, length in enumerate(lengths):
        for i in range(d):
            found[text, i] = 0
        for row in range(start, start + length):
            for i in range(d):
                found[text, i] += hidden[row, i]
        for i in range(d):
            found[text, i] /= np.float32(length)
        start += length


def _multiply(
    steps: _Array, sizes: _Array, n_rows: int, weights: _Array, columns: _Array, first: int, out: _Array
) -> None:
    """Multiply rows of steps, a whole number of tiles, by a layer's weights: as many columns as `out` has."""
    row_bytes, size_bytes, out_bytes = steps.shape[1] * steps.itemsize, 4 * sizes.shape[1], 4 * out.shape[1]
    for column in range(0, out.shape[1], WIDTH):
        for row in range(0, n_rows, ROWS):
            integer_tile(
                steps.ctypes.data + row * row_bytes,
                row_bytes,
                weights.ctypes.data + (first + column) * row_bytes,
                weights,
                sizes.shape[1],
                row_bytes // 4 // sizes.shape[1],
                sizes.ctypes.data + row * size_bytes,
                size_bytes,
                columns.ctypes.data + 4 * (first + column),
                4 * columns.shape[1],
                out.ctypes.data + row * out_bytes + 4 * column,
                out_bytes,
            )


def _round_row(row: _Array, factors: _Array, steps: _Array, sizes: _Array, limits: tuple[float, float, float]) -> None:
    """Round a row to steps.

    Parameters
    ----------
    factors : by which the row is multiplied before
    sizes : are written: of each chunk's steps
    limits : as `round_block` takes them
    """
    depth = depth_of(len(row))
    n_sizes = LANES if steps.itemsize == 2 else 1
    for block in range(len(row) // (depth * LANES)):
        first = block * depth * LANES
        to, size = steps.ctypes.data + first * steps.itemsize, sizes.ctypes.data + 4 * block * n_sizes
        factor = factors.ctypes.data + 4 * first
        round_block(row.ctypes.data + 4 * first, factor, depth, limits, steps, to, size)


def _normalise(row: _Array, norm: _Array, epsilon: float, out: _Array) -> None:
    """Do a layer norm: `norm` is its weights and its biases, one behind the other."""
    normalise_row(row.ctypes.data, len(row) // LANES, norm.ctypes.data, epsilon, out.ctypes.data)


def _gelu(row: _Array) -> None:
    """Put each number through gelu, in place."""
    end, per_half = np.float32(_GELU_END), np.float32(2 / _GELU_END**2)
    for i in range(len(row)):
        x = min(max(row[i], -end), end)
        t = x * x * per_half - np.float32(1)
        p = ((_GELU[12] * t + _GELU[11]) * t + _GELU[10]) * t + _GELU[9]
        p = (((p * t + _GELU[8]) * t + _GELU[7]) * t + _GELU[6]) * t + _GELU[5]
        p = ((((p * t + _GELU[4]) * t + _GELU[3]) * t + _GELU[2]) * t + _GELU[1]) * t + _GELU[0]
        row[i] *= x * p + np.float32(0.5)


def _exponentiate(scores: _Array, n_keys: int, length: int, factor: np.floating) -> None:
    """Make rows of scores, each padded to `n_keys`, into shares that sum to 1, in place."""
    row_bytes = 4 * n_keys
    for row in range(QUERIES):
        shift_row(scores.ctypes.data + row * row_bytes, n_keys // LANES, length, factor)
    for i in range(len(scores)):
        power = larger(scores[i], np.float32(-120))
        whole = np.rint(power)
        t = (power - whole) * np.float32(2)
        p = ((_POWER[6] * t + _POWER[5]) * t + _POWER[4]) * t + _POWER[3]
        p = ((p * t + _POWER[2]) * t + _POWER[1]) * t + _POWER[0]
        scores[i] = p * float_of_bits((np.int32(whole) + np.int32(127)) << np.int32(23))
    for row in range(QUERIES):
        share_row(scores.ctypes.data + row * row_bytes, n_keys // LANES)


def _attend(projected: _Array, start: int, length: int, heads: int, keys: _Array, scores: _Array, out: _Array) -> None:
    """Let the tokens of a text attend to each other: queries, keys and values lie side by side in `projected`."""
    d = out.shape[1]
    width, n_keys = d // heads, (length + LANES - 1) // LANES * LANES
    row_bytes, out_bytes, key_bytes = 12 * d, 4 * d, 4 * n_keys
    scores = scores[: QUERIES * n_keys]
    factor = np.float32(math.log2(math.e) / math.sqrt(width))
    turned, shares = keys.ctypes.data, scores.ctypes.data
    for head in range(heads):
        column = 4 * width * head
        query = projected.ctypes.data + start * row_bytes + column
        key, value, to = query + 4 * d, query + 8 * d, out.ctypes.data + start * out_bytes + column
        for first in range(0, n_keys, LANES):
            for i in range(0, width, LANES):
                turn(key + first * row_bytes + 4 * i, row_bytes, turned + i * key_bytes + 4 * first, key_bytes)
        for row in range(0, length, QUERIES):
            asking, told = query + row * row_bytes, to + row * out_bytes
            for first in range(0, key_bytes, 4 * LANES):
                float_tile(asking, row_bytes, turned + first, key_bytes, width, shares + first, key_bytes)
            _exponentiate(scores, n_keys, length, factor)
            if width % (2 * LANES) == 0:
                for i in range(0, 4 * width, 8 * LANES):
                    wide_float_tile(shares, key_bytes, value + i, row_bytes, length, told + i, out_bytes)
            else:
                for i in range(0, 4 * width, 4 * LANES):
                    float_tile(shares, key_bytes, value + i, row_bytes, length, told + i, out_bytes)
