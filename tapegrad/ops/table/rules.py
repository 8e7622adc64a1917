"""Calling a rule with tensors: what create_graph records, and what a sweep does where there is no kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.rules import rule_parameters
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.results import part_plan, parts_of
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, Leaf, TapeNode
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tape.plan import Plan
from tapegrad.tape.plan_cache import compiled
from tapegrad.tensor import Tensor, from_array

# From an entry's node, and whether residuals are attached to the graph, to one argument of a rule.
Getter = Callable[[TapeNode, bool], Any]


def attach(data: Any, layout: Layout, node: TapeNode | Leaf | None) -> Tensor:
    """Return a value that was saved as a tensor again, in its old place in the graph."""
    result = constant(data, layout.plain)
    if node is not None:
        result._layout, result._node = layout.tracked, node
    return result


def cotangents(node: TapeNode, operands: Sequence[int], ct: Any, differentiable: bool) -> list[tuple[int, Tensor]]:
    """Return the cotangents of operands by their rules, each with its operand's number.

    Parameters
    ----------
    node : list
        Of the entry.
    operands : sequence of int
        Those that cotangents are wanted for.
    ct : Tensor, or tuple of Tensor
        Cotangent of the result; one for each of several floating results.
    differentiable : bool
        Whether the computation is recorded. Where one rule serves all operands and has None for one, that cotangent is
        zero, and left out here.
    """
    plan = node[PLAN_OBJECT]
    op, layouts = plan.op, plan.layouts
    calls = plan.rule_calls
    if not calls or calls[0] is not op.vjp:
        calls = plan.rule_calls = op.vjp, _rule_calls(plan)
    found = []
    if callable(op.vjp):
        wanted = tuple(operand in operands for operand in range(plan.arity))
        rule, getters = calls[1][0]
        arguments = [ct if own is None else wanted if own is _WANTED else own(node, differentiable) for own in getters]
        values = rule(*arguments)
        for operand in operands:
            value, layout = values[operand], layouts[operand]
            if value is not None:
                found.append((operand, fit(value, layout)))
            elif not differentiable:
                found.append((operand, from_array(np.zeros(layout.shape, layout.dtype))))
        return found
    for operand in operands:
        rule, getters = calls[1][operand]
        value = rule(*[ct if own is None else own(node, differentiable) for own in getters])
        found.append((operand, fit(value, layouts[operand])))
    return found


def _rule_calls(plan: Plan) -> list[Any]:
    """Return, for each operand that wants a gradient, its rule and what finds the rule's arguments."""
    if callable(plan.op.vjp):
        return [_rule_call(plan, 0)]
    return [_rule_call(plan, operand) if plan.wants(operand) else None for operand in range(plan.arity)]


def _rule_call(plan: Plan, operand: int) -> tuple[Any, list[Getter | None]]:
    rule = plan.op.rule(operand)
    return rule, [_getter(plan, name, operand) for name in rule_parameters(rule)]


def _WANTED(node: TapeNode, differentiable: bool) -> Any:  # noqa: N802  # stands for an argument
    raise TypeError("what is wanted is said by the caller")


def _getter(plan: Plan, name: str, operand: int) -> Getter | None:
    """Return what finds an argument of a rule; None for the cotangent."""
    op = plan.op
    if name == "ct":
        return None
    if name == "wanted":
        return _WANTED
    if name == "index_arrays":
        places = [plan.position(own) for own in plan.saved if own.startswith("index_array")]
        return lambda node, differentiable: tuple([node[place] for place in places])
    if name in plan.saved:
        return _residual(plan, name)
    if name in plan.attrs:
        value = plan.attrs[name]
    elif name == "number":
        value = operand
    elif name == "shapes":
        value = tuple(layout.shape for layout in plan.layouts)
    else:
        value = plan.layouts[op.operand_number(name.removesuffix("_shape"))].shape
    return lambda node, differentiable: value


def _residual(plan: Plan, name: str) -> Getter:
    place, op = plan.position(name), plan.op
    if name == "out":
        return lambda node, differentiable: attach(node[place], plan.result, node if differentiable else None)
    if name in op.operands:
        number = op.operand_number(name)
        layout, parent = plan.layouts[number], FIRST_OPERAND + number
        return lambda node, differentiable: attach(node[place], layout, node[parent] if differentiable else None)
    number = op.results.index(name)
    part = parts_of(plan).get(number)

    def result(node: TapeNode, differentiable: bool) -> Tensor:
        data = node[place]
        if part is None or not differentiable:
            return constant(data, layout_of(data))
        whole = attach(None, plan.result, node)
        return compiled.finish(part_plan(plan.result, part[0], number, part[1]), data, whole)

    return result


def fit(value: Tensor, layout: Layout) -> Tensor:
    """Undo broadcasting and promotion: sum to the operand's shape, and convert to its dtype."""
    own = value._layout
    if own.shape != layout.shape:
        value = xp.sum_to_size(value, layout.shape)
        own = value._layout
    if own.dtype is not layout.dtype and own.dtype != layout.dtype:
        if own.dtype.kind == "c" and layout.dtype.kind != "c":
            value = xp.real(value)
        if value._layout.dtype != layout.dtype:
            value = xp.cast(value, np.dtype(layout.dtype))
    return value
