"""Scripts of rules, and those that do the same elsewhere: a function that takes elements in a loop has many of these.

Each turn of ``x[t]`` has a plan of its own, whose rule puts the cotangent to its place. It is called for one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tapegrad import dtypes
from tapegrad.ops.table.traced_forward import plan_like
from tapegrad.recording.plan import Plan
from tapegrad.runtime import state
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import Layout

__all__ = ["Script", "moved_script"]


class Script(NamedTuple):
    """The operations of rules. Values are the cotangent, residuals, constants, then results.

    Attributes
    ----------
    constants : list
        Their numbers in one trace; in a script of all traces, their values and layouts.
    steps : list of (Kind, list of int)
        Each operation, and the places of its operands among the values.
    results : list of (int, Layout)
        Of each result: its place among the values, and its layout.
    """

    constants: list[Any]
    steps: list[tuple[Any, list[int]]]
    results: list[tuple[int, Layout]]


#: By what plans share that take elements at other positions: the script of one of them, and its index.
_alike: Final[dict[Any, tuple[Script, Any]]] = {}
_MOST: Final = 1 << 10
state.register("program.moved_scripts: scripts of one index each", lambda: len(_alike), _alike.clear)
dtypes.on_change.append(_alike.clear)


def moved_script(
    plan: Plan, wanted: tuple[int, ...], layout: Layout, make: Callable[[], Script | None]
) -> Script | None:
    """Return the operations of the rules of a plan: those of a plan that takes elements elsewhere, or new ones.

    Parameters
    ----------
    plan : Plan
    wanted : tuple of int
        The operands that want a cotangent.
    layout : Layout
        Of the cotangent that the rules get.
    make : callable
        Calls the rules.
    """
    form = _form(plan)
    if form is None:
        return make()
    key, index = (form, wanted, layout), plan.attrs["key"]
    alike = _alike.get(key)
    script = None if alike is None else _moved(*alike, index)
    if script is None:
        script = make()
        if script is not None and not script.constants:
            state.put(_alike, key, (script, index), _MOST)
    return script


def _form(plan: Plan) -> Any:
    """Return what plans share that take elements at other positions of one layout; None for others."""
    if plan.op.name != "getitem":
        return None
    index = plan.attrs["key"]
    positions = [item for item in index if item.__class__ is int]
    if not positions or min(positions) < 0:
        return None
    return plan.op, plan.layouts, tuple([int if item.__class__ is int else item for item in index])


def _moved(script: Script, before: Any, index: Any) -> Script | None:
    """Return a script for another index, given the one that it is for; None if it has further ones."""
    steps = []
    for kind, sources in script.steps:
        attrs, plan = kind.plan.attrs, kind.plan
        if "key" in attrs:
            plan = plan_like(plan, {**attrs, "key": index}) if attrs["key"] == before else None
            if plan is None:
                return None
        steps.append((kind if plan is kind.plan else kind._replace(plan=plan), sources))
    return script._replace(steps=steps)
