"""Gradients that one side refuses, because what it saved was written over: which refusals docs/semantics.md explains.

The program is changed so that the one side no longer saves what was written over for the reasons that the page names.
If it still refuses, there is another reason.
"""

from __future__ import annotations

import re
from typing import Any

#: What a message of a refusal says, on both sides.
WORDS = "modified by an inplace operation"

_SAVES_INPUT = r"\b(reciprocal|cross_entropy)\(|= [-\d.e]+ / v"  # and PyTorch saves the result
_NAME = r"\bv\d+\b"


def apart(x, target):  # type: ignore[no-untyped-def]  # tensors of PyTorch
    """Return a tensor, or a copy if it has the memory of another."""
    same = x.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    return x.clone() if same else x


def theirs(line: str) -> str:
    """Return a line without what PyTorch refuses and tapegrad does not: a write computes elsewhere, with copies."""
    if " = " in line:
        return line
    target, call = line.split(".", 1)
    call = re.sub(_NAME, lambda name: f"apart({name[0]}, {target})", call)
    if re.match(r"__setitem__|fill_|zero_|copy_", call):
        return f"{target}.{call}" if f"{target}.copy_({target})" != line else ""
    return f"{target}.copy_({target}.clone().{call})"


def copied(line: str, space: dict[str, Any]) -> str:
    """Return a line of PyTorch's, that just ran, without values that tapegrad does not save, or not as tensors.

    Those without dimensions are numbers, and of real numbers `sgn` saves nothing.
    """
    name, _, expression = line.partition(" = ")
    operands = [space[operand] for operand in re.findall(_NAME, expression)]
    result = space.get(name)
    if not hasattr(result, "_is_view") or result._is_view() or any(result is operand for operand in operands):
        return ""

    def copy(operand: re.Match[str]) -> str:
        return f"{operand[0]}.clone()" if not getattr(space[operand[0]], "ndim", 1) else operand[0]

    saved = re.search(_SAVES_INPUT + r"|\bsgn\(", line) or not result.ndim
    return f"{name} = ({re.sub(_NAME, copy, expression)}){'.clone()' if saved else ''}"


def ours(line: str) -> str:
    """Return a line without what tapegrad refuses and PyTorch does not."""
    if " = " not in line or not re.search(_SAVES_INPUT, line):
        return line
    name, expression = line.split(" = ", 1)
    return f"{name} = " + re.sub(_NAME, lambda operand: f"{operand[0]}.clone()", expression)
