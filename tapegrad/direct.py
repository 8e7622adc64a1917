"""NumPy's loops, called without the ufuncs around them: those take 0.2 to 0.4 µs to find out what a plan knows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.computed import Words
from tapegrad.intrinsics import call_void, clear_float_errors, float_errors, get, put, stack
from tapegrad.layout import OBJECT_HEADER, Layout
from tapegrad.native import DATA, drop, load, vectorcall
from tapegrad.ufuncs import FLOAT_ERRORS


class _Ufunc(ctypes.Structure):
    """The beginning of PyUFuncObject, which is a part of NumPy's C API."""

    _fields_ = [
        ("references", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("nin", ctypes.c_int), ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int), ("identity", ctypes.c_int), ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)), ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_byte)),
    ]  # fmt: skip


# Words of a forward: the loop and its data, elements, the operands that are numbers inside objects, what makes the
# result, NumPy's way, and at the end the steps.
LOOP, LOOP_DATA, COUNT, INLINE, SHAPE, DTYPE, EMPTY, OTHERWISE, STRIDES = range(9)


def direct(ufunc: Callable[..., Any], layouts: Sequence[Layout], result: Layout) -> Callable[..., Any]:
    """Return what computes a ufunc on operands of these layouts: its loop, if one goes over all elements at once."""
    if not isinstance(ufunc, np.ufunc) or ufunc.signature or (ufunc.nin, ufunc.nout) != (len(layouts), 1):
        return ufunc
    if result.dtype.kind not in "fb" or not result.ndim or not result.contiguous:
        return ufunc
    strides = []
    for own in layouts:
        whole = own.shape == result.shape and own.contiguous
        if own.dtype.kind != "f" or not (whole or own.size == 1):
            return ufunc
        strides.append(own.dtype.itemsize if whole else 0)
    found = _loop(ufunc, [own.dtype for own in (*layouts, result)])
    if found is None:
        return ufunc
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    objects = (result.shape, result.dtype, np.empty, ufunc)
    words = np.array([*found, result.size, inline, *map(id, objects), *strides, result.dtype.itemsize]).view(Words)
    words.objects = objects
    return load(run_loop, words)


def _loop(ufunc: np.ufunc, dtypes: Sequence[np.dtype]) -> tuple[int, int] | None:
    """Return the addresses of the loop for these dtypes, and of its data; None if there is none."""
    inside = _Ufunc.from_address(id(ufunc))
    if inside.name is None or inside.name.decode() != ufunc.__name__ or inside.ntypes != ufunc.ntypes:
        return None  # not what it says in NumPy's header
    wanted = [dtype.num for dtype in dtypes]
    for number in range(inside.ntypes):
        first = number * inside.nargs
        if inside.types[first : first + inside.nargs] == wanted and inside.functions[number]:
            return inside.functions[number], inside.data[number] or 0 if inside.data else 0
    return None


def run_loop(self: int, args: int, nargs: int) -> int:
    """Return the result of a loop on operands; 0 if Python raised. After an error of floating point NumPy says so."""
    words, places, count = get(self, DATA), stack(64), stack(8)
    out = vectorcall(get(words, EMPTY), words + 8 * SHAPE, 2, 0)
    if out == 0:
        return 0
    for number in range(nargs):
        value = get(args, number)
        put(places, number, value + OBJECT_HEADER if get(words, INLINE) >> number & 1 else get(value, DATA))
    put(places, nargs, get(out, DATA))
    put(count, 0, get(words, COUNT))
    if float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)
    call_void(get(words, LOOP), places, count, words + 8 * STRIDES, get(words, LOOP_DATA))
    if float_errors(FLOAT_ERRORS) != 0:
        drop(out)
        return vectorcall(get(words, OTHERWISE), args, nargs, 0)
    return out
