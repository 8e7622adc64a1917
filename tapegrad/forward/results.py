"""New arrays for results, made in compiled code."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any

import numpy as np

from tapegrad import pool
from tapegrad.compiler.intrinsics import call, get
from tapegrad.native import take, vectorcall

# Words about a result, with which those of a forward begin: its shape and dtype as objects; the pool's function for
# large arrays, else 0; and what PyArray_Empty of NumPy's C API takes: its address, the number of dimensions, lengths.
SHAPE, DTYPE, LARGE, NEW, NDIM, LENGTHS, RESULT_WORDS = range(7)
_PY_ARRAY_EMPTY = 184  # its place in NumPy's C API, which never changes


class Words(np.ndarray):
    """Words, and the objects whose addresses stand in them."""

    objects: tuple[object, ...]


def words_for(shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()) -> Words:
    """Return the words of a forward: those about its result, and the rest; `keep` are objects that these point to."""
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    lengths = np.array(shape, dtype=np.intp)
    first = (id(shape), id(dtype), id(large) if large else 0, _new(), len(shape), lengths.ctypes.data)
    words = np.array([*first, *rest]).view(Words)
    words.objects = (shape, dtype, lengths, *keep)
    return words


@cache
def _new() -> int:
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    table = ctypes.cast(pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    address: int = table[_PY_ARRAY_EMPTY]
    return address


def new_result(words: int) -> int:
    """Return a new array; 0 if Python raised."""
    if get(words, LARGE) != 0:
        return vectorcall(get(words, LARGE), words + 8 * SHAPE, 2, 0)
    take(get(words, DTYPE))  # the function takes this reference over
    return call(get(words, NEW), get(words, NDIM), get(words, LENGTHS), get(words, DTYPE), 0)
