"""NumPy's loops, called without the ufuncs around them: those take 0.2 to 0.4 µs to find out what a plan knows."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call_void, clear_float_errors, float_errors, get, put, stack
from tapegrad.forward.results import RESULT_WORDS, Words, new_result, words_for
from tapegrad.forward.ufuncs import FLOAT_ERRORS
from tapegrad.kernels.elementwise import ARITHMETIC, broadcast_strides, coalesce
from tapegrad.tape.layout import OBJECT_HEADER, Layout, contiguous_strides
from tapegrad.tape.native import DATA, drop, load, vectorcall


class _Ufunc(ctypes.Structure):
    """The beginning of PyUFuncObject, which is a part of NumPy's C API."""

    _fields_ = [
        ("references", ctypes.c_ssize_t), ("type", ctypes.c_void_p), ("nin", ctypes.c_int), ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int), ("identity", ctypes.c_int), ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)), ("ntypes", ctypes.c_int), ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_byte)),
    ]  # fmt: skip


# Words of a forward, after those about its result: the loop and its data, elements of a row, rows, the operands that
# are numbers inside objects, NumPy's way, and at the end the steps of operands and result: within a row, to the next.
LOOP, LOOP_DATA, COUNT, ROWS, INLINE, OTHERWISE, STRIDES = range(RESULT_WORDS, RESULT_WORDS + 7)
# To begin a loop takes a function 10 to 30 ns, for the vectors that it makes of a few elements. NumPy copies short rows
# into one array first.
_FEW_ROWS: Final = 32
_LONG_ROW: Final = 32


def direct(ufunc: Callable[..., Any], layouts: Sequence[Layout], result: Layout) -> Callable[..., Any]:
    """Return what computes a ufunc on operands of these layouts: its loop, if that goes over rows evenly."""
    if not isinstance(ufunc, np.ufunc) or ufunc.signature or (ufunc.nin, ufunc.nout) != (len(layouts), 1):
        return ufunc
    if result.dtype.kind not in "fb" or not result.ndim or not result.contiguous:
        return ufunc
    strides = [broadcast_strides(own.shape, own.strides, result.shape) for own in layouts]
    lengths, steps = coalesce(result.shape, [*strides, contiguous_strides(result.shape, result.dtype.itemsize)])
    rows = lengths[0] if len(lengths) == 2 else 1
    # Where an operand's elements lie in reverse, NumPy chooses another order.
    if len(lengths) > 2 or min(map(min, steps)) < 0 or any(own.dtype.kind != "f" for own in layouts):
        return ufunc
    if rows > _FEW_ROWS and lengths[-1] < _LONG_ROW and ufunc not in ARITHMETIC:
        return ufunc
    found = _loop(ufunc, tuple(own.dtype for own in (*layouts, result)))
    if found is None:
        return ufunc
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    within, between = [own[-1] for own in steps], [own[0] for own in steps]
    rest = (*found, lengths[-1], rows, inline, id(ufunc), *within, *between)
    words = words_for(result.shape, result.dtype, *rest, keep=(ufunc,))
    if len(lengths) == 1:
        words.like = _of_shape
    return load(run_loop, words)


def _of_shape(words: Words, shape: tuple[int, ...]) -> Callable[..., Any]:
    """Return the same loop over the elements of a result of another shape."""
    own = words.of_shape(shape)
    own[COUNT] = math.prod(shape)
    return load(run_loop, own)


@functools.lru_cache(maxsize=1024)
def _loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[int, int] | None:
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
    out = new_result(words)
    if out == 0:
        return 0
    for number in range(nargs):
        value = get(args, number)
        put(places, number, value + OBJECT_HEADER if get(words, INLINE) >> number & 1 else get(value, DATA))
    put(places, nargs, get(out, DATA))
    put(count, 0, get(words, COUNT))
    if float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)
    within, rows = words + 8 * STRIDES, get(words, ROWS)
    between = within + 8 * (nargs + 1)
    for row in range(rows):
        call_void(get(words, LOOP), places, count, within, get(words, LOOP_DATA))
        for number in range(nargs + 1 if row + 1 < rows else 0):
            put(places, number, get(places, number) + get(between, number))
    if float_errors(FLOAT_ERRORS) != 0:
        drop(out)
        return vectorcall(get(words, OTHERWISE), args, nargs, 0)
    return out
