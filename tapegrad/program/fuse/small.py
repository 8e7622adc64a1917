"""Small matrices, unrolled: inverses, solutions, determinants and factors, whose forwards call LAPACK."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

import numpy as np

from tapegrad.program.fuse.arrays import Array
from tapegrad.program.fuse.functions import fma
from tapegrad.program.fuse.scalars import Node
from tapegrad.program.fuse.space import Space
from tapegrad.program.machine_code import LARGEST, Refused

__all__ = ["SMALL"]

_ROUNDING: Final = {char: 32 * float(np.finfo(char).eps) for char in "df"}


def _each(x: Array, function: Callable[..., Any], shape: tuple[int, ...], *others: Array, dtype: Any = None) -> Array:
    """Return the results of a function of the matrices of a batch."""
    arrays = (x, *others)
    if any(axis is not None for own in arrays for axis in own.axes[-2:]):
        raise Refused("a matrix has a long dimension")
    if x.shape[-1] > LARGEST:
        raise Refused(f"a matrix has more than {LARGEST} rows")
    for own in others:
        if own.shape[:-2] != x.shape[:-2] or own.axes[:-2] != x.axes[:-2]:
            raise Refused("the matrices have different batches")
    made = np.empty((*x.nodes.shape[:-2], *shape), object)
    for place in np.ndindex(x.nodes.shape[:-2]):
        made[place] = function(*[own.nodes[place] for own in arrays])
    full = (*x.shape[:-2], *shape)
    return Array(x.space, made, full, (*x.axes[:-2], *[None] * len(shape)), dtype or x.dtype)


def eliminated(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, Node]:
    """Return a triangular matrix and a right side by elimination with the largest pivots, and the determinant."""
    a, b, n = a.copy(), b.copy(), len(a)
    graph = a[0, 0].graph
    determinant: Node = graph.const(1, a[0, 0].dtype)
    for k in range(n):
        for i in range(k + 1, n):  # after this the pivot is the largest of its column
            larger = abs(a[i, k]) > abs(a[k, k])
            for own in (a, b):
                for j in range(k if own is a else 0, own.shape[1]):
                    one, two = own[k, j], own[i, j]
                    own[k, j], own[i, j] = graph.select(larger, two, one), graph.select(larger, one, two)
            determinant = graph.select(larger, -determinant, determinant)
        determinant = determinant * a[k, k]
        divisor = graph.select(a[k, k] == 0, graph.const(1, a[k, k].dtype), a[k, k])  # all below are 0, too
        for i in range(k + 1, n):
            factor = a[i, k] / divisor
            for own in (a, b):
                for j in range(k + 1 if own is a else 0, own.shape[1]):
                    own[i, j] = fma(-factor, own[k, j], own[i, j])
    return a, b, determinant


def _back(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve an upper triangular system."""
    x = b.copy()
    for i in reversed(range(len(a))):
        for j in range(b.shape[1]):
            total = b[i, j]
            for k in range(i + 1, len(a)):
                total = fma(-a[i, k], x[k, j], total)
            x[i, j] = total / a[i, i]
    return x


def _solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if len(a) == 2:  # Cramer's rule
        det = fma(a[0, 0], a[1, 1], -(a[0, 1] * a[1, 0]))
        rows = [
            [fma(a[1, 1], one, -(a[0, 1] * two)) / det, fma(a[0, 0], two, -(a[1, 0] * one)) / det] for one, two in b.T
        ]
        made = np.empty(b.shape, object)
        for j, (one, two) in enumerate(rows):
            made[0, j], made[1, j] = one, two
        return made
    return _back(*eliminated(a, b)[:2])


def _is_nothing(value: Node, *terms: Node) -> Node:
    """Return whether a sum is so small beside its terms that it may be 0 in another order of rounding."""
    largest = reduce(lambda one, two: one.graph.maximum("max", one, two), [abs(own) for own in terms])
    return abs(value) <= largest * _ROUNDING[value.dtype]


def _any(found: Array) -> Array:
    flags: Any = np.any(found)  # `Array` serves NumPy's functions
    return flags  # type: ignore[no-any-return]


def is_singular(space: Space, x: Array) -> Array:
    """Return whether matrices are singular, or so near to it that rounding decides."""

    def of_one(a: np.ndarray) -> Node:
        if len(a) == 2:
            products = a[0, 0] * a[1, 1], a[0, 1] * a[1, 0]
            return _is_nothing(fma(a[0, 0], a[1, 1], -products[1]), *products)
        triangle = eliminated(a, np.empty((len(a), 0), object))[0]
        return reduce(operator.or_, [_is_nothing(triangle[k, k], *a[:, k]) for k in range(len(a))])

    return _any(_each(x, of_one, (), dtype=bool))


def inv(space: Space, x: Array) -> Array:
    n = x.shape[-1]
    char = space.char(x.dtype)
    unit = np.full((n, n), space.graph.zero(char), object)
    for k in range(n):
        unit[k, k] = space.graph.const(1, char)
    return _each(x, lambda a: _solved(a, unit), (n, n))


def solve(space: Space, a: Array, b: Array, vector: bool) -> Array:
    if vector:
        b = b[..., None]
    result = _each(a, _solved, b.shape[-2:], b)
    return result[..., 0] if vector else result


def det(space: Space, x: Array) -> Array:
    n = x.shape[-1]
    empty = np.empty((n, 0), object)
    return _each(x, lambda a: eliminated(a, empty)[2], ())


def _factored(a: np.ndarray) -> tuple[np.ndarray, list[Node]]:
    """Return the factor of the lower triangle of a matrix, and the squares of its diagonal."""
    n, graph = len(a), a[0, 0].graph
    low, squares = np.full((n, n), graph.const(0, a[0, 0].dtype), object), []
    for j in range(n):
        total = a[j, j]
        for k in range(j):
            total = fma(-low[j, k], low[j, k], total)
        squares.append(total)
        low[j, j] = graph.unary("sqrt", total)
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total = fma(-low[i, k], low[j, k], total)
            low[i, j] = total / low[j, j]
    return low, squares


def cholesky(space: Space, x: Array, upper: bool = False) -> Array:
    return _each(x, lambda a: _factored(a.T)[0].T if upper else _factored(a)[0], x.shape[-2:])


def is_indefinite(space: Space, x: Array, upper: bool) -> Array:
    """Return whether symmetric matrices are not positive definite, or so near to it that rounding decides."""

    def of_one(a: np.ndarray) -> Node:
        squares = _factored(a.T if upper else a)[1]
        pairs = zip(squares, a.diagonal(), strict=True)
        found: Node = reduce(operator.or_, [~(one > abs(of) * _ROUNDING[one.dtype]) for one, of in pairs])
        return found

    return _any(_each(x, of_one, (), dtype=bool))


SMALL: Final[dict[str, Callable[..., Any]]] = {
    "inv": inv, "solve": solve, "det": det, "cholesky": cholesky,
    "is_singular": is_singular, "is_indefinite": is_indefinite,
}  # fmt: skip
