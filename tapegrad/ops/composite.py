"""Composites: elementwise functions and products, made of ops; they need no rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad import errors
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.ops.casts import cast
from tapegrad.ops.linalg import matmul
from tapegrad.ops.permutations import permute, t
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect_as, shape_of
from tapegrad.ops.table.op import Sample, op_table
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.transcendental import softplus as softplus_op
from tapegrad.tensor import Tensor

# The last steps of what is one operation in PyTorch.
_above_or = connect_as("SoftplusBackward0", op_table["where"])
_square = connect_as("PowBackward0", op_table["mul"])
_reciprocal = connect_as("ReciprocalBackward0", op_table["div"])
_plus = connect_as("AddmmBackward0", op_table["add"])
_plus_viewed = connect_as("ViewBackward0", op_table["add"])


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((),)), Sample(((2, 3),))), np.square)
def square(input: Any) -> Tensor:
    """Elementwise square.

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
    return _square(x, x)


@public(method=True, common=docs.UNARY)
@composite((Sample(((2, 3),)),), np.positive)
def positive(input: Any) -> Tensor:
    r"""Return the tensor itself: what ``+x`` computes.

    Derivative: with :math:`y = x`, :math:`\bar x = \bar y`.

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


@public(method=True, inplace=True, common=docs.UNARY)
@composite((Sample(((),)), Sample(((2, 3),))), lambda input: 1 / input, domain=(0.5, 3.0))
def reciprocal(input: Any) -> Tensor:
    """Elementwise reciprocal, :math:`1/x`.

    Notes
    -----
    Derivative: :math:`-1/x^2`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.reciprocal(tg.tensor([2.0, 4.0]))
    tensor([0.5000, 0.2500])
    """
    return _reciprocal(1.0, as_operand(input, "reciprocal", "input", 1))


@public(namespaces=(FUNCTIONAL,), common=docs.UNARY)
@composite(
    (Sample(((2, 3),)), Sample(((3,),), {"beta": 2.0, "threshold": 1.0})),
    lambda input, beta=1.0, threshold=20.0: np.where(
        beta * input > threshold, input, np.logaddexp(beta * input, np.zeros_like(input)) / beta
    ).astype(input.dtype),
    real_only=True,
)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    r"""Return :math:`\log(1 + e^{\beta x})/\beta`, a smooth `relu` of real numbers.

    Parameters
    ----------
    beta : float
    threshold : float
        Where ``beta * input`` is above, the result is the input itself.

    Notes
    -----
    Derivative: :math:`\bar x = \bar y\, \sigma(\beta x)`; 1 above the threshold.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.softplus(tg.tensor([-1.0, 0.0, 30.0]))
    tensor([ 0.3133,  0.6931, 30.0000])
    """
    scaled = input if beta == 1 else input * beta
    result = softplus_op(scaled)
    return _above_or(scaled > threshold, input, result if beta == 1 else result / beta)


# Linear ------------------------------------------------------------------------------------------------


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3), (4, 3))), Sample(((2, 3), (4, 3), (4,))), Sample(((3,), (3,), ()))),
    lambda input, weight, bias=0: (np.matmul(input, weight.T) + bias).astype(input.dtype),
)
def linear(input: Any, weight: Any, bias: Any = None) -> Tensor:
    r"""Multiply by the transpose of a matrix and add a vector: :math:`Y = X W^T + b`.

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

    Notes
    -----
    Derivatives: :math:`\bar X = \bar Y W`, :math:`\bar W = \bar Y^T X`, and the sum of the rows of :math:`\bar Y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.linear(tg.tensor([1.0, 2.0]), tg.tensor([[3.0, 4.0]]), tg.tensor([0.5]))
    tensor([11.5000])
    """
    try:
        out = matmul(input, permute(weight, (1, 0)) if len(shape_of(weight)) == 2 else t(weight))
    except TypeError:
        if isinstance(input, (int, float)):
            raise errors.not_a_tensor("linear", "input", 1, input) from None
        raise
    except RuntimeError as error:
        dtypes = [TORCH_NAMES.get(getattr(own, "dtype", np.dtype(float)).name, "") for own in (input, weight)]
        if bias is None or dtypes[0] == dtypes[1]:
            raise
        names = f"{dtypes[0]} and {dtypes[1]}"
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names}; {error}") from None
    if bias is None:
        return out
    return _plus(out, bias) if len(out._layout.shape) == 2 else _plus_viewed(out, bias)
