"""Movements, read from NumPy: the function runs on an array of positions, and says where its elements come from.

That is proved by a second run on other numbers, unless the result is a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tapegrad.program.machine_code import Refused

__all__ = ["Movements", "beside_diagonals", "boxes_of", "courses", "positions_of", "ranges_of"]

_FEW: Final = 16
_PARTS: Final = 64


def courses(positions: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[list[list[int]]]:
    """Return, for each dimension of a result and each operand, along which dimensions of the operand elements go on.

    Most movements show it where the result begins. All positions are looked at only for operands of which a dimension
    was not found there.
    """
    changed: list[list[list[int]]] = [[[] for _ in shapes] for _ in positions.shape]
    starts = np.cumsum([1, *map(math.prod, shapes)]).tolist()
    beginning = positions[(slice(_FEW if positions.ndim < 3 else 4),) * positions.ndim]
    for part in (beginning, positions) if positions.size > beginning.size else (positions,):
        for operand, (start, shape) in enumerate(zip(starts, shapes, strict=False)):
            met = {k for of_dim in changed for k in of_dim[operand]}
            if all(k in met for k, length in enumerate(shape) if length > 1):
                continue
            for dim, length in enumerate(part.shape):
                if length > 1 and not changed[dim][operand]:
                    changed[dim][operand] = _along(np.moveaxis(part, dim, -1), start, shape)
    return changed


def _along(lines: np.ndarray, start: int, shape: tuple[int, ...]) -> list[int]:
    """Return along which dimensions of an operand its positions, counted from `start`, change where lines go on."""
    end = start + math.prod(shape)
    one, two = lines[..., :-1], lines[..., 1:]
    is_next = (one >= start) & (two >= start) & (one < end) & (two < end) & (one != two)
    if not is_next.any():
        return []
    place = np.unravel_index(int(is_next.argmax()), is_next.shape)
    here, there = (np.unravel_index(int(own[place]) - start, shape) for own in (one, two))
    return [k for k in range(len(shape)) if here[k] != there[k]]


def positions_of(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Return for each element of a result the position of its source, counted from 1 over all operands; 0 for none."""
    sources, at = [], 1
    for shape in shapes:
        size = math.prod(shape)
        sources.append(np.arange(at, at + size).reshape(shape))
        at += size
    result = np.asarray(function(*sources))
    if result.dtype.kind not in "iu":
        raise Refused("it does more than move elements")
    base = result
    while isinstance(base.base, np.ndarray):
        base = base.base
    if len(shapes) == 1 and base is (sources[0].base if sources[0].base is not None else sources[0]):
        return result  # a view only moves
    pool = np.concatenate([[0], np.random.default_rng(at).integers(1, 1 << 60, at - 1)])
    parts, at = [], 1
    for shape in shapes:
        size = math.prod(shape)
        parts.append(pool[at : at + size].reshape(shape))
        at += size
    other = np.asarray(function(*parts))
    if result.size and (result.min() < 0 or result.max() >= len(pool) or not np.array_equal(pool[result], other)):
        raise Refused("it adds elements up")
    return result


class Movements:
    """Positions by keys: those of functions and shapes that do the same are asked for once."""

    def __init__(self) -> None:
        self._known: dict[Any, np.ndarray | Exception] = {}

    def of(self, function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], key: Any) -> np.ndarray:
        """Return `positions_of` a function, or raise what that raises."""
        found = self._known.get((key, shapes))
        if found is None:
            try:
                found = positions_of(function, shapes)
            except Exception as error:
                found = error
            self._known[key, shapes] = found
        if isinstance(found, Exception):
            raise found
        return found


def ranges_of(lines: np.ndarray, starts: np.ndarray) -> list[tuple[int, int]]:
    """Return the ranges of the last dimension in which all lines go on by equal steps in one operand, or are absent."""
    length = lines.shape[-1]
    lines = lines.reshape(-1, length)
    if len(starts) == 2 and length > 1:  # one operand: mostly all goes on by equal steps
        steps = lines[:, 1:] - lines[:, :-1]
        if (steps == steps[:, :1]).all() and lines[:, 0].all() and lines[:, -1].all():
            return [(0, length)]
    owners = lines > 0 if len(starts) == 2 else np.searchsorted(starts, lines, "right")
    cuts = [0, *(np.flatnonzero((owners[:, 1:] != owners[:, :-1]).any(0)) + 1).tolist(), length]
    steps = np.diff(lines, axis=1)
    bends = np.flatnonzero((steps[:, 1:] != steps[:, :-1]).any(0)) + 1  # step k differs from step k - 1
    ranges = []
    for begin, end in pairwise(cuts):
        while begin < end:
            later = bends[np.searchsorted(bends, begin, "right") :]  # the first bend behind the first step
            stop = min(int(later[0]) + 1, end) if len(later) else end
            ranges.append((begin, stop))
            begin = stop
            if len(ranges) > _PARTS:
                raise Refused("it moves elements in too many parts")
    return ranges


def beside_diagonals(squares: np.ndarray) -> np.ndarray | None:
    """Return positions of squares that go on by equal steps everywhere but on their diagonals, which others take.

    There the result goes on as beside them. None if anything else is not so.
    """
    count = squares.shape[-1]
    if squares.ndim != 3 or squares.shape[1] != count or count < _FEW:
        return None
    across, down = squares[:, 0, 2] - squares[:, 0, 1], squares[:, 2, 0] - squares[:, 1, 0]
    places = np.arange(count)
    straight = squares[:, :1, 1:2] + (places - 1) * across[:, None, None] + places[:, None] * down[:, None, None]
    if not straight.all() or not ((squares != straight) == np.eye(count, dtype=np.bool_)).all():
        return None
    diagonals = squares.diagonal(0, 1, 2)
    return straight if (diagonals.all(1) | ~diagonals.any(1)).all() else None


def boxes_of(ranges: list[list[tuple[int, int]]]) -> Any:
    """Yield the boxes that ranges of several dimensions make."""
    if not ranges:
        yield ()
        return
    for first in ranges[0]:
        for rest in boxes_of(ranges[1:]):
            yield (first, *rest)
