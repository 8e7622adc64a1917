"""Recording: from operands to a result and its entry, for every kind of row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import check_dtype
from tapegrad.layout import BOOL, COMPLEX, FLOAT, INTEGER, Layout, layout_of
from tapegrad.ops.row import NotYet, Row
from tapegrad.plan import Plan
from tapegrad.pool import pooled
from tapegrad.tape import (
    INLINE_OPERANDS,
    MEMORY,
    pack_binary,
    pack_ternary,
    pack_unary,
    recorder,
)
from tapegrad.tensor import Tensor

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper
_packers = {1: pack_unary, 2: pack_binary, 3: pack_ternary}
_MAX_PLANS = 16384  # of one row; a program with more layouts than that starts over


def constant(data: Any, layout: Layout) -> Tensor:
    """Return a tensor that no gradient is wanted for."""
    result = _new(Tensor)
    result._data, result._layout, result._handle, result._slot, result._grad = data, layout, None, 0, None
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
        if len(row.plans) >= _MAX_PLANS:
            row.plans.clear()
        row.plans[key] = plan
    else:
        out = plan.forward(*data, *extras, **attrs)
    return finish(plan, out, operands, extras)


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
    forward = row.forward_for(layouts)
    out = forward(*data, *extras, **attrs)
    names = tuple(f"extra{number}" for number in range(len(extras)))
    result = layout_of(out)
    return Plan(row, layouts, attrs, pooled(forward, result), result, names), out


def finish(plan: Plan, out: Any, operands: Sequence[Tensor], extras: tuple[np.ndarray, ...] = ()) -> Tensor:
    """Return the result as a tensor, recorded where its plan says so."""
    result = _new(Tensor)
    result._data, result._layout, result._grad = out, plan.result, None
    if not plan.records:
        result._handle, result._slot = None, 0
        return result
    wanted = [layout.requires_grad for layout in plan.layouts]
    page, slot = recorder.take_slot()
    handle = [slot, page, plan]
    handle += [t._handle if want else None for t, want in zip(operands, wanted, strict=True)]
    variadic = plan.row.variadic
    if not variadic:
        handle += [t._data for number, t in enumerate(operands) if plan.save >> number & 1]
        if plan.save >> plan.arity & 1:
            handle.append(out)
    handle += extras
    slots = [t._slot if want else 0 for t, want in zip(operands, wanted, strict=True)]
    if plan.arity > INLINE_OPERANDS:
        side = np.array(slots, dtype=np.int64)
        handle.append(side)
        pack_ternary(MEMORY, slot, plan.address, id(handle), side.ctypes.data, 0, 0)
    else:
        _packers[plan.arity](MEMORY, slot, plan.address, id(handle), *slots)
    result._handle, result._slot = handle, slot
    return result
