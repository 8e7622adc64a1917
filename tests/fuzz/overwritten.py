"""Lines with copies: in place of what is saved, so that a write changes nothing of it, and of what a write reads.

A side that refuses gradients, as what it saved was written over, computes those of the program with copies. The other
side's gradients of the program itself are held against them.
"""

from __future__ import annotations

import re

#: What a message of a refusal says, on both sides.
WORDS = "modified by an inplace operation"

#: A value in a line.
NAME = r"\bv\d+\b"
#: Functions of which tapegrad saves other operands or results than PyTorch does, as docs/understand/semantics.md says.
_SAVES_OTHERS = (
    r"\b(reciprocal|div|divide|true_divide|pow|prod|logsumexp|sgn|erfinv|ndtri|gaussian_nll_loss|hinge_embedding_loss|"
    r"tanhshrink|mse_loss|nll_loss|(linear_)?cross_entropy|matmul|linear|einsum|ldexp)"
    r"\(| / | @ |\*\*|conv2d\(.*'same'"
)


def operands(expression: str) -> list[str]:
    """Return the names of values in an expression."""
    return re.findall(NAME, expression)


def written_elsewhere(line: str) -> str:
    """Return a line of PyTorch's in which a write reads copies only, and saves a result that is not written to."""
    if " = " in line:
        return line
    target, call = line.split(".", 1)
    call = re.sub(NAME, r"\g<0>.clone()", call)  # what it reads, or saves, is not what a write writes to
    if re.match(r"__setitem__|fill_|zero_|copy_", call):
        return f"{target}.{call}" if f"{target}.copy_({target})" != line else ""
    return f"{target}.copy_({target}.clone().{call})"


def saves_others(line: str) -> bool:
    """Whether tapegrad saves other operands or results of a call than PyTorch does."""
    return bool(re.search(_SAVES_OTHERS, line))


def replaced(line: str, by: str) -> str:
    """Return a line with another expression, of the operand as ``{}``, in place of each operand."""
    name, _, expression = line.partition(" = ")
    return f"{name} = {re.sub(NAME, lambda operand: by.format(operand[0]), expression)}"


def copied(line: str) -> str:
    """Return a line whose operands and result are copied."""
    name, _, expression = replaced(line, "copy_of({})").partition(" = ")
    return f"{name} = copy_of({expression})"


def in_double(line: str) -> str:
    """Return a line in double precision, in which what is left of a difference does not come from rounding."""
    return line.replace("float32", "float64").replace("complex64", "complex128").replace("float()", "double()")
