"""DET: a determinant by expansion along rows; each minor of the last rows is computed once, for its set of columns."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

import tapegrad as tg
from bench.gradbench.protocol import Function


@cache
def expansion(size: int, columns: int) -> tuple[Any, Any, Any]:
    """Return, for each set of so many columns: its columns, their signs, and the place of the set without each."""
    smaller = {chosen: place for place, chosen in enumerate(combinations(range(size), columns - 1))}
    sets = list(combinations(range(size), columns))
    rest = [[smaller[chosen[:i] + chosen[i + 1 :]] for i in range(columns)] for chosen in sets]
    return np.array(sets), (-1.0) ** np.arange(columns), np.array(rest)


def primal(matrix: Any) -> Any:
    size = len(matrix)
    minors = matrix[-1]
    for columns in range(2, size + 1):
        sets, signs, rest = expansion(size, columns)
        minors = (signs * matrix[size - columns, sets] * minors[rest]).sum(1)
    return minors[0]


def _matrix(given: Any) -> tuple[Any]:
    return (np.array(given["A"], dtype=float).reshape(given["ell"], given["ell"]),)


FUNCTIONS = {
    "primal": Function(_matrix, tg.compile(primal), float),
    "gradient": Function(_matrix, tg.compile(tg.func.grad(primal)), lambda found: found.ravel().tolist()),
}
