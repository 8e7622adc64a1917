"""Layouts: the interned shape, dtype and strides of a value, known before any array is looked at."""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections import deque
from typing import Any, Final

import numpy as np

from tapegrad.runtime import state
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.lengths import Length, Trace

# The first field behind CPython's object header (reference count and type).  A NumPy array keeps its data
# pointer there; a Python float, a Python complex and a NumPy scalar keep the value itself.
OBJECT_HEADER: Final = 16


class Layout:
    """Shape, dtype and strides of a value, and whether a gradient is wanted for it.

    Two values of the same layout share one object, so that ``is`` compares layouts and a dictionary finds
    everything that was worked out about them before.  Each layout has a `plain` and a `tracked` form; a tensor
    that requires grad carries the tracked one.

    A layout lives as long as a tensor, a plan or a node refers to it. Compiled code compares layouts by
    address: whatever keeps such an address keeps the layout too.

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
    kind : int
        All but the lengths: dtype, number of dimensions, contiguous, inline, weak, requires_grad, and whether there
        are no elements, one (in an array without dimensions) or several.
    lengths : tuple of int
        All integers that layouts of one kind differ in.
    """

    __slots__ = (
        "__weakref__", "_plain", "_tracked", "contiguous", "dtype", "floating", "inline", "kind", "lengths", "nbytes",
        "ndim", "requires_grad", "shape", "size", "strides", "weak",
    )  # fmt: skip

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    inline: bool
    weak: bool
    floating: bool
    requires_grad: bool
    kind: int
    lengths: tuple[int, ...]
    ndim: int
    size: int
    nbytes: int
    contiguous: bool
    # No layout refers to itself, and a plain one not to its tracked form: cycles would live until garbage is collected.
    _plain: Layout | None  # of a tracked layout; compiled code reads it
    _tracked: weakref.ref[Layout] | None  # of a plain layout that has one

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, inline: bool, weak: bool
    ) -> None:
        self.shape, self.strides, self.dtype, self.inline, self.weak = shape, strides, dtype, inline, weak
        self.ndim = len(shape)
        self.size = math.prod(shape)
        self.nbytes = self.size * dtype.itemsize
        self.floating = dtype.kind in "fc"
        self.contiguous = self.size <= 1 or strides == contiguous_strides(shape, dtype.itemsize)
        self.requires_grad = False
        several = 3 if self.size > 1 else 0 if not self.size else 2 if not self.ndim else 1
        self.kind = dtype.num << 13 | self.ndim << 6 | self.contiguous << 5 | inline << 4 | weak << 3 | several
        self.lengths = shape if self.contiguous else shape + strides
        self._plain = self._tracked = None

    @property
    def plain(self) -> Layout:
        """The layout of a value for which no gradient is wanted."""
        return self._plain or self

    @property
    def tracked(self) -> Layout:
        """The layout of a value for which a gradient is wanted; itself where there can be none."""
        if self._plain is not None or not self.floating or self.weak:
            return self
        found = self._tracked() if self._tracked is not None else None
        return found if found is not None else _make_tracked(self)

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{'' if self.contiguous else f' strides {list(self.strides)}'}"


Key = tuple[tuple[int, ...], tuple[int, ...], np.dtype, bool, bool]


class _Interned(weakref.ref[Layout]):
    """A layout, for as long as something refers to it, and the key by which it is found."""

    __slots__ = ("key",)
    key: Key


_lock = module_lock()  # a collection in the middle may run a finalizer that computes
_layouts: dict[Key, _Interned] = {}
_dead: list[_Interned] = []  # callbacks append to it; nothing else happens in them
# The layouts that were made last live on: a program may make and drop tensors of the same few in turn.
_recent: deque[Layout] = deque(maxlen=1024)


@functools.lru_cache(maxsize=64)  # to ask NumPy takes 4 µs
def dtype_name(dtype: np.dtype) -> str:
    """Return the name of a dtype.

    >>> dtype_name(np.dtype(np.float64))
    'float64'
    """
    return dtype.name


@functools.lru_cache(maxsize=64)
def itemsize(name: str) -> int:
    """Return the bytes of an element, from the dtype's name.

    >>> itemsize("float32")
    4
    """
    return np.dtype(name).itemsize


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes of a C-contiguous array.

    >>> contiguous_strides((2, 3), 8)
    (24, 8)
    """
    if len(shape) == 1:
        return (itemsize,)
    if len(shape) == 2:
        return (shape[1] or 1) * itemsize, itemsize
    strides = []
    step = itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= length or 1
    return tuple(strides[::-1])


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
    for own in itertools.zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1):
        found = 1
        for length in own:
            if found == 1:
                found = length
            elif length not in (1, found):
                raise ValueError(f"shapes {shapes} do not broadcast")
        lengths.append(found)
    return tuple(lengths[::-1])


def intern(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, *, inline: bool = False, weak: bool = False
) -> Layout:
    """Return the one plain `Layout` with these properties."""
    key = (shape, strides, dtype, inline, weak)
    interned = _layouts.get(key)
    layout = interned() if interned is not None else None
    return layout if layout is not None else _make(key)


def contiguous_layout(shape: tuple[int, ...], dtype: np.dtype) -> Layout:
    """Return the plain layout of a C-contiguous array; of lengths that stand for others one that is not interned."""
    strides = contiguous_strides(shape, dtype.itemsize)
    is_general = any(isinstance(length, Length) for length in shape)
    return Layout(shape, strides, dtype, False, False) if is_general else intern(shape, strides, dtype)


def _make(key: Key) -> Layout:
    with _lock:
        while _dead:
            interned = _dead.pop()
            if _layouts.get(interned.key) is interned:
                del _layouts[interned.key]
        found = _layouts.get(key)
        layout = found() if found is not None else None
        if layout is None:  # another thread may have been faster
            layout = Layout(*key)
            interned = _Interned(layout, _dead.append)
            interned.key = key
            _layouts[key] = interned
            _recent.append(layout)
        return layout


def _make_tracked(plain: Layout) -> Layout:
    with _lock:
        found = plain._tracked() if plain._tracked is not None else None
        if found is None:
            found = object.__new__(Layout)
            found.shape, found.strides, found.dtype = plain.shape, plain.strides, plain.dtype
            found.inline, found.weak, found.floating, found.contiguous = plain.inline, False, True, plain.contiguous
            found.ndim, found.size, found.nbytes, found.lengths = plain.ndim, plain.size, plain.nbytes, plain.lengths
            found.requires_grad, found._plain, found._tracked, found.kind = True, plain, None, plain.kind | 4
            plain._tracked = weakref.ref(found)
            _recent.append(found)
        return found


def general(layout: Layout, trace: Trace) -> Layout:
    """Return a layout that stands for all of its kind; it is not interned, and nothing is to keep it."""
    if not layout.shape:
        return layout
    found: Layout = object.__new__(Layout)
    for name in ("dtype", "inline", "weak", "floating", "ndim", "requires_grad", "kind", "contiguous"):
        setattr(found, name, getattr(layout, name))
    lengths: Any = trace.length  # which counts as an integer here
    found.shape = tuple(map(lengths, layout.shape))
    size = layout.dtype.itemsize
    found.strides = contiguous_strides(found.shape, size) if layout.contiguous else tuple(map(lengths, layout.strides))
    found.size = math.prod(found.shape)
    found.nbytes = found.size * size
    found._plain = found._tracked = None
    return found


state.register("tape.layout: layouts", lambda: len(_layouts) - len(_dead), _recent.clear)


def layout_of(value: np.ndarray | np.generic | complex) -> Layout:
    """Return the plain layout of an array, of a NumPy scalar, or of a Python number."""
    if value.__class__ is np.ndarray or isinstance(value, np.ndarray):
        return intern(value.shape, value.strides, value.dtype)
    if isinstance(value, np.generic):
        return intern((), (), value.dtype, inline=True)
    return intern((), (), np.dtype(type(value)), inline=True, weak=True)


# Python numbers as operands.  An int is turned into a float before it is recorded, so one layout serves both.
FLOAT: Final = intern((), (), np.dtype(np.float64), inline=True, weak=True)
COMPLEX: Final = intern((), (), np.dtype(np.complex128), inline=True, weak=True)
INTEGER: Final = intern((), (), np.dtype(np.int64), inline=True, weak=True)
BOOL: Final = intern((), (), np.dtype(np.bool_), inline=True, weak=True)
