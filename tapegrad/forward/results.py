"""New arrays for results, made in compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tapegrad.compiler.intrinsics import call
from tapegrad.runtime import pool
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import NDArray, Object, numpy_function
from tapegrad.runtime.structs import Array, Struct, embedded
from tapegrad.tape.native import incref, vectorcall
from tapegrad.tape.plan import address_of_array


class Result(Struct):
    """What a forward knows of its result; its own fields follow."""

    arguments: Array[Object] = embedded(2)  # shape and dtype, as the pool's function takes them
    pool_empty: Object  # that function, for large arrays; else 0
    new: int  # the address of PyArray_Empty, which takes the number of dimensions, lengths and the dtype
    ndim: int
    lengths: int


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
        words: Words = watch(self.copy(), "the words of a forward")
        lengths = np.array(shape, dtype=np.intp)
        words[_SHAPE], words[_NDIM], words[_LENGTHS] = id(shape), len(shape), address_of_array(lengths)
        words.kept, words.objects = self.kept, (shape, lengths)
        return words


_SHAPE, _NDIM, _LENGTHS = map(Result.word, ("arguments", "ndim", "lengths"))


def words_for(shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()) -> Words:
    """Return the words of a forward: those about its result, and the rest; `keep` are objects that these point to."""
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    first = (0, id(dtype), id(large) if large else 0, _new_array(), 0, 0)
    words = np.array([*first, *rest]).view(Words)
    words.kept = (dtype, *keep)
    return words.of_shape(shape)


def new_result(words: Result) -> NDArray:
    """Return a new array; 0 if Python raised."""
    if words.pool_empty != 0:
        return NDArray(vectorcall(words.pool_empty, words.arguments, 2, 0))
    incref(words.arguments[1])  # the function takes this reference over
    return NDArray(call(words.new, words.ndim, words.lengths, words.arguments[1], 0))
