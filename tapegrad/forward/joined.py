"""Forwards that join small contiguous arrays: NumPy takes microseconds to find out what a plan knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.compiler.intrinsics import get, memcpy
from tapegrad.forward.results import RESULT_WORDS, new_result, words_for
from tapegrad.runtime import pool
from tapegrad.tape.keys import MAX_ITEMS
from tapegrad.tape.layout import Layout
from tapegrad.tape.native import DATA, load

# Words of a forward, after those about its result: how often each operand is taken up, the operands that are numbers
# inside objects, and the bytes of each that are taken at a time.
TURNS, INLINE, CHUNKS = range(RESULT_WORDS, RESULT_WORDS + 3)


def joined(
    layouts: Sequence[Layout], shape: tuple[int, ...], dim: int, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """Return what joins operands along a dimension of the result, which has this shape.

    It is `otherwise`, by NumPy, where the operands are many, large, of several dtypes or not contiguous.
    """
    dtype, outer = layouts[0].dtype, math.prod(shape[:dim])
    large = math.prod(shape) * dtype.itemsize >= pool.THRESHOLD
    fit = all(own.dtype == dtype and own.contiguous and not own.weak for own in layouts)
    if large or not fit or not outer or len(layouts) > MAX_ITEMS:
        return otherwise
    inline = sum(1 << number for number, own in enumerate(layouts) if own.inline)
    chunks = [own.nbytes // outer for own in layouts]
    return load(join, words_for(shape, dtype, outer, inline, *chunks))


def join(self: int, args: int, nargs: int) -> int:
    """Return a new array with the operands' bytes; 0 if Python raised."""
    words = get(self, DATA)
    out = new_result(words)
    if out == 0:
        return 0
    place = get(out, DATA)
    for turn in range(get(words, TURNS)):
        for number in range(nargs):
            value, chunk = get(args, number), get(words, CHUNKS + number)
            data = value + 8 * DATA if get(words, INLINE) >> number & 1 else get(value, DATA)
            memcpy(place, data + turn * chunk, chunk)
            place += chunk
    return out
