"""Which elements depend on which unknowns, as boolean matrices, and what is done with their rows, all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.sparse import csr_array, vstack

__all__ = [
    "TooDense",
    "among",
    "check",
    "chosen",
    "empty",
    "gathered",
    "line_of",
    "matrix",
    "spread",
    "stacked",
    "unit",
    "united",
]


_MOST: Final = 400_000_000  # elements of a pattern


class TooDense(ValueError):  # noqa: N818  # it is about matrices
    """A pattern has so many elements that a sparse matrix is of no use."""


def check(count: int) -> None:
    """Raise `TooDense` if there would be too many elements."""
    if count > _MOST:
        raise TooDense(f"its results would depend on {count} unknowns in all")


def matrix(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_array:
    """Return the matrix with elements at these places, each of which may be named more than once."""
    found = csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    found.sort_indices()
    return found


def unit(start: int, count: int, width: int) -> csr_array:
    """Return rows of which each depends on the next unknown."""
    return csr_array(
        (np.ones(count, bool), np.arange(start, start + count, dtype=np.int32), np.arange(count + 1, dtype=np.int32)),
        shape=(count, width),
    )


def empty(count: int, width: int) -> csr_array:
    """Return rows that depend on nothing."""
    return csr_array((count, width), dtype=bool)


def stacked(parts: Sequence[csr_array]) -> csr_array:
    """Return the rows of several matrices."""
    return parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr", dtype=bool))


def gathered(rows: csr_array, places: np.ndarray) -> csr_array:
    """Return the rows at these places, empty ones for negative places."""
    if len(places) == rows.shape[0] and (places == np.arange(len(places))).all():
        return rows
    lengths = np.diff(rows.indptr)
    counts = np.where(places < 0, 0, lengths[places]) if len(lengths) else np.zeros(len(places), np.int64)
    ends = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    check(int(ends[-1]))
    starts = np.where(places < 0, 0, rows.indptr[:-1][places]) if len(lengths) else counts
    at = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], counts)
    return csr_array((np.ones(ends[-1], bool), rows.indices[at], ends), shape=(len(places), rows.shape[1]))


def united(parts: Sequence[csr_array]) -> csr_array:
    """Return rows that depend on what any of several rows depends on."""
    total = parts[0]
    for part in parts[1:]:
        if part is not total and not _is_same(part, total):
            total = csr_array(total + part)
    return total


def _is_same(one: csr_array, two: csr_array) -> bool:
    return bool(
        one.nnz == two.nnz and np.array_equal(one.indptr, two.indptr) and np.array_equal(one.indices, two.indices)
    )


def spread(rows: csr_array, shape: tuple[int, ...], to: tuple[int, ...]) -> csr_array:
    """Return the rows of an array that is broadcast."""
    if shape == to:
        return rows
    return gathered(rows, np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), to).reshape(-1))


def line_of(shape: tuple[int, ...], dims: Sequence[int]) -> np.ndarray:
    """Return for each element the number of the line, or block, along dimensions that it stands in."""
    kept = tuple([1 if k in dims else length for k, length in enumerate(shape)])
    return np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).reshape(-1)


def among(rows: csr_array, group: np.ndarray, count: int) -> csr_array:
    """Return for each group of rows what any of them depends on."""
    return chosen(matrix(group, np.arange(len(group)), (count, len(group))), rows)


def chosen(which: csr_array, rows: csr_array) -> csr_array:
    """Return what any of several rows depends on; each row of a matrix says which."""
    check(int(np.diff(rows.indptr)[which.indices].sum(dtype=np.int64)))
    found = csr_array(which @ rows)
    found.sort_indices()
    return found
