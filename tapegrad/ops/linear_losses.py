"""Composite: the cross entropy of what a linear layer returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.class_losses import cross_entropy, cross_entropy_by_numpy
from tapegrad.ops.composite import linear
from tapegrad.ops.movement import reshape
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.values import KINKS
from tapegrad.tensor import Tensor

_CLASSES = np.array([0, 2, 1, 1])


def _by_numpy(input: Any, linear_weight: Any, linear_bias: Any = None, *, target: Any, **attrs: Any) -> Any:
    scores = np.tensordot(input, linear_weight, (-1, -1))
    return cross_entropy_by_numpy(scores + (0.0 if linear_bias is None else linear_bias), target, **attrs)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        Sample(((4, 2), (3, 2)), {"target": _CLASSES}),
        Sample(((4, 2), (3, 2), (3,)), {"target": _CLASSES, "ignore_index": 1, "reduction": "sum"}),
        Sample(((2, 3), (4, 2, 3)), {"target": np.array([[0, 3], [2, 2]]), "label_smoothing": 0.25}),
    ),
    _by_numpy, real_only=True, kinks=KINKS[2:4],
    call=lambda function, x, weight, bias=None, *, target, **attrs: function(
        x, weight, target, linear_bias=bias, **attrs
    ),
)  # fmt: skip
def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Cross entropy of scores that a linear layer computes: `linear`, then `cross_entropy`.

    Parameters
    ----------
    input : Tensor or array, (n, features) or (features,)
    linear_weight : Tensor or array, (classes, ..., features)
    target : Tensor or array
        Classes, (n, ...) or (), or their probabilities, (n, classes, ...) or (classes,).
    linear_bias : Tensor or array, (classes, ...), optional
    weight, reduction, label_smoothing
        As of `cross_entropy`.
    ignore_index : int, optional
        As of `cross_entropy`; not beside probabilities.
    options : object, optional
        How PyTorch computes in parts, to save memory. Without effect.

    Raises
    ------
    RuntimeError
        If shapes do not fit, or `ignore_index` stands beside probabilities.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.linear_cross_entropy(tg.ones(1, 2), tg.zeros(2, 2), tg.tensor([1]))
    tensor(0.6931)
    """
    call = "linear_cross_entropy"
    x, matrix = as_operand(input, call, "input", 1), as_operand(linear_weight, call, "linear_weight", 2)
    goal = as_operand(target, call, "target", 3)
    bias = None if linear_bias is None else as_operand(linear_bias, call, "linear_bias", 4)
    if x.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x.ndim}; {call}() takes (n, features)")
    if matrix.ndim < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {matrix.ndim}")
    if x.shape[-1] != matrix.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{x.shape[-1]} and {matrix.shape[-1]}, respectively"
        )
    scores = matrix.shape[:-1]
    if bias is not None and bias.shape != scores:
        raise RuntimeError(f"expected linear_bias shape {scores}, got {bias.shape}")
    if len(scores) > 1 and x.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {matrix.shape} requires batched input, "
            f"(N, {x.shape[-1]}), got unbatched input with shape {x.shape}"
        )
    shape = (*x.shape[:-1], *scores)
    if goal.shape == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if len(scores) > 1:
        matrix, bias = reshape(matrix, (-1, x.shape[-1])), None if bias is None else reshape(bias, (-1,))
    logits = reshape(linear(x, matrix, bias), shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, goal, weight, ignored, reduction, label_smoothing)
