"""Layouts: the interned shape, dtype and strides of a value, known before any array is looked at."""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from numpy.typing import DTypeLike

# The first field behind CPython's object header (reference count and type).  A NumPy array keeps its data
# pointer there; a Python float, a Python complex and a NumPy scalar keep the value itself.
OBJECT_HEADER: Final = 16


class Layout:
    """Shape, dtype and strides of a value, and whether a gradient is wanted for it.

    Two values of the same layout share one object, so that ``is`` compares layouts and a dictionary finds
    everything that was worked out about them before.  Each layout has a `plain` and a `tracked` form; a tensor
    that requires grad carries the tracked one.

    Attributes
    ----------
    shape, strides : tuple of int
        As in NumPy; strides in bytes.
    dtype : numpy.dtype
    inline : bool
        The value is a scalar object (a Python or NumPy number), which holds its data inside the object instead of
        pointing to it.
    weak : bool
        A Python number, which takes part in an operation with the other operand's dtype.
    """

    __slots__ = (
        "contiguous", "dtype", "floating", "inline", "nbytes", "ndim", "plain", "requires_grad", "shape", "size",
        "strides", "tracked", "weak",
    )  # fmt: skip

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    inline: bool
    weak: bool
    floating: bool
    requires_grad: bool
    ndim: int
    size: int
    nbytes: int
    contiguous: bool
    plain: Layout
    tracked: Layout

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, inline: bool, weak: bool
    ) -> None:
        self.shape, self.strides, self.dtype, self.inline, self.weak = shape, strides, dtype, inline, weak
        self.ndim = len(shape)
        self.size = 1
        for length in shape:
            self.size *= length
        self.nbytes = self.size * dtype.itemsize
        self.floating = dtype.kind in "fc"
        self.contiguous = strides == contiguous_strides(shape, dtype.itemsize) or self.size <= 1
        self.requires_grad = False
        self.plain = self
        self.tracked = self

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{'' if self.contiguous else f' strides {list(self.strides)}'}"


_layouts: dict[tuple[object, ...], Layout] = {}


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array.

    >>> contiguous_strides((2, 3), 8)
    (24, 8)
    """
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to; of up to 64 dimensions, where `numpy.broadcast_shapes` takes 32.

    Raises
    ------
    ValueError
        If they do not.

    >>> broadcast_shape((2, 1), (3,))
    (2, 3)
    """
    lengths = []
    for own in itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        length = next((length for length in own if length != 1), 1)
        if any(other not in (1, length) for other in own):
            raise ValueError(f"shapes {shapes} do not broadcast")
        lengths.append(length)
    return tuple(reversed(lengths))


def intern(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: DTypeLike, *, inline: bool = False, weak: bool = False
) -> Layout:
    """Return the one plain `Layout` with these properties."""
    key = (shape, strides, dtype, inline, weak)
    layout = _layouts.get(key)
    if layout is None:
        layout = Layout(shape, strides, np.dtype(dtype), inline, weak)
        if layout.floating and not weak:
            tracked = Layout(shape, strides, np.dtype(dtype), inline, weak)
            tracked.requires_grad = True
            tracked.plain, tracked.tracked, layout.tracked = layout, tracked, tracked
        layout = _layouts.setdefault(key, layout)
    return layout


def layout_of(value: np.ndarray | np.generic | complex) -> Layout:
    """Return the plain layout of an array, of a NumPy scalar, or of a Python number."""
    if isinstance(value, np.ndarray):
        return intern(value.shape, value.strides, value.dtype)
    if isinstance(value, np.generic):
        return intern((), (), value.dtype, inline=True)
    return intern((), (), np.dtype(type(value)), inline=True, weak=True)


# Python numbers as operands.  An int is turned into a float before it is recorded, so one layout serves both.
FLOAT: Final = intern((), (), np.dtype(np.float64), inline=True, weak=True)
COMPLEX: Final = intern((), (), np.dtype(np.complex128), inline=True, weak=True)
INTEGER: Final = intern((), (), np.dtype(np.int64), inline=True, weak=True)
BOOL: Final = intern((), (), np.dtype(np.bool_), inline=True, weak=True)
