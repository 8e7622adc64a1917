"""Composites: products of matrices and vectors, times a number, plus another tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tapegrad.dtypes import TORCH_NAMES, check_range
from tapegrad.ops.arithmetic import mul, where
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.linalg import bmm, matmul, mv, outer
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import transpose
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.docs import Common
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.ops.table.public import public
from tapegrad.tensor import Tensor

_PLUS = {
    call: connect_as(f"{call.title()}Backward0", op_table["add"])
    for call in ("addmm", "addmv", "addr", "baddbmm", "addbmm")
}
F = TypeVar("F", bound=Callable[..., Any])

_COMMON = Common(
    "input : Tensor or array\n    Broadcast to the product.",
    "beta, alpha : number\n    With ``beta=0``, `input` is ignored, even where it is nan.",
    raises="RuntimeError\n    If the shapes do not fit or the dtypes differ.",
)


def _sum(product: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], ...]]) -> Callable[[F], F]:
    """Make a function public that adds a tensor to a product, with samples of these shapes."""
    samples = [Sample(own, {} if place % 2 == 0 else {"beta": 2.0, "alpha": -0.5}) for place, own in enumerate(shapes)]

    def oracle(input: Any, *factors: Any, beta: float = 1, alpha: float = 1) -> Any:
        return beta * input + alpha * product(*factors)

    def decorate(function: F) -> F:
        return public(method=True, inplace=True, common=_COMMON)(composite(samples, oracle)(function))

    return decorate


def _plus(call: str, input: Any, product: Tensor, beta: float, alpha: float) -> Tensor:
    """Return ``beta * input + alpha * product``."""
    dtype, shape = product._layout.dtype, product._layout.shape
    for name, factor in (("alpha", alpha), ("beta", beta)) if dtype.kind not in "fc" else ():
        if not float(factor).is_integer():
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number; "
                f"{call}() got {factor}"
            )
    if isinstance(input, (Tensor, np.ndarray)) and input.dtype != dtype and call != "addr":
        names = (TORCH_NAMES.get(dtype.name, dtype.name) for dtype in (input.dtype, product.dtype))
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {' and '.join(names)}; convert one with to() before "
            f"{call}()"
        )
    is_whole = input.__class__ is Tensor and input._layout.shape == shape
    expanded = input if is_whole else expand(input, shape)  # a result is not larger than the product
    if alpha == 0:
        product = where(np.False_, product, 0)  # which gives the operands a gradient of 0, as below
    elif alpha != 1:
        check_range(alpha, dtype)
        product = mul(product, alpha)
    if beta == 0:
        return where(np.False_, expanded, product)  # which gives it a gradient of 0
    if beta != 1:
        check_range(beta, dtype)
        expanded = mul(expanded, beta)
    return _PLUS[call](expanded, product)


@_sum(np.matmul, (((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4))))
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    r"""Product of two matrices, times `alpha`, plus `beta` times a matrix.

    Derivative: with :math:`Z = \alpha X Y + \beta M` and the `input` M,
    :math:`\bar X = \alpha^* \bar Z Y^H`, :math:`\bar Y = \alpha^* X^H \bar Z` and :math:`\bar M = \beta^* \bar Z`.

    Parameters
    ----------
    mat1 : Tensor or array, (n, k)
    mat2 : Tensor or array, (k, m)

    Returns
    -------
    Tensor, (n, m)

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addmm(tg.ones(2), tg.eye(2), tg.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    factors = as_operand(mat1, "addmm", "mat1", 2), as_operand(mat2, "addmm", "mat2", 3)
    for name, own in zip(("mat1", "mat2"), factors, strict=True):
        if own.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {own.ndim}-D tensor; baddbmm() takes batches")
    return _plus("addmm", input, matmul(*factors), beta, alpha)


@_sum(np.matmul, (((2,), (2, 3), (3,)), ((), (2, 3), (3,))))
def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of a matrix and a vector, times `alpha`, plus `beta` times a vector.

    Derivative: as of `addmm`.

    Parameters
    ----------
    mat : Tensor or array, (n, m)
    vec : Tensor or array, (m,)

    Returns
    -------
    Tensor, (n,)

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addmv(tg.tensor([1.0, 2.0]), tg.eye(2), tg.ones(2), alpha=3)
    tensor([4., 5.])
    """
    return _plus("addmv", input, mv(mat, vec), beta, alpha)


@_sum(np.outer, (((2, 3), (2,), (3,)), ((3,), (2,), (3,))))
def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Outer product of two vectors, times `alpha`, plus `beta` times a matrix.

    Derivative: as of `outer`; times `alpha`, and of `input` times `beta`.

    Parameters
    ----------
    vec1 : Tensor or array, (n,)
    vec2 : Tensor or array, (m,)

    Returns
    -------
    Tensor, (n, m)

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addr(tg.zeros(2, 2), tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return _plus("addr", input, outer(vec1, vec2), beta, alpha)


@_sum(np.matmul, (((2, 2, 4), (2, 2, 3), (2, 3, 4)), ((4,), (2, 2, 3), (2, 3, 4))))
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Products of two batches of matrices, times `alpha`, plus `beta` times a batch.

    Derivative: as of `addmm`.

    Parameters
    ----------
    batch1 : Tensor or array, (b, n, k)
    batch2 : Tensor or array, (b, k, m)

    Returns
    -------
    Tensor, (b, n, m)

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.baddbmm(tg.ones(1), tg.ones(5, 2, 3), tg.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    return _plus("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@_sum(lambda x, y: np.einsum("bij,bjk->ik", x, y), (((2, 4), (2, 2, 3), (2, 3, 4)), ((4,), (2, 2, 3), (2, 3, 4))))
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Sum of the products of two batches of matrices, times `alpha`, plus `beta` times a matrix.

    Derivative: as of `addmm` for each item.

    Parameters
    ----------
    batch1 : Tensor or array, (b, n, k)
    batch2 : Tensor or array, (b, k, m)

    Returns
    -------
    Tensor, (n, m)

    Notes
    -----
    The sum over the batch is a part of one product of matrices, (n, b k) and (b k, m).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addbmm(tg.zeros(1), tg.ones(5, 1, 3), tg.ones(5, 3, 2))
    tensor([[15., 15.]])
    """
    x, y = as_operand(batch1, "addbmm", "batch1", 2), as_operand(batch2, "addbmm", "batch2", 3)
    if x.ndim != 3 or y.ndim != 3 or (x.shape[0], x.shape[2]) != y.shape[:2]:
        bmm(x, y)  # which raises the error
    b, n, k = x.shape
    rows = reshape(transpose(x, 0, 1), (n, b * k))
    return _plus("addbmm", input, matmul(rows, reshape(y, (b * k, y.shape[2]))), beta, alpha)
