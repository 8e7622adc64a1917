"""Losses of classes whose scores should be larger than those of others, by a margin."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tapegrad import modes
from tapegrad.forward.computed import computed
from tapegrad.kernels.along import has_kernel
from tapegrad.kernels.margins import margins_address, margins_geometry
from tapegrad.ops.along import floating
from tapegrad.ops.arithmetic import mul, relu, sub, where
from tapegrad.ops.broadcasting import contiguous, unsqueeze
from tapegrad.ops.gather import gather
from tapegrad.ops.indexing import getitem
from tapegrad.ops.losses import check_reduction, reduced
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import sum
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand, shape_of
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, ErrorSample, Sample, xp
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.ops.table.structural import operation
from tapegrad.recording.plan import Plan
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor, from_array


def _rows(call: str, input: Any, target: Any, ndim_of_target: int) -> tuple[Tensor, np.ndarray, bool]:
    """Return scores with a row an item, the targets of all items, and whether there was one item without a row."""
    x, goal = as_operand(input, call, "input", 1), as_operand(target, call, "target", 2)
    is_single = x.ndim < 2
    rows = (1, x._layout.size) if is_single else x.shape
    if x.ndim > 2 or rows[1] == 0:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}"
        )
    expected = rows[:ndim_of_target]
    given = goal.shape if not is_single else (1, goal._layout.size)[:ndim_of_target]
    if given != expected or goal._layout.size != np.prod(expected):
        raise RuntimeError(
            f"{call}: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size {list(expected)}, but got {list(goal.shape)}. Input has shape {list(x.shape)}."
            if ndim_of_target == 1
            else f"inconsistent target size: {list(goal.shape)} for input of size: {list(x.shape)} in {call}()"
        )
    if goal.dtype.kind not in "iu":
        raise RuntimeError(f"expected scalar type Long but found {goal.dtype}; {call}() takes class indices")
    array = np.array(goal._data, np.int64).reshape(expected)
    return reshape(x, rows) if is_single else x, array, is_single


def _beyond(x: Tensor, bounds: Tensor, counts: np.ndarray) -> Tensor:
    """Return how far numbers are above bounds, and 0 for what does not count, which may be inf less inf."""
    return relu(where(from_array(counts), sub(x, bounds), 0.0))


# Rows of scores ----------------------------------------------------------------------------------------------------


class _NotInRowsError(RuntimeError):
    """Scores and labels are not such as the op takes: the public functions make other operations of them, or raise."""


def _labels(row: np.ndarray, classes: int, lists: bool) -> np.ndarray:
    """Return the labels of a row, those of a list up to the first -1."""
    if ((row < -int(lists)) | (row >= classes)).any():
        raise IndexError(f"a class is out of bounds; there are {classes}")
    return row[: np.argmax(np.append(row, -1) < 0)] if lists else row


def _rows_by_numpy(x: Any, labels: Any, p: int, margin: float, lists: bool) -> Any:
    classes, losses = x.shape[-1], []
    for own, row in zip(x.reshape(-1, classes), np.reshape(labels, (x.size // classes, -1)), strict=True):
        goal = _labels(row, classes, lists)
        losses.append((np.maximum(margin - own[goal][:, None] + np.delete(own, goal), 0) ** p).sum() / classes)
    return np.array(losses, x.dtype).reshape(x.shape[:-1])[()]


def _rows_rule(ct: Any, x: Any, labels: Any, p: int, margin: float) -> Any:
    classes = x.shape[-1]
    scores = xp.reshape(x, (-1, classes))
    given = xp.reshape(labels, (scores.shape[0], -1))
    is_label = xp.cumprod(xp.cast(given >= 0, x.dtype), 1)  # 0 behind the end of a list
    places = xp.where(is_label != 0, given, 0)
    is_other = xp.put_along(is_label, places, 1, classes) == 0
    beyond = margin - xp.unsqueeze(xp.gather(scores, 1, places), 2) + xp.unsqueeze(scores, 1)  # (rows, labels, classes)
    share = xp.reshape(ct, (-1, 1, 1)) * (1.0 if p == 1 else 2.0 * beyond) / classes
    slopes = xp.where(xp.unsqueeze(is_other, 1), xp.where(beyond <= 0, 0.0, share), 0.0)
    slopes = xp.where(xp.unsqueeze(is_label != 0, 2), slopes, 0.0)
    return xp.reshape(xp.sum(slopes, 1) - xp.put_along(xp.sum(slopes, 2), places, 1, classes), x.shape)


def _kernel(layout: Layout, p: int, margin: float, lists: bool, back: bool) -> tuple[Callable[[], int], list[int]]:
    """Return a kernel's address, in a function that compiles it, and its geometry."""
    classes = layout.shape[-1]
    geometry = margins_geometry(layout.size // classes, classes, classes if lists else 1, p, margin, lists)
    return partial(margins_address, layout.dtype.name, back), geometry


def _prepare(layouts: tuple[Layout, ...], attrs: dict[str, Any]) -> Callable[..., Any]:
    x, by_numpy = layouts[0], partial(_rows_by_numpy, **attrs)
    if not (has_kernel(x) and layouts[1].contiguous):
        return by_numpy
    address, geometry = _kernel(x, **attrs, back=False)
    return computed(address(), geometry, x.shape[:-1], x.dtype, by_numpy, by_status=True)


def _step(plan: Plan, operand: int) -> Step | None:
    x, labels = plan.layouts
    if not (has_kernel(x) and labels.contiguous) or labels.inline:
        return None
    address, geometry = _kernel(x, **plan.attrs, back=True)
    return Step(address, geometry, [plan.source(name) for name in ("ct", "x", "labels")])


def _rows_oracle(x: Any, labels: Any, p: int, margin: float, lists: bool) -> Any:
    if lists:
        return _multilabel_by_numpy(x, labels, "none")
    return _multi_margin_by_numpy(x, labels, p, margin, None, "none")


@operation(
    "class_margins", operands=("x", "labels"), arguments=("input", "labels"), family="along", forward=_rows_by_numpy,
    prepare_forward=_prepare, vjp=(_rows_rule, NOT_DIFFERENTIABLE), step=_step, attrs=("p", "margin", "lists"),
    node_name="MultiMarginLossBackward0", real_only=True, oracle=_rows_oracle,
    samples=(
        Sample(((3, 4), (3,)), {"p": 1, "margin": 1.0, "lists": False}, (None, np.array([3, 0, 1]))),
        Sample(((3, 4), (3,)), {"p": 2, "margin": 0.5, "lists": False}, (None, np.array([3, 0, 1]))),
        Sample(((4,), (4,)), {"p": 1, "margin": 1.0, "lists": True}, (None, np.array([3, 0, -1, 1]))),
    ),
    errors=(
        ErrorSample(
            lambda: xp.class_margins(np.ones((1, 2)), np.array([2]), 1, 1.0, False), IndexError, "out of bounds"
        ),
    ),
)  # fmt: skip
def class_margins(input: Any, labels: Any, p: int, margin: float, lists: bool) -> Bound:
    """Return by how much other scores of a row are beyond those of its labels less a margin, for each row.

    A row has one label, or lists them up to the first that is below 0.
    """
    x, goal = floating("class_margins", input), as_operand(labels, "class_margins", "labels", 2)
    is_row = x.ndim in (1, 2) and goal.shape == x.shape[: x.ndim if lists else -1] and x._layout.size > 0
    if not is_row or goal.dtype != np.int64:
        raise _NotInRowsError(f"scores of shape {list(x.shape)} and labels of shape {list(goal.shape)}")
    return Bound((contiguous(x), contiguous(goal)), {"p": p, "margin": float(margin), "lists": lists})


def _by_kernel(input: Any, labels: Any, p: int, margin: float, lists: bool) -> Tensor | None:
    """Return the loss of each row; None where the op does not take them, and for tracers, which follow formulas."""
    if modes.is_traced():
        return None
    try:
        return class_margins(input, labels, p, margin, lists)  # type: ignore[no-any-return]
    except (_NotInRowsError, IndexError):
        return None


# Losses ------------------------------------------------------------------------------------------------------------


def _multi_margin_by_numpy(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    x, goal = np.atleast_2d(input), np.atleast_1d(target)
    items = np.arange(len(x))
    own = x[items, goal][:, None]
    terms = np.maximum(margin - own + x, 0) ** p * (1 if weight is None else weight[goal][:, None])
    terms[items, goal] = 0
    loss = (terms.sum(1) / x.shape[1]).astype(x.dtype).reshape(np.shape(target))
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS)
@composite(
    (
        Sample(((4, 3), (4,)), values=(None, np.array([0, 2, 1, 1]))),
        Sample(((4, 3), (4,)), {"p": 2, "margin": 0.5, "weight": np.array([1.0, 2.0, 0.5]), "reduction": "none"},
               (None, np.array([0, 2, 1, 1]))),
        Sample(((3,), ()), {"reduction": "sum"}, (None, np.array(2))),
    ),
    _multi_margin_by_numpy, real_only=True,
)  # fmt: skip
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    r"""Mean over the classes of :math:`\max(0, m - x_y + x_j)^p`, for all but the class :math:`y` of an item.

    Parameters
    ----------
    input : Tensor or array, (n, classes) or (classes,)
    target : Tensor or array of integers, (n,) or ()
    p : {1, 2}
    margin : float
    weight : Tensor or array, (classes,), optional

    Raises
    ------
    RuntimeError
        If the shapes do not fit, or a class does not exist.

    Examples
    --------
    >>> import tapegrad as tg
    >>> tg.nn.functional.multi_margin_loss(tg.tensor([[0.5, 0.25]]), tg.tensor([0]))
    tensor(0.3750)
    """
    check_reduction("multi_margin_loss", reduction)
    if weight is None and p in (1, 2):
        losses = _by_kernel(input, target, p, margin, False)
        if losses is not None:
            return reduced("multi_margin_loss", losses, reduction)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported; multi_margin_loss() got {p}")
    given = None if weight is None else as_operand(weight, "multi_margin_loss", "weight", 5)
    if given is not None and given.ndim != 1:
        raise ValueError(f"weight must be one-dimensional; multi_margin_loss() got shape {list(given.shape)}")
    expected = (1, *shape_of(input))[-1:]
    if given is not None and given.shape != expected:
        raise RuntimeError(
            f"inconsistent weight size, expected {expected[0]} but got {list(given.shape)} in multi_margin_loss()"
        )
    x, goal, is_single = _rows("multi_margin_loss", input, target, 1)
    n, classes = x.shape
    if goal.size and not (goal.min() >= 0 and goal.max() < classes):
        raise RuntimeError(f"target out of range: multi_margin_loss() got scores of {classes} classes")
    places = np.arange(n)
    is_other = np.ones((n, classes), bool)
    is_other[places, goal] = False
    factors = np.full((n, classes), 1 / max(classes, 1), x.dtype)
    if given is not None:
        factors *= np.asarray(given._data)[goal][:, None]
    terms = _beyond(x, sub(unsqueeze(getitem(x, (places, goal)), 1), margin), is_other)
    loss = sum(mul(terms if p == 1 else mul(terms, terms), from_array(factors)), 1)
    return reduced("multi_margin_loss", reshape(loss, ()) if is_single else loss, reduction)


def _multilabel_by_numpy(input: Any, target: Any, reduction: str = "mean") -> Any:
    losses = []
    for x, labels in zip(np.atleast_2d(input), np.atleast_2d(target), strict=True):
        chosen = [int(label) for label in labels[: np.argmax(np.append(labels, -1) < 0)]]
        others = np.delete(x, chosen)
        losses.append(np.sum([np.maximum(0, 1 - x[label] + others).sum() for label in chosen]) / len(x))
    loss = np.array(losses, input.dtype).reshape(np.shape(target)[:-1])
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


@public(namespaces=(FUNCTIONAL,), common=docs.LOSS_OF_PARTS)
@composite(
    (
        Sample(((2, 4), (2, 4)), values=(None, np.array([[3, 0, -1, 1], [-1, 2, 2, 2]]))),
        Sample(((3,), (3,)), {"reduction": "none"}, (None, np.array([2, 1, -1]))),
        Sample(((2, 3), (2, 3)), {"reduction": "sum"}, (None, np.array([[0, 1, 2], [1, -1, 0]]))),
    ),
    _multilabel_by_numpy, real_only=True,
)  # fmt: skip
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    r"""Sum of :math:`\max(0, 1 - x_i + x_j)` over classes i of an item and classes j of others, over their number.

    Parameters
    ----------
    input : Tensor or array, (n, classes) or (classes,)
    target : Tensor or array of integers, of that shape
        The classes of an item, up to the first that is -1.

    Raises
    ------
    RuntimeError
        If the shapes differ, or a class does not exist.

    Examples
    --------
    >>> import tapegrad as tg
    >>> x = tg.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> tg.nn.functional.multilabel_margin_loss(x, tg.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    check_reduction("multilabel_margin_loss", reduction)
    losses = _by_kernel(input, target, 1, 1.0, True)
    if losses is not None:
        return reduced("multilabel_margin_loss", losses, reduction)
    x, goal, is_single = _rows("multilabel_margin_loss", input, target, 2)
    n, classes = x.shape
    if goal.size and not (goal.min() >= -1 and goal.max() < classes):
        raise RuntimeError(
            f"argument #2 'target' is out of range: multilabel_margin_loss() got scores of {classes} classes"
        )
    counts = np.logical_and.accumulate(goal >= 0, axis=1)
    longest = int(counts.sum(1).max(initial=0))
    goal, counts = goal[:, :longest], counts[:, :longest]
    labels, places = np.where(counts, goal, 0), np.arange(n)[:, None]
    is_other = np.ones((n, classes), bool)
    is_other[np.broadcast_to(places, goal.shape)[counts], goal[counts]] = False
    scores = unsqueeze(gather(x, 1, from_array(labels)), 2)  # (n, labels, 1)
    terms = _beyond(unsqueeze(x, 1), sub(scores, 1.0), counts[:, :, None] & is_other[:, None, :])
    loss = mul(sum(terms, (1, 2)), 1 / max(classes, 1))
    return reduced("multilabel_margin_loss", reshape(loss, ()) if is_single else loss, reduction)
