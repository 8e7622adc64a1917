"""Forwards that are kernels of ours, as functions of CPython's own kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.compiler.intrinsics import call, clear_float_errors, float_errors, get, memset, put, stack
from tapegrad.forward.results import RESULT_WORDS, new_result, words_for
from tapegrad.forward.ufuncs import FLOAT_ERRORS
from tapegrad.kernels.geometry import iterate
from tapegrad.tape import native
from tapegrad.tape.native import DATA, drop, new_object, release_gil, take_gil, vectorcall

# Words of a forward, after those about its result: the bytes of one that is added to, or 0; the type of one that is a
# scalar, or 0; NumPy's way; the dims at the end.
KERNEL, ZEROED, SCALAR, OTHERWISE, BY_STATUS, DIMS = range(RESULT_WORDS, RESULT_WORDS + 6)


def computed(
    kernel: int,
    dims: np.ndarray,
    shape: tuple[int, ...],
    dtype: np.dtype,
    otherwise: Callable[..., Any],
    *,
    adds: bool = False,
    by_status: bool = False,
    keep: tuple[Any, ...] = (),
) -> Callable[..., Any]:
    """Return what computes a result of this shape and dtype from arrays.

    Parameters
    ----------
    kernel : int
        Address.
    dims : numpy.ndarray
    otherwise : callable
        Does the same in NumPy. It is called if an error of floating point occurred, to say so as NumPy does.
    adds : bool
        The kernel adds to its target, which must be zeros.
    by_status : bool
        `otherwise` is called where the kernel returns another number than 0, and whatever floating errors occurred.
    keep : tuple
        Objects whose addresses stand in the dims.
    """
    zeroed = math.prod(shape) * dtype.itemsize if adds else 0
    scalar = 0 if shape else id(dtype.type)
    words = words_for(shape, dtype, kernel, zeroed, scalar, id(otherwise), by_status, *dims, keep=(otherwise, *keep))
    return native.load(compute, words)


def compute(self: int, args: int, nargs: int) -> int:
    """Return the result of a kernel on arrays: a new array, or NumPy's scalar object; 0 if Python raised."""
    words, places, value = get(self, DATA), stack(128), stack(16)
    for number in range(nargs):
        put(places, number, get(get(args, number), DATA))
    out = 0
    if get(words, SCALAR) == 0:
        out = new_result(words)
        if out == 0:
            return out
        put(places, nargs, get(out, DATA))
    else:
        put(value, 0, 0)
        put(places, nargs, value)
    zeroed = get(words, ZEROED)
    thread = release_gil()
    if get(words, BY_STATUS) == 0 and float_errors(FLOAT_ERRORS) != 0:
        clear_float_errors(FLOAT_ERRORS)  # which takes longer
    if zeroed != 0:
        memset(get(places, nargs), zeroed)
    found = 0
    if get(words, BY_STATUS) != 0:
        found = call(get(words, KERNEL), places, words + 8 * DIMS, 0)
    else:
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
