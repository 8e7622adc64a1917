"""The rule of a `Function`'s entry: it calls the user's backward, and checks what that returns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tapegrad import modes
from tapegrad.autograd.function_tangents import is_transposed
from tapegrad.kernels.rules import identity
from tapegrad.ops.table.gateway import constant
from tapegrad.ops.table.op import Op, op_table
from tapegrad.ops.table.results import renamed
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.recording.plan import Plan
from tapegrad.tape.entries import PLAN_OBJECT, TapeNode
from tapegrad.tensor import Tensor, from_array


def rule(ct: Any, wanted: tuple[bool, ...], entry: tuple[TapeNode, bool]) -> Any:
    """Call the user's backward, and return the cotangents of the tensors among the arguments."""
    node, is_recorded = entry
    plan = node[PLAN_OBJECT]
    attrs = plan.attrs
    ctx = attrs["node_class"].of(node)
    if not is_recorded:  # what a sweep shows is its own memory, and the user's code may keep it
        ct = _copied(ct) if ct.__class__ is Tensor else [None if own is None else _copied(own) for own in ct]
    cts = (ct,) if len(attrs["outputs"]) == 1 else _gradients(ctx, attrs, ct)
    if is_recorded and is_transposed() and ctx.has_jvp:
        return ctx.transposed(cts, plan)
    is_paused = not is_recorded and modes.is_grad_enabled()
    try:
        if is_paused:
            modes.pause()
        values = ctx.run(cts)
    finally:
        if is_paused:
            modes.resume()
    if values.__class__ is not tuple:
        values = (values,)
    return values if _is_simple(plan, values, wanted, ctx) else checked(plan, values, wanted, ctx)


rule.takes_none = True  # type: ignore[attr-defined]  # see `tapegrad.ops.table.rules`


def _copied(ct: Tensor) -> Tensor:
    return constant(ct._data.copy(), ct._layout)


def _is_simple(plan: Plan, values: tuple[Any, ...], wanted: tuple[bool, ...], ctx: Any) -> bool:
    """Whether backward returned what the sweep takes, as nearly always: then there is nothing to check."""
    layouts = plan.layouts
    if not len(values) == len(layouts) == len(ctx.needs_input_grad):
        return False
    for index, value in enumerate(values):
        if value is None:
            if wanted[index]:
                return False
        elif value.__class__ is not Tensor or value._layout is not (layouts[index]._plain or layouts[index]):
            return False
    return True


def _gradients(ctx: Any, attrs: dict[str, Any], given: Any) -> list[Any]:
    """Return the gradients of all outputs: zeros, or None, for those without."""
    cts = iter((given,) if isinstance(given, Tensor) else given)
    values = [next(cts) if kind is None else None for kind in attrs["outputs"]]
    if not ctx.__dict__.get("_materialize", True):
        return values
    return [
        from_array(np.zeros(layout.shape, layout.dtype)) if value is None and layout is not None else value
        for value, layout in zip(values, attrs["layouts"], strict=True)
    ]


def checked(plan: Plan, values: tuple[Any, ...], wanted: tuple[bool, ...], ctx: Any) -> tuple[Any, ...]:
    """Return the gradients of the tensors among what backward returned, after PyTorch's checks."""
    name, expected, places = plan.op.node_name, len(ctx.needs_input_grad), plan.attrs["places"]
    if len(values) < expected or (len(values) > expected and any(value is not None for value in values[expected:])):
        raise RuntimeError(
            f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(values)})"
        )
    for place, value in enumerate(values):
        if value is None:
            continue
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"expected Variable or None (got {type(value).__name__}); backward of {name} returns one tensor or "
                "None for each argument of forward"
            )
        if places is not None and place not in places:
            raise RuntimeError(
                f"function {name} returned a gradient different than None at position {place + 1}, but the "
                "corresponding forward input was not a Variable"
            )
    if places is not None:
        values = tuple([values[place] for place in places])
    results: list[Any] = []
    for number, (value, layout, is_wanted) in enumerate(zip(values, plan.layouts, wanted, strict=False)):
        if value is None or not is_wanted:
            value = NO_COTANGENT
        elif value._layout.shape != layout.shape and not _is_expanded(value._layout.shape, layout.shape):
            place = number if places is None else places[number]
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {place} - got {list(value.shape)} but expected "
                f"shape compatible with {list(layout.shape)}"
            )
        results.append(value)
    return tuple(results)


def _is_expanded(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a sum undoes an expansion from `target` to `shape`."""
    return len(shape) >= len(target) and all(
        own in (1, length) for own, length in zip(reversed(target), reversed(shape), strict=False)
    )


_base_op: Final = Op(name="function", operands=("*inputs",), forward=identity, vjp=rule, family="function")
del op_table[_base_op.name]  # nobody calls it: it is not listed, sampled or documented


def function_op(name: str, node_name: str) -> Op:
    """Return the op of a `Function`, which does not stand in the table."""
    return renamed(_base_op, name, node_name)
