"""New arrays for results, made in compiled code."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.intrinsics import call, get
from tapegrad.forward.capsules import numpy_function
from tapegrad.runtime import pool
from tapegrad.tape.native import take, vectorcall

# Words about a result, with which those of a forward begin: its shape and dtype as objects; the pool's function for
# large arrays, else 0; and what PyArray_Empty of NumPy's C API takes: its address, the number of dimensions, lengths.
SHAPE, DTYPE, LARGE, NEW, NDIM, LENGTHS, RESULT_WORDS = range(7)


@cache
def _new_array() -> int:
    """Return the address of PyArray_Empty. Places in NumPy's C API never change."""
    return numpy_function("_ARRAY_API", 184)


class Words(np.ndarray):
    """Words, and the objects whose addresses stand in them."""

    objects: tuple[object, ...]


def words_for(shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()) -> Words:
    """Return the words of a forward: those about its result, and the rest; `keep` are objects that these point to."""
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    lengths = np.array(shape, dtype=np.intp)
    first = (id(shape), id(dtype), id(large) if large else 0, _new_array(), len(shape), lengths.ctypes.data)
    words = np.array([*first, *rest]).view(Words)
    words.objects = (shape, dtype, lengths, *keep)
    return words


def new_result(words: int) -> int:
    """Return a new array; 0 if Python raised."""
    if get(words, LARGE) != 0:
        return vectorcall(get(words, LARGE), words + 8 * SHAPE, 2, 0)
    take(get(words, DTYPE))  # the function takes this reference over
    return call(get(words, NEW), get(words, NDIM), get(words, LENGTHS), get(words, DTYPE), 0)
