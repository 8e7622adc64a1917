"""Composites: inverses of matrices and tensors under further names, and some that say whether there is an inverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.errors import LinAlgError
from tapegrad.ops.arithmetic import where
from tapegrad.ops.matrices import inv, solve, square_matrices
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import movedim
from tapegrad.ops.routines import as_list, routine
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample, xp
from tapegrad.ops.table.public import LINALG, public
from tapegrad.ops.table.values import full_rank, invertible
from tapegrad.return_types import return_type
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tensor import Tensor, from_array


class SolveEx(NamedTuple):
    """The results of `solve_ex`."""

    result: Tensor
    info: Tensor


_solve_ex = return_type(SolveEx, "linalg_solve_ex")


class InvEx(NamedTuple):
    """The results of `inv_ex`."""

    inverse: Tensor
    info: Tensor


_inv_ex = return_type(InvEx, "linalg_inv_ex")


@public(method=True, of=inv)
def inverse(input: Any) -> Tensor:
    """Inverses of square matrices; see `tapegrad.linalg.inv`.

    Parameters
    ----------
    input : Tensor or array, (..., n, n)

    Returns
    -------
    Tensor, (..., n, n)

    Raises
    ------
    LinAlgError
        If a matrix is singular.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.inverse(tg.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    found: Tensor = inv(input)
    return found


# With info ---------------------------------------------------------------------------------------------------------


def _zeros_of_factors(x: Any) -> Any:
    """Return for each matrix the first zero on the diagonal of its factor U, counted from 1; 0 if there is none."""
    getrf = routine("getrf", x.dtype)
    return np.array([getrf(own)[2] if own.size else 0 for own in as_list(x)], np.int32).reshape(x.shape[:-2])


def _with_info(function: Callable[[Any], Any], a: Tensor, check_errors: bool) -> tuple[Tensor, Tensor]:
    """Return the result of a function of matrices, nan for those that are singular, and which these are."""
    if check_errors or not (a.is_traced and bool((xp.lu_factor_ex(a.detach()).info != 0).any())):
        try:
            return function(a), from_array(np.zeros(a.shape[:-2], np.int32))
        except LinAlgError:
            if check_errors:
                raise
    info = _zeros_of_factors(np.asarray(a.detach()._data))
    others = function(where((info != 0)[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a))
    singular = (info != 0)[(..., *[None] * (others.ndim - info.ndim))]
    return where(singular, np.nan, others), from_array(info)


@public(namespaces=(LINALG,))
@composite((Sample(((3, 3),), values=(invertible,)),), lambda A: np.linalg.solve(A, np.eye(len(A), dtype=A.dtype)),
           call=lambda function, A: function(A)[0], kinks=(full_rank,))  # fmt: skip
def inv_ex(A: Any, *, check_errors: bool = False) -> InvEx:
    """Inverses of square matrices, and whether there are any.

    Derivative: as of `tapegrad.linalg.inv`.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    check_errors : bool
        Raise the error of `inv`.

    Returns
    -------
    named tuple of Tensor
        ``inverse``, (..., n, n), nan if a matrix is singular, and ``info``, (...): 0, or where a factor of a singular
        matrix has a zero.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.inv_ex(tg.zeros(2, 2)).info.item()
    1
    """
    x = square_matrices("linalg.inv_ex", "A", A, 1)
    return _inv_ex(*_with_info(inv, x, check_errors))


@public(namespaces=(LINALG,))
@composite((Sample(((3, 3), (3, 2)), values=(invertible, None)),), np.linalg.solve,
           call=lambda function, A, B: function(A, B)[0], kinks=(full_rank,))  # fmt: skip
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """Solutions of systems of linear equations, as by `solve`, and whether there are any.

    Parameters
    ----------
    A : Tensor or array, (..., n, n)
    B : Tensor or array, (..., n, k), (n,) or (..., n)
    left : bool
        If False, solve :math:`X A = B`.
    check_errors : bool
        Raise the error of `solve`.

    Returns
    -------
    named tuple of Tensor
        ``result``, nan if a matrix is singular, and ``info``, (...): 0, or where a factor of a singular matrix has a
        zero.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.solve_ex(tg.eye(2), tg.ones(2)).result
    tensor([1., 1.])
    """
    a, b = square_matrices("linalg.solve_ex", "A", A, 1), as_operand(B, "linalg.solve_ex", "B", 2)
    return _solve_ex(*_with_info(lambda own: solve(own, b, left=left), a, check_errors))


# Tensors -----------------------------------------------------------------------------------------------------------


def _reshaped(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    """Return a tensor that is an invertible matrix in another shape."""
    n = math.isqrt(math.prod(shape))
    return invertible((n, n), dtype, rng).reshape(shape)


@public(namespaces=(LINALG,), functions=("linalg.tensorinv",))
@composite(
    (
        Sample(((4, 2, 2),), {"ind": 1}, values=(_reshaped,)),
    ),
    np.linalg.tensorinv, kinks=(),
)  # fmt: skip
def tensorinv(A: Any, ind: int = 2) -> Tensor:
    """Inverse of a tensor as a function of tensors by `tensordot`.

    Derivative: as of `tapegrad.linalg.inv` of the matrix that the dimensions form.

    Parameters
    ----------
    A : Tensor or array
        The product of its first `ind` lengths is that of the others.
    ind : int

    Raises
    ------
    LinAlgError
        If there is none.
    RuntimeError
        If the lengths do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.tensorinv(tg.eye(4).reshape(4, 2, 2), 1).shape
    (2, 2, 4)
    """
    x = as_operand(A, "linalg.tensorinv", "A", 1)
    if ind < 1:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}; see tensorinv()")
    first, rest = x.shape[:ind], x.shape[ind:]
    if math.prod(first) != math.prod(rest):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(rest)} != {math.prod(first)}; see tensorinv()"
        )
    return reshape(inv(reshape(x, (math.prod(first), math.prod(rest)))), (*rest, *first))


def _tensorsolve_as_numpy(a: Any, b: Any, axes: Any = None) -> Any:
    return tensorsolve(a, b, axes)


@public(namespaces=(LINALG,), functions=("linalg.tensorsolve",),
        adapter=_tensorsolve_as_numpy)  # fmt: skip
@composite(
    (Sample(((4, 2, 2), (4,)), values=(_reshaped, None)),), np.linalg.tensorsolve, kinks=(),
)  # fmt: skip
def tensorsolve(A: Any, B: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Solution of ``tensordot(A, X, X.ndim) = B``.

    Derivative: as of `tapegrad.linalg.solve` of the matrix that the dimensions form.

    Parameters
    ----------
    A, B : Tensor or array
    dims : sequence of int, optional
        Dimensions of `A` to move to its end first.

    Raises
    ------
    LinAlgError
        If there is none.
    RuntimeError
        If the lengths do not fit.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.linalg.tensorsolve(tg.eye(4).reshape(2, 2, 4), tg.ones(2, 2)).shape
    (4,)
    """
    x, b = as_operand(A, "linalg.tensorsolve", "A", 1), as_operand(B, "linalg.tensorsolve", "B", 2)
    if dims is not None:
        x = movedim(x, tuple(dims), tuple(range(x.ndim - len(dims), x.ndim)))
    rest = x.shape[b.ndim :]
    if math.prod(b.shape) != math.prod(rest):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(rest)} != {math.prod(b.shape)}; see tensorsolve()"
        )
    n = math.prod(rest)
    return reshape(solve(reshape(x, (n, n)), reshape(b, (n,))), rest)
