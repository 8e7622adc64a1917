"""Forwards that join small contiguous arrays by copying bytes: NumPy takes microseconds to check what a plan knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.compiler.intrinsics import memcpy
from tapegrad.forward.results import Result, compiled_forward, new_result
from tapegrad.recording.keys import MAX_ITEMS
from tapegrad.runtime import pool
from tapegrad.runtime.objects import NDArray, Object, Scalar
from tapegrad.runtime.structs import Array, embedded
from tapegrad.tape.layout import Layout


class Joining(Result):
    """The words of a forward that joins arrays."""

    turns: int  # how often each operand is taken up
    inline: int  # a bit for each operand that is a number inside an object
    chunks: Array[int] = embedded()  # the bytes of each that are taken at a time


def joined(
    layouts: Sequence[Layout], shape: tuple[int, ...], dim: int, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the forward that joins operands along a dimension of a result of this shape.

    For many or large operands, several dtypes, or operands that are not contiguous it is `otherwise`, by NumPy.
    """
    dtype, outer = layouts[0].dtype, math.prod(shape[:dim])
    large = math.prod(shape) * dtype.itemsize >= pool.THRESHOLD
    fit = all(own.dtype == dtype and own.contiguous and not own.weak for own in layouts)
    if large or not fit or not outer or len(layouts) > MAX_ITEMS:
        return otherwise
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    chunks = [own.nbytes // outer for own in layouts]
    return compiled_forward(join, shape, dtype, outer, inline, *chunks)


def join(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Return a new array with the operands' bytes; 0 if Python raised."""
    words = Joining(self.data)
    out = new_result(words)
    if out == 0:
        return 0
    place = out.data + 0
    for turn in range(words.turns):
        for number in range(nargs):
            value, chunk = args[number], words.chunks[number]
            data = Scalar(value).value if words.inline >> number & 1 else NDArray(value).data
            memcpy(place, data + turn * chunk, chunk)
            place += chunk
    return out
