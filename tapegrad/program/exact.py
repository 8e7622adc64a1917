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
    value_of : callable
        Returns the value with a number.
    """

    def __init__(self, entries: Sequence[Entry], layouts: Sequence[Layout], value_of: Callable[[int], Any]) -> None:
        self._entries, self._layouts, self._value_of = entries, layouts, value_of
        self._makers: dict[int, Entry] = {}
        self._count = 0  # entries in `_makers`
        self._same: set[int] = set()  # values that are what they were
        self._values: dict[int, Any] = {}

    def value(self, number: int) -> Any:
        """Return the value with a number."""
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
            self._compute(cone[first])
        return self._known(number)

    def _known(self, number: int) -> Any:
        return self._values[number] if number in self._values else self._value_of(number)

    def _compute(self, entry: Entry) -> None:
        """Compute an operation again if its result may differ."""
        taken = (*entry.operands, *entry.index_arrays)
        layouts = [self._layouts[number] for number in entry.operands]
        if not may_differ(entry.op, layouts, entry.attrs) and self._values.keys().isdisjoint(taken):
            self._same.update(entry.results)
            return
        operands = []
        for number, layout in zip(entry.operands, layouts, strict=True):
            data = self._known(number)
            operands.append(gateway.constant(data, layout if layout.weak else layout_of(data)))
        arrays = [np.asarray(self._known(number)) for number in entry.index_arrays]
        bound = Bound(operands, dict(entry.attrs), tuple(arrays))
        out = gateway.forward(entry.op, bound, tuple([own._layout for own in operands]), is_ordinary=True)[1]
        for number, value in zip(entry.results, (out,) if len(entry.results) == 1 else out, strict=True):
            self._values[number] = np.asarray(value)
