"""Elementwise programs on arrays of one shape are programs on vectors."""

from __future__ import annotations

import math

import numpy as np

from tapegrad.program.program import Program
from tapegrad.tape.layout import contiguous_layout

__all__ = ["on_vectors"]


def on_vectors(program: Program) -> Program:
    """Return an elementwise program on vectors, if its arrays have several dimensions; else the program itself."""
    if not all(entry.op.is_elementwise or entry.op.name == "cast" for entry in program.entries):
        return program
    used = {number for entry in program.entries for number in (*entry.operands, *entry.results)}
    used.update(program.inputs, program.outputs, [guard.value for guard in program.guards])
    shapes = {program.layouts[number].shape for number in used} - {()}
    if len(shapes) != 1 or len(max(shapes)) < 2:
        return program
    layouts = [
        contiguous_layout((math.prod(layout.shape),), layout.dtype) if layout.shape else layout
        for layout in program.layouts
    ]
    constants = {
        number: value.reshape(-1) if isinstance(value, np.ndarray) and value.ndim else value
        for number, value in program.constants.items()
    }
    return Program(layouts, program.inputs, constants, program.entries, program.outputs, program.guards)
