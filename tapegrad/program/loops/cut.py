"""Where a program is cut that cannot be fused as one: stretches of operations that can, and stops between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapegrad.program.fuse import Fused, Refused, fuse
from tapegrad.program.loops.listing import kind_of
from tapegrad.program.loops.stops import Stop
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple


class Part(NamedTuple):
    """Some operations of a program.

    Attributes
    ----------
    inputs, outputs : tuple of int
        The program's values that they take, and that they compute for others.
    body : Program
        Has these, in their order, by numbers of its own.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    body: Program


class Cutter:
    """Takes parts out of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._users: dict[int, set[int]] = {}
        for place, entry in enumerate(program.entries):
            for number in (*entry.operands, *entry.index_arrays):
                self._users.setdefault(number, set()).add(place)
        self._results = {*program.outputs, *(guard.value for guard in program.guards)}

    def users(self, number: int) -> set[int]:
        """Return the entries that take a value; -1 stands for the program's own results."""
        return self._users.get(number, set()) | ({-1} if number in self._results else set())

    def part(self, places: Sequence[int]) -> Part:
        """Return the entries at these places."""
        program, inside = self.program, set(places)
        entries = [program.entries[place] for place in places]
        results = [number for entry in entries for number in entry.results]
        own = {*results, *program.constants}
        asked = dict.fromkeys(
            number for entry in entries for number in (*entry.operands, *entry.index_arrays) if number not in own
        )
        wanted = tuple([number for number in results if not self.users(number) <= inside])
        body = Program(program.layouts, tuple(asked), program.constants, entries, wanted)
        return Part(tuple(asked), wanted, body.cleaned().compact())


def cut(program: Program) -> list[tuple[Part, Fused | Stop]]:
    """Return the parts of a program in the order in which they run, with the code of each."""
    cutter = Cutter(program)
    alone = _Alone(cutter)
    reasons = [alone.reason(place) for place in range(len(program.entries))]
    levels = _levels(cutter, [bool(reason) for reason in reasons])
    stretches: dict[int, list[int]] = {}
    for place, level in enumerate(levels):
        stretches.setdefault(level, []).append(place)
    found: list[tuple[Part, Fused | Stop]] = []
    for level in sorted(stretches):
        if level % 2:
            for place in stretches[level]:
                part = cutter.part([place])
                found.append((part, Stop(part.body, reasons[place])))
        else:
            found += _fused(cutter, stretches[level])
    return found


class _Alone:
    """Finds the operations that cannot be fused even alone."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._known: dict[Any, str] = {}

    def reason(self, place: int) -> str:
        """Return why an operation is refused; nothing if it is not."""
        program = self._cutter.program
        entry = program.entries[place]
        key = kind_of(program, entry), tuple(entry.attrs.values()), _constants(program, entry)
        if key not in self._known:
            try:
                fuse(self._cutter.part([place]).body, in_brief=True)
                self._known[key] = ""
            except Refused as error:
                self._known[key] = str(error)
        return self._known[key]


def _constants(program: Program, entry: Entry) -> tuple[Any, ...]:
    numbers = (*entry.operands, *entry.index_arrays)
    return tuple(
        [number if number in program.constants else numbers.index(number) - len(numbers) for number in numbers]
    )


def _levels(cutter: Cutter, are_stops: Sequence[bool]) -> list[int]:
    """Return when each entry runs, as early as can be: stretches have even numbers, and stops odd ones."""
    levels: list[int] = []
    made: dict[int, int] = {}
    for entry, is_stop in zip(cutter.program.entries, are_stops, strict=True):
        level = max([made.get(number, -1) for number in (*entry.operands, *entry.index_arrays)], default=-1)
        level += (level % 2 == 0) == is_stop
        levels.append(level)
        made.update(dict.fromkeys(entry.results, level))
    return levels


def _fused(cutter: Cutter, places: Sequence[int]) -> list[tuple[Part, Fused | Stop]]:
    """Return entries as one part, or as several if they cannot be fused as one."""
    part = cutter.part(places)
    try:
        return [(part, fuse(part.body))]
    except Refused as error:
        if len(places) == 1:
            return [(part, Stop(part.body, str(error)))]
    half = len(places) // 2
    return [*_fused(cutter, places[:half]), *_fused(cutter, places[half:])]
