"""Strides of operands in one loop: dimensions are merged where possible, and broadcast operands get strides of 0."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapegrad.tape.layout import contiguous_strides


def coalesce(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Merge dimensions that are one dimension for all operands, and drop those of length 1.

    >>> coalesce((2, 3), [(24, 8), (24, 8)])
    ([6], [[8], [8]])
    >>> coalesce((2, 3), [(24, 8), (0, 8)])
    ([2, 3], [[24, 8], [0, 8]])
    """
    # The usual case is fast: every operand is contiguous or a single element, so there is one dimension.
    whole = next((operand for operand in strides if any(operand)), None)
    if whole is not None and all(operand == whole or not any(operand) for operand in strides):
        size = math.prod(shape)
        if size > 1 and whole == contiguous_strides(tuple(shape), whole[-1]):
            return [size], [[whole[-1] if any(operand) else 0] for operand in strides]
    lengths: list[int] = []
    columns: list[list[int]] = []  # for each remaining dimension, the strides of the operands
    for dim, length in enumerate(shape):
        if length == 1:
            continue
        column = [operand[dim] for operand in strides]
        if columns and columns[-1] == [stride * length for stride in column]:
            lengths[-1] *= length
            columns[-1] = column
        else:
            lengths.append(length)
            columns.append(column)
    if not lengths:
        return [1], [[0] for _ in strides]
    return lengths, [list(operand) for operand in zip(*columns, strict=True)]


def broadcast_strides(shape: Sequence[int], strides: Sequence[int], to: Sequence[int]) -> tuple[int, ...]:
    """Return the strides that make an operand look like one of shape `to`: 0 in dimensions that are broadcast.

    >>> broadcast_strides((3, 1), (8, 8), (2, 3, 4))
    (0, 8, 0)
    """
    if shape == to:  # the stride of a dimension of one element does not matter
        return tuple(strides)
    kept = [0 if length == 1 else stride for length, stride in zip(shape, strides, strict=True)]
    return (*(0 for _ in range(len(to) - len(kept))), *kept)
