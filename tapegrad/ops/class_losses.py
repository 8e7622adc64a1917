"""Losses of classes."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.dtypes import TORCH_NAMES
from tapegrad.kernels.lines import IGNORED
from tapegrad.ops.along import floating, log_softmax
from tapegrad.ops.arithmetic import add, div, mul, neg, where
from tapegrad.ops.broadcasting import contiguous
from tapegrad.ops.losses import REDUCTIONS, reduced, reduction_of
from tapegrad.ops.movement import reshape
from tapegrad.ops.permutations import movedim
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.score_rows import NotInRowsError, class_loss_op, class_nll_op, probabilities
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import apply, as_operand
from tapegrad.ops.table.index_values import are_within
from tapegrad.ops.table.op import Bound, Op, Sample, xp
from tapegrad.ops.table.promotion import check_same
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor, from_array


def _class_last(call: str, input: Any) -> Tensor:
    """Return the scores with one class a column, (n, classes)."""
    x = floating(call, input)
    if x.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got 0): {call}() takes scores of classes")
    if x.ndim == 1:
        return reshape(x, (1, -1))
    return x if x.ndim == 2 else reshape(movedim(x, 1, -1), (x.shape[0] * math.prod(x.shape[2:]), x.shape[1]))


def _class_indices(call: str, input: Tensor, target: Tensor, ignore_index: int) -> tuple[Any, np.ndarray | None]:
    """Return the flat class indices, 0 where they are to be ignored, and which count; None if all do.

    The indices of a target that is traced are a tensor: a program gets other ones.
    """
    classes = input.shape[0] if input.ndim == 1 else input.shape[1]
    expected = () if input.ndim == 1 else (input.shape[0], *input.shape[2:])
    if target.shape != expected and (input.ndim, target.shape) != (1, (1,)):
        if input.ndim == 1 and target.ndim == 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {target.shape[0]}")
        if input.ndim > 1 and target.ndim > 0 and target.shape[0] != input.shape[0]:
            raise ValueError(
                f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]}); "
                f"{call}() got shapes {list(input.shape)} and {list(target.shape)}."
            )
        raise RuntimeError(
            f"Expected target size {list(expected)}, got {list(target.shape)}; {call}() got input of shape "
            f"{list(input.shape)} and takes one class index for each of its items"
        )
    if target.dtype.kind not in "iu":
        kind = TORCH_NAMES[target.dtype.name]
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {kind}; {call}() takes class indices")
    flat = reshape(target, (-1,)) if target.is_traced else target
    if target.is_traced and are_within(flat, 0, classes) and not 0 <= ignore_index < classes:
        return xp.cast(flat, np.dtype(np.int64)), None
    indices = np.array(target._data, dtype=np.int64).reshape(-1)  # a copy: the tape keeps it
    # One comparison for both bounds: as unsigned numbers, negative ones are large.
    if not 0 <= ignore_index < classes and (not indices.size or np.maximum.reduce(indices.view(np.uint64)) < classes):
        return indices, None
    counted = indices != ignore_index
    bad = counted & ((indices < 0) | (indices >= classes))
    if bad.any():
        raise IndexError(f"Target {indices[bad][0]} is out of bounds; {call}() got scores of {classes} classes.")
    return np.where(counted, indices, 0), None if counted.all() else counted


def _class_weights(call: str, weight: Any, x: Tensor) -> np.ndarray | None:
    if weight is None:
        return None
    given = as_operand(weight, call, "weight", 3)
    if given.requires_grad:
        raise RuntimeError(f"the derivative for 'weight' is not implemented; give {call}() weight.detach()")
    if given.shape != (x.shape[-1],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {x.shape[-1]} classes or no classes but got weight tensor "
            f"of shape: {list(given.shape)}"
        )
    if isinstance(weight, Tensor):
        check_same("expected scalar type {} but found {} in the weights of " + call, x.dtype, given.dtype)
    return np.asarray(given._data, dtype=x.dtype)


def _of_rows(op: Op, call: str, input: Any, target: Any, ignored: int, reduction: str) -> Tensor | None:
    """Return the loss of rows of scores with a class each; None if they are none, or a class is out of bounds."""
    is_known = target.__class__ is Tensor and target._layout.dtype == np.int64 and target._layout.ndim == 1
    absent = 0
    if is_known and not modes.mode.value & modes.INTERCEPTORS:
        marks = target._data == ignored
        absent = int(np.count_nonzero(marks))
        if absent:
            target = target._data.copy()
            target[marks] = IGNORED
    elif ignored >= 0:
        return None
    try:
        losses = op.plans.call(input, target)
    except (NotInRowsError, IndexError):
        return None
    if absent and reduction == "mean":
        return _mean_of(losses, len(target) - absent)
    return reduction_of(call, reduction)(losses)


def _mean_of(losses: Tensor, total: float) -> Tensor:
    """Divide a sum; an integer is the number of those that are not 0, and the nan of none of them has slopes of 0."""
    is_of_none = isinstance(total, int) and not total
    return add(mul(sum(losses), 0.0), math.nan) if is_of_none else mul(sum(losses), 1.0 / total if total else math.nan)


def _of_items(weights: np.ndarray, indices: Any) -> Any:
    """Return the weight of each item's class."""
    return from_array(weights)[indices] if isinstance(indices, Tensor) else weights[indices]


def _weighted(
    call: str, losses: Tensor, counted: np.ndarray | None, each: np.ndarray | Tensor | None, shape: tuple[int, ...],
    reduction: str,
) -> Tensor:  # fmt: skip
    """Reduce the losses of all items, with weights if there are, and 0 for those that do not count.

    A mean is divided by the sum of the weights of those that count.
    """
    if counted is not None:
        losses = where(counted, losses, 0.0)  # not a product: an item that does not count may be nan
        if each is not None:
            each = np.where(counted, each, losses.dtype.type(0))
        elif reduction == "mean":
            return _mean_of(losses, int(np.count_nonzero(counted)))
    if each is not None:
        losses = mul(losses, each)
        if isinstance(each, Tensor) and reduction == "mean":
            return div(sum(losses), sum(each))
        if reduction == "mean":
            return _mean_of(losses, float(each.sum(dtype=np.float64)))
    return reduced(call, losses if losses.shape == shape else reshape(losses, shape), reduction)


def _by_numpy(logs: Any, target: Any, weight: Any, ignored: int, reduction: str, smoothing: float = 0.0) -> Any:
    """Return what losses of classes are, from the logarithms of probabilities."""
    classes = logs.shape[min(logs.ndim - 1, 1)]
    logs = np.moveaxis(logs, min(logs.ndim - 1, 1), -1)
    weights = np.ones(classes) if weight is None else weight
    if target.dtype.kind == "i":
        counted = target != ignored
        goal = np.eye(classes)[np.where(counted, target, 0)] * counted[..., None]
        total = (goal * weights).sum()
        goal = (1 - smoothing) * goal + smoothing / classes * counted[..., None]
    else:
        goal = (1 - smoothing) * np.moveaxis(target, min(target.ndim - 1, 1), -1) + smoothing / classes
        total = np.prod(logs.shape[:-1])
    losses = -(goal * weights * logs).sum(-1)
    return (losses if reduction == "none" else losses.sum() / (total if reduction == "mean" else 1)).astype(logs.dtype)


def _nll_by_numpy(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    return _by_numpy(x, target, weight, ignore_index, reduction)


def cross_entropy_by_numpy(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """Return what `cross_entropy` is of arrays: an oracle."""
    logs = np.log(probabilities(input, min(input.ndim - 1, 1)))
    return _by_numpy(logs, target, weight, ignore_index, reduction, label_smoothing)


_WEIGHT: Final = np.array([1.0, 2.0, 0.5])
_CLASS_SAMPLES: Final = (
    Sample(((4, 3), (4,)), values=(None, np.array([0, 2, 1, 1]))),
    Sample(((3,), ()), {"reduction": "sum"}, (None, np.array(2))),
    Sample(((2, 3, 2), (2, 2)), {"ignore_index": 1, "reduction": "none"}, (None, np.array([[0, 1], [2, 1]]))),
    Sample(((4, 3), (4,)), {"weight": _WEIGHT, "ignore_index": 0}, (None, np.array([0, 2, 1, 1]))),
)


@public(namespaces=(FUNCTIONAL,))
@composite(_CLASS_SAMPLES, _nll_by_numpy, real_only=True)
def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    r"""Negative log-likelihood of classes: :math:`-x_t` for an item with the class :math:`t`.

    Parameters
    ----------
    input : Tensor or array, (n, classes, ...) or (classes,)
        Logarithms of probabilities, as `log_softmax` gives them.
    target : Tensor or array of integers, (n, ...) or ()
        The class of each item.
    weight : Tensor or array, (classes,), optional
        Weights of the classes; a mean is then weighted.
    ignore_index : int
        Items of this class do not count.
    reduction : {"mean", "sum", "none"}

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError, RuntimeError
        If the shapes do not fit, or the targets are not integers.
    IndexError
        If there is no such class.

    Notes
    -----
    Derivative of an item's loss: :math:`\bar x_i = -[i = t] \bar y`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.nll_loss(tg.tensor([[-1.0, -2.0]]), tg.tensor([1]))
    tensor(2.)
    """
    if weight is None and reduction in REDUCTIONS:
        loss = _of_rows(class_nll_op, "nll_loss", input, target, ignore_index, reduction)
        if loss is not None:
            return loss
    scores, classes = as_operand(input, "nll_loss", "input", 1), as_operand(target, "nll_loss", "target", 2)
    x = _class_last("nll_loss", scores)
    indices, counted = _class_indices("nll_loss", scores, classes, ignore_index)
    weights = _class_weights("nll_loss", weight, x)
    if x._layout.size:
        losses = class_nll_op.plans.call(x, indices)
    else:  # which it refuses
        losses = apply(class_nll_op, Bound((x,), {"dim": (1,)}, (np.asarray(indices),)))
    each = None if weights is None else _of_items(weights, indices)
    return _weighted("nll_loss", losses, counted, each, classes.shape, reduction)


@public(namespaces=(FUNCTIONAL,))
@composite(
    (
        *_CLASS_SAMPLES,
        Sample(((2, 3), (2,)), {"label_smoothing": 0.2, "weight": _WEIGHT}, (None, np.array([0, 2]))),
        Sample(((2, 3), (2, 3))),
        Sample(((2, 3), (2, 3)), {"label_smoothing": 0.2, "weight": _WEIGHT, "reduction": "none"}),
    ),
    cross_entropy_by_numpy,
    real_only=True,
)
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Cross entropy between scores and classes, or between scores and probabilities of classes.

    For an item with the class :math:`t` it is :math:`\log \sum_i e^{x_i} - x_t`.

    Parameters
    ----------
    input : Tensor or array, (n, classes, ...) or (classes,)
        Scores: logarithms of probabilities up to a constant.
    target : Tensor or array
        The class of each item, integers of shape (n, ...) or (); or probabilities, of the shape of `input`.
    weight : Tensor or array, (classes,), optional
        Weights of the classes.
    ignore_index : int
        Items of this class do not count.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        How much of each target, from 0 to 1, is spread evenly over all classes.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError, RuntimeError
        If the shapes do not fit, or the targets are of the wrong dtype.
    IndexError
        If there is no such class.

    Notes
    -----
    Equal to ``nll_loss(log_softmax(input, 1), target)``, in fewer steps. Derivative of an item's loss: the probability
    of each class less 1 for the right one, :math:`\bar x_i = \bar y (e^{x_i} / \sum_j e^{x_j} - [i = t])`.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.cross_entropy(tg.tensor([[0.0, 0.0]]), tg.tensor([1]))
    tensor(0.6931)
    """
    if weight is None and label_smoothing == 0.0 and reduction in REDUCTIONS:
        loss = _of_rows(class_loss_op, "cross_entropy", input, target, ignore_index, reduction)
        if loss is not None:
            return loss
    scores, goal = as_operand(input, "cross_entropy", "input", 1), as_operand(target, "cross_entropy", "target", 2)
    x = _class_last("cross_entropy", scores)
    weights = _class_weights("cross_entropy", weight, x)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if goal.shape == scores.shape:
        if not goal._layout.floating:
            words = "Expected floating point type for target with class probabilities, got"
            raise RuntimeError(f"{words} {TORCH_NAMES[goal.dtype.name]}")
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _of_probabilities(x, scores, goal, weights, reduction, label_smoothing)
    indices, counted = _class_indices("cross_entropy", scores, goal, ignore_index)
    x = contiguous(x)
    if not x._layout.size:  # which `class_loss` refuses
        losses = apply(class_loss_op, Bound((x,), {"dim": (1,)}, (np.asarray(indices),)))
    else:
        losses = class_loss_op.plans.call(x, indices)
    each = None if weights is None else _of_items(weights, indices)
    if label_smoothing == 0.0:
        return _weighted("cross_entropy", losses, counted, each, goal.shape, reduction)
    if each is None or weights is None:
        smooth = neg(mean(log_softmax(x, 1), 1))
    else:
        smooth = neg(mean(mul(log_softmax(x, 1), from_array(weights)), 1))
        losses = mul(losses, each)
    losses = add(mul(losses, 1.0 - label_smoothing), mul(smooth, label_smoothing))
    if each is None or reduction != "mean":
        return _weighted("cross_entropy", losses, counted, None, goal.shape, reduction)
    # Each term has its weight already, and a mean is divided by their sum.
    whole = _weighted("cross_entropy", losses, counted, None, goal.shape, "sum")
    kept = each if counted is None else each[counted]
    return div(whole, sum(each) if isinstance(each, Tensor) else float(kept.sum(dtype=np.float64)))


def _of_probabilities(
    x: Tensor, scores: Tensor, target: Tensor, weights: np.ndarray | None, reduction: str, smoothing: float
) -> Tensor:
    target = _class_last("cross_entropy", target)
    if smoothing:
        target = add(mul(target, 1.0 - smoothing), smoothing / x.shape[1])
    if weights is not None:
        target = mul(target, from_array(weights))
    losses = neg(sum(mul(log_softmax(x, 1), target), 1))
    if scores.ndim != 2:
        losses = reshape(losses, scores.shape[:1][: scores.ndim - 1] + scores.shape[2:])
    return reduced("cross_entropy", losses, reduction)
