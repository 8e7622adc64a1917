"""Forwards of our own where NumPy is slow: sums, and operands broadcast along rows, each a loop of its own in NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.forward.computed import computed
from tapegrad.forward.results import finished, is_draft
from tapegrad.kernels.elementwise import ARITHMETIC, loop_step
from tapegrad.kernels.extrema import rows_extremum
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.kernels.sums import sum_step
from tapegrad.recording.steps import ARRAY
from tapegrad.runtime.blocking import is_streamed
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_layout, contiguous_strides, dtype_name

# Elements of arrays for which a kernel is not worth its compilation; of rows whose extrema NumPy finds as fast.
_SMALL: Final = 256
_MANY: Final = 1024  # elements that are not contiguous, of which a copy pays, and in whose sums rounding shows
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
    """Return the forward that sums over dimensions to this shape: ours for contiguous memory, and for copies of other.

    Where these do not pay, it is `otherwise`.
    """
    # `computed` has no words for complex numbers that are no arrays.
    fits = layout.dtype.kind == "f" or (layout.dtype.kind == "c" and layout.contiguous and shape)
    if not fits or not layout.size or not layout.ndim:
        return otherwise
    if not layout.contiguous:
        is_slow = layout.ndim > 1 and layout.size >= _MANY
        return _sums_in_any_order(layout, dim, shape, otherwise) if is_slow else otherwise
    kept = tuple(1 if place in dim else length for place, length in enumerate(layout.shape))
    kernel, geometry = sum_step(layout.shape, kept, layout.dtype)
    return computed(kernel(), geometry, shape, layout.dtype, otherwise, adds=bool(geometry[0]))


def _sums_in_any_order(layout: Layout, dim: Sequence[int], shape: tuple[int, ...], by_numpy: Any) -> Any:
    """Return the forward for memory with gaps or in another order of dimensions: those are put in order, then copied.

    NumPy adds such rows to each other in the operand's own precision, which costs digits, and longer than a copy.
    """
    if 0 in layout.strides:  # a copy of what is repeated may be of any size
        if layout.dtype.itemsize == 8:
            return by_numpy
        wide = functools.partial(by_numpy, dtype=np.float64)
        return lambda x: wide(x).astype(layout.dtype)
    order = sorted(range(layout.ndim), key=lambda place: min(layout.strides[place], -layout.strides[place]))
    in_order = contiguous_layout(tuple(layout.shape[place] for place in order), layout.dtype)
    summed = tuple(place for place, own in enumerate(order) if own in dim)
    kept = tuple(1 if place in summed else length for place, length in enumerate(in_order.shape))
    otherwise = functools.partial(np.add.reduce, axis=summed, keepdims=bool(shape))
    total = sums(in_order, summed, kept if shape else (), otherwise)
    turned = _Turned(total, tuple(order), tuple(np.argsort(order).tolist()), shape)
    return turned if is_draft(total) else turned.made()


class _Turned(NamedTuple):
    """The forward of a sum whose operand's dimensions are put in order; a draft, if the sum is a draft."""

    total: Any
    order: tuple[int, ...]
    back: tuple[int, ...]
    shape: tuple[int, ...]

    def made(self) -> Callable[..., Any]:
        total, order, back, shape = self
        total = finished(total)
        if not shape:
            return lambda x: total(np.ascontiguousarray(x.transpose(order)))
        return lambda x: total(np.ascontiguousarray(x.transpose(order))).transpose(back).reshape(shape)


def extrema(function: np.ufunc, layout: Layout, dim: tuple[int, ...], keepdim: bool) -> Callable[..., Any]:
    """Return the forward of the largest or smallest elements along dimensions: a kernel for short rows, else NumPy."""
    by_numpy = functools.partial(function.reduce, axis=dim, keepdims=keepdim)
    length = layout.shape[-1] if dim and dim == (layout.ndim - 1,) else 0
    if not 0 < length <= _LONG_FOR_EXTREMA or not layout.size or layout.dtype.kind != "f" or not layout.contiguous:
        return by_numpy
    shape = (*layout.shape[:-1], 1) if keepdim else layout.shape[:-1]
    kernel = rows_extremum(dtype_name(layout.dtype), function is np.maximum)
    return computed(kernel, [0, layout.size // length, length], shape, layout.dtype, by_numpy)
