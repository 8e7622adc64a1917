"""Losses of differences, and how losses are reduced."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import div, mul, sub
from tapegrad.ops.casts import cast
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.shaped import shaped
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, connect_as, shape_of
from tapegrad.ops.table.op import Sample, op_table, xp
from tapegrad.ops.table.promotion import common_dtype
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor

REDUCTIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"mean": mean, "sum": sum, "none": lambda loss: loss}

# In PyTorch these are one operation, whose node programs print: the last step here, which reduces, is named after it.
_NODE_NAMES: Final = {
    "mse_loss": "MseLossBackward0",
    "huber_loss": "HuberLossBackward0",
    "smooth_l1_loss": "SmoothL1LossBackward0",
    "binary_cross_entropy": "BinaryCrossEntropyBackward0",
    "binary_cross_entropy_with_logits": "BinaryCrossEntropyWithLogitsBackward0",
    "nll_loss": "NllLossBackward0",
    "cross_entropy": "NllLossBackward0",
    "soft_margin_loss": "SoftMarginLossBackward0",
    "multi_margin_loss": "MultiMarginLossBackward0",
    "multilabel_margin_loss": "MultilabelMarginLossBackward0",
}


def check_reduction(call: str, reduction: str) -> None:
    """Raise PyTorch's ValueError if there is no such reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction; {call}() takes 'mean', 'sum' or 'none'")


@functools.cache
def reduction_of(call: str, reduction: str) -> Callable[[Tensor], Tensor]:
    """Return one of `REDUCTIONS`, whose node has the name of the loss."""
    if reduction == "none" or call not in _NODE_NAMES:
        return REDUCTIONS[reduction]
    return connect_as(_NODE_NAMES[call], op_table[reduction])


def reduced(call: str, loss: Tensor, reduction: str) -> Tensor:
    """Return a loss reduced as users say.

    Raises
    ------
    ValueError
        If there is no such reduction.
    """
    check_reduction(call, reduction)
    return reduction_of(call, reduction)(loss)


def reduced_with_weights(call: str, loss: Tensor, weight: Any, shape: tuple[int, ...], reduction: str) -> Tensor:
    """Return losses times weights, reduced; a mean is divided by the sum of the weights.

    Raises
    ------
    ValueError
        If the weights are not of the shape, or there is no such reduction.
    """
    weights = as_operand(weight, call, "weight", 3)
    if weights.shape != shape:
        raise ValueError(
            f"Weights and input must have the same size. {call}() got {list(weights.shape)} and {list(shape)}"
        )
    if reduction == "mean":
        return div(sum(mul(loss, weights)), sum(weights))
    return reduced(call, mul(loss, weights), reduction)


def _compared(input: Any, target: Any) -> Any:
    """Return an input and a target; if their shapes differ, warn, and return them in one dtype.

    They are broadcast first, so that one without dimensions counts as the others do.
    """
    shapes = shape_of(input), shape_of(target)
    if shapes[0] != shapes[1]:
        warnings.warn(
            f"Using a target size ({list(shapes[1])}) that is different to the input size ({list(shapes[0])}). This "
            "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=3,
        )
        if hasattr(input, "dtype") and hasattr(target, "dtype"):
            dtype = common_dtype(operand.dtype for operand in (input, target))
            return [operand if operand.dtype == dtype else cast(operand, dtype) for operand in (input, target)]
    return input, target


def _difference(input: Any, target: Any) -> Tensor:
    """Subtract a target; bools beside numbers become numbers of their dtype first, as bools are not subtracted."""
    left, right = getattr(input, "dtype", None), getattr(target, "dtype", None)
    if left is not right and left is not None and right is not None:
        if left == np.bool_:
            input = cast(input, right)
        elif right == np.bool_:
            target = cast(target, left)
    return sub(input, target)


def _of_one_dtype(*operands: Any) -> Any:
    """Return operands that are broadcast first, so that one without dimensions counts as the others do."""
    if not all(hasattr(operand, "dtype") for operand in operands):
        return operands
    dtype = common_dtype(operand.dtype for operand in operands)
    return [cast(operand, dtype) for operand in operands]


def in_dtype_of(input: Any, loss: Tensor) -> Tensor:
    """Return a loss in the dtype of the input, whatever the target's is, as in PyTorch."""
    dtype = getattr(input, "dtype", loss.dtype)
    return loss if loss.dtype == dtype or dtype.kind != "f" else cast(loss, dtype)


def _mse_by_numpy(input: np.ndarray, target: np.ndarray, reduction: str = "mean") -> Any:
    squares = np.square(input - target)
    return squares if reduction == "none" else squares.sum() if reduction == "sum" else squares.mean()


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3), (2, 3))), Sample(((3,), (3,)), {"reduction": "sum"}), Sample(((3,), (3,)), {"reduction": "none"})),
    _mse_by_numpy,
)
def mse_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    r"""Squares of the differences; by default their mean, :math:`\frac{1}{n} \sum_i (x_i - t_i)^2`.

    Parameters
    ----------
    input, target : Tensor or array
        Of the same shape.
    reduction : {"mean", "sum", "none"}
    weight : Tensor or array, optional
        Of each element; a mean is then divided by the sum of the weights.

    Raises
    ------
    ValueError
        If `reduction` is something else.

    Warns
    -----
    UserWarning
        If the shapes differ: they are broadcast, which is rarely meant.

    Notes
    -----
    Derivatives of the mean: :math:`\bar x_i = \frac{2}{n} (x_i - t_i) \bar y` and
    :math:`\bar t_i = \frac{2}{n} (t_i - x_i) \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(2.)
    """
    input, target = _compared(input, target)
    difference = _difference(input, target)
    squares = mul(difference, difference)
    if weight is not None:
        return reduced_with_weights("mse_loss", squares, weight, shape_of(input), reduction)
    return reduced("mse_loss", squares, reduction)


_l1_loss = shaped(
    "l1_loss", {}, lambda x, y: abs(x - y),
    (lambda ct, x, y: ct * xp.sgn(x - y), lambda ct, x, y: ct * xp.sgn(y - x)),
    lambda x, y: np.where(x < y, y - x, x - y) if np.isrealobj(x) else np.hypot((x - y).real, (x - y).imag),
    special={(1.0, 1.0): (0.0, 0.0), (2.0, 1.0): (1.0, -1.0)}, real_only=False,
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_l1_loss)
def l1_loss(input: Any, target: Any, reduction: str = "mean", weight: Any = None) -> Tensor:
    """Absolute values of the differences.

    Parameters
    ----------
    weight : Tensor or array, optional
        Of each element; a mean is then divided by the sum of the weights.

    Warns
    -----
    UserWarning
        If the shapes differ: they are broadcast, which is rarely meant.

    Notes
    -----
    Derivative: the sign of the difference, 0 where it is 0.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.l1_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(1.)
    """
    input, target = _compared(input, target)
    loss = _l1_loss(input, target)
    if weight is not None:
        return reduced_with_weights("l1_loss", loss, weight, shape_of(input), reduction)
    return reduced("l1_loss", loss, reduction)


_huber_loss = shaped(
    "huber_loss", {"delta": 1.25},
    lambda x, y, delta: xp.where(abs(x - y) <= delta, 0.5 * (x - y) * (x - y), delta * (abs(x - y) - 0.5 * delta)),
    (
        lambda ct, x, y, delta: ct * xp.where(abs(x - y) <= delta, x - y, delta * xp.sgn(x - y)),
        lambda ct, x, y, delta: ct * xp.where(abs(x - y) <= delta, y - x, delta * xp.sgn(y - x)),
    ),
    lambda x, y, delta: np.where(
        np.abs(x - y) <= delta, np.square(x - y) / 2, delta * (np.abs(x - y) - delta / 2)
    ),
    special={(1.0, 1.0): (0.0, 0.0), (2.25, 1.0): (1.25, -1.25), (0.0, 2.0): (-1.25, 1.25)},
)  # fmt: skip


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_huber_loss)
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Tensor:
    r"""Half the squares of small differences :math:`d`, and :math:`\delta (|d| - \delta/2)` of large ones.

    Parameters
    ----------
    delta : float
        Where a difference begins to be large.
    weight : Tensor or array, optional
        Of each element; a mean is divided by the number of elements.

    Raises
    ------
    RuntimeError
        If `delta` is not positive.

    Warns
    -----
    UserWarning
        If the shapes differ: they are broadcast, which is rarely meant.

    Notes
    -----
    Derivative: the difference, limited to the range from ``-delta`` to `delta`. P. J. Huber, "Robust estimation of a
    location parameter" (1964).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.huber_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    kind = input
    input, target = _compared(input, target)
    loss = in_dtype_of(kind, _huber_loss(input, target, delta))
    if weight is not None:
        if shape_of(weight) != shape_of(input):
            raise ValueError("Weights and input must have the same size.")
        loss = mul(loss, weight)
    return reduced("huber_loss", loss, reduction)


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS, of=_huber_loss)
def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    r"""Absolute values of the differences, less :math:`\beta/2`; parabolas :math:`d^2/(2 \beta)` where they are small.

    Parameters
    ----------
    beta : float
        Where a difference begins to be large.

    Raises
    ------
    RuntimeError
        If `beta` is negative.

    Warns
    -----
    UserWarning
        If the shapes differ: they are broadcast, which is rarely meant.

    Notes
    -----
    Equal to `huber_loss` divided by `beta`. R. Girshick, "Fast R-CNN" (2015).

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.smooth_l1_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(0.7500)
    """
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    input, target = _compared(input, target)
    if beta == 0:
        return reduced("smooth_l1_loss", _l1_loss(input, target), reduction)
    loss = reduced("smooth_l1_loss", _huber_loss(input, target, beta), reduction)
    return loss if beta == 1 else div(loss, beta)
