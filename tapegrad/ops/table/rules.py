"""Calls of rules with tensors, for create_graph and where a sweep has no kernel.

The arguments that the rules of a plan ask for are worked out once and described by words, which compiled code reads
(`tapegrad.recording.rule_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.rules import identity, rule_parameters
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.index_values import traced_indices
from tapegrad.ops.table.op import Op, xp
from tapegrad.ops.table.results import is_part, part_plan, parts_of
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import compiled
from tapegrad.recording.rule_calls import (
    COTANGENT,
    MADE,
    MOST_ARGUMENTS,
    RESIDUAL,
    TENSOR,
    THE_NODE,
    VALUE,
    WANTED,
    lazy,
)
from tapegrad.runtime.memory import watch
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import FIRST_OPERAND, PLAN_OBJECT, TapeNode
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor, from_array


class _NoCotangent(Tensor):
    """Compiled code looks at the fields of a tensor before it leaves this one to Python, by its class."""


#: What a rule for all operands has for one that gets no cotangent, not even zeros.
NO_COTANGENT: Final[Any] = _NoCotangent.__new__(_NoCotangent)
NO_COTANGENT._data = NO_COTANGENT._layout = NO_COTANGENT._node = NO_COTANGENT._grad = None

# From an entry's node, and whether residuals are attached to the graph, to one argument of a rule.
Maker = Callable[[TapeNode, bool], Any]


class RuleCalls(NamedTuple):
    """The rules of a plan and their arguments; compiled code reads all fields but the last.

    Attributes
    ----------
    is_simple : bool
        The entry has one result, whose cotangent each rule turns into that of its operand.
    serves_all : bool
        One rule serves all operands.
    calls : tuple of numpy.ndarray
        The words of a `RuleCall` for each operand that wants a gradient, or of the one that serves all.
    results : tuple of (Layout, int)
        Of each floating result: the layout of its cotangent, and where in the entry's cotangent it begins, in bytes.
    takes_none : bool
        Whether the rule takes None, and no zeros, for results that have no cotangent: it has an attribute `takes_none`.
    held : list
        Objects whose addresses are in the words.
    """

    is_simple: bool
    serves_all: bool
    calls: tuple[np.ndarray | None, ...]
    results: tuple[tuple[Layout, int], ...]
    takes_none: bool
    held: list[Any]


def rule_calls(plan: Plan) -> RuleCalls:
    """Return the rules of a plan and their arguments."""
    if not plan.rule_calls:
        plan.rule_calls = _described(plan)
    return plan.rule_calls  # type: ignore[return-value]


def cotangents(
    node: TapeNode, operands: Sequence[int], ct: Any, change: Callable[[Any], Any] = identity
) -> list[tuple[int, Tensor]]:
    """Return the cotangents of operands by their rules, each with its operand's number, and record the computation.

    Parameters
    ----------
    node : list
        Of the entry.
    operands : sequence of int
        Those that cotangents are wanted for.
    ct : Tensor, or tuple of Tensor
        Cotangent of the result; one for each of several floating results.
    change : callable, optional
        From what the rule of one operand returns to what is used of it.

    Notes
    -----
    Where one rule serves all operands and has None for one, that cotangent is zeros; `NO_COTANGENT` is left out.
    """
    plan = node[PLAN_OBJECT]
    layouts = plan.layouts
    described, call = rule_calls(plan), lazy.call
    if not described.serves_all:
        return [(n, fit(change(call(described.calls[n], node, ct, None)), layouts[n])) for n in operands]
    wanted = tuple(operand in operands for operand in range(plan.arity))
    values = call(described.calls[0], node, ct, wanted)
    return [(n, fit(values[n], layouts[n])) for n in operands if values[n] is not NO_COTANGENT]


def arguments_of(node: TapeNode, operand: int, ct: Any) -> dict[str, Any]:
    """Return what the rule of one operand would be called with, by its parameters' names; it has a rule of its own."""
    plan = node[PLAN_OBJECT]
    words = np.array(rule_calls(plan).calls[operand])
    words[0] = id(_as_tuple)
    values = lazy.call(watch(words, f"arguments of a rule of {plan.name}"), node, ct, None)
    return dict(zip(rule_parameters(plan.op.rule(operand)), values, strict=True))


def _as_tuple(*arguments: Any) -> tuple[Any, ...]:
    return arguments


def fit(value: Any, layout: Layout) -> Tensor:
    """Undo broadcasting and promotion: sum to the operand's shape, and convert to its dtype. None is zero."""
    if value is None:
        return from_array(np.zeros(layout.shape, layout.dtype))
    if value is NO_COTANGENT:
        return value  # type: ignore[no-any-return]
    returned = value._layout
    if returned is layout._plain:
        return value  # type: ignore[no-any-return]
    if returned.shape != layout.shape:
        value = xp.sum_to_size(value, layout.shape)
        returned = value._layout
    if returned.dtype is not layout.dtype and returned.dtype != layout.dtype:
        if returned.dtype.kind == "c" and layout.dtype.kind != "c":
            value = xp.real(value)
        if value._layout.dtype != layout.dtype:
            value = xp.cast(value, np.dtype(layout.dtype))
    result: Tensor = value
    return result


def is_converted(op: Op, layout: Layout) -> bool:
    """Whether rules get an operand in the result's dtype: those of binary ops may subtract, which booleans cannot."""
    return op.family == "binary" and layout.dtype.kind == "b"


# The arguments of rules ----------------------------------------------------------------------------------------------


def _described(plan: Plan) -> RuleCalls:
    held: list[Any] = []
    parts, serves_all = parts_of(plan), callable(plan.op.vjp)
    results = tuple(
        [(contiguous_layout(part.shape, part.dtype), offset) for part, offset in parts.values() or [(plan.result, 0)]]
    )
    if serves_all:
        takes_none = hasattr(plan.op.vjp, "takes_none")
        return RuleCalls(False, True, (_call(plan, 0, held),), results, takes_none, held)
    is_simple = not is_part(plan) and not parts
    calls = tuple([_call(plan, operand, held) if plan.wants(operand) else None for operand in range(plan.arity)])
    return RuleCalls(is_simple, False, calls, results, False, held)


def _call(plan: Plan, operand: int, held: list[Any]) -> np.ndarray:
    """Return the words of a `RuleCall`."""
    rule: Any = plan.op.rule(operand)
    names, layout = rule_parameters(rule), plan.layouts[operand].plain
    assert len(names) <= MOST_ARGUMENTS
    if hasattr(rule, "compiled"):
        rule = rule.compiled()
    words = [id(rule), id(layout), len(names)]
    held += rule, layout
    for name in names:
        kind, place, parent, argument_layout, value = _argument(plan, name, operand)
        words += kind, place, parent, 0 if argument_layout is None else id(argument_layout), id(value)
        held += argument_layout, value
    return watch(np.array(words, dtype=np.int64), f"a rule of {plan.name}")


def _argument(plan: Plan, name: str, operand: int) -> tuple[int, int, int, Layout | None, Any]:
    """Return the fields of a `RuleArgument`."""
    op = plan.op
    if name == "ct":
        return COTANGENT, 0, 0, None, None
    if name == "wanted":
        return WANTED, 0, 0, None, None
    if name == "index_arrays":
        places = [plan.position(saved) for saved in plan.saved if saved.startswith("index_array")]
        return MADE, 0, 0, None, lambda node, attached: tuple([traced_indices(node[place]) for place in places])
    if name == "entry":
        return MADE, 0, 0, None, lambda node, is_recorded: (node, is_recorded)
    if name in plan.saved:
        return _residual(plan, name)
    if name in plan.attrs:
        return VALUE, 0, 0, None, plan.attrs[name]
    if name == "number":
        return VALUE, 0, 0, None, operand
    if name == "shapes":
        return VALUE, 0, 0, None, tuple(layout.shape for layout in plan.layouts)
    return VALUE, 0, 0, None, plan.layouts[op.operands.index(name.removesuffix("_shape"))].shape


def _residual(plan: Plan, name: str) -> tuple[int, int, int, Layout | None, Any]:
    op, place = plan.op, plan.position(name)
    if name == "out":
        return TENSOR, place, THE_NODE, plan.result, None
    if name not in op.operands:
        part = parts_of(plan).get(op.results.index(name))
        return MADE, place, 0, None if part is None else part[0], _other_result(plan, place, op.results.index(name))
    number = op.operands.index(name)
    layout = plan.layouts[number]
    if layout.weak:
        return RESIDUAL, place, 0, None, None
    if is_converted(op, layout):
        dtype = plan.result.dtype
        return MADE, 0, 0, None, lambda node, attached: xp.cast(constant(node[place], layout.plain), dtype)
    return TENSOR, place, FIRST_OPERAND + number, layout, None


def _other_result(plan: Plan, place: int, number: int) -> Maker:
    """Return the function that makes a tensor of one of several results."""
    part = parts_of(plan).get(number)

    def result(node: TapeNode, attached: bool) -> Tensor:
        data = node[place]
        return constant(data, layout_of(data)) if part is None or not attached else part_of(node, number, part, data)

    return result


def part_of(node: TapeNode, number: int, part: tuple[Layout, int], data: Any) -> Tensor:
    """Return one of several results anew, as a part of the entry that stands for all."""
    plan = node[PLAN_OBJECT]
    whole = constant(None, plan.result)
    whole._node = node
    return compiled.finish(part_plan(plan, number, *part), data, whole)
