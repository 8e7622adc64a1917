"""Variances and standard deviations, and their op: the sum of squared deviations from the mean."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.kernels.along import step_along
from tapegrad.ops.along import SAMPLES, Dims, along, floating, reduced_shape
from tapegrad.ops.arithmetic import add, div
from tapegrad.ops.complex import imag, real
from tapegrad.ops.reductions import kept_shape, mean
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.elementwise import unary
from tapegrad.ops.table.gateway import as_operand, connect_as
from tapegrad.ops.table.op import Bound, Sample, op_table, xp
from tapegrad.ops.table.public import public
from tapegrad.ops.table.structural import operation, out_of_range, reduced_dims
from tapegrad.tensor import Tensor


def _deviations_by_numpy(x: Any, dim: Dims, keepdim: bool) -> Any:
    return np.sum((x - np.mean(x, axis=dim, keepdims=True)) ** 2, axis=dim, keepdims=keepdim)


def _deviations_rule(ct: Any, x: Any, dim: Dims) -> Any:
    return 2.0 * xp.reshape(ct, kept_shape(x.shape, dim)) * (x - xp.mean(x, dim, True))


@operation(
    "deviations",
    forward=_deviations_by_numpy,
    vjp=(_deviations_rule,),
    family="along",
    step=lambda plan, operand: step_along(plan, plan.attrs["dim"], ("x",)),
    attrs=("dim", "keepdim"),
    prepare_forward=along("deviations", reduced_shape, _deviations_by_numpy),
    oracle=lambda x, dim=None, keepdim=False: (
        np.square(x).sum(axis=dim if np.ndim(x) else None, keepdims=keepdim)
        - np.square(x.sum(axis=dim if np.ndim(x) else None, keepdims=keepdim))
        / (1 if not np.ndim(x) else x.size if dim is None else math.prod(np.take(x.shape, dim).ravel().tolist()))
    ),
    samples=(*SAMPLES[:-1], Sample(((2, 3),)), Sample(((2, 3, 4),), {"dim": (0, 2)})),
    errors=(out_of_range("deviations"),),
    real_only=True,
)
def deviations(input: Any, dim: Any = None, keepdim: bool = False) -> Bound:
    """Return the sum of the squared deviations from the mean, over all dimensions or over some."""
    x = floating("var", input)
    return Bound((x,), {"dim": reduced_dims("var", x._layout.ndim, dim), "keepdim": bool(keepdim)})


# Variance and standard deviation ------------------------------------------------------------------------------------


def moment_arguments(call: str, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> tuple[Any, bool, float]:
    """Return the dimensions, whether they are kept, and the correction, of PyTorch's old signatures and the new one.

    In the old ones a bool, `unbiased`, stands in place of `dim` or behind it.
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{call}() takes unbiased or correction, not both; unbiased=True is correction=1")
    if unbiased is not None:
        return dim, keepdim, float(bool(unbiased))
    return dim, keepdim, 1.0 if correction is None else correction


def _variance(call: str, x: Tensor, dim: Any, keepdim: bool, correction: float) -> Tensor:
    layout = x._layout
    if layout.dtype.kind in "biu":
        raise RuntimeError(
            f"{call}(): std and var only support floating point and complex dtypes, not {layout.dtype}; convert it"
        )
    if layout.dtype.kind == "c":
        return add(
            _variance(call, real(x), dim, keepdim, correction), _variance(call, imag(x), dim, keepdim, correction)
        )
    total = deviations(x, dim, keepdim)
    freedom = layout.size // (total._layout.size or 1) - correction
    divide = _variance_of if call == "var" else div
    if freedom > 0:
        return divide(total, float(freedom))
    warnings.warn(
        f"{call}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
        f"numel divided by output numel); it is {correction}.",
        UserWarning,
        stacklevel=3,
    )
    with np.errstate(all="ignore"):
        return divide(total, 0.0)


root = unary(
    "root", np.sqrt, lambda ct, out: xp.where(out == 0, 0.0, ct / (2.0 * out)),
    doc="Square root whose slope at 0 is 0, as of a standard deviation or a norm.", domain=(0.1, 3.0),
    special={0.0: 0.0}, oracle=np.sqrt, real_only=True, names=None,
)  # fmt: skip

_deviation = connect_as("StdBackward0", op_table["root"])
_variance_of = connect_as("VarBackward0", op_table["div"])

_MOMENT_SAMPLES = (
    Sample(((4,),)),
    Sample(((2, 3),), {"dim": 1, "keepdim": True}),
    Sample(((2, 3),), {"dim": 0, "correction": 0}),
)


def _oracle(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda input, dim=None, correction=1, keepdim=False: function(
        input, axis=dim, ddof=correction, keepdims=keepdim
    )


def _first(function: Callable[..., Any], *operands: Any, **attrs: Any) -> Any:
    """Return one vector of several results."""
    out = function(*operands, **attrs)
    return out[0] * out[1]


@public(method=True, functions=("var",), adapter="moment", common=docs.REDUCTION)
@composite(_MOMENT_SAMPLES, _oracle(np.var))
def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    r"""Variance of the elements.

    Parameters
    ----------
    unbiased : bool
        PyTorch's older name of a `correction` of 1 or 0; it may also stand in place of `dim`.
    correction : number
        The sum of squares is divided by the number of elements minus this; 1, the default, gives the unbiased estimate,
        0 the mean.

    Notes
    -----
    Derivative: :math:`\bar x_i = 2 \bar y (x_i - m) / (n - c)` with the mean :math:`m` and the correction :math:`c`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.var(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _variance(
        "var", as_operand(input, "var", "input", 1), *moment_arguments("var", dim, unbiased, keepdim, correction)
    )


@public(method=True, functions=("std",), adapter="moment", common=docs.REDUCTION)
@composite(_MOMENT_SAMPLES, _oracle(np.std))
def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    r"""Take the standard deviation of the elements: the square root of the variance.

    Parameters
    ----------
    unbiased, correction
        As of `var`.

    Notes
    -----
    Derivative: :math:`\bar x_i = \bar y (x_i - m) / ((n - c) y)` with the mean :math:`m` and the correction :math:`c`;
    0 where all elements are equal.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.std(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    x = as_operand(input, "std", "input", 1)
    return _deviation(_variance("std", x, *moment_arguments("std", dim, unbiased, keepdim, correction)))


@public()
@composite(
    _MOMENT_SAMPLES,
    lambda input, dim=None, correction=1, keepdim=False: (
        np.var(input, dim, ddof=correction, keepdims=keepdim) * np.mean(input, dim, keepdims=keepdim)
    ),
    call=_first,
)
def var_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean of the elements; arguments are those of `var`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.var_mean(tg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    x = as_operand(input, "var_mean", "input", 1)
    dims, keeps, less = moment_arguments("var_mean", dim, unbiased, keepdim, correction)
    return _variance("var_mean", x, dims, keeps, less), mean(x, dims, keeps)


@public()
@composite(
    _MOMENT_SAMPLES,
    lambda input, dim=None, correction=1, keepdim=False: (
        np.std(input, dim, ddof=correction, keepdims=keepdim) * np.mean(input, dim, keepdims=keepdim)
    ),
    call=_first,
)
def std_mean(
    input: Any, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return the standard deviation and the mean of the elements; arguments are those of `var`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.std_mean(tg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    x = as_operand(input, "std_mean", "input", 1)
    dims, keeps, less = moment_arguments("std_mean", dim, unbiased, keepdim, correction)
    return root(_variance("std_mean", x, dims, keeps, less)), mean(x, dims, keeps)
