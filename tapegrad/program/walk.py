"""The memory of a walk back that compiled code makes: see `tapegrad.program.walking`."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.program.program import Entry
from tapegrad.program.walk_tables import MOST_NUMBERS, MOST_RESIDUALS, KeyFields, ResidualFields, WalkFields
from tapegrad.program.walking import MOST_OPERANDS, NONE, OF_PLAN, OF_SUM, OTHER, lazy
from tapegrad.recording.objects import runtime
from tapegrad.recording.plan import Plan
from tapegrad.runtime.memory import watch
from tapegrad.runtime.structs import WORD, sizeof
from tapegrad.sweep import workspace as ws
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.layout import Layout

_FIRST: Final = 1 << 10
# Arrays of what is written: how long they are, and may be.
_WRITTEN: Final = (
    ("n_entries", "capacity", ("plans", "results", "starts")),
    ("n_taken", "taken_capacity", ("taken",)),
)
_LONGEST: Final = 1 << 12  # words of a script
_MASKS: Final = {"slots": "slots_mask", "entry_slots": "entry_mask", "table": "table_mask"}  # hash tables
_KEY: Final = sizeof(KeyFields) // WORD
_bits_of: Final = struct.Struct("d").pack, struct.Struct("q").unpack

#: Where a field stands: it is asked for some times for each entry that compiled code does not serve.
_word: Final = functools.cache(WalkFields.word)


class Walk:
    """What compiled code knows of plans and rules, the cotangents at hand, and the operations that it has written."""

    def __init__(self) -> None:
        self._words = watch(np.zeros(sizeof(WalkFields) // WORD, np.int64), "a walk")
        self._arrays: dict[str, np.ndarray] = {}
        self._operations: list[tuple[Any, Any]] = []
        self._held: list[Any] = []  # what identities stand for
        self._layouts: dict[int, Layout] = {}
        self._used = {"residuals": 0, "scripts": 0, "keys": 0}  # words
        self._sweep: Sweep | None = None
        self._written = self._inserted = self._longest = self._longest_sum = 0
        self._put("runtime", runtime())
        self._set("get_item", ctypes.cast(ctypes.pythonapi.PyDict_GetItemWithError, ctypes.c_void_p).value or 0)
        self._new("slots", 1 << 8)
        self._make_room()

    def _get(self, name: str) -> int:
        return int(self._words[_word(name)])

    def _set(self, name: str, value: int) -> None:
        self._words[_word(name)] = value

    def _put(self, name: str, array: np.ndarray) -> np.ndarray:
        self._arrays[name] = array
        self._set(name, array.ctypes.data)
        if name in _MASKS:
            self._set(_MASKS[name], len(array) - 1)
        return array

    def _new(self, name: str, length: int, value: int = 0) -> np.ndarray:
        array = np.full(length, value, np.int64) if value else np.zeros(length, np.int64)  # touched when it is used
        return self._put(name, watch(array, f"{name} of a walk"))

    def _grown(self, name: str, length: int) -> None:
        """Let an array have at least this length."""
        before = self._arrays.get(name)
        if before is None or len(before) < length:
            array = self._new(name, 2 * length)
            if before is not None:
                array[: len(before)] = before

    # ---- what is known

    def _append(self, name: str, words: Sequence[int]) -> int:
        """Append words to an array, and return where they begin."""
        start = self._used[name]
        self._used[name] += len(words)
        self._grown(name, self._used[name])
        self._arrays[name][start : self._used[name]] = words
        return start

    def _know(self, kind: object, wanted: int, layout: object, numbers: Sequence[float], value: int) -> None:
        """Let a value be found."""
        self._held += kind, layout
        pack, unpack = _bits_of
        bits = [*[unpack(pack(number))[0] for number in numbers], 0, 0][:MOST_NUMBERS]
        of_layout = 0 if layout is None else id(layout)
        self._append("keys", [id(kind), wanted, of_layout, *bits, value])
        count = self._used["keys"] // _KEY
        self._set("n_keys", count)
        if count * 2 > len(self._arrays["slots"]):
            self._new("slots", 4 << count.bit_length())
            self._inserted = 0
        lazy.insert_keys(self._words, self._inserted)
        self._inserted = count

    def know_plan(self, plan: Plan, places: tuple[Sequence[int], Sequence[int]] | None) -> None:
        """Note where the residuals of a plan stand: arrays, and Python numbers; None if its rules have no scripts."""
        at = NONE
        if places is not None and len(places[1]) <= MOST_NUMBERS and len(places[0]) + len(places[1]) <= MOST_RESIDUALS:
            size = sizeof(ResidualFields) // WORD
            words = [len(places[0]), len(places[1]), *places[0], *places[1]]
            at = self._append("residuals", [*words, *[0] * (size - len(words))]) // size
        self._know(plan, OF_PLAN, None, (), at)

    def know_operation(self, plan: Plan) -> int:
        """Return a number for a plan whose operation scripts write."""
        self._operations.append((plan.op, plan.attrs))
        return len(self._operations) - 1

    def know_rules(self, plan: Plan, wanted: Sequence[int], ct: Layout, numbers: Sequence[Any], script: Any) -> None:
        """Note the script of a plan's rules, for wanted operands, a layout of the cotangent, and residuals."""
        is_known = script is not None and max(wanted) < MOST_OPERANDS and len(numbers) <= MOST_NUMBERS
        if is_known and all(own.__class__ is float for own in numbers):
            self._longest = max(
                self._longest, self._know_script(plan, sum(1 << own for own in wanted), ct, numbers, script)
            )

    def know_sum(self, one: Layout, two: Layout, script: Any) -> None:
        """Note the script that adds cotangents of two layouts."""
        self._longest_sum = max(self._longest_sum, self._know_script(one, OF_SUM, two, (), script))

    def _know_script(self, kind: object, wanted: int, layout: Layout, numbers: Sequence[Any], script: Any) -> int:
        words = [len(script.constants), *script.constants, len(script.steps)]
        for plan, sources in script.steps:
            words += plan, len(sources), *sources
        words.append(len(script.results))
        for place, own in script.results:
            words += place, id(own)
            self._layouts[id(own)] = own
        if len(words) > _LONGEST:
            return 0
        self._grown("values", MOST_RESIDUALS + len(words))
        self._know(kind, wanted, layout, numbers, self._append("scripts", words))
        return len(words)

    # ---- one sweep

    @contextlib.contextmanager
    def of(self, sweep: Sweep) -> Generator[None, None, None]:
        """Walk over what a sweep has found. A rule may make a sweep of its own."""
        before, arrays = self._sweep, {name: self._arrays.get(name) for name in ("cts", "layouts", "same", "table")}
        state, self._sweep = sweep.workspace.state, sweep
        count = state[ws.N_IDS]
        self._new("cts", count, NONE)
        self._new("layouts", count)
        self._put("same", watch(np.arange(count), "same of a walk"))
        self._new("table", 2 << state[ws.N_ORDER].bit_length())
        self._make_room(state[ws.N_ORDER])  # most entries write about one
        try:
            yield
        finally:
            self._sweep = before
            for name, array in arrays.items():
                if array is not None:
                    self._put(name, array)

    def find_same(self, position: int, numbers: dict[int, int]) -> int:
        """Find entries that compute the same, up to a position whose plan is not known; return that, or -1."""
        assert self._sweep is not None
        return lazy.find_same(self._words, self._sweep.workspace.words, numbers, position)

    def same(self, entry_id: int) -> int:
        """Return the first entry that computes the same."""
        return int(self._arrays["same"][entry_id])

    def take(self, entry_id: int) -> tuple[int, Layout] | None:
        """Return the cotangent of an entry, which is Python's from now on; None if there is none here."""
        number = int(self._arrays["cts"][entry_id])
        if number < 0:
            return None
        self._arrays["cts"][entry_id] = NONE
        return number, self._layouts[int(self._arrays["layouts"][entry_id])]

    def give(self, entry_id: int, number: int, layout: Layout) -> None:
        """Note the cotangent of an entry."""
        self._layouts[id(layout)] = layout
        self._arrays["cts"][entry_id], self._arrays["layouts"][entry_id] = number, id(layout)

    def leave(self, entry_id: int, is_left: bool) -> None:
        """Note whether Python has the cotangent of an entry."""
        self._arrays["cts"][entry_id] = OTHER if is_left else NONE

    def ids(self) -> list[int]:
        """Return the entries with cotangents."""
        return np.flatnonzero(self._arrays["cts"] >= 0).tolist()

    def run(self, position: int, numbers: dict[int, int], next_number: int) -> int:
        """Visit entries from a position on, and return where Python has to go on.

        Parameters
        ----------
        position : int
        numbers : dict
            From identities of data to numbers of values.
        next_number : int
            The number of the next value.
        """
        assert self._sweep is not None
        self._set("next_number", next_number)
        while True:
            self._make_room()
            position = lazy.visit_all(self._words, self._sweep.workspace.words, numbers, position)
            if not self._get("is_full"):
                return position

    def _make_room(self, expected: int = 0) -> None:
        """Let there be room for as many entries as are expected, and for those of the longest scripts."""
        room = max(_FIRST, self._longest + MOST_OPERANDS * self._longest_sum)
        self._set("room", room)
        for count, capacity, names in _WRITTEN:
            if self._get(count) + max(room, expected) > self._get(capacity):
                for name in names:
                    self._grown(name, self._get(count) + max(room, expected))
                self._set(capacity, len(self._arrays[names[0]]))
        if 2 * self._get("capacity") > len(self._arrays.get("entry_slots", ())):
            self._new("entry_slots", 2 << self._get("capacity").bit_length())
            lazy.insert_entries(self._words)

    def find(self, plan: int, operands: tuple[int, ...]) -> int | None:
        """Return the result of an operation that stands in the list; None if there is none."""
        number = lazy.share_entry(self._words, plan, operands, NONE) if len(operands) <= _FIRST else NONE
        return None if number < 0 else number

    def note(self, plan: int, operands: tuple[int, ...], number: int) -> None:
        """Note an operation that stands in the list now, and its result."""
        if len(operands) <= _FIRST:
            self._make_room()
            lazy.share_entry(self._words, plan, operands, number)
            self._written = self._get("n_entries")

    def written(self) -> tuple[list[Entry], list[int]]:
        """Return the operations that were written since the last time, and the number of each one's plan."""
        first, self._written = self._written, self._get("n_entries")
        entries: list[Entry] = []
        lazy.make_entries(self._words, first, self._operations, entries, Entry)
        return entries, self._arrays["plans"][first : self._written].tolist()
