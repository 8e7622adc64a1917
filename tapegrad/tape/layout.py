"""Layouts: interned objects that hold the shape, dtype and strides of a value."""

from __future__ import annotations

import functools
import itertools
import math
import weakref
from collections import deque
from typing import Any, Final

import numpy as np

from tapegrad import dtypes, errors
from tapegrad.pass_modes import is_inference_mode_enabled
from tapegrad.runtime import state
from tapegrad.runtime.locks import module_lock
from tapegrad.tape.lengths import Length, Trace

# Bytes of CPython's object header (reference count and type). Behind it a NumPy array has its data pointer; a Python
# float, a Python complex and a NumPy scalar have the value itself.
OBJECT_HEADER: Final = 16


class Layout:
    """Shape, dtype and strides of a value, and whether a gradient is wanted for it.

    Values of the same layout share one object. So ``is`` compares layouts, and a layout's identity serves as a key.
    Each layout has a `plain` and a `tracked` form; a tensor that requires grad has the tracked one.

    A layout lives as long as a tensor, a plan or a node refers to it. Compiled code compares layouts by address:
    everything that stores such an address holds the layout too.

    Attributes
    ----------
    shape, strides : tuple of int
        As in NumPy; strides in bytes.
    dtype : numpy.dtype
    inline : bool
        The value is a scalar object (a Python or NumPy number): its data stand inside the object.
    weak : bool
        The value is a Python number: operations convert it to the other operand's dtype.
    contiguous : bool
        The elements stand one after the other, in order; whatever the strides of dimensions of length 1 are.
    kind : int
        Everything except the lengths: dtype, number of dimensions, contiguous, inline, weak, requires_grad, and
        whether there are no elements, one (in an array without dimensions) or several.
    lengths : tuple of int
        The integers in which layouts of one kind differ.
    """

    __slots__ = (
        "__weakref__", "_inference", "_plain", "_tracked", "contiguous", "dtype", "floating", "inline", "kind",
        "lengths", "nbytes", "ndim", "requires_grad", "shape", "size", "strides", "weak",
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
    # A plain layout has only a weak reference to its tracked form, as cycles would live until garbage collection.
    _plain: Layout | None  # of a tracked layout; compiled code reads it
    _tracked: weakref.ref[Layout] | None  # of a plain layout that has one
    _inference: InferenceLayout  # of a plain layout that has one: see `inference`

    def __init__(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, inline: bool, weak: bool
    ) -> None:
        self.shape, self.strides, self.dtype, self.inline, self.weak = shape, strides, dtype, inline, weak
        self.ndim = ndim = len(shape)
        self.size = size = math.prod(shape)
        itemsize = dtype.itemsize
        self.nbytes = size * itemsize
        self.floating = dtype.kind in "fc"
        self.contiguous = contiguous = size <= 1 or _have_no_gaps(shape, strides, itemsize)
        self.requires_grad = False
        several = 3 if size > 1 else 0 if not size else 2 if not ndim else 1
        self.kind = dtype.num << 13 | ndim << 6 | contiguous << 5 | inline << 4 | weak << 3 | several
        self.lengths = shape if contiguous else shape + strides
        self._plain = self._tracked = None

    @property
    def plain(self) -> Layout:
        """The layout of a value for which no gradient is wanted."""
        return self._plain or self

    @property
    def tracked(self) -> Layout:
        """The layout of a value for which a gradient is wanted; the layout itself if its dtype allows none."""
        if self._plain is not None or not self.floating or self.weak:
            return self
        tracked = self._tracked() if self._tracked is not None else None
        return tracked if tracked is not None else _make_tracked(self)

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}{'' if self.contiguous else f' strides {list(self.strides)}'}"


Key = tuple[tuple[int, ...], tuple[int, ...], np.dtype, bool, bool]


class _Interned(weakref.ref[Layout]):
    """A weak reference to a layout, with its key in `_layouts`."""

    __slots__ = ("key",)
    key: Key


_lock = module_lock()  # a collection in the middle may run a finalizer that computes
_layouts: dict[Key, _Interned] = {}
_dead: list[_Interned] = []  # callbacks only append to it
# The newest layouts stay alive: a program may make and drop tensors of the same few layouts in turn.
_recent: deque[Layout] = deque(maxlen=1024)


@functools.lru_cache(maxsize=64)  # asking NumPy takes 4 µs
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


def _have_no_gaps(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements stand one after the other, in order. Nobody uses the strides of dimensions of length 1."""
    if strides == contiguous_strides(shape, itemsize):
        return True
    pairs = [pair for pair in zip(shape, strides, strict=True) if pair[0] != 1]
    return tuple([stride for _, stride in pairs]) == contiguous_strides(tuple([own for own, _ in pairs]), itemsize)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to. `numpy.broadcast_shapes` takes 32 dimensions, this function 64.

    Raises
    ------
    ValueError
        If they do not broadcast.

    >>> broadcast_shape((2, 1), (3,))
    (2, 3)
    """
    result = []
    for lengths in itertools.zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1):
        longest = 1
        for length in lengths:
            if longest == 1:
                longest = length
            elif length not in (1, longest):
                raise ValueError(f"shapes {shapes} do not broadcast")
        result.append(longest)
    return tuple(result[::-1])


def intern(
    shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, *, inline: bool = False, weak: bool = False
) -> Layout:
    """Return the one plain `Layout` with these properties."""
    key = (shape, strides, dtype, inline, weak)
    interned = _layouts.get(key)
    layout = interned() if interned is not None else None
    return layout if layout is not None else _make(key)


def contiguous_layout(shape: tuple[int, ...], dtype: np.dtype) -> Layout:
    """Return the plain layout of a C-contiguous array. It is not interned if a length stands for others (`Length`)."""
    strides = contiguous_strides(shape, dtype.itemsize)
    is_general = any(isinstance(length, Length) for length in shape)
    return Layout(shape, strides, dtype, False, False) if is_general else intern(shape, strides, dtype)


def _make(key: Key) -> Layout:
    with _lock:
        while _dead:
            interned = _dead.pop()
            if _layouts.get(interned.key) is interned:
                del _layouts[interned.key]
        reference = _layouts.get(key)
        layout = reference() if reference is not None else None
        if layout is None:  # another thread may have been faster
            shape, strides, dtype, inline, weak = key
            layout = Layout(shape, strides, dtypes.canonical(dtype), inline, weak)
            interned = _Interned(layout, _dead.append)
            interned.key = key
            _layouts[key] = interned
            _recent.append(layout)
        return layout


def _make_tracked(plain: Layout) -> Layout:
    with _lock:
        tracked = plain._tracked() if plain._tracked is not None else None
        if tracked is None:
            tracked = object.__new__(Layout)
            tracked.shape, tracked.strides, tracked.dtype = plain.shape, plain.strides, plain.dtype
            tracked.ndim, tracked.size, tracked.nbytes = plain.ndim, plain.size, plain.nbytes
            tracked.inline, tracked.weak, tracked.floating = plain.inline, False, True
            tracked.contiguous, tracked.kind = plain.contiguous, plain.kind | 4
            tracked.lengths = plain.lengths
            tracked.requires_grad, tracked._plain, tracked._tracked = True, plain, None
            plain._tracked = weakref.ref(tracked)
            _recent.append(tracked)
        return tracked


class InferenceLayout(Layout):
    """The layout of a tensor that was computed in inference mode. No plan of normal tensors has it."""

    __slots__ = ()


def check_flag(layout: Layout) -> None:
    """Raise an error if a tensor of inference mode is to require grad outside of the mode."""
    if layout.__class__ is InferenceLayout and not is_inference_mode_enabled():
        raise RuntimeError(errors.INFERENCE_FLAG)


def inference(layout: Layout) -> InferenceLayout:
    """Return the layout of a tensor of inference mode with the properties of a plain layout."""
    if isinstance(layout, InferenceLayout):
        return layout
    try:
        return layout._inference
    except AttributeError:
        twin = InferenceLayout(layout.shape, layout.strides, layout.dtype, layout.inline, layout.weak)
        layout._inference = twin
        return layout._inference  # another thread may have been faster


def general(layout: Layout, trace: Trace) -> Layout:
    """Return a layout that stands for all layouts of its kind. It is not interned; keep it no longer than the trace."""
    if not layout.shape:
        return layout
    twin: Layout = object.__new__(Layout)
    for name in ("dtype", "inline", "weak", "floating", "ndim", "requires_grad", "kind", "contiguous"):
        setattr(twin, name, getattr(layout, name))
    length: Any = trace.length  # its result counts as an integer here
    least = 0 if not layout.size else 2 if layout.size > 1 and layout.ndim == 1 else 1  # as `kind` says
    twin.shape = tuple([length(extent, least) for extent in layout.shape])
    size = layout.dtype.itemsize
    twin.strides = contiguous_strides(twin.shape, size) if layout.contiguous else tuple(map(length, layout.strides))
    twin.size = math.prod(twin.shape)
    twin.nbytes = twin.size * size
    twin._plain = twin._tracked = None
    return twin


state.register("tape.layout: layouts", lambda: len(_layouts) - len(_dead), _recent.clear)


def layout_of(value: np.ndarray | np.generic | complex) -> Layout:
    """Return the plain layout of an array, of a NumPy scalar, or of a Python number."""
    if value.__class__ is np.ndarray or isinstance(value, np.ndarray):
        key = (value.shape, value.strides, value.dtype, False, False)  # as `intern` does: a call less for each result
        interned = _layouts.get(key)
        layout = interned() if interned is not None else None
        return layout if layout is not None else _make(key)
    if isinstance(value, np.generic):
        return intern((), (), value.dtype, inline=True)
    return intern((), (), np.dtype(type(value)), inline=True, weak=True)


# Layouts of Python numbers.
FLOAT: Final = intern((), (), np.dtype(np.float64), inline=True, weak=True)
COMPLEX: Final = intern((), (), np.dtype(np.complex128), inline=True, weak=True)
INTEGER: Final = intern((), (), np.dtype(np.int64), inline=True, weak=True)
BOOL: Final = intern((), (), np.dtype(np.bool_), inline=True, weak=True)
