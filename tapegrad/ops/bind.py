"""Operators and methods of Tensor: one table of the functions that they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tapegrad.autograd.methods import backward
from tapegrad.forward.written import writer
from tapegrad.ops import casts, creation, history, inplace, logic, setitem
from tapegrad.ops.arithmetic import abs, add, div, eq, ge, gt, le, lt, mul, ne, neg, pow, sub
from tapegrad.ops.broadcasting import flip
from tapegrad.ops.indexing import getitem
from tapegrad.ops.linalg import matmul
from tapegrad.ops.rounding import floor_divide, remainder
from tapegrad.ops.table import public
from tapegrad.ops.table.loading import Later
from tapegrad.recording.native import as_method
from tapegrad.recording.plan_cache import OPERANDS, PlanCache, as_operator
from tapegrad.tensor import Tensor

Binary = Callable[[Any, Any], Tensor]


def _swapped(function: Binary) -> Binary:
    def call(self: Tensor, other: Any) -> Tensor:
        return function(other, self)

    call.__doc__ = function.__doc__
    return call


def _reflected(function: Binary) -> Binary:
    call = _swapped(function)
    call.op, call.is_reversed = function.op, True  # type: ignore[attr-defined]
    return call


def _divmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """Return quotients rounded down, and remainders."""
    return floor_divide(self, other), remainder(self, other)


def _rdivmod(self: Tensor, other: Any) -> tuple[Tensor, Tensor]:
    """Return the same of another value divided by this one."""
    return OPERATORS["__rfloordiv__"](self, other), OPERATORS["__rmod__"](self, other)


def _contains(self: Tensor, value: Any) -> bool:
    """Whether an element equals a value."""
    if not isinstance(value, OPERANDS):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")
    return bool(eq(self, value).any())


def _reversed(self: Tensor) -> Any:  # Python asks for an iterator
    """Return the items in reverse."""
    return flip(self, 0) if self.ndim else self


def _invert(self: Tensor) -> Tensor:
    """Return `bitwise_not`."""
    if self.dtype.kind not in "biu":
        raise TypeError(
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, not on dtype {self.dtype}"
        )
    return logic.bitwise_not(self)


def _comparison(function: Binary) -> Binary:
    def call(self: Tensor, other: Any) -> Any:
        if isinstance(other, OPERANDS):
            return function(self, other)
        return NotImplemented  # so that tensor == None is False, as for every object

    call.__doc__ = function.__doc__
    return call


OPERATORS: dict[str, Any] = {
    "__add__": add, "__radd__": add, "__iadd__": inplace.iadd,
    "__sub__": sub, "__rsub__": _reflected(sub), "__isub__": inplace.isub,
    "__mul__": mul, "__rmul__": mul, "__imul__": inplace.imul,
    "__truediv__": div, "__rtruediv__": _reflected(div), "__itruediv__": inplace.idiv,
    "__mod__": remainder, "__rmod__": _reflected(remainder), "__imod__": inplace.imod,
    "__floordiv__": floor_divide, "__rfloordiv__": _reflected(floor_divide), "__ifloordiv__": inplace.ifloordiv,
    "__divmod__": _divmod, "__rdivmod__": _rdivmod,
    "__pow__": pow, "__rpow__": _reflected(pow), "__ipow__": inplace.ipow,
    "__neg__": neg, "__abs__": abs,
    "__matmul__": matmul, "__rmatmul__": _reflected(matmul),
    "__eq__": _comparison(eq), "__ne__": _comparison(ne),
    "__lt__": _comparison(lt), "__le__": _comparison(le), "__gt__": _comparison(gt), "__ge__": _comparison(ge),
    "__and__": logic.bitwise_and, "__rand__": logic.bitwise_and,
    "__or__": logic.bitwise_or, "__ror__": logic.bitwise_or,
    "__xor__": logic.bitwise_xor, "__rxor__": logic.bitwise_xor,
    "__invert__": _invert,
    "__lshift__": logic.bitwise_left_shift, "__rlshift__": _swapped(logic.bitwise_left_shift),
    "__rshift__": logic.bitwise_right_shift, "__rrshift__": _swapped(logic.bitwise_right_shift),
    "__contains__": _contains, "__reversed__": _reversed,
    "__getitem__": getitem, "__setitem__": setitem.setitem,
}  # fmt: skip


# Operators that leave values which are no operands to the classes of these; writes and comparisons do so themselves.
LEAVE_OTHERS = [name for name in OPERATORS if name.startswith("__r") or f"__r{name[2:]}" in OPERATORS]

# Methods that Tensor's own file cannot have, because theirs import it.
OWN: dict[str, Any] = {
    "__init__": creation.init,
    "requires_grad_": creation.requires_grad_,
    "backward": backward,
    "_renew": history.renew,
}


def _array_ufunc() -> Callable[..., Any]:
    from tapegrad.ops.numpy_ufuncs import array_ufunc

    return array_ufunc


def _array_function() -> Callable[..., Any]:
    from tapegrad.ops.protocol import array_function

    return array_function


def _function(place: str, name: str) -> Callable[..., Any]:
    one = public.find(place, name)
    assert one is not None
    return one.method() if place in (public.METHODS, public.WRITES) else one.function


def _writing(name: str) -> Callable[..., Any]:
    return inplace.in_place(_function(public.WRITES, name), name)


def _property(name: str) -> property:
    function = _function(public.PROPERTIES, name)

    def write(self: Tensor, value: Any) -> None:
        setitem.setitem(function(self), ..., value)

    return property(function, write if name in ("real", "imag") else None)


def _numba_type() -> property:
    from tapegrad.ops.jitted import numba_type

    return numba_type()


def makers() -> dict[str, Callable[[], Any]]:
    """Return what makes each attribute of Tensor that is made when it is first used, by their names."""
    return {
        "__pos__": partial(_function, public.TOP, "positive"),
        "__array_ufunc__": _array_ufunc, "__array_function__": _array_function,
        **{name: partial(_function, public.METHODS, name) for name in public.names_in(public.METHODS)},
        **{f"{name}_": partial(_writing, name) for name in public.names_in(public.WRITES)},
        **{name: partial(_property, name) for name in public.names_in(public.PROPERTIES)},
    }  # fmt: skip


def attributes() -> dict[str, Any]:
    """Return the operators, methods and properties of Tensor that other files define, all of them made."""
    made = {name: make() for name, make in makers().items()}
    return {**OPERATORS, **made, **OWN, **casts.CONVERSIONS, **inplace.METHODS}


def _same(function: Any) -> Any:
    return function


def _in_memory(make: Callable[[], Any]) -> Any:
    """Return an attribute; if it is a method that writes what another function computes, compiled code before it."""
    made = make()
    computes = getattr(made, "computes", None)
    return made if computes is None else as_method(writer(computes, made))


def install() -> None:
    """Give Tensor its operators and methods."""
    writing = {**inplace.METHODS, **{name: one for name, one in OPERATORS.items() if hasattr(one, "computes")}}
    for name, function in OPERATORS.items():
        setattr(Tensor, name, as_operator(function) if name in LEAVE_OTHERS else function)
        plans = getattr(getattr(function, "op", None), "plans", None)
        if isinstance(plans, PlanCache) and hasattr(plans, "call"):
            plans.operators[name] = function if hasattr(function, "is_reversed") else None
    for name, make in {**makers(), "_numba_type_": _numba_type}.items():
        setattr(Tensor, name, Later(Tensor, name, partial(_in_memory, make)))
    for name, function in {**OWN, **casts.CONVERSIONS}.items():
        setattr(Tensor, name, function)
    for name, function in writing.items():
        setattr(Tensor, name, Later(Tensor, name, partial(_in_memory, partial(_same, function))))
    for name, make in creation.COMPILED_METHODS.items():
        setattr(Tensor, name, Later(Tensor, name, make))
