"""Inference mode marks results, by their layouts: its interceptor, and what it marks (compiled: `recording.marks`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tapegrad.modes import Interceptor, uninterrupted
from tapegrad.tape.layout import InferenceLayout, inference
from tapegrad.tape.versions import owner_of
from tapegrad.tensor import Tensor


class Marking:
    """An interceptor that marks what operations return.

    Attributes
    ----------
    outer : callable, optional
        The interceptor behind it. Where there is none, compiled code marks results without a call of this one.
    compute : callable
        Computes an op: `tapegrad.ops.table.gateway.compute`.
    """

    __slots__ = ("compute", "outer")

    def __init__(self, outer: Interceptor | None, compute: Callable[..., Any]) -> None:
        self.outer, self.compute = outer, compute

    def __call__(self, op: Any, bound: Any) -> Any:
        """Compute an op as it would be without this mode, and mark what it returns."""
        return mark(self.compute(op, bound)[0] if self.outer is None else self.outer(op, bound), *bound.operands)

    def around(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of an op, in compiled code where it has a plan, and mark what it returns.

        Returns NotImplemented if there is an outer interceptor, which wants to see the operation.
        """
        if self.outer is not None:
            return NotImplemented
        with uninterrupted():
            result = call(*args, **kwargs)
        return mark(result, *(args[0] if args and args[0].__class__ in (list, tuple) else args))


_detach: Final = Tensor.detach  # of Python: compiled code takes its place


@functools.wraps(_detach)
def detached(tensor: Tensor) -> Tensor:
    """Return the same memory without history, as a tensor of inference mode where the tensor is one."""
    result = _detach(tensor)
    if tensor._layout.__class__ is InferenceLayout:
        result._layout = inference(result._layout)
    return result


def mark(result: Any, *operands: Any) -> Any:
    """Mark the results of an operation, and return them. Recorded results, operands and views of them are normal."""
    for value in result if isinstance(result, tuple) else (result,):
        if (
            value.__class__ is Tensor
            and value._node is None
            and value._layout.__class__ is not InferenceLayout
            and not _is_of_normal(value, operands)
        ):
            value._layout = inference(value._layout)
    return result


def _is_of_normal(value: Tensor, operands: Sequence[Any]) -> bool:
    """Whether a tensor is an operand itself, or a view of a normal one."""
    data = value._data
    owner = owner_of(data) if data.__class__ is np.ndarray and data.base is not None else data
    for x in operands:
        own = x
        if isinstance(x, Tensor):
            if x is value:
                return True
            own = x._data if x._layout.__class__ is not InferenceLayout else None
        if own.__class__ is np.ndarray and owner_of(own) is owner:
            return True
    return False
