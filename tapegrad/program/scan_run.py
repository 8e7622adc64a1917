"""How loops compute as an operation: as machine code, or turn by turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tapegrad.program.checkpoints import Checkpointed
from tapegrad.program.replay import Replay
from tapegrad.program.run import Runner
from tapegrad.program.scan import Scan

_FEW: Final = 4000  # operations of all turns, which take less time than code takes to make

_backs: Final[WeakKeyDictionary[Checkpointed, Runner]] = WeakKeyDictionary()
_runners: Final[WeakKeyDictionary[Scan, Runner]] = WeakKeyDictionary()


class _TooMany(Exception):  # noqa: N818  # a finding, which ends the attempt
    """There are more turns than are worth calls for each operation."""


def forward(scan: Scan, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a loop."""
    runner = _runners.get(scan)
    if runner is None:
        try:
            return turn_by_turn(scan, arrays, _FEW // (len(scan.body.entries) + 1))
        except _TooMany:
            runner = _runners[scan] = Runner(scan.whole(), lambda *arrays: turn_by_turn(scan, arrays))
    return tuple(runner(arrays)[0])


def turn_by_turn(scan: Scan, arrays: Sequence[Any], most: int | None = None) -> tuple[Any, ...]:
    """Do the same by calls of operations; a scan of more turns than the `most` is not finished."""
    body, condition, n_carried = scan.body, scan.condition, scan.n_carried
    run, goes_on = Replay(body), None if condition is None else Replay(condition)
    consts, rows, turns, carried = scan.parts(arrays)
    layouts = [body.layouts[number] for number in body.outputs[n_carried:]]
    length = scan.length or 0
    results = [np.zeros((length, *own.shape), own.dtype) for own in layouts]
    end = None if condition is not None else length
    if turns:
        end = max(int(turns[0]), 0) if scan.length is None else min(max(int(turns[0]), 0), length)
    turn = 0
    while end is None or turn < end:
        if goes_on is not None and not goes_on(*consts, *carried)[0]:
            break
        if scan.length is not None and turn == length:  # no room
            turn += 1
            break
        if turn == most:
            raise _TooMany
        row = (end or 0) - 1 - turn if scan.reverse else turn
        outputs = run(*consts, *[own[row] for own in rows], *carried)
        carried = list(outputs[:n_carried])
        for result, value in zip(results, outputs[n_carried:], strict=True):
            result[row] = value
        turn += 1
    given = [np.array(own) for own in carried]
    return (*given, *results, *([np.array(turn)] if condition is not None else ()))


def back(checkpoints: Checkpointed, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a loop back from checkpoints."""
    runner = _backs.get(checkpoints)
    if runner is None:
        runner = _backs[checkpoints] = Runner(checkpoints.whole(), lambda *arrays: checkpoints.turn_by_turn(arrays))
    return tuple(runner(arrays)[0])


Scan.forward, Checkpointed.forward = staticmethod(forward), staticmethod(back)
