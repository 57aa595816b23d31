"""A BERT with products of whole numbers, for processors that multiply those faster than floats.

Numbers are rounded to 16 bits, by step sizes fine enough to stand for float32, or to 8.
"""

import contextlib
import functools
import importlib.util
import logging
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from .core_integer_kernels import MARGIN, WIDE_ROWS, compiled, depth_of, note_of
from .core_integer_tiles import LANES, QUERIES, WIDTH

logger = logging.getLogger(__name__)

# By bits: the most steps that a number may be, the largest norm of a chunk of a text's row in steps, and what is added
# to such a row's steps, which the processor wants without sign in 8 bits. And the largest norm of a weight's chunk: no
# sum of a chunk's products exceeds 2^31 then (Cauchy and Schwarz). Weights have the larger one: what they lose is lost
# in every text, and what rows lose evens out over tokens. Numbers of 8 bits are too small to come near.
_LIMITS = {16: (32_767.0, 37_650.0, 0.0), 8: (127.0, 1e30, 128.0)}
_WEIGHT_NORM = {16: 57_000.0, 8: 1e30}
# How much of the differences between a weight's columns its rows take over.
_EVENNESS = 0.6
# Sizes are multiples of a line of steps of 8 bits.
_LEAST = 4 * LANES
# Tokens that a thread takes through all layers at once: few enough for its cache. And where the end is near, fewer, so
# that threads end together.
_TOKENS, _LEAST_TOKENS = 252, 60

# Bits of the kernels that this process has tried.
_compiled_here: set[int] = set()


class Linear(NamedTuple):
    """The same linear part, (t, k) to (t, n), of all layers.

    steps : ndarray of shape (layers, n * k), int16 or int8: the weights, in the order in which they are read
    columns : ndarray of shape (layers, 2 + blocks, n), float32: of each output the size of its steps, its bias, and
        where its sums begin in each block (int32, as it lies in memory)
    factors : ndarray of shape (layers, k), float32: what the rows are multiplied by before they are rounded
    """

    steps: np.ndarray
    columns: np.ndarray
    factors: np.ndarray


class Layers(NamedTuple):
    """A BERT.

    words, places : ndarrays of shape (v, d) and (p, d), float32: the embeddings of tokens and of their places
    first_norm : ndarray of shape (2, d), float32: weight and bias of the embeddings' norm
    norms : ndarray of shape (layers, 4, d), float32: those of the norms behind the attention and behind the wide part
    project, attended, widen, narrow : the linear parts, in the order of a layer
    heads : of the attention
    epsilon : of the norms
    bits : 16 or 8, of the steps
    """

    words: np.ndarray
    places: np.ndarray
    first_norm: np.ndarray
    norms: np.ndarray
    project: Linear
    attended: Linear
    widen: Linear
    narrow: Linear
    heads: int
    epsilon: float
    bits: int


def have_tools() -> bool:
    """Say whether kernels could run here: on an x86 with VNNI, and with numba."""
    if any(importlib.util.find_spec(name) is None for name in ("numba", "llvmlite")):
        return False
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in ("avx512f", "avx512bw", "avx512vl", "avx512vnni"))


def are_compiled(bits: int) -> bool:
    """Say whether the kernels are compiled already, now or in a process before; otherwise that takes seconds."""
    if not have_tools():
        return False
    note = note_of(bits)
    return bits in _compiled_here or (note is not None and note.exists())


@functools.cache
def has_kernels(bits: int) -> bool:
    """Say whether the kernels run here: they are tried once, and so compiled."""
    if not have_tools():
        return False
    zeros = np.zeros((4, _LEAST), np.float32)
    project, other = (
        round_linear([np.zeros((n, _LEAST), np.float32)], [np.zeros(n, np.float32)], bits) for n in (3 * _LEAST, _LEAST)
    )
    layers = Layers(zeros, zeros, zeros[:2], zeros[None], project, other, other, other, heads=1, epsilon=1.0, bits=bits)
    try:
        embed_tokens(layers, np.zeros(1, np.int32), [1], 1)
    # What numba or LLVM cannot do on a machine is not known beforehand.
    except Exception:
        logger.warning("Kernels for whole numbers could not be compiled; torch does the work.", exc_info=True)
        return False
    _compiled_here.add(bits)
    note = note_of(bits)
    if note is not None:
        with contextlib.suppress(OSError):
            note.touch()
    return True


def fits(d: int, wide: int, heads: int) -> bool:
    """Say whether the kernels do layers of such sizes."""
    return d % _LEAST == 0 and wide % _LEAST == 0 and d % heads == 0 and d // heads % LANES == 0


def round_linear(weights: Sequence[np.ndarray], biases: Sequence[np.ndarray], bits: int, first: int = 0) -> Linear:
    """Round the same linear part of all layers: weights (n, k) and biases (n,).

    Parameters
    ----------
    first : of the outputs that matter most; they decide the factors
    """
    factors = np.stack([_factors(weight[first:]) for weight in weights])
    rounded = [_round_weight(weight / own, bits) for weight, own in zip(weights, factors, strict=True)]
    # In each panel of columns, in the order in which a row's steps are read: chunk by chunk in 16 bits, line by line in
    # 8 bits. And, column by column, what one instruction multiplies side by side.
    lines = depth_of(weights[0].shape[1]) * bits // 32
    order = (0, 2, 5, 3, 1, 4) if bits == 16 else (0, 2, 3, 5, 1, 4)
    packed = [
        steps.reshape(len(steps) // WIDTH, WIDTH, -1, lines, 32 // bits, LANES).transpose(order).reshape(-1)
        for steps, _ in rounded
    ]
    columns = []
    for (steps, sizes), bias in zip(rounded, biases, strict=True):
        # Takes back what is added to the steps of a text's rows, in each chunk of 8 bits.
        starts = -_LIMITS[bits][2] * steps.reshape(len(steps), -1, lines * 32 // bits * LANES).sum(2, dtype=np.int64)
        columns.append(np.stack([sizes, bias, *starts.T.astype(np.int32, order="C").view(np.float32)]))
    room = _aligned((len(packed), len(packed[0])), packed[0].dtype)
    room[:] = packed
    return Linear(room, np.stack(columns), factors)


def _factors(weight: np.ndarray) -> np.ndarray:
    """Find what to multiply rows by, and to divide a weight (n, k) by, so that its columns differ less: (k,).

    Where rows are large, weights tend to be small. The nearer both are to even, the smaller are their steps.
    """
    norms = np.linalg.norm(weight.astype(np.float64), axis=0)
    norms = np.maximum(norms, max(norms.mean() / 1000, 1e-30))
    factors: np.ndarray = (norms / norms.mean()) ** _EVENNESS
    return factors.astype(np.float32)


def _round_weight(weight: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Round each row of a weight to steps; returns them and their sizes."""
    most, norm = _LIMITS[bits][0], _WEIGHT_NORM[bits]
    weight = weight.astype(np.float64)
    chunks = weight.reshape(len(weight), -1, depth_of(weight.shape[1]), LANES)
    norms = np.sqrt((chunks**2).sum(2)).max((1, 2))
    sizes = np.maximum(np.maximum(np.abs(weight).max(1) / most, norms / norm), 1e-30)
    return np.rint(weight / sizes[:, None]).astype(f"int{bits}"), sizes.astype(np.float32)


def tokens_at_once(n_threads: int) -> int:
    """Say how many tokens keep so many threads busy."""
    return 32 * _TOKENS * n_threads


def embed_tokens(
    layers: Layers, ids: np.ndarray, lengths: Sequence[int], n_threads: int, *, is_pooled: bool = False
) -> np.ndarray:
    """Give the contextual embeddings of texts that lie one behind the other: (t,) to (t, d), float32.

    Parameters
    ----------
    ids : ndarray of shape (t,), int32
    lengths : of each text
    n_threads : how many work at once; it does not change the numbers
    is_pooled : give the mean of each text instead: (n, d)

    Raises
    ------
    IndexError
        If a token or a place has no embedding.
    """
    sizes = np.asarray(lengths, np.int64)
    # Compiled code does not look where it reads.
    if ids.min(initial=0) < 0 or ids.max(initial=0) >= len(layers.words):
        raise IndexError(f"ids must be from 0 to {len(layers.words) - 1}. Got {ids.min()} to {ids.max()}.")
    if sizes.max(initial=0) > len(layers.places):
        raise IndexError(f"lengths must be at most {len(layers.places)}. Got {sizes.max()}.")
    kernel, found = compiled(), np.empty((len(sizes if is_pooled else ids), layers.words.shape[1]), np.float32)
    tables = (layers.words, layers.places, layers.first_norm, layers.norms)
    linears = tuple(map(tuple, (layers.project, layers.attended, layers.widen, layers.narrow)))
    numbers = (layers.heads, np.float32(layers.epsilon), tuple(map(np.float32, _LIMITS[layers.bits])))
    parts = _parts(sizes, n_threads)
    most = max((tokens.stop - tokens.start for _, tokens in parts), default=0)
    waiting = iter(parts)

    def work() -> None:
        room = _make_room(layers, most, int(sizes.max(initial=1)))
        # To take the next of a list is one step, so threads may do it at once.
        for texts, tokens in waiting:
            own = found[texts if is_pooled else tokens]
            kernel(ids[tokens], sizes[texts], tables, linears, *numbers, room, is_pooled, own)

    n_threads = min(n_threads, len(parts))
    if n_threads < 2:
        work()
    else:
        # Of this call alone: a forked process would have none of those of a pool that lasts.
        with ThreadPoolExecutor(n_threads) as pool:
            for done in [pool.submit(work) for _ in range(n_threads)]:
                done.result()
    return found


def _parts(lengths: np.ndarray, n_threads: int) -> list[tuple[slice, slice]]:
    """Cut a row of texts into parts for one thread: for each, which texts and which tokens."""
    ends = np.cumsum(lengths)
    parts, first, start = [], 0, 0
    while first < len(lengths):
        share = (int(ends[-1]) - start) // (2 * n_threads)
        most = start + min(_TOKENS, max(_LEAST_TOKENS, share))
        last = max(first + 1, int(np.searchsorted(ends, most, side="right")))
        stop = int(ends[last - 1])
        parts.append((slice(first, last), slice(start, stop)))
        first, start = last, stop
    return parts


def _make_room(layers: Layers, tokens: int, longest: int) -> tuple[np.ndarray, ...]:
    """Make the arrays that a thread works in, for so many tokens at once and a text of so many."""
    d, wide = layers.words.shape[1], layers.widen.columns.shape[2]
    rows, wide_rows, keys = tokens + MARGIN, WIDE_ROWS + MARGIN, -(-longest // LANES) * LANES
    blocks, n_sizes = [n // LANES // depth_of(n) for n in (d, wide)], LANES if layers.bits == 16 else 1
    steps: Any = np.int16 if layers.bits == 16 else np.uint8
    shapes: list[tuple[tuple[int, ...], Any]] = [
        ((rows, d), np.float32),
        ((rows, d), np.float32),
        ((rows, 3 * d), np.float32),
        ((rows, d), steps),
        ((rows, blocks[0] * n_sizes), np.float32),
        ((wide_rows, wide // blocks[1]), np.float32),
        ((wide_rows, wide), steps),
        ((wide_rows, blocks[1] * n_sizes), np.float32),
        ((d // layers.heads * keys,), np.float32),
        ((QUERIES * keys,), np.float32),
    ]
    return tuple(_aligned(shape, dtype) for shape, dtype in shapes)


def _aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Make an array of zeros that begins at a line of the cache."""
    line, n_bytes = 64, math.prod(shape) * np.dtype(dtype).itemsize
    block = np.zeros(n_bytes + line, np.uint8)
    start = -block.ctypes.data % line
    return block[start : start + n_bytes].view(dtype).reshape(shape)
