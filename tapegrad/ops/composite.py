"""Functions made of rows: their derivatives need no rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tapegrad.dtypes import default_dtype
from tapegrad.forward.rowwise import extrema
from tapegrad.ops.arithmetic import add, div, mul, sub, where
from tapegrad.ops.broadcasting import expand
from tapegrad.ops.casts import cast
from tapegrad.ops.complex import conj, real
from tapegrad.ops.linalg import matmul
from tapegrad.ops.movement import t
from tapegrad.ops.reductions import kept_shape, mean, sum
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.structural import one_dim
from tapegrad.ops.transcendental import exp, log
from tapegrad.tensor import Tensor, from_array


def square(input: Any) -> Tensor:
    """Multiply by itself.

    Parameters
    ----------
    input : Tensor, array or number

    Returns
    -------
    Tensor

    Notes
    -----
    Derivative: :math:`2x`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.square(tg.tensor([2.0, 3.0]))
    tensor([4., 9.])
    """
    x = as_operand(input, "square", "input", 1)
    if x.dtype.kind == "b":
        x = cast(x, np.int64)  # as a power is
    return mul(x, x)


def positive(input: Any) -> Tensor:
    """Return the tensor itself: what ``+x`` computes.

    Parameters
    ----------
    input : Tensor, array or number
        Not of dtype bool.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the dtype is bool.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.positive(tg.tensor([1.0]))
    tensor([1.])
    """
    x = as_operand(input, "positive", "input", 1)
    if x.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported; convert it first, e.g. with .long()")
    return x


def reciprocal(input: Any) -> Tensor:
    """Divide 1 by it.

    Parameters
    ----------
    input : Tensor, array or number

    Returns
    -------
    Tensor

    Notes
    -----
    Derivative: :math:`-1/x^2`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.reciprocal(tg.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """
    return div(1.0, as_operand(input, "reciprocal", "input", 1))


# Softmax -----------------------------------------------------------------------------------------------------------


def floating(call: str, input: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return an operand as a tensor of a floating dtype: the given one, else its own, else the default."""
    x = as_operand(input, call, "input", 1)
    if dtype is not None:
        return cast(x, dtype)
    return x if x._layout.floating else cast(x, default_dtype())


def of_reals(call: str, input: Any, dtype: DTypeLike | None = None) -> Tensor:
    """Return an operand as a tensor of real numbers, as it is unless a dtype is given."""
    x = as_operand(input, call, "input", 1)
    x = x if dtype is None else cast(x, dtype)
    if x.dtype.kind != "f" and not x._layout.weak:
        raise RuntimeError(f"{call} not implemented for '{x.dtype}'; pass dtype='float64', or convert the tensor first")
    return x


def _largest(x: Tensor, dims: tuple[int, ...]) -> np.ndarray:
    """Return the largest elements along dimensions, which are kept; -inf of none."""
    if x._layout.size == 0:
        return np.full(kept_shape(x.shape, dims), -np.inf, x.dtype)
    found: np.ndarray = extrema(np.maximum, x._layout.plain, dims, True)(x._data)
    return found


def shifted(x: Tensor, dim: int) -> Tensor:
    """Return ``x - m``, where m is the largest element along a dimension, as a constant: the derivative is the same.

    So `exp` does not overflow.
    """
    return sub(x, _largest(x, (dim,)))


def softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Exponentials along a dimension, divided by their sum.

    Parameters
    ----------
    input : Tensor or array
    dim : int
        Along which the results sum to 1.
    dtype : dtype, optional
        To compute in.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.softmax(tg.tensor([0.0, 0.0]), 0)
    tensor([0.5000, 0.5000])
    """
    x = of_reals("softmax", input, dtype)
    dim = one_dim("softmax", x._layout.ndim, dim)
    if x._layout.ndim == 0:
        return exp(sub(x, x))
    powers = exp(shifted(x, dim))
    return div(powers, sum(powers, dim, True))


def log_softmax(input: Any, dim: int, dtype: DTypeLike | None = None) -> Tensor:
    """Logarithm of `softmax`, computed so that nothing overflows or cancels.

    Parameters
    ----------
    input : Tensor or array
    dim : int
    dtype : dtype, optional
        To compute in.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.log_softmax(tg.tensor([0.0, 1000.0]), 0)
    tensor([-1000.,     0.])
    """
    x = of_reals("log_softmax", input, dtype)
    dim = one_dim("log_softmax", x._layout.ndim, dim)
    if x._layout.ndim == 0:
        return sub(x, x)
    z = shifted(x, dim)
    return sub(z, log(sum(exp(z), dim, True)))


def logsumexp(input: Any, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, computed so that nothing overflows.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int
    keepdim : bool
        Keep the dimensions, with length 1.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Notes
    -----
    Derivative: the softmax; 0 where all elements are -inf, of which PyTorch makes nan.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.logsumexp(tg.tensor([1000.0, 1000.0]), 0)
    tensor(1000.6931)
    """
    x = floating("logsumexp", input)
    if x._layout.ndim == 0:
        one_dim("logsumexp", 0, dim)
        return add(x, 0.0)
    dims = tuple(one_dim("logsumexp", x._layout.ndim, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    largest = _largest(x, dims)
    finite = np.isfinite(largest)
    all_finite = finite.all()
    if x.dtype.kind == "c":  # a real shift: the logarithm chooses the imaginary part
        largest = largest.real
    if not all_finite:
        largest = np.where(finite, largest, 0.0).astype(x.dtype)
    total = sum(exp(sub(x, largest)), dims, keepdim)
    shift = largest if keepdim else largest.reshape(total._layout.shape)
    if not all_finite:
        # log(0) would be -inf with slope inf. Adding 1 and then -inf keeps the value, with slope 0.
        empty = np.asarray(total._data == 0)
        total = add(total, from_array(empty.astype(x.dtype)))
        shift = np.where(empty, -np.inf, shift).astype(x.dtype)
    return add(log(total), shift)


# Linear and moments ------------------------------------------------------------------------------------------------


def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """Multiply by the transpose of a matrix and add a vector.

    Parameters
    ----------
    input : Tensor or array, (..., n)
    weight : Tensor or array, (m, n) or (n,)
    bias : Tensor or array, (m,) or (), optional

    Returns
    -------
    Tensor, (..., m) or (...)

    Raises
    ------
    RuntimeError
        If the shapes do not fit or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.tensor([1.0, 2.0]), tg.tensor([[3.0, 4.0]]), tg.tensor([0.5]))
    tensor([11.5000])
    """
    out = matmul(input, t(weight))
    return out if bias is None else add(out, bias)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Product of two matrices, times `alpha`, plus `beta` times a matrix.

    Parameters
    ----------
    input : Tensor or array
        Broadcast to the product.
    mat1 : Tensor or array, (n, k)
    mat2 : Tensor or array, (k, m)
    beta, alpha : number
        With ``beta=0``, `input` is ignored, even where it is nan.

    Returns
    -------
    Tensor, (n, m)

    Raises
    ------
    RuntimeError
        If the shapes do not fit or the dtypes differ.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.addmm(tg.ones(2), tg.eye(2), tg.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    product = matmul(mat1, mat2)
    expanded = expand(input, product._layout.shape)  # a result is not larger than the product
    if alpha != 1:
        product = mul(product, alpha)
    if beta == 0:
        return where(np.False_, expanded, product)  # which gives it a gradient of 0
    return add(expanded if beta == 1 else mul(expanded, beta), product)


def var(
    input: Any, dim: int | tuple[int, ...] | None = None, *, correction: float = 1, keepdim: bool = False
) -> Tensor:
    """Variance, over all dimensions or over some.

    Parameters
    ----------
    input : Tensor or array
    dim : int or tuple of int, optional
        Default all.
    correction : number
        The sum of squares is divided by the number of elements less this; 1 makes it unbiased, 0 a mean.
    keepdim : bool
        Keep the dimensions, with length 1.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `input` does not have such a dimension.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.var(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    x = as_operand(input, "var", "input", 1)
    if not x._layout.floating:
        raise RuntimeError("std and var only support floating point and complex dtypes; convert the tensor first")
    centered = sub(x, mean(x, dim, True))
    squares = mul(centered, conj(centered))
    total = sum(real(squares), dim, keepdim)
    count = x._layout.size // (total._layout.size or 1)
    return div(total, float(max(count - correction, 0)))
