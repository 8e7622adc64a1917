"""Colours of columns, rows or unknowns: those of one colour are found by one sweep. The loops are compiled.

- Columns of a Jacobian of one colour have no row in common: one product with their sum has all their elements, as each
  row has at most one of them (A. R. Curtis, M. J. D. Powell and J. K. Reid, J. Inst. Math. Appl. 13, 117, 1974). Rows
  by columns, likewise.
- A Hessian is symmetric, so that an element may be read in its row or in its column. It is enough that neighbours
  differ, and that no path over four unknowns has two colours: a star colouring (T. F. Coleman and J. J. Moré, Math.
  Program. 28, 243, 1984; A. H. Gebremedhin, F. Manne and A. Pothen, SIAM Rev. 47, 629, 2005, algorithm 4.1).

The first colour that fits is taken, for what has most elements first.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy.sparse import csr_array

from tapegrad.compiler.cache import address_of
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.structs import Array

__all__ = ["Coloring", "of_hessian", "of_jacobian"]

_WORK: Final = 400_000_000  # steps of a compiled loop, some seconds


class Coloring(NamedTuple):
    """Colours, and what has them.

    Attributes
    ----------
    kind : str
        ``"columns"``, ``"rows"``, or ``"symmetric"``: unknowns of a Hessian, of whose elements some are read in the
        other triangle.
    colors : numpy.ndarray
        From 0.
    """

    kind: str
    colors: np.ndarray

    @property
    def n_colors(self) -> int:
        """How many colours, and so sweeps, there are."""
        return int(self.colors.max(initial=-1)) + 1


def color_partners(
    order: Array[int], starts: Array[int], rows: Array[int], ends: Array[int], columns: Array[int],
    colors: Array[int], marks: Array[int], count: int,
) -> int:  # fmt: skip
    """Colour columns so that those with a row in common differ.

    `starts` and `rows` have the rows of each column, `ends` and `columns` the columns of each row.
    """
    for turn in range(count):
        column = order[turn]
        for at in range(starts[column], starts[column + 1]):
            row = rows[at]
            for place in range(ends[row], ends[row + 1]):
                color = colors[columns[place]]
                if color >= 0:
                    marks[color] = column
        color = 0
        while marks[color] == column:
            color += 1
        colors[column] = color
    return 0


def color_stars(
    order: Array[int], starts: Array[int], others: Array[int], colors: Array[int], marks: Array[int], count: int
) -> int:
    """Colour unknowns so that neighbours differ, and no path over four has two colours; negative ones are colourless.

    `starts` and `others` have the neighbours of each.
    """
    for turn in range(count):
        own = order[turn]
        for at in range(starts[own], starts[own + 1]):
            near = others[at]
            between = colors[near]
            if near != own:
                if between >= 0:
                    marks[between] = own
                for place in range(starts[near], starts[near + 1]):
                    far = others[place]
                    color = colors[far]
                    if far != own and color >= 0 and far != near:
                        is_taken = 0
                        if between < 0:
                            is_taken = 1
                        else:
                            for last in range(starts[far], starts[far + 1]):
                                end = others[last]
                                if end != near and colors[end] == between:
                                    is_taken = 1
                        if is_taken:
                            marks[color] = own
        color = 0
        while marks[color] == own:
            color += 1
        colors[own] = color
    return 0


@functools.cache
def _compiled(function: Callable[..., int], count: int) -> Any:
    address = address_of(function.__name__, function, ("int64",) * count)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(address)


def _words(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, np.int64)


def _call(function: Callable[..., int], arrays: list[np.ndarray], count: int) -> None:
    _compiled(function, len(arrays) + 1)(*[own.ctypes.data for own in arrays], count)


def _of_columns(pattern: csr_array) -> np.ndarray | None:
    """Return colours of the columns; None if that takes too long."""
    count = pattern.shape[1]
    lengths = np.diff(pattern.indptr).astype(np.int64)
    if (lengths * lengths).sum() > _WORK:
        return None
    turned = pattern.tocsc()
    weights = np.asarray(turned.T.astype(np.int64) @ lengths)  # how many columns each meets
    colors, marks = np.full(count, -1, np.int64), np.full(count + 1, -1, np.int64)
    arrays = [_words(own) for own in (turned.indptr, turned.indices, pattern.indptr, pattern.indices)]
    order = _words(np.argsort(-weights, kind="stable"))
    _call(color_partners, [order, *arrays, colors, marks], count)
    return colors


def of_jacobian(pattern: csr_array) -> Coloring:
    """Return a colouring of the columns or of the rows of a Jacobian, of whichever has fewer colours."""
    transposed = csr_array(pattern.T.tocsr())
    ways = [("columns", pattern, transposed.shape[0]), ("rows", transposed, pattern.shape[0])]
    # There are at least as many colours of columns as elements in a row.
    least = [int(np.diff(own.indptr).max(initial=0)) for _, own, _ in ways]
    found: Coloring | None = None
    for way in np.argsort(least, kind="stable"):
        kind, own, count = ways[way]
        if found is not None and found.n_colors <= least[way]:
            continue
        colors = _of_columns(own)
        other = Coloring(kind, np.arange(count) if colors is None else colors)
        if found is None or other.n_colors < found.n_colors:
            found = other
    assert found is not None
    return found


def of_hessian(pattern: csr_array) -> Coloring:
    """Return a colouring of the unknowns of a Hessian, whose pattern is symmetric."""
    count = pattern.shape[0]
    degrees = np.diff(pattern.indptr).astype(np.int64)
    order = np.argsort(-degrees, kind="stable")
    work = (degrees * degrees)[order]
    # The unknowns with most neighbours get colours of their own, so that the others take little time.
    n_hubs = int(np.searchsorted(-np.cumsum(work[::-1])[::-1], -_WORK // 8))
    hubs = np.zeros(count, bool)
    hubs[order[:n_hubs]] = True
    inner = pattern
    if n_hubs:
        places = pattern.tocoo()
        kept = ~(hubs[places.row] | hubs[places.col])
        inner = csr_array((places.data[kept], (places.row[kept], places.col[kept])), shape=pattern.shape)
    colors, marks = np.full(count, -1, np.int64), np.full(count + 1, -1, np.int64)
    arrays = [_words(own) for own in (order[n_hubs:], inner.indptr, inner.indices)]
    _call(color_stars, [*arrays, colors, marks], count - n_hubs)
    colors[order[:n_hubs]] = colors.max(initial=-1) + 1 + np.arange(n_hubs)
    stars = Coloring("symmetric", colors)
    if int(degrees.max(initial=0)) < stars.n_colors:
        plain = _of_columns(pattern)
        if plain is not None and Coloring("rows", plain).n_colors <= stars.n_colors:
            return Coloring("rows", plain)
    return stars
