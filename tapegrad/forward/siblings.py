"""Siblings: plans of an elementwise op that differ in the number of their elements only, and share all else.

A program that meets a new length in each step, as of sentences or of batches that are filtered, makes a plan an op and
step. The first plan of a kind is made from its parts; each further one is a copy with other counts.
"""

from __future__ import annotations

from typing import Any, Final

from tapegrad.dtypes import on_change
from tapegrad.forward.results import of_shape, serves_all_shapes
from tapegrad.runtime import blocking, pool, state
from tapegrad.tape.layout import Layout, contiguous_strides, intern
from tapegrad.tape.plan import Plan

_FAMILIES: Final = ("unary", "binary", "elementwise")
_MOST: Final = 1024
_first_plans: dict[Any, Plan] = {}


def kind_of(op: Any, layouts: tuple[Layout, ...]) -> tuple[Any, Layout | None]:
    """Return what siblings have in common, and a layout of the result's shape; twice None if a plan has no siblings.

    Each operand is contiguous and of the result's shape, or has one element and wants no gradient. Large arrays have
    none: there is more to decide about them than a plan costs.
    """
    model: Layout | None = None
    key: list[Any] = [op.plans, op.vjp]
    if op.family in _FAMILIES:
        for layout in layouts:
            key.append(layout.kind)
            if layout.size <= 1:
                continue
            if not layout.contiguous or (model is not None and model.shape != layout.shape):
                return None, None
            model = layout
    if model is None or model.nbytes >= pool.THRESHOLD or model.size >= blocking.few_elements():
        return None, None
    ndim = model.ndim
    for layout in layouts:
        if layout.size <= 1 and (layout.size == 0 or layout.requires_grad or layout.ndim > ndim):
            return None, None
    return tuple(key), model


def sibling(kind: Any, model: Layout, layouts: tuple[Layout, ...]) -> Plan | None:
    """Return a new plan of a kind for operands of these layouts; None if there is no plan of the kind yet."""
    first = _first_plans.get(kind)
    if first is None:
        return None
    dtype, shape = first.result.dtype, model.shape
    result = model.plain
    if result.dtype != dtype:
        result = intern(shape, contiguous_strides(shape, dtype.itemsize), dtype)
    if result.nbytes >= pool.THRESHOLD:
        return None
    return first.like(layouts, result, of_shape(first.forward, shape))


def remember(kind: Any, plan: Plan, unprepared: Any) -> None:
    """Keep the first plan of a kind, if others can be made from it; `unprepared` is its forward for any layout."""
    is_general = plan.forward is unprepared or serves_all_shapes(plan.forward)
    if not is_general or plan.result.nbytes >= pool.THRESHOLD or not plan.result.contiguous:
        return
    if len(_first_plans) >= _MOST:
        _first_plans.clear()
    _first_plans[kind] = plan
    plan.share_kernel_calls()


on_change.append(_first_plans.clear)  # the dtype of a result may depend on the default
state.register("forward.siblings: plans", lambda: len(_first_plans), _first_plans.clear)
