"""Forwards for all lengths: those that are compiled code with words, of which only lengths change.

A program that meets a new length in each step, as of sentences or of batches that are filtered, makes a plan an op and
step. What its forward is told of lengths is worked out for all of them (`tapegrad.tape.lengths`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import BuiltinFunctionType
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import on_change
from tapegrad.forward.powers import Power, Raising
from tapegrad.forward.prepared import prepared
from tapegrad.forward.results import Draft
from tapegrad.runtime import blocking
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_strides, general
from tapegrad.tape.lengths import Templates, Trace

_templates = Templates("forward.templates: forwards of all lengths")
_MOST_OPERANDS: Final = 8


def kind_of(op: Any, layouts: tuple[Layout, ...]) -> Hashable | None:
    """Return all that a forward depends on besides lengths and attributes; None where that is not worth while."""
    if len(layouts) > _MOST_OPERANDS:
        return None
    return (op.plans, op.vjp, *[layout.kind for layout in layouts])


def find(kind: Hashable, layouts: tuple[Layout, ...], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return the forward for operands of these layouts, if it is known for all of their kind."""
    lengths: list[int] = []
    for layout in layouts:
        lengths += layout.lengths
    found = _templates.find(kind, lengths, attrs)
    return found if found is None or isinstance(found, np.ufunc) else found.made()


def learn(
    kind: Hashable, op: Any, layouts: tuple[Layout, ...], attrs: Mapping[str, Any], forward: Any, result: Layout
) -> None:
    """Work out the forward for all operands of this kind, where it depends on lengths in a simple way.

    Parameters
    ----------
    kind, op, layouts, attrs
        Of a call.
    forward : callable
        That was made for it.
    result : Layout
    """
    if not isinstance(forward, (np.ufunc, BuiltinFunctionType)):
        return

    def for_all(trace: Trace) -> Any:
        operands = tuple(general(layout, trace) for layout in layouts)
        made = op.forward_for(operands, trace.attributes(attrs))
        if not isinstance(made, Draft):
            in_order = all(layout.contiguous for layout in (*layouts, result))  # NumPy may choose another order
            if not in_order or not (isinstance(made, Power) or getattr(made, "signature", "") is None):
                return None
            shape = broadcast_shape(*[layout.shape for layout in operands])
            strides = contiguous_strides(shape, result.dtype.itemsize)
            made = prepared(made, operands, Layout(shape, strides, result.dtype, result.inline, result.weak))
        return made if isinstance(made, (Draft, Raising, np.ufunc)) else None

    _templates.learn(kind, for_all)


on_change.append(_templates.clear)  # the dtype of a result may depend on the default
blocking.on_new_block.append(_templates.clear)
