"""New arrays for results, made in compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.intrinsics import call, get
from tapegrad.forward.capsules import numpy_function
from tapegrad.runtime import pool
from tapegrad.tape.native import take, vectorcall
from tapegrad.tape.plan import address_of_array

# Words about a result, with which those of a forward begin: its shape and dtype as objects; the pool's function for
# large arrays, else 0; and what PyArray_Empty of NumPy's C API takes: its address, the number of dimensions, lengths.
SHAPE, DTYPE, LARGE, NEW, NDIM, LENGTHS, RESULT_WORDS = range(7)


@cache
def _new_array() -> int:
    """Return the address of PyArray_Empty. Places in NumPy's C API never change."""
    return numpy_function("_ARRAY_API", 184)


class Words(np.ndarray):
    """Words, and the objects whose addresses stand in them: those for all shapes of a result, and those for this."""

    kept: tuple[object, ...]
    objects: tuple[object, ...]
    #: Returns the forward with these words, but for a result of another shape; None where that is not so simple.
    like: Callable[[Words, tuple[int, ...]], Callable[..., Any]] | None = None

    def of_shape(self, shape: tuple[int, ...]) -> Words:
        """Return the words for a result of another shape, which takes the same way as this one."""
        words: Words = self.copy()
        lengths = np.array(shape, dtype=np.intp)
        words[SHAPE], words[NDIM], words[LENGTHS] = id(shape), len(shape), address_of_array(lengths)
        words.kept, words.objects = self.kept, (shape, lengths)
        return words


def words_for(shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()) -> Words:
    """Return the words of a forward: those about its result, and the rest; `keep` are objects that these point to."""
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    first = (0, id(dtype), id(large) if large else 0, _new_array(), 0, 0)
    words = np.array([*first, *rest]).view(Words)
    words.kept = (dtype, *keep)
    return words.of_shape(shape)


def new_result(words: int) -> int:
    """Return a new array; 0 if Python raised."""
    if get(words, LARGE) != 0:
        return vectorcall(get(words, LARGE), words + 8 * SHAPE, 2, 0)
    take(get(words, DTYPE))  # the function takes this reference over
    return call(get(words, NEW), get(words, NDIM), get(words, LENGTHS), get(words, DTYPE), 0)
