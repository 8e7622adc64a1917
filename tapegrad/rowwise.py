"""Forwards of our own where NumPy is slow: on short rows, for each of which it begins a loop anew, and sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import native, pool
from tapegrad.intrinsics import clear_float_errors, float_errors, get, memset, put, stack
from tapegrad.kernels import ARITHMETIC, broadcast_strides, coalesce, loop_step, sum_step
from tapegrad.layout import Layout, contiguous_strides
from tapegrad.native import DATA, drop, new_object, release_gil, take_gil, vectorcall
from tapegrad.plan import ARRAY
from tapegrad.steps import iterate
from tapegrad.ufuncs import FLOAT_ERRORS

# Elements of rows from which on NumPy is as fast, and of arrays for which a kernel is not worth its compilation.
_LONG: Final = 64
_SMALL: Final = 256
# Of rows that are taken column by column, and of columns.
_LONG_IN_COLUMNS: Final = 24
_SHORT_COLUMN: Final = 512

# Words of a forward: the bytes of a result that is added to, or 0; the type of one that is a scalar, or 0; the dims at
# the end.
KERNEL, ZEROED, SCALAR, SHAPE, DTYPE, EMPTY, OTHERWISE, DIMS = range(8)


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
    return _computed(step.kernel(), step.dims, False, shape, dtype, function)


def sums(layout: Layout, dim: Sequence[int], shape: tuple[int, ...], otherwise: Callable[..., Any]) -> Any:
    """Return what sums over dimensions to a result of this shape: `otherwise`, unless the memory is in order."""
    if layout.dtype.kind != "f" or not layout.contiguous or not layout.size or not layout.ndim:
        return otherwise
    kept = tuple(1 if place in dim else length for place, length in enumerate(layout.shape))
    kernel, dims = sum_step(layout.shape, kept, layout.dtype)
    return _computed(kernel(), dims, bool(dims[0]), shape, layout.dtype, otherwise)


class _Words(np.ndarray):
    """Words, and the objects whose addresses stand in them."""

    objects: tuple[object, ...]


def _computed(
    kernel: int, dims: np.ndarray, adds: bool, shape: tuple[int, ...], dtype: np.dtype, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what runs a kernel into a new array; where floating point fails, NumPy does it again, and says so."""
    nbytes = math.prod(shape) * dtype.itemsize
    scalar = dtype.type if not shape else None
    objects = (shape, dtype, pool.empty if nbytes >= pool.THRESHOLD else np.empty, otherwise)
    words = np.array([kernel, nbytes if adds else 0, id(scalar) if scalar else 0, *map(id, objects), *dims])
    own = words.view(_Words)
    own.objects = objects
    return native.load(compute, own)


def compute(self: int, args: int, nargs: int) -> int:
    """Return the result of a kernel on arrays: a new array, or NumPy's scalar object; 0 if Python raised."""
    words, places, value = get(self, DATA), stack(128), stack(16)
    for number in range(nargs):
        put(places, number, get(get(args, number), DATA))
    out = 0
    if get(words, SCALAR) == 0:
        out = vectorcall(get(words, EMPTY), words + 8 * SHAPE, 2, 0)
        if out == 0:
            return out
        put(places, nargs, get(out, DATA))
    else:
        put(value, 0, 0)
        put(places, nargs, value)
    zeroed = get(words, ZEROED)
    thread = release_gil()
    clear_float_errors(FLOAT_ERRORS)
    if zeroed != 0:
        memset(get(places, nargs), zeroed)
    iterate(get(words, KERNEL), places, nargs + 1, words + 8 * DIMS, 1 if zeroed != 0 else 0)
    found = float_errors(FLOAT_ERRORS)
    take_gil(thread)
    if found != 0:
        if out != 0:
            drop(out)
        return vectorcall(get(words, OTHERWISE), args, nargs, 0)
    if get(words, SCALAR) != 0:
        out = new_object(get(words, SCALAR), 0)
        if out != 0:
            put(out, DATA, get(value, 0))
    return out


def extremum(function: np.ufunc, x: np.ndarray, dim: tuple[int, ...], keepdim: bool) -> Any:
    """Return the largest or smallest elements along dimensions; those of short rows column by column."""
    if dim == (x.ndim - 1,) and 1 < x.shape[-1] < _LONG_IN_COLUMNS and x.size >= _SHORT_COLUMN * x.shape[-1]:
        found = function(x[..., :1], x[..., 1:2])
        for column in range(2, x.shape[-1]):
            function(found, x[..., column : column + 1], out=found)
        return found if keepdim else found[..., 0]
    return function.reduce(x, axis=dim, keepdims=keepdim)
