"""Ops of several results: the plan and the entries of the tuple that the forward returns.

If only one result is floating, the entry is that of this result, as of any op, and the others are constants. If several
are, the entry stands for all of them: its cotangent is one buffer that holds theirs, one after the other. Each result
then has an entry of the op `part_of_results`, whose cotangent goes to its part of the buffer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.kernels.elementwise import identity_part_step
from tapegrad.ops.table.op import Op, op_table
from tapegrad.recording.plan import Plan
from tapegrad.recording.plan_cache import PlanCache, compiled
from tapegrad.recording.steps import Step
from tapegrad.tape.layout import Layout, intern, layout_of
from tapegrad.tensor import Tensor, from_array

_WORD: Final = 8


def several_results(
    op: Op, layouts: tuple[Layout, ...], attrs: dict[str, Any], forward: Callable[..., Any], out: Sequence[Any]
) -> Plan:
    """Return the plan of an op of several results, of which `out` are a first example."""
    results = tuple(layout_of(value) for value in out)
    floating = [number for number, layout in enumerate(results) if layout.floating]
    asked = op.asked([layout.requires_grad for layout in layouts])
    others = tuple(name for number, name in enumerate(op.results) if name in asked and [number] != floating)
    if len(floating) == 1:
        pack = functools.partial(_pack_one, floating[0], tuple(op.results.index(name) for name in others))
        return Plan(op, layouts, attrs, forward, results[floating[0]], others, pack)
    return plan_of_several(
        op, layouts, attrs, forward, {number: results[number] for number in floating}, others,
        tuple(op.results.index(name) for name in others),
    )  # fmt: skip


def plan_of_several(
    op: Op,
    layouts: tuple[Layout, ...],
    attrs: dict[str, Any],
    forward: Callable[..., Any],
    floating: dict[int, Layout],
    extra: tuple[str, ...],
    kept: Sequence[int] = (),
) -> Plan:
    """Return the plan of an entry that stands for several results, whose cotangents lie one after the other.

    Parameters
    ----------
    op, layouts, attrs, forward, extra
        Of the plan.
    floating : dict
        The layouts of the floating results, by number.
    kept : sequence of int
        The results that are residuals.
    """
    parts, end = {}, 0
    for number, layout in floating.items():
        parts[number] = layout, _WORD * end
        end += -(-layout.nbytes // _WORD)
    whole = intern((end,), (_WORD,), np.dtype(np.float64))
    return Plan(op, layouts, attrs, forward, whole, extra, functools.partial(_pack_several, parts, tuple(kept)))


def _pack_one(main: int, kept: Sequence[int], plan: Plan, out: Sequence[Any], *operands: Tensor) -> Any:
    saved = [out[number] for number in kept] if plan.records else ()
    values = [
        compiled.finish(plan, value, *operands, *saved) if number == main
        else from_array(value if value.__class__ is np.ndarray else np.asarray(value))
        for number, value in enumerate(out)
    ]  # fmt: skip
    return _tuple_of(plan, values)


def _pack_several(
    parts: dict[int, tuple[Layout, int]], kept: Sequence[int], plan: Plan, out: Sequence[Any], *operands: Tensor
) -> Any:
    values: list[Any] = list(out)
    if plan.records:
        recorded = record_parts(plan, out, operands, [out[number] for number in kept])
        for number, value in zip(parts, recorded, strict=True):
            values[number] = value
    for number, value in enumerate(values):
        if value.__class__ is not Tensor:
            values[number] = from_array(np.asarray(value))
    return _tuple_of(plan, values)


def _tuple_of(plan: Plan, values: list[Any]) -> Any:
    """Return several results; a named tuple's own constructor is a function of Python."""
    return tuple.__new__(plan.op.result_type or tuple, values)  # type: ignore[arg-type]


def record_parts(plan: Plan, out: Sequence[Any], operands: Sequence[Tensor], residuals: Sequence[Any]) -> list[Tensor]:
    """Record several results with the data `out`, and return the floating ones."""
    whole = compiled.finish(plan, NO_DATA, *operands, *residuals)
    return [
        compiled.finish(part_plan(plan, number, layout, offset), out[number], whole)
        for number, (layout, offset) in parts_of(plan).items()
    ]


NO_DATA: Final = np.empty(0)


def part_plan(plan: Plan, number: int, layout: Layout, offset: int) -> Plan:
    """Return the plan of the entry of one result of several, whose node is called as that of all."""
    return _part_plan(plan.node_name, plan.result, number, layout, offset)


@functools.lru_cache(maxsize=1024)
def _part_plan(node_name: str, whole: Layout, number: int, layout: Layout, offset: int) -> Plan:
    attrs = {"number_of_result": number, "offset": offset}
    return Plan(renamed(part_of_results, part_of_results.name, node_name), (whole,), attrs, _no_forward, layout)


def _no_forward(*_: Any) -> Any:
    raise TypeError("part_of_results has no forward: the op of several results computes them at once")


def _step(plan: Plan, operand: int) -> Step:
    return identity_part_step(plan, plan.attrs["offset"])


def _rule(ct: Any) -> Any:
    raise TypeError("the cotangent of one result goes to its place among the others")


part_of_results = Op(
    name="part_of_results",
    operands=("results",),
    forward=_no_forward,
    vjp=(_rule,),
    family="results",
    step=_step,
    attrs=("number_of_result", "offset"),
)
del op_table[part_of_results.name]  # nobody calls it: it is not listed, sampled or documented


def renamed(op: Op, name: str, node_name: str) -> Op:
    """Return an op under other names, with plans of its own. It does not stand in the table."""
    twin = object.__new__(Op)
    vars(twin).update(vars(op), name=name, node_name=node_name, plans=PlanCache(), _residuals={}, origin=twin)
    return twin


def with_nodes_named(op: Op, node_name: str) -> Op:
    """Return an op for calls whose nodes have another name. All else of them, e.g. in programs, is the op's."""
    twin = renamed(op, op.name, node_name)
    vars(twin)["origin"] = op
    return twin


def is_part(plan: Plan) -> bool:
    """Whether an entry is that of one result of several."""
    return plan.op.vjp is part_of_results.vjp


def parts_of(plan: Plan) -> dict[int, tuple[Layout, int]]:
    """Return the layout of each floating result of an entry of several, and where its cotangent begins; else none."""
    pack: Any = plan.pack
    return pack.args[0] if pack is not None and pack.func is _pack_several else {}
