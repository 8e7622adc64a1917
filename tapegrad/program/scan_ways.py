"""Loops whose turns look at values: a program for each way through the branches of a turn.

Each turn takes the way that it shall. That all turns have taken known ways is carried along, and is a guard of the
program around. A new way is traced with what the first turn was given that takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

import tapegrad.program.scan_batches  # noqa: F401  # installs how batches of loops compute
from tapegrad import modes
from tapegrad.modes import enable_grad
from tapegrad.ops.table.gateway import apply
from tapegrad.ops.table.op import Bound, Op, xp
from tapegrad.program.batch import apply_batch, batch_of, with_flag
from tapegrad.program.batched import unified
from tapegrad.program.limits import limit
from tapegrad.program.program import Program
from tapegrad.program.replay import replay
from tapegrad.program.scan import Scan, apply_scan, check_room, room_for, scan_of
from tapegrad.program.scan_rule import active_values
from tapegrad.program.scan_run import forward
from tapegrad.program.trace import trace
from tapegrad.program.traced import example
from tapegrad.tensor import Tensor, from_array

__all__ = ["Loop", "Traced"]

_MOST_WAYS: Final = 16
_SEARCHED: Final = 1 << 16  # turns of which one may take a new way, if their number depends on data

Traced = tuple[Program, list[Tensor]]


class Loop:
    """A loop of a turn that was traced.

    Parameters
    ----------
    body : Program, list of Tensor
        Of the first turn, and what it takes from outside.
    again : callable
        Traces the turn with other examples.
    examples : sequence of array
        What the first turn was given: rows, and carried values.
    rows : sequence of Tensor
    length : int, optional
        How many turns there are.
    reverse : bool
    condition : Program, list of Tensor, optional
    """

    def __init__(
        self,
        body: Traced,
        again: Callable[[Sequence[np.ndarray]], Traced | None],
        examples: Sequence[np.ndarray],
        rows: Sequence[Tensor] = (),
        length: int | None = None,
        *,
        reverse: bool = False,
        condition: Traced | None = None,
    ) -> None:
        self._ways, self._condition, self._again = [body], condition, again
        self._examples, self._rows, self._length, self._reverse = list(examples), list(rows), length, reverse
        self._asks = condition is not None and bool(condition[0].guards)

    def results(self, carried: Sequence[Tensor], turns: Sequence[Tensor] = ()) -> list[Tensor] | None:
        """Return the last carried values and the results of all turns; None if turns take too many ways."""
        if not self._looks():
            scan, captured = self._scan(bool(turns))
            return self._applied(scan, captured, carried, turns)
        flagged = [*carried, as_true()]
        while True:
            scan, captured = self._scan(bool(turns))
            with np.errstate(all="ignore"):  # turns that take another way compute this one
                taken = self._unlike(scan, captured, flagged, turns)
            if taken is None:
                break
            way = self._again(taken) if len(self._ways) < _MOST_WAYS else None
            if way is None or not _is_like(way, self._ways[0]):
                return None
            self._ways.append(way)
        results = self._applied(scan, captured, flagged, turns)
        flag = results.pop(len(carried))
        if self._asks:
            flag = xp.logical_and(flag, self._is_asked_alike(results[: len(carried)]))
        return results if bool(flag) else None  # a guard

    def _looks(self) -> bool:
        return bool(self._ways[0][0].guards) or self._asks

    def _applied(
        self, scan: Scan, captured: Sequence[Tensor], carried: Sequence[Tensor], turns: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return the results of a loop, without the number of turns."""
        operands = scan.operands(captured, self._rows, turns, carried)
        if not scan.is_open:
            return apply_scan(scan, operands)
        if limit() is not None or not _is_recorded(scan, captured, carried):
            return apply_scan(scan, operands)[: len(scan.body.outputs)]
        count = example(turns[0]) if turns else forward(scan, [example(own) for own in operands])[-1]
        room = room_for(int(count))
        results = apply_scan(scan.changed(length=room), operands)
        check_room(turns[0] if turns else results[-1], room)
        return results[: len(scan.body.outputs)]

    def _scan(self, counted: bool) -> tuple[Scan, list[Tensor]]:
        """Return the loop of all ways, and what these take from outside: the constants, in front."""
        traced = [*self._ways, *([] if self._condition is None else [self._condition])]
        programs, captured = unified(traced)
        end, n_rows = len(self._examples), len(self._rows)
        programs = [
            Program(own.layouts, (*own.inputs[end:], *own.inputs[:end]), own.constants, own.entries, own.outputs,
                    own.guards)
            for own in programs
        ]  # fmt: skip
        examples = [*[example(own) for own in captured], *self._examples]
        condition = programs.pop() if self._condition is not None else None
        (body, *_), n_carried = programs, end - n_rows
        if self._looks():
            examples, n_carried = [*examples, np.array(True)], n_carried + 1
            body = _of_ways(programs, examples, n_carried)
            if condition is not None:
                condition = _asking(condition, [*examples[: len(captured)], *examples[-n_carried:]])
        return scan_of(
            body, (len(captured), n_rows, n_carried), self._length, examples,
            reverse=self._reverse, counted=counted, condition=condition,
        ), captured  # fmt: skip

    def _unlike(
        self, scan: Scan, captured: Sequence[Tensor], carried: Sequence[Tensor], turns: Sequence[Tensor]
    ) -> list[np.ndarray] | None:
        """Return what the first turn was given that takes no known way: rows, and carried values."""
        arrays = [example(own) for own in scan.operands(captured, self._rows, turns, carried)]
        n_carried = scan.n_carried
        if forward(scan, arrays)[n_carried - 1]:
            return None
        probe = scan.with_kept(range(n_carried))
        if scan.is_open:
            probe = probe.changed(length=_SEARCHED)
        results = forward(probe, arrays)
        states = [*results[len(scan.body.outputs) : len(probe.body.outputs)]]
        flags = states.pop()[::-1] if scan.reverse else states.pop()
        count = len(flags)
        if scan.is_open:
            count = min(int(arrays[-n_carried - 1] if turns else results[-1]), count)
        late = np.flatnonzero(~flags[:count])
        turn = int(late[0]) - 1 if len(late) else count - 1
        row = len(flags) - 1 - turn if scan.reverse else turn
        n_consts = len(captured)
        rows = arrays[n_consts : n_consts + len(self._rows)]
        return [np.array(own[row]) for own in (*rows, *states)]

    def _is_asked_alike(self, carried: Sequence[Tensor]) -> Tensor:
        """Return whether the condition looks the same at the last carried values."""
        assert self._condition is not None
        program, captured = self._condition
        flag: Tensor = replay(with_flag(program), [*carried, *captured])[0][-1]
        return flag


def as_true() -> Tensor:
    """Return that all turns so far have looked the same: none."""
    data = np.array(True)
    data.flags.writeable = False  # a constant: no trace asks for it again
    return from_array(data)


def _is_recorded(scan: Scan, captured: Sequence[Tensor], carried: Sequence[Tensor]) -> bool:
    """Whether a gradient goes through a loop without rows."""
    own = [tensor.requires_grad for tensor in (*captured, *carried)]
    return modes.is_grad_enabled() and bool(active_values(scan, own))


def _is_like(one: Traced, two: Traced) -> bool:
    """Whether ways return the same kinds of things."""
    kinds = [[own[0].layouts[number] for number in own[0].outputs] for own in (one, two)]
    return [(own.shape, own.dtype) for own in kinds[0]] == [(own.shape, own.dtype) for own in kinds[1]]


def _of_ways(ways: Sequence[Program], examples: Sequence[np.ndarray], n_carried: int) -> Program:
    """Return the program of a turn of some ways; the last carried value says whether all turns have taken one."""
    programs = [with_flag(own) for own in ways]
    batch = batch_of(programs, [True] * (len(examples) - 1), True)

    def turn(*tensors: Tensor) -> list[Tensor]:
        *inputs, flag = tensors
        if len(programs) == 1:
            outputs = replay(programs[0], inputs)[0]
        else:  # of one item: its rule keeps the ways apart, as a gradient of one that is not taken may be nan
            outputs = [own[0] for own in apply_batch(batch, [xp.unsqueeze(own, 0) for own in inputs])]
        taken = outputs.pop()
        return [*outputs[: n_carried - 1], xp.logical_and(flag, taken), *outputs[n_carried - 1 :]]

    with enable_grad():
        return trace(turn, examples, [own.dtype.kind in "fc" for own in examples])[0]


def written_out(program: Program) -> Program:
    """Return a turn's program with the operations of all its ways, of which one's results are chosen."""
    if not any(entry.op.family == "batch" and len(entry.attrs["batch"].ways) > 1 for entry in program.entries):
        return program

    def call(op: Op, bound: Bound) -> Any:
        batch = bound.attrs.get("batch")
        if batch is None or len(batch.ways) == 1 or bound.operands[batch.mapped.index(True)].shape[0] != 1:
            return apply(op, bound)
        inputs = [own[0] if each else own for own, each in zip(bound.operands, batch.mapped, strict=True)]
        results = replay(batch.ways[0], inputs, call)[0]
        for way in batch.ways[1:]:
            others = replay(way, inputs, call)[0]
            chosen = [xp.where(others[-1], *pair) for pair in zip(others[:-1], results[:-1], strict=True)]
            results = [*chosen, xp.logical_or(others[-1], results[-1])]
        found = [xp.unsqueeze(own, 0) for own in results]
        return found[0] if len(found) == 1 else found

    layouts = [program.layouts[number] for number in program.inputs]
    examples = [np.ones(own.shape, own.dtype) for own in layouts]
    with np.errstate(all="ignore"):  # of ways that are not taken
        return trace(lambda *tensors: replay(program, tensors, call)[0], examples)[0]


def _asking(condition: Program, examples: Sequence[np.ndarray]) -> Program:
    """Return the condition that ends the loop also where a turn has taken a new way, or it looks at something new."""
    program = with_flag(condition)

    def goes_on(*tensors: Tensor) -> list[Tensor]:
        answer, alike = replay(program, tensors[:-1])[0]
        return [xp.logical_and(xp.logical_and(answer, alike), tensors[-1])]

    return trace(goes_on, examples)[0]


Scan.written_out = staticmethod(written_out)
