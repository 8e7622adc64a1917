"""Where a program is cut that cannot be fused as one: stretches of operations that can, and stops between them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

from tapegrad.program.apart import begun
from tapegrad.program.fuse import Fused, fuse
from tapegrad.program.loops.find import kind_of
from tapegrad.program.loops.places import nbytes_of
from tapegrad.program.machine_code import Refused
from tapegrad.program.native import native
from tapegrad.program.native.groups import Group, groups
from tapegrad.program.native.views import offset_of
from tapegrad.program.program import Entry, Program
from tapegrad.program.stops import Stop
from tapegrad.runtime.named_tuples import NamedTuple

SCALARS: Final = 3000  # of straight code, from which on it is cut
_ALONE: Final = 1500  # of straight code for one operation: LLVM takes time by the square of what is more
_STOPS: Final = 500  # one after the other: code that calls more takes LLVM seconds

_LARGE: Final = 512  # elements of an array


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


class Alias(NamedTuple):
    """A movement that computes nothing: its result stands in its operand, from a byte on."""

    result: int
    operand: int
    offset: int


#: What runs one part.
Code = Fused | Stop


class Cutter:
    """Takes parts out of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._places, self._ends = program.columns.users(len(program.layouts))
        self._known: dict[int, set[int]] = {}  # the users of values that somebody asked for
        self._results = {*program.outputs, *(guard.value for guard in program.guards)}

    def absorb(self, found: Mapping[int, Group]) -> set[int]:
        """Let groups take the values that they look at; return the entries that are left to others."""
        entries, left = self.program.entries, set(range(len(self.program.entries)))
        for last, group in found.items():
            for place in group.places:
                self._drop(place, left)
            for number in group.inputs:
                self._users(number).add(last)
        for place in range(len(entries) - 1, -1, -1):
            if place in left and not any(self.users(number) for number in entries[place].results):
                self._drop(place, left)
        return left

    def _drop(self, place: int, left: set[int]) -> None:
        left.discard(place)
        entry = self.program.entries[place]
        for number in (*entry.operands, *entry.index_arrays):
            self._users(number).discard(place)

    def _users(self, number: int) -> set[int]:
        if number not in self._known:
            start = int(self._ends[number - 1]) if number else 0
            self._known[number] = set(self._places[start : int(self._ends[number])].tolist())
        return self._known[number]

    def users(self, number: int) -> set[int]:
        """Return the entries that take a value; -1 stands for the program's own results."""
        return self._users(number) | ({-1} if number in self._results else set())

    def components(self, places: Sequence[int]) -> list[list[int]]:
        """Return entries in parts, of which none takes what another one computes."""
        made = {number: place for place in places for number in self.program.entries[place].results}
        first = {place: place for place in places}

        def root(place: int) -> int:
            while first[place] != place:
                first[place] = place = first[first[place]]
            return place

        for place in places:
            entry = self.program.entries[place]
            for number in (*entry.operands, *entry.index_arrays):
                if number in made:
                    one, two = sorted((root(made[number]), root(place)))
                    first[two] = one
        found: dict[int, list[int]] = {}
        for place in places:
            found.setdefault(root(place), []).append(place)
        return list(found.values())

    def large_components(self, places: Sequence[int]) -> list[list[int]]:
        """Return the same, but all parts of few elements as one: axes of large ones do not suit to each other."""
        large, small = [], []
        for own in self.components(places):
            numbers = [number for place in own for number in self.program.entries[place].results]
            if max(math.prod(self.program.layouts[number].shape) for number in numbers) >= _LARGE:
                large.append(own)
            else:
                small += own
        return [*large, *([sorted(small)] if small else [])]

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


def cut(program: Program) -> list[Alias | tuple[Part, Code]]:
    """Return the parts of a program in the order in which they run, with the code of each."""
    cutter, found = Cutter(program), groups(program)
    left = cutter.absorb(found)
    try:
        return _parts(cutter, found, left, {})
    except Refused:
        alone = _Alone(cutter)
        stops = {place: reason for place in left if (reason := alone.reason(place))}
        called = [program.entries[place] for place in stops]
        called = [entry for entry in called if offset_of(program, entry) is None] if len(stops) > _STOPS else []
        if len(called) > _STOPS:
            names = ", ".join(sorted({entry.op.name for entry in called}))
            raise Refused(f"{len(called)} operations would be called: {names}") from None
        return _parts(cutter, found, left, stops)


def cut_at(program: Program, only: Container[int], fused: Callable[[Program], Code]) -> list[Alias | tuple[Part, Code]]:
    """Return the same, cut at some operations and nowhere else, with what makes the code of all others."""
    cutter, found = Cutter(program), groups(program, only)

    def whole(places: Sequence[int]) -> list[tuple[Part, Code]]:
        part = cutter.part(places)
        return [(part, begun(fused(part.body)))]

    return _parts(cutter, found, cutter.absorb(found), {}, whole)


def _parts(
    cutter: Cutter, found: Mapping[int, Group], left: set[int], stops: Mapping[int, str],
    fused: Callable[[Sequence[int]], Sequence[tuple[Part, Code]]] | None = None,
) -> list[Alias | tuple[Part, Code]]:  # fmt: skip
    """Return the parts: groups have code of their own, some are stops for a reason, and the rest is fused."""
    fused = fused or functools.partial(_fused, cutter, is_last=bool(stops))
    stretches: dict[int, list[int]] = {}
    levels = _levels(cutter, found, left, stops)
    _delay(cutter, levels)
    for place, level in levels.items():
        stretches.setdefault(level, []).append(place)
    parts: list[Alias | tuple[Part, Code]] = []
    for level in sorted(stretches):
        if not level % 2:
            for places in cutter.large_components(stretches[level]):
                parts += fused(places)
            continue
        for place in stretches[level]:
            if place in found:
                group = found[place]
                parts.append((Part(group.inputs, group.outputs, group.body), begun(group.code)))
            else:
                parts.append(_stop(cutter, place, stops[place]))
    return parts


def _stop(cutter: Cutter, place: int, reason: str) -> Alias | tuple[Part, Code]:
    """Return an operation as a part of its own."""
    entry = cutter.program.entries[place]
    offset = offset_of(cutter.program, entry)
    if offset is not None:
        return Alias(entry.results[0], entry.operands[0], offset)
    part = cutter.part([place])
    return part, native(part.body) or Stop(part.body, reason)


class _Alone:
    """Finds the operations that cannot be fused even alone."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter
        self._known: dict[Any, str] = {}

    def reason(self, place: int) -> str:
        """Return why an operation is refused; nothing if it is not."""
        program = self._cutter.program
        entry = program.entries[place]
        key = kind_of(program, entry), _constants(program, entry)
        if key not in self._known:
            try:
                fuse(self._cutter.part([place]).body, in_brief=True, scalars=_ALONE)
                self._known[key] = ""
            except Refused as error:
                self._known[key] = str(error)
        return self._known[key]


def _constants(program: Program, entry: Entry) -> tuple[Any, ...]:
    """Return which operands are constants, or the same, and which indices."""
    operands, known = entry.operands, program.constants
    same = [-1 if number in known else operands.index(number) for number in operands]
    return (*same, *[number if number in known else None for number in entry.index_arrays])


def _levels(cutter: Cutter, found: Mapping[int, Group], left: set[int], stops: Mapping[int, str]) -> dict[int, int]:
    """Return when each entry runs, as early as can be: stretches have even numbers, and stops odd ones."""
    levels: dict[int, int] = {}
    made: dict[int, int] = {}
    for place, entry in enumerate(cutter.program.entries):
        if place not in left and place not in found:
            continue
        group = found.get(place)
        takes = group.inputs if group is not None else (*entry.operands, *entry.index_arrays)
        level = max([made.get(number, -1) for number in takes], default=-1)
        level += (level % 2 == 0) == (place in found or place in stops)
        levels[place] = level
        made.update(dict.fromkeys(group.outputs if group is not None else entry.results, level))
    return levels


def _delay(cutter: Cutter, levels: dict[int, int]) -> None:
    """Let operations of stretches wait until they are used, if less stands in memory between stretches then."""
    program, known = cutter.program, set(levels.values())
    made = {number: place for place in levels for number in program.entries[place].results}
    prices: dict[int, int] = {}  # the fewest bytes that have to be kept so that an operation can wait
    for place in sorted(levels):
        entry, prices[place] = program.entries[place], 0
        for number in {*entry.operands, *entry.index_arrays}:
            maker, users = made.get(number, -1), cutter.users(number)
            level = levels.get(maker, -1)
            if level % 2 == 0 and all(levels.get(user, -1) <= level for user in users):
                nbytes = nbytes_of(program, number)
                prices[place] += min(prices[maker], nbytes) if users == {place} else nbytes
    for place in sorted(levels, reverse=True):
        results = program.entries[place].results
        later = min([levels.get(user, -1) for number in results for user in cutter.users(number)], default=-1) // 2 * 2
        pays = prices[place] <= sum(nbytes_of(program, number) for number in results)
        if levels[place] % 2 == 0 and later > levels[place] and later in known and pays:
            levels[place] = later


def _fused(cutter: Cutter, places: Sequence[int], is_last: bool) -> list[tuple[Part, Code]]:
    """Return entries as one part, or as several if they cannot be fused as one."""
    part = cutter.part(places)
    try:
        return [(part, begun(fuse(part.body, in_brief=True, scalars=SCALARS)))]
    except Refused:
        pass
    parts = cutter.components(places)
    if len(parts) == 1 and len(places) > 1:
        half = len(places) // 2
        parts = [list(places[:half]), list(places[half:])]
    if len(parts) > 1:
        return [own for each in parts for own in _fused(cutter, each, is_last)]
    try:
        return [(part, begun(fuse(part.body, scalars=_ALONE)))]
    except Refused as error:
        if not is_last:
            raise
        return [(part, Stop(part.body, str(error)))]
