"""Programs that keep less in memory: what they compute before their peak is computed once more behind it.

A program with a gradient keeps what the sweep takes of the forward part. Here the part before the peak is cut into
segments. Each becomes an operation, a loop of one turn, that returns only what later segments take. What takes the
other values becomes such an operation too, which computes the segment again. With k segments of equal size, the program
keeps about 1 / k of these values, and what stands between the segments: Chen, Xu, Zhang, Guestrin, Training deep nets
with sublinear memory cost, arXiv:1604.06174 (2016).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import tapegrad.program.scan_ways  # noqa: F401  # it installs what machine code of loops needs
from tapegrad.ops.table.op import op_table
from tapegrad.program.program import Entry, Program
from tapegrad.program.scan import Scan
from tapegrad.tape.layout import contiguous_layout

__all__ = ["keeping_less"]

_SEGMENTS: Final = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_SMALL: Final = 64  # bytes of a constant that stands in the code
_TRIALS: Final = 3  # programs of which machine code is made
#: What looks at its operand in another way, mostly without a copy: it is done again where it is used.
_VIEWS: Final = frozenset(
    ("reshape", "flatten", "expand", "squeeze", "unsqueeze", "getitem", "permute", "unfold", "detach")
)


def keeping_less(program: Program, share: float) -> Iterator[Program]:
    """Yield programs that compute the same and keep less, first the one with the fewest segments.

    Parameters
    ----------
    program : Program
    share : float
        Which part of what the program keeps between its operations they should keep at most, if that is possible.
    """
    cutter = _Cutter(program)
    tried, peaks = list[Program](), list[int]()
    for count in _SEGMENTS:
        if count > cutter.middle // 2 or (peaks and peaks[-1] > 2 * min(peaks)):
            break
        tried.append(cutter.in_segments(count))
        peaks.append(_Memory(tried[-1]).peak)
    if peaks:
        # Machine code keeps more than is counted here: of loops, whole rows.
        fit = [place for place, peak in enumerate(peaks) if peak <= share * cutter.peak]
        first = fit[0] if fit else peaks.index(min(peaks))
        yield from tried[first : first + _TRIALS]


def _is_view(entry: Entry) -> bool:
    return entry.op.name in _VIEWS and not entry.index_arrays


def _taken(entry: Entry) -> tuple[int, ...]:
    return (*entry.operands, *entry.index_arrays)


class _Memory:
    """How many bytes of values stand in memory where operations are called one after the other.

    Attributes
    ----------
    after : list of int
        For each operation, the bytes that are used behind it, besides inputs, constants and results.
    peak : int
        The most of it, with what the operation needs itself.
    """

    def __init__(self, program: Program) -> None:
        base: dict[int, int] = {}  # of views
        last: dict[int, int] = {}
        for place, entry in enumerate(program.entries):
            for number in _taken(entry):
                last[base.get(number, number)] = place
            if _is_view(entry):
                number = entry.operands[0]
                base[entry.results[0]] = base.get(number, number)
        results = {*program.outputs, *[guard.value for guard in program.guards]}
        ends: dict[int, int] = {}
        self.after, self.peak, now = list[int](), 0, 0
        for place, entry in enumerate(program.entries):
            if not _is_view(entry):
                for number in entry.results:
                    if number in results:
                        continue
                    nbytes = program.layouts[number].nbytes
                    now += nbytes
                    end = last.get(number, place)
                    ends[end] = ends.get(end, 0) + nbytes
            scan = entry.attrs.get("scan")
            own = _Memory(scan.body).peak if scan is not None and scan.length == 1 else 0
            self.peak = max(self.peak, now + own)
            now -= ends.pop(place, 0)
            self.after.append(now)


class _Cutter:
    """Cuts what a program does before its peak into segments.

    Attributes
    ----------
    peak : int
        The bytes that it keeps there.
    middle : int
        The first operation behind it.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        memory = _Memory(program)
        self.peak = memory.peak
        self.middle = memory.after.index(max(memory.after)) + 1 if memory.after else 0
        made = {number: place for place, entry in enumerate(program.entries) for number in entry.results}
        after = {number for entry in program.entries[self.middle :] for number in _taken(entry)}
        #: What is taken behind the middle, and between operations before it, in bytes.
        self._sizes, self._between = [0] * self.middle, [0] * (self.middle + 1)
        last: dict[int, int] = {}
        for place, entry in enumerate(program.entries[: self.middle]):
            last.update((number, place) for number in _taken(entry) if number in made)
            if not _is_view(entry):
                self._sizes[place] = sum(program.layouts[own].nbytes for own in entry.results if own in after)
        for number, place in last.items():
            nbytes = program.layouts[number].nbytes
            self._between[made[number] + 1] += nbytes
            self._between[place + 1] -= nbytes
        for place in range(self.middle):
            self._between[place + 1] += self._between[place]

    def _cuts(self, count: int) -> list[int]:
        """Return where segments begin: of about the same size each, where few bytes stand between the operations."""
        total, sizes, places = sum(self._sizes), 0, [0]
        targets = iter([total * k // count for k in range(1, count)])
        target = next(targets, None)
        for place, nbytes in enumerate(self._sizes):
            sizes += nbytes
            while target is not None and sizes >= target:
                places.append(place + 1)
                target = next(targets, None)
        cuts = [0]
        for before, place, after in zip(places, places[1:], [*places[2:], self.middle], strict=False):
            low, high = place - (place - before) // 3, place + (after - place) // 3
            best = min(range(low, high + 1), key=lambda own: (self._between[own], abs(own - place)))
            if best > cuts[-1]:
                cuts.append(best)
        return cuts

    def in_segments(self, count: int) -> Program:
        """Return the program with so many segments at most, of which the last is as it was."""
        return _Writer(self.program, [*self._cuts(count), self.middle]).program()


class _Writer:
    """Writes the program anew.

    Views are done in each part that uses them: what stands between the parts is what they look at.
    """

    def __init__(self, program: Program, cuts: Sequence[int]) -> None:
        self._program, self._layouts = program, list(program.layouts)
        self._entries: list[Entry] = []
        self._views = {entry.results[0]: entry for entry in program.entries if _is_view(entry)}
        self._small = {number for number in program.constants if program.layouts[number].nbytes <= _SMALL}
        self._results = {*program.outputs, *[guard.value for guard in program.guards]}
        self._forward = [self._part(program.entries[start:stop]) for start, stop in itertools.pairwise(cuts)]
        self._made = [{number for entry in part for number in entry.results} for part in self._forward]
        self._rest = program.entries[cuts[-1] :]
        self._scans: dict[Hashable, Entry] = {}  # equal parts have the same operation

    def program(self) -> Program:
        """Return the program."""
        segments, last = self._forward[:-1], self._forward[-1]
        kept = self._kept()
        for part, made in zip(segments, self._made, strict=False):
            self._add(part, sorted(made & kept))
        self._entries += last
        chunks = self._chunks(kept)
        parts = [self._part(entries) for _, entries in chunks]
        later = set(self._results)
        outputs = []
        for part in reversed(parts):
            outputs.append(set(later))
            later.update(number for entry in part for number in _taken(entry))
        for (again, _), part, wanted in zip(chunks, parts, reversed(outputs), strict=True):
            if not again:
                self._entries += part
                continue
            own = [entry for place in again for entry in segments[place] if not kept.issuperset(entry.results)]
            made = {number for entry in (*own, *part) for number in entry.results}
            self._add([*own, *part], sorted((made & wanted) - kept))
        whole = self._program
        written = Program(
            self._layouts, whole.inputs, whole.constants, self._entries, whole.outputs, whole.guards
        )  # fmt: skip
        return written.cleaned()

    def _part(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return operations that take no views from outside, but what these look at."""
        own: list[Entry] = []
        known = {number: number for entry in entries for number in entry.results}

        def here(number: int) -> int:
            if number in known or number not in self._views:
                return known.get(number, number)
            view = self._views[number]
            operand = here(view.operands[0])
            self._layouts.append(self._layouts[number])
            known[number] = made = len(self._layouts) - 1
            own.append(view._replace(operands=(operand,), results=(made,)))
            return made

        for entry in entries:
            operands, arrays = tuple(map(here, entry.operands)), tuple(map(here, entry.index_arrays))
            own.append(entry._replace(operands=operands, index_arrays=arrays))
        return own

    def _kept(self) -> set[int]:
        """Return the values of segments that later ones take, or that are results."""
        later, kept = set(self._results), set[int]()
        for part, made in zip(reversed(self._forward), reversed(self._made), strict=True):
            kept |= made & later
            later.update(number for entry in part for number in _taken(entry))
        return kept

    def _chunks(self, kept: set[int]) -> list[tuple[list[int], list[Entry]]]:
        """Return the operations behind the middle, cut where a segment is first needed; and which ones that are.

        What stands behind the last operation that takes values of a segment needs none.
        """
        segment = {number: place for place, made in enumerate(self._made[:-1]) for number in made - kept}
        made = {number for entry in self._rest for number in entry.results}
        chunks: list[tuple[list[int], list[Entry]]] = [([], [])]
        waiting: list[Entry] = []
        done = set[int]()
        for entry in self._rest:
            needed = set[int]()
            for number in _taken(entry):
                while number in self._views and number not in made:
                    number = self._views[number].operands[0]
                if number in segment:
                    needed.add(segment[number])
            waiting.append(entry)
            if needed:
                if not needed <= done:
                    chunks[-1][1].extend(waiting[:-1])
                    chunks.append((sorted(needed - done), []))
                    waiting = [entry]
                    done |= needed
                chunks[-1][1].extend(waiting)
                waiting = []
        return [*chunks, ([], waiting)]

    def _add(self, part: Sequence[Entry], outputs: Sequence[int]) -> None:
        """Add an operation that computes some values of a part."""
        if not outputs:
            return
        made = {number for entry in part for number in entry.results}
        constants = {number: value for number, value in self._program.constants.items() if number in self._small}
        body = Program(self._layouts, (), constants, part, outputs).cleaned()
        used = {number for entry in body.entries for number in _taken(entry)}
        inputs = sorted(used - made - constants.keys())
        body = Program(body.layouts, inputs, body.constants, body.entries, outputs).compact()
        key = body.key()
        entry = self._scans.get(key)
        if entry is None:
            scan = Scan(body, (len(inputs), 0, 0), 1, ())
            entry = self._scans[key] = Entry(scan.op, (), {"scan": scan}, (), ())
        rows = range(len(self._layouts), len(self._layouts) + len(outputs))
        layouts = [self._layouts[number] for number in outputs]
        self._layouts += [contiguous_layout((1, *layout.shape), layout.dtype) for layout in layouts]
        self._entries.append(entry._replace(operands=tuple(inputs), results=tuple(rows)))
        self._entries += [
            Entry(op_table["reshape"], (row,), {"shape": tuple(layout.shape)}, (), (number,))
            for number, row, layout in zip(outputs, rows, layouts, strict=True)
        ]
