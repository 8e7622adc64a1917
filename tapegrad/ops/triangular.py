"""Op: solutions of triangular systems, by BLAS; and what is made of it."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from tapegrad.forward.matrices import have_kernels, prepared_with_triangle, solution_with_triangle
from tapegrad.ops.lapack import check_alike, decomposition, identity, lower, matrices, triangle
from tapegrad.ops.lapack import (
    upper as upper_part,
)
from tapegrad.ops.linalg import matmul
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint
from tapegrad.ops.routines import as_list, routine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.values import triangular
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor


def _forward(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    if not b.size or not a.size:
        return np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    if have_kernels(a) and have_kernels(b):
        return solution_with_triangle(a, b, upper, left, unitriangular)
    if a.ndim == b.ndim == 2:
        return _solve_one(a, b, upper, left, unitriangular)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.shape[-1] <= _SMALL and (triangles := _triangles(a, upper, unitriangular)) is not None:
        return _solve_all(triangles, b, upper, left)
    out = np.empty((*batch, *b.shape[-2:]), b.dtype)
    flat = out.reshape(-1, *b.shape[-2:])
    for place, (one, other) in enumerate(zip(as_list(a, batch), as_list(b, batch), strict=True)):
        flat[place] = _solve_one(one, other, upper, left, unitriangular)
    return out


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Any:
    a, b = layouts
    made = prepared_with_triangle(a, b, attrs["upper"], attrs["left"], attrs["unitriangular"])
    return made or functools.partial(_forward, **attrs)


_SMALL: Final = 16  # rows up to which calls take longer than what LAPACK does in vain with a triangle


def _triangles(a: Any, upper: bool, unit: bool) -> Any:
    """Return matrices of which only one triangle is not zero; None if one has no inverse."""
    k = int(unit)
    found = np.where(triangle(*a.shape[-2:], upper, k if upper else -k), a, 0)
    diagonal = found[..., range(a.shape[-1]), range(a.shape[-1])]
    if unit:
        found[..., range(a.shape[-1]), range(a.shape[-1])] = 1
    return found if unit or diagonal.all() else None


def _solve_all(a: Any, b: Any, upper: bool, left: bool) -> Any:
    """Return the solutions for many small matrices, in one call of NumPy.

    An upper triangle is its own factor U, without an exchange of rows; a lower one is turned into an upper one.
    """
    if not left:
        out = _solve_all(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True).swapaxes(-1, -2)
    elif upper:
        out = np.linalg.solve(a, b)
    else:
        out = np.linalg.solve(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]
    return np.ascontiguousarray(out)


def _solve_one(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """Return the solution for one matrix.

    Rows are columns of the transposes, which BLAS solves: X^T A^T = B^T. Only the result is a copy.
    """
    trsm = routine("trsm", b.dtype)
    if a.flags.f_contiguous:
        return trsm(1.0, a, b.T, left, not upper, 1, unit).T
    return trsm(1.0, a.T, b.T, left, upper, 0, unit).T


def _rule(
    ct: Any, a: Any, out: Any, upper: bool, left: bool, unitriangular: bool, wanted: tuple[bool, bool]
) -> tuple[Any, Any]:
    of_b = xp.solve_triangular(adjoint(a), ct, upper=not upper, left=left, unitriangular=unitriangular)
    if not wanted[0]:
        return None, of_b
    of_a = xp.matmul(of_b, adjoint(out)) if left else xp.matmul(adjoint(out), of_b)
    part = upper_part(of_a, int(unitriangular)) if upper else lower(of_a, -int(unitriangular))
    return -part, of_b if wanted[1] else None


def _oracle(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    return (np.linalg.inv(a) @ b if left else b @ np.linalg.inv(a)).astype(b.dtype)


@decomposition(
    "solve_triangular",
    operands=("a", "b"),
    forward=_forward,
    prepare_forward=_prepare,
    vjp=_rule,
    attrs=("upper", "left", "unitriangular"),
    node_name="LinalgSolveTriangularBackward0",
    oracle=_oracle,
    samples=tuple(
        Sample(tuple(shapes), attrs, values=(triangular, None))
        for *shapes, attrs in (
            ((3, 3), (3, 2), {"upper": False}),
            ((3, 3), (3, 2), {"upper": True}),
            ((3, 3), (2, 3), {"upper": True, "left": False}),
            ((2, 3, 3), (3, 1), {"upper": False, "unitriangular": True}),
            ((3, 3), (2, 4, 3), {"upper": False, "left": False}),
            ((2, 0, 0), (2, 0, 3), {"upper": False}),
        )
    ),
    errors=(
        ErrorSample(
            lambda: xp.solve_triangular(np.ones((2, 3)), np.ones((2, 1)), upper=True), RuntimeError,
            f"linalg.solve_triangular: {TWO_BY_THREE}",
        ),
        ErrorSample(
            lambda: xp.solve_triangular(np.eye(2), np.ones((3, 1)), upper=True), RuntimeError,
            "linalg.solve_triangular: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)",
        ),
        ErrorSample(
            lambda: xp.solve_triangular(np.eye(2), np.ones((2, 1), np.float32), upper=True), RuntimeError,
            "linalg.solve_triangular: Expected A and B to have the same dtype",
        ),
        ErrorSample(
            lambda: xp.solve_triangular(np.ones((3, 2, 2)), np.ones((2, 2, 1)), upper=True), RuntimeError,
            "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
        ),
    ),
)  # fmt: skip
def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Bound:
    r"""Solutions of systems of linear equations with triangular matrices, :math:`A X = B`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype. Only one triangle is read.
    B : Tensor or array, (..., n, k)
        Of the same dtype.
    upper : bool
        Which triangle that is.
    left : bool
        If False, solve :math:`X A = B`, where `B` is (..., k, n).
    unitriangular : bool
        Take the diagonal for ones.

    Returns
    -------
    Tensor
        Of the shape of `B`, with the batches of both broadcast; infinite or nan if there is a zero on the diagonal.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Notes
    -----
    Derivatives: :math:`\bar B = A^{-H} \bar X` and the triangle of :math:`\bar A = -\bar B X^H`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.solve_triangular(tg.tensor([[1.0, 0.0], [1.0, 2.0]]), tg.tensor([[1.0], [3.0]]), upper=False)
    tensor([[1.],
            [1.]])
    """
    a, b = square_matrices("linalg.solve_triangular", "A", A, 1), matrices("linalg.solve_triangular", "B", B, 2)
    if a.shape[-1] != b.shape[-2 if left else -1]:
        sizes = f"{a.shape[-1]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]}"
        equation = "AX" if left else "XA"
        raise RuntimeError(
            f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {equation} = B ({sizes})"
        )
    check_alike("linalg.solve_triangular", a, b)
    return Bound((a, b), {"upper": bool(upper), "left": bool(left), "unitriangular": bool(unitriangular)})


# With a Cholesky factor --------------------------------------------------------------------------------------------


def _product_of(factor: Any, is_upper: bool) -> Any:
    factor = np.triu(factor) if is_upper else np.tril(factor)
    adjoint = factor.conj().swapaxes(-1, -2)
    return adjoint @ factor if is_upper else factor @ adjoint


@public(method=True)
@composite(
    tuple(
        Sample(shapes, attrs, values=(None, triangular))
        for shapes, attrs in ((((3, 2), (3, 3)), {}), (((3, 2), (2, 3, 3)), {"upper": True}))
    ),
    lambda input, L, upper=False: np.linalg.solve(_product_of(L, upper), input),
    kinks=(),  # of the triangle that is not read, PyTorch has a gradient
)
def cholesky_solve(input: Any, L: Any, upper: bool = False) -> Tensor:
    r"""Solutions of :math:`A X = B` with the Cholesky factor of :math:`A`.

    Parameters
    ----------
    input : Tensor or array, (..., n, k)
        The right-hand sides.
    L : Tensor or array, (..., n, n)
        The factor, of which one triangle is read: :math:`A = L L^H`.
    upper : bool
        Whether it is the upper factor, :math:`A = L^H L`.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cholesky_solve(tg.tensor([[4.0], [9.0]]), tg.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([[1.],
            [1.]])
    """
    b, factor = matrices("cholesky_solve", "input", input, 1), matrices("cholesky_solve", "L", L, 2)
    first, last = (adjoint(factor), factor) if upper else (factor, adjoint(factor))
    return solve_triangular(last, solve_triangular(first, b, upper=False), upper=True)  # type: ignore[no-any-return]


@public(method=True)
@composite(
    tuple(
        Sample(shapes, attrs, values=(triangular,))
        for shapes, attrs in ((((3, 3),), {}), (((2, 3, 3),), {"upper": True}))
    ),
    lambda input, upper=False: np.linalg.inv(_product_of(input, upper)),
    kinks=(),  # of the triangle that is not read, PyTorch has a gradient
)
def cholesky_inverse(input: Any, upper: bool = False) -> Tensor:
    r"""Inverses of matrices with given Cholesky factors.

    Parameters
    ----------
    input : Tensor or array, (..., n, n)
        The factors :math:`L`, of which one triangle is read; the matrices are :math:`L L^H`.
    upper : bool
        Whether they are upper factors, of :math:`L^H L`.

    Raises
    ------
    RuntimeError
        If they are not square matrices of numbers with a fraction.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.cholesky_inverse(tg.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    factor = square_matrices("cholesky_inverse", "input", input, 1)
    root = solve_triangular(factor, identity(factor.shape[-1], factor.dtype), upper=upper)
    return matmul(root, adjoint(root)) if upper else matmul(adjoint(root), root)
