"""Strides of operands that are gone through together: dimensions are merged, and operands stretched."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.tape.layout import contiguous_strides


def coalesce(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge dimensions that all operands step through evenly, and drop those of length 1.

    >>> coalesce((2, 3), [(24, 8), (24, 8)])
    ([6], [[8], [8]])
    >>> coalesce((2, 3), [(24, 8), (0, 8)])
    ([2, 3], [[24, 8], [0, 8]])
    """
    # Mostly all operands are whole or one element: then there is one dimension, and nothing to be compared.
    whole = next((own for own in strides if any(own)), None)
    if whole is not None and all(own == whole or not any(own) for own in strides):
        size = math.prod(shape)
        if size > 1 and whole == contiguous_strides(tuple(shape), whole[-1]):
            return [size], [[whole[-1] if any(own) else 0] for own in strides]
    lengths: list[int] = []
    columns: list[list[int]] = []  # of each dimension that is left, the operands' strides
    for dim, length in enumerate(shape):
        if length == 1:
            continue
        column = [operand[dim] for operand in strides]
        if columns and columns[-1] == [step * length for step in column]:
            lengths[-1] *= length
            columns[-1] = column
        else:
            lengths.append(length)
            columns.append(column)
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, [list(own) for own in zip(*columns, strict=True)]


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Return the strides with which an operand of this shape is read as one of shape `to`.

    >>> broadcast_strides((3, 1), (8, 8), (2, 3, 4))
    (0, 8, 0)
    """
    if shape == to:  # the step of a dimension of one element does not matter
        return tuple(strides)
    own = [0 if length == 1 else step for length, step in zip(shape, strides, strict=True)]
    return (*(0 for _ in range(len(to) - len(own))), *own)
