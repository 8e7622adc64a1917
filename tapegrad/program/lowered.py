"""The machine code of a program, lowered. A process that finds it in the cache does not import this file."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final
from weakref import WeakValueDictionary

from tapegrad.program.fuse import Fused, fuse
from tapegrad.program.loops import Blocked, blocked, code_of, one_by_one
from tapegrad.program.loops.driver import Driver
from tapegrad.program.machine_code import Refused
from tapegrad.program.pairs import paired
from tapegrad.program.program import Program
from tapegrad.program.scan import Scan

__all__ = ["Code", "machine_code"]

Code = Fused | Driver | Blocked

_codes: Final[WeakValueDictionary[Hashable, Fused | Blocked]] = WeakValueDictionary()


def machine_code(program: Program, may_stop: bool) -> Code:
    """Return a program as machine code, which calls operations that are not fused if it `may_stop`."""
    limit = program.limit
    program = paired(Scan.lifted(program))
    if len(program.entries) == 1 and program.entries[0].op.family == "batch":
        try:
            return _of_batch(program)
        except Refused:
            if not may_stop:
                raise
    return code_of(program, in_threads=True) if limit is None else _within(program, limit)


def _within(program: Program, limit: int) -> Code:
    """Return the code of a program that keeps at most so many bytes, if there is such code; else the least of it."""
    found, reason, share = None, Refused(""), 0.5
    try:
        found = code_of(program, in_threads=True)
        if found.scratch_bytes <= limit:
            return found
        share = limit / found.scratch_bytes
    except Refused as error:  # e.g. since too many bytes would stand between its stages
        reason = error
    from tapegrad.program.rematerialized import keeping_less  # at call time: it imports loops that are operations

    for own in keeping_less(program, share):
        try:
            code = code_of(own, in_threads=True)
        except Refused as error:
            reason = error
            continue
        if found is None or code.scratch_bytes < found.scratch_bytes:
            found = code
        if found.scratch_bytes <= limit:
            break
    if found is None:
        raise reason
    return found


def _of_batch(program: Program) -> Fused | Blocked:
    """Return the machine code of a batch, which was made before for an equal one."""
    values = [guard.value for guard in program.guards]  # they are results too, of which nobody knows more here
    program = Program(program.layouts, program.inputs, program.constants, program.entries, [*program.outputs, *values])
    key = program.compact().key()
    known = _codes.get(key)
    if known is None:
        known = blocked(program)
    if known is None:
        try:
            known = fuse(program, in_threads=True)
        except Refused:
            known = one_by_one(program)
            if known is None:
                raise
    _codes[key] = known
    return known
