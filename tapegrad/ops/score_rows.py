"""Ops: losses of the classes of rows of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad.kernels.classes  # noqa: F401  # the lines of one op
from tapegrad.kernels.along import step_along
from tapegrad.kernels.lines import IGNORED
from tapegrad.ops.along import along
from tapegrad.ops.table.gateway import as_operand, connect
from tapegrad.ops.table.index_values import are_within, as_integers, index_values
from tapegrad.ops.table.op import Bound, ErrorSample, Op, Sample, xp
from tapegrad.ops.table.public import publish
from tapegrad.recording.keys import TAKES_ARRAYS
from tapegrad.tensor import Tensor


def probabilities(x: Any, dim: int) -> Any:
    """Return the softmax, by NumPy."""
    powers = np.exp(x - x.max(dim, keepdims=True))
    return powers / powers.sum(dim, keepdims=True)


class NotInRowsError(RuntimeError):
    """Scores are not the rows of a matrix with an integer each."""


def _binds(name: str, call: str) -> Callable[[Any, Any], Bound]:
    """Return `Op.bind` of an op of rows of scores and of their classes, which is also to be had by a call."""

    def bind(input: Any, target: Any) -> Bound:
        x, goal = as_operand(input, call, "input", 1), as_operand(target, call, "target", 2)
        layout, classes = x._layout, goal._layout
        in_rows = layout.ndim == 2 and layout.dtype.kind == "f" and classes.shape == layout.shape[:1]
        if not in_rows or classes.dtype != np.int64 or not layout.size:
            raise NotInRowsError(
                f"{name} takes rows of real scores and int64 classes, not dtype {layout.dtype} of shape "
                f"{list(layout.shape)} and {classes.dtype} of shape {list(classes.shape)}; use {call}"
            )
        if goal.is_traced and not are_within(goal, 0, layout.shape[1]):
            raise IndexError(f"a class is out of bounds; there are {layout.shape[1]}")
        return Bound((x,), {"dim": (1,)}, (index_values(goal),))

    return bind


def _at_classes(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the score of the class of each row."""
    classes, counted = x.shape[1], indices != IGNORED
    if (counted & ((indices < 0) | (indices >= classes))).any():
        raise IndexError(f"a class is out of bounds; there are {classes}")
    found: np.ndarray = np.where(counted, x[np.arange(len(x)), np.where(counted, indices, 0)], x.dtype.type(0))
    return found


def _op(
    name: str, call: str, by_numpy: Callable[..., Any], rule: Callable[..., Any], sources: tuple[str, ...],
    oracle: Callable[..., Any], *, linear: bool = False,
) -> Op:  # fmt: skip
    """Return the op of a loss of rows of scores."""
    errors = (ErrorSample(lambda: getattr(xp, name)(np.ones((1, 2)), np.array([2])), IndexError, "out of bounds"),)
    op = Op(
        name=name,
        operands=("x",),
        forward=by_numpy,
        vjp=(rule,),
        family="along",
        step=lambda plan, operand: step_along(plan, (1,), sources),
        attrs=("dim",),
        bind=_binds(name, call),
        prepare_forward=along(name, lambda layout, attrs: layout.shape[:1], by_numpy),
        oracle=oracle,
        samples=(
            Sample(((3, 4),), {"target": np.array([3, 0, 1])}),
            Sample(((2, 1),), {"target": np.array([0, 0])}),
        ),
        errors=errors,
        real_only=True,
        linear=linear,
        node_name="NllLossBackward0",
    )
    connect(op, 1, TAKES_ARRAYS)
    return op


def _in_class(values: Any, index_arrays: tuple[np.ndarray, ...], classes: int) -> Any:
    """Return a row for each value: it stands where the class is, beside zeros."""
    targets = xp.unsqueeze(as_integers(index_arrays[0]), 1)
    return xp.where(targets == np.arange(classes), xp.unsqueeze(values, 1), 0.0)


def _class_nll_rule(ct: Any, index_arrays: tuple[np.ndarray, ...], x_shape: tuple[int, ...]) -> Any:
    return _in_class(-ct, index_arrays, x_shape[1])


class_nll_op = _op(
    "class_nll", "nll_loss", lambda x, indices, dim: -_at_classes(x, indices), _class_nll_rule, ("index_array0",),
    lambda x, target: -np.take_along_axis(x, target[:, None], 1)[:, 0], linear=True,
)  # fmt: skip


def class_nll(input: Any, target: Any) -> Tensor:
    """Return the score of the class of each row, negated."""
    return class_nll_op.plans.call(input, target)


publish(class_nll, class_nll_op, class_nll.__doc__ or "")


def _class_loss_by_numpy(x: np.ndarray, indices: np.ndarray, dim: tuple[int, ...]) -> np.ndarray:
    own = _at_classes(x, indices)
    top = x.max(axis=1, keepdims=True, initial=-np.inf)
    found: np.ndarray = np.log(np.exp(x - top).sum(axis=1)) + (top[:, 0] - own)  # the sum of large scores loses digits
    return np.where(indices != IGNORED, found, x.dtype.type(0))


def _class_loss_rule(ct: Any, x: Any, index_arrays: tuple[np.ndarray, ...], out: Any) -> Any:
    """Return the cotangent of the scores; `out` is for the kernel, which so needs no sum of exponentials."""
    indices = as_integers(index_arrays[0])
    ignored = indices == IGNORED
    kept = xp.where(ignored, 0.0, ct) if isinstance(indices, np.ndarray) and ignored.any() else ct
    return xp.unsqueeze(kept, 1) * xp.softmax(x, 1) - _in_class(ct, index_arrays, x.shape[1])


class_loss_op = _op(
    "class_loss", "cross_entropy", _class_loss_by_numpy, _class_loss_rule, ("x", "index_array0", "out"),
    lambda x, target: -np.log(probabilities(x, 1)[np.arange(len(x)), target]),
)  # fmt: skip


def class_loss(input: Any, target: Any) -> Tensor:
    """Return the cross entropy of each row of a matrix of scores with its class."""
    return class_loss_op.plans.call(input, target)


publish(class_loss, class_loss_op, class_loss.__doc__ or "")
