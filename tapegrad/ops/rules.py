"""Calling a rule with tensors: what create_graph records, and what a sweep does where there is no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.layout import Layout
from tapegrad.ops.record import constant
from tapegrad.ops.row import rule_parameters, xp
from tapegrad.tape import FIRST_OPERAND, PLAN_OBJECT, Handle, Leaf
from tapegrad.tensor import Tensor

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper


def attach(data: Any, layout: Layout, handle: Handle | Leaf | None) -> Tensor:
    """Return a value that was saved as a tensor again, in its old place in the graph."""
    result = constant(data, layout.plain)
    if handle is not None:
        result._layout, result._handle = layout.tracked, handle
    return result


def rule_arguments(handle: Handle, operand: int, differentiable: bool) -> dict[str, Any]:
    """Return what the rule for an operand asks for, by name, but for the cotangent.

    Parameters
    ----------
    handle : list
        Of the entry.
    operand : int
    differentiable : bool
        Whether residuals are to be attached to the graph.
    """
    plan = handle[PLAN_OBJECT]
    row = plan.row
    arguments: dict[str, Any] = {}
    for name in rule_parameters(row.rule(operand)):
        if name in plan.attrs:
            arguments[name] = plan.attrs[name]
        elif name == "number":
            arguments[name] = operand
        elif name == "shapes":
            arguments[name] = tuple(layout.shape for layout in plan.layouts)
        elif name == "extras":
            arguments[name] = tuple(handle[plan.position(own)] for own in plan.saved if own.startswith("extra"))
        elif name.endswith("_shape"):
            arguments[name] = plan.layouts[row.operand_number(name.removesuffix("_shape"))].shape
        elif name == "out":
            arguments[name] = attach(handle[plan.position(name)], plan.result, handle if differentiable else None)
        elif name != "ct":
            number = row.operand_number(name)
            parent = handle[FIRST_OPERAND + number] if differentiable else None
            arguments[name] = attach(handle[plan.position(name)], plan.layouts[number], parent)
    return arguments


def cotangent_of_operand(handle: Handle, operand: int, ct: Tensor, differentiable: bool) -> Tensor:
    """Return the cotangent of an operand by the rule.

    Parameters
    ----------
    handle : list
        Of the entry.
    operand : int
    ct : Tensor
        Cotangent of the result.
    differentiable : bool
        Whether the computation is recorded.
    """
    plan = handle[PLAN_OBJECT]
    rule = plan.row.rule(operand)
    return fit(rule(ct=ct, **rule_arguments(handle, operand, differentiable)), plan.layouts[operand])


def fit(value: Tensor, layout: Layout) -> Tensor:
    """Undo broadcasting and promotion: sum to the operand's shape, and convert to its dtype."""
    if value.shape != layout.shape:
        value = xp.sum_to_size(value, layout.shape)
    if value.dtype != layout.dtype:
        if value.dtype.kind == "c" and layout.dtype.kind != "c":
            value = xp.real(value)
        if value.dtype != layout.dtype:
            value = xp.cast(value, np.dtype(layout.dtype))
    return value
