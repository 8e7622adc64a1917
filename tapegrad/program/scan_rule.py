"""The rule of loops: a loop that goes through the turns backwards, by the program of a turn's cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.modes import enable_grad
from tapegrad.ops.table.gateway import constant, raw_data
from tapegrad.ops.table.op import xp
from tapegrad.ops.table.rules import NO_COTANGENT
from tapegrad.program.checkpoint_rule import apply_back
from tapegrad.program.derivative import pull
from tapegrad.program.limits import limit
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan, apply_scan, scan_of
from tapegrad.program.scan_packs import packs_of
from tapegrad.program.trace import trace
from tapegrad.program.traced import example
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.entries import MAX_SAVED
from tapegrad.tape.layout import Layout, layout_of
from tapegrad.tensor import Tensor

__all__ = ["active_values", "is_zero", "needed", "zeros"]

_SMALL: Final = 4096  # elements of a constant
_TURN_BYTES: Final = 8  # of a checkpoint, for the number of its turn
_MOST_SLOTS: Final = 1 << 20  # of loops whose number of turns depends on data
_MOST_KEPT: Final = 16  # results that a rule takes


class _Back(NamedTuple):
    """The loop back for some wanted cotangents, given some cotangents.

    Attributes
    ----------
    scan : Scan
    active : list of int
        The carried values that have cotangents.
    captured : list of Tensor
        What the rules of its operations took from outside: further constants.
    """

    scan: Scan
    active: list[int]
    captured: list[Tensor]


_backs: Final[WeakKeyDictionary[Scan, dict[Any, _Back]]] = WeakKeyDictionary()


def rule(cts: Sequence[Tensor], scan: Scan, wanted: tuple[bool, ...], residuals: Sequence[Tensor]) -> tuple[Any, ...]:
    """Return the cotangents of operands, from those of the floating results."""
    body, (_n_consts, _n_rows, n_carried) = scan.body, scan.counts
    consts, rows, turns, kept = scan.parts(residuals)  # in place of the carried values what was kept, or these
    if scan.condition is not None:
        turns = [kept.pop()]
    found = iter(cts)
    given = [next(found) if body.layouts[number].floating else None for number in body.outputs]
    given = [None if own is None or is_zero(own) else own for own in given]
    flags = scan.parts(wanted)
    of_inputs = (*flags[0], *flags[1], *flags[3])
    needs = needed(scan) if scan.slots else ()
    whole = scan.with_kept(needs) if scan.slots else scan
    back = _back(whole, of_inputs, (*[own is not None for own in given], *[False] * len(needs)))
    layouts = [body.layouts[number] for number in body.outputs]
    states = [zeros(layouts[k]) if given[k] is None else given[k] for k in back.active]
    taken = [own for own, is_wanted in zip(consts, flags[0], strict=True) if is_wanted]
    carried = [*states, *[zeros(own._layout.plain) for own in taken]]
    consts, seeds = [*consts, *back.captured], [own for own in given[n_carried:] if own is not None]
    if scan.slots:
        operands = [*consts, *rows, *turns, *kept, *seeds, *carried]
        results = apply_back(scan, needs, back.scan, scan.slots, operands)
    else:
        results = apply_scan(back.scan, back.scan.operands(consts, [*rows, *kept, *seeds], turns, carried))
    of_carried: dict[int, Any] = dict(zip(back.active, results, strict=False))
    of_consts, of_rows = iter(results[len(states) :]), iter(results[len(carried) :])
    return (
        *[next(of_consts) if own else NO_COTANGENT for own in flags[0]],
        *[next(of_rows) if own else NO_COTANGENT for own in flags[1]],
        *[NO_COTANGENT] * scan.counted,
        *[of_carried.get(k) if own else NO_COTANGENT for k, own in enumerate(flags[3])],
    )


def is_zero(ct: Tensor) -> bool:
    """Whether a cotangent is zero because no result gives it one: it stands in no trace."""
    return not ct.is_traced and ct._node is None and not np.any(raw_data(ct))


def zeros(layout: Layout) -> Tensor:
    """Return zeros; many are no constant of a program."""
    if layout.size <= _SMALL:
        data = np.zeros(layout.shape, layout.dtype)
        data.flags.writeable = False  # a constant: no trace asks for it again
        return constant(data, layout_of(data))
    data = np.zeros((), layout.dtype)
    data.flags.writeable = False
    expanded: Tensor = xp.expand(constant(data, layout_of(data)), layout.shape)
    return expanded


def active_values(scan: Scan, wanted: Sequence[bool]) -> list[int]:
    """Return the carried values that have cotangents if those of some of the body's inputs are wanted."""
    body, (n_consts, n_rows, n_carried) = scan.body, scan.counts
    flags, first = list(wanted), n_consts + n_rows
    while True:
        numbers = [number for number, is_wanted in zip(body.inputs, flags, strict=True) if is_wanted]
        reached = body.differentiable(numbers) | {*numbers}
        more = [flags[first + k] or body.outputs[k] in reached for k in range(n_carried)]
        if more == flags[first:]:
            return [k for k in range(n_carried) if more[k]]
        flags[first:] = more


def _back(scan: Scan, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> _Back:
    """Return the loop back.

    Parameters
    ----------
    scan : Scan
    wanted : tuple of bool
        Of the body's inputs.
    given : tuple of bool
        Which of the body's outputs have cotangents.
    """
    backs = _backs.setdefault(scan, {})
    found = backs.get((wanted, given))
    if found is None:
        found = backs[wanted, given] = _made(scan, wanted, given)
    return found


def _made(scan: Scan, wanted: tuple[bool, ...], given: tuple[bool, ...]) -> _Back:
    body, (n_consts, n_rows, n_carried) = scan.body, scan.counts
    active = active_values(scan, wanted)
    flags = [*wanted[: n_consts + n_rows], *[k in active for k in range(n_carried)]]
    seeded = [number for place, number in enumerate(body.outputs) if given[place] and place >= n_carried]
    pulled = body.with_outputs([*[body.outputs[k] for k in active], *seeded])
    n_inputs, n_sums = len(body.inputs), sum(wanted[:n_consts])

    def function(*tensors: Tensor) -> list[Tensor]:
        inputs, rest = tensors[:n_inputs], tensors[n_inputs:]
        n_cts = len(active) + len(seeded)
        found = list(pull(pulled, tuple(flags), *inputs, *rest[:n_cts]))
        of_consts, of_rows, of_carried = found[:n_sums], found[n_sums : len(found) - len(active)], found[-len(active) :]
        of_carried = of_carried if active else []
        added = [xp.add(*pair) for pair in zip(rest[n_cts:], of_consts, strict=True)]
        return [*of_carried, *added, *of_rows]

    arrays = [*scan.examples, *[_one(body.layouts[number]) for number in pulled.outputs]]
    arrays += [_one(body.layouts[number]) for number, own in zip(body.inputs, wanted[:n_consts], strict=False) if own]
    with enable_grad():  # it serves derivatives of any order
        program, captured = trace(function, arrays, [np.asarray(own).dtype.kind in "fc" for own in arrays])
    own, end = program.inputs, len(arrays)
    consts, rows, carried = own[:n_consts], own[n_consts : n_consts + n_rows], own[n_consts + n_rows : n_inputs]
    states, seeds = own[n_inputs : n_inputs + len(active)], own[n_inputs + len(active) : end - n_sums]
    inputs = [
        *consts, *own[end:], *rows, *[carried[k] for k in scan.kept], *seeds, *states, *own[end - n_sums : end]
    ]  # fmt: skip
    place_of = {number: place for place, number in enumerate(own)}
    examples = [*arrays, *map(example, captured)]
    back = scan_of(
        _checked(Program(program.layouts, inputs, program.constants, program.entries, program.outputs)),
        (n_consts + len(captured), n_rows + len(scan.kept) + len(seeds), len(active) + n_sums),
        scan.length, [examples[place_of[number]] for number in inputs],
        reverse=not scan.reverse, counted=scan.is_open,
    )  # fmt: skip
    return _Back(back, active, captured)


def _one(layout: Layout) -> np.ndarray:
    return np.ones(layout.shape, layout.dtype)


def _checked(program: Program) -> Program:
    """Return a program; its operations take what it computes, and nothing else."""
    known = {*program.inputs, *program.constants}
    for entry in program.entries:
        assert known.issuperset(entry.operands), f"{entry.op.name} takes a value that is not kept"
        known.update(entry.results)
    return program


# What is kept --------------------------------------------------------------------------------------------------------


def needed(scan: Scan) -> tuple[int, ...]:
    """Return the carried values that derivatives of a turn depend on: all that are not only added up and moved."""
    n_carried = scan.n_carried
    return tuple([k for k in range(n_carried) if _is_needed(scan.body, scan.body.inputs[-n_carried:][k])])


def _is_needed(body: Program, number: int) -> bool:
    reached = {number}
    for entry in body.entries:
        if not reached.isdisjoint(entry.index_arrays):
            return True
        places = [own for own in entry.operands if own in reached]
        if not places:
            continue
        others = [own for own in entry.operands if own not in reached]
        scales = entry.op.bilinear and len(places) == 1 and all(own in body.constants for own in others)
        if not entry.op.linear and not scales:
            return True
        reached.update(entry.results)
    return False


def _slots(scan: Scan, kept: Sequence[int]) -> int:
    """Return for how many checkpoints there is room; 0 if a loop may keep what each turn was given."""
    most, body = limit(), scan.body
    if most is None or not kept:
        return 0
    nbytes = [body.layouts[number].nbytes for number in body.inputs[-scan.n_carried :]]
    if scan.length is not None and scan.length * sum(nbytes[k] for k in kept) <= most:
        return 0
    return max(2, min(most // (sum(nbytes) + _TURN_BYTES), _MOST_SLOTS))


Finish = Callable[[list[Tensor]], list[Tensor]]


def recorded(scan: Scan, operands: Sequence[Tensor]) -> tuple[Scan, list[Tensor], Finish]:
    """Return a loop that keeps what its rule takes, its operands, and from its results to those of the first loop."""
    n_results = len(scan.body.outputs)
    kept = needed(scan)
    slots = _slots(scan, kept)
    if slots:
        found = scan.changed(slots=slots)
        if found.n_residuals <= MAX_SAVED:
            return found, list(operands), lambda results: results
    elif scan.n_residuals <= MAX_SAVED and len(kept) <= _MOST_KEPT:
        found, end = scan.with_kept(kept), n_results + len(kept)
        return found, list(operands), lambda results: [*results[:n_results], *results[end:]]
    packs = packs_of(scan)
    if packs.scan is scan:
        raise TypeError(f"a loop of values of too many dtypes: {', '.join(map(str, scan.body.layouts))}")
    found, taken, cut = recorded(packs.scan, packs.operands(operands))
    return found, taken, lambda results: packs.results(cut(results))


Scan.rule, Scan.recorded = staticmethod(rule), staticmethod(recorded)
