"""Which operations of a program have machine code of their own, and what belongs to it: views, an addition."""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, Final

from tapegrad.program.fuse import fuse
from tapegrad.program.fuse.small import SMALL
from tapegrad.program.machine_code import LARGEST, Refused
from tapegrad.program.native import FACTORS, Native, native
from tapegrad.program.native.indexed import has_computed_indices
from tapegrad.program.native.views import View, views_of
from tapegrad.program.program import Entry, Program
from tapegrad.runtime.named_tuples import NamedTuple

__all__ = ["Group", "groups", "is_cut", "wide_sums", "without_copies"]

_PRODUCTS: Final = 512  # multiplications that are a part of fused code
_ELEMENTS: Final = 256  # of a matrix of which parts are moved in loops
_SIDE: Final = 16  # rows and columns of matrices whose products are loops of their own wherever they stand
_CACHED: Final = 1 << 14  # elements of matrices that stay in the cache: half of the side is enough
_TILES: Final = 1 << 13  # and their multiplications
_CONSTANT: Final = 1 << 20  # bytes of a constant that is a part of machine code
_COMPARED: Final = 1 << 12  # pairs of an index and a place that a part of fused code compares
_SHARE: Final = 1000  # other operations for each comparison, beside which these take no time
_STILL: Final = frozenset(("reshape", "expand"))  # movements that change nothing if the shape is the same


class Group(NamedTuple):
    """Operations with machine code of their own.

    Attributes
    ----------
    places : tuple of int
        Of the operations that nothing else computes.
    inputs, outputs : tuple of int
        The program's values that it takes, and that it computes.
    body : Program
        Has these, in their order, by numbers of its own.
    code : Native
    """

    places: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    body: Program
    code: Native


def groups(program: Program, only: Container[int] | None = None) -> dict[int, Group]:
    """Return the operations that have machine code of their own, by the place of the last of each.

    `only` has places, if no others are looked at.
    """
    views = views_of(program)
    users: dict[int, list[int]] = {}
    for place, entry in enumerate(program.entries):
        for number in (*entry.operands, *entry.index_arrays):
            users.setdefault(number, []).append(place)
    results = {*program.outputs, *[guard.value for guard in program.guards]}
    known: dict[Any, Native | None] = {}
    found: dict[int, Group] = {}
    taken: set[int] = set()
    for place, entry in enumerate(program.entries):
        if only is not None and place not in only:
            continue
        if views[entry.results[0]].number != entry.results[0]:
            if entry.results[0] in results and _is_wide(program, entry):
                group = _group(program, views, [place], users, results, known)
                if group is not None:
                    found[place] = group
            continue
        is_part = entry.op.name == "index_scatter_add" and not entry.index_arrays and _is_wide(program, entry)
        is_indexed = has_computed_indices(program, entry) and program.layouts[entry.results[0]].dtype.char in "df"
        if not is_part and not is_indexed and not _is_large(program, entry):
            continue
        after = None if is_indexed else _addition(program, place, users, results)
        for places in ([place, after], [place]) if after is not None and after not in taken else ([place],):
            group = _group(program, views, places, users, results, known)
            if group is not None:
                found[places[-1]] = group
                taken.update(places)
                break
    return found


def is_cut(program: Program, in_loops: bool) -> bool:
    """Return whether a program is cut at operations with machine code of their own, before fusing is tried.

    In the body of a loop products are: its vectors are short, and nests of loops gain little. Elsewhere what is fused
    goes over its operands once, and only products of thick matrices stand apart.
    """
    for entry in program.entries:
        is_alone = in_loops or entry.op.name != "matmul" or _is_thick(program, entry)
        if is_alone and _is_large(program, entry):
            return True
    return False


def wide_sums(program: Program) -> set[int]:
    """Return the places of sums at computed indices that take a good part of a program's time where they are fused.

    There each place of the result asks all indices whether they mean it.
    """
    compared = {place: _comparisons(program, entry) for place, entry in enumerate(program.entries)}
    found = {place for place, count in compared.items() if count > _COMPARED}
    if not found:
        return found
    layouts = program.layouts
    work = sum(
        _multiplications(program, entry) if entry.op.name == "matmul" else layouts[entry.results[0]].size
        for entry in program.entries
    )
    return found if _SHARE * sum(compared[place] for place in found) > work else set()


def _comparisons(program: Program, entry: Entry) -> int:
    """Return how many pairs of an index and of a place of its result a sum at computed indices has."""
    arrays = [number for number in entry.index_arrays if number not in program.constants]
    if entry.op.name != "index_scatter_add" or len(arrays) != 1:
        return 0
    return program.layouts[arrays[0]].size * program.layouts[entry.results[0]].size


def without_copies(program: Program) -> Program:
    """Return a program without movements that change nothing."""
    same: dict[int, int] = {}
    entries, layouts = [], program.layouts
    for entry in program.entries:
        moved = entry._replace(
            operands=tuple([same.get(number, number) for number in entry.operands]),
            index_arrays=tuple([same.get(number, number) for number in entry.index_arrays]),
        )
        if entry.op.name in _STILL and layouts[entry.operands[0]].shape == layouts[entry.results[0]].shape:
            same[entry.results[0]] = moved.operands[0]
        else:
            entries.append(moved)
    guards = [guard._replace(value=same.get(guard.value, guard.value)) for guard in program.guards]
    outputs = [same.get(number, number) for number in program.outputs]
    return Program(layouts, program.inputs, program.constants, entries, outputs, guards)


def _is_large(program: Program, entry: Entry) -> bool:
    """Return whether an operation is too long for scalars, or for a part of fused code, and has code of its own."""
    operands = [program.layouts[number] for number in entry.operands]
    if any(layout.dtype.char not in "df" or layout.dtype != operands[0].dtype for layout in operands):
        return False
    if any(number in program.constants and program.layouts[number].nbytes > _CONSTANT for number in entry.operands):
        return False
    if entry.op.name == "matmul":
        return _multiplications(program, entry) > _PRODUCTS
    if entry.op.name not in SMALL:
        return entry.op.name in FACTORS
    return max(program.layouts[entry.operands[0]].shape[-2:]) > LARGEST


def _is_wide(program: Program, entry: Entry) -> bool:
    """Return whether a movement makes so many elements of a matrix that they are not moved as scalars."""
    layout = program.layouts[entry.results[0]]
    return layout.dtype.char in "df" and len(layout.shape) > 1 and math.prod(layout.shape) >= _ELEMENTS


def _multiplications(program: Program, entry: Entry) -> int:
    layouts = program.layouts
    return math.prod(layouts[entry.results[0]].shape) * layouts[entry.operands[0]].shape[-1]


def _is_thick(program: Program, entry: Entry) -> bool:
    """Return whether a product is of matrices that are large in each direction: tiles gain more than one pass saves."""
    x, y = (program.layouts[number].shape for number in entry.operands)
    columns = y[-1] if len(y) > 1 else 1
    rows = math.prod(x[:-1] if len(y) < 3 else x[-2:-1])
    largest = max(math.prod(shape) for shape in (x, y, program.layouts[entry.results[0]].shape))
    side = _SIDE if largest > _CACHED else _SIDE // 2
    return _multiplications(program, entry) >= _TILES and min(rows, columns, x[-1]) >= side


def _addition(program: Program, place: int, users: dict[int, list[int]], results: set[int]) -> int | None:
    """Return where something is added to a result that nothing else takes, or where its batch is summed."""
    entry = program.entries[place]
    (result, *_) = entry.results
    (user, *others) = users.get(result, [-1])
    if user < 0 or others or result in results:
        return None
    name = program.entries[user].op.name
    found = name == "add" and entry.op.name in ("matmul", "index_scatter_add")
    return user if found or (name == "sum" and entry.op.name == "matmul") else None


def _group(
    program: Program,
    views: dict[int, View],
    places: list[int],
    users: dict[int, list[int]],
    results: set[int],
    known: dict[Any, Native | None],
) -> Group | None:
    own = [program.entries[place] for place in places]
    made = {number for entry in own for number in entry.results}
    asked: dict[int, None] = {}
    chain: list[Entry] = []
    for entry in own:
        for number in entry.operands:
            chain += _chain(program, views, number)
            base = views[number].number if number in views else number
            if base not in made and base not in program.constants:
                asked[base] = None
        asked |= dict.fromkeys([number for number in entry.index_arrays if number not in program.constants])
    wanted = tuple([n for n in made if n in results or any(user not in places for user in users.get(n, ()))])
    wanted = tuple([n for entry in own for n in entry.results if n in wanted])
    body = Program(program.layouts, tuple(asked), program.constants, [*chain, *own], wanted).cleaned().compact()
    key = body.key()
    if key not in known:
        known[key] = None if _is_fused(program, own, body) else native(body)
    code = known[key]
    return None if code is None else Group(tuple(places), tuple(asked), wanted, body, code)


def _is_fused(program: Program, own: list[Entry], body: Program) -> bool:
    """Return whether what computed indices choose is a part of fused code."""
    if not has_computed_indices(program, own[0]) or _comparisons(program, own[0]) > _COMPARED:
        return False
    try:
        fuse(body, in_brief=True)
    except Refused:
        return False
    return True


def _chain(program: Program, views: dict[int, View], number: int) -> list[Entry]:
    """Return the operations that make a view, from the value that stands in memory."""
    made = {entry.results[0]: entry for entry in program.entries if entry.results[0] in views}
    found = []
    while number in made and views[number].number != number:
        found.append(made[number])
        (number,) = made[number].operands
    return found[::-1]
