"""Run a program one operation after the other, as an ordinary program: its operations are recorded as usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.ops.table.gateway import compute, constant
from tapegrad.ops.table.op import Bound
from tapegrad.program.program import Program
from tapegrad.tape.layout import layout_of
from tapegrad.tensor import Tensor


def replay(program: Program, inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[np.ndarray]]:
    """Compute the outputs of a program, and the values of its guards, by calling its operations.

    Parameters
    ----------
    program : Program
    inputs : sequence of Tensor
        Of the program's shapes and dtypes.
    """
    values: dict[int, Tensor] = dict(zip(program.inputs, inputs, strict=True))
    for number, data in program.constants.items():
        values[number] = constant(data, layout_of(data))
    last = _last_uses(program)
    for position, entry in enumerate(program.entries):
        bound = Bound(
            [values[number] for number in entry.operands],
            dict(entry.attrs),
            tuple([np.asarray(values[number]._data) for number in entry.index_arrays]),
        )
        result: Any = compute(entry.op, bound)[0]
        values.update(zip(entry.results, (result,) if isinstance(result, Tensor) else result, strict=True))
        for number in last.get(position, ()):
            del values[number]
    guards = [np.asarray(values[guard.value]._data) for guard in program.guards]
    return [values[number] for number in program.outputs], guards


def _last_uses(program: Program) -> dict[int, list[int]]:
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
