"""What is called without Python: a program's machine code, its memory and guards, and why there may be none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tapegrad.program.loops.driver import Driver
from tapegrad.program.program import Program
from tapegrad.program.signature import Signature
from tapegrad.program.stops import Stop

__all__ = ["Way", "ways_of"]

_CALL_IT: Final = "call it once with arguments of the shapes and dtypes that it shall take"


class Way:
    """The machine code of a program, which calls no Python.

    Attributes
    ----------
    program : Program
        See `Runner.checked`.
    code : Fused
        See `tapegrad.program.fuse.Fused`.
    signature : Signature
    """

    def __init__(self, program: Program) -> None:
        self.program, self.code = program.run.checked, program.run.fused
        assert program.signature is not None
        self.signature: Signature = program.signature

    @property
    def stages(self) -> Sequence[int]:
        """The number of blocks of each stage; empty if the code has none."""
        return () if self.code is None else self.code.stages


def ways_of(programs: Sequence[Program], what: str) -> list[Way]:
    """Return the machine code of the programs of one function, which differ in their guards.

    Parameters
    ----------
    programs : sequence of Program
    what : str
        What they are wanted for, in messages.

    Raises
    ------
    TypeError
        If there is none, if the programs take different arguments, or if an operation needs Python.
    """
    if not programs:
        raise TypeError(f"{what}: the function has no program yet; {_CALL_IT}")
    programs = [program.functional() for program in programs]
    for program in programs:
        if program.signature is None:
            raise TypeError(f"{what}: the program is a part of what a function does; take the one that was traced")
        reasons = list(python_operations(program))
        if reasons:
            raise TypeError(
                f"{what}: {program.signature.name} needs Python, as these operations have no machine code: "
                f"{'; '.join(dict.fromkeys(reasons))}. Compute them outside of it"
            )
    kinds = {_kind(program) for program in programs}
    if len(kinds) > 1:
        raise TypeError(
            f"{what}: the function has programs for {len(kinds)} kinds of arguments or results; trace one by "
            "Program.trace(), or compile the function anew for each"
        )
    return [Way(program) for program in programs]


def _kind(program: Program) -> Any:
    signature = program.signature
    assert signature is not None
    count = len(program.inputs) - len(signature.captured)
    numbers = *program.inputs[:count], *program.outputs
    layouts = [(program.layouts[number].shape, program.layouts[number].dtype) for number in numbers]
    return repr((signature.arguments, signature.result, layouts))


def python_operations(program: Program) -> Iterator[str]:
    """Yield the operations of a program that are computed in Python, with the reasons."""
    code = program.run.fused
    if code is None:
        yield program.run.refused
        return
    waiting: list[Any] = [code]
    count = len(code.stops)
    while waiting:
        code = waiting.pop()
        if isinstance(code, Stop):
            count -= 1
            yield f"{code.entry.op.name} ({code.reason})"
        elif isinstance(code, Driver):
            waiting += code.codes
    if count > 0:
        yield "operations in a loop"
