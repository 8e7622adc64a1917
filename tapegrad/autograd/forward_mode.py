"""Forward mode of whole functions, by the tangents of all ops that they call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad import modes
from tapegrad.autograd.jvp import Tangents, jvp
from tapegrad.ops.table.gateway import compute
from tapegrad.ops.table.op import NOT_DIFFERENTIABLE, Bound, Op
from tapegrad.tape import versions
from tapegrad.tensor import Tensor

__all__ = ["Duals", "forward_mode"]


class Duals:
    """The tensors that have a tangent. As an interceptor (see `modes.intercept`) it follows tangents through ops.

    It does not keep tensors alive: a tensor that dies takes its tangent with it.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Tensor, int]] = {}

    def note(self, tensor: Tensor, tangent: Tensor) -> None:
        """Let a tensor have a tangent."""
        key = id(tensor)
        version = versions.version(tensor._data)
        self._known[key] = weakref.ref(tensor, lambda _: self._known.pop(key, None)), tangent, version

    def tangent_of(self, value: Any) -> Tensor | None:
        """Return a tensor's tangent, None if it has none.

        Raises
        ------
        RuntimeError
            If the tensor was written to since it has its tangent, which the write did not change.
        """
        known = self._known.get(id(value))
        if known is None:
            return None
        _, tangent, version = known
        if versions.version(value._data) != version:
            raise RuntimeError(
                "a tensor with a tangent has been modified by an inplace operation, which forward mode does not "
                "follow; write x = x * y instead of x *= y"
            )
        return tangent

    def __call__(self, op: Op, bound: Bound) -> Any:
        """Compute an op, and the tangents of its results."""
        out = compute(op, bound)[0]
        own = [
            None if op.rule(operand) is NOT_DIFFERENTIABLE else self.tangent_of(x)
            for operand, x in enumerate(bound.operands)
        ]
        if any(tangent is not None for tangent in own):
            results = out if isinstance(out, tuple) else (out,)
            if any(result._layout.floating for result in results):
                found = jvp(op, bound, out, own)
                for result, tangent in zip(results, found if isinstance(found, tuple) else (found,), strict=True):
                    if tangent is not None:
                        self.note(result, tangent)
        return out


def forward_mode(
    function: Callable[..., Any], primals: Sequence[Tensor], tangents: Tangents
) -> tuple[Any, tuple[Tensor | None, ...]]:
    """Return what a function returns, and the tangent of each output; None stands for zeros.

    Tangents follow every op that the function calls. They do not follow detached tensors, NumPy arrays, writes in
    place and backward passes inside the function.
    """
    duals = Duals()
    for primal, tangent in zip(primals, tangents, strict=True):
        if tangent is not None:
            duals.note(primal, tangent)
    with modes.intercept(duals):
        value = function(*primals)
    return value, tuple(map(duals.tangent_of, value if isinstance(value, (tuple, list)) else (value,)))
