"""Compiled: a constant tensor over an array or another tensor, and the leaf that one becomes by ``requires_grad_()``.

A table remembers the layouts of arrays. The compiled functions serve arrays whose layout is in it, and leave others to
Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import external, stack
from tapegrad.modes import INTERCEPTORS
from tapegrad.recording.native import Lazy, decref, get_item, incref, integer, load, new_integer, new_object, vectorcall
from tapegrad.recording.objects import (
    LayoutObject,
    LeafObject,
    Runtime,
    TensorObject,
    is_tensor,
    new_tensor,
    plain_layout,
    with_runtime,
)
from tapegrad.recording.operands import is_stale
from tapegrad.recording.results import take_slot
from tapegrad.runtime import state
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import ALIGNED, List, NDArray, Object, Tuple, Type
from tapegrad.runtime.structs import WORD, Array, Struct, embedded, sizeof
from tapegrad.tape.entries import Leaf
from tapegrad.tape.layout import Layout
from tapegrad.tape.structs import Entry
from tapegrad.tensor import Tensor

MOST_DIMS: Final = 4
BUCKETS: Final = 256

new_weak_reference: Final = external("PyWeakref_NewRef", 2)


class Bucket(Struct):
    """A bucket of the table: a layout, and the dtype, lengths and strides by which it is found."""

    layout: LayoutObject  # 0 if the bucket is empty
    dtype: Object
    ndim: int
    steps: Array[int] = embedded(2 * MOST_DIMS)  # length and stride of each dimension


class Maker(Struct):
    """The memory behind a function of this file."""

    runtime: Runtime
    table: Array[int]
    lends: int  # whether the tensor gets a view of the array
    ellipsis: Object
    leaf_type: Type
    otherwise: Object  # the Python function for what compiled code does not serve: see `makers`


BUCKET_WORDS: Final = sizeof(Bucket) // WORD
_table: Final = watch(np.zeros(BUCKETS * BUCKET_WORDS, dtype=np.int64), "layouts of arrays")
_held: Final[dict[int, tuple[Layout, np.dtype]]] = {}
_lock = module_lock()


def remember(number: int, array: np.ndarray, layout: Layout) -> None:
    """Put the layout of an array into a bucket of the table, so that compiled code finds it."""
    first, held = number * BUCKET_WORDS, (layout, array.dtype)
    steps = [word for pair in zip(array.shape, array.strides, strict=True) for word in pair]
    words = np.array([id(layout), id(array.dtype), array.ndim, *steps])
    with _lock:
        _table[first] = 0  # an exception in the middle leaves it empty
        _held[number] = held
        _table[first : first + len(words)] = words
        if _held.get(number) is not held:  # a finalizer in the middle put another one there
            _table[first] = 0


def _forget() -> None:
    with _lock:
        _table[:] = 0
        _held.clear()


state.register("recording.leaves: layouts of arrays", lambda: len(_held), _forget)


def makers(
    owner: Callable[..., Any], borrower: Callable[..., Any], leaf: Callable[..., Any], detached: Callable[..., Any]
) -> Lazy[Tensor]:
    """Return four compiled functions: ``owner(array)``, ``borrower(array)``, ``leaf(tensor)``, ``detached(tensor)``.

    The first two return a constant tensor: an owner has the array itself, a borrower a view of it. The third lets the
    tensor require grad, and returns it. The last returns a constant tensor with the tensor's array.

    Parameters
    ----------
    owner, borrower, leaf, detached : callable
        Do the same in Python, for arguments that compiled code does not serve. The first two take a second argument if
        the layout may be remembered: the number of a bucket, for `remember`.
    """
    return Lazy(
        owner=lambda: load(tensor_over, _maker(False, owner)),
        borrower=lambda: load(tensor_over, _maker(True, borrower)),
        leaf=lambda: load(as_leaf, _maker(False, leaf), "requires_grad_", leaf.__doc__ or ""),
        detached=lambda: load(detached_from, _maker(False, detached), "detach", detached.__doc__ or ""),
    )


def _maker(lends: bool, otherwise: Callable[..., Any]) -> np.ndarray:
    return with_runtime("what makes tensors", _table.ctypes.data, lends, ..., Leaf, otherwise)  # fields of `Maker`


def tensor_over(self: NDArray, args: Array[NDArray], nargs: int) -> Any:
    """Return a constant tensor over an array; 0 if Python raised."""
    maker, array = Maker(self.data), args[0]
    if nargs != 1 or array.type != maker.runtime.array_type or array.flags & ALIGNED == 0 or array.ndim > MOST_DIMS:
        return vectorcall(maker.otherwise, args, nargs, 0)
    number, ndim = (array.dtype >> 4) + (array.dtype >> 12), array.ndim
    for dim in range(ndim):
        length = array.shape[dim]
        number = 31 * number + length + (length >> 6) + array.strides[dim]
    number &= BUCKETS - 1
    bucket = Bucket(maker.table.at(number * BUCKET_WORDS))
    same = 1 if bucket.layout != 0 and bucket.dtype == array.dtype and bucket.ndim == ndim else 0
    for dim in range(ndim * same):
        if array.shape[dim] != bucket.steps[2 * dim] or array.strides[dim] != bucket.steps[2 * dim + 1]:
            same = 0
            break
    if same == 0:
        pair = Array[Object](stack(16))
        pair[0] = Object(array)
        pair[1] = Object(new_integer(number))
        result = vectorcall(maker.otherwise, pair, 2, 0)
        decref(pair[1])
        return result
    layout, data = bucket.layout, array
    incref(layout)
    if maker.lends != 0:
        data = NDArray(get_item(array, maker.ellipsis))
        if data == 0:
            decref(layout)
            return 0
    else:
        incref(data)
    incref(maker.runtime.none)
    return new_tensor(maker.runtime, data, layout, maker.runtime.none)


def detached_from(self: NDArray, args: Array[TensorObject], nargs: int) -> Any:
    """Return a constant tensor with the array of a tensor; 0 if Python raised."""
    maker = Maker(self.data)
    runtime = maker.runtime
    if nargs != 1 or runtime.mode.bits & INTERCEPTORS or is_tensor(runtime, args[0].type) == 0:
        return vectorcall(maker.otherwise, args, nargs, 0)
    tensor = args[0]
    data, layout = tensor.data, tensor.layout
    if data == 0 or layout == 0 or data.type != runtime.array_type:
        return vectorcall(maker.otherwise, args, nargs, 0)
    layout = plain_layout(runtime, layout)
    incref(data)
    incref(layout)
    incref(runtime.none)
    return new_tensor(runtime, data, layout, runtime.none)


def as_leaf(self: NDArray, args: Array[TensorObject], nargs: int, names: Tuple) -> Any:
    """Let a constant tensor require grad, and return it; 0 if Python raised."""
    maker = Maker(self.data)
    runtime = maker.runtime
    if nargs != 1 or names != 0 or is_tensor(runtime, args[0].type) == 0:
        return vectorcall(maker.otherwise, args, nargs, names)
    tensor = args[0]
    if tensor.data == 0 or tensor.layout == 0:
        return vectorcall(maker.otherwise, args, nargs, names)
    plain = tensor.layout
    is_new = tensor.node == runtime.none and is_stale(runtime, tensor) == 0
    if is_new == 0 or tensor.data.type != runtime.array_type or plain.tracked == runtime.none:
        return vectorcall(maker.otherwise, args, nargs, 0)
    layout = LayoutObject(vectorcall(plain.tracked, 0, 0, 0))
    if layout == runtime.none:
        decref(layout)
        return vectorcall(maker.otherwise, args, nargs, 0)
    number = take_slot(runtime)
    if number == 0:
        decref(layout)
        return 0
    page = runtime.recorder.page
    incref(page)
    reference = Object(new_weak_reference(tensor, 0))
    leaf = LeafObject(new_object(maker.leaf_type, 0) if reference != 0 else 0)
    if leaf == 0:
        decref(layout)
        decref(number)
        decref(page)
        if reference != 0:
            decref(reference)
        return 0
    incref(runtime.none)
    incref(runtime.none)
    leaf.number = number
    leaf.page = page
    leaf.tensor = reference
    leaf.hooks = runtime.none
    leaf.post_hooks = runtime.none
    entry = Entry(integer(number))
    entry.node = List(leaf)
    tensor.layout = layout
    tensor.node = Object(leaf)
    decref(plain)
    decref(runtime.none)
    incref(tensor)
    return tensor
