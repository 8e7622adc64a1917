"""The fusing compiler: a program's operations as scalar nodes, and these as loops of machine code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from tapegrad.compiler.cache import address_of_ir
from tapegrad.program.fuse.bodies import Memory
from tapegrad.program.fuse.emit import SYMBOL, Emitter, module_text
from tapegrad.program.fuse.lowering import lower
from tapegrad.program.fuse.scalars import Refused
from tapegrad.program.fuse.schedule import Phase, plan
from tapegrad.program.fuse.staged import StagedEmitter, is_worth_stages
from tapegrad.program.program import Program

__all__ = ["Fused", "Refused", "fuse"]

#: Dimensions longer than this are axes. If slices of one are not long enough, another limit may do.
_LONG: Final = (64, 256, 16)
_LIMIT: Final = 200_000  # scalars while lowering
_SCALARS: Final = 20_000  # in code


class Fused:
    """A program as machine code: ``void f(char **inputs, char **outputs, char *scratch)``.

    Attributes
    ----------
    ir : str
        LLVM's text.
    scratch_bytes : int
        Of memory that a call needs, aligned to 64 bytes.
    stages : tuple of int
        Of a long program; see `tapegrad.program.variants.Variant`.
    """

    def __init__(
        self, ir: str, scratch_bytes: int, phases: list[Phase], notes: list[str], stages: Sequence[int] = ()
    ) -> None:
        self.ir, self.scratch_bytes, self.stages = ir, scratch_bytes, tuple(stages)
        self._phases, self._notes = phases, notes

    def address(self) -> int:
        """Return the address of the function, valid for the life of the process."""
        return address_of_ir("program", self.ir, lambda: self.ir, SYMBOL)

    def explain(self) -> list[str]:
        """Return what was done with the program, a line for each decision."""
        return list(self._notes)


def fuse(program: Program, *, width: int | None = None, checked: bool = False) -> Fused:
    """Return a program as machine code.

    Parameters
    ----------
    program : Program
    width : int, optional
        Of vectors; default what suits the program.
    checked : bool
        Check positions that are computed.

    Raises
    ------
    Refused
        If it cannot be fused; the message says which operation, and why.
    """
    refused: Refused | None = None
    for long in _LONG:
        try:
            return _fused(program, long, width)
        except Refused as error:
            refused = refused or error
    assert refused is not None
    raise refused


def _fused(program: Program, long: int, width: int | None) -> Fused:
    """Return a program as machine code, in which dimensions longer than this are axes."""
    lowered = lower(program, long, _LIMIT)
    memory = Memory()
    for k, number in enumerate(program.inputs):
        memory.pointers["in", k], memory.sizes["in", k] = f"%in{k}", math.prod(program.layouts[number].shape)
    outputs = []
    for k, array in enumerate(lowered.outputs):
        memory.pointers["out", k], memory.sizes["out", k] = f"%out{k}", array.size
        outputs.append((array, ("out", k)))
    constants = []
    for k, data in enumerate(lowered.constants):
        memory.pointers["const", k], memory.sizes["const", k] = f"@const{k}", data.size
        constants.append(_data(f"@const{k}", data))
    phases, _ = plan(lowered.graph, outputs)
    count = sum(len(phase.uniform) + len(phase.stores) for phase in phases)
    if count > _SCALARS:
        raise Refused(f"straight code of {count} scalars")
    if is_worth_stages(lowered.graph, phases):
        staged = StagedEmitter(lowered.graph, memory, width)
        return Fused(staged.module(phases, constants), staged.scratch, phases, [], staged.counts)
    emitter = Emitter(lowered.graph, memory, width)
    ir = module_text(emitter, phases, (len(program.inputs), len(outputs)), constants)
    return Fused(ir, 0, phases, [])


def _data(name: str, data: np.ndarray) -> str:
    """Return the definition of a constant array."""
    if data.nbytes > 1 << 20:
        raise Refused(f"a constant of {data.nbytes} bytes")
    text = "".join(f"\\{byte:02x}" for byte in data.tobytes())
    return f'{name} = internal constant [{data.nbytes} x i8] c"{text}", align 64'
