"""Forwards of our own on rows, where NumPy is slow: for each row it begins a loop anew, in 10 ns or more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import native, pool
from tapegrad.intrinsics import clear_float_errors, float_errors, get, memset, put, stack
from tapegrad.kernels import broadcast_strides, coalesce, loop_step, sum_step
from tapegrad.layout import Layout, contiguous_strides
from tapegrad.native import DATA, new_integer, release_gil, take_gil
from tapegrad.plan import ARRAY
from tapegrad.steps import iterate
from tapegrad.ufuncs import FLOAT_ERRORS

_RULES: Final[dict[Any, Callable[..., Any]]] = {
    np.add: lambda x, y: x + y,
    np.subtract: lambda x, y: x - y,
    np.multiply: lambda x, y: x * y,
    np.true_divide: lambda x, y: x / y,
}
# Elements of rows from which on NumPy is as fast, and of arrays for which a kernel is not worth its compilation.
_LONG: Final = 64
_LONG_SUM: Final = 256
_SMALL: Final = 256
# Of rows that are taken column by column, and of columns.
_LONG_IN_COLUMNS: Final = 24
_SHORT_COLUMN: Final = 512

KERNEL, ZEROED, DIMS = range(3)  # words of a forward: bytes that are zeroed first, or 0; the dims stand at the end


def elementwise(function: Callable[..., Any], layouts: Sequence[Layout]) -> Callable[..., Any]:
    """Return what computes a ufunc of two operands: the ufunc itself, unless they are broadcast along short rows."""
    rule = _RULES.get(function)
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
    step = loop_step(f"forward-{function.__name__}", rule, shape, operands, (dtype.name, in_order))
    return _computed(step.kernel(), step.dims, False, shape, dtype, function)


def sums(layout: Layout, dim: Sequence[int], shape: tuple[int, ...], otherwise: Callable[..., Any]) -> Any:
    """Return what sums over dimensions to a result of this shape: `otherwise`, unless rows are short."""
    if layout.dtype.kind != "f" or not layout.contiguous or not layout.size or not shape:
        return otherwise
    row, summed = 1, None  # elements at the end that are all summed, or all kept
    for place, length in reversed(list(enumerate(layout.shape))):
        if length > 1:
            if summed is not None and summed != (place in dim):
                break
            row, summed = row * length, place in dim
    if row >= _LONG_SUM:
        return otherwise
    kept = tuple(1 if place in dim else length for place, length in enumerate(layout.shape))
    kernel, dims = sum_step(layout.shape, kept, layout.dtype)
    return _computed(kernel(), dims, bool(dims[0]), shape, layout.dtype, otherwise)


def _computed(
    kernel: int, dims: np.ndarray, adds: bool, shape: tuple[int, ...], dtype: np.dtype, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what runs a kernel into a new array; where floating point fails, NumPy does it again, and says so."""
    nbytes = math.prod(shape) * dtype.itemsize
    run = native.load(run_kernel, np.array([kernel, nbytes if adds else 0, *dims]))
    empty: Any = pool.empty if nbytes >= pool.THRESHOLD else np.empty

    def forward(*values: Any, **attrs: Any) -> Any:
        out = empty(shape, dtype)
        return otherwise(*values, **attrs) if run(*values, out) else out

    return forward


def run_kernel(self: int, args: int, nargs: int) -> int:
    """Run a kernel on arrays, the last of which it writes; return the errors of floating point."""
    words, places = get(self, DATA), stack(128)
    for number in range(nargs):
        put(places, number, get(get(args, number), DATA))
    zeroed = get(words, ZEROED)
    thread = release_gil()
    clear_float_errors(FLOAT_ERRORS)
    if zeroed != 0:
        memset(get(places, nargs - 1), zeroed)
    iterate(get(words, KERNEL), places, nargs, words + 8 * DIMS, 1 if zeroed != 0 else 0)
    found = float_errors(FLOAT_ERRORS)
    take_gil(thread)
    status: int = new_integer(found)
    return status


def extremum(function: np.ufunc, x: np.ndarray, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return the largest or smallest elements along dimensions; those of short rows column by column."""
    if dim == (x.ndim - 1,) and 1 < x.shape[-1] < _LONG_IN_COLUMNS and x.size >= _SHORT_COLUMN * x.shape[-1]:
        found = function(x[..., :1], x[..., 1:2])
        for column in range(2, x.shape[-1]):
            function(found, x[..., column : column + 1], out=found)
        return found if keepdim else found[..., 0]
    return function.reduce(x, axis=dim, keepdims=keepdim)
