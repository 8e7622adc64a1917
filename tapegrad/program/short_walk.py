"""The memory of a walk back over a few entries, which Python visits: see `tapegrad.program.walk` for many."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tapegrad.program.program import Entry
from tapegrad.recording.plan import Plan
from tapegrad.sweep.found_entries import FoundEntries
from tapegrad.sweep.sweep import Sweep
from tapegrad.tape.entries import PLAN_OBJECT
from tapegrad.tape.hooks import node_hooks
from tapegrad.tape.layout import Layout


class ShortWalk:
    """The cotangents at hand; all entries that have one are left to Python. The methods are those of `Walk`.

    Parameters
    ----------
    order : list of int
        The ids of entries, latest first; negative if one does not run.
    same : dict
        From entries to earlier ones that compute the same.
    """

    def __init__(self, order: Sequence[int] = (), same: Mapping[int, int] = MappingProxyType({})) -> None:
        self._order, self._same = order, same
        self._cts: dict[int, tuple[int, Layout]] = {}
        self._left: set[int] = set()  # whose cotangents Python has

    def of(self, sweep: Sweep) -> contextlib.AbstractContextManager[None]:
        """Walk over what a sweep has found."""
        return contextlib.nullcontext()

    def find_same(self, position: int, numbers: dict[int, int]) -> int:
        """Return -1: they are found before."""
        return -1

    def same(self, entry_id: int) -> int:
        """Return the first entry that computes the same."""
        return self._same.get(entry_id, entry_id)

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


def find_same(
    found: FoundEntries, places_of: Callable[[Plan], tuple[Sequence[int], Sequence[int]] | None],
    numbers: Mapping[int, int],
) -> dict[int, int]:  # fmt: skip
    """Return the entries that compute the same as earlier ones, and these: see `tapegrad.program.walking.find_same`.

    Parameters
    ----------
    found : FoundEntries
    places_of : callable
        Where residuals stand in the nodes of a plan; None if they are not known.
    numbers : mapping
        From identities of data to numbers of values.
    """
    same: dict[int, int] = {}
    firsts: dict[Any, int] = {}
    for position in reversed(range(len(found.order))):
        entry_id = found.order[position]
        node = found.node(entry_id) if entry_id >= 0 and not found.is_captured(entry_id) else None
        if node is None or node_hooks(node) is not None:
            continue
        places, ids = places_of(node[PLAN_OBJECT]), found.operands(position, node)[0]
        if places is not None and min(ids) >= 0:
            residuals = [numbers.get(id(node[place]), id(node[place])) for place in places[0]]
            key = node[PLAN_OBJECT], *[same.get(own, own) for own in ids], *residuals
            first = firsts.setdefault(key, entry_id)
            if first != entry_id:
                same[entry_id] = first
    return same
