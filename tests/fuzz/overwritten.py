"""Gradients that one side refuses, because what it saved was written over: which refusals docs/semantics.md explains.

The program is changed so that the side that refused saves nothing that is written over for the reasons that the page
names. If it still refuses, there is another reason.
"""

from __future__ import annotations

import re
from typing import Any

#: What a message of a refusal says, on both sides.
WORDS = "modified by an inplace operation"

_NAME = r"\bv\d+\b"
#: Functions of whose operands and results the two sides save others.
_SAVES_OTHERS = (
    r"\b(reciprocal|div|divide|true_divide|pow|prod|logsumexp|sgn|mse_loss|nll_loss|cross_entropy)\(| / |\*\*"
)


def apart(x, target):  # type: ignore[no-untyped-def]  # tensors of PyTorch
    """Return a tensor, or a copy if it has the memory of another."""
    same = x.untyped_storage().data_ptr() == target.untyped_storage().data_ptr()
    return x.clone() if same else x


def written_elsewhere(line: str) -> str:
    """Return a line of PyTorch's in which a write reads copies only, and saves a result that is not written to."""
    if " = " in line:
        return line
    target, call = line.split(".", 1)
    call = re.sub(_NAME, lambda name: f"apart({name[0]}, {target})", call)
    if re.match(r"__setitem__|fill_|zero_|copy_", call):
        return f"{target}.{call}" if f"{target}.copy_({target})" != line else ""
    return f"{target}.copy_({target}.clone().{call})"


def copied(line: str, space: dict[str, Any], numbers: bool) -> str:
    """Return a line that just ran, with copies in place of what only one side saves; "" if there is nothing.

    `numbers` says that this side saves tensors without dimensions, or without elements, as it does others. Here the one
    are numbers, which nothing is written to, and of the others nothing can be written over.
    """
    name, _, expression = line.partition(" = ")
    result = space.get(name)
    operands = {operand: space[operand] for operand in re.findall(_NAME, expression)}
    if not hasattr(result, "requires_grad") or any(result is operand for operand in operands.values()):
        return ""
    if numbers and result._is_view():
        return ""
    every = bool(re.search(_SAVES_OTHERS, line))

    def is_copied(value: Any) -> bool:
        return hasattr(value, "requires_grad") and (every or (numbers and (not value.ndim or not value.numel())))

    copies = [operand for operand, value in operands.items() if is_copied(value)]
    expression = re.sub(_NAME, lambda name: f"{name[0]}.clone()" if name[0] in copies else name[0], expression)
    return f"{name} = ({expression}){'.clone()' if is_copied(result) else ''}"
