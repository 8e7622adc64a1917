"""The memory of a walk back over a few entries, which Python visits: see `tapegrad.program.walk` for many."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from tapegrad.program.program import Entry
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.layout import Layout


class ShortWalk:
    """The cotangents at hand; all entries that have one are left to Python. The methods are those of `Walk`.

    Parameters
    ----------
    order : list of int
        The ids of entries, latest first; negative if one does not run.
    """

    def __init__(self, order: Sequence[int] = ()) -> None:
        self._order = order
        self._cts: dict[int, tuple[int, Layout]] = {}
        self._left: set[int] = set()  # whose cotangents Python has

    def of(self, sweep: Sweep) -> contextlib.AbstractContextManager[None]:
        """Walk over what a sweep has found."""
        return contextlib.nullcontext()

    def find_same(self, position: int, numbers: dict[int, int]) -> int:
        """Find no entries that compute the same."""
        return -1

    def same(self, entry_id: int) -> int:
        """Return the entry."""
        return entry_id

    def take(self, entry_id: int) -> tuple[int, Layout] | None:
        """Return the cotangent of an entry, which is Python's from now on; None if there is none here."""
        return self._cts.pop(entry_id, None)

    def give(self, entry_id: int, number: int, layout: Layout) -> None:
        """Note the cotangent of an entry."""
        self._cts[entry_id] = number, layout
        self._left.discard(entry_id)

    def leave(self, entry_id: int, is_left: bool) -> None:
        """Note whether Python has the cotangent of an entry."""
        self._cts.pop(entry_id, None)
        (self._left.add if is_left else self._left.discard)(entry_id)

    def ids(self) -> list[int]:
        """Return the entries with cotangents."""
        return sorted(self._cts)

    def run(self, position: int, numbers: dict[int, int], next_number: int) -> int:
        """Return the first position, from one on, of an entry that has a cotangent."""
        order, cts, left = self._order, self._cts, self._left
        while position < len(order) and order[position] not in cts and order[position] not in left:
            position += 1
        return position

    def written(self) -> tuple[list[Entry], list[int]]:
        """Return no operations."""
        return [], []
