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
_OPERANDS = [[0.5, 2.0], [2.0, 2.0]]
_ARGUMENTS = ["tg.tensor([0.5, 2.0])", "tg.tensor([0.5, 2.0]), tg.tensor([2.0, 2.0])"]  # of one and of two operands


def elementwise_doc(op: Op, summary: str, formula: str) -> str:
    """Return the docstring of an op of one or two operands."""
    count = len(op.operands)
    operands = _operands_within(op)
    arguments = ", ".join([f"tg.tensor({values})" for values in operands]) if operands else _ARGUMENTS[count - 1]
    notes = f"\nNotes\n-----\nDerivative: {formula}\n" if formula else ""
    return (
        f"{summary}{_BINARY if count == 2 else _UNARY}{notes}\nExamples\n--------\n"
        f">>> import tapegrad as tg\n>>> tg.{op.name}({arguments})\n{OUTPUTS.get(op.name) or example_output(op)}"
    )


def example_output(op: Op) -> str:
    """Return what the example of an op prints."""
    known = op.forward.other if isinstance(op.forward, Function) else op.forward  # ours would be compiled now
    operands = _operands_within(op) or _OPERANDS[: len(op.operands)]
    return format_tensor((op.oracle or known)(*map(np.array, operands)))


def _operands_within(op: Op) -> list[list[float]]:
    """Return operands that lie in the domain of an op; none if the usual ones do."""
    low, high = op.domain
    if low <= 0.5 <= 2.0 <= high:
        return []
    return [[round(low + part * (high - low), 2) for part in (0.25, 0.75)] for _ in op.operands]
