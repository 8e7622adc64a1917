"""Factors, solutions and determinants of matrices by LAPACK, of which NumPy calls the same routines, or by our kernels.

LAPACK's matrices stand column by column, and most routines get a copy that does, in float64 as NumPy has it: rounding,
signs of vectors and what is singular are as they are in an ordinary call. Where a routine refuses a matrix, the code
stops: Python computes the program, and raises what it always does.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.forward.matrices import MOST
from tapegrad.kernels.blas import blas_address
from tapegrad.kernels.singular import geometry_of_singular, memory_of_singular
from tapegrad.kernels.symmetric import memory_of_symmetric
from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.matrices import each
from tapegrad.program.native.triangular import cholesky, solve_triangular
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry
from tapegrad.program.routines import LETTERS

__all__ = ["FACTORS", "bytes_of_integers"]

_HOW: Final = ("by LAPACK", "by a kernel")

# ---- by LU factors


def _factored(code: Code, x: Matrix) -> tuple[str, str]:
    """Write the LU factors of a matrix, column by column; return their pointer and that of the pivots."""
    n = x.shape[0]
    factors, pivots = code.copied(x.turned).pointer, code.room(n, 8)
    code.call("getrf", n, n, factors, n, pivots, code.info())
    return factors, pivots


def _solve(code: Code, entry: Entry) -> Native | None:
    vector = bool(entry.attrs["vector"])

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((a, b), (out,)) = operands, results
        factors, pivots = _factored(code, a)
        code.check()
        n, columns = b.shape
        target = Matrix(out, (n, columns), (columns, 1))
        x = target if columns == 1 else Matrix(code.room(n * columns), (n, columns), (1, n))
        code.copy(b, x)
        code.call("getrs", "N", n, columns, factors, n, pivots, x.pointer, n, code.info())
        if x is not target:
            code.copy(x, target)

    return each(code, entry, "a solution", write, (1,) if vector else ())


def _inv(code: Code, entry: Entry) -> Native | None:
    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (out,)) = operands, results
        n = x.shape[0]
        factors, pivots = _factored(code, x)
        code.check()
        _inverted(code, n, factors, pivots)
        code.copy(Matrix(factors, (n, n), (1, n)), Matrix(out, (n, n), (n, 1)))

    return each(code, entry, "the inverse", write)


def _inverted(code: Code, n: int, factors: str, pivots: str) -> None:
    """Write an inverse in the place of LU factors."""
    count = _workspace("getri", code.char, n, None, n, None)
    code.call("getri", n, factors, n, pivots, code.room(count), count, code.info())


def _det(code: Code, entry: Entry) -> Native | None:
    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (out,)) = operands, results
        code.put(_determinant(code, x.shape[0], *_factored(code, x)), out)

    return each(code, entry, "the determinant", write)


def _slogdet(code: Code, entry: Entry) -> Native | None:
    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (sign, log)) = operands, results
        n = x.shape[0]
        factors, pivots = _factored(code, x)
        kind, one = code.kind, code.number(1.0)

        def turn(at: str, before: list[str]) -> list[str]:
            value = code.get(code.at(factors, (at, n + 1)))
            size, side = code.of("fabs", value), code.of("copysign", one, value)
            zero = code.text.op(f"fcmp oeq {kind} {value}, {code.number(0.0)}")
            side = code.text.op(f"select i1 {zero}, {kind} {code.number(0.0)}, {kind} {side}")
            total = code.text.op(f"fadd {kind} {before[1]}, {code.text.formula('log', code.char, 1, [size])}")
            return [code.times(before[0], code.times(side, _turned(code, pivots, at))), total]

        ends = code.accumulate(n, 1, [(kind, one), (kind, code.number(0.0))], turn)
        for value, target in zip(ends, (sign, log), strict=True):
            code.put(value, target)

    return each(code, entry, "sign and logarithm of the determinant", write)


def _determinant(code: Code, n: int, factors: str, pivots: str) -> str:
    """Return the determinant from LU factors."""

    def turn(at: str, before: list[str]) -> list[str]:
        value = code.times(before[0], code.get(code.at(factors, (at, n + 1))))
        return [code.times(value, _turned(code, pivots, at))]

    return code.accumulate(n, 1, [(code.kind, code.number(1.0))], turn)[0]


def _turned(code: Code, pivots: str, at: str) -> str:
    """Return -1 if a row was exchanged, else 1."""
    text, kind = code.text, f"i{8 * bytes_of_integers()}"
    place = text.op(f"getelementptr {kind}, ptr {pivots}, i64 {at}")
    pivot = text.op(f"load {kind}, ptr {place}, align 4")
    row = text.op(f"add i64 {at}, 1")
    row = row if kind == "i64" else text.op(f"trunc i64 {row} to {kind}")
    same = text.op(f"icmp eq {kind} {pivot}, {row}")
    signs = [f"{code.kind} {code.number(value)}" for value in (1.0, -1.0)]
    return text.op(f"select i1 {same}, {signs[0]}, {signs[1]}")


# ---- orthogonal factors


def _qr(code: Code, entry: Entry) -> Native | None:
    mode = entry.attrs["mode"]
    if mode == "r":
        return None

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (q, r)) = operands, results
        m, n = x.shape
        least = min(m, n)
        columns = m if mode == "complete" else least
        factors = Matrix(code.room(m * max(n, columns)), (m, max(n, columns)), (1, m))
        code.copy(x, factors._replace(shape=(m, n)))
        scales = code.room(least)
        count = _workspace("geqrf", code.char, m, n, None, m, None)
        code.call("geqrf", m, n, factors.pointer, m, scales, code.room(count), count, code.info())
        code.copy(factors._replace(shape=(columns, n)), Matrix(r, (columns, n), (n, 1)), upper=True)
        count = _workspace("orgqr", code.char, m, columns, least, None, m, None)
        code.call("orgqr", m, columns, least, factors.pointer, m, scales, code.room(count), count, code.info())
        code.copy(factors._replace(shape=(m, columns)), Matrix(q, (m, columns), (columns, 1)))

    return each(code, entry, "orthogonal and triangular factors", write)


def _eigh(code: Code, entry: Entry) -> Native | None:
    by_kernel = code.program.layouts[entry.operands[0]].shape[-1] <= MOST

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (values, vectors)) = operands, results
        n, uplo = x.shape[0], entry.attrs["uplo"]
        if by_kernel:
            below, beside = (x if uplo == "L" else x.turned).strides
            pointers = x.pointer, code.room(memory_of_symmetric(n)), values, vectors
            code.kernel("symmetric", pointers, (0, 1, n, 0, below, beside, "strips", "rotations"))
            return
        found = code.copied(x.turned).turned
        sizes = [6 * n * n + 8 * n + 8, 10 * n + 16]
        integers = code.room(sizes[1], 8)
        code.call(
            "syevd", "V", uplo, n, found.pointer, n, values, code.room(sizes[0]), sizes[0], integers, sizes[1],
            code.info(),
        )  # fmt: skip
        code.check()
        code.copy(found, Matrix(vectors, (n, n), (n, 1)))

    return each(code, entry, "eigenvalues and vectors", write, how=_HOW[by_kernel])


def _svd(code: Code, entry: Entry) -> Native | None:
    full = bool(entry.attrs["full_matrices"])
    by_kernel = max(code.program.layouts[entry.operands[0]].shape[-2:]) <= MOST

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (u, s, vh)) = operands, results
        m, n = x.shape
        least = min(m, n)
        if by_kernel:
            before, after = geometry_of_singular(m, n, *x.strides, full)
            pointers = x.pointer, code.room(memory_of_singular(max(m, n), least)), s, u, vh
            code.kernel("singular", pointers, (0, 1, 0, *before, "strips", "rotations", *after))
            return
        wide, high = (m, n) if full else (least, least)
        given = code.copied(x.turned).turned
        left, right = Matrix(code.room(m * wide), (m, wide), (1, m)), Matrix(code.room(high * n), (high, n), (1, high))
        count = 4 * least * least + 8 * least + max(m, n) * 8 + 64 * (m + n) + 64
        code.call(
            "gesdd", "A" if full else "S", m, n, given.pointer, m, s, left.pointer, m, right.pointer, high,
            code.room(count), count, code.room(8 * least, 8), code.info(),
        )  # fmt: skip
        code.check()
        code.copy(left, Matrix(u, (m, wide), (wide, 1)))
        code.copy(right, Matrix(vh, (high, n), (n, 1)))

    return each(code, entry, "singular values and vectors", write, how=_HOW[by_kernel])


# ---- what is asked of LAPACK when code is made


@functools.cache
def bytes_of_integers() -> int:
    """Return how many bytes an integer has in the library whose routines are called."""
    swap, pivots, info = np.array([[0.0, 1.0], [1.0, 0.0]]), np.zeros(2, np.int64), np.zeros(1, np.int64)
    two = np.array([2])
    _ask("getrf", "d", two, two, swap, two, pivots, info)
    return 8 if pivots[1] == 2 else 4


def _workspace(name: str, char: str, *sizes: int | None) -> int:
    """Return how many elements of memory a routine wants; None stands for an array, which it does not look at then."""
    dtype = np.dtype(char)
    args = [np.zeros(1, dtype) if size is None else np.array([size]) for size in sizes]
    found = np.zeros(1, dtype)
    _ask(name, char, *args, found, np.array([-1]), np.zeros(1, np.int64))
    return max(int(found[0]), 1)


def _ask(name: str, char: str, *args: np.ndarray) -> None:
    function: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(args))(blas_address(name, LETTERS[char]))
    function(*[own.ctypes.data for own in args])


FACTORS: Final[dict[str, Callable[..., Native | None]]] = {
    "cholesky": cholesky, "solve_triangular": solve_triangular, "solve": _solve, "inv": _inv, "det": _det,
    "slogdet": _slogdet, "qr": _qr, "eigh": _eigh, "svd": _svd,
}  # fmt: skip
