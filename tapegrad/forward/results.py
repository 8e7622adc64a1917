"""Forwards in compiled code, and the new arrays for their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.compiler.intrinsics import call
from tapegrad.recording.native import Lazy, definition, incref, integer, load, new_function, vectorcall
from tapegrad.recording.steps import address_of_array
from tapegrad.runtime import pool
from tapegrad.runtime.memory import INTERPRETS
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.runtime.objects import NDArray, Object, new_array_function
from tapegrad.runtime.structs import WORD, Array, Struct, embedded
from tapegrad.tape.lengths import Length


class Result(Struct):
    """The first words of a forward, about its result; words of its own follow."""

    arguments: Array[Object] = embedded(2)  # shape and dtype, as the pool's function takes them
    pool_empty: Object  # that function, for large arrays; else 0
    new: int  # the function that makes other arrays
    ndim: int
    lengths: int


_new_array: Final = new_array_function()


class Words(np.ndarray):
    """The words of a forward, and the objects whose addresses they hold. The lengths of the result come last."""

    kept: tuple[object, ...]


_SHAPE, _LENGTHS = map(Result.word, ("arguments", "lengths"))


def words_of(values: Sequence[int]) -> Words:
    """Return integers as words."""
    return np.array(values, dtype=np.int64).view(Words)


class Draft(NamedTuple):
    """A compiled forward before its words are in memory: some may be `Length` objects.

    Attributes
    ----------
    function : callable
        To be compiled.
    words : list or array of int
        Behind all others stand the lengths of the result.
    shape, dtype
        Of the result.
    kept : tuple
        Other objects whose addresses stand in the fields.
    """

    function: Callable[..., int]
    words: list[int] | Words
    shape: tuple[int, ...]
    dtype: np.dtype
    kept: tuple[object, ...]

    def made(self) -> Callable[..., Any]:
        """Return the forward."""
        shape = self.shape
        words = self.words if isinstance(self.words, Words) else words_of(self.words)
        words.kept = self.kept, self.dtype, shape
        if not INTERPRETS:
            made: Callable[..., Any] = _compiled.make(definition(self.function), words, shape)
            return made
        words[_SHAPE] = id(shape)
        words[_LENGTHS] = address_of_array(words) + WORD * (len(words) - len(shape))
        return load(self.function, words)


def is_draft(forward: Any) -> bool:
    """Whether a forward is a draft, or stands for one with more around it: nobody calls it."""
    return hasattr(forward, "made")


def finished(forward: Any) -> Any:
    """Return a forward, made if it is a draft."""
    return forward.made() if is_draft(forward) else forward


def make_forward(self: Object, args: Array[Object], nargs: int) -> int:
    """Return a forward, from its definition, its words, and the shape of its result; 0 if Python raised."""
    words = NDArray(args[1])
    fields = Result(words.data)
    fields.arguments[0] = args[2]
    fields.lengths = words.data + WORD * (words.shape[0] - fields.ndim)
    return new_function(integer(args[0]), words, 0)


_compiled: Final = Lazy(make=lambda: load(make_forward, None))


def compiled_forward(
    function: Callable[..., int], shape: tuple[int, ...], dtype: np.dtype, *rest: int, keep: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    """Return a compiled forward.

    Parameters
    ----------
    function : callable
        ``function(self, args, nargs)``, where the data of `self` are a `Result` and what follows it.
    shape, dtype
        Of the result.
    rest : int
        Words behind those of `Result`.
    keep : tuple
        Objects whose addresses stand in the rest.
    """
    large = pool.empty if math.prod(shape) * dtype.itemsize >= pool.THRESHOLD else None
    words = [0, id(dtype), id(large) if large else 0, _new_array, len(shape), 0, *rest, *shape]
    draft = Draft(function, words, shape, dtype, keep)
    is_general = any(isinstance(word, Length) for word in words)
    return draft if is_general else draft.made()  # type: ignore[return-value]  # for all lengths, and nobody calls it


def new_result(words: Result) -> NDArray:
    """Return a new array; 0 if Python raised."""
    if words.pool_empty != 0:
        return NDArray(vectorcall(words.pool_empty, words.arguments, 2, 0))
    incref(words.arguments[1])  # the function takes this reference over
    return NDArray(call(words.new, words.ndim, words.lengths, words.arguments[1], 0))
