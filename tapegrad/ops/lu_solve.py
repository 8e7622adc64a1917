"""Composites: linear systems with LU factors that are packed into one matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.lapack import check_alike, matrices
from tapegrad.ops.lu import LU, factors_of, permutations, permuted
from tapegrad.ops.permutations import adjoint as adjoint_of
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, raw_data
from tapegrad.ops.table.index_values import are_within
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import identity, triangular
from tapegrad.ops.triangular import solve_triangular
from tapegrad.tensor import Tensor, from_array


def _check_pivots(pivots: Tensor, n: int) -> None:
    """Raise an error if a pivot that a user gives is the number of no row."""
    if pivots.shape[-1] > n or not are_within(pivots, 1, n + 1):
        own = np.asarray(raw_data(pivots))
        raise RuntimeError(
            f"LU_pivots should be at most {n} numbers from 1 to {n}, the rows of the matrix; got {own.shape[-1]} "
            f"from {own.min(initial=n)} to {own.max(initial=0)}: pass those of lu_factor()"
        )


def without_pivots(function: Any, packed: Any, *operands: Any, **attrs: Any) -> Any:
    """Call a function of factors without exchanges of rows: of arrays and of tensors, PyTorch's too."""
    pivots: Any = np.array([[*range(1, min(packed.shape[-2:]) + 1)]] * int(np.prod(packed.shape[:-2])), np.int32)
    pivots = pivots.reshape(*packed.shape[:-2], -1)
    return function(
        packed, packed.new_tensor(pivots).int() if hasattr(packed, "new_tensor") else pivots, *operands, **attrs
    )


@public()
@composite(
    (Sample(((3, 3),)), Sample(((2, 3),))),
    lambda packed: np.tril(packed[:, :2], -1) + np.eye(*packed[:, :2].shape, dtype=packed.dtype),
    call=lambda function, packed: without_pivots(function, packed)[1][:, :2],
)
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> LU:
    r"""Return the factors of a decomposition that are packed into one matrix, as by `lu_factor`.

    Derivative: with :math:`A = L + U - I` as one matrix,
    :math:`\bar A = \mathrm{stril}(\bar L) + \mathrm{triu}(\bar U)`.

    Parameters
    ----------
    LU_data : Tensor or array, (..., m, n)
    LU_pivots : Tensor or array, (..., k)
        Of dtype int32.
    unpack_data, unpack_pivots : bool
        Whether L and U, and P, are wanted; else they are empty.

    Returns
    -------
    named tuple of Tensor
        ``P``, ``L`` and ``U``.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.lu_unpack(*tg.linalg.lu_factor(tg.tensor([[1.0, 2.0], [2.0, 1.0]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    packed, pivots = as_operand(LU_data, "lu_unpack", "LU_data", 1), as_operand(LU_pivots, "lu_unpack", "LU_pivots", 2)
    if unpack_pivots and pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n Note: this "
            f"function is intended to be used with the output produced by torch.linalg.lu_factor; got {pivots.dtype}"
        )
    if packed.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(packed.shape)} instead"
        )
    nothing = np.empty(0, packed.dtype)
    left, right = factors_of(packed) if unpack_data else (from_array(nothing), from_array(nothing))
    if not unpack_pivots:
        return LU(from_array(nothing), left, right)
    _check_pivots(pivots, packed.shape[-2])
    order = permutations(pivots, packed.shape[-2], packed.dtype)
    return LU(order, left, right)


def solve_with_factors(lu: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    """Return solutions with factors, without exchanges of rows: the oracle."""
    n = lu.shape[-1]
    a = (np.tril(lu, -1) + np.eye(n)) @ np.triu(lu)
    a = a.conj().swapaxes(-1, -2) if adjoint else a
    return (np.linalg.inv(a) @ b if left else b @ np.linalg.inv(a)).astype(b.dtype)


@public(namespaces=(LINALG,))
@composite(
    tuple(
        Sample(shapes, attrs, values=(triangular, None))
        for shapes, attrs in (
            (((3, 3), (3, 2)), {}), (((3, 3), (3, 2)), {"adjoint": True}), (((3, 3), (2, 3)), {"left": False}),
            (((2, 3, 3), (3, 2)), {}),
        )
    ),
    solve_with_factors, call=without_pivots, kinks=(identity,), name="linalg.lu_solve",
)  # fmt: skip
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Tensor:
    r"""Solutions of :math:`A X = B` with the factors of :math:`A` by `lu_factor`.

    Parameters
    ----------
    LU : Tensor or array, (..., n, n)
    pivots : Tensor or array, (..., n)
        Of dtype int32.
    B : Tensor or array, (..., n, k)
    left : bool
        If False, solve :math:`X A = B`, where `B` is (..., k, n).
    adjoint : bool
        Solve with :math:`A^H`.

    Raises
    ------
    RuntimeError
        If the shapes do not fit, the dtypes differ or are of integers.

    Examples
    --------
    >>> import tapegrad as tg
    >>> LU, pivots = tg.linalg.lu_factor(tg.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> tg.linalg.lu_solve(LU, pivots, tg.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    packed, b = matrices("linalg.lu_solve", "LU", LU, 1), matrices("linalg.lu_solve", "B", B, 3)
    check_alike("linalg.lu_solve", packed, b, "LU and B")
    exchanges = as_operand(pivots, "linalg.lu_solve", "pivots", 2)
    if exchanges.dtype != np.int32:
        raise RuntimeError(
            f"linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32, got {exchanges.dtype}"
        )
    if exchanges.shape[-1:] != packed.shape[-1:]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix; got pivots of "
            f"shape {list(exchanges.shape)} for LU of shape {list(packed.shape)}"
        )
    if exchanges.shape != packed.shape[:-1]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(exchanges.shape)} instead"
        )
    if not left:
        b, adjoint = adjoint_of(b), not adjoint
    if adjoint:
        found = solve_triangular(adjoint_of(packed), b, upper=False)
        found = solve_triangular(adjoint_of(packed), found, upper=True, unitriangular=True)
        _check_pivots(exchanges, found.shape[-2])
        found = permuted(exchanges, found)
    else:
        _check_pivots(exchanges, b.shape[-2])
        found = permuted(exchanges, b, back=True)
        found = solve_triangular(packed, found, upper=False, unitriangular=True)
        found = solve_triangular(packed, found, upper=True)
    return found if left else adjoint_of(found)
