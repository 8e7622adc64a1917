"""Losses of classes whose scores should be larger than those of others, by a margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.arithmetic import mul, relu, sub, where
from tapegrad.ops.broadcasting import unsqueeze
from tapegrad.ops.gather import gather
from tapegrad.ops.indexing import getitem
from tapegrad.ops.losses import reduced
from tapegrad.ops.movement import reshape
from tapegrad.ops.reductions import sum
from tapegrad.ops.table import docs
from tapegrad.ops.table.composites import composite
from tapegrad.ops.table.gateway import as_operand
from tapegrad.ops.table.op import Sample
from tapegrad.ops.table.public import FUNCTIONAL, public
from tapegrad.tensor import Tensor, from_array


def _rows(call: str, input: Any, target: Any, ndim_of_target: int) -> tuple[Tensor, np.ndarray, bool]:
    """Return scores with a row an item, the targets of all items, and whether there was one item without a row."""
    x, goal = as_operand(input, call, "input", 1), as_operand(target, call, "target", 2)
    if goal.dtype.kind not in "iu":
        raise RuntimeError(f"expected scalar type Long but found {goal.dtype}; {call}() takes class indices")
    is_single = x.ndim < 2
    rows = (1, x._layout.size) if is_single else x.shape
    if x.ndim > 2 or (rows[1] == 0 and goal._layout.size):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {x.shape}")
    expected = rows[:ndim_of_target]
    given = goal.shape if not is_single else (1, goal._layout.size)[:ndim_of_target]
    if given != expected or goal._layout.size != np.prod(expected):
        raise RuntimeError(
            f"inconsistent target size: {list(goal.shape)} for input of size: {list(x.shape)} in {call}()"
        )
    array = np.array(goal._data, np.int64).reshape(expected)
    return reshape(x, rows) if is_single else x, array, is_single


def _beyond(x: Tensor, bounds: Tensor, counts: np.ndarray) -> Tensor:
    """Return how far numbers are above bounds, and 0 for what does not count, which may be inf less inf."""
    return relu(where(from_array(counts), sub(x, bounds), 0.0))


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
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported; multi_margin_loss() got {p}")
    x, goal, is_single = _rows("multi_margin_loss", input, target, 1)
    n, classes = x.shape
    if goal.size and not (goal.min() >= 0 and goal.max() < classes):
        raise RuntimeError(f"target out of range: multi_margin_loss() got scores of {classes} classes")
    places = np.arange(n)
    is_other = np.ones((n, classes), bool)
    is_other[places, goal] = False
    factors = np.full((n, classes), 1 / max(classes, 1), x.dtype)
    if weight is not None:
        given = as_operand(weight, "multi_margin_loss", "weight", 5)
        if given.shape != (classes,):
            raise RuntimeError(f"inconsistent weight size: {list(given.shape)} for {classes} classes")
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
    x, goal, is_single = _rows("multilabel_margin_loss", input, target, 2)
    n, classes = x.shape
    if goal.size and not (goal.min() >= -1 and goal.max() < classes):
        raise RuntimeError(f"target out of range: multilabel_margin_loss() got scores of {classes} classes")
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
