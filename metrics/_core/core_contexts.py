"""Contexts: what the texts of a set answer, such as a prompt, and embeddings of the texts without it."""

from typing import Any

import numpy as np

from .core_inputs import LIMITS, TextSets, as_list, check_characters, parse_embeddings
from .core_numbers import NUMBERS, unit_vectors


def parse_contexts(contexts: Any, sets: TextSets) -> list[str]:
    """Read the context of each set: m strings, "" for a set without one, also for None and a blank string.

    One flat set may have a bare string. Raises a TypeError or ValueError that names the set if a context is not a
    string or None, or there is not one for each set.
    """
    if isinstance(contexts, str) and not sets.nested and len(sets.sizes) == 1:
        contexts = [contexts]
    values = as_list(contexts, "contexts", "a list with a string, or None, for each set")
    if len(values) != len(sets.sizes):
        raise ValueError(f"contexts must have an entry for each of {len(sets.sizes)} sets. Got {len(values)}.")
    texts = ["" if value is None else value for value in values]
    check_characters(texts, lambda i: f"contexts[{i}]")
    return [text if text.strip() else "" for text in texts]


def parse_context_rows(values: Any, sets: TextSets, d: int) -> np.ndarray:
    """Read the embedding of the context of each set: (m, d), float64, zero for a set without one, which is None.

    One flat set may have a bare vector. Raises as `parse_embeddings`.
    """
    name, n_sets = "context_embeddings", len(sets.sizes)
    rows = list(values) if isinstance(values, (list, tuple)) else values
    is_vector = isinstance(rows[0], NUMBERS) if isinstance(rows, list) and rows else getattr(rows, "ndim", None) == 1
    if is_vector and n_sets == 1 and not sets.nested:
        rows = [rows]
    is_missing = np.zeros(n_sets, dtype=bool)
    if isinstance(rows, list) and len(rows) == n_sets:
        is_missing = np.array([row is None for row in rows])
        rows = [np.ones(d) if row is None else row for row in rows]
    one_each = TextSets([""] * n_sets, np.ones(n_sets, dtype=np.int64), nested=True)
    matrix = parse_embeddings(rows, one_each, name).astype(np.float64)
    if matrix.shape[1] != d:
        raise ValueError(f"{name} must have {d} columns, as embeddings. Got {matrix.shape[1]}.")
    matrix[is_missing] = 0.0
    return matrix


def project(rows: np.ndarray, contexts: np.ndarray, sizes: np.ndarray, error: float) -> np.ndarray:
    """Remove from the embedding of each text its component along that of the context of its set.

    Texts that answer one prompt share the prompt, and what they share is not diversity. A unit row e becomes
    e - (e·c)c, scaled to unit length, for the unit row c of the context. A row with nothing else, to within the error
    of unit rows, stays e: it equals its copies, and is orthogonal to each row that lost the component.

    Parameters
    ----------
    rows : ndarray of shape (n, d), non-zero, set after set
    contexts : ndarray of shape (m, d), float64, zero for a set without one, whose rows stay as they are
    sizes : ndarray of shape (m,), the number of rows of each set
    error : of ROW_ERRORS

    Returns
    -------
    ndarray of shape (n, d), of the type of `rows`, all of length 1
    """
    projected, directions = np.empty_like(rows), unit_vectors(contexts)
    set_of = np.repeat(np.arange(len(sizes)), sizes)
    for start in range(0, len(rows), LIMITS.block_rows):
        part = slice(start, start + LIMITS.block_rows)
        vectors, along = unit_vectors(rows[part]), directions[set_of[part]]
        rest = vectors - (vectors * along).sum(axis=1, keepdims=True) * along
        lengths = np.linalg.norm(rest, axis=1, keepdims=True)
        projected[part] = np.where(lengths > error, unit_vectors(rest), vectors)
    return projected
