"""Kinds of calls of operations in functions that are traced: what was worked out for one call serves all of its kind.

A call is of the kind of another one if its operands have the same layouts, and its other arguments are the same, as in
`tapegrad.recording.keys`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tapegrad import dtypes
from tapegrad.forward.direct import direct
from tapegrad.ops.indexing import row_like
from tapegrad.ops.table.gateway import raw_data
from tapegrad.recording.keys import MAKES_VIEWS
from tapegrad.recording.plan import Plan
from tapegrad.runtime import state
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import FLOAT, INTEGER, Layout, contiguous_layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["Kind", "arguments_key", "converted_operands", "find_kind", "find_row", "keep_kind", "kind_of", "kinds"]

_PLAIN: Final = (int, float, bool, str, type(None), type(Ellipsis))


class Kind(NamedTuple):
    """What calls of one kind share, of an operation with one result and without arrays of indices.

    Attributes
    ----------
    plan : Plan
    layout : Layout
        Of the value: row by row.
    shown : Layout
        Of the result as the function sees it, which is an array also if it is one number.
    converted : tuple of int
        The operands that are Python's integers, and become floats.
    is_view : bool
        Whether the result is a view of the operand.
    forward : callable, optional
        What compiled code computes it with, if it is not the plan's forward: that of one number returns no array.
    """

    plan: Plan
    layout: Layout
    shown: Layout
    converted: tuple[int, ...] = ()
    is_view: bool = False
    forward: Callable[..., Any] | None = None


def kind_of(plan: Plan, out: Any, is_view: bool = False) -> Kind:
    """Return the kind of calls with a plan, given the result of one."""
    layout = layout_of(np.asarray(out))
    shown = layout.tracked if plan.records else layout
    forward = plan.forward if layout.ndim else direct(plan.forward, plan.layouts, plan.result, of_numbers=True)
    own = None if forward is plan.forward else forward
    return Kind(plan, contiguous_layout(layout.shape, layout.dtype), shown, (), is_view, own)


#: By what calls are told apart: kinds of calls of all traces, as those of operations have plans that stay.
kinds: Final[dict[Any, Kind]] = {}
_MOST: Final = 1 << 13
state.register("program.kinds: kinds of calls", lambda: len(kinds), kinds.clear)
dtypes.on_change.append(kinds.clear)


def find_kind(key: tuple[Any, ...]) -> Kind | None:
    """Return the kind of a call, None if it is not known."""
    found = kinds.get(key)
    return find_row(key) if found is None and key[-2] is int else found


def find_row(key: tuple[Any, ...]) -> Kind | None:
    """Return the kind of a call that chooses a row by an integer, if one with another integer is known; else None."""
    other = kinds.get(key[:-1]) if key[0].flags & MAKES_VIEWS else None
    plan = None if other is None else row_like(other.plan, key[-1])
    return None if other is None or plan is None else state.put(kinds, key, other._replace(plan=plan), _MOST)


def keep_kind(key: tuple[Any, ...], kind: Kind) -> None:
    """Keep the kind of a call."""
    state.put(kinds, key, kind, _MOST)
    if kind.is_view and key[-2] is int:
        kinds[key[:-1]] = kind  # for other integers


def converted_operands(operands: Sequence[Any], bound: Sequence[Tensor]) -> tuple[int, ...] | None:
    """Return which operands are integers that became floats; None if an operand became anything else."""
    converted: list[int] = []
    if len(operands) != len(bound):
        return None
    for place, (own, other) in enumerate(zip(operands, bound, strict=True)):
        if own.__class__ is float or own.__class__ is int:
            if not other._layout.weak or raw_data(other) != own:
                return None
            if other._layout is FLOAT and own.__class__ is int:
                converted.append(place)
            elif other._layout is not (FLOAT if own.__class__ is float else INTEGER):
                return None
        elif raw_data(other) is not raw_data(own) or other._node is not own._node:
            return None
    return tuple(converted)


def arguments_key(rest: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | None:
    """Return arguments besides operands with their classes, as 1 equals True and 1.0; None if one may change."""
    key: list[Any] = []
    for value in (*rest, *kwargs, *kwargs.values()):
        if not _add(key, value):
            return None
    return key


def _add(key: list[Any], value: Any) -> bool:
    kind = value.__class__
    if kind is slice:
        key += (slice, value.start, value.stop, value.step)
        return all(part is None or part.__class__ is int for part in key[-3:])
    if kind is tuple or kind is list:
        key += (kind, len(value))
        return all(_add(key, item) for item in value)
    if kind not in _PLAIN and not isinstance(value, (np.dtype, type)):
        return False
    key += (kind, value if kind is not float or value else repr(value))
    return True
