"""Forward mode of whole functions, by the tangents of all ops that they call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad import modes
from tapegrad.autograd.jvp import Tangents, jvp
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op
from tapegrad.tensor import Tensor

__all__ = ["forward_mode"]


def forward_mode(
    function: Callable[..., Any], primals: Sequence[Tensor], tangents: Tangents
) -> tuple[Any, tuple[Tensor | None, ...]]:
    """Return what a function returns, and the tangent of each output; None stands for zeros.

    Tangents follow every op that the function calls. They do not follow detached tensors, NumPy arrays, writes in
    place and backward passes inside the function.
    """
    # Tensors are kept, so that no other gets the same id.
    known: dict[int, tuple[Tensor, Tensor | None]] = {
        id(primal): (primal, tangent) for primal, tangent in zip(primals, tangents, strict=True)
    }

    def tangent_of(value: Any) -> Tensor | None:
        return known[id(value)][1] if id(value) in known else None

    def dual(op: Op, bound: Bound) -> Any:
        out = compute(op, bound)[0]
        own = [
            None if op.rule(operand) is NOT_DIFFERENTIABLE else tangent_of(x)
            for operand, x in enumerate(bound.operands)
        ]
        if any(tangent is not None for tangent in own):
            results = out if isinstance(out, tuple) else (out,)
            if any(result._layout.floating for result in results):
                found = jvp(op, bound, out, own)
                for result, tangent in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
                    known[id(result)] = (result, tangent)
        return out

    with modes.intercept(dual):
        value = function(*primals)
    return value, tuple(map(tangent_of, value if isinstance(value, (tuple, list)) else (value,)))
