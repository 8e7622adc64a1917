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
    program = paired(Scan.lifted(program))
    if len(program.entries) == 1 and program.entries[0].op.family == "batch":
        try:
            return _of_batch(program)
        except Refused:
            if not may_stop:
                raise
    return code_of(program, in_threads=True)


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
