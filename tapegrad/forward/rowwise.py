"""Forwards of our own where NumPy is slow: sums, and operands broadcast along rows, each a loop of its own in NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.kernels.elementwise import ARITHMETIC, loop_step
from tapegrad.kernels.extrema import rows_extremum
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.kernels.sums import sum_step
from tapegrad.recording.steps import ARRAY
from tapegrad.runtime.blocking import is_streamed
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_strides, dtype_name

# Elements of arrays for which a kernel is not worth its compilation; of rows whose extrema NumPy finds as fast.
_SMALL: Final = 256
_LONG_FOR_EXTREMA: Final = 128


def elementwise(function: Callable[..., Any], layouts: Sequence[Layout]) -> Callable[..., Any]:
    """Return the forward of a ufunc of two operands: ours if one is broadcast along rows, else the ufunc."""
    rule = ARITHMETIC.get(function)
    if rule is None or any(own.inline or own.weak or own.dtype != layouts[0].dtype for own in layouts):
        return function
    x, y = layouts
    if x.shape == y.shape and x.contiguous and y.contiguous:
        return function
    dtype, shape = x.dtype, broadcast_shape(x.shape, y.shape)
    if dtype.kind != "f" or math.prod(shape) < _SMALL:
        return function
    in_order = contiguous_strides(shape, dtype.itemsize)
    strides = [*(broadcast_strides(own.shape, own.strides, shape) for own in layouts), in_order]
    lengths, steps = coalesce(shape, strides)
    # Where an operand's neighbours lie elsewhere, NumPy chooses another order.
    if len(lengths) == 1 or any(own[-1] not in (0, dtype.itemsize) for own in steps):
        return function
    operands = [((ARRAY, 0), dtype.name, own) for own in strides[:2]]
    streams = 0 if is_streamed(math.prod(shape) * dtype.itemsize) else None
    name = f"forward-{function.__name__}"
    step = loop_step(name, rule, shape, operands, (dtype.name, in_order), unrolled=True, streams=streams)
    return computed(step.kernel(), step.geometry, shape, dtype, function)


def sums(layout: Layout, dim: Sequence[int], shape: tuple[int, ...], otherwise: Callable[..., Any]) -> Any:
    """Return the forward that sums over dimensions to this shape: ours for contiguous memory, else `otherwise`."""
    if layout.dtype.kind != "f" or not layout.contiguous or not layout.size or not layout.ndim:
        return otherwise
    kept = tuple(1 if place in dim else length for place, length in enumerate(layout.shape))
    kernel, geometry = sum_step(layout.shape, kept, layout.dtype)
    return computed(kernel(), geometry, shape, layout.dtype, otherwise, adds=bool(geometry[0]))


def extrema(function: np.ufunc, layout: Layout, dim: tuple[int, ...], keepdim: bool) -> Callable[..., Any]:
    """Return the forward of the largest or smallest elements along dimensions: a kernel for short rows, else NumPy."""
    by_numpy = functools.partial(function.reduce, axis=dim, keepdims=keepdim)
    length = layout.shape[-1] if dim and dim == (layout.ndim - 1,) else 0
    if not 0 < length <= _LONG_FOR_EXTREMA or not layout.size or layout.dtype.kind != "f" or not layout.contiguous:
        return by_numpy
    shape = (*layout.shape[:-1], 1) if keepdim else layout.shape[:-1]
    kernel = rows_extremum(dtype_name(layout.dtype), function is np.maximum)
    return computed(kernel, [0, layout.size // length, length], shape, layout.dtype, by_numpy)
