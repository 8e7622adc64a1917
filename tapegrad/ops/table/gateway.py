"""Recording: from operands to a result and its entry, for every kind of op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_dtype
from tapegrad.forward.prepared import prepared
from tapegrad.ops.table.op import NotYet, Op
from tapegrad.tape.layout import BOOL, COMPLEX, FLOAT, INTEGER, Layout, layout_of
from tapegrad.tape.plan import Plan
from tapegrad.tape.plan_cache import compiled
from tapegrad.tensor import Tensor

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper


def constant(data: Any, layout: Layout) -> Tensor:
    """Return a tensor that no gradient is wanted for."""
    result = _new(Tensor)
    result._data, result._layout, result._node, result._grad = data, layout, None, None
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


def apply(
    op: Op, operands: Sequence[Tensor], attrs: dict[str, Any], index_arrays: tuple[np.ndarray, ...] = ()
) -> Tensor:
    """Compute an op's forward and record it.

    Parameters
    ----------
    op : Op
    operands : sequence of Tensor
    attrs : dict
        Values of the op's attributes, hashable: they are a part of the plan.
    index_arrays : tuple of numpy.ndarray
        Integer or bool arrays that the rule needs beside its operands.
    """
    key = (
        tuple(t._layout if modes.is_grad_enabled() else t._layout.plain for t in operands),
        tuple(attrs.values()),
        tuple((extra.shape, extra.strides, extra.dtype) for extra in index_arrays),
    )
    plan = op.plans.get(key)
    data = [t._data for t in operands]
    if plan is None:
        plan, out = new_plan(op, key[0], data, attrs, index_arrays)
        op.plans.remember(key, plan)
    else:
        out = plan.forward(*data, *index_arrays)
    return compiled.finish(plan, out, *operands, *index_arrays)


def new_plan(
    op: Op,
    layouts: tuple[Layout, ...],
    data: list[Any],
    attrs: dict[str, Any],
    index_arrays: tuple[np.ndarray, ...] = (),
) -> tuple[Plan, Any]:
    """Return the plan of an operation that is new, and the result that it was made from."""
    for operand, layout in enumerate(layouts):
        rule = op.rule(operand)
        if layout.requires_grad and isinstance(rule, NotYet):
            raise RuntimeError(f"derivative for {op.name} is not implemented: {rule.reason}")
    if op.real_only and any(layout.dtype.kind == "c" for layout in layouts):
        raise RuntimeError(
            f"{op.name} not implemented for complex tensors; take the real part or the absolute value first"
        )
    if op.check:
        op.check(layouts)
    forward = op.forward_for(layouts, attrs)
    out = forward(*data, *index_arrays)
    names = tuple(f"index_array{number}" for number in range(len(index_arrays)))
    result = layout_of(out)
    return Plan(op, layouts, attrs, prepared(forward, layouts, result), result, names), out
