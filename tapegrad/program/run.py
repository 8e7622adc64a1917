"""How a program runs: as fused machine code, or operation by operation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tapegrad.compiler import ahead, drafts
from tapegrad.compiler.jit import JitError
from tapegrad.modes import is_grad_enabled
from tapegrad.program.entry import Input, Variant, make_entry
from tapegrad.program.machine_code import Refused
from tapegrad.program.program import Program
from tapegrad.program.refusals import with_refusals
from tapegrad.program.remembered import Remembered, digest_of, remember, remembered
from tapegrad.program.replay import Replay
from tapegrad.runtime import garbage
from tapegrad.tensor import Tensor

if TYPE_CHECKING:
    from tapegrad.program.lowered import Code

_LONG: Final = 1 << 17  # bytes of inputs and outputs of a call in which other threads run


def _known_code(program: Program, may_stop: bool) -> Code | Remembered:
    """Return the machine code of a program, if possible without lowering it again."""
    kind = may_stop if program.limit is None else (may_stop, program.limit)
    digest = digest_of(program, kind)
    found = remembered(digest)
    if isinstance(found, str):
        raise Refused(found)
    if found is not None:
        return found
    try:
        with ahead.making():
            code = _lowered(program, may_stop)
            code.address()  # now it can be found by others
    except Refused as error:
        remember(digest, str(error))
        raise
    remember(digest, code)
    return code


def _lowered(program: Program, may_stop: bool) -> Code:
    from tapegrad.program.lowered import machine_code  # at call time: it imports all that makes machine code

    return machine_code(program, may_stop)


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
    code : Fused, Remembered, or None
        Its machine code.
    refused : str
        Why there is none.
    pullbacks : dict
        The programs of its derivative, by the inputs that are wanted and the outputs that have cotangents: see
        `tapegrad.program.derivative`.
    """

    @drafts.held()
    @garbage.kept()
    def __init__(self, program: Program, otherwise: Callable[..., Sequence[Any]] | None = None) -> None:
        self.program, self.checked = program, with_refusals(program)
        self.checked.limit = program.limit
        self.code: Code | Remembered | None = None
        self.refused, self._may_stop = "", otherwise is None
        self._fixed: dict[tuple[bool, ...], list[int]] = {}
        self._reached: dict[tuple[bool, ...], tuple[bool, ...]] = {}
        self._layouts = [program.layouts[number] for number in program.inputs]
        variants = []
        try:
            self.code = _known_code(self.checked, self._may_stop)
            variants = [self.variant([Input(np.ndarray, layout) for layout in self._layouts], has_guards=False)]
        except (Refused, JitError) as error:
            self.code, self.refused = None, str(error)
        self.pullbacks: dict[tuple[tuple[bool, ...], ...], Any] = {}
        self._entries_of_tensors: dict[tuple[Any, ...], Callable[..., Any]] = {}  # by classes and wanted gradients
        self._otherwise = otherwise or Replay(program)
        for own in (program, self.checked):
            own.forget()
        self._entry = make_entry(self._of_any_layout, variants)[0]

    @functools.cached_property
    def _made(self) -> Code:
        return _lowered(self.checked, self._may_stop)

    @property
    def fused(self) -> Code | None:
        """Its machine code, with all that can be read of it: what was remembered is lowered again."""
        return self._made if isinstance(self.code, Remembered) else self.code

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
        assert self.code is not None
        program, guards = self.checked, self.checked.guards
        results = list(program.outputs)
        if not has_guards:
            count = len(self.program.guards)
            results, guards = [*results, *[guard.value for guard in guards[:count]]], guards[count:]
        outputs = [program.layouts[number] for number in results]
        nbytes = sum(layout.nbytes for layout in (*self._layouts, *outputs))
        return Variant(
            self.code.address(),
            arguments,
            outputs,
            guards=[guard.outcome for guard in guards],
            scratch=self.code.scratch_bytes,
            stages=self.code.stages,
            is_long=nbytes > _LONG,
            stops=self.code.stops if self.code.may_fail else None,
            **options,
        )

    def __call__(self, arrays: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the arrays of the outputs, and the values of the guards."""
        results = self._entry(*arrays)
        n_outputs = len(self.program.outputs)
        return results[:n_outputs], results[n_outputs:]

    def of_tensors(self, tensors: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
        """Return the outputs for tensors, as tensors, recorded if the mode and a tensor ask for it.

        Return None if tensors are of other layouts than the program's inputs.
        """
        wanted = tuple([own.requires_grad for own in tensors]) if is_grad_enabled() else ()
        key = *map(type, tensors), *wanted
        entry = self._entries_of_tensors.get(key)
        if entry is None:
            entry = self._entries_of_tensors[key] = self._entry_of_tensors(tensors, wanted)
        found: tuple[Tensor, ...] | None = entry(*tensors)
        return found

    def _entry_of_tensors(self, tensors: Sequence[Tensor], wanted: tuple[bool, ...]) -> Callable[..., Any]:
        from tapegrad.program.call_entries import plans_of_calls  # at call time: its rules are programs, which run

        kinds = zip(map(type, tensors), self._layouts, wanted or [False] * len(tensors), strict=True)
        arguments = [Input(kind, layout.tracked if is_wanted else layout) for kind, layout, is_wanted in kinds]
        plan, parts = plans_of_calls(self.program, arguments)
        return make_entry(lambda *_: None, [self.variant(arguments, as_tensors=True, plan=plan, parts=parts)])[0]

    def _of_any_layout(self, *arrays: Any) -> Any:
        """Call the entry with arrays that stand row by row, or what serves what it does not."""
        rows = [np.ascontiguousarray(own) if np.ndim(own) else own for own in arrays]
        are_same = all(map(operator.is_, rows, arrays))
        return self._otherwise(*rows) if are_same else self._entry(*rows)

    def reached(self, wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return for each input whether it is wanted, and gradients reach it: others are no operands of an entry."""
        known = self._reached.get(wanted)
        if known is None:
            known = self._reached[wanted] = self.program.reached(wanted, [True] * len(self.program.outputs))
        return known

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
        count, fused = len(self.program.entries), self.fused
        if fused is None:
            return f"{count} operations are not fused: {self.refused}"
        return "\n".join([fused.counts(count), *fused.explain()])

    def source(self) -> str:
        """Return the program as readable code."""
        fused = self.fused
        return str(self.program) if fused is None else fused.source()
