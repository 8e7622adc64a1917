"""Run a program one operation after the other, as an ordinary program: its operations are recorded as usual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.modes import is_grad_enabled, no_grad
from tapegrad.ops.table.gateway import apply, constant, forward, raw_data
from tapegrad.ops.table.index_values import index_values
from tapegrad.ops.table.op import Bound, Op
from tapegrad.program.program import Program
from tapegrad.runtime.locks import module_lock
from tapegrad.runtime.named_tuples import NamedTuple
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor


def replay(
    program: Program, inputs: Sequence[Tensor], call: Callable[[Op, Bound], Any] = apply
) -> tuple[list[Tensor], list[np.ndarray]]:
    """Compute the outputs of a program, and the values of its guards, by calling its operations.

    Parameters
    ----------
    program : Program
    inputs : sequence of Tensor
        Of the program's shapes and dtypes.
    call : callable
        Computes an operation.
    """
    values: dict[int, Tensor] = dict(zip(program.inputs, inputs, strict=True))
    for number, data in program.constants.items():
        values[number] = constant(data, layout_of(data))
    last, is_recorded = last_uses(program), is_grad_enabled()
    for position, entry in enumerate(program.entries):
        bound = Bound(
            [values[number] for number in entry.operands],
            dict(entry.attrs),
            tuple([index_values(values[number]) for number in entry.index_arrays]),
        )
        if entry.records or not is_recorded:
            result: Any = call(entry.op, bound)
        else:
            with no_grad():
                result = call(entry.op, bound)
        values.update(zip(entry.results, (result,) if isinstance(result, Tensor) else result, strict=True))
        for number in last.get(position, ()):
            del values[number]
    guards = [np.asarray(raw_data(values[guard.value])) for guard in program.guards]
    return [values[number] for number in program.outputs], guards


class _Step(NamedTuple):
    """One operation on arrays: its forward, where its operands and results stand, and what nobody uses afterwards."""

    compute: Callable[..., Any]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    dead: list[int]


class Replay:
    """Runs a program on arrays, one operation after the other, without tensors and without recording.

    The first call finds the forward of each operation for its layouts; layouts are the same in all calls.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._steps: list[_Step] = []
        self._values: list[Any] = [None] * len(program.layouts)
        for number, data in program.constants.items():
            self._values[number] = data
        self._results = (*program.outputs, *[guard.value for guard in program.guards])
        self._given = {*program.inputs, *program.constants}
        self._lock = module_lock()

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        """Return the outputs, followed by the values of guards: arrays of their own."""
        values = self._values.copy()
        for number, array in zip(self.program.inputs, arrays, strict=True):
            values[number] = np.asarray(array, order="C")  # as the layouts say, in the first call and in all later ones
        with self._lock:
            if len(self._steps) < len(self.program.entries):
                self._steps = self._found(values.copy())
        for compute_step, operands, results, dead in self._steps:
            out = compute_step(*[values[number] for number in operands])
            if len(results) == 1:
                values[results[0]] = out
            else:
                for number, value in zip(results, out, strict=True):
                    values[number] = value
            for number in dead:
                values[number] = None
        return tuple([self._own(number, values[number]) for number in self._results])

    def _own(self, number: int, value: Any) -> Any:
        is_view = isinstance(value, np.ndarray) and value.base is not None
        return np.array(value) if is_view or number in self._given else value

    def _found(self, values: list[Any]) -> list[_Step]:
        """Return the steps, by computing them once."""
        steps, last = [], last_uses(self.program)
        for position, entry in enumerate(self.program.entries):
            operands = [constant(values[number], layout_of(values[number])) for number in entry.operands]
            arrays = tuple([np.asarray(values[number]) for number in entry.index_arrays])
            bound = Bound(operands, dict(entry.attrs), arrays)
            plan, out, _ = forward(entry.op, bound, tuple([own._layout for own in operands]))
            for number, value in zip(entry.results, (out,) if len(entry.results) == 1 else out, strict=True):
                values[number] = value
            steps.append(
                _Step(plan.forward, (*entry.operands, *entry.index_arrays), entry.results, last.get(position, []))
            )
        return steps


def last_uses(program: Program) -> dict[int, list[int]]:
    """Return the values that are not used after an entry, by the entry's position."""
    kept = {*program.outputs, *(guard.value for guard in program.guards)}
    last: dict[int, list[int]] = {}
    for position in range(len(program.entries) - 1, -1, -1):
        entry = program.entries[position]
        for number in (*entry.operands, *entry.index_arrays, *entry.results):
            if number not in kept:
                kept.add(number)
                last.setdefault(position, []).append(number)
    return last
