"""Ops: factors of symmetric and Hermitian matrices that need not be positive, by LAPACK; a composite that solves.

:math:`A = P L D L^H P^T` with exchanges of rows and columns P, a triangle L and blocks D of one or two rows (Bunch and
Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", 1977).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.ops.lapack import check_alike, decomposition, matrices, not_matrices
from tapegrad.ops.lu_solve import without_pivots
from tapegrad.ops.matrices import TWO_BY_THREE, square_matrices
from tapegrad.ops.permutations import adjoint, transpose
from tapegrad.ops.routines import as_list, routine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import values_of
from tapegrad.ops.table.op import Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import distinct, identity, invertible, triangular
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor


class LDLFactors(NamedTuple):
    """The results of `ldl_factor`."""

    LD: Tensor
    pivots: Tensor


_factors = return_type(LDLFactors, "linalg_ldl_factor")


class LDLFactorsEx(NamedTuple):
    """The results of `ldl_factor_ex`."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _turned(x: Any, hermitian: bool) -> Any:
    """Return what stands on the other side of the factors."""
    return adjoint(x) if hermitian else transpose(x, -1, -2)


def _forward(x: Any, hermitian: bool, check_errors: bool) -> Any:
    factor = routine("hetrf" if hermitian and x.dtype.kind == "c" else "sytrf", x.dtype)
    found, n = [factor(own, lower=1) for own in as_list(x)] if x.size else [], x.shape[-1]
    info = np.array([own[2] for own in found], np.int32)
    if check_errors and info.any():
        raise LinAlgError(
            f"torch.linalg.ldl_factor_ex: D[{info.max()},{info.max()}] is zero, so that the matrix is singular"
        )
    factors = np.array([own[0] for own in found], x.dtype).reshape(x.shape)
    pivots = np.array([own[1] for own in found], np.int32).reshape(*x.shape[:-2], n)
    return np.tril(factors), pivots, np.zeros(x.shape[:-2], np.int32) if not x.size else info.reshape(x.shape[:-2])


class _Places:
    """Where what LAPACK packs into a matrix belongs: arrays for all matrices of a batch.

    Attributes
    ----------
    order : array, (..., n, n)
        The matrix P.
    rows : array of int, (..., n, n)
        The row of each element of L: columns are packed before later rows are exchanged.
    below, blocks : array of bool, (..., n, n)
        What belongs to L, without its diagonal, and to the lower triangle of D.
    """

    def __init__(self, pivots: Any, dtype: Any) -> None:
        n = pivots.shape[-1]
        flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), n).tolist()
        order = np.tile(np.arange(n), (len(flat), 1))
        rows = np.tile(np.arange(n)[:, None], (len(flat), 1, n))
        blocks = np.tile(np.eye(n, dtype=bool), (len(flat), 1, 1))
        for place, own in enumerate(flat):
            k = 0
            while k < n:
                last = k if own[k] > 0 else k + 1  # of the block; a negative pivot stands for both of its rows
                swapped = [last, abs(own[k]) - 1]
                order[place, swapped] = order[place, swapped[::-1]]
                rows[place, swapped, :k] = rows[place, swapped[::-1], :k]
                blocks[place, last, k] = True
                k = last + 1
        shape = (*pivots.shape, n)
        self.order = np.swapaxes(np.eye(n, dtype=dtype)[order], -1, -2).reshape(shape)
        self.rows, self.blocks = rows.reshape(shape), blocks.reshape(shape)
        self.below = np.tri(n, n, -1, dtype=bool) & ~self.blocks

    def factors(self, packed: Any, hermitian: bool) -> tuple[Any, Any]:
        """Return L and D."""
        eye = np.eye(packed.shape[-1], dtype=packed.dtype)
        left = xp.where(self.below, xp.gather(packed, -2, self.rows), 0.0) + eye
        lower = xp.where(self.blocks, packed, 0.0)
        return left, lower + _turned(xp.where(self.blocks & ~eye.astype(bool), packed, 0.0), hermitian)


def _rule(ct: Any, out: Any, pivots: Any, hermitian: bool) -> tuple[Any]:
    places = _Places(np.asarray(pivots.numpy()), out.dtype)
    left, middle = places.factors(out, hermitian)
    of_left = xp.where(places.below, xp.gather(ct, -2, places.rows), 0.0)
    slopes = xp.matmul(xp.matmul(adjoint(left), of_left), xp.inv(adjoint(middle)))
    slopes = xp.where(places.below, slopes, xp.where(places.blocks, ct, 0.0))
    slopes = xp.solve_triangular(adjoint(left), slopes, upper=True, unitriangular=True)
    right = left if hermitian else xp.conj(left)
    slopes = xp.solve_triangular(right, slopes, upper=False, left=False, unitriangular=True)
    slopes = xp.matmul(xp.matmul(places.order, slopes), places.order.swapaxes(-1, -2))
    return (0.5 * (slopes + _turned(slopes, hermitian)),)


def _symmetric(x: Any, hermitian: bool = False, **attrs: Any) -> Tensor:
    x = square_matrices("linalg", "A", x, 1)
    return xp.ldl_factor_ex((x + _turned(x, hermitian)) * 0.5, hermitian=hermitian, **attrs)  # type: ignore[no-any-return]


def _oracle(x: Any, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Eliminate by blocks, with the pivots that Bunch and Kaufman choose."""
    a = (x + (x.conj() if hermitian else x).swapaxes(-1, -2)) / 2
    for own in a.reshape(-1, *x.shape[-2:]):
        k, n = 0, len(own)
        while k < n:
            last, pivot = _bunch_kaufman(abs(own.real) + abs(own.imag), k)
            part = own[k:, k:]
            part[[last - k, pivot - k]] = part[[pivot - k, last - k]]
            part[:, [last - k, pivot - k]] = part[:, [pivot - k, last - k]]
            size = last - k + 1
            below = part[size:, :size] @ np.linalg.inv(part[:size, :size])
            part[size:, size:] -= below @ (part[size:, :size].conj() if hermitian else part[size:, :size]).T
            part[size:, :size] = below
            k = last + 1
    return np.tril(a)


def _bunch_kaufman(sizes: Any, k: int) -> tuple[int, int]:
    """Return the last row of a block that begins at k, and the row that is exchanged with that."""
    alpha, n = (1 + 17**0.5) / 8, len(sizes)
    if k == n - 1:
        return k, k
    largest = k + 1 + int(np.argmax(sizes[k + 1 :, k]))
    of_column = sizes[largest, k]
    if sizes[k, k] >= alpha * of_column:
        return k, k
    of_row = np.delete(sizes[largest, k:], largest - k).max()
    if sizes[k, k] >= alpha * of_column * (of_column / of_row):
        return k, k
    return (k, largest) if sizes[largest, largest] >= alpha * of_row else (k + 1, largest)


@decomposition(
    "ldl_factor_ex",
    forward=_forward,
    vjp=_rule,
    attrs=("hermitian", "check_errors"),
    results=("LD", "pivots", "info"),
    result_type=return_type(LDLFactorsEx, "linalg_ldl_factor_ex"),
    kinks=(),
    call=_symmetric,
    oracle=_oracle,
    samples=tuple(
        Sample((shape,), attrs, values=(distinct,))
        for shape, attrs in (
            ((1, 1), {}), ((4, 4), {}), ((4, 4), {"hermitian": True}), ((2, 3, 3), {}), ((0, 2, 2), {}),
        )
    ),
    errors=(
        *not_matrices(lambda x: xp.ldl_factor_ex(x), "linalg.ldl_factor_ex"),
        ErrorSample(lambda: xp.ldl_factor_ex(np.ones((2, 3))), RuntimeError, f"linalg.ldl_factor_ex: {TWO_BY_THREE}"),
        ErrorSample(
            lambda: xp.ldl_factor_ex(np.zeros((2, 2)), check_errors=True), LinAlgError, "is zero, so that the matrix"
        ),
    ),
)  # fmt: skip
def ldl_factor_ex(A: Any, *, hermitian: bool = False, check_errors: bool = False) -> Bound:
    r"""Factors L and D of symmetric or Hermitian matrices, in one matrix; and whether one is singular.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
        Of a floating point or complex dtype. The lower triangle is read.
    hermitian : bool
        Whether complex matrices are Hermitian; default symmetric.
    check_errors : bool
        Raise an error if D is singular.

    Returns
    -------
    named tuple of Tensor
        ``LD``, (..., n, n): the lower triangle of D, and below its blocks L; ``pivots``, (..., n): LAPACK's, negative
        for the two rows of a block; ``info``, (...): the first zero block of D, counted from 1, or 0.

    Raises
    ------
    RuntimeError
        If `A` is not square matrices of numbers with a fraction.

    Notes
    -----
    Derivative: of :math:`S = L^{-1} P^T \dot A P L^{-H}` the blocks are :math:`\dot D`, and what is below them
    :math:`L^{-1} \dot L D`. PyTorch has none.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.ldl_factor_ex(tg.tensor([[4.0, 2.0], [2.0, -3.0]])).LD
    tensor([[ 4.0000,  0.0000],
            [ 0.5000, -4.0000]])
    """
    x = square_matrices("linalg.ldl_factor_ex", "A", A, 1)
    return Bound((x,), {"hermitian": bool(hermitian), "check_errors": bool(check_errors)})


@public(namespaces=(LINALG,), of=ldl_factor_ex)
def ldl_factor(A: Any, *, hermitian: bool = False) -> LDLFactors:
    """Factors L and D of symmetric or Hermitian matrices, in one matrix; see `ldl_factor_ex`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    hermitian : bool
        Whether complex matrices are Hermitian; default symmetric.

    Returns
    -------
    named tuple of Tensor
        ``LD`` and ``pivots``.

    Raises
    ------
    LinAlgError
        If D is singular.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.ldl_factor(tg.tensor([[4.0, 2.0], [2.0, -3.0]])).pivots.tolist()
    [1, 2]
    """
    packed, pivots, _ = ldl_factor_ex(
        square_matrices("linalg.ldl_factor", "A", A, 1), hermitian=hermitian, check_errors=True
    )
    return _factors(packed, pivots)


def _solved(packed: Any, b: Any, hermitian: bool = False) -> Any:
    """Return solutions with factors, without exchanges of rows: the oracle."""
    left = np.tril(packed, -1) + np.eye(packed.shape[-1])
    middle = packed * np.eye(packed.shape[-1])
    a = left @ middle @ (left.conj() if hermitian else left).swapaxes(-1, -2)
    return (np.linalg.inv(a) @ b).astype(b.dtype)


@public(namespaces=(LINALG,))
@composite(
    (
        Sample(((3, 3), (3, 2)), values=(triangular, None)),
        Sample(((2, 3, 3), (2, 3, 1)), {"hermitian": True}, (invertible, None)),
    ),
    _solved, call=without_pivots, kinks=(identity,),
)  # fmt: skip
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Tensor:
    r"""Solutions of :math:`A X = B` with the factors of :math:`A` by `ldl_factor`.

    Parameters
    ----------
    LD : Tensor or array, (..., n, n)
    pivots : Tensor or array of int, (..., n)
    B : Tensor or array, (..., n, k)
    hermitian : bool
        As of the factors.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or the dtypes differ or are of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> factors = tg.linalg.ldl_factor(tg.tensor([[4.0, 2.0], [2.0, -3.0]]))
    >>> tg.linalg.ldl_solve(*factors, tg.tensor([[6.0], [-1.0]]))
    tensor([[1.],
            [1.]])
    """
    call = "linalg.ldl_solve"
    packed, b = square_matrices(call, "LD", LD, 1), matrices(call, "B", B, 3)
    given = values_of(pivots, call, "pivots", 2)
    if given.shape != packed.shape[:-1]:
        raise RuntimeError(
            f"torch.{call}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(given.shape)} instead, for LD of {list(packed.shape)}"
        )
    if packed.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.{call}: each A matrix is {packed.shape[-1]} by {packed.shape[-1]} "
            f"but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    check_alike(call, packed, b, "LD and B")
    places = _Places(given, packed.dtype)
    left, middle = places.factors(packed, hermitian)
    found = xp.matmul(places.order.swapaxes(-1, -2), b)
    found = xp.solve_triangular(left, found, upper=False, unitriangular=True)
    found = xp.solve_triangular(_turned(left, hermitian), xp.solve(middle, found), upper=True, unitriangular=True)
    result: Tensor = xp.matmul(places.order, found)
    return result
