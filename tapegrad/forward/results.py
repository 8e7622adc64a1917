"""New arrays for results, made in compiled code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call
from tapegrad.runtime import pool
from tapegrad.runtime.objects import NDArray, Object, new_array_function
from tapegrad.runtime.structs import WORD, Array, Struct, embedded
from tapegrad.tape.native import incref, vectorcall
from tapegrad.tape.plan import address_of_array


class Result(Struct):
    """What a forward knows of its result; its own fields follow."""

    arguments: Array[Object] = embedded(2)  # shape and dtype, as the pool's function takes them
    pool_empty: Object  # that function, for large arrays; else 0
    new: int  # the function that makes other arrays
    ndim: int
    lengths: int


_new_array: Final = new_array_function()


Like = Callable[["Words", tuple[int, ...]], Callable[..., Any]]


class Words(np.ndarray):
    """Words, and the objects whose addresses stand in them: those for all shapes of a result, and the shape itself.

    The lengths of the result stand at the end.
    """

    kept: tuple[object, ...]
    shape_of_result: tuple[int, ...]
    #: Returns the forward with these words, but for a result of another shape; None where that is not so simple.
    like: Like | None = None

    def of_shape(self, shape: tuple[int, ...]) -> Words:
        """Return the words for a result of another shape, which takes the same way as this one."""
        end = self.size - int(self[_NDIM])
        return _with_lengths(self[:end].tolist(), shape, self.kept)


_SHAPE, _NDIM, _LENGTHS = map(Result.word, ("arguments", "ndim", "lengths"))


def words_for(shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()) -> Words:
    """Return the words of a forward: those about its result, and the rest; `keep` are objects that these point to."""
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    return _with_lengths([0, id(dtype), id(large) if large else 0, _new_array, 0, 0, *rest], shape, (dtype, *keep))


def _with_lengths(fields: list[int], shape: tuple[int, ...], kept: tuple[object, ...]) -> Words:
    fields[_SHAPE], fields[_NDIM] = id(shape), len(shape)
    words: Words = np.array([*fields, *shape], dtype=np.int64).view(Words)
    words[_LENGTHS] = address_of_array(words) + WORD * len(fields)
    words.kept, words.shape_of_result = kept, shape
    return words


def serves_all_shapes(forward: Callable[..., Any]) -> bool:
    """Whether `of_shape` can make the same forward for results of other shapes."""
    words = getattr(forward, "__self__", None)
    return isinstance(words, Words) and words.like is not None


def of_shape(forward: Callable[..., Any], shape: tuple[int, ...]) -> Callable[..., Any]:
    """Return a forward for results of another shape; itself if it does not depend on that."""
    words = getattr(forward, "__self__", None)
    if not isinstance(words, Words) or words.like is None:
        return forward
    return words.like(words, shape)


def new_result(words: Result) -> NDArray:
    """Return a new array; 0 if Python raised."""
    if words.pool_empty != 0:
        return NDArray(vectorcall(words.pool_empty, words.arguments, 2, 0))
    incref(words.arguments[1])  # the function takes this reference over
    return NDArray(call(words.new, words.ndim, words.lengths, words.arguments[1], 0))
