"""Forwards of our own where NumPy is slow: on short rows, for each of which it begins a loop anew, and sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.elementwise import ARITHMETIC, broadcast_strides, coalesce, loop_step, sum_step
from tapegrad.layout import Layout, contiguous_strides
from tapegrad.plan import ARRAY

# Elements of rows from which on NumPy is as fast, and of arrays for which a kernel is not worth its compilation.
_LONG: Final = 64
_SMALL: Final = 256
# Of rows that are taken column by column, and of columns.
_LONG_IN_COLUMNS: Final = 24
_SHORT_COLUMN: Final = 512


def elementwise(function: Callable[..., Any], layouts: Sequence[Layout]) -> Callable[..., Any]:
    """Return what computes a ufunc of two operands: the ufunc itself, unless they are broadcast along short rows."""
    rule = ARITHMETIC.get(function)
    if rule is None or any(own.inline or own.weak or own.dtype != layouts[0].dtype for own in layouts):
        return function
    dtype, shape = layouts[0].dtype, np.broadcast_shapes(*(own.shape for own in layouts))
    if dtype.kind != "f" or math.prod(shape) < _SMALL:
        return function
    in_order = contiguous_strides(shape, dtype.itemsize)
    strides = [*(broadcast_strides(own.shape, own.strides, shape) for own in layouts), in_order]
    lengths, steps = coalesce(shape, strides)
    # Where an operand's neighbours lie elsewhere, NumPy chooses another order.
    if len(lengths) == 1 or lengths[-1] >= _LONG or any(own[-1] not in (0, dtype.itemsize) for own in steps):
        return function
    operands = [((ARRAY, 0), dtype.name, own) for own in strides[:2]]
    step = loop_step(f"forward-{function.__name__}", rule, shape, operands, (dtype.name, in_order), unrolled=True)
    return computed(step.kernel(), step.dims, shape, dtype, function)


def sums(layout: Layout, dim: Sequence[int], shape: tuple[int, ...], otherwise: Callable[..., Any]) -> Any:
    """Return what sums over dimensions to a result of this shape: `otherwise`, unless the memory is in order."""
    if layout.dtype.kind != "f" or not layout.contiguous or not layout.size or not layout.ndim:
        return otherwise
    kept = tuple(1 if place in dim else length for place, length in enumerate(layout.shape))
    kernel, dims = sum_step(layout.shape, kept, layout.dtype)
    return computed(kernel(), dims, shape, layout.dtype, otherwise, adds=bool(dims[0]))


def extremum(function: np.ufunc, x: np.ndarray, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return the largest or smallest elements along dimensions; those of short rows column by column."""
    if dim == (x.ndim - 1,) and 1 < x.shape[-1] < _LONG_IN_COLUMNS and x.size >= _SHORT_COLUMN * x.shape[-1]:
        found = function(x[..., :1], x[..., 1:2])
        for column in range(2, x.shape[-1]):
            function(found, x[..., column : column + 1], out=found)
        return found if keepdim else found[..., 0]
    return function.reduce(x, axis=dim, keepdims=keepdim)
