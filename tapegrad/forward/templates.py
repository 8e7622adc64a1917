"""Forwards for all lengths: compiled forwards whose words depend on the lengths of dimensions alone.

A program that meets a new length in each step, as of sentences or of batches that are filtered, makes a plan an op and
step. What its forward is told of lengths is worked out for all of them (`tapegrad.tape.lengths`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

import numpy as np

from tapegrad.dtypes import on_change
from tapegrad.forward.powers import Power
from tapegrad.forward.prepared import prepared
from tapegrad.forward.results import is_draft, words_of
from tapegrad.runtime import blocking
from tapegrad.tape.kinds import Kind, Templates
from tapegrad.tape.layout import Layout, broadcast_shape, contiguous_layout, general
from tapegrad.tape.lengths import Trace

_templates = Templates("forward.templates: forwards of all lengths", words_of)
_MOST_OPERANDS: Final = 8
_kind_of: Final = attrgetter("kind")


def kind_of(op: Any, layouts: tuple[Layout, ...]) -> Kind | None:
    """Return the kind of operands that differ from these in lengths only; None for many operands."""
    if len(layouts) > _MOST_OPERANDS:
        return None
    return _templates.kind((op.plans, op.vjp, *map(_kind_of, layouts)))


def find(kind: Kind, layouts: tuple[Layout, ...], attrs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return the forward for operands of these layouts if there is one for all lengths, else None."""
    lengths: list[int] = []
    for layout in layouts:
        lengths += layout.lengths
    found = kind.find(lengths, attrs)
    return found if found is None or isinstance(found, np.ufunc) else found.made()


def learn(kind: Kind, op: Any, layouts: tuple[Layout, ...], attrs: Mapping[str, Any], result: Layout | None) -> None:
    """Work out the forward for all operands of this kind, where it depends on lengths in a simple way.

    Parameters
    ----------
    kind, op, layouts, attrs
        Of a call.
    result : Layout, optional
        None of several results.
    """

    def for_all(trace: Trace) -> Any:
        operands = tuple(general(layout, trace) for layout in layouts)
        made = op.forward_for(operands, trace.attributes(attrs))
        if not is_draft(made):
            if result is None:
                return None
            in_order = all(layout.contiguous for layout in (*layouts, result))  # NumPy may choose another order
            if not in_order or not (isinstance(made, Power) or getattr(made, "signature", "") is None):
                return None
            shape = broadcast_shape(*[layout.shape for layout in operands])
            made = prepared(made, operands, contiguous_layout(shape, result.dtype))
        return made if is_draft(made) or isinstance(made, np.ufunc) else None

    kind.learn(for_all)


on_change.append(_templates.clear)  # the dtype of a result may depend on the default
blocking.on_new_block.append(_templates.clear)
