"""Programs on large arrays: machine code in stages, whose blocks the library's threads share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.compiler.intrinsics import call_void
from tapegrad.recording.native import incref, integer, load, release_gil, take_gil
from tapegrad.recording.objects import Runtime, runtime
from tapegrad.runtime import blocking
from tapegrad.runtime.memory import watch
from tapegrad.runtime.objects import NDArray, Object
from tapegrad.runtime.structs import Array, Struct
from tapegrad.runtime.threads import share

__all__ = ["run_stages"]


class StageFields(Struct):
    """A stage of a call."""

    runtime: Runtime
    code: int
    inputs: int
    outputs: int
    scratch: int
    number: int


def run_blocks(self: NDArray, args: Array[Object], nargs: int) -> int:
    """Run the blocks of a stage from the first to the last but one, without the GIL: ``(first, end, thread)``."""
    stage = StageFields(self.data)
    first, end, none = integer(args[0]), integer(args[1]), stage.runtime.none
    thread = release_gil()
    call_void(stage.code, stage.inputs, stage.outputs, stage.scratch, stage.number, first, end)
    take_gil(thread)
    incref(none)
    return none


def run_stages(code: int, inputs: int, outputs: int, scratch: int, counts: Sequence[int]) -> None:
    """Call machine code that has stages: all blocks of one, in several threads, before the next one.

    Parameters
    ----------
    code, inputs, outputs, scratch : int
        Addresses: see `tapegrad.program.variants.Variant`.
    counts : sequence of int
        The number of blocks of each stage.
    """
    for number, count in enumerate(counts):
        words = np.array([runtime().ctypes.data, code, inputs, outputs, scratch, number], dtype=np.int64)
        run = load(run_blocks, watch(words, "a stage of a program"))
        threads = min(blocking.division.threads, count)
        if threads > 1:
            share(run, count, 1, threads)
        else:
            run(0, count, 0)
