"""Sums of products over the turns of a loop, computed behind it as one long product.

The gradient of a weight that all turns of a recurrent network multiply with is such a sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tapegrad.program.loops.body import Loop
from tapegrad.program.loops.driver import Straight
from tapegrad.program.loops.places import ARENA, Line, Place, Places, nbytes_of
from tapegrad.program.native.sums import Factor, sum_of_products
from tapegrad.program.native.views import View, views_of
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["defer"]

_FEWEST: Final = 256  # elements of a sum


class _Sum(NamedTuple):
    """A sum over turns: the entries of the body that add to it, and the views whose product they add."""

    entries: tuple[Entry, ...]
    result: int
    start: int
    factors: tuple[View, View]


def defer(loop: Loop, places: Places, outside: Iterable[int]) -> tuple[Loop, list[Straight]]:
    """Return a loop without sums of products that nobody looks at before its end, and the stages that compute these.

    Parameters
    ----------
    loop : Loop
    places : Places
        It is added to.
    outside : iterable of int
        The values that are used by entries outside of the loop.
    """
    stages: list[Straight] = []
    sums = _sums(loop.body)
    used = {place for number in outside for place in places.of(int(number)) if place.base == ARENA} if sums else set()
    for found in sums:
        made = _deferred(loop, found, places, used)
        if made is not None:
            loop, stage = made
            stages.append(stage)
    return loop, stages


def _sums(body: Program) -> list[_Sum]:
    """Return the sums of products in the body of a loop."""
    views = views_of(body)
    made = {entry.results[0]: entry for entry in body.entries}
    users = Counter([number for entry in body.entries for number in (*entry.operands, *entry.index_arrays)])
    users.update(body.outputs)
    found = []
    for entry in body.entries:
        result, layout = entry.results[0], body.layouts[entry.results[0]]
        is_sum = entry.op.name == "add" and result in body.outputs and users[result] == 1
        if not is_sum or len(layout.shape) != 2 or layout.dtype.char not in "df" or layout.size < _FEWEST:
            continue
        for start, term in (entry.operands, entry.operands[::-1]):
            product = views[term]
            source = made.get(product.number)
            used_once = (start, term, product.number)
            if start not in body.inputs or source is None or any(users[number] != 1 for number in used_once):
                continue
            factors = _factors(source, views)
            is_whole = product == View(product.number, layout.shape, (layout.shape[1], 1), 0)
            dtypes = {body.layouts[number].dtype for number in (*source.operands, start, result)}
            if factors is not None and is_whole and len(dtypes) == 1:
                found.append(_Sum((source, entry), result, start, factors))
                break
    return found


def _factors(entry: Entry, views: dict[int, View]) -> tuple[View, View] | None:
    """Return the matrices (n, k) and (k, m) of a product; None if an entry is no product of matrices."""
    if len(entry.operands) != 2:
        return None
    x, y = (views[number] for number in entry.operands)
    if entry.op.name == "matmul" and len(x.shape) == len(y.shape) == 2:
        return x, y
    if entry.op.name != "mul":
        return None
    for one, two in ((x, y), (y, x)):  # a column and a row
        if len(one.shape) == 2 and one.shape[1] == 1 and len(two.shape) in (1, 2) and two.shape[:-1] in ((), (1,)):
            return one, two._replace(shape=(1, two.shape[-1]), strides=(0, two.strides[-1]))
    return None


def _deferred(loop: Loop, found: _Sum, places: Places, used: set[Place]) -> tuple[Loop, Straight] | None:
    """Return a loop without one of its sums, and the stage that computes this."""
    body, turns = loop.body, loop.turns
    lines = dict(zip(body.outputs, loop.outputs, strict=True))
    own, size = lines[found.result], nbytes_of(body, found.result)
    begin = loop.inputs[body.inputs.index(found.start)]
    if own.first.base != ARENA or begin != Line(Place(ARENA, own.first.offset - size), size):
        return None  # it is not the sum of the turn before that is added to
    last = own.first.offset + (turns - 1) * size
    region = range(begin.first.offset, last)
    if any(place.offset in region for place in used):
        return None
    given = dict(zip(body.inputs, loop.inputs, strict=True))
    for number, line in given.items():
        ends = sorted([line.first.offset, line.first.offset + (turns - 1) * line.stride])
        reaches = range(ends[0], ends[1] + nbytes_of(body, number))
        if (
            number != found.start
            and line.first.base == ARENA
            and max(reaches[0], region[0]) <= min(reaches[-1], region[-1])
        ):
            return None
    factors: list[Factor] = []
    firsts: list[Place] = []
    strides: list[int] = []
    more: dict[int, Line] = {}
    for view in found.factors:
        number, nbytes = view.number, nbytes_of(body, view.number)
        if number in body.constants:
            return None
        known = {**given, **lines, **more}
        line = known[number] if number in known else Line(places.allocate(nbytes * turns), nbytes)
        if number not in known:
            more[number] = line
        if line.stride % body.layouts[number].dtype.itemsize:
            return None
        factors.append(Factor(view, line.stride // body.layouts[number].dtype.itemsize))
        firsts.append(line.first)
        strides.append(line.stride)
    straight = Program(
        body.layouts, (*[own.number for own in found.factors], found.start), {}, found.entries, (found.result,)
    )
    code, behind = sum_of_products(straight, factors, turns), [(turns - 1) * own for own in (*strides, 0)]
    stage = Straight(straight, [*firsts, begin.first], [Place(ARENA, last)], code, behind)
    dropped = {entry.results[0] for entry in found.entries}
    entries = [entry for entry in body.entries if entry.results[0] not in dropped]
    lines.update(more)
    del lines[found.result]
    shorter = Program(body.layouts, body.inputs, body.constants, entries, tuple(lines)).cleaned()
    asked = {number for entry in shorter.entries for number in (*entry.operands, *entry.index_arrays)}.union(lines)
    inputs = {number: line for number, line in given.items() if number in asked}
    shorter.inputs = tuple(inputs)
    return Loop(shorter, list(inputs.values()), list(lines.values()), turns, loop.copies), stage
