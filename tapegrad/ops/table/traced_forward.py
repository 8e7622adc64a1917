"""Forwards of operations that are traced: by NumPy alone, or of a layout alone where nobody asks for values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.gateway import check_layouts, check_saved, names_of_arrays, shown
from tapegrad.ops.table.op import Bound, Op
from tapegrad.ops.table.plain import by_numpy
from tapegrad.ops.table.results import several_results
from tapegrad.recording.plan import Plan
from tapegrad.runtime import state
from tapegrad.tape.layout import Layout, contiguous_layout, layout_of

__all__ = ["plan_like", "traced"]

_traced: Final[dict[Any, Plan]] = {}
_MOST_TRACED: Final = 4096
state.register("ops.table.traced_forward: plans of traces", lambda: len(_traced), _traced.clear)


def traced(
    op: Op,
    bound: Bound,
    layouts: tuple[Layout, ...],
    data: list[Any],
    key: Any,
    show: Callable[[Layout], np.ndarray] | None = None,
) -> tuple[Plan, Any] | None:
    """Compute an op of a trace by NumPy alone, with a plan that serves traces only; None if that is no easier."""
    plan = _traced.get((op, key))
    if plan is not None:
        return plan, plan.forward(*data, *bound.index_arrays) if show is None else shown(plan, data, show)
    plain = by_numpy(op, layouts, bound.attrs)
    if plain is None:
        return None
    check_layouts(op, layouts)
    if op.check is not None:
        op.check(bound)
    shape = _shape_of_all(data) if show is not None and op.is_elementwise else None
    if shape is None:
        out = plain(*data, *bound.index_arrays)
    else:
        assert show is not None
        dtype = plain(*[own.reshape(-1)[:1] if np.ndim(own) else own for own in data]).dtype
        out = show(contiguous_layout(shape, dtype))
    if len(op.results) > 1:
        plan = several_results(op, layouts, bound.attrs, plain, out)
    else:
        plan = Plan(op, layouts, bound.attrs, plain, layout_of(out), names_of_arrays(len(bound.index_arrays)))
    check_saved(plan)
    return state.put(_traced, (op, key), plan, _MOST_TRACED), out


def _shape_of_all(data: Sequence[Any]) -> tuple[int, ...] | None:
    """Return the shape of arrays that stand row by row, besides single numbers; None if there are others."""
    arrays = [own for own in data if np.ndim(own)]
    shapes = {own.shape for own in arrays}
    return shapes.pop() if len(shapes) == 1 and all(own.flags.c_contiguous and own.size for own in arrays) else None


def plan_like(plan: Plan, attrs: Mapping[str, Any]) -> Plan | None:
    """Return a plan of a trace like another one of a trace, for attributes that lead to a result of the same layout.

    None if there is none by NumPy alone.
    """
    op, layouts = plan.op, plan.layouts
    key = layouts, tuple(attrs.values()), ()
    known = op.plans.get(key) or _traced.get((op, key))
    plain = by_numpy(op, layouts, attrs) if known is None else None
    if plain is None:
        return known
    return state.put(_traced, (op, key), Plan(op, layouts, attrs, plain, plan.result), _MOST_TRACED)
