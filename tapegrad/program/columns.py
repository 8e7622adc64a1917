"""Compiled: the entries of a program as integers, and what is asked of all of them at once.

A program that was traced over thousands of turns has a million entries. Python would need a microsecond for each.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from tapegrad.recording.native import Lazy, integer, load, new_integer
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import List, NDArray, Object, Tuple
from tapegrad.runtime.structs import Array, Struct, Table, sizeof

_WATCHED: Final = "columns of a list"
_MASK: Final = (1 << 40) - 1  # of a hash: products of two such factors fit into a word


class EntryFields(Struct):
    """An entry as words."""

    op: int  # identities
    attrs: int
    n_operands: int
    n_arrays: int
    n_results: int
    first: int  # of its numbers: operands, arrays of indices, results


class ColumnsFields(Struct):
    """The memory of `Columns`."""

    count: int
    entries: Table[EntryFields]
    numbers: Array[int]


def measure_entries(self: Object, args: Array[Object], nargs: int) -> int:
    """Return how many numbers stand in a list of entries."""
    entries, total = List(args[0]), 0
    for place in range(entries.length):
        items = Tuple(entries.items[place]).items
        total += Tuple(items[1]).length + Tuple(items[3]).length + Tuple(items[4]).length
    return Object(new_integer(total))


def read_numbers(source: Tuple, target: Array[int]) -> int:
    """Write the integers of a tuple; return how many there are."""
    for place in range(source.length):
        target[place] = integer(source.items[place])
    return source.length


def read_entries(self: Object, args: Array[Object], nargs: int) -> int:
    """Write a list of entries as words: ``read_entries(columns, entries)``."""
    columns, entries, total = ColumnsFields(NDArray(args[0]).data), List(args[1]), 0
    for place in range(entries.length):
        items, words = Tuple(entries.items[place]).items, columns.entries[place]
        words.op, words.attrs, words.first = items[0], items[2], total
        words.n_operands = read_numbers(Tuple(items[1]), columns.numbers.at(total))
        total += words.n_operands
        words.n_arrays = read_numbers(Tuple(items[3]), columns.numbers.at(total))
        total += words.n_arrays
        words.n_results = read_numbers(Tuple(items[4]), columns.numbers.at(total))
        total += words.n_results
    return Object(new_integer(total))


def mark_alive(self: Object, args: Array[Object], nargs: int) -> int:
    """Mark what marked values depend on: ``mark_alive(columns, values, entries)``; return how many of marked entries.

    Other entries are no longer marked. `mark_reached` is alike.
    """
    columns, alive, kept = ColumnsFields(NDArray(args[0]).data), NDArray(args[1]).data, NDArray(args[2]).data
    total = 0
    for back in range(columns.count):
        place = columns.count - 1 - back
        words = columns.entries[place]
        numbers, takes = columns.numbers.at(words.first), words.n_operands + words.n_arrays
        is_kept = 0
        for k in range(takes, takes + words.n_results):
            is_kept |= alive[numbers[k]]
        is_kept &= kept[place]
        kept[place] = is_kept
        total += is_kept
        if is_kept != 0:
            for k in range(takes):
                alive[numbers[k]] = 1
    return Object(new_integer(total))


def mark_reached(self: Object, args: Array[Object], nargs: int) -> int:
    """Mark what depends on marked values: ``mark_reached(columns, values, entries)``; return how many entries do."""
    columns, active, reached = ColumnsFields(NDArray(args[0]).data), NDArray(args[1]).data, NDArray(args[2]).data
    total = 0
    for place in range(columns.count):
        words = columns.entries[place]
        numbers, takes = columns.numbers.at(words.first), words.n_operands + words.n_arrays
        is_reached = 0
        for k in range(takes):
            is_reached |= active[numbers[k]]
        is_reached &= reached[place]
        reached[place] = is_reached
        total += is_reached
        if is_reached != 0:
            for k in range(takes, takes + words.n_results):
                active[numbers[k]] = 1
    return Object(new_integer(total))


def is_same(columns: ColumnsFields, layouts: Array[Object], one: EntryFields, two: EntryFields) -> int:
    """Return 1 if two entries have the same operation, attributes and layouts."""
    if (one.op ^ two.op) | (one.attrs ^ two.attrs) | (one.n_operands ^ two.n_operands) != 0:
        return 0
    if (one.n_arrays ^ two.n_arrays) | (one.n_results ^ two.n_results) != 0:
        return 0
    first, second = columns.numbers.at(one.first), columns.numbers.at(two.first)
    for k in range(one.n_operands + one.n_arrays + one.n_results):
        if layouts[first[k]] != layouts[second[k]]:
            return 0
    return 1


def find_kinds(self: Object, args: Array[Object], nargs: int) -> int:
    """Give each entry a kind: ``find_kinds(columns, layouts, table, codes, examples)``; return how many there are.

    Parameters
    ----------
    columns : numpy.ndarray
    layouts : list of Layout
        By number of a value.
    table : numpy.ndarray
        Zeros; a power of 2, and at least twice as many as there are entries.
    codes, examples : numpy.ndarray
        By entry, its kind; by kind, the first entry.
    """
    columns, layouts, table = ColumnsFields(NDArray(args[0]).data), List(args[1]).items, NDArray(args[2])
    codes, examples, known = NDArray(args[3]).data, NDArray(args[4]).data, 0
    mask, slots = table.shape[0] - 1, table.data
    for place in range(columns.count):
        words = columns.entries[place]
        numbers = columns.numbers.at(words.first)
        hashed = (words.op >> 4) ^ (words.attrs << 3)
        for k in range(words.n_operands + words.n_arrays + words.n_results):
            hashed = ((hashed & _MASK) * 1000003) ^ (layouts[numbers[k]] >> 4)
        slot = (hashed ^ (hashed >> 19)) & mask
        while slots[slot] != 0 and is_same(columns, layouts, words, columns.entries[examples[slots[slot] - 1]]) == 0:
            slot = (slot + 1) & mask
        if slots[slot] == 0:
            examples[known] = place
            known += 1
            slots[slot] = known
        codes[place] = slots[slot] - 1
    return Object(new_integer(known))


def sort_users(self: Object, args: Array[Object], nargs: int) -> int:
    """Write the entries that take each value: ``sort_users(columns, ends, places)``; return how many in all.

    Parameters
    ----------
    columns : numpy.ndarray
    ends : numpy.ndarray
        By number of a value, zeros; becomes where its entries end in `places`, and those of the next value begin.
    places : numpy.ndarray
        Entries, one after the other.
    """
    columns, ends, places = ColumnsFields(NDArray(args[0]).data), NDArray(args[1]), NDArray(args[2]).data
    at, total = ends.data, 0
    for place in range(columns.count):
        words = columns.entries[place]
        for k in range(words.first, words.first + words.n_operands + words.n_arrays):
            at[columns.numbers[k]] += 1
    for number in range(ends.shape[0]):
        count = at[number]
        at[number] = total
        total += count
    for place in range(columns.count):
        words = columns.entries[place]
        for k in range(words.first, words.first + words.n_operands + words.n_arrays):
            number = columns.numbers[k]
            places[at[number]] = place
            at[number] += 1
    return Object(new_integer(total))


FUNCTIONS: Final = (measure_entries, read_entries, mark_alive, mark_reached, find_kinds, sort_users)
_lazy: Final = Lazy[int](**{own.__name__: functools.partial(load, own, None) for own in FUNCTIONS})


def load_all() -> None:
    """Load the compiled functions, or compile them."""
    for function in FUNCTIONS:
        load(function, None)


class Columns:
    """A list of entries as integers.

    Attributes
    ----------
    entries : list of Entry
    starts : array
        For each entry, where its numbers begin.
    counts : array
        For each entry, how many operands, arrays of indices and results it has.
    numbers : array
        Of all entries, one after the other.
    ops : array
        For each entry, the identity of its operation.
    """

    def __init__(self, entries: list[Any]) -> None:
        numbers = _words((_lazy.measure_entries(entries),))
        self._set(entries, _words((len(entries), sizeof(EntryFields) // 8)), numbers)
        _lazy.read_entries(self._fields, entries)

    def _set(self, entries: list[Any], words: np.ndarray, numbers: np.ndarray) -> None:
        self.entries, self._entries, self.numbers = entries, words, numbers
        fields = [len(entries), words.ctypes.data, numbers.ctypes.data]
        self._fields = watch(np.array(fields, np.int64), "a list")
        first = EntryFields.word("n_operands")
        self.counts = self._entries[:, first : first + 3]
        self.starts, self.ops = self._entries[:, EntryFields.word("first")], self._entries[:, EntryFields.word("op")]

    def alive(
        self, count: int, wanted: Iterable[int], among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of `count` values some wanted ones depend on, and which entries, among some, compute those."""
        return self._marked(_lazy.mark_alive, count, wanted, among)

    def reached(
        self, count: int, given: Iterable[int], among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return which of `count` values depend on some given ones, and which entries, among some, do."""
        return self._marked(_lazy.mark_reached, count, given, among)

    def _marked(
        self, mark: Any, count: int, first: Iterable[int], among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        values, entries = _words((count,)), _words((len(self.entries),))
        values[list(first)] = 1
        entries[:] = 1 if among is None else among
        mark(self._fields, values, entries)
        return values != 0, entries != 0

    def kinds(self, layouts: list[Any]) -> tuple[np.ndarray, list[int]]:
        """Return for each entry its kind, an integer, and for each kind an entry.

        Entries of one kind share operation, attributes and layouts.
        """
        count = len(self.entries)
        codes, examples = _words((count,)), _words((count,))
        table = _words((1 << max(4, (2 * count).bit_length()),))
        known = _lazy.find_kinds(self._fields, layouts, table, codes, examples)
        return codes, examples[:known].tolist()

    def users(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the entries that take each of `count` values, one after the other, and where those of a value end."""
        ends, places = _words((count,)), _words(self.numbers.shape)
        total = _lazy.sort_users(self._fields, ends, places)
        return places[:total], ends

    def results(self, places: np.ndarray) -> np.ndarray:
        """Return the first result of the entries at some places."""
        found: np.ndarray = self.numbers[self.starts[places] + self.counts[places, 0] + self.counts[places, 1]]
        return found

    def chosen(self, which: np.ndarray) -> Columns:
        """Return the columns of some of the entries."""
        found = object.__new__(Columns)
        entries = list(itertools.compress(self.entries, which.tolist()))
        counts = self.counts[:, 0] + self.counts[:, 1] + self.counts[:, 2]
        numbers, words = self.numbers[np.repeat(which, counts)], self._entries.take(np.flatnonzero(which), 0)
        found._set(entries, watch(words, _WATCHED), watch(numbers, _WATCHED))
        counts = counts[which]
        found.starts[:] = np.cumsum(counts) - counts
        return found


def _words(shape: tuple[int, ...]) -> np.ndarray:
    return watch(np.zeros(shape, np.int64), _WATCHED)
