"""Rows of arrays that are stacked, or taken apart row by row, stand in the memory of the whole: no code moves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.program.loops.find import Run
from tapegrad.program.loops.listing import Listing
from tapegrad.program.loops.places import Place, Places, nbytes_of, offset_of_row

_FEWEST: Final = 8  # rows of an array that is not moved

Copy = tuple[Place, Place, int]  # from a place, to a place, how many bytes


class Buffers:
    """Operations outside of loops that need no code.

    Attributes
    ----------
    stacks : set of int
        Entries that stack values, each of which is written where it stands in the stack.
    rows : set of int
        Entries that take a row of an array; they need no code where the row is used in other stages.
    copies : list of (Place, Place, int)
        Rows that no entry computes.
    """

    def __init__(self, listing: Listing, runs: Sequence[Run], places: Places) -> None:
        """Reserve the places of rows that are stacked."""
        self.listing, self.stacks, self.copies = listing, set[int](), list[Copy]()
        entries = listing.program.entries
        in_run = np.zeros(len(entries) + 1, np.bool_)  # the last one is for -1
        for run in runs:
            in_run[run.start : run.stop] = True
        straight = np.flatnonzero(~in_run[:-1]).tolist()
        found = set[int]()
        for place in straight:
            entry = entries[place]
            is_stack = entry.op.name == "stack" and entry.attrs["dim"] == 0 and len(entry.operands) >= _FEWEST
            makers = listing.made_at[list(entry.operands)] if is_stack else np.zeros(0, np.int64)
            if in_run[makers].any() or not found.isdisjoint(makers.tolist()):
                found.add(place)
        for place in sorted(found, reverse=True):  # rows may be stacks themselves, and stand in the whole
            self._reserve(place, places)
        rows = [place for place in straight if offset_of_row(listing.program, entries[place]) is not None]
        counts = Counter([entries[place].operands[0] for place in rows])
        self.rows = {
            place
            for place in rows
            if counts[entries[place].operands[0]] >= _FEWEST and entries[place].results[0] not in places.reserved
        }

    def _reserve(self, place: int, places: Places) -> None:
        program, made_at = self.listing.program, self.listing.made_at
        entry = program.entries[place]
        computed = [number for number in entry.operands if made_at[number] >= 0]
        if len({*computed}) < len(computed) or not places.reserved.keys().isdisjoint(computed):
            return  # a value stands in one place only
        self.stacks.add(place)
        nbytes = nbytes_of(program, entry.operands[0])
        whole = places.place(entry.results[0])
        for row, number in enumerate(entry.operands):
            target = Place(whole.base, whole.offset + row * nbytes)
            if made_at[number] >= 0:
                places.reserved[number] = target
            else:
                self.copies.append((places.of(number)[0], target, nbytes))

    def are_written(self, places: Places, copied: int) -> bool:
        """Whether all rows stand where they were reserved; `copied` is the entry before which copies are made."""
        entries = self.listing.program.entries
        numbers = [number for place in self.stacks for number in entries[place].operands]
        done = all(places.reserved[number] in places.of(number) for number in numbers if number in places.reserved)
        return done and (not self.copies or all(place > copied for place in self.stacks))

    def rows_without_code(self, start: int, stop: int) -> list[int]:
        """Return the entries of a stretch that take rows which are used in other stages only."""
        rows = [place for place in range(start, stop) if place in self.rows]
        used = self.listing.used([place for place in range(start, stop) if place not in self.stacks] if rows else [])
        return [place for place in rows if not used[self.listing.results[place, 0]]]
