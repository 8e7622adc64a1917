"""Calling a rule with tensors: what create_graph records, and what a sweep does where there is no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import rule_parameters, xp
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf, TapeNode
from tapegrad.tape.layout import Layout
from tapegrad.tensor import Tensor

_new = object.__new__  # half the time of Tensor.__new__, which goes through a wrapper


def attach(data: Any, layout: Layout, node: TapeNode | Leaf | None) -> Any:
    """Return a value that was saved as a tensor again, in its old place in the graph; a Python number as it is."""
    if layout.weak:
        return data
    result = constant(data, layout.plain)
    if node is not None:
        result._layout, result._node = layout.tracked, node
    return result


def rule_arguments(node: TapeNode, operand: int, differentiable: bool) -> dict[str, Any]:
    """Return what the rule for an operand asks for, by name, but for the cotangent.

    Parameters
    ----------
    node : list
        Of the entry.
    operand : int
    differentiable : bool
        Whether residuals are to be attached to the graph.
    """
    plan = node[PLAN_OBJECT]
    op = plan.op
    arguments: dict[str, Any] = {}
    for name in rule_parameters(op.rule(operand)):
        if name in plan.attrs:
            arguments[name] = plan.attrs[name]
        elif name == "number":
            arguments[name] = operand
        elif name == "shapes":
            arguments[name] = tuple(layout.shape for layout in plan.layouts)
        elif name == "index_arrays":
            arguments[name] = tuple(node[plan.position(own)] for own in plan.saved if own.startswith("index_array"))
        elif name.endswith("_shape"):
            arguments[name] = plan.layouts[op.operand_number(name.removesuffix("_shape"))].shape
        elif name == "out":
            arguments[name] = attach(node[plan.position(name)], plan.result, node if differentiable else None)
        elif name != "ct":
            number = op.operand_number(name)
            parent = node[FIRST_OPERAND + number] if differentiable else None
            value = attach(node[plan.position(name)], plan.layouts[number], parent)
            if op.family == "binary" and plan.layouts[number].dtype.kind == "b" and not plan.layouts[number].weak:
                value = xp.cast(value, plan.result.dtype)  # as in the forward: rules subtract
            arguments[name] = value
    return arguments


def cotangent_of_operand(node: TapeNode, operand: int, ct: Tensor, differentiable: bool) -> Tensor:
    """Return the cotangent of an operand by the rule.

    Parameters
    ----------
    node : list
        Of the entry.
    operand : int
    ct : Tensor
        Cotangent of the result.
    differentiable : bool
        Whether the computation is recorded.
    """
    plan = node[PLAN_OBJECT]
    rule = plan.op.rule(operand)
    return fit(rule(ct=ct, **rule_arguments(node, operand, differentiable)), plan.layouts[operand])


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
