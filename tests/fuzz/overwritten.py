"""Gradients that one side refuses, because what it saved was written over: which refusals docs/semantics.md explains.

The program is changed so that the one side no longer saves what was written over for the reasons that the page names.
If it still refuses, there is another reason.
"""

from __future__ import annotations

import re

#: What a message of a refusal says, on both sides.
WORDS = "modified by an inplace operation"

_SAVES_INPUT = r"\b(reciprocal|cross_entropy)\("  # and PyTorch saves the result
_NAME = r"\bv\d+\b"


def apart(x, target):  # type: ignore[no-untyped-def]  # tensors of PyTorch
    """Return a tensor, or a copy if it has the memory of another."""
    same = x.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    return x.clone() if same else x


def theirs(line: str) -> str:
    """Return a line without what PyTorch refuses and tapegrad does not: it copies what a write needs of old values."""
    if " = " in line:
        return f"{line}.clone()" if re.search(_SAVES_INPUT, line) else line
    target, call = line.split(".", 1)
    if call.startswith("reciprocal_"):
        return f"{target}.copy_({target}.reciprocal())"
    return f"{target}." + re.sub(_NAME, lambda name: f"apart({name[0]}, {target})", call)


def ours(line: str) -> str:
    """Return a line without what tapegrad refuses and PyTorch does not."""
    if " = " not in line or not re.search(_SAVES_INPUT, line):
        return line
    name, expression = line.split(" = ", 1)
    return f"{name} = " + re.sub(_NAME, lambda operand: f"{operand[0]}.clone()", expression)
