"""Operators and methods of Tensor: one table of the functions that they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import ops
from tapegrad.autograd.methods import backward
from tapegrad.ops import casts, creation, history, inplace, logic, protocol, setitem
from tapegrad.ops.arithmetic import add, div, eq, ge, gt, le, lt, mul, ne, neg, pow, sub
from tapegrad.ops.complex import adjoint
from tapegrad.ops.indexing import getitem
from tapegrad.ops.table import public
from tapegrad.recording.plan_cache import PlanCache
from tapegrad.tensor import Tensor

Binary = Callable[[Any, Any], Tensor]


def _reflected(function: Binary) -> Binary:
    def call(self: Tensor, other: Any) -> Tensor:
        return function(other, self)

    call.__doc__ = function.__doc__
    call.op, call.is_reversed = function.op, True  # type: ignore[attr-defined]
    return call


def _comparison(function: Binary) -> Binary:
    def call(self: Tensor, other: Any) -> Any:
        if isinstance(other, (Tensor, np.ndarray, np.generic, int, float, complex)):
            return function(self, other)
        return NotImplemented  # so that tensor == None is False, as for every object

    call.__doc__ = function.__doc__
    return call


# Properties ----------------------------------------------------------------------------------------------------------

_IN_REVERSE = [tuple(range(ndim - 1, -1, -1)) for ndim in range(65)]


def _transposed(self: Tensor) -> Tensor:
    """Return the tensor with its dimensions in reverse order, as a view."""
    return ops.permute(self, _IN_REVERSE[self._layout.ndim])


def _of_matrices(name: str, function: Callable[[Tensor], Tensor], most: int, doc: str) -> property:
    """Return the property that is a function of matrices; of a tensor without dimensions it transposes nothing."""

    def getter(self: Tensor) -> Tensor:
        if self.ndim == 0:
            warnings.warn(
                f"Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases.",
                UserWarning,
                stacklevel=2,
            )
            return ops.conj(self) if "H" in name else self
        if not 2 <= self.ndim <= most:
            which = "matrices (2-D tensors)" if most == 2 else "matrices or batches of matrices"
            raise RuntimeError(
                f"tensor.{name} is only supported on {which}. Got {self.ndim}-D tensor; "
                f"use {'unsqueeze()' if self.ndim < 2 else 'mH'}"
            )
        return function(self)

    return property(getter, doc=doc)


PROPERTIES = {
    "T": property(_transposed),
    "mT": _of_matrices("mT", lambda x: ops.transpose(x, -2, -1), 64, "The matrices, transposed, as a view."),
    "H": _of_matrices("H", adjoint, 2, "The conjugate of the matrix, transposed."),
    "mH": _of_matrices("mH", adjoint, 64, "The conjugates of the matrices, transposed."),
    "real": property(ops.real, doc="The real part; of real numbers, the tensor itself."),
    "imag": property(ops.imag, doc="The imaginary part; real numbers have none."),
}

OPERATORS: dict[str, Any] = {
    "__add__": add, "__radd__": add, "__iadd__": inplace.iadd,
    "__sub__": sub, "__rsub__": _reflected(sub), "__isub__": inplace.isub,
    "__mul__": mul, "__rmul__": mul, "__imul__": inplace.imul,
    "__truediv__": div, "__rtruediv__": _reflected(div), "__itruediv__": inplace.idiv,
    "__pow__": pow, "__rpow__": _reflected(pow), "__ipow__": inplace.ipow,
    "__neg__": neg, "__pos__": ops.positive, "__abs__": ops.abs,
    "__matmul__": ops.matmul, "__rmatmul__": _reflected(ops.matmul),
    "__eq__": _comparison(eq), "__ne__": _comparison(ne),
    "__lt__": _comparison(lt), "__le__": _comparison(le), "__gt__": _comparison(gt), "__ge__": _comparison(ge),
    "__and__": logic.bitwise_and, "__rand__": logic.bitwise_and,
    "__or__": logic.bitwise_or, "__ror__": logic.bitwise_or,
    "__xor__": logic.bitwise_xor, "__rxor__": logic.bitwise_xor,
    "__invert__": logic.bitwise_not,
    "__getitem__": getitem, "__setitem__": setitem.setitem,
    "__array_ufunc__": protocol.array_ufunc, "__array_function__": protocol.array_function,
}  # fmt: skip


# Methods that Tensor's own file cannot have, because theirs import it.
METHODS: dict[str, Any] = {
    "__init__": creation.init,
    "requires_grad_": creation.requires_grad_,
    "backward": backward,
    "_renew": history.renew,
}


def methods() -> dict[str, Callable[..., Any]]:
    """Return the methods of Tensor that other files define, by their names."""
    return {**METHODS, **public.methods(), **casts.CONVERSIONS, **inplace.methods()}


def install() -> None:
    """Give Tensor its operators and methods."""
    for name, function in OPERATORS.items():
        setattr(Tensor, name, function)
        plans = getattr(getattr(function, "op", None), "plans", None)
        if isinstance(plans, PlanCache) and hasattr(plans, "call"):
            plans.operators[name] = hasattr(function, "is_reversed")
    for name, attribute in {**methods(), **PROPERTIES}.items():  # real and imag are functions and properties
        setattr(Tensor, name, attribute)
