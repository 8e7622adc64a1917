"""Sums of arrays that are zero but for one row become stacks of rows: the gradient of ``for t in range(n): ... x[t]``.

As the sweep writes it, each turn makes an array of all rows and adds it up. A stack takes each row from the turn that
computes it, so its cost does not grow with the square of n, and the loop only writes to rows. Rows are added up in the
same order as before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.ops.table.op import op_table
from tapegrad.program.columns import Columns
from tapegrad.program.program import Entry, Program
from tapegrad.tape.layout import contiguous_layout

_FEWEST: Final = 8  # rows that are placed


class _Group:
    """Values that are parts of one sum: how many rows are placed, and which."""

    def __init__(self, rows: int, row: int) -> None:
        self.length, self.count, self.rows = rows, 1, {row}
        self.joined: _Group | None = None

    def root(self) -> _Group:
        found = self
        while found.joined is not None:
            found = found.joined
        if found is not self:
            self.joined = found
        return found

    def join(self, other: _Group) -> _Group:
        """Return the group of both."""
        more, less = (self, other) if len(self.rows) >= len(other.rows) else (other, self)
        if more is not less:
            more.count += less.count
            more.rows |= less.rows
            less.joined, less.rows = more, set()
        return more

    def pays(self) -> bool:
        """Whether a stack is less work."""
        return self.count >= _FEWEST and 2 * len(self.rows) >= self.length


class _Rows:
    """A value as rows that differ from those of another value, or from zeros."""

    def __init__(self, base: int | None, rows: dict[int, int]) -> None:
        self.base, self.rows = base, rows


def with_stacks(program: Program) -> Program:
    """Return the program with stacks in place of sums of placed rows."""
    columns, count = program.columns, len(program.layouts)
    is_placing = columns.ops == id(op_table["index_scatter_add"])
    if not is_placing.any():
        return program
    placed = columns.results(np.flatnonzero(is_placing))
    is_added = columns.reached(count, placed.tolist(), columns.ops == id(op_table["add"]))[1]
    users, ends = columns.users(count)
    takes = np.diff(ends, prepend=0)
    used = takes.copy()
    np.add.at(used, [*program.outputs, *[guard.value for guard in program.guards]], 1)
    sums = _sums(columns, placed, np.flatnonzero(is_added), used)
    is_long = np.bincount(sums[placed], minlength=count) >= _FEWEST
    places = np.flatnonzero(is_placing | is_added)
    groups = _groups(program, places[is_long[sums[columns.results(places)]]].tolist(), used)
    chosen = {number: place for number, (place, group) in groups.items() if group.root().pays()}
    if not chosen:
        return program
    touched = {*chosen.values()}
    for number in chosen:
        touched.update(users[ends[number] - takes[number] : ends[number]].tolist())
    found = _Writer(program, chosen, {number for number in chosen if used[number] == 1}).program(sorted(touched))
    found.has_functions = program.has_functions
    return with_stacks(found)  # rows may be sums of placed rows themselves


def _row_of(program: Program, entry: Entry) -> int | None:
    """Return the row to which an entry adds an array, of zeros; None if it adds to several."""
    key = entry.attrs["key"]
    if entry.index_arrays or not key or type(key[0]) is not int:
        return None
    row: int = key[0]
    return row + program.layouts[entry.results[0]].shape[0] * (row < 0)


def _sums(columns: Columns, placed: np.ndarray, adds: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return for each value the last one of the sum that it is a part of. Parts may yet have other layouts.

    Parameters
    ----------
    columns : Columns
    placed : array of int
        The values that are placed rows.
    adds : array of int
        The entries that add.
    used : array of int
        How often each value is taken; parts are taken once.
    """
    last, results, is_part = np.arange(len(used)), columns.results(adds), np.zeros(len(used), bool)
    is_part[placed] = is_part[results] = True
    is_part &= used == 1
    for place in range(2):
        operands = columns.numbers[columns.starts[adds] + place]
        own = is_part[operands]
        last[operands[own]] = results[own]
    while not np.array_equal(further := last[last], last):
        last = further
    return last


def _groups(program: Program, places: Sequence[int], used: np.ndarray) -> dict[int, tuple[int, _Group]]:
    """Return for each value that is a placed row, or a sum of those that nothing else takes, its entry and its group.

    These are computed by entries at some places, in order.
    """
    groups: dict[int, tuple[int, _Group]] = {}
    layouts = program.layouts
    placing, adding = op_table["index_scatter_add"], op_table["add"]
    for place in places:
        entry = program.entries[place]
        op, operands, attrs, _, (result, *_), _ = entry
        if op is placing:
            row = _row_of(program, entry)
            if row is not None:
                groups[result] = place, _Group(layouts[result].shape[0], row)
        elif op is adding and (operands[0] in groups or operands[1] in groups) and not attrs:
            parts = [own for own in operands if own in groups and used[own] == 1]
            if parts and layouts[operands[0]] is layouts[operands[1]] is layouts[result]:
                groups[result] = place, groups[parts[0]][1].root().join(groups[parts[-1]][1].root())
    return groups


class _Writer:
    """Writes the entries anew."""

    def __init__(self, program: Program, chosen: Collection[int], parts: set[int]) -> None:
        self._program, self._chosen, self._parts = program, chosen, parts
        self._layouts, self._constants = list(program.layouts), dict(program.constants)
        self._entries: list[Entry] = []
        self._rows: dict[int, _Rows] = {}
        self._records: dict[int, bool] = {}
        self._zeros: dict[Any, int] = {}

    def program(self, places: Sequence[int]) -> Program:
        """Return the program with stacks, given the entries that compute or take chosen values, in order."""
        program, done = self._program, 0
        for place in places:
            self._entries += program.entries[done:place]
            entry, done = program.entries[place], place + 1
            op, operands, _, arrays, (result, *_), records = entry
            if result in self._chosen:
                self._records[result] = records
                self._rows[result] = self._placed(entry) if op.name != "add" else self._added(entry)
                continue
            if not self._rows.keys().isdisjoint(operands) or arrays:
                for number in (*operands, *arrays):
                    self._stack(number)
            self._entries.append(entry)
        self._entries += program.entries[done:]
        for number in (*program.outputs, *[guard.value for guard in program.guards]):
            self._stack(number)
        return Program(self._layouts, program.inputs, self._constants, self._entries, program.outputs, program.guards)

    def _write(self, name: str, operands: Sequence[int], attrs: dict[str, Any], like: int, result: int = -1) -> int:
        """Write an operation whose result is a row of a value, unless its number is given."""
        if result < 0:
            result = len(self._layouts)
            layout = self._layouts[like]
            self._layouts.append(contiguous_layout(layout.shape[1:], layout.dtype))
        self._entries.append(Entry(op_table[name], tuple(operands), attrs, (), (result,), self._records[like]))
        return result

    def _placed(self, entry: Entry) -> _Rows:
        (value,), (result,) = entry.operands, entry.results
        row, rest = _row_of(self._program, entry), entry.attrs["key"][1:]
        assert row is not None
        shape = self._layouts[result].shape[1:]
        if rest or self._layouts[value].shape != shape:
            value = self._write("index_scatter_add", [value], {"key": rest, "shape": shape}, result)
        return _Rows(None, {row: value})

    def _added(self, entry: Entry) -> _Rows:
        (result,) = entry.results
        one, two = [self._operand(number) for number in entry.operands]
        if one.base is not None and two.base is not None:
            for number, own in zip(entry.operands, (one, two), strict=True):
                self._rows[number] = own
                self._stack(number)
            self._entries.append(entry)
            return _Rows(result, {})
        more, less = one, two
        if two.base is not None or (one.base is None and len(two.rows) > len(one.rows)):
            more, less = two, one
        for row, value in less.rows.items():
            before = more.rows.get(row)
            if before is None and more.base is not None:
                before = self._write("getitem", [more.base], {"key": (row,)}, result)
            more.rows[row] = value if before is None else self._write("add", [before, value], {}, result)
        return more

    def _operand(self, number: int) -> _Rows:
        if number in self._parts:
            return self._rows.pop(number)
        self._stack(number)
        return _Rows(number, {})

    def _stack(self, number: int) -> None:
        """Write the stack of a value's rows, if it is not written yet."""
        found = self._rows.pop(number, None)
        if found is None or not found.rows:
            return
        layout = self._layouts[number]
        rows = []
        for row in range(layout.shape[0]):
            if row in found.rows:
                rows.append(found.rows[row])
            elif found.base is None:
                rows.append(self._zero(number))
            else:
                rows.append(self._write("getitem", [found.base], {"key": (row,)}, number))
        self._write("stack", rows, {"dim": 0}, number, number)

    def _zero(self, like: int) -> int:
        layout = self._layouts[like]
        key = layout.shape[1:], layout.dtype
        if key not in self._zeros:
            self._zeros[key] = len(self._layouts)
            self._layouts.append(contiguous_layout(*key))
            self._constants[self._zeros[key]] = np.zeros(*key)
        return self._zeros[key]
