"""In-place operations: writing to a tensor's memory, recorded where a gradient is wanted.

A recorded in-place operation computes its result as the op does, copies it into the memory that aliases see, and gives
the tensor the new entry's node. What the entry saved are copies, so that ``y *= y`` has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import numpy as np

from tapegrad import errors, modes
from tapegrad.dtypes import TORCH_NAMES, default_dtype
from tapegrad.forward.powers import check_exponent
from tapegrad.ops import arithmetic, plain_writes, rounding, scaled
from tapegrad.ops.casts import cast
from tapegrad.ops.history import before_write, node_before_write, rewrite
from tapegrad.ops.inplace_fills import OWN_WAYS
from tapegrad.ops.scaled import times
from tapegrad.ops.setitem import write_at_index
from tapegrad.ops.table.gateway import as_operand, constant, shape_of
from tapegrad.ops.table.op import Op
from tapegrad.ops.table.write_checks import (
    can_hold,
    cast_error,
    check_distinct,
    check_leaf,
    follower,
    plain_memory,
    records,
    shape_error,
    wrapped,
)
from tapegrad.recording.writes import written
from tapegrad.tape import versions, views
from tapegrad.tape.layout import layout_of
from tapegrad.tape.views import base_of
from tapegrad.tensor import Tensor

# Recorded ----------------------------------------------------------------------------------------------------------


def _copy(value: Any, target: np.ndarray) -> Any:
    """Return an operand with a copy of its data if that is about to be written over."""
    if not isinstance(value, Tensor):
        return value
    views.renewed(value)
    if not isinstance(value._data, np.ndarray):
        return value
    if value._data.size and not np.may_share_memory(value._data, target):
        return value
    data = value._data.copy()
    copy = constant(data, layout_of(data))
    if value._node is not None:
        copy._layout, copy._node = copy._layout.tracked, value._node
    return copy


def _rebase(target: Tensor, function: Callable[..., Tensor], args: tuple[Any, ...], **kwargs: Any) -> Tensor:
    """Record ``function(target, *args)``, write its value to the target's memory, and let the target be its result."""
    array = target._array()
    check_distinct(array)
    others = [_copy(own, array) for own in args]
    before = _copy(target, array)
    if before is not target:
        before._node = node_before_write(target)
    result = function(before, *others, **kwargs)
    result = _fitting(target, result)
    if result._node is None:  # the elements that are written over get a gradient of 0
        return copy_(target, result)
    before_write(target)
    array[...] = result._data
    rewrite(target, result)
    return target


def _fitting(target: Tensor, result: Tensor) -> Tensor:
    """Return a result as the tensor can hold it that it is written to."""
    if result.shape != target.shape:
        raise shape_error(target.shape, result.shape)
    if result.dtype == target.dtype:
        return result
    if not can_hold(target.dtype, result.dtype):
        raise cast_error(result.dtype, target.dtype)
    return cast(result, target.dtype)


def _operator(symbol: str, function: Callable[..., Tensor], ufunc: np.ufunc) -> Callable[[Tensor, Any], Any]:
    """Return the method that is an in-place operator."""
    name, refuses_bools = f"x {symbol} y", function is arithmetic.sub
    write = plain_writes.writer(function)

    def call(self: Tensor, other: Any) -> Any:
        if write(self, other):
            return self
        if not isinstance(other, (Tensor, np.ndarray, np.generic, int, float, complex)):
            return NotImplemented
        if refuses_bools and isinstance(other, Tensor) and other._layout.dtype.kind == "b":
            function(self, other)  # raises the op's error, which NumPy's loop would not
        if modes.mode.value & modes.INTERCEPTORS and follower(self, other):
            return copy_(self, _fitting(self, function(self, other)))
        if not records(self, other):
            return _write(self, other, ufunc)
        if not self._layout.floating:
            raise cast_error(as_operand(other, name, "y", 2).dtype, self.dtype)
        check_leaf(self)
        return _rebase(self, function, (other,))

    call.__doc__ = f"Compute ``{symbol}`` in place; recorded where a gradient is wanted."
    call.computes = function  # type: ignore[attr-defined]
    return call


def _write(
    target: Tensor, other: Any, ufunc: np.ufunc, casting: Literal["same_kind", "unsafe"] = "same_kind"
) -> Tensor:
    """Compute in place what is not recorded."""
    array = target._data
    if array.__class__ is not np.ndarray:
        array = target._array()
    value = other._data if isinstance(other, Tensor) else other
    if ufunc is np.power:
        check_exponent(array, value)
    before_write(target)
    try:
        if casting == "same_kind":  # NumPy's default, which takes less time than the same word
            ufunc(array, value, out=array)
        else:
            ufunc(array, value, out=array, casting=casting)
    except TypeError:
        versions.take_back(array)
        result = ufunc(array.dtype.type(1), np.asarray(value).dtype.type(1)).dtype
        if not can_hold(array.dtype, result):
            if result.kind == "f":  # NumPy widens integers to float64
                own = getattr(value, "dtype", result)
                result = own if own.kind == "f" and isinstance(value, (np.ndarray, np.generic)) else default_dtype()
            raise cast_error(result, array.dtype) from None
        return _write(target, other, ufunc, "unsafe")
    except OverflowError:
        versions.take_back(array)
        return _write(target, wrapped(value, array.dtype), ufunc)
    except ValueError:
        versions.take_back(array)
        check_distinct(array)
        if not array.flags.writeable:
            raise
        try:
            shape = np.broadcast_shapes(array.shape, np.shape(value))
        except ValueError:
            raise errors.broadcast_mismatch(ufunc.__name__, array.shape, np.shape(value)) from None
        raise shape_error(array.shape, shape) from None
    return target


iadd = _operator("+=", arithmetic.add, np.add)
isub = _operator("-=", arithmetic.sub, np.subtract)
imul = _operator("*=", arithmetic.mul, np.multiply)
idiv = _operator("/=", arithmetic.div, np.true_divide)
ipow = _operator("**=", arithmetic.pow, np.power)
imod = _operator("%=", rounding.remainder, np.remainder)
ifloordiv = _operator("//=", rounding.floor_divide, np.floor_divide)


# Methods -----------------------------------------------------------------------------------------------------------


def _refuse_complex(x: Tensor) -> None:
    if x._layout.dtype.kind == "c":
        raise RuntimeError("In-place abs is not supported for complex tensors. Write x.abs(), which is real.")


def _refuse_others(self: Tensor, exponent: Any) -> None:
    double = scaled.double_of(self, as_operand(exponent, "float_power_", "exponent", 1))
    if self.dtype != double:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {TORCH_NAMES[self.dtype.name]} but the operation's result "
            f"requires dtype {TORCH_NAMES[double.name]}. Write x.float_power(...), or convert x first."
        )


# By the names of functions: what refuses results that could be converted.
_REFUSALS: Final[dict[str, Callable[..., None]]] = {
    "abs": _refuse_complex, "absolute": _refuse_complex, "float_power": _refuse_others,
}  # fmt: skip


def in_place(function: Callable[..., Tensor], name: str = "") -> Callable[..., Tensor]:
    """Return the function that writes the result over its first argument, and returns that."""
    write, refuse = OWN_WAYS.get(name) or plain_writes.writer(function), _REFUSALS.get(name)

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(self, Tensor):  # as a function: relu_(3)
            raise errors.not_a_tensor(f"{name}_", "input", 1, self)
        if write(self, *args, **kwargs):
            return self
        if refuse is not None:
            refuse(self, *args, **kwargs)
        if modes.mode.value & modes.INTERCEPTORS and follower(self, *args, *kwargs.values()):
            return copy_(self, _fitting(self, function(self, *args, **kwargs)))
        if records(self, *args, *kwargs.values()):
            check_leaf(self)
            return _rebase(self, function, args, **kwargs)
        with modes.no_grad():
            result = function(self, *args, **kwargs)
        array = self._array()
        check_distinct(array)
        result = _fitting(self, result)
        before_write(self)
        array[...] = result._data
        return self

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__wrapped__ = function  # type: ignore[attr-defined]  # whose arguments they are
    if name not in OWN_WAYS:
        call.computes = function  # type: ignore[attr-defined]
    call.__doc__ = f"Compute `{name}` in place; recorded where a gradient is wanted."
    return call


_rounded_quotient: Final = in_place(rounding.div, "div")


def _scaled(operator: Callable[[Tensor, Any], Tensor], function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    op: Op = function.op  # type: ignore[attr-defined]

    def call(self: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        if other.__class__ is float and alpha.__class__ is int and alpha == 1 and self._layout.floating:
            return operator(self, other)  # nothing to multiply, and no kind to check
        if isinstance(other, Tensor) and alpha.__class__ in (int, float):
            layout, own = other._layout, self._layout
            if alpha == 1:
                if layout.floating and own.floating:
                    return operator(self, other)  # nothing to multiply, and no kind to check
            elif layout.floating and layout.dtype is own.dtype and not layout.weak:
                return operator(self, arithmetic.mul(other, alpha))  # no kind to check
        return operator(self, times(op, alpha, self, as_operand(other, f"{op.name}_", "other", 1)))

    call.__name__ = call.__qualname__ = f"{op.name}_"
    call.__doc__ = f"Compute `{op.name}` in place, with `other` times `alpha`; recorded where a gradient is wanted."
    call.computes = function  # type: ignore[attr-defined]
    return call


def mul_(self: Tensor, other: Any) -> Tensor:
    """Compute `mul` in place; recorded where a gradient is wanted."""
    is_plain = other.__class__ in (Tensor, float, int)  # of which no tensor has to be made
    result: Tensor = imul(self, other if is_plain else as_operand(other, "mul_", "other", 1))
    return result


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Compute `div` in place; recorded where a gradient is wanted."""
    if rounding_mode is None:
        result: Tensor = idiv(self, other)
        return result
    return _rounded_quotient(self, other, rounding_mode=rounding_mode)


def _is_copied_at_once(target: Tensor, source: Tensor) -> bool:
    """Copy what needs no conversion and no record, as states of modules do; return False if there is more to it."""
    layout, other = target._layout, source._layout
    if modes.mode.value & modes.INTERCEPTORS or layout.shape != other.shape or layout.dtype is not other.dtype:
        return False
    array = target._array()
    check_distinct(array)
    before_write(target)
    array[...] = source._data
    return True


def copy_(self: Tensor, source: Any) -> Tensor:
    """Copy the elements of a tensor or array, broadcast to this one's shape; recorded where a gradient is wanted."""
    if plain_writes.copy(self, source):
        return self
    recorded = records(self, source)
    if recorded:
        check_leaf(self)
    if source is not self:
        shape = shape_of(source)
        if not recorded and isinstance(source, Tensor) and _is_copied_at_once(self, source):
            return self
        if len(shape) > len(self.shape):
            raise shape_error(self.shape, shape)
        if any(own not in (1, length) for own, length in zip(reversed(shape), reversed(self.shape), strict=False)):
            raise errors.broadcast_mismatch("copy_()", self.shape, shape)
        write_at_index(self, Ellipsis, source, "copy_()")
    return self


def _fill(target: Tensor, value: float) -> bool:
    """Fill a tensor with a small number if that is not recorded; return False if that is something else."""
    array = plain_memory(target, value) if value.__class__ in (int, float) else None
    if array is not None:
        array.fill(value)
    return array is not None


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set all elements to a number, in place; recorded where a gradient is wanted."""
    if _fill(self, value):
        return self
    if shape := shape_of(value):
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got shape {list(shape)}")
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Set all elements to zero, in place; recorded where a gradient is wanted."""
    zeroed: Tensor | None = written.zero(self)
    return copy_(self, 0) if zeroed is None else zeroed


def detach_(self: Tensor) -> Tensor:
    """Make this result a leaf that no gradient is wanted for, in place.

    Raises
    ------
    RuntimeError
        If it is a view, whose base would still be a result.
    """
    if isinstance(self._node, list) and base_of(self) is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    self._layout, self._node = self._layout.plain, None
    return self


def _source(target: Tensor, source: Any) -> Any:
    """Return what `copy_` writes."""
    return source


copy_.computes = _source  # type: ignore[attr-defined]
mul_.computes, div_.computes = arithmetic.mul, rounding.div  # type: ignore[attr-defined]

# The methods that write to a tensor and are no public function's.
METHODS: Final[dict[str, Callable[..., Any]]] = {
    "add_": _scaled(iadd, scaled.add), **dict.fromkeys(("sub_", "subtract_"), _scaled(isub, scaled.sub)),
    **dict.fromkeys(("mul_", "multiply_"), mul_), **dict.fromkeys(("div_", "divide_", "true_divide_"), div_),
    "copy_": copy_, "fill_": fill_, "zero_": zero_, "detach_": detach_,
}  # fmt: skip
