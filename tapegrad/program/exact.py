"""Values that Python looks at, with the bits of an ordinary call: a trace computes others by NumPy alone.

What Python does next depends on them, and machine code has the formulas of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.ops.table import gateway
from tapegrad.ops.table.op import Bound
from tapegrad.ops.table.plain import may_differ
from tapegrad.program.program import Entry
from tapegrad.tape.layout import Layout, layout_of

__all__ = ["Exact"]


class Exact:
    """Computes values of a trace again, each once.

    Parameters
    ----------
    entries : list of Entry
        The operations, to which the trace adds.
    layouts : list of Layout
    """

    def __init__(self, entries: Sequence[Entry], layouts: Sequence[Layout]) -> None:
        self._entries, self._layouts = entries, layouts
        self._makers: dict[int, Entry] = {}
        self._count = 0  # entries in `_makers`
        self._same: set[int] = set()  # values that are what they were
        self._values: dict[int, Any] = {}

    def value(self, number: int, value_of: Callable[[int], Any]) -> Any:
        """Return the value with a number, from those that the trace has.

        The trace is not kept: it has this, and must die with its last user, for its tensors tell what it captured.
        """
        for entry in self._entries[self._count :]:
            self._makers.update(dict.fromkeys(entry.results, entry))
        self._count = len(self._entries)
        cone: dict[int, Entry] = {}
        waiting = [number]
        while waiting:
            maker = self._makers.get(waiting.pop())
            if maker is None:
                continue
            first = maker.results[0]
            if first not in cone and first not in self._same and first not in self._values:
                cone[first] = maker
                waiting += [*maker.operands, *maker.index_arrays]
        for first in sorted(cone):
            self._compute(cone[first], value_of)
        return self._values[number] if number in self._values else value_of(number)

    def _compute(self, entry: Entry, value_of: Callable[[int], Any]) -> None:
        """Compute an operation again if its result may differ."""

        def known(number: int) -> Any:
            return self._values[number] if number in self._values else value_of(number)

        taken = (*entry.operands, *entry.index_arrays)
        layouts = [self._layouts[number] for number in entry.operands]
        if not may_differ(entry.op, layouts, entry.attrs) and self._values.keys().isdisjoint(taken):
            self._same.update(entry.results)
            return
        operands = []
        for number, layout in zip(entry.operands, layouts, strict=True):
            data = known(number)
            operands.append(gateway.constant(data, layout if layout.weak else layout_of(data)))
        arrays = [np.asarray(known(number)) for number in entry.index_arrays]
        bound = Bound(operands, dict(entry.attrs), tuple(arrays))
        out = gateway.forward(entry.op, bound, tuple([own._layout for own in operands]), is_ordinary=True)[1]
        for number, value in zip(entry.results, (out,) if len(entry.results) == 1 else out, strict=True):
            self._values[number] = np.asarray(value)
