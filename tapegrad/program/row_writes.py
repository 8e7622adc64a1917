"""Rows that are written one after the other: ``for t in range(n): out[t] = ...`` becomes a stack of rows.

As it is traced, each write computes all rows anew. Here a value knows which of its rows were replaced, or added to,
and by what: who reads such a row gets that, and whoever reads anything else gets a stack of all. So a turn of the loop
costs what its rows cost, and loops are found as if the rows were kept in a list. In the sweep of such a loop the
cotangent's rows are read, set to zero, and added to in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.op import op_table
from tapegrad.program.program import Entry, Guard, Program
from tapegrad.tape.layout import Layout, contiguous_layout

_FEWEST: Final = 8  # writes
_ALL: Final = (None, None, None)


class _Rows:
    """A value that differs from another one in a row; `before` is a value, or None for zeros."""

    __slots__ = ("before", "placed", "records", "row", "value")

    def __init__(self, before: int | None, row: int, value: int, records: bool, placed: Entry | None = None) -> None:
        self.before, self.row, self.value, self.records = before, row, value, records
        self.placed = placed  # what writes it, if it is a row among zeros


def with_rows(program: Program) -> Program:
    """Return the program with stacks in place of writes to one row after the other."""
    writing = op_table["index_replace"]
    if writing not in program.ops:
        return program
    count = sum(entry.op is writing and _row(program.layouts, entry) is not None for entry in program.entries)
    return _Writer(program).program() if count >= _FEWEST else program


def _row(layouts: Sequence[Layout], entry: Entry) -> int | None:
    """Return the row that an entry's key chooses, if that is all that it chooses."""
    key = entry.attrs["key"]
    if entry.index_arrays or not key or type(key[0]) is not int or any(own not in (_ALL, Ellipsis) for own in key[1:]):
        return None
    number = entry.operands[0] if entry.op.name == "getitem" else entry.results[0]
    length = layouts[number].shape[0]
    return int(key[0]) + length * (key[0] < 0)


class _Writer:
    """Writes the entries anew."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._layouts, self._constants = list(program.layouts), dict(program.constants)
        self._entries: list[Entry] = []
        self._rows: dict[int, _Rows] = {}  # values that are not written
        self._same: dict[int, int] = {}  # values that are others
        self._read: dict[tuple[int | None, int], int] = {}  # rows of what is written
        self._used: Counter[int] = Counter()

    def program(self) -> Program:
        """Return the program with stacks."""
        program = self._program
        for entry in program.entries:
            self._used.update(entry.operands)
        self._used.update(program.outputs)
        replacing, placing, adding = op_table["index_replace"], op_table["index_scatter_add"], op_table["add"]
        for entry in program.entries:
            op = entry.op
            entry = entry._replace(
                operands=tuple([self._same.get(own, own) for own in entry.operands]),
                index_arrays=tuple([self._same.get(own, own) for own in entry.index_arrays]),
            )
            if op is replacing and self._replaced(entry):
                continue
            if op is placing and self._placed(entry):
                continue
            if op is adding and self._added(entry):
                continue
            if op.name == "getitem" and self._taken(entry):
                continue
            self._write_all((*entry.operands, *entry.index_arrays))
            self._entries.append(entry)
        outputs = [self._same.get(own, own) for own in program.outputs]
        guards = [Guard(self._same.get(own.value, own.value), own.outcome, own.where) for own in program.guards]
        self._write_all([*outputs, *[own.value for own in guards]])
        made = Program(self._layouts, program.inputs, self._constants, self._entries, outputs, guards).cleaned()
        made.has_functions = program.has_functions
        return made

    # --- entries that are not written --------------------------------------------------------------------------------

    def _replaced(self, entry: Entry) -> bool:
        row, (x, value), (result,) = _row(self._layouts, entry), entry.operands, entry.results
        before = self._rows.get(x)
        if row is None or (before is not None and before.records != entry.records):
            return False
        known = self._as_row(value, result)
        if known is None:
            return False
        self._rows[result] = _Rows(x, row, known, entry.records)
        return True

    def _placed(self, entry: Entry) -> bool:
        """Note a row among zeros, which something is about to be added to."""
        row, (value,), (result,) = _row(self._layouts, entry), entry.operands, entry.results
        if row is None or self._used[result] != 1 or self._layouts[value].shape != self._layouts[result].shape[1:]:
            return False
        self._rows[result] = _Rows(None, row, value, entry.records, entry)
        return True

    def _added(self, entry: Entry) -> bool:
        """Note what a row among zeros is added to, if that has such rows too."""
        (result,) = entry.results
        for x, other in (entry.operands, entry.operands[::-1]):
            more, less = self._rows.get(x), self._rows.get(other)
            if (
                less is None or less.before is not None or more is None or more.before is None or entry.attrs
                or not more.records == less.records == entry.records
                or self._layouts[x].dtype != self._layouts[other].dtype
            ):  # fmt: skip
                continue
            old = self._row_of(x, less.row, result, entry.records)
            operands = (old, less.value) if x == entry.operands[0] else (less.value, old)
            total = self._write("add", operands, {}, result, entry.records)
            self._rows[result] = _Rows(x, less.row, total, entry.records)
            return True
        return False

    def _taken(self, entry: Entry) -> bool:
        row, (x,), (result,) = _row(self._layouts, entry), entry.operands, entry.results
        found = self._rows.get(x)
        if row is None or found is None or found.records != entry.records:
            return False
        self._same[result] = self._row_of(x, row, x, entry.records)
        return True

    # --- rows --------------------------------------------------------------------------------------------------------

    def _as_row(self, value: int, like: int) -> int | None:
        """Return what a row of a value is if this is written to it; None if it is broadcast."""
        layout, wanted = self._layouts[value], self._layouts[like]
        if layout.shape == wanted.shape[1:] and layout.dtype == wanted.dtype and not layout.weak:
            return value
        if value not in self._constants or layout.shape:
            return None
        return self._constant(np.full(wanted.shape[1:], self._constants[value], wanted.dtype))

    def _constant(self, array: np.ndarray) -> int:
        number = len(self._layouts)
        self._layouts.append(contiguous_layout(array.shape, array.dtype))
        self._constants[number] = array
        return number

    def _row_of(self, number: int | None, row: int, like: int, records: bool) -> int:
        """Return a row of a value."""
        while number is not None:
            found = self._rows.get(number)
            if found is None:
                break
            if found.row == row:
                return found.value
            number = found.before
        known = self._read.get((number, row))
        if known is None:
            if number is None:
                layout = self._layouts[like]
                known = self._constant(np.zeros(layout.shape[1:], layout.dtype))
            else:
                known = self._write("getitem", [number], {"key": (row,)}, like, records)
            self._read[number, row] = known
        return known

    def _write(self, name: str, operands: Iterable[int], attrs: dict[str, Any], like: int, records: bool) -> int:
        """Write an operation whose result is a row of a value."""
        result, layout = len(self._layouts), self._layouts[like]
        self._layouts.append(contiguous_layout(layout.shape[1:], layout.dtype))
        self._entries.append(Entry(op_table[name], tuple(operands), attrs, (), (result,), records))
        return result

    def _write_all(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number in self._rows:
                self._write_value(number)

    def _write_value(self, number: int) -> None:
        """Write a value whose rows were replaced: a stack, or writes to the few rows."""
        placed = self._rows[number].placed
        if placed is not None:  # for sums of such rows see `tapegrad.program.placed`
            self._entries.append(placed)
            del self._rows[number]
            return
        layout, records = self._layouts[number], self._rows[number].records
        rows: dict[int, int] = {}
        base: int | None = number
        while base is not None and base in self._rows:
            found = self._rows[base]
            rows.setdefault(found.row, found.value)
            base = found.before
        if 2 * len(rows) >= layout.shape[0] or base is None:
            stacked = [
                rows[row] if row in rows else self._row_of(base, row, number, records) for row in range(layout.shape[0])
            ]
            self._entries.append(Entry(op_table["stack"], tuple(stacked), {"dim": 0}, (), (number,), records))
        else:
            for place, (row, value) in enumerate(reversed(rows.items()), 1):
                result = number if place == len(rows) else len(self._layouts)
                if result != number:
                    self._layouts.append(contiguous_layout(layout.shape, layout.dtype))
                attrs = {"key": (row,), "indices": ()}
                self._entries.append(Entry(op_table["index_replace"], (base, value), attrs, (), (result,), records))
                base = result
        del self._rows[number]
