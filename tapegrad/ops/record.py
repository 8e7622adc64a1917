"""Recording: from operands to a result and its entry, for every kind of row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_dtype
from tapegrad.forward.prepared import prepared
from tapegrad.layout import BOOL, COMPLEX, FLOAT, INTEGER, Layout, layout_of
from tapegrad.ops.row import NotYet, Row
from tapegrad.plan import Plan
from tapegrad.plans import compiled
from tapegrad.tensor import Tensor

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper


def constant(data: Any, layout: Layout) -> Tensor:
    """Return a tensor that no gradient is wanted for."""
    result = _new(Tensor)
    result._data, result._layout, result._handle, result._grad = data, layout, None, None
    return result


def as_operand(value: Any, call: str, name: str, position: int) -> Tensor:
    """Return an operand as a tensor: arrays, NumPy scalars and Python numbers become constants.

    Raises
    ------
    TypeError
        If it is nothing of the kind.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, np.generic):
        check_dtype(value.dtype)
        return constant(value, layout_of(value))
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        check_dtype(value.dtype)
        data = np.asarray(value if value.flags.aligned else value.copy())
        return constant(data, layout_of(data))
    for kind, layout in ((bool, BOOL), (int, INTEGER), (float, FLOAT), (complex, COMPLEX)):
        if isinstance(value, kind):
            return constant(value, layout)
    raise errors.not_a_tensor(call, name, position, value)


def apply(row: Row, operands: Sequence[Tensor], attrs: dict[str, Any], extras: tuple[np.ndarray, ...] = ()) -> Tensor:
    """Compute a row's forward and record it.

    Parameters
    ----------
    row : Row
    operands : sequence of Tensor
    attrs : dict
        Values of the row's attributes, hashable: they are a part of the plan.
    extras : tuple of numpy.ndarray
        Integer or bool arrays that the rule needs beside its operands.
    """
    key = (
        tuple(t._layout if modes.is_grad_enabled() else t._layout.plain for t in operands),
        tuple(attrs.values()),
        tuple((extra.shape, extra.strides, extra.dtype) for extra in extras),
    )
    plan = row.plans.get(key)
    data = [t._data for t in operands]
    if plan is None:
        plan, out = new_plan(row, key[0], data, attrs, extras)
        row.plans.remember(key, plan)
    else:
        out = plan.forward(*data, *extras)
    return compiled.finish(plan, out, *operands, *extras)


def new_plan(
    row: Row, layouts: tuple[Layout, ...], data: list[Any], attrs: dict[str, Any], extras: tuple[np.ndarray, ...] = ()
) -> tuple[Plan, Any]:
    """Return the plan of an operation that is new, and the result that it was made from."""
    for operand, layout in enumerate(layouts):
        rule = row.rule(operand)
        if layout.requires_grad and isinstance(rule, NotYet):
            raise RuntimeError(f"derivative for {row.name} is not implemented: {rule.reason}")
    if row.real_only and any(layout.dtype.kind == "c" for layout in layouts):
        raise RuntimeError(
            f"{row.name} not implemented for complex tensors; take the real part or the absolute value first"
        )
    forward = row.forward_for(layouts, attrs)
    out = forward(*data, *extras)
    names = tuple(f"extra{number}" for number in range(len(extras)))
    result = layout_of(out)
    return Plan(row, layouts, attrs, prepared(forward, layouts, result), result, names), out
