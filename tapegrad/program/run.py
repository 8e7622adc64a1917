"""How a program runs: as fused machine code, or operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from tapegrad.compiler.jit import JitError
from tapegrad.program import garbage
from tapegrad.program.entry import Input, Variant, make_entry
from tapegrad.program.fuse import Fused, Refused, fuse
from tapegrad.program.loops import Blocked, Staged, blocked, code_of, one_by_one
from tapegrad.program.program import Program
from tapegrad.program.refusals import with_refusals
from tapegrad.program.replay import Replay
from tapegrad.program.scan import Scan

_LONG: Final = 1 << 17  # bytes of inputs and outputs of a call in which other threads run


_codes: Final[WeakValueDictionary[Hashable, Fused | Blocked]] = WeakValueDictionary()


def _machine_code(program: Program, may_stop: bool) -> Fused | Staged | Blocked:
    """Return a program as machine code, which calls operations that are not fused if it `may_stop`."""
    program = Scan.lifted(program)
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


class Runner:
    """A way to run a program; call it with the arrays of its inputs.

    Parameters
    ----------
    program : Program
    otherwise : callable, optional
        What is called in place of machine code, if there is none, or it does not serve a call; default `Replay`.

    Attributes
    ----------
    checked : Program
        What its machine code computes: the program with a guard that no operation refuses its values.
    fused : Fused, or None
        Its machine code.
    refused : str
        Why there is none.
    """

    @garbage.kept()
    def __init__(self, program: Program, otherwise: Callable[..., Sequence[Any]] | None = None) -> None:
        self.program, self.checked = program, with_refusals(program)
        self.fused: Fused | Staged | Blocked | None = None
        self.refused = ""
        self._fixed: dict[tuple[bool, ...], list[int]] = {}
        self._layouts = [program.layouts[number] for number in program.inputs]
        variants = []
        try:
            self.fused = _machine_code(self.checked, otherwise is None)
            variants = [self.variant([Input(np.ndarray, layout) for layout in self._layouts], has_guards=False)]
        except (Refused, JitError) as error:
            self.fused, self.refused = None, str(error)
        self._entry = make_entry(otherwise or Replay(program), variants)[0]

    def variant(self, arguments: Sequence[Any], *, has_guards: bool = True, **options: Any) -> Variant:
        """Return the machine code, for a compiled entry.

        Parameters
        ----------
        arguments : sequence
            As of `Variant`.
        has_guards : bool
            The entry compares the guards; else their values are results behind the outputs.
        options
            Of `Variant`.
        """
        assert self.fused is not None
        program, guards = self.checked, self.checked.guards
        results = list(program.outputs)
        if not has_guards:
            count = len(self.program.guards)
            results, guards = [*results, *[guard.value for guard in guards[:count]]], guards[count:]
        outputs = [program.layouts[number] for number in results]
        nbytes = sum(layout.nbytes for layout in (*self._layouts, *outputs))
        return Variant(
            self.fused.address(),
            arguments,
            outputs,
            guards=[guard.outcome for guard in guards],
            scratch=self.fused.scratch_bytes,
            stages=() if isinstance(self.fused, Staged) else self.fused.stages,
            is_long=nbytes > _LONG,
            stops=self.fused.stops if self.fused.may_fail else None,
            **options,
        )

    def __call__(self, arrays: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the arrays of the outputs, and the values of the guards."""
        results = self._entry(*[np.ascontiguousarray(own) if np.ndim(own) else own for own in arrays])
        n_outputs = len(self.program.outputs)
        return results[:n_outputs], results[n_outputs:]

    def fixed(self, wanted: tuple[bool, ...]) -> list[int]:
        """Return the places of the outputs that no gradient reaches the wanted inputs from."""
        known = self._fixed.get(wanted)
        if known is None:
            inputs = [number for number, is_wanted in zip(self.program.inputs, wanted, strict=True) if is_wanted]
            smooth = self.program.differentiable(inputs)
            outputs = enumerate(self.program.outputs)
            known = self._fixed[wanted] = [place for place, number in outputs if number not in smooth]
        return known

    def explain(self) -> str:
        """Return how the program runs, and why."""
        count = len(self.program.entries)
        if self.fused is None:
            return f"{count} operations are not fused: {self.refused}"
        called = len(self.fused.stops)
        head = f"{count - called} operations are fused, {called} called" if called else f"{count} operations are fused"
        return "\n".join([head, *self.fused.explain()])

    def source(self) -> str:
        """Return the program as readable code."""
        return str(self.program) if self.fused is None else self.fused.source()
