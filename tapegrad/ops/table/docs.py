"""The docstrings of elementwise ops: the family's part, the op's sentence and formula, and an example.

What the examples print is looked up in `tapegrad.ops.table.outputs`, which `tools/stubs.py` writes: to compute it at
import would take longer than all else that an op needs. For an op that does not stand there yet it is computed.
"""

from __future__ import annotations

import numpy as np

from tapegrad.forward.ufuncs import Function
from tapegrad.ops.table.op import Op
from tapegrad.ops.table.outputs import OUTPUTS
from tapegrad.printing import format_tensor

_UNARY = """

Parameters
----------
input : Tensor, array or number

Returns
-------
Tensor
    Of the operand's shape.

Raises
------
TypeError
    If the operand is no tensor, array or number.
"""
_BINARY = """

Parameters
----------
input, other : Tensor, array or number

Returns
-------
Tensor
    Of the shape that the operands broadcast to.

Raises
------
RuntimeError
    If the shapes do not broadcast.
TypeError
    If an operand is no tensor, array or number.
"""
_EXAMPLE_OPERANDS = ([0.5, 2.0], [2.0, 2.0])


def elementwise_doc(op: Op, summary: str, formula: str) -> str:
    """Return the docstring of an op of one or two operands."""
    arguments = ", ".join([f"tg.tensor({values})" for values in _example_operands(op)])
    notes = f"\nNotes\n-----\nDerivative: {formula}\n" if formula else ""
    return (
        f"{summary}{_BINARY if len(op.operands) == 2 else _UNARY}{notes}\nExamples\n--------\n"
        f">>> import tapegrad as tg\n>>> tg.{op.name}({arguments})\n{OUTPUTS.get(op.name) or example_output(op)}"
    )


def example_output(op: Op) -> str:
    """Return what the example of an op prints."""
    known = op.forward.other if isinstance(op.forward, Function) else op.forward  # ours would be compiled now
    return format_tensor((op.oracle or known)(*map(np.array, _example_operands(op))))


def _example_operands(op: Op) -> list[list[float]]:
    operands = list(_EXAMPLE_OPERANDS[: len(op.operands)])
    low, high = op.domain
    if low <= 0.5 <= 2.0 <= high:
        return operands
    return [[round(low + part * (high - low), 2) for part in (0.25, 0.75)] for _ in operands]
