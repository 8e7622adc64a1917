"""Cholesky factors and solutions with triangles: small ones as loops, large ones by LAPACK and BLAS."""

from __future__ import annotations

from typing import Final

from tapegrad.program.native.calls import strided_by
from tapegrad.program.native.code import Code, Native
from tapegrad.program.native.matrices import each
from tapegrad.program.native.writer import Matrix
from tapegrad.program.program import Entry

__all__ = ["cholesky", "solve_triangular"]

_LOOPS: Final = 256  # rows up to which loops take at most half of the time of OpenBLAS
_HOW: Final = ("by LAPACK", "in loops")


def cholesky(code: Code, entry: Entry) -> Native | None:
    """Return the code of the operation of this name."""
    upper = bool(entry.attrs["upper"])
    in_loops = code.program.layouts[entry.operands[0]].shape[-1] <= _LOOPS

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((x,), (out,)) = operands, results
        n = x.shape[0]
        target = Matrix(out, (n, n), (n, 1))
        if in_loops:
            factor = target if upper else target._replace(pointer=code.room(n * n))
            code.copy(x if upper else x.turned, factor)
            code.factor_upper(factor)
            if not upper:
                code.copy(factor.turned, target)
        else:
            code.copy(x, target)
            code.call("potrf", "L" if upper else "U", n, out, n, code.info())  # of the transpose
            code.check()
        if n > 1 and upper:  # the other triangle
            code.loop_over(n, 1, lambda row: code.clear(code.at(out, (row, n)), row))
        elif n > 1:
            code.loop_over(
                n - 1,
                1,
                lambda row: code.clear(code.at(out, (row, n + 1), (1, 1)), code.text.op(f"sub i64 {n - 1}, {row}")),
            )

    return each(code, entry, "the Cholesky factor", write, how=_HOW[in_loops])


def solve_triangular(code: Code, entry: Entry) -> Native | None:
    """Return the code of the operation of this name."""
    upper, left, unit = (bool(entry.attrs[name]) for name in ("upper", "left", "unitriangular"))
    (*_, n), (*_, rows, columns) = (code.program.layouts[number].shape for number in entry.operands)
    is_vector = (columns if left else rows) == 1
    in_loops = n <= _LOOPS and not is_vector

    def write(code: Code, operands: list[Matrix], results: list[str]) -> None:
        ((a, b), (out,)) = operands, results
        target = Matrix(out, b.shape, (columns, 1))
        if in_loops:
            by_loops(code, a, b, target)
            return
        if 1 not in a.strides:
            a = code.copied(a)
        turned, step = strided_by(a)
        # Rows are columns of the transposes: A X = B is X^T A^T = B^T there.
        triangle, letter, diagonal = "UL"[upper == (turned == "N")], turned, "NU"[unit]
        code.copy(b, target)
        if is_vector:
            code.call(
                "trsv", triangle, "NT"[(letter == "N") == left], diagonal, rows * columns, a.pointer, step, out, 1
            )
        else:
            code.call(
                "trsm", "LR"[left], triangle, letter, diagonal, columns, rows, 1.0, a.pointer, step, out, columns
            )  # fmt: skip

    def by_loops(code: Code, a: Matrix, b: Matrix, target: Matrix) -> None:
        if left:
            code.copy(b, target)
            code.solve(a, target, upper, unit)
            return
        rows, columns = b.shape  # X A = B is A^T X^T = B^T
        x = Matrix(code.room(rows * columns), (columns, rows), (rows, 1))
        code.copy(b.turned, x)
        code.solve(a.turned, x, not upper, unit)
        code.copy(x.turned, target)

    return each(code, entry, "a solution with a triangle", write, in_double=False, how=_HOW[in_loops])
