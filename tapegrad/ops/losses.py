"""Losses of numbers, made of ops, and how losses are reduced."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tapegrad.ops.arithmetic import mul, sub
from tapegrad.ops.casts import cast
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.promotion import common_dtype
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor

REDUCTIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {"mean": mean, "sum": sum, "none": lambda loss: loss}


def reduced(call: str, loss: Tensor, reduction: str) -> Tensor:
    """Return a loss reduced as users say.

    Raises
    ------
    ValueError
        If there is no such reduction.
    """
    if reduction in REDUCTIONS:
        return REDUCTIONS[reduction](loss)
    raise ValueError(f"{reduction} is not a valid value for reduction; {call}() takes 'mean', 'sum' or 'none'")


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


def _mse_by_numpy(input: np.ndarray, target: np.ndarray, reduction: str = "mean") -> Any:
    squares = np.square(input - target)
    return squares if reduction == "none" else squares.sum() if reduction == "sum" else squares.mean()


@public(namespaces=(FUNCTIONAL,))
@composite(
    (Sample(((2, 3), (2, 3))), Sample(((3,), (3,)), {"reduction": "sum"}), Sample(((3,), (3,)), {"reduction": "none"})),
    _mse_by_numpy,
)
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Squares of the differences.

    Parameters
    ----------
    input, target : Tensor or array
        Of the same shape.
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ValueError
        If `reduction` is something else.

    Warns
    -----
    UserWarning
        If the shapes differ: they are broadcast, which is rarely meant.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.mse_loss(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 4.0]))
    tensor(2.)
    """
    shapes = np.shape(getattr(input, "_data", input)), np.shape(getattr(target, "_data", target))
    if shapes[0] != shapes[1]:
        warnings.warn(
            f"Using a target size ({list(shapes[1])}) that is different to the input size ({list(shapes[0])}). This "
            "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            UserWarning,
            stacklevel=2,
        )
        input, target = _of_one_dtype(input, target)
    difference = _difference(input, target)
    return reduced("mse_loss", mul(difference, difference), reduction)
