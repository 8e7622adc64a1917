"""Forwards that call NumPy's inner loops directly: its ufuncs take 0.2 to 0.4 µs to find the loop that a plan knows."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call_void, clear_float_errors, float_errors, stack
from tapegrad.forward.results import Result, compiled_forward, new_result
from tapegrad.forward.ufuncs import FLOAT_ERRORS
from tapegrad.kernels.elementwise import ARITHMETIC
from tapegrad.kernels.strides import broadcast_strides, coalesce
from tapegrad.recording.native import decref, vectorcall
from tapegrad.runtime.objects import NDArray, Object, Scalar, Ufunc
from tapegrad.runtime.structs import Array, embedded
from tapegrad.tape.layout import Layout, contiguous_strides


class Loop(Result):
    """The words of a forward that calls an inner loop of NumPy."""

    function: int
    data: int
    count: int  # elements of a row
    rows: int
    inline: int  # a bit for each operand that is a number inside an object
    otherwise: Object  # NumPy's way
    strides: Array[int] = embedded()  # of operands and result: within a row, then to the next


# To begin a loop takes a function 10 to 30 ns, for the vectors that it makes of a few elements. NumPy copies short rows
# into one array first.
_FEW_ROWS: Final = 32
_LONG_ROW: Final = 32


def direct(ufunc: Callable[..., Any], layouts: Sequence[Layout], result: Layout) -> Callable[..., Any]:
    """Return the forward of a ufunc for operands of these layouts: its inner loop if the rows are evenly spaced."""
    if not isinstance(ufunc, np.ufunc) or ufunc.signature or (ufunc.nin, ufunc.nout) != (len(layouts), 1):
        return ufunc
    if result.dtype.kind not in "fbiu" or not result.ndim or not result.contiguous:
        return ufunc
    strides = [broadcast_strides(own.shape, own.strides, result.shape) for own in layouts]
    lengths, steps = coalesce(result.shape, [*strides, contiguous_strides(result.shape, result.dtype.itemsize)])
    rows = lengths[0] if len(lengths) == 2 else 1
    # Where an operand's elements lie in reverse, NumPy chooses another order.
    if len(lengths) > 2 or min(map(min, steps)) < 0 or not all(map(_has_words, layouts)):
        return ufunc
    if rows > _FEW_ROWS and lengths[-1] < _LONG_ROW and ufunc not in ARITHMETIC:
        return ufunc
    found = _loop(ufunc, tuple(own.dtype for own in (*layouts, result)))
    if found is None:
        return ufunc
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    within, between = [own[-1] for own in steps], [own[0] for own in steps]
    rest = (*found, lengths[-1], rows, inline, id(ufunc), *within, *between)
    return compiled_forward(run_loop, result.shape, result.dtype, *rest, keep=(ufunc,))


def _has_words(layout: Layout) -> bool:
    """Whether an operand's elements stand in memory, and are real: integers of Python have another form."""
    return layout.dtype.kind == "f" or (layout.dtype.kind in "biu" and not layout.weak)


@functools.lru_cache(maxsize=1024)
def _loop(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> tuple[int, int] | None:
    """Return the addresses of the inner loop for these dtypes and of its data; None if NumPy has no such loop."""
    inside = Ufunc(id(ufunc))
    wanted = [dtype.num for dtype in dtypes]
    codes = ctypes.string_at(inside.types, inside.ntypes * inside.nargs)
    for number in range(inside.ntypes):
        first = number * inside.nargs
        function = inside.functions.unchecked(number)
        if list(codes[first : first + inside.nargs]) == wanted and function:
            return function, inside.data.unchecked(number) if inside.data else 0
    return None


def run_loop(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Call the loop and return its result; 0 if Python raised. NumPy reports floating-point errors as usual."""
    words = Loop(self.data)
    out = new_result(words)
    if out == 0:
        return 0
    loop_into(words, args, nargs, out.data)
    if float_errors(FLOAT_ERRORS) != 0:
        decref(out)
        return vectorcall(words.otherwise, args, nargs, 0)
    return out


def loop_into(words: Loop, args: Array[Object], nargs: int, target: Array[int]) -> None:
    """Call the loop, which writes to a target. It may set flags of floating errors."""
    places, count = Array[int](stack(64)), Array[int](stack(8))
    begins = Array[int](stack(64))  # of the row: SciPy's loops write to the places that they get
    for number in range(nargs):
        value = args[number]
        places[number] = begins[number] = Scalar(value).value if words.inline >> number & 1 else NDArray(value).data
    places[nargs] = begins[nargs] = target
    count[0] = words.count
    if float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)
    within, rows = words.strides, words.rows
    between = within.at(nargs + 1)
    for row in range(rows):
        call_void(words.function, places, count, within, words.data)
        for number in range(nargs + 1 if row + 1 < rows else 0):
            begins[number] += between[number]
            places[number] = begins[number]
