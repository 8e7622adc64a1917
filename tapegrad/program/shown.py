"""Programs for readers."""

from __future__ import annotations

import numpy as np

from tapegrad.program.program import Program

__all__ = ["lines_of"]


def lines_of(program: Program) -> list[str]:
    """Return the lines that `print` shows; `Program.text` has all of a program."""
    names = {number: f"in{position}" for position, number in enumerate(program.inputs)}
    for number, value in program.constants.items():
        names[number] = repr(value) if not isinstance(value, np.ndarray) else f"const{list(value.shape)}"
    count = 0
    lines = []
    for entry in program.entries:
        for result in entry.results:
            names[result] = f"%{count}"
            count += 1
        left = ", ".join(f"{names[result]}: {program.layouts[result]}" for result in entry.results)
        values = [names[number] for number in (*entry.operands, *entry.index_arrays)]
        attrs = [f"{name}={value!r}" for name, value in entry.attrs.items()]
        lines.append(f"{left} = {entry.op.name}({', '.join([*values, *attrs])})")
    lines += [f"guard {names[guard.value]} == {guard.outcome!r}  # {guard.where}" for guard in program.guards]
    inputs = ", ".join(f"{names[number]}: {program.layouts[number]}" for number in program.inputs)
    outputs = ", ".join(names[number] for number in program.outputs)
    return [f"program({inputs})", *(f"    {line}" for line in lines), f"    return {outputs}"]
