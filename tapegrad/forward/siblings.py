"""Siblings: plans of an elementwise op that differ in the number of their elements only, and share all else.

A program that meets a new length in each step, as of sentences or of batches that are filtered, makes a plan an op and
step. The first plan of a kind is made from its parts; each further one is a copy with other counts.
"""

from __future__ import annotations

from typing import Any, Final

from tapegrad.dtypes import on_change
from tapegrad.forward.results import Words
from tapegrad.runtime import blocking, pool, state
from tapegrad.tape.layout import Layout, contiguous_strides, intern
from tapegrad.tape.plan import Plan

_FAMILIES: Final = ("unary", "binary", "elementwise")
_MOST: Final = 1024
_first_plans: dict[Any, Plan] = {}


def kind_of(op: Any, layouts: tuple[Layout, ...]) -> Any:
    """Return what siblings have in common; None if a plan has none.

    Each operand is contiguous and of the result's shape, or has one element and wants no gradient. Large arrays have
    none: there is more to decide about them than a plan costs.
    """
    if op.family not in _FAMILIES:
        return None
    shape: tuple[int, ...] = ()
    for layout in layouts:
        if layout.size > 1:
            if not layout.contiguous or (shape and shape != layout.shape):
                return None
            shape = layout.shape
            if layout.nbytes >= pool.THRESHOLD or layout.size >= blocking.ENOUGH_BLOCKS * blocking.division.block > 0:
                return None
    key: list[Any] = [op.name, op.vjp, op.step, op.joint]
    for layout in layouts:
        if layout.size <= 1 and (layout.size == 0 or layout.requires_grad or layout.ndim > len(shape)):
            return None
        key.append((layout.dtype, layout.inline, layout.weak, layout.requires_grad, layout.size > 1, layout.ndim == 0))
    return tuple(key) if shape else None


def sibling(kind: Any, layouts: tuple[Layout, ...]) -> Plan | None:
    """Return a new plan of a kind for operands of these layouts; None if there is no plan of the kind yet."""
    first = _first_plans.get(kind)
    if first is None:
        return None
    model = next(layout for layout in layouts if layout.size > 1)
    dtype = first.result.dtype
    result = (
        model.plain
        if model.dtype == dtype
        else intern(model.shape, contiguous_strides(model.shape, dtype.itemsize), dtype)
    )
    if result.nbytes >= pool.THRESHOLD:
        return None
    words = getattr(first.forward, "__self__", None)
    forward = words.like(words, result.shape) if isinstance(words, Words) and words.like else first.forward
    return first.like(layouts, result, forward)


def remember(kind: Any, plan: Plan, unprepared: Any) -> None:
    """Keep the first plan of a kind, if others can be made from it; `unprepared` is its forward for any layout."""
    words = getattr(plan.forward, "__self__", None)
    is_general = plan.forward is unprepared or (isinstance(words, Words) and words.like is not None)
    if not is_general or plan.result.nbytes >= pool.THRESHOLD or not plan.result.contiguous:
        return
    if len(_first_plans) >= _MOST:
        _first_plans.clear()
    _first_plans[kind] = plan
    plan.share_kernel_calls()


on_change.append(_first_plans.clear)  # the dtype of a result may depend on the default
state.register("forward.siblings: plans", lambda: len(_first_plans), _first_plans.clear)
